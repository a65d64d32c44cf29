"""Short steps of random lines: few are right, and those that are, for odd reasons."""

from __future__ import annotations

from random import Random

from tests.property.draft import Block, Draft

_HEADS = ["each microbatch"] * 4 + [
    "each microbatch but last", "each microbatch but first", "first microbatch", "last microbatch", "microbatch 2",
]  # fmt: skip


def soup(draft: Draft, random: Random) -> None:
    """A random step for each of the weights, and losses without divisions, so that some are right."""
    if random.random() < 0.75:
        plain = ("objective", "tokens", "optimizer", "init", "random", "feed")
        draft.lines = [line for line in draft.lines if not line.startswith(plain)]
        draft.lines.append("objective sum")
        draft.losses = {"": "sum"}
    master = any(line.startswith("precision") for line in draft.lines)
    host = any("offloaded" in line for line in [*draft.lines, *(place.text() for place in draft.places)])
    for group in draft.groups:
        draft.steps[group.name] = Block(f"step {group.name}", _step(draft, random, master, host))


def _step(draft: Draft, random: Random, master: bool, host: bool) -> list[str | Block]:
    named = " main" if random.random() < 0.15 else ""
    into, source = (" into main", " from main") if named else ("", "")
    body: list[str | Block] = []
    for head in _heads(draft, random):
        lines: list[str | Block] = [
            _gradient(draft, random, "") for _ in range(random.choices([0, 1, 2], [88, 9, 3])[0])
        ]
        lines.append(random.choice(["accumulate"] * 7 + ["replace"]) + into)
        lines += [_gradient(draft, random, named) for _ in range(random.choices([0, 1], [90, 10])[0])]
        body.append(Block(head, lines))
    after: list[str | Block] = [
        _gradient(draft, random, named) for _ in range(random.choices([0, 1, 2], [75, 20, 5])[0])
    ]
    for axis in draft.split_atoms():
        if random.random() < 0.95:
            _sum(axis, body, after, named, random)
    body += after
    if "clip global_norm" in draft.lines:
        body.append("clip")
    if host:
        body.append("offload gradients")
    body.append(f"update{source}")
    tail = [_publish(draft, random) for _ in range(random.choices([0, 1, 2], [60, 30, 10])[0])]
    tail += [f"gather params over {axis}" for axis in draft.atoms if random.random() < 0.8]
    tail += ["refresh params from master"] * (master and random.random() < 0.9)
    tail += ["fetch params"] * (host and random.random() < 0.9)
    if random.random() < 0.5:
        random.shuffle(tail)
    else:
        tail.reverse()
    return [*body, *tail]


def _heads(draft: Draft, random: Random) -> list[str]:
    """The loops of a step: mostly such that every micro-batch is met once."""
    if random.random() < 0.12:
        return random.choices(_HEADS, k=random.choice([1, 2, 2, 3]))
    if not draft.microbatches or random.random() < 0.6:
        return ["each microbatch"]
    return list(random.choice([_HEADS[4:8:3], _HEADS[6:4:-1]]))


def _sum(axis: str, loops: list[str | Block], after: list[str | Block], buffer: str, random: Random) -> None:
    """The sum that is needed over an axis that splits the work: in every loop, or once at the end."""
    if random.random() < 0.5:
        scattered = " scattered" if random.random() < 0.2 else ""
        after.insert(random.randint(0, len(after)), f"reduce{buffer}{scattered} over {axis} by sum")
        return
    for loop in loops:
        if isinstance(loop, Block):
            loop.body.insert(0, f"reduce over {axis} by sum")


def _gradient(draft: Draft, random: Random, buffer: str) -> str:
    axes = draft.some_axes(random)
    roll = random.random()
    if roll < 0.8:
        scattered = " scattered" if random.random() < 0.15 else ""
        return f"reduce{buffer}{scattered} over {axes} by {random.choice(['sum', 'mean', 'mean', 'mean'])}"
    if roll < 0.9 and not buffer:
        return f"gather gradients over {axes}"
    axis = draft.axis(random)
    return f"scale{buffer} by {random.choice([f'1/{axis}', axis, '1/M' if draft.microbatches else '1/2'])}"


def _publish(draft: Draft, random: Random) -> str:
    if random.random() < 0.3:
        return f"broadcast params over {draft.axis(random)} from 0"
    return f"gather params over {draft.some_axes(random)}"
