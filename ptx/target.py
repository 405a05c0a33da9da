"""The target of an image: its kind and its architecture."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from ptx.argument_checks import checks, shown
from ptx.base_errors import PtxArgumentTypeError, PtxArgumentValueError

__all__ = ["ImageKind", "Target"]

_SPELLING = r"(compute|sm|lto)_(\d{2,3})([af]?)"


class ImageKind(Enum):
    """The form of an image's bytes."""

    PTX = "ptx"
    CUBIN = "cubin"
    LTOIR = "ltoir"
    FATBIN = "fatbin"


_KIND_OF_PREFIX = {"compute": ImageKind.PTX, "sm": ImageKind.CUBIN, "lto": ImageKind.LTOIR}


@dataclass(frozen=True, slots=True)
class Target:
    """An image kind and an architecture, such as a cubin for sm_90a.

    `number` is the architecture as NVRTC counts it (90 is compute capability 9.0, 121 is 12.1).
    `suffix` is "" for a portable architecture, "a" for one capability alone (sm_90a) and "f" for a
    family. For example, sm_100f runs on 10.0 and on later minors of the same family. Source: CUDA
    C++ Programming Guide, "Feature Set Compiler Targets".

    Raises:
        TypeError: `kind` is no `ImageKind`; `Target.parse("sm_90")` reads a spelling.
        ValueError: there is no such suffix or number.
    """

    kind: ImageKind
    number: int
    suffix: str = ""

    def __post_init__(self) -> None:
        kind: object = self.kind
        if not isinstance(kind, ImageKind):
            raise PtxArgumentTypeError(
                f'kind {shown(kind)}: expected an ImageKind, or Target.parse("sm_90")'
            )
        if checks.instance_of("Target: suffix", self.suffix, str) not in ("", "a", "f"):
            raise PtxArgumentValueError(
                f"architecture suffix {shown(self.suffix)}: expected '', 'a' or 'f'"
            )
        number = checks.integer("Target: number", self.number)
        if not 10 <= number <= 999:
            raise PtxArgumentValueError(f"architecture number {number}: expected such as 90 or 120")
        object.__setattr__(self, "number", number)  # NumPy's integers differ

    @classmethod
    def ptx(cls, arch: str) -> Target:
        """PTX text for a virtual architecture: "compute_90" (or "sm_90", the same one)."""
        return _spelled(arch, ImageKind.PTX)

    @classmethod
    def cubin(cls, arch: str) -> Target:
        """Machine code for a real architecture: "sm_90", "sm_90a", "sm_100f"."""
        return _spelled(arch, ImageKind.CUBIN)

    @classmethod
    def ltoir(cls, arch: str) -> Target:
        """Intermediate code for linking with `ptx.link`: "sm_90"."""
        return _spelled(arch, ImageKind.LTOIR)

    @classmethod
    def parse(cls, text: str) -> Target:
        """The target that a spelling means: compute_90 is PTX, sm_90 a cubin, lto_90 LTO-IR.

        Raises:
            ValueError: `text` is none of these spellings.
        """
        return _spelled(text, None)

    @classmethod
    def of_capability(
        cls, kind: ImageKind, compute_capability: tuple[int, int], suffix: str = ""
    ) -> Target:
        """The target of one kind for a compute capability such as (9, 0)."""
        major, minor = checks.int_pair(
            "Target.of_capability: compute_capability", compute_capability
        )
        return cls(kind, major * 10 + minor, suffix)

    @property
    def compute_capability(self) -> tuple[int, int]:
        """The least capability that runs this target's code."""
        return divmod(self.number, 10)

    @property
    def virtual(self) -> str:
        """The virtual architecture's name, such as compute_90a."""
        return f"compute_{self.number}{self.suffix}"

    @property
    def real(self) -> str:
        """The real architecture's name, such as sm_90a."""
        return f"sm_{self.number}{self.suffix}"

    @property
    def arch(self) -> str:
        """The name as NVRTC's --gpu-architecture takes it for this kind."""
        prefix = "compute" if self.kind is ImageKind.PTX else "sm"
        return f"{prefix}_{self.number}{self.suffix}"

    def as_kind(self, kind: ImageKind) -> Target:
        """Return the same architecture in another kind."""
        return Target(kind, self.number, self.suffix)

    def runs_on(self, compute_capability: tuple[int, int]) -> bool:
        """Return whether a device of this capability runs the code, after JIT where it is PTX.

        A cubin runs on its own major with the same or a later minor; PTX on every later
        capability; "a" only on its own; "f" on its own major from its own minor. Source: CUDA C++
        Programming Guide, "Binary Compatibility" and "Feature Set Compiler Targets".
        """
        compute_capability = checks.int_pair(
            "Target.runs_on: compute_capability", compute_capability
        )
        own_capability = self.compute_capability
        if self.suffix == "a":
            return compute_capability == own_capability
        if self.kind is ImageKind.PTX and not self.suffix:
            return compute_capability >= own_capability
        return (
            compute_capability[0] == own_capability[0]
            and compute_capability[1] >= own_capability[1]
        )

    def __str__(self) -> str:
        return f"{self.kind.value} for {self.arch}"


def _spelled(text: str, kind: ImageKind | None) -> Target:
    match = re.fullmatch(_SPELLING, checks.instance_of("an architecture", text, str))
    if match is None:
        raise PtxArgumentValueError(
            f"{shown(text)} is not an architecture\n"
            "  give one such as 'compute_90', 'sm_90', 'sm_90a', 'sm_100f' or 'lto_90'"
        )
    prefix, number, suffix = match.groups()
    return Target(kind or _KIND_OF_PREFIX[prefix], int(number), suffix)
