"""Optimizers on local shards: what a device updates with what it sees.

Elementwise optimizers follow their published rules. Those that need a whole tensor are replayed by the rule
of LAMB, and those with quantised moments by a scale per block: what matters here is how much of a tensor
they look at, and whether that is all on one device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from placelogic.replay.comms import Comm

Moments = dict[str, torch.Tensor]
"""First and second moments, and the number of steps, element by element."""

MOMENTS = ("first", "second", "steps")


def zeros(count: int) -> Moments:
    return {name: torch.zeros(count) for name in MOMENTS}


def stepped(
    name: str, units: Sequence[int] | None, trusted: bool, elements: torch.Tensor, g: torch.Tensor, theta: torch.Tensor,
    old: Moments, comm: Comm | None = None,
) -> tuple[torch.Tensor, Moments]:  # fmt: skip
    """New parameters and moments of these elements, which one device updates together. `units`: which elements it looks
    at together; `trusted`: at their parameters as well. `comm`: devices that have the others, where they are gathered."""
    moments = {**old, "steps": old["steps"] + 1}
    move, moments = _RULES.get(name, _adam)(g, theta, moments)
    if units is not None:
        unit = torch.tensor(units)[elements]

        def added(values: torch.Tensor) -> torch.Tensor:
            own = torch.zeros(max(units) + 1).index_add(0, unit, values)
            return own if comm is None else comm.all_reduce(own)

        scale = 1 / (1 + added(g.square()).sqrt())
        if trusted:
            norms = added(theta.square())
            scale = scale * (1 + norms.sqrt())
        move = move * scale[unit]
    return theta - move, moments


def clip_factor(norm: torch.Tensor) -> torch.Tensor:
    """Clipping to norm 1, in a smooth form: it always acts, so a wrong norm always shows."""
    return 1 / (1 + norm)


def calmed(gradient: torch.Tensor) -> float:
    """By what a gradient is divided before a step is taken: training that runs away shows nothing. It is that
    of the single device, and the same for all."""
    return max(1.0, float(gradient.abs().max()))


def _sgd(g: torch.Tensor, theta: torch.Tensor, moments: Moments) -> tuple[torch.Tensor, Moments]:
    first = 0.9 * moments["first"] + g
    return 0.1 * first, {**moments, "first": first}


def _adam(g: torch.Tensor, theta: torch.Tensor, moments: Moments) -> tuple[torch.Tensor, Moments]:
    steps = moments["steps"]
    first = 0.9 * moments["first"] + 0.1 * g
    second = 0.999 * moments["second"] + 0.001 * g.square()
    move = 0.01 * (first / (1 - 0.9**steps)) / ((second / (1 - 0.999**steps)).sqrt() + 1e-8)
    return move, {**moments, "first": first, "second": second}


def _adamw(g: torch.Tensor, theta: torch.Tensor, moments: Moments) -> tuple[torch.Tensor, Moments]:
    move, moments = _adam(g, theta, moments)
    return move + 0.01 * 0.01 * theta, moments


def _nadam(g: torch.Tensor, theta: torch.Tensor, moments: Moments) -> tuple[torch.Tensor, Moments]:
    _, new = _adam(g, theta, moments)
    steps = new["steps"]
    ahead = (0.9 * new["first"] + 0.1 * g) / (1 - 0.9 ** (steps + 1))
    return 0.01 * ahead / ((new["second"] / (1 - 0.999**steps)).sqrt() + 1e-8), new


def _adagrad(g: torch.Tensor, theta: torch.Tensor, moments: Moments) -> tuple[torch.Tensor, Moments]:
    second = moments["second"] + g.square()
    return 0.05 * g / (second.sqrt() + 1e-8), {**moments, "second": second}


def _rmsprop(g: torch.Tensor, theta: torch.Tensor, moments: Moments) -> tuple[torch.Tensor, Moments]:
    second = 0.99 * moments["second"] + 0.01 * g.square()
    return 0.01 * g / (second.sqrt() + 1e-8), {**moments, "second": second}


def _lion(g: torch.Tensor, theta: torch.Tensor, moments: Moments) -> tuple[torch.Tensor, Moments]:
    move = 0.01 * torch.sign(0.9 * moments["first"] + 0.1 * g)
    return move, {**moments, "first": 0.99 * moments["first"] + 0.01 * g}


_RULES: dict[str, Callable[[torch.Tensor, torch.Tensor, Moments], tuple[torch.Tensor, Moments]]] = {
    "sgd": _sgd,
    "lars": _sgd,
    "muon": _sgd,
    "shampoo": _sgd,
    "adam": _adam,
    "adamw": _adamw,
    "adamw8bit": _adamw,
    "nadam": _nadam,
    "adagrad": _adagrad,
    "rmsprop": _rmsprop,
    "lion": _lion,
    "lion8bit": _lion,
}
