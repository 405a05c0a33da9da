"""Memory that another library exports as read-only: what raises, what works, and its export."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import ArgumentError, ExportError
from cudadrv.interop import Reader, register
from cudadrv.memory.array import AnyDeviceArray
from cudadrv.texture import CudaArray

from .interop.tensors import READ_ONLY, versioned_in
from .protocols import ByDlpack, ByInterface

ONE, DATA = LaunchConfig(1, 1), np.arange(16, dtype="f4").reshape(4, 4)
SOURCE = """
using real = float;
extern "C" {
__global__ void write(float* x) { x[0] = 99; }
__global__ void write_bytes(void* x) { *(float*)x = 99; }
__global__ void write_hidden(real* x) { x[0] = 99; }
__global__ void read(const float* x, float* out) { atomicAdd(out, x[0] + x[1]); }
}
"""


class ReadOnlyTensor(ByDlpack):
    """An array that DLPack marks as read-only."""

    def __dlpack__(
        self, *, stream: int | None = None, max_version: tuple[int, int] | None = None
    ) -> object:
        capsule = self._array.__dlpack__(stream=stream, max_version=max_version)
        if max_version is not None:
            versioned_in(capsule).flags |= READ_ONLY
        return capsule


class OldTensor(ByDlpack, ByInterface):
    """An array with a version of DLPack that has no mark; the array interface has one."""

    def __init__(self, array: AnyDeviceArray, **changed: object) -> None:
        ByDlpack.__init__(self, array)
        ByInterface.__init__(self, array, **changed)


class Immutable(ByDlpack):
    """An array whose reader tells it, as JAX's does."""

    def __init__(self, array: AnyDeviceArray) -> None:
        super().__init__(array)
        self.pointer, self.place = array.ptr, 0


_place = attrgetter("place")
register(Immutable, Reader(attrgetter("pointer"), _place, is_read_only=True))
Maker = Callable[[AnyDeviceArray], Any]
FORMS: dict[str, Maker] = {
    "array interface": lambda array: ByInterface(array, data=(array.ptr, True)),
    "DLPack": ReadOnlyTensor,
    "DLPack before 1": lambda array: OldTensor(array, data=(array.ptr, True)),
    "reader": Immutable,
}


def require_versions() -> None:
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("needs NumPy 2.1, whose DLPack has versions")


@pytest.fixture(params=list(FORMS))
def form(request: pytest.FixtureRequest) -> Maker:
    if FORMS[request.param] is ReadOnlyTensor:
        require_versions()
    return FORMS[request.param]


@pytest.fixture
def base(stream: cudadrv.Stream) -> Iterator[AnyDeviceArray]:
    """Memory, which has its values at the end."""
    array = stream.to_device(DATA)
    yield array
    assert np.array_equal(stream.to_host(array), DATA)


def views(imported: AnyDeviceArray) -> list[Any]:
    """What shares the memory of an array."""
    whole = cudadrv.DeviceArray(imported.buffer, (16,), "f4")
    return [
        imported, imported[1:], imported[:, 1], imported.T, imported.reshape(2, 8), imported[:0],
        imported.view("u4"), imported.buffer, imported.origin, whole,
    ]  # fmt: skip


def writes(stream: cudadrv.Stream, x: Any, value: object) -> Iterator[Callable[[], object]]:
    """Every operation that would write an array or a buffer."""
    host: Any = np.zeros(x.nbytes, "u1")
    if isinstance(x, cudadrv.DeviceArray):
        host = np.zeros(x.shape, x.dtype)
        yield lambda: stream.assign(x, value)
        yield lambda: x.__setitem__(..., value)
        yield lambda: stream.copy(x, stream.empty(x.shape, x.dtype))
    device = stream.to_device(host)
    yield lambda: stream.fill(x, value)
    yield lambda: stream.copy(x, host)
    yield lambda: stream.copy(x, device if isinstance(x, cudadrv.DeviceArray) else device.buffer)
    yield lambda: stream.copy_batch([(x, host)])
    yield lambda: stream.copy_batch([(x, device)])
    yield lambda: stream.context.new_graph().add_fill(x, value)
    yield lambda: stream.context.new_graph().add_copy(x, host)
    yield lambda: stream.context.new_graph().add_copy(x, device)


def test_each_operation_that_writes_it_raises(
    stream: cudadrv.Stream, base: AnyDeviceArray, form: Maker
) -> None:
    imported = stream.import_array(form(base))
    assert imported.is_read_only
    assert not base.is_read_only
    failures = []
    for view in views(imported):
        assert view.is_read_only
        for number, write in enumerate(writes(stream, view, 7)):
            try:
                write()
            except (ArgumentError, cudadrv.errors.CopyError) as error:
                # A graph's node takes no strided memory in the first place.
                if "is read-only" not in str(error) and "contiguous" not in str(error):
                    failures.append((view, number, str(error)))
            else:
                failures.append((view, number, "accepted"))
    assert not failures
    with pytest.raises(ArgumentError, match="write to a copy: Stream.copy"):
        CudaArray(stream.context, (4, 4), "f4").copy_to(stream, imported)


