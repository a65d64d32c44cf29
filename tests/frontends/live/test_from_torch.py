"""What `from_torch` reads of eight models: a spec that is proved, and holds what the model holds."""

from __future__ import annotations

import pytest
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import RowwiseParallel, parallelize_module

import placelogic
from placelogic.frontends.live import LiveSpec, from_torch
from tests.frontends.live import models
from tests.frontends.live.fork import run
from tests.frontends.live.models import MODELS
from tests.frontends.live.observed import ALL, observed

DDP = """\
mesh dp = 2
batch over dp    # DistributedDataParallel
tokens even
loss mean local

weights embed { size 16*8, dims rows columns, kind embedding }    # embed.weight
weights norm { size 2*8, layers 2, dims d0, kind vector }    # layers.0.norm.weight and 1 more
weights norm_bias { size 2*8, layers 2, dims d0, kind vector }    # layers.0.norm.bias and 1 more
weights up { size 2*32*8, layers 2, dims out in, kind matrix }    # layers.0.up.weight and 1 more
weights up_bias { size 2*32, layers 2, dims d0, kind vector }    # layers.0.up.bias and 1 more
weights down { size 2*8*32, layers 2, dims out in, kind matrix }    # layers.0.down.weight and 1 more
weights down_bias { size 2*8, layers 2, dims d0, kind vector }    # layers.0.down.bias and 1 more
weights final { size 8, dims d0, kind vector }    # final.weight
weights final_bias { size 8, dims d0, kind vector }    # final.bias
weights head { size 16*8, dims out in, kind matrix }    # head.weight

optimizer adamw
precision { params fp32, compute fp32, gradients fp32, moments fp32 }

# DistributedDataParallel: mean over its group
step * {
  each microbatch {
    accumulate
  }
  reduce over dp by mean
  update
}
"""


def held(text: str, rank: int) -> dict[str, int]:
    """Bytes that the spec says this rank holds, by state."""
    from placelogic.cost import derive
    from placelogic.elaborate import elaborate_file
    from placelogic.elaborate.complete import complete
    from placelogic.syntax.parse import parse

    cost = derive(complete(elaborate_file(parse(text, "live.place"))[0]))
    place = cost.places[rank if len(cost.places) > 1 else 0]
    total = dict.fromkeys(("params", "gradients", "optimizer"), 0)
    for one in cost.held:
        if one.place == place and one.state in total:
            number = cost.known(one.bytes)
            assert number is not None
            total[one.state] += int(number)
    return total


@pytest.mark.parametrize("name", ALL)
def test_proved_and_held(name: str) -> None:
    specs = [one.spec for one in observed(name)]
    assert len({spec.text for spec in specs}) == 1, "ranks read different specs"
    report = placelogic.check(specs[0].text, require_stated=True)
    assert report.exit_code == 0, str(report)
    wanted = [held(spec.text, rank) for rank, spec in enumerate(specs)]
    if name == "zero1":  # whole parameters are dealt out, as evenly as they come
        for state in wanted[0]:
            assert sum(spec.held[state] for spec in specs) == sum(one[state] for one in wanted)
    else:
        assert [dict(spec.held) for spec in specs] == wanted
    every_size = placelogic.check(observed(name)[0].open_text)
    assert every_size.exit_code == 0 and "for every " in str(every_size)


def test_the_text() -> None:
    text = observed("ddp")[0].spec.text
    assert text.startswith("# Read from a model by placelogic.from_torch, PyTorch ")
    assert text.split("\n\n", 1)[1] == DDP


@pytest.mark.slow
def test_what_lines_were_read_from() -> None:
    text = observed("fsdp_tp")[0].spec.text
    for line in (
        "batch over dp    # fully_shard",
        "place down over tp { params sharded on in, optimizer sharded on in, gradients sharded on in }    "
        "# DTensor, Shard(1)",
        "place norm, norm_bias, final, final_bias over tp { params replicated, optimizer replicated, gradients "
        "replicated, activations sharded on sequence }    # SequenceParallel: a replicated DTensor on a share of the "
        "sequence",
        "place up, down over dp { params gathered on out, optimizer sharded on out, gradients sharded on out }    "
        "# fully_shard",
        "# a DTensor gradient in parts is summed before it is used; fully_shard: mean",
        "    reduce over tp by sum",
    ):
        assert line in text.split("\n")
    # fully_shard cuts what tensor parallelism has left of `up`, so its cut is the inner one.
    assert text.index("place up, head over tp") < text.index("place up, down over dp")


def by_rows() -> LiveSpec:
    """An embedding whose vocabulary is cut."""
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    module = models.Net()
    rows = RowwiseParallel(input_layouts=Replicate(), output_layouts=Replicate())
    parallelize_module(module, mesh, {**models._tensor_plan(module), "embed": rows})
    optimizer = models.adam(module)
    models.trained(module, optimizer, 0)()
    return from_torch(module, optimizer, mesh)


def test_an_embedding_cut_by_rows_keeps_its_gradient_whole() -> None:
    spec = run(2, by_rows)[0]
    assert (
        "place embed over tp { params sharded on rows, optimizer sharded on rows, gradients replicated }" in spec.text
    )
    assert placelogic.check(spec.text).exit_code == 0
    assert dict(spec.held) == held(spec.text, 0)


def replicated() -> LiveSpec:
    from torch.distributed._composable.replicate_with_fsdp import replicate

    module = replicate(models.Net(), mesh=init_device_mesh("cpu", (2,), mesh_dim_names=("dp",)))
    return from_torch(module, models.adam(module))


def test_replicate_is_built_on_fully_shard() -> None:
    text = run(2, replicated)[0].text
    assert (
        "weights embed { size 16*8, dims rows columns, kind embedding }" in text
        and "place" not in text.split("\n\n")[3]
    )
    assert "    reduce over dp by mean\n    accumulate" in text
    assert placelogic.check(text).exit_code == 0


def gradients_in_parts(name: str) -> tuple[set[str], set[str]]:
    """Parameters whose DTensor gradient is in parts, and those that the spec says so of."""
    from torch.distributed.tensor import DTensor

    setup = MODELS[name][1]()
    spec = from_torch(setup.model, setup.optimizer, setup.mesh)
    setup.step()
    partial = {
        parameter
        for parameter, value in setup.module.named_parameters()
        if isinstance(value.grad, DTensor) and value.grad.placements[0].is_partial()
    }
    said = next((line for line in spec.text.split("\n") if "activations sharded on sequence" in line), "")
    groups = [group.strip(" ,") for group in said.split(" over ")[0].removeprefix("place").split()]
    return partial, {parameter for group in groups for parameter in spec.weights[group]}


@pytest.mark.parametrize("name", ["tp", "tp_sp"])
def test_plans_say_what_gradients_come_out_as(name: str) -> None:
    partial, said = run(2, gradients_in_parts, name)[0]
    assert partial == said
    assert bool(partial) == (name == "tp_sp")
