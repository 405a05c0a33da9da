"""The driver's linker, which links PTX to PTX here.

CUDA Driver API: "Module Management", cuLinkCreate.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Final

from ptx.errors import PtxError
from ptx.isa.linked_text import link_texts, undefined_in
from ptx.isa.register_limit import with_register_limit

from ...driver._api import CUjit_option, CUjitInputType, CUlinkState, CUresult
from ..call_rules import CallRules
from ..modules import PendingLink
from ..refusal import OK, SUCCESS, Refusal, invalid_handle
from .call import call
from .module import write_log

_PTX: Final = int(CUjitInputType.CU_JIT_INPUT_PTX)
_KINDS: Final = {0: "a cubin", 2: "a fatbin", 3: "an object file", 4: "an archive", 5: "LTO-IR"}
_MAX_REGISTERS: Final = int(CUjit_option.CU_JIT_MAX_REGISTERS)


class LinkCalls(CallRules):
    """The driver's linker."""

    @call(1)
    def cuLinkCreate(
        self,
        num_options: int,
        options: Sequence[CUjit_option],
        option_values: Sequence[object],
        /,
    ) -> tuple[CUresult, CUlinkState]:
        """Begin a link; of the options the log of errors and the limit of registers are known."""
        self._current()
        handle = next(self._handles)
        given = zip(options[:num_options], option_values[:num_options], strict=True)
        self._links[handle] = PendingLink({int(option): value for option, value in given})
        return SUCCESS, CUlinkState(handle)

    @call()
    def cuLinkAddData(
        self,
        state: CUlinkState,
        kind: CUjitInputType,
        data: bytes,
        size: int,
        name: bytes,
        num_options: int,
        options: Sequence[CUjit_option],
        option_values: Sequence[object],
        /,
    ) -> tuple[CUresult]:
        """Add an input; only PTX is linked."""
        link = self._link(state)
        if int(kind) != _PTX:
            what = _KINDS.get(int(kind), f"an input of kind {int(kind)}")
            raise self._refused(
                link,
                CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU,
                f"the emulator executes PTX and links PTX; {bytes(name).decode()!r} is {what}",
            )
        text = bytes(data)[:size].rstrip(b"\0").decode(errors="replace")
        link.inputs.append((bytes(name).decode(errors="replace"), text))
        return OK

    @call(2)
    def cuLinkComplete(self, state: CUlinkState, /) -> tuple[CUresult, int, int]:
        """Link; the image is there until the link is destroyed."""
        link = self._link(state)
        try:
            text = link_texts(link.inputs) if link.inputs else ""
            if missing := undefined_in(text):
                words = f"Undefined reference to {', '.join(map(repr, missing))}"
                raise self._refused(link, CUresult.CUDA_ERROR_INVALID_PTX, words)
            registers = link.options.get(_MAX_REGISTERS)
            if isinstance(registers, int) and registers:
                text = with_register_limit(text, registers)
        except PtxError as error:
            code = CUresult.CUDA_ERROR_INVALID_PTX
            raise self._refused(link, code, str(error), error) from None
        link.image = ctypes.create_string_buffer(text.encode())
        return SUCCESS, ctypes.addressof(link.image), len(link.image)

    @staticmethod
    def _refused(
        link: PendingLink, code: CUresult, text: str, cause: PtxError | None = None
    ) -> Refusal:
        """The refusal of a link, which its log tells too."""
        write_log(link.options, text)
        return Refusal(code, text, cause)

    @call()
    def cuLinkDestroy(self, state: CUlinkState, /) -> tuple[CUresult]:
        """Forget a link and its image."""
        self._link(state)
        self._links.pop(int(state), None)
        return OK

    def _link(self, handle: CUlinkState) -> PendingLink:
        link = self._links.get(int(handle))
        if link is None:
            raise invalid_handle(f"invalid resource handle: {int(handle):#x} is no link")
        return link
