# ruff: noqa: N802 - the protocols have the C names
"""The seam to NVRTC, nvJitLink and libNVVM: alone it imports their bindings, on first use.

A binding may be installed without its library, so any call may raise a RuntimeError. The first call
here turns that into an error that names the command to install the library.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ParamSpec, Protocol, Self, TypeVar

from ptx.errors import NvJitLinkNotFoundError, NvrtcError, NvrtcNotFoundError, NvvmNotFoundError

if TYPE_CHECKING:
    from cuda.bindings.nvrtc import nvrtcProgram, nvrtcResult

_P = ParamSpec("_P")
_R = TypeVar("_R")
Blobs = tuple[bytes, ...]

_OK = 0
_INVALID_OPTION = 5
_COMPILATION = 6


class NvrtcApi(Protocol):
    """The functions of `cuda.bindings.nvrtc` that are called."""

    def nvrtcGetErrorString(self, result: nvrtcResult, /) -> tuple[nvrtcResult, bytes]: ...
    def nvrtcVersion(self) -> tuple[nvrtcResult, int, int]: ...
    def nvrtcGetSupportedArchs(self) -> tuple[nvrtcResult, list[int]]: ...
    def nvrtcCreateProgram(
        self, src: bytes, name: bytes, count: int, headers: Blobs, names: Blobs, /
    ) -> tuple[nvrtcResult, nvrtcProgram]: ...
    def nvrtcDestroyProgram(self, prog: nvrtcProgram, /) -> tuple[nvrtcResult]: ...
    def nvrtcCompileProgram(
        self, prog: nvrtcProgram, count: int, options: Blobs, /
    ) -> tuple[nvrtcResult]: ...
    def nvrtcAddNameExpression(
        self, prog: nvrtcProgram, expression: bytes, /
    ) -> tuple[nvrtcResult]: ...
    def nvrtcGetLoweredName(
        self, prog: nvrtcProgram, expression: bytes, /
    ) -> tuple[nvrtcResult, bytes | None]: ...
    def nvrtcGetProgramLogSize(self, prog: nvrtcProgram, /) -> tuple[nvrtcResult, int]: ...
    def nvrtcGetProgramLog(self, prog: nvrtcProgram, log: bytearray, /) -> tuple[nvrtcResult]: ...
    def nvrtcGetPTXSize(self, prog: nvrtcProgram, /) -> tuple[nvrtcResult, int]: ...
    def nvrtcGetPTX(self, prog: nvrtcProgram, ptx: bytearray, /) -> tuple[nvrtcResult]: ...
    def nvrtcGetCUBINSize(self, prog: nvrtcProgram, /) -> tuple[nvrtcResult, int]: ...
    def nvrtcGetCUBIN(self, prog: nvrtcProgram, cubin: bytearray, /) -> tuple[nvrtcResult]: ...
    def nvrtcGetLTOIRSize(self, prog: nvrtcProgram, /) -> tuple[nvrtcResult, int]: ...
    def nvrtcGetLTOIR(self, prog: nvrtcProgram, ltoir: bytearray, /) -> tuple[nvrtcResult]: ...


class LinkerApi(Protocol):
    """The functions of `cuda.bindings.nvjitlink` that are called; they raise nvJitLinkError."""

    @property
    def nvJitLinkError(self) -> type[Exception]: ...
    def version(self) -> tuple[int, int]: ...
    def create(self, count: int, options: Sequence[str], /) -> int: ...
    def destroy(self, handle: int, /) -> None: ...
    def add_data(self, handle: int, kind: int, data: bytes, size: int, name: str, /) -> None: ...
    def complete(self, handle: int, /) -> None: ...
    def get_error_log_size(self, handle: int, /) -> int: ...
    def get_error_log(self, handle: int, log: bytearray, /) -> None: ...
    def get_info_log_size(self, handle: int, /) -> int: ...
    def get_info_log(self, handle: int, log: bytearray, /) -> None: ...
    def get_linked_cubin_size(self, handle: int, /) -> int: ...
    def get_linked_cubin(self, handle: int, cubin: bytearray, /) -> None: ...
    def get_linked_ptx_size(self, handle: int, /) -> int: ...
    def get_linked_ptx(self, handle: int, ptx: bytearray, /) -> None: ...


class NvvmApi(Protocol):
    """The functions of `cuda.bindings.nvvm` that are called; they raise nvvmError."""

    @property
    def nvvmError(self) -> type[Exception]: ...
    def version(self) -> tuple[int, int]: ...
    def create_program(self) -> int: ...
    def destroy_program(self, program: int, /) -> None: ...
    def add_module_to_program(self, program: int, data: bytes, size: int, name: str, /) -> None: ...
    def lazy_add_module_to_program(
        self, program: int, data: bytes, size: int, name: str, /
    ) -> None: ...
    def verify_program(self, program: int, count: int, options: Sequence[str], /) -> None: ...
    def compile_program(self, program: int, count: int, options: Sequence[str], /) -> None: ...
    def get_compiled_result_size(self, program: int, /) -> int: ...
    def get_compiled_result(self, program: int, result: bytearray, /) -> None: ...
    def get_program_log_size(self, program: int, /) -> int: ...
    def get_program_log(self, program: int, log: bytearray, /) -> None: ...


@functools.cache
def bindings_major() -> int:
    """The CUDA major version of the installed cuda-bindings; 13 where there are none."""
    # Names the package of the missing library; saves 5 ms elsewhere.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return int(version("cuda-bindings").partition(".")[0])
    except PackageNotFoundError:
        return 13


def install_command() -> str:
    """The one pip command that brings NVRTC and nvJitLink for the installed cuda-python."""
    return f'pip install "cudadrv[cu{bindings_major()}]"'


@functools.cache
def api() -> NvrtcApi:
    """The NVRTC binding, once its library is known to load.

    Raises:
        NvrtcNotFoundError: the binding or the library is not there.
    """
    try:
        from cuda.bindings import nvrtc

        _called(nvrtc.nvrtcVersion)
    except (ImportError, RuntimeError) as error:
        raise NvrtcNotFoundError(install_command(), str(error)) from error
    return nvrtc


@functools.cache
def version() -> tuple[int, int]:
    """Version of the installed NVRTC, such as (13, 4). It loads the library."""
    # nvrtcResult nvrtcVersion(int *major, int *minor)
    result, major, minor = _called(api().nvrtcVersion)
    _check("nvrtcVersion", result)
    return major, minor


@functools.cache
def supported_archs() -> tuple[int, ...]:
    """The architecture numbers that the installed NVRTC compiles for, ascending."""
    # nvrtcResult nvrtcGetSupportedArchs(int *supportedArchs)
    result, archs = _called(api().nvrtcGetSupportedArchs)
    _check("nvrtcGetSupportedArchs", result)
    return tuple(sorted(archs))


@functools.cache
def linker_api() -> LinkerApi:
    """The nvJitLink binding, once its library is known to load.

    Raises:
        NvJitLinkNotFoundError: the binding or the library is not there.
    """
    try:
        from cuda.bindings import nvjitlink

    except ImportError as error:
        raise NvJitLinkNotFoundError(install_command(), str(error)) from error
    try:
        nvjitlink.version()
    except (RuntimeError, nvjitlink.nvJitLinkError) as error:
        raise NvJitLinkNotFoundError(install_command(), str(error)) from error
    return nvjitlink


@functools.cache
def linker_version() -> tuple[int, int]:
    """Version of the installed nvJitLink, such as (13, 5). It loads the library."""
    api = linker_api()
    try:
        # nvJitLinkResult nvJitLinkVersion(unsigned int *major, unsigned int *minor)
        return api.version()
    except api.nvJitLinkError as error:  # such as after an emulator that stood in for it
        raise NvJitLinkNotFoundError(install_command(), str(error)) from error


@functools.cache
def nvvm_api() -> NvvmApi:
    """The libNVVM binding, once its library is known to load.

    Raises:
        NvvmNotFoundError: the binding or the library is not there.
    """
    try:
        from cuda.bindings import nvvm

        nvvm.version()
    except (ImportError, RuntimeError) as error:
        major = bindings_major()
        package = "nvidia-cuda-nvcc-cu12" if major == 12 else f'"nvidia-nvvm>={major},<{major + 1}"'
        raise NvvmNotFoundError(f"pip install {package}", str(error)) from error
    return nvvm


@functools.cache
def nvvm_version() -> tuple[int, int]:
    """Version of libNVVM's functions, such as (2, 0). It loads the library."""
    # nvvmResult nvvmVersion(int *major, int *minor)
    return nvvm_api().version()


