"""Stated steps: a derived step printed as lines, rewritten into others that are right or wrong."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from placelogic.program import program as pg
from placelogic.program.expr import show
from tests.property.draft import Block, Draft


def printed(step: pg.Step) -> Block:
    """The step of one weight group, for everyone to change."""
    return Block(f"step {step.weights}", [_op(op) for op in step.ops])


def _op(op: pg.Op) -> str | Block:
    match op:
        case pg.Loop(subset, index, body):
            return Block(_subset(subset, index), [_op(inner) for inner in body])
        case pg.Accumulate(buffer, replace):
            return ("replace" if replace else "accumulate") + (f" into {buffer}" if buffer else "")
        case pg.Reduce(buffer, axes, how, scattered):
            return f"reduce{_buffer(buffer)}{' scattered' if scattered else ''} over {', '.join(axes)} by {how}"
        case pg.GatherGradients(axes):
            return f"gather gradients over {', '.join(axes)}"
        case pg.Scale(buffer, factor):
            return f"scale{_buffer(buffer)} by {show(factor)}"
        case pg.ScaleLoss(term, factor):
            return f"scale loss{_buffer(term)} by {show(factor)}"
        case pg.Clip():
            return "clip"
        case pg.Skip(axes):
            return f"skip on overflow over {', '.join(axes) or 'none'}"
        case pg.Update(buffer):
            return "update" + (f" from {buffer}" if buffer else "")
        case pg.GatherParams(axes):
            return f"gather params over {', '.join(axes)}"
        case pg.BroadcastParams(axes, root):
            return f"broadcast params over {' * '.join(axes)} from {root}"
        case pg.Refresh():
            return "refresh params from master"
        case pg.OffloadGradients():
            return "offload gradients"
        case pg.FetchParams():
            return "fetch params"
    raise TypeError(op)


def _buffer(name: str | None) -> str:
    return f" {name}" if name else ""


def _subset(subset: str, index: int | None) -> str:
    return {
        "each": "each microbatch",
        "but_last": "each microbatch but last",
        "but_first": "each microbatch but first",
        "first": "first microbatch",
        "last": "last microbatch",
        "index": f"microbatch {index}",
    }[subset]


# --- rewriting ------------------------------------------------------------------------------


def _places(block: Block) -> list[tuple[Block, int]]:
    """Every line and loop, with the block it stands in."""
    out: list[tuple[Block, int]] = []
    for index, one in enumerate(block.body):
        out.append((block, index))
        if isinstance(one, Block):
            out += _places(one)
    return out


def _lines(block: Block, *starts: str) -> list[tuple[Block, int]]:
    return [(b, i) for b, i in _places(block) if isinstance(b.body[i], str) and str(b.body[i]).startswith(starts)]


def _loops(block: Block) -> list[Block]:
    return [one for one in block.body if isinstance(one, Block)]


def rewrite(block: Block, draft: Draft, random: Random, harmless: bool) -> None:
    """One change. `harmless`: one that is meant to keep a right step right (it need not)."""
    for _ in range(6):
        if random.choice(_HARMLESS if harmless else _ANY)(block, draft, random):
            return


def _split_reduce(block: Block, draft: Draft, random: Random) -> bool:
    """One reduction over several axes becomes two."""
    found = [(b, i) for b, i in _lines(block, "reduce") if ", " in str(b.body[i])]
    if not found:
        return False
    b, i = random.choice(found)
    head, rest = str(b.body[i]).split(" over ")
    axes, how = rest.split(" by ")
    parts = axes.split(", ")
    random.shuffle(parts)
    b.body[i : i + 1] = [f"{head} over {part} by {how}" for part in parts]
    return True


def _mean_by_hand(block: Block, draft: Draft, random: Random) -> bool:
    """A mean becomes a sum and a division, or the other way round."""
    found = _lines(block, "reduce")
    if not found:
        return False
    b, i = random.choice(found)
    line = str(b.body[i])
    axes = line.split(" over ")[1].split(" by ")[0].split(", ")
    product = "*".join(axes)
    buffer = _named_buffer(line)
    if line.endswith("mean"):
        scale = f"scale{buffer} by 1/({product})" if len(axes) > 1 else f"scale{buffer} by 1/{product}"
        new = [line[:-4] + "sum", scale]
    else:
        new = [line[:-3] + "mean", f"scale{buffer} by {product}"]
    if random.random() < 0.5:
        new.reverse()
    b.body[i : i + 1] = new
    return True


def _named_buffer(line: str) -> str:
    words = line.split()
    return f" {words[1]}" if len(words) > 1 and words[1] not in ("over", "scattered", "by") else ""


def _swap(block: Block, draft: Draft, random: Random) -> bool:
    """Two neighbours change places."""
    found = [(b, i) for b, i in _places(block) if i + 1 < len(b.body)]
    if not found:
        return False
    b, i = random.choice(found)
    b.body[i], b.body[i + 1] = b.body[i + 1], b.body[i]
    return True


def _into_loop(block: Block, draft: Draft, random: Random) -> bool:
    """A reduction or scale after a loop moves into it, before or after `accumulate`."""
    loops = _loops(block)
    found = [i for i, one in enumerate(block.body) if isinstance(one, str) and one.startswith(("reduce", "scale"))]
    if not loops or not found:
        return False
    line = block.body.pop(random.choice(found))
    loop = random.choice(loops)
    loop.body.insert(0 if random.random() < 0.6 else len(loop.body), line)
    return True


def _out_of_loop(block: Block, draft: Draft, random: Random) -> bool:
    found = [(b, i) for b, i in _lines(block, "reduce", "scale by") if b is not block]
    if not found:
        return False
    b, i = random.choice(found)
    line = b.body.pop(i)
    block.body.insert(next(k for k, one in enumerate(block.body) if one is b) + 1, line)
    return True


def _split_loop(block: Block, draft: Draft, random: Random) -> bool:
    """`each microbatch` becomes two loops; the reductions may go to one of them only."""
    found = [i for i, one in enumerate(block.body) if isinstance(one, Block) and one.head == "each microbatch"]
    if not found:
        return False
    i = random.choice(found)
    loop = block.body[i]
    assert isinstance(loop, Block)
    first, second = loop.copy(), loop.copy()
    if random.random() < 0.5:
        first.head, second.head = "each microbatch but last", "last microbatch"
    else:
        first.head, second.head = "first microbatch", "each microbatch but first"
        if random.random() < 0.3:
            first.body = ["replace" if one == "accumulate" else one for one in first.body]
    if random.random() < 0.4:  # what follows the loops moves into the last one
        moved = [one for one in block.body[i + 1 :] if isinstance(one, str) and one.startswith("reduce")][:1]
        for one in moved:
            block.body.remove(one)
        second.body += moved
    block.body[i : i + 1] = [first, second]
    return True


def _rename_buffer(block: Block, draft: Draft, random: Random) -> bool:
    """Everything moves to a named buffer, or most of it."""
    keep = random.random()
    for b, i in _places(block):
        line = b.body[i]
        if not isinstance(line, str) or " main" in line or random.random() < (0.0 if keep < 0.8 else 0.2):
            continue
        in_loop_before = b is not block and "accumulate" not in [str(x) for x in b.body[:i]]
        if line in ("accumulate", "replace"):
            b.body[i] = f"{line} into main"
        elif line == "update":
            b.body[i] = "update from main"
        elif line.startswith("reduce ") and not in_loop_before:
            b.body[i] = line.replace("reduce", "reduce main", 1)
        elif line.startswith("scale by") and not in_loop_before:
            b.body[i] = line.replace("scale", "scale main", 1)
    return True


def _second_buffer(block: Block, draft: Draft, random: Random) -> bool:
    found = _lines(block, "accumulate")
    if not found:
        return False
    b, i = random.choice(found)
    b.body.insert(i + random.randint(0, 1), "accumulate into hook")
    if random.random() < 0.5:
        block.body.insert(random.randint(0, len(block.body)), f"reduce hook over {draft.axis(random)} by mean")
    return True


def _again(block: Block, draft: Draft, random: Random) -> bool:
    """A reduction stands twice: averaging again is harmless."""
    found = _lines(block, "reduce")
    if not found:
        return False
    b, i = random.choice(found)
    line = str(b.body[i])
    b.body.insert(i + 1, line[:-3] + "mean" if line.endswith("sum") and random.random() < 0.6 else line)
    return True


def _publish(block: Block, draft: Draft, random: Random) -> bool:
    """One more move of parameters at the end."""
    axes = draft.some_axes(random)
    line = f"gather params over {axes}"
    if random.random() < 0.4 and axes != "none" and "," not in axes:
        line = f"broadcast params over {axes} from {0 if random.random() < 0.9 else 1}"
    block.body.append(line)
    return True


def _scattered(block: Block, draft: Draft, random: Random) -> bool:
    found = _lines(block, "reduce")
    if not found:
        return False
    b, i = random.choice(found)
    line = str(b.body[i])
    if "scattered" in line:
        b.body[i] = line.replace(" scattered", "")
    else:
        b.body[i] = line.replace(" over", " scattered over", 1)
        if random.random() < 0.6:
            axes = line.split(" over ")[1].split(" by ")[0]
            b.body.insert(i + 1, f"gather gradients over {axes}")
    return True


def _delete(block: Block, draft: Draft, random: Random) -> bool:
    b, i = random.choice(_places(block))
    if random.random() < 0.5 and _lines(block, "reduce", "gather", "scale"):
        b, i = random.choice(_lines(block, "reduce", "gather", "scale"))
    del b.body[i]
    return True


def _duplicate(block: Block, draft: Draft, random: Random) -> bool:
    b, i = random.choice(_places(block))
    one = b.body[i]
    b.body.insert(random.randint(0, len(b.body)), one.copy() if isinstance(one, Block) else one)
    return True


def _other_op(block: Block, draft: Draft, random: Random) -> bool:
    found = _lines(block, "reduce")
    if not found:
        return False
    b, i = random.choice(found)
    line = str(b.body[i])
    if random.random() < 0.25:  # shares taken for pieces
        b.body[i] = f"gather gradients over {line.split(' over ')[1].split(' by ')[0]}"
    else:
        b.body[i] = line[:-4] + "sum" if line.endswith("mean") else line[:-3] + "mean"
    return True


def _other_axes(block: Block, draft: Draft, random: Random) -> bool:
    found = _lines(block, "reduce", "gather", "broadcast")
    if not found:
        return False
    b, i = random.choice(found)
    head, rest = str(b.body[i]).split(" over ")
    word = " by " if " by " in rest else " from "
    tail = word + rest.split(word)[1] if word in rest else ""
    axes = draft.axis(random) if word == " from " else draft.some_axes(random)
    b.body[i] = f"{head} over {axes}{tail}"
    return True


def _replace_word(block: Block, draft: Draft, random: Random) -> bool:
    found = _lines(block, "accumulate", "replace")
    if not found:
        return False
    b, i = random.choice(found)
    line = str(b.body[i])
    b.body[i] = line.replace("accumulate", "replace") if "accumulate" in line else line.replace("replace", "accumulate")
    return True


def _other_loop(block: Block, draft: Draft, random: Random) -> bool:
    loops = _loops(block)
    if not loops:
        return False
    random.choice(loops).head = random.choice(
        ["each microbatch but last", "each microbatch but first", "first microbatch", "last microbatch", "microbatch 2",
         "microbatch 1", "each microbatch"]
    )  # fmt: skip
    return True


def _insert(block: Block, draft: Draft, random: Random) -> bool:
    """A line of any sort anywhere."""
    factor = random.choice(
        ["1/2", "2", f"1/{draft.axis(random)}", draft.axis(random), "1/M" if draft.microbatches else "3"]
    )
    how = random.choice(["sum", "mean"])
    lines = [
        f"reduce over {draft.some_axes(random)} by {how}",
        f"reduce over {draft.some_axes(random)} by {how}",
        f"reduce scattered over {draft.axis(random)} by {how}",
        f"gather gradients over {draft.some_axes(random)}",
        f"scale by {factor}",
        f"gather params over {draft.some_axes(random)}",
        f"broadcast params over {draft.axis(random)} from 0",
        "accumulate",
        "update",
        "clip",
        "refresh params from master",
        "fetch params",
        f"scale loss{' aux' if 'aux' in draft.losses and random.random() < 0.5 else ''} by {factor}",
    ]
    line = random.choice(lines)
    blocks = [block, *_loops(block)]
    into = random.choice(blocks)
    if line == "accumulate" or line.startswith("scale loss"):
        into = random.choice(_loops(block) or [block])
    into.body.insert(random.randint(0, len(into.body)), line)
    return True


def _after_clip(block: Block, draft: Draft, random: Random) -> bool:
    """The gradient, or a part of it, comes a second time, after the clip: over the first, beside it, or in its place."""
    found = [i for i, one in enumerate(block.body) if one == "clip"]
    if not found or not found[0]:  # nothing comes before it
        return False
    i = found[0]
    again = [one.copy() if isinstance(one, Block) else one for one in block.body[:i]]
    roll = random.random()
    between: list[str | Block] = []
    if roll < 0.4:  # in its place
        if random.random() < 0.5:
            between = [_line_on(block, "scale", "by 0")]
        elif isinstance(again[0], Block):
            again[0].body = [str(x).replace("accumulate", "replace") if isinstance(x, str) else x for x in again[0].body]
    elif roll < 0.7:  # half of each
        between = [_line_on(block, "scale", "by 1/2")]
        for one in again:
            if isinstance(one, Block):
                one.body.insert(0, "scale by 1/2")
    else:  # beside it
        for one in again:
            if isinstance(one, Block):
                one.body = ["accumulate into late" if str(x).startswith("accumulate") else x for x in one.body]
    block.body[i + 1 : i + 1] = [*between, *again]
    return True


def _line_on(block: Block, word: str, rest: str) -> str:
    """An operation on the buffer that the update reads."""
    update = next((str(one) for one in block.body if isinstance(one, str) and one.startswith("update")), "update")
    return f"{word} {update.split()[2]} {rest}" if " from " in update else f"{word} {rest}"


def _now_and_then(block: Block, draft: Draft, random: Random) -> bool:
    """A line that runs only where there is a second micro-batch, or none after the first."""
    lines = ["update", "update", "clip", "refresh params from master", f"gather params over {draft.some_axes(random)}"]
    if any(isinstance(b.body[i], str) and "into hook" in str(b.body[i]) for b, i in _places(block)):
        lines += ["update from hook"] * 3
    head = random.choice(["microbatch 2", "microbatch 2", "each microbatch but first", "first microbatch"])
    block.body.insert(random.randint(1, len(block.body)), Block(head, [random.choice(lines)]))
    return True


Change = Callable[[Block, Draft, Random], bool]
_HARMLESS: list[Change] = [
    _split_reduce, _mean_by_hand, _mean_by_hand, _swap, _into_loop, _into_loop, _out_of_loop, _split_loop, _split_loop,
    _rename_buffer, _second_buffer, _again, _publish, _scattered,
]  # fmt: skip
_ANY: list[Change] = [
    _delete, _delete, _duplicate, _other_op, _other_op, _other_axes, _replace_word, _other_loop, _insert, _insert, _swap, _into_loop,
    _split_loop, _again, _publish, _scattered, _after_clip, _after_clip, _now_and_then,
]  # fmt: skip
