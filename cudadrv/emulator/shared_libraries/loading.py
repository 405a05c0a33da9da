"""Modules, libraries and links: images, and the options of their loading."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Final

from ...driver._api import CUresult
from ..emulator import Emulator
from .handlers import Handlers, Texts, call, ints_at, passed_on, put_size, put_uint, sizes_at

LOADING: Final = Handlers()
_TEXTS: Final = Texts()
_ELF: Final = b"\x7fELF"
_FATBIN: Final = b"\x50\xed\x55\xba"
_WRAPPED: Final = b"\xb1\x43\x62\x46"  # __fatBinC_Wrapper_t, whose third field is the fatbin
_UPLOAD: Final = 2  # CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD


def image_at(address: int) -> bytes:
    """Return the image at a caller's address; of a binary only enough to identify it."""
    head = ctypes.string_at(address, 4)
    if head == _WRAPPED:
        return image_at(ctypes.c_size_t.from_address(address + 8).value)
    return head if head in (_ELF, _FATBIN) else ctypes.string_at(address)


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
    given = (image_at(image), count, ints_at(options, count), sizes_at(values, count))
    return passed_on(api, "cuModuleLoadDataEx", given, result)


@LOADING("cuModuleLoad")
def load_file(api: Emulator, result: int, path: bytes) -> int:
    """Load a module from a file."""
    try:
        image = Path(path.decode()).read_bytes()
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
    given = (image_at(image), ints_at(options, count), sizes_at(values, count), count,
             ints_at(library_options, library_count), sizes_at(library_values, library_count),
             library_count)  # fmt: skip
    return passed_on(api, "cuLibraryLoadData", given, result)


@LOADING("cuLibraryLoadFromFile")
def load_library_file(api: Emulator, result: int, path: bytes, *given: int) -> int:
    """Load a library from a file."""
    try:
        image = Path(path.decode()).read_bytes()
    except OSError:
        return int(CUresult.CUDA_ERROR_FILE_NOT_FOUND)
    kept = ctypes.create_string_buffer(image)
    return load_library(api, result, ctypes.addressof(kept), *given)


@LOADING("cuLibraryEnumerateKernels")
def enumerate_kernels(api: Emulator, results: int, count: int, library: int) -> int:
    """Return the first kernels of a library."""
    return _put_handles(api, "cuLibraryEnumerateKernels", results, count, library)


def _put_handles(api: Emulator, name: str, results: int, count: int, owner: int) -> int:
    code, handles = call(api, name, count, owner)
    if not code:
        for at, handle in enumerate(filter(None, map(int, handles))):
            put_size(results + 8 * at, handle)
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
    given = (count, ints_at(options, count), sizes_at(values, count))
    return passed_on(api, "cuLinkCreate", given, result)


@LOADING("cuLinkAddData_v2")
def link_add_data(
    api: Emulator, link: int, kind: int, data: int, nbytes: int, name: bytes | None, *rest: int
) -> int:
    """Add an input."""
    image = ctypes.string_at(data, nbytes)
    return int(call(api, "cuLinkAddData", link, kind, image, nbytes, name or b"", 0, (), ())[0])


@LOADING("cuLinkAddFile_v2")
def link_add_file(api: Emulator, link: int, kind: int, path: bytes, *rest: int) -> int:
    """Add an input from a file."""
    try:
        image = Path(path.decode()).read_bytes()
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
    room = ctypes.c_size_t.from_address(count).value if results else 0
    code, nodes, found = call(api, "cuGraphGetNodes", graph, room)
    if not code:
        for at, node in enumerate(nodes or ()):
            put_size(results + 8 * at, node)
        put_size(count, found)
    return int(code)


@LOADING("cuGraphInstantiateWithParams")
def instantiate_with_parameters(api: Emulator, result: int, graph: int, params: int) -> int:
    """Read CUDA_GRAPH_INSTANTIATE_PARAMS (flags, upload stream), and write the outcome there."""
    flags, stream = sizes_at(params, 2)
    put_size(params + 16, 0)
    code = passed_on(api, "cuGraphInstantiate", (graph, flags & ~_UPLOAD), result)
    if not code and flags & _UPLOAD:
        executable = ctypes.c_size_t.from_address(result).value
        code = int(call(api, "cuGraphUpload", executable, stream)[0])
    put_uint(params + 24, 0 if not code else 1)
    return code
