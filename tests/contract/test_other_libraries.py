"""Arrays of PyTorch, CuPy, Numba, JAX, cuda.core and Warp themselves, on a GPU."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import ArgumentError, WrongDeviceError
from cudadrv.interop.reader import found_for

# What other libraries warn of is their affair.
pytestmark = pytest.mark.filterwarnings("ignore")

SOURCE = """
extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void double_of(float* out, const float* x) {
    out[threadIdx.x] = 2 * x[threadIdx.x];
}
"""
ONES = np.ones(8, "f4")
CONFIG = LaunchConfig(1, 4)


@dataclass
class Library:
    """What is tested of each.

    Attributes:
        make: an array like one of the host.
        tail: the part of it from an element on, without a copy; None where there is no such thing.
    """

    make: Callable[[Any], Any]
    tail: Callable[[Any, int], Any] | None


# The libraries need not be installed where types are checked.
def loaded(name: str, context: cudadrv.Context, *, has_gpu: Callable[[Any], bool]) -> Any:
    """A library, where it and a GPU are there."""
    if context.device.is_emulated:
        pytest.skip("needs a GPU")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        module = importlib.import_module(name)
        found = has_gpu(module)
    except Exception as error:
        pytest.skip(f"needs {name}: {error!r}")
    if not found:
        pytest.skip(f"needs {name} with CUDA")
    return module


@pytest.fixture(autouse=True)
def on_device_0(context: cudadrv.Context) -> None:
    """The libraries make their arrays on the device whose context is current."""
    context.bind()


@pytest.fixture
def torch(context: cudadrv.Context) -> Any:
    return loaded("torch", context, has_gpu=lambda torch: torch.cuda.is_available())


@pytest.fixture
def cupy(context: cudadrv.Context) -> Any:
    return loaded("cupy", context, has_gpu=lambda cupy: cupy.cuda.is_available())


@pytest.fixture
def numba_cuda(context: cudadrv.Context) -> Any:
    return loaded("numba.cuda", context, has_gpu=lambda cuda: cuda.is_available())


@pytest.fixture
def jax(context: cudadrv.Context) -> Any:
    return loaded("jax", context, has_gpu=lambda jax: jax.default_backend() == "gpu")


def torch_library(get: Callable[[str], Any]) -> Library:
    torch = get("torch")
    return Library(lambda host: torch.tensor(host, device="cuda"), lambda x, n: x[n:])


def cupy_library(get: Callable[[str], Any]) -> Library:
    cupy = get("cupy")
    return Library(cupy.array, lambda x, n: x[n:])


def numba_library(get: Callable[[str], Any]) -> Library:
    return Library(get("numba_cuda").to_device, lambda x, n: x[n:])


def jax_library(get: Callable[[str], Any]) -> Library:
    jnp = get("jax").numpy
    return Library(lambda host: jnp.array(host) * 1, None)


def core_library(get: Callable[[str], Any]) -> Library:
    core = loaded("cuda.core", get("context"), has_gpu=lambda core: hasattr(core, "Device"))

    def make(host: Any) -> Any:
        device = core.Device(0)
        device.set_current()
        stream = device.create_stream()
        buffer = device.allocate(host.nbytes, stream=stream)
        stream.sync()
        ours = get("stream")
        ours.copy(ours.import_array(ByAddress(buffer, host)), host)
        ours.synchronize()
        return buffer

    return Library(make, None)


def warp_library(get: Callable[[str], Any]) -> Library:
    warp = loaded("warp", get("context"), has_gpu=lambda warp: warp.is_cuda_available())
    return Library(
        lambda host: warp.array(host, dtype=warp.float32, device="cuda:0"), lambda x, n: x[n:]
    )


class ByAddress:
    """A buffer's memory as an array."""

    def __init__(self, buffer: Any, host: Any) -> None:
        self.buffer = buffer
        self.__cuda_array_interface__ = {
            "data": (int(buffer.handle), False),
            "shape": host.shape,
            "typestr": host.dtype.str,
            "strides": None,
            "version": 3,
        }


