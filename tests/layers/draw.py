"""Random small specs with blocks: random operations, weights cut at random, and what is stated at boundaries.
The same seed, the same text."""

from __future__ import annotations

from random import Random

from msgspec import Struct, field

from placelogic.problem import SpecError

HIDDEN = ("batch", "sequence", "hidden")
FFN = ("batch", "sequence", "ffn")
HEADS = ("batch", "sequence", "heads", "head")
KV = ("batch", "sequence", "kv_heads", "head")
LOW = ("batch", "sequence", "heads", "low")
HIGH = ("batch", "sequence", "heads", "high")
SHARED = ("batch", "sequence", "high")
BOTH = ("batch", "sequence", "heads", "both")
PARTS = "dims low, high, both = low + high"
EXPERT = ("expert", *HIDDEN)
EXPERT_FFN = ("expert", *FFN)


class Draft(Struct):
    random: Random
    convolves: bool = False
    several: bool = False
    axes: list[str] = field(default_factory=list)
    head: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    blocks: list[list[str]] = field(default_factory=list)
    tensors: list[tuple[str, str]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def text(self) -> str:
        parts = [*self.head, *self.groups, *self.places]
        for block in self.blocks:
            parts += [*block, "}"]
        return "\n".join([*parts, *self.lines]) + "\n"


CONVOLVES = 100_000
"""Seeds from here on draw convolutions too; those before it stay the specs that they were."""

SEVERAL = 3_000_000
"""Seeds from here on draw several losses, where nothing is said of boundaries."""

TRIES = 5
"""Drafts that are errors are drawn again, this often at most."""


def draw(seed: int) -> str:
    """The text of one spec."""
    from tests.layers.agree import program_of

    random = Random(seed)
    text = ""
    for _ in range(TRIES):
        text = _drawn(random, seed >= CONVOLVES, seed >= SEVERAL)
        try:
            program_of(text)
        except SpecError:
            continue
        break
    return text


def _drawn(random: Random, convolves: bool, several: bool) -> str:
    draft = Draft(random, convolves, several)
    draft.axes = random.choice([["tp"], ["tp"], ["dp", "tp"], ["cp", "tp"], ["tp", "tq"], ["ep", "tp"]])
    draft.head = [f"mesh {', '.join(draft.axes)}"]
    splits = {"dp": "batch", "cp": "sequence", "ep": "tokens"}
    draft.head += [f"{splits[axis]} over {axis}" for axis in draft.axes if axis in splits]
    if random.random() < 0.15:
        draft.head.append("microbatches 2")
    draft.head.append("dims batch, sequence, hidden, ffn, heads, kv_heads, head, expert, vocab")
    if random.random() < 0.5:
        _embedding(draft)
    for _ in range(random.choice([1, 1, 2])):
        _layer(draft)
    if random.random() < 0.5:
        _head(draft)
    count = random.choices([0, 1, 2, 3], [25, 45, 20, 10])[0]
    losses = several and random.random() < 0.3
    count = 0 if losses else count
    known = _boundaries(draft) if count else []
    for _ in range(count):
        _override(draft, known)
    if random.random() < 0.2:
        _sync(draft)
    if losses or random.random() < 0.4:
        _loss(draft, losses)
    if random.random() < 0.15 and draft.count > 1:  # something is trained
        draft.lines.append(f"freeze {', '.join(f'w{n}' for n in range(1, draft.count) if n == 1 or random.random() < 0.3)}")
    return draft.text()


# --- weights ----------------------------------------------------------------------------------


def _weights(draft: Draft, kind: str, sides: tuple[str, ...] = ()) -> str:
    """A new group, and where it lies along the axes that split no work."""
    draft.count += 1
    name = f"w{draft.count}"
    random = draft.random
    more = ""
    dims = [side for side in sides if side not in ("hidden", "vocab", "ffn", "heads", "kv_heads", "expert")]
    if kind in ("matrix", "expert") and sides:
        more = f", dims {' '.join(dict.fromkeys((*dims, *sides)))}"
    over = None
    if kind == "expert" and random.random() < 0.6:  # also over an axis whose devices have the same tokens
        over = "ep" if "ep" in draft.axes else random.choice(draft.axes) if random.random() < 0.3 else None
    if over is not None:
        more += f", routed over {over}"
        draft.places.append(f"place {name} over {over} {{ params sharded, optimizer sharded, gradients sharded }}")
    draft.groups.append(f"weights {name} {{ kind {kind}{more} }}")
    for axis in draft.axes:
        if axis not in ("tp", "tq") or axis == over or kind in ("vector", "router", "latent"):
            continue
        if random.random() < 0.7:
            on = f" on {random.choice(sides)}" if sides and random.random() < 0.5 else ""
            states = ", ".join(f"{state} sharded{on}" for state in ("params", "optimizer", "gradients"))
            draft.places.append(f"place {name} over {axis} {{ {states} }}")
    return name


def _vector(draft: Draft, dims: tuple[str, ...]) -> str:
    name = _weights(draft, "vector")
    free = [axis for axis in draft.axes if axis in ("tp", "tq")]
    if draft.random.random() < 0.4 and "sequence" in dims and free:
        draft.places.append(f"place {name} over {draft.random.choice(free)} {{ activations sharded on sequence }}")
    return name


# --- blocks -----------------------------------------------------------------------------------


def _embedding(draft: Draft) -> None:
    name = _weights(draft, "embedding")
    draft.blocks.append(
        ["block first {", "  input t(batch, sequence)", f"  e = embedding t with {name} from vocab to hidden"]
    )
    draft.tensors.append(("first", "e"))


def _head(draft: Draft) -> None:
    random = draft.random
    lines = ["block last {", "  input x(batch, sequence, hidden)"]
    source = "x"
    if random.random() < 0.5:
        lines.append(f"  n = norm x with {_vector(draft, HIDDEN)} over hidden")
        draft.tensors.append(("last", "n"))
        source = "n"
    if random.random() < 0.25:
        lines.append(f"  m = {_moved(draft, source, HIDDEN)}")
        source = "m"
    name = _weights(draft, "embedding")
    lines.append(f"  logits = linear {source} with {name} from hidden to vocab")
    source = "logits"
    if random.random() < 0.15:
        lines.append(f"  all = {_moved(draft, source, ('batch', 'sequence', 'vocab'))}")
        source = "all"
    parallel = " parallel" if random.random() < 0.6 else ""
    lines.append(f"  loss = cross_entropy {source} over vocab{parallel}")
    draft.tensors += [("last", "x"), ("last", "logits"), ("last", "loss")]
    draft.blocks.append(lines)


class Layer(Struct):
    draft: Draft
    name: str
    lines: list[str]
    made: dict[str, tuple[str, ...]]
    unused: list[str]
    number: int = 0

    def add(self, operation: str, dims: tuple[str, ...], *used: str) -> str:
        self.number += 1
        name = f"{'abcdefghijklmnopqrstuvwxyz'[self.number % 26]}{self.number}"
        self.lines.append(f"  {name} = {operation}")
        self.made[name] = dims
        self.unused = [one for one in self.unused if one not in used] + [name]
        self.draft.tensors.append((self.name, name))
        return name

    def pick(self, dims: tuple[str, ...]) -> str | None:
        having = [name for name, its in self.made.items() if its == dims]
        fresh = [name for name in having if name in self.unused]
        if not having:
            return None
        return self.draft.random.choice(fresh if fresh and self.draft.random.random() < 0.7 else having)


def _layer(draft: Draft) -> None:
    random = draft.random
    number = len(draft.blocks)
    repeat = random.choice(["", "", " repeat 2", " repeat L"])
    if repeat == " repeat L" and "let L" not in draft.head:
        draft.head.append("let L")
    name = f"layer{number}"
    layer = Layer(draft, name, [f"block {name}{repeat} {{", "  input x(batch, sequence, hidden)"], {"x": HIDDEN}, ["x"])
    draft.tensors.append((name, "x"))
    for _ in range(random.randint(2, 6)):
        random.choice([*STEPS, *CONVOLUTIONS] if draft.convolves else STEPS)(layer)
    _finish(layer)
    draft.blocks.append(layer.lines)


def _norm(layer: Layer) -> None:
    if x := layer.pick(HIDDEN):
        layer.add(f"norm {x} with {_vector(layer.draft, HIDDEN)} over hidden", HIDDEN, x)


def _head_norm(layer: Layer) -> None:
    if x := layer.pick(HEADS):
        layer.add(f"norm {x} with {_weights(layer.draft, 'vector')} over head", HEADS, x)


def _wide(layer: Layer) -> None:
    if x := layer.pick(HIDDEN):
        layer.add(f"linear {x} with {_weights(layer.draft, 'matrix', ('hidden', 'ffn'))} from hidden to ffn", FFN, x)


def _narrow(layer: Layer) -> None:
    if x := layer.pick(FFN):
        layer.add(f"linear {x} with {_weights(layer.draft, 'matrix', ('hidden', 'ffn'))} from ffn to hidden", HIDDEN, x)


def _pointwise(layer: Layer) -> None:
    dims = layer.draft.random.choice(list(layer.made.values()))
    x = layer.pick(dims)
    assert x is not None
    layer.add(layer.draft.random.choice([f"gelu {x}", f"dropout {x}", f"scale {x} by 3", f"silu {x}"]), dims, x)


def _two(layer: Layer) -> None:
    dims = layer.draft.random.choice(list(layer.made.values()))
    one, two = layer.pick(dims), layer.pick(dims)
    assert one is not None and two is not None
    word = layer.draft.random.choice(["add", "add", "multiply"])
    if one != two or word == "add":
        layer.add(f"{word} {one}, {two}", dims, one, two)


def _bias(layer: Layer) -> None:
    dims = layer.draft.random.choice([HIDDEN, FFN])
    if x := layer.pick(dims):
        axis = layer.draft.random.choice([a for a in layer.draft.axes])
        scaled = f" scaled by 1/{axis}" if layer.draft.random.random() < 0.2 else ""
        layer.add(f"bias {x} with {_weights(layer.draft, 'vector')} over {dims[-1]}{scaled}", dims, x)


def _attention(layer: Layer) -> None:
    x = layer.pick(HIDDEN)
    if x is None:
        return
    random, draft = layer.draft.random, layer.draft
    sides = ("hidden", "heads")
    q = layer.add(f"linear {x} with {_weights(draft, 'matrix', sides)} from hidden to heads, head", HEADS, x)
    kv = ("hidden", "kv_heads")
    k = layer.add(f"linear {x} with {_weights(draft, 'matrix', kv)} from hidden to kv_heads, head", KV, x)
    v = layer.add(f"linear {x} with {_weights(draft, 'matrix', kv)} from hidden to kv_heads, head", KV, x)
    causal = random.choice(["", " causal"])
    c = layer.add(f"attention {q}, {k}, {v}{causal} fused", HEADS, q, k, v)
    if random.random() < 0.2:
        _head_norm(layer)
    layer.add(f"linear {c} with {_weights(draft, 'matrix', sides)} from heads, head to hidden", HIDDEN, c)


def _parts(layer: Layer) -> None:
    """Latents, heads of two parts, of which one may be the same for all heads, and attention or a matrix after it."""
    x = layer.pick(HIDDEN)
    if x is None:
        return
    random, draft = layer.draft.random, layer.draft
    if PARTS not in draft.head:
        draft.head.append(PARTS)
    a = layer.add(f"linear {x} with {_weights(draft, 'matrix', ('hidden', 'heads', 'low'))} from hidden to heads, low", LOW, x)
    if random.random() < 0.4:
        sides, to, dims = ("hidden", "heads", "high"), "heads, high", HIGH
    else:
        sides, to, dims = ("hidden", "high"), "high", SHARED
    kind = "matrix" if random.random() < 0.6 else "latent"
    b = layer.add(f"linear {x} with {_weights(draft, kind, sides)} from hidden to {to}", dims, x)
    if random.random() < 0.3:
        b = layer.add(random.choice([f"gelu {b}", f"scale {b} by 3", f"norm {b} over high"]), dims, b)
    if random.random() < 0.15:
        axis = random.choice([axis for axis in draft.axes if axis in ("tp", "tq")])
        b = layer.add(f"reduce {b} over {axis} by sum", dims, b)
    k = layer.add(f"concat {a}, {b} to both", BOTH, a, b)
    if random.random() < 0.5:
        v = layer.add(f"linear {x} with {_weights(draft, 'matrix', ('hidden', 'heads'))} from hidden to heads, head", HEADS, x)
        layer.add(f"attention {k}, {k}, {v}{random.choice(['', ' causal'])} fused", HEADS, k, v)
    else:
        layer.add(f"linear {k} with {_weights(draft, 'matrix', ('hidden', 'heads', 'both'))} from heads, both to hidden", HIDDEN, k)


def _experts(layer: Layer) -> None:
    x = layer.pick(HIDDEN)
    if x is None:
        return
    draft = layer.draft
    top = 1 + draft.count % 2
    r = layer.add(f"router {x} with {_weights(draft, 'router')} from hidden to expert top {top}", ("scores",), x)
    t = layer.add(f"dispatch {x} by {r}", EXPERT, r, x)
    one = _weights(draft, "expert", ("hidden", "ffn", "expert"))
    g = layer.add(f"grouped linear {t} with {one} from hidden to ffn", EXPERT_FFN, t)
    s = layer.add(f"gelu {g}", EXPERT_FFN, g)
    two = _weights(draft, "expert", ("hidden", "ffn", "expert"))
    z = layer.add(f"grouped linear {s} with {two} from ffn to hidden", EXPERT, s)
    layer.add(f"combine {z} by {r}", HIDDEN, z, r)


def _collective(layer: Layer) -> None:
    dims = layer.draft.random.choice([dims for dims in layer.made.values() if len(dims) > 1])
    x = layer.pick(dims)
    assert x is not None
    moved = _moved(layer.draft, x, dims)
    made = layer.add(moved, dims, x)
    word, _, _, axis, *_ = moved.split()
    other = {"gather": "slice", "slice": "gather", "broadcast": "none"}.get(word)
    if other is not None and layer.draft.random.random() < 0.8:  # as Megatron's functions hand back
        layer.draft.lines.append(f"backward {made} of {layer.name} over {axis} by {other}")


def _moved(draft: Draft, x: str, dims: tuple[str, ...]) -> str:
    """A collective on a tensor, mostly over an axis that splits no work."""
    random = draft.random
    free = [axis for axis in draft.axes if axis in ("tp", "tq")]
    axis = random.choice(draft.axes if random.random() < 0.2 else free)
    dim = random.choice(dims if random.random() < 0.3 else dims[1:])
    word = random.choice(["reduce"] * 5 + ["gather", "slice", "reduce_scatter"] * 2 + ["broadcast", "all_to_all"])
    if word == "broadcast":
        return f"broadcast {x} over {axis}"
    if word == "all_to_all":
        return f"all_to_all {x} over {axis} from {dim} to {random.choice([d for d in dims if d != dim])}"
    how = f"by {random.choice(['sum', 'sum', 'mean'])}" if word == "reduce" else f"on {dim}"
    return f"{word} {x} over {axis} {how}"


def _square(layer: Layer) -> None:
    """A matrix with one dimension on both sides."""
    if x := layer.pick(HIDDEN):
        name = _weights(layer.draft, "matrix", ("hidden",))
        layer.add(f"linear {x} with {name} from hidden to hidden", HIDDEN, x)


STEPS = [_norm, _square, _norm, _wide, _narrow, _narrow, _pointwise, _two, _two, _bias, _attention, _experts, _collective, _parts]


def _convolve(layer: Layer) -> None:
    dims = layer.draft.random.choice([HIDDEN, FFN, HEADS])
    if x := layer.pick(dims):
        name = _weights(layer.draft, layer.draft.random.choice(["vector", "matrix"]), (*dims[2:], "taps"))
        if "dims taps" not in layer.draft.head:
            layer.draft.head.append("dims taps")
        layer.add(f"convolve {x} with {name} over sequence width taps for {', '.join(dims[2:])}", dims, x)


def _traded(layer: Layer) -> None:
    """Whole sequences of some channels, where an axis splits the sequence."""
    if "cp" in layer.draft.axes and (x := layer.pick(FFN)):
        name = _weights(layer.draft, "vector")
        if "dims taps" not in layer.draft.head:
            layer.draft.head.append("dims taps")
        whole = layer.add(f"all_to_all {x} over cp from sequence to ffn", FFN, x)
        made = layer.add(f"convolve {whole} with {name} over sequence width taps for ffn", FFN, whole)
        layer.add(f"all_to_all {made} over cp from ffn to sequence", FFN, made)


CONVOLUTIONS = [_convolve, _convolve, _convolve, _traded]


def _finish(layer: Layer) -> None:
    """Everything made is used, and the layer leaves what it reads."""
    for _ in range(30):
        left = [name for name in layer.unused if name != "x"]
        odd = next((name for name in left if layer.made[name] != HIDDEN), None)
        if odd is not None:
            dims = layer.made[odd]
            draft = layer.draft
            if dims == FFN:
                layer.add(
                    f"linear {odd} with {_weights(draft, 'matrix', ('hidden', 'ffn'))} from ffn to hidden", HIDDEN, odd
                )
            elif dims in (HEADS, KV, LOW, HIGH, SHARED, BOTH):
                inner = ", ".join(dims[2:])
                name = _weights(draft, "matrix", ("hidden", dims[2]))
                layer.add(f"linear {odd} with {name} from {inner} to hidden", HIDDEN, odd)
            else:
                layer.unused.remove(odd)
            continue
        if len(left) > 1:
            layer.add(f"add {', '.join(left)}", HIDDEN, *left)
            continue
        if not left:
            layer.add("gelu x", HIDDEN, "x")
            continue
        if "x" in layer.unused:
            layer.add(f"add x, {left[0]}", HIDDEN, "x", left[0])
            continue
        return


# --- what is stated ---------------------------------------------------------------------------


def _boundaries(draft: Draft) -> list[tuple[str, str, str, str]]:
    """Block, tensor and axis wherever something crosses between devices, and what crosses forward."""
    from tests.layers.agree import program_of

    try:
        program = program_of(draft.text())
    except SpecError:
        return []
    layering = program.layering
    if layering is None or program.layers is None:
        return []
    written = [
        (block, op, axis, there.kind)
        for (block, op), moves in layering.plan.moves.items()
        for axis, (there, _) in moves.items()
    ]
    names = {block.name: block.operations for block in program.layers.blocks}
    return [
        *((b.block, b.tensor, b.axis, b.forward.kind) for b in layering.plan.boundaries),
        *((block, names[block][op].output, axis, kind) for block, op, axis, kind in written),
    ]


WORDS = ["none", "sum", "mean", "slice", "slice", "zero", "none", "sum", "gather"]
FITTING = {"gather": ["none", "sum", "mean", "slice", "zero"], "slice": ["sum", "mean", "gather", "none", "zero"]}
"""What may be said of the way back, by what crossed forward."""


def _override(draft: Draft, known: list[tuple[str, str, str, str]]) -> None:
    """Mostly where something crosses, sometimes anywhere."""
    random = draft.random
    block, tensor = random.choice(draft.tensors)
    axis = random.choice(draft.axes)
    direction, words = random.choice(["forward", "backward", "backward"]), WORDS
    if known and random.random() < 0.7:
        block, tensor, axis, kind = random.choice(known)
        if direction == "backward" and random.random() < 0.8:
            words = FITTING.get(kind, ["none", "sum", "mean", "zero"])
    by = random.choice(words)
    scale = random.choice(["", "", "", f" scale 1/{axis}", f" scale {axis}", " scale 2"])
    draft.lines.append(f"{direction} {tensor} of {block} over {axis} by {by}{scale}")


def _loss(draft: Draft, several: bool) -> None:
    """By which tokens the loss is divided; sometimes that of two terms."""
    random = draft.random
    axes = random.sample(draft.axes, random.randint(1, len(draft.axes)))
    scopes = ["mean local", "mean global", "sum", f"mean over {', '.join(axes)}", f"mean over {', '.join(axes)}, microbatches"]
    draft.lines.append(f"loss {random.choice(scopes)}")
    if several or random.random() < 0.2:
        draft.lines.append(f"loss aux {random.choice(scopes)}")


def _sync(draft: Draft) -> None:
    random = draft.random
    name = f"w{random.randint(1, max(1, draft.count))}"
    axis = random.choice(draft.axes)
    draft.lines.append(
        random.choice([f"sync {name} over {axis} by {random.choice(['sum', 'mean'])}", f"scale {name} by 1/{axis}"])
    )
