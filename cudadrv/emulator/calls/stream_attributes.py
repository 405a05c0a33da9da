"""What is set on streams, and how a thread takes captures.

CUDA Driver API: cuStreamSetAttribute, cuThreadExchangeStreamCaptureMode. The attributes are kept,
and have no effect here.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Final, Protocol, cast

from ...driver._api import (
    CUkernelNodeAttrValue as AttributeValue,
    CUresult,
    CUstream,
    CUstreamCaptureMode,
)
from ..call_rules import CallRules
from ..refusal import OK, SUCCESS, invalid_value
from ..streams import Stream
from .call import call

_BYTES: Final = 64  # sizeof(CUstreamAttrValue)
_WINDOW, _SYNC_POLICY, _PRIORITY, _DOMAIN_MAP, _DOMAIN = 1, 3, 8, 9, 10  # CUlaunchAttributeID
_KNOWN: Final = frozenset((_WINDOW, _SYNC_POLICY, _PRIORITY, _DOMAIN_MAP, _DOMAIN))
_AUTO: Final = 1  # CU_SYNC_POLICY_AUTO
_GREATEST: Final = -5  # priority, of cuCtxGetStreamPriorityRange


class _Addressed(Protocol):
    """What every structure of cuda.bindings has."""

    def getPtr(self) -> int: ...


class StreamAttributeCalls(CallRules):
    """What is set on streams."""

    @call(1)
    def cuStreamGetAttribute(
        self, h_stream: CUstream, attr: int, /
    ) -> tuple[CUresult, AttributeValue]:
        """What was set, or what a stream has from the beginning."""
        stream = self._stream(h_stream)
        value = AttributeValue()
        told = self._attribute(stream, int(attr))
        ctypes.memmove(cast(_Addressed, value).getPtr(), told, len(told))
        return SUCCESS, value

    @call()
    def cuStreamSetAttribute(
        self, h_stream: CUstream, attr: int, value: AttributeValue | None, /
    ) -> tuple[CUresult]:
        """Keep a value; a priority is brought into the range that there is."""
        stream = self._stream(h_stream)
        if value is None or int(attr) not in _KNOWN:
            raise invalid_value(f"stream attribute {int(attr)} is none, or its value is null")
        given = ctypes.string_at(cast(_Addressed, value).getPtr(), _BYTES)
        self._set_attribute(stream, int(attr), given)
        return OK

    @call()
    def cuStreamCopyAttributes(self, dst: CUstream, src: CUstream, /) -> tuple[CUresult]:
        """Let a stream have the attributes of another one of its context."""
        target, source = self._stream(dst), self._stream(src)
        if target.context is not source.context:
            raise invalid_value("the streams are of different contexts")
        target.attributes = dict(source.attributes)
        target.priority = source.priority
        return OK

    @staticmethod
    def _attribute(stream: Stream, number: int) -> bytes:
        if number not in _KNOWN:
            raise invalid_value(f"there is no stream attribute {number}")
        if number == _PRIORITY:
            return struct.pack("<i", stream.priority)
        first = struct.pack("<i", _AUTO) if number == _SYNC_POLICY else bytes(_BYTES)
        return stream.attributes.get(number, first)

    @staticmethod
    def _set_attribute(stream: Stream, number: int, value: bytes) -> None:
        if number == _PRIORITY:
            (priority,) = struct.unpack_from("<i", value)
            stream.priority = max(_GREATEST, min(0, priority))
        else:
            stream.attributes[number] = value

    @call(1)
    def cuThreadExchangeStreamCaptureMode(
        self, mode: CUstreamCaptureMode, /
    ) -> tuple[CUresult, CUstreamCaptureMode]:
        """Say which captures keep this thread from unsafe calls; gives what was said before."""
        try:
            new = CUstreamCaptureMode(int(mode))
        except ValueError:
            raise invalid_value(f"there is no capture mode {int(mode)}") from None
        former, self._thread.capture_mode = self._thread.capture_mode, int(new)
        return SUCCESS, CUstreamCaptureMode(former)
