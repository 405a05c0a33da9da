"""Modules: images loaded on a context, their kernels and global variables."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, TypeVar, overload

import numpy as np

import ptx

from ..driver._api import CUjit_option, CUmodule, CUresult, DriverApi
from ..driver.in_use import Bound, Handle, failure
from ..errors import ClosedError, CudadrvError, KernelNotFoundError
from ..memory.array import AnyDeviceArray, DeviceArray, Shape, TypedDType, checked_dtype
from ..memory.buffer import DeviceBuffer
from .kernel import Kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..driver.context import Context

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
ImageLike: TypeAlias = ptx.Image | str | bytes | bytearray | memoryview
_BINARY = (b"\x7fELF", b"\x50\xed\x55\xba")  # a cubin; a fatbin (its magic, 0xBA55ED50)
_LOG_BYTES = 16384
_LOG_OPTIONS = (
    CUjit_option.CU_JIT_ERROR_LOG_BUFFER,
    CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
)


class Module(Handle):
    """An image loaded on a context; made by `Context.load_module`.

    Attributes:
        context: the context, kept alive by the module.
        handle: the CUmodule; reading it after `close` raises `ClosedError`.
        image: the image it was loaded from, where it is a `ptx.Image` or PTX text.
        closed: whether it was closed.
    """

    __slots__ = (
        "__weakref__", "_finalizer", "_kernels", "_names", "_variables",
        "api", "closed", "context", "handle", "image",
    )  # fmt: skip

    handle: CUmodule

    def __init__(self, context: Context, image: ImageLike) -> None:
        if isinstance(image, str):
            image = ptx.Image.from_ptx(image)
        self.api: DriverApi = context.api
        self.context = context
        self.image = image if isinstance(image, ptx.Image) else None
        self.closed = False
        self._kernels: dict[str, Kernel] = {}
        self._names: tuple[str, ...] | None = None
        # The module's own memory, which goes with it.
        self._variables: weakref.WeakSet[DeviceBuffer] = weakref.WeakSet()
        self.handle = _load(context, _bytes_of(image))
        self._finalizer = weakref.finalize(self, _unload, self.api, self.handle, context)
        self._finalizer.atexit = False

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> object:
            if name == "handle":
                raise ClosedError(f"the module on device {self.context.ordinal} was closed")
            raise AttributeError(f"a Module has no attribute {name!r}")

    def __repr__(self) -> str:
        state = "closed " if self.closed else ""
        return f"<Module {state}on device {self.context.ordinal}>"

    def __enter__(self) -> Module:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """The names of the kernels, as the image has them; name expressions come in addition."""
        if self._names is None:
            self._names = tuple(self.image.signatures) if self.image else ()
            if not self._names:
                self._names = self._enumerate()
        return self._names

    def kernel(self, name: str, signature: ptx.KernelSignature | None = None) -> Kernel:
        """The kernel of a name, or of a name expression that the image was compiled with.

        Args:
            name: such as "saxpy" or "scale<float>".
            signature: its parameters, where the image has no PTX text to read them from.

        Raises:
            KernelNotFoundError: there is none; the text has the names that there are.
        """
        kernel = self._kernels.get(name)
        if kernel is None or (signature is not None and kernel.signature != signature):
            lowered = self._lowered().get(name, name)
            if signature is None and self.image is not None:
                signature = self.image.signatures.get(lowered)
            kernel = self._kernels.setdefault(name, self._take(name, lowered, signature))
        return kernel

    @overload
    def global_array(
        self, name: str, shape: Shape | None = None, *, dtype: TypedDType[_ScalarT]
    ) -> DeviceArray[_ScalarT]: ...
    @overload
    def global_array(
        self, name: str, shape: Shape | None, dtype: TypedDType[_ScalarT]
    ) -> DeviceArray[_ScalarT]: ...
    # A dtype given as text says nothing to a type checker.
    @overload
    def global_array(
        self, name: str, shape: Shape | None = None, dtype: npt.DTypeLike = "u1"
    ) -> AnyDeviceArray: ...
    def global_array(
        self, name: str, shape: Shape | None = None, dtype: npt.DTypeLike = "u1"
    ) -> AnyDeviceArray:
        """A module variable (``__device__`` or ``__constant__``) as an array over its memory.

        Args:
            name: the variable's name, or a name expression such as "&table<float>".
            shape: its extents; None takes as many elements of `dtype` as fit.
            dtype: the element type.

        Raises:
            KernelNotFoundError: the module has no such variable.
            InvalidValueError: the variable is smaller than the shape, or one element, asks for.
        """
        lowered = self._lowered().get(name, name)
        with Bound(self.api, self.context.handle):
            code, pointer, nbytes = self.api.cuModuleGetGlobal(self.handle, lowered.encode())
        if code == CUresult.CUDA_ERROR_NOT_FOUND:
            raise KernelNotFoundError(
                f"the module has no variable {name!r}; C++ names are mangled: declare it "
                'extern "C", or compile with the name expression',
                name=name,
                available=(),
            )
        if code:
            raise failure(self.api, code, "cuModuleGetGlobal", f"variable {name!r}")
        kind = checked_dtype(dtype)
        if shape is None:
            shape = max(nbytes // kind.itemsize, 1)
        buffer = DeviceBuffer.borrowed(self.context.default_stream, int(pointer), nbytes, self)
        array: AnyDeviceArray = DeviceArray(buffer, shape, kind)
        self._variables.add(buffer)
        return array

    def close(self) -> None:
        """Unload the module; its kernels and variables raise `ClosedError` then. Idempotent."""
        if self._finalizer.alive:
            self.discard()
            self._finalizer()

    def discard(self) -> None:
        """Take the handles away: the module is unloaded, or its context is destroyed."""
        if not self.closed:
            self.closed = True
            del self.handle
            for kernel in self._kernels.values():
                kernel.discard()
            self._kernels.clear()
            for variable in tuple(self._variables):
                variable.close()

    def _lowered(self) -> Mapping[str, str]:
        return self.image.lowered_names if self.image is not None else {}

    def _take(self, name: str, lowered: str, signature: ptx.KernelSignature | None) -> Kernel:
        with Bound(self.api, self.context.handle):
            code, handle = self.api.cuModuleGetFunction(self.handle, lowered.encode())
        if code == CUresult.CUDA_ERROR_NOT_FOUND:
            names = (*self._lowered(), *self.kernel_names)
            raise KernelNotFoundError(
                f"the module has no kernel {name!r}; it has: {', '.join(names) or 'none'}. A "
                'kernel that is not extern "C" is found by a name expression given to compile',
                name=name,
                available=names,
            )
        if code:
            raise failure(self.api, code, "cuModuleGetFunction", f"taking kernel {name!r}")
        return Kernel(self, name, handle, signature)

    def _enumerate(self) -> tuple[str, ...]:
        """The kernel names that the driver knows; drivers before 12.4 know none."""
        with Bound(self.api, self.context.handle):
            code, count = self.api.cuModuleGetFunctionCount(self.handle)
            if code:
                raise failure(self.api, code, "cuModuleGetFunctionCount", "naming the kernels")
            if count == 0:
                return ()
            code, functions = self.api.cuModuleEnumerateFunctions(count, self.handle)
            if code:
                raise failure(self.api, code, "cuModuleEnumerateFunctions", "naming the kernels")
            names = []
            for function in functions:
                code, text = self.api.cuFuncGetName(function)
                if code:
                    raise failure(self.api, code, "cuFuncGetName", "naming the kernels")
                names.append(text.decode())
        return tuple(names)


def _bytes_of(image: ptx.Image | bytes | bytearray | memoryview) -> bytes:
    if isinstance(image, ptx.Image):
        return image.data
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    # What a type checker would have said.
    raise TypeError(
        f"an image is a ptx.Image, PTX text or bytes, not {type(image).__name__}: "
        "read a file with Path.read_bytes"
    )


def _load(context: Context, data: bytes) -> CUmodule:
    """Load bytes on a context; binary images go in as they are, PTX with a log of its compiler."""
    api = context.api
    binary = data.startswith(_BINARY)
    log = bytearray(0 if binary else _LOG_BYTES)
    with Bound(api, context.handle):
        if binary:
            code, handle = api.cuModuleLoadData(data)
        else:
            # The driver reads PTX up to a zero byte.
            text = data if data.endswith(b"\0") else data + b"\0"
            code, handle = api.cuModuleLoadDataEx(
                text, len(_LOG_OPTIONS), _LOG_OPTIONS, (log, len(log))
            )
    if code:
        call = "cuModuleLoadData" if binary else "cuModuleLoadDataEx"
        error = failure(api, code, call, f"loading {len(data)} bytes on {context!r}")
        said = bytes(log).split(b"\0", 1)[0].decode(errors="replace").strip()
        if said:
            error.add_note(f"the driver's compiler said:\n{said}")
        raise error
    return handle


def _unload(api: DriverApi, handle: CUmodule, context: Context) -> None:
    if not context.closed:
        with contextlib.suppress(CudadrvError), Bound(api, context.handle):
            api.cuModuleUnload(handle)
