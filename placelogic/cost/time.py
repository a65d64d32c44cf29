"""How long sending takes, by latency and bandwidth (alpha-beta): an estimate, and nothing that is proved.

Collectives are taken one after the other, none overlapped with another or with compute.
"""

from __future__ import annotations

import sympy

from placelogic.cost.data import RINGS, Collective, Options
from placelogic.cost.symbols import exact
from placelogic.cost.totals import Cost


def seconds(cost: Cost) -> sympy.Expr | None:
    """Of the device that sends longest, per step; None where no bandwidth was given."""
    if cost.options.bandwidth is None:
        return None
    return cost.busiest(lambda c: one(c, cost.options))


def one(term: Collective, options: Options) -> sympy.Expr:
    """Of one collective: bytes over bandwidth, within a node and between nodes, and a latency for each round
    of a ring."""
    within = exact(options.bandwidth or 1)
    between = within if options.inter_bandwidth is None else exact(options.inter_bandwidth)
    rounds = RINGS.get(term.operation, 0) * (term.members - 1) if term.operation in RINGS else sympy.Integer(1)
    return term.intra / within + term.inter / between + rounds * term.times * exact(options.latency)
