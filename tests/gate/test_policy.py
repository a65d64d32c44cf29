"""Comments and the baseline: what they let pass, what they cannot, and what is told of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from placelogic.cli import main
from placelogic.gate.allow import allowances
from tests.gate.conftest import BAD, GOOD, HEAD, LIBRARY, SEVERAL, VACUOUS

WHY = 'reason="divided later"'
AN_ERROR = "cannot be accepted: it is an error, with which the spec has no meaning yet"


def gate(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["gate", "--no-cache", *arguments])
    out, err = capsys.readouterr()
    return code, out + err


def put(repository: Path, text: str, name: str = "a.place") -> None:
    (repository / "specs" / name).write_text(text)


@pytest.mark.parametrize(
    "text",
    [
        f"sync norm over tp by sum # placelogic: allow GI02 {WHY}",
        f"# placelogic: allow GI02 {WHY}\nsync norm over tp by sum",
        f"# placelogic: allow GI02 {WHY}\n# it is known\n\nsync norm over tp by sum",
        f"# placelogic: allow GI02, GI03 {WHY}\nsync norm over tp by sum",
        f"#placelogic:allow GI03 {WHY}\n#placelogic:allow   GI02   {WHY}\nsync norm over tp by sum",
        f"sync norm over tp by sum # summed twice # placelogic: allow GI02 {WHY}",
        "sync norm over tp by sum # placelogic: allow GI02 reason = \"ünïcode, # and 'quotes'\"",
    ],
)
def test_it_passes(repository: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    put(repository, HEAD + text + "\n")
    code, out = gate(capsys)
    assert code == 0, out
    assert "specs/a.place: ok (1 refuted, accepted" in out
    assert main(["check", "specs", "-q"]) == 1, "the verdict is what it was"


@pytest.mark.parametrize(
    "text",
    [
        f"# placelogic: allow GI01 {WHY}\nsync norm over tp by sum",
        f"# placelogic: allow GI02 {WHY}\nsync attn over dp by mean\nsync norm over tp by sum",
        f"sync norm over tp by sum\n# placelogic: allow GI02 {WHY}\n",
        f"sync norm over tp by sum\n# placelogic: allow GI02 {WHY}\nsync attn over dp by mean",
    ],
)
def test_not_this_one(repository: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    put(repository, HEAD + text + "\n")
    code, out = gate(capsys)
    assert code == 1
    assert "error[GI02]" in out
    assert "warning[EX03]: nothing " in out


@pytest.mark.parametrize(
    ("comment", "code", "said"),
    [
        ("allow GI02", "PL031", "the reason why GI02 may pass is missing"),
        ('allow GI02 reason=""', "PL031", "the reason why GI02 may pass is missing"),
        ('allow GI02 reason="  "', "PL031", "the reason why GI02 may pass is missing"),
        ("allow GI02 reason=later", "PL030", "the reason stands in quotes"),
        ("allow", "PL030", "this comment does not say what it allows"),
        (f"allow norm {WHY}", "PL030", "this comment does not say what it allows"),
        (f"allow GI02 {WHY} please", "PL030", "this comment does not say what it allows"),
        (f"ignore GI02 {WHY}", "PL030", "`ignore` is no word that placelogic knows in a comment"),
        (f"allow GI99 {WHY}", "PL032", "there is no finding `GI99`"),
        (f"allow gi02 {WHY}", "PL032", "there is no finding `gi02`"),
        (f"allow UN01 {WHY}", "PL033", "`UN01` cannot be accepted: nobody knows whether the spec is right"),
        (f"allow VA01 {WHY}", "PL033", "`VA01` cannot be accepted: there is nothing to prove"),
        (f"allow CL02 {WHY}", "PL033", "`CL02` cannot be accepted: nobody knows whether the claim is true"),
        (f"allow PL310 {WHY}", "PL033", f"`PL310` {AN_ERROR}"),
        (f"allow PL900 {WHY}", "PL033", f"`PL900` {AN_ERROR}"),
        (f"allow EX01 {WHY}", "PL033", "`EX01` cannot be accepted: it is about what somebody asked for"),
    ],
)
def test_said_wrongly(repository: Path, comment: str, code: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    put(repository, HEAD + f"sync norm over tp by sum # placelogic: {comment}\n")
    got, out = gate(capsys)
    assert got == 1, "it lets nothing pass"
    assert f"error[{code}]: {said}\n --> specs/a.place:7:26\n" in out
    put(repository, HEAD + f"sync norm over tp by mean # placelogic: {comment}\n")
    assert gate(capsys)[0] == 2, "and is an error by itself"


def test_prose_is_no_suppression() -> None:
    text = 'import "a#b placelogic: allow GI02" \n# placelogic: see the docs\n# about placelogic\n'
    assert allowances(text, "a.place") == ([], [])


def test_undecided_vacuous_and_errors_cannot_be_accepted(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(repository, f"# placelogic: allow GI02 {WHY}\n" + VACUOUS)
    assert gate(capsys)[0] == 3
    put(repository, f"# placelogic: allow GI02 {WHY}\n" + BAD)
    code, out = gate(capsys, "--rlimit", "1")
    assert code == 3 and "undecided" in out
    assert "EX03" not in out, "what an undecided spec needs is not known"


def test_consequences_go_with_their_cause(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = HEAD.replace("tensor_parallel", "sequence_parallel") + "sync norm over tp by none"
    put(repository, text + "\n")
    assert "(a consequence of the finding above)" in gate(capsys)[1]
    put(repository, text + f" # placelogic: allow GI01 {WHY}\n")
    code, out = gate(capsys, "--format", "json")
    (spec,) = json.loads(out)["files"][0]["specs"]
    assert (code, spec["verdict"], spec["accepted"]) == (0, "refuted", True)
    assert [finding["accepted"]["reason"] for finding in spec["findings"] if finding["severity"] == "error"] == [
        "divided later",
        "divided later",
    ]
    put(repository, text + f" # placelogic: allow SC01 {WHY}\n")
    assert gate(capsys)[0] == 1, "a cause does not go with its consequence"


def test_every_cause_needs_one(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = HEAD + f"# placelogic: allow GI02 {WHY}\nsync norm over tp by sum\nscale attn by 2\n"
    put(repository, text)
    code, out = gate(capsys)
    assert code == 1 and "error[GI03]" in out and "error[GI02]" not in out
    put(repository, text.replace("scale attn", f"# placelogic: allow GI03 {WHY}\nscale attn"))
    assert gate(capsys)[0] == 0


def test_one_line_of_several_specs(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(repository, SEVERAL.replace("by sum", f"by sum # placelogic: allow GI02 {WHY}"))
    assert gate(capsys)[0] == 0
    put(
        repository,
        HEAD + f"sync norm over tp by sum # placelogic: allow GI02 {WHY}\nspec a {'{'}\n{'}'}\nspec b {'{'}\n{'}'}\n",
    )
    code, out = gate(capsys)
    assert code == 0 and "2 refuted, accepted" in out


def test_an_expected_refutation_needs_none(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(repository, HEAD + f"sync norm over tp by sum # placelogic: allow GI02 {WHY}\nexpect refuted GI02\n")
    code, out = gate(capsys)
    assert code == 0
    assert "warning[EX03]: nothing in line 7 needs GI02 to be allowed\n" in out


def test_unused_ones_are_warnings_that_may_fail(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(repository, GOOD + f"# placelogic: allow GI02 {WHY}\nsync attn over dp by mean\n")
    code, out = gate(capsys)
    assert code == 0
    assert "warning[EX03]: nothing in line 9 needs GI02 to be allowed\n --> specs/a.place:8:1\n" in out
    assert "specs/a.place: ok (1 proved; 1 warning)\n" in out
    for option in ("EX03", "warnings"):
        code, out = gate(capsys, "--fail-on", option)
        assert code == 1 and "error[EX03]" in out and "specs/a.place: FAILS (1 proved)\n" in out


def test_a_library_is_judged_when_all_is_known(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(repository, LIBRARY + f"# placelogic: allow GI02 {WHY}\n", "lib.place")
    put(repository, GOOD)
    assert "EX03" in gate(capsys)[1]
    assert "EX03" not in gate(capsys, "specs/lib.place", "specs/a.place")[1]


def test_denied_notes(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """NT04: reduced in every micro-batch, which is right and costly."""
    text = HEAD + "sync norm over tp by mean"
    put(repository, text + "\n")
    assert gate(capsys)[0] == 0
    code, out = gate(capsys, "--fail-on", "NT04", "--format", "json")
    (spec,) = json.loads(out)["files"][0]["specs"]
    assert (code, spec["verdict"]) == (1, "proved")
    assert [f["code"] for f in spec["findings"] if f["denied"]] == ["NT04"]
    for form, mark in (("github", "NT04%3A"), ("sarif", '"NT04"'), ("junit", "NT04")):
        assert "NT04" not in gate(capsys, "--format", form)[1]
        assert main(["check", "specs/a.place", "--format", form]) == 0
        assert "NT04" not in capsys.readouterr().out
        assert mark in gate(capsys, "--fail-on", "NT04", "--format", form)[1]
    code, out = gate(capsys, "--fail-on", "NT04")
    assert "error[NT04]" in out and "specs/a.place: FAILS (1 proved)\n" in out
    line = out.split("specs/a.place:")[1].split(":")[0]
    lines = text.split("\n")
    lines.insert(int(line) - 1, f"# placelogic: allow NT04 {WHY}")
    put(repository, "\n".join(lines) + "\n")
    assert gate(capsys, "--fail-on", "NT04")[0] == 0


def test_a_denied_warning_of_a_spec_that_is_as_expected(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(repository, BAD + "random norm over dp same\nexpect refuted GI02\n")
    code, out = gate(capsys)
    assert code == 0 and "warning[SC07]" in out
    for form in ("text", "github"):
        code, out = gate(capsys, "--fail-on", "SC07", "--format", form)
        assert code == 1
        assert "SC07" in out and "GI02" not in out


def test_another_factor_is_another_fault(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    allowed = f'# placelogic: allow GI03 factor="2" {WHY}\nscale attn by '
    put(repository, HEAD + allowed + "2\n")
    code, out = gate(capsys)
    assert code == 0 and "EX0" not in out
    put(repository, HEAD + allowed + "1000\n")
    code, out = gate(capsys)
    assert code == 1 and "error[GI03]: " in out
    assert "warning[EX03]: nothing in line 8 needs GI03 to be allowed: the factor is 1000\n" in out
    put(repository, HEAD + allowed.replace('factor="2" ', "") + "1000\n")
    code, out = gate(capsys)
    assert code == 0 and "warning[EX06]: this comment lets GI03 pass whatever the factor is\n" in out
    assert '= help: it is 1000 now: write `factor="1000"`\n' in out
    assert gate(capsys, "--fail-on", "EX06")[0] == 1


# --- the baseline ------------------------------------------------------------------------------


def written(repository: Path, capsys: pytest.CaptureFixture[str], reason: str = "there before") -> dict:
    code, out = gate(capsys, "--write-baseline", "--reason", reason)
    assert code == 0, out
    return json.loads((repository / "placelogic-baseline.json").read_text(encoding="utf-8"))


def test_the_baseline_accepts_what_was_there(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "placelogic.toml").write_text('paths = ["specs"]\n')
    put(repository, BAD)
    put(repository, SEVERAL, "b.place")
    baseline = written(repository, capsys)
    assert [(one["path"], one["spec"], one["code"], one["weights"], one["reason"]) for one in baseline["accepted"]] == [
        ("specs/a.place", "a", "GI02", "norm", "there before"),
        ("specs/b.place", "wrong", "GI02", "norm", "there before"),
    ]
    assert gate(capsys)[0] == 1, "it must be named"
    (repository / "placelogic.toml").write_text('paths = ["specs"]\nbaseline = "placelogic-baseline.json"\n')
    code, out = gate(capsys)
    assert code == 0
    assert "GI02 specs/b.place:10: accepted by the baseline: there before" in out
    put(repository, "# moved\n\n" + BAD)
    assert gate(capsys)[0] == 0, "it stays with its finding when lines move"
    put(repository, BAD + "scale attn by 2\n")
    code, out = gate(capsys)
    assert code == 1 and "error[GI03]" in out, "a new finding is not accepted"


def test_an_entry_of_the_baseline_is_of_one_fault(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line of the finding is that of the weights, whatever `let` says."""
    (repository / "placelogic.toml").write_text('paths = ["specs"]\nbaseline = "placelogic-baseline.json"\n')
    text = HEAD + "let k = 2\nscale attn by k\n"
    put(repository, text)
    baseline = written(repository, capsys)
    assert [one["fault"] for one in baseline["accepted"]] == ["scale, times 2"]
    put(repository, text.replace("k = 2", "k = 1000"))
    code, out = gate(capsys)
    assert code == 1 and "error[GI03]" in out
    assert "GI03 any more: it is `scale, times 1000` and was `scale, times 2`\n" in out
    del baseline["accepted"][0]["fault"]  # as it was written once
    (repository / "placelogic-baseline.json").write_text(json.dumps(baseline, indent=2))
    code, out = gate(capsys)
    assert code == 0 and "warning[EX06]: this entry lets GI03 pass whatever the factor is\n" in out
    assert [one["fault"] for one in written(repository, capsys)["accepted"]] == ["scale, times 1000"]


