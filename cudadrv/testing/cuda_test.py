"""`CudaTest`: the driver of one test, a fresh emulator or the GPUs', from setup to teardown."""

from __future__ import annotations

import gc
import os
import shlex
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

from ..driver.context_handle import ContextHandle
from ..driver.driver_selection import Driver, current, current_or_none, set_current, set_opener
from ..driver.handle import AnyHandle, Closeable, ClosedHandle, living
from ..driver.registry import Registry
from ..errors import CudadrvError, CudaError
from .choices import CHECK, DRIVER, ORDER, Choices
from .gpus import Gpus, gpus
from .plan import CudaTestPlan, Place, session_arguments

if TYPE_CHECKING:
    from ptx.diagnostics import CompileWarning

    from ..emulator import Counters, Emulator, Found
    from ..emulator.checks import Checks
    from ..memory.pinned import HostHandle

# A search for handles ends here: from these objects it would reach the whole process.
_WALLS: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType, FrameType)


class LeakDetector:
    """The handles of objects of a driver that exist and did not before."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._before: Registry[AnyHandle] = Registry()

    def reset(self) -> None:
        """Regard all handles that exist now as known."""
        self._before = Registry()
        for handle, _ in _existing(self._driver):
            self._before.add(handle)

    def leaked(self) -> list[str]:
        """Return descriptions of the new objects that exist after at most two collections.

        The second collects objects that a finalizer of the first released.
        """
        for _ in range(2):
            if not self._new():
                return []
            gc.collect()
        new = self._new()
        cached = _reachable_from(self._driver.cached(), self._driver) if new else set()
        return sorted(text for handle, text in new if id(handle) not in cached)

    def _new(self) -> list[tuple[AnyHandle, str]]:
        before = {id(handle) for handle in self._before.alive()}
        return [
            (handle, repr(item))
            for handle, item in _existing(self._driver)
            if id(handle) not in before
        ]


def _existing(driver: Driver) -> list[tuple[AnyHandle, Closeable | HostHandle[Any]]]:
    """Return what owns objects of a driver, with its handle; contexts stay for the process."""
    from ..memory.pinned import HostHandle  # which loads NumPy

    # NumPy arrays hold host memory.
    items = (*living(), *driver.sharing.alive(), *driver.host_memory.alive())
    owners = [
        (item if isinstance(item, HostHandle) else item._handle, item)
        for item in items
        if isinstance(item, (HostHandle, Closeable))
    ]
    return [
        (handle, item)
        for handle, item in owners
        if not isinstance(handle, ClosedHandle)
        and handle.raw
        and handle.driver is driver
        and not isinstance(handle, ContextHandle)
        # A stream of another library is not owned.
        and getattr(handle, "is_owned", True)
    ]


def _reachable_from(start: object, driver: Driver) -> set[int]:
    """Return the `id` of each object that another one keeps, but for the driver's functions."""
    visited: set[int] = {id(driver.api)}
    waiting: list[object] = [start]
    while waiting:
        referent = waiting.pop()
        if id(referent) not in visited and not isinstance(referent, _WALLS):
            visited.add(id(referent))
            waiting += gc.get_referents(referent)
    return visited


_PYTEST: Final = str(Path(pytest.__file__).parents[1] / "_pytest")
_LEFT: Final = (
    "leak: the test left on its device what it made:\n  {}\n"
    "  close it, use it in a `with` block, or let no variable hold it any more"
)
_OLDER: Final = (
    "  the objects were made before the tests, on the emulator of the whole run: make them in tests"
)
_MIXED: Final = (
    "the fixture {!r} of scope {!r} made what belongs to the devices of one test:\n{}\n"
    'Every test on the emulator has devices of its own. Give the fixture the scope "function", or '
    "let it keep a ptx.Image, which any device loads."
)


class PendingSession:
    """The driver of a test that opens one at its first driver call; most tests never do.

    Args:
        open_test: opens the test, which sets the driver in use.
    """

    def __init__(self, open_test: Callable[[], object]) -> None:
        self._former = set_current(None)
        set_opener(open_test)

    def close(self) -> None:
        """Restore the driver of the process."""
        set_opener(None)
        set_current(self._former)


class ProcessFindings:
    """The findings of the emulator of the process: its objects are older than the tests.

    Objects that a module made when the tests were collected belong to it.
    """

    def __init__(self) -> None:
        driver = current_or_none()
        self._api: object = None if driver is None or not driver.is_emulated else driver.api
        self._known = set(self._texts())

    def _texts(self) -> list[str]:
        findings: Sequence[Found] = getattr(self._api, "findings", ())
        return [str(each) for each in findings if not (each.benign or each.is_told)]

    def new(self) -> str:
        """Return the findings since the last call, or since the test's beginning."""
        new = [text for text in self._texts() if text not in self._known]
        if not new:
            return ""
        self._known.update(new)
        checks: Checks = getattr(self._api, "checks")  # noqa: B009  # a trace has it, too
        checks.handled.update(new)
        return "\n".join([*new, _OLDER])


