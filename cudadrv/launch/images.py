"""Images of modules: what they are given as, and loading them."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import ptx

from .. import errors
from ..driver._api import CUjit_option
from ..driver.context_box import ContextBox
from ..driver.in_use import failure
from ..driver.module_box import ModuleBox
from .jit_options import JitOptions

ImageLike: TypeAlias = ptx.Image | str | bytes | bytearray | memoryview | Path
_BINARY = (b"\x7fELF", b"\x50\xed\x55\xba")  # a cubin; a fatbin (its magic, 0xBA55ED50)
_LOG_BYTES = 16384
_LOG_OPTIONS = (
    CUjit_option.CU_JIT_ERROR_LOG_BUFFER,
    CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
)


def read(path: Path) -> str | bytes:
    """What a file has: PTX as text, anything else as bytes."""
    try:
        data = path.read_bytes()
    except ValueError as error:  # a null character
        raise errors.ArgumentValueError(f"{str(path)!r} is no file's name: {error}") from None
    if data.startswith(_BINARY):
        return data
    try:
        return data.rstrip(b"\0").decode()
    except UnicodeDecodeError:
        return data


def bytes_of(image: ptx.Image | bytes | bytearray | memoryview) -> bytes:
    """The bytes that the driver loads."""
    if isinstance(image, ptx.Image):
        return image.data
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    # What a type checker would have said.
    raise errors.ArgumentTypeError(
        f"an image is a ptx.Image, PTX text or bytes, not {type(image).__name__}: "
        "give a file as a Path"
    )


def loaded(context: ContextBox, data: bytes, jit: JitOptions | None = None) -> ModuleBox:
    """Load bytes on a context; binary images go in as they are, PTX with a log of its compiler."""
    api, box = context.api, ModuleBox(context)
    binary = data.startswith(_BINARY)
    log = bytearray(0 if binary else _LOG_BYTES)
    if binary:
        code = box.make(api.cuModuleLoadData, data)
    else:
        # The driver reads PTX up to a zero byte.
        text = data if data.endswith(b"\0") else data + b"\0"
        told = {} if jit is None else jit.native()
        options, values = (*_LOG_OPTIONS, *told), (log, len(log), *told.values())
        code = box.make(api.cuModuleLoadDataEx, text, len(options), options, values)
    if code:
        call = "cuModuleLoadData" if binary else "cuModuleLoadDataEx"
        doing = f"loading {len(data)} bytes on device {context.ordinal}"
        error = failure(api, code, call, doing)
        said = bytes(log).split(b"\0", 1)[0].decode(errors="replace").strip()
        if said:
            error.add_note(f"the driver's compiler said:\n{said}")
        raise error
    return box
