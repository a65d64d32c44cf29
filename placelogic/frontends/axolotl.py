"""axolotl's YAML as a spec: DDP, FSDP, DeepSpeed, tensor and context parallelism, LoRA.

axolotl runs on the Hugging Face Trainer and on accelerate. From 0.17 on it tells the Trainer that the model counts no
tokens, so losses are means of micro-batches (axolotl 0.18, src/axolotl/core/trainers/base.py: model_accepts_loss_kwargs
is switched off unless the model's forward names num_items_in_batch; core/builders/base.py: average_tokens_across_devices
is off)."""

from __future__ import annotations

from placelogic.files import whole
from placelogic.frontends.accelerate import facts_of
from placelogic.frontends.config import Config, Setting
from placelogic.frontends.draft import Draft
from placelogic.frontends.groups import trained_beside, unknown_model
from placelogic.frontends.optimizers import optimizer
from placelogic.frontends.request import Request
from placelogic.frontends.through_deepspeed import through_deepspeed
from placelogic.frontends.torch_parallel import Shape, strategy_of, write_parallel
from placelogic.frontends.values import Value
from placelogic.frontends.versions import before
from placelogic.problem import Problem, SpecError
from placelogic.report.diagnostic import Finding

VERSIONS = ("0.9", "0.18")
"""The first and the last that the strategies were compared with."""

PER_MICROBATCH = "0.17"
"""From here on losses are means of micro-batches whatever the model counts; before, of a device's tokens of a step."""


def config(root: Value, path: str, request: Request) -> Config:
    """The file as this importer reads it."""
    if root.at("base_model") is None and root.at("micro_batch_size") is None:
        raise SpecError(Problem("PL507", "this is no axolotl configuration: it has no `base_model`", whole(path)))
    return Config(path, root, auto=("auto",))


def draft(config: Config, request: Request) -> tuple[Draft, dict[str, object]]:
    """The spec of an axolotl configuration, and what it amounts to."""
    steps = config.get("gradient_accumulation_steps", int, 1, least=1)
    ds = config.get("deepspeed", str, None)
    if ds.given and ds.value:
        spec, facts = _deepspeed(config, request, ds, steps)
    else:
        spec = Draft()
        shape = _shape(config, request.world)
        write_parallel(config, spec, shape, Setting(steps.name, steps.value, True, steps.span))
        if before(request.version, PER_MICROBATCH):
            if shape.tp.value > 1 or shape.cp.value > 1:
                raise config.wrong("PL503", shape.tp if shape.tp.value > 1 else shape.cp,
                                   f"how axolotl before {PER_MICROBATCH} divides the loss with this is not modelled")  # fmt: skip
            spec.add("use", "use hf_trainer_loss_per_device()", f"axolotl before {PER_MICROBATCH}")
        else:
            spec.add("use", "use hf_trainer_loss_per_microbatch()", "the model is taken to count no tokens")
        facts = facts_of(shape)
        unknown_model(spec)
        _weights(config, spec)
        _optimizer(config, spec, shape)
        _precision(config, spec)
    facts |= {"rl": str(config.peek("rl", str, "")).lower(), "workers": config.peek("dataloader_num_workers", int, 0),
              "optimizer": str(config.peek("optimizer", str, "adamw_torch")), "deepspeed": bool(ds.value),
              "ddp_parallel": not facts.get("fsdp") and not ds.value,
              "flash": bool(config.peek("flash_attention", bool, False))
              or "flash" in str(config.peek("attn_implementation", object, ""))}  # fmt: skip
    if (packed := config.get("sample_packing", bool, False)).value and request.tokens is None:
        spec.findings.append(
            Finding(
                "NT25",
                "note",
                "packed samples have unlike numbers of loss tokens, which are taken as equal here",
                packed.span,
                help="`--tokens uneven` asks about that",
            )  # fmt: skip
        )
        spec.head.append(
            f"{packed.origin}: packed samples have unlike numbers of loss tokens; `--tokens uneven` asks about that."
        )
    return spec, facts


