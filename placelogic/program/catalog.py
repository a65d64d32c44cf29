"""The closed vocabularies of the language: whatever is not listed here is refused by name."""

from __future__ import annotations

from enum import Enum


class Needs(Enum):
    """How much of a tensor an optimizer must see to update one element of it."""

    ELEMENT = "one element"
    BLOCK = "whole blocks of quantised moments"
    ROW = "whole rows"
    MATRIX = "the whole matrix"
    TENSOR = "the whole tensor"


OPTIMIZERS: dict[str, Needs] = {
    "sgd": Needs.ELEMENT,
    "sgd_momentum": Needs.ELEMENT,
    "adam": Needs.ELEMENT,
    "adamw": Needs.ELEMENT,
    "adagrad": Needs.ELEMENT,
    "rmsprop": Needs.ELEMENT,
    "nadam": Needs.ELEMENT,
    "lion": Needs.ELEMENT,
    "sophia": Needs.ELEMENT,
    "muon": Needs.MATRIX,
    "shampoo": Needs.MATRIX,
    "soap": Needs.MATRIX,
    "lamb": Needs.TENSOR,
    "lars": Needs.TENSOR,
    "adafactor": Needs.TENSOR,
    "adam8bit": Needs.BLOCK,
    "adamw8bit": Needs.BLOCK,
    "lion8bit": Needs.BLOCK,
}

STATES = ("params", "optimizer", "gradients", "activations")
"""The four training states, in the order of the paper's tuple."""

KINDS = ("matrix", "vector", "embedding", "expert", "router", "latent")
"""`latent`: a matrix to few dimensions, which tensor parallelism leaves whole (multi-head latent attention)."""

SPLITS = ("batch", "sequence", "tokens")
"""What the work can be split along. `tokens` is any share of the loss tokens."""

ACTIVATION_DIMS = ("batch", "tokens", "sequence", "heads", "hidden", "vocab", "expert")
STATE_DIMS = ("param", "layer", "flat")
"""Cuts every weight has; weights may declare more with `dims`."""

WHOLE_TENSOR_DIMS = ("param", "layer")
"""Cuts that leave every tensor whole on one device."""

DTYPE_BYTES: dict[str, float] = {
    "fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2,
    "fp8": 1, "int8": 1, "nf4": 0.5, "fp4": 0.5, "int4": 0.5, "nvfp4": 0.5, "mxfp4": 0.5, "mxfp8": 1,
}  # fmt: skip

PRECISION_STATES = ("params", "compute", "gradients", "master", "moments", "update", "gather", "reduce")
"""`update`: of a copy of the gradient shard that the optimizer reads. `gather`, `reduce`: of messages; quantised ones too."""

SCHEDULES: dict[str, bool] = {
    "gpipe": False,
    "1f1b": False,
    "interleaved_1f1b": False,
    "looped_bfs": False,
    "zero_bubble": False,
    "interleaved_zero_bubble": False,
    "zbv": True,
    "dualpipe_v": True,
}
"""Pipeline schedules; True where the stages lie in a V: first and last stage on one device."""

FUNCTIONS: dict[str, str] = {
    "gelu": "input",
    "silu": "input",
    "relu": "output",
    "sigmoid": "output",
    "tanh": "output",
    "softplus": "input",
    "nonlinear": "input",
    "dropout": "mask",
    "scale": "nothing",
}
"""Elementwise functions, and what the backward pass of each must keep: dropout and scale are linear."""

LINEAR_FUNCTIONS = ("dropout", "scale")

BYTES: dict[str, int] = {
    "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
"""Units of a budget."""
