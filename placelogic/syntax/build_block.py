"""Parse tree to syntax tree: blocks, their operations, and what is said about them."""

from __future__ import annotations

from lark import Token
from msgspec.structs import replace

from placelogic.program import block as bl
from placelogic.program.ops import Origin
from placelogic.source import Span
from placelogic.syntax import ast
from placelogic.syntax.builder import BuilderBase


class BlockBuilder(BuilderBase):
    """The operations whose children are not their fields in order."""

    def build_names(self, span: Span, *names: Token) -> tuple[str, ...]:
        return tuple(map(str, names))

    def build_operation(self, span: Span, output: Token, operator: bl.Operation) -> ast.OperationLine:
        return ast.OperationLine(replace(operator, output=str(output)), span)

    def build_attention(self, span: Span, query: Token, key: Token, value: Token, *words: str) -> bl.Attention:
        self._once(((word, word, span) for word in words), "line")
        flags = {word: word in words for word in ("causal", "fused", "dropout", "positions")}
        return bl.Attention("", str(query), str(key), str(value), **flags, origin=Origin(span, stated=True))
