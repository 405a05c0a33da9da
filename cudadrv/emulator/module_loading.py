"""Reads and checks an image, and loads it as a module in a context.

Loading the first module imports this file, and with it the PTX parser and the operations.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from ptx.cubin_mark import CUBIN_MARK, marked
from ptx.emulate import ExecutionError, OutOfMemory, Program, UndefinedSymbol
from ptx.errors import ImageFormatError, NvrtcNotFoundError, PtxError
from ptx.isa import PtxModule, PtxSyntaxError, parse
from ptx.isa.directives import required_cluster, version_of
from ptx.isa.fatbin import CUBIN, MAGIC, fatbin_ptx, stored_entries
from ptx.signature import KernelSignature
from ptx.target import ImageKind, Target

from ..driver._api import CUresult
from .call_error import CallError, execution_error
from .modules import KernelFunction, Module, accepts_newer_ptx, newest_ptx

if TYPE_CHECKING:
    from .contexts import Context
    from .driver_state import DriverState

_ELF = b"\x7fELF"
_LTO_IR = b"\xed\x43\x4e\x7f"
# Driver 580 rejects all characters outside ASCII, anywhere; ptxas of CUDA 13.5 accepts comments.
_FOREIGN = re.compile(r"[^\t\n\f\r -~]")
_STATIC_DEFAULT = 49152  # shared memory that a block may use without a setting
# The last version of each major one that has ended (PTX ISA, "Release Notes").
_LAST_MINORS = {1: 5, 2: 3, 3: 2, 4: 3, 5: 1, 6: 5, 7: 8, 8: 8}


# Parsed modules by their text; all are dropped when the texts have more characters. Modules are not
# changed: libraries load one into several contexts.
_parsed: Final[dict[str, PtxModule]] = {}
_MOST_CHARACTERS: Final = 1 << 21
# The signatures of modules that passed the checks which depend on nothing else.
_signatures: Final[WeakKeyDictionary[PtxModule, list[KernelSignature]]] = WeakKeyDictionary()


def place_module(driver: DriverState, parsed: PtxModule, context: Context) -> Module:
    """Load a module into a context.

    Raises:
        CallError: with the reason.
    """
    capability = context.device.profile.compute_capability
    check_device(parsed, capability, driver.process.driver_version)
    signatures = _signatures.get(parsed)
    if signatures is None:
        check_instructions(parsed, capability)
        signatures = _signatures[parsed] = checked_signatures(parsed)
    handle = driver.handles.new()
    program = load_program(parsed, context, f"module {handle:#x}")
    if program.undefined:
        _warn_of_undefined(program.undefined)
    module = Module(handle, context, program)
    for signature in signatures:
        function = new_function(driver.handles.new(), module, signature)
        module.functions[signature.name] = function
        driver.handles.functions[function.handle] = function
    driver.handles.modules[handle] = module
    if driver.checks.assembly is not None:
        driver.checks.assembly.look_at(parsed, capability)
    return module


def _warn_of_undefined(names: list[str]) -> None:
    hidden = f" and {len(names) - 1} more" if len(names) > 1 else ""
    warnings.warn(
        f"the module declares the variable {names[0]}{hidden}, and does not define it: as with the"
        " driver, it is zero. To use that of another source, compile both to LTO-IR"
        " (ptx.Target.ltoir), and join the images with ptx.link",
        RuntimeWarning,
        stacklevel=2,
    )


def new_function(handle: int, module: Module, signature: KernelSignature) -> KernelFunction:
    """Return the function of a kernel that the module defines."""
    entry = module.program.module.functions[signature.name]
    return KernelFunction(
        handle,
        module,
        signature,
        max_dynamic=max(0, _STATIC_DEFAULT - signature.shared_bytes),
        cluster=required_cluster(entry.directives) or (0, 0, 0),
    )


def read_image(image: bytes, capability: tuple[int, int]) -> PtxModule:
    """Parse the module of an image, PTX or a fatbin with PTX for devices of a capability.

    The driver compiles every function at once, so an error in any of them rejects the module. A
    text that was parsed before gives the same module: parsing takes half of the time of a load.

    Raises:
        CallError: with the driver's code for an image that is not PTX, or is wrong.
    """
    if image.startswith((_ELF, _LTO_IR)):
        error = ImageFormatError(
            "the image is machine code or LTO-IR, and the emulator executes PTX: compile for "
            'a target such as ptx.Target.ptx("compute_90")'
        )
        raise CallError(CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU, str(error), error)
    if image.startswith(MAGIC):
        text = ptx_of_fatbin(image, capability)
    else:
        text = image.partition(b"\0")[0].decode(errors="replace")
    parsed = _parsed.get(text)
    if parsed is None:
        parsed = _read_text(text)
        if sum(map(len, list(_parsed)), len(text)) > _MOST_CHARACTERS:
            _parsed.clear()
        if len(text) <= _MOST_CHARACTERS:
            _parsed[text] = parsed
    return parsed


def _read_text(text: str) -> PtxModule:
    """Parse a module.

    Raises:
        CallError: it is not PTX, or is wrong.
    """
    if ".version" not in text:
        raise CallError(
            CUresult.CUDA_ERROR_INVALID_IMAGE, "the image is no PTX: it has no .version directive"
        )
    foreign = _FOREIGN.search(text)
    if foreign is not None:
        line = text.count("\n", 0, foreign.start()) + 1
        raise CallError(
            CUresult.CUDA_ERROR_INVALID_PTX,
            f"line {line} has the character {foreign.group()!a}; PTX is ASCII, in comments and "
            "strings as well",
        )
    try:
        module = parse(text)
        for function in module.functions.values():
            if function.span is not None:
                module.body(function.name)
    except PtxSyntaxError as error:
        raise CallError(CUresult.CUDA_ERROR_INVALID_PTX, str(error), error) from None
    return module


def ptx_of_fatbin(image: bytes, capability: tuple[int, int]) -> str:
    """Return the PTX of a fatbin for devices of a capability, in place of a cubin for them.

    Raises:
        CallError: CUDA_ERROR_NO_BINARY_FOR_GPU, if it has none that can be read.
    """
    try:
        text = fatbin_ptx(image, capability)
        has_cubin = any(
            Target(ImageKind.CUBIN, entry.architecture, entry.suffix).runs_on(capability)
            for entry in stored_entries(image)
            if entry.kind == CUBIN
        )
        return marked(text) if has_cubin else text
    except ImageFormatError as error:
        raise CallError(CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU, str(error), error) from None


def _ptx_of_nvrtc(newest: tuple[int, int]) -> tuple[int, int]:
    """Return the PTX of the installed NVRTC, if it is newer: its driver is released as well."""
    from ptx import _nvrtc  # loads the library, which only newer PTX needs

    try:
        return max(newest, newest_ptx(_nvrtc.version()))
    except NvrtcNotFoundError:
        return newest


def check_device(
    module: PtxModule, capability: tuple[int, int], driver_version: tuple[int, int]
) -> None:
    """Reject PTX that is newer than the driver, for another architecture, or not for the device.

    Raises:
        CallError: CUDA_ERROR_UNSUPPORTED_PTX_VERSION or CUDA_ERROR_INVALID_PTX.
    """
    newest, version = newest_ptx(driver_version), version_of(module.version)
    if version > newest and accepts_newer_ptx(driver_version):
        newest = _ptx_of_nvrtc(newest)
    if version[0] == newest[0] and module.text.endswith(CUBIN_MARK):
        newest = max(newest, version)  # minor version compatibility
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
    try:
        Program.check_target(module)
    except PtxError as error:
        raise CallError(CUresult.CUDA_ERROR_INVALID_PTX, str(error), error) from None
    digits = module.target.removeprefix("sm_").rstrip("af")
    required = (int(digits[:-1]), int(digits[-1]))
    exact = module.target.endswith("a") and required != capability
    family = module.target.endswith("f") and required[0] != capability[0]
    if required > capability or exact or family:
        raise CallError(
            CUresult.CUDA_ERROR_INVALID_PTX,
            f"the PTX is for .target {module.target}, the device has compute capability "
            f"{capability[0]}.{capability[1]}",
        )
    if capability >= (9, 0):
        _reject_short_addresses(module)


def _reject_short_addresses(module: PtxModule) -> None:
    """Reject conversions of addresses in 32 bits, as the assembler does for these devices."""
    words = [
        (module.line_of(word), word)
        for word in module.instruction_words
        if word.startswith("cvta.") and "u32" in word.split(".")
    ]
    if words:
        line, word = min(words)
        raise CallError(
            CUresult.CUDA_ERROR_INVALID_PTX,
            f"{word} at PTX line {line} converts an address of 32 bits, which compute capability"
            " 9.0 and newer do not have",
        )


def check_instructions(module: PtxModule, capability: tuple[int, int]) -> None:
    """Reject PTX that is beyond its own target, or uses what it does not define.

    Raises:
        CallError: CUDA_ERROR_INVALID_PTX; CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC for
            `cudaDeviceSynchronize` on compute capability 9.0 and newer.
    """
    try:
        Program.check(module)
    except UndefinedSymbol as error:  # with the assembler's words, which programs look for
        if error.symbol == "cudaDeviceSynchronize" and capability >= (9, 0):
            code, words = CUresult.CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, "Unsupported Function"
        else:
            code, words = CUresult.CUDA_ERROR_INVALID_PTX, "Unresolved extern function"
        raise CallError(code, f"{words} {error.symbol!r}: {error}", error) from None
    except PtxError as error:
        raise CallError(CUresult.CUDA_ERROR_INVALID_PTX, str(error), error) from None


def checked_signatures(module: PtxModule) -> list[KernelSignature]:
    """Return the signatures of a module's kernels, if a GPU has the memory for them.

    Raises:
        CallError: CUDA_ERROR_INVALID_PTX.
    """
    try:
        return Program.signatures_of(module)
    except PtxError as error:
        raise CallError(CUresult.CUDA_ERROR_INVALID_PTX, str(error), error) from None


def load_program(module: PtxModule, context: Context, name: str) -> Program:
    """Place the module's variables on the context's device.

    Raises:
        CallError: CUDA_ERROR_OUT_OF_MEMORY, or CUDA_ERROR_INVALID_PTX for unplaceable variables.
    """
    try:
        with context.device.lock:
            model = context.device.model
            return Program(module, model, name=name)
    except OutOfMemory as error:
        raise CallError(CUresult.CUDA_ERROR_OUT_OF_MEMORY, f"out of memory: {error}") from None
    except ExecutionError as error:
        raise execution_error(error) from None
    except PtxError as error:
        raise CallError(CUresult.CUDA_ERROR_INVALID_PTX, str(error), error) from None
