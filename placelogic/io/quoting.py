"""One way of quoting for each language that is written here. What comes from a file, its name or a setting passes
through one of these functions, so that it stays text. JSON and XML are written by libraries, which quote."""

from __future__ import annotations

import json
import re
import shlex
import unicodedata

TAB = "    "
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_MOVING = frozenset(("Cc", "Cs", "Zl", "Zp"))


def visible(text: str) -> str:
    """One line for a terminal, and for what follows the comment sign of any language. Tabs are blanks; characters that
    move the cursor, end a line or turn the direction of writing are a replacement mark; bytes of a file name that
    are not UTF-8 are written as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character == "\t":
        return TAB
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    moves = character in _TURNING or unicodedata.category(character) in _MOVING
    return "\ufffd" if moves else character


def visible_lines(text: str) -> str:
    """The same for several lines, which stay lines."""
    return "\n".join(map(visible, text.split("\n")))


def python(text: str) -> str:
    """Inside double quotes, one or three of them: strings and docstrings."""
    return visible(text).replace("\\", "\\\\").replace('"', '\\"')


_LATEX = {"_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
          "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
          ">": r"\textgreater{}", "<": r"\textless{}"}  # fmt: skip


def latex(text: str) -> str:
    """Ordinary text between commands."""
    return "".join(_LATEX.get(character, character) for character in visible(text))


def markdown(text: str) -> str:
    """Text of a paragraph, a heading or a cell of a table."""
    return re.sub(r"[\\`*_{}\[\]<>#|~$]", r"\\\g<0>", visible(text))


def csv(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def github(text: str) -> str:
    """What a workflow command of GitHub Actions says; lines stay lines."""
    return visible_lines(text).replace("%", "%25").replace("\n", "%0A")


def github_property(text: str) -> str:
    """The value of a property of such a command."""
    return github(text).replace(":", "%3A").replace(",", "%2C")


def toml(text: str) -> str:
    """A text with its quotes; what is no character cannot be said in TOML, and is shown."""
    return json.dumps(re.sub(r"[\ud800-\udfff]", lambda one: visible(one[0]), text), ensure_ascii=False).replace("\x7f", "\\u007f")


def shell(text: str) -> str:
    """One word of a command for a shell to run."""
    return shlex.quote(visible(text))
