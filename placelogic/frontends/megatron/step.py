"""What a Megatron-LM step does: where states lie, how gradients are scaled and summed, the optimizer."""

from __future__ import annotations

from placelogic.frontends.config import Config, Setting
from placelogic.frontends.draft import Draft
from placelogic.frontends.megatron.sizes import ModelSizes
from placelogic.frontends.optimizers import optimizer
from placelogic.frontends.ranks import Mesh
from placelogic.frontends.request import Request
from placelogic.frontends.versions import before

LOCAL_COUNTS = "0.13"
"""From here on each context parallel device divides by its own tokens; before, by those of the whole sequence."""

FSDP_STATES = {
    "no_shard": "params replicated, optimizer replicated, gradients replicated",
    "optim": "params replicated, optimizer sharded, gradients replicated",
    "optim_grads": "params replicated, optimizer sharded, gradients sharded",
    "optim_grads_params": "params gathered, optimizer sharded, gradients sharded",
}


def write_step(config: Config, spec: Draft, sizes: ModelSizes, mesh: Mesh, request: Request) -> None:
    """Everything but the mesh and the weights."""
    _batch(config, spec, sizes)
    torch_fsdp = config.get("use-torch-fsdp2", bool, False)
    runtime = _scaling(config, spec, sizes, mesh, request, torch_fsdp)
    if not torch_fsdp.value:
        _states(config, spec, sizes, mesh)
    _model_parallel(config, spec, sizes)
    if sizes.experts.value:
        _expert_step(config, spec, sizes, mesh, runtime)
    _optimizer(config, spec, sizes, mesh)


def _batch(config: Config, spec: Draft, sizes: ModelSizes) -> None:
    total = config.get("global-batch-size", int, None, least=1)
    micro = config.get("micro-batch-size", int, None, least=1)
    ramp = next((one for one in ("rampup-batch-size", "step-batch-size-schedule") if config.root.find(one)), None)
    config.use("rampup-batch-size", "step-batch-size-schedule")
    if total.given and micro.given and ramp is None:
        dp = sizes.dp
        if total.value % (micro.value * (dp or 1)):
            raise config.wrong("PL504", total, f"the global batch of {total.value} is not a multiple of the micro-batch {micro.value}"
                               + (f" times {dp} data-parallel devices" if dp else ""),
                               "Megatron-LM asserts that it is")  # fmt: skip
        if dp:
            spec.add("work", f"microbatches {total.value // (micro.value * dp)}", total)
            return
        spec.let("M", None)
        spec.add("work", "microbatches M")
        spec.add("assume", f"assume {'' if micro.value == 1 else f'{micro.value}*'}M*dp == {total.value}", total, micro)
    else:
        spec.let("M", None)
        spec.add("work", "microbatches M", f"{ramp}: the batch changes" if ramp else "the batch is not in the file")
    group = config.get(
        "microbatch-group-size-per-virtual-pipeline-stage", int, None, also=["microbatch-group-size-per-vp-stage"]
    )
    if sizes.chunks != 1 and not group.given:
        spec.add("assume", "assume M % pp == 0", "the interleaved schedule needs it")


