"""Blocks of operations: every name known, every shape fitting, each tensor made once and used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from placelogic.elaborate.count import differs
from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.samples import mixes_samples
from placelogic.elaborate.sizes import Declared
from placelogic.elaborate.targets import Groups, WeightsGroup
from placelogic.problem import closest
from placelogic.program import block as bl
from placelogic.program.block import Dims
from placelogic.program.expr import Binary, Expr, show
from placelogic.program.operations import reads, sides, weights_of, within
from placelogic.program.table import facts
from placelogic.source import Span
from placelogic.syntax import ast


class BlockReader(Struct):
    """Reads the operations of one block. `tensors`: the dimensions of what was made so far; `failed`: what lines with
    problems make, which are told once; `joined`: what dimensions are put together of."""

    item: Item
    dims: Mapping[str, Expr]
    sizes: Declared
    groups: Groups
    log: Log
    joined: dict[str, Dims]
    tensors: dict[str, Dims] = field(default_factory=dict)
    operations: list[bl.Operation] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def problem(self, code: str, message: str, span: Span, hint: str | None) -> None:
        self.log.at(self.item, code, message, span, hint)

    def read(self, line: ast.OperationLine) -> None:
        """One operation; where its shapes do not fit, that is logged."""
        node = line.operator
        self.used.update(reads(node))
        if unknown := [name for name in reads(node) if name not in self.tensors]:
            for name in unknown:
                if name not in self.failed:
                    self.problem("PL223", f"there is no tensor `{name}` before this line", node.span,
                                 closest(name, self.tensors) or f"so far: {', '.join(self.tensors)}")  # fmt: skip
            self.failed.add(line.output)
            return
        made = self._operation(node)
        if made is None:
            self.failed.add(line.output)
            return
        operation, dims = made
        if self._unique(line.output, dims, line.span) and not self._each_sample_alone(operation, node.span):
            self.failed.add(line.output)
            return
        self.define(line.output, dims, line.span)
        self.operations.append(operation)

    def define(self, name: str, dims: Dims, span: Span) -> None:
        if name in self.tensors:
            self.problem("PL210", f"tensor `{name}` is made twice in this block", span, "give each its own name")
        self.tensors[name] = dims

    def known(self, dims: Sequence[str], span: Span) -> bool:
        """Whether all these dimensions are declared; logs the others."""
        unknown = [dim for dim in dims if dim not in self.dims]
        for dim in unknown:
            self.problem("PL224", f"there is no dimension `{dim}`", span,
                         closest(dim, self.dims) or f"`dims {dim}` declares it")  # fmt: skip
        return not unknown

    # --- one operation ---

    def _operation(self, node: Any) -> tuple[bl.Operation, Dims] | None:
        """The operation, its sizes and axes looked up, and the dimensions of what it makes."""
        if not self._weights(node):
            return None
        node = self._looked_up(node)
        produced, contracted = sides(node)
        match node:
            case bl.Linear() | bl.Router():
                if not self.known(produced, node.span):
                    return None
                dims = self._replaced(node.input, contracted, produced, node.span)
                if isinstance(node, bl.Linear) and node.grouped and not self._dispatched(node.input, node.span):
                    return None
                if isinstance(node, bl.Router):
                    self.sizes.positive(node.top, "the number of experts of a token", self.item, node.span)
                return dims and (node, dims)
            case bl.Embedding():
                fine = self.known((*contracted, *produced), node.span)
                return (node, self.tensors[node.input] + produced) if fine else None
            case bl.Add() | bl.Multiply():
                return (node, self.tensors[node.inputs[0]]) if self._alike(node.inputs, node.span) else None
            case bl.Concat():
                dims = _concat(self, node)
                return dims and (node, dims)
            case bl.Attention():
                return self._attention(node)
            case bl.Dispatch() | bl.Combine():
                dims = self._routed(node)
                return dims and (node, dims)
            case bl.CrossEntropy():
                if not self._has(node.input, (node.vocabulary,), node.span):
                    return None
                return node, tuple(dim for dim in self.tensors[node.input] if dim != node.vocabulary)
            case _:  # what it makes has the dimensions of what it reads
                kept = within(node)
                fits = self._has(node.input, kept, node.span) and self.known(contracted, node.span)
                apart = weights_of(node) is not None or isinstance(node, bl.Collective)
                twice = next((dim for dim in kept if kept.count(dim) > 1), None) if apart else None
                if fits and twice is not None:
                    self.problem("PL370", f"`{twice}` is named twice", node.span, "name each dimension once")
                    return None
                return (node, self.tensors[node.input]) if fits else None

    def _looked_up(self, node: Any) -> Any:
        """The operation with its axes in atoms, and its sizes looked up."""
        said: dict[str, Any] = {"origin": self.item.origin(node.span)}
        for name in node.__struct_fields__:
            value = getattr(node, name)
            if name == "axes":
                said[name] = self.sizes.axes(value, self.item)
            elif isinstance(value, Expr):
                said[name] = self.sizes.expr(value, self.item, node.span)
        return replace(node, **said)

    def _attention(self, node: bl.Attention) -> tuple[bl.Operation, Dims] | None:
        query, key, value = (self.tensors[name] for name in reads(node))
        if any(len(dims) < 3 or dims[-3] != "sequence" for dims in (query, key, value)):
            self.problem("PL370", "the last dimensions of what attention reads are `sequence`, the heads, and the size "
                         "of a head", node.span, "make it with `linear ... to heads, head`")  # fmt: skip
            return None
        fits = key[:-2] == query[:-2] and value[:-2] == query[:-2] and value[-2] == key[-2] and key[-1] == query[-1]
        if not fits:
            shapes = "; ".join(f"{name}({', '.join(self.tensors[name])})" for name in reads(node))
            self.problem("PL370", f"these do not fit for attention: {shapes}", node.span,
                         "query and key have heads of one size, key and value as many of them")  # fmt: skip
            return None
        made = replace(
            node, sequence=query[-3], heads=query[-2], kv_heads=key[-2], head=query[-1], value_head=value[-1]
        )
        return made, query[:-1] + value[-1:]

    def _routed(self, node: bl.Dispatch | bl.Combine) -> Dims | None:
        router = next((op for op in self.operations if isinstance(op, bl.Router) and op.output == node.router), None)
        if router is None:
            self.problem("PL371", f"`{node.router}` is made by no router", node.span,
                         "write `r = router x with ... top 2` before")  # fmt: skip
            return None
        if isinstance(node, bl.Dispatch):
            return (router.experts, *self.tensors[node.input])
        return self.tensors[node.input][1:] if self._dispatched(node.input, node.span) else None

    def _dispatched(self, x: str, span: Span) -> bool:
        experts = {op.experts for op in self.operations if isinstance(op, bl.Router)}
        if self.tensors[x][0] in experts:
            return True
        self.problem("PL371", f"`{x}` does not lie with experts", span, "dispatch it first: `t = dispatch x by r`")
        return False

    # --- what fits ---

    def _weights(self, op: bl.Operation) -> bool:
        """Whether it can use these weights, if it has any; logged where not."""
        name, entry = weights_of(op), facts(op)
        if name is None:
            return True
        group: WeightsGroup | None = next((group for group in self.groups.members if group.name == name), None)
        if group is None:
            self.problem("PL202", f"there are no weights `{name}`", op.span,
                         closest(name, self.groups.names) or f"weights: {', '.join(sorted(self.groups.names)) or 'none'}")  # fmt: skip
            return False
        kinds = ("expert",) if isinstance(op, bl.Linear) and op.grouped else entry.kinds
        if group.kind not in kinds:
            wanted = " or ".join(f"`kind {kind}`" for kind in kinds)
            self.problem("PL372", f"this operation {entry.does} `{name}`, which is of kind {group.kind}", op.span,
                         f"declare the weights with {wanted}")  # fmt: skip
        return group.kind in kinds

    def _has(self, x: str, dims: Sequence[str], span: Span) -> bool:
        missing = [dim for dim in dims if dim not in self.tensors[x]]
        if missing and self.known(missing, span):
            self.problem("PL370", f"`{x}` has no dimension `{missing[0]}`: it is ({', '.join(self.tensors[x])})", span,
                         closest(missing[0], self.tensors[x]) or "name a dimension that it has")  # fmt: skip
        return not missing

    def _alike(self, inputs: Sequence[str], span: Span) -> bool:
        first = inputs[0]
        for other in inputs[1:]:
            if self.tensors[other] != self.tensors[first]:
                shapes = " and ".join(f"{name}({', '.join(self.tensors[name])})" for name in (first, other))
                self.problem("PL370", f"these have different dimensions: {shapes}", span, "bring them to the same")
                return False
        return True

    def _replaced(self, x: str, contracted: Dims, produced: Dims, span: Span) -> Dims | None:
        """The dimensions of `x` with `produced` where the contracted ones stood, which must be adjacent."""
        if not self._has(x, contracted, span):
            return None
        dims = self.tensors[x]
        start = dims.index(contracted[0])
        if dims[start : start + len(contracted)] != contracted:
            self.problem("PL370", f"`{x}` is ({', '.join(dims)}), where {', '.join(contracted)} do not stand together in "
                         "this order", span, "contract neighbouring dimensions")  # fmt: skip
            return None
        return dims[:start] + produced + dims[start + len(contracted) :]

    def _unique(self, name: str, dims: Dims, span: Span) -> bool:
        twice = next((dim for dim in dims if dims.count(dim) > 1), None)
        if twice is not None:
            self.problem("PL370", f"`{name}` would have the dimension `{twice}` twice", span,
                         "declare a second dimension of the same size")  # fmt: skip
        return twice is None

    def _each_sample_alone(self, op: bl.Operation, span: Span) -> bool:
        found = mixes_samples(op)
        if found is not None:
            self.problem("PL396", f"`{op.output}` {found[0]}: what a sample comes to would depend on {found[1]}, which is "
                         "not modelled", span,
                         "the loss is a sum over samples: leave `batch` as it is, and name another dimension")  # fmt: skip
        return found is None


def used_dims(blocks: Sequence[bl.Block]) -> set[str]:
    """Those that a tensor or the weights of an operation have."""
    used = {dim for block in blocks for dims in block.tensors.values() for dim in dims}
    return used | {dim for block in blocks for op in block.operations for side in sides(op) for dim in side}


def _concat(reader: BlockReader, node: bl.Concat) -> Dims | None:
    """The dimensions of what putting tensors together along their last ones makes; None where something does not fit, which is logged."""
    if len(node.inputs) < 2:
        reader.problem("PL370", "one tensor is nothing to put together", node.span, "name the tensors that follow it")
        return None
    if not reader.known((node.into,), node.span):
        return None
    shapes = [reader.tensors[name] for name in node.inputs]
    rest, parts = shapes[0][:-1], tuple(dims[-1] for dims in shapes)
    told = "; ".join(f"{name}({', '.join(dims)})" for name, dims in zip(node.inputs, shapes))
    if len(set(parts)) < len(parts) or node.into in parts:
        reader.problem("PL370", f"each last dimension is to be another one than the rest: {told}", node.span,
                       "declare a dimension for each part, and one for the whole")  # fmt: skip
        return None
    for name, dims in zip(node.inputs, shapes):
        if dims[:-1] != tuple(dim for dim in rest if dim in dims[:-1]):
            reader.problem("PL370", f"`{name}` has other dimensions before its last one than `{node.inputs[0]}`, or in "
                           f"another order: {told}", node.span,
                           "name first the tensor that has them all; others may lack some, and are the same along these")  # fmt: skip
            return None
    known = reader.joined.setdefault(node.into, parts)
    nested = next((dim for dim in parts if dim in reader.joined), None)
    nested = nested or next((node.into for others in reader.joined.values() if node.into in others), None)
    if known != parts or nested is not None:
        message = f"`{node.into}` is put together of {', '.join(known)} before, and of {', '.join(parts)} here"
        if known == parts:
            message = f"`{nested}` is put together itself, and a part of another dimension"
        reader.problem("PL370", message, node.span, "give each its own dimension, and put all parts together at once")
        return None
    size = reader.dims[parts[0]]
    for dim in parts[1:]:
        size = Binary("+", size, reader.dims[dim])
    _check_size(reader, node, parts, size)
    return (*rest, node.into)


def _check_size(reader: BlockReader, node: bl.Concat, parts: Dims, size: Expr) -> None:
    if differs(reader.dims[node.into], size, reader.sizes):
        whole = show(reader.dims[node.into])
        reader.problem("PL370", f"`{node.into}` has {whole} places, and {', '.join(parts)} together {show(size)}",
                       node.span, f"`dims {node.into} = {show(size)}`")  # fmt: skip