class CudaTest:
    """One test, with its driver.

    Attributes:
        place: where it runs.
        emulator: its emulator, None on a GPU.
        has_failed: True if a part of it failed, or it was skipped.
        is_open: True while its driver is the one in use.
        counters: the launches of its call, if it has a budget to compare.
    """

    def __init__(
        self, item: pytest.Item, plan: CudaTestPlan, choices: Choices, place: Place, order: str
    ) -> None:
        """`order` is that of this run if the test runs with several seeds; else ""."""
        self.place = place
        self.emulator: Emulator | None = None
        self.has_failed = False
        self.is_open: bool = False
        self.counters: Counters | None = None
        self._item = item
        self._plan = plan
        self._choices = choices
        self._order = order
        self._reported: set[str] = set()
        self._undo: list[Callable[[], object]] = []
        self._leak_detector: LeakDetector | None = None
        self._compile_warnings: list[CompileWarning] = []

    def open(self) -> None:
        """Install the driver; skip the test if there is none for it."""
        if self.place == "emulator":
            self._open_emulator()
        else:
            self._open_gpu()
        self._collect_warnings()
        self.is_open = True

    def _collect_warnings(self) -> None:
        from ptx.diagnostics import collected  # which loads what reads logs

        collecting = collected()
        self._compile_warnings = collecting.__enter__()
        self._undo.append(lambda: collecting.__exit__(None, None, None))

    def _open_emulator(self) -> None:
        from ..emulator import Emulator  # which loads the emulator
        from ..sessions.session import opened

        if self._order:
            self._set(ORDER, self._order)
        try:
            arguments = session_arguments(self._plan, self._choices)
            # The values are the marker's; the emulator checks them.
            self.emulator = Emulator(**arguments)  # type: ignore[arg-type]
        except (CudadrvError, TypeError) as error:
            raise pytest.fail.Exception(f"emulated: {error}", pytrace=False) from None
        emulation = opened(self.emulator, f"of the test {self._item.nodeid}", raise_findings=False)
        emulation.__enter__()
        self._undo.append(lambda: emulation.__exit__(None, None, None))
        count = len(self.emulator.devices)
        self._set(DRIVER, f"emulator:{count}")
        if count < self._plan.gpus:
            self.close()
            pytest.fail(f"multi_gpu({self._plan.gpus}): emulated has {count}", pytrace=False)

    def begin_counting(self) -> None:
        """Count the test's kernels from now on, if it has a budget."""
        if self._plan.counts and self.emulator is not None:
            counting = self.emulator.counting()
            self.counters = counting.__enter__()
            self._undo.append(lambda: counting.__exit__(None, None, None))

    def _open_gpu(self) -> None:
        if self._choices.mode == "emulator":
            self._lack("needs a real GPU: the tests run on the emulator")
        available = gpus()
        if available.driver is None or available.count < self._plan.gpus:
            required = "a GPU" if self._plan.gpus == 1 else f"{self._plan.gpus} GPUs"
            self._lack(f"needs {required}: {available.absence or f'{available.count} found'}")
        if available.broken_by:
            pytest.fail(
                f"{available.broken_by} broke the GPU's context for this process\n"
                "  run the other tests again without that one",
                pytrace=False,
            )
        driver = available.driver
        former = set_current(driver)
        self._undo.append(lambda: set_current(former))
        self._set(DRIVER, "cuda")
        if self._plan.leaks_count(self._choices):
            self._leak_detector = LeakDetector(driver)
            self._leak_detector.reset()

    def _lack(self, text: str) -> NoReturn:
        """Skip the test without a GPU, or fail it if the run requires one."""
        if self._choices.requires_gpu:
            pytest.fail(text, pytrace=False)
        raise pytest.skip.Exception(text, _use_item_location=True)

    def _set(self, name: str, value: str) -> None:
        """Set a variable for the processes that the test starts."""
        former = os.environ.get(name)
        os.environ[name] = value
        self._undo.append(
            lambda: os.environ.pop(name) if former is None else os.environ.update({name: former})
        )

    def made_by_fixture(self, name: str, scope: str) -> None:
        """After a fixture of a wider scope: its objects stay, and are no leaks of the test."""
        if self._leak_detector is not None:
            self._leak_detector.reset()
        elif self.emulator is not None and self.is_open:
            from ..driver.process_report import look_for_leaks

            look_for_leaks(self.emulator)
            leaks, self.emulator.checks.leaks = self.emulator.checks.leaks, []
            if leaks:
                text = _MIXED.format(name, scope, "\n".join(map(str, leaks)))
                pytest.fail(text, pytrace=False)

    def findings(self) -> str:
        """Wait for the test's work, and return its findings that were not reported yet."""
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            unseen = self._wait()
            if self.emulator is not None:
                self.emulator.finish()
        return "\n".join(filter(None, [unseen, "" if unseen else self.found(warned)]))

    def queued(self) -> str:
        """Return the work that was queued when the test failed: it may explain a wrong value."""
        if self.emulator is None or not self.is_open:
            return ""
        from ..emulator.hosting import still_queued  # which loads the emulator

        return still_queued(self.emulator.queued, "When the test failed")

    def _wait(self) -> str:
        """Wait for the test's queued work; return a fault that no call of the test raised."""
        from ..stream import Context  # which loads NumPy

        driver = current()
        try:
            for context in [] if driver.has_failed else list(driver.cache(Context).values()):
                if not context.closed:
                    context.synchronize()
        except CudaError as error:
            return str(error)
        return ""

    def found(self, warned: Sequence[warnings.WarningMessage] = ()) -> str:
        """Return the findings and warnings that were not reported yet."""
        texts = [] if self.emulator is None else list(map(str, _not_benign(self.emulator)))
        texts += [str(warning.message) for warning in warned]
        new = [text for text in dict.fromkeys(texts) if text not in self._reported]
        self._reported.update(new)
        return "\n".join(new)

    @property
    def compile_warnings(self) -> str:
        """NVRTC's warnings so far, each text once."""
        return "\n".join(dict.fromkeys(map(str, self._compile_warnings)))

    def close(self) -> str:
        """Restore the former driver; return findings and leaks that were not reported yet."""
        if not self.is_open and not self._undo:
            return ""
        self.is_open = False
        if not self.has_failed:
            # Drop the values of its fixtures, which are finished by now.
            getattr(self._item, "funcargs", {}).clear()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            while self._undo:
                self._undo.pop()()
        if self.place == "gpu":
            self._note_broken(gpus())
        if self.has_failed:
            return ""  # its traceback keeps its objects alive
        return "\n".join(filter(None, [self.found(warned), self._leaks()]))

    def _leaks(self) -> str:
        if self._leak_detector is None:
            return ""
        leaks = self._leak_detector.leaked()
        return _LEFT.format("\n  ".join(leaks)) if leaks else ""

    def _note_broken(self, available: Gpus) -> None:
        driver: Driver | None = available.driver
        if driver is not None and driver.has_failed and not available.broken_by:
            available.broken_by = self._item.nodeid

    def _name(self) -> str:
        """Return the test's name for pytest, relative to the folder where it was started."""
        config = self._item.config
        file, colons, name = self._item.nodeid.partition("::")
        return os.path.relpath(config.rootpath / file, config.invocation_params.dir) + colons + name

    @property
    def repeated_by(self) -> str:
        """The order that the test ran in and the command that repeats it; "" for the default."""
        order = "immediate" if self.emulator is None else self.emulator.order
        checks = os.environ.get(CHECK, "")
        if self.emulator is None or (order == "immediate" and not checks):
            return ""
        name, _, seed = order.partition(":")
        words = ["python", "-m", "pytest", self._name()]
        words.append(f"--cuda={'both' if self._choices.mode == 'both' else 'emulator'}")
        if self._order:
            words += [] if self._plan.seeds else [f"--cuda-seeds={self._choices.seeds}"]
        elif name == "held":
            words.insert(0, f"{ORDER}={order}")
        else:
            words.append(f"--cuda-order={name}")
        if name == "random" and not self._order:
            words.append(f"--cuda-seed={seed}")
        if checks or CHECK in self._choices.environment:  # no checks, where the ini file has some
            words.append(f"--cuda-check={checks}")
        if self._choices.profile:
            words.append(f"--cuda-profile={self._choices.profile}")
        text = f"order {name}" + (f", seed {seed}" if seed else "")
        return f"{text}; repeat with\n{shlex.join(words)}"


def _not_benign(emulator: Emulator) -> list[Found]:
    """Return the findings that fail a test, without faults that a call has raised."""
    return [
        finding
        for finding in emulator.findings
        if not (finding.benign or finding.is_told or _is_of_fixture(finding))
    ]


def _is_of_fixture(finding: Found) -> bool:
    """Return True for a leak of a fixture of this plugin, which pytest's own code has called.

    The fixture has closed it; its finding belongs to other leaks.
    """
    files = [place.file or "" for place in finding.places]
    return finding.check == "leak" and all(file.startswith(_PYTEST) for file in files)
