"""The loop lemma: what is computed for every number of micro-batches at once, against turn after turn.

`Run` follows a loop once and says what it leaves for every M. Here the same loops are also run
literally, one micro-batch after another, under the same transfer rules, for M from 1 to 5.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product as every

import pytest

from placelogic.elaborate.derive import derive
from placelogic.program.program import Loop, Program, Step
from placelogic.prove.formula import equal, holds
from placelogic.prove.ratio import ONE
from placelogic.prove.run import _ALWAYS, Run
from placelogic.prove.sizes import Sizes, sizes_of
from placelogic.prove.transfer import Group
from placelogic.prove.values import TURN, Buffers, Term
from tests.elaborate.helpers import one

HEAD = """
mesh dp
let h
microbatches M
weights w { size h }
batch over dp
"""
CUT = HEAD + "place w over dp { optimizer sharded, gradients sharded }\n"

LOOPS = {
    "only adds": "each microbatch { accumulate }",
    "replaces": "each microbatch { replace }",
    "averages, then adds": "each microbatch {\nreduce over dp by mean\naccumulate\n}",
    "adds, then averages": "each microbatch {\naccumulate\nreduce over dp by mean\n}",
    "adds, then sums": "each microbatch {\naccumulate\nreduce over dp by sum\n}",
    "adds, then scales": "each microbatch {\naccumulate\nscale by 1/2\n}",
    "scales, then adds": "each microbatch {\nscale by 1/M\naccumulate\n}",
    "scales by one in the end": "each microbatch {\naccumulate\nscale by 2\nscale by 1/2\n}",
    "replaces, then averages": "each microbatch {\nreplace\nreduce over dp by mean\n}",
    "two buffers": "each microbatch {\naccumulate into a\naccumulate\nreduce a over dp by sum\n}",
    "all but the last, then the last": "each microbatch but last { accumulate }\nlast microbatch { accumulate }",
    "all but the last, averaged": "each microbatch but last {\naccumulate\nreduce over dp by mean\n}\nlast microbatch { accumulate }",
    "all but the first": "each microbatch but first { accumulate }",
    "the first, then the others": "first microbatch { replace }\neach microbatch but first { accumulate }",
    "the first, then the others, averaged": "first microbatch { accumulate }\n"
    "each microbatch but first {\naccumulate\nreduce over dp by mean\n}",
    "the first, then the others, summed": "first microbatch { accumulate }\n"
    "each microbatch but first {\naccumulate\nreduce over dp by sum\n}",
    "the second": "first microbatch { accumulate }\nmicrobatch 2 { accumulate }",
    "the second, averaged": "first microbatch { accumulate }\nmicrobatch 2 {\nreduce over dp by mean\naccumulate\n}",
    "the second, averaged in the buffer": "first microbatch { accumulate }\nmicrobatch 2 {\naccumulate\nreduce over dp by mean\n}",
    "one loop after another": "each microbatch {\naccumulate\nreduce over dp by sum\n}\nlast microbatch { accumulate }",
    "a loop over what another left": "each microbatch { accumulate }\neach microbatch but first {\naccumulate\nscale by 1/3\n}",
    "a loop that transforms another buffer": "each microbatch { accumulate }\n"
    "each microbatch but last {\naccumulate into a\nreduce over dp by sum\n}",
}  # fmt: skip


def program(text: str) -> Program:
    spec = one(text)
    assert spec.program is not None and spec.stated is not None, spec.problems
    return derive(spec.program, spec.stated)


def group_of(p: Program) -> tuple[Group, Sizes]:
    sizes, _ = sizes_of(p)
    return Group(p, p.weights[0], p.facts["w"], sizes), sizes


def at_once(group: Group, step: Step) -> list[Term]:
    trace = Run(group).run(step)
    (read,) = [read for read in trace.reads if read.what == "update"]
    return list(read.terms[None])


def turn_after_turn(group: Group, step: Step, count: int) -> list[Term]:
    """The body of every loop, run for each micro-batch of its subset in order."""
    run = Run(group)
    buffers: Buffers = {}
    for op in step.ops:
        if not isinstance(op, Loop):
            continue
        for turn in subset(op, count):
            fresh = group.fresh(equal(TURN, turn))
            buffers = run._body(op, buffers, fresh, _ALWAYS, ONE)
    return buffers.get(None, {}).get(None, [])


def subset(loop: Loop, count: int) -> list[int]:
    turns = list(range(1, count + 1))
    match loop.subset:
        case "each":
            return turns
        case "but_first":
            return turns[1:]
        case "but_last":
            return turns[:-1]
        case "first":
            return turns[:1]
        case "last":
            return turns[-1:]
        case _:
            return [turn for turn in turns if turn == loop.index]


def coefficient(terms: list[Term], env: dict[str, int]) -> Fraction | str:
    """What device x.dp has of work item (w.dp, m.), or that it cannot be said."""
    total = Fraction(0)
    for term in terms:
        if not holds(term.when, env):
            continue
        if holds(term.unknown, env):
            return "unknown"
        (kind,) = term.kinds
        if holds(kind.ruined, env):
            return "mixed"
        if kind.value == "replicated" or env["x.dp"] == env["w.dp"]:
            total += term.scale.at(env)
    return total


def environments(dp: int, count: int) -> list[dict[str, int]]:
    return [
        {"dp": dp, "M": count, "h": 1, "tokens.per.item": 1, "x.dp": x, "w.dp": w, TURN: m}
        for x, w, m in every(range(dp), range(dp), range(1, count + 1))
    ]


def full(sizes: Sizes, env: dict[str, int], count: int) -> dict[str, int]:
    """With the sizes that stand for `this micro-batch exists`."""
    flags = {f"turn.{i}": int(count >= i) for i in range(1, 6)}
    return {**flags, **env}


@pytest.mark.parametrize("head", [HEAD, CUT], ids=["whole", "cut"])
@pytest.mark.parametrize("name", LOOPS)
def test_the_lemma(name: str, head: str) -> None:
    p = program(head + f"step w {{\n{LOOPS[name]}\nupdate\n}}")
    group, sizes = group_of(p)
    (step,) = p.steps
    lemma = at_once(group, step)
    for dp, count in every((1, 2, 3), (1, 2, 3, 4, 5)):
        literal = turn_after_turn(group, step, count)
        gave_up = False
        differs = False
        for env in environments(dp, count):
            env = full(sizes, env, count)
            said, found = coefficient(lemma, env), coefficient(literal, env)
            gave_up |= said == "unknown"
            differs |= found != 1
            if said != "unknown":
                assert said == found, env
        # Where the lemma stops following, it claims that something is wrong: that must be so.
        assert not gave_up or differs, (dp, count)


def test_what_is_stable_is_followed_for_every_count() -> None:
    p = program(HEAD + "step w {\neach microbatch {\naccumulate\nreduce over dp by mean\n}\nupdate\n}")
    group, sizes = group_of(p)
    for term in at_once(group, p.steps[0]):
        assert not any(holds(term.unknown, full(sizes, env, 5)) for env in environments(3, 5))


def test_a_third_turn_that_changes_the_scale_is_not_followed() -> None:
    p = program(HEAD + "step w {\neach microbatch {\naccumulate\nreduce over dp by sum\n}\nupdate\n}")
    group, sizes = group_of(p)
    terms = at_once(group, p.steps[0])
    unknown = [env for env in environments(2, 3) if coefficient(terms, full(sizes, env, 3)) == "unknown"]
    assert {env[TURN] for env in unknown} == {1}


@pytest.mark.parametrize(("subset_", "times"), [
    ("each microbatch", lambda m: m), ("each microbatch but first", lambda m: m - 1),
    ("each microbatch but last", lambda m: m - 1), ("first microbatch", lambda m: 1), ("last microbatch", lambda m: 1),
    ("microbatch 3", lambda m: int(m >= 3)),
])  # fmt: skip
def test_how_often_an_operation_runs(subset_: str, times) -> None:
    p = program(HEAD + f"step w {{\n{subset_} {{\naccumulate\nupdate\n}}\n}}")
    group, sizes = group_of(p)
    (read,) = Run(group).run(p.steps[0]).reads
    for count in (1, 2, 3, 4):
        assert read.times.at(full(sizes, environments(1, count)[0], count)) == times(count)


# --- buffers that are cut -------------------------------------------------------------------


def clashes(body: str) -> list[tuple[str, dict[str, int]]]:
    p = program(CUT + f"step w {{\n{body}\nupdate\n}}")
    group, sizes = group_of(p)
    found = Run(group).run(p.steps[0]).clashes
    meshes = [{"dp": dp, "M": m} for dp in (1, 2) for m in (1, 2, 3)]
    return [
        (c.axis, mesh) for c in found for mesh in meshes
        if holds(c.when, full(sizes, environments(mesh["dp"], mesh["M"])[0], mesh["M"]))
    ]  # fmt: skip


def test_a_whole_share_on_top_of_a_shard_clashes_from_the_second_turn_on() -> None:
    found = clashes("each microbatch {\naccumulate\nreduce over dp by mean\n}")
    assert found == [("dp", {"dp": 2, "M": 2}), ("dp", {"dp": 2, "M": 3})]


def test_a_whole_share_on_top_of_a_shard_of_an_earlier_loop_clashes() -> None:
    first = "first microbatch {\nreduce over dp by mean\naccumulate\n}\n"
    assert ("dp", {"dp": 2, "M": 2}) in clashes(first + "each microbatch but first { accumulate }")
    assert ("dp", {"dp": 2, "M": 1}) not in clashes(first + "each microbatch but first { accumulate }")


def test_shards_on_shards_and_shares_on_shares_do_not_clash() -> None:
    assert not clashes("each microbatch {\nreduce over dp by mean\naccumulate\n}")
    assert not clashes("each microbatch { accumulate }\nreduce over dp by mean")
    assert not clashes("each microbatch {\nreduce over dp by mean\nreplace\n}")
