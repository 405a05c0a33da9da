"""Objects of PyTorch, JAX, CuPy, Numba and Warp themselves, without a GPU: what they refuse.

Their readers are asked for what a launch would pack; a launch itself refuses memory of the host.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig, emulator
from cudadrv.errors import ArgumentError
from cudadrv.interop import Reader
from cudadrv.interop.dlpack import exchange_of
from cudadrv.interop.reader import found_for

from .tensors import VersionedTensor

# What other libraries warn of is their affair.
pytestmark = pytest.mark.filterwarnings("ignore")

SOURCE = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'


# The libraries need not be installed where types are checked.
def loaded(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception as error:
        pytest.skip(f"needs {name}: {error!r}")


@pytest.fixture(scope="module")
def torch() -> Any:
    return loaded("torch")


@pytest.fixture(scope="module")
def jax() -> Any:
    return loaded("jax")


def reader_of(value: object) -> Reader:
    kind: type = type(value)
    found = found_for(kind)
    assert found is not None
    return found.reader


def address(value: object) -> int | None:
    """What a launch finds: all that is wrong is said before the address is read."""
    reader = reader_of(value)
    if reader.examine is not None:
        reader.examine(value)
    assert reader.is_lazy is None or not reader.is_lazy(value)
    return reader.address(value)


@pytest.fixture
def refusal() -> Iterator[Callable[[object], str]]:
    """What a launch says of an argument; a launch with one of ours comes before and after."""
    with emulator.session():
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        image = ptx.compile(SOURCE, ptx.CompileOptions(target=context.target))
        launcher = context.load_module(image).kernel("twice").bind(stream, LaunchConfig(1, 4))
        ours = stream.zeros(4, "f4")

        def refused(value: object) -> str:
            launcher(ours)
            with pytest.raises(ArgumentError) as raised:
                launcher(value)
            launcher(ours)
            return str(raised.value)

        yield refused


@pytest.mark.slow
def test_the_address_of_a_tensor_is_read_anew(torch: Any) -> None:
    x = torch.zeros(16)
    assert address(x) == x.data_ptr()
    assert address(x[3:]) == x.data_ptr() + 12
    assert address(x.reshape(4, 4).T) == x.data_ptr()
    assert address(x.detach().requires_grad_()) == x.data_ptr()
    assert address(torch.nn.Parameter(x)) == x.data_ptr()
    assert address(torch.zeros(0)) == 0
    before = address(x)
    x.data = torch.zeros(32)
    assert address(x) == x.data_ptr() != before
    x.resize_(1 << 20)
    assert address(x) == x.data_ptr()


def contiguous(value: object) -> bool:
    """What the reader finds for the elements' order, as for a launch."""
    reader = reader_of(value)
    if reader.examine is not None:
        reader.examine(value)
    assert reader.is_contiguous is not None
    return bool(reader.is_contiguous(value))


def test_a_strided_tensor_is_not_contiguous(torch: Any) -> None:
    x = torch.zeros(4, 6)
    found = [
        contiguous(y) for y in (x, x[1:], x[:, ::2], x.T, x[:1].T, x[:, :0].T, x[0].expand(3, 6))
    ]
    assert found == [True, True, False, False, True, True, False]


def test_an_array_of_jax_of_another_layout_is_not_contiguous(jax: Any) -> None:
    layouts = loaded("jax.experimental.layout")
    x = jax.device_put(np.ones((2, 3), "f4"), jax.devices("cpu")[0])
    other = layouts.Format(layouts.Layout(major_to_minor=(1, 0)), x.sharding)
    row = jax.device_put(np.ones((1, 3), "f4"), other)
    assert [contiguous(y) for y in (x, jax.device_put(x, other), row)] == [True, False, True]


def test_a_strided_array_of_warp_is_not_contiguous() -> None:
    warp = loaded("warp")
    warp.config.quiet = True
    x = warp.zeros((4, 6), dtype=warp.float32, device="cpu")
    views = (x, x[1:], x[:, ::2], x.transpose(), x[:1].transpose(), x[::2][:0])
    assert [contiguous(y) for y in views] == [True, True, False, False, True, True]
    assert contiguous(warp.zeros((2, 3), dtype=warp.vec3, device="cpu"))


