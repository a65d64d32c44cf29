"""Work, denominators and reductions: who computes what, and what is added."""

from __future__ import annotations

from fractions import Fraction

import pytest

from placelogic.simulate import Item, SimulationTooLarge, coefficients, simulate, simulate_any

from .build import (
    acc,
    always_right,
    axes,
    cut,
    default,
    gather,
    job,
    layout,
    loop,
    loss,
    publish,
    red,
    run,
    scale,
    scale_loss,
    star,
    upd,
    weights,
    wrong_from,
)  # fmt: skip

DATA = dict(split="dp")


def data(*ops, **more):
    return job("dp", (weights(), ops), **{**DATA, **more})


def test_data_parallel():
    always_right(data(*default(red("dp"), upd())))


@pytest.mark.parametrize("ops", [default(upd()), default(red("dp", "sum"), upd())])
def test_missing_or_summed_twice(ops):
    wrong_from(data(*ops))


def test_reducing_a_copy_again_by_mean_is_harmless():
    always_right(data(*default(red("dp"), red("dp"), upd())))
    wrong_from(data(*default(red("dp"), red("dp", "sum"), upd())))


def test_scale_can_cancel_another_axis():
    program = job("dp tp", (weights(), default(red("dp", "sum"), scale("1/tp"), upd())), split="dp")
    assert run(program, dp=2, tp=2).right
    assert not run(program, dp=2, tp=3).right


def test_denominators():
    always_right(data(*default(red("dp", "sum"), upd()), losses=[loss(over="dp")]))
    always_right(data(loop(acc()), red("dp", "sum"), upd(), losses=[loss(over="dp", microbatches=True)]))
    wrong_from(data(loop(acc()), red("dp"), upd()), size=1, M=2)
    always_right(data(loop(acc()), red("dp", "sum"), scale("1/tokens"), upd(), losses=[loss(mean=False)]))
    always_right(data(loop(acc()), red("dp", "sum"), upd(), losses=[loss(mean=False)], objective="sum"))
    wrong_from(data(loop(acc()), red("dp", "sum"), upd(), losses=[loss(mean=False)]), size=2)


def test_axis_that_does_not_split_counts_its_tokens_again():
    program = job("dp tp", (weights(), default(red("dp", "sum"), upd())), split="dp", losses=[loss(over="dp tp")])
    assert not run(program, dp=2, tp=2).right
    assert run(program, dp=2, tp=1).right


def test_uneven_tokens():
    local = data(*default(red("dp"), upd()), even=False)
    assert simulate(local, {"dp": 2}, {"M": 1}).right
    assert simulate_any(local, {"dp": 2}, {"M": 1}, weights="p").wrong("p")
    everything = data(
        loop(acc()), red("dp", "sum"), upd(), losses=[loss(over="dp", microbatches=True)], even=False
    )
    assert simulate_any(everything, {"dp": 3}, {"M": 2}).right


def test_loss_terms_are_divided_apart():
    terms = [loss(), loss("aux", over="dp")]
    wrong_from(data(*default(red("dp"), upd()), losses=terms))
    always_right(data(*default(red("dp"), upd(), before=(scale_loss("aux", "dp"), acc())), losses=terms))


def test_feeds():
    same = data(*default(red("dp"), upd()), feed={"dp": "same"})
    wrong_from(same)
    program = job("dp tp", (weights(params=cut("tp"), optimizer=cut("tp"), gradients=cut("tp")), default(red("dp"), upd())),
                  split="dp", feed={"tp": "different"})  # fmt: skip
    assert run(program, dp=2, tp=1).right
    assert run(program, dp=1, tp=2).wrong("p")


@pytest.mark.parametrize(
    "ops, M",
    [
        ((loop(acc(replace=True)), scale("1/M"), red("dp"), upd()), 2),
        ((loop(acc(), subset="but_last"), red("dp"), loop(acc(), subset="last"), scale("1/M"), upd()), 1),
        ((loop(acc(), red("dp", "sum")), scale("1/M"), upd()), 2),
        ((loop(acc(), scale("2/1")), scale("1/M"), red("dp"), upd()), 1),
    ],
)
def test_wrong_loops(ops, M):
    assert run(data(*ops), M=M, dp=2).wrong("p")


def test_right_loops():
    always_right(data(loop(acc(), red("dp")), scale("1/M"), upd()))
    always_right(data(loop(red("dp"), acc()), scale("1/M"), upd()))
    always_right(data(loop(acc(), subset="first"), loop(acc(), subset="but_first"), scale("1/M"), red("dp"), upd()))
    by_number = data(*(loop(acc(), subset="index", index=i) for i in (1, 2)), scale("1/M"), red("dp"), upd())
    assert run(by_number, M=1, dp=2).right and run(by_number, M=2, dp=2).right
    assert run(by_number, M=3, dp=2).wrong("p")


def test_named_buffers():
    always_right(data(loop(acc("main")), red("dp", buffer="main"), scale("1/M", "main"), upd("main")))
    wrong_from(data(loop(acc("main")), red("dp"), scale("1/M", "main"), upd("main")))


def zero2(*ops, dim=None):
    w = weights(optimizer=cut("dp", dim), gradients=cut("dp", dim))
    return job("dp", (w, (*ops, publish("dp"))), split="dp")


def test_gradients_cut():
    always_right(zero2(*default(red("dp"), upd())))
    always_right(zero2(*default(upd(), before=(red("dp"), acc()))))
    # The first turn's reduce-scatter leaves a shard; the next whole gradient does not fit in.
    wrong_from(zero2(loop(acc(), red("dp")), scale("1/M"), upd()), M=2, stop=True)
    wrong_from(zero2(*default(red("dp"), red("dp"), upd())))
    wrong_from(zero2(*default(upd())))


def test_scattered_leaves_only_the_own_shard():
    w = weights(optimizer=cut("dp"))
    always_right(job("dp", (w, (*default(red("dp", scattered=True), upd()), publish("dp"))), split="dp"))
    whole = job("dp", (weights(), default(red("dp", scattered=True), upd())), split="dp")
    wrong_from(whole)
    again = job("dp", (weights(), default(red("dp", scattered=True), gather("dp"), upd())), split="dp")
    always_right(again)
    published = job("dp", (weights(), (*default(red("dp", scattered=True), upd()), publish("dp"))), split="dp")
    always_right(published)


def test_gathering_gradients():
    always_right(data(*default(red("dp"), gather("dp"), upd())))
    wrong_from(data(*default(gather("dp"), red("dp"), upd())), stop=False)


TP = dict(params=cut("tp", "out"), optimizer=cut("tp", "out"), gradients=cut("tp", "out"))


def test_tensor_parallel():
    norm = weights("norm")
    always_right(job("tp", (weights(**TP), default(upd())), (norm, default(upd()))))
    wrong_from(job("tp", (weights(**TP), default(red("tp", "sum"), upd()))))
    wrong_from(job("tp", (weights(), default(red("tp", "sum"), upd()))))
    always_right(job("tp", (weights(), default(red("tp"), upd()))))


def test_sequence_parallel_norms_are_parts():
    w = weights(activations=cut("tp", "sequence"))
    always_right(job("tp", (w, default(red("tp", "sum"), upd()))))
    wrong_from(job("tp", (w, default(upd()))))
    always_right(job("tp", (weights(activations=star("tp", "sequence")), default(upd()))))


def test_parameters_are_not_there():
    wrong_from(job("dp", (weights(params=cut("dp")), default(red("dp"), upd())), split="dp"), stop=True)
    wrong_from(job("tp", (weights(params=cut("tp", "flat"), optimizer=cut("tp", "flat"), gradients=cut("tp", "flat")),
                          default(upd()))), stop=True)  # fmt: skip


def test_gathered_parameters():
    shard = dict(params=star("dp"), optimizer=cut("dp"), gradients=cut("dp"))
    always_right(job("dp", (weights(**shard), default(red("dp"), upd())), (weights("q"), default(red("dp"), upd())), split="dp"))


EP = dict(params=cut("ep"), optimizer=cut("ep"), gradients=cut("ep"), routed="ep")


