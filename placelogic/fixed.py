"""The sizes that `--at` fixes, from its text."""

from __future__ import annotations


def fixed_sizes(text: str) -> dict[str, int]:
    """`dp=64,tp=8` as a mapping. Raises ValueError with what is wrong, for the person who wrote it."""
    sizes: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, number = (part.strip() for part in item.partition("="))
        if not equals or not name.isidentifier():
            raise ValueError(f"{item!r} is not of the form NAME=SIZE, as in dp=64")
        if len(number) > 30:
            raise ValueError(f"the size of {name} has {len(number)} digits; 30 are enough for any real size")
        if not (number.isascii() and number.isdigit() and int(number) > 0):
            raise ValueError(f"the size of {name} must be a positive whole number, not {number!r}")
        if name in sizes:
            raise ValueError(f"{name} is given twice")
        sizes[name] = int(number)
    return sizes
