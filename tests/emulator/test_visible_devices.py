from __future__ import annotations

import pytest

from cudadrv.driver._api import CUresult
from cudadrv.emulator import EmulatedDevice, Emulator
from tests.process.shared_libraries.process import run_program

from .calls import code, ok

VISIBLE = "CUDA_VISIBLE_DEVICES"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """Four devices, of which the environment says what is visible; not initialised."""
    monkeypatch.delenv(VISIBLE, raising=False)
    emulator = Emulator([EmulatedDevice(name=f"device {n}") for n in range(4)])
    emulator.follow_environment()
    return emulator


def names(emulator: Emulator) -> list[str]:
    count = ok(emulator.cuDeviceGetCount())
    found = [ok(emulator.cuDeviceGetName(64, ok(emulator.cuDeviceGet(n)))) for n in range(count)]
    return [each.rstrip(b"\0 ").decode() for each in found]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("2,0", [2, 0]), ("1", [1]), (" 3 , 1 ", [3, 1]), ("0,7,1", [0]), ("0,-1,1", [0])],
)
def test_devices_are_those_that_are_named_in_that_order(
    machine: Emulator, monkeypatch: pytest.MonkeyPatch, text: str, numbers: list[int]
) -> None:
    monkeypatch.setenv(VISIBLE, text)
    ok(machine.cuInit(0))
    assert names(machine) == [f"device {n}" for n in numbers]
    bus = ok(machine.cuDeviceGetPCIBusId(13, ok(machine.cuDeviceGet(0))))
    assert bus.rstrip(b"\0") == f"0000:{numbers[0] + 1:02x}:00.0".encode()


@pytest.mark.parametrize("text", ["", "-1", "1,1", "nonsense", "4"])
def test_where_none_is_visible_the_driver_reports_that_there_is_none(
    machine: Emulator, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv(VISIBLE, text)
    assert code(machine.cuInit(0)) == CUresult.CUDA_ERROR_NO_DEVICE


def test_a_device_is_named_by_the_beginning_of_its_uuid(
    machine: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok(machine.cuInit(0))
    uuid = ok(machine.cuDeviceGetUuid(ok(machine.cuDeviceGet(2)))).bytes.hex()
    monkeypatch.setenv(VISIBLE, f"GPU-{uuid[:8]}")
    ok(machine.cuInit(0))
    assert names(machine) == ["device 2"]


def test_of_mig_instances_one_is_visible(
    machine: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok(machine.cuInit(0))
    found = [ok(machine.cuDeviceGetUuid(ok(machine.cuDeviceGet(n)))).bytes.hex() for n in (3, 1)]
    monkeypatch.setenv(VISIBLE, ",".join(f"MIG-{each[:8]}" for each in found))
    ok(machine.cuInit(0))
    assert names(machine) == ["device 3"]


def test_a_context_keeps_the_devices_that_there_were(
    machine: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok(machine.cuInit(0))
    ok(machine.cuDevicePrimaryCtxRetain(ok(machine.cuDeviceGet(3))))
    monkeypatch.setenv(VISIBLE, "0")
    ok(machine.cuInit(0))
    assert len(names(machine)) == 4


def test_devices_that_a_program_gives_are_all_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VISIBLE, "0")
    emulator = Emulator(2)
    ok(emulator.cuInit(0))
    assert len(names(emulator)) == 2


@pytest.mark.slow
def test_the_environment_chooses_among_the_devices_that_it_gave() -> None:
    out = run_program(
        """
        import os
        stand_in()
        import cudadrv
        print(len(cudadrv.list_devices()))
        os.environ["CUDA_VISIBLE_DEVICES"] = "2"
        ok(driver.cuInit(0))
        print(ok(driver.cuDeviceGetCount()))
        """,
        {"CUDADRV_DRIVER": "emulator:3", VISIBLE: "1,0"},
    )
    assert out == "2\n1\n"
