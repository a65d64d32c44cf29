"""Sizes of a Megatron-LM run, as its arguments give them and as `validate_args` completes them."""

from __future__ import annotations

from msgspec import Struct

from placelogic.files import whole
from placelogic.frontends.config import Config, Setting
from placelogic.frontends.request import Request
from placelogic.problem import Problem, SpecError


class ModelSizes(Struct, frozen=True):
    """`world`: None where it is not known; then data-parallel sizes stay open. `sp`: whether sequence
    parallelism is in force."""

    tp: Setting
    cp: Setting
    pp: Setting
    ep: Setting
    etp: Setting
    experts: Setting
    instances: Setting
    sp: bool
    layers: Setting
    chunks: int | str
    chunks_from: Setting
    world: int | None

    @property
    def dp(self) -> int | None:
        return None if self.world is None else self.world // (self.tp.value * self.cp.value * self.pp.value)


def sizes_of(config: Config, request: Request) -> ModelSizes:
    """Read and check the sizes. Raises SpecError PL501, PL503 or PL504."""
    tp = config.get("tensor-model-parallel-size", int, 1, also=["model-parallel-size"], least=1)
    cp = config.get("context-parallel-size", int, 1, least=1)
    pp = config.get("pipeline-model-parallel-size", int, 1, least=1)
    ep = config.get("expert-model-parallel-size", int, 1, least=1)
    etp = config.get("expert-tensor-parallel-size", int, tp.value, least=1)
    experts = config.get("num-experts", int, 0, also=["num-moe-experts"])
    instances = config.get("num-distributed-optimizer-instances", int, 1, least=1)
    sequence = config.get("sequence-parallel", bool, False)
    layers = config.get("num-layers", int, None, also=["decoder-num-layers", "encoder-num-layers"], least=1)
    config.use("encoder-num-layers", "decoder-num-layers")
    for name in ("tensor-parallel-num-weight-shards", "gtp-weight-remat-size", "expert-tensor-parallel-num-weight-shards",
                 "expert-gtp-weight-remat-size"):  # fmt: skip
        shards = config.get(name, int, 1)
        if shards.value > 1:
            raise config.wrong("PL503", shards, f"`--{name}` is not modelled", f"`--set {name}=1` imports the rest")
    if ep.value > 1 and not experts.value:
        raise config.wrong(
            "PL504", ep, "expert parallelism without experts", "Megatron-LM asserts it too: give `num-experts`"
        )
    if experts.value and experts.value % ep.value:
        raise config.wrong(
            "PL504", experts, f"{experts.value} experts are not a multiple of the expert parallel size {ep.value}"
        )
    chunks, origin = _chunks(config, pp.value, layers)
    return ModelSizes(tp, cp, pp, ep, etp, experts, instances, bool(sequence.value and tp.value > 1), layers, chunks, origin,
                 _world(config, request, tp.value * cp.value * pp.value, etp.value * ep.value * pp.value if experts.value else 1))  # fmt: skip


def _chunks(config: Config, pp: int, layers: Setting) -> tuple[int | str, Setting]:
    """Virtual stages on each device."""
    stages = config.get("num-virtual-stages-per-pipeline-rank", int, None, least=1)
    size = config.get("num-layers-per-virtual-pipeline-stage", int, None, least=1)
    layout = config.get("pipeline-model-parallel-layout", str)
    for one in (stages, size):
        if one.given and one.value and pp == 1 and one is size:
            raise config.wrong("PL504", one, "virtual pipeline stages without a pipeline", "Megatron-LM asserts it too")
    if stages.given:
        return stages.value, stages
    if size.given:
        if layers.value is None or layers.value % (pp * size.value):
            raise config.wrong(
                "PL504",
                size,
                f"{layers.value or 'unknown'} layers do not divide into {pp} stages of chunks of {size.value}",
            )
        return layers.value // (pp * size.value), size
    if layout.given and "|" in layout.value:
        count = _layout_stages(layout.value)
        if count is not None and count % pp == 0:
            return count // pp, layout
    return 1, layout


def _layout_stages(text: str) -> int | None:
    """How many stages a layout such as `Et*2|(tt|)*5t|mL` has; None where it is of another form."""
    import re

    def repeat(match: re.Match[str]) -> str:
        return match[1] * min(int(match[2]), 1000)

    text = re.sub(r"\(([^()]*)\)\*(\d+)", repeat, text)
    text = re.sub(r"(\w)\*(\d+)", repeat, text)
    return text.count("|") + 1 if re.fullmatch(r"[\w|,]+", text) else None


def _world(config: Config, request: Request, model: int, expert: int) -> int | None:
    nodes, each = (config.get(name, object, None).value for name in ("nnodes", "nproc-per-node"))
    known = str(each).isdigit() and (nodes is None or str(nodes).isdigit())
    given = int(nodes or 1) * int(each) if known else None
    if request.world is None:  # a launcher above this one may start more
        return given if given is not None and not given % model and not given % expert else None
    world = request.world
    for size, what in ((model, "tensor * context * pipeline"), (expert, "expert tensor * expert * pipeline")):
        if world % size:
            raise SpecError(Problem("PL504", f"{world} devices are not a multiple of {size}, the {what} parallel sizes",
                                    whole(config.path)))  # fmt: skip
    return world