LIBRARIES = {
    "PyTorch": torch_library,
    "CuPy": cupy_library,
    "Numba": numba_library,
    "JAX": jax_library,
    "cuda.core": core_library,
    "Warp": warp_library,
}


@pytest.fixture(params=list(LIBRARIES))
def library(request: pytest.FixtureRequest) -> Library:
    return LIBRARIES[request.param](request.getfixturevalue)


@pytest.fixture
def twice(kernels: cudadrv.Module, stream: cudadrv.Stream) -> cudadrv.Launcher:
    return kernels.kernel("twice").bind(stream, CONFIG)


@pytest.fixture
def double_of(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> Iterator[Callable[[Any], list[float]]]:
    """Launches the kernel on four elements of an array, and reads what it made."""
    out = stream.zeros(4, "f4")
    launcher = kernels.kernel("double_of").bind(stream, CONFIG)

    def launched(array: Any) -> list[float]:
        launcher(out, array)
        found: list[float] = stream.to_host(out).tolist()
        return found

    yield launched
    stream.synchronize()


def test_every_library_is_read_by_its_own_accessors(
    library: Library, double_of: Callable[[Any], list[float]]
) -> None:
    array = library.make(ONES)
    found = found_for(type(array))
    assert found is not None
    assert found.type is type(array)
    found.reader.address(array)  # first, as a launch does: with it the device may be noted
    assert found.reader.device(array) == 0
    for _ in range(4):
        assert double_of(array) == [2.0] * 4


def test_arrays_that_come_and_go_are_each_read_where_they_are(
    library: Library, double_of: Callable[[Any], list[float]]
) -> None:
    for number in range(1, 9):
        assert double_of(library.make(ONES * number)) == [2.0 * number] * 4


def test_views_begin_where_they_begin(
    library: Library, double_of: Callable[[Any], list[float]]
) -> None:
    if library.tail is None:
        pytest.skip("needs a library with views")
    array = library.make(np.arange(8, dtype="f4"))
    for start in (0, 0, 0, 3, 4):
        assert double_of(library.tail(array, start)) == [2.0 * (start + n) for n in range(4)]


def test_arrays_of_all_libraries_may_take_turns(
    request: pytest.FixtureRequest, double_of: Callable[[Any], list[float]]
) -> None:
    arrays = []
    for name, make in LIBRARIES.items():
        try:
            arrays.append((name, make(request.getfixturevalue).make(ONES)))
        except pytest.skip.Exception:
            continue
    if not arrays:
        pytest.skip("needs another library with CUDA")
    for _, array in arrays * 3:
        assert double_of(array) == [2.0] * 4


def test_a_library_that_works_slowly_on_its_default_stream_is_waited_for(
    torch: Any, double_of: Callable[[Any], list[float]]
) -> None:
    x = torch.zeros(4, device="cuda")
    for value in range(1, 6):
        torch.cuda._sleep(20_000_000)
        x.fill_(value)
        assert double_of(x) == [2.0 * value] * 4


def test_the_current_stream_of_pytorch_is_waited_for(
    torch: Any, double_of: Callable[[Any], list[float]]
) -> None:
    x = torch.zeros(4, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        for value in range(1, 6):
            torch.cuda._sleep(20_000_000)
            x.fill_(value)
            assert double_of(x) == [2.0 * value] * 4


def test_the_current_stream_of_cupy_is_waited_for(
    cupy: Any, double_of: Callable[[Any], list[float]]
) -> None:
    x, big = cupy.zeros(4, "f4"), cupy.ones((2048, 2048), "f4")
    _ = big @ big
    cupy.cuda.Device().synchronize()
    with cupy.cuda.Stream(non_blocking=True):
        for value in range(1, 6):
            for _ in range(20):
                _ = big @ big
            x.fill(value)
            assert double_of(x) == [2.0 * value] * 4


def test_what_numba_queued_is_waited_for(
    numba_cuda: Any, double_of: Callable[[Any], list[float]]
) -> None:
    numba = importlib.import_module("numba")

    @numba_cuda.jit  # type: ignore[untyped-decorator]  # the library has no types
    def set_late(x: Any, value: float) -> None:
        for _ in range(100):
            numba_cuda.nanosleep(100_000)
        x[numba_cuda.threadIdx.x] = value

    x = numba_cuda.to_device(np.zeros(4, "f4"))
    try:
        set_late.compile((numba.float32[:], numba.int64))
    except AttributeError as error:  # of NumPy, that this version of it counts on
        pytest.skip(f"needs a numba-cuda that compiles beside NumPy {np.__version__}: {error}")
    for value in range(1, 6):
        set_late[1, 4](x, value)
        assert double_of(x) == [2.0 * value] * 4
    own = numba_cuda.stream()
    y = numba_cuda.to_device(np.zeros(4, "f4"), stream=own)
    for value in range(1, 6):
        set_late[1, 4, own](y, value)
        assert double_of(y) == [2.0 * value] * 4


def test_what_jax_still_computes_is_waited_for(
    jax: Any, double_of: Callable[[Any], list[float]]
) -> None:
    @jax.jit  # type: ignore[untyped-decorator]  # the library need not be there
    def late(x: Any, value: float) -> Any:
        for _ in range(20):
            x = x @ x / 2048
        return x[0, :4] * 0 + value

    big = jax.numpy.ones((2048, 2048), "float32")
    late(big, 0.0).block_until_ready()
    for value in range(1, 9):
        assert double_of(late(big, float(value))) == [2.0 * value] * 4


def test_deleted_and_sharded_arrays_of_jax_are_rejected(
    jax: Any, double_of: Callable[[Any], list[float]]
) -> None:
    x = jax.numpy.array(ONES) * 1
    for _ in range(3):
        assert double_of(x) == [2.0] * 4
    x.delete()
    with pytest.raises(ArgumentError, match=r"cannot be read\n.*deleted"):
        double_of(x)
    on_host = jax.device_put(ONES, jax.devices("cpu")[0])
    with pytest.raises(ArgumentError, match="argument 1 of kernel 'double_of'"):
        double_of(on_host)


def test_tensors_that_are_not_their_bytes_are_rejected(
    torch: Any, double_of: Callable[[Any], list[float]]
) -> None:
    x = torch.ones(8, device="cuda")
    for _ in range(3):
        assert double_of(x) == [2.0] * 4
    complexes = torch.ones(8, dtype=torch.complex64, device="cuda")
    freed = torch.ones(8, device="cuda")
    freed.untyped_storage().resize_(0)
    refused = {
        "give tensor.resolve_conj": (complexes.conj(), complexes.conj().imag, torch._neg_view(x)),
        "has no memory": (freed, torch._to_functional_tensor(x)),
        "": (
            x.to_sparse(),
            x.cpu(),
            torch.empty(8, device="meta"),
            torch._efficientzerotensor(8, device="cuda"),
        ),
    }
    for text, tensors in refused.items():
        for tensor in tensors:
            with pytest.raises(
                ArgumentError, match=f"argument 1 of kernel 'double_of' (.|\n)*{text}"
            ):
                double_of(tensor)
            assert double_of(x) == [2.0] * 4
    seen: list[Any] = []

    def inside(v: Any) -> Any:
        with pytest.raises(ArgumentError, match="cannot be read"):
            double_of(v)
        seen.append(v)
        return v

    torch.func.vmap(inside)(torch.ones(2, 8, device="cuda"))
    torch.func.grad(lambda v: inside(v).sum())(x)
    assert len(seen) == 2
    from torch._subclasses import FakeTensorMode  # type: ignore[import-not-found, unused-ignore]

    with FakeTensorMode():
        fake = torch.empty(8, device="cuda")
    with pytest.raises(ArgumentError, match="argument 1 of kernel 'double_of' is of type Fake"):
        double_of(fake)


def test_tensors_of_any_kind_that_have_their_bytes_are_accepted(
    torch: Any, double_of: Callable[[Any], list[float]]
) -> None:
    x = torch.ones(8, device="cuda", requires_grad=True)

    class Own(torch.Tensor):  # type: ignore[misc, unused-ignore]  # the base may be unknown
        pass

    kinds: tuple[Any, ...] = (
        x,
        torch.nn.Parameter(torch.ones(8, device="cuda")),
        x + 0,
        x.detach(),
        torch.ones(8, device="cuda").as_subclass(Own),
        x.reshape(2, 4),
    )
    with torch.inference_mode():
        kinds = (*kinds, torch.ones(8, device="cuda"))
    for tensor in kinds * 3:
        assert double_of(tensor) == [2.0] * 4
    moved = torch.ones(8, device="cuda")
    assert double_of(moved) == [2.0] * 4
    moved.data = torch.full((8,), 3.0, device="cuda")
    assert double_of(moved) == [6.0] * 4
    moved.resize_(1 << 22).fill_(4)
    assert double_of(moved) == [8.0] * 4


def test_a_launch_in_a_capture_of_pytorch_is_in_its_graph(
    torch: Any, context: cudadrv.Context, kernels: cudadrv.Module
) -> None:
    x, kernel = torch.ones(4, device="cuda"), kernels.kernel("twice")
    with context.external_stream(torch.cuda.default_stream()) as stream:
        for _ in range(3):
            kernel.launch(stream, CONFIG, x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x += 1
        stream = context.external_stream(torch.cuda.current_stream())
        launcher = kernel.bind(stream, CONFIG)
        for _ in range(3):
            launcher(x)
        x += 1
    torch.cuda.synchronize()
    assert x.tolist() == [8.0] * 4
    graph.replay()
    graph.replay()
    torch.cuda.synchronize()
    assert x.tolist() == [((8.0 + 1) * 8 + 1 + 1) * 8 + 1] * 4


def test_a_capture_of_ours_accepts_arrays_of_all_libraries(
    library: Library, stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    array, out = library.make(ONES), stream.zeros(4, "f4")
    launcher = kernels.kernel("double_of").bind(stream, CONFIG)
    launcher(out, array)
    with stream.capture() as graph:
        launcher(out, array)
        launcher(out, out)
    graph.instantiate().launch(stream)
    assert stream.to_host(out).tolist() == [4.0] * 4
    launcher(out, array)
    assert stream.to_host(out).tolist() == [2.0] * 4


def test_arrays_of_another_device_are_rejected(
    torch: Any, cupy: Any, second_context: cudadrv.Context, double_of: Callable[[Any], list[float]]
) -> None:
    with cupy.cuda.Device(1):
        theirs = cupy.ones(8, "f4")
    for _ in range(3):
        assert double_of(torch.ones(8, device="cuda:0")) == [2.0] * 4
        for array in (theirs, torch.ones(8, device="cuda:1")):
            with pytest.raises(WrongDeviceError, match="on device 1 was given to <Stream"):
                double_of(array)


def test_what_we_launch_on_their_stream_needs_no_wait(
    torch: Any, cupy: Any, context: cudadrv.Context, kernels: cudadrv.Module
) -> None:
    theirs = torch.cuda.Stream()
    with torch.cuda.stream(theirs), context.external_stream(theirs) as stream:
        x = torch.ones(4, device="cuda")
        launcher = kernels.kernel("twice").bind(stream, CONFIG)
        for _ in range(4):
            torch.cuda._sleep(5_000_000)
            x += 1
            launcher(x)
        assert x.tolist() == [((((1 + 1) * 2 + 1) * 2 + 1) * 2 + 1) * 2.0] * 4
    y = cupy.ones(4, "f4")
    launcher = kernels.kernel("twice").bind(context.default_stream, CONFIG)
    for _ in range(4):
        y += 1
        launcher(y)
    assert y.get().tolist() == [46.0] * 4
