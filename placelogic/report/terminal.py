"""Where reports are printed: colours on a terminal that wants them, plain lines everywhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from placelogic.io.quoting import visible, visible_lines
from placelogic.report.layout import Line, Style, plain

if TYPE_CHECKING:
    from rich.console import Console

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
    """Make printing safe: characters that a stream cannot encode come out as escapes, and a stream
    that the shell closed takes everything."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # it lives as long as we do
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def discard_output() -> None:
    """After writing to standard output failed: what its buffer still holds goes nowhere, or closing
    the stream at exit would fail again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def terminal_width(stream: TextIO) -> int | None:
    """Columns of the terminal behind the stream; None when it is a file or a pipe."""
    return _columns() if _is_terminal(stream) else None


def _columns() -> int:
    import shutil  # with all of its compressions: only where there is a terminal

    return shutil.get_terminal_size().columns


def wants_colour(stream: TextIO) -> bool:
    return _is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def document(stream: TextIO, text: str) -> None:
    """Write what is a file of its own, for other programs: as it is, but made harmless for a terminal."""
    stream.write(visible_lines(text) if _is_terminal(stream) else text)


class Printer:
    """Prints lines as they come. Empty lines part paragraphs: several count as one, and there is
    none at the beginning or the end."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._colour = wants_colour(stream)
        self._console: Console | None = None
        self._started = False
        self._gap = False

    def lines(self, lines: Iterable[Line]) -> None:
        for line in lines:
            line = tuple((visible(part), style) for part, style in line)
            text = plain(line)
            if not text:
                self._gap = self._started
                continue
            if self._gap:
                self.stream.write("\n")
            self._started, self._gap = True, False
            if self._colour:
                self._coloured(line)
            else:
                self.stream.write(text + "\n")

    def _coloured(self, line: Line) -> None:
        from rich.console import Console
        from rich.text import Text

        if self._console is None:
            self._console = Console(file=self.stream, highlight=False, soft_wrap=True)
        text = Text.assemble(*((part, _COLOURS.get(style, "")) for part, style in line))
        self._console.print(text, soft_wrap=True)


class Progress:
    """One line on a terminal that says which file is being read; silent anywhere else."""

    def __init__(self, paths: Sequence[str], stream: TextIO) -> None:
        self._paths = paths
        self._done = -1
        self._stream = stream
        self._on = len(paths) > 1 and _is_terminal(stream) and os.environ.get("TERM") != "dumb"

    def step(self) -> None:
        """The next file begins."""
        self._done += 1
        if self._on and self._done < len(self._paths):
            room = max(_columns() - 1, 20)
            text = f"[{self._done + 1}/{len(self._paths)}] {self._paths[self._done]}"
            self._stream.write("\r\x1b[2K" + visible(text).encode("ascii", "replace").decode()[:room])
            self._stream.flush()

    def clear(self) -> None:
        if self._on:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()


class Stages:
    """One line on a terminal that says what is being done now; silent anywhere else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._on = _is_terminal(stream) and os.environ.get("TERM") != "dumb"

    def tell(self, what: str) -> None:
        if self._on:
            room = max(_columns() - 1, 20)
            self._stream.write("\r\x1b[2K" + visible(what).encode("ascii", "replace").decode()[:room])
            self._stream.flush()

    def clear(self) -> None:
        if self._on:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
