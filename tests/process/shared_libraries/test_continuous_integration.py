"""What continuous integration uses: the action, the container's command, and JUnit's XML."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from cudadrv.cli.finding_formats import as_junit
from tests.patience import SECONDS

from .process import environment, run
from .test_emulate import WRITES_TWICE

ROOT = Path(__file__).parents[3]


def test_junit_has_a_failure_for_each_report_and_a_test_for_each_other_check() -> None:
    reports = [("race", 'race: kernel "a<b>", 4 bytes\n  a & b \x1b[31m\x00'), ("fault", "x")]
    suite = ET.fromstring(as_junit(reports, ["race", "init", "fault"]))[0]
    assert {name: suite.get(name) for name in ("tests", "failures")} == {
        "tests": "3",
        "failures": "2",
    }
    cases = [(case.get("classname"), case.get("name"), len(case)) for case in suite]
    assert cases == [
        ("cudadrv.race", 'race: kernel "a<b>", 4 bytes', 1),
        ("cudadrv.fault", "x", 1),
        ("cudadrv", "init", 0),
    ]
    assert suite[0][0].text == 'race: kernel "a<b>", 4 bytes\n  a & b \ufffd[31m\ufffd'


@pytest.mark.slow
def test_junit_of_a_command_has_the_findings_of_all_its_processes(tmp_path: Path) -> None:
    script, junit = tmp_path / "races.py", tmp_path / "found.xml"
    script.write_text(WRITES_TWICE)
    emulate = ("-m", "cudadrv", "emulate", "--checks", "race,init", "--junit", str(junit))
    shell = f"'{sys.executable}' '{script}'; '{sys.executable}' -c pass"
    assert run(*emulate, "sh", "-c", shell).status == 0
    suite = ET.parse(junit).getroot()[0]
    failed = [case.get("classname") for case in suite if len(case)]
    assert (failed, len(suite)) == (["cudadrv.race"], 3)
    check = ("-m", "cudadrv", "check", "--checks", "race,init", "--junit", str(junit))
    assert run(*check, str(script)).status == 66
    suite = ET.parse(junit).getroot()[0]
    assert [case.get("classname") for case in suite] == ["cudadrv.race", "cudadrv"]
    assert run(*emulate[:-1], str(tmp_path / "absent" / "x.xml"), "true").status == 2


def last_step() -> tuple[dict[str, str], str]:
    """Return the variables of the action's last step with their inputs, and its script."""
    text = (ROOT / "action.yml").read_text()
    step = text.rpartition("- shell: bash")[2]
    names = dict(re.findall(r"^ +(\w+): \$\{\{ inputs\.([\w-]+) \}\}$", step, re.MULTILINE))
    return names, textwrap.dedent(step.partition("run: |\n")[2])


def defaults() -> dict[str, str]:
    """Return the defaults of the action's inputs."""
    inputs = (ROOT / "action.yml").read_text().partition("\nruns:")[0]
    found = re.findall(r"^  ([\w-]+):\n(?:    .*\n)*?    default: (.*)$", inputs, re.MULTILINE)
    return {name: value.strip('"') for name, value in found}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"command": "python races.py"}, 0),
        ({"command": "python races.py", "checks": "race", "junit": "found.xml"}, 66),
        ({"command": "echo $(python -c pass) 'two words'"}, 67),
        ({"command": "false | true", "require-kernels": "false"}, 1),
        ({"command": "true", "require-kernels": "false", "order": "late; exit 3"}, 2),
    ],
)
def test_the_action_runs_a_command(tmp_path: Path, given: dict[str, str], status: int) -> None:
    (tmp_path / "races.py").write_text(WRITES_TWICE)
    names, script = last_step()
    inputs = defaults() | given
    assert {*names.values()} | {"requirement"} == {*inputs}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    variables = {name: inputs[of] for name, of in names.items()} | {"PATH": path}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environment(variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == status, done.stderr
    assert (tmp_path / "found.xml").exists() == ("junit" in given)


def test_the_container_has_the_command() -> None:
    lines = (ROOT / "Containerfile").read_text().splitlines()
    assert lines[-1] == 'ENTRYPOINT ["python", "-m", "cudadrv", "emulate"]'
