"""The algebra of exact numbers, operation by operation, on two weight groups of four devices."""

from __future__ import annotations

from fractions import Fraction

import pytest

from placelogic.elaborate import elaborate_file
from placelogic.elaborate.complete import complete
from placelogic.run.buffers import accumulate, cut, fresh, gather, reduce
from placelogic.run.grid import Grid
from placelogic.run.group import Group
from placelogic.run.stop import GroupStop
from placelogic.simulate.arithmetic import PRIME, residue
from placelogic.simulate.elements import COUNT, Elements
from placelogic.simulate.exact import Arrays, Exact
from placelogic.syntax.parse import parse

EVERY = tuple(range(COUNT))


def made(strategy: str) -> tuple[Group, Exact]:
    text = f"mesh a, b\nlet P\nweights w {{ size P }}\nuse {strategy}(a) * data_parallel(b)\n"
    (spec,) = elaborate_file(parse(text, "a.place"))
    program = complete(spec)
    sizes = {"a": 2, "b": 2}
    group = Group(0, program.weights[0], Grid(program.mesh.axes, sizes), program.work.split_axes, Elements)
    return group, Exact(group)


def numbered(group: Group) -> Arrays:
    """Whole arrays, others on every device."""
    return [[100 * (x + 1) + e for e in EVERY] for x in range(group.grid.count)]


def test_shards_are_taken_and_put_together_again() -> None:
    group, on = made("zero3")
    (rule,) = group.params_rule.values()
    whole, cut_up = group.local(()), group.local([rule])
    assert sorted(cut_up[0] + cut_up[2]) == list(EVERY)
    alike: Arrays = [list(EVERY)] * 4
    pieces = on.take(alike, whole, cut_up, "")
    assert [tuple(piece) for piece in pieces] == list(cut_up)
    assert on.pick(pieces, cut_up, whole, ("a",), group.table([rule], whole, cut_up, False), "") == alike


def test_what_a_device_lacks_is_rubbish_and_other_rubbish_elsewhere() -> None:
    group, on = made("zero3")
    (rule,) = group.params_rule.values()
    cut_up, whole = group.local([rule]), group.local(())
    found = on.take([list(local) for local in cut_up], cut_up, whole, "")
    missing = [e for e in EVERY if e not in cut_up[0]]
    assert all(found[0][e] != e and found[0][e] != found[1][e] for e in missing)
    assert all(found[0][e] == e for e in cut_up[0])


@pytest.mark.parametrize("mean", [False, True])
def test_sums_are_by_position_within_process_groups(mean: bool) -> None:
    group, on = made("data_parallel")
    found = on.sum(numbered(group), group.local(()), ("b",), mean, None, "")
    share = residue(Fraction(1, 2)) if mean else 1
    assert found[0] == found[1] == [(300 + 2 * e) * share % PRIME for e in EVERY]
    assert found[2] == [(700 + 2 * e) * share % PRIME for e in EVERY]


def test_a_put_keeps_what_the_source_lacks() -> None:
    group, on = made("zero3")
    (rule,) = group.params_rule.values()
    cut_up, whole = group.local([rule]), group.local(())
    found = on.put([[0] * COUNT] * 4, whole, [[7] * len(local) for local in cut_up], cut_up, cut_up, "")
    assert found[0] == [7 if e in cut_up[0] else 0 for e in EVERY]


def test_a_reduced_gradient_is_cut_where_it_is_placed_so_and_gathered_whole() -> None:
    group, on = made("zero3")
    buffer = fresh(group, on, [numbered(group)])
    reduce(buffer, ("a",), mean=False, scattered=False)
    (rule,) = group.gradients_rule.values()
    assert buffer.local == group.local([rule])
    gather(buffer, ("a",))
    assert buffer.layers[0][0] == [100 + 300 + 2 * e for e in EVERY] and buffer.gathered == {"a"}


def test_copies_that_differ_are_no_pieces_of_one_gradient() -> None:
    group, on = made("data_parallel")
    buffer = fresh(group, on, [numbered(group)])
    gather(buffer, ("b",))
    assert all(found != had for found, had in zip(buffer.layers[0], numbered(group)))


def test_a_whole_gradient_is_not_added_to_a_shard() -> None:
    group, on = made("zero3")
    held, more = (fresh(group, on, [numbered(group)]) for _ in range(2))
    (rule,) = group.gradients_rule.values()
    cut(held, rule)
    with pytest.raises(GroupStop):
        accumulate(held, more, replace=False)


def test_a_norm_counts_each_copy_for_its_fraction() -> None:
    group, on = made("data_parallel")
    whole = group.local(())
    array: Arrays = [[1] * COUNT] * 4
    once = on.squares(array, whole, whole, [4] * COUNT, None)
    assert [value % PRIME for value in once] == [COUNT] * 4
    assert on.squares(array, whole, whole, None, ("b",)) == [2 * COUNT] * 4
