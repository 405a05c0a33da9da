"""Where a test runs: markers, --cuda, --cuda-require-gpu, and what the machine has."""

from __future__ import annotations

import pytest

from tests.short_cases import few

from .runs import Runs

WHERE = """
import pytest
import cudadrv
from cudadrv.driver.driver_selection import current
def is_emulated():
    return current().is_emulated
"""


@pytest.mark.slow
def test_auto_is_the_emulator_where_there_is_no_gpu(runs: Runs, with_no_gpu: None) -> None:
    result = runs.apart(
        f"""{WHERE}
@pytest.mark.gpu
def test_any():
    assert is_emulated()
@pytest.mark.gpu(real=True)
def test_real():
    assert False
@pytest.mark.multi_gpu(3)
def test_three():
    assert len(cudadrv.list_devices()) == 3
""",
        "-rs",
    )
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(
        ["cudadrv *, emulator of 1 x *driver 13.5, NVRTC *, order immediate, checks assemble"]
    )
    result.stdout.fnmatch_lines(["SKIPPED * test_user.py:10: needs a GPU: *"])


@pytest.mark.slow
def test_without_a_gpu_the_switch_makes_failures(runs: Runs, with_no_gpu: None) -> None:
    result = runs.apart(
        f"""{WHERE}
@pytest.mark.gpu
def test_any():
    pass
@pytest.mark.gpu(real=True)
def test_real():
    pass
@pytest.mark.emulated
def test_emulated():
    assert is_emulated()
def test_neither():
    pass
""",
        "--cuda-require-gpu",
    )
    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(["ERROR test_user.py::test_any - Failed: needs a GPU: *"])


@pytest.mark.slow
def test_auto_is_the_gpu_where_there_is_one(runs: Runs, with_gpus: None) -> None:
    result = runs.apart(
        f"""{WHERE}
def test_any(cuda_stream):
    assert not is_emulated()
    assert cuda_stream.context.device.name == "Null device 0"
@pytest.mark.gpu(real=True)
def test_real():
    assert not is_emulated()
@pytest.mark.multi_gpu(9)
def test_nine():
    assert False
@pytest.mark.emulated(devices=2)
def test_emulated():
    assert is_emulated() and len(cudadrv.list_devices()) == 2
def test_planned(fault_injection):
    assert is_emulated()
""",
        "-rs",
    )
    result.assert_outcomes(passed=4, skipped=1)
    result.stdout.fnmatch_lines(["cudadrv *, 8 x Null device 0, *driver 13.0, emulator of *"])
    result.stdout.fnmatch_lines(["SKIPPED * test_user.py:13: needs 9 GPUs: 8 found"])


@pytest.mark.slow
def test_both_makes_two_tests_of_each_that_runs_on_either(runs: Runs, with_gpus: None) -> None:
    result = runs.apart(
        f"""{WHERE}
import os
@pytest.mark.gpu
@pytest.mark.parametrize("n", [1, 2])
def test_marked(n, request):
    assert is_emulated() == ("emulator" in request.node.name)
    assert os.environ["CUDADRV_DRIVER"] == ("emulator:1" if is_emulated() else "cuda")
def test_fixture(cuda_context, request):
    assert is_emulated() == request.node.name.endswith("[emulator]")
@pytest.mark.emulated
def test_emulated():
    assert is_emulated()
@pytest.mark.gpu(real=True)
def test_real():
    assert not is_emulated()
def test_neither():
    pass
""",
        "--cuda=both",
        "-v",
    )
    result.assert_outcomes(passed=9)
    result.stdout.fnmatch_lines(
        ["*test_fixture?gpu? PASSED*", "*test_fixture?emulator? PASSED*", "*test_emulated PASSED*"]
    )


@pytest.mark.slow
def test_both_without_a_gpu_skips_one_of_the_two_or_fails_it(runs: Runs, with_no_gpu: None) -> None:
    test = "def test_it(cuda_context):\n    pass"
    runs.apart(test, "--cuda=both").assert_outcomes(passed=1, skipped=1)
    result = runs.apart(test, "--cuda=both", "--cuda-require-gpu")
    result.assert_outcomes(passed=1, errors=1)


def test_on_the_emulator_alone_what_needs_a_real_gpu_is_skipped(runs: Runs) -> None:
    result = runs.here(
        "import pytest\n@pytest.mark.multi_gpu(2, real=True)\ndef test_real():\n    assert False",
        "--cuda=emulator",
        "-rs",
    )
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*needs a real GPU: the tests run on the emulator"])


