"""What is told of a fault: an entry of the catalogue sentences.json, and the words that fill it in.

The catalogue is keyed by code and variant. Which variant it is, and with which words, is decided where the fault is
found; the text is made when somebody is told, so that a proof makes none. A sentence that comes under several codes
stands under a name of its own: its variant is `NAME: VARIANT`. An entry lacks what the `default` of its code says.
`parts` are pieces of text that stand in an entry where a word of their name is True, and nowhere else; `shown` is
what device `{i}` along the first axis has, and what a single device has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

FaultClass = Literal["wrong", "scale", "nonuniform"]
Words = Mapping[str, str | bool]


class Sentence(Struct, frozen=True):
    """`words` fill the entry, beside `{weights}` (quoted), `{name}` (not), `{axes}` and `{axis}` (the first one).
    `fault`: its class, where the entry cannot know."""

    code: str
    variant: str
    weights: str | None = None
    axes: tuple[str, ...] = ()
    words: Words = field(default_factory=dict)
    fault: FaultClass | None = None

    def text(self, part: str, **words: str) -> str | None:
        """The message, label or help. `words` stand in for those of the sentence."""
        template = _entry(self.code, self.variant).get(part)
        return None if template is None else self._filled(template, words)

    def shown(self, device: int = 0) -> tuple[str, str] | None:
        """What a device has, and what a single device has instead; None where there is nothing of the kind."""
        pair = _entry(self.code, self.variant).get("shown")
        if pair is None:
            return None
        applies, single = (self._filled(template, {"i": str(device)}) for template in pair)
        return applies, single

    @property
    def wrong(self) -> FaultClass | None:
        """The class of the fault."""
        return self.fault or _entry(self.code, self.variant).get("class", "wrong")

    @property
    def factor(self) -> str | None:
        """By what a gradient is wrong, where that is one factor."""
        word = self.words.get("factor")
        return word if isinstance(word, str) else None

    def _filled(self, template: str, words: Mapping[str, str]) -> str:
        known = {"axes": ", ".join(self.axes), "axis": next(iter(self.axes), "")}
        if self.weights is not None:
            known |= {"weights": f"`{self.weights}`", "name": self.weights}
        known |= {name: word for name, word in self.words.items() if isinstance(word, str)} | words
        return template.format_map(_Filling(known, _entry(self.code, self.variant).get("parts", {}), self.words))


class _Filling(dict[str, str]):
    """The words, and the parts that are wanted."""

    def __init__(self, known: Mapping[str, str], parts: Mapping[str, str], wanted: Words) -> None:
        super().__init__(known)
        self._parts, self._wanted = parts, wanted

    def __missing__(self, name: str) -> str:
        part = self._parts[name]
        return part.format_map(self) if self._wanted.get(name) is True else ""


def _entry(code: str, variant: str) -> Mapping[str, Any]:
    section, _, name = variant.rpartition(": ")
    entries = _catalogue()[section or code]
    return {**entries.get("default", {}), **entries[name]}


@lru_cache(maxsize=1)
def _catalogue() -> Mapping[str, Any]:
    with open(os.path.join(os.path.dirname(__file__), "sentences.json"), "rb") as file:
        return msgspec.json.decode(file.read())
