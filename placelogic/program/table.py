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

MATRICES = ("matrix", "embedding", "latent")


class Written(Struct, frozen=True):
    """How a line of the language says it, as `syntax/forms.py` explains; `constants`: fields that this form decides."""

    text: str
    constants: Mapping[str, object] = {}


class Facts(Struct, frozen=True):
    """`forms`: by the rule of the grammar. `reads`: the fields of its tensors; those in `chooses` only say where
    things go, and have no gradient. `kinds`: of weights that it can use, and what it does with them (`does`).
    `contracts`, `produces`: the two sides of its weights, which both may be cut; a vector has the second only.
    `mixes`: along which dimensions places meet, and the words for it; `shared`: along which they do without being added
    up. `moves`: rows are not where they were. `nonlinear`: inputs that have to be what one device has. `saves`: the
    tensors that the backward pass reads; `saves_for_weights`: those for the gradient of the weights alone, not wanted
    of frozen ones. `beside`: what else is kept, from the operation and the dimensions of all tensors."""

    name: str
    forms: Mapping[str, Written]
    reads: tuple[str, ...] = ("input",)
    chooses: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    does: str = ""
    contracts: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    mixes: Mapping[str, tuple[str, ...]] = {}
    shared: tuple[str, ...] = ()
    moves: bool = False
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


ADDS, SOFTMAX = "adds up over {}", "takes a softmax over {}"

OPERATIONS: dict[type, Facts] = {
    bl.Linear: Facts(
        "linear",
        {"linear": Written("[{grouped?} ]linear {input} with {weights} from {contracted} to {produced}")},
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
        kinds=("vector", "matrix", "expert"),
        does="adds",
        produces=("over",),
    ),
    bl.Embedding: Facts(
        "embedding",
        {"embedding": Written("embedding {input} with {weights} from {vocabulary} to {produced}")},
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
        kinds=("vector",),
        does="scales by",
        produces=("over",),
        mixes={"normalises over {}": ("over",)},
        nonlinear=("input",),
        saves=("input",),
        beside=_row_statistics,
    ),
    bl.Add: Facts("add", {"add": Written("add {inputs}")}, reads=("inputs",)),
    bl.Multiply: Facts("multiply", {"multiply": Written("multiply {inputs*}")}, reads=("inputs",), saves=("inputs",)),
    bl.Concat: Facts(
        "concat",
        {"concat": Written("concat {inputs} to {into}")},
        reads=("inputs",),
        mixes={"puts {} together of other dimensions": ("into",)},
    ),
    bl.Attention: Facts(
        "attention",
        {"attention": Written("attention {query}, {key}, {value}[ {causal?}][ {fused?}][ {dropout?}][ {positions?}]")},
        reads=("query", "key", "value"),
        mixes={SOFTMAX: ("sequence",), ADDS: ("head",)},
        shared=("heads", "kv_heads", "value_head"),
        nonlinear=("query", "key"),
        saves=("query", "key", "value"),
        beside=_scores,
    ),
    bl.Router: Facts(
        "router",
        {"router": Written("router {input} with {weights} from {contracted} to {experts} top {top}")},
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
        reads=("input", "router"),
        chooses=("router",),
        moves=True,
    ),
    bl.Combine: Facts(
        "combine",
        {"combine": Written("combine {input} by {router}")},
        reads=("input", "router"),
        moves=True,
        saves=("input", "router"),
    ),
    bl.CrossEntropy: Facts(
        "cross_entropy",
        {"cross_entropy": Written("cross_entropy {input} over {vocabulary}[ {parallel?}]")},
        mixes={SOFTMAX: ("vocabulary",)},
        nonlinear=("input",),
        beside=_softmax,
    ),
}

_ONE_PLACE = {
    "dropout": Written("dropout {input}", {"function": "dropout", "factor": None}),
    "scale_tensor": Written("scale {input} by {factor}", {"function": "scale"}),
    "function": Written("{function} {input}", {"factor": None}),
}

FUNCTION_FACTS = {
    function: Facts(
        function,
        _ONE_PLACE,
        nonlinear=() if function in LINEAR_FUNCTIONS else ("input",),
        saves=(saved,) if saved in ("input", "output") else (),
        **({"beside": _mask} if saved == "mask" else {}),  # type: ignore[arg-type]
    )
    for function, saved in FUNCTIONS.items()
}

_COLLECTIVES = {
    "reduce": ("reduce_tensor", "reduce {input} over {axes} by {op}", {"dim": None, "into": None}),
    "gather": ("gather_tensor", "gather {input} over {axes} on {dim}", {"op": None, "into": None}),
    "slice": ("slice", "slice {input} over {axes} on {dim}", {"op": None, "into": None}),
    "reduce_scatter": (
        "reduce_scatter", "reduce_scatter {input} over {axes} on {dim}", {"op": "sum", "into": None}
    ),
    "all_to_all": ("all_to_all", "all_to_all {input} over {axes} from {dim} to {into}", {"op": None}),
    "broadcast": ("broadcast_tensor", "broadcast {input} over {axes}", {"op": None, "dim": None, "into": None}),
}  # fmt: skip

COLLECTIVE_FACTS = {
    kind: Facts(kind, {rule: Written(text, {"kind": kind, **constants})}, moves=True)
    for kind, (rule, text, constants) in _COLLECTIVES.items()
}


def facts(op: bl.Operation) -> Facts:
    """The entry of an operation: of its function or its collective, where a class has several."""
    if isinstance(op, bl.Elementwise):
        return FUNCTION_FACTS[op.function]
    if isinstance(op, bl.Collective):
        return COLLECTIVE_FACTS[op.kind]
    return OPERATIONS[type(op)]


def entries() -> Iterator[tuple[type, Facts]]:
    """Every entry, with the class that it is about."""
    yield from OPERATIONS.items()
    yield from ((bl.Elementwise, entry) for entry in FUNCTION_FACTS.values())
    yield from ((bl.Collective, entry) for entry in COLLECTIVE_FACTS.values())
