"""What a driver call refuses, and with which CUresult."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ptx.errors import PtxError

from ..driver._api import CUresult

SUCCESS: Final = CUresult.CUDA_SUCCESS
OK: Final[tuple[CUresult]] = (SUCCESS,)


class Refusal(Exception):
    """A driver call that returns `code`; `text` is what cuGetErrorString then says.

    `cause` is the typed error behind it, such as the fault of a kernel. It loses its traceback:
    threads and devices store it, and the frames hold the session's objects and a launch's arrays.
    """

    def __init__(self, code: CUresult, text: str = "", cause: PtxError | None = None) -> None:
        super().__init__(text)
        if cause is not None:
            cause.__traceback__ = cause.__context__ = cause.__cause__ = None
        self.code = code
        self.text = text
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Failure:
    """The last failed call of a thread."""

    call: str
    code: CUresult
    text: str
    cause: PtxError | None


def invalid_value(text: str) -> Refusal:
    """CUDA_ERROR_INVALID_VALUE, with what is wrong."""
    return Refusal(CUresult.CUDA_ERROR_INVALID_VALUE, text)


def invalid_handle(text: str) -> Refusal:
    """CUDA_ERROR_INVALID_HANDLE, with what is wrong."""
    return Refusal(CUresult.CUDA_ERROR_INVALID_HANDLE, text)
