"""Every error that package `ptx` raises by itself derives from `PtxError`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from ptx.base_errors import (
    FunctionNotFoundError as FunctionNotFoundError,
    PtxArgumentError as PtxArgumentError,
    PtxArgumentTypeError as PtxArgumentTypeError,
    PtxArgumentValueError as PtxArgumentValueError,
    PtxError as PtxError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptx.diagnostics import Diagnostic
    from ptx.options import CompileOptions
    from ptx.target import Target

__all__ = [
    "CompileCancelledError",
    "CompileError",
    "DisassembleError",
    "FatbinError",
    "FunctionNotFoundError",
    "HeaderNotFoundError",
    "HeaderVersionError",
    "ImageFormatError",
    "LinkError",
    "NvFatbinNotFoundError",
    "NvJitLinkNotFoundError",
    "NvdisasmNotFoundError",
    "NvrtcError",
    "NvrtcNotFoundError",
    "NvrtcVersionError",
    "NvvmError",
    "NvvmNotFoundError",
    "PtxArgumentError",
    "PtxArgumentTypeError",
    "PtxArgumentValueError",
    "PtxError",
    "UnsupportedTargetError",
]


_SHOWN: Final = 4
"""The most errors that a text names after the first: with them it fits on a screen."""


class _LibraryNotFoundError(PtxError):
    """A library of CUDA's toolkit is missing; `_what` is its name and purpose."""

    _what: ClassVar[str]

    def __init__(self, command: str, reason: str) -> None:
        super().__init__(
            f"{self._what}, was not found. "
            f"Install it with: {command}\n  (the loader said: {reason})"
        )
        self.command = command
        self.reason = reason


class NvrtcNotFoundError(_LibraryNotFoundError):
    """The NVRTC library, or its binding, is not installed or cannot be loaded.

    `command` is the one command that installs it; `reason` is the loader's message.
    """

    _what = "NVRTC, the CUDA run-time compiler"


class NvJitLinkNotFoundError(_LibraryNotFoundError):
    """The nvJitLink library, or its binding, is not installed or cannot be loaded."""

    _what = "nvJitLink, the CUDA run-time linker"


class NvvmNotFoundError(_LibraryNotFoundError):
    """The libNVVM library, its binding or its libdevice is not installed or cannot be loaded."""

    _what = "libNVVM, the compiler of NVVM IR"


class NvFatbinNotFoundError(_LibraryNotFoundError):
    """The nvFatbin library, or its binding, is not installed or cannot be loaded."""

    _what = "nvFatbin, which builds fatbins"


class FatbinError(PtxError):
    """nvFatbin rejected an image."""


class NvdisasmNotFoundError(_LibraryNotFoundError):
    """The disassembler nvdisasm is not installed."""

    _what = "nvdisasm, NVIDIA's disassembler"


class DisassembleError(PtxError):
    """nvdisasm rejected an image. `log` is its output, `program` its path."""

    def __init__(self, log: str, program: str) -> None:
        super().__init__(f"nvdisasm rejects the image: {log}\n  (it is {program})")
        self.log = log
        self.program = program


class NvvmError(PtxError):
    """libNVVM rejected NVVM IR or an option. `log` is its log, `options` are the options it got."""

    def __init__(self, message: str, log: str, options: Sequence[str]) -> None:
        super().__init__(f"{message}\n{log.strip()}" if log.strip() else message)
        self.log = log
        self.options: tuple[str, ...] = tuple(options)


class NvrtcError(PtxError):
    """An NVRTC call failed for a reason that is not the source's.

    `call` is the C function, `code` its nvrtcResult, `text` that code's name.
    """

    def __init__(self, call: str, code: int, text: str, detail: str = "") -> None:
        super().__init__(f"{call} failed: {text} ({code})" + (f": {detail}" if detail else ""))
        self.call = call
        self.code = code
        self.text = text


class NvrtcVersionError(PtxError):
    """The installed NVRTC is older than a feature. `needed` and `found` are versions."""

    def __init__(self, what: str, needed: tuple[int, int], found: tuple[int, int]) -> None:
        super().__init__(
            f"{what}: this needs NVRTC {needed[0]}.{needed[1]} or newer, and this one is "
            f"{found[0]}.{found[1]}\n  install a newer one"
        )
        self.needed = needed
        self.found = found


