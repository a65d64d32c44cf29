"""Small wrong changes to a Python file, for the mutation check of the rules (see mutants.py).

A mutation replaces one node of the syntax tree. Wording, spans and annotations are left alone: they
decide no verdict.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from msgspec import Struct

WORDING = {
    "message", "label", "help", "name", "fault", "span", "stated", "because", "what", "code", "where", "later",
    "axes", "weights", "origin", "warning", "shown", "spans",
}  # fmt: skip
"""Keywords and variables that only reports read."""

WORDS = {
    "partial": ("replicated",), "replicated": ("partial",), "root": ("replicated",), "shard": ("replicated",), "absent": ("shard",),
    "sum": ("mean",), "mean": ("sum",), "same": ("different",), "different": ("same",),
    "S": ("S*",), "S*": ("S",), "item": ("activation",), "use": ("item",), "activation": ("item",), "flat": ("param",),
    "update": ("clip",), "clip": ("update",), "skip": ("clip",), "broadcast": ("different",),
    "=": ("distinct",), "distinct": ("=",), ">=": (">",), ">": (">=",), "<=": ("<",), "<": ("<=",),
    "first": ("last",), "last": ("first",), "gather": ("slice",), "slice": ("gather",), "scatter": ("sum",), "scatter_mean": ("scatter",),
    "pad": ("slice",), "zero": ("none",), "each": ("but_last",), "but_last": ("each",), "but_first": ("each",),
}  # fmt: skip
"""A word of the rules, and what is put in its place."""

NAMES = {
    "TRUE": "FALSE", "FALSE": "TRUE", "PARTIAL": "REPLICATED", "REPLICATED": "PARTIAL", "both": "either", "either": "both",
    "any": "all", "all": "any", "max": "min", "min": "max",
}  # fmt: skip

ATTRIBUTES = {
    "first": "last", "last": "first", "read": "ran", "ran": "read", "optimizer_state": "params",
}  # fmt: skip

COMPARES: dict[type, type] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
}  # fmt: skip

THROUGH = {"negate", "reversed", "mark"}
"""Calls that are replaced by their argument."""
SHORTENED = {"Kind", "Moved", "Fact", "shard", "spoil", "guard", "join"}
"""Calls that lose their last argument, or become their first."""

Path = tuple[tuple[str, int | None], ...]


class Mutation(Struct, frozen=True):
    """`where`: the function. `lines`: of the statement, first and last. `before` and `after`: source
    text. `new`: None deletes a statement or an entry."""

    file: str
    line: int
    lines: tuple[int, int]
    where: str
    before: str
    after: str
    path: Path
    new: ast.AST | None

    @property
    def key(self) -> str:
        """The same for the same change, also where lines have moved."""
        return f"{self.file}:{self.where}: {self.before} => {self.after}"


def mutations(source: str, file: str) -> list[Mutation]:
    """Every mutation of a file, in the order of the text."""
    tree = ast.parse(source)
    found = []
    for path, node, where, nearest, lines in _sites(tree, (), "", None, (0, 0)):
        for new in _changes(node):
            if file.startswith("layers"):  # there a share is a word of the plan, and nothing is called `ran`
                new = ast.Constant(None) if isinstance(new, ast.Name) and new.id == "REPLICATED" else new
                if isinstance(new, ast.Attribute) and new.attr in ("read", "ran"):
                    continue
            before, after = _text(node), "nothing" if new is None else _text(new)
            if nearest is not None and nearest is not node and len(before) < 12:
                before, after = _in_context(nearest, node, new, before, after)
            found.append(Mutation(file, node.lineno, lines, where, before, after, path, new))
    return found


def apply(source: str, mutation: Mutation) -> str:
    """The text of the mutated file."""
    tree = ast.parse(source)
    node: ast.AST = tree
    for field, index in mutation.path[:-1]:
        value = getattr(node, field)
        node = value if index is None else value[index]
    field, index = mutation.path[-1]
    if index is None:
        setattr(node, field, mutation.new)
    elif mutation.new is not None:
        getattr(node, field)[index] = mutation.new
    elif field == "body" and len(getattr(node, field)) == 1:
        getattr(node, field)[index] = ast.Pass()
    else:
        del getattr(node, field)[index]
    if mutation.file.startswith("prove"):
        tree.body.insert(_first(tree), ast.parse("from placelogic.prove.formula import FALSE, TRUE").body[0])
    return ast.unparse(ast.fix_missing_locations(tree))


def _first(tree: ast.Module) -> int:
    imports = [index for index, node in enumerate(tree.body) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return imports[0] + 1


# --- where ----------------------------------------------------------------------------------


Site = tuple[Path, ast.AST, str, "ast.AST | None", tuple[int, int]]


def _sites(node: ast.AST, path: Path, where: str, nearest: ast.AST | None, lines: tuple[int, int]) -> Iterator[Site]:
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params", "defaults", "ctx"):
            continue
        children = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if not isinstance(child, ast.AST) or _left_alone(child):
                continue
            if isinstance(node, ast.ClassDef) and isinstance(child, ast.AnnAssign):
                continue  # a field of a dataclass
            here, around, span = where, nearest, lines
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                here = f"{where}.{child.name}" if where else child.name
            if isinstance(child, ast.stmt):
                compound = hasattr(child, "body") or hasattr(child, "cases")
                around = nearest if compound else child
                span = (child.lineno, child.lineno if compound else child.end_lineno or child.lineno)
            elif isinstance(child, ast.match_case):
                span = (node.lineno, child.pattern.end_lineno)
            if isinstance(child, ast.expr) and isinstance(node, (ast.If, ast.match_case)):
                around = child
            if hasattr(child, "lineno") and where and not _covered(node, child):
                yield (*path, (field, index)), child, where, around, span
            yield from _sites(child, (*path, (field, index)), here, around, span)


def _covered(parent: ast.AST, node: ast.AST) -> bool:
    """Whether other mutations say as much: a decision is made both ways already, where it is taken."""
    decides = isinstance(parent, (ast.If, ast.IfExp, ast.comprehension, ast.BoolOp)) and isinstance(node, ast.Compare)
    word = isinstance(parent, (ast.Compare, ast.MatchValue)) and isinstance(node, ast.Constant) and node.value != 2
    index = isinstance(parent, ast.Subscript) and isinstance(node, ast.Constant)
    return decides or word or index


def _left_alone(node: ast.AST) -> bool:
    match node:
        case (
            ast.UnaryOp(op=ast.USub()) | ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.Raise() | ast.Assert()
        ):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))):
            return True
        case ast.keyword(arg=str(arg)):
            return arg in WORDING
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in WORDING
        case ast.Assign(targets=[ast.Tuple(elts=[ast.Name(id=name), *_])]):
            return name in WORDING
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.IfExp(body=ast.JoinedStr()):
            return True
        case ast.IfExp(body=ast.Constant(value=str(words))) if " " in words:
            return True
        case ast.FunctionDef(returns=ast.Name(id="str" | "Problem" | "SpecError" | "Told" | "Span")):
            return True  # words a report, or says where
    return False


# --- what -----------------------------------------------------------------------------------


def _changes(node: ast.AST) -> Iterator[ast.AST | None]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield ast.Compare(left, [COMPARES[type(op)]()], [right])
        case ast.BoolOp(op=op, values=values):
            if len(values) > 2:
                yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
            for index in range(len(values)):
                rest = [*values[:index], *values[index + 1 :]]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Subscript(value=value, slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))):
            yield ast.Subscript(value, ast.Constant(0), ast.Load())
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
            if value == 2:
                yield ast.Constant(1)
        case ast.Constant(value=str(value)):
            yield from (ast.Constant(word) for word in WORDS.get(value, ()))
        case ast.Name(id=name, ctx=ast.Load()) if name in NAMES:
            yield ast.Name(NAMES[name], ast.Load())
        case ast.Attribute(value=value, attr=attr, ctx=ast.Load()) if attr in ATTRIBUTES:
            yield ast.Attribute(value, ATTRIBUTES[attr], ast.Load())
        case ast.BinOp(left=left, op=op, right=right):
            yield from _arithmetic(left, op, right)
        case ast.IfExp(body=body, orelse=orelse):
            yield body
            yield orelse
        case ast.Call():
            yield from _calls(node)
        case ast.keyword(arg="violation", value=value) if not isinstance(value, ast.Name) or value.id != "FALSE":
            yield ast.keyword("violation", ast.Name("FALSE", ast.Load()))
        case ast.comprehension(ifs=[*conditions]):
            for index in range(len(conditions)):
                yield ast.comprehension(node.target, node.iter, [*conditions[:index], *conditions[index + 1 :]], 0)
        case ast.If(body=body, orelse=orelse):
            yield ast.If(ast.Constant(True), body, orelse)
            yield ast.If(ast.Constant(False), body, orelse)
        case ast.Match(subject=subject, cases=cases):
            for index in range(len(cases) - 1):
                body = cases[index + 1].body
                if "assert_never" not in _text(body[0]):
                    swapped = ast.match_case(cases[index].pattern, cases[index].guard, body)
                    yield ast.Match(subject, [*cases[:index], swapped, *cases[index + 1 :]])
        case ast.AugAssign() | ast.Continue() | ast.Expr(value=ast.Call()):
            yield None
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield None


def _arithmetic(left: ast.expr, op: ast.operator, right: ast.expr) -> Iterator[ast.AST]:
    match op:
        case ast.Mult():
            yield left
            yield right
        case ast.Div():
            yield left
            yield ast.BinOp(left, ast.Mult(), right)
        case ast.Add():
            yield left
        case ast.Sub():
            yield left
        case ast.BitOr():
            yield left
            yield right
        case ast.BitAnd():
            yield ast.BinOp(left, ast.BitOr(), right)
            yield left
        case ast.BitXor():
            yield left
            yield right


def _calls(node: ast.Call) -> Iterator[ast.AST]:
    name = (
        node.func.id
        if isinstance(node.func, ast.Name)
        else node.func.attr
        if isinstance(node.func, ast.Attribute)
        else ""
    )
    if name in THROUGH and node.args:
        yield node.args[0]
    if name in SHORTENED:
        if len(node.args) > 1:
            yield ast.Call(node.func, node.args[:-1], node.keywords) if name in ("Kind", "Moved") else node.args[0]
        for index in range(len(node.keywords)):
            yield ast.Call(node.func, node.args, [*node.keywords[:index], *node.keywords[index + 1 :]])
    if name == "replace":
        for index in range(len(node.keywords)):
            yield ast.Call(node.func, node.args, [*node.keywords[:index], *node.keywords[index + 1 :]])
    if name == "members":  # as if tied weights were held by every stage
        held = _text(node.func).rpartition(".")[0]
        sizes = f"{held}.sizes" if held else "sizes"
        yield ast.parse(f"{sizes}.size({_text(node.args[-1])})", mode="eval").body


# --- text -----------------------------------------------------------------------------------


def _text(node: ast.AST) -> str:
    match node:
        case ast.keyword(arg=arg, value=value):
            return f"{arg}={_text(value)}"
        case ast.If(test=test):
            return f"if {_text(test)}"
        case ast.Match(cases=cases):
            return " | ".join(f"{_text(case.pattern)}: {_text(case.body[0])}" for case in cases)
        case _:
            text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))
            return " ".join(text.split())


def _in_context(around: ast.AST, node: ast.AST, new: ast.AST | None, before: str, after: str) -> tuple[str, str]:
    """The statement around a short change, before and after."""
    if new is None:
        return before, after

    class Swap(ast.NodeTransformer):
        def visit(self, at: ast.AST) -> ast.AST:
            return new if at is node else self.generic_visit(at)

    whole = _text(around)
    changed = copy.deepcopy(around)  # keeps the order of nodes, so that the same one is found again
    at = next(b for a, b in zip(ast.walk(around), ast.walk(changed)) if a is node)
    node = at
    return whole, _text(Swap().visit(changed))
