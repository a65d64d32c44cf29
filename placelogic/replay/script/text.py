"""The parts of a script that do not depend on the step: its head, helpers, and the comparison."""

from __future__ import annotations

HELPERS = {
    "keep": """
def keep(values, places):
    # the values at these places; -1: what lies there is no value
    return torch.cat([values, torch.tensor([float("nan")])])[places]
""",
    "put": """
def put(values, places, new):
    values = values.clone()
    values[places] = new
    return values
""",
    "seen": """
def seen(gradient, units):
    # the optimizer looks at whole tensors (or blocks): here it divides by the norm of what it sees of each
    squares = torch.zeros(ELEMENTS).index_add(0, torch.tensor(units, dtype=torch.long), gradient**2)
    return gradient / (1 + squares.sqrt())[units]
""",
    "add": """
def add(values, group, length=0):
    # the sum over this device's process group, position by position
    total = torch.cat([values, values.new_zeros(length - len(values))]) if length else values.clone()
    if group in groups:
        dist.all_reduce(total, group=groups[group])
    return total[: len(values)] if length else total
""",
    "gather": """
def gather(values, group, length, places):
    # what the process group holds, one array after the other, at these places; -1: what lies there is no value
    pieces = [torch.cat([values, values.new_full((length - len(values),), float("nan"))])]
    if group in groups:
        mine, pieces = pieces[0], [torch.empty(length) for _ in range(dist.get_world_size(groups[group]))]
        dist.all_gather(pieces, mine, group=groups[group])
    return torch.cat([*pieces, torch.tensor([float("nan")])])[places]
""",
    "broadcast": """
def broadcast(values, group, root):
    values = values.clone()
    if group in groups:
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

WORKER = """
def worker(rank, meet):
    dist.init_process_group("gloo", init_method="file://" + meet, rank=rank, world_size=DEVICES)
    for name, sets in GROUPS.items():
        for ranks in sets:
            made = dist.new_group(ranks)
            groups.update({name: made} if rank in ranks else {})
    one = {name: torch.tensor(values) for name, values in START.items()}
    held = start(rank, one)
    wrong = torch.zeros(())
    for number in range(STEPS):
        one, held = single(one), step(rank, held)
        for name, elements in HELD.items():
            here, there = held[name], one[name][elements[rank]]
            if not bool(((here - there).abs() <= 1e-9).all()):
                wrong += 1
                told = ["%.4f" % value for value in here], ["%.4f" % value for value in there]
                print(f"step {number + 1}, device {rank} holds {name} = {told[0]}, one device {told[1]}", flush=True)
    dist.all_reduce(wrong)
    if rank == 0:
        print(f"{DEVICES} devices: {'DIFFERENT from' if wrong else 'the same as'} one device", flush=True)
    dist.destroy_process_group()

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        how = "fork" if sys.platform == "linux" else "spawn"
        mp.start_processes(worker, (folder + "/meet",), nprocs=DEVICES, start_method=how)
"""
