"""Handles, and what each stands for: a table for each kind of object.

Handles are numbers that are never given again, so that a dead one names nothing. Only a primary
context has one handle for ever, as on a GPU.

The tables need no lock: each look-up or removal is one operation of a dict, and where a removal
must be the only one it is done under the lock of what is removed.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ..driver._api import CUcontext, CUresult
from .contexts import Context
from .events import Event
from .graphs import Conditions
from .refusal import Refusal
from .streams import Capture, Stream

if TYPE_CHECKING:
    from .arrays import Array, MipmappedArray
    from .executables import Executable
    from .graphs import Graph, Node, UserObject
    from .leaks import LeakWatch
    from .modules import Function, Library, LibraryKernel, Module, PendingLink
    from .sm_resources import SmRange


class HandleTables:
    """The handles of an emulator."""

    def __init__(self, serial: int) -> None:
        # Those of other emulators have other serial numbers, so that a foreign one is refused.
        self._handles = itertools.count((serial + 1) << 32, 16)
        # Those of contexts tell it, so that a destroyed one is known and nothing of it is kept.
        self._first_context = self._next_context = (serial + 1) << 32 | 8
        self._contexts: dict[int, Context] = {}
        # By ordinal.
        self._primaries: dict[int, Context] = {}
        self._streams: dict[int, Stream] = {}
        # By context and thread; 0 is no thread, but the legacy stream.
        self._default_streams: dict[tuple[Context, int], Stream] = {}
        self._captures: set[Capture] = set()
        self._events: dict[int, Event] = {}
        self._modules: dict[int, Module] = {}
        self._libraries: dict[int, Library] = {}
        self._kernels: dict[int, LibraryKernel] = {}
        self._links: dict[int, PendingLink] = {}
        self._green: dict[int, Context] = {}
        self._descriptions: dict[int, tuple[SmRange, ...]] = {}
        self._functions: dict[int, Function] = {}
        self._graphs: dict[int, Graph] = {}
        self._nodes: dict[int, Node] = {}
        self._conditions = Conditions()
        self._executables: dict[int, Executable] = {}
        self._user_objects: dict[int, UserObject] = {}
        self._arrays: dict[int, Array] = {}
        self._mipmapped_arrays: dict[int, MipmappedArray] = {}
        # Textures and surfaces themselves are in the models of their devices.
        self._texture_owners: dict[int, Context] = {}

    def _watch_handles(self, leaks: LeakWatch) -> None:
        """Watch what a program closes from now on."""
        self._streams = leaks.handles("stream", self._streams)
        self._events = leaks.handles("event", self._events)
        self._modules = leaks.handles("module", self._modules)
        self._graphs = leaks.handles("graph", self._graphs)
        self._executables = leaks.handles("executable graph", self._executables)
        self._arrays = leaks.handles("array", self._arrays)
        self._mipmapped_arrays = leaks.handles("mipmapped array", self._mipmapped_arrays)
        self._texture_owners = leaks.handles("texture or surface", self._texture_owners)

    def _context_handle(self) -> int:
        """A handle for a new context; `_lock` is held."""
        handle = self._next_context
        self._next_context += 16
        return handle

    def _context(self, handle: CUcontext) -> Context:
        """The context of a handle; of those that are destroyed only a primary one."""
        number = int(handle)
        found = self._contexts.get(number)
        if found is None:
            if number & 15 == 8 and self._first_context <= number < self._next_context:
                raise Refusal(CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context is destroyed")
            raise Refusal(
                CUresult.CUDA_ERROR_INVALID_CONTEXT, f"{int(handle):#x} is no context's handle"
            )
        return found
