"""The derived step of every kind of placement: which collectives, on what, in which order.

All of them are right; these are the cheapest. One line per operation, `|` around the loop over
micro-batches, `->S` where a reduction leaves only the own shard in a buffer with room for all.
"""

from __future__ import annotations

import pytest

from placelogic.elaborate.derive import derive
from placelogic.program import program as pg
from placelogic.program.expr import show
from tests.elaborate.helpers import one

WORDS = """
let h, V, E
weights w { size 4*h*h, dims in out }
"""
NORM = "weights norm { size 2*h, kind vector }\n"
TIED = "weights embed { size V*h, kind embedding, used on first and last of pp }\n"
EXPERTS = "weights experts { size E*h, kind expert, routed over ep }\n"
BY_FLAT = "optimizer sharded on flat, gradients sharded on flat"


def text(op: pg.Op) -> str:
    """One operation in a few characters."""
    match op:
        case pg.Loop(subset, _, body):
            assert subset == "each"
            return "|" + "; ".join(map(text, body)) + "|"
        case pg.Accumulate(None, False):
            return "add"
        case pg.Reduce(None, axes, how, scattered):
            return f"{how} {' '.join(axes)}{' ->S' if scattered else ''}"
        case pg.Scale(None, factor):
            return f"x {show(factor)}"
        case pg.ScaleLoss(term, factor):
            return f"x {show(factor)} of {term or 'loss'}"
        case pg.GatherParams(axes):
            return f"gather {' '.join(axes)}"
        case pg.Clip() | pg.Update() | pg.Refresh() | pg.OffloadGradients() | pg.FetchParams():
            return type(op).__name__.lower()
        case _:
            raise AssertionError(op)


def derived(spec: str, weights: str) -> str:
    found = one(spec)
    assert found.program is not None and found.stated is not None, found.problems
    step = derive(found.program, found.stated).step(weights)
    assert step is not None
    return ", ".join(map(text, step.ops))


