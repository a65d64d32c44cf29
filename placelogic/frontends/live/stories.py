"""What is known of the content of tensors, by the region of memory they lie in: many tensors share a buffer."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import torch
from msgspec import Struct
from msgspec.structs import replace
from torch.multiprocessing.reductions import StorageWeakRef

BOUND = 2**20
"""Floating numbers are read as the nearest fraction with a denominator up to this: 1/3, not a sum of powers of two."""


class Story(Struct, frozen=True):
    """`factor`: what the content was multiplied by since it was computed or communicated (None: unknown);
    `parent`: the event it came out of; `computed`: multiplied by a tensor as well; `norm`: norms of tensors."""

    factor: Fraction | None = Fraction(1)
    parent: int | None = None
    computed: bool = False
    norm: bool = False


NEW = Story()


class Region(Struct, frozen=True):
    start: int
    end: int
    story: Story

    def without(self, start: int, end: int) -> list[Region]:
        """What is left of it outside of another region."""
        parts = [replace(self, end=min(self.end, start)), replace(self, start=max(self.start, end))]
        return [part for part in parts if part.start < part.end]


class Stories:
    """A storage that is freed takes its stories with it. What nothing is known of is `NEW`."""

    def __init__(self) -> None:
        self._storages: dict[int, tuple[StorageWeakRef, list[Region]]] = {}

    def of(self, tensor: torch.Tensor) -> Story:
        found = self._storages.get(storage_key(tensor))
        if found is None or found[0].expired():
            return NEW
        start, end = extent(tensor)
        inside = [region for region in found[1] if region.start < end and start < region.end]
        return merged([region.story for region in inside])

    def set(self, tensor: torch.Tensor, story: Story) -> None:
        key = storage_key(tensor)
        found = self._storages.get(key)
        if found is None or found[0].expired():
            if story == NEW:
                return
            found = (StorageWeakRef(tensor.untyped_storage()), [])
        start, end = extent(tensor)
        regions = [part for region in found[1] for part in region.without(start, end)]
        self._storages[key] = (found[0], [*regions, Region(start, end, story)])


def merged(stories: Sequence[Story]) -> Story:
    """One story for what is put together; the factor is unknown where they differ."""
    if not stories:
        return NEW
    same = all(one.factor == stories[0].factor for one in stories)
    parents = [one.parent for one in stories if one.parent is not None]
    return Story(
        stories[0].factor if same else None,
        max(parents, default=None),
        any(one.computed for one in stories),
        any(one.norm for one in stories),
    )


def scaled(story: Story, by: Any, power: int) -> Story:
    """Multiplied by a number (power 1), or divided by it (power -1)."""
    if isinstance(by, torch.Tensor):
        return replace(story, computed=True)
    if story.factor is None or not isinstance(by, int | float) or not 1 / BOUND < abs(by) < BOUND:
        return replace(story, factor=None)
    number = Fraction(by).limit_denominator(BOUND) if abs(by) >= 1 else 1 / Fraction(1 / by).limit_denominator(BOUND)
    return replace(story, factor=story.factor * number**power)


def storage_key(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def extent(tensor: torch.Tensor) -> tuple[int, int]:
    """From the first element in its storage to behind the last, in bytes."""
    if tensor.numel() == 0:
        return 0, 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.storage_offset() * tensor.element_size()
    return start, start + (last + 1) * tensor.element_size()
