"""Stated `step` blocks: which weights they are for, and their operations in the step program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.sizes import Declared
from placelogic.elaborate.targets import Groups, agree, select, strongest
from placelogic.problem import closest
from placelogic.program import expr as ex
from placelogic.program import program as pg
from placelogic.program.expr import tokens_of
from placelogic.program.program import Axes, LossTerm, Op
from placelogic.source import NOWHERE, Span
from placelogic.syntax import ast


class StatedStep(Struct, frozen=True):
    """The step block that wins for some weights. `level`: how specifically it names them."""

    item: Item
    statement: ast.StepStmt
    level: int


def find_steps(items: Sequence[Item], groups: Groups, log: Log) -> dict[str, StatedStep]:
    """The most specific step block of every trained group that has one."""
    found: dict[str, list[tuple[int, StatedStep]]] = {}
    for item in select(items, ast.StepStmt):
        node = item.statement
        assert isinstance(node, ast.StepStmt)
        groups.check(node.target, item, log, "no gradient and no step")
        for group in groups.members:
            level = groups.level(node.target, item, group)
            if level and not group.frozen:
                found.setdefault(group.name, []).append((level, StatedStep(item, node, level)))
    result = {}
    for name, claims in found.items():
        top = strongest(claims)
        differ = agree(top, lambda step: without_spans(step.statement.body))
        if differ is not None:
            line, here = (step.item.at(step.statement.span).line for step in differ)
            log.once(differ[1].item, "PL322", f"two equally specific steps of `{name}` differ (lines {line} and {here})",
                   differ[1].statement.target.span, f"keep one, or name `{name}` in one of them")  # fmt: skip
        result[name] = top[0]
    return result


def without_spans(node: Any) -> Any:
    """The same syntax with its places taken out, to compare what was said."""
    if isinstance(node, tuple):
        return tuple(without_spans(part) for part in node)
    if isinstance(node, Span):
        return NOWHERE
    if isinstance(node, Struct):
        return replace(
            node, **{name: without_spans(getattr(node, name)) for name in node.__struct_fields__}
        )
    return node


class StepReader(Struct):
    """Turns step blocks into operations. One block may serve many weights: it is read once."""

    sizes: Declared
    losses: tuple[LossTerm, ...]
    has_clip: bool
    log: Log

    def read(self, step: StatedStep) -> tuple[Op, ...]:
        ops = tuple(self._ops(step.statement.body, step.item, loop=False))
        self._buffers(ops, step.item)
        return ops

    def _ops(self, body: Sequence[Op], item: Item, loop: bool) -> Iterator[Op]:
        accumulated = False
        for node in body:
            if isinstance(node, pg.ScaleLoss):
                self._check_scale_loss(node, item, loop, accumulated)
            accumulated = accumulated or isinstance(node, pg.Accumulate)
            yield self._op(node, item, loop)

    def _turn(self, body: Sequence[Op], item: Item) -> None:
        """Operations on gradients in a loop have one reading: on the fresh gradient before the
        accumulates, on the buffer after them."""
        adds = [index for index, node in enumerate(body) if isinstance(node, pg.Accumulate)]
        for index, node in enumerate(body):
            if isinstance(node, pg.ScaleLoss) and not adds:
                self._log(item, "PL343", "nothing is accumulated in this loop, so the scaled loss goes nowhere",
                          node.span, "write it in the loop that accumulates")  # fmt: skip
            if not isinstance(node, pg.Reduce | pg.Scale | pg.GatherGradients):
                continue
            buffer = None if isinstance(node, pg.GatherGradients) else node.buffer
            if not adds:
                self._log(item, "PL343", "nothing is accumulated in this loop, so this could mean the fresh gradient "
                          "or the buffer", node.span, "write it after the loop, or accumulate first")  # fmt: skip
            elif adds[0] < index < adds[-1]:
                self._log(item, "PL343", "this stands between two accumulates, so it could mean the fresh gradient "
                          "or the buffer", node.span, "write it before both or after both")  # fmt: skip
            elif index < adds[0] and buffer is not None:
                hint = _SCATTER if buffer in _SCATTER_WORDS else "leave the name out, or write it after `accumulate`"
                self._log(item, "PL343", f"before `accumulate` this acts on the fresh gradient, not on `{buffer}`",
                          node.span, hint)  # fmt: skip

    def _op(self, node: Op, item: Item, loop: bool) -> Op:
        """The operation, its axes in atoms and its factor looked up."""
        said: dict[str, Any] = {"origin": item.origin(node.span)}
        match node:
            case pg.Loop(body=body):
                if loop:
                    self._log(item, "PL330", "a loop over micro-batches cannot stand inside another", node.span,
                              "write the loops one after the other")  # fmt: skip
                self._turn(body, item)
                said["body"] = tuple(self._ops(body, item, loop=True))
            case pg.Accumulate(replace=overwrites) if not loop:
                word = "replace" if overwrites else "accumulate"
                self._log(item, "PL330", f"there is no fresh gradient to {word} outside a loop over micro-batches",
                          node.span, f"write `each microbatch {{ {word} }}`")  # fmt: skip
            case pg.Scale(factor=factor):
                said["factor"] = self.factor(factor, item, node.span)
            case pg.ScaleLoss(factor=factor):
                said["factor"] = self.factor(factor, item, node.span, scaled=node)
            case pg.Clip() if not self.has_clip:
                self._log(item, "PL332", "the step clips, and no `clip` statement says how", node.span,
                          "add `clip global_norm`")  # fmt: skip
            case pg.Skip() if loop:
                self._log(item, "PL334", "skipping the update is decided once per step, not in a loop", node.span,
                          "move `skip` behind the loop")  # fmt: skip
        if hasattr(node, "axes"):
            said["axes"] = self.sizes.axes(node.axes, item)
        if isinstance(node, pg.BroadcastParams):
            check_root(said["axes"], node.root, self.sizes, item, node.span, self.log)
        return replace(node, **said)

    def _check_scale_loss(self, node: pg.ScaleLoss, item: Item, loop: bool, accumulated: bool) -> None:
        names = [term.name for term in self.losses]
        if node.term not in names:
            what = f"loss `{node.term}`" if node.term else "unnamed loss"
            known = [name for name in names if name]
            near = closest(node.term, known) if node.term else None
            self._log(item, "PL219", f"there is no {what}", node.span,
                      near or f"losses: {', '.join(known) or 'one, unnamed'}")  # fmt: skip
        if not loop or accumulated:
            self._log(item, "PL331", "a loss is scaled while its gradient is fresh: in a loop, before `accumulate`",
                      node.span, "move it there, or scale the whole gradient: `scale by`")  # fmt: skip

    def factor(
        self, factor: ex.Expr, item: Item, span: Span, scaled: pg.ScaleLoss | None = None
    ) -> ex.Expr:
        """A factor for a gradient: `tokens` is all loss tokens, of which several losses count each their own: where one
        of them is `scaled` it is its own count, and a named one has to say so."""
        counts = {tokens_of(loss.name): loss.name for loss in self.losses if loss.name is not None}
        several = len(self.losses) > 1
        for name in ex.names(factor):
            if name.name == ex.TOKENS and several and scaled is None:
                self._log(item, "PL325", "`tokens` is not one number where several losses each count their own", span,
                          "use `loss NAME mean global`, or `scale loss NAME by` in a step")  # fmt: skip
            elif name.name == ex.TOKENS and several and scaled is not None and scaled.term is not None:
                self._log(item, "PL325", f"there are several losses, and it is not said whether `tokens` counts those of "
                          f"`{scaled.term}` or of another one", span, f"write `tokens of {scaled.term}`")  # fmt: skip
            elif name.name in counts and several and (scaled is None or scaled.term != counts[name.name]):
                self._log(item, "PL325", f"a gradient that is scaled by the tokens of another loss, as here by those of "
                          f"`{counts[name.name]}`, is not modelled", span,
                          "scale each loss by its own tokens: `scale loss NAME by 1/tokens of NAME`")  # fmt: skip
            elif name.name.startswith(tokens_of("")) and name.name not in counts:
                known = ", ".join(counts.values())
                self._log(item, "PL219", f"there is no loss `{name.name.split()[-1]}`", span,
                          f"losses: {known or 'one, unnamed'}")  # fmt: skip
        own = ex.substitute(factor, dict.fromkeys(counts, ex.Name(ex.TOKENS)))
        return self.sizes.expr(own, item, span, tokens=True)

    def _buffers(self, ops: Sequence[Op], item: Item) -> None:
        """What is read was written. Where all buffers have names, the unnamed one is a slip too."""
        written = {op.buffer for op in pg.flat(ops) if isinstance(op, pg.Accumulate)}
        known = sorted(name for name in written if name)
        for op in _on_buffers(ops):
            name = op.buffer if isinstance(op, pg.Reduce | pg.Scale | pg.Update) else None
            if name in written or (name is None and not written):
                continue
            what = f"buffer `{name}`" if name else "the unnamed buffer"
            hint = _SCATTER if name in _SCATTER_WORDS else closest(name, known) if name else f"name the buffer: {', '.join(known)}"
            self._log(item, "PL335", f"{what} is read, and nothing is ever accumulated into it",
                      op.origin.library or op.origin.span,
                      hint or f"write `accumulate into {name}` in a loop")  # fmt: skip

    def _log(self, item: Item, code: str, message: str, span: Span, hint: str) -> None:
        self.log.at(item, code, message, span, hint)


_SCATTER = "for a reduce-scatter write `reduce scattered over ... by ...`"
_SCATTER_WORDS = ("scatter", "scattered", "reduce_scatter")


def _on_buffers(ops: Sequence[Op]) -> Iterator[Op]:
    """The operations that read a buffer: in a loop, those from the first accumulate on."""
    for op in ops:
        if isinstance(op, pg.Loop):
            starts = [isinstance(inner, pg.Accumulate) for inner in op.body]
            yield from _on_buffers(op.body[starts.index(True) :] if True in starts else op.body)
        elif isinstance(op, pg.Reduce | pg.Scale | pg.Update):
            yield op


def check_root(axes: Axes, root: int, sizes: Declared, item: Item, span: Span, log: Log) -> None:
    """A broadcast's root must exist. Open sizes are left to the proof, except over a product, where
    which device has a number depends on the sizes."""
    size = sizes.size(axes)
    if root == 0 or not axes:
        return
    if size is None:
        if len(axes) > 1:
            log.at(item, "PL340", f"which device is number {root} of {'*'.join(axes)} depends on sizes that are open",
                   span, "fix the sizes, or broadcast from 0")  # fmt: skip
    elif root >= size:
        log.at(item, "PL404", f"there is no device {root} along {'*'.join(axes)}: it has {size}", span,
               f"roots are 0 to {size - 1}")  # fmt: skip
