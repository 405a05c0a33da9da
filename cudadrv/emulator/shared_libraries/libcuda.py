"""The emulator as the C functions of the CUDA driver, those of `libcuda.so.1`."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

from ...driver._api import CUresult
from ...driver.functions import forms, without_version
from ..calls.tensor_map import FUNCTIONS
from ..emulator import Emulator
from .graphs import GRAPHS
from .green_contexts import GREEN_CONTEXTS
from .handlers import INVALID_VALUE, Handler, NullArrayError, put_size, put_uint
from .launching import LAUNCHING
from .loading import LOADING
from .memory import MEMORY
from .queries import QUERIES
from .shared_object import SharedObject, guarded
from .signature import Argument, Signature, signature

SONAME: Final = "libcuda.so.1"
_UNKNOWN: Final = int(CUresult.CUDA_ERROR_UNKNOWN)
_NOT_FOUND: Final = int(CUresult.CUDA_ERROR_NOT_FOUND)
_GONE: Final = int(CUresult.CUDA_ERROR_DEINITIALIZED)
_PER_THREAD_FLAG: Final = 2  # CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
_FOUND, _NO_SYMBOL, _TOO_OLD = 0, 1, 2  # CUdriverProcAddressQueryResult
HANDLERS: Final[dict[str, Handler]] = {**FUNCTIONS}
"""By symbol; the other functions of the table only pass their arguments on."""
for _table in (QUERIES, LOADING, LAUNCHING, MEMORY, GRAPHS, GREEN_CONTEXTS):
    HANDLERS.update(_table.by_symbol)


class Libcuda:
    """The C functions of the driver; one object per process, as libraries keep their addresses.

    Attributes:
        api: the emulator that they call; None makes them return CUDA_ERROR_DEINITIALIZED.
    """

    def __init__(self) -> None:
        self.api: Emulator | None = None
        self._told: Exception | None = None
        functions: dict[str, tuple[Signature, Callable[..., int]]] = {}
        for each in map(signature, forms()):
            functions[each.symbol] = each, self._function(each, per_thread=False)
            if each.has_stream:
                functions[each.symbol + "_ptsz"] = each, self._function(each, per_thread=True)
        self._forms = _by_base_name(each for each, _ in functions.values())
        self._library = SharedObject(SONAME, list(functions))
        # ctypes frees a callback with its object, and callers may run it at any time.
        self._callbacks: Final = {
            name: each.c_function(self._answering(each, function))
            for name, (each, function) in functions.items()
        }
        atexit.register(self._library.clear)

    def use(self, api: Emulator) -> None:
        """Let the functions call this emulator."""
        self.api = api
        for name, callback in self._callbacks.items():
            self._library.point(name, callback)

    def leave(self) -> None:
        """Let the functions call no emulator."""
        self._library.clear()
        self.api = None

    def _answering(self, form: Signature, function: Callable[..., int]) -> Callable[..., int]:
        """Return the function, valid while there is an emulator; it reports a kernel's errors."""

        def answer(*given: Argument) -> int:
            api = self.api
            if api is None:
                return _GONE
            if form.has_null(given):
                return INVALID_VALUE
            try:
                code = function(*given)
            except NullArrayError:
                return INVALID_VALUE
            if code:
                self._tell(api.last_fault)
            return code

        return guarded(answer, _UNKNOWN)

    def _tell(self, fault: Exception | None) -> None:
        """Print once details that no CUresult has: a fault's thread, an unsupported feature.

        Libraries show a code and its name at most.
        """
        if fault is not None and fault is not self._told:
            self._told = fault
            print(f"cudadrv: {fault}", file=sys.stderr)

    def _function(self, form: Signature, *, per_thread: bool) -> Callable[..., int]:
        if form.name == "cuGetProcAddress":
            return self._proc_address
        handler = HANDLERS.get(form.symbol)
        if handler is None:
            return self._plain(form, per_thread=per_thread)
        return self._special(form, handler, per_thread=per_thread)

    def _plain(self, form: Signature, *, per_thread: bool) -> Callable[..., int]:
        """Return a function that reads the arguments, calls the emulator and writes its results."""
        name, parameters = form.name, form.parameters
        inputs = [(at, p) for at, p in enumerate(parameters) if not p.is_result]
        results = [(at, p) for at, p in enumerate(parameters) if p.is_result]

        def answer(*given: Any) -> int:  # as ctypes has them, by the signature
            function = getattr(self.api, name)
            code, *values = function(*[p.read(given[at], per_thread) for at, p in inputs])
            if not code:
                for (at, parameter), value in zip(results, values, strict=True):
                    parameter.write(given[at], value)
            return int(code)

        return answer

    def _special(self, form: Signature, handler: Handler, *, per_thread: bool) -> Handler:
        """Return the handler, with the default stream of its variant."""
        if not per_thread:
            return lambda *given: handler(self.api, *given)
        streams = [p.word == "stream" for p in form.parameters]

        def answer(*given: Argument) -> int:
            meant = [
                (2 if is_stream and not value else value)
                for value, is_stream in zip(given, streams, strict=True)
            ]
            return handler(self.api, *meant)

        return answer

    def _proc_address(
        self, name: bytes, result: int, version: int, flags: int, status: int = 0
    ) -> int:
        """Return the function of a name, in the newest form that a version of CUDA has."""
        put_size(result, 0)
        known = self._forms.get(name.decode(errors="replace"), [])
        found = [form for form in known if form.since <= version]
        if not found:
            put_uint(status, _TOO_OLD if known else _NO_SYMBOL)
            return 0 if known else _NOT_FOUND  # as driver 580
        symbol = found[-1].symbol
        if flags & _PER_THREAD_FLAG and found[-1].has_stream:
            symbol += "_ptsz"
        put_size(result, self._library.address(symbol))
        put_uint(status, _FOUND)
        return 0


def _by_base_name(forms: Iterable[Signature]) -> dict[str, list[Signature]]:
    """Return the forms of each function, oldest first."""
    found: dict[str, list[Signature]] = {}
    for form in sorted(set(forms), key=lambda form: form.since):
        found.setdefault(without_version(form.symbol), []).append(form)
    return found
