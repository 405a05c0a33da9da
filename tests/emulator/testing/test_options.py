"""Options, ini values and the environment: which one decides, and what a wrong one says."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Final

import pytest

from tests.emulator.test_switch_variables import WRONG_VALUES
from tests.short_cases import few

from .runs import Runs

ROOT: Final = Path(__file__).parents[3]
NO_OTHERS: Final = ("-pno:cacheprovider", "-pno:hypothesispytest")

SHOW = """
import os
def test_it(emulator):
    profile = emulator.devices[0].name.split()[-1]
    checks = "race" in emulator.limits.checks
    print("found", len(emulator.devices), profile, emulator.order, checks)
def test_process():
    print("process", os.environ.get("CUDADRV_DRIVER"), os.environ.get("CUDADRV_EMULATOR_ORDER"))
"""


def show(runs: Runs, *options: str) -> tuple[str, str]:
    result = runs.here(SHOW, "-s", *options)
    result.assert_outcomes(passed=2)
    found, process = (
        next(line.partition(word + " ")[2] for line in result.outlines if word + " " in line)
        for word in ("found", "process")
    )
    return found, process


def test_without_any_choice_all_is_as_usual(runs: Runs) -> None:
    assert show(runs) == ("1 device immediate False", "None None")


def test_the_command_line_chooses(runs: Runs) -> None:
    options = (
        "--cuda-profile=A100",
        "--cuda-order=random",
        "--cuda-seed=3",
        "--cuda-check=race,init",
    )
    found = show(runs, *options, "--cuda=emulator")
    assert found == ("1 A100-SXM4-40GB random:3 True", "emulator random:3")


def test_an_ini_file_chooses(runs: Runs) -> None:
    runs.pytester.makeini(
        "[pytest]\ncuda = emulator\ncuda_order = late\ncuda_check = race\ncuda_profile = T4\n"
        "cuda_leaks = allow\nfilterwarnings = error\naddopts = --strict-markers --strict-config\n"
    )
    assert show(runs) == ("1 T4 late True", "emulator late")
    # The command line comes first.
    assert show(runs, "--cuda-order=immediate", "--cuda-check=", "--cuda-profile=L4") == (
        "1 L4 immediate False",
        "emulator immediate",
    )


def test_the_environment_comes_between_the_command_line_and_the_ini_file(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.pytester.makeini("[pytest]\ncuda = gpu\ncuda_order = late\ncuda_check = race\n")
    monkeypatch.setenv("CUDADRV_DRIVER", "emulator:3")
    monkeypatch.setenv("CUDADRV_EMULATOR_ORDER", "random:5")
    monkeypatch.setenv("CUDADRV_CHECK", "init")
    assert show(runs) == ("3 device random:5 False", "emulator:3 random:5")
    assert show(runs, "--cuda-seed=6") == ("3 device random:6 False", "emulator:3 random:6")
    assert show(runs, "--cuda-order=late", "--cuda=auto") == (
        "3 device late False",
        "emulator:3 late",
    )


def test_the_environment_is_as_before_after_a_run(runs: Runs) -> None:
    before = dict(os.environ)
    show(runs, "--cuda=emulator", "--cuda-order=late", "--cuda-check=race")
    assert {name: text for name, text in os.environ.items() if name.startswith("CUDADRV_")} == {
        name: text for name, text in before.items() if name.startswith("CUDADRV_")
    }


@pytest.mark.parametrize(
    ("options", "said"),
    few([
        (["--cuda=gpus"], "*--cuda: invalid choice: 'gpus'*"),
        (["--cuda-order=soon"], "ERROR: 'soon' is no order of operations: use immediate, late, *"),
        (["--cuda-check=races"], "ERROR: 'races' is no check of kernels: one of race, init*"),
        (["--cuda-seed=3"], "ERROR: --cuda-seed goes with --cuda-order=random"),
        (["--cuda-seed=3", "--cuda-order=late"], "ERROR: --cuda-seed goes with *"),
        (["--cuda-seed=x", "--cuda-order=random"], 'ERROR: --cuda-seed=x: give a number from 0, *'),
        (["--cuda-profile=X1"], "ERROR: 'X1' is not a profile: use one of V100, T4, *"),
        (["--cuda-leaks=some"], "*--cuda-leaks: invalid choice: 'some'*"),
        (["--cuda-require-gpu", "--cuda=emulator"], "ERROR: --cuda-require-gpu: the tests *"),
        (["-ocuda=gpus"], "ERROR: cuda is 'gpus': use one of auto, gpu, emulator, both"),
        (["-ocuda_leaks=some"], "ERROR: cuda_leaks is 'some': use one of fail, allow"),
    ], 4),
)  # fmt: skip
def test_a_wrong_value_is_a_clear_error_of_usage(runs: Runs, options: list[str], said: str) -> None:
    result = runs.here("def test_it():\n    pass\n", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])
    assert "Traceback" not in str(result.stderr)


@pytest.mark.parametrize("mode", ["auto", *few(["emulator", "gpu", "both"], 0)])
@pytest.mark.parametrize(("name", "value"), few(WRONG_VALUES, 1))
def test_a_wrong_value_in_the_environment_is_an_error_of_usage_in_each_mode(
    runs: Runs, name: str, value: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    result = runs.here("def test_it():\n    pass\n", f"--cuda={mode}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: *{name}*"])


def test_spaces_around_the_driver_of_the_environment_count_for_nothing(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDADRV_DRIVER", " emulator:3 ")
    result = runs.here(
        "import cudadrv\ndef test_it():\n    assert len(cudadrv.list_devices()) == 3\n"
    )
    result.assert_outcomes(passed=1)


def test_the_markers_options_and_fixtures_are_listed(runs: Runs) -> None:
    runs.here("", "--markers").stdout.fnmatch_lines(
        [
            "@pytest.mark.gpu(*",
            "@pytest.mark.multi_gpu(n*",
            "@pytest.mark.emulated(*",
            "*may_leak(*",
        ]
    )
    runs.here("", "--fixtures").stdout.fnmatch_lines(
        ["cuda_context -- *", "cuda_stream -- *", "emulator -- *", "fault_injection -- *"]
    )
    runs.here("", "--help").stdout.fnmatch_lines(
        ["CUDA, by cudadrv *:", "  --cuda={auto,*", "*cuda_order *"]
    )


QUIET = """
import sys
def test_it():
    loaded = set(sys.modules)
    assert "cudadrv.testing" in loaded
    assert not loaded & {"cudadrv.emulator", "ptx.emulate", "cudadrv.stream", "numpy"}
    from cudadrv.driver.driver_selection import current_or_none
    assert current_or_none() is None
