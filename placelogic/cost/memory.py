"""What a device holds through the step, and what lies on it only for a while (docs/costs.md)."""

from __future__ import annotations

from collections.abc import Iterator

import sympy

from placelogic.cost.data import Held, Options, Part, Place, State, Transient
from placelogic.cost.places import lives_on
from placelogic.cost.shards import cut_axes, divided, even, members, padded, size_of
from placelogic.cost.symbols import Symbols
from placelogic.cost.widths import moments_of, width, widths_of
from placelogic.problem import Problem, SpecError
from placelogic.program.expr import Name, show
from placelogic.program.program import (
    Accumulate,
    Layout,
    OffloadGradients,
    Program,
    Reduce,
    Scale,
    Update,
    Weights,
    flat,
)


def held(program: Program, sizes: Symbols, places: tuple[Place, ...]) -> Iterator[Held]:
    """Every part of every state, on every place that has the weights."""
    for place in places:
        for weights in program.weights:
            if lives_on(weights, place):
                yield from _of(program, weights, sizes, place)


def _of(program: Program, weights: Weights, sizes: Symbols, place: Place) -> Iterator[Held]:
    widths = widths_of(weights)

    def term(state: State, part: Part, layout: Layout, dtype: str, copies: int = 1, host: bool | None = None) -> Held:
        on_host = layout.host is not None if host is None else host
        elements, rounded = (f(weights, layout, sizes, place) for f in (even, padded))
        return Held(place, state, part, weights.name, on_host, copies * elements, copies * rounded, width(dtype), dtype)

    if weights.params.materialized is None:
        yield term("params", "params", weights.params, widths.params)
    if weights.frozen:
        return
    optimizer, gradients = weights.optimizer_state, weights.gradients
    if widths.master is not None:
        yield term("optimizer", "master", optimizer, widths.master)
    if (moments := moments_of(weights)) > 0:
        yield term("optimizer", "moments", optimizer, widths.moments, moments)
    if gradients.materialized is None:
        yield term("gradients", "gradients", gradients, widths.gradients, buffers(program, weights))
    step = program.step(weights.name)
    moved = step is not None and any(isinstance(op, OffloadGradients) for op in flat(step.ops))
    if widths.update is not None:
        yield term("gradients", "update", optimizer, widths.update)
    elif moved and gradients.host is None:
        # An update on the host reads its own shard of the gradient there.
        yield term("gradients", "gradients", optimizer, widths.gradients, host=True)
    if optimizer.host is not None and widths.master is None and weights.params.host is None:
        yield term("params", "params", optimizer, widths.params, host=True)


def buffers(program: Program, weights: Weights) -> int:
    """How many gradient arrays the step keeps between micro-batches: the unnamed one, and those with names."""
    step = program.step(weights.name)
    if step is None:
        return 0
    used = {op.buffer for op in flat(step.ops) if isinstance(op, Accumulate)}
    used |= {op.buffer for op in flat(step.ops) if isinstance(op, Reduce | Scale | Update) and op.buffer is not None}
    return max(len(used), 1)


def transients(program: Program, sizes: Symbols, places: tuple[Place, ...], options: Options) -> Iterator[Transient]:
    """What using the weights of a unit takes on top of what is held."""
    for place in places:
        for weights in program.weights:
            if lives_on(weights, place):
                yield from _using(weights, sizes, place, options)


def _using(weights: Weights, sizes: Symbols, place: Place, options: Options) -> Iterator[Transient]:
    widths = widths_of(weights)
    params, gradients = weights.params, weights.gradients
    unit = unit_of(weights, options)
    elements = unit_elements(weights, sizes, place)
    compute = width(widths.compute)
    gathered = any(cut.letter == "S*" for cut in params.cuts)
    made = gathered or params.materialized is not None or params.host is not None or widths.compute != widths.params
    if made and gathered and (keeps(weights) or resharded(weights, sizes, place) is not None):
        # Until their backward pass all units stay whole, or cut over a group of its own size.
        group = resharded(weights, sizes, place)
        share = sympy.Integer(1) if group is None else 1 / group
        kept = Layout(tuple(cut for cut in params.cuts if cut.letter == "S"))
        whole, rounded = (f(weights, kept, sizes, place) * share * compute for f in (even, padded))
        yield Transient(place, "kept params", None, weights.name, whole, rounded, widths.compute)
    if made and not (gathered and keeps(weights)):
        at_once = elements * compute * (1 + options.ahead if gathered else 1)
        yield Transient(place, "gathered params", unit, weights.name, at_once, at_once, widths.compute)
    if weights.frozen:
        return
    narrowed = set(cut_axes(gradients)) - set(cut_axes(params, "S"))
    moved = gradients.materialized is not None or gradients.host is not None or widths.gradients != widths.fresh
    if narrowed or moved:
        whole = elements * width(widths.fresh)
        yield Transient(place, "whole gradient", unit, weights.name, whole, whole, widths.fresh)
    over = {cut for layout in (weights.optimizer_state, gradients, params) for cut in layout.cuts}
    if any(axis in weights.optimizer.gathers for cut in over for axis in cut.axes):
        # One value of each element, as the optimizer makes its direction of: of a unit at a time.
        within = {axis for cut in over if cut.dim != "layer" for axis in cut.axes} - {*weights.optimizer.gathers}
        layers = 1 if weights.layers is None else sizes.read(weights.layers)
        whole = size_of(weights, sizes) / layers / members(weights, within, sizes, place) * width(widths.moments)
        yield Transient(place, "whole for the update", f"update of {unit}", weights.name, whole, whole, widths.moments)


def unit_of(weights: Weights, options: Options) -> str:
    """The name of the unit that the weights are gathered with."""
    if weights.layers is None or options.unit == "group":
        return weights.name
    return f"one of {show(weights.layers)} layers"


def unit_elements(weights: Weights, sizes: Symbols, place: Place) -> sympy.Expr:
    """Elements of one layer of these weights (all of them where they have no layers), as a device of this
    place computes with it: still cut where it is cut without a gather."""
    if weights.layers is None:
        return divided(weights, cut_axes(weights.params, "S"), sizes, place)
    within = [axis for cut in weights.params.cuts if cut.letter == "S" and cut.dim != "layer" for axis in cut.axes]
    return size_of(weights, sizes) / sizes.read(weights.layers) / members(weights, within, sizes, place)


def keeps(weights: Weights) -> bool:
    """Whether gathered params stay whole from the forward to the backward pass."""
    return weights.params.reshard is not None and weights.params.reshard == Name("false")


def resharded(weights: Weights, sizes: Symbols, place: Place) -> sympy.Expr | None:
    """How many devices share the params between forward and backward, where these are not all that share them anyhow.
    Raises SpecError (PL368): groups of that many do not come out even."""
    reshard = weights.params.reshard
    if reshard is None or reshard in (Name("true"), Name("false")):
        return None
    group = sizes.read(reshard)
    all_ = sizes.known(members(weights, cut_axes(weights.params, "S*"), sizes, place))
    size = sizes.known(group)
    if all_ is None or size is None:
        return group
    if all_ % size:
        message = f"the params of `{weights.name}` are cut over {all_} devices, which are no groups of {size}"
        span = next(cut.origin.span for cut in weights.params.cuts if cut.letter == "S*")
        raise SpecError(Problem("PL368", message, span, "let `reshard_after_forward` be a divisor, true or false"))
    return None if all_ == size else group