class CompileCancelledError(PtxError):
    """The `cancel` function of a compilation requested its end."""


class CompileError(PtxError):
    """NVRTC rejected a source.

    The text points at the first error (file, line, the line's own text, a caret) and names the next
    ones. `diagnostics` has every error and warning of the log in its order, `log` is NVRTC's own.
    """

    def __init__(
        self,
        log: str,
        options: CompileOptions,
        *,
        name: str = "",
        diagnostics: Sequence[Diagnostic] = (),
        remark: str = "",
    ) -> None:
        self.log = log
        self.options = options
        self.name = name
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        self.remark = remark
        first = self.first_error
        head = f"{name or 'the source'} does not compile"
        parts = [f"{head}: {first.pointer()}" if first else head]
        if remark:
            parts.append(remark)
        parts += _further([diagnostic for diagnostic in self.diagnostics if diagnostic.is_error])
        if log.strip() and first is None:
            parts.append(f"NVRTC's log:\n{log.strip()}")
        super().__init__("\n".join(parts))

    @property
    def first_error(self) -> Diagnostic | None:
        """The first diagnostic that is an error, or None when the log names no place."""
        return next((d for d in self.diagnostics if d.is_error), None)

    @property
    def file(self) -> str | None:
        """The file of the first error."""
        return self.first_error.file if self.first_error else None

    @property
    def line(self) -> int | None:
        """The line of the first error, counted from 1."""
        return self.first_error.line if self.first_error else None


def _further(errors: Sequence[Diagnostic]) -> list[str]:
    """A line for each error after the first, as far as they are few."""
    shown = [
        f"{error.file}({error.line}): the same"
        if error.message == errors[0].message
        else error.heading()
        for error in errors[1:]
    ]
    if len(shown) > _SHOWN:
        shown[_SHOWN:] = [f"and {len(shown) - _SHOWN} more errors: see the error's `log`"]
    return shown


class HeaderNotFoundError(CompileError):
    """A source includes a header that no include folder has.

    `header` is the name in the `#include`; `package` the pip package that brings it and `command`
    the one command that installs it, both None when it is not one of CUDA's; `searched` the folders
    that were searched, in order.
    """

    def __init__(
        self,
        header: str,
        package: str | None,
        searched: Sequence[str],
        log: str,
        options: CompileOptions,
        *,
        command: str | None = None,
        elsewhere: str = "",
        name: str = "",
        diagnostics: Sequence[Diagnostic] = (),
    ) -> None:
        self.header = header
        self.package = package
        self.searched: tuple[str, ...] = tuple(searched)
        self.command = command
        folders = "".join(f"\n    {folder}" for folder in self.searched) or " none"
        remedy = f"Install what goes with NVRTC: {command}" if command else _remedy(header)
        parts = [f"header {header!r} was not found.", elsewhere, remedy]
        super().__init__(
            log,
            options,
            name=name,
            diagnostics=diagnostics,
            remark=f"{' '.join(filter(None, parts))}\n  folders searched:{folders}",
        )


class HeaderVersionError(HeaderNotFoundError):
    """A header of CUDA was found, but of another version of CUDA than NVRTC is.

    It is not used, as such headers compile wrongly or not at all. `folder` has it; `versions` are
    the parts in there that are of another version, such as ("runtime", (13, 0)); `nvrtc` is the
    version of NVRTC; `command` brings the right ones.
    """

    def __init__(
        self,
        header: str,
        package: str | None,
        searched: Sequence[str],
        log: str,
        options: CompileOptions,
        *,
        folder: str,
        versions: Sequence[tuple[str, tuple[int, int]]],
        nvrtc: tuple[int, int],
        command: str,
        name: str = "",
        diagnostics: Sequence[Diagnostic] = (),
    ) -> None:
        self.folder = folder
        self.versions: tuple[tuple[str, tuple[int, int]], ...] = tuple(versions)
        self.nvrtc = nvrtc
        versions_of_parts = ", ".join(
            f"{part} {major}.{minor}" for part, (major, minor) in self.versions
        )
        super().__init__(
            header,
            package,
            searched,
            log,
            options,
            command=command,
            elsewhere=f"NVRTC is {nvrtc[0]}.{nvrtc[1]}, and {folder} has headers of another version"
            f" of CUDA ({versions_of_parts}); name it in CompileOptions.cuda_headers or"
            " CUDADRV_HEADERS to use it all the same.",
            name=name,
            diagnostics=diagnostics,
        )


