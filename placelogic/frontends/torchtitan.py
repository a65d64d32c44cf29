"""torchtitan's configuration as a spec: its TOML file (up to 0.2.2), or a command line of `--section.name value`.

Runtime: placelogic/std/frameworks/torchtitan_*.place, with their sources. The sizes of the model are in the program,
under the name of a flavor, so they stay open."""

from __future__ import annotations

from placelogic.files import whole
from placelogic.frontends.config import Config, Setting
from placelogic.frontends.draft import Draft
from placelogic.frontends.groups import unknown_model
from placelogic.frontends.optimizers import optimizer
from placelogic.frontends.ranks import Groups, Mesh, RanksDoNotFit, refine
from placelogic.frontends.request import Request
from placelogic.frontends.values import Value
from placelogic.frontends.versions import before
from placelogic.problem import Problem, SpecError

VERSIONS = ("0.1", "0.2.2")
"""The first and the last that the strategies were compared with."""

GLOBAL_TOKENS = "0.2.2"
"""From here on losses are divided by all tokens of the step, and gradients are summed."""

TIED = {("qwen3", flavor) for flavor in ("debugmodel", "0.6B", "1.7B", "4B")}
"""Models whose output matrix is their embedding (0.2.2, torchtitan/models/qwen3/__init__.py)."""

P = "parallelism"
SCHEDULES = {"1f1b": "1f1b", "gpipe": "gpipe", "interleaved1f1b": "interleaved_1f1b", "loopedbfs": "looped_bfs",
             "interleavedzerobubble": "interleaved_zero_bubble", "zbvzerobubble": "zbv", "dualpipev": "dualpipe_v"}  # fmt: skip


def config(root: Value, path: str, request: Request) -> Config:
    """The file as this importer reads it."""
    if root.at(P) is None and root.at("training") is None:
        raise SpecError(
            Problem("PL507", f"this is no torchtitan configuration: it has no `{P}` and no `training`", whole(path))
        )
    return Config(path, root, loose=not path.endswith(".toml"))


def draft(config: Config, request: Request) -> tuple[Draft, dict[str, object]]:
    """The spec of a torchtitan configuration, and what it amounts to."""
    spec = Draft()
    size = {name: config.get(f"{P}.{key}", int, 1) for name, key in
            (("replicate", "data_parallel_replicate_degree"), ("tp", "tensor_parallel_degree"), ("cp", "context_parallel_degree"),
             ("pp", "pipeline_parallel_degree"), ("ep", "expert_parallel_degree"))}  # fmt: skip
    size["etp"] = config.get(f"{P}.expert_tensor_parallel_degree", int, 1)
    size["shard"] = config.get(f"{P}.data_parallel_shard_degree", int, -1)
    for one in size.values():
        if one.value < 1 and not (one is size["shard"] and one.value == -1):
            raise config.wrong("PL501", one, f"`{one.name}` must be at least 1, not {one.value}")
    mesh = _mesh(config, spec, size, request)
    old = before(request.version, GLOBAL_TOKENS)
    _work(config, spec, size, mesh, old)
    _model_parallel(config, spec, size, mesh, old)
    _optimizer(config, spec)
    name = config.get("model.name", str, "")
    flavor = config.get("model.flavor", str, "")
    spec.head.append(
        f"The model is {name.value or 'not named'} {flavor.value}: its sizes are in the program, and open here.".replace(
            "  ", " "
        )
    )
    routed = mesh.routed()
    facts: dict[str, object] = {key: one.value for key, one in size.items()} | {
        "model": name.value, "tied": (name.value, flavor.value) in TIED, "ep_axis": routed[0] if len(routed) == 1 else None, "clip_line": "  clip\n" if config.peek("training.max_norm", float, 1.0) > 0 else "",
        "pieces": _pieces(config), "accumulation": _accumulation(config, size, request),
        "async_tensor_parallel": config.peek(f"{P}.enable_async_tensor_parallel", bool, False),
        "compile": config.peek("compile.enable", bool, False),
        "twice_context": 2 * size["cp"].value, "sequence": config.peek("training.seq_len", int, None),
    }  # fmt: skip
    return spec, facts