def _scaling(config: Config, spec: Draft, sizes: ModelSizes, mesh: Mesh, request: Request, torch_fsdp: Setting) -> str:
    """How losses and gradients are scaled; returns the name of the runtime strategy."""
    per_token = config.get("calculate-per-token-loss", bool, False)
    average = config.get("ddp-average-in-collective", bool, False)
    has_cp = sizes.cp.value > 1
    if torch_fsdp.value:
        if per_token.value or average.value:
            raise config.wrong(
                "PL503", per_token if per_token.value else average, "this is not modelled with --use-torch-fsdp2"
            )
        if sizes.experts.value and sizes.ep.value > 1:
            raise config.wrong(
                "PL503", torch_fsdp, "torch FSDP2 with expert parallelism is refused by Megatron-LM, and not modelled"
            )
        reshard = config.get("torch-fsdp2-no-reshard-after-forward", bool, False)
        spec.add(
            "use",
            f"use megatron_torch_fsdp2({'cp*' if has_cp else ''}dp{', reshard_after_forward = false' if reshard.value else ''})",
            torch_fsdp,
        )
        spec.add("work", "batch over dp")
        if has_cp:
            spec.add("work", "sequence over cp", sizes.cp)
        if (cut := config.get("use-distributed-optimizer", bool, False)).value:
            spec.add("state", f"place * over {'*'.join(mesh.names(dense='dp') + mesh.names(dense='cp'))} "
                     "{ params replicated, optimizer sharded on flat, gradients replicated }", cut)  # fmt: skip
        return "megatron_torch_fsdp2"
    name, why = "megatron_ddp", ""
    if per_token.value and average.value:
        raise config.wrong("PL504", average, "averaging in the collective and a loss per token would divide twice",
                           "Megatron-LM asserts it too")  # fmt: skip
    if per_token.value:
        name, why = "megatron_ddp_per_token", per_token.origin
    elif average.value:
        name, why = "megatron_ddp_average", average.origin
    spec.add("use", f"use {name}(dp)", why)
    if has_cp:
        spec.add("use", f"use {name}_context(cp)", sizes.cp)
        if not per_token.value and before(request.version, LOCAL_COUNTS):
            spec.add(
                "step",
                "loss mean over cp",
                f"before core {LOCAL_COUNTS}: tokens are counted over the whole sequence ...",
            )
            spec.add("step", "scale * by cp", "... and the loss is multiplied by the context parallel size")
    return name


def _states(config: Config, spec: Draft, sizes: ModelSizes, mesh: Mesh) -> None:
    """Where the states of what is no expert lie along data and context parallel devices."""
    cut = config.get("use-distributed-optimizer", bool, False)
    fsdp = config.get("use-megatron-fsdp", bool, False, also=["use-custom-fsdp"])
    axes = mesh.names(dense="dp") + mesh.names(dense="cp")
    inner = mesh.inner(axes)
    if fsdp.value:
        kind = config.get("data-parallel-sharding-strategy", str, "no_shard")
        states = FSDP_STATES.get(kind.value)
        if states is None:
            raise config.wrong("PL501", kind, f"`{kind.name}` is one of {', '.join(FSDP_STATES)}, not `{kind.value}`")
        outer = config.get("outer-dp-sharding-strategy", str, "no_shard")
        if outer.value not in ("no_shard",):
            raise config.wrong("PL503", outer, "sharding over outer data parallelism is not modelled")
        spec.add("state", f"place * over {'*'.join(inner)} {{ {states} }}", fsdp, kind)
    elif cut.value or _layer_wise(config):
        spec.add(
            "state",
            f"place * over {'*'.join(inner)} {{ params replicated, optimizer sharded on {_cut(config)}, gradients replicated }}",
            cut,
        )
        if _cut(config) == "flat":
            spec.add("state", f"place embedding over {'*'.join(inner)} {{ optimizer sharded }}",
                     "shared embeddings have a bucket of their own (param_and_grad_buffer.py), cut alike on both ends")  # fmt: skip
    else:
        inner = axes
        spec.add(
            "state",
            f"place * over {'*'.join(axes)} {{ params replicated, optimizer replicated, gradients replicated }}",
            cut,
        )
    if inner != axes:
        spec.add(
            "state",
            f"place * over {mesh.outer} {{ params replicated, optimizer replicated, gradients replicated }}",
            sizes.instances,
        )


def _layer_wise(config: Config) -> bool:
    """Whether optimizers of whole matrices are dealt out: validate_args turns the distributed optimizer into the
    layer-wise one for every optimizer but Adam and SGD."""
    name = str(config.get("optimizer", str, "adam").value)
    cut = config.get("use-distributed-optimizer", bool, False).value
    return name.startswith("dist_") or bool(cut and name not in ("adam", "sgd"))


def _cut(config: Config) -> str:
    """What the distributed optimizer cuts: one flat buffer, or whole tensors for the layer-wise one."""
    return "param" if _layer_wise(config) else "flat"


def _model_parallel(config: Config, spec: Draft, sizes: ModelSizes) -> None:
    if sizes.tp.value > 1:
        wanted = config.get("sequence-parallel", bool, False)
        spec.add("use", f"use megatron_{'sequence' if sizes.sp else 'tensor'}_parallel(tp)", sizes.tp, wanted)
    else:
        config.get("sequence-parallel", bool, False)
    if sizes.pp.value > 1:
        if sizes.chunks == 1:
            spec.add("use", "use pipeline(pp)", sizes.pp)
        else:
            spec.add(
                "use",
                f"use pipeline(pp, schedule = interleaved_1f1b, chunks = {sizes.chunks})",
                sizes.pp,
                sizes.chunks_from,
            )


