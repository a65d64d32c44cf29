"""The tables of settings, refusals and faults, and the runtime strategies: whole, sourced, and loadable."""

from __future__ import annotations

import re
from importlib import resources

import pytest

import placelogic
from placelogic.elaborate.library import FOLDERS, standard, standard_names
from placelogic.frontends.facts import all_hold, holds
from placelogic.frontends.faults import faults
from placelogic.frontends.known import known, matches
from placelogic.frontends.load import FRAMEWORKS
from placelogic.frontends.refusals import refused_together, rules
from placelogic.syntax.format import format_text

RUNTIME = standard_names(FOLDERS[1])


@pytest.mark.parametrize("name", RUNTIME)
def test_every_runtime_strategy_has_its_source_and_is_found_by_name(name: str) -> None:
    text = resources.files("placelogic").joinpath(*FOLDERS[1].split("/")).joinpath(f"{name}.place").read_text("utf-8")
    assert re.search(r"^# Source: .*", text, re.MULTILINE), "where it is from"
    assert format_text(text, f"{name}.place") == text
    definition = standard(name)
    assert definition is not None and definition.node.name == name


def test_a_runtime_strategy_is_used_like_any_other() -> None:
    text = """\
mesh dp
let P
microbatches M
weights model { size P }
use deepspeed_zero1(dp) * deepspeed_accumulation()
"""
    (spec,) = placelogic.check(text).specs
    assert spec.verdict == "proved" and spec.obligations.stated


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_tables_are_whole(framework: str) -> None:
    table = known(framework)
    assert table.quiet and not set(table.quiet) & set(table.refused)
    for rule in rules(framework):
        assert rule.reason in ("soundness", "divisibility", "cost", "unbuilt")
        assert re.search(r"\d\.\d", rule.source) and "/" in rule.source, "project, version and file"
        assert not all_hold(rule.when, {}), "no rule concerns a configuration of which nothing is known"
    for fault in faults(framework):
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", fault.report) and fault.source and fault.when
        assert fault.add or fault.drop


def test_questions_without_a_file() -> None:
    (rule,) = refused_together("deepspeed", ["zero2", "pipeline"])
    assert (rule.name, rule.reason) == ("D1", "unbuilt")
    assert not refused_together("torchtitan", ["fsdp", "pipeline"])
    assert {rule.name for rule in refused_together("megatron", ["fsdp", "distributed_optimizer"])} == {"M32"}


def test_comparisons() -> None:
    facts: dict[str, object] = {"a": 6, "b": 4, "c": None}
    assert holds(("a", ">", 5), facts) and holds(("a", "not multiple of", "$b"), facts)
    assert not holds(("a", "not multiple of", 3), facts) and not holds(("c", ">", 1), facts)
    assert holds(("a", "not multiple or divisor of", 4), facts) and not holds(
        ("b", "not multiple or divisor of", 8), facts
    )
    assert holds(("c", "==", None), facts) and holds(("b", "in", [4, 5]), facts)
    with pytest.raises(ValueError, match="no comparison"):
        holds(("a", "~", 1), facts)


def test_patterns() -> None:
    assert (
        matches("a.b.c", ("a.b",)) == "a.b" and matches("a.bx", ("a.b*",)) == "a.b*" and matches("ax", ("a",)) is None
    )
