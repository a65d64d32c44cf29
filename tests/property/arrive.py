"""Lines about gradients that reach weights, put into a draft: harmless ones, faults, and faults made good for."""

from __future__ import annotations

from random import Random

from tests.property.draft import Draft


def add_lines(draft: Draft, random: Random) -> None:
    """One `backward` line or more."""
    _an_axis_of_copies(draft, random)
    whole = [axis for axis, role in draft.roles.items() if role == "whole" and axis in draft.atoms]
    batch = [axis for axis, dim in draft.splits.items() if dim == "batch" and axis in draft.atoms]
    said: set[tuple[str, str]] = set()
    for _ in range(random.choices([1, 2, 3], [65, 25, 10])[0]):
        name = random.choice(draft.names())
        roll = random.random()
        if roll < 0.8 and whole:
            axes = random.sample(whole, random.randint(1, len(whole)))
            line, made_good = _on_copies(axes, random)
        elif roll < 0.95 and batch:
            axes = [random.choice(batch)]
            line, made_good = random.choice(["none", "none", "none scale 1", "zero", "none scale 1/2"]), ""
        else:
            axes = [draft.axis(random)]
            line, made_good = random.choice(["zero", "sum", "mean", "none", "slice"]), ""
        if said & {(name, axis) for axis in axes}:
            continue
        said |= {(name, axis) for axis in axes}
        draft.lines.append(f"backward {name} over {', '.join(axes)} by {line}")
        if made_good and random.random() < 0.6:
            _make_good(draft, name, made_good, axes)
    if len(draft.groups) > 1 and random.random() < 0.3:  # then nothing else may be before
        named = {line.split()[1] for line in draft.lines if line.startswith("backward ")}
        draft.lines += [f"freeze {name}" for name in draft.names() if name not in named and name not in draft.steps]


def _an_axis_of_copies(draft: Draft, random: Random) -> None:
    if any(role == "whole" for role in draft.roles.values()) and random.random() < 0.7 or "r" in draft.atoms:
        return
    draft.atoms.append("r")
    draft.roles["r"] = "whole"
    if draft.mesh:
        draft.mesh += ", r"


def _on_copies(axes: list[str], random: Random) -> tuple[str, str]:
    """What is said, and the factor that makes good for it, if any."""
    count = "*".join(axes)
    factor = f"1/({count})" if len(axes) > 1 else f"1/{count}"
    return random.choice(
        [
            ("mean", ""), ("none", ""), (f"sum scale {factor}", ""), (f"sum scale {factor}", ""),
            ("sum", factor), ("sum", factor), ("zero", ""), ("slice", "sync"), ("mean scale 1/2", "2"),
            (f"none scale {count}", factor), ("none scale 2", "1/2"), (f"mean scale {factor}", f"{count}"),
        ]
    )  # fmt: skip


def _make_good(draft: Draft, name: str, factor: str, axes: list[str]) -> None:
    """In the step of the weights, so that what reaches the optimizer is right all the same."""
    step = draft.steps.get(name)
    if factor == "sync":
        if step is not None and "update" in step.body:
            step.body.insert(step.body.index("update"), f"reduce over {', '.join(axes)} by sum")
        elif step is None and "*" not in draft.steps:
            draft.lines.append(f"sync {name} over {', '.join(axes)} by sum")
    elif step is not None and "update" in step.body:
        step.body.insert(step.body.index("update"), f"scale by {factor}")
    elif step is None and "*" not in draft.steps:
        draft.lines.append(f"scale {name} by {factor}")
