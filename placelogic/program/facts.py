"""What each weight group's local gradient is along each mesh axis, before any reduction.

An interface: the rules that fill it read placements (elaborate/facts.py); whoever derives
steps or proves them reads only this, so that other sources can fill it later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from placelogic.program.expr import Compare, Expr
from placelogic.program.ops import Origin
from placelogic.program.plan import Dealt, Plan
from placelogic.source import Span

Kind = Literal["partial", "replicated", "shard", "absent"]


class Fact(Struct, frozen=True):
    """One weight group along one atom.

    `partial`: devices hold different, addable parts. The part belongs to a work item (`part`
    "item"), to a piece of the activations ("activation") or to one of two uses ("use").
    `replicated`: everyone holds the whole value. `shard`: each holds its own elements, complete.
    `absent`: the parameters are not there, nothing can be computed.
    `routed`: what the kind says is then sent to the owner of each element, and summed there.
    `because`: the rule in words, for reports. `span`: the statement it rests on.
    """

    axis: str
    kind: Kind
    part: Literal["item", "activation", "use", "none"]
    routed: bool
    because: str
    span: Span


Facts = Mapping[str, Mapping[str, Fact]]
"""weights -> atom -> fact, for every weight group and every atom."""


class Path(Struct, frozen=True):
    """One way by which a gradient comes to weights, against what the facts say. `partial`, `copies`: the axes along
    which it is such, and otherwise than the fact has it; `tied`: axes along which each device has, of
    its own piece, its own share only. `lost`: axes along which it is no gradient any more. `counted`: axes
    along which copies were added up. `through`: what a person stated on the way, in the order of the pass. `summed_in_place`:
    axes along which pieces were added up place by place."""

    scale: Expr
    partial: frozenset[str]
    copies: frozenset[str]
    tied: frozenset[str]
    lost: frozenset[str]
    counted: frozenset[str]
    through: tuple[Origin, ...]
    summed_in_place: frozenset[str] = frozenset()


Parts = tuple[tuple[int, tuple[Path, ...]], ...]
"""Independent parts, each with the number of times that one device has it."""

When = tuple[tuple[Compare, ...], ...]
"""Alternatives on the number of layers, each a list of conditions; none at all: always."""


class Flow(Struct, frozen=True):
    """An independent part of the gradients of some weights that is not as the facts say. One device has it
    `times` times; devices get it by `paths`. `tensor` of `block`: what the operation makes whose weights they
    are, one of them where there are several."""

    weights: str
    block: str
    tensor: str
    times: int
    paths: tuple[Path, ...]
    when: When
    beyond: Parts | None = None
    """Not followed, because there are too many layers: what one layer makes of a gradient that is right. Where
    that is right, so is the gradient after any number of layers."""


class Need(Struct, frozen=True):
    """What the forward pass has to come to at one tensor. With `axis`: something that does not lie as
    `operation`, or the `boundary` of the tensor, needs it, wherever the axis has two devices or more, for a `reason`:
    a variant of FW05 in the catalogue of sentences, with its `words`. Else `parts` have to be what one device has;
    `nonlinear`: because what reads them is not linear."""

    block: str
    tensor: str
    operation: str
    origin: Origin
    axis: str | None
    parts: Parts
    nonlinear: bool
    when: When
    beyond: bool = False
    """Not followed, because there are too many layers: `parts` are what one layer makes of what is right."""
    reason: str = ""
    words: tuple[tuple[str, str], ...] = ()
    boundary: bool = False


class Crossing(Struct, frozen=True):
    """One override in the plan. `done`: what happens there forward, in words; `usual`: how the line would have
    to be for what is derived (`by` a word), None where it would have to go. `changes`: it is not what is derived."""

    block: str
    tensor: str
    axis: str
    direction: Literal["forward", "backward"]
    done: str
    usual: str | None
    changes: bool
    origin: Origin


class Reach(Struct, frozen=True):
    """What a `backward` line of a spec without blocks does to the gradient that reaches some weights, and all
    before them: it is multiplied by `factor`, and cut along `cut` into what each device keeps. `summed`: axes
    along which copies are added up. `doubt`: why it is not known how often this happens, or to which weights;
    None where that is known. Where the line changes nothing, it makes no difference."""

    weights: str
    factor: Expr
    cut: tuple[str, ...]
    summed: tuple[str, ...]
    doubt: str | None
    origin: Origin


class Layering(Struct, frozen=True):
    """What the operations of the layers come to. `usual`: the plan without what is stated of boundaries, where something
    is. `flows`: the gradients of the weights, those that the facts describe left out; `plain`: the weights that have some
    gradient as the facts describe it."""

    plan: Plan
    crossings: tuple[Crossing, ...] = ()
    flows: tuple[Flow, ...] = ()
    needs: tuple[Need, ...] = ()
    plain: frozenset[str] = frozenset()
    dealt: tuple[Dealt, ...] = ()
    reaches: tuple[Reach, ...] = ()
    usual: Plan | None = None
