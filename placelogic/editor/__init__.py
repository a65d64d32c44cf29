"""The language in an editor. `server` speaks the protocol and is the only module that knows pygls; the others
answer its questions about one text: `names`, `complete`, `hover`, `define`, `rename`, `actions`. `lexer` is for Pygments.

    diagnostics    runs.py checks in a thread; what was typed meanwhile ends the run
    places         positions.py: lines and columns of a Span, and positions of the protocol
"""
