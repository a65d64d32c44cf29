"""Writes the spec that combines strategies: an axis for each, weights of every kind, micro-batches, clipping."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from placelogic.combine.strategies import Strategy, bound, scope_of, strategy
from placelogic.elaborate.bind import axis_names
from placelogic.elaborate.library import Scope
from placelogic.problem import SpecError
from placelogic.program.expr import Name
from placelogic.session.session import Session
from placelogic.source import Span
from placelogic.syntax import ast

PATH = "<combination>"

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_WEIGHTS = {
    "matrix": ("attn", "size 4*{h}*{h}*{L}, layers {L}, kind matrix"),
    "vector": ("norm", "size 2*{h}*{L}, layers {L}, kind vector"),
    "embedding": ("embed", "size {V}*{h}, kind embedding, used on first and last"),
    "expert": ("expert", "size 3*{E}*{h}*{h}*{L}, layers {L}, kind expert"),
    "router": ("router", "size {E}*{h}*{L}, layers {L}, kind router"),
}
"""One weight group of each kind but `latent`, which strategies place as norms. The embedding is tied: without stages, that says nothing."""


class Part(Struct, frozen=True):
    """One strategy of a combination, as it is called: `zero2(d)`."""

    name: str
    call: str
    axes: tuple[str, ...]


class Composition(Struct, frozen=True):
    """`text`: the spec. `axes`: of the mesh, in order. `same_axis`: whether the strategies share their first one."""

    parts: tuple[Part, ...]
    axes: tuple[str, ...]
    text: str
    same_axis: bool

    @property
    def name(self) -> str:
        return " * ".join(part.call for part in self.parts)

    def extended(self, *statements: str) -> str:
        """The spec with more statements."""
        return self.text + "".join(f"{statement}\n" for statement in statements)


def compose(
    words: Sequence[str], same_axis: bool = False, imports: tuple[str, ...] = (), more: tuple[str, ...] = ()
) -> Composition:
    """The spec that combines these strategies. A word is a name (`zero2`), which is given axes of its own, or a
    call (`pipeline(pp, schedule = zbv)`), whose axes are declared. With `same_axis` the first axis of every
    strategy is one and the same. `more`: statements to add. Raises SpecError for what is no strategy."""
    scope = scope_of(imports)
    calls = [call for number, word in enumerate(words, 1) for call in _calls(word, number)]
    taken = [name for call in calls for name in _given(call, strategy(call.name, scope, call.span))]
    shared: str | None = None
    parts: list[Part] = []
    for call in calls:
        part, shared = _part(call, scope, taken, shared, same_axis)
        parts.append(part)
    axes = tuple(dict.fromkeys(axis for part in parts for axis in part.axes))
    head = [f'import "{path}"' for path in imports]
    text = _text(head, parts, axes, (), more)
    routed = _routed(text)
    return Composition(tuple(parts), axes, _text(head, parts, axes, routed, more) if routed else text, same_axis)


def _calls(word: str, number: int) -> Iterator[ast.StrategyCall]:
    from placelogic.syntax.parse import parse

    path = f"<strategy {number}>"
    word = word.strip()
    if _BARE.fullmatch(word):
        yield ast.StrategyCall(word, (), Span(path, 1, 5, 1, 5 + len(word)))
        return
    tree = parse(f"use {word}", path)  # one line: a shell quotes it as a whole
    for statement in tree.statements:
        if isinstance(statement, ast.UseStmt):
            yield from statement.calls


def _given(call: ast.StrategyCall, known: Strategy) -> Iterator[str]:
    for name, value in bound(call, known.parameters):
        if name in known.axes:
            yield from axis_names(value) or ()  # type: ignore[arg-type]


def _part(
    call: ast.StrategyCall, scope: Scope, taken: list[str], shared: str | None, same_axis: bool
) -> tuple[Part, str | None]:
    from placelogic.syntax.forms import text_of

    known = strategy(call.name, scope, call.span)
    given = {name for name, _ in bound(call, known.parameters)}
    added: list[tuple[str, str]] = []
    axes = list(_given(call, known))
    for position, parameter in enumerate(known.axes):
        first = same_axis and position == 0
        if parameter in given or (parameter in known.optional and not first):
            continue
        if first and shared is not None:
            axis = shared
        else:
            axis = _fresh(parameter, taken)
            taken.append(axis)
        axes.append(axis)
        added.append((parameter, axis))
    if same_axis and shared is None and axes:
        shared = axes[0]
    written = text_of(ast.StrategyCall(call.name, _tidy(call, added, known), call.span))
    return Part(call.name, written, tuple(axes)), shared


def _tidy(call: ast.StrategyCall, added: Sequence[tuple[str, str]], known: Strategy) -> tuple[ast.Argument, ...]:
    """The arguments as given, and the axes that were added: by position where that is their turn."""
    by_position = [argument for argument in call.arguments if argument.name is None]
    by_name = [argument for argument in call.arguments if argument.name is not None]
    for parameter, axis in added:
        turn = known.parameters[len(by_position) :][:1] == (parameter,)
        argument = ast.Argument(None if turn else parameter, Name(axis), call.span)
        (by_position if turn else by_name).append(argument)
    return (*by_position, *by_name)


def _fresh(name: str, taken: Sequence[str]) -> str:
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}{number}", number + 1
    return candidate


def _text(
    head: list[str], parts: Sequence[Part], axes: tuple[str, ...], routed: tuple[str, ...], more: tuple[str, ...]
) -> str:
    taken = list(axes)
    sizes = {}
    for size in ("h", "L", "V", "E", "M"):
        sizes[size] = _fresh(size, taken)
        taken.append(sizes[size])
    lines = [*head, f"mesh {', '.join(axes) or _fresh('N', taken)}"]
    lines.append(f"let {', '.join(sizes[size] for size in ('h', 'L', 'V', 'E'))}")
    lines.append(f"microbatches {sizes['M']}")
    for kind in _WEIGHTS:
        name, properties = _WEIGHTS[kind]
        route = f", routed over {'*'.join(routed)}" if kind == "expert" and routed else ""
        lines.append(f"weights {name} {{ {properties.format(**sizes)}{route} }}")
    lines.append("clip global_norm")
    lines.append(f"use {' * '.join(part.call for part in parts)}")
    return "".join(f"{line}\n" for line in [*lines, *more])


def _routed(text: str) -> tuple[str, ...]:
    """The axes that split tokens and deal experts out: there a token travels to its expert."""
    try:
        (spec,) = Session(text, "").specs
    except (SpecError, ValueError):
        return ()
    program = spec.elaborated.program
    if program is None:
        return ()
    tokens = {split.axis for split in program.work.splits if split.dim == "tokens"}
    expert = next((group for group in program.weights if group.kind == "expert"), None)
    cuts = expert.params.cuts if expert is not None else ()
    return tuple(axis for cut in cuts if cut.letter == "S" for axis in cut.axes if axis in tokens)
