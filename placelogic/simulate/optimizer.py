"""The optimizer: exact, elementwise with state, and sensitive to the scale of the gradient.

    omega <- 2 omega + g
    theta <- theta - (g + 3 omega + g^2) * (1 + sum of g^2 over what the optimizer must see)

The last factor is 1 for elementwise optimizers. For those that need a whole tensor, or whole
blocks, the sum runs over the elements of that tensor (block) that this device updates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from placelogic.compat import assert_never
from placelogic.program.catalog import Needs
from placelogic.run.group import Geometry
from placelogic.simulate.arithmetic import PRIME

Result = tuple[list[int], list[int]]


def stepped(
    needs: Needs,
    geometry: Geometry,
    elements: Sequence[int],
    gradient: Sequence[int],
    theta: Sequence[int],
    omega: Sequence[int],
    seen: Mapping[int, int] | None = None,
) -> Result:
    """New theta and omega of these elements, which are updated together on one device. `seen`: the gradient of all
    elements that it looks at, where they are more."""
    squares: dict[int, int] = {}
    units = [_unit(needs, geometry, e) for e in elements]
    for e, g in zip(elements, gradient) if seen is None else seen.items():
        if (unit := _unit(needs, geometry, e)) is not None:
            squares[unit] = squares.get(unit, 1) + g * g
    new_theta, new_omega = [], []
    for unit, g, t, o in zip(units, gradient, theta, omega):
        o = (2 * o + g) % PRIME
        move = g + 3 * o + g * g
        if unit is not None:
            move = move * (squares[unit] % PRIME)
        new_theta.append((t - move) % PRIME)
        new_omega.append(o)
    return new_theta, new_omega


def _unit(needs: Needs, geometry: Geometry, element: int) -> int | None:
    match needs:
        case Needs.ELEMENT:
            return None
        case Needs.TENSOR:
            return geometry.tensor[element]
        case Needs.BLOCK:
            return geometry.block[element]
        case _:
            assert_never(needs)
