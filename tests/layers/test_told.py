"""What is told of a fault names the tensor and the line that it concerns, and nothing that only follows from it."""

from __future__ import annotations

from placelogic.checking import check_text
from placelogic.report.diagnostic import Finding
from tests.layers.agree import judge
from tests.layers.texts import gpt


def found(text: str) -> list[Finding]:
    (spec,) = check_text(text, "layer.place").specs
    return [finding for finding in spec.findings if finding.severity == "error"]


def proved(text: str) -> bool:
    (spec,) = check_text(text, "layer.place").specs
    return spec.verdict == "proved"


def told(text: str) -> list[tuple[str, str]]:
    """Code and the text of the line."""
    lines = text.splitlines()
    return [(finding.code, lines[finding.span.line - 1].strip()) for finding in found(text)]


SUMMED_AND_READ = """\
mesh tp, cp
dims batch, sequence, hidden, ffn
weights up { kind matrix }
weights down { kind matrix }
weights norm { kind vector }
use tensor_parallel(tp)
sequence over cp
block first {
  input x(batch, sequence, hidden)
  u = linear x with up from hidden to ffn
  a = gelu u
  p = linear a with down from ffn to hidden
  r = reduce p over tp by sum
  w = gelu p
  y = add r, w
}
block second {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  u = linear n with up from hidden to ffn
  a = gelu u
  p = linear a with down from ffn to hidden
}
"""


def test_shares_are_told_where_they_are_read() -> None:
    """Not at a line about a later block, and not again for what is made of them."""
    assert told(SUMMED_AND_READ) == [("FW03", "w = gelu p")]
    assert told(SUMMED_AND_READ + "forward n of second over tp by none\n") == [("FW03", "w = gelu p")]


def test_the_tensor_that_does_not_lie_as_it_has_to() -> None:
    """Keys and values are in pieces, queries may be."""
    line = "forward k over cp by none"
    text = gpt("mesh cp\nuse context_parallel(cp)") + f"\n{line}\nforward v over cp by none\n"
    first = found(text)[0]
    assert (first.code, text.splitlines()[first.span.line - 1]) == ("FW05", line)
    assert "`k` does not lie along cp" in first.label


def test_shares_of_a_product_come_back_in_shares() -> None:
    """What is derived is right, where one reader sums shares and another multiplies them."""
    text = """\
mesh tp
dims batch, sequence, hidden, ffn
weights pre { kind vector }
weights gate { kind vector }
weights up { kind matrix }
weights down { kind matrix }
use tensor_parallel(tp)
block layer {
  input x(batch, sequence, hidden)
  p = norm x with pre over hidden
  s = norm p with gate over hidden
  u = linear p with up from hidden to ffn
  t = tanh u
  d = linear t with down from ffn to hidden
  r = reduce d over tp by sum
  m = multiply d, s
  y = add r, m
}
"""
    assert proved(text)


EMBEDDING = """\
mesh tp
dims batch, sequence, hidden, vocab
weights embed { kind embedding }
place embed over tp { params sharded on DIM, optimizer sharded on DIM, gradients sharded on DIM }
block start {
  input ids(batch, sequence)
  e = embedding ids with embed from vocab to hidden
  n = norm e over hidden
}
"""


def test_dimensions_of_operations_need_no_declaration() -> None:
    assert proved(EMBEDDING.replace("DIM", "hidden"))
    assert proved(EMBEDDING.replace("DIM", "vocab"))
    unknown = found(EMBEDDING.replace("DIM", "hiden"))
    assert {one.code for one in unknown} == {"PL218"}
    assert unknown[0].help == "did you mean `hidden`?"


MATRIX_OVER_TWO_AXES = """\
mesh a, b
dims batch, sequence, hidden, ffn
weights w { kind matrix }
place w over b { params sharded on ONE, optimizer sharded on ONE, gradients sharded on ONE }
place w over a { params sharded on OTHER, optimizer sharded on OTHER, gradients sharded on OTHER }
block layer {
  input x(batch, sequence, hidden)
  u = linear x with w from hidden to ffn
  g = gelu u
}
"""


def test_cuts_of_different_dimensions_have_no_order() -> None:
    apart = MATRIX_OVER_TWO_AXES.replace("ONE", "hidden").replace("OTHER", "ffn")
    judged = judge(apart, 0, meshes=3)
    assert (judged.verdict, judged.disagreement) == ("proved", None)
    text = MATRIX_OVER_TWO_AXES.replace("ONE", "ffn").replace("OTHER", "ffn")
    assert [one.code for one in found(text)] == ["PL386"]
