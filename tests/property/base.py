"""Draws specs that are mostly right: a role for every axis, and whatever else goes with it."""

from __future__ import annotations

from random import Random

from tests.property.draft import Draft, Group, Place

DATA = ("zero0", "zero1", "zero2", "zero3", "free")
_MODES = {
    "zero0": ("replicated", "replicated", "replicated"),
    "zero1": ("replicated", "sharded", "replicated"),
    "zero2": ("replicated", "sharded", "sharded"),
    "zero3": ("gathered", "sharded", "sharded"),
}
_USES = {"zero0": "data_parallel", "zero1": "zero1", "zero2": "zero2", "zero3": "zero3"}


def draw(random: Random) -> Draft:
    """A draft without stated steps; most of them are right as they are."""
    draft = Draft(["a", "b", "c"][: random.choices([1, 2, 3], [30, 45, 25])[0]])
    _groups(draft, random)
    _roles(draft, random)
    _tie(draft, random)
    _sizes(draft, random)
    _losses(draft, random)
    _clip(draft, random)
    _rest(draft, random)
    return draft


def _groups(draft: Draft, random: Random) -> None:
    choice = [
        Group("w", "matrix", ("in", "out")),
        Group("norm", "vector"),
        Group("embed", "embedding", ("words", "width") if random.random() < 0.3 else ()),
    ]
    count = random.choices([1, 2, 3], [45, 45, 10])[0]
    draft.groups = sorted(random.sample(choice, count), key=lambda group: group.name)


def _roles(draft: Draft, random: Random) -> None:
    """What each axis is for. Sometimes two axes are one product."""
    axes = list(draft.atoms)
    if len(axes) > 1 and random.random() < 0.25:
        pair = random.sample(axes, 2)
        axes = [axis for axis in axes if axis not in pair]
        product = " * ".join(pair)
        if random.random() < 0.15:
            draft.roles[", ".join(pair)] = "zero3"
            draft.uses.append(f"hsdp(shard = {pair[0]}, replicate = {pair[1]})")
            product = ""
        elif random.random() < 0.15:
            _expert(draft, product, random)
            product = ""
        elif random.random() < 0.5:
            draft.views.append(f"axis ab = {product}")
            product = "ab"
        elif random.random() < 0.3:
            product = ", ".join(pair)
        if product:
            _data(draft, product, random)
    stages = False
    for axis in axes:
        kinds = ["data"] * 6 + ["tensor"] * 3 + ["whole"] * 2 + ["context", "expert"]
        if not stages:
            kinds += ["pipe"] * 3
        role = random.choice(kinds)
        stages = stages or role == "pipe"
        {"data": _data, "tensor": _tensor, "pipe": _pipe, "whole": _whole, "context": _context, "expert": _expert}[
            role
        ](draft, axis, random)


def _data(draft: Draft, axes: str, random: Random) -> None:
    stage = random.choice(list(_MODES) + ["hybrid"])
    if stage == "hybrid":
        _hybrid(draft, axes, random)
        return
    draft.roles[axes] = stage
    if "," not in axes and random.random() < 0.3:
        draft.uses.append(f"{_USES[stage]}({axes})")
        return
    draft.splits[axes] = random.choice(["batch", "batch", "sequence", "tokens"])
    dim = _dim(draft, random)
    modes = [f"{mode} on {dim}" if dim and mode != "replicated" else mode for mode in _MODES[stage]]
    if stage == "zero1" and random.random() < 0.15:
        modes[1] = "sharded offloaded"
    named = dict(zip(("params", "optimizer", "gradients"), modes))
    draft.places.append(Place("*", axes, named, letters=random.random() < 0.2))


def _dim(draft: Draft, random: Random) -> str:
    """A dimension that all weights have, or none."""
    declared = set.intersection(*(set(group.dims) for group in draft.groups))
    return random.choice(["", "", "", "flat", "flat", "param", "layer", *sorted(declared)])


def _hybrid(draft: Draft, axes: str, random: Random) -> None:
    """States cut over the axis in some other way that may be right."""
    draft.roles[axes] = "free"
    draft.splits[axes] = "batch"
    dim = _dim(draft, random)
    cut, star = (f"sharded on {dim}", f"gathered on {dim}") if dim else ("sharded", "gathered")
    modes = [
        random.choice(["replicated", star]),
        random.choice(["replicated", cut, star]),
        random.choice(["replicated", cut, star]),
    ]
    draft.places.append(Place("*", axes, dict(zip(("params", "optimizer", "gradients"), modes))))


