"""What the words of a shell script become: variables, arrays, defaults and sums filled in, as far as they are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from placelogic.files import whole
from placelogic.frontends.readers.conditions import counted
from placelogic.problem import Problem, SpecError
from placelogic.source import Span

MAX_FILLED = 1_000_000
"""Characters of all words with their variables filled in: they multiply."""

Node = Any
"""A node of the syntax tree."""


class Word(NamedTuple):
    """`maybe`: it is there in one branch of the script, and in another it is not."""

    text: str
    span: Span
    maybe: bool = False


Words = tuple[Word, ...]


class Values:
    """The variables of a script: a variable that has one value or another has all of them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.variables: dict[str, tuple[Words, ...]] = {}
        self.used: set[str] = set()
        self.files: list[tuple[str, bytes]] = []
        self._room = MAX_FILLED

    def assign(self, node: Node) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or name.type != "variable_name":  # one entry of an array
            if name is not None and name.named_children:
                self.unknown(text_of(name.named_children[0]))
            return
        key = text_of(name)
        if value is not None and value.type == "array":
            new: Words = tuple(
                word for child in value.named_children if child.type != "comment" for word in self.expanded(child)
            )
            more = lambda old: (*old, *new)
        else:
            text = "" if value is None else self.written(value)
            new = (Word(text, self.span(node)),)
            more = lambda old: (Word((old[0].text if old else "") + text, self.span(node)),)
        self.spend(sum(len(word.text) for word in new))
        if any(child.type == "+=" for child in node.children):
            self.variables[key] = tuple(more(old) for old in self.variables.get(key, ((),)))
        else:
            self.variables[key] = (new,)

    def unknown(self, name: str) -> None:
        """It has a value from here on that is not followed."""
        self.variables[name] = ((Word(f"${{{name}}}", whole(self.path)),),)

    def expanded(self, node: Node) -> list[Word]:
        """The words that a word becomes."""
        inner = node.named_children
        quoted = node.type == "string" and len(inner) == 1 and text_of(node) == f'"{text_of(inner[0])}"'
        name, array = _variable(inner[0] if quoted else node)
        values = self.variables.get(name) if name is not None else None
        if values is None or (quoted and not array):
            return [Word(self.written(node), self.span(node))]
        words = [*self.every(values)]
        if array and any(word.text == f"${{{name}}}" for word in words):
            message = f"`{name}` is set in a way that is not followed, and what it holds may decide"
            hint = "write its values into the script, or the arguments into a file of their own"
            raise SpecError(Problem("PL506", message, self.span(node), hint))
        if len({tuple(word.text for word in value) for value in values}) > 1 and not any(
            word.text.startswith("--") for word in words
        ):
            return [Word(text_of(node), self.span(node))]
        self.used.add(name or "")
        split = words if array else [word._replace(text=one) for word in words for one in word.text.split()]
        self.spend(sum(len(word.text) for word in split))
        return split

    def every(self, values: tuple[Words, ...]) -> Iterator[Word]:
        """All words of all values of a variable."""
        every = [{word.text for word in value} for value in values]
        seen: set[tuple[str, Span]] = set()
        for value in values:
            for word in value:
                if word[:2] not in seen:
                    seen.add(word[:2])
                    yield word._replace(maybe=word.maybe or not all(word.text in one for one in every))

    def written(self, node: Node) -> str:
        """The text that a word becomes, with what is not known as it is written."""
        match node.type:
            case "raw_string":
                return text_of(node)[1:-1]
            case "word" | "string_content" | "extglob_pattern" | "regex":
                return _unescaped(text_of(node), in_string=node.type == "string_content")
            case "simple_expansion" | "expansion":
                return self._substituted(node)
            case "arithmetic_expansion":
                number = counted(node, self.number)
                return text_of(node) if number is None else str(number)
            case "string" | "concatenation" | "command_name":
                return self._pieces(node)
            case _:
                return text_of(node)

    def _pieces(self, node: Node) -> str:
        source = self.files[-1][1]
        start, end = node.start_byte, node.end_byte
        if node.type == "string":
            start, end = start + 1, end - 1
        parts: list[str] = []
        for child in node.named_children:
            parts += (source[start : child.start_byte].decode("utf-8", "replace"), self.written(child))
            start = child.end_byte
        text = "".join([*parts, source[start:end].decode("utf-8", "replace")])
        self.spend(len(text))
        return text

    def _substituted(self, node: Node) -> str:
        name = text_of(node.named_children[0]) if node.named_children else ""
        values = self.variables.get(name)
        if values is not None and len(values) > 1:
            return text_of(node)
        value = " ".join(word.text for word in values[0]) if values is not None and len(values) == 1 else None
        self.used.add(name)
        operator = next((c for c in node.children if not c.is_named and c.type not in ("$", "${", "}")), None)
        if operator is None:
            return text_of(node) if value is None else value
        other = self.files[-1][1][operator.end_byte : node.end_byte - 1].decode("utf-8", "replace")
        given = [child for child in node.named_children if child.start_byte >= operator.end_byte]
        other = "".join(map(self.written, given)) if given else other
        match operator.type:
            case ":-" | ":=" | "-" | "=":
                return value if value or (value == "" and ":" not in operator.type) else other
            case ":+" | "+":
                return text_of(node) if values is None else other if value else ""
            case _:
                return text_of(node)

    def number(self, text: str) -> int | None:
        """A whole number, or the variable of that name."""
        values = self.variables.get(text.lstrip("$").strip("{}"))
        if values is not None and len(values) == 1 and len(values[0]) == 1:
            text = values[0][0].text
        return int(text) if text.isascii() and text.lstrip("-").isdigit() and len(text) < 19 else None

    def spend(self, count: int) -> None:
        self._room -= count
        if self._room < 0:
            raise self.too_large(f"variables filled in, this file holds more than {MAX_FILLED} characters")

    def too_large(self, message: str) -> SpecError:
        return SpecError(Problem("PL502", message, whole(self.path), "is this a launch script?"))

    def span(self, node: Node) -> Span:
        path, source = self.files[-1]
        (row, start), (end_row, end) = node.start_point, node.end_point
        column = _column(source, node.start_byte, start)
        last = _column(source, node.end_byte, end) if row == end_row else column + 1
        return Span(path, row + 1, column, row + 1, max(last, column + 1))


