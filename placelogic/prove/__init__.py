"""The value calculus, its obligations, and the solver that decides them for every size at once."""

from placelogic.prove.prover import Options, prove

__all__ = ["Options", "prove"]
