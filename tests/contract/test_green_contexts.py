"""Green contexts: contexts on a part of a device's multiprocessors."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import cudadrv
from cudadrv import Context, LaunchConfig
from cudadrv.driver import SmResource, WorkqueueResource
from cudadrv.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ClosedError,
    CudaError,
    LaunchConfigError,
    UnsupportedError,
)

from .conftest import newest_of_both

SOURCE = """
extern "C" __global__ void bump(int* p) { p[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
extern "C" __global__ void where(unsigned* p)
{ unsigned id; asm volatile("mov.u32 %0, %%smid;" : "=r"(id)); p[blockIdx.x] = id; }
"""


@pytest.fixture
def whole(context: Context) -> SmResource:
    try:
        return context.sm_resource
    except cudadrv.errors.DriverSymbolMissingError:
        pytest.skip("needs a driver of CUDA 12.4")


def test_multiprocessors_are_split_into_equal_parts_and_a_rest(
    context: Context, whole: SmResource
) -> None:
    total = context.device.properties.multiprocessor_count
    assert whole.sm_count == total
    parts, rest = whole.split(8)
    size = parts[0].sm_count
    assert size >= 8
    assert [each.sm_count for each in parts] == [size] * len(parts)
    assert sum(each.sm_count for each in parts) + (rest.sm_count if rest else 0) <= total
    (one,), rest = whole.split(8, 1)
    assert one.sm_count == size
    assert rest is not None
    assert rest.sm_count <= total - size
    rounded, _ = whole.split(size - 1, 1)
    assert rounded[0].sm_count == size
    finer, _ = whole.split(2, ignore_coscheduling=True)
    assert finer[0].sm_count <= size
    assert len(finer) >= len(parts)
    if whole.min_partition_size is not None:  # which the bindings of CUDA 12 lack
        assert whole.coscheduled_alignment
        assert size % whole.coscheduled_alignment == 0
        assert size >= whole.min_partition_size


def test_what_cannot_be_split_is_reported(whole: SmResource) -> None:
    total = whole.sm_count
    with pytest.raises(CudaError, match=f"splitting <SmResource of {total} multiprocessors"):
        whole.split(total + 1)
    with pytest.raises(ArgumentValueError, match="groups of 8 are more than there are"):
        whole.split(8, total)
    with pytest.raises(ArgumentValueError, match="groups"):
        whole.split(8, 0)
    with pytest.raises(ArgumentValueError, match="give multiprocessors of one device"):
        Context.create_green([])


def test_green_contexts_share_memory(context: Context, whole: SmResource) -> None:
    parts, _ = whole.split(8, 2)
    outer = context.new_stream()
    x = outer.to_device(np.arange(64, dtype="i4"))
    with Context.create_green(parts[0]) as first, Context.create_green(parts[1]) as second:
        assert first.is_green
        assert not context.is_green
        assert first.sm_resource.sm_count == parts[0].sm_count
        for green in (first, second):
            stream = green.new_stream()
            green.compile(SOURCE).kernel("bump").launch(stream, LaunchConfig(2, 32), x)
            y = stream.to_device(np.arange(3, dtype="f4"))
            assert stream.to_host(y).tolist() == [0, 1, 2]
            with green.default_stream.capture() as graph:
                stream.context.default_stream.fill(y, 7)
            graph.instantiate().launch(stream)
            assert stream.to_host(y).tolist() == [7, 7, 7]
            green.synchronize()
        assert outer.to_host(x).tolist() == list(range(2, 66))
    assert outer.to_host(x).tolist() == list(range(2, 66))


def test_kernels_see_the_multiprocessors_of_their_context(
    context: Context, whole: SmResource
) -> None:
    total = whole.sm_count
    (part,), _ = whole.split(8, 1)
    with Context.create_green(part) as green:
        stream = green.new_stream()
        places = stream.zeros(4 * total, "u4")
        green.compile(SOURCE).kernel("where").launch(stream, LaunchConfig(4 * total, 1024), places)
        found = set(stream.to_host(places).tolist())
        if not context.device.is_emulated:  # whose blocks say a number by their place in the grid
            assert len(found) <= part.sm_count
        assert max(found) < total


def test_a_cooperative_grid_fits_the_part(whole: SmResource) -> None:
    (part,), _ = whole.split(8, 1)
    with Context.create_green(part) as green:
        stream, kernel = green.new_stream(), green.compile(SOURCE).kernel("bump")
        each = kernel.max_active_blocks(1024)
        most = LaunchConfig(each * part.sm_count, 1024, cooperative=True)
        x = stream.zeros(most.blocks * 1024, "i4")
        kernel.launch(stream, most, x)
        assert stream.to_host(x).all()
        more = LaunchConfig(each * part.sm_count + 1, 1024, cooperative=True)
        words = f"{most.blocks} fit on {re.escape(repr(green))} at once"
        with pytest.raises(LaunchConfigError, match=words):
            kernel.launch(stream, more, x)


def test_workqueues_are_those_that_a_green_context_requests(
    context: Context, whole: SmResource
) -> None:
    device = context.device
    requested = WorkqueueResource(device, 4, "balanced")
    (part,), _ = whole.split(8, 1)
    if newest_of_both() < (13, 1):
        for use in (
            lambda: context.workqueues,
            lambda: Context.create_green([part, requested]),
            lambda: Context.create_green(requested),
        ):
            with pytest.raises(UnsupportedError, match=r"a workqueue needs .* of CUDA 13\.1"):
                use()
        return
    shared = context.workqueues
    assert (shared.device, shared.sharing) == (device, "device")
    assert shared.concurrency_limit >= 1
    with Context.create_green([part, requested]) as green:
        assert green.workqueues == requested
        assert green.sm_resource.sm_count == part.sm_count
        stream = green.new_stream()
        x = stream.to_device(np.arange(64, dtype="i4"))
        green.compile(SOURCE).kernel("bump").launch(stream, LaunchConfig(2, 32), x)
        assert stream.to_host(x).tolist() == list(range(1, 65))
    with Context.create_green(replace(shared, concurrency_limit=2)) as green:
        assert green.is_green
        assert green.sm_resource.sm_count == whole.sm_count
        assert green.workqueues.concurrency_limit == 2
    with Context.create_green(part) as green:
        assert green.workqueues.sharing == "device"


def test_an_older_driver_rejects_workqueues_with_its_version() -> None:
    with cudadrv.emulator.session(driver_version=(13, 0)):
        older = cudadrv.cuda_context_for(0)
        with pytest.raises(UnsupportedError, match=r"CUDA 13\.1: the driver has CUDA 13\.0"):
            _ = older.workqueues
        with pytest.raises(UnsupportedError, match=r"CUDA 13\.1: the driver has CUDA 13\.0"):
            Context.create_green(WorkqueueResource(older.device, 1))


def test_wrong_workqueues_are_rejected(context: Context, whole: SmResource) -> None:
    device, wrong = context.device, []
    for given in (
        {"concurrency_limit": 0},
        {"concurrency_limit": 2**32},
        {"concurrency_limit": 1.5},
        {"concurrency_limit": True},
        {"concurrency_limit": 1, "sharing": "balance"},
        {"concurrency_limit": 1, "sharing": 1},
        {"concurrency_limit": 1, "device": 0},
    ):
        try:
            WorkqueueResource(**{"device": device, **given})  # type: ignore[arg-type]  # the mistake
        except (ArgumentTypeError, ArgumentValueError):
            continue
        wrong.append(given)
    assert wrong == []
    queues = WorkqueueResource(device, 1)
    with pytest.raises(ArgumentValueError, match="give one WorkqueueResource"):
        Context.create_green([whole, queues, queues])
    with pytest.raises(ArgumentTypeError, match="resources"):
        Context.create_green([queues, 3])  # type: ignore[list-item]  # the mistake


def test_more_groups_than_memory_could_hold_are_rejected(whole: SmResource) -> None:
    with pytest.raises(ArgumentValueError, match=f"{2**31 - 1} groups of 8 are more than"):
        whole.split(8, 2**31 - 1)


def test_a_part_is_split_again_once_a_context_has_it(whole: SmResource) -> None:
    parts, _ = whole.split(8)
    if len(parts) < 2:
        pytest.skip("needs 16 multiprocessors")
    with Context.create_green(parts[:2]) as green:
        assert green.sm_resource.sm_count == sum(each.sm_count for each in parts[:2])
        again, _ = green.sm_resource.split(8, 2)
        with Context.create_green(again[1]) as inner:
            assert inner.sm_resource.sm_count == again[1].sm_count


def test_a_closed_green_context_closes_what_is_of_it(context: Context, whole: SmResource) -> None:
    (part,), _ = whole.split(8, 1)
    green = Context.create_green(part)
    stream, module = green.new_stream(), green.compile(SOURCE)
    x, event = stream.zeros(4, "i4"), stream.record()
    with pytest.raises(ArgumentValueError, match="wait for no legacy stream"):
        green.new_stream(blocking=True)
    assert repr(green) == "<Context green on device 0>"
    green.close()
    green.close()
    assert "closed" in repr(green)
    for use in (
        lambda: stream.synchronize(),
        lambda: module.kernel("bump"),
        lambda: x.ptr,
        lambda: event.synchronize(),
        lambda: green.new_stream(),
        lambda: green.sm_resource,
    ):
        with pytest.raises(ClosedError):
            use()
    fresh = context.new_stream()
    assert fresh.to_host(fresh.zeros(2, "i4")).tolist() == [0, 0]
