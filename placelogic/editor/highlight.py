"""The words of the language by what they look like on a screen; the TextMate grammar and the Pygments lexer are made
of them. Words are contextual: what is a keyword in one place may be a name in another, which patterns cannot tell."""

from __future__ import annotations

import json
from typing import Any

from placelogic.program.table import entries

STATEMENTS = (
    "mesh", "axis", "let", "assume", "import", "batch", "sequence", "tokens", "microbatches", "gradient_accumulation",
    "objective", "feed", "loss", "sync", "scale", "step", "init", "clip", "optimizer", "random", "precision",
    "weights", "freeze", "model", "place", "stages", "use", "strategy", "spec", "budget", "claim", "expect",
    "block", "checkpoint", "forward", "backward", "attention", "positions",
)  # fmt: skip
"""What begins a statement."""

OPERATIONS = (
    "accumulate", "replace", "reduce", "gather", "update", "broadcast", "refresh", "skip", "offload", "fetch", "each",
    "microbatch", "input",
)  # fmt: skip
OPERATIONS += tuple(entry.name for _, entry in entries() if entry.name not in (*OPERATIONS, *STATEMENTS))
"""What begins a line of a step, or what an operation of a block begins with."""

PROPERTIES = (
    "size", "layers", "dims", "kind", "used", "routed", "schedule", "chunks", "params", "gradients", "activations",
    "reshard_after_forward",
)  # fmt: skip
"""What begins an entry of a block. `optimizer` does too."""

MODES = ("replicated", "sharded", "gathered", "materialized", "offloaded")
LETTERS = ("R", "S", "M", "O")
"""Modes in short; `S*` is one too. They are letters in other places: `microbatches M`."""

JOINING = ("over", "by", "of", "on", "and", "from", "into", "for", "but", "master", "overflow", "scattered", "with",
           "to", "top", "repeat", "every", "grouped", "parallel", "scaled", "width", "needs", "gathers", "along")  # fmt: skip
VALUES = (
    "mean", "sum", "none", "local", "global", "even", "uneven", "same", "different", "first", "last", "proved",
    "refuted", "vacuous", "error", "causal", "fused", "ring", "zero", "nothing", "matrix", "whole", "row", "blocks",
)  # fmt: skip
UNITS = ("B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB")

COMMENT = r"#[^\n]*"
STRING = r'"[^"\n]*"'
NUMBER = r"\b[0-9]+(?:\.[0-9]+)?\b"
SCHEDULE = r"\b[0-9]+[A-Za-z_][A-Za-z0-9_]*\b"
CODE = r"\b[A-Z]{2}[0-9]{2,3}\b"
NAME = r"[A-Za-z_][A-Za-z0-9_]*"
OPERATOR = r"==|!=|<=|>=|[-+*/%<>=]"
DEFINES = ("strategy", "model", "spec", "weights")
STATES = ("params", "optimizer", "gradients", "activations")
PLACED = r"\bplace\b(?=[^{#\n]*=[ \t]*\()"
TUPLE_END = r"\)(?=[ \t]*(?:#|\}|\n|$))"
LETTER = r"(?:S\*|[RSMO](?![A-Za-z0-9_]))"


def either(words: tuple[str, ...]) -> str:
    """A pattern for one of these words, whole."""
    return rf"\b(?:{'|'.join(words)})\b"


def textmate() -> dict[str, Any]:
    """The TextMate grammar. Its patterns mean the same to Python's `re`, so that they can be tested."""

    def match(scope: str, pattern: str) -> dict[str, Any]:
        return {"name": f"{scope}.placement", "match": pattern}

    def groups(*scopes: str) -> dict[str, Any]:
        return {str(number): {"name": f"{scope}.placement"} for number, scope in enumerate(scopes, 1)}

    letters = {
        "match": rf"\b({'|'.join(STATES)})\s+({LETTER})",
        "captures": groups("variable.parameter", "constant.language.mode"),
    }
    tuple_ = {
        "begin": r"(?<=\=)\s*(\()",
        "end": TUPLE_END,
        "patterns": [match("constant.language.mode", rf"\b{LETTER}"), {"include": "#words"}],
    }
    words = [
        match("comment.line.number-sign", COMMENT),
        match("string.quoted.double", STRING),
        match("constant.other.code", CODE),
        {
            "match": rf"^\s*({'|'.join(DEFINES)})\s+({NAME})",
            "captures": groups("keyword.control", "entity.name.type"),
        },
        match("keyword.control", either(STATEMENTS)),
        match("support.function", either(OPERATIONS)),
        match("variable.parameter", either(PROPERTIES)),
        match("constant.language.mode", either(MODES)),
        match("keyword.other", either(JOINING)),
        match("constant.language", either(VALUES)),
        {"match": rf"({NUMBER})\s+({'|'.join(UNITS)})\b", "captures": groups("constant.numeric", "keyword.other.unit")},
        match("constant.other.schedule", SCHEDULE),
        match("constant.numeric", NUMBER),
        match("entity.name.function", rf"\b{NAME}(?=\()"),
        match("variable.other", rf"\b{NAME}\b"),
        match("keyword.operator", OPERATOR),
    ]
    placed = {
        "name": "meta.placement",
        "begin": rf"({PLACED})",
        "beginCaptures": groups("keyword.control"),
        "end": r"$",
        "patterns": [tuple_, {"include": "#words"}],
    }
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "Placement",
        "scopeName": "source.placement",
        "fileTypes": ["place"],
        "patterns": [placed, letters, {"include": "#words"}],
        "repository": {"words": {"patterns": words}},
    }


def textmate_text() -> str:
    """The file placement.tmLanguage.json."""
    return json.dumps(textmate(), indent=2) + "\n"
