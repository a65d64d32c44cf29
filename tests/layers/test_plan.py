"""What is derived for the common ways to cut a layer is what implementations do."""

from __future__ import annotations

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
        assert term.share == ({"dp", "cp", "tp"} if vector else {"dp", "cp"})
