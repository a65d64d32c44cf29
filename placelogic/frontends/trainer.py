"""How the loss is divided by whoever runs the training loop: a script of one's own, or the Hugging Face Trainer.

Sources are in placelogic/std/frameworks/hf_trainer_*.place and accelerate_accumulation.place."""

from __future__ import annotations

from placelogic.frontends.config import Config, Setting
from placelogic.frontends.draft import Draft
from placelogic.frontends.request import Request
from placelogic.frontends.versions import before

COUNTED = "4.46"
"""From here on the Trainer counts the tokens of the micro-batches of a step (huggingface/transformers#34191)."""

AVERAGED = "4.54"
"""From here on, over all devices by default (huggingface/transformers#39395)."""

TENSOR_FACTOR = "5.10"
"""From here on the factor leaves out tensor-parallel devices (huggingface/transformers#45994)."""


def trainer_loss(config: Config, spec: Draft, axes: str, tp: Setting, request: Request) -> None:
    """State how the loss is divided. `trainer` is own or hf; `trainer_version` is that of transformers."""
    who = config.get("trainer", str, "own")
    if who.value not in ("own", "hf"):
        raise config.wrong("PL501", who, f"`trainer` is own or hf, not `{who.value}`")
    version = config.get("trainer_version", str, None)
    over = config.get("average_tokens_across_devices", bool, None)
    if who.value == "own":
        spec.add(
            "use",
            "use accelerate_accumulation()",
            "the loss is the mean of a micro-batch; --set trainer=hf for the Trainer",
        )
        return
    release = version.value
    if before(release, COUNTED):
        spec.add("use", "use hf_trainer_loss_per_microbatch()", version)
        return
    counted = over.value if over.given else not before(release, AVERAGED)
    if not counted:
        spec.add("use", "use hf_trainer_loss_per_device()", over if over.given else version)
        return
    spec.add("use", f"use hf_trainer_loss({axes.replace(', ', '*')})", over if over.given else version)
    if tp.value > 1 and before(release, TENSOR_FACTOR):
        spec.add(
            "step",
            "scale * by tp",
            f"before transformers {TENSOR_FACTOR}: num_processes counts tensor-parallel devices too",
        )
