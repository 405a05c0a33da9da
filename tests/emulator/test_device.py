from __future__ import annotations

import copy
import pickle

import pytest

from cudadrv.driver._api import CUdevice, CUdevice_attribute, CUresult
from cudadrv.emulator import A100, B200, H100, L4, PROFILES, T4, V100, EmulatedDevice, Emulator

from .calls import OpenApi, code, ok

A = CUdevice_attribute


def test_calls_before_cuinit_return_not_initialized() -> None:
    fresh = Emulator()
    assert code(fresh.cuDeviceGetCount()) == 3
    assert code(fresh.cuCtxGetCurrent()) == 3
    assert code(fresh.cuMemAlloc(4)) == 3
    assert code(fresh.cuCtxSynchronize()) == 3
    assert code(fresh.cuDriverGetVersion()) == 0


def test_a_device_s_profile_goes_to_other_processes() -> None:
    clock = CUdevice_attribute.CU_DEVICE_ATTRIBUTE_CLOCK_RATE
    for profile in (H100, EmulatedDevice(name="mine", attributes={clock: 5})):
        for twin in (pickle.loads(pickle.dumps(profile)), copy.copy(profile)):
            assert twin == profile
            assert dict(twin.attributes) == dict(profile.attributes)


def test_cuinit_accepts_only_flags_0(api: OpenApi) -> None:
    assert code(api.cuInit(1)) == 1
    assert code(api.cuInit(0)) == 0


def test_an_emulator_without_devices_has_none() -> None:
    assert code(Emulator(0).cuInit(0)) == 100


def test_ordinals_out_of_range_are_invalid_devices(api: OpenApi) -> None:
    count = ok(api.cuDeviceGetCount())
    assert code(api.cuDeviceGet(-1)) == 101
    assert code(api.cuDeviceGet(count)) == 101
    assert int(ok(api.cuDeviceGet(count - 1))) == count - 1


def test_a_device_that_does_not_exist_is_rejected_by_every_query(emulator: Emulator) -> None:
    bad = CUdevice(9)
    assert code(emulator.cuDeviceGetName(9, bad)) == 101
    assert code(emulator.cuDeviceGetUuid(bad)) == 101
    assert code(emulator.cuDeviceGetPCIBusId(20, bad)) == 101
    assert code(emulator.cuDeviceTotalMem(bad)) == 101
    assert code(emulator.cuDeviceGetAttribute(A.CU_DEVICE_ATTRIBUTE_WARP_SIZE, bad)) == 101
    assert code(emulator.cuDeviceGetDefaultMemPool(bad)) == 101
    assert code(emulator.cuDevicePrimaryCtxRetain(bad)) == 101
    assert code(emulator.cuDevicePrimaryCtxRelease(bad)) == 101
    assert code(emulator.cuDeviceCanAccessPeer(ok(emulator.cuDeviceGet(0)), bad)) == 101


def test_a_name_is_cut_to_its_room_and_padded(api: OpenApi, device: CUdevice) -> None:
    whole = ok(api.cuDeviceGetName(128, device))
    assert len(whole) == 128
    name = whole.rstrip(b"\0 ").split(b"\0")[0]
    assert ok(api.cuDeviceGetName(5, device)) == name[:4] + b"\0"
    # Not one byte: cuda.bindings lets the driver write into `b" " * 1`, which all code shares.
    assert ok(api.cuDeviceGetName(2, device)) == name[:1] + b"\0"


def test_a_pci_address_needs_its_whole_room(api: OpenApi, device: CUdevice) -> None:
    assert code(api.cuDeviceGetPCIBusId(12, device)) == 1
    text = ok(api.cuDeviceGetPCIBusId(13, device))
    domain, bus, rest = text.rstrip(b"\0").split(b":")
    assert len(domain) == 4
    assert rest.endswith(b".0")
    assert int(bus, 16) == ok(api.cuDeviceGetAttribute(A.CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device))


def test_devices_differ_in_uuid_and_pci_address() -> None:
    emulator = Emulator(16)
    ok(emulator.cuInit(0))
    devices = [ok(emulator.cuDeviceGet(i)) for i in range(16)]
    assert len({ok(emulator.cuDeviceGetUuid(d)).bytes for d in devices}) == 16
    assert len({ok(emulator.cuDeviceGetPCIBusId(20, d)) for d in devices}) == 16


def test_uuids_are_the_same_in_every_run() -> None:
    first, second = Emulator(), Emulator()
    for emulator in (first, second):
        ok(emulator.cuInit(0))
    device = ok(first.cuDeviceGet(0))
    assert ok(first.cuDeviceGetUuid(device)).bytes == ok(second.cuDeviceGetUuid(device)).bytes


