"""What checks and orders find fails the test, with its text and what repeats it."""

from __future__ import annotations

import gc
import re
import shlex

import pytest

from .runs import Runs

RACE = """
from kernels import run
def test_racy(cuda_stream):
    run(cuda_stream, "racy")
def test_good(cuda_stream):
    assert run(cuda_stream, "good")[5] == 5
"""
# The host reads what a copy is still to bring.
EARLY = """
import numpy as np
import cudadrv
from kernels import run
def test_early(cuda_stream):
    there = cuda_stream.to_device(np.full(8, 7, np.int32))
    here = cudadrv.pinned_empty(8, np.int32)
    here[:] = 0
    cuda_stream.to_host(there, out=here, wait=False)
    assert (here == 7).all()
"""
# The host writes what a copy is still to read; no value of the test is wrong.
OVERWRITTEN = """
import numpy as np
import pytest
import cudadrv
def test_overwritten(cuda_stream):
    here = cudadrv.pinned_empty(1 << 18, np.int32)
    here[:] = 1
    there = cuda_stream.empty(1 << 18, np.int32)
    cuda_stream.copy(there, here, wait=False)
    here[:] = 2
"""
# A fault that nobody waits for.
UNSEEN = """
import cudadrv
from kernels import SOURCE, np
def test_unseen(cuda_stream):
    out = cuda_stream.zeros(64, np.int32)
    module = cuda_stream.context.compile(SOURCE)
    module.kernel("bad").launch(cuda_stream, cudadrv.LaunchConfig(1, 1), out)
"""


def test_a_race_fails_the_test_with_its_text(runs: Runs) -> None:
    result = runs.here(RACE, "--cuda=emulator", "--cuda-check=race")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ test_racy _*",
            "race: kernel racy, 4 bytes of shared memory *",
            "  write by block *, thread *, at *kernels.cu:6 *",
            "  nothing orders the two: *",
            "order immediate; repeat with",
            "python -m pytest test_user.py::test_racy --cuda=emulator --cuda-order=immediate "
            "--cuda-check=race",
        ]
    )
    runs.here(RACE, "--cuda=emulator").assert_outcomes(passed=2)


REJECTED = """
HEADER = b".version 8.0\\n.target sm_80\\n.address_size 64\\n"
def test_rejected(cuda_context):
    body = b".reg .b64 %a; alloca.f32 %a, 8; ret;"
    cuda_context.load_module(HEADER + b".visible .entry k() { " + body + b" }")
"""


def test_a_module_that_no_gpu_loads_fails_the_test_unless_other_checks_are_named(
    runs: Runs,
) -> None:
    result = runs.here(REJECTED, "--cuda=emulator")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["assemble: GPUs of sm_90 do not load this module*", "  loaded at *test_user.py:4"]
    )
    for option in ("--cuda-check=", "--cuda-check=race"):
        runs.here(REJECTED, "--cuda=emulator", option).assert_outcomes(passed=1)


def test_a_race_may_be_expected(runs: Runs) -> None:
    test = RACE.replace("def test_racy", "import pytest\n@pytest.mark.xfail\ndef test_racy")
    result = runs.here(test, "--cuda=emulator", "--cuda-check=race")
    result.assert_outcomes(xfailed=1, passed=1)


def test_a_skip_after_a_race_does_not_hide_it(runs: Runs) -> None:
    skips = """
import pytest
from kernels import run
def test_skips_at_once(cuda_stream):
    pytest.skip("at once")
def test_skips_after(cuda_stream):
    run(cuda_stream, "racy")
    pytest.skip("after")
"""
    result = runs.here(skips, "--cuda=emulator", "--cuda-check=race")
    result.assert_outcomes(skipped=1, failed=1)
    result.stdout.fnmatch_lines(["*_ test_skips_after _*", "race: kernel racy, *"])


