"""Records every collective that is issued while it is active, the backward pass included.

It listens at the dispatcher, below autograd and below DTensor, so it sees what DDP's reducer, FSDP2, DTensor
and plain torch.distributed calls issue, with gloo, NCCL and under the fake process group."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from placelogic.frontends.live import calls
from placelogic.frontends.live.axes import MeshAxes
from placelogic.frontends.live.events import Event, Fed, Phase, Purpose
from placelogic.frontends.live.lineage import Lineage
from placelogic.frontends.live.stories import NEW, Story

GRADIENT_NODES = ("AccumulateGrad", "RegisterPostBackwardFunction")
"""Nodes of autograd in whose hooks gradients of parameters are combined: DDP's and fully_shard's."""


class Recorder(TorchDispatchMode):
    """`events` in order; `fed`, what the optimizer was given; `steps_again`: it took more than one step."""

    def __init__(self, axes: MeshAxes) -> None:
        super().__init__()
        self.axes = axes
        self.events: list[Event] = []
        self.fed: list[Fed] = []
        self._lineage = Lineage()
        self._depth = 0
        self._optimizing = 0
        self._behind: Phase | None = None
        self._seen: set[int] = set()
        self.steps_again = False
        self._hooks = ExitStack()

    def __enter__(self) -> Recorder:
        for register, hook, options in (
            (register_module_forward_pre_hook, self._enter_module, {}),
            (register_module_forward_hook, self._leave_module, {"always_call": True}),
            (register_optimizer_step_pre_hook, self._enter_optimizer, {}),
            (register_optimizer_step_post_hook, self._leave_optimizer, {}),
        ):
            handle: Any = register(hook, **options)  # type: ignore[operator]
            self._hooks.callback(handle.remove)
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._hooks.close()
        super().__exit__(*error)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if any(issubclass(one, DTensor) or one.__name__ == "AsyncCollectiveTensor" for one in types):
            return NotImplemented  # it comes again, for the local tensors, with what it communicates
        kwargs = kwargs or {}
        phase = self._phase()
        story, call = NEW, None
        if func.namespace in calls.NAMESPACES:
            story, call = self._before(func, args, kwargs)
        result = func(*args, **kwargs)
        if call is not None:
            call = calls.read(func, args, kwargs, result) or call
            self._add(call, phase, story)
        elif self._on_gradients(phase):
            self._lineage.watch(func, args, kwargs, result)
        return result

    def _before(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Story, Any]:
        """What is sent, before an operation in place overwrites its story."""
        call = calls.read(func, args, kwargs, None)
        if call is None:
            return NEW, None
        story = self._lineage.of(*call.sources)
        return story, call

    def _add(self, call: calls.Call, phase: Phase, story: Story) -> None:
        order = len(self.events)
        axes = self.axes.between(call.peer) if call.peer is not None else self.axes.of_ranks(call.ranks)
        again = self._lineage.again(call)
        floating = all(tensor.is_floating_point() for tensor in call.whole) and bool(call.whole)
        self.events.append(
            Event(
                order, call.operation, call.op, call.ranks, axes,
                sum(tensor.numel() * tensor.element_size() for tensor in call.whole),
                sum(tensor.numel() for tensor in call.whole), len(call.whole),
                str(call.whole[0].dtype).removeprefix("torch.") if call.whole else "",
                phase, self._purpose(call, phase, floating, story.norm), call.root, call.peer,
                story.factor, story.parent, again,
            )
        )  # fmt: skip
        self._lineage.communicated(call, order, story.norm)

    # --- where in the step we are ---

    def _phase(self) -> Phase:
        if torch._C._current_graph_task_id() != -1:
            self._behind = "backward"
            return "backward"
        if self._optimizing:
            return "optimizer"
        # The loss is computed outside of any module, before the backward pass.
        return "forward" if self._depth or self._behind == "forward" else "between"

    def _on_gradients(self, phase: Phase) -> bool:
        """Whether what happens now happens to gradients of parameters, after they were computed."""
        if phase == "backward":
            node: Any = torch._C._current_autograd_node()  # none: a callback at the end, as the root of FSDP has
            return node is None or any(name in node.name() for name in GRADIENT_NODES)
        return phase != "forward"

    def _purpose(self, call: calls.Call, phase: Phase, floating: bool, norm: bool) -> Purpose:
        if not floating:
            return "control"
        if not self._on_gradients(phase):
            return "model"
        return "scalar" if norm or all(tensor.numel() == 1 for tensor in call.whole) else "weights"

    def _enter_module(self, module: Any, inputs: Any) -> None:
        self._depth += 1
        if torch._C._current_graph_task_id() == -1:
            self._behind = "forward"

    def _leave_module(self, module: Any, inputs: Any, output: Any) -> None:
        self._depth -= 1

    def _enter_optimizer(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        outer, self._optimizing = not self._optimizing, self._optimizing + 1
        self._behind = None
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if id(parameter) in self._seen:  # by an optimizer inside of another, unless it is a second step
                    self.steps_again |= outer
                else:
                    self._seen.add(id(parameter))
                    local = parameter.grad
                    local = local.to_local() if isinstance(local, DTensor) else local
                    story = self._lineage.of(local)
                    self.fed.append(Fed(local.numel(), story.factor, story.parent, story.computed))

    def _leave_optimizer(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._optimizing -= 1
