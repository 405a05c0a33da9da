"""Modules, libraries and links: images, and the options of their loading."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

from ptx.isa.fatbin import HEADER as FATBIN_HEADER, MAGIC as FATBIN_MAGIC

from ...driver._api import CUDA_GRAPH_INSTANTIATE_PARAMS, CUresult
from ..caller_memory import mapped, text_at, view_at
from ..emulator import Emulator
from .handlers import (
    Handlers,
    Texts,
    bytes_at,
    call,
    ints_at,
    passed_on,
    put_bytes,
    put_size,
    sizes_at,
)

LOADING: Final = Handlers()
_TEXTS: Final = Texts()
_MOST_HANDLES: Final = 1 << 16  # of kernels; a larger count has room for all of them, too
_ELF: Final = b"\x7fELF"
_WRAPPED: Final = b"\xb1\x43\x62\x46"  # __fatBinC_Wrapper_t, whose third field is the fatbin


def image_at(address: int) -> bytes:
    """Return the image at a caller's address; of a cubin only enough to identify it."""
    head = bytes_at(address, 4)
    if head == _WRAPPED:
        return image_at(view_at(ctypes.c_size_t, address + 8).value)
    if head == FATBIN_MAGIC:
        _, _, header, nbytes = FATBIN_HEADER.unpack(bytes_at(address, FATBIN_HEADER.size))
        return bytes_at(address, header + nbytes)
    return head if head == _ELF else text_at(address) or b""


@LOADING("cuModuleLoadData")
@LOADING("cuModuleLoadFatBinary")
def load_data(api: Emulator, result: int, image: int) -> int:
    """Load a module."""
    return passed_on(api, "cuModuleLoadData", (image_at(image),), result)


@LOADING("cuModuleLoadDataEx")
def load_data_with_options(
    api: Emulator, result: int, image: int, count: int, options: int, values: int
) -> int:
    """Load a module, and fill the requested logs."""
    arguments = (image_at(image), count, ints_at(options, count), sizes_at(values, count))
    return passed_on(api, "cuModuleLoadDataEx", arguments, result)


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


@LOADING("cuLibraryLoadData")
def load_library(
    api: Emulator, result: int, image: int, options: int, values: int, count: int,
    library_options: int, library_values: int, library_count: int,
) -> int:  # fmt: skip
    """Load a library."""
    arguments = (image_at(image), ints_at(options, count), sizes_at(values, count), count,
             ints_at(library_options, library_count), sizes_at(library_values, library_count),
             library_count)  # fmt: skip
    return passed_on(api, "cuLibraryLoadData", arguments, result)


@LOADING("cuLibraryLoadFromFile")
def load_library_file(api: Emulator, result: int, path: bytes, *options: int) -> int:
    """Load a library from a file."""
    try:
        image = Path(os.fsdecode(path)).read_bytes()
    except OSError:
        return int(CUresult.CUDA_ERROR_FILE_NOT_FOUND)
    buffer = ctypes.create_string_buffer(image)
    return load_library(api, result, ctypes.addressof(buffer), *options)


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


@LOADING("cuLinkCreate_v2")
def link_create(api: Emulator, count: int, options: int, values: int, result: int) -> int:
    """Begin a link."""
    arguments = (count, ints_at(options, count), sizes_at(values, count))
    return passed_on(api, "cuLinkCreate", arguments, result)


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


@LOADING("cuLinkComplete")
def link_complete(api: Emulator, link: int, image: int, nbytes: int) -> int:
    """End a link; the image is valid until the link is destroyed."""
    code, address, size = call(api, "cuLinkComplete", link)
    if not code:
        put_size(image, address)
        put_size(nbytes, size)
    return int(code)


@LOADING("cuGraphGetNodes")
def graph_nodes(api: Emulator, graph: int, results: int, count: int) -> int:
    """Return the nodes of a graph, or how many there are."""
    capacity = view_at(ctypes.c_size_t, count).value if results else 0
    code, nodes, node_count = call(api, "cuGraphGetNodes", graph, capacity)
    if not code:
        for index, node in enumerate(nodes or ()):
            put_size(results + 8 * index, node)
        put_size(count, node_count)
    return int(code)


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


@LOADING("cuGraphInstantiateWithParams")
def instantiate_with_parameters(api: Emulator, result: int, graph: int, params: int) -> int:
    """Instantiate a graph by CUDA_GRAPH_INSTANTIATE_PARAMS, which receives the outcome."""
    native = CUDA_GRAPH_INSTANTIATE_PARAMS(_ptr=mapped(params, 32)) if params else None
    return passed_on(api, "cuGraphInstantiateWithParams", (graph, native), result)
