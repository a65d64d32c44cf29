"""Where reports are printed: colours on a terminal that wants them, plain lines everywhere else."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from typing import TextIO

from placelogic.report.layout import Line, Style, plain

_COLOURS: dict[Style, str] = {
    "error": "bold red",
    "warning": "bold yellow",
    "note": "cyan",
    "good": "bold green",
    "bad": "bold red",
    "doubt": "bold yellow",
    "strong": "bold",
    "gutter": "blue",
    "mark": "bold red",
}


def prepare_streams() -> None:
    """Characters that a stream cannot encode are printed as escapes instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def terminal_width(stream: TextIO) -> int | None:
    """Columns of the terminal behind the stream; None when it is a file or a pipe."""
    return shutil.get_terminal_size().columns if _is_terminal(stream) else None


def wants_colour(stream: TextIO) -> bool:
    return _is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


class Printer:
    """Prints lines as they come, and keeps count of blank lines between paragraphs."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._colour = wants_colour(stream)
        self._console = None
        self._open = False

    def lines(self, lines: Iterable[Line]) -> None:
        for line in lines:
            text = plain(line)
            if self._colour and text:
                self._coloured(line)
            else:
                self.stream.write(text + "\n")
            self._open = bool(text)

    def gap(self) -> None:
        """A blank line, unless there is one or nothing was printed yet."""
        if self._open:
            self.stream.write("\n")
            self._open = False

    def _coloured(self, line: Line) -> None:
        from rich.console import Console
        from rich.text import Text

        if self._console is None:
            self._console = Console(file=self.stream, highlight=False, soft_wrap=True)
        text = Text.assemble(*((part, _COLOURS.get(style, "")) for part, style in line))
        self._console.print(text, soft_wrap=True)


class Progress:
    """One line on a terminal that says which file is being read; silent anywhere else."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self._total = total
        self._stream = stream
        self._on = total > 1 and _is_terminal(stream) and os.environ.get("TERM") != "dumb"

    def at(self, number: int, path: str) -> None:
        if self._on:
            room = max(shutil.get_terminal_size().columns - 1, 20)
            text = f"[{number}/{self._total}] {path}"
            self._stream.write("\r\x1b[2K" + text.encode("ascii", "replace").decode()[:room])
            self._stream.flush()

    def clear(self) -> None:
        if self._on:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