def _expert_step(config: Config, spec: Draft, sizes: ModelSizes, mesh: Mesh, runtime: str) -> None:
    """Experts along each axis, by its two roles."""
    cut = config.get("use-distributed-optimizer", bool, False).value or _layer_wise(config)
    fsdp = config.get("use-megatron-fsdp", bool, False, also=["use-custom-fsdp"]).value
    whole = "params replicated, optimizer replicated, gradients replicated"
    states = FSDP_STATES[config.get("data-parallel-sharding-strategy", str, "no_shard").value] if fsdp else (
        f"params replicated, optimizer sharded on {_cut(config)}, gradients replicated" if cut else whole)  # fmt: skip
    tokens = ", activations sharded on sequence" if sizes.sp else ""
    replicas = []
    for atom in mesh.atoms:
        in_tp = atom.dense == "tp"
        if atom.expert == "edp":
            replicas.append(atom.name)
            if in_tp and tokens:
                spec.add(
                    "state",
                    f"place expert over {atom.name} {{ {tokens.removeprefix(', ')} }}",
                    "tokens are split over tp",
                )
        elif atom.expert == "ep" or not in_tp:
            spec.add("state", f"place expert over {atom.name} {{ params sharded, optimizer sharded, gradients sharded{tokens if in_tp else ''} }}",
                     sizes.ep if atom.expert == "ep" else sizes.etp)  # fmt: skip
            if not in_tp:
                spec.add("step", f"sync expert over {atom.name} by sum", "tokens are routed, and nobody divides")
        elif len(mesh.names(dense="tp")) > 1:
            spec.add(
                "state",
                f"place expert over {atom.name} {{ params sharded, optimizer sharded, gradients sharded }}",
                sizes.etp,
            )
    shards = mesh.inner(replicas)
    if shards:
        spec.add("state", f"place expert over {'*'.join(shards)} {{ {states} }}")
    if mesh.outer in replicas:
        spec.add("state", f"place expert over {mesh.outer} {{ {whole} }}")
    work = [name for name in replicas if name not in mesh.names(dense="tp")]
    if work:
        mean = runtime == "megatron_ddp_average"
        spec.add(
            "step",
            f"sync expert over {', '.join(work)} by {'mean' if mean else 'sum'}",
            "the expert data-parallel group",
        )
    if runtime == "megatron_ddp_average":
        sized = "*".join(work) or "1"
        spec.add("step", f"scale expert by ({sized})/(dp{'*cp' if sizes.cp.value > 1 else ''})",
                 "distributed_data_parallel.py: expert_gradient_scaling_factor")  # fmt: skip


def _optimizer(config: Config, spec: Draft, sizes: ModelSizes, mesh: Mesh) -> None:
    kind = config.get("optimizer", str, "adam")
    name = optimizer(kind)
    if name == "muon":
        experts = ", expert, router" if sizes.experts.value else ""
        spec.add("optimizer", f"optimizer muon for matrix{experts}", kind)
        spec.add("optimizer", "optimizer adam for vector, embedding", "Muon is for matrices (optimizer/__init__.py)")
    else:
        spec.add("optimizer", f"optimizer {name}", kind)
    clip = config.get("clip-grad", float, 1.0)
    if clip.value > 0:
        spec.add("optimizer", "clip global_norm", clip)
    bf16, fp16 = config.get("bf16", bool, False), config.get("fp16", bool, False)
    if bf16.value and fp16.value:
        raise config.wrong("PL504", fp16, "--bf16 and --fp16 exclude each other", "Megatron-LM asserts it too")
    low = "bf16" if bf16.value else "fp16" if fp16.value else None
    full = config.get("accumulate-allreduce-grads-in-fp32", bool, False)
    reduced = config.get("grad-reduce-in-bf16", bool, False)
    if low:
        gradients = low if reduced.value or (low == "fp16" and not full.value) else "fp32"
        spec.add(
            "optimizer",
            f"precision {{ params {low}, compute {low}, gradients {gradients}, master fp32, moments fp32 }}",
            bf16 if bf16.value else fp16,
        )
