"""The whole texts of errors that few programs meet."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig, emulator
from cudadrv.errors import ClosedError, OutOfMemoryError

SOURCE: Final = """
__device__ int table[4];
extern "C" __global__ void k(float* x) { x[0] = 1; }
"""
MUCH: Final = 1 << 44  # more than a machine has
ADVICE: Final = (
    "free memory of the host (drop pinned, registered and managed arrays), or allocate less"
)


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    with emulator.session():
        yield


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            lambda: cudadrv.pinned_empty(MUCH, np.uint8),
            f"pinning {MUCH} bytes of host memory: "
            f"cuMemHostAlloc returned CUDA_ERROR_OUT_OF_MEMORY (2)\n  {ADVICE}",
        ),
        (
            lambda: cudadrv.pinned_empty(1 << 64, np.uint8),
            f"pinning {1 << 64} bytes of host memory: CUDA_ERROR_OUT_OF_MEMORY (2)\n  {ADVICE}",
        ),
        (
            lambda: cudadrv.memory.managed_empty(MUCH, np.uint8),
            f"allocating {MUCH} bytes of managed memory:\n"
            f"  cuMemAllocManaged returned CUDA_ERROR_OUT_OF_MEMORY (2)\n  {ADVICE}",
        ),
    ],
)
def test_memory_beyond_that_of_the_host_has_advice_for_the_host(
    make: Callable[[], object], expected: str
) -> None:
    with pytest.raises(OutOfMemoryError) as caught:
        make()
    assert str(caught.value) == expected
    assert str(pickle.loads(pickle.dumps(caught.value))) == expected


def test_memory_beyond_that_of_the_device_has_advice_for_the_device() -> None:
    stream = cudadrv.cuda_context_for(0).new_stream()
    with pytest.raises(OutOfMemoryError) as caught:
        stream.empty(MUCH, np.uint8)
    assert str(caught.value).endswith(
        "free device memory (close arrays, trim arenas), or allocate less"
    )


@pytest.mark.slow
def test_objects_of_a_destroyed_context_name_what_was_closed() -> None:
    own, other = cudadrv.Context.create(0), cudadrv.cuda_context_for(0).new_stream()
    image = ptx.compile(SOURCE, ptx.CompileOptions(target=own.target), name="k.cu")
    module, stream = own.load_module(image), own.new_stream()
    kernel, table = module.kernel("k"), module.global_array("table", (4,), np.int32)
    array = stream.zeros(4, np.float32)
    launcher = kernel.bind(stream, LaunchConfig(1, 1))
    own.close()
    texts: dict[str, Callable[[], object]] = {
        "the context on device 0 was closed": lambda: own.load_module(image),
        "the module on device 0 was closed": lambda: module.kernel("k"),
        "the module of kernel 'k' was closed": lambda: kernel.launch(
            other, LaunchConfig(1, 1), other.zeros(4, np.float32)
        ),
        "the device array of shape (4,) int32 was closed": lambda: other.to_host(table),
        "the device array of shape (4,) float32 was closed": lambda: launcher(array),
        "the stream on device 0 was closed": lambda: stream.zeros(4, np.float32),
    }
    for text, use in texts.items():
        with pytest.raises(ClosedError) as caught:
            use()
        assert str(caught.value) == text
    assert repr(module) == "<Module closed on device 0>"
    assert repr(own) == "<Context own, closed on device 0>"
