"""Text to syntax tree."""

from __future__ import annotations

from lark import Token, Tree, UnexpectedToken

from placelogic.problem import Problem, SpecError
from placelogic.source import Span
from placelogic.syntax import ast
from placelogic.syntax.build import Builder
from placelogic.syntax.load import Language, language
from placelogic.syntax.read import normalised
from placelogic.syntax.tokens import UNKNOWN, tokens

MAX_CHARACTERS = 1_000_000

MAX_OPERATORS = 100
"""In one expression, parentheses included: bounds how deep a tree can get, here and in every reader of it."""

MAX_WORD = 250
"""Characters of one name or file name: what is longer is no name, and would make every message unreadable."""

_WORDS = frozenset({"NAME", "WORD", "STRING"})
_OPERATORS = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "LPAR"})
_SEPARATORS = frozenset({"_NL", "COMMA", "LBRACE", "RBRACE", "COMPARE", "EQUAL"})


def parse(text: str, path: str) -> ast.File:
    """The statements of a file. `path` is only written into the spans.

    Raises SpecError (PL003, PL006, PL1xx): at the first place that is no sentence of the language, or
    else with everything that a statement alone shows to be wrong."""
    _, tree = token_tree(text, path)
    builder = Builder(path)
    file = builder.transform(tree)
    if problems := builder.problems():
        raise SpecError(*problems)
    return file


def token_tree(text: str, path: str) -> tuple[list[Token], Tree]:
    """The tokens (of the normalised text) and their parse tree. Raises SpecError like `parse`."""
    _refuse_unreadable(text, path)
    known = language()
    seen: list[Token] = []
    parser = known.parser.parse_interactive()
    state = parser.parser_state
    operators = 0
    for token in tokens(normalised(text), known, parser.choices):
        operators = 0 if token.type in _SEPARATORS else operators + (token.type in _OPERATORS)
        if operators > MAX_OPERATORS:
            raise SpecError(_too_long(token, path))
        if len(token) > MAX_WORD and token.type in _WORDS:
            raise SpecError(_long_word(token, path))
        stack = list(state.state_stack)
        if token.type == UNKNOWN:
            raise SpecError(_explain(parser, stack, token, seen, known, path))
        try:
            parser.feed_token(token)
        except UnexpectedToken:
            raise SpecError(_explain(parser, stack, token, seen, known, path)) from None
        seen.append(token)
    stack = list(state.state_stack)
    try:
        return seen, parser.feed_eof(seen[-1] if seen else None)
    except UnexpectedToken as error:
        raise SpecError(_explain(parser, stack, error.token, seen, known, path)) from None


def _explain(parser, stack: list, found: Token, seen: list[Token], known: Language, path: str) -> Problem:
    from placelogic.syntax.mistakes import mistake

    # Back to the state before the token: some rules may already have been closed by it. The values are
    # not needed any more, and lark copies them once per terminal it tries.
    state = parser.parser_state
    state.state_stack[:] = stack
    state.value_stack[:] = [None] * (len(stack) - 1)
    return mistake(found, parser.accepts(), seen, known, path)


def _refuse_unreadable(text: str, path: str) -> None:
    start = Span(path, 1, 1, 1, 2)
    if len(text) > MAX_CHARACTERS:
        hint = "a spec is a few dozen lines; split this one with `import`"
        raise SpecError(Problem("PL003", f"the file has more than {MAX_CHARACTERS} characters", start, hint))
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        where = Span(path, line, 1, line, 2)
        raise SpecError(Problem("PL006", "the file is not text: it contains zero bytes", where, "save it as UTF-8"))


def _long_word(token: Token, path: str) -> Problem:
    where = Span(path, token.line, token.column, token.end_line, token.end_column)
    return Problem("PL119", f"this word has more than {MAX_WORD} characters", where, "use a shorter name")


def _too_long(token: Token, path: str) -> Problem:
    message = f"this expression has more than {MAX_OPERATORS} operators and parentheses"
    where = Span(path, token.line, token.column, token.end_line, token.end_column)
    return Problem("PL110", message, where, "name parts of it with `let`")
