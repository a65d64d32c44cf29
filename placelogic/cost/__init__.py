"""What a step program costs: memory per device and traffic per step, as sympy formulas in its sizes.

`derive(program)` reads the step program that is proved, and nothing else: no strategy is known by name
and no total is written down. The result (`Cost`, data.py) is a list of terms:

* `Held`: one state of one weight group that stays on a device, or in host memory for it, through the
  step: elements (as if shards divided evenly, and with the last shard padded), bytes for each.
* `Transient`: what comes on top while it is used: the gathered unit, its whole gradient, parameters
  kept gathered between forward and backward.
* `Collective`: one communication of one weight group: operation, axes, bytes of the whole message,
  times per step. What a device sends (ring), and the limit for many devices, follow from these.

Devices differ only by where they stand along the stages (`Place`, places.py): the ends hold weights that
the middle does not. Every term says on which places it occurs; totals are sums over terms, the worst
place gives the peak. Symbols are the names of the spec: an axis stands for its size. Sizes that the spec
fixes stay symbols too, their values are in `Cost.values`.

Modules: symbols.py (names and numbers to sympy), places.py, shards.py (elements on a device),
widths.py (bytes per element), memory.py, traffic.py, schedule.py (in-flight micro-batches, bubbles),
layers.py (saved activations and the traffic of layer operations, where a spec has them); tables.py and the
forms of output; claims.py and budget.py, for `check`.

Codes: PL360 an optimizer whose state has unknown shapes, PL361 ends of different axes, PL368 groups of
`reshard_after_forward` that do not come out even, PL367 one size fixed differently, PL363 an unknown cost. Raised with a claim or budget as a whole (placelogic/requirements/claims.py): PL364 no
cost, PL365 a spec with errors, PL366 open sizes.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from placelogic.cost.data import Collective, Held, Options, Place, Transient
from placelogic.cost.derive import derive
from placelogic.cost.totals import Cost

__all__ = ["Collective", "Cost", "Held", "Options", "Place", "Transient", "derive"]


class _Room(ModuleType):
    """`placelogic.cost` is this package, and what people call: `placelogic.cost(spec)`."""

    def __call__(self, *arguments: Any, **options: Any) -> Cost:
        from placelogic.session.cost import cost

        return cost(*arguments, **options)


sys.modules[__name__].__class__ = _Room
