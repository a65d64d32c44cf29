"""The value calculus, its obligations, and the solver that decides them for every size at once."""

from placelogic.prove.prover import Decision, Options, decide, prove

__all__ = ["Decision", "Options", "decide", "prove"]
