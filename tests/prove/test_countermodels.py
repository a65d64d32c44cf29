"""No hypothesis of the theorem, and no side condition of composition, can be dropped: a spec for each.

Every file in countermodels/ has one spec that meets all conditions and one that drops a single one.
The simulator, which knows neither conditions nor coefficients, must find the first right on small
meshes and the second wrong at the counterexample that the prover names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

import placelogic
from placelogic.elaborate import elaborate_file
from placelogic.elaborate.complete import complete
from placelogic.program.program import Program
from placelogic.prove.statements import load
from placelogic.simulate import Outcome, simulate
from placelogic.simulate.machine import Machine
from placelogic.syntax.parse import parse

FOLDER = Path(__file__).parent / "countermodels"
FILES = sorted(FOLDER.glob("*.place"))

DROPPED = {
    "without_start_parameters": "start_of_parameters",
    "without_gradient_integrity": "gradient_integrity",
    "without_a_source": "a_source_for_every_copy",
    "without_the_parameter": "the_parameter_is_there",
    "without_the_update_as_stated": "the_update_as_stated",
    "without_delivery": "delivery",
    "axes_not_disjoint": "compose_disjoint_axes",
    "placed_in_conflict": "compose_disjoint_axes",
    "denominators_do_not_compose": "compose_denominators",
    "nested_in_two_orders": "compose_nested_order",
    "reduced_inside_and_outside": "compose_one_reduction",
    "tied_weights_cut_first": "compose_tied_weights",
    "equal_and_wrong": "gradient_integrity_alone",
    "right_gradient_and_drift": "delivery",
}
"""Witness of a statement -> the file with its countermodel. `without_start_moments` has a test of its
own: optimizer state starts at zero in the language, so that no spec can say otherwise."""


def programs(path: Path) -> dict[str, Program]:
    return {spec.name: complete(spec) for spec in elaborate_file(parse(path.read_text(), str(path)))}


def meshes(program: Program) -> Iterator[tuple[dict[str, int], int]]:
    for *sizes, M in product((1, 2, 3), repeat=len(program.mesh.axes) + 1):
        yield dict(zip(program.mesh.axes, sizes)), M


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_with_every_condition_it_is_right(path: Path) -> None:
    program = programs(path)["with_it"]
    for sizes, M in meshes(program):
        outcome = simulate(program, sizes, {"P": 1, "M": M})
        assert outcome.right, (sizes, M, outcome)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_without_it_it_is_wrong(path: Path) -> None:
    report = placelogic.check(path)
    specs = {spec.name: spec for spec in report.specs}
    assert report.exit_code == 0, "an expectation is not met"
    assert (specs["with_it"].verdict, specs["without_it"].verdict) == ("proved", "refuted")
    found = next(finding for finding in specs["without_it"].findings if finding.counterexample is not None)
    program = programs(path)["without_it"]
    assert found.counterexample is not None
    sizes = dict.fromkeys(program.mesh.axes, 1) | dict(found.counterexample.mesh)
    outcome = simulate(program, sizes, {"P": 1, "M": 1} | dict(found.counterexample.quantities))
    assert not outcome.right
    ones = simulate(program, dict.fromkeys(sizes, 1), {"P": 1, "M": 1})
    assert ones.right or path.stem == "a_source_for_every_copy", "one device is right but where nobody updates"


def test_every_witness_of_a_condition_has_a_spec() -> None:
    statements = load(["hypotheses_needed", "composition_conditions", "conditions_independent"])
    witnesses = {query.name for one in statements for query in one.queries if query.expected == "sat"}
    own_test = {"all_of_them_can_be_met", "without_start_moments"}
    assert witnesses - own_test == set(DROPPED)
    assert set(DROPPED.values()) <= {path.stem for path in FILES}


def test_gradient_integrity_alone_keeps_replicas_equal() -> None:
    """The two conditions are independent: here all devices agree, on a wrong value."""
    program = programs(FOLDER / "gradient_integrity_alone.place")["without_it"]
    machine = Machine(program, {"tp": 2}, {"P": 1}, None, 1)
    assert not machine.run(2).right
    (state,) = machine.states.values()
    assert state.theta[0] == state.theta[1] != machine.single[0]


def test_delivery_alone_has_the_right_gradient() -> None:
    program = programs(FOLDER / "delivery.place")["without_it"]
    outcome = simulate(program, {"dp": 2}, {"P": 1}, steps=1)
    assert {difference.what for difference in outcome.differences} == {"params"}


def test_other_optimizer_state_at_the_start() -> None:
    """The hypothesis that no spec can drop: one replica's moments start elsewhere."""

    def run(start: int) -> Outcome:
        program = programs(FOLDER / "gradient_integrity.place")["with_it"]
        machine = Machine(program, {"dp": 2}, {"P": 1}, None, 1)
        (state,) = machine.states.values()
        state.moments[1] = [start] * len(state.moments[1])
        return machine.run(1)

    assert run(0).right
    wrong = run(1)
    assert {difference.device for difference in wrong.differences} == {(1,)}
    assert all(re.search("params", difference.what) for difference in wrong.differences)
