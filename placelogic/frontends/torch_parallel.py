"""Data, context and tensor parallelism of PyTorch as accelerate and axolotl set them up: DDP, FSDP 1 and 2, hybrid
sharding, a mesh with cp and tp. Runtime: placelogic/std/frameworks/torch_*.place, with their sources."""

from __future__ import annotations

from msgspec import Struct

from placelogic.files import whole
from placelogic.frontends.config import Config, Setting
from placelogic.frontends.draft import Draft
from placelogic.problem import Problem, SpecError

STRATEGIES = {
    "FULL_SHARD": "zero3",
    "SHARD_GRAD_OP": "zero2",
    "NO_SHARD": "ddp",
    "HYBRID_SHARD": "hybrid",
    "HYBRID_SHARD_ZERO2": "hybrid",
}
"""The sharding strategies of FSDP 1, also by their numbers 1 to 5."""


class Shape(Struct, frozen=True):
    """What splits the devices. `shard` is None where open; `fsdp` says whether there is any, with `version`
    1 or 2; `keep`: parameters stay gathered between the passes."""

    shard: Setting
    replicate: Setting
    cp: Setting
    tp: Setting
    fsdp: Setting
    version: int
    strategy: str
    keep: bool
    offload: Setting
    world: int | None

    def data(self) -> int | None:
        """The number of data-parallel devices, None where open."""
        if self.world is None:
            return self.shard.value * self.replicate.value if self.shard.given else None
        return self.world // (self.cp.value * self.tp.value)


def strategy_of(config: Config, setting: Setting) -> str:
    """The sharding strategy in one word. Raises SpecError PL501."""
    text = str(setting.value).upper()
    name = list(STRATEGIES)[int(text) - 1] if text.isdigit() and 0 < int(text) <= len(STRATEGIES) else text
    if name not in STRATEGIES:
        raise config.wrong(
            "PL501", setting, f"`{setting.name}` is one of {', '.join(STRATEGIES)}, not `{setting.value}`"
        )
    return STRATEGIES[name]


def check_world(config: Config, shape: Shape) -> None:
    """The devices must be the product of the sizes, where all are known. Raises SpecError PL504."""
    if shape.world is None:
        return
    known = shape.cp.value * shape.tp.value * shape.replicate.value * (shape.shard.value if shape.shard.given else 1)
    wrong = shape.world != known if shape.shard.given else shape.world % known
    if wrong:
        raise SpecError(Problem("PL504", f"{shape.world} devices are not the product of the parallel sizes, {known}"
                                if shape.shard.given else f"{shape.world} devices are not a multiple of {known}", whole(config.path),
                                "accelerate asserts that they are"))  # fmt: skip


def write_parallel(config: Config, spec: Draft, shape: Shape, steps: Setting) -> str:
    """Declare the mesh and say what runs on it. Returns the axes that gradients are averaged over, as a list."""
    check_world(config, shape)
    if steps.given:
        spec.add("work", f"microbatches {steps.value}", steps)
    else:
        spec.let("M", None)
        spec.add("work", "microbatches M", "gradient_accumulation_steps is not in the file")
    data = shape.data()
    hybrid = shape.fsdp.value and (shape.replicate.value > 1 or shape.strategy == "hybrid")
    open_ = "the number of devices is not in the file"
    if hybrid:
        replicate = shape.replicate.value if shape.replicate.value > 1 else None
        spec.axis(
            "replicate",
            replicate,
            shape.replicate if replicate else "whole copies of sharded groups; their number is not in the file",
        )
        shard = shape.shard.value if shape.shard.given else data // replicate if data and replicate else None
        spec.axis(
            "shard",
            shard,
            shape.shard if shape.shard.given else open_ if shard is None else "from the number of devices",
        )
    else:
        spec.axis(
            "dp", data, open_ if data is None else shape.shard if shape.shard.given else "from the number of devices"
        )
    for name, size in (("cp", shape.cp), ("tp", shape.tp)):
        if size.value > 1:
            spec.axis(name, size.value, size)
    _data(spec, shape, "shard" if hybrid else "dp", steps)
    if hybrid:
        spec.add("use", "use torch_replicas(replicate)", shape.replicate)
    if shape.tp.value > 1:
        spec.add(
            "use",
            "use tensor_parallel(tp)",
            shape.tp,
            "the plan cuts matrices; norms are computed alike on every device",
        )
    return ", ".join((["replicate", "shard"] if hybrid else ["dp"]) + (["cp"] if shape.cp.value > 1 else []))


def _data(spec: Draft, shape: Shape, axis: str, steps: Setting) -> None:
    kept = ", reshard_after_forward = false" if shape.keep else ""
    cp = shape.cp if shape.cp.value > 1 else ""
    axes = f"{axis}, cp" if cp else axis
    context = "_context" if cp else ""
    if not shape.fsdp.value or shape.strategy == "ddp":
        spec.add("use", f"use torch_ddp{context}({axes})", shape.fsdp, cp)
        return
    if steps.value != 1:
        why = "gradients of all micro-batches but the last are kept whole (accelerator.py, no_sync)"
        spec.add("use", f"use torch_fsdp_no_sync{context}({axes}{kept})", shape.fsdp, cp, why)
    elif cp or shape.version == 2:
        spec.add("use", f"use torch_fsdp2{context}({axes}{kept})", shape.fsdp, cp)
    else:
        spec.add("use", f"use torch_fsdp1{'_grad_op' if shape.keep else ''}({axis})", shape.fsdp)
    if shape.offload.value:
        spec.add("state", "place * { params offloaded, optimizer offloaded, gradients offloaded }", shape.offload)
