"""Which children of a rule are names that a person chose, and what each is the name of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lark import Token

from placelogic.program.table import entries
from placelogic.syntax.ast import Identifier, Role
from placelogic.syntax.forms import FORMS

# By rule: the roles of its children in order, those that declare with `!`.
_ROLES: dict[str, tuple[str, ...]] = {
    "strategy_def": ("definition!",), "model_def": ("definition!",), "spec_def": ("spec!",), "param": ("size!",),
    "axis_decl": ("size!",), "axis": ("size!",), "let_item": ("size!",), "name": ("size",), "measure": ("", "spec"),
    "weights": ("weights!",), "sharded": ("dimension", ""), "gathered": ("dimension", ""),
    "kind": ("value",), "optimizer": ("value",), "precision_entry": ("", "value"),
    "call": ("definition",), "model": ("definition",), "named_arg": ("parameter",), "model_arg": ("parameter",),
    "loss": ("loss!",), "scale_loss": ("loss",), "expect": ("", "", "weights"),
    "accumulate": ("buffer!",), "replace": ("buffer!",), "reduce": ("buffer",), "scale_op": ("buffer",),
    "update": ("buffer",),
    "override": ("", "crossing"),
}  # fmt: skip
_ROLES |= {
    rule: tuple("weights" if name == "weights" else "" for name, _ in FORMS[rule].fields())
    for _, entry in entries() if entry.kinds
    for rule in entry.forms
}  # fmt: skip

_EACH = {"axis_ref": "size", "target": "target", "dims": "dimension!", "needs_row": "dimension"}
"""Rules of which every child is such a name."""


def identifiers(rule: str, items: Sequence[object]) -> Iterator[Identifier]:
    """The names among the children of one rule."""
    roles = (_EACH[rule],) * len(items) if rule in _EACH else _ROLES.get(rule, ())
    for role, item in zip(roles, items):
        if role and isinstance(item, Token):
            name: Role = role.rstrip("!")  # type: ignore[assignment]
            yield Identifier(str(item), name, role.endswith("!"), item.line or 0, item.column or 0)
