"""One mistake has one class of error, whichever way it is made, and crosses processes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Final

import pytest

import cudadrv
import ptx
from cudadrv import Context, CudaClient, DeviceArena, PtxModuleCache, emulator
from cudadrv.client import register_module
from cudadrv.errors import (
    CudadrvError,
    CudaError,
    DriverCallFailed,
    GpuError,
    OutOfMemoryError,
    RuntimeDependencyUnavailable,
)
from cudadrv.runtime import KeyedPtxModuleCache, probe_backend_with_compile

K: Final = 'extern "C" __global__ void k() {}'
# The source, the options, and the class of the error.
MISTAKES: Final[dict[str, tuple[str, ptx.CompileOptions, type[CudadrvError]]]] = {
    "a wrong source": ("__global__ void k() { no(); }", ptx.CompileOptions(), ptx.CompileError),
    "a missing header": (
        f'#include "absent.h"\n{K}',
        ptx.CompileOptions(),
        ptx.HeaderNotFoundError,
    ),
    "a wrong option": (K, ptx.CompileOptions(extra=("--nothing",)), ptx.CompileError),
    "an architecture that NVRTC does not know": (
        K,
        ptx.CompileOptions(target=ptx.Target.ptx("compute_50")),
        ptx.UnsupportedTargetError,
    ),
    "PTX that the device does not run": (
        K,
        ptx.CompileOptions(target=ptx.Target.ptx("compute_120")),
        CudaError,
    ),
}
Way = Callable[[Context, str, ptx.CompileOptions], object]


def registered(context: Context, source: str, options: ptx.CompileOptions) -> None:
    name = f"mistake {hash((source, options))}"
    register_module(name, source, options)
    CudaClient(context.device.ordinal).preload_modules([name])


WAYS: Final[dict[str, Way]] = {
    "Context.compile": lambda context, source, options: context.compile(source, options),
    "PtxModuleCache": lambda context, source, options: PtxModuleCache(options).get_or_compile(
        context, "k.cu", source
    ),
    "KeyedPtxModuleCache": lambda context, source, options: KeyedPtxModuleCache(
        options
    ).get_or_compile(context, 3, "k.cu", source),
    "CudaClient": registered,
    "probe_backend_with_compile": lambda context, source, options: probe_backend_with_compile(
        "backend", lambda parts: PtxModuleCache(options).get_or_compile(parts.ctx, "k.cu", source)
    ),
}


@pytest.fixture
def context() -> Iterator[Context]:
    with emulator.session():
        yield cudadrv.cuda_context_for(0)


def raised(call: Callable[[], object]) -> CudadrvError:
    with pytest.raises(CudadrvError) as caught:
        call()
    return caught.value


@pytest.mark.slow
def test_one_mistake_has_one_class_by_each_way(context: Context) -> None:
    wrong = []
    for mistake, (source, options, family) in MISTAKES.items():
        direct = raised(lambda: context.compile(source, options))  # noqa: B023 - called at once
        for name, way in WAYS.items():
            error = raised(lambda: way(context, source, options))  # noqa: B023 - likewise
            twin = pickle.loads(pickle.dumps(error))
            is_gpu_error = isinstance(error, GpuError) == (name != "Context.compile")
            has_class = isinstance(error, (family, type(direct)))
            attributes = set(vars(direct)) <= set(vars(error))
            crosses = type(twin) is type(error) and str(twin) == str(error)
            if not (is_gpu_error and has_class and attributes and crosses):
                wrong.append((mistake, name, type(error).__mro__))
    assert wrong == []


def test_an_error_of_a_cache_has_the_diagnostics_of_the_compiler(context: Context) -> None:
    cache = PtxModuleCache()
    error = raised(lambda: cache.get_or_compile(context, "k.cu", "__global__ void k() { f(); }"))
    assert isinstance(error, ptx.CompileError)
    assert isinstance(error, DriverCallFailed)
    assert [(each.file, each.line) for each in error.diagnostics] == [("k.cu", 1)]
    assert str(error).startswith("k.cu NVRTC compile failed: ")
    assert isinstance(error.__cause__, ptx.CompileError)


def test_a_failed_allocation_of_an_arena_is_the_drivers_error_too() -> None:
    with emulator.session() as machine:
        stream = cudadrv.cuda_context_for(0).default_stream
        machine.fail("cuMemAllocAsync", times=None, with_=2)
        machine.fail("cuMemAlloc", times=None, with_=2)
        error = raised(lambda: DeviceArena().alloc(stream, 8, "solver"))
    assert isinstance(error, OutOfMemoryError)
    assert isinstance(error, DriverCallFailed)
    assert (error.code, error.result) == (2, 2)
    assert str(error).startswith("solver arena alloc_zeros<8>: ")


def test_a_variant_of_a_variant_stays_one(context: Context) -> None:
    missing = ptx.NvrtcNotFoundError("pip install x", "not there")
    once = RuntimeDependencyUnavailable.of(missing, "once")
    twice = DriverCallFailed.of(RuntimeDependencyUnavailable.of(once, "again"), "twice")
    assert isinstance(twice, (RuntimeDependencyUnavailable, ptx.NvrtcNotFoundError))
    assert (str(twice), twice.reason) == ("twice", "twice")
    assert vars(twice)["command"] == "pip install x"
    assert str(pickle.loads(pickle.dumps(twice))) == "twice"
    assert type(DriverCallFailed.of(ValueError("v"), "other")) is DriverCallFailed
    group = cudadrv.pool.ScatterError("m", [ValueError("v")])
    assert type(DriverCallFailed.of(group, "several")) is DriverCallFailed
