"""Live handles of every kind and valid structures, which a program makes before its calls.

A handle has a number in plans and pages. The program replaces it by the handle's value, which it
finds in a slot of the first page. The same steps serve programs of Python and of C.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import Final

PAGE: Final = 4096
FIRST_PAGE: Final = 1 << 36
FIRST_HANDLE: Final = 0xFACE << 48
"""The number of slot 0, whose value is a function of C that does nothing."""
CUDA: Final = "libcuda.so.1"
NVML: Final = "libnvidia-ml.so.1"
LINKER: Final = "libnvJitLink.so.13"
PTX: Final = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u32 n) { ret; }
"""
Planned = tuple[str, str, tuple[int, ...]]
"""A call: library, symbol and arguments."""
RESULT: Final = -1
"""As an argument: the address of the slot of the handle that the call makes."""


class Pages:
    """Memory with content, in pages of which each is followed by one of zeros."""

    def __init__(self) -> None:
        self._contents = [bytes(PAGE)]  # the slots

    def add(self, content: bytes) -> int:
        """Add a page, and return its address."""
        self._contents.append(content.ljust(PAGE, b"\0"))
        return FIRST_PAGE + 2 * PAGE * (len(self._contents) - 1)

    def content(self) -> bytes:
        """Return the bytes from `FIRST_PAGE` on."""
        return b"".join(each.ljust(2 * PAGE, b"\0") for each in self._contents)


class Preparation:
    """The steps that make handles.

    Attributes:
        handles: the numbers of the handles, by kind.
        structures: addresses of valid structures, by kind.
    """

    def __init__(self, pages: Pages) -> None:
        self.steps: list[Planned] = []
        self.handles: dict[str, list[int]] = defaultdict(list)
        self.structures: dict[str, int] = {}
        self._pages = pages
        self._slots = 1

    def call(self, symbol: str, *arguments: int, library: str = CUDA) -> None:
        """Add a call that makes nothing."""
        self.steps.append((library, symbol, arguments))

    def make(self, kind: str, symbol: str, *arguments: int, library: str = CUDA) -> int:
        """Add a call that makes a handle, and return the handle's number."""
        slot = FIRST_PAGE + 8 * self._slots
        given = tuple(slot if each == RESULT else each for each in arguments)
        self.call(symbol, *given, library=library)
        number = FIRST_HANDLE + self._slots
        self.handles[kind].append(number)
        self._slots += 1
        return number

    def structure(self, kind: str, form: str, *fields: int) -> int:
        """Add a structure to the pages, and return its address."""
        self.structures[kind] = self._pages.add(struct.pack(f"<{form}", *fields))
        return self.structures[kind]

    def text(self, content: bytes) -> int:
        """Add a text to the pages, and return its address."""
        return self._pages.add(content)


def inside(handle: int, offset: int) -> int:
    """Return the number of an address inside of memory."""
    return handle + (offset << 16)


def prepared(pages: Pages, *, capturing: bool) -> Preparation:
    """Return the steps that make all handles and structures; a stream of them may capture."""
    made = Preparation(pages)
    _make_basics(made)
    _make_graph(made)
    _make_images(made)
    _make_arrays(made)
    _make_green_context(made)
    _make_memory(made)
    if capturing:
        stream = made.make("stream", "cuStreamCreate", RESULT, 1)
        made.call("cuStreamBeginCapture_v2", stream, 2)
    made.call("nvmlInit_v2", library=NVML)
    made.make("nvml", "nvmlDeviceGetHandleByIndex_v2", 0, RESULT, library=NVML)
    option = made.text(b"-arch=sm_90")
    options = made.structure("options", "Q", option)
    made.make("linker", "nvJitLinkCreate", RESULT, 1, options, library=LINKER)
    made.call("cuCtxSetCurrent", made.handles["context"][0])
    return made


def _make_basics(made: Preparation) -> None:
    made.call("cuCtxSetCurrent", made.make("context", "cuDevicePrimaryCtxRetain", RESULT, 0))
    made.make("stream", "cuStreamCreate", RESULT, 1)
    made.make("event", "cuEventCreate", RESULT, 0)
    image, name = made.text(PTX), made.text(b"k")
    made.structures |= {"image": image, "name": name}
    module = made.make("module", "cuModuleLoadData", RESULT, image)
    made.make("kernel", "cuModuleGetFunction", RESULT, module, name)
    made.make("memory", "cuMemAlloc_v2", RESULT, PAGE)
    made.make("user", "cuUserObjectCreate", RESULT, 0, FIRST_HANDLE, 4, 1)


