"""nanotron's YAML as a spec. Runtime: placelogic/std/frameworks/nanotron_*.place, with their sources."""

from __future__ import annotations

from placelogic.files import whole
from placelogic.frontends.config import Config, Setting
from placelogic.frontends.draft import Draft
from placelogic.frontends.optimizers import optimizer
from placelogic.frontends.request import Request
from placelogic.frontends.values import Value
from placelogic.problem import Problem, SpecError

VERSIONS = ("0.4", "0.5")
"""The first and the last that the strategies were compared with."""


def config(root: Value, path: str, request: Request) -> Config:
    """The file as this importer reads it."""
    if root.at("parallelism") is None:
        raise SpecError(Problem("PL507", "this is no nanotron configuration: it has no `parallelism`", whole(path)))
    return Config(path, root)


def draft(config: Config, request: Request) -> tuple[Draft, dict[str, object]]:
    """The spec of a nanotron configuration, and what it amounts to."""
    spec = Draft()
    dp, tp, pp, cp, ep = (
        config.get(f"parallelism.{name}", int, 1, least=1)
        for name in ("dp", "tp", "pp", "context_parallel_size", "expert_parallel_size")
    )
    _world(config, request, dp, tp, pp, cp, ep)
    for name, size in (("dp", dp), ("cp", cp), ("ep", ep), ("tp", tp), ("pp", pp)):
        if name == "dp" or size.value > 1:
            spec.axis(name, size.value, size)
    steps = config.get("tokens.batch_accumulation_per_replica", int, 1, least=1)
    spec.add("work", f"microbatches {steps.value}", steps)
    zero = config.get("optimizer.zero_stage", int, 0)
    if zero.value not in (0, 1):
        raise config.wrong(
            "PL501", zero, f"`optimizer.zero_stage` is 0 or 1, not {zero.value}", "nanotron has no other stages"
        )
    spec.add("use", f"use nanotron_{'zero1' if zero.value else 'ddp'}(dp)", zero)
    if cp.value > 1:
        spec.add("use", "use nanotron_context_parallel(cp)", cp)
    mode = config.get("parallelism.tp_mode", str, "ALL_REDUCE")
    if mode.value.upper() not in ("ALL_REDUCE", "REDUCE_SCATTER"):
        raise config.wrong("PL501", mode, f"`parallelism.tp_mode` is ALL_REDUCE or REDUCE_SCATTER, not `{mode.value}`")
    if tp.value > 1:
        spec.add("use", f"use nanotron_{mode.value.lower()}(tp)", tp, mode)
    if pp.value > 1:
        engine = config.get("parallelism.pp_engine", str, "1f1b")
        schedules = {"1f1b": "1f1b", "afab": "gpipe"}
        if engine.value not in schedules:
            raise config.wrong("PL501", engine, f"`parallelism.pp_engine` is 1f1b or afab, not `{engine.value}`")
        spec.add("use", f"use pipeline(pp, schedule = {schedules[engine.value]})", pp, engine)
    _weights(config, spec, pp, ep)
    _optimizer(config, spec)
    heads, groups = (
        config.get(f"model.model_config.{name}", int, None) for name in ("num_attention_heads", "num_key_value_heads")
    )
    config.use("model.model_config.*")
    facts: dict[str, object] = {
        "tensor_parallel": tp.value, "pipeline": pp.value, "context_parallel": cp.value, "expert_parallel": ep.value,
        "heads": heads.value, "groups": groups.value, "microbatches": steps.value, "stages_less_one": pp.value - 1,
        "all_reduce": mode.value.upper() == "ALL_REDUCE", "zero_stage": zero.value,
        "async_communication": config.get("parallelism.tp_linear_async_communication", bool, False).value,
    }  # fmt: skip
    return spec, facts


def _world(config: Config, request: Request, *sizes: Setting) -> None:
    product = 1
    for size in sizes:
        product *= size.value
    if request.world is not None and request.world != product:
        raise config.wrong("PL504", sizes[0], f"{request.world} devices are not the product {product} of the parallel sizes",
                           "nanotron asserts that they are")  # fmt: skip


def _weights(config: Config, spec: Draft, pp: Setting, ep: Setting) -> None:
    model = "model.model_config"
    names = {"layers": "num_hidden_layers", "hidden": "hidden_size", "ffn": "intermediate_size", "vocab": "vocab_size",
             "heads": "num_attention_heads"}  # fmt: skip
    for name, key in names.items():
        size = config.get(f"{model}.{key}", int, None, least=1)
        spec.let(name, size.value, size)
    groups = config.get(f"{model}.num_key_value_heads", int, None, least=1)
    kv = spec.let("groups", groups.value, groups) if groups.given else "heads"
    tied = config.get(f"{model}.tie_word_embeddings", bool, False)
    pipe = pp.value > 1
    ends = (", used on first and last" if tied.value else ", used on first") if pipe else ""
    spec.add("weights", f"weights embed {{ size vocab*hidden, kind embedding{ends} }}", tied)
    if tied.value and pipe:
        spec.add("step", "sync embed over pp by sum", "trainer.py: tied embeddings, ReduceOp.SUM")
    spec.add(
        "weights",
        f"weights attn {{ size layers*(2*hidden*hidden + 2*hidden*hidden*{kv}/heads), layers layers, dims in out, kind matrix }}",
    )
    experts = config.get(f"{model}.moe_num_experts", int, 0)
    if experts.value:
        spec.let("experts", experts.value, experts)
        routed = ", routed over ep" if ep.value > 1 else ""
        spec.add(
            "weights",
            f"weights expert {{ size layers*experts*3*hidden*ffn, layers layers, kind expert{routed} }}",
            experts,
        )
        spec.add("weights", "weights router { size layers*experts*hidden, layers layers, kind router }")
        if ep.value > 1:
            spec.add("use", "use nanotron_experts(ep)", ep)
    else:
        if ep.value > 1:
            raise config.wrong("PL504", ep, "expert parallelism without experts", f"give `{model}.moe_num_experts`")
        spec.add("weights", "weights mlp { size layers*3*hidden*ffn, layers layers, dims in out, kind matrix }")
    spec.add("weights", "weights norm { size layers*2*hidden, layers layers, kind vector }")
    spec.add("weights", f"weights final_norm {{ size hidden, kind vector{', used on last' if pipe else ''} }}")
    if not tied.value:
        spec.add(
            "weights", f"weights head {{ size vocab*hidden, kind embedding{', used on last' if pipe else ''} }}", tied
        )


def _optimizer(config: Config, spec: Draft) -> None:
    name = config.get("optimizer.optimizer_factory.name", str, "adamW")
    spec.add("optimizer", f"optimizer {optimizer(name)}", name)
    clip = config.get("optimizer.clip_grad", float, None)
    if clip.given and clip.value > 0:
        spec.add("optimizer", "clip global_norm", clip)
    dtype = config.get("model.dtype", str, "float32")
    low = {"bfloat16": "bf16", "float16": "fp16", "float32": None, "float64": None}.get(dtype.value, "?")
    if low == "?":
        raise config.wrong("PL503", dtype, f"the dtype `{dtype.value}` is not known here")
    full = config.get("optimizer.accumulate_grad_in_fp32", bool, False)
    if low:
        master = ", master fp32" if full.value else ""
        spec.add(
            "optimizer",
            f"precision {{ params {low}, compute {low}, gradients {'fp32' if full.value else low}{master}, moments fp32 }}",
            dtype,
            full,
        )
