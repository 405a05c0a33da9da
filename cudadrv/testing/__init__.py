"""The pytest plugin: tests of kernels on a GPU, on the emulator, or on both (docs/testing.md).

pytest loads it where cudadrv is installed. It loads no emulator and calls no driver before a test
needs one. `-p no:cudadrv.testing` switches it off.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

import ptx
from ptx.visible_text import visible

from ..driver.device import Device, driver_version
from ..driver.driver_selection import set_current
from ..errors import ArgumentValueError, CudadrvError, DriverNotFoundError, NoDeviceError
from ..version import VERSION
from .choices import CHECK, ORDER, VARIABLES, Choices, add_options, read_choices
from .cuda_test import CudaTest, PendingSession, ProcessFindings
from .gpus import gpus, spread_workers
from .plan import (
    CUDA_EMULATOR,
    CUDA_TEST,
    MARKERS,
    CudaTestPlan,
    Place,
    plan_of,
    session_arguments,
    unmarked,
)

if TYPE_CHECKING:
    from execnet import XSpec

    from ..emulator import EmulatedDevice, Emulator
    from ..stream import Context, Stream
    from .budget import Budgets


_CHOICES: Final = pytest.StashKey[Choices]()
_TEST: Final = pytest.StashKey[CudaTest | None]()
_PENDING: Final = pytest.StashKey[PendingSession | None]()
_PROCESS: Final = pytest.StashKey[ProcessFindings]()
_BUDGETS: Final[pytest.StashKey[Budgets]] = pytest.StashKey()
_OF_CONTROLLER: Final = "cudadrv"
_BOTH: Final[tuple[Place, ...]] = ("gpu", "emulator")
_RANDOM: Final = "random:"
_PACKAGES: Final = Path(__file__).parents[2]
# Files of both packages, and the names of code that they make at run time.
_OURS: Final = (
    f"{_PACKAGES / 'cudadrv'}{os.sep}",
    f"{_PACKAGES / 'ptx'}{os.sep}",
    "<cudadrv ",
    "<ptx ",
)
_UNMARKED: Final = (
    "  the test has neither a marker nor a fixture of cudadrv: mark it @pytest.mark.gpu\n"
    "  it then runs on the GPU if there is one, else on the emulator; --cuda chooses"
)
_PLUGIN: Final = f"{Path(__file__).parent}{os.sep}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and ini values."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Read the options of the run, and set them for the process by its environment."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    former = {name: os.environ.get(name) for name in VARIABLES}
    choices = config.stash[_CHOICES] = read_choices(config)
    if choices.budget != "off":
        from .budget import Budgets

        budgets = config.stash[_BUDGETS] = Budgets(updates=choices.budget == "update")
        config.pluginmanager.register(budgets)
    os.environ.update(choices.environment)
    # A seed that was chosen anew is one for all workers.
    os.environ.update(getattr(config, "workerinput", {}).get(_OF_CONTROLLER, {}))

    def restore() -> None:
        for name, value in former.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    config.add_cleanup(restore)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return the options of workers; without workers the line comes after the collection."""
    choices = config.stash[_CHOICES]
    if not (config.pluginmanager.hasplugin("dsession") and choices.is_given):
        return []
    return [header_of_workers(choices)]


def pytest_report_collectionfinish(
    config: pytest.Config, items: Sequence[pytest.Item]
) -> list[str]:
    """Return the devices of the tests that need CUDA; load nothing if none does."""
    if config.option.collectonly or config.get_verbosity() < 0:
        return []
    choices = config.stash[_CHOICES]
    places = {_place_of(item, plan, choices) for item in items if (plan := _plan_of(item))}
    if not places:
        return []
    return [header(choices, places)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: Sequence[XSpec]) -> None:
    """Give each worker a first device of its own."""
    spread_workers(specs, config.stash[_CHOICES].mode)


