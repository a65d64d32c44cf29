"""The statements that the verdicts rest on, read from `proofs/`, and their queries as SMT-LIB 2 text.

A statement is one Markdown file: `# title`, then the sections Statement, Source, Assumes (a list),
perhaps Setting, and one section per query. A query is called `## Proof NAME`, where unsat proves it,
or `## Witness NAME`, where sat exhibits what the statement says exists. The formulas are the `smt2`
blocks; those of Setting stand before every query.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct

_PACKAGE = Path(__file__).resolve().parents[1]
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```smt2\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_QUERY = re.compile(r"(Proof|Witness) ([a-z0-9_]+)")
_TEXTS = ("Statement", "Source", "Assumes")


class BadProof(Exception):
    """A file in proofs/ is not a statement; says which and why."""


class Query(Struct, frozen=True):
    """`text` is self-contained SMT-LIB 2. `expected`: the answer that the proof needs."""

    name: str
    expected: Literal["sat", "unsat"]
    text: str


class Statement(Struct, frozen=True):
    """`source`: the theorem or the rule that it is about. `assumes`: what it takes for granted."""

    name: str
    title: str
    statement: str
    source: str
    assumes: tuple[str, ...]
    queries: tuple[Query, ...]

    def file(self, query: Query) -> str:
        """The name of the exported query in proofs/smt2/."""
        return f"{self.name}.{query.name}.smt2"


def folder() -> Path:
    """proofs/: inside an installed package, beside it in a checkout."""
    installed = _PACKAGE / "proofs"
    return installed if installed.is_dir() else _PACKAGE.parent / "proofs"


def names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in folder().glob("*.md") if path.stem != "README"))


def load(wanted: Iterable[str] = ()) -> tuple[Statement, ...]:
    """The statements of these names, or all. Raises BadProof, and KeyError for an unknown name."""
    known = names()
    chosen = tuple(dict.fromkeys(wanted)) or known
    for name in chosen:
        if name not in known:
            raise KeyError(name)
    return tuple(parse(name, (folder() / f"{name}.md").read_text(encoding="utf-8")) for name in chosen)


def parse(name: str, text: str) -> Statement:
    """Raises BadProof."""
    head, *parts = _SECTION.split(text)
    title = head.strip().splitlines()[0] if head.strip() else ""
    if not title.startswith("# "):
        raise BadProof(f"{name}.md does not begin with a title")
    sections = list(zip(parts[::2], parts[1::2]))
    texts: dict[str, str] = {}
    setting = ""
    queries: list[Query] = []
    for heading, body in sections:
        formulas = "".join(_BLOCK.findall(body))
        if found := _QUERY.fullmatch(heading):
            if not formulas:
                raise BadProof(f"{name}.md: `{heading}` has no smt2 block")
            expected: Literal["sat", "unsat"] = "unsat" if found[1] == "Proof" else "sat"
            said = _BLOCK.sub("", body).strip()
            query = Query(found[2], expected, _script(title[2:], heading, said, setting + formulas, expected))
            if any(query.name == other.name for other in queries):
                raise BadProof(f"{name}.md: two queries are called {query.name}")
            queries.append(query)
        elif heading == "Setting":
            if queries:
                raise BadProof(f"{name}.md: the setting must stand before the queries")
            setting = formulas
        elif heading in _TEXTS and heading not in texts:
            texts[heading] = body.strip()
        else:
            raise BadProof(f"{name}.md: what is the section `{heading}`?")
    missing = [heading for heading in _TEXTS if not texts.get(heading)]
    if missing or not queries:
        raise BadProof(f"{name}.md has no {missing[0] if missing else 'query'}")
    source, assumes = _flowing(texts["Source"]), _items(texts["Assumes"])
    return Statement(name, title[2:], texts["Statement"], source, assumes, tuple(queries))


def _flowing(text: str) -> str:
    return " ".join(text.split())


def _items(text: str) -> tuple[str, ...]:
    return tuple(_flowing(item) for item in re.split(r"^- ", text, flags=re.MULTILINE) if item.strip())


def _script(title: str, heading: str, said: str, formulas: str, expected: str) -> str:
    """What a solver is given, and what stands in proofs/smt2/."""
    comment = [title, "", heading, *said.splitlines(), "", f"Run it: z3 FILE, or cvc5 FILE. It must say {expected}."]
    lines = [f"; {line}".rstrip() for line in comment]
    lines += ["(set-logic ALL)", formulas.strip(), "(check-sat)"]
    return "\n".join(lines) + "\n"


def exported(statements: Iterable[Statement]) -> dict[str, str]:
    """File name -> SMT-LIB 2 text, as kept in proofs/smt2/."""
    return {statement.file(query): query.text for statement in statements for query in statement.queries}


def table(statements: Iterable[Statement]) -> str:
    """The statements as a Markdown table, as kept in docs/proofs.md."""
    rows = ["| statement | says | stands for | proofs | witnesses |", "|---|---|---|---|---|"]
    for one in statements:
        proofs = sum(query.expected == "unsat" for query in one.queries)
        link = f"[`{one.name}`](../proofs/{one.name}.md)"
        rows.append(f"| {link} | {one.title} | {one.source} | {proofs} | {len(one.queries) - proofs} |")
    return "\n".join(rows) + "\n"
