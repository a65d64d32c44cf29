"""Why a run ends early."""

from __future__ import annotations


class SimulationTooLarge(Exception):
    """This mesh is too big to be simulated device by device."""


class GroupStop(Exception):
    """One weight group cannot go on: data, a tensor or an owner is missing, or shapes clash."""