def test_the_baseline_forgets_what_is_mended(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "placelogic.toml").write_text('paths = ["specs"]\nbaseline = "placelogic-baseline.json"\n')
    put(repository, BAD)
    put(repository, BAD, "b.place")
    written(repository, capsys)
    put(repository, GOOD)
    code, out = gate(capsys)
    assert code == 0
    assert "warning[EX03]: nothing in `specs/a.place` needs this entry for GI02 any more\n" in out
    assert "--> placelogic-baseline.json:9:" in out
    assert "EX03" not in gate(capsys, "specs/b.place")[1], "of files that are not looked at nothing is known"
    kept = written(repository, capsys, "another reason")
    assert [(one["path"], one["reason"]) for one in kept["accepted"]] == [("specs/b.place", "there before")]


def test_the_baseline_cannot_accept_everything(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(repository, VACUOUS)
    put(repository, HEAD + "sync norm over tq by sum\n", "b.place")
    code, out = gate(capsys, "--write-baseline", "--reason", "why")
    assert code == 2, "as the gate, which still fails"
    assert "0 findings accepted" in out
    assert "cannot be accepted, and still fails:\n  specs/a.place: VA01: " in out
    assert "\n  specs/b.place: PL" in out


def test_the_baseline_cannot_accept_that_nothing_is_stated(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "placelogic.toml").write_text(
        'paths = ["specs"]\nrequire-stated = true\nbaseline = "placelogic-baseline.json"\n'
    )
    put(repository, HEAD)
    put(repository, BAD, "b.place")
    code, out = gate(capsys, "--write-baseline", "--reason", "why")
    assert code == 1
    assert out.endswith(
        "placelogic-baseline.json: 1 finding accepted\n"
        "cannot be accepted, and still fails:\n"
        "  specs/a.place: EX02: nothing is stated, so this verdict says nothing about anybody's code\n"
    )
    assert gate(capsys)[0] == 1


def test_a_budget_that_cannot_be_checked_hides_no_refutation(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "placelogic.toml").write_text('paths = ["specs"]\nbudget = "80 GiB"\n')
    put(repository, BAD)
    code, out = gate(capsys)
    assert code == 1
    assert "error[GI02]" in out and "= fix (verified): write `sync norm over tp by mean`" in out
    assert "error[PL366]: the budget cannot be checked while L, h are open\n --> placelogic.toml:2:1\n" in out
    assert "fix L, h in the spec; or take the budget out here" in out and "--at" not in out
    assert "specs/a.place: FAILS (1 refuted)\n" in out
    put(repository, GOOD)
    assert gate(capsys)[0] == 2


def test_a_budget_that_cannot_be_checked_is_not_expected_or_accepted_with_a_refutation(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "placelogic.toml").write_text('paths = ["specs"]\nbudget = "80 GiB"\n')
    put(repository, BAD + "expect refuted GI02\n")
    code, out = gate(capsys)
    assert code == 2 and "error[PL366]" in out and "error[GI02]" not in out
    put(repository, HEAD + f"sync norm over tp by sum # placelogic: allow GI02 {WHY}\n")
    code, out = gate(capsys)
    assert code == 1 and "error[PL366]" in out


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({"reason": " "}, "PL031", "the reason why GI02 of `specs/a.place` may pass is missing"),
        ({"code": "UN01"}, "PL033", "`UN01` cannot be accepted"),
        ({"code": 3}, "PL034", "the baseline is not usable: every entry has the texts"),
        ({"more": "x"}, "PL034", "the baseline is not usable: every entry has the texts"),
    ],
)
def test_a_baseline_is_checked(
    repository: Path, change: dict, code: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(repository, BAD)
    baseline = written(repository, capsys)
    baseline["accepted"][0] |= change
    (repository / "placelogic-baseline.json").write_text(json.dumps(baseline, indent=2))
    got, out = gate(capsys, "--baseline", "placelogic-baseline.json")
    assert got == 2
    assert f"error[{code}]: {said}" in out


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "other"}', '{"schema": "placelogic/baseline/1"}'])
def test_what_is_no_baseline(repository: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    put(repository, GOOD)
    (repository / "b.json").write_text(text)
    code, out = gate(capsys, "--baseline", "b.json")
    assert code == 2 and "error[PL034]" in out
    assert gate(capsys, "--baseline", "none.json")[0] == 2


def test_writing_a_baseline_needs_a_reason(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = gate(capsys, "--write-baseline")
    assert code == 2 and "--write-baseline needs a --reason" in out
    code, out = gate(capsys, "--write-baseline", "--reason", "x", "specs")
    assert code == 2 and "name none" in out


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("sync norm over dp by none", "error[GI01]: the gradient of `norm` is never summed over dp"),
        ("scale norm by 1/dp", "error[GI03]: the gradient of `norm` is wrong by the constant factor"),
    ],
)
def test_what_is_accepted_hides_no_other_fault(
    repository: Path, line: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        HEAD.replace("tensor_parallel", "sequence_parallel")
        + f"sync norm over tp by none # placelogic: allow GI01 {WHY}\n"
    )
    put(repository, text)
    assert gate(capsys)[0] == 0
    put(repository, text + line + "\n")
    code, out = gate(capsys)
    assert code == 1
    assert told in out


