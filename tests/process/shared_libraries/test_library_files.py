"""Files of the driver's libraries, and NVML, in processes of their own."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from cudadrv.emulator.shared_libraries.library_files import library_folder

from .process import run, run_program

EMULATE = ("-m", "cudadrv", "emulate", "--devices", "2")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUDADRV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    return tmp_path / "cache"


def test_the_folder_is_in_the_cache_and_private(cache: Path) -> None:
    folder = library_folder()
    assert folder is not None
    assert folder.parent == cache
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    names = {path.name for path in folder.iterdir() if path.name.startswith("lib")}
    assert names == {"libcuda.so", "libcuda.so.1", "libnvidia-ml.so", "libnvidia-ml.so.1"}
    assert (folder / "libcuda.so").samefile(folder / "libcuda.so.1")


def test_a_changed_file_is_written_again(cache: Path) -> None:
    folder = library_folder()
    assert folder is not None
    content = (folder / "libcuda.so.1").read_bytes()
    (folder / "libcuda.so.1").write_bytes(b"")
    assert library_folder() == folder
    assert (folder / "libcuda.so.1").read_bytes() == content


def test_a_folder_of_the_search_path_is_used(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = library_folder()
    assert folder is not None
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere{os.pathsep}{folder}")
    monkeypatch.setenv("CUDADRV_CACHE_DIR", str(tmp_path / "other"))
    assert library_folder() == folder


def test_another_place_is_used_where_the_cache_cannot_be_written(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cache.write_text("a file")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = library_folder()
    assert folder is not None
    assert folder.parent == tmp_path / f"cudadrv-{os.getuid()}"


def test_a_process_without_an_emulator_gets_no_driver_from_the_files(cache: Path) -> None:
    folder = library_folder()
    assert folder is not None
    program = (
        "import ctypes; from os import environ\n"
        "for name in ('libcuda.so.1', 'libcuda.so'):\n"
        "    print(ctypes.CDLL(name).cuInit(0))\n"
        "print(ctypes.CDLL('libnvidia-ml.so').nvmlInit_v2())\n"
    )
    ended = run("-S", "-c", program, names={"LD_LIBRARY_PATH": str(folder)})
    assert (ended.status, ended.out.split()) == (0, ["4", "4", "9"]), ended.err


@pytest.mark.slow
def test_programs_that_look_for_files_find_the_emulator_in_children_too(cache: Path) -> None:
    program = """
import ctypes, os, subprocess, sys
from pathlib import Path
folder = Path(os.environ["TRITON_LIBCUDA_PATH"])
libraries = [ctypes.CDLL(name) for name in ("libcuda.so.1", "libcuda.so", folder / "libcuda.so.1")]
count = ctypes.c_int()
libraries[1].cuInit(0)
libraries[2].cuDeviceGetCount(ctypes.byref(count))
print(len({library._handle for library in libraries}), count.value, flush=True)
if len(sys.argv) == 2:
    subprocess.run([sys.executable, *sys.argv, "child"], check=True)
    subprocess.run(["nvidia-smi", "-L"], check=True)
    print(subprocess.run(["nvidia-smi", "-q"], capture_output=True).returncode)
