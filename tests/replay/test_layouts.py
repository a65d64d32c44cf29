"""Who holds which element, and what collectives do to arrays; without any process."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from placelogic.elaborate import elaborate_file
from placelogic.elaborate.complete import complete
from placelogic.replay.shape import Shape, TooLarge
from placelogic.run.grid import Grid
from placelogic.run.group import Group
from placelogic.run.owners import owners
from placelogic.syntax.parse import parse


def group(text: str, **sizes: int) -> Group:
    (spec,) = elaborate_file(parse(text, "a.place"))
    program = complete(spec)
    return Group(0, program.weights[0], Grid(program.mesh.axes, sizes), program.work.split_axes, Shape)


@pytest.mark.parametrize(
    ("system", "size", "length", "axis", "wanted"),
    [
        ((("a",),), {"a": 2}, 4, "a", [0, 0, 1, 1]),
        ((("a",),), {"a": 2}, 5, "a", [0, 0, 0, 1, 1]),
        ((("a", "b"),), {"a": 2, "b": 2}, 4, "b", [0, 1, 0, 1]),
        ((("a", "b"),), {"a": 2, "b": 2}, 5, "a", [0, 0, 0, 0, 1]),
        ((("a",), ("b",)), {"a": 2, "b": 2}, 5, "b", [0, 0, 1, 0, 1]),
    ],
)
def test_owners(system, size, length, axis, wanted) -> None:  # type: ignore[no-untyped-def]
    assert owners(system, tuple(size.items()), length, tuple(range(length)))[axis] == tuple(wanted)


def test_every_element_has_one_holder_in_a_sharded_layout() -> None:
    made = group("mesh a, b\nlet P\nweights w { size P }\nuse zero3(a) * tensor_parallel(b)\n", a=3, b=2)
    assert sorted(e for local in made.params_local for e in local) == list(range(made.count))
    assert made.own_room.keys() == {"b"}
    assert made.params_rule.keys() == {"a", "b"}


def test_dimensions_are_independent() -> None:
    """A cut of rows and one of columns differ for some element, and so do those of other dimensions."""
    text = "mesh dp\nlet P\nweights w { size P, dims in out }\nbatch over dp\n"
    text += "place w over dp { optimizer sharded on out, gradients sharded on in }\n"
    made = group(text, dp=2)
    assert made.optimizer_rule["dp"].table != made.gradients_rule["dp"].table


def test_a_product_is_not_a_nested_cut_unless_sizes_divide() -> None:
    text = "mesh a, b\naxis dp = a * b\nlet P\nweights w { size P, dims in out }\nbatch over dp\n"
    text += "place w over dp { optimizer sharded on out }\nplace w over a { gradients sharded on out }\n"
    text += "place w over b { gradients sharded on out }\n"
    made = group(text, a=2, b=2)
    one, two = made.optimizer_rule, made.gradients_rule
    assert any(one[axis].table != two[axis].table for axis in ("a", "b"))


def test_sources_follow_the_owners() -> None:
    made = group("mesh a, b\nlet P\nweights w { size P }\nuse zero3(a) * tensor_parallel(b)\n", a=2, b=2)
    for x in range(4):
        found = made.sources(x, made.params_rule.values())
        for y in range(4):
            assert tuple(e for e, holder in enumerate(found) if holder == y) == made.params_local[y]


def test_tied_weights_are_held_at_both_ends() -> None:
    text = "mesh pp\nlet P\nweights w { size P, kind embedding, used on first and last of pp }\nuse pipeline(pp)\n"
    made = group(text, pp=3)
    assert made.holders == [0, 2]
    assert made.groups(("pp",)) == [[0, 2]]


def test_what_is_too_large_is_refused() -> None:
    text = "mesh a, b, c, d\nlet P\nweights w { size P }\nuse zero1(a) * zero1(b) * zero1(c) * zero1(d)\n"
    (spec,) = elaborate_file(parse(text, "a.place"))
    with pytest.raises(TooLarge):
        Shape(complete(spec).weights[0], (("a", 60), ("b", 60), ("c", 60), ("d", 60)), False)
