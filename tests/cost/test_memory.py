"""Memory of one device, derived and compared with what is known."""

from __future__ import annotations

from itertools import product
from math import ceil

import pytest
import sympy
from sympy import Symbol, simplify

from placelogic import cost
from placelogic.cost import Cost
from placelogic.problem import SpecError
from tests.cost.specs import ADAM16, LAYERS, ONE, of

P, N = Symbol("P"), Symbol("N")
K = 12


def equal(a: sympy.Expr, b: sympy.Expr | int) -> bool:
    return simplify(a - b) == 0


@pytest.mark.parametrize(
    ("strategy", "held"),
    [
        ("data_parallel", (4 + K) * P),
        ("zero1", 4 * P + K * P / N),
        ("zero2", 2 * P + (2 + K) * P / N),
        ("zero3", (4 + K) * P / N),
    ],
)
def test_zero_stages(strategy: str, held: sympy.Expr) -> None:
    """Rajbhandari et al., arXiv 1910.02054, figure 1."""
    assert equal(of(ONE + f"use {strategy}(N)").memory.held, held)


def test_eight_times_less_at_eight_is_without_the_unit() -> None:
    """ZeRO-3 holds 8 times less than data parallelism at N = 8, and 7.76 times less with one of 32 units."""
    plain, sharded = of(LAYERS + "use data_parallel(N)"), of(LAYERS + "use zero3(N)")
    assert equal(plain.memory.held / sharded.memory.held, N)
    assert equal(sharded.memory.with_unit, 16 * P / N + 2 * P / 32)
    with_unit = (plain.memory.with_unit / sharded.memory.with_unit).subs(N, 8)
    assert abs(float(simplify(with_unit)) - 16 / (2 + 2 / 32)) < 1e-12
    assert f"{float(simplify(with_unit)):.2f}" == "7.76"
    # the gradient of a unit is whole for a while as well
    assert equal(sharded.memory.peak, 16 * P / N + 4 * P / 32)


@pytest.mark.parametrize(
    ("optimizer", "precision", "bytes_"),
    [
        ("adam", "params bf16, gradients bf16, moments bf16", 8),
        ("adam", "params bf16, gradients bf16, moments fp32", 12),
        ("adam", "params fp16, gradients fp16, master fp32, moments fp32", 16),
        ("adam", "params fp32", 16),
        ("adam", "params bf16, gradients fp32, master fp32, moments fp32", 18),
        ("sgd", "params fp32", 8),
        ("sgd", "params fp16, master fp32", 8),
        ("sgd_momentum", "params fp32", 12),
        ("sgd_momentum", "params fp16, master fp32", 12),
        ("lion", "params fp32", 12),
        ("muon", "params bf16, gradients bf16, master fp32", 12),
        ("adamw8bit", "params bf16, gradients bf16", 6),
        ("adamw8bit", "params bf16, gradients bf16, master fp32, moments fp32", 10),
    ],
)
def test_bytes_per_parameter(optimizer: str, precision: str, bytes_: int) -> None:
    text = f"mesh N\nlet P\nweights model {{ size P }}\noptimizer {optimizer}\nprecision {{ {precision} }}\n"
    assert equal(of(text + "use data_parallel(N)").memory.held, bytes_ * P)


@pytest.mark.parametrize(("strategy", "held"), [("data_parallel", 20 * P), ("zero1", 4 * P + 16 * P / N)])
def test_twenty_bytes_with_a_gradient_copy_of_the_optimizer(strategy: str, held: sympy.Expr) -> None:
    """Megatron-LM's distributed optimizer with fp16 gradients: 20, and 4 + 16/d (docs, dist_optimizer)."""
    text = "mesh N\nlet P\nweights model { size P }\noptimizer adam\n"
    text += "precision { params fp16, gradients fp16, update fp32, master fp32, moments fp32 }\n"
    assert equal(of(text + f"use {strategy}(N)").memory.held, held)


def test_every_gradient_buffer_counts() -> None:
    text = (
        "mesh N\nlet P\nweights model { size P }\noptimizer adam\n"
        + """\
precision { params fp16, gradients fp32, master fp32, moments fp32 }
use data_parallel(N)
step model {
  each microbatch {
    accumulate
    accumulate into main
  }
  reduce main over N by mean
  update from main
}
"""
    )
    assert equal(of(text).memory.held, (2 + 4 + 4 + 4 + 8) * P)


def test_the_state_of_other_optimizers_is_refused() -> None:
    with pytest.raises(SpecError, match="PL360"):
        of(ONE.replace("optimizer adam", "optimizer shampoo") + "use data_parallel(N)")


def test_silence_means_fp32_and_is_said() -> None:
    found = of("mesh N\nlet P\nweights model { size P }\nuse data_parallel(N)")
    assert equal(found.memory.held, 16 * P)
    assert "no precision of params is stated for model: fp32 is assumed" in found.notes


