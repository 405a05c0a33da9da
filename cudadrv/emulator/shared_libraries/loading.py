"""Modules, libraries and links: images, and the options of their loading."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

from ...driver._api import CUresult
from ..emulator import Emulator
from .caller_structures import bytes_at, image_at
from .handlers import Handlers, Texts, call, passed_on, put_bytes, put_size

LOADING: Final = Handlers()
_TEXTS: Final = Texts()
_MOST_HANDLES: Final = 1 << 16  # of kernels; a larger count has room for all of them, too


@LOADING("cuModuleLoadFatBinary")
def load_fat_binary(api: Emulator, result: int, image: bytes) -> int:
    """Load a module, as cuModuleLoadData does."""
    return passed_on(api, "cuModuleLoadData", (image,), result)


@LOADING("cuModuleLoad")
def load_file(api: Emulator, result: int, path: bytes) -> int:
    """Load a module from a file."""
    try:
        image = Path(os.fsdecode(path)).read_bytes()
    except OSError:
        return int(CUresult.CUDA_ERROR_FILE_NOT_FOUND)
    return passed_on(api, "cuModuleLoadData", (image,), result)


@LOADING("cuModuleEnumerateFunctions")
def enumerate_functions(api: Emulator, results: int, count: int, module: int) -> int:
    """Return the first functions of a module."""
    return _put_handles(api, "cuModuleEnumerateFunctions", results, count, module)


@LOADING("cuLibraryLoadFromFile")
def load_library_file(api: Emulator, result: int, path: bytes, *options: object) -> int:
    """Load a library from a file."""
    try:
        image = Path(os.fsdecode(path)).read_bytes()
    except OSError:
        return int(CUresult.CUDA_ERROR_FILE_NOT_FOUND)
    buffer = ctypes.create_string_buffer(image)
    arguments = (image_at(ctypes.addressof(buffer)), *options)
    return passed_on(api, "cuLibraryLoadData", arguments, result)


@LOADING("cuLibraryEnumerateKernels")
def enumerate_kernels(api: Emulator, results: int, count: int, library: int) -> int:
    """Return the first kernels of a library."""
    return _put_handles(api, "cuLibraryEnumerateKernels", results, count, library)


def _put_handles(api: Emulator, name: str, results: int, count: int, owner: int) -> int:
    code, handles = call(api, name, min(count, _MOST_HANDLES), owner)
    if not code:
        for index, handle in enumerate(filter(None, map(int, handles))):
            put_size(results + 8 * index, handle)
    return int(code)


@LOADING("cuFuncGetName")
def function_name(api: Emulator, result: int, function: int) -> int:
    """Return the name of a kernel, which stays valid."""
    return _put_name(api, "cuFuncGetName", result, function)


@LOADING("cuKernelGetName")
def kernel_name(api: Emulator, result: int, kernel: int) -> int:
    """Return the name of a kernel, which stays valid."""
    return _put_name(api, "cuKernelGetName", result, kernel)


def _put_name(api: Emulator, name: str, result: int, handle: int) -> int:
    code, text = call(api, name, handle)
    if not code:
        put_size(result, _TEXTS.address(text))
    return int(code)


@LOADING("cuLinkAddData_v2")
def link_add_data(
    api: Emulator, link: int, kind: int, data: int, nbytes: int, name: bytes | None, *options: int
) -> int:
    """Add an input."""
    image = bytes_at(data, nbytes)
    return int(call(api, "cuLinkAddData", link, kind, image, nbytes, name or b"", 0, (), ())[0])


@LOADING("cuLinkAddFile_v2")
def link_add_file(api: Emulator, link: int, kind: int, path: bytes, *options: int) -> int:
    """Add an input from a file."""
    try:
        image = Path(os.fsdecode(path)).read_bytes()
    except OSError:
        return int(CUresult.CUDA_ERROR_FILE_NOT_FOUND)
    return int(call(api, "cuLinkAddData", link, kind, image, len(image), path, 0, (), ())[0])


@LOADING("cuGraphInstantiate")
@LOADING("cuGraphInstantiate_v2")
def instantiate_of_old(
    api: Emulator, result: int, graph: int, failed: int, log: int, nbytes: int
) -> int:
    """Instantiate a graph; the emulator names no node that failed, and writes an empty log."""
    put_size(failed, 0)
    if nbytes:
        put_bytes(log, b"\0")
    return passed_on(api, "cuGraphInstantiate", (graph, 0), result)
