"""The language in an editor.

`server`, `features` and `convert` speak the protocol, and only they know pygls and lsprotocol. `text` is one text as an
editor holds it; `names`, `complete`, `hover`, `define` and `rename` answer questions about it. `runs` checks in a thread,
`memory` keeps what was proved a moment ago. `highlight` and `lexer` are for colours.
"""
