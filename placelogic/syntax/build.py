"""Parse tree to syntax tree. Checks that need no other statement happen here."""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token
from msgspec import Struct
from msgspec.structs import replace

from placelogic.program import ops
from placelogic.program.catalog import STATES
from placelogic.program.expr import Compare, Expr, Name
from placelogic.source import Span
from placelogic.syntax import ast
from placelogic.syntax.build_block import BlockBuilder
from placelogic.syntax.builder import RESERVED


class _Keyed(Struct, frozen=True):
    """An entry of a block that becomes a field of its statement."""

    word: str
    value: Expr
    span: Span


class Builder(BlockBuilder):
    """The statements that need more than their children put in order."""

    # --- meshes, sizes, files ---

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
        return ast.LossStmt(self._plain(name), *scope, span)

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

    def build_loop(self, span: Span, subset: tuple, *body) -> ops.Loop:
        return ops.Loop(*subset, body, ops.Origin(span, stated=True))

    def build_each(self, span: Span, but: str | None) -> tuple:
        return f"but_{but}" if but else "each", None

    def build_end_only(self, span: Span, end: str) -> tuple:
        return end, None

    def build_numbered(self, span: Span, index: Token) -> tuple:
        if int(self._digits(index)) == 0:
            self._wrong("PL118", "there is no micro-batch 0", self._span(index), "micro-batches count from 1")
        return "index", int(self._digits(index))

    def build_broadcast_params(self, span: Span, axis: ast.AxisRef, root: Token) -> ops.BroadcastParams:
        return ops.BroadcastParams((axis,), int(self._digits(root)), ops.Origin(span, stated=True))

    # --- weights, models, strategies ---

    def build_body(self, span: Span, *statements) -> tuple:
        return statements

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
