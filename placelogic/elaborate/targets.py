"""Whom a statement is about, and which of several statements wins: a name over a kind over `*`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from placelogic.elaborate.log import Item, Log
from placelogic.problem import closest
from placelogic.program.catalog import KINDS
from placelogic.program.expr import Expr
from placelogic.program.program import Axes, Unheeded, Uses
from placelogic.syntax import ast

ALL, KIND, NAME = 1, 2, 3
"""How specific a target is. 0 means that it does not speak of the weights."""

T = TypeVar("T")


class WeightsGroup(Struct, frozen=True):
    """Weights as declared, before it is known how their states lie."""

    name: str
    kind: str
    size: Expr | None
    layers: Expr | None
    dims: tuple[str, ...]
    uses: Uses | None
    routed: Axes
    frozen: bool
    item: Item

    @property
    def statement(self) -> ast.WeightsStmt:
        assert isinstance(self.item.statement, ast.WeightsStmt)
        return self.item.statement


class Groups(Struct, frozen=True):
    """All weights of a spec, in declared order."""

    members: tuple[WeightsGroup, ...]
    names: frozenset[str]

    @classmethod
    def of(cls, members: Iterable[WeightsGroup]) -> Groups:
        listed = tuple(members)
        return cls(listed, frozenset(group.name for group in listed))

    def level(self, target: ast.Target | None, item: Item, group: WeightsGroup) -> int:
        """How specifically the target speaks of these weights. A word that names weights means
        only them, except in the standard library, whose words are kinds. No target means `*`."""
        if target is None:
            return ALL
        return max((self._word(word, item, group) for word in target.names), default=0)

    def _word(self, word: str, item: Item, group: WeightsGroup) -> int:
        if word == "*":
            return ALL
        if word in self.names and not (item.standard and word in KINDS):
            return NAME if word == group.name else 0
        return KIND if word == group.kind else 0

    def _means_any(self, word: str, item: Item) -> bool:
        return any(self._word(word, item, group) for group in self.members)

    def check(
        self, target: ast.Target | None, item: Item, log: Log, frozen: str | None = None, *, places: bool = False
    ) -> None:
        """Logs unknown words, and frozen weights named where `frozen` says what they do not have.

        In the checked file itself also kinds that no weights have, as nothing would heed the statement; strategies and
        imports may speak of kinds that a spec has none of. `places`: where nothing heeds a statement it is noted, since
        what is not there lies nowhere, and one statement often places many models."""
        if target is None:
            return
        for word in target.names:
            if word != "*" and word not in self.names and word not in KINDS:
                known = [*self.names, *KINDS]
                log.at(item, "PL202", f"there are no weights and no kind `{word}`", target.span,
                       closest(word, known) or f"weights: {', '.join(sorted(self.names)) or 'none'}; "
                       f"kinds: {', '.join(KINDS)}")  # fmt: skip
            elif self.members and item.use is None and word in KINDS and not self._means_any(word, item):
                if places:
                    log.unheeded.append(Unheeded(word, "kind", target.span))
                    continue
                log.at(item, "PL202", f"no weights are of kind `{word}`, so nothing heeds this statement", target.span,
                       closest(word, self.names) or f"leave it out, or declare weights with `kind {word}`")  # fmt: skip
        if frozen is None:
            return
        for group in self.members:
            if group.frozen and self.level(target, item, group) == NAME:
                if places:
                    log.unheeded.append(Unheeded(group.name, "frozen", item.at(target.span)))
                    continue
                log.at(item, "PL324", f"`{group.name}` is frozen: it has {frozen}", target.span,
                       f"leave `{group.name}` out here, or do not freeze it")  # fmt: skip


def strongest(claims: Sequence[tuple[int, T]]) -> list[T]:
    """The most specific ones, in written order."""
    best = max((level for level, _ in claims), default=0)
    return [claim for level, claim in claims if level == best]


def agree(claims: Sequence[T], key: Callable[[T], object]) -> tuple[T, T] | None:
    """The first two that differ, or None when all say the same."""
    return next(((claims[0], other) for other in claims[1:] if key(other) != key(claims[0])), None)


def select(items: Iterable[Item], kind: type) -> list[Item]:
    return [item for item in items if isinstance(item.statement, kind)]


def speaking(items: Sequence[Item], kind: type, group: WeightsGroup, groups: Groups) -> Iterator[tuple[int, Item, Any]]:
    """The statements of this kind that speak of the group: how specifically, and which."""
    for item in select(items, kind):
        level = groups.level(item.statement.target, item, group)  # type: ignore[union-attr]
        if level:
            yield level, item, item.statement


def settle(
    claims: Sequence[tuple[int, T]], key: Callable[[T], object], item: Callable[[T], Item], what: str, log: Log
) -> T | None:
    """The most specific claim; logs where equally specific ones differ."""
    if not claims:
        return None
    top = strongest(claims)
    differ = agree(top, key)
    if differ is not None:
        first, second = item(differ[0]), item(differ[1])
        line = first.at(first.statement.span).line
        log.once(second, "PL322", f"{what} is stated differently, and as specifically, in line {line}",
               second.statement.span, "keep one, or make one of them more specific")  # fmt: skip
    return top[0]