def test_experts():
    always_right(job("ep", (weights(**EP), default(scale("1/ep"), upd())), split="ep"))
    wrong_from(job("ep", (weights(**EP), default(upd())), split="ep"))
    wrong_from(job("ep", (weights(**EP), default(scale("1/ep"), red("ep", "sum"), upd())), split="ep"))
    always_right(job("ep", (weights(**EP), default(upd())), split="ep", losses=[loss(over="ep")]))
    # Tokens that are not split arrive ep times.
    wrong_from(job("ep", (weights(**EP), default(upd()))))
    always_right(job("ep", (weights(**EP), default(scale("1/ep"), upd()))))


def test_experts_reduced_over_the_product():
    ops = (scale("1/ep"), upd())
    always_right(job("edp ep", (weights(**EP), default(red("edp"), *ops)), split="edp ep"))
    both = job("edp ep", (weights(**EP), default(red("edp*ep"), *ops)), split="edp ep")
    assert run(both, edp=2, ep=1).right
    assert run(both, edp=2, ep=2).wrong("p")


def tied(*ops, uses=("pp", "first", "last"), flat=False, split="dp"):
    w = weights("p", gradients=cut("dp", "flat") if flat else layout(), optimizer=cut("dp", "flat") if flat else layout(),
                uses=(uses[0], uses[1:]))  # fmt: skip
    return job("dp pp", (w, ops), split=split)


def test_tied_weights():
    always_right(tied(*default(red("dp"), red("pp", "sum"), upd())))
    wrong_from(tied(*default(red("dp"), upd())), dp=1, size=2)
    wrong_from(tied(*default(red("dp"), red("pp"), upd())), dp=1, size=2)
    always_right(tied(*default(red("dp"), red("pp", "sum"), upd()), uses=("pp", "last")))


def test_flat_owners_differ_between_tied_stages():
    after = (upd(), publish("dp"))
    wrong_from(tied(*default(red("dp"), red("pp", "sum"), *after), flat=True))
    always_right(tied(*default(red("pp", "sum"), red("dp"), *after), flat=True))


def test_random_streams():
    wrong_from(job("tp", (weights(random={"tp": "different"}), default(upd()))))
    always_right(job("tp", (weights(random={"tp": "same"}), default(upd()))))
    always_right(job("tp", (weights(random={"tp": "different"}, **TP), default(upd()))))
    always_right(job("dp", (weights(random={"dp": "different"}), default(red("dp"), upd())), split="dp"))


def test_product_axis_is_its_factors():
    w = weights(optimizer=cut("a*b"), gradients=cut("a*b"))
    always_right(job("a b", (w, (*default(red("a*b"), upd()), publish("a b"))), split="a b", views=[("dp", "a b")]))
    part = job("a b", (w, (*default(red("a"), upd()), publish("a b"))), split="a b")
    assert run(part, a=2, b=1).right and run(part, a=1, b=2).wrong("p")


def test_coefficients():
    table = coefficients(data(*default(red("dp", "sum"), upd())), {"dp": 2}, {"M": 1}, "p")
    assert table == {(x,): {Item(None, 1, (("dp", c),)): Fraction(2) for c in (0, 1)} for x in (0, 1)}
    table = coefficients(data(*default(upd())), {"dp": 2}, {"M": 1}, "p")
    assert table[1,] == {Item(None, 1, (("dp", 0),)): 0, Item(None, 1, (("dp", 1),)): 2}
    parts = job("tp", (weights(activations=cut("tp", "sequence")), default(upd())))
    table = coefficients(parts, {"tp": 2}, {"M": 1}, "p")
    assert table[0,] == {Item(None, 1, (), part=(("tp", c),)): 1 - c for c in (0, 1)}
    counts = {Item(None, 1, (("dp", c),)): c + 1 for c in (0, 1)}
    table = coefficients(data(*default(red("dp"), upd())), {"dp": 2}, {"M": 1}, "p", counts)
    assert list(table[0,].values()) == [Fraction(3, 2), Fraction(3, 4)]


def test_absurd_sizes():
    with pytest.raises(SimulationTooLarge):
        run(data(*default(red("dp"), upd())), dp=10**6)
    assert axes("a*b") == ("a", "b")