def test_what_shows_along_another_axis_does_not_follow(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = HEAD.replace("zero2(dp) * tensor_parallel", "data_parallel(dp) * sequence_parallel")
    put(repository, text + f"sync norm over tp by none # placelogic: allow GI01 {WHY}\nsync norm over dp by none\n")
    code, out = gate(capsys)
    assert code == 1
    assert "error[SC01]: copies of `norm` along dp apply different updates" in out


def test_a_factor_that_is_wrong_on_one_device_too(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The factor is made good before another fault is looked for: it is told once, and as what it is on one device."""
    put(
        repository,
        "mesh dp\nlet P\nweights attn { size P }\nuse data_parallel(dp)\nscale attn by 1/2\nsync attn over dp by none\n",
    )
    code, out = gate(capsys)
    assert code == 1
    assert out.count("error[GI03]") == 1 and "constant factor 1/2" in out and "multiply by 2," in out, out
    assert out.count("error[GI01]") == 1, out


HIDING = {
    "mesh dp\nlet h\nweights attn { size 4*h*h }\nuse data_parallel(dp)\nscale attn by 1/2  # ALLOW GI03\nsync attn over dp by none\n": "GI01",
    "mesh dp, tp\nlet h\nweights attn { size 4*h*h, dims in out }\nuse data_parallel(dp) * tensor_parallel(tp)\nclip global_norm { * over none }\nscale attn by 1/2  # ALLOW GI03\n": "GI07",
    "mesh dp\nlet h\nweights attn { size 4*h*h }\nuse data_parallel(dp)\nplace attn { params materialized }  # ALLOW FW01\nsync attn over dp by none\n": "GI01",
}


@pytest.mark.parametrize("text", HIDING)
def test_what_is_accepted_without_axes_hides_no_fault(
    repository: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    put(repository, re.sub(r"ALLOW (\w+)", r'placelogic: allow \1 reason="known"', text))
    code, out = gate(capsys)
    assert code == 1 and f"error[{HIDING[text]}]" in out, out


def test_what_only_follows_is_accepted_with_its_cause(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The norm is wrong by the factor that the gradient is wrong by."""
    put(
        repository,
        "mesh dp\nlet h\nweights attn { size 4*h*h }\nuse data_parallel(dp)\nclip global_norm\n"
        'scale attn by 1/2  # placelogic: allow GI03 reason="known"\n',
    )
    code, out = gate(capsys)
    assert code == 0, out
