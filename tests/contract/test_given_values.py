"""What public functions are given is looked at where it comes in: nothing is taken for another."""

from __future__ import annotations

import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import ArgumentError, LaunchConfig
from cudadrv.errors import (
    ArgumentIndexError,
    ArgumentTypeError,
    ArgumentValueError,
    CopyError,
    DTypeError,
    ExportError,
    InvalidValueError,
    TextureError,
)
from tests.noted_calls import calls_of

# What a type checker refuses is what is tested.
Wrong = Any
MASKED: Wrong = np.ma.masked_array([1.0, 2.0], [True, False])


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("i4", 1.5), ("u1", 300.7), ("u1", -1), ("f4", None), ("i4", "5"), ("f4", "5"),
        ("f4", 1 + 2j), ("f4", np.complex64(1)), ("f2", 1e6), ("f4", 1e300), ("f4", 10**400),
        ("bool", 2), ("bool", "x"), ("S2", "abc"), ("S2", 5), ("M8[s]", None), ("i8", 2.0**70),
        ([("a", "i4"), ("b", "f8")], (1.5, 0.0)), ([("a", "u1")], 256),
    ],
)  # fmt: skip
def test_fill_rejects_a_value_that_it_would_change(
    stream: cudadrv.Stream, dtype: Wrong, value: object
) -> None:
    array = stream.zeros(3, dtype)
    with pytest.raises(InvalidValueError, match="is no value for <DeviceArray"):
        stream.fill(array, value)
    assert np.array_equal(stream.to_host(array), np.zeros(3, dtype))


@pytest.mark.parametrize(
    ("dtype", "value", "element"),
    [
        ("i4", 2.0, 2), ("i4", Decimal(7), 7), ("f4", Decimal("0.5"), 0.5), ("f4", True, 1.0),
        ("f4", float("inf"), np.inf), ("bool", 1, True), ("bool", np.True_, True), ("c8", 2, 2),
        ("u8", 2**64 - 1, 2**64 - 1), ("S3", b"abc", b"abc"), ("i2", np.array(-5), -5),
        ("M8[s]", np.datetime64(5, "s"), np.datetime64(5, "s")),
    ],
)  # fmt: skip
def test_fill_accepts_an_equal_value_of_another_type(
    stream: cudadrv.Stream, dtype: str, value: object, element: object
) -> None:
    array = stream.zeros(3, dtype)
    stream.fill(array, value)
    assert np.array_equal(stream.to_host(array), np.full(3, element, dtype))


def test_a_copy_rejects_masked_elements_and_leaves_both_sides_alone(
    stream: cudadrv.Stream,
) -> None:
    array, out = stream.to_device([3.0, 4.0]), MASKED.copy()
    texels: cudadrv.texture.CudaArray[Any] = cudadrv.texture.CudaArray(stream.context, (2,), "f4")
    attempts: list[Callable[[], object]] = [
        lambda: stream.to_device(MASKED),
        lambda: stream.copy(array, MASKED),
        lambda: stream.copy(out, array),
        lambda: stream.to_host(array, out),
        lambda: texels.copy_from(stream, MASKED.astype("f4")),
        lambda: cudadrv.texture.CudaArray.from_host(stream, MASKED.astype("f4")),
    ]
    for attempt in attempts:
        with pytest.raises(CopyError, match=r"fill them with `array.filled\(value\)`"):
            attempt()
    assert stream.to_host(array).tolist() == [3.0, 4.0]
    assert out.tolist() == [None, 2.0]
    assert stream.to_host(stream.to_device(np.ma.masked_array([5.0], [False]))).tolist() == [5.0]


def test_a_subclass_of_an_array_is_copied_both_ways(stream: cudadrv.Stream) -> None:
    matrix = np.arange(6.0).reshape(2, 3).view(np.matrix)
    array = stream.zeros((2, 3), "f8")
    stream.copy(array, matrix)
    assert stream.to_host(array).tolist() == matrix.tolist()
    out = np.zeros((2, 3)).view(np.matrix)
    stream.copy(out, array)
    assert out.tolist() == matrix.tolist()


def test_an_array_of_one_element_is_not_mistaken_for_its_address(stream: cudadrv.Stream) -> None:
    array = stream.to_device(np.array([[7]], "i4"))
    for convert in (int, float, bool):
        with pytest.raises(ArgumentTypeError, match=r"Stream\.to_host"):
            convert(array[0, 0])


