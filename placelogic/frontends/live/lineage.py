"""Follows gradients from the collective that summed them to the optimizer: what are they multiplied by?

Only plain numbers are followed, exactly, and only outside of the backward formulas of the model: a division
of the loss is not seen. A product with a tensor (clipping, a token count) is noted as such."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from placelogic.frontends.live.calls import Call, tensors
from placelogic.frontends.live.stories import NEW, Stories, Story, merged, scaled, storage_key

SCALES = {"mul": 1, "mul_": 1, "div": -1, "div_": -1, "true_divide": -1, "true_divide_": -1}
EACH = {"_foreach_mul": 1, "_foreach_mul_": 1, "_foreach_div": -1, "_foreach_div_": -1}
COPIES = {"clone", "_to_copy", "cat", "stack", "chunk_cat", "split_with_sizes_copy", "wait_tensor", "contiguous"}
FRESH = {"zero_", "fill_", "_foreach_zero_"}
NORMS = {"linalg_vector_norm", "norm", "_foreach_norm"}
POWERS = {"pow", "pow_", "_foreach_pow"}


class Lineage:
    """Stories of gradients, as operations change them."""

    def __init__(self) -> None:
        self._stories = Stories()
        self._reduced: dict[tuple[Any, ...], tuple[StorageWeakRef, int]] = {}
        self._filling: set[int] = set()

    def of(self, *sources: torch.Tensor) -> Story:
        return self._stories.of(sources[0]) if len(sources) == 1 else merged([self._stories.of(one) for one in sources])

    def communicated(self, call: Call, order: int, norm: bool) -> None:
        """The results are new; what they are multiplied by counts from here. `norm`: norms were sent, and what
        comes out are norms again: DTensor combines them over one axis of the mesh after the other."""
        sources = {storage_key(tensor) for tensor in call.sources}
        for tensor in call.results:
            self._set(tensor, Story(Fraction(1), order, norm=norm))
            if call.operation == "reduce-scatter" and storage_key(tensor) not in sources:
                self._filling.add(storage_key(tensor))

    def again(self, call: Call) -> bool:
        """Whether this very tensor, unchanged, was already reduced like this into another one: then the result
        is the same once more, and no contribution counts twice."""
        inside = {storage_key(tensor) for tensor in call.results}
        if call.op is None or len(call.sources) != 1 or storage_key(call.sources[0]) in inside:
            return False
        source = call.sources[0]
        key = (call.operation, call.ranks, storage_key(source), source.storage_offset(), source.numel())
        now = (StorageWeakRef(source.untyped_storage()), source._version)
        before = self._reduced.get(key)
        self._reduced[key] = now
        return before is not None and not before[0].expired() and before[1] == now[1]

    def watch(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Called after every operation on gradients."""
        name = function._schema.name.split("::")[-1]
        if name in SCALES:
            self._scale(args[0], args[1], SCALES[name], result)
        elif name in EACH:
            self._scale_each(args[0], args[1], EACH[name], args[0] if name.endswith("_") else result)
        elif name == "copy_":
            self._copy(args[0], args[1])
        elif name == "_foreach_copy_":
            for target, source in zip(args[0], args[1], strict=True):
                self._copy(target, source)
        elif name in COPIES:
            story = self.of(*tensors(args))
            for tensor in list(tensors(kwargs.get("out"))) or tensors(result):
                self._set(tensor, story)
        elif name in FRESH:
            for tensor in tensors(args[0]):
                self._set(tensor, NEW)
        elif name in NORMS or (name in POWERS and self.of(*tensors(args)).norm):
            for tensor in tensors(result):
                self._set(tensor, Story(norm=True))

    def _set(self, tensor: torch.Tensor, story: Story) -> None:
        self._filling.discard(storage_key(tensor))
        self._stories.set(tensor, story)

    def _scale(self, source: Any, by: Any, power: int, result: Any) -> None:
        if isinstance(source, torch.Tensor) and isinstance(result, torch.Tensor):
            self._set(result, scaled(self.of(source), by, power))

    def _scale_each(self, sources: Any, by: Any, power: int, results: Any) -> None:
        numbers = by if isinstance(by, list | tuple) else [by] * len(sources)
        for source, number, result in zip(sources, numbers, results, strict=True):
            self._scale(source, number, power, result)

    def _copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        # gloo reduces in a buffer of its own, and copies the result out when it is waited for.
        filled = storage_key(target) in self._filling and self.of(source) == NEW
        self._filling.discard(storage_key(target))
        if not filled:
            self._stories.set(target, self.of(source))
