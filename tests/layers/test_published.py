"""Saved activations and the messages of a layer are the published ones.

Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", arXiv 2205.05198: table 2 and
section 4 (s sequence, b micro-batch, h width, a heads, t tensor parallel devices; 16 bits an element, dropout masks
one byte). Their layer is the gpt of the library.
"""

from __future__ import annotations

import pytest
import sympy

from tests.layers.bytes import count, kept, messages, same

GPT = """
mesh t, dp, cp, pp
let h, a, L, v, s, b
assume h % a == 0
dims batch = b, sequence = s
model gpt { layers L, hidden h, heads a, vocab v }
"""
LLAMA = """
mesh t, dp, cp
let h, a, k, f, L, v, s, b
assume h % a == 0, a % k == 0
dims batch = b, sequence = s
model llama { layers L, hidden h, heads a, kv_heads k, ffn f, vocab v }
"""
MOE = """
mesh ep, t
let h, a, f, L, v, s, b, E, k
assume h % a == 0
dims batch = b*ep, sequence = s
model moe { layers L, hidden h, heads a, ffn f, vocab v, experts E, top k, experts_over ep }
"""
SELECTIVE = "checkpoint c of layer\n"
FULL = "checkpoint layer\n"


@pytest.mark.parametrize(
    ("lines", "published"),
    [
        ("", "s*b*h*(34 + 5*a*s/h)"),
        ("use tensor_parallel(t)\n", "s*b*h*(10 + 24/t + 5*a*s/(h*t))"),
        ("use sequence_parallel(t)\n", "s*b*h/t*(34 + 5*a*s/h)"),
        ("use tensor_parallel(t)\n" + SELECTIVE, "s*b*h*(10 + 24/t)"),
        ("use sequence_parallel(t)\n" + SELECTIVE, "34*s*b*h/t"),
        ("use tensor_parallel(t)\n" + FULL, "2*s*b*h"),
        ("use sequence_parallel(t)\n" + FULL, "2*s*b*h/t"),
        ("use tensor_parallel(t)\nuse activation_checkpointing()\n", "2*s*b*h"),
        ("use data_parallel(dp) * tensor_parallel(t)\n", "s*b/dp*h*(10 + 24/t + 5*a*s/(h*t))"),
    ],
)
def test_a_layer_of_the_paper(lines: str, published: str) -> None:
    assert same(kept(GPT + lines), published)


def test_an_mlp_of_another_width() -> None:
    """Megatron-LM's estimate: sbh (18 + 4f/h)/t with sequence parallelism and selective recomputation."""
    text = GPT.replace("vocab v }", "vocab v, ffn f }").replace("let h,", "let f, h,")
    assert same(kept(text + "use sequence_parallel(t)\n" + SELECTIVE), "s*b*h*(18 + 4*f/h)/t")


def test_the_parts_of_a_layer() -> None:
    """Section 4.1: attention 11sbh + 5as^2b, MLP 19sbh, two norms 4sbh. What a region makes again is its part."""
    again = kept(GPT + "checkpoint q to d of layer\n", region=0)
    assert same(again, "11*s*b*h + 5*a*s**2*b - 2*s*b*h")  # the input of the region is kept
    again = kept(GPT + "checkpoint u to h of layer\n", region=0)
    assert same(again, "19*s*b*h - 2*s*b*h")
    assert same(kept(GPT + SELECTIVE, region=0), "5*a*s**2*b")


def test_the_ends_of_the_model() -> None:
    """Section 4.3: dropout of the embedding; the last norm, the output matrix, and the loss in 32 bits."""
    text = GPT + "use sequence_parallel(t)\n"
    assert same(kept(text, "start"), "s*b*h/t")
    assert same(kept(text, "finish"), "4*s*b*h/t*(1 + v/h)")


def test_context_parallelism_divides_everything_by_the_sequence() -> None:
    assert same(kept(GPT + "use context_parallel(cp)\n"), "s*b*h/cp*(34 + 5*a*s/h)")
    assert same(kept(GPT + "use ulysses(cp)\n"), "s*b*h/cp*(34 + 5*a*s/h)")


def test_llama_with_fused_attention() -> None:
    """Grouped-query attention, a gated MLP and a fused attention kernel (arXiv 2411.06465, equation 12)."""
    assert same(kept(LLAMA), "s*b*h*(12 + 4*k/a + 8*f/h)")
    assert same(kept(LLAMA + "use sequence_parallel(t)\n"), "s*b*h/t*(12 + 4*k/a + 8*f/h)")
    assert same(kept(LLAMA + "use tensor_parallel(t)\n"), "s*b*h*(8 + 4/t + 4*k/a/t + 8*f/h/t)")
    assert same(kept(LLAMA + "use context_parallel(cp)\n"), "s*b*h/cp*(12 + 4*k/a + 8*f/h)")


