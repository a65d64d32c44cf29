"""Which devices hold the same: the places along the stages."""

from __future__ import annotations

from msgspec.structs import replace

from placelogic.cost.data import Place
from placelogic.cost.symbols import Symbols
from placelogic.problem import Problem, SpecError
from placelogic.program.program import Program, Weights


def places_of(program: Program, sizes: Symbols) -> tuple[Place, ...]:
    """Every place that some allowed number of stages has; one for all devices where there are no stages.
    Raises SpecError (PL361) where weights live on the ends of different axes."""
    axis = stage_axis(program)
    if axis is None:
        return (Place("all", None, "always"),)
    count = sizes.known(sizes.meanings[axis])
    vee = any(w.uses is not None and w.uses.vee for w in program.weights) or (
        program.stages is not None and program.stages.vee
    )
    if vee:
        found = [(Place("first", axis, f"{axis} >= 2"), 2, None), (Place("rest", axis, f"{axis} >= 2"), 2, None)]
    else:
        found = [
            (Place("first", axis, f"{axis} >= 2"), 2, None),
            (Place("middle", axis, f"{axis} >= 3"), 3, None),
            (Place("last", axis, f"{axis} >= 2"), 2, None),
        ]
    found.insert(0, (Place("single", axis, f"{axis} = 1"), 1, 1))
    if count is None:
        return tuple(place for place, _, _ in found)
    return tuple(
        replace(place, when=f"{axis} = {count}")
        for place, least, most in found
        if count >= least and (most is None or count <= most)
    )


def stage_axis(program: Program) -> str | None:
    """The axis along which devices hold different weights."""
    axes = dict.fromkeys(w.uses.axis for w in program.weights if w.uses is not None)
    if program.stages is not None:
        axes.setdefault(program.stages.axis)
    if len(axes) > 1:
        user = next(w for w in program.weights if w.uses is not None and w.uses.axis == list(axes)[-1])
        message = f"weights live on the ends of different axes ({', '.join(axes)}): costs know stages along one axis"
        raise SpecError(Problem("PL361", message, user.span, "let all weights be used on ends of the pipeline axis"))
    return next(iter(axes), None)


def lives_on(weights: Weights, place: Place) -> bool:
    """Whether devices of this place hold any of these weights."""
    uses = weights.uses
    layers = place.layers_of(weights.name)
    if layers is not None and layers[0] == layers[1] == 0:
        return False
    if uses is None or place.name in ("all", "single"):
        return True
    if uses.vee:
        return place.name == "first"
    return (uses.first and place.name == "first") or (uses.last and place.name == "last")
