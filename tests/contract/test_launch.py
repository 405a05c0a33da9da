from __future__ import annotations

import ctypes
import gc
import weakref
from functools import partial

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import ArgumentError, ClosedError, LaunchConfigError, WrongDeviceError
from tests.several_threads import all_at_once

from .conftest import compile_module

SOURCE = """
struct Pair { double a; int b; char c[3]; };
extern "C" __global__ void scalars(double* out, bool p, signed char b, unsigned char ub, short h,
    unsigned short uh, int i, unsigned u, long long l, unsigned long long ul, float f, double d)
{
    double v[11] = {(double)p, (double)b, (double)ub, (double)h, (double)uh, (double)i, (double)u,
                    (double)l, (double)ul, (double)f, d};
    for (int k = 0; k < 11; ++k) out[k] = v[k];
}
extern "C" __global__ void by_value(double* out, Pair p, char last)
{ out[0] = p.a; out[1] = p.b; out[2] = p.c[2]; out[3] = last; }
extern "C" __global__ void nothing() {}
extern "C" __global__ void is_null(int* out, const void* p) { out[0] = p == nullptr; }
extern "C" __global__ void indices(int* out)
{
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int threads = blockDim.x * blockDim.y * blockDim.z;
    out[block * threads + thread] = block * 1000 + thread;
}
extern "C" __global__ void __launch_bounds__(64) bounded(int* out) { out[threadIdx.x] = 1; }
extern "C" __global__ void add(int* out, int value) { atomicAdd(out, value); }
extern "C" __global__ void shared_size(int* out, int n)
{
    extern __shared__ int cells[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) cells[i] = i;
    __syncthreads();
    if (threadIdx.x != 0) return;
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += cells[i] & 1;
    out[0] = sum;
}
"""
ONE = LaunchConfig(1, 1)
PAIR = np.dtype([("a", "f8"), ("b", "i4"), ("c", "S3")], align=True)


SCALARS: list[tuple[object, ...]] = [
    (True, -5, 250, -3000, 60000, -100000, 4_000_000_000, -(1 << 40), 1 << 50, 1.5, -2.25),
    (
        np.True_, np.int8(-128), np.uint8(255), np.int16(-32768), np.uint16(65535),
        np.int32(-(2**31)), np.uint32(2**32 - 1), np.int64(-(2**50)), np.uint64(2**52),
        np.float32(0.1), np.float64(0.1),
    ),
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4),
]  # fmt: skip


@pytest.mark.parametrize("values", SCALARS)
def test_scalars_of_every_type_arrive(
    stream: cudadrv.Stream, kernels: cudadrv.Module, values: tuple[object, ...]
) -> None:
    out = stream.zeros(11, "f8")
    launcher = kernels.kernel("scalars").bind(stream, ONE)
    for _ in range(3):  # the slow path, then the generated one twice
        stream.fill(out, 0)
        launcher(out, *values)
        expected = [float(np.asarray(value)) for value in values]
        expected[9] = float(np.float32(expected[9]))
        assert stream.to_host(out).tolist() == expected


# NumPy 1 takes its truths for numbers, with a warning.
@pytest.mark.filterwarnings("ignore:In future, it will be an error for 'np.bool_'")
def test_one_launcher_accepts_values_of_changing_kinds(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    launcher = kernels.kernel("scalars").bind(stream, ONE)
    out = stream.zeros(11, "f8")
    for values in [*SCALARS, *reversed(SCALARS), *SCALARS]:
        launcher(out, *values)
        assert stream.to_host(out)[5] == int(np.asarray(values[5]))
        launcher(int(out.ptr), *values)
        assert stream.to_host(out)[6] == int(np.asarray(values[6]))


class CPair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_double), ("b", ctypes.c_int), ("c", ctypes.c_char * 3))


@pytest.mark.parametrize(
    "pair",
    [
        np.array([(2.5, -7, b"xyz")], PAIR)[0],
        np.array((2.5, -7, b"xyz"), PAIR),
        CPair(2.5, -7, b"xyz"),
        np.array([(2.5, -7, b"xyz")], PAIR).tobytes(),
        bytearray(np.array([(2.5, -7, b"xyz")], PAIR).tobytes()),
    ],
    # The padding of the bytes differs between processes, and would be a part of a name.
    ids=["element", "array", "ctypes", "bytes", "bytearray"],
)
def test_structures_by_value(stream: cudadrv.Stream, kernels: cudadrv.Module, pair: object) -> None:
    out = stream.zeros(4, "f8")
    launcher = kernels.kernel("by_value").bind(stream, ONE)
    for _ in range(2):
        launcher(out, pair, 9)
        assert stream.to_host(out).tolist() == [2.5, -7.0, float(ord("z")), 9.0]


