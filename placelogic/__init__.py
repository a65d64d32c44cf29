"""Proves, for every device count at once, that a distributed training strategy trains what one device would.

report = placelogic.check("llama.place", at={"dp": 64})
report.files[0].specs[0].verdict    # "proved", "refuted", "undecided", "vacuous" or "error"
"""

# Nothing is imported here, as `python -m placelogic` would find it in the current folder first.
TYPE_CHECKING = False  # known to type checkers under this name; `typing` itself is not free
if TYPE_CHECKING:
    from placelogic.frontends.live import from_torch as from_torch
    from placelogic.frontends.live import trace as trace
    from placelogic.report.diagnostic import Report as Report
    from placelogic.session.cost import cost as cost
    from placelogic.session.files import check as check

__version__ = "0.1.0"
__all__ = ["Report", "__version__", "check", "cost", "from_torch", "trace"]

# Importing the package must stay free; what does the work is loaded when it is asked for.
_HOMES = {
    "check": "placelogic.session.files",
    "Report": "placelogic.report.diagnostic",
    "from_torch": "placelogic.frontends.live",
    "trace": "placelogic.frontends.live",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "cost":  # a package that can be called
        return import_module("placelogic.cost")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'placelogic' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, "cost"})
