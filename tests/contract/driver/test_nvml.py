"""What NVML reports of a device, by a binding that stands in for nvidia-ml-py."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import cudadrv
from cudadrv import emulator, nvml
from cudadrv.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ClosedError,
    NvmlError,
    NvmlNotFoundError,
    UnsupportedError,
)
from cudadrv.nvml import (
    ClockRates,
    DeviceConnection,
    EccErrors,
    FieldValue,
    NvLink,
    Nvml,
    NvmlEvent,
    NvmlEventKind,
    PciPath,
)


class BindingError(Exception):
    """The error of the binding, which has the code as its value."""

    def __init__(self, value: int) -> None:
        super().__init__(f"error {value}")
        self.value = value


def failing(code: int) -> Callable[..., Any]:
    def call(*given: object) -> Any:
        raise BindingError(code)

    return call


def pci(bus: int) -> SimpleNamespace:
    return SimpleNamespace(domain=0, bus=bus, device=0)


def device(handle: str = "a", /, **functions: Any) -> cudadrv.nvml.NvmlDevice:
    """A device of a binding with these functions: values, or functions of the arguments."""
    calls = {
        f"nvmlDeviceGet{name}": each if callable(each) else lambda *given, each=each: each
        for name, each in functions.items()
    }
    version = {"nvmlSystemGetDriverVersion": lambda: "450.80"}
    return nvml.NvmlDevice(
        Nvml(SimpleNamespace(NVMLError=BindingError, **calls, **version)), handle
    )


def test_modes_have_their_value_now_and_after_a_reset() -> None:
    found = device(MigMode=[1, 0], EccMode=[0, 1])
    assert found.mig_mode() == (True, False)
    assert found.ecc_mode() == (False, True)


def test_ecc_errors_are_counted_by_kind_and_period() -> None:
    counts = {(0, 0): 1, (1, 0): 2, (0, 1): 3, (1, 1): 4}
    found = device(TotalEccErrors=lambda handle, kind, period: counts[kind, period])
    assert found.ecc_errors() == EccErrors(1, 2, 3, 4)


def test_clock_rates_come_with_the_reasons_for_low_ones() -> None:
    rates = {1: 1200, 2: 2600}
    found = device(
        ClockInfo=lambda handle, kind: rates[kind],
        MaxClockInfo=lambda handle, kind: rates[kind] + 100,
        CurrentClocksEventReasons=0x4 | 0x40,
    )
    slowdowns = ("power limit", "hardware thermal slowdown")
    assert found.clocks() == ClockRates(1200, 2600, 1300, 2700, slowdowns)


def test_an_older_driver_has_the_reasons_under_their_former_name() -> None:
    found = device(
        ClockInfo=1,
        MaxClockInfo=1,
        CurrentClocksEventReasons=failing(13),
        CurrentClocksThrottleReasons=0x1,
    )
    clocks = found.clocks()
    assert clocks is not None
    assert clocks.slowdowns == ("idle",)


@pytest.mark.parametrize("code", [3, 4])
def test_a_value_that_a_device_lacks_or_hides_is_none(code: int) -> None:
    names = (
        "MigMode", "EccMode", "TotalEccErrors", "ClockInfo", "MaxClockInfo", "NvLinkState",
        "Temperature", "PowerUsage", "MemoryInfo", "UtilizationRates", "ComputeRunningProcesses",
        "MPSComputeRunningProcesses", "TopologyCommonAncestor", "PciInfo",
    )  # fmt: skip
    found = device("a", **dict.fromkeys(names, failing(code)))
    for each in (
        found.mig_mode(), found.ecc_mode(), found.ecc_errors(), found.clocks(), found.celsius(),
        found.watts(), found.used_and_total(), found.busy_percent(),
    ):  # fmt: skip
        assert each is None
    assert found.nvlinks() == ()
    assert found.processes() == found.mps_processes() == {}
    assert str(found.connection(found)) == "?"
    with pytest.raises(TypeError, match=r"NvmlDevice\.connection: other is 1\.0"):
        found.connection(1.0)  # type: ignore[arg-type]  # a wrong type is the subject


def test_processes_have_their_bytes() -> None:
    listed = [SimpleNamespace(pid=7, usedGpuMemory=64), SimpleNamespace(pid=8, usedGpuMemory=None)]
    found = device(ComputeRunningProcesses=[], MPSComputeRunningProcesses=listed)
    assert found.processes() == {}
    assert found.mps_processes() == {7: 64, 8: None}


def test_active_nvlinks_end_at_devices_or_switches() -> None:
    def state(handle: str, number: int) -> int:
        if number == 4:
            raise BindingError(2)  # the device has four links
        return number % 2

    found = device(
        NvLinkState=state,
        NvLinkVersion=lambda handle, number: 4 if number == 1 else failing(3)(),
        NvLinkRemotePciInfo=lambda handle, number: pci(0xA0 + number),
        NvLinkRemoteDeviceType=lambda handle, number: 2 if number == 3 else 0,
    )
    assert found.nvlinks() == (
        NvLink(1, 4, "0000:a1:00.0", is_to_switch=False),
        NvLink(3, None, "0000:a3:00.0", is_to_switch=True),
    )


@pytest.mark.parametrize(
    ("level", "path"),
    [(0, "PSB"), (10, "PIX"), (20, "PXB"), (30, "PHB"), (40, "NODE"), (50, "SYS")],
)
def test_devices_without_nvlink_are_connected_by_pci(level: int, path: str) -> None:
    one = device(TopologyCommonAncestor=level, NvLinkState=0)
    found = one.connection(device("b", PciInfo=pci(2)))
    assert found == DeviceConnection(0, PciPath(path))
    assert str(found) == path


@pytest.mark.parametrize(
    ("remotes", "kind", "status", "shown"),
    [
        ([2, 2, 9], 0, 0, "NV2"),  # the other device is at bus 2
        ([8, 8, 8], 2, 0, "NV3"),  # through switches
        ([8, 8, 8], 2, 1, "SYS"),  # to switches that do not lead to the other
        ([9, 9, 9], 0, 0, "SYS"),
    ],
)
def test_nvlinks_between_two_devices_are_counted(
    remotes: list[int], kind: int, status: int, shown: str
) -> None:
    one = device(
        TopologyCommonAncestor=50,
        NvLinkState=lambda handle, number: number < 3,
        NvLinkVersion=4,
        NvLinkRemotePciInfo=lambda handle, number: pci(remotes[number]),
        NvLinkRemoteDeviceType=kind,
        P2PStatus=status,
    )
    assert str(one.connection(device("b", PciInfo=pci(2)))) == shown


def test_a_function_that_the_driver_or_the_package_lacks_is_named() -> None:
    old = device(MigMode=failing(13))
    with pytest.raises(UnsupportedError, match=r"MigMode needs a newer driver: this one is 450.80"):
        old.mig_mode()
    with pytest.raises(UnsupportedError, match="pip install -U nvidia-ml-py"):
        device().mig_mode()


def test_a_failed_call_has_its_function_and_code() -> None:
    with pytest.raises(NvmlError, match=r"nvmlDeviceGetMigMode failed: error 15 \(15\)") as caught:
        device(MigMode=failing(15)).mig_mode()
    assert (caught.value.call, caught.value.code) == ("nvmlDeviceGetMigMode", 15)


def native_field(
    kind: int, value: float, *, code: int = 0, time_us: int = 5, latency_us: int = 2
) -> SimpleNamespace:
    """A nvmlFieldValue_t, with its value in the member of the union that its type names."""
    members = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
    union = {name: value if n == kind else -1 for n, name in enumerate(members)}
    return SimpleNamespace(
        valueType=kind,
        nvmlReturn=code,
        value=SimpleNamespace(**union),
        timestamp=time_us,
        latencyUsec=latency_us,
    )


def library(**functions: Any) -> Nvml:
    version = {"nvmlSystemGetDriverVersion": lambda: "450.80"}
    return Nvml(SimpleNamespace(NVMLError=BindingError, **functions, **version))


def test_fields_are_read_by_name_number_and_scope_in_one_call() -> None:
    natives = [native_field(n, 40 + n) for n in range(7)]
    natives += [
        native_field(1, 9, code=3),
        native_field(1, 9, code=2),
        native_field(0, 0.0, time_us=0, latency_us=0),
        native_field(1, 0, time_us=0),
        native_field(7, 1),
    ]
    given: list[Any] = []

    def values(handle: str, numbers: list[tuple[int, int]]) -> list[SimpleNamespace]:
        given.append((handle, numbers))
        return natives[: len(numbers)]

    found = nvml.NvmlDevice(
        library(nvmlDeviceGetFieldValues=values, NVML_FI_DEV_MEMORY_TEMP=82), "a"
    )
    asked: list[Any] = ["MEMORY_TEMP", 83, ("NVML_FI_DEV_MEMORY_TEMP", 3), (164, 2), 4, 5, 6]
    asked += [7, 8, 9, 10, 11]
    read = found.fields(*asked)
    scopes = [(82, 0), (83, 0), (82, 3), (164, 2), *((n, 0) for n in range(4, 12))]
    assert given == [("a", scopes)]
    assert list(read) == asked
    assert list(read.values()) == [
        *(FieldValue(40 + n, 5, 2) for n in range(7)),
        None,
        None,
        None,
        FieldValue(0, 0, 2),
        None,
    ]
    assert found.fields() == {}


def test_fields_of_a_device_that_hides_all_are_none() -> None:
    hidden = nvml.NvmlDevice(library(nvmlDeviceGetFieldValues=failing(3)), "a")
    assert hidden.fields(1, (2, 3)) == {1: None, (2, 3): None}


def test_wrong_fields_are_rejected() -> None:
    found = nvml.NvmlDevice(library(nvmlDeviceGetFieldValues=failing(999)), "a")
    for wrong in ("MEMORY", -1, 2**32, (1, -1), ("MEMORY", 0)):
        with pytest.raises(ArgumentValueError, match=r"NvmlDevice\.fields"):
            found.fields(wrong)
    with pytest.raises(ArgumentTypeError):
        found.fields(1.5)  # type: ignore[arg-type]  # the mistake


class Events:
    """The functions of events, of a binding that has these events and then none."""

    def __init__(self, *found: tuple[int, int, int, int]) -> None:
        self.found = list(found)
        self.calls: list[Any] = []

    def binding(self) -> Nvml:
        def wait(handle: str, milliseconds: int) -> SimpleNamespace:
            if not self.found:
                raise BindingError(10)
            kind, data, gpu, compute = self.found.pop(0)
            return SimpleNamespace(
                eventType=kind, eventData=data, gpuInstanceId=gpu, computeInstanceId=compute
            )

        def register(*given: object) -> None:
            self.calls.append(given)

        return library(
            nvmlDeviceGetSupportedEventTypes=lambda handle: 0xFF9F,
            nvmlEventSetWait_v2=wait,
            nvmlEventSetCreate=lambda: "set",
            nvmlDeviceRegisterEvents=register,
            nvmlEventSetFree=lambda handle: self.calls.append(("free", handle)),
        )


def test_events_are_waited_for_until_they_are_closed() -> None:
    source = Events((0x8, 31, 0xFFFFFFFF, 0xFFFFFFFF), (0x10, 0, 1, 2))
    found = nvml.NvmlDevice(source.binding(), "a")
    with found.events(NvmlEventKind.XID | NvmlEventKind.CLOCK) as events:
        assert events.kinds == NvmlEventKind.XID | NvmlEventKind.CLOCK
        assert events.wait(0) == NvmlEvent(NvmlEventKind.XID, 31, None, None)
        assert events.wait(5) == NvmlEvent(NvmlEventKind.CLOCK, 0, 1, 2)
        assert events.wait(0) is None
        assert events.wait(0.001) is None
        assert source.calls == [("a", 0x18, "set")]
    events.close()
    assert source.calls == [("a", 0x18, "set"), ("free", "set")]
    with pytest.raises(ClosedError, match="events were closed"):
        events.wait(0)


def test_events_that_a_device_does_not_report_are_rejected() -> None:
    found = nvml.NvmlDevice(library(nvmlDeviceGetSupportedEventTypes=lambda handle: 0x1_0008), "a")
    assert found.supported_events() == NvmlEventKind.XID
    with pytest.raises(UnsupportedError, match="no events of .*CLOCK.*\n.*XID"):
        found.events(NvmlEventKind.XID | NvmlEventKind.CLOCK)
    with pytest.raises(UnsupportedError):
        found.events(NvmlEventKind(0))
    with pytest.raises(ArgumentTypeError, match="kinds is 8, .* give a NvmlEventKind"):
        found.events(8)  # type: ignore[arg-type]  # the mistake
    without = nvml.NvmlDevice(library(nvmlDeviceGetSupportedEventTypes=failing(3)), "a")
    assert without.supported_events() == NvmlEventKind(0)


def test_a_lost_device_ends_the_wait_with_its_error() -> None:
    lost = library(
        nvmlEventSetWait_v2=failing(15),
        nvmlEventSetCreate=lambda: "set",
        nvmlDeviceRegisterEvents=lambda *given: None,
        nvmlDeviceGetSupportedEventTypes=lambda handle: 8,
        nvmlEventSetFree=lambda handle: None,
    )
    found = nvml.NvmlDevice(lost, "a")
    with found.events(NvmlEventKind.XID) as events, pytest.raises(NvmlError) as caught:
        events.wait(60)
    assert caught.value.code == 15


def test_a_gpu_has_fields_and_events(context: cudadrv.Context) -> None:
    try:
        found = context.device.nvml
    except (NvmlNotFoundError, UnsupportedError) as error:
        pytest.skip(f"needs NVML: {error}")
    read = found.fields("ECC_CURRENT", "TOTAL_ENERGY_CONSUMPTION", ("NVLINK_GET_STATE", 0))
    mode, ecc = found.ecc_mode(), read["ECC_CURRENT"]
    if mode is not None and ecc is not None:
        assert ecc.value == mode.current
    kinds = found.supported_events() & NvmlEventKind.XID
    if not kinds:
        pytest.skip("needs a device that reports Xid errors")
    with found.events(kinds) as events:
        assert events.wait(0.01) is None


@pytest.fixture
def no_library() -> Iterator[None]:
    nvml._nvml_of.cache_clear()
    yield
    nvml._nvml_of.cache_clear()


def test_a_missing_package_is_reported_with_the_command(
    no_library: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with emulator.session(), pytest.raises(NvmlNotFoundError) as caught:
        _ = cudadrv.Device.get(0).nvml
    assert caught.value.command == 'pip install "cudadrv[cli]"'
    assert "nvidia-ml-py" in str(caught.value)


def test_a_missing_library_is_reported_with_the_driver(
    no_library: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    binding = ModuleType("pynvml")
    vars(binding).update(NVMLError=BindingError, nvmlInit=failing(12))
    monkeypatch.setitem(sys.modules, "pynvml", binding)
    with emulator.session(), pytest.raises(NvmlNotFoundError, match="NVIDIA driver"):
        _ = cudadrv.Device.get(0).nvml


def test_a_device_is_found_by_its_uuid_and_an_emulated_one_by_nothing_else(
    no_library: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: dict[bytes, str] = {}

    def find(uuid: bytes) -> str:
        return listed[uuid] if uuid in listed else failing(6)()

    binding = ModuleType("pynvml")
    vars(binding).update(
        NVMLError=BindingError,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=find,
        nvmlDeviceGetHandleByPciBusId=lambda address: "a GPU",
        nvmlDeviceGetMigMode=lambda handle: [handle == "mine", 0],
    )
    monkeypatch.setitem(sys.modules, "pynvml", binding)
    with emulator.session():
        one = cudadrv.Device.get(0)
        with pytest.raises(UnsupportedError, match="python -m cudadrv emulate"):
            _ = one.nvml
        listed[f"GPU-{one.uuid}".encode()] = "mine"
        assert one.nvml.mig_mode() == (True, False)
    nvml._nvml_of.cache_clear()
    instance = Nvml(binding).device("GPU-absent", "0000:01:00.0")
    assert instance is not None
    assert instance.mig_mode() == (False, False)