def test_a_tensor_whose_bytes_are_not_its_values_has_no_address(torch: Any) -> None:
    z = torch.zeros(4, dtype=torch.complex64)
    assert address(z) == z.data_ptr()
    for lazy in (z.conj(), z.conj().imag, torch._neg_view(torch.zeros(4))):
        with pytest.raises(BufferError, match=r"give tensor\.resolve_conj\(\) or"):
            address(lazy)
    with torch.inference_mode(), pytest.raises(BufferError, match="resolve_neg"):
        address(torch.zeros(4, dtype=torch.complex64).conj().imag)
    assert address(z.conj().resolve_conj()) != z.data_ptr()


@pytest.mark.slow
def test_a_tensor_without_memory_has_no_address(torch: Any) -> None:
    freed = torch.zeros(4)
    freed.untyped_storage().resize_(0)
    from torch._subclasses import FakeTensorMode  # type: ignore[import-not-found, unused-ignore]

    with FakeTensorMode():
        fake = torch.empty(4)
    functional = torch._to_functional_tensor(torch.zeros(4))
    for tensor in (freed, fake, functional, torch.empty(4, device="meta")):
        with pytest.raises(BufferError, match="has no memory: it is fake, meta"):
            address(tensor)
    seen = []

    def inside(v: Any) -> Any:
        with pytest.raises(RuntimeError, match="storage"):
            address(v)
        seen.append(v)
        return v

    torch.func.vmap(inside)(torch.zeros(2, 3))
    torch.func.grad(lambda v: inside(v).sum())(torch.zeros(3))
    assert len(seen) == 2
    for tensor in (torch.zeros(4).to_sparse(), torch._efficientzerotensor(4)):
        with pytest.raises((RuntimeError, BufferError)):
            address(tensor)


def test_tensors_of_the_host_are_rejected_by_a_launch(
    torch: Any, refusal: Callable[[object], str]
) -> None:
    class Own(torch.Tensor):  # type: ignore[misc, unused-ignore]  # the base may be unknown
        pass

    for tensor in (
        torch.zeros(4),
        torch.zeros(4).as_subclass(Own),
        torch.zeros(4, requires_grad=True),
        torch.empty(4, device="meta"),
        torch.zeros(4).to_sparse(),
    ):
        assert "argument 0 of kernel 'twice' is of type" in refusal(tensor)
    proxies: list[object] = []

    def seen(x: object) -> object:
        proxies.append(x)
        return x

    torch.fx.symbolic_trace(seen)
    assert "argument 0 of kernel 'twice' is of type Proxy" in refusal(proxies[0])
    traced = torch.jit.trace(lambda x: x + int("argument 0" in refusal(x)), torch.zeros(4))
    assert traced(torch.zeros(4)).tolist() == [1.0] * 4


def test_a_tensor_is_what_its_exchange_function_returns(torch: Any) -> None:
    exchange = exchange_of(torch.Tensor)
    if exchange is None:
        pytest.skip("needs PyTorch 2.10 or newer")
    base = torch.zeros(6, 4)
    for x in (base, base[1::2, ::3].T, base[0, 0], torch.nn.Parameter(base)):
        lent = exchange.borrow(x)
        tensor = VersionedTensor.from_address(lent.value or 0).tensor
        assert (tensor.data or 0) + tensor.byte_offset == x.data_ptr()
        assert tuple(tensor.shape[: tensor.ndim]) == tuple(x.shape)
        assert tuple(tensor.strides[: tensor.ndim]) == x.stride()
        assert (tensor.device_type, tensor.code, tensor.bits, tensor.lanes) == (1, 2, 32, 1)
    for name, code in (("bfloat16", 4), ("float8_e4m3fn", 10), ("float8_e5m2", 12)):
        small = torch.zeros(3, dtype=getattr(torch, name))
        lent = exchange.borrow(small)
        assert VersionedTensor.from_address(lent.value or 0).tensor.code == code
    with pytest.raises(RuntimeError, match="meta"):
        exchange.borrow(torch.empty(3, device="meta"))
    assert exchange.current_stream(1, 0) == 0