"""


@pytest.mark.slow
def test_a_run_without_cuda_loads_no_emulator_and_queries_no_driver(runs: Runs) -> None:
    result = runs.apart(QUIET)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("cudadrv *")


@pytest.fixture
def installed(runs: Runs) -> None:
    """The folder has what an installer writes of the plugin."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = ["[pytest11]"]
    lines += [f"{name} = {module}" for name, module in project["entry-points"]["pytest11"].items()]
    folder = runs.pytester.mkdir("cudadrv_plugin-0.dist-info")
    (folder / "entry_points.txt").write_text("\n".join(lines))
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: cudadrv-plugin\nVersion: 0\n")


@pytest.mark.slow
def test_the_plugin_is_there_once_cudadrv_is_installed(runs: Runs, installed: None) -> None:
    runs.pytester.makepyfile("def test_it(emulator):\n    pass\n")
    run = runs.pytester.runpytest_subprocess
    run(*NO_OTHERS).assert_outcomes(passed=1)
    # Named once more, it is still one.
    run(*NO_OTHERS, "-pcudadrv.testing").assert_outcomes(passed=1)
    runs.pytester.makeconftest('pytest_plugins = ["cudadrv.testing"]')
    run(*NO_OTHERS).assert_outcomes(passed=1)


@pytest.mark.slow
def test_the_plugin_can_be_switched_off(runs: Runs, installed: None) -> None:
    runs.pytester.makepyfile("def test_it(emulator):\n    pass\n")
    run = runs.pytester.runpytest_subprocess
    result = run(*NO_OTHERS, "-pno:cudadrv.testing")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*fixture 'emulator' not found"])
    result = run(*NO_OTHERS, "-pno:cudadrv.testing", "--cuda=gpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_a_test_may_query_while_it_runs(runs: Runs) -> None:
    result = runs.here(
        """
from kernels import run
def test_asks(request):
    assert run(request.getfixturevalue("cuda_stream"), "good")[5] == 5
def test_next():
    from cudadrv.driver.driver_selection import current_or_none
    import os
    assert os.environ["CUDADRV_DRIVER"] == "emulator"
""",
        "--cuda=emulator",
    )
    result.assert_outcomes(passed=2)


def test_fixtures_of_the_users_own_come_first(runs: Runs) -> None:
    result = runs.here(
        """
import pytest
from cudadrv.driver.driver_selection import current_or_none
before = current_or_none()
@pytest.fixture
def emulator():
    return "mine"
def test_it(emulator):
    assert emulator == "mine" and current_or_none() is before
"""
    )
    result.assert_outcomes(passed=1)


def test_a_test_of_unittest_has_a_driver_by_its_marker(runs: Runs) -> None:
    result = runs.here(
        """
import unittest
import pytest
import cudadrv
@pytest.mark.multi_gpu(2)
class TestDevices(unittest.TestCase):
    def test_two(self):
        self.assertEqual(len(cudadrv.list_devices()), 2)
""",
        "--cuda=emulator",
    )
    result.assert_outcomes(passed=1)
