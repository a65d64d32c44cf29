"""What a component should hold and send, from the sizes of the small transformer and what each axis does.

Bytes of one rank and one step; collectives by the whole tensor they are about. Departures of a component
from what its strategy needs are told with their cause."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from placelogic.replay.native.recognise import Native
from placelogic.replay.native.transformer import Widths

TWICE = "tied ends on one device are two tensors, since a schedule would divide a shared gradient twice"
EMBEDDING = "torch keeps the gradient of an embedding cut by vocabulary whole"
WHOLE = "ZeroRedundancyOptimizer deals out whole tensors"
ONE_MORE = "gathered parameters are kept between some backward passes of a pipeline"
REBUILD = "the buckets of gradients are laid out anew"
THRICE = "Adam reads a gradient three times, and DTensor sums the parts of a norm's each time"


class Part(Struct, frozen=True):
    """What one rank works with: `matrices` and `norms` count parameters, of its layers and ends."""

    layers: int
    embed: bool
    output: bool
    matrices: int
    norms: int


def part(native: Native, sizes: Widths, stage_rank: int) -> Part:
    """The stages of one rank along the pipeline; the whole model without one."""
    devices, chunks = native.size("stages"), native.chunks if native.schedule else 1
    total = devices * chunks
    own = [stage_rank + devices * chunk for chunk in range(chunks)]
    if native.vee:
        own = [stage_rank, total - 1 - stage_rank]
    layers = sizes.layers // total * len(own)
    embed, output = 0 in own, total - 1 in own
    per_layer = 4 * sizes.hidden**2
    per_layer += 2 * sizes.hidden * sizes.ffn * max(1, sizes.experts) + sizes.experts * sizes.hidden
    ends = 1 if sizes.tied and embed and output else embed + output
    matrices = layers * per_layer + ends * sizes.vocab * sizes.hidden
    return Part(layers, embed, output, matrices, (2 * layers + output) * sizes.hidden)


def held(native: Native, sizes: Widths, mine: Part, moments: int, width: int) -> dict[str, int]:
    """Between steps, by state."""
    if sizes.experts:
        experts = 2 * sizes.layers * sizes.experts * sizes.hidden * sizes.ffn
        count = mine.matrices + mine.norms - experts + experts // native.size("experts")
    else:
        count = (mine.matrices // native.size("tensor") + mine.norms) // native.size("shard")
    return {
        "params": count * width,
        "gradients": count * width,
        "optimizer": moments * count * width // native.size("zero1"),
    }


def sent(
    native: Native,
    sizes: Widths,
    mine: Part,
    samples: int,
    turns: int,
    stage_rank: int,
    width: int,
    loss: bool = False,
) -> dict[str, int]:
    """In one step, by kind of collective. `samples`: sequences of one device and micro-batch. `loss`: scores
    stay cut by vocabulary up to the loss."""
    roles = set(native.roles.values())
    found: dict[str, int] = {}

    def add(kind: str, count: int) -> None:
        if count:
            found[kind] = found.get(kind, 0) + count * width

    tensor, shard = native.size("tensor"), native.size("shard")
    mine_count = mine.matrices // tensor + mine.norms
    rows = samples * sizes.length * sizes.hidden
    if "shard" in roles:
        pipelined = "stages" in roles
        gathers = 2 if native.reshard is not False else 1
        add("all-gather", gathers * mine_count * (turns if native.reshard is not False or not pipelined else 1))
        add("reduce-scatter", mine_count * (1 if pipelined else turns))
        if "replicate" in roles:
            add("all-reduce", mine_count // shard * (1 if pipelined else turns))
    elif roles & {"replicate", "zero1"}:
        add("all-reduce", mine_count)
        if "zero1" in roles:
            add("broadcast", mine_count)
    if "tensor" in roles:
        _tensor(native, sizes, mine, rows, turns, add, loss)
    if "stages" in roles:
        add("point to point", turns * _boundaries(native, stage_rank) * rows // (tensor if native.sequence else 1))
    if native.tied and not native.vee and native.size("stages") > 1 and (mine.embed or mine.output):
        add("all-reduce", sizes.vocab * sizes.hidden // tensor // shard)
    if "experts" in roles:
        experts = 2 * sizes.layers * sizes.experts * sizes.hidden * sizes.ffn
        add("all-reduce", mine_count - experts)
    return found


def context(
    kind: str, native: Native, sizes: Widths, mine: Part, samples: int, turns: int, width: int
) -> dict[str, int]:
    """The three ways of attention over shares of the sequence."""
    rows, n = samples * sizes.length * sizes.hidden, native.size("context")
    layers = sizes.layers * turns
    whole = mine.matrices + mine.norms
    match kind:
        case "all-gather":
            # Keys and values forth; their gradients are all-reduced where reduce-scatter would do.
            return {"all-gather": 2 * layers * rows * width, "all-reduce": (whole + 2 * layers * rows) * width}
        case "ring":
            return {"point to point": 4 * (n - 1) * layers * rows // n * width, "all-reduce": whole * width}
        case _:
            return {"all-to-all": 8 * layers * rows // n * width, "all-reduce": whole * width}


def _tensor(
    native: Native,
    sizes: Widths,
    mine: Part,
    rows: int,
    turns: int,
    add: Callable[[str, int], None],
    loss: bool,
) -> None:
    logits = rows // sizes.hidden * sizes.vocab
    if native.sequence:
        # Into attention and MLP, and back: as many all-gathers as reduce-scatters.
        times = 4 * mine.layers + mine.embed + mine.output
        add("all-gather", turns * times * rows)
        add("reduce-scatter", turns * times * rows)
        add("all-reduce", mine.norms)
    else:
        # Forth after attention and MLP; back for queries, keys, values and the MLP each on its own.
        add("all-reduce", turns * (6 * mine.layers + mine.embed + mine.output) * rows)
    if loss:
        # The largest score, the sum, and the score of the target, of every token.
        add("all-reduce", turns * mine.output * 3 * rows // sizes.hidden)
    else:
        add("all-gather", turns * mine.output * logits)


def _boundaries(native: Native, rank: int) -> int:
    """How often a micro-batch leaves this rank: activations forth, gradients back."""
    devices = native.size("stages")
    total = devices * native.chunks

    def at(stage: int) -> int:
        lap, place = divmod(stage, devices)
        return devices - 1 - place if native.vee and lap % 2 else place

    own = [stage for stage in range(total) if at(stage) == rank]
    count = sum(stage + 1 < total and at(stage + 1) != rank for stage in own)
    return count + sum(stage > 0 and at(stage - 1) != rank for stage in own)
