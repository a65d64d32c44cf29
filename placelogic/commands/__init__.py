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
    "replay",
    "explain",
    "import",
    "init",
    "doctor",
    "completion",
    "lsp",
)
"""In the order in which `placelogic --help` lists them. A module holds a click command of its own name;
a name that is a keyword of Python has an underscore behind it there."""

INTERRUPTED = 130
"""The exit code after an interrupt: what shells report for a program that a signal ended, 128 and its number."""
