"""What the specs in `cases` must say beyond their `expect` lines."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Want(Struct, frozen=True):
    """`mesh`: the sizes of the smallest counterexample that are not 1. `microbatches`: its M.
    `applies`: what some device applies, where one device applies `single`. `fault`: the class.
    `codes`: the first code is one of these. `absent`: codes that must not be reported.
    `says`: words that one of the findings must contain. `counts`: token counts that it must show."""

    mesh: Mapping[str, int] | None = None
    microbatches: int | None = None
    applies: str | None = None
    single: str = "g"
    fault: str | None = None
    codes: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    says: str | None = None
    counts: tuple[str, ...] = ()


WANTED: dict[tuple[str, str], Want] = {
    ("zero2_pipeline", "zero2_pipeline"): Want(says="micro-batch"),
    ("tensor_axis", "norm_not_synced"): Want(mesh={"tp": 2}, fault="nonuniform"),
    ("tensor_axis", "norm_summed"): Want(mesh={"tp": 2}, applies="2 g", fault="scale", absent=("SC01",)),
    ("tensor_axis", "matrix_summed"): Want(mesh={"tp": 2}),
    ("experts", "summed_and_never_divided"): Want(mesh={"ep": 2}, applies="2 g", fault="scale", absent=("SC01",)),
    ("experts", "reduced_over_all_of_dp"): Want(mesh={"ep": 2}),
    ("experts", "tokens_not_split"): Want(mesh={"ep": 2}, applies="2 g", fault="scale", codes=("GI02", "GI03")),
    ("denominators", "mean_of_means"): Want(mesh={"dp": 2}, counts=("1 token", "2 tokens")),
    ("denominators", "microbatches_summed"): Want(mesh={}, microbatches=2, applies="2 g", fault="scale"),
    ("denominators", "sum_never_divided"): Want(mesh={}, fault="scale", applies="2 g"),
    ("microbatch_loops", "replaced"): Want(mesh={}, microbatches=2),
    ("microbatch_loops", "last_comes_late"): Want(mesh={"dp": 2}),
    ("microbatch_loops", "buffer_summed_again"): Want(mesh={"dp": 2}, microbatches=2),
    ("language_start", "streams_agree"): Want(absent=("SC07",)),
    ("language_start", "streams_of_shares"): Want(absent=("SC07",)),
    ("replicas", "wrong_together"): Want(absent=("SC01",)),
    ("replicas", "owners_do_not_drift"): Want(absent=("SC01",)),
    ("state", "not_published"): Want(mesh={"dp": 2}),
    ("state", "muon_on_pieces"): Want(mesh={"dp": 2}),
    ("state", "start_different"): Want(mesh={"dp": 2}, absent=("GI01", "GI02", "GI03", "GI04", "GI05", "GI06")),
    ("state", "broadcast_over_shards"): Want(mesh={"dp": 2}),
    ("state", "skipped_alone"): Want(mesh={"dp": 2}),
    ("state", "gradients_materialized"): Want(mesh={}, microbatches=2),
    ("clipping", "shards_left_out"): Want(fault="nonuniform", mesh={"tp": 2}),
    ("clipping", "copies_counted_again"): Want(fault="scale", mesh={"tp": 2}),
    ("clipping", "clipped_too_early"): Want(mesh={"dp": 2}),
    ("sizes", "axis_never_exercised"): Want(says="dp"),
    ("sizes", "zero_over_zero"): Want(says="zero"),
    ("forward", "parameters_elsewhere"): Want(mesh={"dp": 2}),
    ("forward", "other_samples"): Want(mesh={"tp": 2}),
    ("tied", "ends_not_summed"): Want(mesh={"pp": 2}),
    ("tied", "cut_before_summed"): Want(mesh={"dp": 2, "pp": 2}, codes=("GI06", "SC03")),
    ("language_work", "everyone_reads_the_same"): Want(mesh={"dp": 2}),
    ("language_work", "group_reads_different"): Want(mesh={"tp": 2}),
    ("language_sync", "sync_sum"): Want(applies="2 g", fault="scale"),
    ("language_sync", "divided_by_all_tokens_twice"): Want(mesh={}, applies="(1/2) g", fault="scale"),
    ("language_steps", "hook_buffer"): Want(mesh={"dp": 2}),
    ("language_steps", "scattered_only"): Want(mesh={"dp": 2}),
    ("language_start", "norms_start_different"): Want(mesh={"tp": 2}),
    ("language_start", "streams_differ"): Want(mesh={"tp": 2}),
    ("language_expect", "expected_fault"): Want(mesh={"dp": 2}, fault="nonuniform"),
}
