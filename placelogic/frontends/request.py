"""What a person asks of an importer beside the file."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field


class Request(Struct, frozen=True):
    """`world`: how many devices there are. `given`: values by name, over those of the file. `version`: of the
    framework. `tokens`: whether shares of the work have equally many loss tokens, None to leave it to the importer.
    `unknown`: settings that nobody knows here and that may be left out, although their names speak of what decides."""

    world: int | None = None
    given: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None
    tokens: str | None = None
    unknown: tuple[str, ...] = ()
