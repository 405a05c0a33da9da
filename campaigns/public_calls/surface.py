"""The public callables, and the values that their annotations allow."""

from __future__ import annotations

import ast
import contextlib
import enum
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import cudadrv
import cudadrv.emulator
import ptx

from .operations import OPERATIONS

_PACKAGES: Final = (
    cudadrv, cudadrv.blas, cudadrv.checkpoint, cudadrv.client, cudadrv.cluster, cudadrv.driver,
    cudadrv.emulator, cudadrv.graph, cudadrv.interop, cudadrv.ipc, cudadrv.launch, cudadrv.memory,
    cudadrv.nvml, cudadrv.opengl, cudadrv.pool, cudadrv.runtime, cudadrv.stream,
    cudadrv.tensor_map, cudadrv.texture, cudadrv.tracing, ptx,
)  # fmt: skip
# Constructors that are no way to get an object, although their class is public: each is made by a
# function that checks what it is given.
_MADE: Final = frozenset({
    "cudadrv.client.CapturedGraph", "cudadrv.Context", "cudadrv.Device", "cudadrv.Graph",
    "cudadrv.GraphExec", "cudadrv.Kernel", "cudadrv.Module", "cudadrv.Stream", "cudadrv.pool.Tile",
    "cudadrv.texture.CudaArray.of_level", "cudadrv.emulator.BadDevice",
    "cudadrv.emulator.MemoryLimit", "cudadrv.emulator.ScheduledFault", "ptx.CompileRequest",
    "cudadrv.memory.MemoryStream", "cudadrv.emulator.CountedLaunch", "cudadrv.emulator.Counters",
    "cudadrv.emulator.HostChange", "cudadrv.emulator.EarlyRead", "cudadrv.emulator.Leak",
    "cudadrv.emulator.Occupancy", "cudadrv.driver.ContextLimits", "cudadrv.GpuExecutor",
    "cudadrv.driver.DefaultStream", "cudadrv.graph.GraphNode", "cudadrv.graph.GraphCondition",
    "cudadrv.emulator.StandIn", "cudadrv.graph.AllocNode", "cudadrv.graph.ConditionalNode",
    "cudadrv.graph.CopyNode", "cudadrv.graph.EventNode", "cudadrv.graph.FillNode",
    "cudadrv.graph.HostNode", "cudadrv.graph.KernelNode", "cudadrv.nvml.NvmlDevice",
    "cudadrv.nvml.NvmlEvents", "cudadrv.launch.KernelAttributes",
})  # fmt: skip
# What starts as many processes as it is told.
_STARTS_PROCESSES: Final = frozenset({"cudadrv.GpuExecutor.local", "cudadrv.GpuExecutor.dask"})


@dataclass(frozen=True, slots=True)
class Target:
    """A public callable.

    Attributes:
        name: such as "cudadrv.Stream.alloc".
        owner: the class whose object it is called on; None for functions, constructors and class
            methods.
        function: what is called; with the object first where there is an owner.
        parameters: name, kind, annotation and whether it may be left out.
    """

    name: str
    owner: type | None
    function: Callable[..., object]
    parameters: tuple[Parameter, ...]

    @property
    def may_fail_to_write(self) -> bool:
        """Whether its documentation names OSError."""
        return "OSError" in (inspect.getdoc(self.function) or "")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a callable."""

    name: str
    kind: inspect._ParameterKind
    annotation: object
    is_optional: bool


def targets() -> list[Target]:
    """Every public function, constructor, method and property of the packages, by name."""
    found: dict[str, Target] = {}
    root = set(dir(cudadrv))
    for package in _PACKAGES:
        names: list[str] = package.__all__
        for name in names:
            value = getattr(package, name)
            where = f"{package.__name__}.{name}"
            if name.startswith("_") or (package is not cudadrv and name in root):
                continue
            if isinstance(value, type):
                for target in _of_class(where, value):
                    found[target.name] = target
            elif inspect.isfunction(value):
                found[where] = Target(where, None, value, parameters_of(value))
    for function in OPERATIONS:
        name, (first, *others) = f"operation.{function.__name__}", parameters_of(function)
        owner = typing.get_origin(first.annotation) or first.annotation
        assert isinstance(owner, type)
        found[name] = Target(name, owner, function, tuple(others))
    return [found[name] for name in sorted(found.keys() - _MADE - _STARTS_PROCESSES)]


def _of_class(where: str, cls: type) -> Iterator[Target]:
    if issubclass(cls, (BaseException, enum.Enum, dict, tuple)) or getattr(
        cls, "_is_protocol", False
    ):
        return
    maker = cls.__init__ if cls.__new__ is object.__new__ else cls.__new__
    if inspect.isfunction(maker):
        yield Target(where, None, cls, parameters_of(maker)[1:])
    for name in dir(cls):
        if name.startswith("_") and name not in ("__getitem__", "__dlpack__"):
            continue
        if name.startswith("cu") and name[2:3].isupper():
            continue  # the emulator's functions are the driver's, and answer with its codes
        value = inspect.getattr_static(cls, name)
        full = f"{where}.{name}"
        if isinstance(value, (classmethod, staticmethod)):
            bound = getattr(cls, name)
            first = isinstance(value, classmethod)
            yield Target(full, None, bound, parameters_of(value.__func__)[first:])
        elif isinstance(value, property) or type(value).__name__ == "cached_property":
            yield Target(full, cls, _reader(name), ())
        elif inspect.isfunction(value) and value.__module__.startswith(("cudadrv", "ptx")):
            yield Target(full, cls, getattr(cls, name), parameters_of(value)[1:])


def _reader(name: str) -> Callable[[object], object]:
    return lambda owner: getattr(owner, name)


def parameters_of(function: Callable[..., object]) -> tuple[Parameter, ...]:
    """The parameters of a function, `self` among them."""
    hints = _hints(inspect.unwrap(function))
    return tuple(
        Parameter(
            each.name, each.kind, hints.get(each.name, object), each.default is not each.empty
        )
        for each in inspect.signature(function).parameters.values()
    )


# Names as the type checker has them: annotations may name what is imported for it alone.
def _hints(function: Callable[..., object]) -> dict[str, Any]:
    module = sys.modules[function.__module__]
    names = _typing_names(module)
    result: dict[str, Any] = {}
    for name, text in getattr(function, "__annotations__", {}).items():
        try:
            result[name] = eval(text, names) if isinstance(text, str) else text
        except (NameError, AttributeError, TypeError):
            result[name] = object
    return result


@functools.cache
def _typing_names(module: types.ModuleType) -> dict[str, object]:
    tree = ast.parse(inspect.getsource(module))
    names = dict(vars(module))
    for node in tree.body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for each in node.body:
                with contextlib.suppress(ImportError):  # a name of a name
                    exec(compile(ast.Module([each], []), "names", "exec"), names)
    return names


def members(annotation: object) -> tuple[object, ...]:
    """The alternatives of a union, or the annotation alone."""
    if isinstance(annotation, str):
        return (object,)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)