def test_frozen_weights_are_only_held() -> None:
    assert equal(of(ONE.replace("weights model", "weights other { size 4 }\nweights model") + "freeze model\n"
                    "use data_parallel(N)").memory.group("model"), 2 * P)  # fmt: skip


@pytest.mark.parametrize(
    ("reshard", "kept", "unit"), [("true", 0, P / 16), ("false", 2 * P, 0), ("8", 2 * P / 8, P / 16)]
)
def test_reshard_after_forward(reshard: str, kept: sympy.Expr, unit: sympy.Expr) -> None:
    found = of(LAYERS + f"use fsdp(N, reshard_after_forward = {reshard})")
    assert equal(found.memory.with_unit, 16 * P / N + kept + unit)


def test_units_gathered_ahead() -> None:
    """PyTorch FSDP, arXiv 2304.11277, section 3.2.1: shards and the largest unit; two with one in flight."""
    text = LAYERS + "use zero3(N)\n"
    assert equal(cost(text, ahead=1).memory.with_unit, 16 * P / N + 2 * 2 * P / 32)


def test_mixed_precision_units() -> None:
    """arXiv 2304.11277, section 4.4: shards in full precision, units in low precision."""
    text = "mesh F\nlet P\nweights model { size P, layers 4 }\noptimizer sgd\nprecision { params fp32, compute bf16 }\n"
    found = of(text + "use fsdp(F)").memory
    assert equal(found.state("params"), 4 * P / Symbol("F"))
    assert equal(found.with_unit - found.held, 2 * P / 4)


def test_a_unit_is_a_layer_of_all_weights() -> None:
    text = "mesh N\nlet a, b, L\nweights attn { size a*L, layers L }\nweights mlp { size b*L, layers L }\n"
    text += "weights embed { size 7 }\n" + ADAM16 + "use zero3(N)\n"
    units = {t.unit for t in of(text).transients}
    assert units == {"one of L layers", "embed"}
    a, b = Symbol("a"), Symbol("b")
    found = cost(text)
    gathered = found.memory.with_unit - found.memory.held
    assert equal(gathered, sympy.Max(14, 2 * a + 2 * b))
    alone = cost(text, unit="group")
    assert equal(alone.memory.with_unit - alone.memory.held, sympy.Max(14, 2 * a, 2 * b))


def test_shards_that_do_not_divide_are_rounded_up() -> None:
    found = of("mesh N\nweights model { size 10 }\n" + ADAM16 + "use zero3(N)", N=4)
    assert found.number(found.memory.held) == 40
    assert found.number(found.memory.padded) == 3 * 16


