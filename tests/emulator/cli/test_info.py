from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import cudadrv
import ptx
from cudadrv import nvml
from cudadrv.__main__ import main
from cudadrv.nvml import DeviceConnection, NvLink, PciPath
from tests.patience import SECONDS
from tests.pure.compile.fake_headers import environment_without_headers, write_toolkit


def test_info_reports_versions_places_and_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert info["packages"]["cuda-bindings"] == metadata.version("cuda-bindings")
    assert info["packages"]["cudadrv"] == cudadrv.__version__
    version = ".".join(map(str, ptx.nvrtc_version()))
    assert info["libraries"]["NVRTC"].startswith(f"{version} at /")
    assert [text.split(",")[0] for text in info["devices"]] == [
        device.name for device in cudadrv.list_devices()
    ]
    assert info["cache_folder"]
    assert main(["info"]) == 0
    assert "NVRTC" in capsys.readouterr().out


# Runs `info` as if neither compiler, linker nor driver were installed.
MISSING = """
import cuda.pathfinder as pathfinder

def absent(name):
    raise pathfinder.DynamicLibNotFoundError(name)

pathfinder.load_nvidia_dynamic_lib = absent
import ptx
def no_nvrtc(*_, **__):
    raise ptx.NvrtcNotFoundError("pip install nothing", "absent")
ptx.nvrtc_version = ptx.cuda_headers = no_nvrtc
from cudadrv.errors import DriverNotFoundError
import cudadrv.cli.info as info
def no_driver():
    raise DriverNotFoundError("absent")
info.driver_version = no_driver
from cudadrv.__main__ import main
raise SystemExit(main(["info", "--json"]))
"""


def test_each_missing_thing_is_reported_with_what_installs_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MISSING], capture_output=True, text=True, check=True, timeout=SECONDS
    )
    missing = json.loads(done.stdout)["missing"]
    major = metadata.version("cuda-bindings").partition(".")[0]
    assert missing["NVRTC"] == f'pip install "cudadrv[cu{major}]"'
    assert missing["nvJitLink"] == missing["NVRTC"]
    assert missing["driver"].startswith("install the NVIDIA driver, or set CUDADRV_DRIVER=emulator")


def info_of(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    assert main(["info", "--json"]) == 0
    found: dict[str, dict[str, str]] = json.loads(capsys.readouterr().out)
    return found


def test_info_reports_which_headers_are_not_used_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    include = str(write_toolkit(tmp_path / "toolkit", 12, 1) / "include")
    version = "{}.{}".format(*ptx.nvrtc_version())
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "toolkit"))
    info = info_of(capsys)
    assert include not in info["headers"]
    assert info["headers_not_used"][include] == (
        f"toolkit of CUDA_PATH: runtime 12.1, CCCL 12.1, but NVRTC is {version}"
    )
    monkeypatch.setenv("CUDADRV_HEADERS", include)
    info = info_of(capsys)
    assert info["headers"] == {
        include: f"named: runtime 12.1, CCCL 12.1, although NVRTC is {version}"
    }
    assert info["headers_not_used"] == {}
    assert main(["info"]) == 0
    assert "although NVRTC is" in " ".join(capsys.readouterr().out.split())


def test_info_reports_what_brings_missing_headers_for_this_nvrtc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDADRV_HEADERS", str(tmp_path))
    missing = info_of(capsys)["missing"]
    major, minor = ptx.nvrtc_version()
    for title, package in (
        ("CUDA runtime headers (cuda_fp16.h)", "nvidia-cuda-runtime"),
        ("CCCL (cuda/std, CUB)", "nvidia-cuda-cccl"),
        ("the compiler's headers (mma.h)", "nvidia-cuda-"),
    ):
        assert missing[title].startswith(f'pip install "{package}')
        assert f".{minor}.*" in missing[title]
        assert f"=={major}." in missing[title]


@pytest.mark.slow
def test_info_reports_bundled_headers_before_and_after_they_are_unpacked(tmp_path: Path) -> None:
    run = environment_without_headers(tmp_path / "environment")
    major, minor = ptx.nvrtc_version()
    cache = tmp_path / "cache"
    headers = cache / f"headers-{major}.{minor}"
    variables = {"CUDADRV_CACHE_DIR": str(cache), "CUDADRV_CACHE_MAX_MB": "100"}
    asks = ("-m", "cudadrv", "info", "--json")
    before = json.loads(run(*asks, **variables))
    contents = f"bundled with NVRTC: runtime {major}.{minor}, crt {major}.{minor}"
    assert before["headers"][str(headers)] == f"{contents}, unpacked when first needed"
    assert headers.name not in before["cache_bytes"]
    assert not headers.exists()
    run("-c", "import ptx; ptx.cuda_headers()", **variables)
    after = json.loads(run(*asks, **variables))
    assert after["headers"][str(headers)] == contents
    nbytes = sum(path.stat().st_size for path in headers.rglob("*") if path.is_file())
    assert after["cache_bytes"][headers.name] >= nbytes > 10**7
    assert not [title for title in after["missing"] if "headers" in title or "CCCL" in title]


def test_the_topology_of_devices_that_nvml_does_not_list_is_rejected_in_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    nvml._nvml_of.cache_clear()
    assert main(["info", "--topology"]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert told.err.endswith('NVML needs the package nvidia-ml-py: pip install "cudadrv[cli]"\n')


def test_the_topology_has_the_connections_of_each_device(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Found:
        def connection(self, other: object) -> DeviceConnection:
            return DeviceConnection(4, PciPath.SYSTEM)

        def nvlinks(self) -> tuple[NvLink, ...]:
            return (NvLink(0, 4, "0000:02:00.0", is_to_switch=False),)

    monkeypatch.setattr(cudadrv.Device, "nvml", property(lambda device: Found()))
    assert main(["info", "--topology", "--json"]) == 0
    devices = json.loads(capsys.readouterr().out)
    assert [each["device"] for each in devices] == [d.ordinal for d in cudadrv.list_devices()]
    count = len(devices)
    assert [each["connections"] for each in devices] == [
        ["X" if n == m else "NV4" for n in range(count)] for m in range(count)
    ]
    assert devices[0]["nvlinks"] == [
        {"number": 0, "version": 4, "remote_pci": "0000:02:00.0", "is_to_switch": False}
    ]
    assert main(["info", "--topology"]) == 0
    assert ("  NV: so many NVLinks\n" in capsys.readouterr().out) == (count > 1)