def library_path(name: str) -> str | None:
    """The file of a toolkit library ("nvrtc", "nvJitLink", "nvvm") as this process loads it.

    None if it cannot be determined.
    """
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    try:
        return load_nvidia_dynamic_lib(name).abs_path
    except DynamicLibNotFoundError:
        return None


def unpack_bundled_headers(folder: str) -> None:
    """Unpack the headers inside NVRTC (13.3 and newer) into a folder, unless they are there.

    By an option of a compilation: the function for it is missing in older bindings.

    Raises:
        NvrtcError: NVRTC could not write them, or has none.
    """
    with NvrtcProgram("", "bundled_headers.cu", ()) as program:
        if not program.compile((f"--use-bundled-headers={folder}",)):
            raise NvrtcError("--use-bundled-headers", _INVALID_OPTION, "refused", program.log())


class InUse:
    """An object of one of CUDA's libraries; the end of its `with` block destroys it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._destroy()

    def _destroy(self) -> None:
        raise NotImplementedError


class NvrtcProgram(InUse):
    """One nvrtcProgram: made, compiled, read, destroyed at the end of its `with` block."""

    def __init__(self, source: str, name: str, headers: Sequence[tuple[str, str]]) -> None:
        self._api = api()
        # nvrtcResult nvrtcCreateProgram(nvrtcProgram *, const char *src, const char *name,
        #                                int numHeaders, const char *const *headers, … *names)
        result, self._handle = _called(
            self._api.nvrtcCreateProgram,
            source.encode(),
            _path(name),
            len(headers),
            tuple(text.encode() for _, text in headers),
            tuple(header.encode() for header, _ in headers),
        )
        _check("nvrtcCreateProgram", result)

    def _destroy(self) -> None:
        # nvrtcResult nvrtcDestroyProgram(nvrtcProgram *)
        _called(self._api.nvrtcDestroyProgram, self._handle)

    def add_name_expression(self, expression: str) -> None:
        """Ask for the lowered name of an expression, and instantiate it."""
        # nvrtcResult nvrtcAddNameExpression(nvrtcProgram, const char *)
        (result,) = _called(self._api.nvrtcAddNameExpression, self._handle, expression.encode())
        _check("nvrtcAddNameExpression", result, expression)

    def compile(self, options: Sequence[str]) -> bool:
        """Compile; False if the source or an option is rejected, which the log then explains.

        Raises:
            NvrtcError: NVRTC itself failed.
        """
        # nvrtcResult nvrtcCompileProgram(nvrtcProgram, int numOptions, const char *const *options)
        encoded = tuple(map(_path, options))
        (result,) = _called(self._api.nvrtcCompileProgram, self._handle, len(encoded), encoded)
        if result in (_COMPILATION, _INVALID_OPTION):
            return False
        _check("nvrtcCompileProgram", result, self.log())
        return True

    def lowered_name(self, expression: str) -> str:
        """The name in the image of an expression that was added before compiling."""
        # nvrtcResult nvrtcGetLoweredName(nvrtcProgram, const char *, const char **lowered_name)
        result, lowered = _called(self._api.nvrtcGetLoweredName, self._handle, expression.encode())
        _check("nvrtcGetLoweredName", result, expression)
        return _text(lowered or b"")

    def log(self) -> str:
        """The compiler's messages, without its trailing blanks."""
        # nvrtcResult nvrtcGetProgramLog(nvrtcProgram, char *log), and …Size
        a = self._api
        return _text(self._read(a.nvrtcGetProgramLogSize, a.nvrtcGetProgramLog)).strip("\n ")

    def ptx(self) -> str:
        """The PTX text, empty where this compilation gives none (LTO-IR)."""
        # nvrtcResult nvrtcGetPTX(nvrtcProgram, char *ptx), and …Size
        return _text(self._read(self._api.nvrtcGetPTXSize, self._api.nvrtcGetPTX))

    def cubin(self) -> bytes:
        """The machine code of a real architecture."""
        # nvrtcResult nvrtcGetCUBIN(nvrtcProgram, char *cubin), and …Size
        return self._read(self._api.nvrtcGetCUBINSize, self._api.nvrtcGetCUBIN)

    def ltoir(self) -> bytes:
        """The LTO-IR of a compilation with -dlto."""
        # nvrtcResult nvrtcGetLTOIR(nvrtcProgram, char *LTOIR), and …Size
        return self._read(self._api.nvrtcGetLTOIRSize, self._api.nvrtcGetLTOIR)

    def _read(
        self,
        size_of: Callable[[nvrtcProgram], tuple[nvrtcResult, int]],
        read: Callable[[nvrtcProgram, bytearray], tuple[nvrtcResult]],
    ) -> bytes:
        result, nbytes = _called(size_of, self._handle)
        _check("an NVRTC size query", result)
        data = bytearray(nbytes)
        if nbytes:
            (result,) = _called(read, self._handle, data)
            _check("an NVRTC read", result)
        return bytes(data)


def _path(name: str) -> bytes:
    """A path, or an option with one, whose bytes need not be UTF-8."""
    return name.encode("utf-8", "surrogateescape")


def _text(data: bytes) -> str:
    return data.rstrip(b"\0").decode(errors="replace")


def _called(function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Call a function of the binding, which raises errors of Python for results unknown to it.

    Raises:
        NvrtcError: the binding does not know the result.
    """
    try:
        return function(*args, **kwargs)
    except (KeyError, ValueError) as error:
        found = re.search(r"\d+", str(error))
        if found is None:
            raise
        text = "a result that cuda-bindings does not know"
        raise NvrtcError(function.__name__, int(found[0]), text, "update cuda-python") from error


def _check(call: str, result: nvrtcResult, detail: str = "") -> None:
    if result == _OK:
        return
    # const char *nvrtcGetErrorString(nvrtcResult)
    _, text = api().nvrtcGetErrorString(result)
    raise NvrtcError(call, int(result), _text(text), detail)
