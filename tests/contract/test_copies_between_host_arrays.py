"""Copies and fills of host arrays in every kind of memory, after queued work that writes them.

The oracle: a copy or a fill comes after the earlier work of the stream, and on return host memory
has its values. Only two arrays of ordinary memory have no stream.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import CopyError, InvalidValueError

from .conftest import compile_module

Side: TypeAlias = Any  # host arrays, device arrays and buffers
N: Final = 256
SOURCE: Final = """
extern "C" __global__ void late(int* x, long long stride, int n, int value, long long turns)
{
    float y = 1;
    for (long long k = 0; k < turns; ++k) y = y * 0.999f + 0.5f;
    for (int k = threadIdx.x; k < n; k += blockDim.x) x[k * stride] = y > 0 ? value + k : -1;
}
"""


def _ordinary(stream: cudadrv.Stream, _: ExitStack) -> Side:
    return np.zeros(N, np.int32)


def _managed(stream: cudadrv.Stream, _: ExitStack) -> Side:
    return cudadrv.managed_empty(N, np.int32)


def _part_of_managed(stream: cudadrv.Stream, _: ExitStack) -> Side:
    return cudadrv.managed_empty((3, N + 8), np.int32)[1, 4 : N + 4]


def _strided_managed(stream: cudadrv.Stream, _: ExitStack) -> Side:
    return cudadrv.managed_empty((N, 3), np.int32)[:, 1]


def _pinned(stream: cudadrv.Stream, _: ExitStack) -> Side:
    return cudadrv.pinned_empty(N, np.int32)


def _registered(stream: cudadrv.Stream, stack: ExitStack) -> Side:
    pages = np.frombuffer(mmap.mmap(-1, 1 << 14), np.int32)
    stack.enter_context(cudadrv.memory.RegisteredArray(pages))
    return pages[:N]


def _device(stream: cudadrv.Stream, _: ExitStack) -> Side:
    return stream.empty(N, np.int32)


def _strided_device(stream: cudadrv.Stream, _: ExitStack) -> Side:
    return stream.empty((N, 2), np.int32)[:, 1]


SIDES: Final = (
    _ordinary, _managed, _part_of_managed, _strided_managed, _pinned, _registered, _device,
    _strided_device,
)  # fmt: skip
# The host reads these at the call; a copy of other arrays comes after queued work on them.
READ_AT_ONCE: Final = (_ordinary, _pinned, _registered)


@pytest.fixture(scope="module")
def late(context: cudadrv.Context) -> cudadrv.Kernel:
    if not context.device.properties.managed_memory:
        pytest.skip("needs a device with managed memory")
    return compile_module(context, SOURCE).kernel("late")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as steps:
        yield steps


def _write(stream: cudadrv.Stream, late: cudadrv.Kernel, side: Side, value: int) -> None:
    """Write value, value + 1 and so on: later where a kernel can."""
    if isinstance(side, np.ndarray) and not _is_reachable(stream, side):
        side[:] = value + np.arange(N)
        return
    array = stream.in_place(side) if isinstance(side, np.ndarray) else side
    turns = 1 if stream.context.device.is_emulated else 3_000_000
    stride = array.strides[0] // 4
    late.launch(stream, LaunchConfig(1, 64), array.origin, stride, N, value, turns)


def _is_reachable(stream: cudadrv.Stream, array: npt.NDArray[Any]) -> bool:
    try:
        stream.in_place(array)
    except CopyError:
        return False
    return True


def _values(stream: cudadrv.Stream, side: Side) -> npt.NDArray[Any]:
    return side.copy() if isinstance(side, np.ndarray) else stream.to_host(side)


@pytest.mark.slow
def test_a_copy_of_any_two_kinds_of_memory_comes_after_queued_work(
    stream: cudadrv.Stream, late: cudadrv.Kernel, stack: ExitStack
) -> None:
    problems, cells = [], 0
    for make_dst in SIDES:
        for make_src in SIDES:
            name = f"{make_dst.__name__} from {make_src.__name__}"
            dst, src = make_dst(stream, stack), make_src(stream, stack)
            value = 1000 * (cells + 1)
            stream.synchronize()
            _write(stream, late, src, value)
            if make_src in READ_AT_ONCE:
                stream.synchronize()
            cells += 1
            try:
                stream.copy(dst, src)
            except CopyError as error:
                if not (make_dst is make_src is _ordinary and "NumPy copies" in str(error)):
                    problems.append(f"{name}: {error}")
                continue
            found = _values(stream, dst)  # at once: the copy has waited
            if make_dst is make_src is _ordinary or found.tolist() != [*range(value, value + N)]:
                problems.append(f"{name}: {found[:3]}, expected from {value}")
    assert not problems, "\n".join(problems)
    assert cells == len(SIDES) ** 2


def test_a_batch_copies_between_host_arrays_after_queued_work(
    stream: cudadrv.Stream, late: cudadrv.Kernel, stack: ExitStack
) -> None:
    problems, kinds = [], (_ordinary, _managed, _part_of_managed, _pinned, _registered)
    for make_dst in kinds:
        for make_src in kinds:
            name = f"{make_dst.__name__} from {make_src.__name__}"
            dst, src = make_dst(stream, stack), make_src(stream, stack)
            stream.synchronize()
            _write(stream, late, src, 50)
            if make_src is _ordinary is make_dst:
                with pytest.raises(CopyError, match="NumPy copies"):
                    stream.copy_batch([(dst, src)])
                continue
            stream.copy_batch([(dst[:100], src[:100]), (dst[100:], src[100:])])
            if dst.tolist() != [*range(50, 50 + N)]:
                problems.append(f"{name}: {dst[:3]}")
    assert not problems, "\n".join(problems)


def test_an_upload_of_managed_memory_comes_after_queued_work(
    stream: cudadrv.Stream, late: cudadrv.Kernel, stack: ExitStack
) -> None:
    problems = []
    ways: dict[str, Callable[[npt.NDArray[Any]], npt.NDArray[Any]]] = {
        "to_device": lambda array: stream.to_host(stream.to_device(array)),
        "to_device in F": lambda array: stream.to_host(stream.to_device(array, order="F")),
        "assign": lambda array: _assigned(stream, array),
        "assign by item": lambda array: _assigned_by_item(stream, array),
        "assign to another dtype": lambda array: _assigned(stream, array, np.float64),
    }
    for make in (_managed, _part_of_managed, _strided_managed):
        for name, read in ways.items():
            array = make(stream, stack)
            stream.synchronize()
            _write(stream, late, array, 7)
            found = read(array)
            if found.tolist() != [*range(7, 7 + N)]:
                problems.append(f"{name} of {make.__name__}: {found[:3]}")
            stream.synchronize()
    assert not problems, "\n".join(problems)


def _assigned(
    stream: cudadrv.Stream, array: npt.NDArray[Any], dtype: npt.DTypeLike = np.int32
) -> npt.NDArray[Any]:
    made = stream.empty(N, dtype)
    stream.assign(made, array)
    return stream.to_host(made)


def _assigned_by_item(stream: cudadrv.Stream, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    made = stream.empty(N, np.int32)
    made[:] = array
    return stream.to_host(made)


def test_a_fill_of_host_memory_comes_after_queued_work_and_is_waited_for(
    stream: cudadrv.Stream, late: cudadrv.Kernel, stack: ExitStack
) -> None:
    problems = []
    for make in SIDES:
        side = make(stream, stack)
        stream.synchronize()
        _write(stream, late, side, 5)
        try:
            stream.fill(side, 9)
        except CopyError as error:
            if make is not _ordinary or "in ordinary memory" not in str(error):
                problems.append(f"{make.__name__}: {error}")
            continue
        found = _values(stream, side)
        if make is _ordinary or (found != 9).any():
            problems.append(f"{make.__name__}: {found[:3]}")
    assert not problems, "\n".join(problems)


def test_host_memory_that_cannot_take_the_values_is_rejected_unchanged(
    stream: cudadrv.Stream, stack: ExitStack, late: cudadrv.Kernel
) -> None:
    managed, pinned = _managed(stream, stack), _pinned(stream, stack)
    managed[:], pinned[:] = 1, 2
    fixed = managed[:]
    fixed.flags.writeable = False
    masked: Side = np.ma.array(managed, mask=np.arange(N) == 3)
    uses: tuple[Callable[[], object], ...] = (
        lambda: stream.copy(fixed, pinned),
        lambda: stream.fill(fixed, 3),
        lambda: stream.copy(pinned, masked),
        lambda: stream.copy(masked, pinned),
        lambda: stream.fill(masked, 3),
        lambda: stream.copy(managed, pinned[1:]),
        lambda: stream.copy(managed, pinned.view(np.uint32)),
    )
    for use in uses:
        with pytest.raises(CopyError):
            use()
    with pytest.raises(InvalidValueError, match="is no value for"):
        stream.fill(managed, 1.5)
    stream.synchronize()
    assert (managed == 1).all()
    assert (pinned == 2).all()


def test_copies_and_fills_of_managed_memory_are_captured(
    stream: cudadrv.Stream, late: cudadrv.Kernel
) -> None:
    source, target = (cudadrv.managed_empty(N, np.int32) for _ in range(2))
    source[:], target[:] = 1, 0
    with stream.capture() as graph:
        stream.copy(target, source)
        stream.fill(source, 4)
    assert (target == 0).all()
    executable = graph.instantiate()
    for expected in (1, 4):
        executable.launch(stream)
        stream.synchronize()
        assert (target == expected).all()
        assert (source == 4).all()


def test_a_copy_without_a_wait_is_complete_after_the_stream(
    stream: cudadrv.Stream, late: cudadrv.Kernel
) -> None:
    source, target = (cudadrv.managed_empty(N, np.int32) for _ in range(2))
    stream.fill(target, 0)
    _write(stream, late, source, 20)
    stream.copy(target, source, wait=False)
    stream.synchronize()
    assert target.tolist() == [*range(20, 20 + N)]
    with stream.capture() as graph:
        stream.copy(target, source[::-1], wait=False)
    graph.instantiate().launch(stream)
    stream.synchronize()
    assert target.tolist() == [*range(20, 20 + N)][::-1]
