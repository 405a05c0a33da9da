"""Which driver the tests run on: CUDADRV_DRIVER if set, else the GPU if there is one."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

import cudadrv

# A busy machine makes examples slowly.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# Tests of the plugin run pytest on small tests of their own.
pytest_plugins = ("pytester", "tests.times")

_SLOW_SECONDS = 600


def pytest_configure(config: pytest.Config) -> None:
    if "CUDADRV_CACHE_DIR" not in os.environ:
        # The user's own cache of compiled images is none of the tests' business.
        folder = tempfile.mkdtemp(prefix="cudadrv-tests-")
        os.environ["CUDADRV_CACHE_DIR"] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    if "CUDADRV_DRIVER" not in os.environ:
        os.environ["CUDADRV_DRIVER"] = _default_driver()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without the garbage collector, which took two thirds of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let slow tests run for longer than the `timeout` of the others."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_SLOW_SECONDS))


@pytest.fixture(autouse=True, scope="module")
def _frozen() -> None:
    """Take the objects of earlier tests out of the garbage collector's sight.

    Hundreds of thousands of them stay anyway, and make each of the many collections that tests ask
    for take a fifth of a second.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """No workers on a GPU: tests look at what it has left, which others would change."""
    return 0 if (os.environ.get("CUDADRV_DRIVER") or _default_driver()) == "cuda" else None


def pytest_report_header() -> str:
    return f"cudadrv driver: {os.environ['CUDADRV_DRIVER']}"


def _default_driver() -> str:
    try:
        return "cuda" if cudadrv.list_devices() else "emulator:2"
    except cudadrv.DriverNotFoundError:
        return "emulator:2"


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises; a process that a shell started in the background ignores it."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
