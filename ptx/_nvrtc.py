# ruff: noqa: N802 - the protocols have the C names
"""The seam to NVRTC, nvJitLink and libNVVM: alone it imports their bindings, on first use.

A binding may be installed without its library, so any call may raise a RuntimeError. The first call
here turns that into an error that names the command to install the library.
"""

from __future__ import annotations

import functools
import importlib
import re
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, ParamSpec, Protocol, Self, TypeVar

from ptx.errors import (
    CompileCancelledError,
    NvFatbinNotFoundError,
    NvJitLinkNotFoundError,
    NvrtcError,
    NvrtcNotFoundError,
    NvrtcVersionError,
    NvvmNotFoundError,
)
from ptx.latch import Latch

if TYPE_CHECKING:
    from cuda.bindings.nvrtc import nvrtcProgram, nvrtcResult

_P = ParamSpec("_P")
_R = TypeVar("_R")
Blobs = tuple[bytes, ...]


class _Reading(threading.local):
    """The kind of result that this thread reads from NVRTC.

    A process whose other libraries run on an emulator has an NVRTC that returns PTX as a cubin.
    It returns the cubin itself where `machine_code` is set.
    """

    machine_code: bool = False


reading: Final = _Reading()

_OK = 0
_INVALID_OPTION = 5
_COMPILATION = 6
_POLL_SECONDS: Final = 0.02
_CANCELLED: Final = "the compilation was cancelled"


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
    def nvrtcGetPCHHeapSize(self) -> tuple[nvrtcResult, int]: ...
    def nvrtcSetPCHHeapSize(self, size: int, /) -> tuple[nvrtcResult]: ...
    def nvrtcGetPCHCreateStatus(self, prog: nvrtcProgram, /) -> tuple[nvrtcResult]: ...
    def nvrtcGetPCHHeapSizeRequired(self, prog: nvrtcProgram, /) -> tuple[nvrtcResult, int]: ...
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


class FatbinApi(Protocol):
    """The functions of `cuda.bindings.nvfatbin` that are called; they raise nvFatbinError."""

    @property
    def nvFatbinError(self) -> type[Exception]: ...
    def version(self) -> tuple[int, int]: ...
    def create(self, options: Sequence[str], count: int, /) -> int: ...
    def destroy(self, handle: int, /) -> None: ...
    def add_ptx(
        self, handle: int, code: bytes, size: int, arch: str, name: str, options: str, /
    ) -> None: ...
    def add_cubin(self, handle: int, code: bytes, size: int, arch: str, name: str, /) -> None: ...
    def add_ltoir(
        self, handle: int, code: bytes, size: int, arch: str, name: str, options: str, /
    ) -> None: ...
    def size(self, handle: int, /) -> int: ...
    def get(self, handle: int, fatbin: bytearray, /) -> None: ...


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
    """The one pip command that installs NVRTC and nvJitLink for the installed cuda-python."""
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


_PRECOMPILED: Final = "precompiled headers"
_SINCE: Final = (12, 8)
"""The first NVRTC with precompiled headers."""


def pch_heap_bytes() -> int:
    """The size of the heap for precompiled headers."""
    # nvrtcResult nvrtcGetPCHHeapSize(size_t *ret)
    result, nbytes = _newer(_PRECOMPILED, lambda: api().nvrtcGetPCHHeapSize())
    _check("nvrtcGetPCHHeapSize", result)
    return nbytes


def set_pch_heap_bytes(nbytes: int) -> None:
    """Set that size."""
    # nvrtcResult nvrtcSetPCHHeapSize(size_t size)
    (result,) = _newer(_PRECOMPILED, lambda: api().nvrtcSetPCHHeapSize(nbytes))
    _check("nvrtcSetPCHHeapSize", result)


