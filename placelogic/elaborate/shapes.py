"""Blocks of operations: every name known, every shape fitting, each tensor made once and used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from placelogic.compat import assert_never
from placelogic.elaborate.joining import concat
from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.samples import mixes_samples
from placelogic.elaborate.sizes import Sizes
from placelogic.elaborate.targets import Group, Groups
from placelogic.problem import closest
from placelogic.program import block as bl
from placelogic.program.block import Dims
from placelogic.program.catalog import FUNCTIONS, LINEAR_FUNCTIONS
from placelogic.program.expr import Expr
from placelogic.source import Span
from placelogic.syntax import ast

MATRIX_KINDS = ("matrix", "embedding", "latent")


class BlockReader(Struct):
    """Reads the operations of one block. `tensors`: the dimensions of what was made so far; `failed`: what lines with
    problems make, which are told once; `joined`: what dimensions are put together of."""

    item: Item
    dims: Mapping[str, Expr]
    sizes: Sizes
    groups: Groups
    log: Log
    joined: dict[str, Dims]
    tensors: dict[str, Dims] = field(default_factory=dict)
    operations: list[bl.Operation] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    routers: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def problem(self, code: str, message: str, span: Span, hint: str | None) -> None:
        self.log.at(self.item, code, message, span, hint)

    def read(self, line: ast.OperationLine) -> None:
        """One operation; where its shapes do not fit, that is logged."""
        node = line.operator
        for name in _inputs(node):
            self.used.add(name)
        if unknown := [name for name in _inputs(node) if name not in self.tensors]:
            for name in unknown:
                if name not in self.failed:
                    self.problem("PL223", f"there is no tensor `{name}` before this line", node.span,
                                 closest(name, self.tensors) or f"so far: {', '.join(self.tensors)}")  # fmt: skip
            self.failed.add(line.output)
            return
        made = self._operation(line.output, node)
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

    def _operation(self, output: str, node: ast.Operator) -> tuple[bl.Operation, Dims] | None:
        origin = self.item.origin(node.span)
        match node:
            case ast.LinearOp(grouped, x, weights, contracted, produced):
                kinds = ("expert",) if grouped else MATRIX_KINDS
                if not self._weights(weights, kinds, "multiplies by", node.span) or not self.known(produced, node.span):
                    return None
                dims = self._replaced(x, contracted, produced, node.span)
                if grouped and not self._dispatched(x, node.span):
                    return None
                return dims and (bl.Linear(output, x, weights, contracted, produced, grouped, origin), dims)
            case ast.BiasOp(x, weights, over, scale):
                fine = self._weights(weights, ("vector", "matrix", "expert"), "adds", node.span)
                if not fine or not self._has(x, over, node.span):
                    return None
                factor = scale if scale is None else self.sizes.expr(scale, self.item, node.span)
                return bl.Bias(output, x, weights, over, factor, origin), self.tensors[x]
            case ast.EmbeddingOp(x, weights, vocabulary, produced):
                fine = self._weights(weights, ("embedding",), "takes rows of", node.span)
                if not fine or not self.known((vocabulary, *produced), node.span):
                    return None
                return bl.Embedding(output, x, weights, vocabulary, produced, origin), self.tensors[x] + produced
            case ast.NormOp(x, weights, over):
                fine = weights is None or self._weights(weights, ("vector",), "scales by", node.span)
                if not fine or not self._has(x, over, node.span):
                    return None
                return bl.Norm(output, x, weights, over, origin), self.tensors[x]
            case ast.FunctionOp(function, x, factor):
                by = factor if factor is None else self.sizes.expr(factor, self.item, node.span)
                linear = function in LINEAR_FUNCTIONS
                saves = FUNCTIONS[function]
                made = bl.Elementwise(output, x, function, linear, saves, function == "dropout", by, origin)  # type: ignore[arg-type]
                return made, self.tensors[x]
            case ast.AddTensorsOp(inputs):
                return (
                    (bl.Add(output, inputs, origin), self.tensors[inputs[0]])
                    if self._alike(inputs, node.span)
                    else None
                )
            case ast.MultiplyOp(inputs):
                alike = self._alike(inputs, node.span)
                return (bl.Multiply(output, inputs, origin), self.tensors[inputs[0]]) if alike else None
            case ast.ConcatOp():
                return concat(self, output, node)
            case ast.AttentionOp():
                return self._attention(output, node)
            case ast.RouterOp(x, weights, contracted, experts, top):
                if not self._weights(weights, ("router",), "routes by", node.span) or not self.known(
                    (experts,), node.span
                ):
                    return None
                dims = self._replaced(x, contracted, (experts,), node.span)
                self.routers.add(output)
                count = self.sizes.expr(top, self.item, node.span)
                self.sizes.positive(count, "the number of experts of a token", self.item, node.span)
                return dims and (bl.Router(output, x, weights, contracted, experts, count, origin), dims)
            case ast.DispatchOp(combine, x, router):
                return self._routed(output, combine, x, router, node.span)
            case ast.CrossEntropyOp(x, vocabulary, parallel):
                if not self._has(x, (vocabulary,), node.span):
                    return None
                dims = tuple(dim for dim in self.tensors[x] if dim != vocabulary)
                return bl.CrossEntropy(output, x, vocabulary, parallel, origin), dims
            case ast.CollectiveOp(kind, x, refs, op, dim, into):
                axes = self.sizes.axes(refs, self.item)
                named = tuple(name for name in (dim, into) if name is not None)
                if not self._has(x, named, node.span):
                    return None
                return bl.Collective(output, x, kind, op, axes, dim, into, origin), self.tensors[x]
            case _:
                assert_never(node)

    def _attention(self, output: str, node: ast.AttentionOp) -> tuple[bl.Operation, Dims] | None:
        query, key, value = (self.tensors[name] for name in (node.query, node.key, node.value))
        if any(len(dims) < 3 or dims[-3] != "sequence" for dims in (query, key, value)):
            self.problem("PL370", "the last dimensions of what attention reads are `sequence`, the heads, and the size "
                         "of a head", node.span, "make it with `linear ... to heads, head`")  # fmt: skip
            return None
        fits = key[:-2] == query[:-2] and value[:-2] == query[:-2] and value[-2] == key[-2] and key[-1] == query[-1]
        if not fits:
            shapes = "; ".join(
                f"{name}({', '.join(self.tensors[name])})" for name in (node.query, node.key, node.value)
            )
            self.problem("PL370", f"these do not fit for attention: {shapes}", node.span,
                         "query and key have heads of one size, key and value as many of them")  # fmt: skip
            return None
        words = node.words
        made = bl.Attention(
            output, node.query, node.key, node.value, query[-3], query[-2], key[-2],
            "causal" in words, "fused" in words, "dropout" in words, "positions" in words, self.item.origin(node.span),
        )  # fmt: skip
        return made, query[:-1] + value[-1:]

    def _routed(self, output: str, combine: bool, x: str, router: str, span: Span) -> tuple[bl.Operation, Dims] | None:
        if router not in self.routers:
            self.problem(
                "PL371", f"`{router}` is made by no router", span, "write `r = router x with ... top 2` before"
            )
            return None
        origin = self.item.origin(span)
        experts = next(op.experts for op in self.operations if isinstance(op, bl.Router) and op.output == router)
        if not combine:
            return bl.Dispatch(output, x, router, origin), (experts, *self.tensors[x])
        if not self._dispatched(x, span):
            return None
        return bl.Combine(output, x, router, origin), self.tensors[x][1:]

    def _dispatched(self, x: str, span: Span) -> bool:
        experts = {op.experts for op in self.operations if isinstance(op, bl.Router)}
        if self.tensors[x][0] in experts:
            return True
        self.problem("PL371", f"`{x}` does not lie with experts", span, "dispatch it first: `t = dispatch x by r`")
        return False

    # --- what fits ---

    def _weights(self, name: str, kinds: tuple[str, ...], does: str, span: Span) -> bool:
        group: Group | None = next((group for group in self.groups.members if group.name == name), None)
        if group is None:
            self.problem("PL202", f"there are no weights `{name}`", span,
                         closest(name, self.groups.names) or f"weights: {', '.join(sorted(self.groups.names)) or 'none'}")  # fmt: skip
            return False
        if group.kind not in kinds:
            wanted = " or ".join(f"`kind {kind}`" for kind in kinds)
            self.problem("PL372", f"this operation {does} `{name}`, which is of kind {group.kind}", span,
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
        found = mixes_samples(op, self.tensors)
        if found is not None:
            self.problem("PL396", f"`{op.output}` {found[0]}: what a sample comes to would depend on {found[1]}, which is "
                         "not modelled", span,
                         "the loss is a sum over samples: leave `batch` as it is, and name another dimension")  # fmt: skip
        return found is None


def used_dims(blocks: Sequence[bl.Block]) -> set[str]:
    """Those that a tensor or an operation has."""
    used = {dim for block in blocks for dims in block.tensors.values() for dim in dims}
    return used | {dim for block in blocks for op in block.operations for dim in dims_of(op)}


def dims_of(op: bl.Operation) -> Dims:
    """The dimensions of an operation's weights that its tensors need not have."""
    match op:
        case bl.Embedding():
            return (op.vocabulary,)
        case bl.Router():
            return (op.experts,)
        case _:
            return ()


def _inputs(node: ast.Operator) -> tuple[str, ...]:
    match node:
        case ast.AddTensorsOp(inputs) | ast.MultiplyOp(inputs) | ast.ConcatOp(inputs):
            return inputs
        case ast.AttentionOp(query, key, value):
            return query, key, value
        case ast.DispatchOp(_, x, router):
            return x, router
        case _:
            return (node.input,)
