"""`--script`: a counterexample as a short program of its own, that needs PyTorch and two CPU processes.

It is straight-line code: the step of the weights that are wrong, operation by operation, beside one device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from placelogic.problem import Problem, SpecError
from placelogic.program.expr import show
from placelogic.program.facts import Fact
from placelogic.program.program import (
    Accumulate,
    BroadcastParams,
    GatherParams,
    Loop,
    Op,
    Program,
    Reduce,
    Scale,
    Update,
    Weights,
    flat,
)
from placelogic.report.diagnostic import Finding
from placelogic.simulate.mesh import Grid
from placelogic.simulate.work import Work

ELEMENTS = 4
TOKENS = 3
SHOWN = ("GI01", "GI02", "GI03", "GI05", "SC01", "SC04", "SC05")


class NotShown(Exception):
    """This counterexample does not fit into a short program; the message says why."""


def script(program: Program, finding: Finding, source: str) -> str:
    """The program's text. `source`: file and spec. Raises SpecError PL062 with the reason where there is none."""
    try:
        return "\n".join(_Script(program, finding, source).lines()) + "\n"
    except NotShown as reason:
        message = f"this counterexample is not shown by a short script: {reason}"
        hint = "`placelogic replay --counterexample` runs it"
        raise SpecError(Problem("PL062", message, finding.span, hint)) from None


@dataclass
class _Script:
    program: Program
    finding: Finding
    source: str

    def lines(self) -> Iterator[str]:
        example = self.finding.counterexample
        if example is None or self.finding.code not in SHOWN:
            raise NotShown(f"{self.finding.code} is about more than one step of one weight group")
        large = [axis for axis, size in example.mesh.items() if size > 1]
        if len(large) > 1 or any(size > 2 for size in example.mesh.values()):
            raise NotShown("it needs more than two devices")
        self.axis = large[0] if large else None
        self.group = _group(self.program, (self.finding.weights or "").split(", ")[0])
        known = dict(example.quantities)
        self.work = Work(self.program, Grid(self.program.mesh.axes, example.mesh), known, None, TOKENS)
        self.count = 2 if self.axis else 1
        self.fact = self.program.facts[self.group.name][self.axis] if self.axis else None
        self._check()
        yield from self._head()
        yield from self._model()
        yield from self._device()
        yield from _TAIL.strip("\n").split("\n")

    # --- parts of the text -------------------------------------------------------------------------

    def _head(self) -> Iterator[str]:
        where = f"{self.axis} = 2" if self.axis else f"{self.work.microbatches} micro-batches"
        yield f'"""{self.finding.code}, {where}: {self.finding.message.replace(chr(34), chr(39))}.'
        yield ""
        yield f"From {self.source}, by placelogic. Needs PyTorch; run it with Python."
        yield '"""'
        yield ""
        yield "import tempfile"
        yield ""
        yield "import torch"
        yield "import torch.distributed as dist"
        yield "import torch.multiprocessing as mp"
        yield ""
        name = f"devices along {self.axis}" if self.axis else "devices"
        yield f"DEVICES, MICROBATCHES = {self.count}, {self.work.microbatches}  # {name}"
        yield f"TOKENS = {TOKENS}  # of one work item"
        yield "torch.set_default_dtype(torch.float64)"
        yield ""
        yield ""

    def _model(self) -> Iterator[str]:
        yield "def gradient(theta, items):"
        yield "    # of the summed loss of these work items (any function would do)"
        yield "    theta = theta.clone().requires_grad_()"
        yield "    for share, turn in items:"
        yield "        drawn = torch.Generator().manual_seed(1 + share + 10 * turn)"
        yield f"        x = torch.randn(TOKENS, {ELEMENTS}, generator=drawn)"
        yield "        (torch.tanh(x @ theta) + (x @ theta) ** 2).sum().backward()"
        yield "    return theta.grad"
        yield ""
        yield ""
        yield "def single(theta):"
        shares = "range(DEVICES)" if self._shared else "[0]"
        yield f"    items = [(share, turn) for share in {shares} for turn in range(MICROBATCHES)]"
        yield f"    return {_times(self.work.single_weight_exact(0))}gradient(theta, items)"
        yield ""
        yield ""

    @property
    def _shared(self) -> bool:
        return self.fact is not None and self.fact.kind == "share"

    def _device(self) -> Iterator[str]:
        cut = self._cut(self.group.gradients)
        yield "def step(rank, theta):"
        yield f'    """What device `rank` does with `{self.group.name}`; returns what it updates with, and theta."""'
        yield (
            f"    own = slice(rank * {ELEMENTS // 2}, rank * {ELEMENTS // 2} + {ELEMENTS // 2})"
            if self.count == 2
            else (f"    own = slice(0, {ELEMENTS})")
        )
        if self.axis and self.fact is not None:
            yield f"    # along {self.axis}: {self.fact.because}"
        yield f"    total = torch.zeros({ELEMENTS})"
        self.reduced = False
        step = self.program.step(self.group.name)
        assert step is not None
        for op in step.ops:
            yield from self._op(op, "    ", cut)
        yield "    return fed, theta"
        yield ""
        yield ""

    def _op(self, op: Op, indent: str, cut: bool, fresh: bool = False) -> Iterator[str]:
        on = "fresh" if fresh else "total"
        match op:
            case Loop(subset, index, body):
                turns = {
                    "each": "range(MICROBATCHES)",
                    "but_last": "range(MICROBATCHES - 1)",
                    "but_first": "range(1, MICROBATCHES)",
                    "first": "[0]",
                    "last": "[MICROBATCHES - 1]",
                    "index": f"range({(index or 1) - 1}, min({index}, MICROBATCHES))",
                }[subset]
                yield f"{indent}for turn in {turns}:"
                share = "rank" if self._shared else "0"
                weight = Fraction(1) / self._divisor()
                yield f"{indent}    fresh = {_times(weight)}gradient(theta, [({share}, turn)])"
                if self.fact is not None and self.fact.kind == "own":
                    yield f"{indent}    mask = torch.zeros({ELEMENTS})"
                    yield f"{indent}    mask[own] = 1"
                    yield f"{indent}    fresh = fresh * mask  # this device has these elements only"
                for position, inner in enumerate(body):
                    later = any(isinstance(o, Accumulate) for o in body[position + 1 :])
                    yield from self._op(inner, indent + "    ", cut, later)
            case Accumulate(_, replace, _):
                yield f"{indent}total = fresh" if replace else f"{indent}total = total + fresh"
            case Reduce(_, axes, kind, _, _):
                if self.axis in axes:
                    yield f"{indent}dist.all_reduce({on})  # reduce over {self.axis} by {kind}"
                    if kind == "mean":
                        yield f"{indent}{on} /= DEVICES"
            case Scale(_, factor, _):
                value = self.work.value(factor)
                yield f"{indent}{on} = {_times(value)}{on}  # scale by {show(factor)}"
            case Update():
                owned = self._cut(self.group.optimizer_state) or cut
                where = "own" if owned or self._cut(self.group.params) else "slice(None)"
                yield f"{indent}fed = total.clone(), {where}"
                yield f"{indent}theta = theta.clone()"
                yield f"{indent}theta[{where}] -= 0.1 * total[{where}]  # update"
            case GatherParams(axes, _):
                if self.axis in axes:
                    yield from self._gathered(indent, f"  # gather params over {self.axis}")
            case BroadcastParams(axes, root, _):
                if self.axis in axes:
                    yield f"{indent}dist.broadcast(theta, {root})  # broadcast params over {self.axis}"
            case _:
                raise NotShown("its step has operations that need more room")
        if isinstance(op, Update) and self._cut(self.group.params):
            yield from self._gathered(indent, "  # params are cut: put together for the next step")

    def _gathered(self, indent: str, comment: str) -> Iterator[str]:
        yield f"{indent}pieces = [torch.empty({ELEMENTS // 2}) for _ in range(DEVICES)]"
        yield f"{indent}dist.all_gather(pieces, theta[own].clone()){comment}"
        yield f"{indent}theta = torch.cat(pieces)"

    # --- what fits -----------------------------------------------------------------------------------

    def _cut(self, layout) -> bool:  # type: ignore[no-untyped-def]
        return self.axis is not None and layout.cut(self.axis) is not None

    def _divisor(self) -> Fraction:
        loss = self.program.work.losses[0]
        if not loss.mean:
            return Fraction(1)
        turns = self.work.microbatches if loss.microbatches else 1
        return Fraction(TOKENS * turns * self.work.grid.extent(loss.over))

    def _check(self) -> None:
        group, work = self.group, self.program.work
        if self.program.clip is not None and any(
            type(o).__name__ == "Clip" for s in self.program.steps for o in flat(s.ops)
        ):
            raise NotShown("the gradients are clipped, which concerns all weights")
        if len(work.losses) > 1 or not work.tokens_even or work.feeds:
            raise NotShown("it depends on several losses, on token counts or on what the loader does")
        if group.init or group.random or group.master or group.frozen:
            raise NotShown("it starts from other values, or keeps a master copy")
        if any(layout.host or layout.materialized for layout in _layouts(group)):
            raise NotShown("states are offloaded or not kept")
        fact: Fact | None = self.fact
        if fact is not None and (fact.kind == "absent" or fact.routed):
            raise NotShown("tokens travel to their experts" if fact.routed else "the parameters are not there")
        step = self.program.step(group.name)
        if step is None or any(getattr(op, "buffer", None) for op in flat(step.ops)):
            raise NotShown("its step has named buffers")


