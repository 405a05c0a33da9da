from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata

import pytest

import cudadrv
import ptx
from cudadrv.__main__ import main


def test_info_tells_versions_places_and_devices(capsys: pytest.CaptureFixture[str]) -> None:
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


# Runs `info` as if neither compiler, linker, driver nor headers were installed.
MISSING = """
import cuda.pathfinder as pathfinder

def absent(name):
    raise pathfinder.DynamicLibNotFoundError(name)

pathfinder.load_nvidia_dynamic_lib = absent
pathfinder.find_nvidia_header_directory = lambda name: None
import ptx
def no_nvrtc():
    raise ptx.NvrtcNotFoundError("pip install nothing", "absent")
ptx.nvrtc_version = no_nvrtc
from cudadrv.errors import DriverNotFoundError
import cudadrv.cli.info as info
def no_driver():
    raise DriverNotFoundError("absent")
info.driver_version = no_driver
from cudadrv.__main__ import main
raise SystemExit(main(["info", "--json"]))
"""


def test_each_thing_missing_is_answered_with_what_brings_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MISSING], capture_output=True, text=True, check=True, timeout=60
    )
    missing = json.loads(done.stdout)["missing"]
    major = metadata.version("cuda-bindings").partition(".")[0]
    assert missing["NVRTC"] == f'pip install "cudadrv[cu{major}]"'
    assert missing["nvJitLink"] == missing["NVRTC"]
    assert missing["driver"].startswith("install the NVIDIA driver, or set CUDADRV_DRIVER=emulator")
    assert missing["CUDA runtime headers (cuda_fp16.h)"].startswith(
        "pip install nvidia-cuda-runtime"
    )
    assert missing["CCCL (cuda/std, CUB)"].startswith("pip install nvidia-cuda-cccl")
