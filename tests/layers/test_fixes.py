"""Faults in the operations of a layer are mended by one edit, after which the spec is proved."""

from __future__ import annotations

import pytest

from placelogic.mend.edits import Edit, apply
from placelogic.session.check import check_text

HEAD = """mesh tp
weights up { kind matrix }
weights down { kind matrix }
weights bias { kind vector }
use tensor_parallel(tp)
dims batch, sequence, hidden, ffn
"""


def block(*lines: str) -> str:
    text = ["block layer {", "  input x(batch, sequence, hidden)", "  u = linear x with up from hidden to ffn", "  a = gelu u"]
    return HEAD + "\n".join([*text, *("  " + line for line in lines), "}"]) + "\n"


MATRIX = "p = linear a with down from ffn to hidden"
CASES = [
    (
        block(MATRIX, "y = gelu p", "b = bias y with bias over hidden") + "forward p over tp by none\n",
        "write `forward p over tp by sum` in line 15",
    ),
    (
        block(MATRIX, "b = bias p with bias over hidden", "r = reduce b over tp by sum", "y = gelu r"),
        "from line 12 on write\nb = reduce p over tp by sum\nr = bias b with bias over hidden",
    ),
    (
        block(MATRIX, "b = bias p with bias over hidden scaled by 1/tp", "r = reduce b over tp by sum", "y = gelu r"),
        "write `sync bias over tp by sum` after line 15",
    ),
    (
        block(MATRIX, "b = bias p with bias over hidden") + "backward p over tp by sum\n",
        "write `backward p over tp by none` in line 14",
    ),
    (
        block(MATRIX, "b = bias p with bias over hidden") + "backward p over tp by none scale 2\n",
        "write `backward p over tp by mean` in line 14",
    ),
    (
        block("g = gather a over tp on ffn", "p = linear g with whole from ffn to hidden").replace(
            "weights down { kind matrix }\nweights bias { kind vector }", "weights whole { kind latent }"
        ),
        "write `backward g over tp by slice` after line 12",
    ),
]


@pytest.mark.parametrize(("text", "says"), CASES)
def test_fix(text: str, says: str) -> None:
    (spec,) = check_text(text, "x.place").specs
    assert spec.verdict == "refuted", spec
    first = next(finding for finding in spec.findings if finding.severity == "error")
    assert first.fix == says, first
    assert first.edit is not None
    (mended,) = check_text(apply(text, Edit(first.edit.span, first.edit.text, "")), "x.place").specs
    assert mended.verdict == "proved"
