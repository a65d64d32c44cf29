"""accelerate's YAML as a spec: DDP, FSDP, DeepSpeed, and the parallelism of `parallelism_config`.

The loss is that of a script which gives accelerate the mean of a micro-batch; `--set trainer=hf` says that the Hugging
Face Trainer runs on it instead."""

from __future__ import annotations

from msgspec.structs import replace

from placelogic.files import whole
from placelogic.frontends.config import Config, Setting
from placelogic.frontends.draft import Draft
from placelogic.frontends.groups import unknown_model
from placelogic.frontends.request import Request
from placelogic.frontends.through_deepspeed import section, through_deepspeed
from placelogic.frontends.torch_parallel import Shape, strategy_of, write_parallel
from placelogic.frontends.trainer import trainer_loss
from placelogic.frontends.values import Value
from placelogic.problem import Problem, SpecError

VERSIONS = ("0.20", "1.13")
"""The first and the last that the strategies were compared with."""

KINDS = (
    "NO",
    "MULTI_GPU",
    "MULTI_CPU",
    "FSDP",
    "DEEPSPEED",
    "MEGATRON_LM",
    "TPU",
    "XLA",
    "MULTI_NPU",
    "MULTI_XPU",
    "MULTI_MLU",
    "MULTI_HPU",
)


def config(root: Value, path: str, request: Request) -> Config:
    """The file as this importer reads it."""
    names = (
        "distributed_type",
        "fsdp_config",
        "deepspeed_config",
        "parallelism_config",
        "num_processes",
        "use_cpu",
        "mixed_precision",
    )
    if not any(root.at(name) for name in names):
        raise SpecError(
            Problem("PL507", "this is no accelerate configuration: it has none of its settings", whole(path))
        )
    return Config(path, root)


def draft(config: Config, request: Request) -> tuple[Draft, dict[str, object]]:
    """The spec of an accelerate configuration, and what it amounts to."""
    kind = config.get("distributed_type", object, "NO")
    kind = replace(kind, value="NO" if kind.value is False else str(kind.value))  # YAML reads NO as false
    if kind.value.upper() not in KINDS:
        raise config.wrong("PL501", kind, f"`distributed_type` is one of {', '.join(KINDS)}, not `{kind.value}`")
    world = _world(config, request)
    if kind.value.upper() == "DEEPSPEED":
        return _deepspeed(config, request, world)
    if kind.value.upper() in ("MEGATRON_LM", "TPU", "XLA"):
        raise config.wrong(
            "PL503",
            kind,
            f"`distributed_type` {kind.value} is not imported",
            "import the settings of that framework by themselves",
        )
    spec = Draft()
    shape = _shape(config, kind, world)
    steps = config.get("gradient_accumulation_steps", int, None, least=1)
    axes = write_parallel(config, spec, shape, steps)
    trainer_loss(config, spec, axes, shape.tp, request)
    unknown_model(spec)
    spec.add("optimizer", "optimizer adamw", "the optimizer is not in the file: one that acts on each element")
    clip = config.get("gradient_clipping", float, None)
    if clip.given and clip.value > 0:
        spec.add("optimizer", "clip global_norm", clip)
    _precision(config, spec, shape)
    return spec, facts_of(shape) | {"sp": config.get("parallelism_config.parallelism_config_sp_size", int, 1).value}


def facts_of(shape: Shape) -> dict[str, object]:
    """Facts for the table of combinations that accelerate refuses."""
    return {
        "fsdp": bool(shape.fsdp.value), "fsdp_version": shape.version, "cp": shape.cp.value, "tp": shape.tp.value,
        "replicate": shape.replicate.value, "shard": shape.shard.value if shape.shard.given else None,
    }  # fmt: skip


def _world(config: Config, request: Request) -> int | None:
    processes = config.get("num_processes", int, None, least=1)
    return request.world if request.world is not None else processes.value


def _shape(config: Config, kind: Setting, world: int | None) -> Shape:
    def size(name: str) -> Setting:
        prefixed = f"parallelism_config.parallelism_config_{name}"
        return config.get(prefixed, int, 1, also=[f"parallelism_config.{name}"], least=1)

    sp = size("sp_size")
    if sp.value > 1:
        raise config.wrong(
            "PL503", sp, "sequence parallelism runs on DeepSpeed there", "set `distributed_type: DEEPSPEED`"
        )
    fsdp = Setting(kind.name, kind.value.upper() == "FSDP", kind.given, kind.span)
    version = config.get("fsdp_config.fsdp_version", int, 1)
    if version.value not in (1, 2):
        raise config.wrong("PL501", version, f"`fsdp_version` is 1 or 2, not {version.value}")
    strategy = strategy_of(config, config.get("fsdp_config.fsdp_sharding_strategy", object, "FULL_SHARD"))
    again = config.get("fsdp_config.fsdp_reshard_after_forward", object, True)
    keep = again.value in (False, "false", "SHARD_GRAD_OP", "NO_SHARD") if version.value == 2 else strategy == "zero2"
    offload = config.get("fsdp_config.fsdp_offload_params", bool, False)
    return Shape(size("dp_shard_size"), size("dp_replicate_size"), size("cp_size"), size("tp_size"), fsdp, version.value, strategy, keep,
                 offload, world)  # fmt: skip


def _precision(config: Config, spec: Draft, shape: Shape) -> None:
    mixed = config.get("mixed_precision", str, "no")
    low = {"bf16": "bf16", "fp16": "fp16", "fp8": "bf16", "no": None}.get(mixed.value.lower(), "?")
    if low == "?":
        raise config.wrong("PL501", mixed, f"`mixed_precision` is no, fp16, bf16 or fp8, not `{mixed.value}`")
    if low:
        spec.add("optimizer", f"precision {{ params fp32, compute {low}, gradients fp32, moments fp32 }}", mixed)


def _deepspeed(config: Config, request: Request, world: int | None) -> tuple[Draft, dict[str, object]]:
    request = Request(world, request.given, None, request.tokens)
    given = "deepspeed_config"
    names = {"zero_stage": "zero_optimization.stage", "gradient_accumulation_steps": "gradient_accumulation_steps",
             "gradient_clipping": "gradient_clipping", "offload_optimizer_device": "zero_optimization.offload_optimizer.device",
             "offload_param_device": "zero_optimization.offload_param.device"}  # fmt: skip
    more = {}
    for name, target in names.items():
        value = config.root.find(f"{given}.{name}")
        config.used.add(f"{given}.{name}")
        if value is not None:
            more[target] = value
    mixed = config.get("mixed_precision", str, "no")
    if mixed.value in ("bf16", "fp16"):
        more[f"{mixed.value}.enabled"] = Value(True, mixed.span)
    sp = config.root.find("parallelism_config.parallelism_config_sp_size")
    if sp is not None:
        more["sequence_parallel_size"] = sp
    trainer = config.get("trainer", str, "own")
    more["trainer"] = Value(trainer.value, trainer.span)
    file = config.get(f"{given}.deepspeed_config_file", str)
    return through_deepspeed(config, request, file, more) if file.given else section(config, request, more)