def test_a_slice_of_nothing_is_an_array_of_no_elements(stream: cudadrv.Stream) -> None:
    array = stream.to_device(np.arange(12).reshape(4, 3))
    for key, shape in (
        ((slice(4, 4), 2), (0,)),
        ((slice(4, None), slice(1, 3)), (0, 2)),
        (slice(9, 9), (0, 3)),
        ((slice(None), slice(3, 3)), (4, 0)),
        (slice(3, 1), (0, 3)),
        ((3, slice(3, None)), (0,)),
    ):
        part = array[key]
        assert part.shape == shape
        assert stream.to_host(part).shape == shape


def test_a_kernel_can_be_referred_to_weakly(module: cudadrv.Module) -> None:
    kernel = module.kernel(module.kernel_names[0])
    assert weakref.ref(kernel)() is kernel


def test_streams_that_stand_for_one_stream_of_another_library_are_equal(
    context: cudadrv.Context,
) -> None:
    class Theirs:
        def __init__(self, stream: cudadrv.Stream) -> None:
            self.stream = stream

        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, int(self.stream.handle)

    with context.new_stream() as one, context.new_stream() as other:
        first, second = (context.external_stream(Theirs(one)) for _ in range(2))
        assert first == second
        assert hash(first) == hash(second)
        assert first != context.external_stream(Theirs(other))
        assert first != one
        second.close()
        assert first != second
        assert not first.closed
        assert first.is_done()


