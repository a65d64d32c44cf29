"""The pieces: regions of memory, lineage, names of groups, specs that a run cannot be held against."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch

import placelogic
from placelogic.frontends.live.axes import build
from placelogic.frontends.live.expected import plan
from placelogic.frontends.live.found import Gradient, Model, Parameter
from placelogic.frontends.live.groups import grouped
from placelogic.frontends.live.lineage import Lineage
from placelogic.frontends.live.stories import NEW, Stories, Story, scaled
from placelogic.problem import SpecError

HALF = Story(Fraction(1, 2))


def test_a_view_has_a_story_of_its_own() -> None:
    stories, buffer = Stories(), torch.zeros(10)
    stories.set(buffer, Story(parent=3))
    stories.set(buffer[2:4], Story(Fraction(1, 2), 3))
    assert stories.of(buffer[:2]).factor == 1 and stories.of(buffer[4:]).parent == 3
    assert stories.of(buffer[2:4]).factor == Fraction(1, 2)
    assert stories.of(buffer).factor is None
    stories.set(buffer, HALF)
    assert stories.of(buffer[3:5]) == HALF


def test_memory_that_is_used_again_has_no_story() -> None:
    stories = Stories()
    stories.set(torch.zeros(10), HALF)
    assert all(stories.of(torch.zeros(10)) == NEW for _ in range(20))


@pytest.mark.parametrize(
    ("by", "power", "wanted"),
    [
        (3.0, -1, Fraction(1, 3)),
        (1 / 3, 1, Fraction(1, 3)),
        (0.1, 1, Fraction(1, 10)),
        (2, 1, Fraction(2)),
        (-1, 1, Fraction(-1)),
        (0, 1, None),
        (float("nan"), 1, None),
        (float("inf"), -1, None),
    ],
)
def test_numbers_are_read_as_fractions(by: Any, power: int, wanted: Fraction | None) -> None:
    assert scaled(NEW, by, power).factor == wanted


def test_a_tensor_is_no_plain_number() -> None:
    assert scaled(HALF, torch.tensor(3.0), 1) == Story(Fraction(1, 2), computed=True)


def watched(lineage: Lineage, operation: Any, *args: Any, **kwargs: Any) -> Any:
    result = operation(*args, **kwargs)
    lineage.watch(operation, args, kwargs, result)
    return result


def test_gradients_are_followed_through_copies_and_scales() -> None:
    aten, lineage = torch.ops.aten, Lineage()
    first, second, bucket = torch.ones(2), torch.ones(3), torch.empty(5)
    watched(lineage, aten.mul.out, first, torch.tensor(0.5), out=bucket[:2])
    assert lineage.of(bucket[:2]).computed
    watched(lineage, aten.div_.Scalar, first, 2)
    watched(lineage, aten._foreach_mul_.Scalar, [second], 0.5)
    joined = watched(lineage, aten.cat.default, [first, second])
    assert lineage.of(joined) == HALF
    watched(lineage, aten.copy_.default, bucket, joined)
    assert lineage.of(bucket) == HALF
    watched(lineage, aten.zero_.default, bucket)
    assert lineage.of(bucket) == NEW


def test_axes_of_ranks() -> None:
    axes = build(("pp", "dp", "tp"), [[[0, 1], [2, 3]], [[4, 5], [6, 7]]], (2, 2, 2), 5)
    assert axes.of_ranks([4, 5]) == ("tp",)
    assert axes.of_ranks([5, 7]) == ("dp",)
    assert axes.of_ranks([1, 3, 5, 7]) == ("pp", "dp")
    assert axes.of_ranks(range(8)) == ("pp", "dp", "tp")
    assert axes.of_ranks([5]) == ()
    assert axes.of_ranks([0, 5]) is None
    assert axes.between(1) == ("pp",) and axes.between(6) == ("dp", "tp")
    assert axes.along["dp"] == (5, 7)


def names(*given: str) -> list[str]:
    parameters = tuple(Parameter(name, (4,), "Linear", True, "adamw", (), (), Gradient()) for name in given)
    return [group.name for group in grouped(Model(("dp",), (2,), (), parameters, None, ()))]


def test_names_of_groups() -> None:
    assert names("layers.0.norm.weight", "layers.1.norm.weight", "norm.weight") == ["layers_norm", "norm"]
    assert names("0.weight", "1.weight", "2.bias") == ["weight", "bias"]
    assert names("dp.weight", "router.weight", "a.b-c.weight") == ["dp_weights", "router_weights", "a_b_c"]


SPEC = """
mesh dp
let h
weights attn { size 4*h*h }
use data_parallel(dp)
"""


@pytest.mark.parametrize(
    ("text", "name", "at", "mesh", "wanted"),
    [
        (SPEC, None, {}, {"dp": (2, 0)}, "PL529: the spec leaves open: h (say what the run had, such as compare(..., at={\"h\": 2}))"),
        (SPEC, "other", {"h": 2}, {"dp": (2, 0)}, "PL529: there is no spec `other`"),
        (SPEC, None, {"h": 2}, {"data": (2, 0)}, "PL529: the mesh has an axis `data`, which the spec does not have"),
        (
            SPEC.replace("mesh dp", "mesh dp, tp = 2"),
            None,
            {"h": 2},
            {"dp": (2, 0)},
            "PL529: the mesh has no axis `tp`",
        ),
        (
            SPEC.replace("mesh dp", "mesh dp, tp"),
            None,
            {"h": 2},
            {"dp": (2, 0)},
            "PL529: the size of `tp` is not known",
        ),
        (SPEC.replace("mesh dp", "mesh dp = 4"), None, {"h": 2}, {"dp": (2, 0)}, "PL405: "),
        ("spec a { mesh dp }\nspec b { mesh dp }\n", None, {}, {"dp": (2, 0)}, "PL529: there are 2 specs"),
        ("mesh dp\nwaits attn\n", None, {}, {"dp": (2, 0)}, "PL1"),
        ("nowhere.place", None, {}, {"dp": (2, 0)}, "PL001"),
    ],
)
def test_specs_that_a_run_cannot_be_held_against(
    text: str, name: str | None, at: dict[str, int], mesh: dict[str, tuple[int, int]], wanted: str
) -> None:
    with pytest.raises(SpecError) as error:
        plan(text, name, at, mesh)
    assert str(error.value).startswith(wanted)


def test_what_a_spec_communicates() -> None:
    text = SPEC.replace("data_parallel", "zero3").replace(
        "mesh dp", "mesh node, local\naxis dp = node * local\nmicrobatches M"
    )
    found = plan(text, None, {"h": 8, "M": 3, "node": 2, "local": 2}, {"dp": (4, 1)})
    assert found.meanings == {"dp": ("node", "local")}
    told = [(one.operation, one.what, one.axes, one.members, one.bytes, one.times) for one in found.expected]
    assert told == [
        ("all-gather", "params for forward", ("node", "local"), 4, 1024, 3),
        ("all-gather", "params for backward", ("node", "local"), 4, 1024, 3),
        ("reduce-scatter", "gradients", ("node", "local"), 4, 1024, 3),
    ]
    assert [(one.factor, one.means) for one in found.scalings] == [(Fraction(1, 12), Fraction(1, 4))]


def test_torch_is_loaded_when_it_is_asked_for() -> None:
    code = "import placelogic, sys; placelogic.from_torch, placelogic.trace; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(placelogic.__file__).parents[1])


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SpecError, match="PL520: a live model needs PyTorch, which cannot be imported"):
        placelogic.trace()


def test_an_old_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "2.6.0+cu124")
    with pytest.raises(SpecError, match=r"PL520: PyTorch 2\.6\.0\+cu124 is too old: 2\.13 is needed"):
        placelogic.from_torch(None, None)