def _tensor(draft: Draft, axis: str, random: Random) -> None:
    draft.roles[axis] = "tensor"
    if random.random() < 0.4:
        draft.uses.append(f"{random.choice(['tensor_parallel', 'sequence_parallel'])}({axis})")
        return
    for group in draft.groups:
        if group.kind == "vector":
            if random.random() < 0.6:
                mode = random.choice(["sharded on sequence", "sharded on heads", "gathered on sequence", "sharded"])
                draft.places.append(Place(group.name, axis, {"activations": mode}))
            continue
        dim = random.choice(["", "layer", *group.dims])
        cut = f"sharded on {dim}" if dim else "sharded"
        modes = {"params": cut, "optimizer": cut, "gradients": cut}
        if random.random() < 0.2:
            modes["activations"] = "sharded on hidden"
        draft.places.append(Place(group.name, axis, modes))


def _pipe(draft: Draft, axis: str, random: Random) -> None:
    draft.roles[axis] = "pipe"
    schedule = random.choice(["", "", "zbv", "interleaved_1f1b"])
    if random.random() < 0.6:
        draft.uses.append(f"pipeline({axis}{f', schedule = {schedule}' if schedule else ''})")
        return
    draft.lines.append(f"stages over {axis}" + (f" {{ schedule {schedule} }}" if schedule else ""))
    modes = dict.fromkeys(("params", "optimizer", "gradients"), "sharded on layer")
    draft.places.append(Place("*", axis, modes))


def _whole(draft: Draft, axis: str, random: Random) -> None:
    """Nothing splits the work: copies, or their states cut."""
    draft.roles[axis] = "whole"
    if random.random() < 0.6:
        modes = random.choice([_MODES["zero1"], _MODES["zero2"], _MODES["zero3"]])
        draft.places.append(Place("*", axis, dict(zip(("params", "optimizer", "gradients"), modes))))
    if random.random() < 0.3:
        draft.places.append(Place(random.choice(draft.names()), axis, {"activations": "sharded on vocab"}))


def _context(draft: Draft, axis: str, random: Random) -> None:
    draft.roles[axis] = "zero0"
    draft.uses.append(f"{random.choice(['context_parallel', 'ulysses'])}({axis})")


def _expert(draft: Draft, axis: str, random: Random) -> None:
    """Routed experts; rarely over an axis whose tokens are not split."""
    draft.roles[axis] = "expert"
    if not any(group.routed for group in draft.groups):
        if len(draft.groups) > 2:
            draft.groups.pop(random.randrange(3))
        draft.groups.append(Group("expert", "expert", routed=axis))
    if random.random() < 0.6:
        draft.uses.append(f"expert_parallel({axis})")
        return
    if random.random() < 0.85:
        draft.splits[axis] = random.choice(["tokens", "batch"])
    modes = dict.fromkeys(("params", "optimizer", "gradients"), "sharded")
    if random.random() < 0.2:  # states of whole experts in other pieces; rarely the experts themselves, an error
        state = random.choice(["optimizer", "optimizer", "gradients", "params"])
        modes[state] = f"sharded on {random.choice(['flat', 'param', 'layer'])}"
    draft.places.append(Place("expert", axis, modes))


def _tie(draft: Draft, random: Random) -> None:
    """Weights used on the ends of an axis that splits nothing."""
    ends = [axis for axis, role in draft.roles.items() if role in ("pipe", "whole") and axis in draft.atoms]
    if not ends:
        return
    axis = random.choice(ends)
    for group in draft.groups:
        if group.kind != "matrix" and not group.routed and random.random() < 0.5:
            group.used = random.choice(["first", "last", "first and last", "first and last", "first and last"])
            group.on = "" if draft.roles[axis] == "pipe" and random.random() < 0.5 else axis


def _sizes(draft: Draft, random: Random) -> None:
    draft.microbatches = random.random() < 0.55
    if not draft.microbatches and random.random() < 0.15:
        draft.lines.append(random.choice(["microbatches 2", "gradient_accumulation 3", "let M = 2\nmicrobatches M"]))
    roll = random.random()
    if roll < 0.1:
        axis = draft.axis(random)
        shown = [f"{atom} = {random.choice([1, 2, 2, 3])}" if atom == axis else atom for atom in draft.atoms]
        draft.mesh = ", ".join(shown)
    elif roll < 0.15:
        axis = draft.axis(random)
        draft.mesh = ", ".join(f"{atom} >= 2" if atom == axis else atom for atom in draft.atoms)
    if random.random() < 0.12:
        a = draft.axis(random)
        pairs = [f"{a} <= 2", f"{a} % 2 == 0", f"{a} >= 2", f"{a} == 1"]
        if len(draft.atoms) > 1:
            pairs += [f"{draft.atoms[0]} == {draft.atoms[1]}"] * 3
        if draft.microbatches:
            pairs += ["M == 1", "M <= 2", "M >= 2", f"M == {a}"]
        draft.lines.append(f"assume {random.choice(pairs)}")


