"""The emulator as the C functions of the CUDA driver, those of `libcuda.so.1`."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from ptx.errors import ImageFormatError
from ptx.standard_streams import write_error

from ...driver._api import CUresult, CUstream
from ...driver.deferred_start import register_at_exit
from ...driver.functions import forms, without_version
from ..call_error import CallError, Failure
from ..calls.call import state_of
from ..calls.tensor_map import FUNCTIONS
from ..command_events import Event
from ..emulator import Emulator
from ..streams import PER_THREAD_HANDLE
from .graphs import GRAPHS
from .green_contexts import GREEN_CONTEXTS
from .handlers import INVALID_VALUE, Handler, put_size, put_uint
from .kept_modules import keep_modules
from .launching import LAUNCHING
from .library_files import LIBCUDA, library_images
from .loading import LOADING
from .memory import MEMORY
from .old_forms import OLD_FORMS
from .queries import QUERIES, tell_reason
from .shared_object import SharedObject, guarded
from .signature import Argument, Signature, signature

_UNKNOWN: Final = int(CUresult.CUDA_ERROR_UNKNOWN)
_NOT_FOUND: Final = int(CUresult.CUDA_ERROR_NOT_FOUND)
_NOT_SUPPORTED: Final = int(CUresult.CUDA_ERROR_NOT_SUPPORTED)
_DEINITIALIZED: Final = int(CUresult.CUDA_ERROR_DEINITIALIZED)
_PER_THREAD: Final = CUstream(PER_THREAD_HANDLE)
_PER_THREAD_FLAG: Final = 2  # CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
_FOUND, _NO_SYMBOL, _TOO_OLD = 0, 1, 2  # CUdriverProcAddressQueryResult
# The bindings' error for a field of a caller's structure.
_UNKNOWN_NUMBER: Final = re.compile(r"\d is not a valid CU\w+$")
HANDLERS: Final[dict[str, Handler]] = {**FUNCTIONS}
"""By symbol; the other functions of the table only pass their arguments on."""
for _table in (QUERIES, LOADING, LAUNCHING, MEMORY, GRAPHS, GREEN_CONTEXTS, OLD_FORMS):
    HANDLERS.update(_table.by_symbol)


class Libcuda:
    """The C functions of the driver; one object per process, as libraries keep their addresses.

    Attributes:
        api: the emulator that they call; None makes them return CUDA_ERROR_DEINITIALIZED.
    """

    def __init__(self, file: Path | None) -> None:
        """`file` is the library on disk, for programs that look for its file."""
        self.api: Emulator | None = None
        self._reported: Exception | None = None
        functions: dict[str, tuple[Signature, Callable[..., int]]] = {}
        for form in map(signature, forms()):
            functions[form.symbol] = form, self._function(form, per_thread=False)
            if form.per_thread:
                per_thread_function = self._function(form, per_thread=True)
                functions[form.per_thread] = form, self._in_own_stream(per_thread_function)
        self._forms = _by_base_name({form.symbol: form for form, _ in functions.values()}.values())
        self._library = SharedObject(
            LIBCUDA, list(functions), lambda: library_images()[LIBCUDA], file
        )
        self._callbacks: Final = {
            name: form.c_function(self._wrapped(form, function))
            for name, (form, function) in functions.items()
        }
        register_at_exit(self._end_with_threads)

    def use(self, api: Emulator) -> None:
        """Let the functions call this emulator.

        That lasts while the interpreter ends: global objects of modules free their memory then.
        """
        self.api = api
        state_of(api).process.has_foreign_callers = True
        self._library.connect(self._callbacks)

    def leave(self) -> None:
        """Let the functions call no emulator."""
        self._library.disconnect()
        self.api = None

    def _end_with_threads(self) -> None:
        """Call no emulator from now on if threads are left, which hold their locks for ever.

        Otherwise calls have their results while the interpreter ends, too.
        """
        if threading.active_count() > 1:
            self._library.end()
        elif self.api is not None:
            keep_modules()

    def _wrapped(self, form: Signature, function: Callable[..., int]) -> Callable[..., int]:
        """Return the function, valid while there is an emulator; it reports a kernel's errors."""

        def wrapper(*arguments: Argument) -> int:
            api = self.api
            if api is None:
                return _DEINITIALIZED
            if form.has_null(arguments):
                return INVALID_VALUE
            try:
                code = function(*form.read(arguments))
            except CallError as error:
                state_of(api).thread.failure = Failure(form.name, error.code, error.text, None)
                return int(error.code)
            except ValueError as error:
                if not _UNKNOWN_NUMBER.search(str(error)):
                    raise
                state_of(api).thread.failure = Failure(
                    form.name, CUresult.CUDA_ERROR_INVALID_VALUE, str(error), None
                )
                return INVALID_VALUE
            if code:
                self._report(form.name, api.last_fault)
                if code == _NOT_SUPPORTED and not form.is_absent:
                    tell_reason(api, code)
            return code

        return guarded(wrapper, _UNKNOWN, self._library.ending(form.symbol, _DEINITIALIZED))

    def _report(self, call: str, fault: Exception | None) -> None:
        """Print once details that no CUresult has: a fault's thread, an unsupported feature.

        Libraries show a code and its name at most.
        """
        if fault is not None and fault is not self._reported:
            self._reported = fault
            refused = f"{call}: " if isinstance(fault, ImageFormatError) else ""
            write_error(f"cudadrv: {refused}{fault}\n")
            Event.FAULT.note("fault", f"{refused}{fault}")

    def _function(self, form: Signature, *, per_thread: bool) -> Callable[..., int]:
        if form.is_absent:
            return self._absent(form.symbol)
        if form.name == "cuGetProcAddress":
            return self._proc_address
        handler = HANDLERS.get(form.symbol)
        if handler is None:
            return self._plain(form, per_thread=per_thread)
        return self._special(form, handler, per_thread=per_thread)

    def _absent(self, symbol: str) -> Callable[..., int]:
        """Return a function that the emulator lacks; its first call reports that."""
        reports: list[str] = []

        def wrapper(*arguments: Argument) -> int:
            if not reports:
                reports.append(symbol)
                write_error(
                    f"cudadrv: the emulator lacks {symbol}: it returned CUDA_ERROR_NOT_SUPPORTED\n"
                )
            return _NOT_SUPPORTED

        return wrapper

    def _plain(self, form: Signature, *, per_thread: bool) -> Callable[..., int]:
        """Return a function that reads the arguments, calls the emulator and writes its results."""
        name, parameters = form.name, form.parameters
        inputs = [(index, p) for index, p in enumerate(parameters) if not p.is_result]
        results = [(index, p) for index, p in enumerate(parameters) if p.is_result]

        def wrapper(*arguments: Any) -> int:  # as ctypes has them, by the signature
            function = getattr(self.api, name)
            code, *values = function(*[p.read(arguments, index, per_thread) for index, p in inputs])
            if not code:
                for (index, parameter), value in zip(results, values, strict=True):
                    parameter.write(arguments[index], value)
            return int(code)

        return wrapper

    def _special(self, form: Signature, handler: Handler, *, per_thread: bool) -> Handler:
        """Return the handler, which receives arguments as the emulator does, results by address."""
        converted = [(index, p) for index, p in enumerate(form.parameters) if p.is_converted]

        def wrapper(*arguments: Argument) -> int:
            values: list[object] = list(arguments)
            for index, parameter in converted:
                values[index] = parameter.read(arguments, index, per_thread)
            return handler(self.api, *values)

        return wrapper

    def _in_own_stream(self, function: Callable[..., int]) -> Callable[..., int]:
        """Return the function, in the thread's own default stream where no parameter names one."""

        def wrapper(*arguments: Argument) -> int:
            api = self.api
            assert api is not None  # `_wrapped` has checked it
            thread = state_of(api).thread
            former, thread.default_stream = thread.default_stream, _PER_THREAD
            try:
                return function(*arguments)
            finally:
                thread.default_stream = former

        return wrapper

    def _proc_address(
        self, name: bytes, result: int, version: int, flags: int, status: int = 0
    ) -> int:
        """Return the function of a name, in the newest form that a version of CUDA has."""
        put_size(result, 0)
        forms = self._forms.get(name.decode(errors="replace"), [])
        available = [form for form in forms if form.since <= version]
        if not available:
            put_uint(status, _TOO_OLD if forms else _NO_SYMBOL)
            return 0 if forms else _NOT_FOUND  # as driver 580
        symbol = available[-1].symbol
        if flags & _PER_THREAD_FLAG:
            symbol = available[-1].per_thread or symbol
        put_size(result, self._library.address(symbol))
        put_uint(status, _FOUND)
        return 0


def _by_base_name(forms: Iterable[Signature]) -> dict[str, list[Signature]]:
    """Return the forms of each function, oldest first."""
    by_name: dict[str, list[Signature]] = {}
    for form in sorted(forms, key=lambda form: form.since):
        by_name.setdefault(without_version(form.symbol), []).append(form)
    return by_name
