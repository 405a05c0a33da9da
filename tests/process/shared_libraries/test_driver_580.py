"""The stand-in libraries beside NVIDIA's own: what they export, and what calls of nothing return.

`driver_580.txt` was recorded on an H200 (driver 580.159.04).
"""

from __future__ import annotations

import fnmatch
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from cudadrv.driver.functions import forms
from cudadrv.emulator.shared_libraries.library_files import libcuda_names
from cudadrv.emulator.shared_libraries.nvml_functions import NVML_NAMES
from tests.patience import SECONDS

from .process import environment, run

HERE: Final = Path(__file__).parent
UNDOCUMENTED: Final = {
    "cudbg*": "the interface of cuda-gdb, mostly variables, in no header",
    "cuMemGetAttribute*": "in no header and no manual",
    "nvmlInternalGetExportTable": "in no header and no manual",
}
"""Symbols that the stand-ins do not export, by patterns, with the reason."""
ACCEPTED: Final = {
    **dict.fromkeys(
        ("cuSurfObjectDestroy", "cuTexObjectDestroy"),
        "the emulator reports the destruction of an object that is not live",
    ),
    **dict.fromkeys(
        [
            f"cuMemcpy{way}_v2{thread}"
            for way in ("AtoA", "AtoD", "AtoH", "AtoHAsync", "DtoA", "HtoA", "HtoAAsync")
            for thread in ("", "_ptsz" if way.endswith("Async") else "_ptds")
        ],
        "the emulator looks at the array also if no byte is copied",
    ),
    "cuMemGetAddressRange_v2": "the emulator looks up the address also if no result is wanted",
    "cuMemGetAddressRange": "the same",
    "cuDevicePrimaryCtxRelease": "the emulator reports a release too many",
    "cuMemFree": "the emulator has no contexts of CUDA 3.1",
}
"""Functions that a GPU lets pass, and the emulator rejects, with the reason."""


class Symbol(NamedTuple):
    """A symbol of NVIDIA's libraries, and what its function returned for zeros.

    Attributes:
        in_context, alone: with and without a current context; a number, `-` or `crash`.
    """

    library: str
    name: str
    in_context: str
    alone: str


@cache
def symbols() -> tuple[Symbol, ...]:
    lines = (HERE / "driver_580.txt").read_text().splitlines()
    return tuple(Symbol(*line.split()) for line in lines if not line.startswith("#"))


def test_each_symbol_of_a_real_driver_is_exported_or_listed_with_a_reason() -> None:
    own = {*libcuda_names(), *NVML_NAMES}
    missing = {each.name for each in symbols()} - own
    listed = {name for name in missing for p in UNDOCUMENTED if fnmatch.fnmatchcase(name, p)}
    assert (len(symbols()), missing - listed) == (1111, set())


@cache
def returned() -> dict[str, tuple[str, ...]]:
    """What the emulator's functions return for zeros."""
    done = subprocess.run(
        [sys.executable, "-m", "cudadrv", "emulate", "python", str(HERE / "no_arguments.py")],
        env=environment(),
        input=" ".join(libcuda_names()),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    lines = (line.split() for line in done.stdout.splitlines())
    return {name: tuple(codes) for name, *codes in lines}


def test_each_function_survives_zeros_for_all_arguments() -> None:
    assert set(returned()) == set(libcuda_names())
    assert "999" not in {code for codes in returned().values() for code in codes}


def test_zeros_are_accepted_where_a_gpu_accepts_them() -> None:
    absent = {name for f in forms() if "absent" in f.flags for name in (f.symbol, f.per_thread)}
    rejected, accepted, others = set(), set(), 0
    for symbol in symbols():
        codes = returned().get(symbol.name, ())
        if symbol.name in absent or not codes:
            continue
        for code, of_gpu in zip(codes, (symbol.in_context, symbol.alone), strict=True):
            if of_gpu == "0" != code:
                rejected.add(symbol.name)
            elif code == "0" != of_gpu:
                accepted.add(symbol.name)
            others += code != of_gpu and of_gpu.isdecimal()
    assert rejected == set(ACCEPTED)
    # By default the driver has the second forms alone.
    assert accepted == {"cuStreamBatchMemOp", "cuStreamBatchMemOp_ptsz"}
    assert others <= 215  # both reject them, with other codes; of 1,200


# By nvml.h of nvidia-nvml-dev 13.4.92: nvmlPciInfo_v2_t, nvmlPciInfo_t, nvmlMemory_t and so on. The
# second is what an H200 wrote: it leaves reserved fields and the bytes after a text.
FILLED_BY_NVML: Final = {
    "nvmlDeviceGetPciInfo": (52, 32), "nvmlDeviceGetPciInfo_v2": (52, 36),
    "nvmlDeviceGetPciInfo_v3": (68, 53), "nvmlDeviceGetMemoryInfo": (24, 24),
    "nvmlDeviceGetMemoryInfo_v2": (40, 40), "nvmlDeviceGetUtilizationRates": (8, 8),
    "nvmlDeviceGetComputeMode": (4, 4), "nvmlDeviceGetIndex": (4, 4),
    "nvmlDeviceGetMinorNumber": (4, 4),
}  # fmt: skip
READS_STRUCTURES: Final = f"""
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
device = ctypes.c_void_p()
print(nvml.nvmlInit(), nvml.nvmlDeviceGetHandleByIndex(0, ctypes.byref(device)))
for name in {list(FILLED_BY_NVML)}:
    ends = []
    for filler in (0xAB, 0xCD):
        buffer = (ctypes.c_ubyte * 256)(*[filler] * 256)
        if name == "nvmlDeviceGetMemoryInfo_v2":
            ctypes.c_uint.from_buffer(buffer).value = 40 | 2 << 24
        assert getattr(nvml, name)(device, buffer) == 0, name
        ends.append(max(at for at in range(256) if buffer[at] != filler) + 1)
    print(name, max(ends))
    if "Pci" in name:
        words = (ctypes.c_uint * 5).from_buffer(buffer, 16)
        print(bytes(buffer[:13]), list(words[:4]), bytes(buffer[36:53]))
"""


@pytest.mark.slow
def test_nvml_writes_the_bytes_of_each_version_of_a_structure() -> None:
    ended = run("-m", "cudadrv", "emulate", "python", "-c", READS_STRUCTURES)
    assert ended.status == 0, ended.err
    first, *lines = ended.out.splitlines()
    written = {line.split()[0]: int(line.split()[1]) for line in lines if line.startswith("nvml")}
    assert (first, written) == ("0 0", {name: to for name, (_, to) in FILLED_BY_NVML.items()})
    assert all(to <= size for size, to in FILLED_BY_NVML.values())
    texts = [line for line in lines if line.startswith("b")]
    short, unwritten = rb"b'0000:01:00.0\x00' [0, 1, 0, 0]", rb"b'\xcd".decode()
    assert [line.startswith(short.decode()) for line in texts] == [True] * 3
    assert [unwritten in line for line in texts] == [True, True, False]
    assert r"b'00000000:01:00.0\x00'" in texts[2]