# what is stated -> (weights, the step)
STEPS: dict[str, tuple[str, str]] = {
    # --- data parallelism and its shards
    "mesh dp\nuse data_parallel(dp)": ("w", "|add|, mean dp, update"),
    "mesh dp\nuse data_parallel(dp)\nclip global_norm": ("w", "|add|, mean dp, clip, update"),
    "mesh dp\nuse data_parallel(dp)\nmicrobatches M": ("w", "|add|, x 1/M, mean dp, update"),
    "mesh dp\nuse data_parallel(dp)\nmicrobatches 1": ("w", "|add|, mean dp, update"),
    "mesh dp\nuse data_parallel(dp)\nmicrobatches 2": ("w", "|add|, x 1/2, mean dp, update"),
    "mesh dp\nuse zero1(dp)": ("w", "|add|, mean dp ->S, update, gather dp"),
    "mesh dp\nuse zero2(dp)": ("w", "|mean dp; add|, update, gather dp"),
    "mesh dp\nuse zero3(dp)": ("w", "|mean dp; add|, update"),
    "mesh dp\nbatch over dp\nplace w over dp { gradients S }": ("w", "|mean dp; add|, update, gather dp"),
    "mesh dp\nbatch over dp\nplace w over dp { params S* }": ("w", "|add|, mean dp ->S, update"),
    "mesh s, r\nuse hsdp(s, r)": ("w", "|mean s; add|, mean r, update"),
    "mesh dp, cp\nuse zero1(dp) * context_parallel(cp)": ("w", "|add|, mean dp ->S, mean cp, update, gather dp"),
    # the shard first, so that less is moved afterwards, whatever the order of the mesh
    "mesh cp, dp\nuse zero1(dp) * context_parallel(cp)": ("w", "|add|, mean dp ->S, mean cp, update, gather dp"),
    "mesh cp, dp\nuse zero2(dp) * context_parallel(cp)": ("w", "|mean dp; add|, mean cp, update, gather dp"),
    # one collective over a product, one per axis of its own
    "mesh a, b\nuse zero1(a * b)": ("w", "|add|, mean a b ->S, update, gather a b"),
    "mesh a, b\nuse zero1(a) * zero1(b)": ("w", "|add|, mean a ->S, mean b ->S, update, gather b, gather a"),
    "mesh a, b\nuse data_parallel(a) * data_parallel(b)": ("w", "|add|, mean a b, update"),
    "mesh a, b, c\nuse data_parallel(a * c) * zero1(b)": ("w", "|add|, mean b ->S, mean a c, update, gather b"),
    "mesh a, b\nbatch over a, b\nsync w over a by mean": ("w", "|add|, mean a, mean b, update"),
    # where optimizer state and parameters are cut by different rules there is no shard to be left with
    "mesh dp\nbatch over dp\nplace w over dp { params S*(in), optimizer S(out) }": ("w", "|add|, mean dp, update"),
    "mesh dp\nbatch over dp\nplace w over dp { params S*(in), optimizer S(in) }": ("w", "|add|, mean dp ->S, update"),
    # --- denominators
    "mesh dp\nbatch over dp\nloss mean over dp": ("w", "|add|, sum dp, update"),
    "mesh dp\nbatch over dp\nloss mean global\nmicrobatches M": ("w", "|add|, sum dp, update"),
    "mesh dp\nbatch over dp\nloss sum\nmicrobatches M": ("w", "|add|, x 1/tokens, sum dp, update"),
    "mesh dp\nbatch over dp\nloss sum\nobjective sum": ("w", "|add|, sum dp, update"),
    "mesh dp\nbatch over dp\nloss mean local\nloss aux mean local": ("w", "|add|, mean dp, update"),
    "mesh dp\nbatch over dp\nloss mean local\nloss aux mean over dp": ("w", "|x 1/dp of loss; add|, sum dp, update"),
    "mesh dp\nbatch over dp\nloss mean over dp\nloss aux sum\nmicrobatches M": (
        "w", "|x 1/M of loss; x 1/tokens of aux; add|, sum dp, update"),
    "mesh dp\nbatch over dp\nloss sum\nloss aux sum": ("w", "|x 1/tokens of loss; x 1/tokens of aux; add|, sum dp, update"),
    "mesh dp\nbatch over dp\nmicrobatches M\nloss mean local\nloss aux mean local": ("w", "|add|, x 1/M, mean dp, update"),
    # --- model parallelism
    "mesh tp\nuse tensor_parallel(tp)": ("w", "|add|, update"),
    NORM + "mesh tp\nuse tensor_parallel(tp)": ("norm", "|add|, update"),
    NORM + "mesh tp\nuse sequence_parallel(tp)": ("norm", "|add|, sum tp, update"),
    NORM + "mesh dp, tp\nuse data_parallel(dp) * sequence_parallel(tp)": ("norm", "|add|, mean dp, sum tp, update"),
    "mesh cp\nuse context_parallel(cp)": ("w", "|add|, mean cp, update"),
    "mesh pp\nuse pipeline(pp)": ("w", "|add|, update"),
    TIED + "mesh pp": ("embed", "|add|, sum pp, update"),
    TIED + "mesh dp, pp\nuse data_parallel(dp) * pipeline(pp)": ("embed", "|add|, mean dp, sum pp, update"),
    TIED + "mesh dp, pp\nuse zero1(dp) * pipeline(pp)": ("embed", "|add|, mean dp ->S, sum pp, update, gather dp"),
    TIED + "mesh dp, pp\nuse zero2(dp) * pipeline(pp)": ("embed", "|mean dp; add|, sum pp, update, gather dp"),
    # before a flat cut, whose owners differ between stages
    TIED + "mesh dp, pp\nuse zero1(dp) * pipeline(pp)\nplace embed over dp { optimizer sharded on flat }": (
        "embed", "|add|, sum pp, mean dp ->S, update, gather dp"),
    TIED + "mesh dp, pp\nuse zero2(dp) * pipeline(pp)\nplace embed over dp { " + BY_FLAT + " }": (
        "embed", "|sum pp; mean dp; add|, update, gather dp"),
    TIED + "mesh dp, cp, pp\nuse zero2(dp) * context_parallel(cp) * pipeline(pp)\nplace embed over dp { " + BY_FLAT + " }": (
        "embed", "|sum pp; mean dp; add|, mean cp, update, gather dp"),
    TIED + "mesh dp, pp\nbatch over dp\nplace embed over dp { gradients sharded on flat }": (
        "embed", "|sum pp; mean dp; add|, update, gather dp"),
    "mesh dp, cp\nuse zero1(dp) * context_parallel(cp)\nplace w over dp { optimizer sharded on flat }": (
        "w", "|add|, mean dp ->S, mean cp, update, gather dp"),
    # one end only: nothing to add up
    "weights head { size V*h, kind embedding, used on last of pp }\nmesh pp": ("head", "|add|, update"),
    "weights head { size V*h, kind embedding, used on first of pp }\nmesh pp": ("head", "|add|, update"),
    # --- experts: routing sums
    EXPERTS + "mesh ep\nuse expert_parallel(ep)": ("experts", "|add|, x 1/ep, update"),
    EXPERTS + "mesh ep\nuse expert_parallel(ep)\nloss mean over ep": ("experts", "|add|, update"),
    EXPERTS + "mesh ep\nuse expert_parallel(ep)\nloss mean local\nloss aux mean over ep": (
        "experts", "|x 1/ep of loss; add|, update"),
    EXPERTS + "mesh ep\nuse expert_parallel(ep)\nsync experts over ep by mean": ("experts", "|add|, x 1/ep, update"),
    EXPERTS + "mesh ep\nuse expert_parallel(ep)\nsync experts over ep by sum": ("experts", "|add|, update"),
    EXPERTS + "mesh ep\nuse data_parallel(ep)": ("experts", "|add|, mean ep, update"),
    EXPERTS + "mesh edp, ep\nuse data_parallel(edp) * expert_parallel(ep)": ("experts", "|add|, x 1/ep, mean edp, update"),
    EXPERTS + "mesh ep\nplace experts over ep = (S, S, S, S(sequence))": ("experts", "|add|, update"),
    # --- what is stated beside it
    "mesh dp\nbatch over dp\nsync w over dp by none": ("w", "|add|, update"),
    "mesh dp\nbatch over dp\nsync w over dp by sum": ("w", "|add|, sum dp, update"),
    "mesh dp\nbatch over dp\nmicrobatches M\nsync w over microbatches by sum": ("w", "|add|, mean dp, update"),
    "mesh dp\nbatch over dp\nmicrobatches M\nsync w over microbatches by mean": ("w", "|add|, x 1/M, mean dp, update"),
    "mesh dp\nbatch over dp\nscale w by 3": ("w", "|add|, x 3, mean dp, update"),
    # --- master copies and the host
    "mesh dp\nuse zero1(dp)\nprecision { params bf16, master fp32 }": (
        "w", "|add|, mean dp ->S, update, refresh, gather dp"),
    "mesh dp\nuse data_parallel(dp)\nprecision { params bf16 }": ("w", "|add|, mean dp, update"),
    "mesh dp\nuse data_parallel(dp)\nplace w { optimizer O }": (
        "w", "|add|, mean dp, offloadgradients, update, fetchparams"),
    "mesh dp\nuse data_parallel(dp)\nplace w { params O }": ("w", "|add|, mean dp, update, fetchparams"),
    "mesh dp\nuse zero1(dp)\nplace w { optimizer O }\nprecision { master fp32 }": (
        "w", "|add|, mean dp ->S, offloadgradients, update, refresh, fetchparams, gather dp"),
}  # fmt: skip


@pytest.mark.parametrize("spec", STEPS)
def test_derived_step(spec: str) -> None:
    weights, wanted = STEPS[spec]
    assert derived(WORDS + spec, weights) == wanted


def test_frozen_weights_have_no_step() -> None:
    found = one(WORDS + NORM + "mesh dp\nbatch over dp\nfreeze norm")
    assert found.program is not None and found.stated is not None
    assert [step.weights for step in derive(found.program, found.stated).steps] == ["w"]
