"""Optimizers on the host: how the gradients of a stated step get there before the update reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.targets import WeightsGroup
from placelogic.program import program as pg
from placelogic.program.program import Op
from placelogic.run.step import turns
from placelogic.source import Span

_OFFLOAD = "write `offload gradients` after they are accumulated and before `update`, once or in each micro-batch"
_AGAIN = "move `offload gradients` below it, or write it there once more"


def check_host(
    group: WeightsGroup, ops: Sequence[Op], layouts: Mapping[str, pg.Layout], count: Fraction | None, item: Item, span: Span, log: Log
) -> None:
    """Moves to and from the host, in a stated step of these weights. `count`: of micro-batches, where it is known."""
    hosted = {state for state in ("params", "optimizer", "gradients") if layouts[state].host is not None}
    for op in pg.flat(tuple(ops)):
        place = op.origin.library or op.origin.span
        if isinstance(op, pg.OffloadGradients) and not hosted & {"optimizer", "gradients"}:
            log.once(item, "PL337", f"nothing of `{group.name}` lies on the host that would take its gradients", place,
                   f"place it there: `place {group.name} {{ optimizer offloaded }}`")  # fmt: skip
        if isinstance(op, pg.FetchParams) and not hosted & {"optimizer", "params"}:
            log.once(item, "PL337", f"nothing of `{group.name}` lies on the host that params could be fetched from",
                   place, f"place it there: `place {group.name} {{ optimizer offloaded }}`")  # fmt: skip
    if "optimizer" not in hosted:
        return
    shown = _counts(ops)
    for batches in (min(int(count), shown),) if count is not None else range(1, shown + 1):
        left = _left_behind(list(_running(ops, batches)))
        if isinstance(left, pg.Reduce | pg.GatherGradients):
            what = "reduction" if isinstance(left, pg.Reduce) else "gather"
            log.once(item, "PL338", f"this {what} comes after the gradients of `{group.name}` have left for the host, where "
                     "its optimizer reads them: it does not reach the update", left.origin.library or left.origin.span,
                     _AGAIN)  # fmt: skip
        elif left is not None:
            log.once(item, "PL338", f"the optimizer of `{group.name}` lies on the host, and this step does not say how "
                     "all gradients get there before the update", span, _OFFLOAD)  # fmt: skip
        if left is not None:
            return


def check_hosted(group: WeightsGroup, layouts: Mapping[str, pg.Layout], log: Log) -> None:
    """Gradients on the host are for an optimizer that is there too."""
    if layouts["gradients"].host is not None and layouts["optimizer"].host is None and not group.frozen:
        log.add("PL339", f"gradients of `{group.name}` on the host with its optimizer on the device are not modelled",
                layouts["gradients"].host.span, "offload the optimizer too, or keep the gradients on the device")  # fmt: skip


def _left_behind(ops: Sequence[Op]) -> Op | None:
    """What the device still did to the gradients of some update after they left for the host, or before they ever
    did; an update itself where nothing left."""
    for at, op in enumerate(ops):
        if not isinstance(op, pg.Update):
            continue
        sent = max((i for i, one in enumerate(ops[:at]) if isinstance(one, pg.OffloadGradients)), default=None)
        if sent is None:
            return op
        for one in ops[sent:at]:
            if isinstance(one, pg.GatherGradients):
                return one
            if isinstance(one, pg.Accumulate | pg.Reduce) and one.buffer == op.buffer:
                return one
    return None


def _counts(ops: Sequence[Op]) -> int:
    """So many micro-batches show every order in which operations come."""
    return max((3, *(op.index + 1 for op in ops if isinstance(op, pg.Loop) and op.index is not None)))


def _running(ops: Sequence[Op], count: int) -> Iterator[Op]:
    """The operations in the order in which they run with so many micro-batches."""
    for op in ops:
        yield from op.body * len(turns(op, count)) if isinstance(op, pg.Loop) else (op,)
