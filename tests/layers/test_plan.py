"""What is derived for the common ways to cut a layer is what implementations do."""

from __future__ import annotations

import pytest

from tests.layers.texts import boundaries, gpt, planned


def test_tensor_parallelism_adds_up_after_each_pair_of_matrices() -> None:
    """Megatron's f and g: four all-reduces in a layer, two forward and two backward."""
    assert boundaries(gpt("mesh tp\nuse tensor_parallel(tp)"), "tp") == [
        "embedding.e: sum / none",
        "decoder.p: sum / none",
        "decoder.z: sum / none",
        "decoder.n: none / sum",
        "decoder.m: none / sum",
        "last.n: none / sum",
    ]


def test_sequence_parallelism_cuts_what_is_between() -> None:
    assert boundaries(gpt("mesh tp\nuse sequence_parallel(tp)"), "tp") == [
        "embedding.e: scatter sequence / gather sequence",
        "decoder.n: gather sequence / scatter sequence",
        "decoder.m: gather sequence / scatter sequence",
        "decoder.p: scatter sequence / gather sequence",
        "decoder.z: scatter sequence / gather sequence",
        "last.n: gather sequence / scatter sequence",
    ]


def test_data_parallelism_crosses_nothing() -> None:
    assert boundaries(gpt("mesh dp\nuse data_parallel(dp)"), "dp") == []


def test_context_parallelism_gathers_keys_and_values() -> None:
    """As a ring does, piece after piece; gradients of keys and values go back the same way."""
    assert boundaries(gpt("mesh cp\nuse context_parallel(cp)"), "cp") == [
        "decoder.k: gather sequence / scatter sequence",
        "decoder.v: gather sequence / scatter sequence",
    ]


def test_nothing_is_wrong_in_what_is_derived() -> None:
    text = gpt("mesh dp, cp, tp\nuse data_parallel(dp) * context_parallel(cp) * sequence_parallel(tp)")
    walk = planned(text).walk
    assert walk.needs == []
    for gradient in walk.gradients:
        (part,) = gradient.value.parts.values()
        (term,) = part.terms
        assert part.times == 1 and term.scale.is_one and not term.tied and not term.lost
        vector = gradient.own == frozenset()
        assert term.partial == ({"dp", "cp", "tp"} if vector else {"dp", "cp"})


DIMS = "dims batch, sequence, hidden, ffn, heads, kv_heads, head, expert, vocab\n"
EXPERTS = """\
mesh ep, tp
tokens over ep
weights norm { kind vector }
weights router { kind router }
weights expert { kind expert, routed over ep }
place expert over ep { params sharded, optimizer sharded, gradients sharded }
use tensor_parallel(tp)
block layer {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  r = router n with router from hidden to expert top 2
  t = dispatch n by r
  g = grouped linear t with expert from hidden to ffn
  a = gelu g
  d = grouped linear a with expert from ffn to hidden
  e = combine d by r
  z = add x, e
}
"""
EXPERTS_ALONE = """\
mesh ep
weights router { kind router }
weights expert { kind expert }
place expert over ep { params sharded on expert, optimizer sharded on expert, gradients sharded on expert }
block layer {
  input x(batch, sequence, hidden)
  r = router x with router from hidden to expert top 2
  t = dispatch x by r
  g = grouped linear t with expert from hidden to ffn
  a = gelu g
  d = grouped linear a with expert from ffn to hidden
  e = combine d by r
  z = add x, e
}
"""
GATED = """\
mesh tp
weights norm { kind vector }
weights up { kind matrix }
weights gate { kind matrix }
weights down { kind matrix }
use tensor_parallel(tp)
block layer repeat 2 {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  u = linear n with up from hidden to ffn
  g = linear n with gate from hidden to ffn
  s = silu g
  m = multiply s, u
  d = linear m with down from ffn to hidden
  y = add x, d
}
"""
WRITTEN = """\
mesh tp
weights norm { kind vector }
weights up { kind matrix }
weights down { kind matrix }
use sequence_parallel(tp)
block layer repeat 2 {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  f = gather n over tp on sequence
  u = linear f with up from hidden to ffn
  a = gelu u
  d = linear a with down from ffn to hidden
  r = reduce_scatter d over tp on sequence
  b = dropout r
  y = add x, b
}
"""
LATE = """\
mesh tp
weights up { kind matrix }
weights down { kind matrix }
weights one { kind matrix }
use tensor_parallel(tp)
place one over tp { params replicated, optimizer replicated, gradients replicated }
block layer {
  input x(batch, sequence, hidden)
  u = linear x with up from hidden to ffn
  a = gelu u
  d = linear a with down from ffn to hidden
  e = dropout d
  s = add e, d
  w = linear s with one from hidden to ffn
  r = reduce w over tp by sum
}
"""
TABLE = """\
mesh tp
weights table { kind embedding }
place table over tp { params sharded on hidden, optimizer sharded on hidden, gradients sharded on hidden }
block start {
  input t(batch, sequence)
  e = embedding t with table from vocab to hidden
  g = gelu e
  n = norm g over hidden
}
"""
TRADED = """\
mesh cp
weights norm { kind vector }
weights qkv { kind matrix }
weights out { kind matrix }
use ulysses(cp)
block layer repeat 2 {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  q = linear n with qkv from hidden to heads, head
  k = linear n with qkv from hidden to kv_heads, head
  v = linear n with qkv from hidden to kv_heads, head
  c = attention q, k, v causal fused
  o = linear c with out from heads, head to hidden
  y = add x, o
}
"""