def scope(draft: Draft, random: Random) -> str:
    """How a loss is divided."""
    axes = draft.split_atoms()
    if random.random() < 0.08:  # also axes that split nothing: their tokens are counted many times
        axes = random.sample(draft.atoms, len(draft.atoms))
    options = ["mean local", "mean local", "mean global", "sum"]
    for count in range(1, len(axes) + 1):
        options.append(f"mean over {', '.join(random.sample(axes, count))}")
    if draft.microbatches:
        options.append("mean over " + ", ".join([*axes[:1], "microbatches"]))
    return random.choice(options)


def _losses(draft: Draft, random: Random) -> None:
    if random.random() < 0.6:
        draft.losses[""] = scope(draft, random)
    if random.random() < 0.2:
        draft.losses["aux"] = scope(draft, random)
    roll = random.random()
    if roll < 0.1:
        draft.lines.append("objective sum")
        draft.losses[""] = "sum" if random.random() < 0.9 else scope(draft, random)
        if "aux" in draft.losses:
            draft.losses["aux"] = "sum"
    elif roll < 0.22:
        draft.lines.append("tokens uneven")
        if random.random() < 0.8:
            draft.losses[""] = random.choice(["mean global", "mean global", "sum"])
            if "aux" in draft.losses:
                draft.losses["aux"] = "mean global"


def _clip(draft: Draft, random: Random) -> None:
    if random.random() < 0.35:
        draft.lines.append("clip global_norm")


ELEMENTWISE = ("adam", "sgd")


def optimizer(random: Random, draft: Draft, name: str) -> str:
    """By its name, or by what it needs."""
    if name in ELEMENTWISE or random.random() < 0.6:
        return name
    rows = [] if any(group.kind != "vector" and not group.dims for group in draft.groups) else ["row", "row"]
    return f"own needs {random.choice(['matrix', 'whole', 'blocks of 8', *rows])}"


def gathers(random: Random, draft: Draft, name: str) -> str:
    """What it gathers for its update."""
    if name in ELEMENTWISE or random.random() < 0.5:
        return ""
    return f" gathers over {', '.join(random.sample(draft.atoms, random.randint(1, len(draft.atoms))))}"


def _buffers(draft: Draft, random: Random) -> None:
    """Flat buffers that several weights share; whether all states have the same ones in it is left to chance."""
    flat = [(place, state) for place in draft.places for state, mode in place.modes.items() if "on flat" in mode]
    if not flat or random.random() < 0.5:
        return
    keep = random.choice([1, 1, 0.8])
    for place, state in flat:
        if random.random() < keep:
            place.modes[state] = place.modes[state].replace("on flat", "on flat of all")
    if len(draft.groups) > 1 and random.random() < 0.25:
        draft.lines.append(f"freeze {random.choice(draft.names())}")


def _rest(draft: Draft, random: Random) -> None:
    """Optimizers, masters, host, starts, random streams, feeds: mostly harmless."""
    _buffers(draft, random)
    if random.random() < 0.25:
        name = random.choice(["adam", "sgd", "muon", "lamb", "adamw8bit", "adafactor"])
        only = random.choice(["", " for matrix", f" for {random.choice(draft.names())}"])
        draft.lines.append(f"optimizer {optimizer(random, draft, name)}{only}{gathers(random, draft, name)}")
    if random.random() < 0.25:
        whose = random.choice(["", "", "", f"{draft.target(random)} "])
        draft.lines.append(f"precision {whose}{{ params bf16, master fp32 }}")
    if random.random() < 0.08:
        state = random.choice(["optimizer offloaded", "optimizer offloaded", "params offloaded", "gradients offloaded"])
        draft.lines.append(f"place {random.choice(['*', *draft.names()])} {{ {state} }}")
    if random.random() < 0.05:
        draft.lines.append("place * { activations materialized }")
    if random.random() < 0.06:
        draft.lines.append(f"feed same over {draft.axis(random)}")
    if random.random() < 0.1:
        start = draft.some_axes(random)
        heal = [f"  broadcast over {part} from 0" for part in ([start] if "," not in start else start.split(", "))]
        if start != "none" and random.random() < 0.7:
            target = draft.target(random)
            draft.lines.append("\n".join([f"init {target} {{", f"  different over {start}", *heal, "}"]))
        else:
            draft.lines.append(f"init * different over {start}")
    if random.random() < 0.06:
        draft.lines.append(
            f"random {draft.target(random)} over {draft.axis(random)} {random.choice(['same', 'different'])}"
        )
    if len(draft.groups) > 1 and random.random() < 0.06:
        draft.lines.append(f"freeze {random.choice(draft.names())}")
