"""What mixes places, as expressions of a script: attention, and the loss over a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from placelogic.program import block as bl
from placelogic.replay.script.layers.pieces import drawn
from placelogic.replay.script.lines import NotShown, by_device

if TYPE_CHECKING:
    from placelogic.replay.script.layers.operations import Operation

BREAK = ",\n        "
"""Before an argument, in a line that is long."""
FULL = "causal=False"
"""An argument that is needed where other attention is causal."""


def attention(one: Operation, op: bl.Attention) -> str:
    query, key, _ = one.lays
    for k, q in zip(key, query):
        if k.labels[:-3] != q.labels[:-3]:
            raise NotShown("attention picks keys of some samples only")
    ratio = one.sizes[op.heads] // one.sizes[op.kv_heads]
    heads = [[k.along(op.kv_heads).index(head // ratio) for head in q.along(op.heads)] for q, k in zip(query, key)]
    whole_heads = [head // ratio for head in range(one.sizes[op.heads])]
    size = one.sizes[op.sequence]
    at, places = ([list(lay.along(op.sequence)) for lay in lays] for lays in (query, key))
    given = [""]
    if ratio > 1 or any(row != list(range(len(k.along(op.kv_heads)))) for row, k in zip(heads, key)):
        one.use("heads")
        given.append(f"heads={_row(one, whole_heads, heads)}")
    if op.causal:
        one.use("causal")
        if any(row != list(range(size)) for row in (*at, *places)):
            given += [f"at={_row(one, list(range(size)), at)}", f"places={_row(one, list(range(size)), places)}"]
    else:
        one.use("full")
        given.append(FULL)
    if op.positions:
        one.use("far")
        far = [[[own(p) - keys.get(t, t) for t in there] for p in mine]
               for own, keys, mine, there in zip(one.positions, one.keys, at, places)]  # fmt: skip
        plain = [[[p - t for t in there] for p in mine] for mine, there in zip(at, places)]
        if far != plain:
            given.append(f"far={_row(one, [[p - t for t in range(size)] for p in range(size)], far)}")
        elif not op.causal and any(row != list(range(size)) for row in (*at, *places)):
            given += [f"at={_row(one, list(range(size)), at)}", f"places={_row(one, list(range(size)), places)}"]
    if op.dropout:
        one.use("mask")
        dims = (*query[0].dims[:-3], op.heads, op.sequence, op.sequence)
        where = [
            (*q.labels[:-3], q.along(op.heads), q.along(op.sequence), k.along(op.sequence)) for q, k in zip(query, key)
        ]
        whole = drawn(one.seed(), one.pieces.whole(dims))
        given.append(f"mask={one.pieces.share(whole, dims, where)}")
    one.use("attention")
    line = f"attention({', '.join(one.names)}{', '.join(given)})"
    return line if len(line) < 100 else f"attention({', '.join(one.names)}{BREAK.join(given)})"


def _row(one: Operation, whole: object, rows: Sequence[object]) -> str:
    return one.pieces.here(whole, rows) or by_device([whole])


def loss(one: Operation, op: bl.CrossEntropy) -> str:
    at = one.dims.index(op.vocabulary)
    rest = [dim for dim in one.dims if dim != op.vocabulary]
    words = f"words(seed + {one.index}, {one.sizes[op.vocabulary]}, {one.pieces.whole(rest)})"
    wanted = one.pieces.share(words, rest, [[lay.along(dim) for dim in rest] for lay in one.x])
    one.use("words")
    labels = [lay.labels[at] for lay in one.x]
    several = [axis for axis in one.shared if one.grid.size[axis] > 1] if op.parallel else []
    if at != len(one.dims) - 1:
        raise NotShown("the vocabulary is not the last dimension of its logits")
    if not several and all(row == tuple(range(one.sizes[op.vocabulary])) for row in labels):
        return f'F.cross_entropy({one.names[0]}.movedim(-1, 1), {wanted}, reduction="none")'
    if any(row != tuple(range(row[0], row[0] + len(row))) for row in labels):
        raise NotShown("a device has logits of several pieces of the vocabulary")
    one.use("loss")
    one.pieces.axes |= set(several)
    first = one.pieces.here(0, [row[0] for row in labels]) or 0
    over = ", ".join(f'"{axis}"' for axis in several)
    return f"Loss.apply({one.names[0]}, {wanted}, {first}, rank, [{over}])"
