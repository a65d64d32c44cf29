"""Arithmetic that must make sense at every allowed size: divisors, and the roots of broadcasts."""

from __future__ import annotations

from collections.abc import Iterator

from placelogic.problem import Problem, SpecError
from placelogic.program.program import BroadcastParams, Origin, Program, flat
from placelogic.prove.confirm import complete
from placelogic.prove.formula import test
from placelogic.prove.queries import Question
from placelogic.prove.ratio import ONE, const
from placelogic.prove.sizes import Divisor, Sizes
from placelogic.prove.solver import Answer, Solver
from placelogic.prove.start import ambiguous_streams
from placelogic.prove.values import members


def check_arithmetic(program: Program, sizes: Sizes, solver: Solver) -> tuple[tuple[Question, ...], str | None]:
    """What was asked, and what the solver could not tell, if anything.

    Raises SpecError where a divisor can be zero, or a broadcast has no root, at an allowed size."""
    asked: list[Question] = []
    problems: list[Problem] = []
    doubtful = None
    for divisor in sizes.divisors:
        goal = test("=", divisor.value)
        answer = solver.check(goal, model=True)
        asked.append(Question("arithmetic", f"{divisor.text} is not zero", goal, answer.status))
        if answer.status == "sat":
            problems.append(_zero(divisor, sizes, answer))
        elif answer.status == "unknown":
            doubtful = f"whether `{divisor.text}` can be zero, and something is divided by it: {answer.reason}"
    for question, problem in _roots(program, sizes, solver):
        asked.append(question)
        if problem is not None:
            problems.append(problem)
    problems += _sizes_of_weights(program, sizes, solver)
    problems += ambiguous_streams(program)
    if problems:
        raise SpecError(*problems)
    return tuple(asked), doubtful


def _zero(divisor: Divisor, sizes: Sizes, answer: Answer) -> Problem:
    model = complete(sizes, answer.model or {})
    where = ", ".join(f"{name} = {value}" for name, value in model.items() if "." not in name)
    return Problem(
        "PL401",
        f"`{divisor.text}` can be zero (at {where}), and something is divided by it",
        divisor.span,
        "rule that out with `assume`, or divide by something else",
    )


def _sizes_of_weights(program: Program, sizes: Sizes, solver: Solver) -> Iterator[Problem]:
    """Weights have elements at every allowed size. What only adds and multiplies sizes needs no question."""
    for weights in program.weights:
        if weights.size is None:
            continue
        size = sizes.ratio(weights.size)
        if size.num and all(coefficient > 0 for poly in (size.num, size.den) for _, coefficient in poly):
            continue
        answer = solver.check(test("<=", size), model=True)
        if answer.status == "sat":
            model = complete(sizes, answer.model or {})
            used = set(size.variables)
            shown = ", ".join(f"{name} = {value}" for name, value in model.items() if name in used)
            where = f" at {shown}" if shown else ""
            yield Problem(
                "PL400",
                f"the size of `{weights.name}` is not positive{where}",
                weights.size.span if weights.size.span.line else weights.span,
                "rule that out with `assume`, or correct the size",
            )


def _roots(program: Program, sizes: Sizes, solver: Solver) -> Iterator[tuple[Question, Problem | None]]:
    """Whether the device that broadcasts exists, for every broadcast."""
    broadcasts: list[tuple[str, tuple[str, ...], int, Origin]] = []
    for weights in program.weights:
        broadcasts += [(weights.name, op.axes, op.root, op.origin) for op in weights.init if op.kind == "broadcast"]
    for step in program.steps:
        broadcasts += [
            (step.weights, op.axes, op.root, op.origin) for op in flat(step.ops) if isinstance(op, BroadcastParams)
        ]
    seen = set()
    for name, axes, root, origin in broadcasts:
        size = ONE
        for axis in axes:
            size = size * members(program.group(name), sizes, axis)
        if (origin.span, size) in seen:
            continue
        seen.add((origin.span, size))
        label = program.mesh.label(axes)
        goal = test("<=", size, const(root))
        status = solver.check(goal).status
        yield (
            Question("arithmetic", f"device {root} of {label} exists", goal, status),
            None
            if status == "unsat"
            else Problem(
                "PL404",
                f"device {root} of {label} does not exist at every allowed size",
                origin.span,
                f"broadcast from 0, or `assume {label} > {root}`",
            ),
        )