def _column(source: bytes, at: int, column: int) -> int:
    """From 1, in characters; in bytes on a line that nobody reads."""
    return len(source[at - column : at].decode("utf-8", "replace")) + 1 if column < 10_000 else column + 1


def text_of(node: Node) -> str:
    return node.text.decode("utf-8", "replace")


def _variable(node: Node) -> tuple[str | None, bool]:
    """The variable that an expansion is of, and whether it is all of an array."""
    if node.type not in ("simple_expansion", "expansion") or not node.named_children:
        return None, False
    name = node.named_children[0]
    plain = node.type == "simple_expansion" or text_of(node).endswith((text_of(name) + "}",))
    if name.type == "subscript":
        inner, index = name.named_children[0], text_of(name).partition("[")[2].rstrip("]")
        return (text_of(inner), True) if plain and index in ("@", "*") else (None, False)
    if text_of(name) in ("@", "*"):
        return "@", True
    return (text_of(name), False) if plain and name.type == "variable_name" else (None, False)


def is_known(text: str) -> bool:
    return "$" not in text and "`" not in text


def _unescaped(text: str, *, in_string: bool) -> str:
    parts, taken = [], False
    for at, sign in enumerate(text):
        if taken:
            parts.append("" if sign == "\n" else sign if not in_string or sign in '$`"\\' else "\\" + sign)
            taken = False
        elif sign == "\\" and at + 1 < len(text):
            taken = True
        else:
            parts.append(sign)
    return "".join(parts)