@pytest.mark.slow
def test_importing_cudadrv_brings_the_emulator_that_errors_name() -> None:
    code = (
        "import cudadrv, sys; assert 'cudadrv.emulator.driver_state' not in sys.modules\n"
        "print(cudadrv.emulator.use(2).is_emulated, len(cudadrv.list_devices()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "2"]


def test_a_runtime_is_resolved_by_a_policy_and_nothing_else() -> None:
    for wrong in ("off", None, False, 5):
        given: Wrong = wrong
        with pytest.raises(ArgumentTypeError, match=r"GpuRuntime\.resolve: policy .* GpuPolicy"):
            cudadrv.GpuRuntime.resolve(given)
    assert cudadrv.GpuRuntime.resolve(cudadrv.GpuPolicy.OFF) is None


def test_what_is_wrong_is_named_with_its_place_and_what_to_give(
    context: cudadrv.Context, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    wrong: Wrong = "x"
    array, kernel = stream.zeros(4, "f4"), module.kernel(module.kernel_names[0])
    allocator, arena = cudadrv.memory.CudaAllocator(stream), cudadrv.DeviceArena()
    algebra = cudadrv.blas.LinearAlgebra.for_stream(stream)
    with stream.capture() as graph:
        stream.fill(array, 1)
    executable = graph.instantiate()
    attempts: list[tuple[Callable[[], object], str]] = [
        (lambda: stream.alloc(wrong), "nbytes is 'x', of type str: give an integer"),
        (lambda: stream.copy(array, wrong), "src is 'x', .* give a DeviceArray or a Device"),
        (lambda: stream.to_host(wrong), "array is 'x', of type str: give a DeviceArray"),
        (lambda: stream.fill(wrong, 1), "dst is 'x'"),
        (lambda: stream.wait(wrong), "a str is not a stream"),
        (lambda: stream.call_on_host(wrong), "function is 'x', of type str: give a function"),
        (lambda: stream.record().record(wrong), "stream is 'x', of type str: give a Stream"),
        (lambda: stream.record().elapsed_ms(wrong), "since is 'x', of type str: give an Event"),
        (lambda: executable.launch(wrong), "stream is 'x', of type str: give a Stream"),
        (lambda: executable.launch(Wrong), "give a Stream"),
        (lambda: executable.update(wrong), "graph is 'x', of type str: give a Graph"),
        (lambda: array.buffer.record_use(wrong), "stream is 'x'"),
        (lambda: cudadrv.DeviceArray(wrong, 3, "f4"), "buffer is 'x', .* give a DeviceBuffer"),
        (lambda: cudadrv.cuda_context_for(wrong), "ordinal is 'x'"),
        (lambda: cudadrv.Context.create(wrong), "ordinal is 'x'"),
        (lambda: context.new_stream(priority=wrong), "priority is 'x'"),
        (lambda: context.load_module(7), "an image is a ptx.Image, PTX text or bytes"),  # type: ignore[arg-type]
        (lambda: module.kernel(5), "name is 5, of type int: give a str"),  # type: ignore[arg-type]
        (lambda: kernel.attributes[wrong], "attribute is 'x'"),
        (lambda: kernel.max_active_blocks(wrong), "block_threads is 'x'"),
        (lambda: allocator.allocate(wrong), "nbytes is 'x'"),
        (lambda: allocator.deallocate(wrong, 5), "ptr is 'x'"),
        (lambda: allocator.deallocate(1, None), "nbytes is None: give"),  # type: ignore[arg-type]
        (lambda: arena.alloc(wrong, 5), "stream is 'x'"),
        (lambda: arena.alloc(stream, wrong), "elements is 'x'"),
        (lambda: algebra.potrf(wrong), "a is 'x', of type str: give a DeviceArray"),
        (lambda: cudadrv.DevicePool(wrong), "devices is 'x', .* give a sequence"),
        (lambda: cudadrv.memory.pool_info(wrong), "device is 'x', of type str: give a Device"),
        (lambda: cudadrv.CudaClient().destroy_event(wrong), "event is 'x'"),
        (lambda: cudadrv.scatter_map(wrong, [1], lambda *_: 0), "rt is 'x', .* GpuRuntime"),
        (lambda: cudadrv.trace(7), "path is 7, of type int: give text or a path"),  # type: ignore[arg-type]
    ]
    for attempt, words in attempts:
        with pytest.raises(ArgumentError, match=words) as caught:
            attempt()
        assert isinstance(caught.value, TypeError)


def test_a_function_that_cannot_be_called_as_it_will_be_is_rejected(
    module: cudadrv.Module,
) -> None:
    """A kernel can be called as well, and takes a stream."""
    kernel: Wrong = module.kernel(module.kernel_names[0])
    runtime = cudadrv.GpuRuntime.current()
    assert runtime is not None
    attempts: list[tuple[Callable[[Wrong], object], int]] = [
        (lambda wrong: cudadrv.runtime.probe_backend_with_compile("unit", wrong), 1),
        (lambda wrong: cudadrv.CudaClient().capture_graph((), (), wrong), 1),
        (lambda wrong: cudadrv.scatter_map(runtime, [1, 2], wrong), 2),
        (lambda wrong: cudadrv.scatter_batched(runtime, [1, 2], wrong), 2),
    ]
    for attempt, count in attempts:
        for wrong in (kernel, lambda: None, "x"):
            if wrong is not kernel or count == 1:
                with pytest.raises(ArgumentTypeError, match="give a function"):
                    attempt(wrong)


def test_sizes_that_python_cannot_count_are_rejected(stream: cudadrv.Stream) -> None:
    most = 2**63 - 1
    assert stream.empty((most, 0), "u1").shape == (most, 0)
    array = stream.empty((0, 3), "u1")
    attempts: list[Callable[[], object]] = [
        lambda: stream.empty((most + 1, 0), "u1"),
        lambda: stream.empty([0, 2**70], "u1"),
        lambda: stream.empty_pitched((2**70, 0), "u1"),
        lambda: array.reshape(0, most + 1),
        lambda: cudadrv.DeviceArray(array.buffer, (2**70, 0), "u1"),
    ]
    for attempt in attempts:
        with pytest.raises(ArgumentValueError, match="extents are at most 9223372036854775807"):
            attempt()
    runtime = cudadrv.GpuRuntime.current()
    assert runtime is not None
    with pytest.raises(ArgumentTypeError, match="give fewer items"):
        cudadrv.scatter_map(runtime, range(10**25), lambda *_: None)


def test_host_arrays_have_no_more_axes_than_numpy_supports(context: cudadrv.Context) -> None:
    for make in (cudadrv.pinned_empty, cudadrv.managed_empty, cudadrv.memory.PinnedPool().empty):
        with pytest.raises(ArgumentValueError, match=r"NumPy has no array of shape \(1, 1, "):
            make((1,) * 100, "f4")


def test_an_array_of_more_axes_than_numpy_has_is_not_exported(stream: cudadrv.Stream) -> None:
    array = stream.to_device(np.arange(4))[(None,) * 100]
    assert array.ndim == 101
    for export in (array.__dlpack__, lambda: stream.import_array(array)):
        with pytest.raises(ExportError, match="is not exported: maximum supported dimension"):
            export()


@pytest.mark.parametrize(
    ("shape", "strides", "filled"),
    [
        ((2**50,), (0,), [0]),
        ((2**50, 3, 2**40), (0, 8, 0), [0, 2, 4]),
        ((2, 4), (4, 4), [0, 1, 2, 3, 4]),
        ((5,) * 40, (4,) + (0,) * 39, [0, 1, 2, 3, 4]),
        ((2, 3), (24, 8), [0, 2, 4, 6, 8, 10]),
        ((2, 2, 3), (8, 16, 8), [0, 2, 4, 6, 8, 10]),
    ],
)
def test_an_element_that_an_array_repeats_is_filled_once(
    stream: cudadrv.Stream, shape: tuple[int, ...], strides: tuple[int, ...], filled: list[int]
) -> None:
    """There may be more of it than any device could write."""
    whole = stream.zeros(16, "i4")
    array: Wrong = cudadrv.DeviceArray(whole.buffer, shape, "i4", strides=strides)
    stream.fill(array, 7)
    array[...] = 7
    expected = np.zeros(16, "i4")
    expected[filled] = 7
    assert np.array_equal(stream.to_host(whole), expected)


def test_elements_that_share_some_of_their_bytes_are_not_filled(stream: cudadrv.Stream) -> None:
    """Whichever is written last would be seen."""
    buffer = stream.alloc(64)
    for shape, strides in (((8,), (2,)), ((2, 3), (12, 8))):
        array: Wrong = cudadrv.DeviceArray(buffer, shape, "i8", strides=strides)
        with pytest.raises(InvalidValueError, match="its elements overlap each other"):
            stream.fill(array, 1)


def test_numbers_out_of_range_are_rejected_before_the_driver_sees_them(
    context: cudadrv.Context,
) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: context.external_stream(2**64),
        lambda: context.external_stream(-5),
        lambda: context.new_stream(priority=2**31),
        lambda: cudadrv.Context.create(0, 2**40),
        lambda: cudadrv.memory.set_release_threshold(context.device, -1),
        lambda: cudadrv.memory.trim_pool(context.device, 2**70),
    ]
    for attempt in attempts:
        with pytest.raises(ArgumentValueError, match="give an integer of"):
            attempt()
    assert issubclass(ArgumentValueError, ValueError)


def test_memory_that_there_cannot_be_is_memory_that_there_is_not(stream: cudadrv.Stream) -> None:
    for attempt in (
        lambda: stream.alloc(2**80),
        lambda: stream.zeros((2**40, 2**40), "f8"),
        lambda: cudadrv.pinned_empty((2**40, 2**40), "f8"),
        lambda: cudadrv.managed_empty(2**70, "u1"),
    ):
        with pytest.raises(cudadrv.OutOfMemoryError):
            attempt()


def test_texels_that_there_cannot_be_are_rejected_before_memory_is_accepted(
    stream: cudadrv.Stream,
) -> None:
    for make in (cudadrv.texture.CudaArray, cudadrv.texture.MipmappedArray):
        with pytest.raises(TextureError, match="no device has extents above"):
            make(stream.context, (2**70,), "i2")
    texels: cudadrv.texture.CudaArray[Any] = cudadrv.texture.CudaArray(stream.context, (8, 8), "f4")
    for origin in ((-(2**62), 0), (0, 9), (0,)):
        with pytest.raises(CopyError):
            texels.copy_to(stream, origin=origin)
    with pytest.raises(ArgumentTypeError, match="the origin of a box is 'x'"):
        wrong: Wrong = "x"
        texels.copy_to(stream, origin=wrong)


class Untrue:
    """Says that it has less than no elements."""

    def __len__(self) -> int:
        return -1

    def __iter__(self) -> Iterator[int]:
        raise ValueError("it has none")


def test_what_lies_about_itself_is_rejected_in_our_words(stream: cudadrv.Stream) -> None:
    wrong: Wrong = Untrue()
    with pytest.raises(cudadrv.errors.LaunchConfigError, match="each extent must be an int"):
        LaunchConfig(wrong, 1)
    array: Wrong = np.zeros(4)
    module = stream.context.compile('extern "C" __global__ void f() {}')
    with pytest.raises(ArgumentTypeError, match=r"Module\.kernel: signature"):
        module.kernel("f", array)
    module.kernel("f")
    with pytest.raises(ArgumentTypeError, match=r"Module\.kernel: signature"):
        module.kernel("f", array)
    name: Wrong = b"kernel.cu"
    with pytest.raises(ptx.PtxError, match="name is b'kernel.cu'"):
        ptx.compile("", name=name, cache=False)
    if stream.context.capability.has_cluster_launch:  # tensor maps came with clusters
        with pytest.raises(cudadrv.errors.TensorMapError, match="give 2 numbers, one an axis"):
            cudadrv.tensor_map.TensorMap(stream.zeros((8, 8), "f4"), wrong)


def test_a_dtype_with_a_shape_of_its_own_is_rejected(stream: cudadrv.Stream) -> None:
    dtype = np.dtype(("f4", (2, 3)))
    for make in (stream.empty, cudadrv.pinned_empty, cudadrv.managed_empty):
        with pytest.raises(cudadrv.errors.DTypeError, match="give that with the array's shape"):
            make(3, dtype)


def test_memory_accepts_nothing_else_for_a_stream(stream: cudadrv.Stream) -> None:
    array: Wrong = stream.zeros(4, "f4")
    texels: cudadrv.texture.CudaArray[Any] = cudadrv.texture.CudaArray(
        stream.context, (8, 8), "f4", surface=True
    )
    surface: Wrong = cudadrv.texture.Surface(texels)
    allocator: Wrong = cudadrv.memory.CudaAllocator(stream)
    for wrong in (array, surface, allocator):
        with pytest.raises(ArgumentTypeError, match="give a Stream"):
            cudadrv.DeviceBuffer(wrong, 16)
    channels: Wrong = np.zeros((0, 3))
    with pytest.raises(ArgumentTypeError, match="channels"):
        cudadrv.texture.Texture(texels, channels=channels)
    size: Wrong = None
    with pytest.raises(ArgumentTypeError, match="deallocate: nbytes"):
        cudadrv.memory.CudaAllocator(stream).deallocate(8, size)


def test_texels_take_no_array_for_a_stream(stream: cudadrv.Stream) -> None:
    texels: cudadrv.texture.CudaArray[Any] = cudadrv.texture.CudaArray(stream.context, (8, 8), "f4")
    wrong: Wrong = cudadrv.texture.CudaArray(stream.context, (8, 8), "f4")
    with pytest.raises(ArgumentTypeError, match="stream"):
        texels.copy_to(wrong)
    with stream.context.new_stream() as other, calls_of("cuStreamWaitEvent") as waits:
        texels.copy_to(other)
    assert waits == []


def test_a_device_is_not_broken_by_a_success() -> None:
    with cudadrv.emulator.session() as driver:
        for attempt in (
            lambda: driver.break_device(with_=0),
            lambda: driver.fail("cuMemFree", with_=0),
        ):
            with pytest.raises(ArgumentValueError, match="a fault cannot be CUDA_SUCCESS"):
                attempt()
        assert cudadrv.best_device().ordinal == 0


def test_what_callers_catch_today_is_what_they_get(stream: cudadrv.Stream) -> None:
    array = stream.zeros((2, 2), "f4")
    with pytest.raises(ArgumentIndexError) as index:
        array[5]
    assert isinstance(index.value, IndexError)
    with pytest.raises(DTypeError) as dtype:
        stream.empty(3, "no dtype")
    assert isinstance(dtype.value, TypeError)
    with pytest.raises(cudadrv.errors.ExportError) as export:
        array.__dlpack__(copy=True)
    assert isinstance(export.value, BufferError)


def test_a_launch_rejects_what_is_no_configuration_and_no_stream(
    stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    kernel, wrong = module.kernel(module.kernel_names[0]), [1, 2]
    given: Wrong = wrong
    with pytest.raises(cudadrv.errors.LaunchConfigError, match=r"its configuration is \[1, 2\]"):
        kernel.launch(stream, given)
    with pytest.raises(ArgumentError, match="give a stream of cudadrv"):
        kernel.launch(given, LaunchConfig(1, 1))
