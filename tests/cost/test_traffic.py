"""What one device sends in a step."""

from __future__ import annotations

import pytest
import sympy
from sympy import Symbol, simplify

from placelogic import cost
from tests.cost.specs import ADAM16, LAYERS, ONE, of

P, N, M = Symbol("P"), Symbol("N"), Symbol("M")
RING = (N - 1) / N


def equal(a: sympy.Expr, b: sympy.Expr | int) -> bool:
    return simplify(a - b) == 0


@pytest.mark.parametrize(
    ("strategy", "elements", "limit"),
    [("data_parallel", 2, 2), ("zero1", 2, 2), ("zero2", 2, 2), ("zero3", 3, 3)],
)
def test_zero_stages(strategy: str, elements: int, limit: int) -> None:
    """arXiv 1910.02054, section 7, in elements of two bytes: 2, 2, 2 and 3 times the parameters."""
    found = of(ONE + f"use {strategy}(N)").traffic
    assert equal(found.sent, 2 * elements * P * RING)
    assert equal(found.limit, 2 * limit * P)


def test_three_halves_for_every_n() -> None:
    ratio = of(ONE + "use zero3(N)").traffic.sent / of(ONE + "use data_parallel(N)").traffic.sent
    assert simplify(ratio) == sympy.Rational(3, 2)


@pytest.mark.parametrize(
    ("strategy", "elements"),
    [("data_parallel", 2), ("zero1", 2), ("zero2", 1 + M), ("zero3", 3 * M)],
)
def test_what_micro_batches_repeat(strategy: str, elements: sympy.Expr) -> None:
    found = of(ONE + f"microbatches M\nuse {strategy}(N)").traffic
    assert equal(found.sent, 2 * elements * P * RING)


def test_a_step_that_reduces_before_it_is_needed_costs_more() -> None:
    """ZeRO-1 by an all-reduce and an all-gather: 3 instead of 2."""
    step = "step model {\n each microbatch { accumulate }\n reduce over N by mean\n update\n gather params over N\n}"
    assert equal(of(ONE + "use zero1(N)\n" + step).traffic.sent, 6 * P * RING)


@pytest.mark.parametrize(
    ("loop", "times"),
    [("each microbatch", M), ("each microbatch but last", M - 1), ("each microbatch but first", M - 1),
     ("first microbatch", 1), ("last microbatch", 1)],
)  # fmt: skip
def test_turns_of_a_loop(loop: str, times: sympy.Expr) -> None:
    step = f"step model {{\n {loop} {{ reduce over N by mean\n accumulate }}\n update\n}}"
    found = of(ONE + "microbatches M\nuse data_parallel(N)\n" + step).traffic
    assert equal(found.sent, 4 * P * RING * times)


def test_a_micro_batch_by_its_number() -> None:
    step = "step model {\n microbatch 3 { reduce over N by mean\n accumulate }\n update\n}"
    found = of(ONE + "microbatches M\nuse data_parallel(N)\n" + step)
    at_two = found.number(found.traffic.sent, P=8, N=2, M=2)
    at_three = found.number(found.traffic.sent, P=8, N=2, M=3)
    assert (at_two, at_three) == (0, 16)


@pytest.mark.parametrize(
    ("reshard", "elements"), [("true", 3 * RING), ("false", 2 * RING), ("4", 2 * RING + sympy.Rational(3, 4))]
)
def test_reshard_after_forward(reshard: str, elements: sympy.Expr) -> None:
    found = of(LAYERS + f"use fsdp(N, reshard_after_forward = {reshard})").traffic
    assert equal(found.sent, 2 * P * elements)


def test_hybrid_sharding_between_groups() -> None:
    """arXiv 2304.11277, section 3.2.2, exact: 2 M (W - G)/(G W) elements across groups of G of W devices."""
    text = "mesh r, G\nlet P\nweights model { size P }\n" + ADAM16 + "use hsdp(shard = G, replicate = r)\n"
    found = cost(text, inter=["r"])
    r, group = Symbol("r"), Symbol("G")
    world = r * group
    assert equal(found.traffic.inter, 2 * 2 * P * (world - group) / (group * world))
    assert equal(found.traffic.over("r"), found.traffic.inter)
    assert equal(found.traffic.intra, 3 * 2 * P * (group - 1) / group)


