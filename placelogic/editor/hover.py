"""What to know of the word at a place, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from placelogic.editor.complete import details, signature
from placelogic.editor.define import source
from placelogic.editor.names import Occurrence, at
from placelogic.editor.text import Text
from placelogic.program.catalog import SCHEDULES, STATES
from placelogic.program.expr import show
from placelogic.program.program import Cut, Layout, Program, Weights
from placelogic.source import Span
from placelogic.syntax import ast

_MODES = {
    "R": "**replicated (R)**: every device along these axes holds all of it.",
    "S": "**sharded (S)**: every device along these axes holds its own part.",
    "S*": "**gathered (S\\*)**: every device holds its own part, and gathers the rest, a unit at a time, when it is used.",
    "M": "**materialized (M)**: not kept, but computed again when needed.",
    "O": "**offloaded (O)**: on the host; `sharded offloaded` is a part, on the host.",
}
_MODES |= {"replicated": _MODES["R"], "sharded": _MODES["S"], "gathered": _MODES["S*"],
           "materialized": _MODES["M"], "offloaded": _MODES["O"]}  # fmt: skip

_WORD = re.compile(r"S\*|\w+")


def hover(text: Text, line: int, column: int) -> tuple[str, Span] | None:
    """The Markdown and the word it is about; None where there is nothing to say. Places count from 1."""
    found = at(text.names, line, column)
    if found is not None:
        said = _name(text, found)
        return (said, found.span) if said else None
    content = text.lines[line - 1].partition("#")[0] if 0 < line <= len(text.lines) else ""
    word = next((match for match in _WORD.finditer(content) if match.start() < column <= match.end()), None)
    said = _word(word[0]) if word is not None else ""
    return (said, Span(text.path, line, word.start() + 1, line, word.end() + 1)) if word is not None and said else None


def _word(word: str) -> str:
    """A word of the language: a mode, a code, or the first word of a statement."""
    if word in _MODES:
        return _MODES[word]
    from placelogic.explain.entries import UnknownCode, entry
    from placelogic.syntax.phrases import EXAMPLES

    if word.isupper() and len(word) == 4:
        try:
            return f"**{word}**: {entry(word).title}"
        except UnknownCode:
            return ""
    return f"```place\n{EXAMPLES[word]}\n```" if word in EXAMPLES else ""


def _name(text: Text, found: Occurrence) -> str:
    match found.space:
        case "definition":
            return _definition(text, found.name)
        case "weights":
            return "\n\n---\n\n".join(
                dict.fromkeys(_weights(program, found.name) for program in _holding(text, found.name))
            )
        case "size":
            return _size(text, found)
        case "spec":
            program = next((program for program in text.programs if program.name == found.name), None)
            return _spec(program) if program is not None else ""
        case "buffer":
            return f"**{found.name}**: a gradient buffer of this step."
        case "loss":
            return f"**{found.name}**: a loss term; every condition holds for each term."
        case _:
            return f"**{found.name}**: a dimension that a placement can cut."


def _definition(text: Text, name: str) -> str:
    definition = text.scope.find(name)
    if definition is None:
        return ""
    lines = source(text, definition.node.span).split("\n")
    first = definition.node.span.line - 1
    comment: list[str] = []
    while first - len(comment) > 0 and lines[first - len(comment) - 1].startswith("#"):
        comment.insert(0, lines[first - len(comment) - 1].lstrip("# "))
    body = "\n".join(lines[first : definition.node.span.end_line])
    kind = "model" if isinstance(definition.node, ast.ModelDef) else "strategy"
    head = f"**{kind} {signature(definition.node)}**"
    return "\n\n".join([head, *([" ".join(comment)] if comment else []), f"```place\n{body}\n```"])


def _holding(text: Text, weights: str) -> list[Program]:
    return [program for program in text.programs if any(group.name == weights for group in program.weights)]


def _size(text: Text, found: Occurrence) -> str:
    name = found.name
    if name in SCHEDULES:
        return f"**{name}**: a pipeline schedule{', in a V: first and last stage on one device' if SCHEDULES[name] else ''}."
    if found.owner is not None:
        return (
            f"**{name}**: a parameter or name of this definition."
            if not _in_spec(text, found.owner)
            else _declared(text, name)
        )
    return _declared(text, name)


def _in_spec(text: Text, owner: Span) -> bool:
    file = text.readable.file
    return file is not None and any(isinstance(s, ast.SpecDef) and s.span == owner for s in file.statements)


def _declared(text: Text, name: str) -> str:
    known = details(text, "axis")
    if name in known:
        facts = [line for program in text.programs for line in _axis(program, name)]
        return "\n".join([f"**{name}**: {known[name]}", *(f"\n- {fact}" for fact in dict.fromkeys(facts))])
    known = details(text, "size")
    return f"**{name}** {known[name]}" if name in known else ""


def _axis(program: Program, name: str) -> Iterator[str]:
    """What an axis splits and cuts."""
    atoms = next((factors for view, factors in program.mesh.views if view == name), (name,))
    for split in program.work.splits:
        if split.axis in atoms:
            yield f"splits {split.dim}"
    if program.stages is not None and program.stages.axis in atoms:
        yield f"holds pipeline stages ({program.stages.schedule})"
    for state in STATES:
        cut = [w.name for w in program.weights if any(_layout(w, state).cut(atom) is not None for atom in atoms)]
        if cut:
            yield f"cuts {state} of {', '.join(f'`{weights}`' for weights in cut)}"


def _layout(weights: Weights, state: str) -> Layout:
    return weights.optimizer_state if state == "optimizer" else getattr(weights, state)


def _weights(program: Program, name: str) -> str:
    """Where the four states lie, how much of each a device holds, and the step."""
    from placelogic.elaborate.tree import to_ast
    from placelogic.syntax.unparse import statement_text

    group = program.group(name)
    size = show(group.size) if group.size is not None else "?"
    frozen = ", frozen" if group.frozen else ""
    parts = [f"**weights {name}** in `{program.name}`: kind {group.kind}, {size} elements{frozen}"]
    rows = ["| state | placed | elements on a device |", "|---|---|---|"]
    for state in STATES:
        if group.frozen and state in ("optimizer", "gradients"):
            continue
        layout = _layout(group, state)
        rows.append(f"| {state} | {_placed(program, layout)} | {_elements(program, group, state)} |")
    parts.append("\n".join(rows))
    if group.uses is not None:
        ends = [end for end, used in (("first", group.uses.first), ("last", group.uses.last)) if used]
        parts.append(f"On the {' and '.join(ends)} stage of {group.uses.axis} only.")
    blocks = [s for s in _statements(to_ast(program)) if isinstance(s, ast.StepStmt) and name in s.target.names]
    step = program.step(name)
    if blocks and step is not None:
        said = "stated" if step.stated else "derived, but for what is stated" if step.lines else "derived"
        parts.append(f"The step ({said}):\n\n```place\n{statement_text(blocks[0])}\n```")
    return "\n\n".join(parts)


def _statements(file: ast.File) -> tuple[ast.Statement, ...]:
    (first, *_) = file.statements
    return first.body if isinstance(first, ast.SpecDef) else file.statements


def _dimension(cut: Cut) -> str:
    return f"{cut.dim} of {cut.buffer}" if cut.buffer else str(cut.dim)


def _placed(program: Program, layout: Layout) -> str:
    """`S* over dp, S(out) over tp`; R where nothing is cut."""
    if layout.materialized is not None:
        return "M"
    cuts = [
        f"{cut.letter}{f'({_dimension(cut)})' if cut.dim else ''} over {program.mesh.label(cut.axes)}" for cut in layout.cuts
    ]
    text = ", ".join(cuts).replace("*", "\\*") or "R"
    return f"O: {text}" if layout.host is not None else text


def _elements(program: Program, group: Weights, state: str) -> str:
    """docs/semantics.md: R holds s, S holds s/N, S* also one unit while it is used, M nothing, O nothing here."""
    layout = _layout(group, state)
    if state == "activations" or group.size is None:
        return ""
    if layout.materialized is not None:
        return "0, a unit while used"
    divisors = [axis for cut in layout.cuts for axis in cut.axes]
    size = show(group.size)
    whole = f"({size})" if divisors and not size.replace("_", "").isalnum() else size
    text = whole + (f"/{divisors[0]}" if len(divisors) == 1 else f"/({'*'.join(divisors)})" if divisors else "")
    text = f"`{text}`"
    if any(cut.letter == "S*" for cut in layout.cuts):
        text += ", and a unit while used"
    return f"0; {text} on the host" if layout.host is not None else text


def _spec(program: Program) -> str:
    from placelogic.elaborate.show import show as shown

    return f"```place\n{shown(program)}```"
