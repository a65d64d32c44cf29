"""What comes back through a written collective is what autograd of torch.distributed brings back."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist
from torch.distributed.nn import functional as parts

from placelogic.layers.crossing import written
from placelogic.replay.blocks.held import carried
from placelogic.replay.comms import Comms
from placelogic.replay.launch import launch
from placelogic.run.grid import Grid
from placelogic.run.layers.crossing import Ragged, backward, forward
from placelogic.run.layers.lay import Lay, piece
from tests.simulate.test_transposes import collective

WORLD = 2


def of_torch(kind: str, x: torch.Tensor) -> torch.Tensor:
    rank = dist.get_rank()
    match kind:
        case "gather":
            return torch.cat(parts.all_gather(x))
        case "slice":
            return x.chunk(WORLD)[rank]
        case "reduce_scatter":
            return parts.reduce_scatter(torch.empty_like(x.chunk(WORLD)[0]), list(x.chunk(WORLD)))
        case "all_to_all":
            sent = [one.contiguous() for one in x.chunk(WORLD, 1)]
            return torch.cat(parts.all_to_all([torch.empty_like(one) for one in sent], sent))
        case "broadcast":
            return parts.broadcast(x.clone(), 0)
        case _:
            return parts.all_reduce(x.clone())


def of_ours(rank: int, kind: str) -> tuple[float, float]:
    """How far values and gradients are from those of torch."""
    grid = Grid(("tp",), {"tp": WORLD})
    (there, back), _ = written(collective(kind, "sum" if kind.startswith("reduce") else None))
    if kind == "reduce":
        back = there  # where readers leave shares
    whole = Lay(("a", "b"), ((0, 1, 2, 3), (0, 1, 2, 3)))
    cut = kind in ("gather", "all_to_all")
    lays = [piece(whole, "a", WORLD, x) if cut else whole for x in range(WORLD)]
    after, steps = forward(lays, there, "tp", grid, Ragged())
    returned = backward(after, back, lays, "tp", grid, Ragged(), False)
    torch.manual_seed(rank)
    x = torch.randn(lays[rank].shape, requires_grad=True)
    g = torch.randn(after[rank].shape)
    y = of_torch(kind, x)
    (wanted,) = torch.autograd.grad(y, x, g)
    comm = Comms(rank, WORLD).everyone()
    mine = carried(x.detach(), lays, steps, comm, rank, float)
    found = carried(g, after, returned, comm, rank, float)
    return (mine - y.detach()).abs().max().item(), (found - wanted).abs().max().item()


@pytest.mark.parametrize("kind", ["reduce", "gather", "slice", "reduce_scatter", "all_to_all", "broadcast"])
def test_as_autograd_has_it(kind: str) -> None:
    for values, gradients in launch(WORLD, lambda rank: of_ours(rank, kind)):
        assert values < 1e-12 and gradients < 1e-12
