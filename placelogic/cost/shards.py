"""How many elements of a state one device holds."""

from __future__ import annotations

from collections.abc import Iterable

import sympy

from placelogic.cost.data import Place
from placelogic.cost.symbols import Symbols
from placelogic.problem import Problem, SpecError
from placelogic.program.program import Axes, Cut, Layout, Weights


def members(weights: Weights, axes: Iterable[str], sizes: Symbols, place: Place) -> sympy.Expr:
    """Devices along these axes that hold the weights: of those used on the end stages only, the ends."""
    count: sympy.Expr = sympy.Integer(1)
    for axis in axes:
        uses = weights.uses
        if uses is not None and uses.axis == axis:
            both = uses.first and uses.last and not uses.vee and place.name != "single"
            count *= 2 if both else 1
        elif place.name == "single" and place.axis == axis:
            pass
        else:
            count *= sizes.meanings[axis]
    return count


def size_of(weights: Weights, sizes: Symbols) -> sympy.Expr:
    if weights.size is None:  # a proof needs none
        message = f"weights `{weights.name}` have no size: a table of positions may be longer than the sequence"
        raise SpecError(Problem("PL307", message, weights.span, "say how many elements they have"))
    return sizes.read(weights.size)


def divided(weights: Weights, axes: Iterable[str], sizes: Symbols, place: Place) -> sympy.Expr:
    """Elements of a device that has its shard along each of these axes, shards dividing evenly."""
    axes = tuple(axes)
    elements = size_of(weights, sizes)
    layers = place.layers_of(weights.name)
    if layers is not None and place.axis in axes and weights.layers is not None:
        # Stages hold layers of several blocks, so not all have as many of these.
        elements = elements * layers[0] / sizes.read(weights.layers)
        axes = tuple(axis for axis in axes if axis != place.axis)
    return elements / members(weights, axes, sizes, place)


def cut_axes(layout: Layout, letters: str = "S S*") -> Axes:
    return tuple(axis for cut in layout.cuts if cut.letter in letters.split() for axis in cut.axes)


def even(weights: Weights, layout: Layout, sizes: Symbols, place: Place) -> sympy.Expr:
    return divided(weights, cut_axes(layout), sizes, place)


def padded(weights: Weights, layout: Layout, sizes: Symbols, place: Place) -> sympy.Expr:
    """Elements of the largest shard, every cut rounded up to whole layers or elements; on the last stage
    the layers that are left for it. Whole tensors have sizes that the spec does not tell: those stay even."""
    layers = None if weights.layers is None else sizes.read(weights.layers)
    elements = size_of(weights, sizes)
    cuts = sorted(layout.cuts, key=lambda cut: cut.dim != "layer")  # stable: layers are dealt out first
    if layers is not None and cuts and cuts[0].dim == "layer":
        whole = layers
        for cut in cuts:
            if cut.dim == "layer":
                layers = _layers(weights, cut, layers, sizes, place)
        elements = elements / whole * layers
    for cut in cuts:
        count = members(weights, cut.axes, sizes, place)
        if cut.dim == "param" or (cut.dim == "layer" and weights.layers is None):
            elements = elements / count
        elif cut.dim != "layer" and count != 1:
            elements = ceiling(elements / count)
    return elements


def _layers(weights: Weights, cut: Cut, layers: sympy.Expr, sizes: Symbols, place: Place) -> sympy.Expr:
    here = place.layers_of(weights.name)
    if here is not None and cut.axes == (place.axis,):
        return here[1]
    count = members(weights, cut.axes, sizes, place)
    first = ceiling(layers / count)
    if place.name == "last" and cut.axes == (place.axis,):
        return sympy.Max(0, layers - (count - 1) * first, evaluate=False)
    return first


def ceiling(expr: sympy.Expr) -> sympy.Expr:
    """Rounded up. sympy's own evaluation would try numbers and signs first, which takes most of the time."""
    if expr.is_Rational:
        return sympy.Integer(-(-expr.p // expr.q))
    return sympy.ceiling(expr, evaluate=False)