def _shape(config: Config, world: int | None) -> Shape:
    legacy = config.root.find("fsdp")
    config.used.add("fsdp")
    if legacy is not None and not isinstance(legacy.data, tuple | str | None):
        raise config.wrong("PL501", legacy, "`fsdp` must be a list of words", "the settings belong into `fsdp_config`")
    words = [str(one.data) for one in legacy.data] if legacy is not None and isinstance(legacy.data, tuple) else (
        str(legacy.data).split() if legacy is not None and isinstance(legacy.data, str) else [])  # fmt: skip
    section = config.root.find("fsdp_config")
    on = bool(words) or (section is not None and bool(section.data))
    span = section.span if section is not None else legacy.span if legacy is not None else whole(config.path)
    fsdp = Setting("fsdp_config" if section is not None else "fsdp", on, on, span)

    def part(name: str, kind: type, default: object) -> Setting:
        return config.get(f"fsdp_config.{name}", kind, default, also=[f"fsdp_config.fsdp_{name}"])

    version = config.get("fsdp_version", int, 1, also=["fsdp_config.fsdp_version", "fsdp_config.version"])
    if version.value not in (1, 2):
        raise config.wrong("PL501", version, f"`fsdp_version` is 1 or 2, not {version.value}")
    kinds = {
        "full_shard": "FULL_SHARD",
        "shard_grad_op": "SHARD_GRAD_OP",
        "hybrid_shard": "HYBRID_SHARD",
        "hybrid_shard_zero2": "HYBRID_SHARD_ZERO2",
    }
    named = next((kinds[word] for word in words if word in kinds), "FULL_SHARD")
    strategy = strategy_of(config, part("sharding_strategy", object, named))
    again = part("reshard_after_forward", bool, True)
    keep = not again.value if version.value == 2 else strategy == "zero2"
    offload = part("offload_params", bool, "offload" in words)
    size = {name: config.get(name, int, 1, also=also, least=1) for name, also in
            (("dp_shard_size", []), ("dp_replicate_size", []), ("context_parallel_size", ["sequence_parallel_degree"]), ("tensor_parallel_size", []))}  # fmt: skip
    shard, replicate = size["dp_shard_size"], size["dp_replicate_size"]
    return Shape(
        shard,
        replicate,
        size["context_parallel_size"],
        size["tensor_parallel_size"],
        fsdp,
        version.value,
        strategy,
        keep,
        offload,
        world,
    )


def _weights(config: Config, spec: Draft) -> None:
    """Freeze what is not trained, and declare the weights of an adapter. The model itself is there already."""
    adapter = config.get("adapter", str, None)
    some = config.get("unfrozen_parameters", list, None)
    if adapter.given and adapter.value:
        if adapter.value.lower() not in ("lora", "qlora", "dora", "llama-adapter"):
            raise config.wrong("PL503", adapter, f"the adapter `{adapter.value}` is not modelled")
        trained_beside(spec, adapter, "lora", "the matrices of the adapter")
    elif some.given and some.value.data:
        trained_beside(spec, some, "unfrozen", "what is trained")


def _optimizer(config: Config, spec: Draft, shape: Shape) -> None:
    kind = config.get("optimizer", str, "adamw_torch_fused")
    name = optimizer(kind)
    if name == "muon":
        spec.add("optimizer", "optimizer muon for matrix", kind)
        if shape.fsdp.value and shape.version == 2:
            config.problems.append(Problem("PL503", "Muon on shards collects whole matrices by itself, which is not modelled", kind.span,
                                           f"`--set {kind.name}=adamw_torch` checks the rest"))  # fmt: skip
        spec.add("optimizer", "optimizer adamw for vector, embedding", "Muon is for matrices")
    else:
        spec.add("optimizer", f"optimizer {name}", kind)
    clip = config.get("max_grad_norm", float, 1.0)
    if clip.value > 0:
        spec.add("optimizer", "clip global_norm", clip)


def _precision(config: Config, spec: Draft) -> None:
    bf16 = config.get("bf16", object, None, also=["bfloat16"])
    fp16 = config.get("fp16", object, None, also=["float16"])
    four = config.get("load_in_4bit", bool, False)
    eight = config.get("load_in_8bit", bool, False)
    base = "nf4" if four.value else "int8" if eight.value else None
    low = (
        "bf16"
        if bf16.value not in (None, False, "false", "")
        else "fp16"
        if fp16.value not in (None, False, "false", "")
        else None
    )
    if base and config.get("adapter", str, None).value:
        spec.add(
            "optimizer", f"precision linear {{ params {base}, compute {low or 'fp32'} }}", four if four.value else eight
        )
        spec.add(
            "optimizer",
            f"precision lora {{ params {low or 'fp32'}, compute {low or 'fp32'}, gradients {low or 'fp32'}, moments fp32 }}",
            bf16 if low == "bf16" else fp16,
        )
    elif low:
        spec.add(
            "optimizer",
            f"precision {{ params {low}, compute {low}, gradients {low}, moments {low} }}",
            bf16 if low == "bf16" else fp16,
        )


def _deepspeed(config: Config, request: Request, ds: Setting, steps: Setting) -> tuple[Draft, dict[str, object]]:
    cp = config.get("context_parallel_size", int, 1, also=["sequence_parallel_degree"], least=1)
    if cp.value > 1:
        raise config.wrong(
            "PL503", cp, "context parallelism with DeepSpeed is not modelled", "use FSDP, or leave it out"
        )
    kind = config.get("optimizer", str, "adamw_torch_fused")
    more = {
        "gradient_accumulation_steps": Value(steps.value, steps.span),
        "trainer": Value("own", ds.span),
        "optimizer.type": Value(kind.value, kind.span),
    }
    tp = config.get("tensor_parallel_size", int, 1, least=1)
    if tp.value > 1:
        more["tensor_parallel.autotp_size"] = Value(tp.value, tp.span)
    for low in ("bf16", "fp16"):
        if config.get(low, object, None).value not in (None, False, "false", ""):
            more[f"{low}.enabled"] = Value(True, config.get(low, object, None).span)
    config.use("fsdp", "load_in_4bit", "load_in_8bit", "max_grad_norm")
    spec, facts = through_deepspeed(config, Request(request.world, request.given, None, request.tokens), ds, more)
    _weights(config, spec)
    return spec, facts
