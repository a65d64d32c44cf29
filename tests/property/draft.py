"""A spec being drawn: its statements by section, so that mutations can find what they change."""

from __future__ import annotations

from random import Random

from msgspec import Struct, field

STATES = ("params", "optimizer", "gradients", "activations")


class Group(Struct):
    """One weight group. `used`: "", "first", "last" or "first and last"; `on`: the axis of that."""

    name: str
    kind: str
    dims: tuple[str, ...] = ()
    used: str = ""
    on: str = ""
    routed: str = ""

    def text(self) -> str:
        props = ["size P", f"kind {self.kind}"]
        if self.dims:
            props.append(f"dims {' '.join(self.dims)}")
        if self.used:
            props.append(f"used on {self.used}" + (f" of {self.on}" if self.on else ""))
        if self.routed:
            props.append(f"routed over {self.routed}")
        return f"weights {self.name} {{ {', '.join(props)} }}"


class Place(Struct):
    """A `place` statement: modes by state, as words or letters."""

    target: str
    axes: str
    modes: dict[str, str]
    letters: bool = False
    """Written as a tuple, the states left out being R."""

    def text(self) -> str:
        over = f" over {self.axes}" if self.axes else ""
        if self.letters:
            return f"place {self.target}{over} = ({', '.join(_letter(self.modes.get(state)) for state in STATES)})"
        entries = ", ".join(f"{state} {mode}" for state, mode in self.modes.items())
        return f"place {self.target}{over} {{ {entries} }}"


def _letter(mode: str | None) -> str:
    """`sharded on flat` as `S(flat)`, `sharded offloaded` as `O(S)`."""
    words = (mode or "replicated").split()
    letter = {"replicated": "R", "sharded": "S", "gathered": "S*", "materialized": "M", "offloaded": "O"}[words[0]]
    if "on" in words:
        letter += f"({' '.join(word for word in words[words.index('on') + 1 :] if word != 'offloaded')})"
    return f"O({letter})" if words[-1] == "offloaded" and len(words) > 1 else letter


class Block(Struct):
    """A step, or a loop in it: lines and loops, in order."""

    head: str
    body: list[str | Block]

    def text(self, indent: str = "") -> str:
        if not self.body:
            return f"{indent}{self.head} {{ }}"
        inner = [one.text(indent + "  ") if isinstance(one, Block) else f"{indent}  {one}" for one in self.body]
        return "\n".join([f"{indent}{self.head} {{", *inner, f"{indent}}}"])

    def copy(self) -> Block:
        return Block(self.head, [one.copy() if isinstance(one, Block) else one for one in self.body])


class Draft(Struct):
    """`roles`: axis (or product) -> what it is for. `lines`: everything that needs no structure."""

    atoms: list[str]
    mesh: str = ""
    views: list[str] = field(default_factory=list)
    microbatches: bool = False
    groups: list[Group] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    splits: dict[str, str] = field(default_factory=dict)
    losses: dict[str, str] = field(default_factory=dict)
    uses: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    steps: dict[str, Block] = field(default_factory=dict)

    def text(self) -> str:
        parts = [f"mesh {self.mesh or ', '.join(self.atoms)}", *self.views, "let P"]
        if self.microbatches:
            parts.append("microbatches M")
        parts += [group.text() for group in self.groups]
        parts += [f"{dim} over {axes}" for axes, dim in self.splits.items()]
        parts += [f"loss {f'{name} ' if name else ''}{scope}" for name, scope in self.losses.items()]
        parts += [f"use {use}" for use in self.uses]
        parts += [place.text() for place in self.places]
        parts += self.lines
        parts += [step.text() for step in self.steps.values()]
        return "\n".join(parts) + "\n"

    def names(self) -> list[str]:
        return [group.name for group in self.groups]

    def target(self, random: Random) -> str:
        """Some weights: by name mostly, else by kind, or all."""
        kinds = [group.kind for group in self.groups]
        return random.choice([*self.names(), *self.names(), *self.names(), *kinds, "*", "*"])

    def axis(self, random: Random) -> str:
        return random.choice(self.atoms)

    def some_axes(self, random: Random) -> str:
        """One axis or more, as a list or a product; rarely none."""
        roll = random.random()
        if roll < 0.05:
            return "none"
        if roll < 0.6 or len(self.atoms) == 1:
            return self.axis(random)
        chosen = random.sample(self.atoms, random.randint(2, len(self.atoms)))
        return random.choice([", ", " * "]).join(chosen)

    def split_atoms(self) -> list[str]:
        """The axes whose devices have other work (as far as the draft says it itself)."""
        words = " ".join(
            [*self.splits, *(use for use in self.uses if not use.startswith(("tensor", "sequence", "pipe")))]
        )
        found = words.translate(str.maketrans("(),=", "    ")).split()
        return [
            atom
            for atom in self.atoms
            if atom in found or "ab" in found and any(atom in view.split() for view in self.views)
        ]
