"""The program of a spec with its derived step."""

from __future__ import annotations

from placelogic.elaborate import ElaboratedSpec
from placelogic.elaborate.derive import derive
from placelogic.problem import SpecError
from placelogic.program.program import Program


def complete(spec: ElaboratedSpec) -> Program:
    """The program of a spec with its derived step. Raises SpecError."""
    if spec.program is None or spec.stated is None:
        raise SpecError(*spec.problems)
    return derive(spec.program, spec.stated)
