"""The parts of a script that do not depend on the step: its head, helpers, and the comparison."""

from __future__ import annotations

HELPERS = {
    "seen": """
def seen(gradient, units):
    # the optimizer looks at whole tensors (or blocks): here it divides by the norm of what it sees of each
    squares = torch.zeros(ELEMENTS).index_add(0, torch.tensor(units, dtype=torch.long), gradient**2)
    return gradient / (1 + squares.sqrt())[units]
""",
    "keep": """
def keep(values, places):
    # the values at these places; -1: what lies there is no value
    return torch.cat([values, torch.tensor([float("nan")])])[places]
""",
    "add": """
def add(values, group):
    values = values.clone()
    dist.all_reduce(values, group=groups[group])  # position by position
    return values
""",
    "gather": """
def gather(values, group):
    pieces = [torch.empty_like(values) for _ in range(dist.get_world_size(groups[group]))]
    dist.all_gather(pieces, values, group=groups[group])
    return torch.cat(pieces)  # one after the other
""",
    "broadcast": """
def broadcast(values, group, root):
    values = values.clone()
    dist.broadcast(values, root, group=groups[group])
    return values
""",
}
"""Functions that a script has where its step calls them."""

GRADIENT = """
def gradient(theta, elements, items):
    # of the summed losses of these work items, each times its factor (any function would do)
    theta = theta.clone().requires_grad_()
    for item, tokens, factor in items:
        x = torch.randn(tokens, ELEMENTS, generator=torch.Generator().manual_seed(item))[:, elements]
        (factor * (torch.tanh(x * theta) + (x * theta) ** 2).sum()).backward()
    return torch.zeros_like(theta) if theta.grad is None else theta.grad
"""

OVERFLOW = """\
        if overflow and item == overflow[0]:
            x[:, [place for place, e in enumerate(elements) if e == overflow[1]]] = float("inf")
"""
"""Inside of `gradient`, in scripts about skipping."""

APART = "    if group not in groups:\n        return values\n"
"""First in helpers that communicate, where some device has no part in some process group."""


def helper(name: str, together: bool, partial: bool) -> str:
    """`together`: all devices are the one process group; `partial`: not every device is in every group."""
    found = HELPERS[name]
    if together:
        found = found.replace("dist.get_world_size(groups[group])", "DEVICES").replace(", group=groups[group]", "")
    elif partial and "groups[group]" in found:
        head, body = found.split(":\n", 1)
        found = f"{head}:\n{APART}{body}"
    return found


GROUPS = """\
    for name, sets in GROUPS.items():
        for ranks, made in [(ranks, dist.new_group(ranks)) for ranks in sets]:
            groups.update({name: made} if rank in ranks else {})
"""
"""Inside of `worker`, where processes communicate."""

WORKER = """
def worker(rank, meet):
    dist.init_process_group("gloo", init_method="file://" + meet, rank=rank, world_size=DEVICES)
    one = {name: torch.tensor(values) for name, values in START.items()}
    held, wrong = start(rank, one), torch.zeros(())
    for number in range(STEPS):
        one, held = single(one), step(rank, held)
        for name in one:
            here, there = held[name], one[name][HELD[name][rank]]
            if not bool(((here - there).abs() <= 1e-9).all()):
                wrong += 1
                print(f"step {number + 1}, device {rank}: {name} is {here}, on one device {there}", flush=True)
    dist.all_reduce(wrong)
    if rank == 0:
        print(f"{DEVICES} devices: {'DIFFERENT from' if wrong else 'the same as'} one device", flush=True)
    dist.destroy_process_group()

if __name__ == "__main__":
    how = "fork" if sys.platform == "linux" else "spawn"
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(worker, (folder + "/meet",), nprocs=DEVICES, start_method=how)
"""