def _layouts(group: Weights):  # type: ignore[no-untyped-def]
    return group.params, group.optimizer_state, group.gradients


def _group(program: Program, name: str) -> Weights:
    try:
        return program.group(name)
    except StopIteration:
        raise NotShown("it names no weights") from None


def _times(factor: Fraction) -> str:
    if factor == 1:
        return ""
    return f"{factor.numerator} / {factor.denominator} * " if factor.denominator != 1 else f"{factor} * "


_TAIL = """
def worker(rank, meet):
    dist.init_process_group("gloo", init_method="file://" + meet, rank=rank, world_size=DEVICES)
    theta = right = torch.tensor([0.5, -0.3, 0.2, 0.7])
    wrong = False
    for number in (1, 2):
        expected = single(right)
        (fed, where), theta = step(rank, theta)
        right = right - 0.1 * expected
        wrong |= bool((fed[where] - expected[where]).abs().max() > 1e-9 or (theta - right).abs().max() > 1e-9)
        for name, here, there in (("updates with", fed[where], expected[where]), ("then holds", theta, right)):
            print(f"step {number}, device {rank} {name} {here.tolist()}, one device {there.tolist()}", flush=True)
    print(f"device {rank}: {'DIFFERENT from' if wrong else 'the same as'} one device", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, (folder + "/meet",), nprocs=DEVICES)
"""
