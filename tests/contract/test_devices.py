from __future__ import annotations

import re

import pytest

import cudadrv
from cudadrv import Device, cuda_context_for
from cudadrv.driver import DeviceAttribute
from cudadrv.errors import ClosedError, InvalidDeviceError
from tests.current_context import current_context
from tests.several_threads import all_at_once


def test_devices_are_numbered_from_zero_and_taken_again_by_number() -> None:
    devices = cudadrv.list_devices()
    assert [device.ordinal for device in devices] == list(range(len(devices)))
    assert all(Device.get(device.ordinal) is device for device in devices)
    assert all(Device.get(device) is device for device in devices)


def test_a_device_reports_what_it_is() -> None:
    device = Device.get(0)
    assert device.name
    assert re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.0", device.pci_bus_id)
    assert device.uuid.int != 0
    assert device.total_memory > 1 << 30
    assert device.compute_capability >= (7, 0)
    assert device.attribute(DeviceAttribute.WARP_SIZE) == 32
    assert device.attribute(DeviceAttribute.MAX_THREADS_PER_BLOCK) == 1024
    assert repr(device) == f"<Device 0: {device.name}>"


def test_uuids_and_addresses_distinguish_devices() -> None:
    devices = cudadrv.list_devices()
    assert len({device.uuid for device in devices}) == len(devices)
    assert len({device.pci_bus_id for device in devices}) == len(devices)


def test_info_agrees_with_the_device() -> None:
    device = Device.get(0)
    info = device.info()
    assert info.name == device.name
    assert info.capability.compute_capability == device.compute_capability
    assert info.sm_count == device.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT)
    assert 0 < info.free_mem_bytes <= info.total_mem_bytes
    assert info.memory_budget_bytes() == min(info.free_mem_bytes, info.total_mem_bytes // 2)


@pytest.mark.parametrize("ordinal", [-1, 99])
def test_a_device_that_is_not_there_is_rejected_with_the_count(ordinal: int) -> None:
    with pytest.raises(InvalidDeviceError, match=f"getting device {ordinal} of [0-9]+"):
        Device.get(ordinal)
    with pytest.raises(InvalidDeviceError):
        cuda_context_for(ordinal)


def test_the_driver_has_a_version_of_cuda_12_or_newer() -> None:
    assert (12, 0) <= cudadrv.driver_version() < (20, 0)


def test_the_best_device_has_the_most_free_memory() -> None:
    best = cudadrv.best_device()
    assert best.memory_info().total >= max(
        device.memory_info().free for device in cudadrv.list_devices()
    )


def test_a_device_cannot_be_its_own_peer() -> None:
    assert not cudadrv.driver.can_access_peer(Device.get(0), Device.get(0))


def test_threads_get_one_primary_context_and_it_is_current_in_each() -> None:
    found: list[cudadrv.Context] = []

    def take() -> None:
        context = cuda_context_for(0)
        context.synchronize()
        found.append(context)

    all_at_once([take] * 16)
    assert len(found) == 16
    assert {id(context) for context in found} == {id(cuda_context_for(0))}


def test_a_primary_context_survives_close() -> None:
    context = cuda_context_for(0)
    context.close()
    context.synchronize()
    assert cuda_context_for(0) is context


def test_an_own_context_is_gone_after_close_with_all_it_had() -> None:
    with cudadrv.Context.create(0) as own:
        assert own is not cuda_context_for(0)
        stream = own.new_stream()
        assert stream.to_host(stream.to_device([1.0, 2.0])).tolist() == [1.0, 2.0]
    own.close()
    with pytest.raises(ClosedError, match="context on device 0 was closed"):
        own.synchronize()
    with pytest.raises(ClosedError, match="stream on device 0 was closed"):
        stream.synchronize()


def test_making_a_context_leaves_the_current_one_in_place() -> None:
    primary = cuda_context_for(0)
    with cudadrv.Context.create(0), primary.new_stream() as stream:
        assert stream.context is primary
        assert stream.to_host(stream.zeros(2, "i4")).tolist() == [0, 0]


def test_bind_makes_a_context_current_whatever_was_before() -> None:
    primary = cuda_context_for(0)
    with cudadrv.Context.create(0) as own:
        own.bind()
        primary.bind()
        assert cuda_context_for(0) is primary


def test_a_context_is_current_for_a_block_and_then_the_former_one() -> None:
    primary = cuda_context_for(0)
    with cudadrv.Context.create(0) as own:
        primary.bind()
        with own.bound():
            assert current_context() == int(own.handle)
            with pytest.raises(ZeroDivisionError), primary.bound():
                assert current_context() == int(primary.handle)
                raise ZeroDivisionError
            assert current_context() == int(own.handle)
        assert current_context() == int(primary.handle)
    with pytest.raises(ClosedError), own.bound():
        raise AssertionError


def test_memory_info_counts_what_is_allocated() -> None:
    context = cuda_context_for(0)
    before = context.memory_info()
    assert before.total == context.device.memory_info().total
    with context.default_stream.alloc(64 << 20):
        context.synchronize()
        assert context.memory_info().free <= before.total
