"""Mutants that no spec can tell from the right rules, and why."""

from __future__ import annotations

from typing import Protocol


class Mutant(Protocol):
    file: str
    where: str
    before: str
    after: str


REASONS: list[tuple[str, str, str, str]] = []


def reason(mutant: Mutant) -> str | None:
    change = f"{mutant.before} => {mutant.after}"
    return next(
        (why for file, where, part, why in REASONS if (file, where) == (mutant.file, mutant.where) and part in change),
        None,
    )
