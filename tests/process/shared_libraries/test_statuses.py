"""Exit statuses and lines of `emulate` for CI: nothing of a command fails in silence."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from .native import compiled
from .process import BINDINGS, run

EMULATE: Final = ("-m", "cudadrv", "emulate")
LAUNCHES: Final = (
    BINDINGS
    + """
prepare()
memory = ok(driver.cuMemAlloc(64))
if sys.argv[1] == "fault":
    driver.cuLaunchKernel(kernel(b"misaligned"), 1, 1, 1, 1, 1, 1, 0, 0, ((memory,), (None,)), 0)
elif sys.argv[1] == "kernel":
    launch(kernel(b"fill"), memory, 7, 0, threads=4)
elif sys.argv[1] == "exit":
    raise SystemExit(3)
"""
)


@pytest.mark.slow
def test_the_status_reports_missing_kernels_and_findings_of_any_process(tmp_path: Path) -> None:
    """Also of a child whose own status nobody reads, and of one that ends without Python's end."""
    program = tmp_path / "program.py"
    program.write_text(LAUNCHES)
    leaves = tmp_path / "leaves.py"
    leaves.write_text(LAUNCHES + "\nos = __import__('os'); os._exit(0)\n")
    hides = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]])"
    wrong = []
    for options, script, kind, status, hidden_status in (
        ("--require-kernels", program, "memory", 67, 67),
        ("--require-kernels", program, "exit", 3, None),
        ("--require-kernels", leaves, "kernel", 0, 0),
        ("--fail-on-findings", leaves, "fault", 66, 66),
        ("--fail-on-findings --checks leak", program, "kernel", 66, 66),
        ("--fail-on-findings --require-kernels", program, "kernel", 0, None),
    ):
        own = ("python", str(script), kind)
        hidden = ("python", "-c", hides, str(script), kind)
        for command, expected in ((own, status), (hidden, hidden_status)):
            if expected is None:
                continue
            ended = run(*EMULATE, *options.split(), *command)
            if ended.status != expected:
                wrong.append((options, command, ended))
    assert wrong == []


@pytest.mark.slow
def test_a_process_notes_its_kernels_in_the_folder_that_the_command_names(tmp_path: Path) -> None:
    program = "import sys; sys.argv[1:] = ['kernel']\n" + LAUNCHES
    names = {"CUDADRV_EMULATE_EVENTS": str(tmp_path)}
    ended = run(*EMULATE, "python", "-c", program, names=names)
    assert (ended.status, [path.name for path in tmp_path.iterdir()]) == (0, ["kernel"]), ended.err
    # A folder that is gone is no fault.
    gone = run(*EMULATE, "python", "-c", program, names={**names, "CUDADRV_EMULATE_EVENTS": "/no"})
    assert (gone.status, gone.err) == (0, "")


@pytest.mark.slow
def test_the_reason_of_not_supported_is_printed_when_the_call_fails() -> None:
    program = (
        BINDINGS
        + """
prepare()
for _ in range(2):
    array = driver.CUDA_ARRAY3D_DESCRIPTOR()
    array.Width, array.Height, array.NumChannels, array.Flags = 8, 8, 1, 0x40
    array.Format = driver.CUarray_format.CU_AD_FORMAT_FLOAT
    print(int(driver.cuArray3DCreate(array)[0]), int(driver.cuMemGetInfo()[0]))
"""
    )
    ended = run(*EMULATE, "python", "-c", program)
    assert (ended.status, ended.out) == (0, "801 0\n801 0\n"), ended.err
    assert ended.err.count("cudadrv: CUDA_ERROR_NOT_SUPPORTED: ") == 1


_NATIVE: Final = """
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  int (*init)(unsigned) = dlsym(cuda, "cuInit"), (*nvml_init)(void) = dlsym(nvml, "nvmlInit_v2");
  int (*name)(int, const char **) = dlsym(cuda, "cuGetErrorName");
  int (*text)(int, const char **) = dlsym(cuda, "cuGetErrorString");
  int numbers[] = {0, 1, 4, 801, 999, 997, 1023, 1024, -1};
  printf("%d %d %d\\n", init(0), init(0), nvml_init());
  for (int at = 0; at < 9; at++) {
    const char *own = "unset", *words = "unset";
    int codes[] = {name(numbers[at], &own), text(numbers[at], &words), name(numbers[at], 0)};
    printf("%d: %d %d %d ", numbers[at], codes[0], codes[1], codes[2]);
    printf("%s, %s\\n", own ? own : "null", words ? words : "null");
  }
  return 0;
}
"""


@pytest.mark.slow
def test_a_process_without_python_prints_one_line_and_has_the_names_of_results(
    tmp_path: Path,
) -> None:
    compiled(tmp_path, _NATIVE)  # skips without a compiler
    program = tmp_path / "native"
    subprocess.run(["cc", tmp_path / "source.c", "-o", program, "-ldl"], check=True)
    ended = run(*EMULATE, str(program))
    results = (
        "0: 0 0 0 CUDA_SUCCESS, no error",
        "1: 0 0 0 CUDA_ERROR_INVALID_VALUE, invalid argument",
        "4: 0 0 0 CUDA_ERROR_DEINITIALIZED, driver shutting down",
        "801: 0 0 0 CUDA_ERROR_NOT_SUPPORTED, operation not supported",
        "999: 0 0 0 CUDA_ERROR_UNKNOWN, unknown error",
        *(f"{number}: 1 1 1 null, null" for number in (997, 1023, 1024, -1)),
    )
    assert (ended.status, ended.out.splitlines()) == (0, ["4 4 9", *results])
    assert sorted(ended.err.splitlines()) == [
        f"cudadrv: no emulator in this process, which runs no Python: functions of {library} "
        f"return {code}"
        for library, code in (
            ("libcuda.so.1", "CUDA_ERROR_DEINITIALIZED"),
            ("libnvidia-ml.so.1", "NVML_ERROR_DRIVER_NOT_LOADED"),
        )
    ]