def _pieces(config: Config) -> int | None:
    """Micro-batches of the pipeline in one accumulation step, None where not known."""
    local = config.get("training.local_batch_size", int, None, also=["training.batch_size"]).value
    return local // config.get(f"{P}.pipeline_parallel_microbatch_size", int, 1, least=1).value if local else None


def _accumulation(config: Config, size: dict[str, Setting], request: Request) -> int | None:
    """Accumulation steps, None where the number of devices is not known."""
    total = config.get("training.global_batch_size", int, -1).value
    local = config.get("training.local_batch_size", int, None, also=["training.batch_size"]).value
    shard = size["shard"].value
    if shard == -1 and request.world:
        shard = request.world // (size["replicate"].value * size["tp"].value * size["cp"].value * size["pp"].value)
    if total < 1 or not local or shard < 1:
        return None
    return max(total // (local * shard * size["replicate"].value), 1)


def _mesh(config: Config, spec: Draft, size: dict[str, Setting], request: Request) -> Mesh:
    shard, pp = size["shard"], size["pp"].value
    world = request.world
    ranks = None
    if world is not None and world % pp:
        raise config.wrong("PL504", size["pp"], f"{world} devices are not a multiple of the {pp} pipeline stages")
    if world is not None:
        ranks = world // pp
    if shard.value != -1:
        product = shard.value * size["cp"].value * size["tp"].value * size["replicate"].value
        if ranks is not None and ranks != product:
            raise config.wrong("PL504", shard, f"{ranks * pp} devices are not the product {product * pp} of the parallel degrees",
                               "torchtitan asserts that they are")  # fmt: skip
        ranks = product
    groups = Groups(size["tp"].value, size["cp"].value, size["etp"].value, size["ep"].value, size["ep"].value > 1,
                    size["replicate"].value, ranks)  # fmt: skip
    try:
        mesh = refine(groups, "replicate")
    except RanksDoNotFit as error:
        raise config.wrong("PL504", size["ep"] if size["ep"].given else size["tp"], str(error)) from None
    for atom in mesh.atoms:
        origin = size["replicate"] if atom.name == "replicate" else size["tp"] if atom.dense == "tp" else (
            size["cp"] if atom.dense == "cp" else size["ep"] if atom.expert == "ep" else shard)  # fmt: skip
        spec.axis(atom.name, atom.size, origin)
    mesh.products(spec)
    if pp > 1:
        spec.axis("pp", pp, size["pp"])
    return mesh


def _work(config: Config, spec: Draft, size: dict[str, Setting], mesh: Mesh, old: bool) -> None:
    total = config.get("training.global_batch_size", int, -1)
    local = config.get("training.local_batch_size", int, None, also=["training.batch_size"], least=1)
    pieces = config.get(f"{P}.pipeline_parallel_microbatch_size", int, 1, least=1)
    if total.value < 1 and local.given and size["pp"].value == 1:
        spec.add("work", "microbatches 1", total)
    elif total.value < 1 and local.given:
        spec.add("work", f"microbatches {max(local.value // pieces.value, 1)}", local, pieces)
    else:
        spec.let("M", None)
        spec.add("work", "microbatches M", "accumulation steps times pipeline micro-batches")
    dp, cp = mesh.names(dense="dp"), mesh.names(dense="cp")
    spec.add("work", f"batch over {', '.join(dp)}")
    if cp:
        spec.add("work", f"sequence over {', '.join(cp)}", size["cp"])
    inner = mesh.inner(dp) + cp
    policy = config.get(f"{P}.fsdp_reshard_after_forward", str, "default")
    if policy.value not in ("default", "always", "never"):
        raise config.wrong("PL501", policy, f"`{policy.name}` is default, always or never, not `{policy.value}`")
    keep = policy.value == "never" or (policy.value == "default" and size["pp"].value > 1)
    suffix = "_mean" if old else ""
    spec.add("use", f"use torchtitan_loss{suffix}()", f"before {GLOBAL_TOKENS}" if old else "")
    spec.add(
        "use",
        f"use torchtitan_fsdp{suffix}({'*'.join(inner)}{', reshard_after_forward = false' if keep else ''})",
        size["shard"],
        policy if policy.given else "",
    )
    if mesh.outer:
        spec.add("use", f"use {'torch_replicas' if old else 'torchtitan_replicate'}({mesh.outer})", size["replicate"])


def _model_parallel(config: Config, spec: Draft, size: dict[str, Setting], mesh: Mesh, old: bool) -> None:
    moe = size["ep"].value > 1
    named = (config.get("model.name", str, "").value, config.get("model.flavor", str, "").value)
    tied = "pp" if named in TIED and size["pp"].value > 1 else None
    unknown_model(spec, experts=moe, routed_over="*".join(mesh.routed()) or None, tied=tied)
    if size["tp"].value > 1:
        spec.add("use", "use torch_sequence_parallel(tp)", size["tp"])
    if size["pp"].value > 1:
        kind = config.get(f"{P}.pipeline_parallel_schedule", str, "1F1B")
        name = SCHEDULES.get(kind.value.lower().replace("_", ""))
        if name is None:
            raise config.wrong("PL503", kind, f"the schedule `{kind.value}` is not known here")
        chunks = ", chunks = 2" if name not in ("1f1b", "gpipe") else ""
        spec.add("use", f"use pipeline(pp, schedule = {name}{chunks})", size["pp"], kind)
    if not moe:
        return
    combine, replicas = ("mean" if old else "sum"), []
    for atom in mesh.atoms:
        if atom.expert == "edp":
            replicas.append(atom.name)
            if atom.dense == "tp":
                spec.add("state", f"place expert over {atom.name} {{ activations sharded on sequence }}")
        elif atom.expert == "ep" or atom.dense != "tp":
            tokens = ", activations sharded on sequence" if atom.dense == "tp" else ""
            spec.add(
                "state",
                f"place expert over {atom.name} {{ params sharded, optimizer sharded, gradients sharded{tokens} }}",
                size["ep"],
            )
            if atom.dense != "tp":
                spec.add("step", f"sync expert over {atom.name} by {combine}", "tokens are routed")
    inner = mesh.inner(replicas)
    if inner:
        spec.add(
            "state",
            f"place expert over {'*'.join(inner)} {{ params gathered, optimizer sharded, gradients sharded }}",
            "the mesh efsdp",
        )
    work = [name for name in inner if name not in mesh.names(dense="tp")]
    if work:
        spec.add("step", f"sync expert over {', '.join(work)} by {combine}")


def _optimizer(config: Config, spec: Draft) -> None:
    name = config.get("optimizer.name", str, "AdamW")
    spec.add("optimizer", f"optimizer {optimizer(name)}", name)
    clip = config.get("training.max_norm", float, 1.0)
    if clip.value > 0:
        spec.add("optimizer", "clip global_norm", clip)
    compute = config.get("training.mixed_precision_param", str, "bfloat16")
    params = config.get("training.dtype", str, "float32")
    short = {"bfloat16": "bf16", "float32": "fp32", "float16": "fp16"}
    if compute.value not in short or params.value not in short:
        raise config.wrong("PL501", compute, "a dtype is bfloat16 or float32")
    spec.add("optimizer", f"precision {{ params {short[params.value]}, compute {short[compute.value]}, gradients {short[params.value]}, moments {short[params.value]} }}",
             params, compute)  # fmt: skip
    offload = config.get("training.enable_cpu_offload", bool, False)
    if offload.value:
        spec.add("state", "place * { params offloaded, optimizer offloaded, gradients offloaded }", offload)