ROUTED = """\
mesh tp
weights norm { kind vector }
weights router { kind router }
weights expert { kind expert, routed over tp }
use sequence_parallel(tp)
block layer {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  r = router n with router from hidden to expert top 2
  t = dispatch n by r
  g = grouped linear t with expert from hidden to ffn
  a = gelu g
  d = grouped linear a with expert from ffn to hidden
  e = combine d by r
  z = add x, e
}
"""
SIZE_OF_A_HEAD = """\
mesh tp
weights attn { kind matrix }
weights key { kind matrix }
use tensor_parallel(tp)
place key over tp { params sharded on head, optimizer sharded on head, gradients sharded on head }
block layer {
  input x(batch, sequence, hidden)
  q = linear x with attn from hidden to heads, head
  k = linear x with key from hidden to heads, head
  v = linear x with attn from hidden to heads, head
  c = attention q, k, v causal fused
  o = linear c with attn from heads, head to hidden
}
"""
STATED_HEADS = """\
mesh tp
dims nope, rope, both = nope + rope
weights attn { kind matrix }
weights low { kind latent }
weights norm { kind vector }
use tensor_parallel(tp)
place norm over tp { activations sharded on heads }
block layer {
  input x(batch, sequence, hidden)
  n = linear x with attn from hidden to heads, nope
  r = linear x with low from hidden to rope
  k = concat n, r to both
  l = norm k with norm over both
  o = linear l with attn from heads, both to hidden
}
"""
PASSED_ON = """\
mesh tp
let L
weights up { kind matrix }
weights down { kind matrix }
weights last { kind vector }
use tensor_parallel(tp)
place last over tp { activations sharded on sequence }
block layer repeat L {
  input x(batch, sequence, hidden)
  u = linear x with up from hidden to ffn
  a = gelu u
  d = linear a with down from ffn to hidden
  y = add x, d
}
block finish {
  input x(batch, sequence, hidden)
  n = norm x with last over hidden
}
"""


GATHERED_EXPERTS = EXPERTS_ALONE.replace(
    "  g = grouped linear t", "  s = gather t over ep on expert\n  g = grouped linear s"
)


@pytest.mark.parametrize(
    ("text", "axis", "crosses"),
    [
        # tokens in pieces of the sequence travel to their experts too
        (ROUTED, "tp", ["t: exchange sequence / exchange expert", "d: exchange expert / exchange sequence"]),
        # pieces of one dimension are traded for pieces of another
        (SIZE_OF_A_HEAD, "tp", ["o: sum / none", "x: none / sum", "k: exchange head / exchange heads"]),
        # what has no heads is wanted whole, whatever the norm of the heads sees
        (STATED_HEADS, "tp", ["o: sum / none", "x: none / sum", "r: none / sum"]),
        # the stream of the layers is cut as what comes after them needs it
        (PASSED_ON, "tp", ["x: gather sequence / scatter sequence", "d: scatter sequence / gather sequence"]),
        # tokens travel to their experts and back; inside, columns and rows
        (EXPERTS, "ep", ["t: exchange batch / exchange expert", "d: exchange expert / exchange batch"]),
        (EXPERTS, "tp", ["d: sum / none", "t: none / sum"]),
        # each device has the tokens of its own experts: what they leave are shares, and so is what comes back
        (EXPERTS_ALONE, "ep", ["e: sum / none", "x: none / sum", "r: none / sum"]),
        # gathered by hand, and needed in pieces all the same
        (
            GATHERED_EXPERTS,
            "ep",
            ["e: sum / none", "x: none / sum", "s: slice expert / gather expert", "r: none / sum"],
        ),
        # two tensors that are cut alike meet as they are
        (GATED, "tp", ["d: sum / none", "n: none / sum"]),
        # what is written out is not derived again
        (WRITTEN, "tp", []),
        # shares stay shares until the written sum
        (LATE, "tp", ["x: none / sum"]),
        # gathered where the whole is needed, and not before
        (TABLE, "tp", ["g: gather hidden / slice hidden"]),
        (
            TRADED,
            "cp",
            [
                "c: exchange heads / exchange sequence",
                "q: exchange sequence / exchange heads",
                "k: exchange sequence / exchange kv_heads",
                "v: exchange sequence / exchange kv_heads",
            ],
        ),
    ],
)
def test_what_crosses(text: str, axis: str, crosses: list[str]) -> None:
    assert [one.partition(".")[2] for one in boundaries(DIMS + text, axis)] == crosses
