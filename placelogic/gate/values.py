"""What the settings of the gate may be: each value as it is used, or ValueError with words that follow its name."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from placelogic.files import whole
from placelogic.gate.allow import known_codes
from placelogic.gate.policy import WARNINGS
from placelogic.problem import SpecError, closest
from placelogic.session.settings import MOST_RLIMIT, MOST_SECONDS
from placelogic.source import Span

MOST_SIZE = 10**15 - 1

def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise ValueError("is a list of texts")
    for one in value:
        _plain(one)
    return tuple(value)


def _plain(text: str) -> None:
    if "\0" in text:
        raise ValueError("holds a zero byte, which no name of a file has")


def _paths(value: Any) -> tuple[str, ...]:
    found = _texts(value)
    if not found:
        raise ValueError("names no path, so there would be nothing to check")
    return found


def _sizes(value: Any) -> dict[str, int]:
    if not isinstance(value, dict) or not all(_is_count(one) for one in value.values()):
        raise ValueError("is a table of names and positive whole numbers of at most 15 digits, as in { dp = 64 }")
    return dict(value)


def _budget(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError('is a text with a unit, as in "80 GiB"')
    budget_statement(value, whole(""))
    return value


def _codes(value: Any) -> tuple[str, ...]:
    found = _texts(value)
    for code in found:
        if code != WARNINGS and code not in known_codes():
            near = closest(code, known_codes())
            raise ValueError(f"names `{code}`, which is no code of a finding" + (f": {near}" if near else ""))
    return found


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("is true or false")
    return value


def _count(value: Any) -> int:
    if not _is_count(value, MOST_RLIMIT):
        raise ValueError(f"is a positive whole number, at most {MOST_RLIMIT}")
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= MOST_SECONDS:
        raise ValueError(f"is a number of seconds, more than 0 and at most {MOST_SECONDS}")
    return float(value)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("is the name of a file")
    _plain(value)
    return value


def _is_count(value: Any, most: int = MOST_SIZE) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


READ = {
    "paths": _paths,
    "exclude": _texts,
    "minimum_sizes": _sizes,
    "budget": _budget,
    "fail_on": _codes,
    "require_stated": _flag,
    "rlimit": _count,
    "timeout": _seconds,
    "recheck": _flag,
    "baseline": _name,
}


def budget_statement(text: str, place: Span) -> Any:
    """The budget as a statement of the language that stands at this place. Raises ValueError."""
    from placelogic.syntax import ast
    from placelogic.syntax.parse import parse

    try:
        statements = parse(f"budget {text}\n", "").statements
    except SpecError:
        statements = ()
    if len(statements) != 1 or not isinstance(statements[0], ast.BudgetStmt) or "\n" in text:
        raise ValueError('is a size with a unit, as in "80 GiB"')
    return replace(statements[0], span=place)
