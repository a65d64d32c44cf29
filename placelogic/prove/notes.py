"""What a reader should know although nothing is wrong: notes never change a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from placelogic.program.expr import show
from placelogic.program.program import Accumulate, Axes, GatherParams, Loop, Origin, Program, Reduce, Step, flat
from placelogic.prove.formula import at_least, both
from placelogic.prove.kinds import stack
from placelogic.prove.sizes import Sizes
from placelogic.prove.solver import Solver
from placelogic.prove.values import Trace
from placelogic.report.diagnostic import Finding, finding
from placelogic.report.sentences import Sentence
from placelogic.source import Span


def notes(
    program: Program, sizes: Sizes, solver: Solver, traces: Mapping[str, Trace], stated: int, right: bool
) -> Iterator[Finding]:
    """`right`: the spec is proved; only then is it worth saying what it costs."""
    yield from _unexercised(program, sizes, solver)
    yield from _one_microbatch(program, sizes, solver)
    yield from _frozen(program, sizes)
    for one in program.unheeded:
        yield _note("NT12", one.why, one.span, [one.target])
    yield from _alike(program, sizes)
    if stated == 0:
        blocks = program.layers is not None and bool(program.layers.blocks)
        yield _note("NT02", "blocks" if blocks else "no blocks", program.span)
    if right:
        yield from _every_microbatch(program, sizes)
    yield from _partly_stated(program)
    yield from _judged_against(program)
    yield from _idle(program)
    yield from _dead(program, traces, sizes)


def _note(code: str, variant: str, span: Span, names: Sequence[str] = (), axes: Axes = (), **words: str) -> Finding:
    """`names`: the weights it is about, of which the first few are told."""
    weights = ", ".join(names) or None
    return finding(Sentence(code, variant, weights, axes, {"weights": _few(names), **words}), span, "note")


def _unexercised(program: Program, sizes: Sizes, solver: Solver) -> Iterator[Finding]:
    """NT01: an axis that no allowed mesh makes larger than 1 proves nothing about itself."""
    several = [(atom, at_least(sizes.size(atom.name), 2)) for atom in program.mesh.atoms]
    if solver.check(both(*(condition for _, condition in several))).status == "sat":
        return  # one mesh exercises all
    for atom, condition in several:
        if solver.check(condition).status == "unsat":
            yield _note("NT01", "axis", atom.span, axes=(atom.name,))


def _one_microbatch(program: Program, sizes: Sizes, solver: Solver) -> Iterator[Finding]:
    """NT01: a step that replaces the gradient in every micro-batch is right only because there is no second one."""
    found: dict[Origin, list[str]] = {}
    for step in program.steps:
        for loop in step.ops:
            if isinstance(loop, Loop) and loop.subset not in ("first", "last", "index"):
                for op in loop.body:
                    if isinstance(op, Accumulate) and op.replace and op.origin.stated:
                        found.setdefault(op.origin, []).append(step.weights)
    if found and solver.check(at_least(sizes.microbatches, 2)).status == "unsat":
        for origin, names in found.items():
            yield _note("NT01", "microbatches", origin.span, names)


def _frozen(program: Program, sizes: Sizes) -> Iterator[Finding]:
    """NT11: one group is trained and the rest frozen, unless the one is known to be the larger part."""
    trained = [weights for weights in program.weights if not weights.frozen]
    frozen = [weights for weights in program.weights if weights.frozen]
    if len(trained) != 1 or not frozen:
        return
    (one,) = trained
    counts = [None if w.size is None else sizes.ratio(w.size).constant for w in (one, *frozen)]
    if None in counts or counts[0] < sum(counts[1:]):
        yield _note("NT11", "frozen", one.span, [one.name])


def _alike(program: Program, sizes: Sizes) -> Iterator[Finding]:
    """NT10: an axis whose devices all compute the same proves little: a `batch over` may have been forgotten."""
    for atom in program.mesh.atoms:
        axis = atom.name
        alone = sizes.size(axis).constant == 1
        staged = program.stages is not None and program.stages.axis == axis
        used = any(w.uses is not None and w.uses.axis == axis or axis in w.routed for w in program.weights)
        split = axis in program.work.split_axes or program.work.feed(axis) is not None
        if alone or staged or used or split:
            continue
        if all(fact[axis].kind == "replicated" for fact in program.facts.values()):
            yield _note("NT10", "alike", atom.span, axes=(axis,))


def _every_microbatch(program: Program, sizes: Sizes) -> Iterator[Finding]:
    """NT04: what reducing in every micro-batch costs."""
    count = program.work.microbatches
    if sizes.ratio(count).constant == 1:
        return  # not costly then
    found: dict[tuple, list[str]] = {}
    for step in program.steps:
        for loop in step.ops:
            if isinstance(loop, Loop) and loop.subset not in ("first", "last", "index"):
                for op in flat(loop.body):
                    if isinstance(op, Reduce):
                        gradients = program.group(step.weights).gradients
                        cut = any(gradients.cut(axis) is not None for axis in op.axes)
                        key = (op.axes, op.origin.span if op.origin.stated else program.span, cut)
                        found.setdefault(key, []).append(step.weights)
    for (axes, span, cut), names in found.items():
        be = "is" if len(names) == 1 else "are"
        words = {"label": program.mesh.label(axes), "times": show(count), "be": be}
        yield _note("NT04", "cut" if cut else "whole", span, names, axes, **words)


def _dead(program: Program, traces: Mapping[str, Trace], sizes: Sizes) -> Iterator[Finding]:
    """NT03: gradient operations nobody reads. NT05: optimizer state where no parameter is updated."""
    for step in program.steps:
        trace = traces[step.weights]
        last_read = max((read.order for read in trace.reads), default=0)
        if step.stated and trace.last_gradient_op is not None and trace.last_gradient_op[0] > last_read:
            yield _note("NT03", "gradient", trace.last_gradient_op[1].span, [step.weights])
        yield from _dead_optimizer(program, step, sizes)
    yield from _idle_skips(traces)


def _idle_skips(traces: Mapping[str, Trace]) -> Iterator[Finding]:
    """NT03: a skip that comes when it decides nothing any more, or sees nothing yet, in every step it stands in."""
    found: dict[Origin, list[tuple[str, str]]] = {}
    for name, trace in traces.items():
        last = max((read.order for read in trace.reads if read.what == "update"), default=0)
        for read in trace.reads:
            if read.what == "skip":
                why = "late" if read.order > last else "" if any(read.terms.values()) else "early"
                found.setdefault(read.origin, []).append((name, why))
    for origin, seen in found.items():
        if all(why for _, why in seen):
            names = list(dict.fromkeys(name for name, _ in seen))
            yield _note("NT03", seen[0][1], origin.span, names)


def _dead_optimizer(program: Program, step: Step, sizes: Sizes) -> Iterator[Finding]:
    weights = program.group(step.weights)
    for axis in program.mesh.axes:
        if stack(weights.optimizer_state, axis) is not None or sizes.size(axis).constant == 1:
            continue
        cut = weights.params.cut(axis)
        if cut is not None:
            yield _note("NT05", "state", cut.origin.span, [weights.name], (axis,))


def _partly_stated(program: Program) -> Iterator[Finding]:
    """NT08: where some steps are stated, which are not."""
    derived = [step.weights for step in program.steps if not step.stated and not step.lines]
    if derived and any(step.stated for step in program.steps):
        yield _note("NT08", "derived", program.group(derived[0]).span, derived)


def _judged_against(program: Program) -> Iterator[Finding]:
    """NT09: a stated list of what `clip` sums depends on the step, which is derived."""
    if program.clip is None or program.clip.listed is None:
        return
    found: dict[tuple[str, Span], list[str]] = {}
    for step in program.steps:
        reductions = [op for op in flat(step.ops) if isinstance(op, Reduce)]
        if step.stated or not reductions:
            continue
        gradients = program.group(step.weights).gradients
        told = []
        for op in reductions:
            scattered = op.scattered or any(gradients.cut(axis) is not None for axis in op.axes)
            told.append(f"{'a reduce-scatter' if scattered else 'an all-reduce'} over {', '.join(op.axes)} by {op.op}")
        _, origin = program.clip.listed.get(step.weights, ((), program.clip.origin))
        found.setdefault((" and ".join(told), origin.span), []).append(step.weights)
    for (reduced, span), names in found.items():
        yield _note("NT09", "judged", span, names, reduced=reduced)


def _idle(program: Program) -> Iterator[Finding]:
    """NT07: a stated gather of parameters that moves nothing, for any of the weights it is stated for."""
    useful: dict[GatherParams, bool] = {}
    names: dict[GatherParams, list[str]] = {}
    for step in program.steps:
        weights = program.group(step.weights)
        scattered = {axis for op in flat(step.ops) if isinstance(op, Reduce) and op.scattered for axis in op.axes}
        for op in flat(step.ops):
            if isinstance(op, GatherParams) and op.origin.stated:
                moves = any(
                    weights.params.cut(axis) is None
                    and (axis in scattered or weights.optimizer_state.cut(axis) or weights.gradients.cut(axis))
                    for axis in op.axes
                )
                useful[op] = useful.get(op, False) or moves
                names.setdefault(op, []).append(step.weights)
    for op, moves in useful.items():
        if not moves:
            yield _note("NT07", "gather", op.origin.span, names[op], op.axes, label=program.mesh.label(op.axes))


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:3])
    return shown + (f" and {len(names) - 3} more" if len(names) > 3 else "")
