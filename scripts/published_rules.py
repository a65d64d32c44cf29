"""How a published figure is derived: which spec it is about, and which quantity of its cost it is.

`RULES` pairs patterns over row names with functions of the match and of the inputs of the row, which give a spec and
a quantity, or the reason why there is none. A rule writes down no result: formulas come out of `placelogic.cost`.
Inputs that are symbols in a row are sizes of that name in the spec.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import sympy
from msgspec import Struct, field

from placelogic import cost
from placelogic.cost import Cost

Quantity = Callable[[Cost], sympy.Expr]
Inputs = Mapping[str, Any]


class Derived(Struct, frozen=True):
    """`value`: over the sizes of the spec, in the unit of the row. `at`: sizes that the row gives, by name."""

    spec: str
    value: sympy.Expr
    at: Mapping[str, Any] = field(default_factory=dict)


class Reason(Struct, frozen=True):
    """Why a row is not derived."""

    text: str


ADAM = "optimizer adam\n"
MIXED = ADAM + "precision { params fp16, gradients fp16, master fp32, moments fp32 }\n"
"""2 + 2 + 12 bytes per parameter."""
EIGHTEEN = ADAM + "precision { params bf16, gradients fp32, master fp32, moments fp32 }\n"
HALF = "optimizer sgd\nprecision { params fp16, gradients fp16 }\n"
"""Two bytes for each element of a message."""

STAGES = {"dp": "data_parallel", "base": "data_parallel", "os": "zero1", "osg": "zero2", "osgp": "zero3"}
TABLE = {"Pos": "zero1", "Posg": "zero2", "Posgp": "zero3"}


def spec(*lines: str, use: str = "data_parallel(N)", mesh: str = "N", let: str = "Psi", size: str = "Psi") -> str:
    head = f"mesh {mesh}\n" + (f"let {let}\n" if let else "") + f"weights model {{ size {size} }}\n"
    return head + "".join(line if line.endswith("\n") else line + "\n" for line in lines) + f"use {use}\n"


def of(
    text: str, quantity: Quantity, scale: sympy.Expr | float = 1, at: Inputs | None = None, **options: Any
) -> Derived:
    return Derived(text, quantity(cost(text, **options)) / scale, dict(at or {}))


def held(found: Cost) -> sympy.Expr:
    return found.memory.held


def limit(found: Cost) -> sympy.Expr:
    return found.traffic.limit


def sent(found: Cost) -> sympy.Expr:
    return found.traffic.sent


def state(name: str) -> Quantity:
    return lambda found: found.memory.state(name)


def per_parameter(quantity: Quantity) -> Quantity:
    return lambda found: sympy.cancel(quantity(found) / found.parameters)


def messages(chosen: Callable[[Any], bool], volume: str = "sent") -> Quantity:
    return lambda found: sympy.Add(*(getattr(c, volume) for c in found.collectives if chosen(c)))


# --- ZeRO ---


def zero_table(match: re.Match, inputs: Inputs) -> Derived:
    use = STAGES.get(match["stage"]) or TABLE[match["stage"]]
    return of(spec(MIXED, use=f"{use}(N)"), held, at=inputs)


def zero_largest(match: re.Match, inputs: Inputs) -> Derived:
    """The inverse: the largest model for which 32 GB are enough."""
    text = spec(MIXED, use=f"{STAGES[match['stage']]}(N) * tensor_parallel(MP)", mesh="N, MP")
    psi = sympy.Symbol("Psi")
    (largest,) = sympy.solve(held(cost(text)) - 32 * 10**9, psi)
    return Derived(text, largest / 10**9, inputs)


def zero_limit(match: re.Match, inputs: Inputs) -> Derived:
    use = {"os": "zero1", "osg": "zero2"}[match["stage"]]
    text = spec(MIXED, use=f"{use}(N)")
    ratio = held(cost(spec(MIXED))) / held(cost(text))
    return Derived(text, sympy.limit(ratio, sympy.Symbol("N"), sympy.oo), {})


def zero_traffic(match: re.Match, inputs: Inputs) -> Derived:
    return of(spec(HALF, use=f"{STAGES[match['stage']]}(N)"), limit, 2, inputs)


def zero_ratio(match: re.Match, inputs: Inputs) -> Derived:
    text = spec(HALF, use="zero3(N)")
    return Derived(text, sympy.cancel(sent(cost(text)) / sent(cost(spec(HALF)))), {})


LEGACY = "step model {\n each microbatch { accumulate }\n reduce over N by mean\n update\n gather params over N\n}\n"


def reduction(with_unit: bool) -> Callable[[re.Match, Inputs], Derived]:
    """Data parallelism over ZeRO-3."""

    def rule(match: re.Match, inputs: Inputs) -> Derived:
        weights = f"weights model {{ size Psi, layers {round(1 / inputs['u'])} }}\n" if with_unit else None
        quantity = (lambda found: found.memory.with_unit) if with_unit else held
        texts = [spec(MIXED, use=use) for use in ("data_parallel(N)", "zero3(N)")]
        if weights:
            texts = [text.replace("weights model { size Psi }\n", weights) for text in texts]
        plain, sharded = (quantity(cost(text)) for text in texts)
        return Derived(texts[1], sympy.cancel(plain / sharded), {"N": inputs["N"]})

    return rule


# --- FSDP, hybrid sharding, hierarchical collectives, ZeRO++ ---


UNITS = "weights model { size Psi, layers Psi/psimax }\n"


def fsdp_params(precision: str) -> Callable[[re.Match, Inputs], Derived]:
    def rule(match: re.Match, inputs: Inputs) -> Derived:
        text = f"mesh F\nlet Psi, psimax\n{UNITS}optimizer sgd\nprecision {{ {precision} }}\nuse fsdp(F)\n"
        return of(text, lambda f: f.memory.state("params") + f.memory.with_unit - f.memory.held, at=inputs)

    return rule


def cross_host(use: str, *inter: str) -> Callable[[re.Match, Inputs], Derived]:
    """Elements; W devices in hosts of G."""

    def rule(match: re.Match, inputs: Inputs) -> Derived:
        text = spec(HALF, use=use, mesh="hosts, G" if "hosts" in use else "W", let="M", size="M")
        found = cost(text, inter=inter)
        volume = found.traffic.inter if inter else found.traffic.sent
        hosts = sympy.Symbol("W") / sympy.Symbol("G")
        return Derived(text, volume.subs(sympy.Symbol("hosts"), hosts) / 2, {})

    return rule


def hierarchical(where: str) -> Callable[[re.Match, Inputs], Derived]:
    def rule(match: re.Match, inputs: Inputs) -> Derived:
        mesh = "mesh k, g\naxis n = k*g\n" if where != "flat" else "mesh n\n"
        text = (
            mesh + "let P\nweights model { size P }\noptimizer sgd\nprecision { params int8 }\nuse data_parallel(n)\n"
        )
        found = cost(text, inter=["k"] if where != "flat" else [])
        volume = {"intra": found.traffic.intra, "inter": found.traffic.inter, "flat": found.traffic.sent}[where]
        return Derived(text, volume, inputs)

    return rule


ZEROPP = "precision { params fp16, gradients fp16, gather int8, reduce int4 }\noptimizer sgd\n"


def zeropp(*whats: str, plain: bool = False) -> Callable[[re.Match, Inputs], Derived]:
    """fp16-equivalent elements between nodes, many devices."""

    def rule(match: re.Match, inputs: Inputs) -> Derived:
        use = "zero3(N)" if plain else "fsdp(N, reshard_after_forward = n)"
        text = spec(HALF if plain else ZEROPP, use=use, let="M" if plain else "M, n", size="M")

        def volume(found: Cost) -> sympy.Expr:
            crossing = [c for c in found.collectives if c.inter != 0]
            return sympy.Add(*(c.limit for c in crossing if not whats or c.what in whats))

        return of(text, volume, 2, inter=["N"])

    return rule


def quantised(mesh: str, use: str, inter: str) -> Callable[[re.Match, Inputs], Derived]:
    """What all devices of a node send to other nodes, for messages of a quarter of the size."""

    def rule(match: re.Match, inputs: Inputs) -> Derived:
        text = f"mesh {mesh}\n{'axis dp = node*local' if 'local' in mesh else ''}\nlet M\nweights model {{ size M }}\n"
        text += ZEROPP + f"batch over {use}\nplace model over {use} = (R, S, S, R)\n"
        found = cost(text, inter=[inter])
        (term,) = [c for c in found.collectives if c.operation == "reduce-scatter"]
        local = sympy.Symbol("local")
        nodes = sympy.Symbol(inter)
        volume = sympy.limit(term.inter, nodes, sympy.oo)
        here = volume.subs(local, sympy.Symbol("N")) / 2 * sympy.Symbol("N")
        return Derived(text, here, {"Z": 4})

    return rule


# --- states ---


def bytes_per_parameter(
    precision: str, optimizer: str = "adam", part: str | None = None, use: str = "data_parallel(d)"
):
    def rule(match: re.Match, inputs: Inputs) -> Derived:
        text = spec(f"optimizer {optimizer}\nprecision {{ {precision} }}", use=use, mesh="d")
        return of(text, per_parameter(state(part) if part else held), at=inputs)

    return rule


MCORE = {
    "fp16p-fp16g": "params fp16, gradients fp16, update fp32, master fp32, moments fp32",
    "bf16p-fp32g": "params bf16, gradients fp32, master fp32, moments fp32",
    "fp32p-fp32g": "params fp32",
}


def megatron(match: re.Match, inputs: Inputs) -> Derived:
    use = "data_parallel(d)" if match["kind"] == "plain" else "distributed_optimizer(d)"
    return bytes_per_parameter(MCORE[match["dtypes"]], use=use)(match, inputs)


def deepspeed(placement: str, scale: float, quantity: str = "peak") -> Callable[[re.Match, Inputs], Derived]:
    """ZeRO-3 with fp32 gradients and a largest layer of LL parameters."""

    def rule(match: re.Match, inputs: Inputs) -> Derived:
        text = "mesh N\nlet P, LL\nweights model { size P, layers P/LL }\noptimizer adam\n"
        text += "precision { params fp16, gradients fp32, master fp32, moments fp32 }\nuse zero3(N)\n"
        if placement:
            text += f"place * {{ {placement} }}\n"
        found = cost(text)
        amount = found.memory.peak if quantity == "peak" else found.memory.host * sympy.Symbol("N") * sympy.Symbol("f")
        return Derived(text, sympy.expand(amount) / scale, inputs)

    return rule


OPTIMIZER_THERE = "optimizer offloaded, gradients offloaded"
ALL_THERE = OPTIMIZER_THERE + ", params offloaded"


# --- models ---


def gpt(match: re.Match, inputs: Inputs) -> Derived:
    text = "mesh N\nlet l, h, V, s, a\nmodel gpt { layers l, hidden h, heads a, vocab V, positions s }\nuse data_parallel(N)\n"
    return of(text, lambda found: found.parameters, 10**9, inputs)


def gpt_states(match: re.Match, inputs: Inputs) -> Derived:
    text = "mesh t, p\nlet L, h\nweights attn { size 4*h*h*L, layers L }\nweights mlp { size 2*h*(4*h)*L, layers L }\n"
    return of(text + EIGHTEEN + "use tensor_parallel(t) * pipeline(p)\n", held, 2**30, _at(inputs, "L", "h", "t", "p"))


LLAMA = """\
let L, h, kv, f, V
weights attn { size L*(2*h*h + 2*h*kv), layers L }
weights mlp { size L*3*h*f, layers L }
weights embed { size V*h, kind embedding, used on first }
weights head { size V*h, kind embedding, used on last }
"""
"""Without norms, as the source counts."""


def llama(part: str, mesh: str = "d", use: str = "data_parallel(d)", place: str | None = None, layers: int = 1):
    def rule(match: re.Match, inputs: Inputs) -> Derived:
        text = f"mesh {mesh}\n{LLAMA}" + "optimizer adam\nprecision { params bf16, moments fp32 }\n" + f"use {use}\n"
        found = cost(text)
        if place is None:
            amount = found.memory.state(part)
        else:
            amount = found.sum(lambda h: h.place.name == place and h.state == part)
        at = (
            dict(inputs)
            if "L" in inputs
            else {"L": 80, "h": 8192, "kv": 1024, "f": 28672, "V": 128256, **_int(inputs, "t")}
        )
        if layers != 1:
            at |= {"L": inputs["L"] * layers, "p": layers}
        return Derived(text, amount / 2**30, at)

    return rule


def sharded_by(match: re.Match, inputs: Inputs) -> Derived:
    """A model of x GiB cut t times."""
    text = spec("optimizer sgd\nprecision { params int8 }\n", use="tensor_parallel(t)", mesh="t", let="x", size="x")
    return of(text, state("params"), at={"t": 2, **inputs})


def positions(match: re.Match, inputs: Inputs) -> Derived:
    text = "mesh N\nlet h\nmodel gpt { layers 1, hidden h, heads 1, vocab 1, positions @ }\nuse data_parallel(N)\n"
    few, many = (cost(text.replace("@", str(n))).memory.state("params") for n in (1024, 1024 + inputs["ds"]))
    return Derived(text, (many - few) / 2**30, {"h": inputs["h"]})


def experts(parallel: str, bucket: bool = False) -> Callable[[re.Match, Inputs], Derived]:
    """Tensor-sharded, replicated and routed weights; experts over an expert-tensor axis x*tp of 4 and ep = 2."""

    def rule(match: re.Match, inputs: Inputs) -> Derived:
        tp, pp = 2, 2 if parallel == "moe" else 1
        dense = 896 if parallel == "moe" else 0
        embed = 256 if parallel == "moe" else int(inputs["tps"]) * tp
        whole = 36 if parallel == "moe" else inputs["rep"]
        text = f"mesh pp = {pp}, z = 4, ep = 2, x = 2, tp = {tp}\naxis dp = z*ep*x\n" + EIGHTEEN
        if dense:
            text += f"weights dense {{ size {dense}, layers 2 }}\n"
        text += f"weights embed {{ size {embed}, kind embedding, used on first of pp }}\n"
        text += f"weights rest {{ size {whole * pp}, layers 2, kind vector }}\n"
        text += f"weights expert {{ size {64 * pp * 2 * 2 * tp}, layers 2, kind expert, routed over ep }}\n"
        text += "use distributed_optimizer(z) * expert_parallel(ep)\n"
        text += "use tensor_parallel(tp) * pipeline(pp)\n"
        text += "place expert over x { params sharded, optimizer sharded, gradients sharded }\n"
        others = "dense, embed, rest" if dense else "embed, rest"
        text += f"place {others} over dp {{ params replicated, optimizer sharded, gradients replicated }}\n"
        found = cost(text)
        if bucket:
            (first,) = [place for place in found.places if place.name == "first"]
            terms = [h for h in found.held if h.place == first and h.part == "params" and h.group in ("dense", "embed")]
            return Derived(text, sympy.Add(*(h.even for h in terms)).subs(found.values), {})
        return Derived(text, held(found), dict(found.values))

    return rule


# --- pipelines ---


def pipeline(schedule: str, quantity: Quantity, chunks: str = "") -> Callable[[re.Match, Inputs], Derived]:
    def rule(match: re.Match, inputs: Inputs) -> Derived:
        text = f"mesh p\nlet L{', v' if chunks else ''}\nmicrobatches m\nweights model {{ size L, layers L }}\n"
        text += f"use pipeline(p, schedule = {schedule}{f', chunks = {chunks}' if chunks else ''})\n"
        return of(text, quantity, at=inputs)

    return rule


def bubble(found: Cost) -> sympy.Expr:
    assert found.bubble is not None
    return found.bubble


def data_parallel_bubble(match: re.Match, inputs: Inputs) -> Derived:
    one = pipeline("1f1b", bubble)(match, {})
    n, d, bp = sympy.symbols("n d bp")
    return Derived(one.spec, one.value.subs({sympy.Symbol("p"): n / d, sympy.Symbol("m"): bp / d}), {})


def chunked(found: Cost) -> sympy.Expr:
    """Of all layers of a stage, for many micro-batches; the source calls the chunks m."""
    amount = found.in_flight["first"].replace(
        sympy.Min, lambda *args: next(a for a in args if a.has(sympy.Symbol("p")))
    )
    return (amount / sympy.Symbol("p")).subs(sympy.Symbol("v"), sympy.Symbol("m"))


def offloaded(placement: str, quantity: Quantity) -> Callable[[re.Match, Inputs], Derived]:
    def rule(match: re.Match, inputs: Inputs) -> Derived:
        text = spec(MIXED, f"place * {{ {placement} }}", let="M", size="M")
        return of(text, quantity, at=inputs)

    return rule


def factor(operation: str) -> Callable[[re.Match, Inputs], Derived]:
    """What leaves a device, over the size of the message; n devices, at least 2."""

    def rule(match: re.Match, inputs: Inputs) -> Derived:
        step = "step model {\n each microbatch { accumulate }\n reduce over n by mean\n"
        step += (
            " reduce scattered over n by mean\n gather gradients over n\n update\n broadcast params over n from 0\n}\n"
        )
        text = spec(HALF, step, use="data_parallel(n)", mesh="n")
        (term,) = [c for c in cost(text).collectives if c.operation == operation]
        ratio = (term.sent / term.bytes).replace(sympy.Min, lambda *args: sympy.Integer(1))
        return Derived(text, sympy.cancel(ratio), inputs)

    return rule


def all_reduce_rate(match: re.Match, inputs: Inputs) -> Derived:
    text = spec("optimizer sgd\nprecision { params int8 }", use="data_parallel(n)", mesh="n", let="S", size="S")
    return of(text, sent, sympy.Symbol("t"), inputs)


def many_devices(
    use: str, scale: Quantity | None = None, precision: str = HALF
) -> Callable[[re.Match, Inputs], Derived]:
    """Bytes in a step, (n - 1)/n taken as 1; P parameters."""

    def rule(match: re.Match, inputs: Inputs) -> Derived:
        text = spec(precision, use=f"{use}(N)", let="P", size="P")
        found = cost(text)
        amount = limit(found)
        return Derived(text, amount / sympy.Symbol("bw") if "bw" in inputs else amount, inputs)

    return rule


def _at(inputs: Inputs, *names: str) -> dict[str, Any]:
    return {name: inputs[name] for name in names}


def _int(inputs: Inputs, *names: str) -> dict[str, Any]:
    return {name: inputs[name] for name in names if name in inputs}