def _make_graph(made: Preparation) -> None:
    kernel, memory = made.handles["kernel"][0], made.handles["memory"][0]
    graph = made.make("graph", "cuGraphCreate", RESULT, 0)
    made.make("node", "cuGraphAddEmptyNode", RESULT, graph, 0, 0)
    values = made.structure("values", "QI", memory, 1)
    arguments = made.structure("arguments", "QQ", values, values + 8)
    launch = (kernel, 1, 1, 1, 1, 1, 1, 0, arguments, 0, 0, 0)
    launched = made.structure("launched", "Q7I4xQQQQ", *launch)
    made.make("node", "cuGraphAddKernelNode_v2", RESULT, graph, 0, 0, launched)
    made.structure("node", "I12xQ7I4xQQQQ", 0, *launch)
    stream, event = made.handles["stream"][0], made.handles["event"][0]
    made.structure("config", "7I4xQQI", 1, 1, 1, 1, 1, 1, 0, stream, 0, 0)
    made.make("node", "cuGraphAddEventRecordNode", RESULT, graph, 0, 0, event)
    fill = made.structure("fill", "QQIIQQ", memory, 0, 7, 1, 16, 1)
    context = made.handles["context"][0]
    made.make("node", "cuGraphAddMemsetNode", RESULT, graph, 0, 0, fill, context)
    side = (0, 0, 0, 0, 2, 0, memory, 0, 0, 64, 4)
    copy = made.structure("copy", "QQQQI4xQQQQQQ" * 2 + "QQQ", *side, *side, 16, 1, 1)
    made.make("node", "cuGraphAddMemcpyNode", RESULT, graph, 0, 0, copy, context)
    flat = (0, 0, 2, 0, memory, 0, 64)
    made.structure("rows", "QQI4xQQQQ" * 2 + "QQ", *flat, *flat, 16, 2)
    child = made.make("graph", "cuGraphCreate", RESULT, 0)
    made.make("node", "cuGraphAddChildGraphNode", RESULT, graph, 0, 0, child)
    made.make("executable", "cuGraphInstantiateWithFlags", RESULT, graph, 0)


def _make_images(made: Preparation) -> None:
    image, name = made.structures["image"], made.structures["name"]
    library = made.make("library", "cuLibraryLoadData", RESULT, image, 0, 0, 0, 0, 0, 0)
    made.make("kernel", "cuLibraryGetKernel", RESULT, library, name)
    for _ in range(3):
        link = made.make("link", "cuLinkCreate_v2", 0, 0, 0, RESULT)
        made.call("cuLinkAddData_v2", link, 1, image, len(PTX) + 1, name, 0, 0, 0)


def _make_arrays(made: Preparation) -> None:
    flat = made.structure("flat", "QQII", 64, 4, 0x20, 1)
    made.structure("cubic", "QQQIII", 64, 4, 0, 0x20, 1, 2)
    array = made.make("array", "cuArrayCreate_v2", RESULT, flat)
    resource = made.structure("resource", "QQ", 0, array)
    texture = made.structure("texture", "Q", 0)
    made.make("texture", "cuTexObjectCreate", RESULT, resource, texture, 0)
    made.make("surface", "cuSurfObjectCreate", RESULT, resource)


def _make_green_context(made: Preparation) -> None:
    resources = made.structure("resources", "Q", 0)
    made.call("cuDeviceGetDevResource", 0, resources, 1)
    described = made.make("described", "cuDevResourceGenerateDesc", RESULT, resources, 1)
    green = made.make("green", "cuGreenCtxCreate", RESULT, described, 0, 1)
    made.make("context", "cuCtxFromGreenCtx", RESULT, green)
    made.make("stream", "cuGreenCtxStreamCreate", RESULT, green, 1, 0)


def _make_memory(made: Preparation) -> None:
    stream = made.handles["stream"][0]
    made.make("pool", "cuDeviceGetDefaultMemPool", RESULT, 0)
    made.make("memory", "cuMemAllocAsync", RESULT, PAGE, stream)
    made.make("memory", "cuMemAllocManaged", RESULT, PAGE, 1)
    made.make("memory", "cuMemHostAlloc", RESULT, PAGE, 3)
    made.handles["memory"] += [inside(each, 64) for each in made.handles["memory"]]
    properties = made.structure("properties", "4i", 1, 1, 1, 0)
    made.structure("pool", "4i", 1, 0, 1, 0)
    made.structure("access", "3i", 1, 0, 3)
    made.make("physical", "cuMemCreate", RESULT, 2 << 20, properties, 0)
    made.make("range", "cuMemAddressReserve", RESULT, 2 << 20, 0, 0, 0)
