"""Faults: one change of a draft, most of which make a right spec wrong."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.property.base import gathers, optimizer, scope
from tests.property.draft import STATES, Draft, Place
from tests.property.steps import rewrite

_CUTS = [
    "sharded",
    "sharded on flat",
    "sharded on param",
    "sharded on layer",
    "gathered",
    "gathered on flat",
    "replicated",
]


def mutate(draft: Draft, random: Random) -> None:
    """Exactly one change."""
    for _ in range(10):
        if random.choice(_ALL)(draft, random):
            return


def _step(draft: Draft, random: Random) -> bool:
    if not draft.steps:
        return False
    rewrite(draft.steps[random.choice(sorted(draft.steps))], draft, random, harmless=False)
    return True


def _sync(draft: Draft, random: Random) -> bool:
    target = draft.target(random)
    if draft.steps and (target not in draft.names() or target in draft.steps):
        return False
    axes = draft.some_axes(random)
    if axes == "none":
        return False
    if draft.microbatches and random.random() < 0.15:
        axes = "microbatches"
    how = random.choice(["none", "sum", "mean", "mean"]) if axes != "microbatches" else random.choice(["sum", "mean"])
    draft.lines.append(f"sync {target} over {axes} by {how}")
    return True


def _scale(draft: Draft, random: Random) -> bool:
    target = draft.target(random)
    if draft.steps and (target not in draft.names() or target in draft.steps):
        return False
    axis = draft.axis(random)
    factors = ["2", "1/2", axis, f"1/{axis}", f"{axis}/{draft.axis(random)}", f"({axis} + 1)/({axis} + 1)"]
    if draft.microbatches:
        factors += ["M", "1/M", f"{axis}/M"]
    if len(draft.losses) < 2:
        factors += ["1/tokens", "tokens"]
    draft.lines.append(f"scale {target} by {random.choice(factors)}")
    return True


def _sync_and_scale(draft: Draft, random: Random) -> bool:
    """A sum with the division by hand: right where the derived one is a mean."""
    target = draft.target(random)
    if draft.steps and (target not in draft.names() or target in draft.steps):
        return False
    axis = draft.axis(random)
    how, factor = random.choice([("sum", f"1/{axis}"), ("sum", f"1/{axis}"), ("mean", axis)])
    draft.lines += [f"sync {target} over {axis} by {how}", f"scale {target} by {factor}"]
    return True


def _loss(draft: Draft, random: Random) -> bool:
    draft.losses[random.choice([*draft.losses, ""])] = scope(draft, random)
    return True


def _objective(draft: Draft, random: Random) -> bool:
    if any(line.startswith("objective") for line in draft.lines):
        return False
    draft.lines.append("objective sum")
    return True


def _uneven(draft: Draft, random: Random) -> bool:
    if "tokens uneven" in draft.lines:
        return False
    draft.lines.append("tokens uneven")
    return True


def _feed(draft: Draft, random: Random) -> bool:
    draft.lines.append(f"feed {random.choice(['same', 'different'])} over {draft.axis(random)}")
    return True


def _mode(draft: Draft, random: Random) -> bool:
    """One state of one statement lies otherwise."""
    if not draft.places:
        return False
    place = random.choice(draft.places)
    state = random.choice(STATES[:3])
    place.modes[state] = random.choice(_CUTS)
    return True


def _one_group(draft: Draft, random: Random) -> bool:
    """A state of one group is placed on its own."""
    group = random.choice(draft.groups)
    cuts = [*_CUTS, *(f"sharded on {dim}" for dim in group.dims)]
    states = random.sample(STATES[:3], random.choice([1, 1, 2, 3]))
    if "params" in states:
        cuts = [cut.replace("sharded", "gathered") if random.random() < 0.7 else cut for cut in cuts]
    mode = random.choice(cuts)
    draft.places.append(Place(group.name, draft.some_axes(random), dict.fromkeys(states, mode)))
    return True


def _activations(draft: Draft, random: Random) -> bool:
    mode = random.choice(["sharded", "sharded on heads", "gathered", "sharded on vocab", "materialized"])
    draft.places.append(Place(draft.target(random), draft.axis(random), {"activations": mode}))
    return True


def _residency(draft: Draft, random: Random) -> bool:
    state = random.choice(["params", "optimizer", "gradients"])
    mode = random.choice(["materialized", "offloaded"])
    draft.places.append(Place(draft.target(random), "", {state: mode}))
    return True


def _twice(draft: Draft, random: Random) -> bool:
    """The same target and axes again: a conflict where it differs."""
    if not draft.places:
        return False
    place = random.choice(draft.places)
    state = random.choice(sorted(place.modes))
    draft.places.append(Place(place.target, place.axes, {state: random.choice(_CUTS)}))
    return True


def _start(draft: Draft, random: Random) -> bool:
    axis = draft.some_axes(random)
    target = draft.target(random)
    if random.random() < 0.6 or axis == "none":
        draft.lines.append(f"init {target} different over {axis}")
        return True
    root = draft.axis(random)
    lines = [f"  different over {axis}", f"  broadcast over {root} from {random.choice([0, 0, 0, 1])}"]
    if random.random() < 0.2:
        lines.reverse()
    draft.lines.append("\n".join([f"init {target} {{", *lines, "}"]))
    return True


def _streams(draft: Draft, random: Random) -> bool:
    whole = [group.name for group in draft.groups if group.kind == "vector"] or draft.names()
    target = random.choice(whole) if random.random() < 0.7 else draft.target(random)
    draft.lines.append(f"random {target} over {draft.axis(random)} different")
    return True


def _optimizer(draft: Draft, random: Random) -> bool:
    if any(line.startswith("optimizer") for line in draft.lines):
        return False
    name = random.choice(["muon", "lamb", "adamw8bit", "shampoo"])
    draft.lines.append(f"optimizer {optimizer(random, draft, name)}{gathers(random, draft, name)}")
    return True


def _events(draft: Draft, random: Random) -> bool:
    """A skip or a clip of every step, at any place in it."""
    line = random.choice(["clip", f"skip on overflow over {', '.join(draft.atoms)}", f"skip on overflow over {draft.some_axes(random)}"])
    if not draft.steps or line == "clip" and "clip global_norm" not in draft.lines:
        return False
    for step in draft.steps.values():
        if line == "clip" and random.random() < 0.7:
            step.body = [one for one in step.body if one != "clip"]
        step.body.insert(random.randint(0, len(step.body)), line)
    return True


def _routed(draft: Draft, random: Random) -> bool:
    """Tokens go to experts over another axis, such as one whose devices have the same ones."""
    experts = [group for group in draft.groups if group.kind == "expert"]
    if not experts:
        return False
    group, axis = random.choice(experts), draft.axis(random)
    group.routed = axis
    if random.random() < 0.7:
        modes = dict.fromkeys(("params", "optimizer", "gradients"), "sharded")
        draft.places.append(Place(group.name, axis, modes))
    return True


def _norm(draft: Draft, random: Random) -> bool:
    """What the clip sums, by hand."""
    if "clip global_norm" not in draft.lines:
        return False
    entries = [f"  {name} over {draft.some_axes(random)}" for name in draft.names() if random.random() < 0.8]
    if random.random() < 0.4:
        entries = [f"  * over {draft.some_axes(random)}"]
    index = draft.lines.index("clip global_norm")
    draft.lines[index] = "\n".join(["clip global_norm {", *entries, "}"]) if entries else "clip global_norm { }"
    return True


def _drop(draft: Draft, random: Random) -> bool:
    """One line, use or placement is forgotten."""
    choices = [part for part in (draft.places, draft.uses, draft.lines) if part]
    if not choices:
        return False
    part = random.choice(choices)
    del part[random.randrange(len(part))]
    return True


def _unsplit(draft: Draft, random: Random) -> bool:
    """Work that is split, or no longer."""
    if draft.splits and random.random() < 0.5:
        del draft.splits[random.choice(sorted(draft.splits))]
        return True
    axis = draft.axis(random)
    if axis in draft.split_atoms():
        return False
    draft.splits[axis] = random.choice(["batch", "sequence", "tokens"])
    return True


_ALL: list[Callable[[Draft, Random], bool]] = [
    *[_step] * 14, *[_sync] * 4, *[_scale] * 2, *[_sync_and_scale] * 2, *[_loss] * 2, _objective, _uneven, _feed,
    *[_mode] * 4, *[_one_group] * 5, *[_activations] * 2, *[_residency] * 2, _twice, *[_start] * 2, *[_streams] * 2,
    *[_optimizer] * 2, *[_norm] * 3, _drop, _unsplit, *[_events] * 2, *[_routed] * 2,
]  # fmt: skip
