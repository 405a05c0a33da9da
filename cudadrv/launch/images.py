"""Images of modules: the accepted forms, and loading them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import ptx
from ptx.cubin_mark import marked
from ptx.ordinary_files import read_bytes
from ptx.visible_text import visible

from .. import errors
from ..driver._api import CUresult
from ..driver.context_handle import ContextHandle, ModuleHandle
from ..driver.driver_selection import failure
from .jit_options import JitLog, JitOptions

ImageLike: TypeAlias = ptx.Image | str | bytes | bytearray | memoryview | Path
_AnyImageT = TypeVar("_AnyImageT")

_BINARY: Final = (b"\x7fELF", b"\x50\xed\x55\xba")  # a cubin; a fatbin (its magic, 0xBA55ED50)


def is_binary(data: bytes) -> bool:
    """Return whether an image is a cubin or a fatbin."""
    return data.startswith(_BINARY)


def as_loadable(image: ImageLike) -> ptx.Image | bytes | bytearray | memoryview:
    """Return an image as loaded: text and files become a `ptx.Image` if they are known PTX."""
    content = _read(image) if isinstance(image, Path) else image
    if not isinstance(content, str):
        return content
    try:
        return ptx.Image.from_ptx(content)
    except ptx.PtxSyntaxError:
        return content.encode()  # the driver may accept it, and else reports what is wrong


def _read(path: Path) -> str | bytes:
    """Return the contents of a file: PTX as text, anything else as bytes."""
    try:
        data = read_bytes(path)
    except ValueError as error:  # a null character
        raise errors.ArgumentValueError(f"{str(path)!r} is not a file name: {error}") from None
    if is_binary(data):
        return data
    try:
        return data.rstrip(b"\0").decode()
    except UnicodeDecodeError:
        return data


def executable(image: _AnyImageT, capability: tuple[int, int]) -> _AnyImageT | ptx.Image:
    """Return an image for an emulated device: of a cubin that runs there the PTX."""
    if not isinstance(image, ptx.Image) or image.kind is not ptx.ImageKind.CUBIN:
        return image
    if image.ptx is None or not image.target.runs_on(capability):
        return image  # the emulated driver rejects it
    return in_place_of_cubin(image, image.ptx)


def in_place_of_cubin(image: ptx.Image, text: str) -> ptx.Image:
    """Return the image of PTX that an emulated driver loads in place of a cubin."""
    target = image.target.as_kind(ptx.ImageKind.PTX)
    return replace(image, target=target, data=marked(text).encode())


def bytes_of(image: ptx.Image | bytes | bytearray | memoryview) -> bytes:
    """Return the bytes that the driver loads."""
    if isinstance(image, ptx.Image):
        return image.data
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    # A type checker reports this too.
    raise errors.ArgumentTypeError(
        f"an image is a ptx.Image, PTX text or bytes, not {type(image).__name__}: "
        "give a file as a Path"
    )


def loaded(context: ContextHandle, data: bytes, jit: JitOptions | None = None) -> ModuleHandle:
    """Load bytes on a context; binary images unchanged, PTX with a log of its compiler."""
    api, handle, log = context.api, ModuleHandle(context), JitLog()
    if is_binary(data):
        call = "cuModuleLoadData"
        code = handle.make(api.cuModuleLoadData, data)
    else:
        call = "cuModuleLoadDataEx"
        # The driver reads PTX up to a zero byte.
        text = data if data.endswith(b"\0") else data + b"\0"
        options = log.options | ({} if jit is None else jit.native())
        jit_arguments = len(options), tuple(options), tuple(options.values())
        code = handle.make(api.cuModuleLoadDataEx, text, *jit_arguments)
    if code:
        raise _rejected(context, code, call, len(data), log.text.strip())
    return handle


def _rejected(
    context: ContextHandle, code: CUresult, call: str, nbytes: int, compiler_log: str
) -> errors.CudadrvError:
    """Return the error of a failed load. It is not bound in `loaded`: no cycle holds its frames."""
    error = failure(context.api, code, call, f"loading {nbytes} bytes on device {context.ordinal}")
    if compiler_log:
        error.add_note(f"the driver's compiler said:\n{visible(compiler_log)}")
    return error


def disassembled(
    image: ptx.Image | None, capability: tuple[int, int]
) -> tuple[ptx.SassFunction, ...]:
    """Return the machine code of an image for a device.

    Raises:
        UnsupportedError: there is no image.
    """
    if image is None:
        raise errors.UnsupportedError(
            "sass needs an image, and this module was loaded from bytes"
            "\n  load a ptx.Image, such as ptx.Image.from_binary(data, ptx.Target.cubin('sm_90'))"
        )
    target = image.target
    if not target.suffix:
        target = ptx.Target.of_capability(ptx.ImageKind.CUBIN, capability)
    return ptx.disassemble(image, target)
