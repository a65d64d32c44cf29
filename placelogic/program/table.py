"""The operations of a layer as one table: what is true of each, said once, for whoever reads it.

An entry names fields of the operation's class (`program/block.py`): which are tensors that it reads, which are
dimensions of its weights, along which dimensions places meet. Derivation, proof, memory, printing and reading follow
from that; what an operation computes stands where it is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from placelogic.program import block as bl
from placelogic.program.block import Dims
from placelogic.program.catalog import FUNCTIONS, LINEAR_FUNCTIONS

Width = Literal["compute", "mask", "softmax", "statistics"]
"""Bytes of an element: as activations are computed; one for what dropout kept; 4 for the probabilities of the
loss, and for row statistics (two numbers a row of a norm, one of fused attention)."""

Beside = Iterator[tuple[str, Dims, Width]]
"""What is kept for the backward pass that is no tensor of the block: what it is called, its dimensions and width."""

Key = type | tuple[type, str]
"""A class, or one with the word that tells its operations apart."""

MATRICES = ("matrix", "embedding", "latent")


class Written(Struct, frozen=True):
    """How a line of the language says it, as `syntax/forms.py` explains; `constants`: fields that this form decides."""

    text: str
    constants: Mapping[str, object] = {}


class Facts(Struct, frozen=True):
    """`forms`: by the rule of the grammar; `examples`: right lines. `reads`: the fields of its tensors; those in `chooses` only say where
    things go, and have no gradient. `kinds`: of weights that it can use, and what it does with them (`does`).
    `contracts`, `produces`: the two sides of its weights, which both may be cut; a vector has the second only.
    `mixes`: along which dimensions places meet, and the words for it; `shared`: along which they do without being added
    up. `moves`: rows are not where they were. `within`: dimensions of its one input that what it makes has too. `nonlinear`: inputs that have to be what one device has. `saves`: the
    tensors that the backward pass reads; `saves_for_weights`: those for the gradient of the weights alone, not wanted
    of frozen ones. `beside`: what else is kept, from the operation and the dimensions of all tensors."""

    name: str
    forms: Mapping[str, Written]
    examples: tuple[str, ...]
    reads: tuple[str, ...] = ("input",)
    chooses: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    does: str = ""
    contracts: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    mixes: Mapping[str, tuple[str, ...]] = {}
    shared: tuple[str, ...] = ()
    moves: bool = False
    within: tuple[str, ...] = ()
    nonlinear: tuple[str, ...] = ()
    saves: tuple[str, ...] = ()
    saves_for_weights: tuple[str, ...] = ()
    beside: Callable[[Any, Mapping[str, Dims]], Beside] = lambda op, tensors: iter(())


def _row_statistics(op: bl.Norm, tensors: Mapping[str, Dims]) -> Beside:
    yield "row statistics", tuple(dim for dim in tensors[op.input] if dim not in op.over), "statistics"


def _softmax(op: bl.CrossEntropy, tensors: Mapping[str, Dims]) -> Beside:
    yield "probabilities", tensors[op.input], "softmax"


def _mask(op: bl.Elementwise, tensors: Mapping[str, Dims]) -> Beside:
    yield "mask", tensors[op.output], "mask"


def _scores(op: bl.Attention, tensors: Mapping[str, Dims]) -> Beside:
    rows = tensors[op.query][:-1]
    if op.fused:
        yield "row sums", rows, "statistics"
        return
    matrix = (*rows, op.sequence)
    yield "probabilities", matrix, "compute"
    if op.dropout:
        yield "mask", matrix, "mask"
        yield "kept probabilities", matrix, "compute"


_ONE_PLACE = {
    "dropout": Written("dropout {input}", {"function": "dropout", "factor": None}),
    "scale_tensor": Written("scale {input} by {factor}", {"function": "scale"}),
    "function": Written("{function} {input}", {"factor": None}),
}

_FUNCTIONS = {
    (bl.Elementwise, function): Facts(
        function,
        _ONE_PLACE,
        (f"{made} = {function} {read}",),
        nonlinear=() if function in LINEAR_FUNCTIONS else ("input",),
        saves=(saved,) if saved in ("input", "output") else (),
        **({"beside": _mask} if saved == "mask" else {}),  # type: ignore[arg-type]
    )
    for function, saved in FUNCTIONS.items()
    for made, read in ((("d", "p") if function == "dropout" else ("u", "g by 2" if function == "scale" else "g")),)
}

_COLLECTIVES = {
    (bl.Collective, kind): Facts(
        kind, {rule: Written(text, {"kind": kind, **constants})}, (example,), moves=True, within=("dim", "into")
    )
    for kind, rule, text, constants, example in (
        ("reduce", "reduce_tensor", "reduce {input} over {axes} by {op}", {"dim": None, "into": None},
         "r = reduce p over tp by sum"),
        ("gather", "gather_tensor", "gather {input} over {axes} on {dim}", {"op": None, "into": None},
         "f = gather n over tp on sequence"),
        ("slice", "slice", "slice {input} over {axes} on {dim}", {"op": None, "into": None},
         "s = slice n over tp on sequence"),
        ("reduce_scatter", "reduce_scatter", "reduce_scatter {input} over {axes} on {dim}",
         {"op": "sum", "into": None}, "r = reduce_scatter p over tp on sequence"),
        ("all_to_all", "all_to_all", "all_to_all {input} over {axes} from {dim} to {into}", {"op": None},
         "h = all_to_all q over cp from sequence to heads"),
        ("broadcast", "broadcast_tensor", "broadcast {input} over {axes}", {"op": None, "dim": None, "into": None},
         "b = broadcast x over tp"),
    )
}  # fmt: skip

ADDS, SOFTMAX = "adds up over {}", "takes a softmax over {}"

OPERATIONS: dict[Key, Facts] = {
    bl.Linear: Facts(
        "linear",
        {"linear": Written("[{grouped?} ]linear {input} with {weights} from {contracted} to {produced}")},
        ("q = linear n with attn from hidden to heads, head", "g = grouped linear t with expert from hidden to ffn"),
        kinds=MATRICES,
        does="multiplies by",
        contracts=("contracted",),
        produces=("produced",),
        mixes={ADDS: ("contracted",)},
        saves_for_weights=("input",),
    ),
    bl.Bias: Facts(
        "bias",
        {"bias": Written("bias {input} with {weights} over {over}[ scaled by {scale}]")},
        ("b = bias q with attn over heads, head",),
        kinds=("vector", "matrix", "expert"),
        does="adds",
        produces=("over",),
        within=("over",),
    ),
    bl.Embedding: Facts(
        "embedding",
        {"embedding": Written("embedding {input} with {weights} from {vocabulary} to {produced}")},
        ("x = embedding ids with embed from vocab to hidden",),
        kinds=("embedding",),
        does="takes rows of",
        contracts=("vocabulary",),
        produces=("produced",),
        moves=True,
        nonlinear=("input",),
    ),
    bl.Norm: Facts(
        "norm",
        {"norm": Written("norm {input}[ with {weights}] over {over}")},
        ("n = norm x with norm over hidden",),
        kinds=("vector",),
        does="scales by",
        produces=("over",),
        mixes={"normalises over {}": ("over",)},
        within=("over",),
        nonlinear=("input",),
        saves=("input",),
        beside=_row_statistics,
    ),
    **_FUNCTIONS,
    bl.Add: Facts("add", {"add": Written("add {inputs}")}, ("y = add x, d",), reads=("inputs",)),
    bl.Multiply: Facts(
        "multiply",
        {"multiply": Written("multiply {inputs*}")},
        ("w = multiply s, u",),
        reads=("inputs",),
        saves=("inputs",),
    ),
    bl.Concat: Facts(
        "concat",
        {"concat": Written("concat {inputs} to {into}")},
        ("k = concat n, r to head",),
        reads=("inputs",),
        mixes={"puts {} together of other dimensions": ("into",)},
    ),
    bl.Attention: Facts(
        "attention",
        {"attention": Written("attention {query}, {key}, {value}[ {causal?}][ {fused?}][ {dropout?}][ {positions?}]")},
        ("c = attention q, k, v causal fused",),
        reads=("query", "key", "value"),
        mixes={SOFTMAX: ("sequence",), ADDS: ("head",)},
        shared=("heads", "kv_heads", "value_head"),
        nonlinear=("query", "key"),
        saves=("query", "key", "value"),
        beside=_scores,
    ),
    bl.Convolve: Facts(
        "convolve",
        {"convolve": Written("convolve {input} with {weights} over {over} width {width} for {channels}")},
        ("y = convolve x with conv over sequence width taps for hidden",),
        kinds=("vector", "matrix"),
        does="multiplies by",
        contracts=("width",),
        produces=("channels",),
        mixes={"reaches back along {}": ("over",)},
        within=("over", "channels"),
        saves_for_weights=("input",),
    ),
    bl.Router: Facts(
        "router",
        {"router": Written("router {input} with {weights} from {contracted} to {experts} top {top}")},
        ("r = router m with router from hidden to expert top 2",),
        kinds=("router",),
        does="routes by",
        contracts=("contracted",),
        produces=("experts",),
        mixes={ADDS: ("contracted",), SOFTMAX: ("experts",)},
        nonlinear=("input",),
        saves_for_weights=("input",),
        saves=("output",),
    ),
    bl.Dispatch: Facts(
        "dispatch",
        {"dispatch": Written("dispatch {input} by {router}")},
        ("t = dispatch m by r",),
        reads=("input", "router"),
        chooses=("router",),
        moves=True,
    ),
    bl.Combine: Facts(
        "combine",
        {"combine": Written("combine {input} by {router}")},
        ("o = combine z by r",),
        reads=("input", "router"),
        moves=True,
        saves=("input", "router"),
    ),
    bl.CrossEntropy: Facts(
        "cross_entropy",
        {"cross_entropy": Written("cross_entropy {input} over {vocabulary}[ {parallel?}]")},
        ("loss = cross_entropy logits over vocab",),
        mixes={SOFTMAX: ("vocabulary",)},
        nonlinear=("input",),
        beside=_softmax,
    ),
    **_COLLECTIVES,
}


def facts(op: bl.Operation) -> Facts:
    """The entry of an operation."""
    if isinstance(op, bl.Elementwise):
        return OPERATIONS[bl.Elementwise, op.function]
    if isinstance(op, bl.Collective):
        return OPERATIONS[bl.Collective, op.kind]
    return OPERATIONS[type(op)]


def entries() -> Iterator[tuple[type, Facts]]:
    """Every entry, with the class that it is about."""
    return ((key[0] if isinstance(key, tuple) else key, entry) for key, entry in OPERATIONS.items())
