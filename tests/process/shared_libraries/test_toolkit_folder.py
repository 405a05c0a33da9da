"""The folder with the layout of a CUDA toolkit, as programs look into one."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from cudadrv.emulator.shared_libraries.nvrtc_files import nvrtc_file

from .process import environment, run


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a user without a toolkit."""
    for name in ("CUDA_PATH", "CUDA_HOME", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    return {"CUDADRV_CACHE_DIR": str(tmp_path / "cache")}


FILES = (
    "lib64/libcuda.so", "lib/libcuda.so.1", "lib64/stubs/libcuda.so", "lib64/libnvidia-ml.so.1",
    "lib64/libnvrtc.so", "targets/x86_64-linux/lib/libnvrtc.so", "include/cuda.h",
    "targets/x86_64-linux/include/cuda_runtime.h", "include/crt/host_defines.h",
)  # fmt: skip


def test_the_folder_has_the_parts_where_programs_look_for_them(names: dict[str, str]) -> None:
    nvrtc = nvrtc_file()
    if nvrtc is None or not (Path(nvrtc).parents[1] / "include" / "cuda.h").exists():
        pytest.skip("needs NVRTC and the headers beside it")
    first = run("-m", "cudadrv", "toolkit", names=names)
    assert (first.status, first.err) == (0, "")
    folder = Path(first.out.rstrip("\n"))
    assert [name for name in FILES if not (folder / name).is_file()] == []
    assert (folder / "lib64/libnvrtc.so").samefile(nvrtc)
    assert (folder / "lib64" / Path(nvrtc).name).samefile(nvrtc)
    version = json.loads((folder / "version.json").read_text())["cuda"]["version"]
    # As programs do that read no JSON.
    defined = (folder / "include/cuda.h").read_text().partition("#define CUDA_VERSION ")[2]
    assert int(version.partition(".")[0]) == int(defined.split()[0]) // 1000
    (folder / "bin/nvcc").unlink()
    (folder / "complete").unlink()
    assert run("-m", "cudadrv", "toolkit", names=names).out == first.out
    for tool in ("nvcc", "ptxas"):
        done = subprocess.run(
            [folder / "bin" / tool, "--version"],
            env=environment(names),
            capture_output=True,
            text=True,
            check=True,
        )
        assert "cudadrv" in done.stdout


PROGRAM = """
import os, subprocess
from pathlib import Path
for name in ("CUDA_PATH", "CUDA_HOME"):
    print(os.environ[name], flush=True)
nvcc = Path(os.environ["CUDA_PATH"], "bin", "nvcc")
if nvcc.exists():
    Path("k.cu").write_text("__global__ void k(int* x) { *x = 1; }")
    print(subprocess.call([nvcc, "-ptx", "k.cu"]), b".entry" in Path("k.ptx").read_bytes())
    # A tool that is found by PATH as well does not start itself again.
    os.environ["PATH"] = f"{nvcc.parent}{os.pathsep}/usr/bin"
    print(subprocess.call([nvcc, "host.cu"], stderr=subprocess.DEVNULL))
"""


@pytest.mark.slow
def test_emulate_names_the_folder_unless_the_user_has_a_toolkit(
    names: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    emulate = ("-m", "cudadrv", "emulate", "python", "-c", PROGRAM)
    folder = run("-m", "cudadrv", "toolkit", names=names).out.rstrip("\n")
    ended = run(*emulate, names={**names, "PYTHONPATH": os.environ.get("PYTHONPATH", "")})
    assert (ended.status, ended.out) == (0, f"{folder}\n{folder}\n0 True\n1\n"), ended.err
    own = {**names, "CUDA_PATH": "/nowhere"}
    assert run(*emulate, names=own).out == f"/nowhere\n{folder}\n"
