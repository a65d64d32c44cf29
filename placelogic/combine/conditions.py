"""What a right combination rests on: every condition is one that the calculus refutes when it is broken.

A condition that nothing breaks is none, and is not listed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from placelogic.combine.compose import Composition
from placelogic.elaborate.tree import to_ast
from placelogic.program.program import GatherParams, Program, Reduce, Step, flat
from placelogic.report.diagnostic import SpecReport
from placelogic.syntax import ast
from placelogic.syntax.unparse import statement_text

Check = Callable[[str], SpecReport]


class Condition(Struct, frozen=True):
    """`broken`: statements that break it, after which the spec is refuted with `code` on the mesh `at`;
    `fault` is that finding in words."""

    text: str
    broken: str
    code: str
    at: str
    fault: str


class _Trial(Struct, frozen=True):
    """A condition about one axis (or about none); those with the same text are told as one. `instead_of`: the
    statement that the breaking one replaces."""

    text: str
    broken: str
    axis: str = ""
    instead_of: str = ""

    def applied(self, composition: Composition) -> str:
        """The spec with the condition broken."""
        if self.instead_of:
            return composition.text.replace(f"{self.instead_of}\n", f"{self.broken}\n", 1)
        return composition.extended(self.broken)


def conditions(composition: Composition, program: Program, check: Check) -> tuple[Condition, ...]:
    """The conditions of a combination that is proved; `program` is its complete program."""
    held: dict[tuple[str, str], tuple[list[str], Condition]] = {}
    for trial in _trials(composition, program):
        report = check(trial.applied(composition))
        found = next((f for f in report.findings if f.severity == "error" and not f.consequence), None)
        if report.verdict != "refuted" or found is None:
            continue
        sizes = {} if found.counterexample is None else found.counterexample.mesh | found.counterexample.quantities
        at = ", ".join(f"{name} = {size}" for name, size in sizes.items() if size > 1 and name.isidentifier())
        condition = Condition(trial.text, trial.broken, found.code, at, found.message)
        axes, _ = held.setdefault((trial.text, found.code), ([], condition))
        axes.append(trial.axis)
    return tuple(
        replace(condition, text=condition.text.replace("AXIS", _list(axes))) for axes, condition in held.values()
    )


def _trials(composition: Composition, program: Program) -> Iterator[_Trial]:
    yield from _reductions(program)
    yield from _copies(program)
    yield from _published(program)
    axes = program.mesh.axes
    split = program.work.split_axes
    for axis in axes:
        if axis in split:
            yield _Trial("each device along AXIS works on a share of its own", f"feed same over {axis}", axis)
        else:
            yield _Trial("devices along AXIS are fed the same samples", f"feed different over {axis}", axis)
    for axis in axes:
        yield _Trial("copies of parameters start equal along AXIS", f"init * different over {axis}", axis)
    for axis in axes:
        if axis not in split:
            text = "random numbers (dropout) agree along AXIS where values must be copies"
            yield _Trial(text, f"random * over {axis} different", axis)
    if program.clip is not None:
        text = (
            "clipping counts every element once: squares are summed over the axes that cut gradients, and over no other"
        )
        yield _Trial(text, "clip global_norm { * over none }", instead_of="clip global_norm")
    text = (
        "all devices and micro-batches have as many loss tokens, or the loss is averaged over all (`loss mean global`)"
    )
    yield _Trial(text, "tokens uneven")
    if all(group.optimizer.name == "adamw" for group in program.weights):
        text = "the optimizer updates element by element (Adam, SGD, Lion; Muon and Shampoo need whole matrices)"
        yield _Trial(text, "optimizer muon for matrix")


def _reductions(program: Program) -> Iterator[_Trial]:
    """Every derived reduction, left out; every division that routing needs, left out."""
    found: dict[tuple[str, str, bool], list[str]] = {}
    for step in program.steps:
        outer = {id(op) for op in step.ops}
        for op in flat(step.ops):
            if isinstance(op, Reduce) and not op.origin.stated:
                for axis in op.axes:
                    found.setdefault((axis, op.op, id(op) not in outer), []).append(step.weights)
    for (axis, how, inside), names in found.items():
        done = "averaged" if how == "mean" else "summed"
        when = ", in every micro-batch, before they are accumulated" if inside else ""
        text = f"gradients of {_names(names)} are {done} over {axis}{when}"
        yield _Trial(text, f"sync {', '.join(names)} over {axis} by none")
    for group in program.weights:
        for axis in group.routed:
            text = f"the gradient of `{group.name}` is divided by {axis}: routing alone sums"
            yield _Trial(text, f"sync {group.name} over {axis} by sum")


def _copies(program: Program) -> Iterator[_Trial]:
    """Where everyone holds the whole gradient, nobody sums it."""
    for axis in program.mesh.axes:
        names = [
            group.name
            for group in program.weights
            if (fact := program.facts[group.name][axis]).kind == "replicated" and not fact.routed
            if group.uses is None or group.uses.axis != axis
        ]
        if names:
            text = f"gradients of {_names(names)} are not summed over {axis}: they are copies there"
            yield _Trial(text, f"sync {', '.join(names)} over {axis} by sum")


def _published(program: Program) -> Iterator[_Trial]:
    """Every step without its gather of new parameters."""
    found: dict[tuple[str, ...], list[str]] = {}
    for step in program.steps:
        axes = _gathered(step)
        if axes:
            found.setdefault(axes, []).append(step.weights)
    (spec,) = [s for s in to_ast(replace(program, name="combination")).statements if isinstance(s, ast.SpecDef)]
    for axes, names in found.items():
        steps = [s for s in spec.body if isinstance(s, ast.StepStmt) and set(s.target.names) & set(names)]
        broken = "\n".join(statement_text(_ungathered(step, names)) for step in steps)
        text = f"after the update the new parameters of {_names(names)} are gathered over {_list(list(axes))}"
        yield _Trial(text, broken)


def _gathered(step: Step) -> tuple[str, ...]:
    return tuple(axis for op in step.ops if isinstance(op, GatherParams) for axis in op.axes)


def _ungathered(step: ast.StepStmt, names: list[str]) -> ast.StepStmt:
    target = replace(step.target, names=tuple(name for name in step.target.names if name in names))
    body = tuple(op for op in step.body if not isinstance(op, GatherParams))
    return replace(step, target=target, body=body)


def _names(names: Sequence[str]) -> str:
    return _list([f"`{name}`" for name in names])


def _list(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
