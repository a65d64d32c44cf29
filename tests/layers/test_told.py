"""What is told of a fault names the tensor and the line that it concerns, and nothing that only follows from it."""

from __future__ import annotations

import pytest

from placelogic.report.diagnostic import Finding
from placelogic.session.check import check_text
from tests.layers.agree import Judged, judge
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


READ_BY_COLUMNS = """\
mesh tp
dims batch, sequence, hidden, ffn
weights norm { kind vector }
weights up { kind matrix }
weights down { kind matrix }
use tensor_parallel(tp)
block layer {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  u = linear n with up from hidden to ffn
  a = gelu u
  d = linear a with down from ffn to hidden
  r = reduce d over tp by sum
  v = linear r with up from hidden to ffn
  w = gelu v
}
backward r over tp by LINE
"""


def test_a_line_at_a_written_sum_acts_where_something_happens() -> None:
    """The sum does nothing backward; the matrix that reads it does."""
    assert proved(READ_BY_COLUMNS.replace("LINE", "sum"))
    assert "FW06" in {one.code for one in found(READ_BY_COLUMNS.replace("LINE", "none"))}


GATHERED_TOKENS = """\
mesh ep
dims batch, sequence, hidden, ffn, expert
weights norm { kind vector }
weights router { kind router }
weights expert { kind expert }
place norm over ep { activations sharded on batch }
place expert over ep { params sharded on expert, optimizer sharded on expert, gradients sharded on expert }
block layer {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  g = gather n over ep on batch
  NAMED
  r = router h with router from hidden to expert top 2
  t = dispatch h by r
  u = grouped linear t with expert from hidden to ffn
  a = gelu u
  d = grouped linear a with expert from ffn to hidden
  e = combine d by r
  f = reduce_scatter e over ep on batch
  z = add n, f
}
LINE
"""


def test_a_line_at_a_written_gather_is_about_what_it_hands_back() -> None:
    """Experts leave shares, and the gather adds them up and cuts: nothing else does, where a line says otherwise of it."""
    direct = GATHERED_TOKENS.replace("  NAMED\n", "").replace(" h ", " g ")
    assert proved(direct.replace("LINE\n", ""))
    assert "FW06" in {one.code for one in found(direct.replace("LINE", "backward g over ep by slice"))}
    named = GATHERED_TOKENS.replace("NAMED", "h = scale g by 1")
    assert proved(named.replace("LINE\n", ""))
    summed, cut = "backward h over ep by sum", "backward g over ep by slice"
    assert "FW06" in {one.code for one in found(named.replace("LINE", summed))}
    assert "FW06" in {one.code for one in found(named.replace("LINE", cut))}
    assert proved(named.replace("LINE", f"{summed}\n{cut}"))


def test_weights_that_get_all_of_what_an_axis_splits_are_refused() -> None:
    """The router of gathered tokens has their whole gradient on every device, where a step expects own shares."""
    text = GATHERED_TOKENS.replace("  NAMED\n", "").replace(" h ", " g ").replace("LINE\n", "")
    told = found(text.replace("place norm over ep { activations sharded on batch }", "batch over ep"))
    assert [one.code for one in told] == ["PL380"]
    assert (
        "axis `ep` splits the batch, and `r` is made with `router` from what was put together over it"
        in told[0].message
    )


def test_a_written_sum_that_a_reader_cuts_is_no_place_for_a_line() -> None:
    """It could mean the one as well as the other."""
    text = """\
mesh tp
dims batch, sequence, hidden, ffn
weights up { kind matrix }
weights down { kind matrix }
weights norm { kind vector }
use tensor_parallel(tp)
place norm over tp { activations sharded on sequence }
block layer {
  input x(batch, sequence, hidden)
  u = linear x with up from hidden to ffn
  a = gelu u
  d = linear a with down from ffn to hidden
  r = reduce d over tp by sum
  n = norm r with norm over hidden
}
forward r over tp by none
"""
    (told,) = found(text)
    assert (told.code, told.message) == (
        "PL384", "`r` changes how it lies over tp in several places, and this does not say where"
    )  # fmt: skip