# Headers of the C and C++ standard libraries that have a counterpart in libcu++, and those whose
# functions are built into NVRTC.
_SAME_NAME = frozenset({
    "algorithm", "array", "atomic", "barrier", "bit", "cassert", "cfloat", "chrono", "climits",
    "cmath", "complex", "concepts", "cstddef", "cstdint", "cstdlib", "cstring", "ctime", "expected",
    "functional", "initializer_list", "iterator", "latch", "limits", "mdspan", "memory", "numbers",
    "numeric", "optional", "ranges", "ratio", "semaphore", "source_location", "span", "string_view",
    "tuple", "type_traits", "utility", "variant", "version",
})  # fmt: skip
_COUNTERPARTS = {
    "float.h": "cfloat", "limits.h": "climits", "stddef.h": "cstddef", "stdint.h": "cstdint",
    "inttypes.h": "cstdint", "stdlib.h": "cstdlib", "time.h": "ctime",
}  # fmt: skip
_HOST_ONLY = frozenset({
    "any", "condition_variable", "deque", "exception", "filesystem", "forward_list", "fstream",
    "future", "iomanip", "ios", "istream", "list", "locale", "map", "mutex", "new", "ostream",
    "queue", "random", "regex", "set", "shared_mutex", "sstream", "stack", "stdexcept", "string",
    "system_error", "thread", "typeindex", "typeinfo", "unordered_map", "unordered_set", "valarray",
    "vector",
})  # fmt: skip
_KNOWN_WITHOUT = frozenset({"stdio.h", "cstdio", "assert.h", "math.h", "string.h", "iostream"})
_OTHERS_COMPLEX = frozenset({"pycuda-complex.hpp", "cupy/complex.cuh"})
_FUNCTIONS_OF_NVCC = frozenset({"nvfunctional", "crt/nvfunctional"})


def _remedy(header: str) -> str:
    counterpart = header if header in _SAME_NAME else _COUNTERPARTS.get(header)
    if counterpart is not None:
        return (
            "NVRTC has no C++ standard library. Include libcu++'s "
            f"<cuda/std/{counterpart}> instead, whose names are in cuda::std"
        )
    if header in _HOST_ONLY:
        return (
            "It is one of the host's C++ standard library.\n"
            "  Kernels have libcu++ instead: <cuda/std/array>, <cuda/std/span> and others"
        )
    if header in _FUNCTIONS_OF_NVCC:
        return (
            "It is nvcc's, and needs the host's C++ library. Instead of nvstd::function pass a "
            "functor as a template argument; name_expressions instantiate the template"
        )
    if header in _OTHERS_COMPLEX:
        return "Include libcu++'s <cuda/std/complex> instead: cuda::std::complex<float>"
    if header in _KNOWN_WITHOUT:
        return (
            "NVRTC has no C library, and knows printf, assert, memcpy and the mathematical "
            'functions without one. Leave the #include out, or pass headers={"' + header + '": ""}'
        )
    return "Add its folder to CompileOptions.include_paths, or pass its text in `headers`"


class UnsupportedTargetError(PtxError):
    """The installed libraries cannot make an image for the requested architecture.

    `target` is the requested one, None if a choice found no candidate; `supported` are the targets
    of the installed NVRTC.
    """

    def __init__(self, message: str, target: Target | None, supported: Sequence[Target]) -> None:
        super().__init__(message)
        self.target = target
        self.supported: tuple[Target, ...] = tuple(supported)


class LinkError(PtxError):
    """nvJitLink rejected its inputs. `log` is its error log, `options` are the options it got."""

    def __init__(self, message: str, log: str, options: Sequence[str]) -> None:
        super().__init__(f"{message}\n{log.strip()}" if log.strip() else message)
        self.log = log
        self.options: tuple[str, ...] = tuple(options)


class ImageFormatError(PtxError):
    """Bytes that should be a stored image are not one, or are damaged."""
