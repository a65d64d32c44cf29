"""Multi-head latent attention: the library's deepseek_v3, its size, how it lies under tensor parallelism, and what it keeps."""

from __future__ import annotations

import pytest

from placelogic import cost
from placelogic.program.facts import Fact
from placelogic.prove import prove
from placelogic.simulate import simulate_layers
from tests.layers.agree import program_of
from tests.layers.bytes import kept, messages, same

SIZES = "let D, L, h, a, j, k, n, r, w, f, g, E, V\n"
MODEL = (
    "model deepseek_v3 { dense_layers D, moe_layers L, hidden h, heads a, q_latent j, kv_latent k, nope n, rope r, "
    "value w, ffn f, expert_ffn g, experts E, top 2, vocab V }\n"
)
HEAD = "mesh t, dp\nlet s, b\ndims batch = b, sequence = s\n" + SIZES + MODEL
HALF = "precision { params bf16, compute bf16 }\n"


def parameters(model: str) -> int:
    found = cost(f"mesh N\n{model}\nuse data_parallel(N)\n")
    return int(found.number(found.parameters))


def test_the_671_billion_parameters_of_deepseek_v3() -> None:
    """arXiv 2412.19437, section 4.2. Its weights have 671,026,419,200 without multi-token prediction; the bias
    that balances experts (one number for each of 256, in 58 layers) has no gradient, and is not in the model."""
    assert parameters("model deepseek_v3 { }") == 671_026_419_200 - 58 * 256


def test_counted_by_hand() -> None:
    """Of each layer: latents 7168 x (1536 + 512 + 64), queries 1536 x 128 x 192, keys and values 512 x 128 x 256, and
    the output 128 x 128 x 7168; their norms and two more."""
    attention = 7168 * (1536 + 512 + 64) + 1536 * 128 * 192 + 512 * 128 * 256 + 128 * 128 * 7168
    norms = 1536 + 512 + 2 * 7168
    dense = 3 * 7168 * 18432
    sparse = 7168 * 256 + (256 + 1) * 3 * 7168 * 2048
    total = 61 * (attention + norms) + 3 * dense + 58 * sparse + 2 * 129280 * 7168 + 7168
    assert parameters("model deepseek_v3 { }") == total


def test_deepseek_v2_is_one_too() -> None:
    """arXiv 2405.04434, section 3.1.2: 236 billion parameters, 60 layers, the first of them dense."""
    model = "model deepseek_v3 { dense_layers 1, moe_layers 59, hidden 5120, ffn 12288, expert_ffn 1536, shared_ffn 3072, "
    assert parameters(model + "experts 160, top 6, vocab 102400 }") == 235_741_434_880


# --- how it lies ------------------------------------------------------------------------------