@pytest.mark.parametrize("size", [1, 7, 24, 25])
def test_the_largest_shard_by_counting(size: int) -> None:
    """Every element dealt out to the devices of a mesh, by ceil-sized blocks, one cut inside the other."""
    for dp, tp in product((1, 2, 3, 4), repeat=2):
        found = of(f"mesh dp, tp\nweights model {{ size {size} }}\nuse zero3(dp) * tensor_parallel(tp)\n", dp=dp, tp=tp)
        outer, inner = ceil(size / dp), ceil(ceil(size / dp) / tp)
        held = {(e // outer, e % outer // inner, e) for e in range(size)}
        counts = [sum(1 for d, t, _ in held if (d, t) == device) for device in product(range(dp), range(tp))]
        assert found.number(found.memory.padded) == 16 * max(counts)


def test_stages_hold_whole_layers_and_ends_hold_more() -> None:
    text = "mesh pp\nweights layer { size 60, layers 6 }\nweights embed { size 7, used on first and last }\n"
    text += "weights head { size 5, used on last }\n" + ADAM16 + "use pipeline(pp)\n"
    found = of(text, pp=4)
    by_place = {place.name: (found.number(found.held_on(place)), found.number(found.padded_on(place)))
                for place in found.places}  # fmt: skip
    # 6 layers on 4 stages: 2, 2, 2 and none
    assert by_place == {
        "first": (16 * (15 + 7), 16 * (20 + 7)),
        "middle": (16 * 15, 16 * 20),
        "last": (16 * (15 + 12), 16 * 12),
    }
    assert found.number(found.memory.held) == 16 * 27
    assert found.number(found.memory.padded) == 16 * 27
    alone = of(text, pp=1)
    assert [place.name for place in alone.places] == ["single"]
    assert alone.number(alone.memory.held) == 16 * 72
    open_ = of(text)
    assert [open_.number(open_.memory.held, pp=n) for n in (1, 2, 4)] == [16 * 72, 16 * 42, 16 * 27]


def test_stages_in_a_v_hold_both_ends_on_one_device() -> None:
    text = "mesh pp\nweights layer { size 60, layers 6 }\nweights embed { size 7, used on first }\n"
    text += "weights head { size 5, used on last }\n" + ADAM16 + "use pipeline(pp, schedule = zbv)\n"
    found = of(text, pp=2)
    assert {place.name: found.number(found.held_on(place)) for place in found.places} == {
        "first": 16 * 42,
        "rest": 16 * 30,
    }


def test_ends_of_two_axes_are_refused() -> None:
    text = "mesh a, b\nweights x { size 4, used on first of a }\nweights y { size 4, used on first of b }\n"
    with pytest.raises(SpecError, match="PL361"):
        of(text)


def test_params_stay_cut_over_groups_that_come_out_even() -> None:
    text = LAYERS + "use fsdp(N, reshard_after_forward = 8)"
    for devices in (1, 4, 12):
        with pytest.raises(SpecError, match="PL368"):
            of(text, N=devices)
    by_eight, plain = of(text, N=8), of(LAYERS + "use fsdp(N)", N=8)
    assert equal(by_eight.at(by_eight.memory.peak), plain.at(plain.memory.peak))
    assert equal(by_eight.at(by_eight.traffic.sent), plain.at(plain.traffic.sent))
    assert of(text, N=16).traffic.sent != plain.traffic.sent


def test_optimizer_states_on_the_host() -> None:
    """ZeRO-Offload: 16 bytes per parameter become 2 on the device (arXiv 2101.06840)."""
    found = of(ONE + "use data_parallel(N) * offload()\nplace * { gradients offloaded }")
    assert equal(found.memory.held, 2 * P)
    assert equal(found.memory.host, 14 * P)


def test_gradients_are_copied_to_a_host_that_updates() -> None:
    found = of(ONE + "use zero2(N) * offload(N)")
    assert equal(found.memory.held, 2 * P + 2 * P / N)
    assert equal(found.memory.host, 12 * P / N + 2 * P / N)


def test_params_on_the_host_are_fetched_a_unit_at_a_time() -> None:
    found = of(LAYERS + "use zero3(N) * offload(N)\nplace * { params offloaded, gradients offloaded }")
    assert found.memory.held == 0
    assert equal(found.memory.with_unit, 2 * P / 32)
    assert equal(found.memory.host, 16 * P / N)


def test_params_that_are_made_from_the_master_copy() -> None:
    found = of(LAYERS + "batch over N\nplace * { params materialized }\n")
    assert equal(found.memory.state("params"), 0)
    assert equal(found.memory.with_unit, 14 * P + 2 * P / 32)


def test_terms_add_up_to_totals() -> None:
    text = "mesh dp, tp, pp\nmicrobatches M\nmodel gpt { layers 24, hidden 64, heads 4, vocab 1000 }\n" + ADAM16
    text += "dims batch = 2*dp, sequence = 128\n"
    found: Cost = of(text + "use zero1(dp) * tensor_parallel(tp) * pipeline(pp)", dp=2, tp=2, pp=4, M=8)
    for place in found.places:
        parts = sum(found.known(h.bytes) or 0 for h in found.held if h.place == place and not h.host)
        assert parts == found.number(found.held_on(place))
    states = ("params", "optimizer", "gradients", "activations")
    first = next(place for place in found.places if place.name == "last")
    whole = found.sum(lambda h: h.place == first and not h.host)
    by_state = sum(found.sum(lambda h, s=s: h.place == first and h.state == s) for s in states)
    assert equal(whole, by_state)


def test_gradients_are_never_of_eight_bits() -> None:
    """Matrices computed in fp8 still hand on gradients of 16 bits."""
    text = "mesh N\nlet P\nweights model { size P, layers 4 }\noptimizer sgd\n"
    text += "precision { params bf16, compute fp8, gradients fp32 }\nuse zero3(N)\n"
    found = of(text)
    assert equal(found.memory.peak - found.memory.held, P / 4 + 2 * P / 4)


def test_sizes_that_assumptions_rule_out_are_told() -> None:
    text = "mesh N\nassume N >= 4\nweights model { size 64 }\nuse zero3(N)\n"
    assert any("`N >= 4` does not hold" in note for note in of(text, N=2).notes)
    assert not any("does not hold" in note for note in (*of(text, N=8).notes, *of(text).notes))


def test_a_number_says_what_it_lacks() -> None:
    found = cost("mesh N\nlet P\nweights model { size P }\nuse zero3(N)\n", at={"N": 8})
    assert str(found.at(found.memory.peak)) == "10*P"
    assert found.number(found.memory.peak, P=8) == 80
    assert found.known(found.memory.peak) is None
    with pytest.raises(ValueError, match="^there is no number: P is missing$"):
        found.number(found.memory.peak)


def test_a_table_of_positions_is_as_long_as_the_sequence_where_nothing_says_more() -> None:
    text = """
mesh dp = 2
weights table { kind embedding }
weights places { kind vector }
dims batch = 2*dp, sequence = 10, hidden = 4, vocab = 6
block start {
  input t(batch, sequence)
  a = embedding t with table from vocab to hidden
  b = bias a with places over sequence, hidden
}
use data_parallel(dp)
"""
    assert equal(of(text).memory.group("places"), 10 * 4 * 16)  # fp32: parameters, gradients and two moments
