"""The costs that papers and tools have published, each derived from a spec and held against the figure.

    python scripts/published_costs.py                    the rows of tests/cost/published.json
    python scripts/published_costs.py --cases FILE.json  the rows of another file
    python scripts/published_costs.py --failed           only rows that are not matched

A row has `id` (which rule derives it: published_rules.py), `inputs`, `expected`, `tolerance`, `tolerance_kind` (abs, rel,
symbolic or upper_bound) and `source`. Exit code 1 if a derived row differs from what was published.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import published_layers
import published_rules as rule
import sympy
from msgspec import Struct
from published_rules import Derived, Reason

ROWS = Path(__file__).resolve().parents[1] / "tests" / "cost" / "published.json"

RULES: list[tuple[str, Any]] = [
    # ZeRO (arXiv 1910.02054)
    (r"zero-t1-.*-(?P<stage>Pos|Posg|Posgp)-N\d+", rule.zero_table),
    (r"zero-fig1-(?P<stage>dp|os|osg|osgp)", rule.zero_table),
    (r"zero-t2-MP\d+-(?P<stage>base|os|osg|osgp)", rule.zero_largest),
    (r"zero-t2-measured-MP\d+-(?P<stage>os)", rule.zero_largest),
    (r"zero-lim-(?P<stage>os|osg)", rule.zero_limit),
    (r"zero-comm-(?P<stage>dp|os|osg|osgp)", rule.zero_traffic),
    (r"zero-comm-ratio", rule.zero_ratio),
    (r"zero-fused-buf-.*", lambda m, i: rule.of(
        rule.spec("optimizer sgd\nprecision { params fp16, gradients fp32 }"), rule.state("gradients"), at=i)),
    (r"zero-gpt2-states", lambda m, i: rule.of(rule.spec(rule.MIXED), rule.held, at=i)),
    (r"zero1-legacy-comm", lambda m, i: rule.of(
        rule.spec(rule.HALF, rule.LEGACY, use="zero1(N)"), rule.limit, 2)),
    (r"seed-zero3-8x", rule.reduction(False)),
    (r"zero3-8x-with-unit", rule.reduction(True)),
    # FSDP, hybrid sharding, hierarchical collectives
    (r"fsdp-peak-param", rule.fsdp_params("params int8")),
    (r"fsdp-peak-param-mp", lambda m, i: _mixed_units(i)),
    (r"fsdp-xhost-full", rule.cross_host("zero3(W)")),
    (r"fsdp-xhost-replicate", rule.cross_host("data_parallel(W)")),
    (r"fsdp-xhost-hybrid-exact", rule.cross_host("hsdp(shard = G, replicate = hosts)", "hosts")),
    (r"fsdp-xhost-hybrid-paper", Reason("the published form is an approximation: it does not vanish on one host")),
    (r"fsdp-ga-comm", lambda m, i: rule.of(
        rule.spec(rule.HALF, "microbatches GAS", use="zero3(N)"), rule.limit, 2)),
    (r"fsdp-noreshard-comm", lambda m, i: rule.of(
        rule.spec(rule.HALF, use="fsdp(N, reshard_after_forward = false)"), rule.limit, 2)),
    (r"fsdp-int-reshard-bwd-ag", lambda m, i: rule.of(
        rule.spec(rule.HALF, use="fsdp(N, reshard_after_forward = n)", let="Psi, n"),
        rule.messages(lambda c: c.what == "params for backward"), 2)),
    (r"zeropp-hpz-mem", lambda m, i: rule.of(
        rule.spec(rule.HALF, use="fsdp(N, reshard_after_forward = n)", let="Psi, n"),
        lambda f: sympy.Add(*(t.bytes for t in f.transients if t.kind == "kept params")))),
    (r"zeropp-fwd-ag", rule.zeropp("params for forward")),
    (r"zeropp-bwd-ag", rule.zeropp("params for backward")),
    (r"zeropp-bwd-rs", rule.zeropp("gradients")),
    (r"zeropp-total", rule.zeropp()),
    (r"zeropp-zero3-total", rule.zeropp(plain=True)),
    (r"zeropp-qgz-1hop", rule.quantised("dp", "dp", "dp")),
    (r"zeropp-qgz-hier", rule.quantised("node, local", "dp", "node")),
    (r"hsdp-4gib-(?P<where>inter|intra)", lambda m, i: rule.hierarchical(m["where"])(m, i)),
    (r"flat-ring-4gib", rule.hierarchical("flat")),
    (r"nccl-allreduce|nccl-ar-n\d+|ar-optimal", rule.factor("all-reduce")),
    (r"nccl-allgather", rule.factor("all-gather")),
    (r"nccl-reducescatter", rule.factor("reduce-scatter")),
    (r"nccl-broadcast", rule.factor("broadcast")),
    (r"nccl-reduce", Reason("a reduction to one root is no operation of a step")),
    (r"busbw-example", rule.all_reduce_rate),
    (r"mleng-ddp-10B", rule.many_devices("data_parallel")),
    (r"mleng-ddp-2B-fp32", rule.many_devices("data_parallel", precision="optimizer sgd\nprecision { params fp32 }\n")),
    (r"mleng-zero1-10B", rule.many_devices("zero1")),
    (r"mleng-zero3-10B|mleng-idefics-comm", rule.many_devices("zero3")),
    # bytes per parameter
    (r"mcore-(?P<dtypes>\w+-\w+)-(?P<kind>plain|dist)(?:-d8)?", rule.megatron),
    (r"fj-states", rule.bytes_per_parameter(rule.MCORE["bf16p-fp32g"], use="distributed_optimizer(d)")),
    (r"flagscale-16b", lambda m, i: rule.of(
        rule.spec(rule.EIGHTEEN, use="distributed_optimizer(d)", mesh="d", let="N", size="N"), rule.held, 2**20, i)),
    (r"opt-adam-20", rule.bytes_per_parameter(rule.MCORE["fp16p-fp16g"])),
    (r"opt-adam-ds-18|opt-adam-fp32grad-18", rule.bytes_per_parameter(rule.MCORE["bf16p-fp32g"])),
    (r"opt-adam-fp32", rule.bytes_per_parameter("params fp32")),
    (r"opt-adam-mixed-16", rule.bytes_per_parameter("params fp16, gradients fp16, master fp32, moments fp32")),
    (r"opt-bf16-only", rule.bytes_per_parameter("params bf16, gradients bf16, moments bf16")),
    (r"opt-ultrascale", rule.bytes_per_parameter("params bf16, gradients bf16, moments fp32")),
    (r"optstate-8bit-K", rule.bytes_per_parameter("params bf16, master fp32", "adam8bit", "optimizer")),
    (r"optstate-adam-8bit", rule.bytes_per_parameter("params bf16", "adamw8bit", "optimizer")),
    (r"optstate-adam-fp32", rule.bytes_per_parameter("params fp32", "adamw", "optimizer")),
    (r"optstate-muon", rule.bytes_per_parameter("params bf16, master fp32", "muon", "optimizer")),
    (r"optstate-sgd-K", rule.bytes_per_parameter("params bf16, master fp32", "sgd", "optimizer")),
    (r"optstate-sgdm", rule.bytes_per_parameter("params fp32", "sgd_momentum", "optimizer")),
    (r"optstate-adafactor", Reason("the state depends on the shapes of tensors, which a spec does not state (PL360)")),
    (r"acc-bert-fp32-train", lambda m, i: rule.of(
        rule.spec("optimizer adam\nprecision { params fp32 }", let="S", size="S*2**20/4".replace("2**20", "1048576")),
        rule.held, 2**30, i)),
    (r"acc-bert-load-actual", lambda m, i: rule.of(
        rule.spec("precision { params fp32 }", let="est", size="est*1048576/4"), rule.state("params"), 2**20, i)),
    (r"acc-idefics-fp16-train", lambda m, i: rule.of(
        rule.spec("optimizer adam\nprecision { params fp16 }", let="S", size="S*1073741824/2"), rule.held, 2**30, i)),
    # DeepSpeed estimators, ZeRO-Offload, ZeRO-Infinity
    (r"ds-t5large-case1", rule.deepspeed("", 2**20)),
    (r"ds-t5large-case2", rule.deepspeed(rule.ALL_THERE, 2**20)),
    (r"ds-z3-gpu-none", rule.deepspeed("", 2**30)),
    (r"ds-z3-gpu-opt|ds-issue4527-gpu-opt", rule.deepspeed(rule.OPTIMIZER_THERE, 2**30)),
    (r"ds-z3-gpu-all|ds-issue4527-gpu-all", rule.deepspeed(rule.ALL_THERE, 2**30)),
    (r"ds-z3-cpu-opt-zi1|ds-issue4527-cpu-opt", rule.deepspeed(rule.OPTIMIZER_THERE, 2**30, "host")),
    (r"ds-issue4527-cpu-all", rule.deepspeed(rule.ALL_THERE, 2**30, "host")),
    (r"ds-z3-cpu-all-zi0", Reason("the peak is that of initialisation: every process builds the whole fp32 model")),
    (r"ds-z2-doc-gpu", lambda m, i: rule.of(
        rule.spec(rule.ADAM + "precision { " + rule.MCORE["fp16p-fp16g"] + " }", use="zero1(N)", let="P", size="P"),
        rule.held, 2**30, i)),
    (r"ds-z2-offload-gpu", lambda m, i: rule.of(
        rule.spec(rule.MIXED, f"place * {{ {rule.OPTIMIZER_THERE} }}", use="zero2(N)", let="P", size="P"),
        rule.held, 2**30, i)),
    (r"zo-gpu-mem", lambda m, i: _saving(i)),
    (r"zo-min-pcie", rule.offloaded(rule.OPTIMIZER_THERE, lambda f: f.traffic.host)),
    (r"zo-split-pcie", rule.offloaded(rule.ALL_THERE, lambda f: f.traffic.host)),
    (r"zo-l2l-pcie", Reason("another system's way of training layer by layer, which is no placement")),
    (r"zi-params|zi-states", lambda m, i: rule.of(
        "mesh N\nlet nl, hd\nweights attn { size nl*4*hd*hd, layers nl }\nweights mlp { size nl*2*hd*(4*hd), layers nl }\n"
        + rule.ADAM + "precision { " + rule.MCORE["fp16p-fp16g"] + " }\nuse data_parallel(N)\n",
        (lambda f: f.parameters) if m[0] == "zi-params" else rule.held)),
    (r"zi-mswm", lambda m, i: rule.of(
        "mesh N\nlet hd\nweights linear { size hd*(4*hd) }\n" + rule.MIXED + "use zero3(N)\n",
        lambda f: f.memory.peak - f.memory.held)),
    (r"zi-init-500B", lambda m, i: rule.of(
        rule.spec("precision { params fp16 }", mesh="g", use="data_parallel(g)", let="P", size="P"),
        lambda f: f.memory.state("params") * sympy.Symbol("g"), 1000, i)),
    (r"zi-ait-.*", Reason("floating-point operations per byte: compute is not derived")),
    # models and stages
    (r"mg-params-.*", rule.gpt),
    (r"kr-fig1-\w+-states", rule.gpt_states),
    (r"la-175B-grad", lambda m, i: rule.of(
        "mesh N\nlet L, h\nweights attn { size 4*h*h*L, layers L }\nweights mlp { size 2*h*(4*h)*L, layers L }\n"
        + rule.MIXED + "use zero3(N)\n", rule.state("gradients"), at={k: i[k] for k in ("L", "h", "N")})),
    (r"us-8B-params", rule.llama("params")),
    (r"us-8B-opt", rule.llama("optimizer")),
    (r"us-70B-tp1", rule.llama("params")),
    (r"us-70B-tp\d+|us-8B-tp2-params", rule.sharded_by),
    (r"us-8B-pp8-stage0-params", rule.llama("params", "p", "pipeline(p)", "first", 8)),
    (r"us-params-fp32-delta-pos", rule.positions),
    (r"mcore-moe-golden", rule.experts("moe")),
    (r"mcore-moe-golden-buckets", rule.experts("moe", bucket=True)),
    (r"mcore-latent-moe-golden", rule.experts("latent")),
    # pipelines
    (r"mg-bubble(?:-num-p4-m8-v1)?", rule.pipeline("1f1b", rule.bubble)),
    (r"mg-bubble-int|mg-bubble-num-p4-m8-v2", rule.pipeline("interleaved_1f1b", rule.bubble, "v")),
    (r"mg-bubble-wall", rule.pipeline("1f1b", lambda f: sympy.cancel(rule.bubble(f) / (1 + rule.bubble(f))))),
    (r"mg-bubble-dp", rule.data_parallel_bubble),
    (r"mg-inflight-1f1b", rule.pipeline("1f1b", lambda f: f.in_flight["first"])),
    (r"mg-inflight-gpipe", rule.pipeline("gpipe", lambda f: f.in_flight["first"])),
    (r"act-interleave", rule.pipeline("interleaved_1f1b", rule.chunked, "v")),
    # what is not derived
    (r"act-sel-flops-.*|mg-ckpt-opt", Reason("about compute, or a choice by a formula of one's own, not about a placement")),
    *published_layers.RULES,
    (r"zero-gpt2-act|zi-awm", Reason("counts another set of tensors than the operations of a layer keep")),
    (r"zero-Pa-overhead", Reason("activations cut over the tensor-parallel axis and gathered again are not derived")),
    (r"diloco-.*", Reason("several optimizer steps between two reductions: not the training of one device")),
    (r"fj-80pct|pith-.*", Reason("a rule of thumb or another estimator against a measurement: nothing to derive")),
]  # fmt: skip


def _mixed_units(inputs: Mapping[str, Any]) -> Derived:
    """Linear in both widths, so three pairs of dtypes settle the formula."""
    full, low = sympy.symbols("Kfull Klow")
    a, b, c = (
        rule.fsdp_params(f"params {one}, compute {two}")(None, inputs)  # type: ignore[arg-type]
        for one, two in (("fp32", "bf16"), ("fp64", "bf16"), ("fp32", "int8"))
    )
    by_full = (b.value - a.value) / 4
    by_low = a.value - c.value
    rest = sympy.expand(a.value - 4 * by_full - 2 * by_low)
    return Derived(a.spec, full * by_full + low * by_low + rest, inputs)


def _saving(inputs: Mapping[str, Any]) -> Derived:
    there = rule.offloaded(rule.OPTIMIZER_THERE, rule.held)(None, {})  # type: ignore[arg-type]
    plain = rule.cost(rule.spec(rule.MIXED, let="M", size="M"))
    return Derived(there.spec, sympy.cancel(rule.held(plain) / there.value), {})


class Outcome(Struct, frozen=True):
    """`derived`: the value, as text; `matched` None: no rule, for the `reason`."""

    row: Mapping[str, Any]
    derived: str
    difference: str
    matched: bool | None
    reason: str = ""


def derive(row: Mapping[str, Any]) -> Outcome:
    """One row, derived and compared."""
    for pattern, make in RULES:
        match = re.fullmatch(pattern, row["id"])
        if match is None:
            continue
        if isinstance(make, Reason):
            return Outcome(row, "", "", None, make.text)
        found = make(match, row["inputs"])
        return _compare(row, found)
    return Outcome(row, "", "", None, "no rule for it")


def _compare(row: Mapping[str, Any], found: Derived) -> Outcome:
    sizes = {
        sympy.Symbol(name): sympy.nsimplify(value, rational=True)
        for name, value in found.at.items()
        if not isinstance(value, str)
    }
    value = found.value.subs(sizes)
    expected, tolerance, kind = row["expected"], row["tolerance"], row["tolerance_kind"]
    if kind == "symbolic":
        names = {
            one: sympy.Symbol(one) for one in re.findall(r"[A-Za-z_]\w*", str(expected)) if one not in ("Min", "sqrt")
        }
        difference = sympy.simplify(value - sympy.sympify(expected, locals=names).subs(sizes))
        return Outcome(row, str(value), str(difference), difference == 0)
    number = float(value)
    difference = number - expected
    if kind == "upper_bound":
        return Outcome(row, f"{number:.6g}", f"{difference:.3g}", number >= expected)
    allowed = tolerance * abs(expected) if kind == "rel" else tolerance
    return Outcome(
        row, f"{number:.10g}", f"{difference:.3g}", abs(difference) <= allowed + 1e-9 * max(1, abs(expected))
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, default=ROWS)
    parser.add_argument("--failed", action="store_true")
    arguments = parser.parse_args()
    outcomes = [derive(row) for row in json.loads(arguments.cases.read_text(encoding="utf-8"))]
    width = max(len(one.row["id"]) for one in outcomes)
    for one in outcomes:
        if arguments.failed and one.matched:
            continue
        told = "matched" if one.matched else "DIFFERS" if one.matched is False else f"not derived: {one.reason}"
        print(
            f"{one.row['id'].ljust(width)}  {one.row['expected']!s:>24}  {one.derived:>24}  {one.difference:>10}  {told}"
        )
    matched = sum(one.matched is True for one in outcomes)
    wrong = sum(one.matched is False for one in outcomes)
    print(f"{matched} of {len(outcomes)} rows matched, {wrong} differ, {len(outcomes) - matched - wrong} not derived")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
