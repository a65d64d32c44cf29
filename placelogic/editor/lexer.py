"""A lexer for Pygments, found there by the name `placement` and for `*.place`."""

from __future__ import annotations

from pygments.lexer import RegexLexer, bygroups, include, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text, Whitespace

from placelogic.editor import highlight as hl


class PlacementLexer(RegexLexer):
    """Placements of training states on meshes, in `.place` files."""

    name = "Placement"
    aliases = ["placement", "place"]
    filenames = ["*.place"]

    tokens = {
        "root": [
            (hl.PLACED, Keyword, "placed"),
            (
                rf"\b({'|'.join(hl.STATES)})([ \t]+)({hl.LETTER})",
                bygroups(Name.Attribute, Whitespace, Keyword.Constant),
            ),
            include("words"),
        ],
        "placed": [
            (r"(=)([ \t]*)(\()", bygroups(Operator, Whitespace, Punctuation), "tuple"),
            (r"(?=\n)", Text, "#pop"),
            include("words"),
        ],
        "tuple": [
            (hl.TUPLE_END, Punctuation, "#pop"),
            (rf"\b{hl.LETTER}", Keyword.Constant),
            include("words"),
        ],
        "words": [
            # The line end stays for `placed`, which ends there.
            (
                rf"^([ \t]*)({'|'.join(hl.DEFINES)})([ \t]+)({hl.NAME})",
                bygroups(Whitespace, Keyword, Whitespace, Name.Class),
            ),
            (r"[ \t]+|\n", Whitespace),
            (hl.COMMENT, Comment.Single),
            (hl.STRING, String.Double),
            (hl.CODE, Name.Constant),
            (words(hl.STATEMENTS, r"\b", r"\b"), Keyword),
            (words(hl.OPERATIONS, r"\b", r"\b"), Name.Builtin),
            (words(hl.PROPERTIES, r"\b", r"\b"), Name.Attribute),
            (words(hl.MODES, r"\b", r"\b"), Keyword.Constant),
            (words(hl.JOINING, r"\b", r"\b"), Keyword.Reserved),
            (words(hl.VALUES, r"\b", r"\b"), Keyword.Constant),
            (rf"({hl.NUMBER})([ \t]+)({'|'.join(hl.UNITS)})\b", bygroups(Number, Whitespace, Keyword.Type)),
            (hl.SCHEDULE, Name.Constant),
            (hl.NUMBER, Number),
            (rf"\b{hl.NAME}(?=\()", Name.Function),
            (hl.NAME, Name),
            (hl.OPERATOR, Operator),
            (r"[{}(),]", Punctuation),
            (r".", Text),
        ],
    }
