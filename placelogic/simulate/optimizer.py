"""The optimizer: exact, elementwise with state, and sensitive to the scale of the gradient.

    omega <- 2 omega + g
    theta <- theta - (g + 3 omega + g^2) * (1 + sum of g^2 over what the optimizer must see)

The last factor is 1 for elementwise optimizers. For those that need a whole tensor, or whole
rows or blocks, the sum runs over the elements of that tensor (row, block) that this device updates or has gathered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from placelogic.simulate.arithmetic import PRIME

Result = tuple[list[int], list[int]]


def stepped(
    units: Sequence[int] | None,
    elements: Sequence[int],
    gradient: Sequence[int],
    theta: Sequence[int],
    omega: Sequence[int],
    seen: Mapping[int, int] | None = None,
) -> Result:
    """New theta and omega of these elements, which are updated together on one device. `units`: which elements it looks
    at together (see run/group.py). `seen`: the gradient of all elements that it looks at, where they are more."""
    squares: dict[int, int] = {}
    if units is not None:
        for e, g in zip(elements, gradient) if seen is None else seen.items():
            squares[units[e]] = squares.get(units[e], 1) + g * g
    new_theta, new_omega = [], []
    for e, g, t, o in zip(elements, gradient, theta, omega):
        o = (2 * o + g) % PRIME
        move = g + 3 * o + g * g
        if units is not None:
            move = move * (squares[units[e]] % PRIME)
        new_theta.append((t - move) % PRIME)
        new_omega.append(o)
    return new_theta, new_omega

