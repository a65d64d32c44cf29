"""What frameworks call their optimizers, in the words of the language."""

from __future__ import annotations

from placelogic.frontends.config import Setting
from placelogic.problem import Problem, SpecError, closest
from placelogic.program.catalog import OPTIMIZERS

_SAME = {
    "fusedadam": "adam", "cpuadam": "adam", "deepspeedcpuadam": "adam", "torch_adam": "adam", "torchadam": "adam",
    "adamw_torch": "adamw", "adamw_torch_fused": "adamw", "adamw_hf": "adamw", "adamw_apex_fused": "adamw",
    "adamw_torch_xla": "adamw", "adamw_anyprecision": "adamw", "paged_adamw_32bit": "adamw", "paged_adamw": "adamw",
    "paged_adamw_8bit": "adamw8bit", "adamw_8bit": "adamw8bit", "adamw_bnb_8bit": "adamw8bit", "adamw_torch_8bit": "adamw8bit",
    "adamw_torch_4bit": "adamw8bit", "ademamix": "adamw", "ademamix_8bit": "adamw8bit", "lion_8bit": "lion8bit",
    "lion_32bit": "lion", "paged_lion_32bit": "lion", "paged_lion_8bit": "lion8bit", "lion_pytorch": "lion", "stable_adamw": "adamw",
    "fusedlamb": "lamb", "fusedlion": "lion", "cpulion": "lion", "cpuadagrad": "adagrad", "dist_muon": "muon",
    "adafactor_torch": "adafactor", "optimi_adamw": "adamw", "came_pytorch": "adafactor", "ao_adamw_fp8": "adamw8bit",
    "ao_adamw_4bit": "adamw8bit", "ao_adamw_8bit": "adamw8bit", "rmsprop_bnb": "rmsprop", "grokadamw": "adamw",
    "adamw_torch_npu_fused": "adamw",
}  # fmt: skip
"""Same as far as it matters here: how much of a tensor one element's update needs."""


def optimizer(setting: Setting) -> str:
    """The optimizer's name in the language. Raises SpecError (PL503) for one that is not modelled."""
    name = str(setting.value).lower().replace("-", "_")
    name = _SAME.get(name, name)
    if name in OPTIMIZERS:
        return name
    near = closest(name, [*OPTIMIZERS, *_SAME])
    raise SpecError(Problem("PL503", f"the optimizer `{setting.value}` is not modelled: how much of a tensor its update "
                            "needs is not known here", setting.span,
                            near or f"`--set {setting.name}=adamw` if it acts on each element"))  # fmt: skip
