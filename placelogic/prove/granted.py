"""What a verdict takes for granted beside the assumptions of the spec, as it is told and as the solver is given it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from placelogic.program.program import Program
from placelogic.prove.divide import division_assumptions
from placelogic.prove.formula import TRUE
from placelogic.prove.obligations import Obligation
from placelogic.prove.queries import Premises
from placelogic.prove.sizes import Sizes
from placelogic.prove.solver import Limits, Named, Solver
from placelogic.prove.state import gathers

ADDITIVE = "each loss term is a sum over work items"


class Solvers:
    """`plain`: of what the spec allows. `divided`: of those sizes that divide what they cut, which a verdict takes for
    granted; asked only where it makes a difference. `granted`: it was asked."""

    def __init__(self, plain: Solver, divided: Solver) -> None:
        self.plain, self.divided, self.granted = plain, divided, False

    def of(self, one: Obligation) -> Solver:
        return self.plain if one.code == "FW07" else self.divided


def granting(sizes: Sizes, named: tuple[Named, ...], granted: tuple[Named, ...], limits: Limits) -> Solver | None:
    """A solver that knows what is taken for granted; None where nothing is."""
    if not granted:
        return None
    facts = (fact for fact in sizes.background if fact != TRUE)
    return Solver(facts, (*named, *granted), limits)


def with_facts(premises: Premises, sizes: Sizes) -> Premises:
    """The premises with what has become known of remainders since."""
    return Premises(tuple(sizes.background), premises.assumptions)


def assumptions(program: Program, named: Iterable[Named], sizes: Sizes) -> tuple[str, ...]:
    """What a report prints as assumed."""
    printed = [*(assumption.name for assumption in named), *division_assumptions(program, sizes)]
    printed.append("tokens even" if program.work.tokens_even else "tokens uneven")
    return tuple(dict.fromkeys([*printed, *_denominators(program), *_gathered(program), *_flat(program), ADDITIVE]))


def _flat(program: Program) -> Iterator[str]:
    """What a flat buffer has in it, where one of all weights would have other members for one state than for another."""
    for axis in program.mesh.axes:
        members: list[set[str]] = [set(), set(), set()]
        for weights in program.weights:
            for names, layout in zip(members, (weights.params, weights.optimizer_state, weights.gradients)):
                cut = layout.cut(axis)
                if cut is not None and cut.dim == "flat" and cut.buffer is None:
                    names.add(weights.name)
        if len({frozenset(names) for names in members if names}) > 1:
            yield f"every weight group has a flat buffer of its own over {axis}"


def _gathered(program: Program) -> Iterator[str]:
    """Optimizers of which a step gathers the gradients for an update that needs them whole."""
    for step in program.steps:
        weights = program.group(step.weights)
        if over := gathers(weights, step):
            yield f"{weights.optimizer.name} gathers what else it reads of `{weights.name}` over {', '.join(over)}, too"


def _denominators(program: Program) -> Iterator[str]:
    """By what the loss is divided, where it is not the tokens of a device's share of the work."""
    for loss in program.work.losses:
        if loss.mean and (loss.pieces or loss.whole):
            of = f"pieces over {', '.join(loss.pieces)}" if loss.pieces else ""
            of += " and of " if of and loss.whole else ""
            of += f"all that {', '.join(loss.whole)} splits" if loss.whole else ""
            named = f"loss {loss.name}" if loss.name else "the loss"
            over = f", counted over {', '.join(loss.over)}" if loss.over else ""
            yield f"{named} is computed of {of}, and divided by the tokens of these{over}"
