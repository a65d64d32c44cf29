"""Parameters that mean the same in a spec, put together as one group of weights."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

from placelogic.frontends.live.found import Model, Parameter
from placelogic.program.catalog import KINDS, SPLITS

TAKEN = {*KINDS, *SPLITS, "microbatches", "params", "gradients", "optimizer", "activations", "none", "M"}
"""Words that would read strangely, or mean something else, as the name of weights."""


class ProcessGroup(Struct, frozen=True):
    """`members` differ in their place in the model only. `ends`: the stages that have it, first or last,
    where it is one of them; `dealt`: it is dealt out over all stages."""

    name: str
    members: tuple[Parameter, ...]
    ends: str | None
    dealt: bool

    @property
    def first(self) -> Parameter:
        return self.members[0]

    @property
    def layers(self) -> int:
        return len(self.members)

    @property
    def padded(self) -> tuple[Fraction, frozenset[str]]:
        """How much larger messages about the group are than its parameters, over which axes."""
        elements = sum(member.elements for member in self.members)
        whole = sum((member.padded * member.elements for member in self.members), Fraction(0))
        return whole / max(elements, 1), frozenset(self.first.padded_over)

    def size(self) -> str:
        """Elements, as a product that shows the shape where all have one."""
        shapes = {member.shape for member in self.members}
        if len(shapes) > 1:
            return str(sum(member.elements for member in self.members))
        factors = [*([self.layers] if self.layers > 1 else []), *self.first.shape]
        return "*".join(map(str, factors)) or "1"


def grouped(model: Model) -> tuple[ProcessGroup, ...]:
    """In the order of the model. Two parameters are in one group when their names differ in numbers only,
    and everything that a spec says of them is the same."""
    buckets: dict[tuple[object, ...], list[Parameter]] = {}
    for parameter in model.parameters:
        key = (
            pattern(parameter.name), parameter.dims, parameter.kind, parameter.trained, parameter.optimizer,
            parameter.precision, parameter.place, parameter.gradient, parameter.remarks,
        )  # fmt: skip
        buckets.setdefault(key, []).append(parameter)
    patterns = [str(key[0]) for key in buckets]
    names = _names(patterns, model.names)
    return tuple(_group(name, members, model) for name, members in zip(names, buckets.values(), strict=True))


def pattern(name: str) -> str:
    """`layers.3.norm.weight` as `layers.*.norm.weight`."""
    return ".".join("*" if part.isdigit() else part for part in name.split("."))


def _group(name: str, members: Sequence[Parameter], model: Model) -> ProcessGroup:
    if model.pipeline is None:
        return ProcessGroup(name, tuple(members), None, False)
    stages = {member.stage for member in members}
    last = model.pipeline.stages - 1
    if stages == {0}:
        return ProcessGroup(name, tuple(members), "first", False)
    if stages == {last}:
        return ProcessGroup(name, tuple(members), "last", False)
    return ProcessGroup(name, tuple(members), None, True)


def _names(patterns: Sequence[str], axes: Sequence[str]) -> list[str]:
    """Short names where they are unique, else long ones, else numbered."""
    short = [_word(_without_list(one)) for one in patterns]
    words = [one if short.count(one) == 1 else _word(long) for one, long in zip(short, patterns, strict=True)]
    result: list[str] = []
    for word in words:
        word = f"{word}_weights" if word in TAKEN or word in axes else word
        name, count = word, 1
        while name in result:
            count += 1
            name = f"{word}_{count}"
        result.append(name)
    return result


def _without_list(name: str) -> str:
    """Without the list that numbered modules stand in: `layers.*.norm.weight` as `norm.weight`."""
    parts = name.split(".")
    kept = [part for part, after in zip(parts, [*parts[1:], ""], strict=True) if after != "*" and part != "*"]
    return ".".join(kept) if [part for part in kept if part != "weight"] else name


def _word(name: str) -> str:
    parts = [part for part in name.split(".") if part != "*"]
    if len(parts) > 1 and parts[-1] == "weight":
        parts.pop()
    word = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in "_".join(parts)) or "weights"
    return word if not word[0].isdigit() else f"module_{word}"