def test_nodes_first_sends_as_much_as_one_ring() -> None:
    """What stays within nodes of g devices and what crosses k nodes add up to the flat ring."""
    text = "mesh k, g\naxis n = k*g\nlet P\nweights model { size P }\n" + ADAM16 + "use data_parallel(n)\n"
    found = cost(text, inter=["k"])
    k, g = Symbol("k"), Symbol("g")
    assert equal(found.traffic.intra, 2 * 2 * P * (g - 1) / g)
    assert equal(found.traffic.inter, 2 * 2 * P / g * (k - 1) / k)
    assert equal(found.traffic.intra + found.traffic.inter, found.traffic.sent)
    # 4 GiB of fp16 gradients, 4 nodes of 8: 7 and 0.75 GiB
    gib = (
        found.number(found.traffic.intra, P=2 * 2**30, k=4, g=8),
        found.number(found.traffic.inter, P=2 * 2**30, k=4, g=8),
    )
    assert [float(amount or 0) / 2**30 for amount in gib] == [7.0, 0.75]


def test_tied_weights_meet_between_two_stages() -> None:
    text = "mesh dp, pp\nweights embed { size 60, used on first and last }\nweights layer { size 60, layers 6 }\n"
    text += ADAM16 + "use data_parallel(dp) * pipeline(pp)\n"
    found = of(text)
    (tie,) = [c for c in found.collectives if c.axes == ("pp",) and c.places[0].name != "single"]
    assert tie.members == 2
    assert [place.name for place in tie.places] == ["first", "last"]
    assert equal(tie.sent, 120)
    assert not [c for c in of(text, pp=1).collectives if c.axes == ("pp",)]


def test_a_shard_is_reduced_over_the_other_axes() -> None:
    text = "mesh dp, cp, tp\nlet P\nweights model { size P }\n" + ADAM16
    found = of(text + "use zero2(dp) * context_parallel(cp) * tensor_parallel(tp)").traffic
    dp, cp, tp = map(Symbol, ("dp", "cp", "tp"))
    assert equal(found.over("cp"), 2 * 2 * P / (dp * tp) * (cp - 1) / cp)
    assert equal(found.over("dp"), 2 * 2 * P / tp * (dp - 1) / dp)


def test_broadcast_and_gather_of_gradients() -> None:
    step = "step model {\n each microbatch { accumulate }\n reduce scattered over N by mean\n gather gradients over N\n"
    step += " update\n broadcast params over N from 0\n}"
    found = of(ONE + "use data_parallel(N)\n" + step)
    assert [(c.operation, c.what) for c in found.collectives] == [
        ("reduce-scatter", "gradients"), ("all-gather", "gradients"), ("broadcast", "params"),
    ]  # fmt: skip
    assert found.number(found.traffic.sent, P=8, N=4) == 12 + 12 + 16
    assert found.number(found.traffic.sent, P=8, N=1) == 0


def test_experts_are_reduced_among_their_copies_only() -> None:
    text = "mesh edp, ep\nlet E\nweights expert { size E, kind expert, routed over ep }\nweights attn { size 8 }\n"
    found = of(text + ADAM16 + "use data_parallel(edp) * expert_parallel(ep)")
    edp, ep = Symbol("edp"), Symbol("ep")
    (mine,) = [c for c in found.collectives if c.group == "expert"]
    assert mine.axes == ("edp",)
    assert equal(mine.sent, 2 * 2 * E / ep * (edp - 1) / edp) if (E := Symbol("E")) else False
    (other,) = [c for c in found.collectives if c.group == "attn"]
    assert other.axes == ("edp", "ep")


def test_offloading_moves_gradients_down_and_params_up() -> None:
    """ZeRO-Offload, arXiv 2101.06840: 2 bytes down and 2 up per parameter, the least there is."""
    found = of(ONE + "use data_parallel(N) * offload()\nplace * { gradients offloaded }")
    assert equal(found.traffic.host, 4 * P)
    copied = of(ONE + "use zero2(N) * offload(N)")
    assert equal(copied.traffic.host, 4 * P / N)


def test_params_on_the_host_are_fetched_for_every_pass() -> None:
    text = ONE + "microbatches M\nuse zero3(N) * offload(N)\nplace * { params offloaded, gradients offloaded }"
    found = of(text)
    assert equal(found.traffic.host, (2 * 2 * M + 2 * M) * P / N)