def test_memory_of_a_borrowed_tensor_lives_until_its_release(torch: Any) -> None:
    exchange = exchange_of(torch.Tensor)
    if exchange is None:
        pytest.skip("needs PyTorch 2.10 or newer")
    x = torch.arange(4.0)
    storage = x.untyped_storage()
    held = torch._C._storage_Use_Count(storage._cdata)
    lent = exchange.borrow(x)
    del x
    assert torch._C._storage_Use_Count(storage._cdata) == held
    tensor = VersionedTensor.from_address(lent.value or 0).tensor
    assert (ctypes.c_float * 4).from_address(tensor.data)[:] == [0.0, 1.0, 2.0, 3.0]
    del lent
    assert torch._C._storage_Use_Count(storage._cdata) == held - 1


def test_tensors_of_the_host_are_rejected_as_arrays(torch: Any) -> None:
    x = torch.zeros(4)
    with emulator.session():
        stream = cudadrv.cuda_context_for(0).default_stream
        for tensor in (x, torch.nn.Parameter(x), x.to_sparse(), torch._neg_view(x)):
            with pytest.raises(TypeError, match="is not a device array"):
                stream.import_array(tensor)
        with pytest.raises(TypeError, match="memory that cannot be read"):
            stream.import_array(torch.empty(4, device="meta"))


@pytest.mark.slow
def test_arrays_of_jax_are_rejected_on_the_host_and_where_they_are_gone(
    jax: Any, refusal: Callable[[object], str]
) -> None:
    x = jax.device_put(np.ones(2, "f4"), jax.devices("cpu")[0])
    reader = reader_of(x)
    assert address(x.block_until_ready()) == x.unsafe_buffer_pointer()
    assert reader.device(x) == -1
    assert reader.dtype is not None
    assert reader.dtype(x) is x.dtype
    assert "argument 0 of kernel 'twice' is of type ArrayImpl" in refusal(x)
    x.delete()
    assert reader.address(x) is None
    with pytest.raises(RuntimeError, match="deleted"):
        address(x)

    def traced(v: Any) -> Any:
        assert "argument 0 of kernel 'twice' is of type" in refusal(v)
        return v

    jax.jit(traced)(jax.numpy.zeros(3))


def test_the_other_libraries_have_what_their_readers_request() -> None:
    cupy = loaded("cupy")
    arrays = loaded("numba.cuda.cudadrv.devicearray")
    for kind, order in ((cupy.ndarray, "_c_contiguous"), (arrays.DeviceNDArray, "is_c_contiguous")):
        found = found_for(kind)
        assert found is not None
        assert found.type is kind
        assert found.reader.stream is not None
        assert order in dir(kind)
    assert {"ptr", "device_id"} <= set(dir(cupy.cuda.MemoryPointer))


def test_arrays_of_warp_are_rejected_on_the_host(refusal: Callable[[object], str]) -> None:
    warp = loaded("warp")
    warp.config.quiet = True
    x = warp.zeros(4, dtype=warp.float32, device="cpu")
    reader = reader_of(x)
    assert reader.device(x) == -1
    assert reader.address(x) == x.ptr
    assert reader.address(warp.zeros(0, dtype=warp.float32, device="cpu")) == 0
    assert "argument 0 of kernel 'twice' is of type array" in refusal(x)


def test_what_cuda_core_has_is_known() -> None:
    core = loaded("cuda.core")
    buffer = core.Buffer.from_handle(0x1000, 64)
    reader = reader_of(buffer)
    assert reader.address(buffer) == 0x1000
    assert contiguous(buffer)
    utils = loaded("cuda.core.utils")
    x = np.zeros((4, 6), "f4")
    found = []
    for y in (x, x[1:], x[:, ::2], x.T, x[:1].T):
        view = utils.StridedMemoryView.from_any_interface(y, stream_ptr=-1)
        found.append(contiguous(view))
    assert found == [True, True, False, False, True]
