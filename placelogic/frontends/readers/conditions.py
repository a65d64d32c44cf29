"""Conditions and sums of a shell script, where their values are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

UNKNOWN = None
"""A condition that depends on what only a run knows."""

_SUMS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": lambda a, b: int(a / b), "%": lambda a, b: a - b * int(a / b),
}  # fmt: skip
_ORDERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b, "-ne": lambda a, b: a != b, "-lt": lambda a, b: a < b, "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b, "-ge": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


def compared(node: Any, written: Callable[[Any], str], number: Callable[[str], int | None]) -> bool | None:
    """Whether a condition is met: `[ ... ]`, `[[ ... ]]`, `((...))`, and these with `!`, `&&` and `||`."""

    def both(one: bool | None, other: bool | None, needs: bool) -> bool | None:
        if (not needs) in (one, other):
            return not needs
        return UNKNOWN if UNKNOWN in (one, other) else needs

    inner = node.named_children
    words = [child.text.decode("utf-8", "replace") for child in node.children]
    match node.type:
        case "test_command" | "compound_statement" | "parenthesized_expression" if len(inner) == 1:
            if words[0] == "((":
                return _arithmetic(inner[0], number)
            return compared(inner[0], written, number) if node.type != "compound_statement" else UNKNOWN
        case "negated_command":
            met = compared(inner[-1], written, number)
            return UNKNOWN if met is UNKNOWN else not met
        case "list" if len(inner) == 2:
            sides = [compared(one, written, number) for one in inner]
            return both(sides[0], sides[1], "&&" in words)
        case "binary_expression":
            operator = words[1] if len(words) > 1 else ""
            left, right = node.children[0], node.children[-1]
            if operator in ("&&", "||", "-a", "-o"):
                sides = [compared(one, written, number) for one in (left, right)]
                return both(sides[0], sides[1], operator in ("&&", "-a"))
            one, other = written(left), written(right)
            if "$" in one + other or "`" in one + other:
                return UNKNOWN
            if operator in ("=", "==", "!="):
                return (one == other) == (operator != "!=") if not set(other) & set("*?[") else UNKNOWN
            return _ordered(operator, number(one), number(other))
        case "unary_expression":
            operator, text = words[0], written(node.children[-1])
            if operator == "!":
                met = compared(node.children[-1], written, number)
                return UNKNOWN if met is UNKNOWN else not met
            if operator not in ("-z", "-n") or "$" in text or "`" in text:
                return UNKNOWN
            return (text == "") == (operator == "-z")
        case "command" if words in (["true"], [":"], ["false"]):
            return words != ["false"]
        case _:
            return UNKNOWN


def _arithmetic(node: Any, number: Callable[[str], int | None]) -> bool | None:
    words = [child.text.decode("utf-8", "replace") for child in node.children]
    if node.type == "binary_expression" and len(words) == 3 and words[1] in _ORDERS:
        return _ordered(words[1], counted(node.children[0], number), counted(node.children[2], number))
    value = counted(node, number)
    return UNKNOWN if value is None else value != 0


def _ordered(operator: str, one: int | None, other: int | None) -> bool | None:
    if one is None or other is None or operator not in _ORDERS:
        return UNKNOWN
    return _ORDERS[operator](one, other)


def counted(node: Any, number: Callable[[str], int | None]) -> int | None:
    """The value of a sum, product or quotient of whole numbers; None where it is not known."""
    inner = node.named_children
    if node.type in ("arithmetic_expansion", "parenthesized_expression"):
        return counted(inner[0], number) if len(inner) == 1 else None
    if node.type == "binary_expression" and len(node.children) == 3:
        one, other = counted(node.children[0], number), counted(node.children[2], number)
        sign = node.children[1].text.decode()
        if one is None or other is None or sign not in _SUMS or (sign in "/%" and other == 0):
            return None
        found = _SUMS[sign](one, other)
        return found if abs(found) < 10**18 else None
    return number(node.text.decode("utf-8", "replace"))
