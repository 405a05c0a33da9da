"""The driver's linker, which links PTX to PTX here.

CUDA Driver API: "Module Management", cuLinkCreate.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Final

from ptx.errors import PtxError
from ptx.isa.linked_text import link_texts

from ...driver._api import CUresult
from ..core import Core
from ..modules import PendingLink
from ..refusal import OK, SUCCESS, Refusal, invalid_handle
from .call import call

_PTX: Final = 1  # CU_JIT_INPUT_PTX


class LinkCalls(Core):
    """The driver's linker."""

    @call(1)
    def cuLinkCreate(
        self, num_options: int, options: Sequence[int], option_values: Sequence[object], /
    ) -> tuple[CUresult, int]:
        """Begin a link; its options have no effect."""
        self._current()
        handle = next(self._handles)
        self._links[handle] = PendingLink()
        return SUCCESS, handle

    @call()
    def cuLinkAddData(
        self, state: int, kind: int, data: bytes, size: int, name: bytes, /
    ) -> tuple[CUresult]:
        """Add an input; only PTX is linked."""
        if int(kind) != _PTX:
            raise Refusal(
                CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU,
                f"the emulator executes PTX and links PTX, not inputs of kind {int(kind)}",
            )
        text = bytes(data)[:size].rstrip(b"\0").decode(errors="replace")
        self._link(state).inputs.append((bytes(name).decode(errors="replace"), text))
        return OK

    @call(2)
    def cuLinkComplete(self, state: int, /) -> tuple[CUresult, int, int]:
        """Link; the image is there until the link is destroyed."""
        link = self._link(state)
        try:
            text = link_texts(link.inputs) if link.inputs else ""
        except PtxError as error:
            raise Refusal(CUresult.CUDA_ERROR_INVALID_PTX, str(error), error) from None
        link.image = ctypes.create_string_buffer(text.encode())
        return SUCCESS, ctypes.addressof(link.image), len(link.image)

    @call()
    def cuLinkDestroy(self, state: int, /) -> tuple[CUresult]:
        """Forget a link and its image."""
        self._link(state)
        self._links.pop(int(state), None)
        return OK

    def _link(self, handle: int) -> PendingLink:
        link = self._links.get(int(handle))
        if link is None:
            raise invalid_handle(f"invalid resource handle: {int(handle):#x} is no link")
        return link