@pytest.hookimpl(optionalhook=True)
# Any: a WorkerController of pytest-xdist, which has no types.
def pytest_configure_node(node: Any) -> None:
    """Pass the options of this process to a worker."""
    variables = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    node.workerinput[_OF_CONTROLLER] = variables


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for each place with --cuda=both, and for each seed on the emulator."""
    choices = metafunc.config.stash[_CHOICES]
    plan = _plan_of(metafunc.definition)
    if plan is None:
        return
    places: Sequence[Place] = _BOTH
    if choices.mode != "both" or plan.place is not None:
        places = [_place_of(metafunc.definition, plan, choices)] if _seeds(plan, choices) else []
    runs: list[str] = []
    for place in places:
        seeds = _seeds(plan, choices) if place == "emulator" else 0
        runs += [f"{_RANDOM}{seed}" for seed in range(seeds)] or [place]
    if runs and runs != ["gpu"]:
        if CUDA_TEST not in metafunc.fixturenames:
            metafunc.fixturenames.append(CUDA_TEST)
        metafunc.parametrize(CUDA_TEST, runs, indirect=True, scope="function")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Install a driver for a test that needs one, before its fixtures.

    On the emulator a test without a marker or fixture opens its session at its first driver call.
    """
    stash, choices = item.config.stash, item.config.stash[_CHOICES]
    stash[_TEST], stash[_PROCESS] = None, ProcessFindings()
    try:
        plan = plan_of(item, _fixtures_of(item), choices)
    except ArgumentValueError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    if plan is not None:
        _open(item, plan)
    elif choices.mode == "emulator":
        stash[_PENDING] = PendingSession(partial(_open, item, unmarked(item)))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Track the objects that fixtures of wider scopes make."""
    result = yield
    test = request.config.stash.get(_TEST, None)
    if test is not None and fixturedef.scope != "function":
        test.made_by_fixture(fixturedef.argname, fixturedef.scope)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail the test if there are findings, or if its counts differ from its budget."""
    test = item.config.stash.get(_TEST, None)
    if test is not None:
        test.begin_counting()
    try:
        result = yield
    except pytest.skip.Exception:  # of the test's body, which hides no finding
        _fail_for_findings(item)
        raise
    _fail_for_findings(item)
    test = item.config.stash.get(_TEST, None)
    counters = None if test is None else test.counters
    _fail_for("" if counters is None else item.config.stash[_BUDGETS].compare(item, counters))
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Restore the former driver after all fixtures, and fail the test if it leaks."""
    stash = item.config.stash
    try:
        result = yield
    except BaseException:
        test = stash.get(_TEST, None)
        if test is not None:
            test.has_failed = True
            test.close()
        raise
    test = stash.get(_TEST, None)  # its fixtures may have opened it
    found = "" if test is None else test.close()
    _close_pending(stash)
    _fail_for(found)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Restore the former driver, also if an interrupt or a crash of pytest ended the test."""
    stash = item.config.stash
    try:
        return (yield)
    finally:
        test, stash[_TEST] = stash.get(_TEST, None), None
        if test is not None and test.is_open:
            test.has_failed = True
            _print(item.config, test.found())  # no report of the test follows
            test.close()
        _close_pending(stash)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Hide this library's frames, and report how to repeat a failure."""
    test = item.config.stash.get(_TEST, None)
    error = None if call.excinfo is None else call.excinfo.value
    if test is not None and error is not None:
        test.has_failed = True
    if test is None and error is not None:
        _name_the_marker(error)
    if error is not None and not _is_developed_in(item.config.rootpath):
        _hide_frames(error)
        if not item.config.option.fulltrace:
            _hide_loader(error)
    report = yield
    if test is not None and report.failed:
        # An error of the library describes the fault itself; a wrong value does not.
        queued = "" if isinstance(error, CudadrvError) else test.queued()
        text = "\n".join(filter(None, [queued, test.found(), test.repeated_by]))
        report.sections += [("cudadrv", visible(text))] if text else []
        warned = test.compile_warnings
        report.sections += [("warnings of the compiler", visible(warned))] if warned else []
    return report


@pytest.fixture(name=CUDA_TEST)
def _cuda_test(request: pytest.FixtureRequest) -> CudaTest:
    """The test's driver; a test that requests it while it runs has it from then on."""
    test = request.config.stash.get(_TEST, None)
    if test is None:
        test = _open(request.node, unmarked(request.node))
    return test


@pytest.fixture(name=CUDA_EMULATOR)
def _cuda_emulator(_cuda_test: CudaTest) -> Emulator:
    """The test's emulator."""
    if _cuda_test.emulator is None:
        pytest.fail("the test runs on a GPU: give it the marker emulated", pytrace=False)
    return _cuda_test.emulator


@pytest.fixture
def cuda_context(_cuda_test: CudaTest) -> Context:
    """The primary context of the first device, a `cudadrv.Context`."""
    from ..stream import cuda_context_for  # which loads NumPy

    return cuda_context_for(0)


@pytest.fixture
def cuda_stream(cuda_context: Context) -> Iterator[Stream]:
    """A new stream of `cuda_context`."""
    with cuda_context.new_stream() as stream:
        yield stream


@pytest.fixture
def emulator(_cuda_emulator: Emulator) -> Emulator:
    """The `cudadrv.emulator.Emulator` of this test, which runs on it."""
    return _cuda_emulator


@pytest.fixture
def fault_injection(_cuda_emulator: Emulator) -> Emulator:
    """The emulator of this test, for planning faults, as by `fail`, `on_call`, `limit_memory`."""
    return _cuda_emulator


def _fixtures_of(item: pytest.Item) -> Sequence[str]:
    return getattr(item, "fixturenames", ())


def _plan_of(item: pytest.Item) -> CudaTestPlan | None:
    """Return the plan of a test; wrong markers are reported when it is set up."""
    try:
        return plan_of(item, _fixtures_of(item), item.config.stash[_CHOICES])
    except ArgumentValueError:
        return None


def _place_of(item: pytest.Item, plan: CudaTestPlan, choices: Choices) -> Place:
    """Return the place where a test runs."""
    if plan.place is not None:
        return plan.place
    run = _run_of(item)
    if run.startswith(_RANDOM):
        return "emulator"
    if run:
        return cast("Place", run)  # one of `_BOTH`
    if choices.mode in _BOTH:
        return choices.mode
    return "gpu" if choices.requires_gpu or gpus().count else "emulator"


def _run_of(item: pytest.Item) -> str:
    """Return which of several runs of a test this is: a place, or an order; "" for the only one."""
    callspec = getattr(item, "callspec", None)
    return "" if callspec is None else str(callspec.params.get(CUDA_TEST, ""))


def _seeds(plan: CudaTestPlan, choices: Choices) -> int:
    """Return the number of seeds of a test on the emulator; 0 for one run in the run's order."""
    return choices.seeds if plan.seeds is None else plan.seeds


def _open(item: pytest.Item, plan: CudaTestPlan) -> CudaTest:
    choices = item.config.stash[_CHOICES]
    run = _run_of(item)
    if plan.seeds and not run:
        pytest.fail(
            "emulated: pytest cannot repeat a unittest.TestCase for seeds\n"
            "  make it a function, or use --cuda-order=random --cuda-seed=N",
            pytrace=False,
        )
    order = run if run.startswith(_RANDOM) else ""
    test = CudaTest(item, plan, choices, _place_of(item, plan, choices), order)
    test.open()
    item.config.stash[_TEST] = test
    return test


def _close_pending(stash: pytest.Stash) -> None:
    pending, stash[_PENDING] = stash.get(_PENDING, None), None
    if pending is not None:
        pending.close()


def _print(config: pytest.Config, text: str) -> None:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if text and reporter is not None:
        reporter.write_line(f"\n{visible(text)}")


def _fail_for_findings(item: pytest.Item) -> None:
    """Fail the test if its checks have findings that were not reported yet."""
    _fail_for(item.config.stash[_PROCESS].new())
    test = item.config.stash.get(_TEST, None)
    _fail_for("" if test is None else test.findings())


def _fail_for(findings: str) -> None:
    if findings:
        pytest.fail(visible(findings), pytrace=False)


def _is_developed_in(folder: Path) -> bool:
    """Return True for the folder of the library itself, whose tests show its frames."""
    return folder == _PACKAGES


def _hide_frames(error: BaseException) -> None:
    """Hide this library's frames in pytest's report of an error.

    pytest shows no frame whose globals have `__tracebackhide__`.
    """
    for link in _chain(error):
        traceback = link.__traceback__
        while traceback is not None:
            frame = traceback.tb_frame
            file = frame.f_code.co_filename
            if file.startswith(_OURS) and not file.startswith(_PLUGIN):
                frame.f_globals.setdefault("__tracebackhide__", True)
            traceback = traceback.tb_next


def _name_the_marker(error: BaseException) -> None:
    """Add a note about the marker to the error of a test without one that found no device."""
    for link in _chain(error):
        if isinstance(link, (DriverNotFoundError, NoDeviceError)):
            link.add_note(_UNMARKED)
            return


def _hide_loader(error: BaseException) -> None:
    """Remove the loader's error, which the error of a missing driver repeats."""
    for link in _chain(error):
        if isinstance(link, DriverNotFoundError):
            link.__cause__ = None  # this hides the context as well


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its causes, and the errors in groups."""
    visited: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        link = waiting.pop()
        if link is None or id(link) in visited:
            continue
        visited.add(id(link))
        yield link
        waiting += (link.__cause__, link.__context__)
        if isinstance(link, BaseExceptionGroup):
            waiting += link.exceptions


def header(choices: Choices, places: Iterable[Place]) -> str:
    """Return the line for tests at these places."""
    targets = set(places)
    parts, checks = [f"cudadrv {VERSION}"], "none"
    if "gpu" in targets:
        parts.append(_gpus())
    if "emulator" in targets:
        arguments = session_arguments(CudaTestPlan(None, 1, {}, may_leak=True), choices)
        parts.append(_emulator(arguments))
        checks = ",".join(cast("list[str]", arguments["check"])) or checks
    checks = os.environ.get(CHECK, checks) or "none"
    return ", ".join([*parts, _nvrtc(), *_settings(choices, checks)])


def header_of_workers(choices: Choices) -> str:
    """Return the line for tests of workers, where each of them finds its own devices."""
    profile = [f"profile {choices.profile}"] if choices.profile else []
    settings = _settings(choices, os.environ.get(CHECK, "default") or "none")
    return ", ".join([f"cudadrv {VERSION}", f"--cuda={choices.mode}", *profile, *settings])


def _settings(choices: Choices, checks: str) -> list[str]:
    order, _, seed = (os.environ.get(ORDER) or "immediate").partition(":")
    if choices.seeds:
        return ["order random", f"checks {checks}", f"seeds 0 to {choices.seeds - 1}"]
    return [f"order {order}", f"checks {checks}", *([f"seed {seed}"] if seed else [])]


def _gpus() -> str:
    available = gpus()
    if available.driver is None or not available.count:
        return f"no GPU ({available.absence})"
    former = set_current(available.driver)
    try:
        names = dict.fromkeys(Device.get(ordinal).name for ordinal in range(available.count))
        version = ".".join(map(str, driver_version()))
    except CudadrvError as error:
        return f"GPU ({error})"
    finally:
        set_current(former)
    return f"{available.count} x {', '.join(names)}, driver {version}"


def _emulator(arguments: Mapping[str, object]) -> str:
    from ..emulator import EmulatedDevice
    from ..emulator.emulator import NEWEST_DRIVER
    from ..emulator.profiles import given_devices

    devices = arguments["devices"]
    emulated = given_devices(devices, EmulatedDevice)  # type: ignore[arg-type]  # it checks them
    return f"emulator of {_described(emulated)}, driver {'.'.join(map(str, NEWEST_DRIVER))}"


def _nvrtc() -> str:
    try:
        return f"NVRTC {'.'.join(map(str, ptx.nvrtc_version()))}"
    except ptx.PtxError as error:
        return f"no NVRTC ({str(error).partition(chr(10))[0]})"


def _described(devices: Sequence[EmulatedDevice]) -> str:
    """Return emulated devices in words."""
    kinds = dict.fromkeys(
        f"{device.name} (sm_{device.compute_capability[0]}{device.compute_capability[1]})"
        for device in devices
    )
    return f"{len(devices)} x {', '.join(kinds)}"