@pytest.mark.slow
def test_a_fault_of_order_fails_late_and_passes_at_once(runs: Runs) -> None:
    runs.here(EARLY, "--cuda=emulator").assert_outcomes(passed=1)
    result = runs.here(EARLY, "--cuda=emulator", "--cuda-order=late")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*assert*here == 7*",
            "When the test failed, this work was queued and had not run. Is a wait missing?",
            "  memcpy *, queued at *test_user.py:8",
            "    its destination, 32 bytes of host memory at *, still holds",
            "    what was there before: 0 as float64, *",
            "order late; repeat with",
        ]
    )
    runs.pytester.makeini("[pytest]\ncuda_check = race\n")
    result = runs.here(EARLY, "--cuda=emulator", "--cuda-order=late", "--cuda-check=")
    result.stdout.fnmatch_lines(["python -m pytest * --cuda-order=late --cuda-check="])
    (runs.pytester.path / "tox.ini").unlink()
    filled = EARLY.replace("    here[:] = 0\n", "").replace("here == 7", "here[0] == 7")
    result = runs.here(filled, "--cuda=emulator", "--cuda-order=late")
    result.stdout.fnmatch_lines(
        [
            "*-842150451* == 7*",
            "    the fill of memory that nothing has written (bytes 0xcd): *, -842150451 as int32",
        ]
    )
    passing = runs.here(EARLY.replace(", wait=False", ""), "--cuda=emulator", "--cuda-order=late")
    passing.stdout.no_fnmatch_line("*had not run*")


def test_what_only_the_emulator_sees_fails_the_test(runs: Runs) -> None:
    result = runs.here(OVERWRITTEN, "--cuda=emulator", "--cuda-order=late", "-Wignore")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["1048576 bytes of host memory at *test_user.py:8,*", "*changed by the host*"]
    )
    assert str(result.stdout).count("were changed by the host") == 1


@pytest.mark.parametrize("order", ["late", "random"])
def test_a_fault_that_no_call_waited_for_fails_the_test(runs: Runs, order: str) -> None:
    # Known fault: the plugin misses it where a finalizer's call is the first to meet it.
    gc.disable()
    try:
        result = runs.here(UNSEEN, "--cuda=emulator", f"--cuda-order={order}", "-Werror")
    finally:
        gc.enable()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*out-of-bounds write*", "*in kernel bad,*"])


def test_a_failure_in_random_order_names_the_seed_and_a_command_that_repeats_it(runs: Runs) -> None:
    test = EARLY.replace("def test_early", "def early") + (
        "def test_early(cuda_stream):\n    for _ in range(20):\n        early(cuda_stream)\n"
    )
    result = runs.here(test, "--cuda=emulator", "--cuda-order=random", "--cuda-seed=new", "-x")
    result.assert_outcomes(failed=1)
    (seed,) = set(re.findall(r"order random, seed (\d+); repeat with", str(result.stdout)))
    result.stdout.fnmatch_lines([f"cudadrv *, order random, checks assemble, seed {seed}"])
    (command,) = re.findall(r"^python -m pytest (.*)$", str(result.stdout), re.MULTILINE)
    again = runs.here(test, *shlex.split(command))
    again.assert_outcomes(failed=1)
    assert f"order random, seed {seed}; repeat with" in str(again.stdout)


def test_the_frames_of_a_failure_are_the_users(runs: Runs) -> None:
    test = """
import cudadrv
from kernels import run
def test_bad(cuda_stream):
    run(cuda_stream, "bad")
def test_argument(cuda_stream):
    cuda_stream.zeros(-1, "f4")
"""
    result = runs.here(test, "--cuda=emulator")
    result.assert_outcomes(failed=2)
    places = re.findall(r"^(\S+\.py):\d+: ", str(result.stdout), re.MULTILINE)
    assert places == ["test_user.py", "kernels.py", "test_user.py"]
    # The emulator's fault is in the text of the driver's error.
    assert str(result.stdout).count("out-of-bounds") == 1
    result.stdout.no_fnmatch_line("*direct cause*")
    full = runs.here(test, "--cuda=emulator", "--full-trace")
    assert "cudadrv/memory/" in str(full.stdout)


