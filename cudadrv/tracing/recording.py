"""`Trace`: a `with` block whose calls are recorded in a file."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import NamedTuple, TextIO

import ptx

from .. import border
from ..driver.in_use import Driver, current
from ..driver.once_task import complete
from ..errors import InvalidValueError
from .device_times import DeviceTimes
from .recorder import Recorder
from .traced_api import TracedApi


class _Begun(NamedTuple):
    driver: Driver
    traced: TracedApi
    recorder: Recorder
    file: TextIO
    leaving: ExitStack


class Trace:
    """A trace being recorded; made by `trace`.

    Attributes:
        path: the file.

    Raises:
        OSError: it is entered, and the file cannot be written.
    """

    _begun: _Begun | None = None
    # What stands in the place of the driver's functions, if it does.
    _traced: TracedApi | None = None

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Path = border.path("trace: path", path)

    def __enter__(self) -> Trace:
        if self._begun is not None:
            raise InvalidValueError("this trace is being recorded already")
        driver = current()
        traced = self._traced = TracedApi(driver)
        leaving = ExitStack()
        try:
            traced.install()
            file = leaving.enter_context(self.path.open("w", encoding="utf-8"))
            recorder = Recorder(DeviceTimes(driver, traced.inner))
            leaving.enter_context(ptx.observe(recorder.compiling))
            self._begun = _Begun(driver, traced, recorder, file, leaving)
            traced.start(recorder)
        except BaseException:
            there: object = driver.api
            if there is traced:
                driver.api = traced.inner  # first: no interrupt comes before what calls nothing
            complete(traced.remove)
            with leaving:
                self._begun = self._traced = None
            raise
        return self

    def __exit__(self, *_: object) -> None:
        begun = self._begun
        if begun is None:
            return
        traced = begun.traced
        there: object = begun.driver.api
        if there is traced:
            begun.driver.api = traced.inner  # first, as above
        try:
            complete(traced.remove)
        finally:
            with begun.leaving:
                try:
                    begun.recorder.devices.finish()
                finally:
                    _write(begun)
                    self._begun = self._traced = None

    def __del__(self) -> None:
        # An interrupt can come before the first line of `__exit__`, and several can come.
        if self._traced is not None:
            complete(self._traced.remove)

    def span(self, name: str) -> AbstractContextManager[None]:
        """Show a `with` block of one's own on the thread that runs it."""
        border.instance("Trace.span: name", name, str)
        begun = self._begun
        return nullcontext() if begun is None else begun.recorder.span(name)


def _write(begun: _Begun) -> None:
    import json  # needed here alone

    json.dump(begun.recorder.document(), begun.file)
