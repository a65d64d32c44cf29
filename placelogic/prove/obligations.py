"""What has to hold, one named obligation per condition and weight group.

An obligation is a *violation*: a formula that must be false at every allowed size. What a
violated one is called (its code, its words) is decided afterwards, from a counterexample.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from placelogic.program.facts import Flow, Need
from placelogic.prove.formula import Formula
from placelogic.prove.values import Read, Term
from placelogic.report.sentences import Sentence, Words
from placelogic.source import Span


class Values(Struct, frozen=True):
    """The terms an obligation about a coefficient is about."""

    term: str | None
    terms: tuple[Term, ...]
    read: Read


class Through(Struct, frozen=True):
    """A gradient that does not come as the facts say. `usual`: the terms it would have else, by loss term."""

    flow: Flow
    usual: Mapping[str | None, tuple[Term, ...]]


class Fits(Struct, frozen=True):
    """Where what is dealt out comes out even, and sizes at which all does, as far as some were found."""

    where: Formula
    at: Mapping[str, int] | None


class Obligation(Struct, frozen=True):
    """`code` is the finding's code when violated ("GI" where a counterexample must decide).

    `variant`, `words`: what is told of it then, where that is known (report/sentences.json).
    `stated`: it concerns an operation that a person stated. `values`: for coefficients.
    `read`: the point it is about, where it is one. `warning`: tells of a habit, decides nothing.
    `through`, `need`: of the layers' own operations, backward and forward."""

    name: str
    code: str
    weights: str | None
    axes: tuple[str, ...]
    violation: Formula
    span: Span
    stated: bool
    variant: str = ""
    words: Words = field(default_factory=dict)
    values: Values | None = None
    read: Read | None = None
    warning: bool = False
    through: Through | None = None
    need: Need | None = None
    drawn: bool = False
    """About random numbers and positions inside layers."""
    possible: Formula | None = None
    """Where it is enough that some allowed mesh meets a condition: that condition, until it is settled."""
    fits: Fits | None = None
    own: bool = False
    """What breaks it is a fault of its own, also where the gradient of the same weights is wrong already."""

    @property
    def sentence(self) -> Sentence:
        """What is told of it where it is violated."""
        return Sentence(self.code, self.variant, self.weights, self.axes, self.words)
