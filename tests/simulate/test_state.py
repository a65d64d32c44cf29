"""State: who updates, who hears of it, how it starts, and what the whole job decides."""

from __future__ import annotations

import pytest

from placelogic.program.catalog import Needs
from placelogic.simulate import simulate

from .build import (
    R,
    acc,
    always_right,
    clip,
    copy_from,
    cut,
    default,
    different,
    fetch,
    job,
    layout,
    loop,
    publish,
    red,
    refresh,
    run,
    scale,
    seed_from,
    skip,
    star,
    upd,
    weights,
    wrong_from,
)  # fmt: skip


def dp(w, *after, ops=None, **more):
    return job("dp", (w, ops if ops is not None else default(red("dp"), *after)), **{"split": "dp", **more})


def test_sharded_optimizer_publishes():
    zero1 = weights(optimizer=cut("dp"))
    always_right(dp(zero1, upd(), publish("dp")))
    found = wrong_from(dp(zero1, upd()))
    assert all(d.what == "params" for d in found.differences if d.step == 1)
    wrong_from(dp(zero1, publish("dp"), upd()))
    wrong_from(dp(zero1, upd(), copy_from("dp")))


def test_master_is_refreshed():
    w = weights(optimizer=cut("dp"), master=True)
    always_right(dp(w, upd(), refresh, publish("dp")))
    wrong_from_everywhere(dp(w, upd(), publish("dp")))
    wrong_from(dp(w, upd(), publish("dp"), refresh))
    always_right(dp(weights(master=True), upd(), refresh))


def wrong_from_everywhere(program, stop=None):
    """Wrong at every size, one device included."""
    for size in (1, 2):
        outcome = simulate(program, dict.fromkeys(program.mesh.axes, size), {"M": 1})
        assert outcome.wrong("p")
        assert stop is None or (outcome.stopped is not None) == stop


def test_host():
    w = weights(optimizer=layout(cut("dp"), host=True))
    always_right(dp(w, upd(), fetch, publish("dp")))
    wrong_from_everywhere(dp(w, upd(), publish("dp")))
    wrong_from(dp(w, upd(), publish("dp"), fetch))
    m = weights(optimizer=layout(cut("dp"), host=True), master=True)
    always_right(dp(m, upd(), refresh, fetch, publish("dp")))
    wrong_from_everywhere(dp(m, upd(), fetch, refresh, publish("dp")))
    shard = weights(params=layout(star("dp"), host=True), optimizer=layout(cut("dp"), host=True), gradients=cut("dp"))
    always_right(dp(shard, upd(), fetch))


PAIRS = [
    (cut("dp", "out"), cut("dp", "flat")),
    (cut("dp", "out"), cut("dp", "in")),
    (cut("dp"), cut("dp", "param")),
    (cut("dp", "layer"), cut("dp", "param")),
    (cut("dp", "flat"), cut("dp", "layer")),
]


@pytest.mark.parametrize("one, other", PAIRS)
@pytest.mark.parametrize("size", [2, 3])
def test_shards_cut_by_different_rules(one, other, size):
    w = weights(optimizer=one, gradients=other)
    wrong_from(dp(w, upd(), publish("dp")), size=size)
    wrong_from(dp(weights(params=star("dp", one.dim), optimizer=other, gradients=other), upd()), size=size)


NESTED = (cut("a", "out"), cut("b", "out"))
SWAPPED = (cut("b", "out"), cut("a", "out"))
PRODUCT = (cut("a*b", "out"),)


@pytest.mark.parametrize("dim", ["out", "param", None])
@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 2), (4, 2)])
@pytest.mark.parametrize("other", [SWAPPED, PRODUCT])
def test_nesting_orders(dim, sizes, other):
    def named(cuts):
        return layout(*(cut("*".join(c.axes), dim or "flat") for c in cuts))

    w = weights(optimizer=named(NESTED), gradients=named(other))
    program = job("a b", (w, (*default(red("a b"), upd()), publish("a b"))), split="a b")
    assert simulate(program, dict(zip("ab", sizes)), {"M": 1}).wrong("p")
    for same in (NESTED, other):
        w = weights(optimizer=named(same), gradients=named(same))
        program = job("a b", (w, (*default(red("a b"), upd()), publish("a b"))), split="a b")
        assert simulate(program, dict(zip("ab", sizes)), {"M": 2}).right


@pytest.mark.parametrize("needs", [Needs.TENSOR, Needs.BLOCK])
@pytest.mark.parametrize("size", [2, 3])
def test_optimizers_that_see_whole_tensors(needs, size):
    for dim, right in (("param", True), ("layer", True), ("flat", False), ("out", False), (None, False)):
        w = weights(optimizer=cut("dp", dim), gradients=cut("dp", dim), needs=needs)
        program = dp(w, upd(), publish("dp"))
        if right:
            always_right(program)
        else:
            wrong_from(program, size=size)


def test_experts_stay_whole():
    ep = dict(params=cut("ep"), optimizer=cut("ep"), gradients=cut("ep"), needs=Needs.TENSOR)
    always_right(job("ep", (weights(routed="ep", **ep), default(scale("1/ep"), upd())), split="ep"))
    wrong_from(job("ep", (weights(**ep), default(upd()))))


def test_init():
    start = different("dp")
    wrong_from(dp(weights(init=(start,)), upd()))
    always_right(dp(weights(init=(start, seed_from("dp"))), upd()))
    assert run(dp(weights(init=(start, seed_from("dp", 1))), upd()), dp=3).right
    assert run(dp(weights(init=(start, seed_from("dp", 1))), upd()), dp=1).stopped
    wrong_from(dp(weights(init=(seed_from("dp"), start)), upd()))
    tp = dict(params=cut("tp", "out"), optimizer=cut("tp", "out"), gradients=cut("tp", "out"))
    always_right(job("tp", (weights(init=(different("tp"),), **tp), default(upd()))))
    wrong_from(job("tp", (weights(init=(seed_from("tp"),), **tp), default(upd()))))


