"""The emulator's modules, libraries and kernels; `module_loading` makes them of images."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ptx.emulate.model.errors import UndefinedSymbol, UnsupportedInstruction
from ptx.isa import PtxSyntaxError

from ..driver._api import CUresult
from .call_error import CallError

if TYPE_CHECKING:
    from ptx.emulate.program import EmulatedKernel, Program
    from ptx.isa import PtxModule
    from ptx.signature import KernelSignature

    from .contexts import Context


Dim3 = tuple[int, int, int]
NO_CLUSTER: Final = (1, 1, 1)


@dataclass(frozen=True, slots=True)
class Shape:
    """A launch without its parameters; `cluster` is `NO_CLUSTER` where it has no clusters."""

    grid: Dim3
    block: Dim3
    shared_bytes: int
    cooperative: bool = False
    cluster: Dim3 = NO_CLUSTER


@dataclass(eq=False, slots=True)
class Function:
    """A kernel of a module, generated when its first use needs it.

    Attributes:
        max_dynamic: dynamic shared memory that a launch may ask for.
        carveout: preferred share of shared memory in the L1, -1 for the default; without effect.
        cluster: required cluster shape, zeros if no shape is required.
        approved: launch shapes that passed the checks.
    """

    handle: int
    module: Module
    signature: KernelSignature
    max_dynamic: int
    carveout: int = -1
    non_portable: bool = False
    cluster: tuple[int, int, int] = (0, 0, 0)
    closed: bool = False
    approved: set[Shape] = field(default_factory=set)
    _kernel: EmulatedKernel | None = None

    @property
    def name(self) -> str:
        """The kernel's name in the PTX."""
        return self.signature.name

    @property
    def shown(self) -> str:
        """The kernel's name in errors: its name expression if known, else its name."""
        return self.module.program.shown.get(self.name, self.name)

    @property
    def directives(self) -> Mapping[str, tuple[int, ...]]:
        """The kernel's performance-tuning directives with their numbers."""
        return self.module.program.module.functions[self.name].directives

    def kernel(self) -> EmulatedKernel:
        """The kernel, ready to run.

        Raises:
            CallError: CUDA_ERROR_NOT_SUPPORTED with the opcode and its line, if it uses an
                instruction that the emulator does not know; CUDA_ERROR_INVALID_PTX if it is
                wrong, or names what its module does not define.
        """
        kernel = self._kernel
        if kernel is None:
            try:
                with self.module.context.device.lock:
                    kernel = self._kernel = self.module.program.kernel(self.name)
            except UnsupportedInstruction as error:
                raise CallError(CUresult.CUDA_ERROR_NOT_SUPPORTED, str(error), error) from None
            except (PtxSyntaxError, UndefinedSymbol) as error:
                raise CallError(CUresult.CUDA_ERROR_INVALID_PTX, str(error), error) from None
        return kernel


@dataclass(eq=False, slots=True)
class Module:
    """A PTX text loaded in a context; `functions` has a `Function` for each kernel, by name."""

    handle: int
    context: Context
    program: Program
    functions: dict[str, Function] = field(default_factory=dict)

    def close(self) -> None:
        """Free its variables; its functions are dead from now on."""
        for function in self.functions.values():
            function.closed = True
        with self.context.device.lock:
            self.context.device.run_alone(self.program.close)

    def variable(self, name: bytes) -> tuple[int, int]:
        """Address and size of a variable.

        Raises:
            CallError: CUDA_ERROR_NOT_FOUND, if there is none of this name.
        """
        text = bytes(name).decode(errors="replace")
        found = self.program.globals.get(text)
        if found is None:
            raise CallError(
                CUresult.CUDA_ERROR_NOT_FOUND, f"named symbol not found: no variable is {text!r}"
            )
        return found

    def holds(self, address: int) -> bool:
        """Whether a variable of the module starts at an address."""
        return any(start == address for start, _ in self.program.globals.values())


@dataclass(eq=False, slots=True)
class LibraryKernel:
    """A kernel of a library, which is a function in each context.

    Attributes:
        attributes: what was set, by device and attribute, for the functions that are made later.
    """

    handle: int
    library: Library
    name: str
    attributes: dict[tuple[int, int], int] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Library:
    """An image that no context owns.

    Attributes:
        kernels: by name.
        modules: what it is in each context that has needed it.
    """

    handle: int
    image: PtxModule
    kernels: dict[str, LibraryKernel] = field(default_factory=dict)
    modules: dict[Context, Module] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class PendingLink:
    """A link under way: its options, its inputs by name, and what came of it."""

    options: Mapping[int, object] = field(default_factory=dict)
    inputs: list[tuple[str, str]] = field(default_factory=list)
    image: ctypes.Array[ctypes.c_char] | None = None


def newest_ptx(toolkit: tuple[int, int]) -> tuple[int, int]:
    """The PTX ISA of a CUDA release: 13.x has 9.x; 12.9 has 8.8 (PTX ISA, "Release Notes")."""
    major, minor = toolkit
    if major >= 13:
        return major - 4, minor
    # 12.5 and 12.6 share one.
    return (8, minor - (minor > 5)) if major == 12 else (7, minor)