def test_every_attribute_of_the_binding_is_returned(emulator: Emulator) -> None:
    device = ok(emulator.cuDeviceGet(0))
    answered = [
        ok(emulator.cuDeviceGetAttribute(attribute, device))
        for attribute in A
        if attribute != A.CU_DEVICE_ATTRIBUTE_MAX
    ]
    assert len(answered) > 130
    assert code(emulator.cuDeviceGetAttribute(A.CU_DEVICE_ATTRIBUTE_MAX, device)) == 1


def test_no_device_is_its_own_peer(api: OpenApi, device: CUdevice) -> None:
    assert ok(api.cuDeviceCanAccessPeer(device, device)) == 0


def test_devices_are_peers_unless_one_has_no_peer_access() -> None:
    emulator = Emulator([H100, H100, T4])
    ok(emulator.cuInit(0))
    a, b, c = (ok(emulator.cuDeviceGet(i)) for i in range(3))
    assert ok(emulator.cuDeviceCanAccessPeer(a, b)) == 1
    assert ok(emulator.cuDeviceCanAccessPeer(a, c)) == 0
    assert ok(emulator.cuDeviceCanAccessPeer(c, a)) == 0


# Read with cuDeviceGetAttribute on an H100 80GB HBM3, driver 580.159.
H100_ATTRIBUTES = {
    1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2147483647, 6: 65535, 7: 65535, 8: 49152, 9: 65536,
    10: 32, 11: 2147483647, 12: 65536, 13: 1980000, 14: 512, 15: 1, 16: 132, 17: 0, 18: 0, 20: 0,
    31: 1, 32: 1, 36: 2619000, 37: 5120, 38: 52428800, 39: 2048, 40: 3, 41: 1, 75: 9, 76: 0,
    78: 1, 81: 233472, 82: 65536, 87: 2, 95: 1, 97: 232448, 106: 32, 111: 1024, 115: 1, 120: 1,
}  # fmt: skip


def test_the_h100_profile_returns_the_values_of_an_h100() -> None:
    emulator = Emulator([H100])
    ok(emulator.cuInit(0))
    device = ok(emulator.cuDeviceGet(0))
    answered = {n: ok(emulator.cuDeviceGetAttribute(A(n), device)) for n in H100_ATTRIBUTES}
    assert answered == H100_ATTRIBUTES
    assert ok(emulator.cuDeviceTotalMem(device)) == 85017493504
    assert ok(emulator.cuDeviceGetName(22, device)) == b"NVIDIA H100 80GB HBM3\0"


@pytest.mark.parametrize(
    ("profile", "threads", "shared", "optin"),
    [
        (V100, 2048, 98304, 98304),
        (T4, 1024, 65536, 65536),
        (A100, 2048, 167936, 166912),
        (L4, 1536, 102400, 101376),
        (B200, 2048, 233472, 232448),
    ],
    ids=lambda value: value.name if isinstance(value, EmulatedDevice) else None,
)
def test_a_profile_has_the_limits_of_its_architecture(
    profile: EmulatedDevice, threads: int, shared: int, optin: int
) -> None:
    """CUDA Programming Guide, table of technical specifications by compute capability."""
    emulator = Emulator([profile])
    ok(emulator.cuInit(0))
    device = ok(emulator.cuDeviceGet(0))

    def attribute(which: A) -> int:
        return ok(emulator.cuDeviceGetAttribute(which, device))

    assert attribute(A.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) == threads
    assert attribute(A.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) == shared
    assert attribute(A.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) == optin


def test_every_profile_can_be_emulated_at_its_full_size() -> None:
    emulator = Emulator(list(PROFILES.values()))
    ok(emulator.cuInit(0))
    for ordinal, profile in enumerate(PROFILES.values()):
        device = ok(emulator.cuDeviceGet(ordinal))
        assert ok(emulator.cuDeviceTotalMem(device)) == profile.total_memory


def test_an_attribute_can_be_replaced() -> None:
    emulator = Emulator([EmulatedDevice(attributes={A.CU_DEVICE_ATTRIBUTE_INTEGRATED: 1})])
    ok(emulator.cuInit(0))
    device = ok(emulator.cuDeviceGet(0))
    assert ok(emulator.cuDeviceGetAttribute(A.CU_DEVICE_ATTRIBUTE_INTEGRATED, device)) == 1


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"compute_capability": (3, 5)}, "compute capability"),
        ({"sm_count": 0}, "sm_count"),
        ({"total_memory": 1000}, "total_memory"),
        ({"total_memory": 1 << 41}, "total_memory"),
    ],
)
def test_a_device_that_cannot_be_is_rejected(properties: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        EmulatedDevice(**properties)  # type: ignore[arg-type]  # wrong on purpose


def test_texts_of_results(api: OpenApi) -> None:
    assert ok(api.cuGetErrorString(CUresult.CUDA_SUCCESS)) == b"no error"
    assert ok(api.cuGetErrorString(CUresult.CUDA_ERROR_UNKNOWN)) == b"unknown error"


def test_every_result_has_a_text(emulator: Emulator) -> None:
    for result in CUresult:
        assert ok(emulator.cuGetErrorString(result))
