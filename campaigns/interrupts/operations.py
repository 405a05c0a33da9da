"""What is interrupted: the public operations by their names."""

from __future__ import annotations

from typing import Final

from . import memory, objects
from .place import Operation

OPERATIONS: Final[dict[str, Operation]] = {
    "upload": memory.upload,
    "download": memory.download,
    "upload of 16 MiB": memory.large_upload,
    "download of 16 MiB": memory.large_download,
    "copies of pinned arrays": memory.pinned_copies,
    "managed arrays": memory.managed,
    "fill": memory.fill,
    "allocations": memory.allocate,
    "use on another stream": memory.other_stream,
    "unordered": memory.unordered,
    "copy between devices": memory.peer_copy,
    "launches": memory.launch,
    "host function": memory.host_function,
    "streams": objects.streams,
    "events": objects.events,
    "contexts": objects.contexts,
    "green contexts": objects.green_contexts,
    "links": objects.links,
    "capture and graphs": objects.capture,
    "update of a graph": objects.graph_update,
    "building of graphs": objects.graph_building,
    "captures of a client": objects.client_capture,
    "allocator": objects.allocator,
    "arena": objects.arena,
    "trace": objects.trace,
    "textures and arrays": objects.textures,
    "modules": objects.modules,
    "compile, cold": objects.compile_cold,
    "compile, warm": objects.compile_warm,
    "scatter": objects.scatter,
}

LONG: Final[dict[str, Operation]] = {
    "upload of 64 MiB": memory.huge_upload,
    "download of 64 MiB": memory.huge_download,
    "scatter": objects.scatter,
    "compile, cold": objects.compile_cold,
    "capture and graphs": objects.capture,
    "captures of a client": objects.client_capture,
    "trace": objects.trace,
}
"""What is interrupted at random moments."""