def test_what_happens_forward_is_told_of_a_line_about_the_way_back() -> None:
    text = READ_BY_COLUMNS.partition("  r = ")[0] + "  g = gelu d\n}\nbackward d over tp by sum\n"
    (told,) = found(text)
    assert (told.code, told.label) == ("FW06", "forward, partial values are added up")


def test_a_line_with_a_problem_is_told_once() -> None:
    """And not again at every line that reads what it makes."""
    text = READ_BY_COLUMNS.replace("to ffn\n  a =", "to fnn\n  a =").replace("backward r over tp by LINE\n", "")
    assert [(one.code, one.help) for one in found(text)] == [("PL224", "did you mean `ffn`?")]


STREAM = """\
mesh tp
let c
dims batch, sequence, hidden, ffn
weights first { kind vector }
weights up { kind matrix }
weights down { kind matrix }
use tensor_parallel(tp)
block start {
  input x(batch, sequence, hidden)
  n = norm x with first over hidden
}
block layer repeat 8 {
  input x(batch, sequence, hidden)
  u = linear x with up from hidden to ffn
  a = gelu u
  d = linear a with down from ffn to hidden
}
"""


def test_a_factor_of_every_layer_is_told_by_what_one_layer_makes_of_it() -> None:
    """Layers before those that are followed have a higher power of it, which is no mixture."""
    summed, *_ = found(STREAM + "backward d over tp by sum\n")
    assert "counted tp times" in summed.message
    assert summed.counterexample is not None
    assert [row.applies for row in summed.counterexample.devices] == ["2 g"]
    (scaled,) = found(STREAM + "backward x of layer over tp by sum scale 1/c\n")
    assert scaled.weights == "first, up, down"
    assert "is multiplied by 1/c" in scaled.message


def test_what_only_comes_through_all_layers() -> None:
    """No layer has weights of its own that would show the factor."""
    text = STREAM[: STREAM.index("  u = ")].replace("weights up { kind matrix }\nweights down { kind matrix }\n", "")
    (finding,) = found(text + "  g = gelu x\n}\nbackward g over tp by sum\n")
    assert (finding.code, finding.weights) == ("FW06", "first")
    assert "through `g` is changed again by every layer on its way" in finding.message
    assert finding.counterexample is not None and finding.counterexample.devices == ()


def test_the_loss_is_what_one_device_has() -> None:
    """Also where only its value is wrong, and gradients are right."""
    text = gpt("mesh tp\nuse tensor_parallel(tp)") + "\nforward loss over tp by sum\n"
    assert judge(text).disagreement is None
    (finding,) = found(text)
    assert finding.code == "FW04" and "`loss` is counted tp times" in finding.message


def test_two_names_of_one_tensor_add_up() -> None:
    """A half by one way and one and a half by the other are what one device has: twice the tensor."""
    text = """\
mesh tp
dims batch, sequence, hidden, ffn
weights up { kind matrix }
weights down { kind matrix }
use tensor_parallel(tp)
block layer {
  input x(batch, sequence, hidden)
  u = linear x with up from hidden to ffn
  a = gelu u
  d = linear a with down from ffn to hidden
  p = scale d by 1
  q = scale d by 1
  s = add p, q
  w = gelu s
}
forward p over tp by none scale 1/2
forward q over tp by none scale 3/2
backward p over tp by none scale 1/2
"""
    right, wrong = text + "backward q over tp by none scale 3/2\n", text + "backward q over tp by none scale 1/2\n"
    assert [judge(one).verdict for one in (right, wrong)] == ["proved", "refuted"]
    assert all(judge(one).disagreement is None for one in (right, wrong))


HEAD_NORM = """\
mesh tp
dims batch, sequence, hidden, heads, head
weights norm { kind vector }
weights qkv { kind matrix }
weights q_norm { kind vector }
weights out { kind matrix }
use sequence_parallel(tp)
block layer {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  q = linear n with qkv from hidden to heads, head
  k = linear n with qkv from hidden to heads, head
  v = linear n with qkv from hidden to heads, head
  h = norm q with q_norm over head
  c = attention h, k, v causal fused
  o = linear c with out from heads, head to hidden
  y = add x, o
}
"""


