"""Small specs that the tests of costs share."""

from __future__ import annotations

from placelogic import cost
from placelogic.cost import Cost

ADAM16 = "precision { params fp16, compute fp16, gradients fp16, master fp32, moments fp32 }\noptimizer adam\n"
"""Mixed-precision Adam, 2 + 2 + 12 bytes per parameter (arXiv 1910.02054, section 3.1)."""

ONE = "mesh N\nlet P\nweights model { size P }\n" + ADAM16
LAYERS = "mesh N\nlet P\nweights model { size P, layers 32 }\n" + ADAM16


def of(text: str, **at: int) -> Cost:
    """The cost of a spec."""
    return cost(text + "\n", at=at)