def test_a_structure_of_another_size_is_rejected(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    launcher = kernels.kernel("by_value").bind(stream, ONE)
    out = stream.zeros(4, "f8")
    with pytest.raises(
        ArgumentError, match=r"argument 1 of kernel 'by_value' is of type bytes of 15"
    ):
        launcher(out, b"x" * 15, 0)
    with pytest.raises(ArgumentError, match=r"is float 1.0, but .* a structure of 16 bytes"):
        launcher(out, 1.0, 0)


def test_a_kernel_without_parameters(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    launcher = kernels.kernel("nothing").bind(stream, LaunchConfig(3, 32))
    launcher()
    launcher()
    launcher.prepare()()
    stream.synchronize()
    with pytest.raises(ArgumentError, match="takes 0 arguments, 1 was given"):
        launcher(1)


def test_none_is_a_null_pointer(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    out = stream.zeros(1, "i4")
    launcher = kernels.kernel("is_null").bind(stream, ONE)
    for pointer, expected in ((None, 1), (out, 0), (0, 1), (stream.alloc(0), 1), (None, 1)):
        launcher(out, pointer)
        assert stream.to_host(out).tolist() == [expected]


@pytest.mark.parametrize(
    ("grid", "block"), [(4, 8), ((2, 3), (4, 2)), ((2, 2, 2), (3, 2, 4)), ((1, 1, 5), (1, 1, 2))]
)
def test_extents_reach_the_kernel(
    stream: cudadrv.Stream,
    kernels: cudadrv.Module,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
) -> None:
    config = LaunchConfig(grid, block)
    out = stream.zeros(config.blocks * config.threads, "i4")
    kernels.kernel("indices").launch(stream, config, out)
    expected = [b * 1000 + t for b in range(config.blocks) for t in range(config.threads)]
    assert stream.to_host(out).tolist() == expected


@pytest.mark.parametrize(
    ("args", "position", "text"),
    [
        ((1,), None, "takes 2 arguments, 1 was given"),
        ((1, 2, 3), None, "takes 2 arguments, 3 were given"),
        ((np.zeros(3, "i4"), 1), 0, r"(?s)is a host array \(3,\) int32.*Stream.to_device"),
        ((0, "x"), 1, "is of type str, but the parameter is a signed 32-bit integer"),
        (
            (0, 1.5),
            1,
            r"is float 1.5, but the parameter is a signed 32-bit integer\n"
            r"  convert it, such as by int\(...\), or look at the order of the arguments",
        ),
        ((0, np.float32(1)), 1, "float32"),
        ((0, 1 << 32), 1, "out of range for a signed 32-bit integer"),
        ((0, -(1 << 31) - 1), 1, "out of range"),
        ((1 << 64, 1), 0, "out of range"),
        ((2.0, 1), 0, "is float 2.0, but the parameter is a device pointer"),
        ((0, None), 1, "NoneType"),
        ((0, [1]), 1, "of type list"),
    ],
)
def test_wrong_arguments_are_named(
    stream: cudadrv.Stream,
    kernels: cudadrv.Module,
    args: tuple[object, ...],
    position: int | None,
    text: str,
) -> None:
    out = stream.zeros(1, "i4")
    good = (out, 1)
    for warm_up in range(2):
        launcher = kernels.kernel("add").bind(stream, ONE)
        for _ in range(warm_up):
            launcher(*good)
        with pytest.raises(ArgumentError, match=text) as caught:
            launcher(*args)
        assert (caught.value.kernel, caught.value.position) == ("add", position)
        with pytest.raises(ArgumentError, match=text) as first:
            launcher.prepare(*args)
        for _ in range(2):
            launcher.prepare(*good)
        with pytest.raises(ArgumentError) as again:
            launcher.prepare(*args)
        assert str(again.value) == str(first.value)
        with pytest.raises(ArgumentError, match=text):
            kernels.kernel("add").launch(stream, ONE, *args)


def test_memory_for_a_number_is_rejected(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    out = stream.zeros(1, "i4")
    with pytest.raises(ArgumentError, match="argument 1 .* is a DeviceArray"):
        kernels.kernel("add").launch(stream, ONE, out, out)


def test_a_closed_array_is_rejected(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    launcher = kernels.kernel("add").bind(stream, ONE)
    out = stream.zeros(1, "i4")
    launcher(out, 1)
    launcher(out, 1)
    out.close()
    with pytest.raises(ClosedError, match="the device array of shape .1,. int32 was closed"):
        launcher(out, 1)


def test_an_array_of_another_device_is_rejected(
    stream: cudadrv.Stream, kernels: cudadrv.Module, second_context: cudadrv.Context
) -> None:
    launcher = kernels.kernel("add").bind(stream, ONE)
    here, there = stream.zeros(1, "i4"), second_context.default_stream.zeros(1, "i4")
    for _ in range(3):
        launcher(here, 1)
        with pytest.raises(WrongDeviceError, match="argument 0 of kernel 'add'.* on device 1"):
            launcher(there, 1)
    with pytest.raises(WrongDeviceError, match="kernel 'add' belongs to"):
        kernels.kernel("add").bind(second_context.default_stream, ONE)
    assert stream.to_host(here).tolist() == [3]


def test_prepared_launches_repeat_and_keep_their_arguments(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    out = stream.zeros(1, "i4")
    prepared = kernels.kernel("add").bind(stream, ONE).prepare(out, 5)
    for _ in range(4):
        prepared()
    assert stream.to_host(out).tolist() == [20]


def test_a_dropped_prepared_launch_releases_its_arguments_at_once(
    kernels: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    array = stream.zeros(1, np.int32)
    prepared = kernels.kernel("add").bind(stream, ONE).prepare(array, 3)
    prepared()
    stream.copy(array, array)  # a copy is another way of use than the launcher's
    prepared()
    assert stream.to_host(array)[0] == 6
    gone = weakref.ref(array)
    del array
    gc.disable()
    try:
        del prepared
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("given", [None, "no configuration", np.arange(3), (1, 1)])
def test_what_is_no_configuration_is_rejected_also_after_a_launch(
    kernels: cudadrv.Module, stream: cudadrv.Stream, given: object
) -> None:
    kernel = kernels.kernel("add")
    out = stream.zeros(1, np.int32)
    for config in (ONE, LaunchConfig(1, 1), LaunchConfig(1, 1)):
        kernel.launch(stream, config, out, 1)
    with pytest.raises(LaunchConfigError):
        kernel.launch(stream, given, out, 1)  # type: ignore[arg-type]  # what is wrong here
    kernel.launch(stream, LaunchConfig(1, 2), out, 1)
    assert stream.to_host(out)[0] > 3


def test_a_prepared_launch_of_a_closed_array_reports_it(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    array = stream.to_device(np.zeros(1, "i4"))
    prepared = kernels.kernel("add").bind(stream, ONE).prepare(array, 3)
    prepared()
    array.close()
    with pytest.raises(ClosedError):
        prepared()


@pytest.mark.parametrize("given", [None, 7, "stream", np.arange(3)])
def test_what_is_no_stream_is_rejected(kernels: cudadrv.Module, given: object) -> None:
    kernel = kernels.kernel("nothing")
    with pytest.raises(ArgumentError, match="give a stream of cudadrv"):
        kernel.bind(given, ONE)  # type: ignore[arg-type]  # the mistake that is tested
    with pytest.raises(ArgumentError, match="give a stream of cudadrv"):
        kernel.launch(given, ONE)  # type: ignore[arg-type]  # the mistake that is tested


def test_a_kernel_releases_closed_streams(
    context: cudadrv.Context, kernels: cudadrv.Module
) -> None:
    kernel = kernels.kernel("nothing")
    streams = [context.new_stream() for _ in range(5)]
    for stream in streams:
        kernel.launch(stream, ONE)
        kernel.launch(stream, ONE)
    alive = [weakref.ref(stream) for stream in streams]
    for stream in streams:
        stream.close()
    del stream
    streams.clear()
    gc.collect()
    assert [reference() for reference in alive] == [None] * 5


@pytest.mark.parametrize(
    ("grid", "block"),
    [(0, 1), (1, 0), (-1, 1), (1, (1, 0)), ((1, 1, 1, 1), 1), ((), 1), (1.5, 1), ("2", 1)],
)
def test_extents_that_are_no_positive_numbers_are_rejected(grid: object, block: object) -> None:
    with pytest.raises(LaunchConfigError, match="grid is|block is"):
        LaunchConfig(grid, block)  # type: ignore[arg-type]  # what is tested


def test_extents_beyond_the_device_are_rejected(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    kernel = kernels.kernel("nothing")
    for config, text in [
        (LaunchConfig(1, 1025), "block.x is 1025; .* allows 1024"),
        (LaunchConfig(1, (1, 1, 65)), "block.z is 65; .* allows 64"),
        (LaunchConfig(1, (64, 32)), "a block of 2048 threads"),
        (LaunchConfig((1, 65536), 1), "grid.y is 65536; .* allows 65535"),
        (LaunchConfig(1 << 31, 1), "grid.x is 2147483648"),
        (LaunchConfig(1, 1, shared_bytes=10 << 20), "10485760 bytes of dynamic and 0 of static"),
    ]:
        with pytest.raises(LaunchConfigError, match=text):
            kernel.launch(stream, config)
        with pytest.raises(LaunchConfigError, match="kernel 'nothing' cannot be launched"):
            kernel.bind(stream, config)
    with pytest.raises(LaunchConfigError, match="shared_bytes is -1"):
        LaunchConfig(1, 1, shared_bytes=-1)


def test_a_configuration_of_another_type_is_rejected(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    kernel = kernels.kernel("nothing")
    for config in (None, (1, 1), 32):
        with pytest.raises(LaunchConfigError, match="(?s)configuration is .* give a cudadrv"):
            kernel.launch(stream, config)  # type: ignore[arg-type]  # what is tested
        with pytest.raises(LaunchConfigError, match="give a cudadrv.LaunchConfig"):
            kernel.bind(stream, config)  # type: ignore[arg-type]  # what is tested


def test_launch_bounds_limit_the_block(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    kernel = kernels.kernel("bounded")
    out = stream.zeros(65, "i4")
    kernel.launch(stream, LaunchConfig(1, 64), out)
    assert stream.to_host(out).sum() == 64
    with pytest.raises(LaunchConfigError, match="this kernel on .* allows 64"):
        kernel.launch(stream, LaunchConfig(1, 65), out)


def test_dynamic_shared_memory_above_48_kib(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    limit = stream.context.device.attribute(
        cudadrv.driver.DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    )
    if limit <= 48 << 10:
        pytest.skip("needs a device with more than 48 KiB of shared memory a block")
    out = stream.zeros(1, "i4")
    cells = limit // 4
    config = LaunchConfig(1, 256, shared_bytes=cells * 4)
    kernels.kernel("shared_size").launch(stream, config, out, cells)
    assert stream.to_host(out).tolist() == [cells // 2]


def test_configurations_are_values() -> None:
    assert LaunchConfig(4, 8) == LaunchConfig((4, 1), (8, 1, 1), 0)
    assert hash(LaunchConfig(4, 8)) == hash(LaunchConfig([4], [8]))
    assert LaunchConfig.for_elements(1000, 256) == LaunchConfig(4, 256)
    assert LaunchConfig.for_elements(0) == LaunchConfig(1, 256)
    assert LaunchConfig(np.int64(3), (2, 2)).blocks == 3
    with pytest.raises(LaunchConfigError, match="n is -1: each extent .* integer of 0 or more"):
        LaunchConfig.for_elements(-1)


def test_a_configuration_for_elements_covers_each_axis_with_blocks() -> None:
    assert LaunchConfig.for_elements((1000, 20), (32, 8)) == LaunchConfig((32, 3), (32, 8))
    assert LaunchConfig.for_elements((9, 9, 9), (4, 4, 4)) == LaunchConfig((3, 3, 3), (4, 4, 4))
    assert LaunchConfig.for_elements((1000, 20)) == LaunchConfig((4, 20), 256)
    assert LaunchConfig.for_elements((0, 20), (32, 8)) == LaunchConfig((1, 3), (32, 8))
    assert LaunchConfig.for_elements([5], (2, 1, 1)) == LaunchConfig(3, 2)
    assert LaunchConfig.for_elements(np.zeros((20, 1000)).shape[::-1], (32, 8)).blocks == 96


def test_elements_and_blocks_that_do_not_fit_together_are_rejected() -> None:
    for n, block, words in (
        (1000, (16, 16), r"block is \(16, 16\): n has 1 extent, so give a block of at most 1"),
        ((8, 8), (2, 2, 2), "n has 2 extents, so give a block of at most 2"),
        ((8, -1), (2, 2), r"n is \(8, -1\): each extent must be an integer of 0 or more"),
        ((1, 2, 3, 4), 256, r"n is \(1, 2, 3, 4\): give 1 to 3 extents"),
        (8, 0, "block is 0: each extent must be an integer of 1 or more"),
        ((8, 1.5), 256, "n is .*: each extent must be an integer of 0 or more"),
    ):
        with pytest.raises(LaunchConfigError, match=words):
            LaunchConfig.for_elements(n, block)  # type: ignore[arg-type]  # wrong ones, too


def test_numbers_of_a_configuration_are_whole_numbers_of_any_kind() -> None:
    assert LaunchConfig(tuple(np.array([2, 3])), 4) == LaunchConfig((2, 3), 4)
    assert LaunchConfig(np.array([2, 3]), np.array(4)) == LaunchConfig((2, 3), 4)
    shared = LaunchConfig(1, 1, np.int64(64)).shared_bytes  # type: ignore[arg-type]
    assert (shared, type(shared)) == (64, int)
    assert LaunchConfig.for_elements(np.int64(1000)) == LaunchConfig(4, 256)
    for wrong in (1.5, "1", None):
        with pytest.raises(LaunchConfigError, match="shared_bytes is .* an integer number of"):
            LaunchConfig(1, 1, wrong)  # type: ignore[arg-type]
        with pytest.raises(LaunchConfigError, match="n is .* an integer of 0 or more"):
            LaunchConfig.for_elements(wrong)  # type: ignore[arg-type]
        with pytest.raises(LaunchConfigError, match="grid is .* an integer of 1 or more"):
            LaunchConfig(wrong, 1)  # type: ignore[arg-type]


def test_threads_share_one_launcher(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    out = stream.zeros(2, "i4")
    launcher = kernels.kernel("add").bind(stream, ONE)

    def work(value: int) -> None:
        for _ in range(50):
            launcher(out, value)

    all_at_once([partial(work, 10**k) for k in range(8)])
    assert stream.to_host(out).tolist() == [50 * 11111111, 0]


def test_a_launcher_of_a_closed_stream_or_module_reports_it(context: cudadrv.Context) -> None:
    module = compile_module(context, 'extern "C" __global__ void nothing() {}')
    stream = context.new_stream()
    launcher = module.kernel("nothing").bind(stream, ONE)
    prepared = launcher.prepare()
    launcher()
    stream.close()
    for call in (launcher, prepared):
        with pytest.raises(ClosedError, match="the stream on device 0 was closed"):
            call()
    launcher = module.kernel("nothing").bind(context.default_stream, ONE)
    prepared = launcher.prepare()
    launcher()
    launcher()
    module.close()
    for call in (launcher, prepared):
        with pytest.raises(ClosedError, match="the module of kernel 'nothing' was closed"):
            call()


def test_attributes_and_occupancy(kernels: cudadrv.Module) -> None:
    kernel = kernels.kernel("bounded")
    assert kernel.attributes.max_threads_per_block == 64
    assert kernel.attributes.static_shared_bytes == 0
    assert 1 <= kernel.max_active_blocks(64) <= 32
    assert [param.nbytes for param in kernel.signature.params] == [8]


def test_a_cooperative_grid_must_fit(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    kernel = kernels.kernel("add")
    out = stream.zeros(1, "i4")
    kernel.launch(stream, LaunchConfig(4, 32, cooperative=True), out, 1)
    assert stream.to_host(out).tolist() == [128]
    with pytest.raises(LaunchConfigError, match="a cooperative grid of 1000000 blocks"):
        kernel.launch(stream, LaunchConfig(1_000_000, 32, cooperative=True), out, 1)


def test_a_cluster_launch(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    if not stream.context.capability.has_cluster_launch:
        pytest.skip("needs cluster launch (compute capability 9.0)")
    kernel = kernels.kernel("add")
    out = stream.zeros(1, "i4")
    kernel.launch(stream, LaunchConfig(4, 32, cluster=2), out, 1)
    assert stream.to_host(out).tolist() == [128]
    with pytest.raises(LaunchConfigError, match="grid.x 3 is not a multiple of cluster.x 2"):
        kernel.launch(stream, LaunchConfig(3, 32, cluster=2), out, 1)
