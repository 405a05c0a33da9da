"""Folders that tell a version of CUDA as a toolkit's and a package's headers do."""

from __future__ import annotations

from pathlib import Path


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
