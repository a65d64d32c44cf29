"""Reading the declarations of sizes: mesh, axis, let, microbatches, assume, and values from --at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from placelogic.elaborate.expand import product
from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.sizes import Declared, check_name, integral
from placelogic.problem import closest
from placelogic.program import expr as ex
from placelogic.program.expr import Compare, Expr, Name, Num
from placelogic.program.program import Assumption, Atom, Let
from placelogic.source import NOWHERE, Span
from placelogic.syntax import ast

MAX_AXES = 60
MAX_NAMES = 500
"""More than any spec needs: bounds the time that files from strangers can take."""

MAX_BITS = 256
"""Of a size: bounds the time that exact arithmetic can take."""


def read_sizes(items: Sequence[Item], fixed: Mapping[str, int], log: Log) -> Declared:
    """Mesh, views, lets, the name of the micro-batch count, and assumptions; `fixed` (from --at) included."""
    sizes = Declared(log)
    count = _count(items)
    if isinstance(count, Name):
        fixed = {count.name if name == "microbatches" else name: value for name, value in fixed.items()}
    _declare(sizes, items)
    _views(sizes, items)
    _lets(sizes)
    _fix(sizes, items, fixed)
    _constants(sizes)
    for item in items:
        match item.statement:
            case ast.MeshStmt(axes):
                for axis in axes:
                    for bound in axis.bounds:
                        _assume(sizes, bound, item)
            case ast.AssumeStmt(conditions):
                for condition in conditions:
                    _assume(sizes, condition, item)
    sizes.assumptions += _fixed_assumptions(sizes, items, fixed)
    return sizes


def _declare(sizes: Declared, items: Sequence[Item]) -> None:
    for item in items:
        match item.statement:
            case ast.MeshStmt(axes):
                for axis in axes:
                    if _new(sizes, axis.name, "an axis", item, axis.span):
                        sizes.atoms[axis.name] = Atom(axis.name, axis.size and integral(axis.size), item.at(axis.span))
            case ast.LetStmt(lets):
                for let in lets:
                    if _new(sizes, let.name, "a size", item, let.span):
                        sizes.lets[let.name] = Let(let.name, let.value and integral(let.value), item.at(let.span))
    for item in items:
        match item.statement:
            case ast.MicrobatchesStmt(Name(name), span) if name not in sizes.items:
                if check_name(name, "the number of micro-batches", item, span, sizes.log):
                    sizes.items[name] = item
                    sizes.lets[name] = Let(name, None, item.at(span))
    _open_dims(sizes, items)


def _open_dims(sizes: Declared, items: Sequence[Item]) -> None:
    """Dimensions of blocks that no `dims` line gives a size: each has the size that is named like it,
    an open one where no `let` declares it."""
    found = [(item, dim) for item in items if isinstance(item.statement, ast.DimsStmt) for dim in item.statement.sizes]
    given = {dim.name for _, dim in found if dim.size is not None}
    views = {item.statement.name for item in items if isinstance(item.statement, ast.AxisStmt)}
    for item, dim in found:
        if dim.name in given or dim.name in sizes.dims:
            continue
        name = f"{dim.name}_size" if dim.name in sizes.atoms or dim.name in views else dim.name
        sizes.dims[dim.name] = Name(name)
        if name not in sizes.lets and _new(sizes, name, "a size", item, dim.span):
            sizes.lets[name] = Let(name, None, item.at(dim.span))


def _new(sizes: Declared, name: str, what: str, item: Item, span: Span) -> bool:
    if not check_name(name, what, item, span, sizes.log):
        return False
    axes = [*sizes.atoms, *sizes.views]
    if len(sizes.items) >= MAX_NAMES or what == "an axis" and len(axes) >= MAX_AXES:
        sizes.log.once(item, "PL303", f"a spec may have {MAX_AXES} axes and {MAX_NAMES} names for sizes", span,
                       "no mesh is that large")  # fmt: skip
        return False
    if name in sizes.items:
        sizes.log.at(item, "PL210", f"`{name}` is declared twice", span, "axes and sizes share their names: rename one")
        return False
    sizes.items[name] = item
    return True


def _views(sizes: Declared, items: Sequence[Item]) -> None:
    waiting: dict[str, tuple[ast.AxisStmt, Item]] = {}
    for item in items:
        match item.statement:
            case ast.AxisStmt(name, _, span) as node if _new(sizes, name, "an axis", item, span):
                waiting[name] = (node, item)
    order = list(waiting)
    while waiting:
        ready = [n for n, (node, _) in waiting.items() if not any(f in waiting for f in node.factors.names)]
        if not ready:
            name, (node, item) = next(iter(waiting.items()))
            sizes.log.at(item, "PL403", f"axis `{name}` is made of itself", node.span, "build it from axes of the mesh")
            break
        for name in ready:
            node, item = waiting.pop(name)
            sizes.views[name] = sizes.product(node.factors, item)
    sizes.views = {name: sizes.views[name] for name in order if name in sizes.views}


def _lets(sizes: Declared) -> None:
    """Values may use lets declared anywhere; the result is in an order in which each can be evaluated."""
    for let in sizes.lets.values():
        if let.value is not None:
            _only_lets(sizes, let.value, f"`{let.name}`", sizes.items[let.name], let.span)
    for atom in sizes.atoms.values():
        if atom.size is not None:
            _only_lets(sizes, atom.size, f"the size of axis `{atom.name}`", sizes.items[atom.name], atom.span)
    ordered: dict[str, Let] = {}
    waiting = dict(sizes.lets)
    while waiting:
        ready = [
            name
            for name, let in waiting.items()
            if let.value is None or not any(n.name in waiting for n in ex.names(let.value))
        ]
        if not ready:
            circle = ", ".join(f"`{name}`" for name in waiting)
            first = next(iter(waiting.values()))
            sizes.log.add("PL403", f"sizes are defined by each other: {circle}", first.span,
                          "give one of them a value of its own")  # fmt: skip
            break
        ordered |= {name: waiting.pop(name) for name in ready}
    sizes.lets = ordered


def _only_lets(sizes: Declared, value: Expr, what: str, item: Item, span: Span) -> None:
    for name in ex.names(value):
        if name.name in sizes.atoms or name.name in sizes.views:
            sizes.log.at(item, "PL350", f"{what} is given by axis `{name.name}`: that is not modelled", span,
                         "leave it open, and say `assume ... == ...`")  # fmt: skip
        elif name.name not in sizes.lets:
            known = list(sizes.lets)
            sizes.log.at(item, "PL201", f"`{name.name}` is not declared", span,
                         closest(name.name, known) or f"`let {name.name}` declares a size")  # fmt: skip


def _constants(sizes: Declared) -> None:
    for let in sizes.lets.values():
        if let.value is not None:
            _constant(sizes, let.name, let.value, f"`{let.name}`", let.span)
    for atom in sizes.atoms.values():
        if atom.size is not None:
            _constant(sizes, atom.name, atom.size, f"the size of axis `{atom.name}`", atom.span)


def _constant(sizes: Declared, name: str, value: Expr, what: str, span: Span) -> None:
    item = sizes.items[name]
    sizes.check_arithmetic(value, item, span)
    number = sizes.constant(value)
    if number is not None and number.numerator.bit_length() > MAX_BITS:
        sizes.log.at(item, "PL406", f"{what} is larger than any real size", span, "use smaller numbers")
    elif number is not None:
        sizes.check_size(number, what, item, span)
        sizes.constants[name] = number


def _assume(sizes: Declared, condition: Compare, item: Item) -> None:
    resolved = sizes.compare(condition, item)
    if not any(True for _ in ex.names(resolved)) and _true(resolved):
        return  # a library condition on numbers, such as heads % kv_heads == 0, that holds anyway
    sizes.assumptions.append(Assumption(resolved, ex.show(condition), item.at(condition.span)))


# --- sizes fixed from outside (--at) --------------------------------------------------------


def _fix(sizes: Declared, items: Sequence[Item], fixed: Mapping[str, int]) -> None:
    """Open axes and lets take the value; the rest becomes an assumption (below)."""
    known = [*sizes.atoms, *sizes.views, *sizes.lets]
    for name, value in fixed.items():
        if name not in known and not (name == "microbatches" and _count(items) is not None):
            sizes.log.add("PL221", f"--at fixes `{name}`, which is no axis or size of this spec", NOWHERE,
                          closest(name, known) or "`placelogic show` prints a spec with all its sizes")  # fmt: skip
        elif value < 1:
            sizes.log.add("PL405", f"--at fixes `{name}` to {value}, and sizes are at least 1", NOWHERE)
        elif name in sizes.atoms and sizes.atoms[name].size is None:
            sizes.atoms[name] = Atom(name, ex.number(value), sizes.atoms[name].span)
        elif name in sizes.lets and sizes.lets[name].value is None:
            sizes.lets[name] = Let(name, ex.number(value), sizes.lets[name].span)


def _count(items: Sequence[Item]) -> Expr | None:
    return next((i.statement.count for i in items if isinstance(i.statement, ast.MicrobatchesStmt)), None)


def _fixed_assumptions(sizes: Declared, items: Sequence[Item], fixed: Mapping[str, int]) -> Iterable[Assumption]:
    for name, value in fixed.items():
        if value < 1:
            continue
        if name in sizes.views:
            left: Expr = product(sizes.views[name])
        elif name in sizes.atoms or name in sizes.lets:
            left = Name(name)
        elif name == "microbatches" and (count := _count(items)) is not None:
            left = ex.substitute(count, {view: product(axes) for view, axes in sizes.views.items()})
        else:
            continue
        actual = sizes.constant(left)
        if actual is not None and actual != value:
            sizes.log.add("PL405", f"--at fixes `{name}` to {value}, and the spec says {actual}", NOWHERE,
                          f"leave `{name}` open in the spec")  # fmt: skip
        yield Assumption(Compare("==", left, Num(Fraction(value))), f"{name} == {value} (from --at)", NOWHERE)


def _true(condition: Compare) -> bool:
    try:
        return ex.holds(condition, {})
    except (KeyError, ZeroDivisionError, ValueError):
        return False
