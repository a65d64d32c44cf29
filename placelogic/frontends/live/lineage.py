"""Follows gradients from the collective that summed them to the optimizer: what are they multiplied by?

Only plain numbers are followed, exactly, and only outside of the backward formulas of the model: a division
of the loss is not seen. A product with a tensor (clipping, a token count) is noted as such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from placelogic.frontends.live.calls import Call, tensors

SCALES = {"mul": 1, "mul_": 1, "div": -1, "div_": -1, "true_divide": -1, "true_divide_": -1}
EACH = {"_foreach_mul": 1, "_foreach_mul_": 1, "_foreach_div": -1, "_foreach_div_": -1}
COPIES = {"copy_", "clone", "_to_copy", "cat", "stack", "chunk_cat", "contiguous", "split_with_sizes_copy",
          "_foreach_copy_", "wait_tensor", "_pack_to_copy", "flatten_dense_tensors", "zeros_like"}  # fmt: skip
FRESH = {"zero_", "fill_", "_foreach_zero_"}
BOUND = 2**20
"""Floating numbers are read as the fraction with a denominator up to this that is nearest: 1/3, not a sum of
powers of two."""


@dataclass(frozen=True, slots=True)
class Story:
    """Of the content of one storage. `parent`: the event it last came out of."""

    factor: Fraction | None = Fraction(1)
    parent: int | None = None
    computed: bool = False


NEW = Story()


class Lineage:
    """Stories by storage. A storage that is freed takes its story with it."""

    def __init__(self) -> None:
        self._stories: dict[int, tuple[StorageWeakRef, Story]] = {}
        self._reduced: dict[tuple[Any, ...], tuple[StorageWeakRef, int]] = {}
        self._filling: set[int] = set()

    def of(self, tensor: torch.Tensor) -> Story:
        found = self._stories.get(_key(tensor))
        return found[1] if found is not None and not found[0].expired() else NEW

    def set(self, tensor: torch.Tensor, story: Story) -> None:
        key = _key(tensor)
        self._filling.discard(key)
        if story == NEW:
            self._stories.pop(key, None)
        else:
            self._stories[key] = (StorageWeakRef(tensor.untyped_storage()), story)

    def merged(self, sources: Sequence[torch.Tensor]) -> Story:
        """One story for what is put together; the factor is unknown where they differ."""
        stories = [self.of(tensor) for tensor in sources]
        if not stories:
            return NEW
        first = stories[0]
        same = all(one.factor == first.factor for one in stories)
        parents = [one.parent for one in stories if one.parent is not None]
        return Story(
            first.factor if same else None, max(parents, default=None), any(one.computed for one in stories)
        )  # fmt: skip

    def communicated(self, call: Call, order: int) -> None:
        """The results are new; what they are multiplied by counts from here."""
        sources = {_key(tensor) for tensor in call.sources}
        for tensor in call.results:
            self.set(tensor, Story(Fraction(1), order))
            if call.operation == "reduce-scatter" and _key(tensor) not in sources:
                self._filling.add(_key(tensor))

    def again(self, operation: str, ranks: tuple[int, ...], call: Call) -> bool:
        """Whether this very tensor, unchanged, was already reduced like this into another one: then the result
        is the same once more, and no contribution counts twice."""
        inside = {_key(tensor) for tensor in call.results}
        if call.op is None or len(call.sources) != 1 or _key(call.sources[0]) in inside:
            return False
        source = call.sources[0]
        key = (operation, ranks, _key(source), source.storage_offset(), source.numel())
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
        elif name in COPIES:
            self._copy(name, args, kwargs, result)
        elif name in FRESH:
            for tensor in tensors(args[0]):
                self.set(tensor, NEW)

    def _scale(self, source: Any, by: Any, power: int, result: Any) -> None:
        if isinstance(source, torch.Tensor) and isinstance(result, torch.Tensor):
            self.set(result, scaled(self.of(source), by, power))

    def _scale_each(self, sources: Any, by: Any, power: int, results: Any) -> None:
        factors = by if isinstance(by, list | tuple) else [by] * len(sources)
        for source, factor, result in zip(sources, factors, results, strict=True):
            self._scale(source, factor, power, result)

    def _copy(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if name == "copy_":
            # gloo reduces in a buffer of its own, and copies the result out when it is waited for.
            if _key(args[0]) not in self._filling or self.of(args[1]) != NEW:
                self.set(args[0], self.of(args[1]))
            self._filling.discard(_key(args[0]))
        elif name == "_foreach_copy_":
            for target, source in zip(args[0], args[1], strict=True):
                self.set(target, self.of(source))
        else:
            out = list(tensors(kwargs.get("out")))
            story = self.merged(list(tensors(args)))
            for tensor in out or tensors(result):
                self.set(tensor, story)


def scaled(story: Story, by: Any, power: int) -> Story:
    if isinstance(by, torch.Tensor):
        return replace(story, computed=True)
    if story.factor is None or isinstance(by, complex) or by == 0 or by != by:
        return replace(story, factor=None)
    number = Fraction(by).limit_denominator(BOUND) if abs(by) >= 1 else 1 / Fraction(1 / by).limit_denominator(BOUND)
    return replace(story, factor=story.factor * number**power)


def _key(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata
