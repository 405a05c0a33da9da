"""One case: a scenario in which one call of the driver fails, and what must hold then."""

from __future__ import annotations

import gc
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from cudadrv import emulator
from cudadrv.emulator.calls.call import state_of
from cudadrv.errors import CudadrvError, CudaError, GpuError
from ptx.errors import PtxError

from .scenarios import SCENARIOS
from .world import World, WrongValueError, leftovers

SECONDS: Final = 60.0
"""How long a case may take before it counts as one that hangs."""

_INVALID: Final = 1
_OUT_OF_MEMORY: Final = 2
_ASKED_AGAIN: Final = "asked again with the stream's own context bound"
_CACHE_GIVEN_BACK: Final = "asked again when an arena or allocator gave its cache back"
# Failures that need not be told, by function and result (0 is any), and why.
HANDLED: Final[dict[tuple[str, int], str]] = {
    ("cuMemcpyHtoDAsync", _INVALID): _ASKED_AGAIN,
    ("cuMemcpyDtoHAsync", _INVALID): _ASKED_AGAIN,
    ("cuMemcpyDtoDAsync", _INVALID): _ASKED_AGAIN,
    ("cuMemcpy3DAsync", _INVALID): _ASKED_AGAIN,
    ("cuMemAllocAsync", _OUT_OF_MEMORY): _CACHE_GIVEN_BACK,
    ("cuMemsetD8Async", _OUT_OF_MEMORY): _CACHE_GIVEN_BACK,
    ("cuDeviceGetAttribute", _INVALID): "an older driver lacks the attribute, so the feature",
    ("cuStreamQuery", 0): "an event is asked instead, or the work is over as it failed",
}
_WAITS_ELSE: Final = "the context is waited for by cuCtxSynchronize"
_BROKEN: Final = "a broken context does nothing more, so nobody waits for it"
_ITS_OWN: Final = "the emulator calls it for cuGreenCtxCreate and cuGreenCtxDestroy"
_OWNER_FIRST: Final = "memory whose context is not known is queried again, with its pool and device"
# The same of one scenario, by its name and the function.
HANDLED_THERE: Final[dict[tuple[str, str], str]] = {
    ("ranges", "cuMemHostAlloc"): _WAITS_ELSE,
    ("ranges", "cuMemFreeHost"): _BROKEN,
    ("ranges", "cuCtxPopCurrent"): _BROKEN,
    ("sharing", "cuMemHostAlloc"): _WAITS_ELSE,
    ("sharing", "cuMemFreeHost"): _BROKEN,
    ("sharing", "cuCtxPopCurrent"): _BROKEN,
    ("host_memory_of_others", "cuMemHostAlloc"): _WAITS_ELSE,
    ("host_memory_of_others", "cuMemFreeHost"): _BROKEN,
    **{
        (scenario, function): why
        for scenario in (
            "memory_of_a_numa_node",
            "multicasts",
            "memory_of_other_interfaces",
            "semaphores_of_other_interfaces",
        )
        for function, why in (("cuMemHostAlloc", _WAITS_ELSE), ("cuMemFreeHost", _BROKEN))
    },
    ("traces", "cuFuncGetName"): "the trace has the kernel under its name in Python alone",
    ("other_contexts", "cuPointerGetAttributes"): _OWNER_FIRST,
    ("other_libraries", "cuPointerGetAttributes"): _OWNER_FIRST,
    ("green_contexts", "cuDevicePrimaryCtxRetain"): _ITS_OWN,
    ("green_contexts", "cuDevicePrimaryCtxRelease"): _ITS_OWN,
}
# What is left where its own release is refused; a graph keeps what it uses.
_OF_GRAPHS: Final = {"graphs", "executables", "user objects", "streams", "events", "memory"}
_OF_GRAPHS_TOO: Final = {"modules", *_OF_GRAPHS}
LOST: Final[dict[str, set[str]]] = {
    "cuStreamDestroy": {"streams"},
    "cuEventDestroy": {"events"},
    "cuGraphDestroy": _OF_GRAPHS_TOO,
    "cuGraphExecDestroy": _OF_GRAPHS_TOO,
    "cuModuleUnload": {"modules"},
    "cuArrayDestroy": {"arrays", "memory"},
    "cuMipmappedArrayDestroy": {"arrays", "memory"},
    "cuTexObjectDestroy": {"textures"},
    "cuSurfObjectDestroy": {"textures"},
    "cuMemFreeAsync": {"memory"},
    "cuMemFree": {"host memory", "memory"},
    # The wait for a context ends with it; without one nothing is freed.
    "cuMemFreeHost": {"host memory", "memory", "mapped memory", "external resources"},
    "cuCtxPopCurrent": {"mapped memory"},
    "cuMemHostUnregister": {"host memory"},
    "cuMemRelease": {"mapped memory"},
    "cuMemUnmap": {"mapped memory"},
    "cuDestroyExternalMemory": {"external resources", "mapped memory"},
    "cuDestroyExternalSemaphore": {"external resources"},
    "cuCtxDestroy": {"contexts"},
    "cuGreenCtxDestroy": {"contexts"},
    "cuUserObjectRelease": {"user objects"},
    # Whether memory may be given back that a stream of another library used.
    "cuStreamIsCapturing": {"memory"},
    # To destroy what is destroyed with its context bound.
    "cuCtxPushCurrent": {
        "arrays",
        "textures",
        "memory",
        "modules",
        "host memory",
        "mapped memory",
        "external resources",
    },
}


# A trace's own calls: made again later, or counted in its file where they leave no time. What it
# destroys tells of no earlier failure, which the program's own calls do.
OF_TRACES: Final = (
    "cuCtxPopCurrent", "cuCtxPushCurrent", "cuEventCreate", "cuEventElapsedTime", "cuEventQuery",
    "cuEventRecord", "cuEventSynchronize", "cuStreamCreateWithPriority", "cuStreamIsCapturing",
)  # fmt: skip
# Their first probe's outcome stays with the driver.
KEEP_OUTCOMES: Final = ("probes", "scatter")


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario, and the call in it that fails.

    Attributes:
        nth: which call of the function, counted from 1.
        of: how many there are.
        is_warm: whether the scenario has run once before.
    """

    scenario: str
    function: str
    nth: int
    of: int
    code: int
    is_warm: bool

    def __str__(self) -> str:
        when = "warm" if self.is_warm else "cold"
        call = f"call {self.nth} of {self.of} of {self.function}"
        return f"{self.scenario}, {when}: {call} answers {self.code}"


@dataclass
class Clean:
    """A scenario without a fault.

    Attributes:
        calls: how often each function of the driver was called.
        left: what is left afterwards.
    """

    calls: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)


def run_clean(scenario: str, is_warm: bool) -> Clean:
    """Run a scenario as a case does, with no fault."""
    clean = Clean()
    with emulator.session(devices=2) as machine:
        world = World(machine)
        if is_warm:
            SCENARIOS[scenario](world)
        process = state_of(machine).process
        enter = process.enter

        def count(name: str, always: bool) -> None:
            clean.calls[name] = clean.calls.get(name, 0) + 1
            enter(name, always)

        process.enter = count  # type: ignore[method-assign]  # what is called is what is asked
        SCENARIOS[scenario](world)
        gc.collect()
        process.enter = enter  # type: ignore[method-assign]
        SCENARIOS[scenario](world)
        world.close()
        del world
        clean.left = leftovers(machine)
    return clean


def run_case(case: Case, clean: Clean) -> list[str]:
    """What did not hold in a case; runs it in a thread of its own, as it may hang."""
    wrong: list[str] = []

    def work() -> None:
        try:
            wrong.extend(_Trial(case, clean).run())
        except BaseException:
            wrong.append("the trial itself failed: " + traceback.format_exc())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(SECONDS)
    if thread.is_alive():
        assert thread.ident is not None
        frames = traceback.format_stack(sys._current_frames()[thread.ident])
        raise HangingError(f"{case}: hangs\n" + "".join(frames[-6:]))
    return wrong


class HangingError(Exception):
    """A case did not end; the process cannot go on."""


class _Trial:
    """A case while it runs."""

    def __init__(self, case: Case, clean: Clean) -> None:
        self._case = case
        self._clean = clean
        self._scenario = SCENARIOS[case.scenario]
        self._told: list[BaseException] = []

    def run(self) -> list[str]:
        case, wrong = self._case, []
        former, sys.unraisablehook = sys.unraisablehook, self._tell
        try:
            with emulator.session(devices=2) as machine, warnings.catch_warnings(record=True) as w:
                warnings.simplefilter("always")
                world = World(machine)
                if case.is_warm:
                    self._scenario(world)
                with machine.fail(case.function, nth=case.nth, with_=case.code) as fault:
                    error = self._attempt(world)
                if fault.hits:
                    wrong += self._judge(error, [*(str(each.message) for each in w), *world.said])
                    error = self._attempt(world)
                    if error is not None and not self._may_fail_again(error):
                        wrong.append(f"the same again, without a fault: {error!r}")
                try:
                    world.close()
                except Exception as late:
                    wrong.append(f"closing afterwards: {late!r}")
                del world, error
                wrong += self._judge_leftovers(leftovers(machine))
        finally:
            sys.unraisablehook = former
        return wrong

    def _may_fail_again(self, error: BaseException) -> bool:
        """Whether a probe's outcome is kept, which stays with the driver."""
        return self._case.scenario in KEEP_OUTCOMES and isinstance(error, GpuError)

    def _attempt(self, world: World) -> BaseException | None:
        try:
            self._scenario(world)
        except BaseException as error:
            for each in _chain(error):
                traceback.clear_frames(each.__traceback__)
                each.__traceback__ = None
            gc.collect()
            return error
        gc.collect()
        return None

    # The argument is of a type that only stubs have.
    def _tell(self, args: Any) -> None:
        for each in _chain(args.exc_value):  # what was being handled when a collection came, too
            each.__traceback__ = None  # its frames hold what is destroyed
        self._told.append(args.exc_value)

    def _judge(self, error: BaseException | None, warned: list[str]) -> list[str]:
        case = self._case
        wrong = []
        chain = list(_chain(error)) if error is not None else []
        known = (CudadrvError, PtxError, BaseExceptionGroup)
        wrong += [
            f"an untyped error: {each!r}"
            for each in chain[:1]
            if not isinstance(each, known) and not isinstance(each, WrongValueError)
        ]
        wrong += [f"a wrong value: {each}" for each in chain if isinstance(each, WrongValueError)]
        for told in self._told:
            chain += _chain(told)
        named = any(
            isinstance(each, CudaError) and (each.call, each.code) == (case.function, case.code)
            for each in chain
        )
        said = " ".join([*warned, *(note for e in chain for note in getattr(e, "__notes__", ()))])
        if case.function in said or "could not be timed" in said:
            named = True
        is_handled = (
            (case.function, case.code) in HANDLED
            or (case.function, 0) in HANDLED
            or (case.scenario, case.function) in HANDLED_THERE
            or (case.scenario == "traces" and case.function in OF_TRACES)
            or (case.scenario == "traces" and CudaError.for_code(case.code).sticky)
        )
        if not named and not is_handled:
            wrong.append(f"a lost error: {error!r}, told {self._told}, warned {warned}")
        return wrong

    def _judge_leftovers(self, left: dict[str, int]) -> list[str]:
        more = {
            kind: f"{count} for {self._clean.left[kind]}"
            for kind, count in left.items()
            if count > self._clean.left[kind] and kind not in LOST.get(self._case.function, ())
        }
        return [f"left over: {more}"] if more else []


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, those in it if it is a group, and those behind it."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop(0)
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
