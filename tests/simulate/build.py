"""Programs by hand, in few words, for the simulator's tests."""

from __future__ import annotations

from placelogic.program.catalog import Needs
from placelogic.program.expr import Binary, Name, number
from placelogic.program.program import (
    Accumulate,
    Atom,
    BroadcastParams,
    Clip,
    Conflict,
    Cut,
    Feed,
    FetchParams,
    GatherGradients,
    GatherParams,
    GlobalNorm,
    InitOp,
    Layout,
    Let,
    Loop,
    LossTerm,
    Mesh,
    Optimizer,
    Origin,
    Program,
    RandomStreams,
    Reduce,
    Refresh,
    Scale,
    ScaleLoss,
    Skip,
    Split,
    Step,
    Update,
    Uses,
    Weights,
    Work,
)
from placelogic.simulate import Outcome, simulate
from placelogic.source import NOWHERE

O = Origin(NOWHERE, True)


def axes(text):
    return tuple(text.replace("*", " ").split())


def cut(text, dim=None, letter="S"):
    """`S` over an axis or a product: cut("dp"), cut("edp*ep", "out")."""
    return Cut(axes(text), letter, dim, O)


def star(text, dim=None):
    return cut(text, dim, "S*")


def layout(*cuts, host=False, m=False):
    return Layout(tuple(cuts), O if host else None, O if m else None)


def one(value):
    return value if isinstance(value, Layout) else layout(*value) if isinstance(value, tuple) else layout(value)


R = layout()


def weights(name="p", params=R, optimizer=R, gradients=R, activations=R, **more):
    master = more.pop("master", False)
    uses = more.pop("uses", None)
    streams = tuple(RandomStreams(a, k, O) for a, k in more.pop("random", {}).items())
    fields = dict(
        kind="matrix", size=None, layers=None, dims=("out", "in"), routed=axes(more.pop("routed", "")),
        frozen=False, optimizer=Optimizer("adamw", more.pop("needs", Needs.ELEMENT), O),
        precision={"master": "fp32"} if master else {}, init=(), random=streams, span=NOWHERE,
        uses=Uses(uses[0], "first" in uses[1], "last" in uses[1], "vee" in uses[1], NOWHERE) if uses else None,
    )  # fmt: skip
    fields.update(more)
    return Weights(
        name, params=one(params), optimizer_state=one(optimizer), gradients=one(gradients),
        activations=one(activations), **fields,
    )  # fmt: skip


def different(text):
    return InitOp("different", axes(text), 0, O)


def seed_from(text, root=0):
    return InitOp("broadcast", axes(text), root, O)


# --- operations -------------------------------------------------------------------------------


def loop(*body, subset="each", index=None):
    return Loop(subset, index, body, O)


def acc(buffer=None, replace=False):
    return Accumulate(buffer, replace, O)


def red(text, op="mean", scattered=False, buffer=None):
    return Reduce(buffer, axes(text), op, scattered, O)


def gather(text):
    return GatherGradients(axes(text), O)


def ratio(text):
    """A number, a name, `a/b` or `a*b`."""
    for op in "/*":
        if isinstance(text, str) and op in text:
            left, right = text.split(op)
            return Binary(op, ratio(left), ratio(right))
    return number(int(text)) if str(text).isdigit() else Name(text)


def scale(text, buffer=None):
    return Scale(buffer, ratio(text), O)


def scale_loss(term, text):
    return ScaleLoss(term, ratio(text), O)


clip = Clip(O)
refresh = Refresh(O)
fetch = FetchParams(O)


def skip(text=""):
    return Skip(axes(text), O)


def upd(buffer=None):
    return Update(buffer, O)


def publish(text):
    return GatherParams(axes(text), O)


def copy_from(text, root=0):
    return BroadcastParams(axes(text), root, O)


def default(*after, before=(acc(),)):
    """Accumulate over the micro-batches, average over them, then what follows."""
    return (loop(*before), scale("1/M"), *after)


# --- the program ------------------------------------------------------------------------------


def loss(name=None, mean=True, over="", microbatches=False):
    return LossTerm(name, mean, axes(over), microbatches, NOWHERE)


def job(mesh, *groups, split="", feed=None, losses=(loss(),), objective="mean", norm=None, views=(), conflicts=(), even=True):
    """`groups`: pairs of weights and their operations (None: frozen). `norm`: True for the
    derived clip, or weights -> axes."""
    listed = {name: (axes(text), O) for name, text in norm.items()} if isinstance(norm, dict) else None
    return Program(
        name="test",
        mesh=Mesh(tuple(Atom(a, None, NOWHERE) for a in axes(mesh)), tuple((n, axes(t)) for n, t in views)),
        lets=(Let("M", None, NOWHERE),),
        assumptions=(),
        work=Work(
            tuple(Split(a, "batch", NOWHERE) for a in axes(split)),
            tuple(Feed(a, k, NOWHERE) for a, k in (feed or {}).items()),
            Name("M"), even, objective, tuple(losses),
        ),
        stages=None,
        weights=tuple(w for w, _ in groups),
        steps=tuple(Step(w.name, ops, True, O) for w, ops in groups if ops is not None),
        clip=GlobalNorm(listed, O) if norm is not None else None,
        conflicts=tuple(Conflict(w, "params", a, O, O, "") for w, a in conflicts),
        expectations=(),
        span=NOWHERE,
    )  # fmt: skip


def run(program, M=1, **sizes) -> Outcome:
    full = {axis: sizes.pop(axis, 1) for axis in program.mesh.axes}
    assert not sizes, sizes
    return simulate(program, full, {"M": M})


MESHES = ((1, 1), (2, 1), (3, 2), (2, 3))
"""(size of every axis, micro-batches)."""


def always_right(program):
    """Right on every small mesh in which all axes have one size."""
    for size, M in MESHES:
        outcome = simulate(program, dict.fromkeys(program.mesh.axes, size), {"M": M})
        assert outcome.right, (size, M, outcome.differences[:3], outcome.stops)


def wrong_from(program, size=2, M=1, weights="p", stop=None, **fixed):
    """Wrong at this size and right where every axis has size 1 (with one micro-batch)."""
    sizes = {axis: fixed.get(axis, size) for axis in program.mesh.axes}
    outcome = simulate(program, sizes, {"M": M})
    assert outcome.wrong(weights), "nothing wrong"
    if stop is not None:
        assert (outcome.stopped is not None) == stop, outcome
    single = simulate(program, dict.fromkeys(program.mesh.axes, 1), {"M": 1})
    assert single.right, (single.differences[:3], single.stops)
    return outcome
