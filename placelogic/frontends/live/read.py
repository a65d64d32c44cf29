"""Reads one rank's part of a constructed model: where every parameter lies, and how its gradient is combined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from msgspec import Struct, field
from torch import nn
from torch.distributed.tensor import DTensor

from placelogic.frontends.live import wrappers
from placelogic.frontends.live.axes import Axes, MeshAxes
from placelogic.frontends.live.found import Gradient, Parameter, PlacedWeights
from placelogic.frontends.live.optimizers import Updates
from placelogic.frontends.live.problems import refuse
from placelogic.program.catalog import DTYPE_BYTES

DTYPES = {
    "float64": "fp64", "float32": "fp32", "bfloat16": "bf16", "float16": "fp16",
    "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "int8": "int8",
}  # fmt: skip
SHARDED, REPLICATED = "sharded", "replicated"


def dtype_name(dtype: Any, what: str) -> str:
    name = DTYPES.get(str(dtype).removeprefix("torch."))
    if name is None:
        raise refuse("PL527", f"{what} has the dtype {dtype}, which the language does not have",
                     "it has " + ", ".join(DTYPE_BYTES))  # fmt: skip
    return name


class Reader(Struct):
    """Reads modules of one rank. `batch` collects the axes that wrappers split the batch over, `tensor` those
    along which some parameter is cut as it is computed with. `no_sync`: whether wrappers are told to combine
    gradients in the last micro-batch only; None: as each is mostly used, DDP once and fully_shard always."""

    axes: MeshAxes
    updates: Updates
    no_sync: bool | None
    batch: dict[str, str] = field(default_factory=dict)
    tensor: set[str] = field(default_factory=set)

    def read(self, model: nn.Module, stage: int) -> list[Parameter]:
        """Raises SpecError."""
        replicas = wrappers.replicas(model, self.axes)
        shards = wrappers.shards(model, self.axes)
        sequence, other = wrappers.sequence_parallel(model, self.axes)
        for one in replicas:
            self._splits(one.axes, "DistributedDataParallel")
        for shard in shards.values():
            self._splits((*shard.replicate, *shard.shard), "fully_shard")
        found = []
        for name, parameter, module in named(model):
            sharded = shards.get(id(parameter))
            cuts = self._cuts(name, parameter, sharded)
            found.append(
                _One(
                    self, name, parameter, module, stage, sharded, cuts,
                    [one for one in replicas if id(parameter) in one.covered],
                    sequence.get(id(parameter), ()),
                    id(parameter) in other,
                ).record()
            )  # fmt: skip
        return found

    def _splits(self, along: Axes, why: str) -> None:
        for axis in along:
            self.batch.setdefault(axis, why)

    def _cuts(self, name: str, parameter: Any, sharded: wrappers.Shards | None) -> list[tuple[Axes, int | None]]:
        """Along which axes the parameter is cut, in which dimension (None: it lies on them, whole), the outer
        cut first."""
        if not isinstance(parameter, DTensor):
            return []
        cuts: list[tuple[Axes, int | None]] = []
        mesh = parameter.device_mesh
        for number, placement in enumerate(parameter.placements):
            along = self.axes.of_group(mesh.get_group(number), f"`{name}`")
            if placement.is_partial():
                raise refuse("PL524", f"`{name}` is a partial DTensor, which is not modelled",
                             "parameters are placed Shard or Replicate")  # fmt: skip
            # A strided shard is a Shard too, except to `is_shard` of PyTorch 2.11 and later.
            dim = getattr(placement, "dim", None)
            cuts.append((along, dim))
            if dim is not None and (sharded is None or not set(along) <= set(sharded.shard)):
                self.tensor.update(along)
        # fully_shard cuts what tensor parallelism has left (a strided shard), so its cut is the inner one.
        inner = set(sharded.shard) if sharded is not None else set()
        return sorted(cuts, key=lambda cut: bool(inner & set(cut[0])))


class _One(Struct):
    """One parameter on its way to a record."""

    reader: Reader
    name: str
    parameter: Any
    module: nn.Module
    stage: int
    sharded: wrappers.Shards | None
    cuts: Sequence[tuple[Axes, int | None]]
    replicas: Sequence[wrappers.Replicas]
    sequence: Axes
    styled: bool

    def record(self) -> Parameter:
        update = self.reader.updates.of(self.parameter)
        trained = self.parameter.requires_grad and update is not None
        remarks = []
        if self.parameter.requires_grad and update is None:
            remarks.append("no optimizer holds it: taken as frozen")
        partial = self._partial() if trained else ()
        place = self._place(update.zero if update else (), partial)
        return Parameter(
            self.name, tuple(self.parameter.shape), self._kind(), trained,
            update.name if update else None, self._precision(update.moments if update else None), tuple(place),
            self._gradient(partial, update.zero if update else ()) if trained else Gradient(),
            tuple(remarks), self.stage, *self._padded(),
        )  # fmt: skip

    def _padded(self) -> tuple[Fraction, Axes]:
        one = self.sharded
        return (one.padded, (*one.shard, *one.replicate)) if one is not None else (Fraction(1), ())

    def _partial(self) -> Axes:
        """The axes along which it is whole while its activations are cut, so that its gradient is in parts."""
        result: list[str] = []
        inside = set(self.sharded.shard) | set(self.sharded.replicate) if self.sharded is not None else set()
        for along, dim in self.cuts:
            if dim is not None or not along or set(along) <= inside:
                continue
            if set(along) <= set(self.sequence):
                result.extend(along)
            elif not self.styled and not self._whole_by_gradient(along, result):
                raise refuse(
                    "PL526",
                    f"`{self.name}` is a DTensor that is whole along {', '.join(along)}, and nothing says whether "
                    "its activations are too: it is in no plan of torch.distributed.tensor.parallel",
                    "call from_torch after a backward pass, when its gradient shows it",
                )
        return tuple(result)

    def _whole_by_gradient(self, along: Axes, result: list[str]) -> bool:
        """Whether there is a gradient that tells; if it is in parts the axes are added to the result."""
        gradient = self.parameter.grad
        if not isinstance(gradient, DTensor):
            return False
        for number, placement in enumerate(gradient.placements):
            if self.reader.axes.of_group(gradient.device_mesh.get_group(number), self.name) == along:
                if placement.is_partial():
                    result.extend(along)
                return True
        return False

    def _place(self, zero: Axes, partial: Axes) -> list[PlacedWeights]:
        result = []
        for along, dim in self.cuts:
            if not along:
                continue
            if dim is None:
                if set(along) <= set(partial):
                    why = "SequenceParallel: a replicated DTensor on a share of the sequence"
                    copies = (REPLICATED, REPLICATED, REPLICATED)
                    result.append(PlacedWeights(along, *copies, "sharded on sequence", None, why))
                continue
            on = f"{SHARDED} on {self._dim(dim)}"
            if self.sharded is not None and set(along) <= set(self.sharded.shard):
                host = " offloaded" if self.sharded.offloaded else ""
                gradients = REPLICATED if self.reader.no_sync and not host else on + host
                result.append(PlacedWeights(along, f"gathered on {self._dim(dim)}{host}", on + host, gradients, None,
                                     self.sharded.reshard, "fully_shard"))  # fmt: skip
            else:
                # The backward formula of an embedding cut by rows makes a whole gradient, zero outside of the shard.
                whole = dim == 0 and self._kind() in ("Embedding", "EmbeddingBag") and self.sharded is None
                why = f"DTensor, Shard({dim})" + (", whose gradient PyTorch keeps whole" if whole else "")
                result.append(PlacedWeights(along, on, on, REPLICATED if whole else on, None, None, why))
        if zero:
            result.append(PlacedWeights(zero, REPLICATED, "sharded on param", REPLICATED, None, None,
                                 "ZeroRedundancyOptimizer: whole parameters, each updated by one rank"))  # fmt: skip
        return result

    def _dim(self, dim: int) -> str:
        shape = tuple(self.parameter.shape)
        return Parameter(self.name, shape, self._kind(), True, None, (), (), Gradient()).dims[dim]

    def _kind(self) -> str:
        return wrappers.class_name(self.module)

    def _gradient(self, partial: Axes, zero: Axes) -> Gradient:
        reduces: list[str] = []
        why: list[str] = []
        in_loop = False
        scattered = " scattered" if self.reader.no_sync else ""
        running: list[str] = []
        if partial:
            reduces.append(f"reduce over {', '.join(partial)} by sum")
            why.append("a DTensor gradient in parts is summed before it is used")
        if self.sharded is not None:
            in_loop = not self.reader.no_sync
            divide = self.sharded.divide
            by = "mean" if divide is None else "sum"
            for along, kind in ((self.sharded.shard, scattered), (self.sharded.replicate, "")):
                if along:
                    reduces.append(f"reduce{kind} over {', '.join(along)} by {by}")
            if divide is not None and divide != 1:
                reduces.append(f"scale by 1/{number(divide)}")
            why.append("fully_shard: " + ("mean" if divide is None else f"divided by {number(divide)}"))
        for one in self.replicas:
            if id(self.parameter) in one.ignored:
                why.append("DistributedDataParallel ignores it")
            elif one.axes:
                every = running if self.reader.no_sync is False else reduces
                every.append(f"reduce over {', '.join(one.axes)} by mean")
                why.append("DistributedDataParallel: mean over its group")
        publish = (f"gather params over {'*'.join(zero)}",) if zero else ()
        host = self.sharded is not None and self.sharded.offloaded
        return Gradient(
            tuple(reduces) if in_loop else (),
            tuple(running),
            () if in_loop else tuple(reduces),
            ("offload gradients",) if host else (),
            (("fetch params",) if host else ()) + publish,
            tuple(why),
        )

    def _precision(self, moments: Any) -> tuple[tuple[str, str], ...]:
        params = dtype_name(self.parameter.dtype, f"`{self.name}`")
        compute = params
        reduce = next((one.reduce for one in self.replicas if one.reduce is not None), params)
        if self.sharded is not None and self.sharded.compute is not None:
            compute = dtype_name(self.sharded.compute, "param_dtype")
        if self.sharded is not None and self.sharded.reduce is not None:
            reduce = dtype_name(self.sharded.reduce, "reduce_dtype")
        kept = params if moments is None else dtype_name(moments, f"the optimizer state of `{self.name}`")
        entries = {"params": params, "compute": compute, "gradients": params, "moments": kept}
        if reduce != params:
            entries["reduce"] = reduce
        return tuple(entries.items())


def number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(value)


def named(model: nn.Module) -> list[tuple[str, Any, nn.Module]]:
    """Every parameter once, with the module that holds it; names without what wrappers add."""
    found = []
    seen: set[int] = set()
    for prefix, module in model.named_modules():
        for name, parameter in module.named_parameters(prefix, recurse=False):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                parts = [part for part in name.split(".") if part not in ("_orig_mod", "_checkpoint_wrapped_module")]
                found.append((".".join(parts), parameter, module))
    if wrapped := [prefix for prefix in ("module.",) if all(name.startswith(prefix) for name, _, _ in found)]:
        found = [(name.removeprefix(wrapped[0]), parameter, module) for name, parameter, module in found]
    return found


def merged(splits: Mapping[str, str], found: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """What each axis splits, and why: what a person says comes first."""
    said = [(axis, dim, "as from_torch was told") for axis, dim in splits.items()]
    return said + [(axis, "batch", why) for axis, why in found.items() if axis not in splits]
