"""One compilation of NVVM IR by libNVVM, with no cache in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ptx import _nvrtc
from ptx.errors import NvvmError, NvvmNotFoundError
from ptx.image import Image
from ptx.isa.signature import known_signatures
from ptx.nvvm_options import NvvmOptions
from ptx.nvvm_text import fault_of
from ptx.options import DEFAULT_TARGET
from ptx.target import Target

NvvmModule = tuple[str, bytes]
"""The name that messages have, and NVVM IR as text or as bitcode."""

_BITCODE: Final = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")  # as it is, and wrapped
_BLACKWELL: Final = 100  # from here on the IR is that of a later LLVM than 7
_LIBDEVICE: Final = "libdevice.10.bc"


class NvvmProgram(_nvrtc.InUse):
    """One nvvmProgram: modules added, compiled, read, destroyed at the end of its `with`."""

    def __init__(self, options: Sequence[str]) -> None:
        self._api = _nvrtc.nvvm_api()
        self._options = tuple(options)
        # nvvmResult nvvmCreateProgram(nvvmProgram *)
        self._handle = self._api.create_program()

    def _destroy(self) -> None:
        # nvvmResult nvvmDestroyProgram(nvvmProgram *)
        self._api.destroy_program(self._handle)

    def add(self, name: str, data: bytes, *, lazily: bool = False) -> None:
        """Add a module; one that is added lazily gives only what others use."""
        # nvvmResult nvvmAddModuleToProgram(nvvmProgram, const char *, size_t, const char *name)
        api = self._api
        add = api.lazy_add_module_to_program if lazily else api.add_module_to_program
        try:
            add(self._handle, data, len(data), name)
        except api.nvvmError as error:
            raise self._refused(f"libNVVM does not take {name!r}", error) from error

    def compile(self) -> bytes:
        """Verify and compile what was added."""
        api, handle, count = self._api, self._handle, len(self._options)
        try:
            # nvvmResult nvvmVerifyProgram(nvvmProgram, int numOptions, const char **options)
            api.verify_program(handle, count, self._options)
            # nvvmResult nvvmCompileProgram(nvvmProgram, int numOptions, const char **options)
            api.compile_program(handle, count, self._options)
        except api.nvvmError as error:
            raise self._refused("the NVVM IR does not compile", error) from error
        return self._read(api.get_compiled_result_size, api.get_compiled_result)

    def log(self) -> str:
        """What libNVVM has said."""
        data = self._read(self._api.get_program_log_size, self._api.get_program_log)
        return data.rstrip(b"\0").decode(errors="replace").strip("\n")

    def _refused(self, message: str, error: Exception) -> NvvmError:
        return NvvmError(f"{message}: {error}", self.log(), self._options)

    def _read(self, size_of: Callable[[int], int], read: Callable[[int, bytearray], None]) -> bytes:
        data = bytearray(size_of(self._handle))
        if data:
            read(self._handle, data)
        return bytes(data)


def build_nvvm(modules: Sequence[NvvmModule], libdevice: bytes, options: NvvmOptions) -> Image:
    """Compile with libNVVM; `libdevice` is that of `libdevice_for`.

    Raises:
        NvvmError: the IR or an option is refused; it carries the log.
        NvvmNotFoundError: libNVVM is not installed.
    """
    started = time.perf_counter()
    target = options.target or DEFAULT_TARGET
    flags = options.for_target(target).flags()
    _refuse_what_ends_the_process(modules, target, flags)
    with NvvmProgram(flags) as program:
        for name, data in modules:
            program.add(name, data)
        if libdevice:
            program.add(_LIBDEVICE, libdevice, lazily=True)
        text = program.compile().rstrip(b"\0").decode(errors="replace")
        log = program.log()
    signatures, remark = known_signatures(text)
    return Image(
        target=target,
        data=text.encode(),
        ptx=text,
        log="\n".join(filter(None, (log, remark))),
        signatures=signatures,
        build_ms=(time.perf_counter() - started) * 1e3,
    )


def _refuse_what_ends_the_process(
    modules: Sequence[NvvmModule], target: Target, options: Sequence[str]
) -> None:
    for number, (name, data) in enumerate(modules):
        if not data.startswith(_BITCODE):
            text, is_old = data.decode(errors="replace"), target.number < _BLACKWELL
            fault = fault_of(text, is_first=number == 0, is_old=is_old)
            if fault is not None:
                message = f"libNVVM would end the process at {name!r}: {fault}"
                raise NvvmError(message, "", options)


def libdevice_for(modules: Sequence[NvvmModule]) -> bytes:
    """CUDA's mathematical functions as bitcode, where modules may call them.

    Raises:
        NvvmNotFoundError: they are called, and not installed.
    """
    texts = [data for _, data in modules if not data.startswith(_BITCODE)]
    named = any(b"@__nv_" in data for data in texts)
    if not named and len(texts) == len(modules):
        return b""
    _nvrtc.nvvm_api()
    library = _nvrtc.library_path("nvvm")
    root = Path(library).parents[1] if library else Path("/")
    # A toolkit's lies in nvvm/lib64, or in lib beside nvvm.
    for folder in (root / "libdevice", root / "nvvm" / "libdevice", root.parent / "nvvm/libdevice"):
        if (folder / _LIBDEVICE).exists():
            return (folder / _LIBDEVICE).read_bytes()
    if not named:
        return b""
    raise NvvmNotFoundError(
        "pip install nvidia-nvvm", f"{library} has no {_LIBDEVICE} beside it, and the IR calls it"
    )
