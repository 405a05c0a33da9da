"""Limits on a module's constant memory, shared memory and parameters.

CUDA guide, "Technical Specifications per Compute Capability"; PTX ISA, "Kernel Function
Parameters". The numbers are those of ptxas of CUDA 13.0, which are the same for each architecture.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ptx.emulate.requirements.needs import TargetArchitecture, architecture_of
from ptx.errors import PtxError
from ptx.isa.directives import version_of
from ptx.isa.model import Linkage, Space, Variable
from ptx.isa.module import PtxModule
from ptx.signature import KernelSignature

MOST_CONSTANT_BYTES: Final = 64 << 10
MOST_STATIC_SHARED_BYTES: Final = 48 << 10
_MOST_PARAMETER_BYTES: Final = 4352
_MOST_LATER_PARAMETER_BYTES: Final = 32764  # from PTX 8.1 and sm_70 on
_LATER: Final = ((8, 1), TargetArchitecture(70, ""))


class SizeLimitExceeded(PtxError):
    """A module declares more of a kind of memory than a GPU has for it.

    Attributes:
        what: the memory, in words.
        nbytes: the size that the module declares.
        most: what there may be.
    """

    def __init__(self, noun: str, nbytes: int, most: int, remedy: str) -> None:
        self.what = noun
        self.nbytes = nbytes
        self.most = most
        super().__init__(f"{noun}: {nbytes} bytes, at most {most}\n  {remedy}")


def check_sizes(module: PtxModule, signatures: Iterable[KernelSignature]) -> None:
    """Check the constants of a module, and the declarations of each of its kernels.

    Raises:
        SizeLimitExceeded: there is too much of something.
    """
    constants = _constant_bytes(module.static_variables)
    if constants > MOST_CONSTANT_BYTES:
        remedy = "Put large tables into __device__ variables or pass them as pointers."
        raise SizeLimitExceeded("__constant__ memory", constants, MOST_CONSTANT_BYTES, remedy)
    most = _most_parameter_bytes(module)
    for signature in signatures:
        if signature.shared_bytes > MOST_STATIC_SHARED_BYTES:
            raise SizeLimitExceeded(
                f"static __shared__ memory of kernel {signature.name}",
                signature.shared_bytes,
                MOST_STATIC_SHARED_BYTES,
                "Declare it extern and pass its size at the launch (dynamic shared memory).",
            )
        if signature.nbytes > most:
            later = most < _MOST_LATER_PARAMETER_BYTES
            remedy = "Pass a pointer to the data instead"
            remedy += ", or compile for sm_70 and CUDA 12.1 or newer." if later else "."
            raise SizeLimitExceeded(
                f"parameters of kernel {signature.name}", signature.nbytes, most, remedy
            )


def _constant_bytes(variables: Iterable[Variable]) -> int:
    """The size of all constants, one after another."""
    end = 0
    for variable in variables:
        if variable.space is Space.CONST and variable.linkage is not Linkage.EXTERN:
            end = -(-end // variable.align) * variable.align + variable.nbytes
    return end


def _most_parameter_bytes(module: PtxModule) -> int:
    version, target = _LATER
    target_of_module = architecture_of(module.target)
    is_later = (
        target_of_module is not None
        and target_of_module.has(target)
        and version_of(module.version) >= version
    )
    return _MOST_LATER_PARAMETER_BYTES if is_later else _MOST_PARAMETER_BYTES
