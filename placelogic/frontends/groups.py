"""Weights of a model that a configuration says nothing about: one group for each way weights are treated."""

from __future__ import annotations

from placelogic.frontends.config import Setting
from placelogic.frontends.draft import Draft


def unknown_model(
    draft: Draft, *, routed_over: str | None = None, experts: bool = False, tied: str | None = None
) -> None:
    """Weights of every kind and of any size. `tied`: the axis of stages whose ends share the embedding."""
    draft.let("P", None, "sizes of the model are not in the file: every size")
    draft.let("Q", None)
    draft.let("V", None)
    draft.add("weights", "weights linear { size P, kind matrix }", "the matrices of all layers")
    draft.add("weights", "weights norm   { size Q, kind vector }", "norms and biases")
    used = f", used on first and last of {tied}" if tied else ""
    draft.add("weights", f"weights embed  {{ size V, kind embedding{used} }}", "token embedding and output matrix")
    if experts:
        draft.let("X", None)
        draft.let("R", None)
        routed = f", routed over {routed_over}" if routed_over else ""
        draft.add("weights", f"weights expert {{ size X, kind expert{routed} }}")
        draft.add("weights", "weights router { size R, kind router }")


def trained_beside(spec: Draft, setting: Setting, name: str, what: str) -> None:
    """Freeze an unknown model, and declare the weights beside it that are trained."""
    spec.add("weights", "freeze linear, norm, embed", setting)
    spec.let("A", None)
    spec.add("weights", f"weights {name} {{ size A, kind matrix }}", what)
