"""The words of syntax errors: what was expected, what a right line looks like, near misses."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence

from lark import Token

from placelogic.program.table import entries
from placelogic.syntax.load import Language

_SIZE = {"NAME", "INT", "DECIMAL", "WORD", "LPAR", "MINUS"}
_OPERATORS = {"PLUS", "MINUS", "STAR", "SLASH", "PERCENT"}

_MODES = {"REPLICATED", "R", "SHARDED", "S", "GATHERED", "_S_STAR", "MATERIALIZED", "M", "OFFLOADED", "O"}
_UNITS = {"B", "KB", "MB", "GB", "TB", "KIB", "MIB", "GIB", "TIB"}

# Where all of the first are accepted, the phrase says it, and the others go without saying (none: all others).
_GROUPS: tuple[tuple[set[str], str, set[str]], ...] = (
    ({"MESH", "LET", "PLACE"}, "a statement (such as mesh, weights, place or use)", set()),
    (_MODES, "a mode (replicated R, sharded S, gathered S*, materialized M, offloaded O)", _MODES),
    (_UNITS, "a unit (GB, GiB, MB, MiB, ...)", _UNITS),
    (_SIZE, "a size (a number, a name, or arithmetic)", _SIZE),
)
_PHRASES = {"INT": "a whole number", "COMPARE": "a comparison", "STRING": "a file name in double quotes",
            "CODE": "a code (such as GI01)"}  # fmt: skip

# What a bare name means, by the word before it.
_NOUNS = {
    "over": "an axis", "mesh": "the name of an axis", "axis": "a name for the product", "let": "a name",
    "weights": "a name for the weights", "model": "the name of a model", "strategy": "a name for the strategy",
    "use": "a strategy (such as `zero2(dp)`)", "spec": "a name for the spec", "on": "a dimension",
    "kind": "a kind (such as matrix or vector)", "clip": "`global_norm`",
    "optimizer": "an optimizer (such as adamw)", "with": "the name of weights", "block": "a name for the block",
    "dims": "the names of dimensions", "input": "a name for what arrives", "into": "the name of a buffer", "from": "the name of a buffer",
}  # fmt: skip
_TARGETS = ("sync", "scale", "step", "init", "freeze", "random", "place", "for")

EXAMPLES = {
    "mesh": "mesh dp, tp = 8, 2 <= pp <= 16", "axis": "axis dp = edp * ep", "let": "let h = 8192, L",
    "assume": "assume heads % tp == 0, dp >= 2", "import": 'import "our.place"', "batch": "batch over dp",
    "sequence": "sequence over cp", "tokens": "tokens even", "microbatches": "microbatches M",
    "gradient_accumulation": "gradient_accumulation M", "objective": "objective mean",
    "feed": "feed same over dp", "loss": "loss mean local", "sync": "sync norm over tp by sum",
    "scale": "scale expert by 1/ep", "step": "step norm { update }", "init": "init norm different over tp",
    "clip": "clip global_norm", "optimizer": "optimizer muon for matrix gathers over tp", "random": "random norm over tp same",
    "precision": "precision { params bf16, master fp32 }", "weights": "weights norm { size 2*h, kind vector }",
    "freeze": "freeze embed", "model": "model llama { layers 80, hidden 8192 }",
    "place": "place * over dp { params gathered, optimizer sharded }",
    "stages": "stages over pp { schedule 1f1b }", "use": "use zero2(dp) * tensor_parallel(tp)",
    "strategy": "strategy ours(d) { batch over d }", "spec": "spec base { use zero2(dp) }",
    "budget": "budget 80 GiB", "claim": "claim memory(zero3) * N == memory(data_parallel)",
    "expect": "expect refuted GI01 norm", "each": "each microbatch { accumulate }",
    "first": "first microbatch { replace }", "last": "last microbatch { accumulate }",
    "microbatch": "microbatch 2 { accumulate }", "accumulate": "accumulate into main",
    "replace": "replace into main", "reduce": "reduce over dp by mean", "gather": "gather params over dp",
    "broadcast": "broadcast params over dp from 0", "refresh": "refresh params from master",
    "skip": "skip on overflow over dp", "update": "update from main", "offload": "offload gradients",
    "fetch": "fetch params", "size": "size 4*h*h*L", "layers": "layers L", "dims": "dims in out",
    "kind": "kind vector", "used": "used on first and last of pp", "routed": "routed over ep",
    "block": "block layer repeat L { ... }", "input": "input x(batch, sequence, hidden)",
    "checkpoint": "checkpoint scores of layer", "attention": "attention over cp by ring",
    "positions": "positions c of layer over cp global", "forward": "forward n over tp by none",
    "backward": "backward n of layer over tp by sum",
}  # fmt: skip
"""One right line for each first word. A test parses them all (with a line for each `...`)."""

OPERATIONS = {line.split()[2]: line for _, entry in entries() for line in entry.examples}
"""One right line for each operation of a block."""

_SIGNS = {
    "`": "names are written without quotes", "'": "a file name stands in double quotes, other names in none",
    "‘": "names are written without quotes", "“": 'write straight quotes: "',
    "”": 'write straight quotes: "', ":": "no colon is needed", "[": "lists are written without brackets",
    "]": "lists are written without brackets", "≤": "write `<=`", "≥": "write `>=`", "≠": "write `!=`",
    "×": "write `*`", "·": "write `*`", "÷": "write `/`", "−": "write `-`", "–": "write `-`",
    "!": "write `!=` to say that sizes differ", "&": "separate conditions with commas",
    "|": "choose one", "^": "write powers as products", "\u00a0": "this is a no-break space: write a normal one",
    "\r": "this is a lone carriage return: end lines with a line feed", "\ufeff": "delete this byte order mark",
}  # fmt: skip


def expected(accepted: Collection[str], last: Token | None, known: Language) -> str:
    """`accepted` in a person's words: `` `over` or `,` ``."""
    left, parts = set(accepted), []
    # A size or a product may always go on; that is no news unless nothing else can follow.
    for more in (_OPERATORS | {"LPAR"}, set() if "NAME" in left else {"STAR"}):
        if _OPERATORS & more <= left and left - more:
            left -= more
    for members, phrase, covers in _GROUPS:
        if members <= left:
            parts.append(phrase)
            left = left - members - covers if covers else set()
    if "NAME" in left:
        parts.append(noun(last))
        left -= {"STAR"} if last is not None and last in _TARGETS else set()
    parts += [phrase for name, phrase in _PHRASES.items() if name in left]
    words = [word for name, word in known.fixed.items() if name in left]
    parts += [f"`{word}`" for word in sorted(words, key=lambda word: not word[0].isalpha())]
    if "_NL" in left or "$END" in left:
        parts.append("the end of the line")
    return _either(parts) if parts else "something else"


