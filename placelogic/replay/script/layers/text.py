"""The parts of a script about layers that do not depend on its plan: helpers and the comparison."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection

GLOBAL = {
    "F", "Move", "Loss", "WEIGHTS", "AXES", "DEVICES", "TURNS", "axes", "carried", "dist", "drawn", "gradients", "held",
    "move", "mp", "number", "rank", "seed", "share", "single", "step", "sys", "tempfile", "torch", "turn", "worker",
    "norm", "curve", "attention", "route", "embed", "cross_entropy", "spread", "picked", "words", "range", "zip", "sum", "dict",
    "len", "str", "bool", "print", "float",
}  # fmt: skip
"""Names of a script that no tensor can have."""


def named(name: str) -> str:
    """As a variable of a script."""
    name = re.sub(r"\W", "_", name)
    return f"{name}_" if keyword.iskeyword(name) or name in GLOBAL else name


DRAWN = """
def drawn(seed, sizes):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed))
"""

SHARE = """
def share(whole, rank, cut):
    # what a device has of it: its piece of each cut dimension, along an axis
    for dim, axis in cut.items() if rank is not None else ():
        whole = whole.chunk(axes[axis][1], dim)[axes[axis][2]]
    return whole
"""
SHARES = """
def share(whole, rank, cut):
    # what a device has of it: its piece of each cut dimension, along axes one after the other
    for dim, names in cut.items() if rank is not None else ():
TABLES        for axis in names.split():
            whole = whole.chunk(axes[axis][1], dim)[axes[axis][2]]
    return whole
"""
"""The same, where dimensions are cut along several axes, or otherwise."""
TABLES = """\
        if not isinstance(names, str):
            whole, names = whole.index_select(dim, torch.tensor(names[rank])), ""
"""
"""In `share`, where a table says by device which places are there."""

MOVE = """
def carried(values, rank, axis, words):
    if rank is None:
        return values
{words}    return values

class Move(torch.autograd.Function):
    # what crosses between devices forward, and what crosses on the way back: as the spec has it
    @staticmethod
    def forward(context, values, rank, axis, there, back):
        context.back = rank, axis, back
        return carried(values, rank, axis, there)
    @staticmethod
    def backward(context, arrived):
        return carried(arrived, *context.back), None, None, None, None
move = Move.apply
"""
CARRIED = MOVE[: MOVE.index("\nclass Move")]

ONLY_SUMS = """\
    values = values.clone(memory_format=torch.contiguous_format)
    if words == "sum":
        dist.all_reduce(values, group=axes[axis][0])
"""
"""In `carried`, where moves do nothing else."""

EACH_WORD = """\
    group, count, mine = axes[axis]
    values = values.clone(memory_format=torch.contiguous_format)
    for what, *number in [word.split() for word in words.split(", ")]:
"""
WORDS = {
    "sum": """\
        if what == "sum":
            dist.all_reduce(values, group=group)
""",
    "times": """\
        if what == "times":
            values = values * float(number[0])
""",
    "gather": """\
        if what == "gather":
            every = [torch.empty_like(values) for _ in range(count)]
            dist.all_gather(every, values.contiguous(), group=group)
            values = torch.cat(every, int(number[0]))
""",
    "cut": """\
        if what == "cut":  # its own piece
            values = values.chunk(count, int(number[0]))[mine].contiguous()
""",
    "pad": """\
        if what == "pad":  # zeros for the pieces of others
            every = [values if at == mine else torch.zeros_like(values) for at in range(count)]
            values = torch.cat(every, int(number[0]))
""",
    "root": """\
        if what == "root":  # the others have zeros
            values = values if mine == 0 else torch.zeros_like(values)
""",
    "first": """\
        if what == "first":
            dist.broadcast(values, group=group, group_src=0)
""",
}
"""In `carried`, where a move says so."""

HELPERS = {
    "spread": """
def spread(values, dim, rank, places):
    # what is at these places, by device; nothing at -1
    if rank is None:
        return values
    at = torch.tensor(places[rank])
    return values.index_select(dim, at.clamp(min=0)) * (at >= 0).reshape([-1 if d == dim else 1 for d in range(values.dim())])
""",
    "picked": """
def picked(values, dim, places):
    # what is at these places; nothing at -1
    at = torch.tensor(places)
    return values.index_select(dim, at.clamp(min=0)) * (at >= 0).reshape([-1 if d == dim else 1 for d in range(values.dim())])
""",
    "norm": """
def norm(x, over):
    return x / (1 + x.square().mean(over, keepdim=True)).sqrt()  # + 1: not free of the scale of x
""",
    "route": """
def route(scores, dim, top):
    scores = scores.softmax(dim)
    return scores * torch.zeros_like(scores).scatter(dim, scores.topk(top, dim).indices, 1.0)
""",
    "embed": """