def test_axes_of_one_device_send_nothing() -> None:
    assert of(ONE + "use zero3(N)", N=1).collectives == ()


@pytest.mark.parametrize("members", [2, 3, 4, 8])
@pytest.mark.parametrize("rounds", [1, 2])
def test_ring_volume_by_counting(members: int, rounds: int) -> None:
    """A ring all-reduce (two rounds) or all-gather (one), step by step: every device passes on one piece."""
    size = 24 * members
    piece = size // members
    sent = [0] * members
    for _ in range(rounds * (members - 1)):
        for device in range(members):
            sent[device] += piece
    found = of(
        ONE + ("use data_parallel(N)" if rounds == 2 else "use fsdp(N, reshard_after_forward = false)"),
        N=members,
        P=size,
    )
    terms = [c for c in found.collectives if c.operation in ("all-reduce", "all-gather")]
    assert [found.number(c.sent) for c in terms] == [2 * sent[0]]
    assert len(set(sent)) == 1


@pytest.mark.parametrize(
    ("schedule", "bubble"),
    [
        ("gpipe", "(pp - 1)/M"),
        ("1f1b", "(pp - 1)/M"),
        ("interleaved_1f1b, chunks = 3", "(pp - 1)/(3*M)"),
        ("zbv", None),
    ],
)
def test_bubbles(schedule: str, bubble: str | None) -> None:
    """Narayanan et al., arXiv 2104.04473, sections 2.2.1 and 2.2.2, over the ideal time."""
    text = "mesh pp\nmicrobatches M\nweights layer { size 60, layers 6 }\n" + ADAM16
    found = of(text + f"use pipeline(pp, schedule = {schedule})")
    assert (found.bubble is None) if bubble is None else equal(found.bubble, sympy.sympify(bubble))


def test_quantised_messages_and_a_second_shard_in_the_node() -> None:
    """ZeRO++, arXiv 2306.10209: int8 gathers, backward gathers within a node of n, int4 reductions."""
    text = "mesh N\nlet P, n\nweights model { size P, layers 32 }\noptimizer adam\n"
    text += "precision { params fp16, gradients fp16, gather int8, reduce int4 }\n"
    text += "use fsdp(N, reshard_after_forward = n)\n"
    found = cost(text, inter=["N"])
    n = Symbol("n")
    assert equal(found.traffic.inter, (P + P / 2) * RING)
    assert equal(found.traffic.intra, P * (n - 1) / n)
    assert equal(found.memory.with_unit - found.memory.held, 2 * P / n + 2 * P / 32)


@pytest.mark.parametrize(
    ("schedule", "first"),
    [("gpipe", "M"), ("1f1b", "Min(M, pp)"), ("interleaved_1f1b, chunks = 3", "Min(M, pp + (pp - 1)/3)")],
)
def test_micro_batches_in_flight(schedule: str, first: str) -> None:
    """arXiv 2104.04473, section 2.2; arXiv 2205.05198, section 4.2.3: 1 + (p - 1)/(p v) of a whole stage."""
    text = "mesh pp\nmicrobatches M\nweights layer { size 60, layers 6 }\n" + ADAM16
    assert equal(of(text + f"use pipeline(pp, schedule = {schedule})").in_flight["first"], sympy.sympify(first))


def test_an_optimizer_that_gathers_sends_its_momentum_and_holds_a_layer_of_it() -> None:
    text = (
        "mesh dp, tp\nlet P\nweights w { size P, layers 32, dims out in }\nuse zero1(dp) * tensor_parallel(tp)\n"
        "precision { params bf16, gradients bf16, master fp32, moments fp32 }\noptimizer muon"
    )
    plain, gathers = of(text), of(text + " gathers over dp, tp")
    dp, tp = Symbol("dp"), Symbol("tp")
    assert equal(gathers.traffic.sent - plain.traffic.sent, 4 * P * (1 - 1 / (dp * tp)))
    (one,) = [held for held in gathers.transients if held.kind == "whole for the update"]
    assert equal(one.bytes, 4 * P / 32)
    inner = of(text + " gathers over dp")
    assert equal(inner.traffic.sent - plain.traffic.sent, 4 * P / tp * (1 - 1 / dp))
