"""Whether any allowed mesh reaches given sizes."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from placelogic.program.expr import Compare, Name, Num
from placelogic.program.program import Assumption, Program
from placelogic.prove.divide import division_facts
from placelogic.prove.formula import TRUE
from placelogic.prove.prover import Options
from placelogic.prove.sizes import sizes_of
from placelogic.prove.solver import Limits, Solver, Status


def lacking(program: Program, minimum: Mapping[str, int]) -> tuple[str, ...]:
    """The names that are no sizes of the program."""
    known, _ = sizes_of(program)
    return tuple(name for name in minimum if name not in known.values)


def reachable(program: Program, minimum: Mapping[str, int], options: Options = Options()) -> Status:
    """sat where some allowed mesh has all these sizes at least; names the program lacks ask for nothing."""
    known, _ = sizes_of(program)
    wanted = tuple(
        Assumption(Compare(">=", Name(name), Num(size)), f"{name} >= {size}", program.span)
        for name, size in minimum.items()
        if name in known.values
    )
    if not wanted:
        return "sat"
    sizes, named = sizes_of(replace(program, assumptions=(*program.assumptions, *wanted)))
    named = (*named, *division_facts(program, sizes, frozenset()))
    facts = tuple(fact for fact in sizes.background if fact != TRUE)
    return Solver(facts, named, Limits(options.rlimit, options.timeout_s)).check().status