def _newer(feature: str, call: Callable[[], _R]) -> _R:
    """Make a call of functions that an older NVRTC lacks.

    Raises:
        NvrtcVersionError: the binding or the library lacks them.
    """
    try:
        return _called(call)
    except (AttributeError, RuntimeError) as error:
        raise NvrtcVersionError(feature, _SINCE, version()) from error


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
def fatbin_api() -> FatbinApi:
    """The nvFatbin binding, once its library is known to load.

    Raises:
        NvFatbinNotFoundError: the binding or the library is not there.
    """
    try:
        # It has no stub.
        nvfatbin: FatbinApi = importlib.import_module("cuda.bindings.nvfatbin")
        nvfatbin.version()
    except (ImportError, RuntimeError) as error:
        suffix = "-cu12" if bindings_major() == 12 else ""
        raise NvFatbinNotFoundError(f"pip install nvidia-nvfatbin{suffix}", str(error)) from error
    return nvfatbin


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
        self._handles = [self._handle]  # until it is destroyed
        self._is_left = False
        self._is_compiling = False

    def _destroy(self) -> None:
        self._is_left = True
        if not self._is_compiling:  # else the thread that compiles destroys it
            self._destroy_once()

    def _destroy_once(self) -> None:
        try:
            handle = self._handles.pop()
        except IndexError:
            return
        # nvrtcResult nvrtcDestroyProgram(nvrtcProgram *)
        _called(self._api.nvrtcDestroyProgram, handle)

    def add_name_expression(self, expression: str) -> None:
        """Register an expression: NVRTC instantiates it, and returns its lowered name later."""
        # nvrtcResult nvrtcAddNameExpression(nvrtcProgram, const char *)
        (result,) = _called(self._api.nvrtcAddNameExpression, self._handle, expression.encode())
        _check("nvrtcAddNameExpression", result, expression)

    def compile(self, options: Sequence[str], cancel: Callable[[], bool] | None = None) -> bool:
        """Compile; False if the source or an option is rejected, which the log then explains.

        In the main thread, or with `cancel`, a thread of its own compiles, so that an interrupt or
        `cancel` ends the wait. That thread goes on to the end, and destroys the program: NVRTC's
        own way to stop (`nvrtcSetFlowCallback`) ends the process with a segmentation fault at some
        of its points (NVRTC 13.5, between the optimizer and the code generator).

        Raises:
            CompileCancelledError: `cancel` returned True.
            NvrtcError: NVRTC itself failed.
        """
        # nvrtcResult nvrtcCompileProgram(nvrtcProgram, int numOptions, const char *const *options)
        encoded = tuple(map(_path, options))

        def call() -> tuple[nvrtcResult]:
            return _called(self._api.nvrtcCompileProgram, self._handle, len(encoded), encoded)

        is_interruptible = cancel is not None or (
            threading.current_thread() is threading.main_thread()
            # A thread with a smaller stack than the main thread's could overflow it.
            and threading.stack_size() == 0
        )
        (result,) = self._interruptible(call, cancel) if is_interruptible else call()
        if result in (_COMPILATION, _INVALID_OPTION):
            return False
        _check("nvrtcCompileProgram", result, self.log())
        return True

    def _interruptible(
        self, call: Callable[[], tuple[nvrtcResult]], cancel: Callable[[], bool] | None
    ) -> tuple[nvrtcResult]:
        """Compile in a thread of its own; if the caller leaves, the thread destroys the program."""
        if cancel is not None and cancel():
            raise CompileCancelledError(_CANCELLED)
        results: list[tuple[nvrtcResult]] = []
        errors: list[BaseException] = []
        finished = Latch()

        def work() -> None:
            try:
                results.append(call())
            except BaseException as error:
                errors.append(error)
            finally:
                self._is_compiling = False
                finished.set()
                if self._is_left:
                    self._destroy_once()

        self._is_compiling = True
        try:
            threading.Thread(target=work, name="cudadrv compile").start()
        except RuntimeError:  # the interpreter ends, and starts no more threads
            self._is_compiling = False
            return call()
        while not finished.wait(_POLL_SECONDS):
            if cancel is not None and cancel():
                raise CompileCancelledError(_CANCELLED)
        if errors:
            raise errors.pop()
        return results[0]

    def pch_status(self) -> tuple[int, int]:
        """The result of creating a precompiled header, an nvrtcResult, and the heap it needs."""
        # nvrtcResult nvrtcGetPCHCreateStatus(nvrtcProgram)
        (status,) = _newer(_PRECOMPILED, lambda: self._api.nvrtcGetPCHCreateStatus(self._handle))
        # nvrtcResult nvrtcGetPCHHeapSizeRequired(nvrtcProgram, size_t *size)
        result, nbytes = _called(self._api.nvrtcGetPCHHeapSizeRequired, self._handle)
        return int(status), 0 if result else nbytes

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
        try:
            reading.machine_code = True
            return self._read(self._api.nvrtcGetCUBINSize, self._api.nvrtcGetCUBIN)
        finally:
            reading.machine_code = False

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
        number = re.search(r"\d+", str(error))
        if number is None:
            raise
        text = "a result that cuda-bindings does not know"
        raise NvrtcError(function.__name__, int(number[0]), text, "update cuda-python") from error


def _check(call: str, result: nvrtcResult, detail: str = "") -> None:
    if result == _OK:
        return
    # const char *nvrtcGetErrorString(nvrtcResult)
    _, text = api().nvrtcGetErrorString(result)
    raise NvrtcError(call, int(result), _text(text), detail)
