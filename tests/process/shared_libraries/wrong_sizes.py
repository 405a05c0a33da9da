"""A program for the emulator: calls with sizes and counts that cannot be, and paths of any bytes.

It prints a line for each call: the function, the wrong arguments, and the result.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from pathlib import Path
from typing import TypeAlias

Argument: TypeAlias = "int | bytes"
PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u32 n, .param .f32 a, .param .u8 c) { ret; }
.visible .entry e() { ret; }
\0"""
CUDA = ctypes.CDLL("libcuda.so.1")
SIZES = (1 << 40, 1 << 62, (1 << 63) + 64, (1 << 64) - 1)
COUNTS = ((1 << 31) - 1, (1 << 32) - 1)
KEPT: list[object] = []


class Size(int):
    """A size that is right; wrong ones take its place."""


class Count(int):
    """The same of 4 bytes."""


def at(data: bytes) -> int:
    """The address of bytes that stay."""
    KEPT.append(buffer := ctypes.create_string_buffer(data, len(data)))
    return ctypes.addressof(buffer)


def words(*numbers: int) -> int:
    return at(struct.pack(f"{len(numbers)}Q", *numbers))


def mapped(nbytes: int) -> int:
    """The address of so many readable bytes."""
    c_library = ctypes.CDLL(None)
    c_library.mmap.restype = ctypes.c_size_t
    address: int = c_library.mmap(
        None,
        ctypes.c_size_t(nbytes),
        mmap.PROT_READ,
        mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
        -1,
        ctypes.c_long(0),
    )
    return address


def call(name: str, *arguments: Argument) -> int:
    given = [
        ctypes.c_char_p(each) if isinstance(each, bytes) else ctypes.c_size_t(each)
        for each in arguments
    ]
    result: int = getattr(CUDA, name)(*given)
    return result


def made(name: str, *arguments: Argument) -> int:
    result = ctypes.c_size_t()
    code = call(name, ctypes.addressof(result), *arguments)
    assert code == 0, (name, code)
    return result.value


def try_sizes(name: str, *arguments: Argument) -> None:
    """Call with each size replaced by wrong ones."""
    for position, right in enumerate(arguments):
        wrong = SIZES if isinstance(right, Size) else COUNTS if isinstance(right, Count) else ()
        for size in wrong:
            code = call(name, *arguments[:position], size, *arguments[position + 1 :])
            print(name, position, size, code, flush=True)


def try_structure(
    name: str, before: list[int], form: str, fields: list[int], sizes: list[int], after: list[int]
) -> None:
    """Call with sizes of a structure replaced by wrong ones."""
    for position in sizes:
        for size in SIZES:
            changed = [*fields[:position], size, *fields[position + 1 :]]
            code = call(name, *before, at(struct.pack(form, *changed)), *after)
            print(name, f"field {position}", size, code, flush=True)


def try_counts_in_memory(graph: int, node: int, out: int) -> None:
    """Call with counts beyond the caller's array, which stand in memory."""
    for name, owner in (
        ("cuGraphGetNodes", graph),
        ("cuGraphGetRootNodes", graph),
        ("cuGraphNodeGetDependencies", node),
        ("cuGraphNodeGetDependentNodes", node),
    ):
        for size in SIZES:
            print(name, "count", size, call(name, owner, out, words(size)), flush=True)
    for size in SIZES:
        print("cuGraphGetEdges count", size, call("cuGraphGetEdges", graph, out, out, words(size)))


