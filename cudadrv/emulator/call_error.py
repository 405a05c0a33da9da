"""Errors of driver calls: their CUresults, and the texts of cuGetErrorString."""

from __future__ import annotations

from typing import Final, NamedTuple

from ptx.emulate import ExecutionError
from ptx.errors import PtxError

from ..driver._api import CUresult
from .result_texts import RESULT_TEXTS

SUCCESS: Final = CUresult.CUDA_SUCCESS
OK: Final[tuple[CUresult]] = (SUCCESS,)


class CallError(Exception):
    """A driver call that returns `code`; `text` is the result of cuGetErrorString.

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


class Failure(NamedTuple):
    """The last failed call of a thread."""

    call: str
    code: CUresult
    text: str
    cause: PtxError | None


def execution_error(error: ExecutionError, advice: str = "") -> CallError:
    """Return an error of the engine as that of a call; `advice` follows its text."""
    code: CUresult = getattr(CUresult, f"CUDA_ERROR_{error.result}")
    return CallError(code, f"{error}{advice}", error)


def invalid_value(text: str) -> CallError:
    """Return CUDA_ERROR_INVALID_VALUE, with the reason."""
    return CallError(CUresult.CUDA_ERROR_INVALID_VALUE, text)


def not_supported(text: str) -> CallError:
    """Return CUDA_ERROR_NOT_SUPPORTED, with the reason."""
    return CallError(CUresult.CUDA_ERROR_NOT_SUPPORTED, text)


def invalid_handle(text: str) -> CallError:
    """Return CUDA_ERROR_INVALID_HANDLE, with the reason."""
    return CallError(CUresult.CUDA_ERROR_INVALID_HANDLE, text)


def result_text(code: CUresult) -> str:
    """Return the driver's text of a result, or its name."""
    return RESULT_TEXTS.get(int(code), code.name)
