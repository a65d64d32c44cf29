"""Specs derived from the meaning of the language, sentence by sentence; each says why in a comment."""

from __future__ import annotations

import pytest
import reports

MORE = reports.every_spec("more")

# Where two codes are a matter of taste, or the size of the counterexample is the point.
FIRST_CODE = {
    ("alignment", "nested_otherwise"): {"CC02", "SC03"},
    ("alignment", "product_and_nested"): {"CC02", "SC03"},
    ("alignment", "product_in_two_orders"): {"CC02", "SC03"},
    ("alignment", "no_update"): {"SC02"},
    ("reductions", "share_gathered"): {"GI01", "GI06"},
    ("loops", "scaled_after_accumulate"): {"GI04", "GI05", "GI03"},
    ("loops", "last_counted_twice"): {"GI02", "GI03", "GI04"},
    ("loops", "optimizer_in_the_loop"): {"GI05", "GI01"},
    ("cut_gradients", "whole_added_to_shard"): {"GI06", "GI05", "GI01"},
}

SMALLEST = {
    ("reductions", "share_by_sum"): {"dp": 2},
    ("reductions", "product_axis_half"): {"b": 2},
    ("loops", "wrong_from_three_on"): {"dp": 2, "M": 3},
    ("loops", "only_two_seen"): {"M": 3},
    ("loops", "first_dropped"): {},
    ("loops", "scaled_after_accumulate"): {"M": 2},
    ("cut_gradients", "whole_added_to_shard"): {"dp": 2, "M": 2},
    ("starts", "sequence_share_averaged"): {"tp": 2},
    ("counting", "uneven_one_axis_forgotten"): {"cp": 2},
    ("counting", "uneven_within_the_loop"): {"M": 2},
    ("tied_weights", "averaged"): {"pp": 2},
    ("hybrid_sharding", "replicas_forgotten"): {"r": 2},
    ("hybrid_sharding", "shards_forgotten"): {"s": 2},
    ("sizes", "smallest_allowed"): {"dp": 2, "tp": 3},
    ("sizes", "smallest_multiple"): {"tp": 6},
    ("sizes", "fixed_and_wrong"): {"dp": 4, "tp": 2},
    ("sizes", "right_for_one_count_only"): {},
    ("clip_and_skip", "skip_seen_by_half_the_mesh"): {"tp": 2},
    ("clip_and_skip", "scaled_after_clipping"): {"M": 2},
    ("starting_values", "one_axis_left_different"): {"cp": 2},
    ("publish", "half_published"): {"b": 2},
}


@pytest.mark.parametrize(("stem", "name"), MORE)
def test_verdict(stem: str, name: str) -> None:
    spec = reports.spec_report("more", stem, name)
    assert spec["expected"] is True, reports.said([spec])
    if (stem, name) in FIRST_CODE:
        assert reports.errors(spec)[0]["code"] in FIRST_CODE[stem, name], reports.said([spec])


@pytest.mark.parametrize(("stem", "name"), sorted(SMALLEST))
def test_smallest_counterexample(stem: str, name: str) -> None:
    spec = reports.spec_report("more", stem, name)
    example = reports.errors(spec)[0]["counterexample"]
    assert example is not None, reports.said([spec])
    sizes = {**example["mesh"], "M": example["quantities"].get("M", 1)}
    assert {axis: size for axis, size in sizes.items() if size != 1} == SMALLEST[stem, name]


def test_scale_only_is_not_excused_by_the_optimizer() -> None:
    spec = reports.spec_report("more", "optimizers", "lion_does_not_excuse_scale")
    assert reports.errors(spec)[0]["class"] == "scale"


@pytest.mark.parametrize(("stem", "name"), [("loops", "work_after_the_update"), ("alignment", "dead_optimizer_state")])
def test_dead_parts_are_noted(stem: str, name: str) -> None:
    spec = reports.spec_report("more", stem, name)
    assert any(finding["severity"] == "note" for finding in spec["findings"]), reports.said([spec])


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("nothing_splits_the_work", ["NT10"]),
        ("one_axis_of_two_splits_it", ["NT10"]),
        ("replaced_where_there_is_one", ["NT01"]),
        ("one_by_other_sizes", ["NT01"]),
        ("only_a_norm_is_trained", ["NT11"]),
        ("a_small_group_is_frozen", []),
        ("places_that_nothing_heeds", ["NT12", "NT12"]),
    ],
)
def test_proofs_that_cost_nothing_are_told_of(name: str, codes: list[str]) -> None:
    spec = reports.spec_report("more", "proofs_that_cost_nothing", name)
    assert [finding["code"] for finding in spec["findings"] if finding["code"] != "NT02"] == codes


def test_names_that_are_nearly_right_get_a_hint() -> None:
    for name in ("unknown_dimension", "unknown_axis", "unknown_weights", "unknown_strategy", "unknown_optimizer"):
        spec = reports.spec_report("more", "errors", name)
        assert any("did you mean" in (finding["help"] or "") for finding in spec["findings"]), reports.said([spec])


def test_every_error_has_a_place_and_a_way_forward() -> None:
    for stem, name in MORE:
        spec = reports.spec_report("more", stem, name)
        if spec["verdict"] == "error":
            for finding in reports.errors(spec):
                assert finding["code"].startswith("PL"), reports.said([spec])
                assert finding["span"] is not None, reports.said([spec])
                assert finding["help"] or finding["fix"], reports.said([spec])