def test_frozen_weights_count_too():
    base = weights("base", frozen=True)
    always_right(job("dp", (base, None), (weights(), default(red("dp"), upd())), split="dp"))
    mixed = weights("base", frozen=True, init=(different("dp"),))
    found = run(job("dp", (mixed, None), (weights(), default(red("dp"), upd())), split="dp"), dp=2)
    assert found.wrong("base")


def test_broadcast_of_params():
    always_right(dp(weights(), upd(), copy_from("dp")))
    tp = dict(params=cut("tp", "out"), optimizer=cut("tp", "out"), gradients=cut("tp", "out"))
    wrong_from(job("tp", (weights(**tp), default(upd(), copy_from("tp")))))
    assert run(dp(weights(), upd(), copy_from("dp", 1)), dp=1).stopped


def test_materialized():
    for field in ("params", "optimizer"):
        wrong_from_everywhere(dp(weights(**{field: layout(m=True)}), upd()), stop=True)
    always_right(dp(weights(params=layout(m=True), master=True), upd()))
    always_right(dp(weights(params=layout(m=True), optimizer=cut("dp"), master=True), upd(), publish("dp")))
    wrong_from(dp(weights(params=layout(m=True), optimizer=cut("dp"), master=True), upd()), stop=True)
    once = dp(weights(gradients=layout(m=True)), upd())
    assert run(once, dp=2).right and run(once, M=2, dp=1).stopped
    assert run(dp(weights(gradients=layout(m=True)), clip, upd(), norm=True), dp=1).stopped


def test_updates_run_as_often_as_said():
    assert run(dp(weights(), upd(), upd()), dp=1).wrong("p")
    assert run(dp(weights()), dp=1).wrong("p")
    inside = dp(weights(), ops=(loop(acc(), red("dp"), upd()),))
    assert run(inside, dp=2).right and run(inside, M=2, dp=2).wrong("p")


def test_placed_twice():
    program = job("dp", (weights(), default(red("dp"), upd())), split="dp", conflicts=[("p", "dp")])
    wrong_from(program, stop=True)


# --- what the whole job decides ---------------------------------------------------------------

TP = dict(params=cut("tp", "out"), optimizer=cut("tp", "out"), gradients=cut("tp", "out"))


def two(norm, *, early=False):
    """A sharded matrix and a replicated norm on dp x tp."""
    ops = (clip, red("dp"), upd()) if early else (red("dp"), clip, upd())
    return job("dp tp", (weights(**TP), default(*ops)), (weights("norm"), default(*ops)), split="dp", norm=norm)


def test_clip():
    always_right(two(True))
    always_right(two({"p": "tp", "norm": ""}))
    wrong_from(two({"p": "tp", "norm": "tp"}))
    wrong_from(two({"p": "dp", "norm": ""}))
    wrong_from(two({"p": "", "norm": ""}))
    wrong_from(two(True, early=True))


def test_clip_of_shards():
    w = weights(optimizer=cut("dp"), gradients=cut("dp"))
    always_right(dp(w, clip, upd(), publish("dp"), norm={"p": "dp"}))
    wrong_from(dp(w, clip, upd(), publish("dp"), norm={"p": ""}))
    half = weights(optimizer=cut("dp"))
    ops = default(red("dp", scattered=True), clip, upd(), publish("dp"))
    always_right(dp(half, ops=ops, norm={"p": "dp"}))


def test_clip_is_one_event():
    never = job("dp", (weights(), default(red("dp"), upd())), (weights("q"), default(red("dp"), clip, upd())),
                split="dp", norm=True)  # fmt: skip
    assert run(never, dp=1).wrong("p")
    twice = dp(weights(), clip, clip, upd(), norm=True)
    assert run(twice, dp=1).wrong("p")
    turns = dp(weights(), ops=(loop(acc(), red("dp"), clip), upd()), norm=True)
    assert run(turns, dp=2).right and run(turns, M=2, dp=2).wrong("p")


def test_clip_with_stages():
    def pp(norm):
        last = weights("head", uses=("pp", ("last",)))
        return job("pp", (last, default(clip, upd())), (weights(), default(clip, upd())), norm=norm)

    always_right(pp(True))
    always_right(pp({"head": "pp", "p": ""}))
    wrong_from(pp({"head": "", "p": ""}))


def test_skip():
    always_right(dp(weights(), skip(), upd()))
    early = dp(weights(), ops=default(skip(), red("dp"), upd()))
    found = run(early, dp=2)
    assert [d.what for d in found.differences if d.weights is None][:1] == ["skip"] and found.wrong("p")
    always_right(dp(weights(), ops=default(skip("dp"), red("dp"), upd())))
    wrong_from(job("tp", (weights(**TP), default(skip(), upd()))))
    always_right(job("tp", (weights(**TP), default(skip("tp"), upd()))))


def test_a_stop_hides_no_other_group():
    bad = weights("bad", params=cut("dp"))
    ops = default(red("dp"), clip, upd())
    found = run(job("dp", (bad, ops), (weights(), ops), split="dp", norm=True), dp=2)
    assert found.wrong("bad") and not found.wrong("p")


def test_one_stale_parameter_moves_every_gradient():
    zero1 = weights(optimizer=cut("dp"))
    program = job("dp", (zero1, default(red("dp"), upd())), (weights("q", R), default(red("dp"), upd())), split="dp")
    found = run(program, dp=2)
    assert {d.step for d in found.differences if d.weights == "q"} == {2}