def nearest(found: Token, accepted: Collection[str], known: Language) -> str | None:
    """A hint with the keyword that was probably meant, or None."""
    words = [known.fixed[name] for name in accepted if name in known.fixed and len(known.fixed[name]) > 1]
    exact = [word for word in words if word.lower() == found.lower()]
    near = exact or difflib.get_close_matches(found.lower(), sorted(words), n=1, cutoff=0.7)
    return f"did you mean `{near[0]}`?" if near else None


def meant(found: Token) -> str | None:
    """A hint for a word that other tools use for something that this language calls otherwise, or None."""
    word = found.lower()
    return next((f"{hint}, for example `{EXAMPLES[name]}`" for words, name, hint in _OTHERWISE if word in words), None)


_OTHERWISE = (
    (
        {"gradient", "gradients", "grad", "accumulation", "accumulate", "grad_accum", "accumulation_steps", "ga"}
        | {"gradient_accumulation_steps", "micro", "num_microbatches"},
        "gradient_accumulation",
        "micro-batches are counted by `gradient_accumulation`, or `microbatches`",
    ),
    ({"axes", "world", "world_size", "devices", "gpus", "ranks"}, "mesh", "axes of devices are declared with `mesh`"),
    ({"param", "params", "parameters", "layer", "tensor"}, "weights", "parameters are declared with `weights`"),
)
"""Words -> what this language says instead."""


def example(leaders: Sequence[str]) -> str | None:
    """A right line that begins with the innermost word that has one."""
    found = next((EXAMPLES[word] for word in leaders if word in EXAMPLES), None)
    return f"for example: `{found}`" if found else None


def unknown_text(found: Token) -> tuple[str, str, str]:
    """Code, message and hint for a piece of text that is no token."""
    text = str(found)
    if text == ";":
        return "PL105", "a semicolon", "statements end with the line: delete it, or begin a new line"
    if text.startswith('"'):
        return "PL116", "this file name is not closed", 'add a `"` on the same line'
    if text[0].isascii() and text[0].isdigit():
        return "PL109", f"`{text}` is no number", "write whole numbers such as 64, and decimals such as 0.5"
    shown = text if text.isprintable() else ascii(text)[1:-1]
    hint = _SIGNS.get(text, "names are written with letters, digits and `_`" if text.isalnum() else None)
    return "PL107", f"`{shown}` is not used in this language", hint or "delete it"


def noun(last: Token | None) -> str:
    """What a name means that stands after `last`."""
    if last is None:
        return "a name"
    if last in _TARGETS:
        return "weights (their names, a kind, or `*`)"
    return _NOUNS.get(str(last), "a name")


def _either(parts: Iterable[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)} or {last}" if most else last
