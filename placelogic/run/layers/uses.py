"""Which operations use one matrix, how it is cut there, and how its numbers start."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.operations import sides
from placelogic.program.program import Weights
from placelogic.run.layers.setting import Setting

Key = tuple[object, ...]


def weights_dims(block: Block, op: bl.Operation) -> tuple[str, ...]:
    """The dimensions of an operation's weights, in the order in which its functions name them."""
    produced, contracted = sides(op)
    experts = block.tensors[op.input][:1] if isinstance(op, bl.Linear) and op.grouped else ()
    return (*experts, *contracted, *produced)


def key_of(setting: Setting, weights: Weights, layer: int, index: int, op: bl.Operation) -> Key:
    """Every operation has a matrix of its own, but tables of the same dimensions, cut alike, are one."""
    if setting.tied(weights.name) or weights.kind == "embedding":
        dims = weights_dims(setting.blocks[layer], op)
        return tuple(sorted(dims)), tuple(sorted(cut_of(setting, layer, index).items()))
    return layer, index


def matrices(setting: Setting, weights: Weights) -> dict[Key, list[tuple[int, int, bl.Operation]]]:
    """Every matrix of a group: the operations that use it, with the numbers of their layers and of them."""
    found: dict[Key, list[tuple[int, int, bl.Operation]]] = {}
    for layer, block in enumerate(setting.blocks):
        for index, op in enumerate(block.operations):
            if getattr(op, "weights", None) == weights.name:
                found.setdefault(key_of(setting, weights, layer, index, op), []).append((layer, index, op))
    return found


def cut_of(setting: Setting, layer: int, index: int) -> dict[str, str]:
    """axis -> the dimension on which the matrix is cut while it is used."""
    work = setting.plan.work.get((setting.blocks[layer].name, index), {})
    return {axis: one.weights for axis, one in work.items() if one.weights is not None}


def start(op: bl.Operation, sizes: Mapping[str, int]) -> tuple[float, float]:
    """What is added to its weights, and what they are multiplied by, so that values stay near one."""
    match op:
        case bl.Norm():
            return 1.0, 0.5
        case bl.Linear() | bl.Router():
            return 0.0, 1.5 / prod(sizes[dim] for dim in op.contracted) ** 0.5
        case _:
            return 0.0, 1.0
