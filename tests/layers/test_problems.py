"""Every code of the calculus of layers, with its sentence. The snippet is the smallest spec that has the problem."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import placelogic
import placelogic.layers

DIMS = "dims batch, sequence, hidden, ffn, heads, head\n"


def layer(*lines: str, head: str = "input x(batch, sequence, hidden)") -> str:
    return "\n".join([DIMS + "block layer {", head, *lines, "}"]) + "\n"


UP = "weights up { kind matrix }\n"
NORM = "weights norm { kind vector }\n"
TWO = layer("u = linear x with up from hidden to ffn", "y = gelu u")
PROBLEMS = [
    (
        "PL380",
        "mesh cp\nsequence over cp\n" + UP + layer("u = linear x with up from hidden to ffn", head="input x(batch, hidden)"),
        "axis `cp` splits the sequence, and `x` of block `layer` has no dimension `sequence`",
    ),
    (
        "PL381",
        "mesh tp\nweights up { kind matrix, dims ffn heads }\nplace up over tp { params sharded on heads }\n" + TWO,
        "`up` is cut on heads over tp, and this operation has no dimension `heads`",
    ),
    (
        "PL382",
        "mesh tp\n" + NORM + "place norm over tp { params sharded }\n" + layer("n = norm x with norm over hidden"),
        "`norm` is cut over tp, and this operation needs all of it",
    ),
    (
        "PL382",
        "mesh tp\n" + NORM + "place norm over tp { params sharded }\n" + layer("n = bias x with norm over hidden"),
        "`norm` is cut over tp, and is added to a tensor that is not",
    ),
    (
        "PL383",
        "mesh tp\n" + NORM + "place norm over tp { activations sharded on heads }\n" + layer("n = norm x with norm over hidden"),
        "the activations of `norm` are stated as pieces of heads over tp (line 3), and this operation gets the whole",
    ),
    (
        "PL384",
        "mesh tp\n" + TWO + "backward u over tp by slice\n" + UP,
        "at `u` nothing crosses between devices over tp on the way forward, and `backward ... by slice`",
    ),
    (
        "PL384",
        "mesh tp\nuse tensor_parallel(tp)\n" + UP + layer("r = reduce x over tp by sum", "u = linear r with up from hidden to ffn") + "forward r over tp by none\n",
        "what happens forward at `r` is written out in its block",
    ),
    (
        "PL385",
        "mesh tp\nuse tensor_parallel(tp)\n" + UP + NORM + layer(
            "n = norm x with norm over hidden", "q = linear n with up from hidden to heads, head",
            "m = norm q with norm over head", "o = linear m with up from heads, head to hidden",
        ),
        "along tp `m` sees only a piece of what `norm` works on, and `n` (line 8) all of it",
    ),
    (
        "PL386",
        "mesh a, b\nweights up { kind matrix, dims out in }\n" + "place up over b { params sharded on out }\nplace up over a { params sharded on out }\n"
        + TWO,
        "`up` is cut over b, a, in another order than the mesh has them",
    ),
    (
        "PL388",
        "mesh tp\nuse tensor_parallel(tp)\nloss mean local\nloss aux mean local\n" + UP + TWO + "backward x over tp by sum\n",
        "there are several losses, and it is not said which of them come back through `x`",
    ),
    (
        "PL389",
        "mesh tp\nweights up { size 4 }\nweights norm { size 4, kind vector }\nuse tensor_parallel(tp)\nbackward norm over tp by sum\n",
        "whether this is right for `norm` depends on operations that are not stated",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("code", "text", "message"), PROBLEMS)
def test_problem(code: str, text: str, message: str) -> None:
    (spec,) = placelogic.check(text).specs
    assert spec.verdict == "error", str(spec)
    first = spec.findings[0]
    assert first.code == code, first
    assert message in first.message, first.message
    assert first.help, "a way forward"
    assert first.span.line > 0


def test_every_code_has_a_case() -> None:
    raised = set()
    for path in Path(placelogic.layers.__file__).parent.glob("*.py"):
        raised |= set(re.findall(r'"(PL38\d)"', path.read_text(encoding="utf-8")))
    assert raised - {"PL387"} == {code for code, _, _ in PROBLEMS}
    listed = re.findall(r"PL38\d", placelogic.layers.__doc__ or "")
    assert set(listed) == raised