def test_experts_do_not_divide_what_is_routed_to_them() -> None:
    """Each device routes its own tokens and receives as many: b counts the sequences of one device."""
    text = MOE + "use expert_parallel(ep)\n"
    routed = "2*k*s*b*h + 4*2*k*s*b*f + 2*k*s*b*h"  # what is dispatched, four times the width, what comes back
    dense = "8*2*s*b*h + 2*s*b*E"
    assert same(kept(text), f"{routed} + {dense}")
    assert sympy.Symbol("ep") not in kept(text).free_symbols


# --- messages ---------------------------------------------------------------------------------


def test_tensor_parallelism_has_four_all_reduces() -> None:
    text = GPT + "use tensor_parallel(t)\n"
    assert dict(count(text)) == {("forward", "all-reduce", "t"): 2, ("backward", "all-reduce", "t"): 2}
    assert {str(size) for size in messages(text).values()} == {"2*b*h*s"}


def test_sequence_parallelism_sends_the_same_volume_in_halves() -> None:
    """An all-reduce is a reduce-scatter and an all-gather. What is kept cut is gathered once more."""
    text = GPT + "use sequence_parallel(t)\n"
    assert dict(count(text)) == {
        ("forward", "all-gather", "t"): 2,
        ("forward", "reduce-scatter", "t"): 2,
        ("backward", "all-gather", "t"): 2,
        ("backward", "reduce-scatter", "t"): 2,
        ("again", "all-gather", "t"): 2,
    }
    assert {str(size) for size in messages(text).values()} == {"2*b*h*s"}


def test_recomputation_repeats_the_forward_messages() -> None:
    text = GPT + "use tensor_parallel(t)\n" + FULL
    assert count(text)["again", "all-reduce", "t"] == 2
    assert count(GPT + "use sequence_parallel(t)\n" + FULL)["again", "all-gather", "t"] == 2
    assert count(GPT + "use sequence_parallel(t)\n" + FULL)["again", "reduce-scatter", "t"] == 2
    assert not count(GPT + "use tensor_parallel(t)\n" + SELECTIVE)["again", "all-reduce", "t"]


def test_a_ring_passes_keys_and_values() -> None:
    """Each device gets the keys and values of all others; their gradients come back, and they go round again."""
    found = messages(LLAMA + "use context_parallel(cp)\n")
    assert set(found) == {
        ("forward", "all-gather", "cp"),
        ("backward", "reduce-scatter", "cp"),
        ("again", "all-gather", "cp"),
    }
    for message in found.values():
        assert same(message, "2*s*b*h*k/a")


def test_ulysses_exchanges_pieces_of_the_sequence_for_heads() -> None:
    """Queries, keys, values and what comes of them, each of bsh, of which a device has a part (arXiv 2309.14509)."""
    text = GPT + "use ulysses(cp)\n"
    assert dict(count(text)) == {("forward", "all-to-all", "cp"): 4, ("backward", "all-to-all", "cp"): 4}
    assert same(messages(text)["forward", "all-to-all", "cp"], "4*s*b*h/cp")


def test_stages_hand_on_the_stream() -> None:
    found = messages(GPT + "use pipeline(pp) * sequence_parallel(t)\n")
    assert same(found["forward", "send", "pp"], "s*b*h/t")
    assert same(found["backward", "send", "pp"], "s*b*h/t")
    assert same(messages(GPT + "use pipeline(pp) * tensor_parallel(t)\n")["forward", "send", "pp"], "s*b*h")


def test_experts_get_and_give_back_what_is_routed() -> None:
    found = messages(MOE + "use expert_parallel(ep)\n")
    assert set(found) == {("forward", "all-to-all", "ep"), ("backward", "all-to-all", "ep")}
    for message in found.values():
        assert same(message, "2*k*s*b*h")


def test_axes_that_do_the_same_are_one_collective() -> None:
    text = GPT.replace("mesh t,", "mesh x, y,") + "use sequence_parallel(x*y)\n"
    assert set(count(text)) == {(when, kind, "x*y") for when, kind in [
        ("forward", "all-gather"), ("forward", "reduce-scatter"), ("backward", "all-gather"),
        ("backward", "reduce-scatter"), ("again", "all-gather"),
    ]}  # fmt: skip
    assert {str(size) for size in messages(text).values()} == {"2*b*h*s"}
    # Context parallelism cuts the same dimension, and stays cut where tensor parallelism gathers.
    text = GPT + "use context_parallel(cp) * sequence_parallel(t)\n"
    assert same(messages(text)["forward", "all-gather", "t"], "2*s*b*h/cp")
    assert same(messages(text)["forward", "all-gather", "cp"], "2*s*b*h/t")
