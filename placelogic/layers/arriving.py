"""What a spec without blocks says of gradients that reach weights: `backward WEIGHTS over AXES by ...`.

The line acts on the gradient that reaches these weights, and so on all before them too. What it comes to is
known where placements tell what arrives: along an axis on which every device does the same work with whole
weights it is whole; along one that splits samples each device has that of its own, and nothing crosses. Which
weights come before which, and how often a gradient that goes through several layers meets the line, is not
said in such a spec. So where a line changes a gradient, only what is wrong in any case is refuted; what would
be right or wrong depending on that is asked back (PL389).
"""

from __future__ import annotations

from collections.abc import Iterator

from placelogic.problem import Problem, SpecError
from placelogic.program.block import Layers, Override
from placelogic.program.expr import Binary, Expr, Name, number
from placelogic.program.facts import Crossing, Flow, Layering, Path, Reach
from placelogic.program.plan import Plan
from placelogic.program.program import Program, Weights

BLOCKS = (
    "write the operations of a layer in a block, and say it of one of its tensors; or say with `sync` and `scale` what "
    "the gradients of the weights come to"
)


def arriving(program: Program, layers: Layers) -> Layering:
    """What the lines come to. Raises PL389 where it depends on what is not stated."""
    problems = [one for line in layers.overrides for one in _problems(program, line)]
    if problems:
        raise SpecError(*problems)
    reaches = [_reach(program, line) for line in layers.overrides if line.axes]  # `over none` does nothing
    flows = []
    for weights in program.weights:
        mine = tuple(reach for reach in reaches if reach.weights == weights.name)
        if mine:
            flows.append(Flow(weights.name, "", weights.name, 1, (_path(mine),), ()))
    crossings = tuple(_crossing(program, line, axis) for line in layers.overrides for axis in line.axes)
    plain = frozenset(weights.name for weights in program.weights) - {flow.weights for flow in flows}
    return Layering(Plan(), crossings, tuple(flows), plain=plain, reaches=tuple(reaches))


# --- what arrives ------------------------------------------------------------------------------


def whole_along(program: Program, axis: str) -> bool:
    """Whether all devices along the axis do the same work on the same data with whole weights: then every tensor
    and every gradient is whole on each. So it is where there is one device."""
    return _unlike(program, axis) is None


def _unlike(program: Program, axis: str) -> str | None:
    """What makes devices along the axis unlike each other, if anything may."""
    if next(atom.size for atom in program.mesh.atoms if atom.name == axis) == number(1):
        return None
    split = next((split for split in program.work.splits if split.axis == axis), None)
    if split is not None:
        return f"{axis} splits the {split.dim}"
    feed = program.work.feed(axis)
    if feed is not None and feed.kind == "different":
        return f"devices along {axis} are fed different samples"
    if program.stages is not None and program.stages.axis == axis:
        return f"{axis} has the stages of a pipeline"
    for weights in program.weights:
        if (how := _divides(weights, axis)) is not None:
            return how
        if any(one.axis == axis and one.kind == "different" for one in weights.random):
            return f"random numbers of `{weights.name}` differ along {axis}"
    return None


def samples_along(program: Program, axis: str) -> bool:
    """Whether the axis deals out samples and nothing else: then nothing crosses it on the way to the weights."""
    split = next((split for split in program.work.splits if split.axis == axis), None)
    return split is not None and split.dim == "batch" and all(_divides(w, axis) is None for w in program.weights)


def _divides(weights: Weights, axis: str) -> str | None:
    """How these weights are not whole along the axis where they are used, or see only a part there, if so."""
    name = weights.name
    params, activations = weights.params.cut(axis), weights.activations.cut(axis)
    if weights.uses is not None and weights.uses.axis == axis:
        return f"`{name}` is used on some of {axis} only"
    if axis in weights.routed:
        return f"`{name}` is routed over {axis}"
    if params is not None and params.letter == "S":
        return f"`{name}` is sharded over {axis}"
    if activations is not None and activations.letter == "S":
        return f"`{name}` works on pieces over {axis}"
    return None


