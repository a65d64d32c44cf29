"""Saved activations and the traffic of layers: per device and step, with schedules and micro-batches.

Per layer they are compared with published forms in tests/layers/test_published.py.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy
from sympy import Symbol, simplify

from placelogic.cost import Cost
from placelogic.problem import SpecError
from tests.cost.specs import of

HALF = "precision { params fp16, compute fp16, gradients fp16, master fp32, moments fp32 }\noptimizer adam\n"
GIB = 2**30


def layers_of(cost: Cost, **sizes: int) -> Fraction:
    """Bytes of the activations of the repeated layers, on the device that has the most."""
    found = [
        cost.number(cost.sum(lambda h: h.place == place and h.state == "activations" and h.group == "layer"), **sizes)
        for place in cost.places
    ]
    assert all(value is not None for value in found)
    return max(value for value in found if value is not None)


PAPER = {
    "22B": (6144, 64, 48, 4, 1, 1),
    "175B": (12288, 96, 96, 1, 8, 3),
    "530B": (20480, 128, 105, 1, 35, 3),
    "1T": (25600, 160, 128, 1, 64, 1),
}
"""Width, heads, layers, micro-batch, stages, chunks of arXiv 2205.05198, table 3; t = 8, s = 2048, v = 51200."""

FIGURE = {
    ("22B", "none"): 59.25, ("22B", "both"): 9.5625, ("175B", "none"): 66.84375, ("175B", "both"): 12.3515625,
    ("530B", "none"): 114.0234375, ("530B", "both"): 23.076171875, ("1T", "none"): 131.25, ("1T", "both"): 26.5625,
}  # fmt: skip
"""Gibibytes of figure 1: tensor parallelism only, and with sequence parallelism and selective recomputation."""


def paper(model: str, how: str) -> Cost:
    h, a, layers, b, p, chunks = PAPER[model]
    schedule = f"interleaved_1f1b, {chunks}" if chunks > 1 else "1f1b"
    stages = f" * pipeline(p, {schedule})" if p > 1 else ""
    mesh = f"mesh t = 8, p = {p}" if p > 1 else "mesh t = 8"
    lines = "use tensor_parallel(t)" if how == "none" else "checkpoint c of layer\nuse sequence_parallel(t)"
    return of(
        f"{mesh}\nmicrobatches 512\nmodel gpt {{ layers {layers}, hidden {h}, heads {a}, vocab 51200 }}\n{HALF}"
        f"dims batch = {b}, sequence = 2048\n{lines}{stages}"
    )


@pytest.mark.parametrize(("model", "how"), FIGURE)
def test_the_models_of_the_paper(model: str, how: str) -> None:
    assert layers_of(paper(model, how)) == Fraction(FIGURE[model, how]) * GIB


@pytest.mark.parametrize(("s", "gib"), [(2048, 28.5078125), (4096, 97.015625), (8192, 354.03125)])
def test_a_small_model_with_the_dropout_of_its_embedding(s: int, gib: float) -> None:
    """L*s*b*h*(34 + 5as/h) + s*b*h, as the Ultrascale Playbook draws it: width 4096, 32 heads and layers."""
    cost = of(
        f"mesh t = 1\nmodel gpt {{ layers 32, hidden 4096, heads 32, vocab 32000 }}\n{HALF}dims batch = 1, sequence = {s}"
    )
    found = cost.number(cost.sum(lambda h: h.state == "activations" and h.group != "finish"))
    assert found == Fraction(gib) * GIB


def test_activations_on_the_host() -> None:
    text = f"mesh t\n{GPT}use tensor_parallel(t)\n"
    cost = of(text + "place * { activations offloaded }")
    assert activations(cost, "all") != 0
    assert all(h.host for h in cost.held if h.state == "activations")
    for line in ("place attn { activations offloaded }", "place attn { activations materialized }"):
        with pytest.raises(SpecError) as refused:
            of(text + line)
        assert refused.value.problems[0].code == "PL387"
    with pytest.raises(SpecError) as refused:
        of(text + "use activation_checkpointing()\ncheckpoint c of layer")
    assert refused.value.problems[0].code == "PL387"


GPT = "let h, a, L, s, b, v\nassume h % a == 0\nmodel gpt { layers L, hidden h, heads a, vocab v }\n" + HALF
GPT += "dims batch = b, sequence = s\n"


def activations(cost: Cost, place: str, group: str = "layer") -> sympy.Expr:
    return cost.sum(lambda h: h.place.name == place and h.state == "activations" and h.group == group)


@pytest.mark.parametrize(
    ("schedule", "first", "last"),
    [
        ("gpipe", "M", "M"),
        ("1f1b", "Min(p, M)", "Min(1, M)"),
        ("interleaved_1f1b, 3", "Min(p + (p - 1)/3, M)", "Min(p + (p - 1)/3, M)"),
        ("zero_bubble", "Min(p, M)", "Min(p, M)"),
    ],
)
def test_micro_batches_in_flight(schedule: str, first: str, last: str) -> None:
    cost = of(f"mesh t, p\nmicrobatches M\n{GPT}use sequence_parallel(t) * pipeline(p, {schedule})")
    layer = sympy.sympify("s*b*h/t*(34 + 5*a*s/h)*L/p", {"s": Symbol("s")})
    for place, factor in (("first", first), ("last", last)):
        assert simplify(activations(cost, place) - layer * sympy.sympify(factor)) == 0


def test_the_first_stage_of_1f1b_does_not_depend_on_the_stages() -> None:
    """Equation 5: sbhL/t (34 + 5as/h), where there are micro-batches enough."""
    cost = of(f"mesh t, p\nmicrobatches M\n{GPT}use sequence_parallel(t) * pipeline(p)")
    assert cost.number(
        activations(cost, "first"), t=4, p=4, M=64, s=128, b=2, h=64, a=4, L=8, v=100
    ) == 128 * 2 * 64 * 8 // 4 * (34 + 40)


def test_the_ends_of_the_model() -> None:
    """Dropout of the embedding for p micro-batches, on the first stage; norm, output matrix and loss on the last."""
    cost = of(f"mesh t, p\nmicrobatches M\n{GPT}use sequence_parallel(t) * pipeline(p)")
    assert simplify(activations(cost, "first", "start") - sympy.sympify("s*b*h/t*Min(p, M)")) == 0
    assert simplify(activations(cost, "last", "finish") - sympy.sympify("4*s*b*h/t*(1 + v/h)")) == 0
    assert activations(cost, "last", "start") == activations(cost, "first", "finish") == 0


def test_several_layers_run_again_together() -> None:
    """Of k layers one input is kept, and all of their activations exist at once: l/k Ainput and k Aintermediate, as in
    Narayanan et al., arXiv 2104.04473, section 3.5. The input of the first is kept already."""
    cost = of(f"mesh t\nlet k\n{GPT}use tensor_parallel(t)\ncheckpoint layer every k")
    assert simplify(activations(cost, "all") - sympy.sympify("2*s*b*h*L/k")) == 0
    (again,) = cost.transients
    layer = sympy.sympify("s*b*h*(10 + 24/t + 5*a*s/(h*t))", {"s": Symbol("s")})
    together = sympy.Min(Symbol("L"), Symbol("k"))
    assert simplify(again.bytes - together * layer + 2 * sympy.sympify("s*b*h")) == 0
    one = of(f"mesh t\n{GPT}use tensor_parallel(t)\ncheckpoint layer every 1")
    plain = of(f"mesh t\n{GPT}use tensor_parallel(t)\ncheckpoint layer")
    assert simplify(one.memory.peak - plain.memory.peak) == 0
    assert simplify(one.traffic.sent - plain.traffic.sent) == 0


def test_layers_that_are_left_over_keep_an_input_too() -> None:
    """Ten layers by four: three inputs, where two and a half are counted evenly."""
    text = GPT.replace("let h, a, L,", "let h, a, L = 10,")
    cost = of(f"mesh t\n{text}use tensor_parallel(t)\ncheckpoint layer every 4")
    held = [h for h in cost.held if h.group == "layer" and h.state == "activations"]
    one = sympy.sympify("s*b*h", {"s": Symbol("s")})
    assert simplify(cost.at(sum(h.even for h in held)) - one * sympy.Rational(5, 2)) == 0
    assert simplify(cost.at(sum(h.padded for h in held)) - one * 3) == 0


def test_recomputation_is_a_transient_of_one_layer() -> None:
    cost = of(f"mesh t\n{GPT}use tensor_parallel(t)\ncheckpoint layer")
    assert simplify(activations(cost, "all") - sympy.sympify("2*s*b*h*L")) == 0
    (again,) = (t for t in cost.transients if t.kind == "recomputed")
    assert again.unit == "one of L layers"
    assert simplify(again.bytes - sympy.sympify("s*b*h*(8 + 24/t + 5*a*s/(h*t))")) == 0


def volume(cost: Cost, axis: str) -> sympy.Expr:
    return simplify(sum(c.sent for c in cost.collectives if c.axes == (axis,) and c.group == "layer"))


def test_tensor_and_sequence_parallelism_send_as_much() -> None:
    """Four all-reduces of bsh a layer and micro-batch, each twice (t - 1)/t of it; what is kept cut is gathered
    once more."""
    head = f"mesh t\nmicrobatches M\n{GPT}"
    reduces = volume(of(head + "use tensor_parallel(t)"), "t")
    assert simplify(reduces - sympy.sympify("M*L*4*2*(t - 1)/t*2*b*s*h")) == 0
    halves = of(head + "use sequence_parallel(t)")
    assert simplify(volume(halves, "t") - reduces * sympy.Rational(10, 8)) == 0
    once_more = sum(c.sent for c in halves.collectives if c.what.endswith("once more") and c.group == "layer")
    assert simplify(once_more - reduces * sympy.Rational(2, 8)) == 0


def test_context_parallelism_sends_keys_and_values_round() -> None:
    text = "mesh c\nlet h, a, k, f, L, s, b, v\nassume h % a == 0, a % k == 0\n"
    text += (
        "model llama { layers L, hidden h, heads a, kv_heads k, ffn f, vocab v }\n"
        + HALF
        + "dims batch = b, sequence = s\n"
    )
    cost = of(text + "use context_parallel(c)")
    # Keys and values forward, again backward, and their gradients: three times (c - 1)/c of 2bsh k/a in two bytes.
    assert simplify(volume(cost, "c") - sympy.sympify("L*3*(c - 1)/c*2*2*b*s*h*k/a")) == 0
    assert all(c.what.endswith("(ring)") for c in cost.collectives if c.group == "layer")


def test_stages_hand_on_the_stream() -> None:
    cost = of(f"mesh t, p\nmicrobatches M\n{GPT}use sequence_parallel(t) * pipeline(p)")
    at = {"t": 4, "p": 4, "M": 8, "s": 128, "b": 2, "h": 64, "a": 4, "L": 8, "v": 100}
    one = 128 * 2 * 64 * 2 // 4

    def total(place: str) -> Fraction | None:
        return cost.number(
            sum(c.sent for c in cost.collectives if c.operation == "send" and place in [p.name for p in c.places]), **at
        )

    assert total("first") == total("last") == 8 * one
    assert total("middle") == 2 * 8 * one


def test_experts_keep_and_send_what_their_device_routes() -> None:
    text = "mesh e\nlet h, a, f, L, s, b, v, k, n\nassume h % a == 0\n" + HALF
    text += "model moe { layers L, hidden h, heads a, ffn f, vocab v, experts n, top k, experts_over e }\n"
    cost = of(text + "dims batch = b*e, sequence = s\nuse expert_parallel(e)")
    assert Symbol("e") not in activations(cost, "all").free_symbols
    # There and back, and both again for the gradients.
    assert simplify(volume(cost, "e") - sympy.sympify("L*4*(e - 1)/e*2*k*b*s*h")) == 0


def test_several_repeated_blocks_on_stages() -> None:
    head = "mesh e, p\nmicrobatches M\nmodel deepseek_moe { moe_layers 27, hidden 2048, heads 16, ffn 10944, "
    head += "expert_ffn 1408, experts 64, top 6, vocab 102400, experts_over e }\nuse expert_parallel(e)"
    cost = of(head + " * pipeline(p)")
    assert any("consecutive layers of `dense` and `layer`" in note for note in cost.notes)
    assert {h.group for h in cost.held if h.state == "activations"} == {"dense", "layer", "finish"}


def test_what_costs_do_not_know() -> None:
    with pytest.raises(SpecError) as refused:
        of(f"mesh t\n{GPT}precision mlp {{ params bf16, compute bf16 }}")
    assert refused.value.problems[0].code == "PL362"
    assert not [h for h in of("mesh N\nweights w { size 4 }").held if h.state == "activations"]
