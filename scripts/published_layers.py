"""Rules for published figures about activations and about what layers send: see published_rules.py.

Every figure is read off the terms of a spec that uses a model of the library; L layers, b sequences of s tokens on each
data-parallel replica, width h, a heads, t tensor-parallel devices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import sympy
from published_rules import Derived

from placelogic import cost
from placelogic.cost import Collective, Cost

Inputs = Mapping[str, Any]
Rule = Callable[[re.Match, Inputs], Derived]

GPT = """\
mesh @
let h, a, L, v, s, b, f
assume h % a == 0
dims batch = b, sequence = s
optimizer adam
precision { params bf16, gradients fp32, master fp32, moments fp32 }
model gpt { layers L, hidden h, heads a, vocab v }
"""
LLAMA = GPT.replace("model gpt { layers L, hidden h, heads a, vocab v }",
                    "let k\nassume a % k == 0\nmodel llama { layers L, hidden h, heads a, kv_heads k, ffn f, vocab v }")  # fmt: skip
MOE = """\
mesh ep, t
let h, a, f, L, v, s, b, E, k
assume h % a == 0
dims batch = b*ep, sequence = s
precision { params bf16 }
model moe { layers L, hidden h, heads a, ffn f, vocab v, experts E, top k, experts_over ep }
"""
SELECTIVE = "checkpoint c of layer\n"
FULL = "checkpoint layer\n"
EVERY = "let ci\ncheckpoint layer every ci\n"
TP, SP = "use tensor_parallel(t)\n", "use sequence_parallel(t)\n"
L = sympy.Symbol("L")


@lru_cache
def costs(text: str) -> Cost:
    return cost(text)


def gpt(lines: str, mesh: str = "t", model: str = GPT) -> str:
    return model.replace("@", mesh) + lines


def kept(found: Cost, *blocks: str, place: str | None = None) -> sympy.Expr:
    """Bytes of saved activations."""
    terms = [h for h in found.held if h.state == "activations" and (not blocks or h.group in blocks)]
    return sympy.Add(*(h.bytes for h in terms if place is None or h.place.name == place))


def layer(lines: str, model: str = GPT, mesh: str = "t") -> sympy.Expr:
    """Of one layer."""
    return sympy.expand(kept(costs(gpt(lines, mesh, model)), "layer") / L)


def per_layer(lines: str, scale: sympy.Expr | int = 1, model: str = GPT, mesh: str = "t", **names: str) -> Rule:
    """`names`: what the row calls a size of the spec."""

    def rule(match: re.Match, inputs: Inputs) -> Derived:
        value = layer(lines, model, mesh) / scale
        return Derived(gpt(lines, mesh, model), _renamed(value, names), inputs)

    return rule


def whole(lines: str, scale: int, *blocks: str, **fixed: Any) -> Rule:
    """Of all layers."""

    def rule(match: re.Match, inputs: Inputs) -> Derived:
        value = kept(costs(gpt(lines)), *blocks)
        return Derived(gpt(lines), value / scale, {"b": 1, **inputs, **fixed})

    return rule


def many(expr: sympy.Expr) -> sympy.Expr:
    """With more micro-batches than are in flight."""
    return expr.replace(sympy.Min, lambda *parts: next(part for part in parts if part.has(sympy.Symbol("p"))))


def first_stage(lines: str, scale: int, schedule: str = "1f1b", *blocks: str) -> Rule:
    """Of the first of p stages; `m` in a row is the number of chunks."""

    def rule(match: re.Match, inputs: Inputs) -> Derived:
        chunked = ", chunks = m" if schedule != "1f1b" else ""
        text = gpt("let m\nmicrobatches M\n" + lines + f"use pipeline(p, schedule = {schedule}{chunked})\n", "t, p")
        place = "single" if inputs.get("p") == 1 else "first"
        value = many(kept(costs(text), *(blocks or ("layer",)), place=place))
        if inputs.get("m") == 1:  # one chunk: nothing is interleaved
            value = value.subs(sympy.Symbol("m"), 1)
            plain = text.replace(f"schedule = {schedule}{chunked}", "schedule = 1f1b")
            value = many(kept(costs(plain), "layer", place=place))
        return Derived(text, sympy.expand(value) / scale, {k: v for k, v in inputs.items() if not isinstance(v, str)})

    return rule


def share_of_baseline(lines: str) -> Rule:
    """In percent of a layer under tensor parallelism."""

    def rule(match: re.Match, inputs: Inputs) -> Derived:
        return Derived(gpt(lines), 100 * layer(lines) / layer(TP), inputs)

    return rule


def fig7(match: re.Match, inputs: Inputs) -> Derived:
    lines = {"full": TP + FULL, "sel": TP + SELECTIVE, "seq": SP, "seqsel": SP + SELECTIVE}[match["how"]]
    return share_of_baseline(lines)(match, inputs)


def scores(match: re.Match, inputs: Inputs) -> Derived:
    """What the attention core keeps, in units of s*b*h bytes."""
    s, b, h = sympy.symbols("s b h")
    return Derived(gpt(""), sympy.cancel((layer("") - layer(SELECTIVE)) / (s * b * h)), inputs)


def saved_by_selection(match: re.Match, inputs: Inputs) -> Derived:
    """Of MT-NLG: 128 heads, 2048 tokens, width 20480."""
    value = sympy.cancel((layer("") - layer(SELECTIVE)) / layer(""))
    return Derived(gpt(SELECTIVE), value, {"a": 128, "s": 2048, "h": 20480})


def ends(match: re.Match, inputs: Inputs) -> Derived:
    """Before the layers, for the micro-batches in flight; after them, on a single stage."""
    piped = first_stage(SP, 1, "1f1b", "start")(match, inputs)
    return Derived(piped.spec, piped.value + kept(costs(gpt(SP)), "finish"), {})


# --- messages ---------------------------------------------------------------------------------


def sent(
    text: str,
    chosen: Callable[[Collective], bool],
    volume: str = "sent",
    block: str = "layer",
    place: str | None = None,
) -> sympy.Expr:
    """Per layer, of one micro-batch."""
    found = costs(text)
    terms = [c for c in found.collectives if c.group == block and chosen(c)]
    if place is not None:
        terms = [c for c in terms if any(one.name == place for one in c.places)]
    return sympy.expand(sympy.Add(*(getattr(c, volume) for c in terms)) / L)


def backward(c: Collective) -> bool:
    return c.what.startswith("gradient of ")


def again(c: Collective) -> bool:
    return "once more" in c.what


def forward(c: Collective) -> bool:
    return not backward(c) and not again(c)


def traffic(
    lines: str,
    chosen: Callable[[Collective], bool] = lambda c: True,
    volume: str = "sent",
    scale: Any = 2,
    mesh: str = "t",
    model: str = GPT,
    names: Mapping[str, str] | None = None,
    fixed: Inputs | None = None,
) -> Rule:
    """Elements by default: two bytes each."""

    def rule(match: re.Match, inputs: Inputs) -> Derived:
        text = gpt(lines, mesh, model)
        value = _renamed(sent(text, chosen, volume) / scale, names or {})
        return Derived(text, sympy.factor(value.subs(dict(fixed or {}))), inputs)

    return rule


def all_reduces(match: re.Match, inputs: Inputs) -> Derived:
    found = costs(gpt(TP))
    number = sympy.Add(*(c.times for c in found.collectives if c.group == "layer" and c.operation == "all-reduce"))
    return Derived(gpt(TP), sympy.cancel(number / L), {})


def handed_on(lines: str) -> Rule:
    """Elements that one stage hands to the next, of one micro-batch."""

    def rule(match: re.Match, inputs: Inputs) -> Derived:
        text = gpt(lines + "use pipeline(p)\n", "t, p")
        term = next(c for c in costs(text).collectives if c.operation == "send" and forward(c))
        return Derived(text, term.bytes / 2, inputs)

    return rule


def experts(chosen: Callable[[Collective], bool], scale: float) -> Rule:
    def rule(match: re.Match, inputs: Inputs) -> Derived:
        text = MOE + "use expert_parallel(ep)\n"
        value = sent(text, lambda c: c.operation == "all-to-all" and chosen(c))
        at = {"s": inputs["T"], "b": 1, "h": inputs["H"], "ep": inputs["P"], "k": inputs["k"]}
        return Derived(text, value / scale, at)

    return rule


def expert_width(match: re.Match, inputs: Inputs) -> Derived:
    """Elements of one array of the width of an expert: what grows with that width is four such arrays."""
    text = MOE + "use expert_parallel(ep) * tensor_parallel(t)\n"
    f = sympy.Symbol("f")
    value = sympy.diff(sympy.expand(kept(costs(text), "layer") / L), f) * f
    return Derived(text, value / (4 * 2), {})


def all_to_all(match: re.Match, inputs: Inputs) -> Derived:
    text = MOE + "use expert_parallel(ep)\n"
    term = next(c for c in costs(text).collectives if c.operation == "all-to-all")
    return Derived(text, _renamed(sympy.cancel(term.sent / term.times / term.bytes), {"ep": "n"}), {})


def _renamed(value: sympy.Expr, names: Mapping[str, str]) -> sympy.Expr:
    return value.subs({sympy.Symbol(old): sympy.Symbol(new) for old, new in names.items()}, simultaneous=True)


RING = "use context_parallel(P)\n"
SPREAD = "use ulysses(P)\n"
KV = {"s": "S", "h": "H"}
PLAIN = {"b": 1, sympy.Symbol("k"): sympy.Symbol("a")}
"""Heads of their own for keys and values, one sequence."""

RULES: list[tuple[str, Rule]] = [
    (r"act-coef-.*", scores),
    (r"act-extra", ends),
    (r"act-first-stage", first_stage(SP, 1)),
    (r"act-layer-full", per_layer(TP + FULL)),
    (r"act-layer-tp-sel", per_layer(TP + SELECTIVE)),
    (r"act-layer-tp-sp", per_layer(SP)),
    (r"act-layer-tp-sp-sel", per_layer(SP + SELECTIVE)),
    (r"act-parts", per_layer("")),
    (r"act-sel-save-mtnlg", saved_by_selection),
    (r"kr-fig1-\w+-act-none", first_stage(TP, 2**30, "interleaved_1f1b")),
    (r"kr-fig1-\w+-act-seqsel", first_stage(SP + SELECTIVE, 2**30, "interleaved_1f1b")),
    (r"kr-fig7-\w+-(?P<how>full|sel|seq|seqsel)", fig7),
    (r"la-175B-act-bs1", whole(FULL, 1, "layer")),
    (r"la-175B-act-bs4", whole(FULL, 1, "layer", b=4)),
    (r"mcore-act-layer", per_layer(SP + SELECTIVE, model=GPT.replace("vocab v }", "vocab v, ffn f }"))),
    (r"us-(?:1B|8B)-act-\d+", whole(SELECTIVE, 2**30, "layer")),
    (r"us-act-quadratic-\d+", whole("", 2**30, "layer", "start")),
    (r"fj-act", per_layer("", model=LLAMA)),
    (r"zi-ckpt", lambda m, i: Derived(
        gpt(EVERY), _renamed(kept(costs(gpt(EVERY)), "layer"), {"h": "hd", "L": "nl"}), {})),
    (r"zi-ckpt-10T", lambda m, i: Derived(
        gpt(EVERY), kept(costs(gpt(EVERY)), "layer") / 2**40,
        {"b": i["b"], "s": i["s"], "h": i["hd"], "L": i["nl"], "ci": i["ci"]})),
    (r"mg-tp-ar-count", all_reduces),
    (r"mg-tp-vol-num", traffic(TP, scale=1)),
    (r"mg-pp-vol", handed_on(TP)),
    (r"mg-pp-vol-sg", handed_on(SP)),
    (r"sp-comm-identity", traffic(SP, lambda c: not again(c))),
    (r"zero-Pa-mp-volume", traffic(TP + FULL, volume="limit")),
    (r"megsp-link", traffic(SP, forward, "limit", names={"s": "N"}, fixed={"b": 1})),
    (r"ring-attn-fwd", traffic(RING, forward, mesh="P", model=LLAMA, names=KV, fixed=PLAIN)),
    (r"ring-num", traffic(RING, forward, scale=10**9, mesh="P", model=LLAMA, names=KV, fixed=PLAIN)),
    (r"cp-train-total", traffic(RING, mesh="P", model=LLAMA, names=KV, fixed=PLAIN)),
    (r"ulysses-exact", traffic(SPREAD, forward, mesh="P", model=LLAMA, names={"s": "N"}, fixed=PLAIN)),
    (r"ulysses-link", traffic(SPREAD, forward, "limit", mesh="P", model=LLAMA, names={"s": "N"}, fixed=PLAIN)),
    (r"ulysses-num", traffic(SPREAD, forward, scale=10**9, mesh="P", model=LLAMA, names=KV, fixed=PLAIN)),
    (r"ep-dispatch", experts(lambda c: forward(c) and c.times.is_Symbol and _first(c), 1e6)),
    (r"ep-fwd", experts(forward, 1e6)),
    (r"ep-act-invariant", expert_width),
    (r"nccl-alltoall", all_to_all),
]  # fmt: skip


def _first(term: Collective) -> bool:
    """The dispatch: of the two all-to-alls forward, the first that is listed."""
    listed = [
        c for c in costs(MOE + "use expert_parallel(ep)\n").collectives if c.operation == "all-to-all" and forward(c)
    ]
    return term is listed[0]