def _problems(program: Program, line: Override) -> Iterator[Problem]:
    for axis in line.axes:
        if line.by == "gather" and whole_along(program, axis):
            yield Problem(
                "PL384",
                f"along {axis} nothing is cut, so there are no pieces of what reaches `{line.tensor}` to be gathered",
                line.origin.span,
                "say `none`, `sum`, `mean` or `zero`, or write the operations of a layer in a block",
            )
        if line.by == "zero" or whole_along(program, axis):
            continue
        if not samples_along(program, axis):
            yield Problem(
                "PL389",
                f"whether this is right for `{line.tensor}` depends on operations that are not stated: "
                f"{_reason(program, axis)}, so that what arrives there may be whole on every device, shares or pieces",
                line.origin.span,
                BLOCKS,
            )
        elif line.by != "none":
            yield Problem(
                "PL389",
                f"along {axis} each device has gradients of its own samples: what it means to combine those that reach "
                f"`{line.tensor}` depends on operations that are not stated",
                line.origin.span,
                f"if the gradients of the weights are combined, say `sync {line.tensor} over {axis} by ...`; else write the "
                "operations of a layer in a block, and say it of one of its tensors",
            )


def _reason(program: Program, axis: str) -> str:
    """Why it is not known what arrives."""
    split = next((split for split in program.work.splits if split.axis == axis), None)
    if split is not None and split.dim == "batch":  # then something else does it
        return next(how for weights in program.weights if (how := _divides(weights, axis)) is not None)
    found = _unlike(program, axis)
    assert found is not None
    return found


# --- what a line does --------------------------------------------------------------------------


def _reach(program: Program, line: Override) -> Reach:
    factor: Expr = number(1) if line.scale is None else line.scale
    for axis in line.axes:
        if line.by == "sum":
            factor = Binary("*", factor, Name(axis))
        elif line.by == "zero":
            factor = number(0)
    cut = line.axes if line.by == "slice" else ()
    weights = program.group(line.tensor)
    return Reach(
        weights.name, factor, cut, line.axes if line.by == "sum" else (), _doubt(program, weights, line), line.origin
    )


def _doubt(program: Program, weights: Weights, line: Override) -> str | None:
    """Why it is not known how often, and to what, this happens, if it is not."""
    others = [other.name for other in program.weights if other.name != weights.name and not other.frozen]
    if line.by == "slice":
        return f"nothing says which piece of what arrives at `{weights.name}` each device keeps, or where the pieces come together again"
    if others:
        names = ", ".join(f"`{name}`" for name in others)
        return f"it is not said which of {names} come before `{weights.name}`, so that this changes their gradients too"
    if weights.uses is not None and weights.uses.first and weights.uses.last:
        return f"`{weights.name}` is used twice, and it is not said whether this happens before both uses"
    layered = weights.layers is not None and weights.layers != number(1)
    if layered or any(cut.dim == "layer" for cut in weights.params.cuts):
        return f"`{weights.name}` has several layers, and it is not said whether this happens once, or again in each"
    return None


def _path(mine: tuple[Reach, ...]) -> Path:
    """All lines of one group, one after the other."""
    scale: Expr = number(1)
    for reach in mine:
        scale = reach.factor if scale == number(1) else Binary("*", scale, reach.factor)
    cut = frozenset(axis for reach in mine for axis in reach.cut)
    # What is added up after it was cut is whole again; before, it is cut all the same.
    counted = frozenset(axis for reach in mine for axis in reach.summed)
    return Path(scale, cut, frozenset(), frozenset(), frozenset(), counted, tuple(reach.origin for reach in mine))


def _crossing(program: Program, line: Override, axis: str) -> Crossing:
    whole = whole_along(program, axis)
    changes = line.by in ("sum", "slice", "zero") or line.scale is not None
    done = "nothing crosses between devices" if whole or samples_along(program, axis) else "it is not said what happens"
    return Crossing("", line.tensor, axis, line.direction, done, "none" if whole else None, changes, line.origin)
