"""A live PyTorch model as a spec, and the collectives of a real training step held against one.

    spec = placelogic.from_torch(model, optimizer, mesh)     # read.py finds, groups.py sorts, write.py writes
    print(spec)                                              # a .place file, with what each line was read from

    with placelogic.trace(mesh) as t:                        # record.py sees every collective of the step
        train_step()
    print(t.compare(spec))                                   # expected.py, compare.py

What is not modelled is refused (problems.py lists the codes). torch is imported here only.
"""

from __future__ import annotations

from placelogic.frontends.live.problems import need_torch

need_torch()

from placelogic.frontends.live.spec import LiveSpec, from_torch
from placelogic.frontends.live.trace import Comparison, Trace, trace

__all__ = ["Comparison", "LiveSpec", "Trace", "from_torch", "trace"]