def embed(table, ids, first):
    # rows that are elsewhere count as zeros
    there = (ids >= first) & (ids < first + len(table))
    found = table[(ids - first).clamp(0, len(table) - 1)]
    return found * there.reshape(there.shape + (1,) * (found.dim() - there.dim()))
""",
    "words": """
def words(seed, count, sizes):
    return torch.randint(count, sizes, generator=torch.Generator().manual_seed(seed))
""",
    "loss": """
class Loss(torch.autograd.Function):
    # cross entropy: two numbers per token are added up over the devices that share out the vocabulary
    @staticmethod
    def forward(context, logits, wanted, first, rank, over):
        here = torch.arange(first, first + logits.shape[-1]) == wanted[..., None]
        highest = logits.amax(-1, keepdim=True)
        for axis in over if rank is not None else ():
            dist.all_reduce(highest, op=dist.ReduceOp.MAX, group=axes[axis][0])
        raised = (logits - highest).exp()
        both = torch.stack([raised.sum(-1), ((logits - highest) * here).sum(-1)])
        for axis in over if rank is not None else ():
            dist.all_reduce(both, group=axes[axis][0])
        context.save_for_backward(raised / both[0][..., None] - 1.0 * here)
        return both[0].log() - both[1]
    @staticmethod
    def backward(context, arrived):
        return context.saved_tensors[0] * arrived[..., None], None, None, None, None
""",
}
"""Functions that a script has where its layers call them."""


def attention(used: Collection[str]) -> str:
    """With what its calls need."""
    optional = [name for name in ("heads", "at", "places", "far", "mask") if _has(name, used)]
    both = {"causal", "full"} <= set(used)
    named = [*(f"{name}=None" for name in optional), *(["causal=True"] if both else [])]
    lines = [f"def attention({', '.join(['q', 'k', 'v', *named])}):"]
    if "heads" in used:
        lines.append("    k, v = (k, v) if heads is None else (k[..., heads, :], v[..., heads, :])")
    lines.append('    scores = torch.einsum("...phd,...thd->...hpt", q, k) / q.shape[-1] ** 0.5')
    if "causal" in used or "far" in used:
        lines.append("    at, places = (torch.tensor(p or range(x.shape[-3])) for p, x in ((at, q), (places, k)))")
        lines.append("    apart = at[:, None] - places")
    if "far" in used:
        lines.append(
            "    scores = scores + torch.sin(1.0 * (apart if far is None else torch.tensor(far)))  # positions"
        )
    if "causal" in used:
        lines.append(f"    scores = scores.masked_fill({'(apart < 0) & causal' if both else 'apart < 0'}, -torch.inf)")
    lines.append(
        "    scores = torch.cat([scores, torch.zeros_like(scores[..., :1])], -1)  # a sink: a shift of scores shows"
    )
    chances = "scores.softmax(-1)[..., :-1]"
    if "mask" in used:
        chances += " * (1.0 if mask is None else 1 + 0.4 * torch.tanh(mask))"
    lines.append(f'    return torch.einsum("...hpt,...thd->...phd", {chances}, v)')
    return "\n".join(lines)


def _has(name: str, used: Collection[str]) -> bool:
    if name in ("at", "places"):
        return "causal" in used or "far" in used
    return name in used


WORKER = """
def worker(rank, meet):
    dist.init_process_group("gloo", init_method="file://" + meet, rank=rank, world_size=DEVICES)
GROUPS    one = {name: middle + width * drawn(n, sizes) for n, (name, (sizes, _, middle, width)) in enumerate(WEIGHTS.items())}
    held = {name: share(values, rank, WEIGHTS[name][1]) for name, values in one.items()}
    (left, held), (right, one) = step(held, rank), step(one, None)
    pairs = {"LEFT": (left, share(right, rank, LEFT_CUT))}
    pairs |= {name: (held[name], share(one[name], rank, WEIGHTS[name][1])) for name in held}
    wrong = torch.zeros(())
    for name, (here, there) in pairs.items():
        if not bool(((here - there).abs() <= 1e-9 * (1 + there.abs().max())).all()):
            wrong += 1
            at = torch.unravel_index((here - there).abs().argmax(), here.shape)
            told = f"{[int(i) for i in at]} is {here[at]:.6g}, on one device {there[at]:.6g}"
            print(f"step 1, device {rank}: {name} {told}", flush=True)
    dist.all_reduce(wrong)
    if rank == 0:
        print(f"{DEVICES} devices: {'DIFFERENT from' if wrong else 'the same as'} one device", flush=True)
    dist.destroy_process_group()

if __name__ == "__main__":
    how = "fork" if sys.platform == "linux" else "spawn"
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(worker, (folder + "/meet",), nprocs=DEVICES, start_method=how)
"""
"""The work of every device."""

GROUPS = """\
    for axis, sets in AXES.items():
        for ranks in sets:
            group = dist.new_group(ranks)
            axes.update({axis: (group, len(ranks), ranks.index(rank))} if rank in ranks else {})
"""
"""Inside of `worker`, where devices communicate in groups."""
