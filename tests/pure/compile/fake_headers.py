"""Folders that tell a version of CUDA as a toolkit's and a package's headers do."""

from __future__ import annotations

import os
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

import ptx
from ptx import _nvrtc


def write_runtime(include: Path, major: int, minor: int) -> Path:
    """The runtime's headers, as far as their version and the names that are asked for."""
    include.mkdir(parents=True, exist_ok=True)
    text = f"#pragma once\n#define CUDART_VERSION  {major}0{minor}0\n"
    (include / "cuda_runtime_api.h").write_text(text)
    (include / "cuda_fp16.h").write_text(f"#define FAKE_OF {major * 100 + minor}\n")
    return include


def write_cccl(include: Path, major: int, minor: int) -> Path:
    """CCCL as a toolkit of CUDA `major`.`minor` has it: 3.N is that of 13.N, 2.N of 12.(N + 1)."""
    ours = minor if major >= 13 else minor - 1
    moved = (major, minor) >= (12, 5)
    where = "cuda/std/__cccl" if moved else "cuda/std/detail/libcxx/include/__cccl"
    (include / where).mkdir(parents=True)
    (include / where / "version.h").write_text(f"#define CCCL_VERSION {major - 10}00{ours}001\n")
    (include / "cuda/std/type_traits").write_text("")
    return include


def write_crt(include: Path) -> Path:
    """The compiler's own headers, which tell no version."""
    (include / "crt").mkdir(parents=True)
    (include / "crt/mma.h").write_text("")
    return include


def write_toolkit(root: Path, major: int, minor: int) -> Path:
    """A toolkit's folder with the headers of one version."""
    include = write_runtime(root / "include", major, minor)
    write_cccl(include / "cccl" if major >= 13 else include, major, minor)
    write_crt(include)
    return root


def link_bindings(packages: Path, site: Path) -> None:
    """Let another folder have the bindings and what they need, and no library of CUDA."""
    for name in ("cuda", "numpy", "numpy.libs", "platformdirs"):
        if (packages / name).exists():
            (site / name).symlink_to(packages / name)
    for info in packages.glob("cuda_bindings-*.dist-info"):
        (site / info.name).symlink_to(info)


def environment_without_headers(home: Path) -> Callable[..., str]:
    """A virtual environment that has NVRTC and no package with headers.

    What it gives runs Python there with arguments and variables, and answers what is printed.
    """
    (major, minor), library = ptx.nvrtc_version(), _nvrtc.library_path("nvrtc")
    if (major, minor) < (13, 3):
        pytest.skip("this NVRTC bundles no headers")
    folder = Path(library or "").parent
    if folder.parts[-3:] != ("nvidia", f"cu{major}", "lib"):
        pytest.skip("NVRTC does not come from a pip package")
    venv.EnvBuilder(symlinks=True).create(home)
    (site,) = home.glob("lib/python*/site-packages")
    packages = folder.parents[2]
    link_bindings(packages, site)
    (site / "nvidia" / f"cu{major}").mkdir(parents=True)
    (site / "nvidia" / f"cu{major}" / "lib").symlink_to(folder)

    def run(*arguments: str, **variables: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(Path(ptx.__file__).parents[1]), **variables}
        command = [str(home / "bin" / "python"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