STRATEGIES = {
    "tensor": ("dp, tp", "data_parallel(dp) * tensor_parallel(tp)"),
    "sequence": ("dp, tp", "zero1(dp) * sequence_parallel(tp)"),
    "context": ("cp, tp", "context_parallel(cp) * sequence_parallel(tp)"),
    "ulysses": ("cp, tp", "ulysses(cp) * tensor_parallel(tp)"),
    "pipeline": ("dp, pp", "zero2(dp) * pipeline(pp)"),
    "megatron": ("dp, tp", "data_parallel(dp) * megatron_sequence_parallel(tp)"),
    "megatron_tensor": ("dp, tp", "data_parallel(dp) * megatron_tensor_parallel(tp)"),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_derived_is_right(strategy: str) -> None:
    axes, use = STRATEGIES[strategy]
    program = program_of(f"mesh {axes}\n{SIZES}{MODEL}use {use}\n")
    assert prove(program).verdict == "proved"
    quantities = {let.name: 1 for let in program.lets if let.value is None}
    layers = 2 if "pp" in axes else 1
    outcome = simulate_layers(program, dict.fromkeys(program.mesh.axes, 2), {**quantities, "L": layers, "D": layers})
    assert outcome.right, outcome


def fact(use: str, weights: str) -> Fact:
    return program_of(f"mesh tp\n{SIZES}{MODEL}use {use}\n").facts[weights]["tp"]


def test_gradients_of_down_projections() -> None:
    """Whole under tensor parallelism, where the gradients of the latents are added up; with sequence parallelism each
    device has what its piece of the sequence says, and shares are left."""
    assert fact("tensor_parallel(tp)", "latent").kind == "replicated"
    assert fact("sequence_parallel(tp)", "latent").kind == "partial"
    assert fact("tensor_parallel(tp)", "attn").kind == "shard"


@pytest.mark.parametrize(
    ("use", "line", "code"),
    [
        ("sequence_parallel(tp)", "sync latent over tp by none", "GI01"),
        ("tensor_parallel(tp)", "sync latent over tp by sum", "GI02"),
        ("tensor_parallel(tp)", "backward k_rope of layer over tp by none", "FW06"),
        ("tensor_parallel(tp)", "backward kv_norm of dense over tp by none", "FW06"),
        ("tensor_parallel(tp)", "backward q_norm of layer over tp by mean", "FW06"),
    ],
)
def test_what_is_left_out_is_found(use: str, line: str, code: str) -> None:
    """The rotary part of the key is one for all heads, so its gradient is a sum over the heads of all devices."""
    program = program_of(f"mesh tp\n{SIZES}{MODEL}use {use}\n{line}\n")
    report = prove(program)
    assert report.verdict == "refuted"
    assert report.findings[0].code == code
    quantities = {let.name: 1 for let in program.lets if let.value is None}
    assert not simulate_layers(program, {"tp": 2}, quantities).right


# --- what is kept and sent --------------------------------------------------------------------


def test_what_a_layer_keeps() -> None:
    """In 16 bits: x, n, y and m of the width; both latents, before and after their norms; query, key, value and the
    result of attention; and four tensors of the MLP."""
    width, latents = "8*h", "4*(j + k)"
    heads, mlp = "4*a*(n + r) + 4*a*w", "8*f"
    for use, form in (
        ("", f"s*b*({width} + {latents} + {heads} + {mlp})"),
        ("use tensor_parallel(t)\n", f"s*b*({width} + {latents} + ({heads} + {mlp})/t)"),
        ("use sequence_parallel(t)\n", f"s*b/t*({width} + {latents} + {heads} + {mlp})"),
    ):
        assert same(kept(HEAD + HALF + use, "dense"), form), use


def test_latents_cross_and_not_the_width() -> None:
    """Into the heads go the latents: with sequence parallelism what is gathered for attention are j + k + r places
    of a token, not h, and what comes back is reduced likewise."""
    found = messages(HEAD + HALF + "use sequence_parallel(t)\n", "dense")
    assert same(found["forward", "all-gather", "t"], "s*b*(j + k + r + h)")
    assert same(found["backward", "reduce-scatter", "t"], "s*b*(j + k + r + h)")
    assert same(found["forward", "reduce-scatter", "t"], "2*s*b*h")
    plain = messages(HEAD + HALF + "use tensor_parallel(t)\n", "dense")
    assert same(plain["forward", "all-reduce", "t"], "2*s*b*h")
    assert same(plain["backward", "all-reduce", "t"], "s*b*(j + k + r + h)")


def test_a_stage_has_whole_layers_of_each_kind() -> None:
    """61 layers on 16 stages: the first has the three dense ones, and one with experts."""
    found = cost("mesh pp = 16\nmodel deepseek_v3 { }\nuse pipeline(pp)\n")
    first = next(place for place in found.places if place.name == "first")
    assert first.stage is not None and first.stage.whole == (("dense", 3), ("layer", 1))
    held = found.sum(lambda h: h.place == first and h.group == "mlp" and h.part == "params")
    assert found.number(held) == 4 * 3 * 3 * 7168 * 18432
