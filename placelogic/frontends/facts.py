"""Conditions on the facts that a configuration amounts to, as the tables write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Condition = tuple[str, str, Any]
"""(fact, comparison, value); a value `$name` is another fact."""


def all_hold(conditions: Iterable[Condition], facts: Mapping[str, object]) -> bool:
    """Whether every condition holds."""
    return all(holds(one, facts) for one in conditions)


def holds(condition: Condition, facts: Mapping[str, object]) -> bool:
    """Whether a condition holds. A fact that is not known meets no comparison but == and !=."""
    name, comparison, wanted = condition
    have: Any = facts.get(name)
    if isinstance(wanted, str) and wanted.startswith("$"):
        wanted = facts.get(wanted[1:])
    match comparison:
        case "==":
            return bool(have == wanted)
        case "!=":
            return bool(have != wanted)
        case "in":
            return have in wanted
    if have is None or wanted is None:
        return False
    match comparison:
        case ">":
            return bool(have > wanted)
        case ">=":
            return bool(have >= wanted)
        case "<":
            return bool(have < wanted)
        case "not multiple of":
            return bool(wanted and have % wanted)
        case "not multiple or divisor of":
            return bool(wanted and have and have % wanted and wanted % have)
    raise ValueError(f"there is no comparison `{comparison}`")
