"""Arguments of a training program: a shell script or launch line, a file of arguments, or YAML of them.

The result is flat: `--tensor-model-parallel-size 2` is the setting `tensor-model-parallel-size`. Shell is not run:
plain assignments are followed, and everything else stays as it is written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from placelogic.files import whole
from placelogic.frontends.values import MAX_VALUES, Value
from placelogic.problem import Problem, SpecError
from placelogic.source import Span

_OPTION = re.compile(r"--[A-Za-z][\w.-]*")
_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w{0,99})(?::?-([^}]{0,200}))?\}|([A-Za-z_]\w*))")
_PART = re.compile(r""""((?:[^"\\]|\\.)*)"|'([^']*)'|((?:\\.|[^"'\\])+|\\)""", re.DOTALL)
_LONGEST = 10_000
"""Characters of a word with its variables filled in; the rest is left out."""
MAX_FILLED = 1_000_000
"""Characters of all words with their variables filled in: they multiply."""

_TOKEN = re.compile(r"""\\\n|\n|[ \t\r]+|\#[^\n]*|[();]|&&|\|\||[|&]|
                        (?:\\.|"(?:[^"\\]|\\.)*"|'[^']*'|\$\([^()]*\)|[^\s();|&"'\\]|\\)+""", re.VERBOSE | re.DOTALL)  # fmt: skip


def read_arguments(text: str, path: str) -> Value:
    """The settings of a file of arguments. Raises SpecError PL500, PL506 or PL507."""
    if re.search(r"^[ \t]*(?:MODEL_ARGS\s*:|['\"]?--[\w-]+['\"]?\s*:|[a-z_]+:\s*(?:$|\S))", text, re.MULTILINE) and (
        path.endswith((".yaml", ".yml")) or "MODEL_ARGS:" in text
    ):
        return _from_yaml(text, path)
    return _from_shell(text, path)


def _from_yaml(text: str, path: str) -> Value:
    from placelogic.frontends.readers.yaml_file import read_yaml

    root = read_yaml(text, path)
    arguments = root.at("MODEL_ARGS") or root
    if isinstance(arguments.data, tuple):  # a list of words, as on a command line
        words = [(str(one.data), one.span) for one in arguments.data]
        return Value(_options(iter(words), path, branches=False), root.span)
    if not isinstance(arguments.data, Mapping):
        raise SpecError(Problem("PL507", "arguments are a mapping or a list of them", arguments.span))
    found: dict[str, Value] = {}
    for name, value in arguments.data.items():
        if isinstance(value.data, Mapping) and not name.startswith("--"):  # --yaml-cfg: settings in sections
            found |= {_name(inner): one for inner, one in value.data.items()}
        else:
            found[_name(name)] = value
    if root.at("MODEL_ARGS") is None and not any(name.startswith("--") for name in arguments.data) and not found:
        raise SpecError(Problem("PL507", "there are no arguments in this file", whole(path)))
    return Value(found, root.span)


def _from_shell(text: str, path: str) -> Value:
    words = _Words(text, path)
    found = _options(iter(words.all()), path, branches=words.branches)
    if not found:
        raise SpecError(Problem("PL507", "there are no arguments such as `--num-layers 12` in this file", whole(path)))
    return Value(found, whole(path))


def _name(text: str) -> str:
    return text.removeprefix("--").replace("_", "-")


class _Words(Struct):
    """The words of a script, variables filled in; `--` between commands ends the values of an option."""

    text: str
    path: str
    branches: bool = False
    room: int = MAX_FILLED

    def all(self) -> list[tuple[str, Span]]:
        variables: dict[str, str] = {}
        found = _Bounded(self.path)
        line, start, inside, fresh = 1, 0, 0, True
        for match in _TOKEN.finditer(self.text):
            word = match[0]
            span = Span(self.path, line, match.start() - start + 1, line, match.end() - start + 1)
            newlines = word.count("\n")
            if newlines:
                line += newlines
                start = match.start() + word.rindex("\n") + 1
            if word == "\\\n" or word.isspace() and word != "\n" or word.startswith("#"):
                continue
            if word in ("\n", ";", "&&", "||", "|", "&"):
                fresh = True
                if not inside:
                    found.append(("", span))
                continue
            if word in "()":
                inside += 1 if word == "(" else -1 if inside else 0
                found.append(("", span))
                continue
            if fresh and not inside and word in ("if", "case", "for", "while"):
                self.branches = True
            assigned = _ASSIGNMENT.fullmatch(word) if not inside and not word.startswith("-") else None
            if assigned:
                value = self.filled(assigned[2], variables)
                variables.setdefault(assigned[1], value)
                if variables[assigned[1]] != value:
                    variables[assigned[1]] = f"${assigned[1]}"  # more than one value: not followed
                if "--" in value:
                    found.append(("", span), *((one, span) for one in value.split()), ("", span))
                continue
            fresh = False
            found.append((self.filled(word, variables), span))
        return found.words

    def filled(self, word: str, variables: Mapping[str, str]) -> str:
        """Without quotes, and with the values of variables. Raises SpecError PL502 where they multiply."""
        value = _filled(_unquoted(word), variables)
        self.room -= len(value)
        if self.room < 0:
            message = f"variables filled in, this file holds more than {MAX_FILLED} characters"
            raise SpecError(Problem("PL502", message, whole(self.path), "is this a launch script?"))
        return value


class _Bounded(Struct):
    """The words found so far. Raises SpecError PL502 beyond the bound."""

    path: str
    words: list[tuple[str, Span]] = field(default_factory=list)

    def append(self, *words: tuple[str, Span]) -> None:
        self.words += words
        if len(self.words) > MAX_VALUES:
            raise SpecError(Problem("PL502", f"this file holds more than {MAX_VALUES} words", whole(self.path)))


def _unquoted(word: str) -> str:
    parts = _PART.findall(word)
    return "".join(a.replace("\\\n", " ") or b or re.sub(r"\\(.)", r"\1", c) for a, b, c in parts)


def _filled(word: str, variables: Mapping[str, str]) -> str:
    parts: list[str] = []
    length = end = 0
    for match in _VARIABLE.finditer(word):
        name = match[1] or match[3]
        parts += (word[end : match.start()], variables.get(name, match[2] if match[2] is not None else match[0]))
        end = match.end()
        length += len(parts[-2]) + len(parts[-1])
        if length >= _LONGEST:
            break
    return "".join([*parts, word[end:]])[:_LONGEST]


def _options(words: Iterator[tuple[str, Span]], path: str, *, branches: bool) -> dict[str, Value]:
    found: dict[str, Value] = {}
    name, place, values = "", whole(path), list[str]()

    def close() -> None:
        if not name:
            return
        data: bool | str = " ".join(values) if values else True
        before = found.get(name)
        differs = before is not None and before.data != data
        # The last one counts, as in argparse; but who knows which of two branches a script takes?
        found[name] = Value(data, place, place, before if differs else None, unsure=differs and branches)

    for word, span in words:
        if _OPTION.match(word):
            close()
            head, equals, value = word.partition("=")
            name, place, values = _name(head), span, [value] if equals else []
            if equals:
                close()
                name = ""
        elif word == "" or word.endswith(".py") or "[@]" in word:  # the end of a command, or what it starts
            close()
            name, values = "", []
        elif name:
            values.append(word)
    close()
    return found