def test_a_norm_of_heads_beside_norms_on_pieces_of_the_sequence() -> None:
    """The strategy says that vectors see pieces of the sequence; these see pieces of the heads."""
    summed, forgotten = HEAD_NORM + "sync q_norm over tp by sum\n", HEAD_NORM + "sync q_norm over tp by none\n"
    assert [judge(one) for one in (HEAD_NORM, summed)] == [Judged("proved")] * 2
    assert judge(forgotten).disagreement is None
    assert [(one.code, one.weights) for one in found(forgotten)] == [("GI01", "q_norm"), ("SC01", "q_norm")]
    stated = HEAD_NORM + "place q_norm over tp { activations sharded on sequence }\n"
    assert [one.code for one in found(stated)] == ["PL383"]


def test_only_a_part_of_the_gradient_is_counted_again() -> None:
    """One reader of `b` leaves shares, which the sum adds up rightly; what comes through the other is whole."""
    text = """
mesh tp
weights v { kind vector }
weights w { kind matrix }
use tensor_parallel(tp)
dims batch, sequence, hidden, ffn
block layer {
  input x(batch, sequence, hidden)
  b = bias x with v over hidden
  u = linear b with w from hidden to ffn
  a = gelu u
  d = linear a with w from ffn to hidden
  e = gelu b
  z = add d, e
}
backward b over tp by none
sync v over tp by sum
"""
    (first, *_) = found(text)
    assert (first.code, first.message) == ("GI02", "the gradient of `v` counts a part of its contributions tp times")
    plain = text.replace("backward b over tp by none\n", "")
    assert found(plain)[0].message == "the gradient of `v` counts every contribution tp times"


def test_one_micro_batch_costs_nothing_more() -> None:
    """NT04 is about reductions in every micro-batch; of one there is nothing to tell."""
    for count, told_ in (("", True), (" = 2", True), (" = 1", False)):
        text = f"mesh dp\nlet h, M{count}\nmicrobatches M\nweights attn {{ size 4*h*h }}\nuse zero2(dp)\n"
        codes = [finding.code for finding in check_text(text, "told.place").specs[0].findings]
        assert ("NT04" in codes) == told_


OVER_TWO_AXES = """\
mesh tp, tq
weights norm { kind vector }
weights up { kind matrix }
weights down { kind matrix }
use sequence_parallel(tp)
dims batch, sequence, hidden, ffn
block layer {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  u = linear n with up from hidden to ffn
  a = gelu u
  d = linear a with down from ffn to hidden
}
"""


@pytest.mark.parametrize(
    ("line", "axis", "told"),
    [
        ("backward a over tp, tq by sum", "tq", "through `a` is counted tq times: what arrives is whole on every device along tq,"),
        ("backward a over tq, tp by mean", "tp", "pieces of different places are added up along tp, place by place: what arrives is a piece"),
        ("backward n over tq, tp by mean", "tp", "is multiplied by 1/tp: what arrives is partial, to be added up over tp"),
        ("backward n over tp by slice", "tp", "each device keeps only its own piece of its own share along tp"),
    ],
)  # fmt: skip
def test_a_line_over_two_axes_is_told_by_the_one_that_acts(line: str, axis: str, told: str) -> None:
    """The other one has one device in the counterexample, where it does nothing."""
    first = found(OVER_TWO_AXES + line + "\n")[0]
    assert (first.code, first.axes) == ("FW06", (axis,))
    assert told in first.message, first.message
    assert first.counterexample is not None
    assert {name: size for name, size in first.counterexample.mesh.items() if size > 1} == {axis: 2}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("backward a over tp by zero", "nothing is left of the gradient that reaches `norm`, `up` through `a`: what arrives is a piece on"),
        ("backward a over tp by none scale 2", "through `a` is multiplied by 2: what arrives is a piece on every device along tp,"),
        ("backward a over tq by zero", "through `a`: what arrives is whole on every device along tq,"),
        ("backward a over tq by none scale 2", "is multiplied by 2: what arrives is whole on every device along tq,"),
    ],
)  # fmt: skip
def test_what_arrives_is_whole_or_a_piece_whatever_is_done_to_it(line: str, told: str) -> None:
    first = found(OVER_TWO_AXES + line + "\n")[0]
    assert first.code == "FW06" and told in first.message, first.message
