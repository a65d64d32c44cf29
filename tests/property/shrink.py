"""Makes a disagreeing spec small: drops lines, and whatever else can go, while it still disagrees."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

Keeps = Callable[[str], bool]


def shrink(text: str, keeps: Keeps) -> str:
    """The smallest text found for which `keeps` still holds; it must hold for `text`."""
    while True:
        smaller = next((candidate for candidate in _candidates(text) if candidate != text and keeps(candidate)), None)
        if smaller is None:
            return text
        text = smaller


def _candidates(text: str) -> Iterator[str]:
    """Smaller texts, bold changes first."""
    lines = text.splitlines()
    for length in (8, 4, 2, 1):
        for start in range(len(lines) - length + 1):
            yield _joined(lines[:start] + lines[start + length :])
    for start, end in _blocks(lines):
        yield _joined(lines[:start] + lines[end + 1 :])
        yield _joined(lines[:start] + lines[start + 1 : end] + lines[end + 1 :])
    for index, line in enumerate(lines):
        for shorter in _shorter(line):
            yield _joined([*lines[:index], shorter, *lines[index + 1 :]])


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _blocks(lines: list[str]) -> Iterator[tuple[int, int]]:
    """First and last line of every block."""
    open_lines: list[int] = []
    for index, line in enumerate(lines):
        if line.rstrip().endswith("{"):
            open_lines.append(index)
        elif line.strip() == "}" and open_lines:
            yield open_lines.pop(), index


def _shorter(line: str) -> Iterator[str]:
    """The line with one entry of a list less, or a simpler word."""
    for match in re.finditer(r", [^,{}]+(?=[,}\n ]|$)", line):
        yield line[: match.start()] + line[match.end() :]
    for match in re.finditer(r"(?<=[{ ])[^,{} ][^,{}]*, ", line):
        yield line[: match.start()] + line[match.end() :]
    for match in re.finditer(r" \* \w+", line):
        yield line[: match.start()] + line[match.end() :]
    for match in re.finditer(r" on (flat|param|layer|in|out|words|width|heads|vocab|hidden|sequence)\b", line):
        yield line[: match.start()] + line[match.end() :]
    for long, short in ((" scattered", ""), ("gathered", "replicated"), ("sharded", "replicated"), (" offloaded", "")):
        if long in line:
            yield line.replace(long, short, 1)
    for long, short in ((" and last", ""), ("first and ", ""), (" into main", ""), (" main", ""), (" from main", "")):
        if long in line:
            yield line.replace(long, short, 1)
