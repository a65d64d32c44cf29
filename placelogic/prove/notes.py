"""What a reader should know although nothing is wrong: notes never change a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from placelogic.program.expr import show
from placelogic.program.program import GatherParams, Loop, Origin, Program, Reduce, Step, flat
from placelogic.prove.formula import at_least, both
from placelogic.prove.kinds import stack
from placelogic.prove.sizes import Sizes
from placelogic.prove.solver import Solver
from placelogic.prove.values import Trace
from placelogic.report.diagnostic import Finding


def notes(
    program: Program, sizes: Sizes, solver: Solver, traces: Mapping[str, Trace], stated: int, right: bool
) -> Iterator[Finding]:
    """`right`: the spec is proved; only then is it worth saying what it costs."""
    yield from _unexercised(program, sizes, solver)
    if stated == 0:
        yield Finding(
            "NT02",
            "note",
            "nothing in this spec states what an implementation does: a derived step is right by construction",
            program.span,
            help=f"state what your code does with `sync`, `scale`, `step`, `init` or `clip {{ ... }}`{_in_blocks(program)}",
        )
    if right:
        yield from _every_microbatch(program, sizes)
    yield from _partly_stated(program)
    yield from _idle(program)
    yield from _dead(program, traces, sizes)


def _in_blocks(program: Program) -> str:
    has = program.layers is not None and bool(program.layers.blocks)
    return ", and at the boundaries of a block with `forward` and `backward`" if has else ""


def _unexercised(program: Program, sizes: Sizes, solver: Solver) -> Iterator[Finding]:
    """NT01: an axis that no allowed mesh makes larger than 1 proves nothing about itself."""
    several = [(atom, at_least(sizes.size(atom.name), 2)) for atom in program.mesh.atoms]
    if solver.check(both(*(condition for _, condition in several))).status == "sat":
        return  # one mesh exercises all
    for atom, condition in several:
        if solver.check(condition).status == "unsat":
            message = f"{atom.name} is 1 in every allowed mesh: this verdict says nothing about {atom.name}"
            yield Finding("NT01", "note", message, atom.span, axes=(atom.name,))


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
        label = program.mesh.label(axes)
        times = show(count)
        yield Finding(
            "NT04",
            "note",
            f"{_few(names)} {'is' if len(names) == 1 else 'are'} reduced over {label} in every micro-batch: "
            f"{times} times the traffic of one reduction after the loop",
            span,
            weights=", ".join(names),
            axes=axes,
            help="right, only costly: "
            + (
                "it is the price of keeping gradients cut between micro-batches"
                if cut
                else f"gradients are kept whole along {label}, so they could be reduced once, after the loop"
            ),
        )


def _dead(program: Program, traces: Mapping[str, Trace], sizes: Sizes) -> Iterator[Finding]:
    """NT03: gradient operations nobody reads. NT05: optimizer state where no parameter is updated."""
    for step in program.steps:
        trace = traces[step.weights]
        last_read = max((read.order for read in trace.reads), default=0)
        if step.stated and trace.last_gradient_op is not None and trace.last_gradient_op[0] > last_read:
            message = f"nothing reads the gradient of `{step.weights}` after this: the operation is dead"
            yield Finding("NT03", "note", message, trace.last_gradient_op[1].span, weights=step.weights)
        yield from _dead_optimizer(program, step, sizes)
    yield from _idle_skips(traces)


def _idle_skips(traces: Mapping[str, Trace]) -> Iterator[Finding]:
    """NT03: a skip that comes when it decides nothing any more, or sees nothing yet, in every step it stands in."""
    found: dict[Origin, list[tuple[str, str]]] = {}
    for name, trace in traces.items():
        last = max((read.order for read in trace.reads if read.what == "update"), default=0)
        for read in trace.reads:
            if read.what == "skip":
                why = "every update comes before it" if read.order > last else ""
                why = why or ("" if any(read.terms.values()) else "no gradient is accumulated before it")
                found.setdefault(read.origin, []).append((name, why))
    for origin, seen in found.items():
        if all(why for _, why in seen):
            names = list(dict.fromkeys(name for name, _ in seen))
            message = f"this skip decides nothing about {_few(names)}: {seen[0][1]}"
            yield Finding("NT03", "note", message, origin.span, weights=", ".join(names))


def _dead_optimizer(program: Program, step: Step, sizes: Sizes) -> Iterator[Finding]:
    weights = program.group(step.weights)
    for axis in program.mesh.axes:
        if stack(weights.optimizer_state, axis) is not None or sizes.size(axis).constant == 1:
            continue
        cut = weights.params.cut(axis)
        if cut is not None:
            message = (
                f"optimizer state of `{weights.name}` is kept along {axis} also where its parameters are not: "
                "it is never used there"
            )
            yield Finding("NT05", "note", message, cut.origin.span, weights=weights.name, axes=(axis,))


def _partly_stated(program: Program) -> Iterator[Finding]:
    """NT08: where some steps are stated, which are not."""
    derived = [step.weights for step in program.steps if not step.stated and not step.lines]
    if derived and any(step.stated for step in program.steps):
        message = f"the step of {_few(derived)} is derived: nothing states what the code does there"
        yield Finding("NT08", "note", message, program.group(derived[0]).span, weights=", ".join(derived))


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
            label = program.mesh.label(op.axes)
            message = (
                f"this gather moves nothing: along {label} the parameters of {_few(names[op])} are either updated "
                "by everyone, or kept as shards"
            )
            yield Finding("NT07", "note", message, op.origin.span, weights=", ".join(names[op]), axes=op.axes)


def _few(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:3])
    return shown + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def denominators(program: Program) -> Iterator[str]:
    """By what the loss is divided, where it is not the tokens of a device's share of the work."""
    for loss in program.work.losses:
        if loss.mean and (loss.pieces or loss.whole):
            of = f"pieces over {', '.join(loss.pieces)}" if loss.pieces else ""
            of += " and of " if of and loss.whole else ""
            of += f"all that {', '.join(loss.whole)} splits" if loss.whole else ""
            named = f"loss {loss.name}" if loss.name else "the loss"
            over = f", counted over {', '.join(loss.over)}" if loss.over else ""
            yield f"{named} is computed of {of}, and divided by the tokens of these{over}"