def main() -> None:
    assert CUDA.cuInit(0) == 0
    context = made("cuDevicePrimaryCtxRetain", 0)
    call("cuCtxSetCurrent", context)
    a, b = made("cuMemAlloc_v2", 4096), made("cuMemAlloc_v2", 4096)
    stream = made("cuStreamCreate", 0)
    host, pinned = at(bytes(4096)), made("cuMemHostAlloc", 4096, 0)
    managed, pool = made("cuMemAllocManaged", 4096, 1), made("cuDeviceGetDefaultMemPool", 0)
    graph = made("cuGraphCreate", 0)
    node, other = (made("cuGraphAddEmptyNode", graph, 0, 0) for _ in range(2))
    out, nodes, access = words(*[0] * 64), words(node), at(struct.pack("3i", 1, 0, 3))
    module = made("cuModuleLoadData", at(PTX))
    for bits, width in (("8", 1), ("16", 2), ("32", 4)):
        for memory in (a, managed, pinned):
            try_sizes(f"cuMemsetD{bits}_v2", memory, 1, Size(16 // width))
            try_sizes(f"cuMemsetD2D{bits}_v2", memory, Size(64), 1, Size(4), Size(4))
        try_sizes(f"cuMemsetD2D{bits}Async", a, Size(64), 1, Size(4), Size(4), stream)
    try_sizes("cuMemcpyHtoD_v2", a, host, Size(64))
    try_sizes("cuMemcpyDtoH_v2", host, a, Size(64))
    try_sizes("cuMemcpyDtoDAsync_v2", b, a, Size(64), stream)
    try_sizes("cuMemcpy", b, a, Size(64))
    try_sizes("cuMemcpyPeer", a, context, b, context, Size(64))
    for name in ("cuMemAlloc_v2", "cuMemHostAlloc", "cuMemAllocManaged", "cuMemAllocAsync"):
        try_sizes(name, out, Size(16), stream if name.endswith("Async") else 1)
    try_sizes("cuMemAllocPitch_v2", out, out + 8, Size(16), Size(16), 4)
    try_sizes("cuMemHostRegister_v2", host, Size(4096), 0)
    try_sizes("cuMemAdvise", managed, Size(64), 1, 0)
    try_sizes(
        "cuMemRangeGetAttributes",
        words(out),
        words(4),
        at(struct.pack("i", 1)),
        Size(1),
        managed,
        Size(64),
    )
    try_sizes("cuMemRangeGetAttribute", out, Size(4), 4, managed, Size(64))
    try_sizes("cuMemPoolSetAccess", pool, access, Size(1))
    try_sizes("cuPointerGetAttributes", Count(1), at(struct.pack("i", 2)), words(out), a)
    # All that the count spans can be read; nothing of it is in memory.
    try_sizes("cuPointerGetAttributes", Count(1), mapped(9 << 30), words(out), a)
    try_sizes("cuDevResourceGenerateDesc", out, mapped(400 << 30), Count(1))
    try_sizes("cuStreamBeginCaptureToGraph", stream, graph, nodes, 0, Size(1), 0)
    try_sizes("cuStreamUpdateCaptureDependencies", stream, nodes, Size(1), 0)
    try_sizes("cuStreamBatchMemOp_v2", stream, Count(1), at(bytes(64)), 0)
    try_sizes("cuGraphAddEmptyNode", out, graph, nodes, Size(1))
    try_sizes("cuGraphAddDependencies", graph, nodes, words(other), Size(1))
    try_sizes("cuGraphRemoveDependencies", graph, nodes, words(other), Size(1))
    try_sizes("cuModuleLoadDataEx", out, at(PTX), Count(0), at(struct.pack("i", 5)), words(0))
    try_sizes("cuLinkCreate_v2", Count(0), at(struct.pack("i", 5)), words(0), out)
    call("cuLinkCreate_v2", 0, 0, 0, out)
    link = struct.unpack("Q", ctypes.string_at(out, 8))[0]
    try_sizes("cuLinkAddData_v2", link, 1, at(PTX), Size(len(PTX)), b"x", 0, 0, 0)
    try_sizes(
        "cuMemcpyBatchAsync_v2",
        words(a),
        words(b),
        words(16),
        Size(1),
        at(bytes(64)),
        words(0),
        Size(1),
        stream,
    )
    try_sizes(
        "cuMemPrefetchBatchAsync",
        words(managed),
        words(64),
        Size(1),
        access,
        words(0),
        Size(1),
        0,
        stream,
    )
    fill = [a, 64, 1, 1, 16, 4]
    try_structure("cuGraphAddMemsetNode", [out, graph, 0, 0], "<QQIIQQ", fill, [1, 4, 5], [context])
    rows = [0, 0, 2, 0, a, 0, 64, 0, 0, 2, 0, b, 0, 64, 16, 4]
    form, sizes = "<QQi4xQQQQQQi4xQQQQQQ", [0, 1, 6, 7, 8, 13, 14, 15]
    try_structure("cuMemcpy2D_v2", [], form, rows, sizes, [])
    try_structure("cuArrayCreate_v2", [out], "<QQII", [16, 16, 0x20, 1], [0, 1], [])
    kernel = made("cuModuleGetFunction", module, b"k")
    launch = ("<7I4xQQI4x", [1, 1, 1, 1, 1, 1, 0, stream, at(bytes(72)), 0])
    try_sizes("cuParamSetv", kernel, 0, host, Count(8))
    try_counts_in_memory(graph, node, out)
    for count in COUNTS:
        config = at(struct.pack(launch[0], *launch[1][:-1], count))
        code = call("cuLaunchKernelEx", config, kernel, words(*[host] * 4), 0)
        print("cuLaunchKernelEx attributes", count, code, flush=True)


def parameters() -> None:
    """Launch with each pointer to a parameter missing or wrong, by each function that takes it."""
    module = made("cuModuleLoadData", at(PTX))
    kernel, empty = (made("cuModuleGetFunction", module, name) for name in (b"k", b"e"))
    right, graph, out = [at(bytes(8)) for _ in range(4)], made("cuGraphCreate", 0), words(0)
    ones = (1,) * 6
    config = at(struct.pack("<7I4xQQI4x", *ones, 0, 0, 0, 0))
    reason = ctypes.c_char_p()
    for wrong in (0, 16, 1 << 47, (1 << 64) - 4):
        for position in range(4):
            params = words(*right[:position], wrong, *right[position + 1 :])
            node = at(struct.pack("<Q7I4xQQQQ", kernel, *ones, 0, params, 0, 0, 0))
            codes = [
                call("cuLaunchKernel", kernel, *ones, 0, 0, params, 0),
                call("cuLaunchCooperativeKernel", kernel, *ones, 0, 0, params),
                call("cuLaunchKernelEx", config, kernel, params, 0),
                call("cuGraphAddKernelNode_v2", out, graph, 0, 0, node),
            ]
            call("cuGetErrorString", 1, ctypes.addressof(reason))  # prints the reason, too
            print("parameter", *codes, flush=True)
    for array in (16, 1 << 47, (1 << 64) - 8):
        print("array", call("cuLaunchKernel", kernel, *ones, 0, 0, array, 0))
        print("extra", call("cuLaunchKernel", kernel, *ones, 0, 0, 0, array))
    for buffer in (16, 1 << 47):
        for pointer, size in ((buffer, words(17)), (out, buffer)):
            extra = words(1, pointer, 2, size, 0)
            print("extra", call("cuLaunchKernel", kernel, *ones, 0, 0, 0, extra))
    print("none needed", call("cuLaunchKernel", empty, *ones, 0, 0, 16, 0))
    print("right", call("cuLaunchKernel", kernel, *ones, 0, 0, words(*right), 0), flush=True)


def pages() -> None:
    """Copy with host memory of five pages, of which one cannot be written, or not even read."""
    page, size = mmap.PAGESIZE, 5 * mmap.PAGESIZE
    device = made("cuMemAlloc_v2", size)
    protect = ctypes.CDLL(None).mprotect
    host = mapped(size)
    protect(ctypes.c_void_p(host), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_WRITE)
    for number in (0, 2, 4):
        hole = host + number * page
        for protection in (mmap.PROT_READ, 0, mmap.PROT_READ | mmap.PROT_WRITE):
            protect(ctypes.c_void_p(hole), ctypes.c_size_t(page), protection)
            to_host = struct.pack("<16Q", 0, 0, 2, 0, device, 0, 0, 0, 0, 1, host, 0, 0, 0, size, 1)
            codes = [
                call("cuMemcpyDtoH_v2", host, device, size),
                call("cuMemcpyDtoHAsync_v2", host, device, size, 0),
                call("cuMemcpy", host, device, size),
                call("cuMemcpyAsync", host, device, size, 0),
                call("cuMemcpy2D_v2", at(to_host)),
                call("cuMemcpyHtoD_v2", device, host, size),
                call("cuMemcpyHtoDAsync_v2", device, host, size, 0),
                call("cuMemcpy", device, host, size),
                call("cuMemAlloc_v2", hole, 8),
                call("cuCtxSynchronize"),
            ]
            print("pages", *codes, flush=True)


def no_blocks() -> None:
    """Add and change nodes of graphs whose grid or block is empty, in both forms."""
    kernel = made("cuModuleGetFunction", made("cuModuleLoadData", at(PTX)), b"e")
    for version in ("", "_v2"):
        graph = made("cuGraphCreate", 0)

        def node(*extents: int) -> int:
            return at(struct.pack("<Q7I4xQQQQ", kernel, *extents, 0, 0, 0, 0, 0))

        right = node(*(1,) * 6)
        added = made(f"cuGraphAddKernelNode{version}", graph, 0, 0, right)
        executable = made("cuGraphInstantiateWithFlags", graph, 0)
        for place in range(6):
            extents = [int(each != place) for each in range(6)]
            wrong = node(*extents)
            codes = [
                call(f"cuGraphAddKernelNode{version}", words(0), graph, 0, 0, wrong),
                call(f"cuGraphKernelNodeSetParams{version}", added, wrong),
                call(f"cuGraphKernelNodeSetParams{version}", added, right),
                call(f"cuGraphExecKernelNodeSetParams{version}", executable, added, wrong),
                call(f"cuGraphExecKernelNodeSetParams{version}", executable, added, right),
                call("cuLaunchKernel", kernel, *extents, 0, 0, 0, 0),
            ]
            print("empty", *codes, flush=True)


def released() -> None:
    """Use structures at addresses that are not mapped, and in memory that was just released."""
    out = words(0)
    for address in (16, 1 << 47):
        print("fabric", call("cuMemImportFromShareableHandle", out, address, 8), flush=True)
    for release, allocation in (
        ("cuMemFreeHost", ("cuMemHostAlloc", 1 << 20, 0)),
        ("cuMemFree_v2", ("cuMemAllocManaged", 1 << 20, 1)),
    ):
        address = made(*allocation)
        before = call("cuMemcpy2D_v2", address)  # rows of no bytes
        assert call(release, address) == 0
        print("released", before, call("cuMemcpy2D_v2", address), flush=True)


def paths() -> None:
    """Load from files whose names are no text."""
    name = b"caf\xe9.ptx"
    Path(os.fsdecode(name)).write_bytes(PTX)
    out = words(0)
    print("cuModuleLoad", call("cuModuleLoad", out, name))
    print("cuLibraryLoadFromFile", call("cuLibraryLoadFromFile", out, name, 0, 0, 0, 0, 0, 0))
    call("cuLinkCreate_v2", 0, 0, 0, out)
    link = struct.unpack("Q", ctypes.string_at(out, 8))[0]
    print("cuLinkAddFile", call("cuLinkAddFile_v2", link, 1, name, 0, 0, 0))
    print("cuLogsDumpToFile", call("cuLogsDumpToFile", 0, b"log-\xe9.txt", 0))
    print("absent", call("cuModuleLoad", out, b"absent-\xe9.ptx"))
    print(sorted(map(os.fsencode, os.listdir())))
    module = made("cuModuleLoadData", at(PTX))
    print("cuModuleGetFunction", call("cuModuleGetFunction", out, module, b"\xe9"), flush=True)


if __name__ == "__main__":
    main()
    parameters()
    pages()
    no_blocks()
    released()
    paths()