@pytest.mark.slow
def test_the_report_recommends_a_marker_to_a_test_without_one(
    runs: Runs, with_no_gpu: None
) -> None:
    test = """
import cudadrv
def test_plain():
    cudadrv.cuda_context_for(0)
"""
    result = runs.apart(test)
    result.assert_outcomes(failed=1)
    told = str(result.stdout).partition("_ test_plain _")[2].partition("= short test summary")[0]
    lines = [line for line in told.splitlines() if line.strip()]
    assert len(lines) <= 15, told
    assert sum("mark it @pytest.mark.gpu" in line for line in lines) == 1
    assert "The above exception" not in told
    result.stdout.fnmatch_lines([">       cudadrv.cuda_context_for(0)", "test_user.py:3: *Error"])


UNMARKED = """
import cudadrv
import pytest
def use():
    try:
        raise RuntimeError("words of " + "the loader")
    except RuntimeError as error:
        raise cudadrv.DriverNotFoundError("no CUDA driver was found") from error
@pytest.fixture
def device():
    use()
def test_plain():
    use()
def test_by_fixture(device):
    pass
def test_by_another_error():
    try:
        use()
    except cudadrv.DriverNotFoundError as error:
        raise LookupError("mine") from error
"""


@pytest.mark.parametrize("name", ["test_plain", "test_by_fixture", "test_by_another_error"])
def test_the_error_of_a_test_without_a_marker_is_short(runs: Runs, name: str) -> None:
    told = str(runs.here(UNMARKED, "-k", name).stdout)
    assert told.count("mark it @pytest.mark.gpu") == 1
    assert "words of the loader" not in told
    assert "words of the loader" in str(runs.here(UNMARKED, "-k", name, "--full-trace").stdout)


def test_the_report_recommends_no_marker_to_a_test_that_has_one(runs: Runs) -> None:
    test = UNMARKED.replace("def test_plain", "@pytest.mark.gpu\ndef test_plain")
    told = str(runs.here(test, "-k", "test_plain", "--cuda=emulator").stdout)
    assert "no CUDA driver was found" in told
    assert "mark it" not in told


def test_a_test_that_failed_has_what_was_found_as_well(runs: Runs) -> None:
    test = RACE.replace('run(cuda_stream, "racy")', 'run(cuda_stream, "racy")\n    assert 0')
    result = runs.here(test, "--cuda=emulator", "--cuda-check=race")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["E       assert 0", "race: kernel racy, *"])


@pytest.mark.parametrize("outcome", ["passed", "failed"])
def test_planned_faults_end_with_the_test(runs: Runs, outcome: str) -> None:
    result = runs.here(
        f"""
import cudadrv
import pytest
def test_planned(fault_injection, cuda_stream):
    planned = fault_injection.fail("cuMemAllocAsync", with_=2, times=None)
    with pytest.raises(cudadrv.OutOfMemoryError):
        cuda_stream.zeros(8, "f4")
    assert planned.hits == 1
    assert {outcome == "passed"}
def test_next(cuda_stream):
    cuda_stream.zeros(8, "f4")
""",
    )
    result.assert_outcomes(**{"passed": 1, outcome: 2 if outcome == "passed" else 1})


def test_a_failing_test_shows_what_the_compiler_warned_of(runs: Runs) -> None:
    test = """
SOURCE = 'extern "C" __global__ void k(unsigned n, int* x) { if (n >= 0) *x = 1; }'
def test_right(cuda_context):
    cuda_context.compile(SOURCE)
def test_wrong(cuda_context):
    cuda_context.compile(SOURCE)
    assert False
def test_other(cuda_context):
    assert False
"""
    result = runs.here(test, "--cuda=emulator", "-Wdefault")
    result.assert_outcomes(failed=2, passed=1, warnings=1)
    text = result.stdout.str()
    heading = "kernel.cu(1): warning: pointless comparison of unsigned integer with zero"
    section = text.partition("_ test_wrong _")[2].partition("_ test_other _")[0]
    result.stdout.fnmatch_lines(["*- warnings of the compiler -*", heading])
    assert section.count(heading) == 1
    assert heading not in text.partition("_ test_other _")[2].partition("warnings summary")[0]
