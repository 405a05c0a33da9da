"""`doctor`: each known trouble is told with its remedy, and the exit status says how bad it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import ptx
from cudadrv.__main__ import main
from cudadrv.cli.doctor import MachineState, Severity, diagnose, look
from ptx.headers import HeaderFolder

WELL = MachineState(
    packages={"cuda-bindings": "13.1.0", "nvidia-cuda-nvrtc": "13.0.88"},
    bindings=(13, 1),
    driver_path="/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    driver_code=0,
    driver=(13, 0),
    devices=["NVIDIA H100"],
    has_device_files=True,
    nvrtc=(13, 0),
    nvrtc_path="/env/lib/libnvrtc.so.13",
    headers=ptx.CudaHeaders(
        (13, 0), (HeaderFolder("/env/include", "pip", (("runtime", (13, 0)),)),)
    ),
    cache_folder=Path("/home/user/.cache/cudadrv"),
)


def test_a_working_installation_has_nothing_to_fix() -> None:
    findings = diagnose(WELL)
    assert {finding.severity for finding in findings} == {Severity.FINE}
    assert not any(finding.remedy for finding in findings)
    assert [f.subject for f in findings] == ["driver", "devices", "compiler", "cache"]


@pytest.mark.parametrize(
    ("changes", "severity", "text", "remedy"),
    [
        ({"driver_code": None}, Severity.ERROR, "no CUDA driver", "CUDADRV_DRIVER=emulator"),
        (
            {"driver_code": None, "is_container": True},
            Severity.ERROR, "no CUDA driver", "docker run --gpus all",
        ),
        ({"driver_code": None, "is_wsl": True}, Severity.ERROR, "no CUDA driver", "of Windows"),
        ({"driver_code": None, "chosen": "emulator:2"}, Severity.FINE, "the emulator", ""),
        ({"driver_code": 34}, Severity.ERROR, "a stub", "LD_LIBRARY_PATH"),
        (
            {"driver_path": "/usr/local/cuda/lib64/stubs/libcuda.so"},
            Severity.ERROR, "a stub", "LD_LIBRARY_PATH",
        ),
        (
            {"driver_code": 100, "visible": "7"},
            Severity.ERROR, "CUDA_VISIBLE_DEVICES is '7'", "unset it",
        ),
        (
            {"driver_code": 100, "is_container": True, "has_device_files": False},
            Severity.ERROR, "the container has a driver", "docker run --gpus all",
        ),
        ({"driver_code": 100}, Severity.ERROR, "finds no device", "nvidia-smi"),
        ({"driver_code": 802}, Severity.ERROR, "error 802", "nvidia-fabricmanager"),
        ({"driver_code": 803}, Severity.ERROR, "error 803", "restart the machine"),
        ({"driver": (12, 4)}, Severity.ERROR, "kernels do not load", "nvrtc-cu12==12.4"),
        (
            {"nvrtc": (13, 2)},
            Severity.WARNING, "PTX does not", 'pip install "nvidia-cuda-nvrtc==13.0.*"',
        ),
        ({"nvrtc": None}, Severity.ERROR, "NVRTC is not installed", 'pip install "cudadrv[cu13]"'),
        (
            {"bindings": (12, 9)},
            Severity.ERROR, "cuda-bindings is of CUDA 12", 'pip install "cudadrv[cu12]"',
        ),
        (
            {"packages": {"nvidia-cuda-nvrtc": "13.0", "nvidia-cuda-nvrtc-cu12": "12.9"}},
            Severity.WARNING, "two majors of CUDA: nvidia-cuda-nvrtc", "uninstall one",
        ),
        (
            {"other_ptx": ["ptx-assembler"]},
            Severity.WARNING, "ptx-assembler installs a package ptx", "separate environments",
        ),
        (
            {"headers": ptx.CudaHeaders(
                (13, 0), (HeaderFolder("/opt/h", "toolkit", (("runtime", (12, 9)),)),)
            )},
            Severity.WARNING, "/opt/h has runtime 12.9, but NVRTC is 13.0", "CUDADRV_HEADERS",
        ),
        (
            {"headers": ptx.CudaHeaders((13, 0), ())},
            Severity.WARNING, "are not installed", "nvidia-cuda-runtime",
        ),
        (
            {"is_wsl": True},
            Severity.ERROR, "is not a driver of Windows", "/usr/lib/wsl/lib",
        ),
        (
            {"cache_fault": "others can write /tmp/c"},
            Severity.WARNING, "others can write /tmp/c", "CUDADRV_CACHE_DIR",
        ),
    ],
)  # fmt: skip
def test_each_trouble_is_reported_with_its_remedy(
    changes: dict[str, object], severity: Severity, text: str, remedy: str
) -> None:
    # The names are attributes of MachineState; a dict of them has no type of its own.
    findings = diagnose(replace(WELL, **changes))  # type: ignore[arg-type]
    (found,) = [each for each in findings if text in each.text]
    assert found.severity == severity
    assert remedy in found.remedy
    assert bool(found.remedy) == (severity is not Severity.FINE)
    worst = max(each.severity for each in findings)
    assert worst == severity


def test_a_part_of_a_device_is_named_so() -> None:
    findings = diagnose(replace(WELL, visible="MIG-5f2c"))
    assert any("a part of a device (MIG)" in finding.text for finding in findings)


@pytest.mark.slow
def test_the_exit_status_is_the_worst_finding(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["doctor", "--json"])
    findings = json.loads(capsys.readouterr().out)
    named = {"fine": 0, "warning": 1, "error": 2}
    assert status == max(named[finding["severity"]] for finding in findings)
    assert all(finding["remedy"] for finding in findings if finding["severity"] != "fine")
    assert main(["doctor"]) == status
    assert "compiler" in capsys.readouterr().out


@pytest.mark.slow
def test_looking_finds_the_compiler_that_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDADRV_CACHE_DIR", "/proc/no/such")
    machine = look()
    assert machine.nvrtc == ptx.nvrtc_version()
    assert "cuda-bindings" in machine.packages
    assert machine.cache_fault == "/proc cannot be written" or machine.cache_fault == ""
