"""Modules and functions, as the emulator keeps them."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ptx.emulate.model.errors import OutOfMemory, UndefinedSymbol, UnsupportedInstruction
from ptx.emulate.program import EmulatedKernel, Program
from ptx.emulate.requirements.check import UnsupportedTarget, check_requirements
from ptx.emulate.requirements.needs import version_of
from ptx.emulate.requirements.sizes import check_sizes
from ptx.errors import PtxError
from ptx.isa import PtxModule, PtxSyntaxError, parse
from ptx.isa.signature import signature_of
from ptx.signature import KernelSignature

from ..driver._api import CUresult
from .call_error import CallError

if TYPE_CHECKING:
    from .contexts import Context


Dim3 = tuple[int, int, int]
NO_CLUSTER: Final = (1, 1, 1)
_ELF = b"\x7fELF"
_FATBIN = b"\x50\xed\x55\xba"
_LTO_IR = b"\xed\x43\x4e\x7f"
_STRING = re.compile(r'"[^"]*"')
_STATIC_DEFAULT = 49152  # shared memory a block may have without asking
# The last version of each major one that has ended (PTX ISA, "Release Notes").
_LAST_MINORS = {1: 5, 2: 3, 3: 2, 4: 3, 5: 1, 6: 5, 7: 8, 8: 8}


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


def new_function(handle: int, module: Module, signature: KernelSignature) -> Function:
    """The function of a kernel that the module defines."""
    entry = module.program.module.functions[signature.name]
    required = (*entry.directives.get("reqnctapercluster", ()), 1, 1, 1)[:3]
    has_cluster = "reqnctapercluster" in entry.directives
    return Function(
        handle,
        module,
        signature,
        max_dynamic=max(0, _STATIC_DEFAULT - signature.shared_bytes),
        cluster=(required[0], required[1], required[2]) if has_cluster else (0, 0, 0),
    )


def read_image(image: bytes) -> PtxModule:
    """The module of an image.

    Raises:
        CallError: with the driver's code for an image that is no PTX, or is wrong.
    """
    if image.startswith((_ELF, _FATBIN, _LTO_IR)):
        raise CallError(
            CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU,
            "the image is machine code or LTO-IR, and the emulator executes PTX: compile for "
            'a target such as ptx.Target.ptx("compute_90")',
        )
    text = image.rstrip(b"\0").decode(errors="replace")
    if ".version" not in text:
        raise CallError(
            CUresult.CUDA_ERROR_INVALID_IMAGE, "the image is no PTX: it has no .version directive"
        )
    if not text.isascii():
        _refuse_other_characters(text)
    try:
        return parse(text)
    except PtxSyntaxError as error:
        raise CallError(CUresult.CUDA_ERROR_INVALID_PTX, str(error), error) from None


def _refuse_other_characters(text: str) -> None:
    """PTX is ASCII text, its comments as well: measured with driver 580. Strings are not looked at.

    Raises:
        CallError: CUDA_ERROR_INVALID_PTX.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if not _STRING.sub("", line).isascii():
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_PTX,
                f"line {number} has a character that is no ASCII, which PTX may not have even in "
                "comments",
            )


def check_target(
    module: PtxModule, capability: tuple[int, int], driver_version: tuple[int, int]
) -> None:
    """Refuse PTX that is newer than the driver, for another architecture, or beyond its own target.

    Raises:
        CallError: CUDA_ERROR_UNSUPPORTED_PTX_VERSION or CUDA_ERROR_INVALID_PTX.
    """
    newest, version = newest_ptx(driver_version), version_of(module.version)
    if version[1] > _LAST_MINORS.get(version[0], version[1] if version[0] else -1):
        raise CallError(
            CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
            f"unsupported .version {module.version}: there is no such version of PTX",
        )
    if version > newest:
        raise CallError(
            CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
            f"unsupported .version {module.version}; the newest that driver "
            f"{driver_version[0]}.{driver_version[1]} takes is {newest[0]}.{newest[1]}",
        )
    if module.address_size != 64:
        raise CallError(
            CUresult.CUDA_ERROR_INVALID_PTX,
            f"unsupported .address_size {module.address_size}: the driver takes 64",
        )
    digits = module.target.removeprefix("sm_").rstrip("af")
    wanted = (int(digits[:-1]), int(digits[-1]))
    exact = module.target.endswith("a") and wanted != capability
    family = module.target.endswith("f") and wanted[0] != capability[0]
    if wanted > capability or exact or family:
        raise CallError(
            CUresult.CUDA_ERROR_INVALID_PTX,
            f"the PTX is for .target {module.target}, the device has compute capability "
            f"{capability[0]}.{capability[1]}",
        )
    try:
        check_requirements(module)
    except UnsupportedTarget as error:
        raise CallError(CUresult.CUDA_ERROR_INVALID_PTX, str(error), error) from None


def newest_ptx(toolkit: tuple[int, int]) -> tuple[int, int]:
    """The PTX ISA of a CUDA release: 13.x has 9.x; 12.9 has 8.8 (PTX ISA, "Release Notes")."""
    major, minor = toolkit
    if major >= 13:
        return major - 4, minor
    # 12.5 and 12.6 share one.
    return (8, minor - (minor > 5)) if major == 12 else (7, minor)


def checked_signatures(module: PtxModule) -> list[KernelSignature]:
    """The signatures of the kernels that a module defines, if a GPU has the memory for them.

    Raises:
        CallError: CUDA_ERROR_INVALID_PTX.
    """
    try:
        found = [signature_of(module, each) for each in module.entries if each.span is not None]
        check_sizes(module, found)
    except PtxError as error:
        raise CallError(CUresult.CUDA_ERROR_INVALID_PTX, str(error), error) from None
    return found


def load_program(module: PtxModule, context: Context, name: str) -> Program:
    """Place the module's variables on the context's device.

    Raises:
        CallError: CUDA_ERROR_OUT_OF_MEMORY, or CUDA_ERROR_INVALID_PTX for what cannot be placed.
    """
    try:
        with context.device.lock:
            model = context.device.model
            return context.device.run_alone(lambda: Program(module, model, name=name))
    except OutOfMemory as error:
        raise CallError(CUresult.CUDA_ERROR_OUT_OF_MEMORY, f"out of memory: {error}") from None
    except UnsupportedInstruction as error:
        raise CallError(CUresult.CUDA_ERROR_NOT_SUPPORTED, str(error), error) from None
    except PtxError as error:
        raise CallError(CUresult.CUDA_ERROR_INVALID_PTX, str(error), error) from None
