"""Parse tree to syntax tree: blocks, their operations, and what is said about them."""

from __future__ import annotations

from lark import Token

from placelogic.program.expr import Expr
from placelogic.source import Span
from placelogic.syntax import ast
from placelogic.syntax.builder import BuilderBase, plain


class BlockBuilder(BuilderBase):
    """The operations whose children are not their fields in order."""

    def build_names(self, span: Span, *names: Token) -> tuple[str, ...]:
        return tuple(map(str, names))

    def build_block(self, span: Span, name: Token, repeat: Expr | None, *lines) -> ast.BlockStmt:
        return ast.BlockStmt(str(name), repeat, lines, span)

    def build_input(self, span: Span, name: Token, dims: tuple[str, ...]) -> ast.InputLine:
        return ast.InputLine(str(name), dims, span)

    def build_linear(self, span: Span, grouped: Token | None, *rest) -> ast.LinearOp:
        return ast.LinearOp(grouped is not None, *map(plain, rest), span)

    def build_bias(self, span: Span, tensor: Token, weights: Token, over: tuple[str, ...], scale) -> ast.BiasOp:
        return ast.BiasOp(str(tensor), str(weights), over, scale, span)

    def build_function(self, span: Span, function: str, tensor: Token) -> ast.FunctionOp:
        return ast.FunctionOp(function, str(tensor), None, span)

    def build_dropout(self, span: Span, tensor: Token) -> ast.FunctionOp:
        return ast.FunctionOp("dropout", str(tensor), None, span)

    def build_scale_tensor(self, span: Span, tensor: Token, factor: Expr) -> ast.FunctionOp:
        return ast.FunctionOp("scale", str(tensor), factor, span)

    def build_add(self, span: Span, tensors: tuple[str, ...]) -> ast.AddTensorsOp:
        return ast.AddTensorsOp(tensors, span)

    def build_multiply(self, span: Span, left: Token, right: Token) -> ast.MultiplyOp:
        return ast.MultiplyOp((str(left), str(right)), span)

    def build_concat(self, span: Span, tensors: tuple[str, ...], into: Token) -> ast.ConcatOp:
        return ast.ConcatOp(tensors, str(into), span)

    def build_attention(self, span: Span, query: Token, key: Token, value: Token, *words: str) -> ast.AttentionOp:
        self._once(((word, word, span) for word in words), "line")
        return ast.AttentionOp(str(query), str(key), str(value), tuple(words), span)

    def build_dispatch(self, span: Span, tensor: Token, router: Token) -> ast.DispatchOp:
        return ast.DispatchOp(False, str(tensor), str(router), span)

    def build_combine(self, span: Span, tensor: Token, router: Token) -> ast.DispatchOp:
        return ast.DispatchOp(True, str(tensor), str(router), span)

    def build_cross_entropy(self, span: Span, tensor: Token, over: Token, parallel: Token | None) -> ast.CrossEntropyOp:
        return ast.CrossEntropyOp(str(tensor), str(over), parallel is not None, span)

    # --- collectives that a person wrote ---

    def build_reduce_tensor(self, span: Span, tensor: Token, axes: tuple, op) -> ast.CollectiveOp:
        return ast.CollectiveOp("reduce", str(tensor), axes, op, None, None, span)

    def build_gather_tensor(self, span: Span, tensor: Token, axes: tuple, dim: Token) -> ast.CollectiveOp:
        return ast.CollectiveOp("gather", str(tensor), axes, None, str(dim), None, span)

    def build_slice(self, span: Span, tensor: Token, axes: tuple, dim: Token) -> ast.CollectiveOp:
        return ast.CollectiveOp("slice", str(tensor), axes, None, str(dim), None, span)

    def build_reduce_scatter(self, span: Span, tensor: Token, axes: tuple, dim: Token) -> ast.CollectiveOp:
        return ast.CollectiveOp("reduce_scatter", str(tensor), axes, "sum", str(dim), None, span)

    def build_all_to_all(self, span: Span, tensor: Token, axes: tuple, dim: Token, into: Token) -> ast.CollectiveOp:
        return ast.CollectiveOp("all_to_all", str(tensor), axes, None, str(dim), str(into), span)

    def build_broadcast_tensor(self, span: Span, tensor: Token, axes: tuple) -> ast.CollectiveOp:
        return ast.CollectiveOp("broadcast", str(tensor), axes, None, None, None, span)

    # --- about blocks ---

    def build_checkpoint_block(self, span: Span, block: Token, every: Expr | None) -> ast.CheckpointStmt:
        return ast.CheckpointStmt(str(block), None, None, every, span)

    def build_checkpoint_part(self, span: Span, first: Token, last: Token | None, block: Token) -> ast.CheckpointStmt:
        return ast.CheckpointStmt(str(block), str(first), plain(last), None, span)

    def build_override(
        self, span: Span, direction, tensor: Token, block: Token | None, axes: tuple, by, scale: Expr | None
    ) -> ast.OverrideStmt:
        return ast.OverrideStmt(direction, str(tensor), plain(block), axes, by, scale, span)
