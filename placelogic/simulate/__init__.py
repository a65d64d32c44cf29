"""The exact simulator: runs a step program on every device of one concrete mesh.

It knows nothing of kinds or coefficients: devices hold arrays, compute gradients of their own
data, and collectives add arrays by position. Two optimizer steps are compared with single-device
training, in exact arithmetic (docs/semantics.md).
"""

from __future__ import annotations

from placelogic.run.stop import SimulationTooLarge
from placelogic.run.work import Item
from placelogic.simulate.layers.deal import Uneven, uneven
from placelogic.simulate.layers.run import simulate_layers
from placelogic.simulate.outcome import Difference, Outcome, Stop
from placelogic.simulate.run import coefficients, simulate, simulate_any

__all__ = [
    "Difference",
    "Item",
    "Outcome",
    "SimulationTooLarge",
    "Stop",
    "Uneven",
    "coefficients",
    "simulate",
    "simulate_any",
    "simulate_layers",
    "uneven",
]
