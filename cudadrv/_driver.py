"""The driver in use: the CUDA driver or the emulator, chosen once a process; and failed calls."""

from __future__ import annotations

import os
import threading
from typing import Final

from ._api import CUresult, DriverApi, load_cuda
from .errors import CudadrvError, CudaError, DriverSelectionError, ForkedProcessError


class _Selection:
    """Which `DriverApi` the process uses, chosen once."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.api: DriverApi | None = None
        self.initialised_in: int | None = None

    def choose(self) -> DriverApi:
        """The implementation that CUDADRV_DRIVER names: "cuda" (the default), "emulator[:N]"."""
        value = os.environ.get("CUDADRV_DRIVER", "cuda").strip() or "cuda"
        if value == "cuda":
            return load_cuda()
        kind, _, count = value.partition(":")
        if kind != "emulator" or not (count == "" or (count.isdecimal() and int(count) > 0)):
            raise DriverSelectionError(
                f'CUDADRV_DRIVER is {value!r}: use "cuda", "emulator" or "emulator:N" for N devices'
            )
        from .emulator import Emulator  # the emulator stands above the seam; most never load it

        return Emulator(devices=int(count or 1))


_selection: Final = _Selection()


def driver() -> DriverApi:
    """The driver in use, initialised.

    Raises:
        DriverNotFoundError: there is no CUDA driver; asking again is safe and answers the same.
        CudaError: cuInit failed.
    """
    api = _selection.api
    if api is not None:
        return api
    with _selection.lock:
        if _selection.api is None:
            chosen = _selection.choose()
            (code,) = chosen.cuInit(0)
            if code:
                raise failure(chosen, code, "cuInit", "initialising the CUDA driver")
            _selection.initialised_in = os.getpid()
            _selection.api = chosen
        return _selection.api


def install(api: DriverApi | None) -> DriverApi | None:
    """Put `api` in the place of the driver in use; gives back what was there, None if none yet."""
    with _selection.lock:
        former = _selection.api
        if api is not None:
            (code,) = api.cuInit(0)
            if code:
                raise failure(api, code, "cuInit", "initialising the CUDA driver")
            _selection.initialised_in = os.getpid()
        _selection.api = api
        return former


def failure(api: DriverApi, code: CUresult, call: str, doing: str) -> CudadrvError:
    """The typed error for a driver call that answered `code` while `doing` something.

    The text is the driver's own; the emulator's names the kernel, thread and address of a fault,
    and its fault is the error's cause.
    """
    value = int(code)
    born = _selection.initialised_in
    if value == CUresult.CUDA_ERROR_NOT_INITIALIZED and born not in (None, os.getpid()):
        return ForkedProcessError(
            f"{doing}: CUDA was initialised in process {born} before the fork, and the driver "
            'refuses the child; start processes with multiprocessing.get_context("spawn")'
        )
    _, text = api.cuGetErrorString(code)
    error = CudaError.for_code(value)(
        doing, call=call, code=value, text=text.decode(errors="replace") if text else ""
    )
    error.__cause__ = getattr(api, "last_fault", None)
    return error
