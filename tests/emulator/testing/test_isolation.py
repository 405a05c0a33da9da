"""Every test on the emulator has devices of its own, and leaves nothing there."""

from __future__ import annotations

import pytest

from cudadrv.driver.driver_selection import current_or_none

from .runs import Runs

IMPORTS = """
import numpy as np
import pytest
import cudadrv
from kernels import run
"""


def test_a_bad_kernel_reaches_no_other_test(runs: Runs) -> None:
    result = runs.here(
        IMPORTS
        + """
def test_before(cuda_stream):
    assert run(cuda_stream, "good")[5] == 5
def test_bad(cuda_stream):
    run(cuda_stream, "bad")
def test_after(cuda_stream):
    assert run(cuda_stream, "good")[5] == 5
""",
        "--cuda=emulator",
    )
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*out-of-bounds write of 4 bytes*", "*in kernel bad,*"])


def test_what_a_test_leaves_fails_it_and_no_other(runs: Runs) -> None:
    result = runs.here(
        IMPORTS
        + """
kept = []
def test_array(cuda_stream):
    kept.append(cuda_stream.zeros(8, np.int32))
def test_stream(cuda_context):
    kept.append(cuda_context.new_stream())
def test_event(cuda_context):
    kept.append(cudadrv.Event(cuda_context))
def test_module(cuda_context):
    kept.append(cuda_context.load_module(".version 7.8\\n.target sm_90\\n.address_size 64"))
def test_pinned(cuda_context):
    kept.append(cudadrv.pinned_empty(8, np.int32))
def test_nothing(cuda_stream):
    cuda_stream.zeros(8, np.int32)
""",
        "--cuda=emulator",
    )
    result.assert_outcomes(passed=6, errors=5)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_array*",
            "leak: 32 bytes of device memory at *",
            "  made at *test_user.py:8",
            "*ERROR at teardown of test_stream*",
            "leak: stream at *",
            "*ERROR at teardown of test_event*",
            "leak: event at *",
            "*ERROR at teardown of test_module*",
            "leak: module at *",
            "*ERROR at teardown of test_pinned*",
            "leak: 32 bytes of pinned memory at *",
        ]
    )
    # The stream of the fixture is there for the array alone.
    assert str(result.stdout).count("leak: stream") == 2  # the test's own, and the summary


@pytest.mark.slow
def test_what_goes_with_the_test_is_no_leak(runs: Runs) -> None:
    result = runs.here(
        IMPORTS
        + """
@pytest.fixture
def array(cuda_stream):
    return cuda_stream.zeros(8, np.int32)
def test_circle(cuda_stream, array):
    kept = [cuda_stream.zeros(8, np.int32), array]
    kept.append(kept)
def test_raises(cuda_stream):
    with pytest.raises(cudadrv.CudaError) as caught:
        run(cuda_stream, "bad")
def test_client(cuda_context):
    cudadrv.CudaClient(0).stream
    cuda_context.default_stream.zeros(8, np.int32)
""",
        "--cuda=emulator",
    )
    result.assert_outcomes(passed=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("marker", "option"), [('@pytest.mark.may_leak("kept")', ""), ("", "--cuda-leaks=allow")]
)
def test_a_leak_may_be_allowed(runs: Runs, marker: str, option: str) -> None:
    result = runs.here(
        f"""{IMPORTS}
kept = []
{marker}
def test_array(cuda_stream):
    kept.append(cuda_stream.zeros(8, np.int32))
""",
        "--cuda=emulator",
        *option.split(),
    )
    result.assert_outcomes(passed=1)


def test_what_the_traceback_of_a_failed_test_holds_is_not_reported(runs: Runs) -> None:
    result = runs.here(
        IMPORTS
        + """
def test_array(cuda_stream):
    array = cuda_stream.zeros(8, np.int32)
    assert array is None
""",
        "--cuda=emulator",
    )
    result.assert_outcomes(failed=1)


def test_a_fixture_of_a_wider_scope_that_makes_something_is_reported(runs: Runs) -> None:
    result = runs.here(
        IMPORTS
        + """
@pytest.fixture(scope="module")
def array():
    return cudadrv.cuda_context_for(0).default_stream.zeros(8, np.int32)
@pytest.mark.gpu
def test_array(array):
    pass
""",
        "--cuda=emulator",
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*fixture 'array' of scope 'module' made*", "leak: 32 bytes of device memory *"]
    )


def test_an_image_may_be_of_a_wider_scope(runs: Runs) -> None:
    result = runs.here(
        IMPORTS
        + """
import ptx
@pytest.fixture(scope="session")
def image():
    return ptx.compile('extern "C" __global__ void f() {}')
@pytest.mark.parametrize("n", [1, 2])
def test_image(image, cuda_context, n):
    assert cuda_context.load_module(image).kernel("f").name == "f"
""",
        "--cuda=emulator",
    )
    result.assert_outcomes(passed=2)


@pytest.mark.slow
def test_the_former_driver_is_back_after_a_test(runs: Runs) -> None:
    before = current_or_none()
    result = runs.here(
        IMPORTS
        + """
import os
from cudadrv import emulator
from cudadrv.driver.driver_selection import current_or_none
found = [current_or_none()]
@pytest.mark.gpu
def test_own():
    assert current_or_none() is not found[0] and os.environ["CUDADRV_DRIVER"] == "emulator:1"
def test_unopened():
    assert current_or_none() is None and os.environ["CUDADRV_DRIVER"] == "emulator"
def test_within(cuda_context):
    with emulator.session(devices=3):
        assert len(cudadrv.list_devices()) == 3
    assert len(cudadrv.list_devices()) == 1
""",
        "--cuda=emulator",
    )
    result.assert_outcomes(passed=3)
    assert current_or_none() is before


def test_an_interrupt_leaves_no_emulator(runs: Runs) -> None:
    before = current_or_none()
    runs.pytester.makepyfile(test_user="def test(cuda_context):\n    raise KeyboardInterrupt")
    result = runs.pytester.inline_run("-p", "cudadrv.testing", no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert current_or_none() is before


@pytest.mark.slow
def test_on_a_gpu_what_a_test_leaves_fails_it_too(runs: Runs, with_gpus: None) -> None:
    result = runs.apart(
        IMPORTS
        + """
kept = []
@pytest.fixture(scope="module")
def array():
    return cudadrv.cuda_context_for(0).default_stream.zeros(8, np.int32)
def test_array(cuda_stream):
    kept.append(cuda_stream.zeros(8, np.int32))
def test_pinned(cuda_context):
    kept.append(cudadrv.pinned_empty(8, np.int32))
def test_wider(cuda_stream, array):
    cudadrv.CudaClient(0).stream.copy(array, cuda_stream.zeros(8, np.int32))
@pytest.mark.may_leak("kept")
def test_allowed(cuda_stream):
    kept.append(cuda_stream.zeros(8, np.int32))
def test_client(cuda_context):
    cudadrv.CudaClient(0)
""",
        "--cuda=gpu",
    )
    result.assert_outcomes(passed=5, errors=2)
    result.stdout.fnmatch_lines(
        ["leak: the test left *", "  <Device*on device 0>", "  <pinned memory of 32 bytes>"]
    )
