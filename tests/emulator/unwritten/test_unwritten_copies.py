"""Copies to the host of elements that nothing has written, against a model of each byte."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

import cudadrv
from cudadrv import DeviceArray, LaunchConfig, Stream, emulator
from cudadrv.driver import _api as driver
from cudadrv.emulator.timeline.schedule import OrderName
from cudadrv.errors import CheckError
from ptx.shown_path import shown_path

Bytes: TypeAlias = npt.NDArray[np.bool_]
Array: TypeAlias = DeviceArray[Any]

SOURCE: Final = """
extern "C" __global__ void put(unsigned char* x, const int* where, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[where[i]] = 7;
}
extern "C" __global__ void move(void* to, const void* from, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) ((int*)to)[i] = ((const int*)from)[i];
}
"""
PADDED: Final = np.dtype(
    {"names": ["a", "b"], "formats": ["i1", "f8"], "offsets": [0, 8], "itemsize": 24}
)
DTYPES: Final[tuple[str | np.dtype[Any], ...]] = (
    "f4",
    "f8",
    "c8",
    "c16",
    "i1",
    "?",
    "u1",
    "f2",
    "i8",
    "V6",
    PADDED,
)
COUNT: Final = 60


# The model: which copies are reported, by the bytes that were written.


def is_reported(written: Bytes, dtype: np.dtype[Any]) -> bool:
    """Whether a copy of these bytes to the host is a finding."""
    if dtype.str in ("|u1", "|V6"):  # bytes, which may be padding
        runs = [len(list(run)) for value, run in itertools.groupby(written) if not value]
        return max(runs, default=0) >= 16 or (not written.any() and len(written) >= 4)
    unit = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    return any(not written[at : at + unit].any() for at in range(0, len(written), unit))


@dataclass
class Bench:
    """A device and its second one, and a model of one array.

    Attributes:
        array: the array, of COUNT elements.
        written: by byte whether something has written it.
        is_reported: whether a kernel has read words of it that nothing has written.
    """

    stream: Stream
    other: Stream
    array: Array
    written: Bytes
    random: random.Random
    is_reported: bool = False

    def launch(self, name: str, count: int, *arguments: object) -> None:
        module = self.stream.context.compile(SOURCE)
        config = LaunchConfig.for_elements(count)
        module.kernel(name).launch(self.stream, config, *arguments, count)

    def put(self, places: npt.NDArray[np.intp]) -> None:
        """A kernel writes bytes."""
        if len(places):
            x = self.array.view(np.uint8).reshape(-1)
            self.launch("put", len(places), x, self.stream.to_device(places.astype(np.int32)))
            self.written[places] = True


# What writes: each changes the array and the model.

Write: TypeAlias = Callable[[Bench], None]


def nothing(bench: Bench) -> None:
    pass


def all_by_kernel(bench: Bench) -> None:
    bench.put(np.arange(len(bench.written)))


def all_by_upload(bench: Bench) -> None:
    bench.stream.copy(bench.array, np.zeros(COUNT, bench.array.dtype))
    bench.written[:] = True


def all_by_fill(bench: Bench) -> None:
    bench.stream.fill(bench.array.view(np.uint8), 1)
    bench.written[:] = True


def too_small_a_grid(bench: Bench) -> None:
    size = bench.array.dtype.itemsize
    bench.put(np.arange(size * (COUNT - bench.random.randrange(1, COUNT))))


def all_but_the_last_element(bench: Bench) -> None:
    bench.put(np.arange(bench.array.dtype.itemsize * (COUNT - 1)))


def one_byte_of_each_element(bench: Bench) -> None:
    size = bench.array.dtype.itemsize
    bench.put(np.arange(COUNT) * size + bench.random.randrange(size))


def fields_of_a_structure(bench: Bench) -> None:
    """All but the padding of PADDED: 7 bytes, and 8 at the end."""
    places = np.arange(len(bench.written))
    bench.put(places[(places % 24 == 0) | ((places % 24 >= 8) & (places % 24 < 16))])


def every_second_element(bench: Bench) -> None:
    size = bench.array.dtype.itemsize
    bench.put(np.flatnonzero(np.arange(len(bench.written)) // size % 2 == 0))


def half_by_fill(bench: Bench) -> None:
    bench.stream.fill(bench.array[: COUNT // 2].view(np.uint8), 1)
    bench.written[: len(bench.written) // 2] = True


def part_by_upload(bench: Bench) -> None:
    first, last = sorted(bench.random.sample(range(COUNT + 1), 2))
    bench.stream.copy(bench.array[first:last], np.zeros(last - first, bench.array.dtype))
    size = bench.array.dtype.itemsize
    bench.written[first * size : last * size] = True


def random_bytes(bench: Bench) -> None:
    count = bench.random.choice((1, 9, len(bench.written) // 2, len(bench.written) - 5))
    bench.put(np.array(bench.random.sample(range(len(bench.written)), count)))


WRITES: Final[tuple[Write, ...]] = (
    nothing, all_by_kernel, all_by_upload, all_by_fill, too_small_a_grid, all_but_the_last_element,
    one_byte_of_each_element, fields_of_a_structure, every_second_element, half_by_fill,
    part_by_upload, random_bytes,
)  # fmt: skip


# What moves the bytes before: definedness moves along.

Move: TypeAlias = Callable[[Bench], Array]


def stays(bench: Bench) -> Array:
    return bench.array


def copied(bench: Bench) -> Array:
    new = bench.stream.zeros(COUNT, bench.array.dtype)
    bench.stream.copy(new, bench.array)
    return new


def copied_by_kernel(bench: Bench) -> Array:
    new = bench.stream.zeros(COUNT, bench.array.dtype)
    count = len(bench.written) // 4
    bench.launch("move", count, new, bench.array)
    bench.is_reported = not bench.written.reshape(-1, 4).any(axis=1).all()
    return new


def copied_in_a_batch(bench: Bench) -> Array:
    new = bench.stream.zeros(COUNT, bench.array.dtype)
    pairs = [(new[at : at + 6], bench.array[at : at + 6]) for at in range(0, COUNT, 6)]
    bench.stream.copy_batch(pairs)
    return new


def copied_to_a_peer_and_back(bench: Bench) -> Array:
    there = bench.other.zeros(COUNT, bench.array.dtype)
    bench.other.copy(there, bench.array)
    new = bench.stream.zeros(COUNT, bench.array.dtype)
    bench.stream.copy(new, there)
    return new


def copied_as_strided(bench: Bench) -> Array:
    wide = bench.stream.zeros((COUNT, 3), bench.array.dtype)
    wide[:, 1] = bench.array
    return wide[:, 1]


MOVES: Final[tuple[Move, ...]] = (
    stays, copied, copied_by_kernel, copied_in_a_batch, copied_to_a_peer_and_back,
    copied_as_strided,
)  # fmt: skip


# What is copied to the host: the array or a view, and the bytes of the model that belong to it.

View: TypeAlias = Callable[[Array, Bytes], tuple[Array, Bytes]]


def whole(array: Array, written: Bytes) -> tuple[Array, Bytes]:
    return array, written


def of_slice(key: slice) -> View:
    def view(array: Array, written: Bytes) -> tuple[Array, Bytes]:
        rows = written.reshape(COUNT, -1)
        return array[key], rows[key].reshape(-1)

    return view


def transposed(array: Array, written: Bytes) -> tuple[Array, Bytes]:
    rows = written.reshape(12, 5, -1)
    if not array.is_contiguous:  # a strided array cannot be reshaped
        return array, written
    return array.reshape(12, 5).T, rows.transpose(1, 0, 2).reshape(-1)


VIEWS: Final[Mapping[str, View]] = {
    "whole": whole,
    "first": of_slice(slice(0, 1)),
    "middle": of_slice(slice(20, 40)),
    "every third": of_slice(slice(1, None, 3)),
    "backwards": of_slice(slice(None, None, -1)),
    "transposed": transposed,
}


# The ways to the host.

Way: TypeAlias = Callable[[Bench, Array], None]


def to_host(bench: Bench, array: Array) -> None:
    bench.stream.to_host(array)


def to_pinned(bench: Bench, array: Array) -> None:
    bench.stream.to_host(array, out=cudadrv.pinned_empty(array.shape, array.dtype), wait=False)


def by_copy(bench: Bench, array: Array) -> None:
    bench.stream.copy(np.empty(array.shape, array.dtype), array)


def to_fortran_order(bench: Bench, array: Array) -> None:
    bench.stream.copy(np.empty(array.shape, array.dtype, order="F"), array)


def by_batch(bench: Bench, array: Array) -> None:
    dense = bench.stream.contiguous(array)
    bench.stream.copy_batch([(np.empty(dense.shape, dense.dtype), dense)])


def by_graph(bench: Bench, array: Array) -> None:
    dense = bench.stream.contiguous(array)
    bench.stream.synchronize()
    out = cudadrv.pinned_empty(dense.shape, dense.dtype)
    with bench.stream.capture() as graph:
        bench.stream.to_host(dense, out=out, wait=False)
    with graph.instantiate() as replay:
        replay.launch(bench.stream)
        bench.stream.synchronize()


WAYS: Final[tuple[Way, ...]] = (to_host, to_pinned, by_copy, to_fortran_order, by_batch, by_graph)
ORDERS: Final[tuple[tuple[OrderName, int | None], ...]] = (
    ("immediate", None),
    ("late", None),
    ("random", 3),
)


def cells(seed: int, count: int) -> Iterator[tuple[Any, Write, Move, str, Way, int]]:
    """Each dtype with each write, `count` times with others of the rest."""
    choose = random.Random(seed)
    for dtype, write in itertools.product(DTYPES, WRITES):
        for _ in range(count):
            yield (
                np.dtype(dtype),
                write,
                choose.choice(MOVES),
                choose.choice([*VIEWS]),
                choose.choice(WAYS),
                choose.randrange(1 << 30),
            )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "seed", "count"),
    [
        ("late", None, 1),
        ("random", 3, 1),
        *(pytest.param(*order, 8, marks=pytest.mark.slow) for order in ORDERS),
    ],
)
def test_a_copy_to_the_host_is_reported_as_the_model_has_it(
    order: OrderName, seed: int | None, count: int
) -> None:
    wrong, reported, total = [], 0, 0
    for dtype, write, move, view, way, number in cells(len(order) + count, count):
        with emulator.session(
            2, check="init", order=order, seed=seed, raise_findings=False
        ) as machine:
            stream, other = (cudadrv.cuda_context_for(at).default_stream for at in (0, 1))
            array = stream.empty(COUNT, dtype)
            written = np.zeros(array.nbytes, np.bool_)
            bench = Bench(stream, other, array, written, random.Random(number))
            write(bench)
            copied_array, copied_bytes = VIEWS[view](move(bench), written)
            if view == "transposed" and way is to_fortran_order and copied_array.ndim == 2:
                copied_bytes = written  # in the order of the memory: runs of bytes differ
            way(bench, copied_array)
            stream.synchronize()
        # The cause is reported, and no copy of what was reported.
        expected = bench.is_reported or is_reported(copied_bytes, dtype)
        what = "kernel move" if bench.is_reported else "copy to the host"
        texts = [str(finding) for finding in machine.findings]
        reported, total = reported + expected, total + 1
        if len(texts) != expected or any(what not in text for text in texts):
            name = f"{dtype} {write.__name__} {move.__name__} {view} {way.__name__}"
            wrong.append((name, expected, texts))
    assert [len(wrong), *wrong[:4]] == [0]
    assert total // 4 < reported < 3 * total // 4


def small_grid(stream: Stream, count: int = 1000, dtype: str = "f4") -> Array:
    array = stream.empty(count, dtype)
    module = stream.context.compile(
        'extern "C" __global__ void one(float* y) { y[blockIdx.x * blockDim.x + threadIdx.x] = 1; }'
    )
    module.kernel("one").launch(stream, LaunchConfig(count // 256, 256), array)
    return array


def test_a_finding_has_the_elements_the_call_and_the_allocation() -> None:
    with pytest.raises(CheckError) as raised, emulator.session(check="init"):
        stream = cudadrv.cuda_context_for(0).default_stream
        stream.to_host(small_grid(stream))
    lines = str(raised.value).split("\n")
    assert re.fullmatch(r"init: 928 bytes of global memory at 0x\w+c00", lines[0])
    assert re.fullmatch(r"  in 4000 bytes at 0x\w+ \(cuMemAllocAsync at .*\.py:\d+\)", lines[1])
    assert re.fullmatch(r"  read by a copy to the host, called at .*copies.py:\d+", lines[2])
    assert lines[3] == "  nothing has written them all: 232 of 1000 elements, 768 to 999"
    assert "does the grid cover all of them?" in lines[4]
    (finding,) = raised.value.findings
    assert (finding.places[0].file, finding.places[0].what) == (__file__, "read")


def test_one_allocation_is_reported_once_and_the_kernel_that_reads_it_first() -> None:
    with emulator.session(check="init", raise_findings=False) as machine:
        stream = cudadrv.cuda_context_for(0).default_stream
        y, z = small_grid(stream), stream.empty(1000, "f4")
        module = stream.context.compile(
            'extern "C" __global__ void next(float* z, float* y) '
            "{ int i = blockIdx.x * blockDim.x + threadIdx.x; z[i] = y[i] + 1; }"
        )
        module.kernel("next").launch(stream, LaunchConfig(4, 250), z, y)
        stream.to_host(z)
        stream.to_host(y)
        stream.to_host(y[900:])
        (finding,) = machine.findings
        assert finding.kernel == "next"
        other = small_grid(stream)
        for _ in range(2):
            stream.to_host(other[:900])
        stream.to_host(other)
        assert len(machine.findings) == 2


@pytest.mark.slow
def test_a_large_copy_in_parts_is_one_finding_of_all_its_elements() -> None:
    count = (17 << 20) // 12
    dtype = np.dtype([("a", "f4"), ("b", "f4"), ("c", "f4")])
    with emulator.session(check="init", raise_findings=False) as machine:
        stream = cudadrv.cuda_context_for(0).default_stream
        array = stream.empty(count, dtype)
        stream.fill(array[: count - 7]["b"], 1)
        stream.to_host(array)
    (finding,) = machine.findings
    text = f"7 of {count} elements, {count - 7} to {count - 1}"
    assert text in str(finding)
    assert shown_path(__file__) in str(finding)


def test_buffers_managed_memory_textures_and_rows_are_checked() -> None:
    with emulator.session(check="init", raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        stream, found = context.default_stream, 0
        buffer = stream.empty(64, "u1").buffer
        managed = cudadrv.managed_empty(64, "u4")
        image = cudadrv.texture.CudaArray(context, (4, 8), "f4")
        stream.copy(np.empty(64, np.uint8), buffer)
        assert len(machine.findings) == (found := found + 1)
        stream.to_host(stream.in_place(managed))
        assert len(machine.findings) == (found := found + 1)
        stream.copy(buffer, np.zeros(64, np.uint8))
        managed[:] = 1
        stream.copy(np.empty(64, np.uint8), buffer)
        stream.to_host(stream.in_place(managed))
        image.copy_to(stream)
        assert len(machine.findings) == (found := found + 1)
        image.copy_from(stream, np.zeros((4, 8), "f4"))
        image.copy_to(stream)
        pitched = stream.empty_pitched((5, 3), "f4")
        pitched[:] = 1
        stream.to_host(pitched)  # the ends of the rows stay unwritten
        rows = driver.CUDA_MEMCPY3D()
        out = np.empty((5, 12), np.uint8)
        rows.srcMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
        rows.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_HOST
        rows.srcDevice, rows.dstHost = driver.CUdeviceptr(pitched.ptr), out.ctypes.data
        rows.srcPitch, rows.dstPitch = pitched.strides[0], 12
        rows.WidthInBytes, rows.Height, rows.Depth = 12, 5, 1
        machine.cuMemcpy3D(rows)
        assert len(machine.findings) == found
        rows.WidthInBytes, rows.dstHost = 40, np.empty((5, 40), np.uint8).ctypes.data
        rows.dstPitch = 40
        machine.cuMemcpy3D(rows)
        assert "140 of 200 bytes, the first at 12" in str(machine.findings[found])


def test_what_was_not_checked_stays_without_a_finding() -> None:
    for check in ("race", "bounds", "sync", "leak"):
        with emulator.session(check=check) as machine:
            stream = cudadrv.cuda_context_for(0).default_stream
            with stream.empty(10, "f4") as array:
                stream.to_host(array)
        assert machine.findings == ()