@pytest.mark.slow
def test_gpu_means_the_gpu_whatever_the_environment_specifies(
    runs: Runs, with_gpus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDADRV_DRIVER", "emulator:2")
    test = f"{WHERE}\n@pytest.mark.gpu\ndef test_it():\n    assert not is_emulated()"
    runs.apart(test, "--cuda=gpu").assert_outcomes(passed=1)
    result = runs.apart(test.replace("not is", "is"))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["cudadrv *, emulator of 2 x *"])


def test_the_marker_accepts_what_a_session_accepts(runs: Runs) -> None:
    result = runs.here(
        """
import pytest
from cudadrv.emulator import A100, Limits
@pytest.mark.emulated(devices=2, profile="H100", order="random", seed=7, check="race")
def test_named(emulator):
    assert [each.name for each in emulator.devices] == ["NVIDIA H100 80GB HBM3"] * 2
    assert emulator.order == "random:7" and "race" in emulator.limits.checks
@pytest.mark.emulated(devices=[A100], driver_version=(12, 4), limits=Limits(max_steps=9))
def test_given(emulator):
    assert emulator.devices == (A100,) and emulator.limits.max_steps == 9
@pytest.mark.emulated(compute_capability=(8, 0), sm_count=3)
class TestClass:
    @pytest.mark.emulated(sm_count=4, order="late")
    def test_nearest(self, emulator):
        (one,) = emulator.devices
        assert (one.compute_capability, one.sm_count, emulator.order) == ((8, 0), 4, "late")
    @pytest.mark.multi_gpu(2)
    def test_several(self, emulator):
        assert [each.sm_count for each in emulator.devices] == [3, 3]
""",
    )
    result.assert_outcomes(passed=4)


@pytest.mark.parametrize(
    ("marker", "said"),
    few(
        [
            ("emulated(2)", "emulated: name the arguments, as in emulated(devices=2)"),
            ('emulated(profile="X1")', "*'X1' is not a profile: use one of V100, *"),
            ("emulated(profile=3)", "*3 is not a profile*"),
            ("emulated(devices=-1)", "emulated: *devices*-1*"),
            ('emulated(order="soon")', "emulated: 'soon' is no order of operations*"),
            ('emulated(check=["races"])', "emulated: 'races' is no check of kernels: one of race*"),
            ("emulated(colour=1)", "emulated: it takes no argument 'colour'"),
            (
                "emulated(colour=1)",
                "  it takes *, check, *, devices, *, name, order, *, profile, *",
            ),
            (
                "emulated(ordr='late')",
                "emulated: it takes no argument 'ordr': did you mean 'order'?",
            ),
            ("emulated(raise_findings=True)", "emulated: it takes no argument 'raise_findings'"),
            ('emulated(check="races")', "emulated: 'races' is no check of kernels: one of race*"),
            ("emulated(seed=1)", "emulated: *a seed goes with order=*"),
            ("gpu(1)", "gpu: takes nothing but gpu(real=True)"),
            ("multi_gpu", "multi_gpu: give the number of devices, as in multi_gpu(2)"),
            ("multi_gpu(0)", "multi_gpu: give the number of devices*"),
            ("multi_gpu(2, n=1)", "multi_gpu: takes nothing but multi_gpu(2, real=True)"),
        ],
        5,
    ),
)
def test_a_wrong_marker_is_reported_by_its_test(runs: Runs, marker: str, said: str) -> None:
    result = runs.here(f"import pytest\n@pytest.mark.{marker}\ndef test_it():\n    pass\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{said}" if not said.startswith("*") else said])
    assert "During handling" not in str(result.stdout)


def test_a_real_gpu_and_the_emulator_exclude_each_other(runs: Runs) -> None:
    result = runs.here(
        "import pytest\n@pytest.mark.gpu(real=True)\ndef test_it(emulator):\n    pass\n"
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["the test asks for a real GPU, and for the emulator"])


@pytest.mark.slow
def test_after_a_broken_gpu_the_next_tests_name_the_test_that_broke_it(
    runs: Runs, with_gpus: None
) -> None:
    result = runs.apart(
        f"""{WHERE}
from cudadrv.driver.driver_selection import failure
@pytest.mark.gpu
def test_bad():
    raise failure(current().api, 700, "cuLaunchKernel", "launching bad")
@pytest.mark.gpu
def test_next():
    pass
@pytest.mark.emulated
def test_emulated():
    pass
""",
        "--cuda=gpu",
    )
    result.assert_outcomes(failed=1, errors=1, passed=1)
    result.stdout.fnmatch_lines(["test_user.py::test_bad broke the GPU's context*"])