def test_nodes_that_would_write_it_raise_when_they_are_changed(
    stream: cudadrv.Stream, base: AnyDeviceArray, form: Maker
) -> None:
    imported, other, graph = (
        stream.import_array(form(base)),
        stream.zeros((4, 4), "f4"),
        stream.context.new_graph(),
    )
    fill, copy = graph.add_fill(other, 1), graph.add_copy(other, base)
    executable = graph.instantiate()
    changes: tuple[Callable[[], None], ...] = (
        lambda: fill.update(imported, 1),
        lambda: fill.update_in(executable, imported, 1),
        lambda: copy.update(imported, other),
        lambda: copy.update_in(executable, imported, other),
    )
    for change in changes:
        with pytest.raises(ArgumentError, match="is read-only"):
            change()


def test_a_kernel_gets_it_by_a_pointer_to_const_alone(
    context: cudadrv.Context,
    stream: cudadrv.Stream,
    kernels: cudadrv.Module,
    base: AnyDeviceArray,
    form: Maker,
) -> None:
    theirs, out = form(base), stream.zeros(1, "f4")
    imported, launched = stream.import_array(theirs), 0
    with context.new_stream() as other:
        for value in (theirs, imported, imported[:], imported.buffer, imported.origin):
            for name in ("write", "write_bytes", "write_hidden"):
                kernel, scratch = kernels.kernel(name), stream.zeros(4, "f4")
                for ordered in (True, False):
                    launcher = kernel.bind(stream, ONE, ordered=ordered)
                    for earlier in range(4):  # code is made for a writable array
                        for use in (
                            lambda: launcher(value),  # noqa: B023
                            lambda: launcher.prepare(value),  # noqa: B023
                            lambda: kernel.launch(stream, ONE, value),  # noqa: B023
                            lambda: context.new_graph().add_kernel(kernel, ONE, value),  # noqa: B023
                        ):
                            with pytest.raises(ArgumentError, match="may only be read, but"):
                                use()
                        launcher(scratch[earlier:])
                with stream.capture(), pytest.raises(ArgumentError, match="may only be read"):
                    kernel.launch(stream, ONE, value)
            for queue in (stream, other, stream):
                launcher = kernels.kernel("read").bind(queue, ONE)
                for each in (base, value, value, value, base, value):
                    launcher(each, out)
                prepared = launcher.prepare(value, out)
                for _ in range(3):
                    prepared()
                launched += 9
            with stream.capture() as graph:
                kernels.kernel("read").launch(stream, ONE, value, out)
            built = context.new_graph()
            built.add_kernel(kernels.kernel("read"), ONE, value, out)
            for each_graph in (graph, built):
                each_graph.instantiate().launch(stream)
            launched += 2
        stream.wait(other)
    assert stream.to_host(out).tolist() == [launched * (DATA[0, 0] + DATA[0, 1])]


def test_it_is_read_as_other_memory(
    context: cudadrv.Context, stream: cudadrv.Stream, base: AnyDeviceArray, form: Maker
) -> None:
    imported, target = stream.import_array(form(base)), stream.zeros((4, 4), "f4")
    assert "read-only" in repr(imported)
    for view, part in ((imported, DATA), (imported[1:], DATA[1:]), (imported.T, DATA.T)):
        assert np.array_equal(stream.to_host(view), part)
        assert np.array_equal(stream.to_host(stream.contiguous(view)), part)
        copied = stream.empty(view.shape, "f4")
        stream.copy(copied, view)
        assert not copied.is_read_only
        assert np.array_equal(stream.to_host(copied), part)
    stream.copy_batch([(target, imported)])
    target[1] = imported[2]
    assert np.array_equal(stream.to_host(target), DATA[[0, 2, 2, 3]])
    cudadrv.texture.Texture(stream.import_array(form(base)).reshape(16))
    for _ in range(20):  # the streams that read it are forgotten as others are
        with context.new_stream() as reader:
            assert reader.to_host(imported)[3, 3] == 15
    assert len(imported._memory.accesses.readers) < 15
    imported.close()
    with pytest.raises(cudadrv.ClosedError):
        _ = imported.is_read_only


def test_the_export_reports_it(stream: cudadrv.Stream, base: AnyDeviceArray, form: Maker) -> None:
    require_versions()
    imported = stream.import_array(form(base))
    for view in (imported, imported[1:], imported.T):
        assert view.__cuda_array_interface__["data"] == (view.ptr, True)
        assert stream.import_array(view).is_read_only
        assert stream.import_array(ByInterface(view)).is_read_only
        capsule = view.__dlpack__(max_version=(1, 0))
        tensor = versioned_in(capsule)
        assert (tensor.flags & READ_ONLY, tensor.tensor.data) == (READ_ONLY, view.ptr)
        with pytest.raises(ExportError, match="only DLPack 1 and newer has read-only arrays"):
            view.__dlpack__()
    assert base.__cuda_array_interface__["data"] == (base.ptr, False)
    writable = stream.import_array(ByDlpack(base))
    assert not writable.is_read_only
    assert not stream.import_array(writable).is_read_only


def test_a_read_only_host_array_in_place_is_read_only(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    pinned = cudadrv.pinned_empty(4, "f4")
    pinned[:] = 5
    pinned.flags.writeable = False
    array, out = stream.in_place(pinned), stream.zeros(1, "f4")
    assert array.is_read_only
    with pytest.raises(ArgumentError, match="is read-only"):
        stream.fill(array, 1)
    with pytest.raises(ArgumentError, match="may only be read"):
        kernels.kernel("write").launch(stream, ONE, array)
    kernels.kernel("read").launch(stream, ONE, array, out)
    assert stream.to_host(out).tolist() == [10]
