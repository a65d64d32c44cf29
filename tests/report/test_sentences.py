"""The catalogue of sentences: every entry is whole, and told somewhere; parts and words fill it in."""

from __future__ import annotations

import json
import re
from pathlib import Path
from string import Formatter

import pytest
from msgspec.structs import replace

import placelogic
from placelogic.report.diagnostic import finding, reworded
from placelogic.report.sentences import Sentence
from placelogic.source import NOWHERE

PACKAGE = Path(placelogic.__file__).parent
CATALOGUE = json.loads((PACKAGE / "report" / "sentences.json").read_text(encoding="utf-8"))
ENTRIES = [
    (code, variant, {**entries.get("default", {}), **entry})
    for code, entries in CATALOGUE.items()
    for variant, entry in entries.items()
    if variant != "default"
]
ALWAYS = {"weights", "name", "axes", "axis", "i"}


@pytest.mark.parametrize(("code", "variant", "entry"), ENTRIES, ids=lambda value: str(value)[:30])
def test_an_entry_says_what_is_wrong_and_what_to_do(code: str, variant: str, entry: dict) -> None:
    assert set(entry) <= {"message", "label", "help", "parts", "class", "shown", "closing"}
    assert entry["message"] and (entry.get("help") or code.startswith("NT"))
    assert entry.get("label") or code[:2] in ("UN", "VA", "NT")
    assert entry.get("class", "wrong") in ("wrong", "scale", "nonuniform", None)
    texts = [entry["message"], entry.get("label", ""), entry.get("help", ""), *entry.get("shown", ()), *entry.get("parts", {}).values()]
    assert not any("\n" in text for text in texts)
    words = {name for text in texts for _, name, _, _ in Formatter().parse(text) if name is not None}
    words -= {*ALWAYS, *entry.get("parts", {})}
    dummy = Sentence(code, variant, "w", ("dp", "tp"), {word: f"<{word}>" for word in words})
    if code in ("publication", "alignment"):
        dummy = Sentence("SC04", f"{code}: {variant}", "w", ("dp",), {word: f"<{word}>" for word in words})
    told = finding(dummy, NOWHERE)
    assert told.message and "{" not in told.message.replace("{ master", "")


def test_every_entry_is_told_by_some_code() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    literals = set(re.findall(r'"([^"\n]+)"', sources)) | set(re.findall(r"'([^'\n]+)'", sources))
    untold = [(code, variant) for code, variant, _ in ENTRIES if variant not in literals]
    assert untold == []


def test_words_and_parts() -> None:
    one = Sentence("GI01", "missing", "w", ("dp", "tp"), {"average": True, "loss": True, "term": "`aux`"})
    assert one.text("message") == "the gradient of `w` (loss `aux`) is never summed over dp, tp: contributions are missing"
    assert one.text("help") == "sum it over dp, tp, or average where each share divides by its own tokens"
    assert reworded(replace(finding(one, NOWHERE), sentence=one), weights="`v` and 2 more").startswith("the gradient of `v` and 2 more (loss")
    assert Sentence("SC04", "publication: too early", "w", ("dp",)).shown(3) == (
        "new shard 3, old parameters elsewhere", "new parameters",
    )  # fmt: skip


def test_a_word_that_is_not_given_is_no_part() -> None:
    with pytest.raises(KeyError):
        Sentence("SC06", "optimizer", "w", ("dp",)).text("message")
