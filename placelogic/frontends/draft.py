"""A spec in the making: its lines, and which setting each comes from."""

from __future__ import annotations

from msgspec import Struct, field

from placelogic.frontends.config import Setting
from placelogic.io.quoting import visible
from placelogic.report.diagnostic import Finding

SECTIONS = ("mesh", "sizes", "assume", "work", "weights", "use", "state", "step", "optimizer")
"""In the order in which they stand in a spec."""


class Draft(Struct):
    """Lines by section. An `origin` becomes the comment at the end of the line. `findings`: about settings, placed in
    the file that they come from."""

    head: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    lines: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: {name: [] for name in SECTIONS})
    axes: dict[str, int | None] = field(default_factory=dict)
    names: dict[str, int | None] = field(default_factory=dict)

    def axis(self, name: str, size: int | None, origin: Setting | str = "") -> str:
        """Declare an axis of the mesh; without a size it stands for every size."""
        self.axes[name] = size
        self.add("mesh", f"mesh {name}" + ("" if size is None else f" = {size}"), origin)
        return name

    def let(self, name: str, size: int | None, origin: Setting | str = "") -> str:
        """Declare a size; without a value it stands for every value."""
        if name not in self.names:
            self.names[name] = size
            self.add("sizes", f"let {name}" + ("" if size is None else f" = {size}"), origin)
        return name

    def add(self, section: str, line: str, *origins: Setting | str) -> None:
        told = [one.origin if isinstance(one, Setting) else one for one in origins]
        self.lines[section].append((line, "; ".join(part for part in told if part)))

    def text(self, path: str) -> str:
        """The spec, in canonical form."""
        from placelogic.syntax.format import format_text

        parts = ["\n".join(f"# {visible(line)}".rstrip() for line in self.head)]
        for section in SECTIONS:
            if self.lines[section]:
                parts.append("\n".join(_line(*line) for line in self.lines[section]))
        return format_text("\n\n".join(parts) + "\n", path)


def _line(line: str, origin: str) -> str:
    comment = visible(" ".join(origin.split()))
    return f"{line}  # {comment}" if comment else line
