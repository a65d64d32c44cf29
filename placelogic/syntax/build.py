"""Parse tree to syntax tree. Checks that need no other statement happen here."""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token
from msgspec import Struct
from msgspec.structs import replace

from placelogic.program.catalog import STATES
from placelogic.program.expr import Compare, Expr, Name
from placelogic.source import Span
from placelogic.syntax import ast
from placelogic.syntax.build_block import BlockBuilder
from placelogic.syntax.builder import RESERVED, plain


class _Keyed(Struct, frozen=True):
    """An entry of a block that becomes a field of its statement."""

    word: str
    value: Expr
    span: Span


class Builder(BlockBuilder):
    """The statements that need more than their children put in order."""

    # --- meshes, sizes, files ---

    def build_axis_decl(self, span: Span, name: Token, size: Expr | None) -> ast.AxisDecl:
        return ast.AxisDecl(self._declared(name, self._span(name)), size, (), span)

    def build_axis_bounds(self, span: Span, bounds: Sequence[Compare]) -> ast.AxisDecl:
        # `2 <= pp <= 16`, `pp <= 16` or `2 <= pp`: the axis is the bare name, the left one of two.
        sides = [bounds[0].right] if len(bounds) == 2 else [bounds[0].left, bounds[0].right]
        axis = next((side for side in sides if isinstance(side, Name)), None)
        if len(bounds) > 2 or axis is None or any(bound.op in ("==", "!=") for bound in bounds):
            message = "this does not say which axis is bounded, and how"
            self._wrong("PL115", message, span, "write `tp`, `tp = 8`, `tp <= 8` or `2 <= tp <= 8`")
            return ast.AxisDecl("", None, (), span)
        self._declares(axis)
        return ast.AxisDecl(self._declared(axis.name, axis.span), None, tuple(bounds), span)

    def build_axis(self, span: Span, name: Token, factors: ast.AxisRef) -> ast.AxisStmt:
        return ast.AxisStmt(self._declared(name, self._span(name)), factors, span)

    def build_let_item(self, span: Span, name: Token, value: Expr | None) -> ast.LetItem:
        return ast.LetItem(self._declared(name, self._span(name)), value, span)

    def build_assume(self, span: Span, *chains) -> ast.AssumeStmt:
        return ast.AssumeStmt(tuple(link for chain in chains for link in chain), span)

    def build_import(self, span: Span, path: Token) -> ast.ImportStmt:
        if path == '""':
            self._wrong("PL116", "an import needs the name of a file", self._span(path), 'write `import "our.place"`')
        return ast.ImportStmt(path[1:-1], span)

    def build_file(self, span: Span, *statements) -> ast.File:
        whole = statements[0].span.to(statements[-1].span) if statements else span
        found = sorted(self._identifiers, key=lambda one: (one.line, one.column))
        return ast.File(self._path, statements, whole, tuple(found))

    # --- work, and how the code divides and combines ---

    def build_evenness(self, span: Span, word: Token) -> bool:
        return word == "even"

    def build_microbatches(self, span: Span, count: Expr) -> ast.MicrobatchesStmt:
        if isinstance(count, Name) and count.name in RESERVED:
            self._wrong("PL113", f"`{count.name}` is no number of micro-batches", count.span, "write `microbatches M`")
        if isinstance(count, Name):
            self._declares(count)
        return ast.MicrobatchesStmt(count, span)

    def build_loss(self, span: Span, name: Token | None, scope: tuple) -> ast.LossStmt:
        return ast.LossStmt(plain(name), *scope, span)

    def build_loss_local(self, span: Span) -> tuple:
        return "local", (), False

    def build_loss_global(self, span: Span) -> tuple:
        return "global", (), False

    def build_loss_sum(self, span: Span) -> tuple:
        return "sum", (), False

    def build_loss_over(self, span: Span, shares: tuple) -> tuple:
        return "over", *(shares or ((), False))

    def build_sync(self, span: Span, target: ast.Target, shares: tuple, op: str) -> ast.SyncStmt:
        return ast.SyncStmt(target, *shares, op, span)

    # --- steps ---

    def build_loop(self, span: Span, subset: tuple, *body) -> ast.LoopOp:
        return ast.LoopOp(*subset, body, span)

    def build_each(self, span: Span, but: str | None) -> tuple:
        return f"but_{but}" if but else "each", None

    def build_end_only(self, span: Span, end: str) -> tuple:
        return end, None

    def build_numbered(self, span: Span, index: Token) -> tuple:
        if int(self._digits(index)) == 0:
            self._wrong("PL118", "there is no micro-batch 0", self._span(index), "micro-batches count from 1")
        return "index", int(self._digits(index))

    def build_accumulate(self, span: Span, buffer: Token | None) -> ast.AccumulateOp:
        return ast.AccumulateOp(False, plain(buffer), span)

    def build_replace(self, span: Span, buffer: Token | None) -> ast.AccumulateOp:
        return ast.AccumulateOp(True, plain(buffer), span)

    def build_reduce(self, span: Span, buffer: Token | None, scattered: Token | None, axes, op: str) -> ast.ReduceOp:
        return ast.ReduceOp(plain(buffer), scattered is not None, axes, op, span)

    def build_broadcast_params(self, span: Span, axis: ast.AxisRef, root: Token) -> ast.BroadcastParamsOp:
        return ast.BroadcastParamsOp(axis, int(self._digits(root)), span)

    # --- start and clipping ---

    def build_init(self, span: Span, target: ast.Target, op: ast.InitOp) -> ast.InitStmt:
        return ast.InitStmt(target, (op,), False, span)

    def build_init_block(self, span: Span, target: ast.Target, *ops) -> ast.InitStmt:
        return ast.InitStmt(target, ops, True, span)

    def build_init_broadcast(self, span: Span, axis: ast.AxisRef, root: Token) -> ast.InitBroadcast:
        return ast.InitBroadcast(axis, int(self._digits(root)), span)

    def build_clip(self, span: Span, norm: Token) -> ast.ClipStmt:
        return ast.ClipStmt(str(norm), None, span)

    def build_clip_listed(self, span: Span, norm: Token, *entries) -> ast.ClipStmt:
        return ast.ClipStmt(str(norm), entries, span)

    # --- weights, models, strategies ---

    def build_precision(self, span: Span, target: ast.Target | None, *entries) -> ast.PrecisionStmt:
        self._once(((entry.state, entry.state, entry.span) for entry in entries), "block")
        return ast.PrecisionStmt(target, entries, span)

    def build_weights(self, span: Span, name: Token, *props) -> ast.WeightsStmt:
        self._once(((type(prop), _WEIGHTS_WORDS[type(prop)], prop.span) for prop in props), "block")
        return ast.WeightsStmt(str(name), props, span)

    def build_used_on(self, span: Span, *items) -> ast.UsedOnProp:
        *stages, axis = items
        self._once(((stage, stage, span) for stage in stages), "list")
        return ast.UsedOnProp(tuple(stages), axis, span)

    def build_param(self, span: Span, name: Token, default: Expr | None) -> ast.Param:
        return ast.Param(self._declared(name, self._span(name)), default, span)

    def build_body(self, span: Span, *statements) -> tuple:
        return statements

    def build_strategy_def(self, span: Span, name: Token, *params_body) -> ast.StrategyDef:
        *params, body = params_body
        self._once(((param.name, param.name, param.span) for param in params), "list of parameters")
        return ast.StrategyDef(str(name), tuple(params), body, span)

    def build_model_def(self, span: Span, name: Token, *params_body) -> ast.ModelDef:
        *params, body = params_body
        self._once(((param.name, param.name, param.span) for param in params), "list of parameters")
        return ast.ModelDef(str(name), tuple(params), body, span)

    def build_spec_def(self, span: Span, name: Token, body: tuple) -> ast.SpecDef:
        return ast.SpecDef(str(name), body, span)

    def build_model(self, span: Span, name: Token, *arguments) -> ast.ModelStmt:
        self._once(((arg.name, arg.name, arg.span) for arg in arguments), "block")
        return ast.ModelStmt(str(name), arguments, span)

    def build_plain_arg(self, span: Span, value: Expr) -> ast.Argument:
        return ast.Argument(None, value, span)

    def build_call(self, span: Span, name: Token, *arguments) -> ast.StrategyCall:
        named = [arg for arg in arguments if arg.name is not None]
        self._once(((arg.name, arg.name, arg.span) for arg in named), "call")
        for arg in arguments[arguments.index(named[0]) :] if named else ():
            if arg.name is None:
                message = "an argument without a name stands after one with a name"
                self._wrong("PL117", message, arg.span, "write its name too, or move it forward")
        return ast.StrategyCall(str(name), arguments, span)

    # --- placements ---

    def build_place(self, span: Span, target: ast.Target, axes, *entries) -> ast.PlaceStmt:
        states = tuple(entry for entry in entries if isinstance(entry, ast.PlaceEntry))
        others = [entry for entry in entries if isinstance(entry, _Keyed)]
        self._once(((entry.state, entry.state, entry.span) for entry in states), "block")
        self._once(((entry.word, entry.word, entry.span) for entry in others), "block")
        reshard = others[0].value if others else None
        self._cut_over_something(axes, states)
        return ast.PlaceStmt(target, axes or (), states, reshard, span)

    def _cut_over_something(self, axes: tuple[ast.AxisRef, ...] | None, entries: tuple[ast.PlaceEntry, ...]) -> None:
        for entry in entries if axes is None else ():
            if entry.mode.letter in ast.CUT:
                how = ast.CUT[entry.mode.letter]
                message = f"`{entry.state} {how}` does not say over which axis"
                self._wrong(
                    "PL120", message, entry.span, "name the axis after the weights, as in `over dp`, or say `over none`"
                )

    def build_reshard(self, span: Span, value: Expr) -> _Keyed:
        return _Keyed("reshard_after_forward", value, span)

    def build_place_tuple(self, span: Span, target: ast.Target, axes, *modes: ast.Mode) -> ast.PlaceStmt:
        if len(modes) > len(STATES):
            message = f"this tuple has {len(modes)} entries"
            hint = "it is (params, optimizer, gradients, activations); later ones may be left out"
            self._wrong("PL111", message, modes[len(STATES)].span.to(modes[-1].span), hint)
        entries = tuple(ast.PlaceEntry(state, mode, mode.span) for state, mode in zip(STATES, modes))
        self._cut_over_something(axes, entries)
        return ast.PlaceStmt(target, axes or (), entries, None, span)

    def build_replicated(self, span: Span) -> ast.Mode:
        return ast.Mode("R", None, False, span)

    def build_materialized(self, span: Span) -> ast.Mode:
        return ast.Mode("M", None, False, span)

    def build_offloaded(self, span: Span) -> ast.Mode:
        return ast.Mode("R", None, True, span)

    def build_sharded(self, span: Span, dim: Token | None) -> ast.Mode:
        return ast.Mode("S", plain(dim), False, span)

    def build_gathered(self, span: Span, dim: Token | None) -> ast.Mode:
        return ast.Mode("S*", plain(dim), False, span)

    def build_cut_offloaded(self, span: Span, cut: ast.Mode) -> ast.Mode:
        return replace(cut, host=True, span=span)

    def build_stages(self, span: Span, axis: ast.AxisRef, props: tuple | None) -> ast.StagesStmt:
        self._once(((prop.word, prop.word, prop.span) for prop in props or ()), "block")
        found = {prop.word: prop.value for prop in props or ()}
        return ast.StagesStmt(axis, found.get("schedule"), found.get("chunks"), span)

    def build_stages_props(self, span: Span, *props) -> tuple:
        return props

    def build_schedule(self, span: Span, value: Expr) -> _Keyed:
        return _Keyed("schedule", value, span)

    def build_chunks(self, span: Span, value: Expr) -> _Keyed:
        return _Keyed("chunks", value, span)

    # --- claims ---

    def build_claim(self, span: Span, left: Expr, op: Token, right: Expr) -> ast.ClaimStmt:
        start = (span.line, span.column)
        self._measures = [call for call in self._measures if (call.span.line, call.span.column) < start]
        return ast.ClaimStmt(Compare(str(op), left, right, left.span.to(right.span)), span)


_WEIGHTS_WORDS = {
    ast.SizeProp: "size",
    ast.LayersProp: "layers",
    ast.DimsProp: "dims",
    ast.KindProp: "kind",
    ast.UsedOnProp: "used on",
    ast.RoutedProp: "routed over",
}
