"""One module for each command, named like it. What a command needs is imported inside it, so that
`--help` is quick."""

NAMES = (
    "check",
    "gate",
    "show",
    "cost",
    "compare",
    "fmt",
    "combine",
    "prove",
    "explain",
    "init",
    "doctor",
    "completion",
    "lsp",
)
"""In the order in which `placelogic --help` lists them. A module holds a click command of its own name."""
