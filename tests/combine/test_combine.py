"""`placelogic combine`: every answer is the verdict on the spec it prints."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from placelogic.cli import main
from placelogic.combine.answer import Combination, Question, answer
from placelogic.combine.compose import compose
from placelogic.combine.matrix import page, pairs
from placelogic.combine.strategies import scope_of, standard_strategies, strategy
from placelogic.report.matrix import cell
from placelogic.session.check import check_text
from placelogic.session.settings import Settings
from placelogic.source import NOWHERE

PAGE = Path(__file__).parents[2] / "docs" / "combine.md"
WORDS = {"proved": ("sound", "costly"), "refuted": ("unsound",), "error": ("meaningless",)}


def decided(*words: str, **options) -> Combination:
    return answer(Question(words, **options), full=False)


def test_strategies_are_the_files_of_the_library() -> None:
    names = standard_strategies()
    assert {"zero2", "pipeline", "offload"} <= set(names)
    assert not {"llama", "gpt", "moe"} & set(names)


@pytest.mark.parametrize(
    ("name", "axes", "optional"),
    [
        ("zero2", ("d",), ()),
        ("hsdp", ("shard", "replicate"), ()),
        ("pipeline", ("p",), ()),  # schedule and chunks are no axes
        ("fsdp", ("d",), ()),
        ("offload", ("d",), ("d",)),
        ("sequence_parallel", ("t",), ()),
        ("distributed_optimizer", ("d",), ()),  # an axis only because zero1 takes it for one
    ],
)
def test_which_parameters_are_axes(name: str, axes: tuple[str, ...], optional: tuple[str, ...]) -> None:
    found = strategy(name, scope_of(()), NOWHERE)
    assert found.axes == axes
    assert found.optional == frozenset(optional)


@pytest.mark.parametrize(
    ("words", "same", "mesh", "use"),
    [
        (("zero2", "pipeline"), False, "d, p", "zero2(d) * pipeline(p)"),
        (("zero2", "zero3"), False, "d, d2", "zero2(d) * zero3(d2)"),
        (("zero2", "pipeline"), True, "d", "zero2(d) * pipeline(d)"),
        (("hsdp", "zero1"), True, "shard, replicate", "hsdp(shard, replicate) * zero1(shard)"),
        (("offload", "zero1"), False, "d", "offload() * zero1(d)"),
        (("offload", "zero1"), True, "d", "offload(d) * zero1(d)"),
        (("zero2(dp) * pipeline(pp, schedule = zbv)",), False, "dp, pp", "zero2(dp) * pipeline(pp, schedule = zbv)"),
        (("pipeline(schedule = zbv)", "zero1"), False, "p, d", "pipeline(p, schedule = zbv) * zero1(d)"),
        (("zero1(edp*ep)",), False, "edp, ep", "zero1(edp*ep)"),
        (("hsdp(replicate = r)",), False, "r, shard", "hsdp(shard, replicate = r)"),
    ],
)
def test_axes_are_declared(words: tuple[str, ...], same: bool, mesh: str, use: str) -> None:
    text = compose(words, same).text
    assert f"mesh {mesh}\n" in text
    assert f"use {use}\n" in text
    assert check_text(text, "c", Settings(fixes=None)).specs[0].verdict in WORDS


def test_names_of_sizes_give_way_to_axes() -> None:
    one = decided("zero1(h)", "tensor_parallel(M)")
    assert "let h2, L, V, E\nmicrobatches M2\n" in one.composition.text
    assert one.answer == "sound"


def test_experts_are_routed_where_tokens_are_split() -> None:
    assert "kind expert, routed over e }" in compose(("zero2", "expert_parallel")).text
    assert "kind expert, routed over e*e2 }" in compose(("expert_parallel", "expert_parallel")).text
    assert "routed" not in compose(("zero2", "tensor_parallel")).text


@pytest.mark.parametrize(
    ("words", "said", "factor"),
    [
        (("zero2", "pipeline"), "costly", "(M + 1)/2"),
        (("zero3", "pipeline"), "costly", "M"),
        (("fsdp(d, reshard_after_forward = false)", "pipeline"), "costly", "M"),
        (("zero1", "pipeline"), "sound", None),
        (("zero3", "sequence_parallel", "pipeline", "context_parallel"), "costly", "M"),
        (("zero2", "tensor_parallel"), "sound", "(M + 1)/2"),  # a cost of its own, not of the combination
        (("zero1(d)", "data_parallel(d)"), "unsound", None),
        (("zero2(d)", "pipeline(d)"), "meaningless", None),
        (("tensor_parallel(t)", "zero1(t)"), "unsound", None),
    ],
)
def test_answers(words: tuple[str, ...], said: str, factor: str | None) -> None:
    one = decided(*words)
    assert one.answer == said
    assert {cost.factor for cost in one.costs} == ({factor} if factor else set())
    assert said in WORDS[check_text(one.composition.text, "c", Settings(fixes=None)).specs[0].verdict]


def test_micro_batches_of_one_cost_nothing_more() -> None:
    assert decided("zero2", "pipeline", at={"M": 1}).answer == "sound"
    (cost,) = decided("zero2", "pipeline", at={"M": 8}).costs
    assert cost.factor == "9/2"


def test_statements_can_be_added() -> None:
    one = decided("zero1", "tensor_parallel", more=("optimizer muon for matrix",))
    assert (one.answer, one.codes) == ("unsound", ("SC06",))


def test_every_condition_is_refuted_when_broken() -> None:
    one = answer(Question(("zero1", "sequence_parallel", "pipeline")))
    assert one.answer == "sound"
    told = {condition.text: condition.code for condition in one.conditions}
    assert told["gradients of `norm` and `router` are summed over t"] == "GI01"
    assert told["gradients of `embed` are summed over p"] == "GI01"
    assert told["gradients of `attn`, `norm`, `embed`, `expert` and `router` are averaged over d"] == "GI01"
    assert [code for text, code in told.items() if "new parameters" in text] == ["SC04"]
    assert {"SC05", "SC06", "FW02", "GI04", "GI07"} <= set(told.values())
    assert one.together is not None and one.together.answer == "meaningless"
    for condition in one.conditions:
        if condition.code != "GI07":  # that one replaces the clip statement
            broken = check_text(one.composition.extended(condition.broken), "c", Settings(fixes=None)).specs[0]
            assert broken.verdict == "refuted"
            assert condition.code in {finding.code for finding in broken.findings}


def test_what_is_overridden_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states = "params replicated, optimizer replicated, gradients replicated"
    (tmp_path / "ours.place").write_text(
        "strategy cut(d) { place * over d { optimizer sharded } }\n"
        f"strategy whole(d) {{ place matrix, vector, embedding, router, expert over d {{ {states} }} }}\n"
    )
    monkeypatch.chdir(tmp_path)
    assert decided("cut", "whole", same_axis=True, imports=("ours.place",)).overridden == ("cut",)
    assert decided("pipeline", "tensor_parallel").overridden == ()
    assert decided("zero1", "distributed_optimizer", same_axis=True).overridden == ()


def test_own_strategies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ours.place").write_text("strategy halves(a, b) { use zero1(a) * tensor_parallel(b) }\n")
    monkeypatch.chdir(tmp_path)
    one = decided("halves", "pipeline", imports=("ours.place",))
    assert one.composition.name == "halves(a, b) * pipeline(p)"
    assert one.answer == "sound"


# --- the command --------------------------------------------------------------------------------


def test_costly_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["combine", "zero2", "pipeline"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(
        "zero2(d) * pipeline(p): sound, but costly, for every d, p, M\n"
        "  costs: over d, `attn`, `norm`, `embed`, `expert`, `router`: reduce-scatter of gradients M times; all-gather of "
        "updated params once. That is (M + 1)/2 times the traffic of a step with one micro-batch, and the stages over p need "
        "micro-batches. Kept whole, the gradients would be reduced once, and take d times the room\n"
    )
    assert "    - gradients of `embed` are summed over p (else GI01 at p = 2)\n" in out
    assert "  on one axis: zero2(d) * pipeline(d): no meaning: PL313, axis `d` splits batch, so" in out


def test_unsound_with_its_counterexample(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["combine", "zero1", "pipeline", "--with", "sync embed over p by none"]) == 1
    out = capsys.readouterr().out
    assert out.startswith(
        "zero1(d) * pipeline(p): unsound\n\nerror[GI01]: the gradient of `embed` is never summed over p"
    )
    assert "= smallest counterexample: p = 2 (everything else 1)" in out


def test_no_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["combine", "data_parallel(d)", "ulysses(d)"]) == 2
    out = capsys.readouterr().out
    assert out.startswith("data_parallel(d) * ulysses(d): no meaning: the strategies contradict each other")
    assert "error[PL310]: axis `d` splits batch (line 10) and sequence" in out


def test_print_is_a_spec_with_the_same_verdict(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["combine", "zero3", "pipeline", "--print"]) == 0
    file = tmp_path / "start.place"
    file.write_text(capsys.readouterr().out)
    assert main(["check", str(file)]) == 0
    assert main(["fmt", "--check", str(file)]) == 0


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["combine", "zero2", "pipeline", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "placelogic/combine/1"
    holds_to_the_schema(found)
    (one,) = found["combinations"]
    assert one["answer"] == "costly"
    assert one["spec"]["verdict"] == "proved"
    assert one["costs"][0]["sent"] == [
        {"operation": "reduce-scatter", "what": "gradients", "times": "M"},
        {"operation": "all-gather", "what": "updated params", "times": "1"},
    ]
    assert {"text", "broken_by", "code", "at", "finding"} == set(one["conditions"][0])
    assert one["on_one_axis"]["answer"] == "meaningless"


def holds_to_the_schema(found: dict[str, Any]) -> None:
    """The object is of its form, and the form has every key of it."""
    folder = files("placelogic.report")
    check, combine = (
        json.loads(folder.joinpath(f"{name}-1.schema.json").read_text(encoding="utf-8")) for name in ("check", "combine")
    )
    jsonschema.Draft202012Validator.check_schema(combine)
    registry = Registry().with_resource(check["$id"], Resource.from_contents(check))
    jsonschema.Draft202012Validator(combine, registry=registry).validate(found)
    for kind, one in {"combination": found["combinations"][0], **_pieces(found["combinations"][0])}.items():
        assert set(one) == set(combine["$defs"][kind]["properties"]) == set(combine["$defs"][kind]["required"])


def _pieces(one: dict[str, Any]) -> dict[str, Any]:
    return {name: one[f"{name}s"][0] for name in ("cost", "condition") if one[f"{name}s"]}


def test_json_of_what_is_unsound(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["combine", "zero1(d)", "data_parallel(d)", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    holds_to_the_schema(found)
    assert found["combinations"][0]["answer"] == "unsound"
    assert found["combinations"][0]["spec"]["findings"][0]["code"] == "CC01"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "placelogic combine: name two strategies or more, or say --all (see placelogic combine --help)\n"),
        (["zero1", "--all"], "placelogic combine: --all takes no strategies, "),
        (["zero1", "pipeline", "--format", "markdown"], "placelogic combine: --format markdown goes with --all "),
    ],
)
def test_wrong_use(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["combine", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(said)


def test_unknown_and_unreadable_strategies(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["combine", "zero9", "pipeline"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error[PL203]: there is no strategy `zero9`\n")
    assert "did you mean `zero3`?" in err
    assert main(["combine", "zero1", "pipeline("]) == 2
    assert "error[PL102]: this `(` is not closed" in capsys.readouterr().err
    assert main(["combine", "llama", "pipeline"]) == 2
    assert "error[PL203]: there is no strategy `llama`" in capsys.readouterr().err


# --- the matrix ---------------------------------------------------------------------------------


def cells(section: str) -> dict[tuple[str, str], str]:
    """What the page says of each pair."""
    _, _, text = PAGE.read_text(encoding="utf-8").partition(f"## {section}\n")
    rows = [line for line in text.split("\n## ")[0].split("\n") if line.startswith("|")]
    head, _, *body = [[part.strip().strip("`") for part in row.strip("|").split("|")] for row in rows]
    return {(head[i], row[0]): word for row in body for i, word in enumerate(row) if i and word}


def test_the_page_has_every_pair() -> None:
    names = standard_strategies()
    for section in ("On axes of their own", "On one axis"):
        assert len(cells(section)) == len(names) * (len(names) - 1) // 2


@pytest.mark.parametrize("pair", [("pipeline", "zero2"), ("pipeline", "zero3"), ("tensor_parallel", "zero1")])
@pytest.mark.parametrize(("section", "same"), [("On axes of their own", False), ("On one axis", True)])
def test_cells_of_the_page(section: str, same: bool, pair: tuple[str, str]) -> None:
    one = decided(*pair, same_axis=same)
    verdict = check_text(one.composition.text, "c", Settings(fixes=None)).specs[0].verdict
    assert cells(section)[pair] == cell(one)
    assert (
        re.split(r"[, ]", cell(one))[0]
        in {"proved": ("sound", "costly"), "refuted": ("unsound",), "error": ("no",)}[verdict]
    )


@pytest.fixture(scope="module")
def every() -> dict[bool, tuple[Combination, ...]]:
    """The answer on each pair, on axes of their own (False) and on one (True)."""
    return {same: tuple(pairs(same)) for same in (False, True)}


@pytest.mark.slow
@pytest.mark.parametrize("same", [False, True])
def test_every_third_cell_is_the_verdict_of_check(
    same: bool, every: dict[bool, tuple[Combination, ...]], tmp_path: Path
) -> None:
    told = cells("On one axis" if same else "On axes of their own")
    for one in every[same][same::3]:
        first, second = one.composition.parts
        file = tmp_path / f"{first.name}_{second.name}.place"
        file.write_text(one.composition.text)
        expected = {"sound": 0, "costly": 0, "unsound": 1, "no": 2}[re.split(r"[, ]", told[first.name, second.name])[0]]
        assert main(["check", "--quiet", str(file)]) == expected, file.name


@pytest.mark.slow
def test_the_page_is_up_to_date(
    every: dict[bool, tuple[Combination, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placelogic.combine.matrix.pairs", lambda same_axis: every[same_axis])
    assert PAGE.read_text(encoding="utf-8") == page(), "placelogic combine --all --format markdown > docs/combine.md"


def test_the_matrix_on_a_screen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("placelogic.combine.matrix.standard_strategies", lambda: ("pipeline", "zero1", "zero2"))
    assert main(["combine", "--all"]) == 0
    assert capsys.readouterr().out == (
        " 1 pipeline\n"
        " 2 zero1     .\n"
        " 3 zero2     c  .\n"
        "             1  2\n"
        "\n"
        ". sound   c sound, but costly   X unsound   ! no meaning   ? undecided\n"
        "\n"
        "pipeline(p) * zero2(d): sound, but costly: (M + 1)/2 times over d\n"
    )


def test_what_a_framework_refuses_stands_beside_the_mathematics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["combine", "zero2", "pipeline", "--framework", "deepspeed"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("zero2(d) * pipeline(p): sound, but costly")
    assert "note[UB04]: DeepSpeed refuses ZeRO stages 2 and 3 with pipeline parallelism" in out
    assert main(["combine", "zero2", "pipeline", "--framework", "torchtitan", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["combinations"][0]["refused"] == []
    assert main(["combine", "zero2", "pipeline", "--framework", "deepsped"]) == 2
    assert "did you mean `deepspeed`?" in capsys.readouterr().err
