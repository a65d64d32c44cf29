"""What cannot be read from a live model or a run, as coded errors.

PL520  PyTorch is not installed, or too old
PL521  an argument that is no model, optimizer, mesh or size
PL522  a process group that is no part of the mesh, or a mesh without names
PL523  an axis of the mesh that nothing in the model speaks of
PL524  a wrapper, module or hook that is not modelled
PL525  gradients are not synchronised at the moment
PL526  parameters whole along an axis, and no telling whether their activations are
PL527  an optimizer or dtype that the language does not have
PL528  stages of a pipeline that were not given
PL529  a spec that a run cannot be held against
"""

from __future__ import annotations

from placelogic.files import whole
from placelogic.problem import Problem, SpecError

OLDEST = (2, 13)
"""The first PyTorch that this was tried with: what wrappers keep of a model differs between versions."""


def refuse(code: str, message: str, hint: str, where: str = "<model>") -> SpecError:
    """To be raised. `where` is what the message is about, in place of a file."""
    return SpecError(Problem(code, message, whole(where), hint))


def need_torch() -> None:
    """Raises SpecError (PL520) where PyTorch cannot be used."""
    hint = "install it: pip install '.[replay]' in the checkout"
    try:
        import torch
        import torch.distributed
    except ImportError as error:
        raise refuse("PL520", f"a live model needs PyTorch, which cannot be imported: {error}", hint) from None
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < OLDEST:
        needed = ".".join(map(str, OLDEST))
        raise refuse("PL520", f"PyTorch {torch.__version__} is too old: {needed} is needed", hint)
    if not torch.distributed.is_available():
        raise refuse("PL520", "this PyTorch was built without torch.distributed", hint)
