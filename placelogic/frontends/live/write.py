"""Writes what was found as a spec, with a comment on what each line was read from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct

from placelogic.frontends.live.found import Gradient, Model, PlacedWeights
from placelogic.frontends.live.groups import ProcessGroup

T = TypeVar("T", bound=Hashable)


class Said(Struct, frozen=True):
    """What a model cannot tell, and the caller said or left at its default. `loss` in words of the language.
    `open_sizes`: sizes of the mesh are left open."""

    microbatches: int
    loss: str
    tokens: str
    clip: bool
    open_sizes: bool


def write(model: Model, groups: Sequence[ProcessGroup], said: Said, title: str) -> str:
    """The text of the spec."""
    trained = [group for group in groups if group.first.trained]
    parts = [
        [f"# {title}", *_granted(model, groups, said)],
        [*_mesh(model, said), *_work(model, said)],
        [_weights(group, model) for group in groups],
        [*_dealt(model, groups), *_places(groups)],
        [*_optimizers(trained), *_precisions(groups), *_frozen(groups)],
        _clip(model, trained) if said.clip else [],
        *_steps(model, trained, said),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _granted(model: Model, groups: Sequence[ProcessGroup], said: Said) -> list[str]:
    lines = [f"#   {remark}" for remark in model.remarks]
    for group in groups:
        lines += [f"#   {group.name}: {remark}" for remark in group.first.remarks]
    if said.microbatches > 1 and model.pipeline is None:
        lines.append("#   the training loop divides the loss by the number of micro-batches")
        if any(group.first.gradient.after for group in groups):
            lines.append("#   the training loop combines gradients in the last micro-batch only: no_sync()")
    lines.append("#   one device would see the same samples; nothing but the model and the optimizer was read")
    return ["# Taken for granted:", *lines]


def _mesh(model: Model, said: Said) -> list[str]:
    sizes = list(zip(model.names, model.sizes, strict=True))
    if said.open_sizes:
        here = ", ".join(f"{name} = {size}" for name, size in sizes)
        return [f"mesh {', '.join(model.names)}    # {here} in this run"]
    return ["mesh " + ", ".join(f"{name} = {size}" for name, size in sizes)]


def _work(model: Model, said: Said) -> list[str]:
    lines = []
    for (dim, why), axes in _by([(axis, (dim, why)) for axis, dim, why in model.splits]).items():
        lines.append(f"{dim} over {', '.join(axes)}    # {why}")
    if said.microbatches > 1:
        count = "M" if said.open_sizes else str(said.microbatches)
        lines.append(f"microbatches {count}" + (f"    # {said.microbatches} in this run" if said.open_sizes else ""))
    lines.append(f"tokens {said.tokens}")
    lines.append(f"loss {said.loss}")
    if (pipeline := model.pipeline) is not None:
        size = model.sizes[model.names.index(pipeline.axis)]
        properties = [f"schedule {pipeline.schedule or '1f1b'}", f"chunks {pipeline.stages // size}"]
        why = "the schedule" if pipeline.schedule else "stages without a schedule: 1f1b taken for granted"
        lines.append(f"stages over {pipeline.axis} {{ {', '.join(properties)} }}    # {why}")
    return lines


def _weights(group: ProcessGroup, model: Model) -> str:
    properties = [f"size {group.size()}"]
    if group.layers > 1:
        properties.append(f"layers {group.layers}")
    if group.first.dims:
        properties.append("dims " + " ".join(group.first.dims))
    properties.append(f"kind {group.first.kind}")
    if group.ends is not None and model.pipeline is not None:
        properties.append(f"used on {group.ends} of {model.pipeline.axis}")
    name = group.first.name if group.layers == 1 else f"{group.first.name} and {group.layers - 1} more"
    return f"weights {group.name} {{ {', '.join(properties)} }}    # {name}"


def _dealt(model: Model, groups: Sequence[ProcessGroup]) -> list[str]:
    if model.pipeline is None:
        return []
    lines = []
    cut = "sharded on layer"
    for trained, states in ((True, ("params", "optimizer", "gradients")), (False, ("params",))):
        if dealt := [group.name for group in groups if group.dealt and group.first.trained == trained]:
            entries = ", ".join(f"{state} {cut}" for state in states)
            lines.append(f"place {', '.join(dealt)} over {model.pipeline.axis} {{ {entries} }}    # pipeline stages")
    return lines


def _places(groups: Sequence[ProcessGroup]) -> list[str]:
    """Statements of the outer cuts first, because axes that cut one dimension nest in the order written."""
    targets: dict[tuple[PlacedWeights, bool], list[str]] = {}
    level: dict[tuple[PlacedWeights, bool], int] = {}
    for group in groups:
        for number, placed in enumerate(group.first.place):
            key = placed, group.first.trained
            targets.setdefault(key, []).append(group.name)
            level[key] = max(level.get(key, 0), number)
    lines = []
    for placed, trained in sorted(targets, key=lambda one: level[one]):
        entries = [f"params {placed.params}"]
        if trained:
            entries += [f"optimizer {placed.optimizer}", f"gradients {placed.gradients}"]
        if placed.activations is not None:
            entries.append(f"activations {placed.activations}")
        if placed.reshard is not None:
            entries.append(f"reshard_after_forward {placed.reshard}")
        target, axes = ", ".join(targets[placed, trained]), "*".join(placed.axes)
        lines.append(f"place {target} over {axes} {{ {', '.join(entries)} }}    # {placed.why}")
    return lines


def _optimizers(trained: Sequence[ProcessGroup]) -> list[str]:
    return _usual("optimizer {0}", "optimizer {0} for {1}", trained, lambda group: group.first.optimizer)


def _precisions(groups: Sequence[ProcessGroup]) -> list[str]:
    def entries(group: ProcessGroup) -> str:
        return ", ".join(f"{state} {dtype}" for state, dtype in group.first.precision)

    return _usual("precision {{ {0} }}", "precision {1} {{ {0} }}", groups, entries)


def _usual(all_: str, some: str, groups: Sequence[ProcessGroup], say: Callable[[ProcessGroup], T]) -> list[str]:
    """What most groups have, said of all; the rest by name."""
    if not groups:
        return []
    usual = Counter(say(group) for group in groups).most_common(1)[0][0]
    others = _by([(group.name, say(group)) for group in groups if say(group) != usual])
    return [all_.format(usual), *(some.format(value, ", ".join(names)) for value, names in others.items())]


def _frozen(groups: Sequence[ProcessGroup]) -> list[str]:
    frozen = [group.name for group in groups if not group.first.trained]
    return [f"freeze {', '.join(frozen)}"] if frozen else []


def _clip(model: Model, trained: Sequence[ProcessGroup]) -> list[str]:
    """clip_grad_norm_ sums over the mesh of DTensors, and knows nothing of other stages."""
    if model.pipeline is None:
        return ["clip global_norm    # clip_grad_norm_"]
    summed = [(group.name, ", ".join(axis for one in group.first.place for axis in _cut(one))) for group in trained]
    entries = [f"  {', '.join(names)} over {axes or 'none'}" for axes, names in _by(summed).items()]
    return ["# clip_grad_norm_ on each stage by itself", "clip global_norm {", *entries, "}"]


def _cut(placed: PlacedWeights) -> Sequence[str]:
    return placed.axes if placed.params != "replicated" else ()


def _steps(model: Model, trained: Sequence[ProcessGroup], said: Said) -> list[list[str]]:
    parts = []
    for gradient, names in _by([(group.name, group.first.gradient) for group in trained]).items():
        why = "; ".join(gradient.why) or "nothing combines these gradients"
        target = "*" if len(names) == len(trained) else ", ".join(names)
        parts.append([f"# {why}", f"step {target} {{", *(f"  {line}" for line in _ops(gradient, model, said)), "}"])
    return parts


def _ops(gradient: Gradient, model: Model, said: Said) -> Iterable[str]:
    yield "each microbatch {"
    yield from (f"  {line}" for line in (*gradient.fresh, "accumulate", *gradient.running))
    yield "}"
    pipeline = model.pipeline
    if said.microbatches > 1 and (pipeline is None or pipeline.divides is not False):
        yield f"scale by 1/{'M' if said.open_sizes else said.microbatches}"
    yield from gradient.after
    if said.clip:
        yield "clip"
    yield from (*gradient.before_update, "update", *gradient.publish)


def _by(pairs: Iterable[tuple[str, T]]) -> dict[T, list[str]]:
    """Names by what they have, in order."""
    result: dict[T, list[str]] = {}
    for name, value in pairs:
        result.setdefault(value, []).append(name)
    return result