"""
    cache.mkdir()
    path = cache / "program.py"
    path.write_text(program)
    ended = run(*EMULATE, "python", str(path), str(path))
    lines = ended.out.splitlines()
    assert (ended.status, lines[:2]) == (0, ["1 2", "1 2"]), ended.err
    assert [line.partition("GPU-")[0] for line in lines[2:4]] == [
        f"GPU {index}: cudadrv emulated device (UUID: " for index in range(2)
    ]
    assert lines[4:] == ["2"]


@pytest.mark.slow
def test_programs_find_and_link_the_files(cache: Path, tmp_path: Path) -> None:
    """`find_library` runs ld and objdump, which read sections; the loader does not."""
    program = "import ctypes.util as u; print(u.find_library('cuda'), u.find_library('nvidia-ml'))"
    folder, tool = library_folder(), shutil.which("cc")
    if folder is None or tool is None or not (shutil.which("ld") and shutil.which("objdump")):
        pytest.skip("needs cc, ld and objdump")
    ended = run(*EMULATE, "python", "-c", program)
    assert (ended.status, ended.out) == (0, "libcuda.so.1 libnvidia-ml.so.1\n"), ended.err
    (tmp_path / "calls.c").write_text("int cuInit(unsigned);\nint main(void) { return cuInit(0); }")
    command = (tool, str(tmp_path / "calls.c"), f"-L{folder}", "-lcuda", "-o", str(tmp_path / "a"))
    subprocess.run(command, check=True)
    native = subprocess.run([tmp_path / "a"], env={"LD_LIBRARY_PATH": str(folder)}, check=False)
    assert native.returncode == 4


def test_nvml_describes_the_emulated_devices() -> None:
    pytest.importorskip("pynvml", reason="needs nvidia-ml-py")
    out = run_program("""
        import pynvml as nvml
        with stand_in(2, name="first", compute_capability=(8, 0), total_memory=1 << 30):
            try:
                nvml.nvmlInit()
                print(nvml.nvmlDeviceGetCount(), nvml.nvmlSystemGetCudaDriverVersion())
                one = nvml.nvmlDeviceGetHandleByIndex(1)
                print(nvml.nvmlDeviceGetName(one), nvml.nvmlDeviceGetCudaComputeCapability(one))
                for same in (
                    nvml.nvmlDeviceGetHandleByUUID(nvml.nvmlDeviceGetUUID(one)),
                    nvml.nvmlDeviceGetHandleByPciBusId(nvml.nvmlDeviceGetPciInfo(one).busId),
                ):
                    print(nvml.nvmlDeviceGetIndex(same))
                prepare()
                memory = ok(driver.cuMemAlloc(1 << 20))
                zero = nvml.nvmlDeviceGetHandleByIndex(0)
                found = nvml.nvmlDeviceGetMemoryInfo(zero)
                newer = nvml.nvmlDeviceGetMemoryInfo(zero, nvml.nvmlMemory_v2)
                print(found.total, found.used == newer.used >= 1 << 20)
                print(nvml.nvmlDeviceGetUtilizationRates(zero).gpu)
                print(nvml.nvmlDeviceGetComputeRunningProcesses(zero))
                uuid = ok(driver.cuDeviceGetUuid(1)).bytes.hex()
                print(nvml.nvmlDeviceGetUUID(one).replace("-", "") == "GPU" + uuid)
                nvml.nvmlDeviceGetHandleByIndex(2)
            except nvml.NVMLError as error:
                print(error)
            nvml.nvmlShutdown()
        print(nvml.nvmlLib.nvmlInit_v2())
    """)
    assert out.splitlines() == [
        "2 13050", "first (8, 0)", "1", "1", "1073741824 True", "0", "[]", "True",
        "Invalid Argument", "9",
    ]  # fmt: skip


@pytest.mark.slow
def test_nvml_of_a_device_is_read_and_its_topology_printed_in_an_emulated_process() -> None:
    pytest.importorskip("pynvml", reason="needs nvidia-ml-py")
    program = (
        "import cudadrv\n"
        "from cudadrv.__main__ import main\n"
        "one = cudadrv.Device.get(1).nvml\n"
        "print(one.mig_mode(), one.ecc_mode(), one.ecc_errors(), one.nvlinks(), one.celsius())\n"
        "print(one.clocks())\n"
        "print(one.processes(), one.mps_processes(), one.pci_address())\n"
        "main(['info', '--topology'])\n"
        "main(['top', '--once'])\n"
        "print({n: v and v.value for n, v in one.fields('ECC_CURRENT', 'MEMORY_TEMP').items()})\n"
        "stream = cudadrv.cuda_context_for(1).new_stream()\n"
        "source = 'extern \"C\" __global__ void wild(int* x) { x[1ull << 40] = 1; }'\n"
        "wild = stream.context.compile(source).kernel('wild')\n"
        "with one.events(one.supported_events()) as events:\n"
        "    print(events.kinds, events.wait(0.01))\n"
        "    try:\n"
        "        wild(stream, cudadrv.LaunchConfig(1, 1), stream.zeros(4, 'i4'))\n"
        "    except cudadrv.errors.IllegalAddressError:\n"
        "        print(events.wait(10).data, events.wait(0))\n"
    )
    ended = run(*EMULATE, "python", "-c", program)
    assert (ended.status, ended.err) == (0, ""), ended.err
    assert ended.out.splitlines()[:8] == [
        "None PendingMode(current=False, pending=False) None () None",
        "ClockRates(sm_mhz=1500, memory_mhz=1500, max_sm_mhz=1500, max_memory_mhz=1500, "
        "slowdowns=())",
        "{} {} 0000:02:00.0",
        "connections of devices",
        "  device  0    1    name",
        "  0       X    SYS  cudadrv emulated device",
        "  1       SYS  X    cudadrv emulated device",
        "  SYS: the link between NUMA nodes",
    ]
    assert ended.out.splitlines()[-3:] == [
        "{'ECC_CURRENT': 0, 'MEMORY_TEMP': None}",
        "NvmlEventKind.XID None",
        "31 None",
    ]


@pytest.mark.slow
def test_a_function_of_nvml_that_the_emulator_lacks_reports_itself_once() -> None:
    ended = run(
        *EMULATE,
        "python",
        "-c",
        "import ctypes\n"
        "nvml = ctypes.CDLL('libnvidia-ml.so.1')\n"
        "print(nvml.nvmlSystemGetDriverBranch(None, 80), nvml.nvmlInit_v2())\n"
        "print(*[nvml.nvmlSystemGetDriverBranch(None, 80) for _ in range(2)])\n",
    )
    assert (ended.status, ended.out) == (0, "1 0\n3 3\n"), ended.err
    assert ended.err.splitlines() == [
        "cudadrv: the emulator lacks nvmlSystemGetDriverBranch: "
        "it returned NVML_ERROR_NOT_SUPPORTED"
    ]
