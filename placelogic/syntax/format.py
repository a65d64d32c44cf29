"""The formatter: one way to space and indent; where lines break, and every comment, is the author's.

A block is on one line, or every line of it stands alone: `{` then ends its line and `}` begins one."""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token
from msgspec import Struct

from placelogic.problem import Problem, SpecError
from placelogic.source import Span
from placelogic.syntax.parse import normalised, token_tree
from placelogic.syntax.unparse import INDENT

_OPERANDS = frozenset({"NAME", "INT", "DECIMAL", "WORD", "RPAR"})
_JOINS = frozenset({"COMMA", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "COMPARE"})
_CALLERS = frozenset({"NAME", "S", "_S_STAR", "O"})
_PROPERTIES = frozenset({"PLACE", "WEIGHTS", "PRECISION", "STAGES", "MODEL"})


def format_text(text: str, path: str) -> str:
    """The text in its normal form, which says the same: formatting again changes nothing.

    Raises SpecError as `parse` does, for text that is no sentence of the language."""
    pieces = _pieces(text, path)
    lines = _lines(pieces, normalised(text))
    _align_comments(lines)
    result = "".join(f"{line.text()}\n" for line in lines)
    if _essence(result, path) != _essence(text, path):
        where = Span(path, 1, 1, 1, 2)
        raise SpecError(Problem("PL901", "formatting would change what the file says", where, "please report this"))
    return result


class _Piece(Struct):
    """A token and how it stands: `binary` for operators between two operands, `joins` where a line
    end after it does not end the statement or entry, `spaced` for a product written with blanks."""

    token: Token
    binary: bool = False
    joins: bool = False
    spaced: bool = False
    broken: bool = False  # of a brace: its block takes several lines


class _Line(Struct):
    """`column`: where the comment begins. `follows`: a comment that goes on below one that stands
    after code, in the same column."""

    level: int
    code: str = ""
    comment: str = ""
    blank_before: bool = False
    follows: bool = False
    column: int = 0

    def text(self) -> str:
        before = "\n" if self.blank_before else ""
        head = "" if self.follows else INDENT * self.level + self.code
        return before + f"{head:<{self.column}}{self.comment}".rstrip()


def _pieces(text: str, path: str) -> list[_Piece]:
    tokens, _ = token_tree(text, path)
    source = normalised(text)
    found: list[_Piece] = []
    blocks: list[tuple[_Piece, bool]] = []  # the open braces, and whether they hold properties
    leader: Token | None = None  # the first token of the statement
    parentheses, previous = 0, ""
    for index, token in enumerate(tokens):
        kind = token.type
        if kind == "_NL":
            if not (previous == "STAR" and found[-1].binary):
                leader = None
            previous = kind
            continue
        leader = leader or token
        piece = _Piece(token, binary=previous in _OPERANDS)
        parentheses += (kind == "LPAR") - (kind == "RPAR")
        separates = kind == "COMMA" and not parentheses and blocks and blocks[-1][1]
        piece.joins = kind in _JOINS and not separates and (kind != "STAR" or piece.binary)
        if kind in ("STAR", "SLASH") and piece.binary:
            after = tokens[index + 1].start_pos
            blanks = source[found[-1].token.end_pos : token.start_pos] + source[token.end_pos : after]
            piece.spaced = bool(blanks) or (leader.type in ("USE", "AXIS") and not parentheses)
        if kind == "LBRACE":
            blocks.append((piece, leader.type in _PROPERTIES and previous != "RPAR"))
            leader = None
        elif kind == "RBRACE":
            opening, _ = blocks.pop()
            piece.broken = opening.broken = "\n" in source[opening.token.end_pos : token.start_pos]
            leader = token
        found.append(piece)
        previous = kind
    return found


def _lines(pieces: Sequence[_Piece], source: str) -> list[_Line]:
    lines: list[_Line] = []
    depth, parentheses, end = 0, 0, 0
    last: _Piece | None = None
    for piece in pieces:
        kind = piece.token.type
        inside = depth
        depth += (kind == "LBRACE") - (kind == "RBRACE")
        continued = last is not None and (last.joins or (parentheses > 0 and kind != "RPAR"))
        parentheses += (kind == "LPAR") - (kind == "RPAR")
        gap = source[end : piece.token.start_pos]
        closes = kind == "RBRACE" and piece.broken
        if last is None or "\n" in gap or closes or (last.token.type == "LBRACE" and last.broken):
            blank = _comments(source, end, piece.token.start_pos, lines, inside + continued)
            level = depth if kind == "RBRACE" else inside + continued
            lines.append(_Line(level, blank_before=blank and not closes))
        elif _spaced(last, piece):
            lines[-1].code += " "
        lines[-1].code += str(piece.token)
        last, end = piece, piece.token.end_pos
    _comments(source, end, len(source), lines, 0)
    return lines


def _comments(source: str, start: int, end: int, lines: list[_Line], level: int) -> bool:
    """Writes the comments between two tokens. True where a blank line follows them."""
    blank, begin = False, start
    for number, text in enumerate(source[start:end].split("\n")):
        comment = text.strip()
        column = begin + text.find("#") - source.rfind("\n", 0, begin) - 1
        begin += len(text) + 1
        if number == 0 and lines:
            if comment:
                lines[-1].comment, lines[-1].column = comment, column
        elif comment:
            above = lines[-1] if lines and not blank else None
            follows = above is not None and (above.follows or bool(above.code and above.comment))
            follows = follows and above.column == column
            lines.append(_Line(level, "", comment, blank and not _opens(lines), follows, column))
            blank = False
        elif begin <= end:  # what stands before the token on its own line is no blank line
            blank = bool(lines)
    return blank and not _opens(lines)


def _opens(lines: Sequence[_Line]) -> bool:
    return bool(lines) and lines[-1].code.endswith("{")


def _spaced(left: _Piece, right: _Piece) -> bool:
    before, after = left.token.type, right.token.type
    if after in ("COMMA", "RPAR") or before == "LPAR":
        return False
    if before == "MINUS" and not left.binary:
        return False
    if after == "LPAR" and before in _CALLERS:
        return False
    if before in ("STAR", "SLASH") and left.binary:
        return left.spaced
    if after in ("STAR", "SLASH") and right.binary:
        return right.spaced
    return True


def _align_comments(lines: Sequence[_Line]) -> None:
    """Comments that follow code on lines next to each other begin in one column."""
    run: list[_Line] = []
    for line in (*lines, _Line(0)):
        follows_code = bool(line.comment) and (bool(line.code) or line.follows)
        if run and (not follows_code or line.blank_before):
            column = max(len(INDENT * one.level + one.code) for one in run if one.code) + 2
            for one in run:
                one.column = column
            run = []
        if follows_code:
            run.append(line)
        else:
            line.column = 0


def _essence(text: str, path: str) -> list[str]:
    """What formatting must not touch: the tokens and the comments, in order."""
    tokens, _ = token_tree(text, path)
    source, end, found = normalised(text), 0, []
    for token in (*(token for token in tokens if token.type != "_NL"), None):
        gap = source[end : token.start_pos] if token is not None else source[end:]
        found += [line.strip() for line in gap.split("\n") if line.strip()]
        if token is not None:
            found.append(str(token))
            end = token.end_pos
    return found
