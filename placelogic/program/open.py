"""Which sizes of a program are left open: what a verdict for all sizes is about."""

from __future__ import annotations

from placelogic.program.expr import names
from placelogic.program.program import Program


def open_sizes(program: Program) -> tuple[str, ...]:
    """Axes without a size, then the open counts that micro-batches and axis sizes are made of."""
    values = {let.name: let.value for let in program.lets}
    pending = [atom.size for atom in program.mesh.atoms if atom.size is not None] + [program.work.microbatches]
    axes = [atom.name for atom in program.mesh.atoms if atom.size is None]
    seen: set[str] = set()
    while pending:
        for name in names(pending.pop()):
            if name.name not in seen:
                seen.add(name.name)
                value = values.get(name.name)
                if value is not None:
                    pending.append(value)
    counts = [let.name for let in program.lets if let.value is None and let.name in seen]
    return tuple(dict.fromkeys([*axes, *counts]))
