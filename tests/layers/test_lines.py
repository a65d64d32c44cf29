"""What a person wrote of a boundary counts as stated, and is told as the place of a fault."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from placelogic.cli import main

HEAD = """mesh tp
weights norm { kind vector }
weights up { kind matrix }
weights down { kind matrix }
dims batch, sequence, hidden, ffn
"""
BLOCK = """block layer {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  u = linear n with up from hidden to ffn
  a = gelu u
  d = linear a with down from ffn to hidden
  y = add x, d
}
"""
SUMMED = BLOCK.replace("  y = add x, d", "  r = reduce d over tp by sum\n  y = add x, r")
TENSOR, SEQUENCE = "use tensor_parallel(tp)\n", "use sequence_parallel(tp)\n"


Checked = Callable[..., tuple[int, str]]


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Checked:
    """The exit code and the printed text of `placelogic check a.place`."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, *options: str) -> tuple[int, str]:
        (tmp_path / "a.place").write_text(text, encoding="utf-8")
        code = main(["check", *options, "a.place"])
        return code, capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    "text",
    [
        HEAD + TENSOR + BLOCK + "forward d of layer over tp by sum\n",
        HEAD + TENSOR + BLOCK + "backward n of layer over tp by sum\n",
        HEAD + TENSOR + SUMMED,
    ],
)
def test_a_right_line_is_stated(text: str, checked: Checked) -> None:
    code, printed = checked(text, "--require-stated")
    assert code == 0, printed
    assert "proved (14 obligations, 1 stated) for every tp" in printed
    assert "nothing is stated" not in printed


def test_a_line_is_one_obligation_for_each_axis(checked: Checked) -> None:
    text = (HEAD + TENSOR + SUMMED).replace("mesh tp", "mesh a, b\naxis tp = a*b")
    assert re.search(r"proved \(\d+ obligations, 2 stated\)", checked(text)[1])


def test_a_wrong_line_is_no_proved_obligation(checked: Checked) -> None:
    printed = checked(HEAD + TENSOR + BLOCK + "forward d of layer over tp by none\n")[1]
    assert "refuted (1 of 14 obligations fails, 1 stated)" in printed


def test_a_collective_over_no_axis_states_nothing(checked: Checked) -> None:
    printed = checked(HEAD + TENSOR + SUMMED.replace("over tp", "over none"))[1]
    assert "none stated" in printed


def test_what_can_be_stated_where_there_are_blocks(checked: Checked) -> None:
    code, printed = checked(HEAD + TENSOR + BLOCK, "--require-stated")
    assert code == 1
    lines = "what your code does with `sync`, `scale`, `step`, `clip`, `forward` or `backward`; "
    assert f"help: say {lines}" in printed
    assert f"Say {lines}" in printed
    plain = checked("mesh dp\nlet P\nweights m { size P }\nuse zero1(dp)\n", "--require-stated")[1]
    assert "`forward`" not in plain


LONG = BLOCK.replace("  y = add x, d", "  e = dropout d\n  y = add x, e")


@pytest.mark.parametrize(
    ("block", "place", "reader"), [(BLOCK, "a.place:15:1", ""), (LONG, "a.place:16:1", " for `add` in line 14")]
)
def test_a_tensor_that_does_not_fit_is_blamed_on_the_line(block: str, place: str, reader: str, checked: Checked) -> None:
    text = HEAD + SEQUENCE + block + "forward d of layer over tp by none\n"
    text = text.replace("block layer {", "block layer repeat 2 {")
    printed = checked(text)[1]
    first, *more = printed.split("\nerror[")
    assert first.startswith("error[FW05]: `add` gets pieces of sequence and a whole tensor over tp\n"), printed
    assert f"--> {place}\n" in first
    assert f" `d` does not lie along tp as it has to{reader}\n" in first, first
    assert "every device   pieces of sequence and a whole tensor   whole tensors\n" in first
    assert "= fix (verified): write `forward d of layer over tp by sum` in line " in first
    assert more and all("(a consequence of the finding above)" in one for one in more), printed
    assert "leave tp out" not in printed


def test_without_a_line_the_operation_is_blamed(checked: Checked) -> None:
    text = HEAD + TENSOR + BLOCK.replace("  a = gelu u", "  v = reduce u over tp by sum\n  a = gelu v")
    printed = checked(text + "forward d over tp by sum\n")[1]
    assert "error[FW05]: `reduce` adds up different pieces of its ffn over tp\n  --> a.place:11:7" in printed
