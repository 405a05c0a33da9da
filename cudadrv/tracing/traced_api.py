"""`TracedApi`: a `DriverApi` around another, which tells a recorder of the calls that it passes on.

While a trace is recorded it stands in `Driver.api`, where everything finds the driver's functions.
Launchers have those built in, so they take them anew when it comes and when it goes. A call that is
under way when it goes, or a function that somebody has kept, passes through it and tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple, cast

from ..driver._api import CUmodule, CUresult, CUstream
from ..driver.driver_api import DriverApi
from ..driver.in_use import Driver
from ..driver.types import Dependent
from ..errors import ClosedError, InvalidValueError
from ..launch.launcher import LauncherState
from .recorder import Recorder


class Span(NamedTuple):
    """A function that is shown: its category, and the positions of its stream and its size.

    What runs on the device has a stream; a wait on the host has none. A memset's size is a number
    of elements.
    """

    category: str
    stream: int | None = None
    nbytes: int | None = None


SPANS: Final = {
    "cuLaunchKernelEx": Span("launch"),  # its stream is in its configuration
    "cuGraphLaunch": Span("launch", 1),
    "cuGraphUpload": Span("launch", 1),
    "cuMemcpyHtoDAsync": Span("copy", 3, 2),
    "cuMemcpyDtoHAsync": Span("copy", 3, 2),
    "cuMemcpyDtoDAsync": Span("copy", 3, 2),
    "cuMemcpyPeerAsync": Span("copy", 5, 4),
    "cuMemcpy3DAsync": Span("copy", 1),
    "cuMemcpy3DPeerAsync": Span("copy", 1),
    "cuMemsetD8Async": Span("copy", 3, 2),
    "cuMemsetD16Async": Span("copy", 3),
    "cuMemsetD32Async": Span("copy", 3),
    "cuMemsetD2D8Async": Span("copy", 5),
    "cuMemsetD2D16Async": Span("copy", 5),
    "cuMemsetD2D32Async": Span("copy", 5),
    "cuMemAlloc": Span("allocation", None, 0),
    "cuMemAllocAsync": Span("allocation", None, 0),
    "cuMemAllocFromPoolAsync": Span("allocation", None, 0),
    "cuMemHostAlloc": Span("allocation", None, 0),
    "cuMemHostRegister": Span("allocation", None, 1),
    "cuMemPrefetchAsync": Span("copy", 4, 1),
    "cuMemFree": Span("allocation"),
    "cuMemFreeAsync": Span("allocation"),
    "cuMemFreeHost": Span("allocation"),
    "cuModuleLoadData": Span("compilation"),
    "cuModuleLoadDataEx": Span("compilation"),
    "cuLinkComplete": Span("compilation"),
    "cuGraphInstantiate": Span("compilation"),
    "cuStreamSynchronize": Span("wait"),
    "cuEventSynchronize": Span("wait"),
    "cuCtxSynchronize": Span("wait"),
    "cuDevicePrimaryCtxReset": Span("wait"),
}


class TracedApi:
    """The functions of a driver, with those of `SPANS` timed while there is a recorder.

    Attributes:
        inner: the functions behind it.
    """

    def __init__(self, driver: Driver) -> None:
        self.inner: DriverApi = driver.api
        self._driver = driver
        self._recorder: Recorder | None = None
        self._is_installed = False
        self._kernels: dict[int, str] = {}

    def install(self) -> None:
        """Take the place of the driver's functions; the driver holds them in one place.

        Raises:
            InvalidValueError: another one has it.
        """
        driver = self._driver
        with driver.lock:
            if isinstance(driver.api, TracedApi):
                raise InvalidValueError("a trace is being recorded already: one at a time")
            self.inner = driver.api
            self._is_installed = True
            # `__getattr__` gives the functions that a class would have to name for the checker.
            driver.api = cast(DriverApi, self)

    def start(self, recorder: Recorder) -> None:
        """Tell a recorder of the calls from now on."""
        self._recorder = recorder
        _renew(iter(self._driver.launchers.alive()))

    def remove(self) -> None:
        """Tell nobody any more, and put the driver's functions back. Idempotent."""
        self._recorder = None
        if self._is_installed:
            driver = self._driver
            if cast(object, driver.api) is self:
                driver.api = self.inner
            _renew(iter(driver.launchers.alive()))
            self._is_installed = False
            self._kernels.clear()

    def __getattr__(self, name: str) -> Any:
        """A function of the driver, or another attribute of the object that has the functions."""
        if self._recorder is not None:
            span = SPANS.get(name)
            if span is not None:
                return partial(self._call, name, span)
            if name == "cuModuleUnload":
                return self._unload_module
        return getattr(self.inner, name)

    def _unload_module(self, module: CUmodule) -> tuple[CUresult]:
        """Forget names, as the handles of kernels may be given to others from now on."""
        self._kernels.clear()
        return self.inner.cuModuleUnload(module)

    # The functions of the driver have no signature in common.
    def _call(self, name: str, span: Span, /, *args: Any) -> Any:
        """Call a function of the driver, timed on the host and, if it has a stream, on that."""
        function = getattr(self.inner, name)
        recorder = self._recorder
        if recorder is None:
            return function(*args)
        shown, stream = self._shown(name, span, args)
        queued = None if stream is None else recorder.devices.begin(shown, span.category, stream)
        start = recorder.begin(shown)
        code, flow = 0, None
        try:
            result = function(*args)
            code = result[0]
            if queued is not None and not code:
                flow = recorder.devices.end(queued)
        finally:
            nbytes = None if span.nbytes is None else args[span.nbytes]
            recorder.end(shown, span.category, start, flow=flow, nbytes=nbytes, code=int(code))
        return result

    def _shown(self, name: str, span: Span, args: tuple[Any, ...]) -> tuple[str, CUstream | None]:
        """The name to show, and the stream that the call queues work on."""
        if name == "cuLaunchKernelEx":
            return self._kernel_name(int(args[1])), args[0].hStream
        return name, None if span.stream is None else args[span.stream]

    def _kernel_name(self, handle: int) -> str:
        """The name of a kernel that a launcher was made for."""
        name = self._kernels.get(handle)
        if name is None:
            for launcher in self._driver.launchers.alive():
                if isinstance(launcher, LauncherState):
                    try:
                        self._kernels[int(launcher.kernel.handle)] = launcher.kernel.name
                    except ClosedError:
                        continue
            name = self._kernels.get(handle, f"kernel {handle:#x}")
        return name


def _renew(launchers: Iterator[Dependent]) -> None:
    """Let launchers take the driver's functions anew: each of them, whatever happens at one."""
    for launcher in launchers:
        try:
            launcher.renew()
        except ClosedError:
            continue  # it launches no more
        except BaseException:
            _renew(launchers)
            raise
