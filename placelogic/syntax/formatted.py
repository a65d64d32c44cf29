"""`fmt` for files: the canonical form of a file, and what would change."""

from __future__ import annotations

from msgspec import Struct

from placelogic.io.quoting import visible
from placelogic.io.writing import replace_file


class Formatted(Struct, frozen=True):
    """The bytes of a file as they are and as they should be, and both as text."""

    path: str
    old: bytes
    new: bytes
    old_text: str
    new_text: str

    @property
    def changed(self) -> bool:
        return self.old != self.new

    def diff(self) -> str:
        """A unified diff; empty when only line ends or a byte order mark differ."""
        import difflib

        path = visible(self.path)
        before, after = (text.splitlines(keepends=True) for text in (self.old_text, self.new_text))
        lines = difflib.unified_diff(before, after, path, f"{path} (formatted)")
        return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)

    def write(self) -> None:
        """Replace the file, unless it is right already. Raises SpecError."""
        if self.changed:
            replace_file(self.path, self.old, self.new)


def format_file(path: str) -> Formatted:
    """Read and format one file; nothing is written. Raises SpecError."""
    from placelogic.syntax.read import read_bytes

    return format_bytes(read_bytes(path), path)


def format_bytes(data: bytes, path: str) -> Formatted:
    """Format the content of a file. Line ends stay what they are; a byte order mark goes."""
    from placelogic.syntax.format import format_text
    from placelogic.syntax.read import decode, normalised

    text = decode(data, path)
    formatted = format_text(text, path)
    new = formatted.replace("\n", "\r\n") if "\r\n" in text else formatted
    return Formatted(path, data, new.encode("utf-8"), normalised(text), formatted)
