"""The pip packages that bring CUDA's headers."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PACKAGES = (
    ("nvidia-cuda-crt", r"crt/.*"),
    ("nvidia-cuda-cccl", r"(cuda|cub|thrust|nv)/.*"),
    ("nvidia-curand", r"curand\w*\.h"),
    ("nvidia-cublas", r"(cublas|nvblas)\w*\.h"),
    ("nvidia-cufft", r"cufft\w*\.h"),
    ("nvidia-cuda-profiler-api", r"cuda_?[pP]rofiler\w*\.h"),
    (
        "nvidia-cuda-runtime",
        r"cooperative_groups(\.h|/.*)|cuda(_\w+)?\.(h|hpp)|cudart_platform\.h|cuComplex\.h|mma\.h"
        r"|(sm_\d+|vector|builtin|device|driver|channel|common|host|library|math|surface|texture)"
        r"_\w+\.(h|hpp)",
    ),
)
_NAMES_12 = {"nvidia-cuda-crt": "nvidia-cuda-nvcc-cu12"}
_OF_PART = {
    "runtime": "nvidia-cuda-runtime",
    "CCCL": "nvidia-cuda-cccl",
    "crt": "nvidia-cuda-crt",
}


def package_of(header: str, major: int) -> str | None:
    """The pip package that brings one of CUDA's headers, or None for a header of others.

    `major` is CUDA's major version.
    """
    for package, pattern in _PACKAGES:
        if re.fullmatch(pattern, header):
            return _published(package, major)
    return None


def package_of_part(part: str, major: int) -> str:
    """The pip package that brings a part, as `HeaderFolder.versions` names it."""
    return _published(_OF_PART[part], major)


def install_command(packages: Iterable[str], nvrtc: tuple[int, int]) -> str:
    """The pip command that brings packages in the version that goes with an NVRTC."""
    return "pip install " + " ".join(f'"{_pinned(p, *nvrtc)}"' for p in dict.fromkeys(packages))


def _published(package: str, major: int) -> str:
    return package if major >= 13 else _NAMES_12.get(package, f"{package}-cu12")


def _pinned(package: str, major: int, minor: int) -> str:
    if package == "nvidia-cuda-cccl" and major == 13 and minor >= 3:
        return f"{package}==13.3.{minor}.*"  # CUDA's major version, then CCCL's own
    if package.startswith("nvidia-cuda-"):
        return f"{package}=={major}.{minor}.*"
    return package  # the libraries count their versions by themselves
