"""Every documented way to switch on a check, an order or a driver, as a user uses it.

A cell is a child process. For checks the rows are the ways, and the columns the ends of the
program. The oracle is a table: the status, and the checks whose findings stand on standard error
with their places. For orders and drivers it is what the program has then. The last test compares
the ways with those of the pages.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from cudadrv import emulator, testing as plugin
from cudadrv.cli.command_line import make_parser
from cudadrv.testing.choices import add_options
from cudadrv.testing.plan import MARKERS
from tests.patience import SECONDS

ROOT: Final = Path(__file__).parents[2]

FAULTS: Final = r"""
import ctypes

import numpy as np

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import CudaError

KERNELS = {
    "race": "__shared__ int s[64]; int t = threadIdx.x; s[t] = x[t]; x[t] = s[63 - t];",
    "init": "__shared__ int s[64]; x[threadIdx.x] = s[threadIdx.x];",
    "sync": "if (threadIdx.x < 8) __syncthreads(); x[0] = 1;",
    "divide": "x[threadIdx.x] = 7 / x[threadIdx.x];",
    "nan": "x[threadIdx.x] = __float_as_int(1.0f / x[threadIdx.x]);",
    "bounds": "__shared__ int a[4], b[64]; int t = threadIdx.x; a[t] = b[t] = 1; x[0] = a[0];",
}
HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
# The emulator does not check the operands of instructions that it does not execute.
REJECTED = HEADER + ".entry z() { .reg .b64 %a;\nalloca.f32 %a, 8;\nret; }\n"


def run(check, ordinal):
    context = cudadrv.cuda_context_for(ordinal)
    if check == "assemble":
        context.load_module(REJECTED.encode())
    elif check == "leak":
        array = context.default_stream.zeros(64, np.int32)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))  # as a faulty extension loses it
    else:
        stream = context.default_stream
        name = f"{check}_fault"
        source = f'extern "C" __global__ void {name}(int* x) {{ {KERNELS[check]} }}'
        kernel = context.compile(source, name=f"{check}.cu").kernel(name)
        kernel.launch(stream, LaunchConfig(1, 64), stream.zeros(64, np.int32))
        stream.synchronize()


# One for each check, on a device of its own; the errors are handled.
def run_all(checks):
    for ordinal, check in enumerate(checks):
        try:
            run(check, ordinal)
        except CudaError:
            pass
"""
# What the report of each check has, beside its name.
PLACES: Final[Mapping[str, str]] = {
    "race": r"race\.cu:1\b",
    "init": r"init\.cu:1\b",
    "sync": r"sync\.cu:1\b",
    "bounds": r"bounds\.cu:1\b",
    "divide": r"divide\.cu:1\b",
    "nan": r"nan\.cu:1\b",
    "assemble": r"loaded at .*faults\.py:\d+",
    "leak": r"made at .*faults\.py:\d+",
}
FOUND_LATER: Final = ("race", "divide", "nan", "assemble", "leak")
"""The checks whose findings raise no error of a call."""
FAULTY: Final = ("init", "sync", "bounds")
"""The checks whose findings fail a launch, and break its device."""

ENDS: Final[Mapping[str, str]] = {
    "falls off its end": "",
    "raises": "raise ValueError('its own error')",
    "exits with 0": "sys.exit(0)",
    "exits with 3": "sys.exit(3)",
    # A shell lets its background processes ignore the signal, and their children inherit that.
    "is interrupted": "signal.signal(signal.SIGINT, signal.default_int_handler); "
    "os.kill(os.getpid(), signal.SIGINT); time.sleep(60)",
    "is terminated": "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
    "leaves at once": "os._exit(0)",
}
IMPORTS: Final = "import multiprocessing, os, signal, sys, threading, time\n"
DEVICES: Final = 5


@dataclass(frozen=True)
class Way:
    """A way to switch checks on.

    Attributes:
        text: the program; CHECKS, RUN and END stand for the names, the faults and the end.
        command: the words between the interpreter and the script.
        by_environment: whether CUDADRV_DRIVER and CUDADRV_CHECK are set.
    """

    text: str = "RUN\nEND"
    command: tuple[str, ...] = ()
    by_environment: bool = False

    def program(self, checks: tuple[str, ...], run: str, end: str) -> str:
        text = self.text
        for word, value in (("CHECKS", repr(checks)), ("RUN", run), ("END", end or "pass")):
            lines = text.split("\n")
            text = "\n".join(
                textwrap.indent(value, line[: len(line) - len(word)])
                if line.strip() == word
                else line.replace(word, value)
                for line in lines
            )
        return IMPORTS + text

    def words(self, script: Path, checks: tuple[str, ...]) -> list[str]:
        names = ",".join(checks)
        command = [word.replace("CHECKS", names) for word in self.command]
        return [sys.executable, *command, str(script)]


_EMULATOR: Final = "import contextlib, faults\nfrom cudadrv import emulator\n"
WAYS: Final[Mapping[str, Way]] = {
    "CUDADRV_CHECK": Way("import faults\nRUN\nEND", by_environment=True),
    "emulator.use": Way(_EMULATOR + f"emulator.use({DEVICES}, check=CHECKS)\nRUN\nEND"),
    "emulate --checks": Way(
        "import faults\nRUN\nEND",
        ("-m", "cudadrv", "emulate", f"--devices={DEVICES}", "--checks=CHECKS", sys.executable),
    ),
    "stand_in": Way(_EMULATOR + f"emulator.stand_in({DEVICES}, check=CHECKS)\nRUN\nEND"),
    "a session that stays open": Way(
        _EMULATOR + "stack = contextlib.ExitStack()\n"
        f"stack.enter_context(emulator.session({DEVICES}, check=CHECKS))\nRUN\nEND"
    ),
    "a block of stand_in": Way(
        _EMULATOR + f"with emulator.stand_in({DEVICES}, check=CHECKS):\n    RUN\n    END"
    ),
    "a block of session": Way(
        _EMULATOR + f"with emulator.session({DEVICES}, check=CHECKS):\n    RUN\n    END"
    ),
    "a block, by CUDADRV_CHECK": Way(
        _EMULATOR + f"with emulator.session({DEVICES}):\n    RUN\n    END", by_environment=True
    ),
    "check --checks": Way(
        "import faults\nRUN\nEND",
        ("-m", "cudadrv", "check", f"--devices={DEVICES}", "--checks=CHECKS"),
    ),
}

Outcome = tuple[int, frozenset[str]]
ALL: Final = frozenset(FOUND_LATER)
NOW: Final = ALL - {"leak"}  # leaks are looked for at an orderly end
NONE: Final[frozenset[str]] = frozenset()
ON_ONE_DEVICE: Final = frozenset(FOUND_LATER[:1])  # all that a worker has

OF_A_PROCESS: Final[Mapping[str, Outcome]] = {
    "falls off its end": (66, ALL),
    "raises": (66, ALL),
    "exits with 0": (66, ALL),
    "exits with 3": (66, ALL),
    "is interrupted": (-2, ALL),
    "is terminated": (-15, NOW),
    "leaves at once": (0, NOW),
}
# The block could still raise the findings, so that they are printed only at the end.
LEFT_OPEN: Final = {
    **OF_A_PROCESS,
    "is terminated": (-15, NONE),
    "leaves at once": (0, NONE),
}
OF_A_BLOCK: Final[Mapping[str, Outcome]] = {
    "falls off its end": (1, ALL),  # CheckError
    "raises": (1, NOW),
    "exits with 0": (1, NOW),  # CheckError
    "exits with 3": (3, NOW),
    "is interrupted": (-2, NOW),
    "is terminated": (-15, NONE),
    "leaves at once": (0, NONE),
}
OF_THE_COMMAND: Final[Mapping[str, Outcome]] = {
    "falls off its end": (66, ALL),
    "raises": (1, ALL),
    "exits with 0": (66, ALL),
    "exits with 3": (3, ALL),
    "is interrupted": (130, NOW),
    "is terminated": (-15, NOW),
    "leaves at once": (66, NOW),
}
EXPECTED: Final[Mapping[str, Mapping[str, Outcome]]] = {
    "CUDADRV_CHECK": OF_A_PROCESS,
    "emulator.use": OF_A_PROCESS,
    "emulate --checks": OF_A_PROCESS,
    "stand_in": LEFT_OPEN,
    "a session that stays open": LEFT_OPEN,
    "a block of stand_in": OF_A_BLOCK,
    "a block of session": OF_A_BLOCK,
    "a block, by CUDADRV_CHECK": OF_A_BLOCK,
    "check --checks": OF_THE_COMMAND,
}
FEW: Final = (
    ("CUDADRV_CHECK", "falls off its end"),
    ("a block of session", "exits with 0"),
    ("emulate --checks", "falls off its end"),
)
"""The cells that run with the tests that are not slow."""


UNIMPORTED: Final = Way("RUN", by_environment=True)
"""CUDADRV_CHECK in a program that has not imported cudadrv when its own lines begin."""

# Programs whose faults run elsewhere than in the main thread's own lines.
ELSEWHERE: Final[Mapping[str, str]] = {
    "in a thread": (
        "thread = threading.Thread(target=faults.run_all, args=(CHECKS,))\n"
        "thread.start()\nthread.join()"
    ),
    "in a forked child": (
        "if os.fork():\n    os.wait()\nelse:\n    faults.run_all(CHECKS)\n    os._exit(0)"
    ),
    "in a forked child that falls off its end": (
        "if os.fork():\n    print(os.waitstatus_to_exitcode(os.wait()[1]))\n"
        "else:\n    faults.run_all(CHECKS)"
    ),
    "in a spawned child": (
        "if __name__ == '__main__':\n"
        "    spawn = multiprocessing.get_context('spawn')\n"
        "    child = spawn.Process(target=faults.run_all, args=(CHECKS,))\n"
        "    child.start()\n    child.join()\n    print(child.exitcode)"
    ),
    "in a worker of GpuExecutor": (
        "import cudadrv\nif __name__ == '__main__':\n"
        "    with cudadrv.GpuExecutor.local() as executor:\n"
        "        executor.submit(faults.run_all, CHECKS).result()"
    ),
}
HANDLERS: Final[Mapping[str, str]] = {
    "in an exit handler": ("import atexit, faults\natexit.register(faults.run_all, CHECKS)"),
    "in an exit handler that is older than the import": (
        "import atexit\natexit.register(lambda: faults.run_all(CHECKS))\nimport faults"
    ),
    "in an exit handler that imports it": (
        "import atexit\ndef last():\n    import faults\n    faults.run_all(CHECKS)\n"
        "atexit.register(last)"
    ),
}
"""Programs whose first driver call is in an exit handler."""
EXPECTED_IN_HANDLERS: Final[Mapping[tuple[str, str], Outcome]] = {
    ("CUDADRV_CHECK", "in an exit handler"): (66, ALL),
    # cudadrv's own handler has run, or never runs, so that leaks are not looked for.
    ("CUDADRV_CHECK", "in an exit handler that is older than the import"): (66, NOW),
    ("CUDADRV_CHECK", "in an exit handler that imports it"): (66, NOW),
    ("emulate --checks", "in an exit handler"): (66, ALL),
    ("emulate --checks", "in an exit handler that is older than the import"): (66, ALL),
    ("emulate --checks", "in an exit handler that imports it"): (66, ALL),
}
EXPECTED_ELSEWHERE: Final[Mapping[tuple[str, str], tuple[int, frozenset[str], str]]] = {
    ("CUDADRV_CHECK", "in a thread"): (66, ALL, ""),
    ("CUDADRV_CHECK", "in a forked child"): (0, NOW, ""),
    ("CUDADRV_CHECK", "in a forked child that falls off its end"): (0, ALL, "66"),
    ("CUDADRV_CHECK", "in a spawned child"): (0, ALL, "66"),
    ("CUDADRV_CHECK", "in a worker of GpuExecutor"): (66, ON_ONE_DEVICE, ""),
    ("emulate --checks", "in a spawned child"): (0, ALL, "66"),
    ("check --checks", "in a thread"): (66, ALL, ""),
    ("check --checks", "in a spawned child"): (0, ALL, "66"),
    ("check --checks", "in a worker of GpuExecutor"): (66, ON_ONE_DEVICE, ""),
    ("a block of session", "in a thread"): (1, ALL, ""),
}
# Of faults that a call has raised, and that the program has handled.
EXPECTED_OF_FAULTS: Final[Mapping[str, Outcome]] = {
    "CUDADRV_CHECK": (66, frozenset(FAULTY)),
    "emulator.use": (66, frozenset(FAULTY)),
    "emulate --checks": (66, frozenset(FAULTY)),
    "check --checks": (66, frozenset(FAULTY)),
    "a block of session": (0, NONE),  # the program has got them
}


def completed(
    folder: Path, way: Way, checks: tuple[str, ...], run: str, end: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    number = len(list(folder.glob("program*.py")))
    script = folder / f"program{number}_{abs(hash((way, run, end)))}.py"
    script.write_text(way.program(checks, run, end))
    if not (folder / "faults.py").exists():
        whole = script.with_suffix(".faults")
        whole.write_text(FAULTS)
        whole.replace(folder / "faults.py")  # at once: programs of other threads import it
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CUDADRV_CHECK")}
    environment["CUDADRV_DRIVER"] = f"emulator:{DEVICES}" if way.by_environment else ""
    environment |= {"CUDADRV_CHECK": ",".join(checks)} if way.by_environment else {}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(folder)])
    return subprocess.run(
        way.words(script, checks),
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def reported(text: str) -> frozenset[str]:
    """Return the checks whose findings a text has, with their places."""
    found = set()
    for check, place in PLACES.items():
        for block in re.split(r"\n(?=\S)", "\n" + text):
            if re.match(rf"(?:cudadrv\.errors\.CheckError: )?{check}: ", block) and re.search(
                place, block
            ):
                found.add(check)
    return frozenset(found)


def differences(folder: Path, cells: Iterable[tuple[str, str]]) -> list[str]:
    """Run cells, and return a line for each whose status or report is not the expected one."""

    def run(cell: tuple[str, str]) -> str:
        way, end = cell
        checks = FOUND_LATER
        done = completed(folder, WAYS[way], checks, f"faults.run_all({checks!r})", ENDS[end])
        expected, outcome = EXPECTED[way][end], (done.returncode, reported(done.stderr))
        if outcome == expected:
            return ""
        return f"{way}, {end}: {outcome}, expected {expected}\n{done.stdout}{done.stderr}"

    with ThreadPoolExecutor(2) as pool:
        return [line for line in pool.map(run, cells) if line]


def test_a_program_with_findings_reports_them_and_has_the_documented_status(tmp_path: Path) -> None:
    found = differences(tmp_path, FEW)
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_findings_of_threads_and_children_are_reported(tmp_path: Path) -> None:
    def run(cell: tuple[str, str]) -> str:
        way, where = cell
        program = ELSEWHERE[where].replace("CHECKS", repr(FOUND_LATER))
        done = completed(tmp_path, WAYS[way], FOUND_LATER, program, "")
        expected = EXPECTED_ELSEWHERE[cell]
        outcome = (done.returncode, reported(done.stderr), done.stdout.strip())
        return "" if outcome == expected else f"{cell}: {outcome}\n{done.stderr}"

    with ThreadPoolExecutor(2) as pool:
        found = [line for line in pool.map(run, EXPECTED_ELSEWHERE) if line]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_findings_of_exit_handlers_are_reported(tmp_path: Path) -> None:
    def run(cell: tuple[str, str]) -> str:
        way, where = cell
        used = UNIMPORTED if WAYS[way].by_environment else replace(WAYS[way], text="RUN")
        program = HANDLERS[where].replace("CHECKS", repr(FOUND_LATER))
        done = completed(tmp_path, used, FOUND_LATER, program, "")
        outcome = (done.returncode, reported(done.stderr))
        return "" if outcome == EXPECTED_IN_HANDLERS[cell] else f"{cell}: {outcome}\n{done.stderr}"

    with ThreadPoolExecutor(2) as pool:
        found = [line for line in pool.map(run, EXPECTED_IN_HANDLERS) if line]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_faults_that_a_program_handles_are_reported(tmp_path: Path) -> None:
    def run(way: str) -> str:
        done = completed(tmp_path, WAYS[way], FAULTY, f"faults.run_all({FAULTY!r})", "")
        outcome = (done.returncode, reported(done.stderr))
        return "" if outcome == EXPECTED_OF_FAULTS[way] else f"{way}: {outcome}\n{done.stderr}"

    with ThreadPoolExecutor(2) as pool:
        found = [line for line in pool.map(run, EXPECTED_OF_FAULTS) if line]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_each_way_reports_at_each_end(tmp_path: Path) -> None:
    cells = [(way, end) for way in WAYS for end in ENDS if (way, end) not in FEW]
    found = differences(tmp_path, cells)
    assert not found, "\n".join(found)
    assert EXPECTED.keys() == WAYS.keys()
    assert all(row.keys() == ENDS.keys() for row in EXPECTED.values())


SETTINGS: Final = """
import cudadrv
import ptx
from cudadrv.driver.driver_selection import current
from ptx.cache.folder import cache_settings

devices = cudadrv.list_devices()
api = current().api
print(len(devices), devices[0].compute_capability, api.order, ",".join(sorted(api.checks.names)),
      api.limits.max_steps, api.limits.threads, current().keeps_blocks, cache_settings()[1],
      b"debug" in ptx.compile("__global__ void k() {}").data, len(api.checks.suppressions.each))
"""
IN_A_TEST: Final = "def test_settings():\n" + textwrap.indent(SETTINGS.strip(), "    ")
PYTEST: Final = ("-m", "pytest", "-q", "-s", "-p", "cudadrv.testing", "-p", "no:cacheprovider")
AFTER_IMPORT: Final = "from cudadrv import emulator\n"


@dataclass(frozen=True)
class Setting:
    """A way to choose devices, order and checks; every one asks for the same.

    Attributes:
        text: the program.
        words: the words between the interpreter and the script.
        environment: the variables.
        ini: the lines of pytest.ini.
    """

    text: str = SETTINGS
    words: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    ini: str = ""


_ARGUMENTS: Final = "devices=2, compute_capability=(8, 0), order='random', seed=5, check=['race']"
_OF_PYTEST: Final = f"@__import__('pytest').mark.emulated({_ARGUMENTS})\n"
_VARIABLES: Final = (
    ("CUDADRV_DRIVER", "emulator:2"),
    ("CUDADRV_EMULATOR_COMPUTE_CAPABILITY", "8.0"),
    ("CUDADRV_EMULATOR_ORDER", "random:5"),
    ("CUDADRV_CHECK", "race"),
)
_OPTIONS: Final = ("--order", "random:5", "--checks", "race", "--devices", "2")
_CAPABILITY: Final = _VARIABLES[1:2]
_OF_EACH: Final = {
    "CUDADRV_EMULATOR_STEPS": "12345",
    "CUDADRV_EMULATOR_THREADS": "2",
    "CUDADRV_KEEP_BLOCKS": "1",
    "CUDADRV_CACHE_MAX_MB": "0.5",
    "CUDADRV_DEVICE_DEBUG": "1",
    "CUDADRV_EMULATOR_LOCK_SECONDS": "20",
    "CUDADRV_EMULATOR_FAULT": "continue",
    "CUDADRV_NO_STAND_IN": "0",
}
"""The variables that count in each way; tests of their own show the effect of the last three."""
_CHOSEN: Final = "2 (8, 0) random:5 race 12345 2 True 524288 True 1"
SETTING_WAYS: Final[Mapping[str, Setting]] = {
    "environment": Setting(environment=_VARIABLES),
    "emulator.use": Setting(f"{AFTER_IMPORT}emulator.use({_ARGUMENTS})\n{SETTINGS}"),
    "emulator.stand_in": Setting(f"{AFTER_IMPORT}emulator.stand_in({_ARGUMENTS})\n{SETTINGS}"),
    "emulator.session": Setting(
        f"{AFTER_IMPORT}with emulator.session({_ARGUMENTS}):\n{textwrap.indent(SETTINGS, '    ')}"
    ),
    "session in an environment": Setting(
        f"{AFTER_IMPORT}with emulator.session(2):\n{textwrap.indent(SETTINGS, '    ')}",
        environment=_VARIABLES,
    ),
    "check": Setting(words=("-m", "cudadrv", "check", *_OPTIONS), environment=_CAPABILITY),
    "check with --seed": Setting(
        words=("-m", "cudadrv", "check", "--order=random", "--seed=5", *_OPTIONS[2:]),
        environment=_CAPABILITY,
    ),
    **{
        f"{name} in an environment": Setting(
            words=("-m", "cudadrv", *name.split()), environment=_VARIABLES
        )
        for name in ("check", "count", "profile", "debug", f"emulate {sys.executable}")
    },
    "emulate": Setting(
        words=("-m", "cudadrv", "emulate", "--compute-capability", "8.0", *_OPTIONS, sys.executable)
    ),
    "pytest in an environment": Setting(IN_A_TEST, PYTEST, _VARIABLES),
    "options of pytest": Setting(
        IN_A_TEST,
        (*PYTEST, "--cuda=emulator", "--cuda-order=random", "--cuda-seed=5", "--cuda-check=race"),
        # No option has the number of devices.
        (("CUDADRV_DRIVER", "emulator:2"), *_CAPABILITY),
    ),
    "ini of pytest": Setting(
        IN_A_TEST, PYTEST, (("CUDADRV_DRIVER", "emulator:2"), *_CAPABILITY),
        "cuda = emulator\ncuda_order = random\ncuda_seed = 5\ncuda_check = race",
    ),
    "marker of pytest": Setting(_OF_PYTEST + IN_A_TEST, PYTEST),
}  # fmt: skip


@pytest.mark.slow
def test_each_way_to_choose_devices_order_and_checks_has_its_effect(tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text("race kernel=other\n")

    def run(item: tuple[str, Setting]) -> str:
        name, way = item
        folder = tmp_path / name.replace(" ", "_").replace("/", "_")
        folder.mkdir()
        script = folder / "test_settings.py"
        script.write_text(way.text)
        (folder / "pytest.ini").write_text(f"[pytest]\n{way.ini}\n")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("CUDADRV_", "PYTEST_"))}
        kept |= {**_OF_EACH, "CUDADRV_CACHE_DIR": os.environ["CUDADRV_CACHE_DIR"]}
        kept["CUDADRV_CHECK_SUPPRESSIONS"] = str(known)
        kept["CUDADRV_EMULATOR_TRACE"] = str(folder / "operations")
        done = subprocess.run(
            [sys.executable, *way.words, str(script)],
            cwd=folder,
            env={**kept, **dict(way.environment), "PYTHONPATH": str(ROOT)},
            input="run\nquit\n",
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        # A test of the plugin is also checked for leaks.
        lines = [line.replace("leak,", "") for line in done.stdout.splitlines()]
        if done.returncode == 0 and _CHOSEN in lines and (folder / "operations").exists():
            return ""
        return f"{name}: {done.returncode}\n{done.stdout}{done.stderr}"

    with ThreadPoolExecutor(2) as pool:
        found = [text for text in pool.map(run, SETTING_WAYS.items()) if text]
    assert not found, "\n".join(found)


TESTS: Final = """
import faults, pytest

CHECKS = ["race", "init", "sync", "bounds", "divide", "nan", "assemble", "leak"]

@pytest.mark.parametrize("check", CHECKS)
def test_fault(check):
    faults.run(check, 0)
"""
_NAMES: Final = "race,init,sync,bounds,divide,nan,assemble"
_MARKED: Final = f"@__import__('pytest').mark.emulated(check={_NAMES.split(',')!r})\n"
TEST_WAYS: Final[Mapping[str, Setting]] = {
    "environment": Setting(
        TESTS, PYTEST, (("CUDADRV_DRIVER", "emulator"), ("CUDADRV_CHECK", _NAMES))
    ),
    "options": Setting(TESTS, (*PYTEST, "--cuda=emulator", f"--cuda-check={_NAMES}")),
    "ini": Setting(TESTS, PYTEST, ini=f"cuda = emulator\ncuda_check = {_NAMES}"),
    "marker": Setting(TESTS.replace("\n@pytest", f"\n{_MARKED}@pytest"), PYTEST),
}


@pytest.mark.slow
def test_each_check_fails_a_test_by_each_way_to_switch_it_on(tmp_path: Path) -> None:
    def run(item: tuple[str, Setting]) -> str:
        name, way = item
        folder = tmp_path / name
        folder.mkdir()
        (folder / "faults.py").write_text(FAULTS)
        (folder / "test_faults.py").write_text(way.text)
        (folder / "pytest.ini").write_text(f"[pytest]\n{way.ini}\n")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("CUDADRV_", "PYTEST_"))}
        kept["CUDADRV_CACHE_DIR"] = os.environ["CUDADRV_CACHE_DIR"]
        done = subprocess.run(
            [sys.executable, *way.words, "-rA"],
            cwd=folder,
            env={**kept, **dict(way.environment), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        failed = set(re.findall(r"^(?:FAILED|ERROR) \S+\[(\w+)\]", done.stdout, re.MULTILINE))
        missing = [check for check, place in PLACES.items() if not re.search(place, done.stdout)]
        if done.returncode == 1 and failed == set(PLACES) and not missing:
            return ""
        return f"{name}: {done.returncode} {failed} {missing}\n{done.stdout}{done.stderr}"

    with ThreadPoolExecutor(2) as pool:
        found = [text for text in pool.map(run, TEST_WAYS.items()) if text]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_a_trace_of_operations_and_the_real_libraries_are_chosen_by_a_variable(
    tmp_path: Path,
) -> None:
    def output(environment: dict[str, str], *words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        return done.stdout

    file = tmp_path / "operations.txt"
    text = "import cudadrv\ncudadrv.cuda_context_for(0).default_stream.zeros(8, 'i4')"
    variables = {"CUDADRV_DRIVER": "emulator", "CUDADRV_EMULATOR_ORDER": "late"}
    output({**variables, "CUDADRV_EMULATOR_TRACE": str(file)}, "-c", text)
    assert "set" in file.read_text()
    is_emulated = (
        "import contextlib, cuda.bindings.driver as driver\n"
        "with contextlib.suppress(Exception): driver.cuInit(0)\n"  # the first that needs one
        "from cudadrv.sessions.stand_in import is_standing; print(is_standing())"
    )
    emulate = ("-m", "cudadrv", "emulate", sys.executable, "-c", is_emulated)
    assert output({}, *emulate) == "True\n"
    assert output({"CUDADRV_NO_STAND_IN": "1"}, *emulate) == "False\n"


HERE: Final = "process/test_switches.py"
_PLUGIN: Final = "emulator/testing/"
COVERED: Final[Mapping[str, str]] = {
    # Variables of the environment.
    "CUDADRV_DRIVER": HERE, "CUDADRV_CHECK": HERE, "CUDADRV_EMULATOR_ORDER": HERE,
    "CUDADRV_EMULATOR_COMPUTE_CAPABILITY": HERE, "CUDADRV_EMULATOR_TRACE": HERE,
    "CUDADRV_NO_STAND_IN": HERE, "CUDADRV_CHECK_SUPPRESSIONS": "emulator/test_reports.py",
    "CUDADRV_EMULATOR_LOCK_SECONDS": "process/shared_libraries/test_lock_waits.py",
    "CUDADRV_EMULATOR_STEPS": "emulator/test_sessions.py",
    "CUDADRV_EMULATOR_THREADS": "emulator/test_sessions.py",
    "CUDADRV_EMULATOR_FAULT": "process/shared_libraries/test_emulate.py",
    "CUDADRV_PYTHON": "process/shared_libraries/test_cubins.py",
    "CUDADRV_EMULATE_EVENTS": "process/shared_libraries/test_statuses.py",
    "--fail-on-findings": "process/shared_libraries/test_statuses.py",
    "--require-kernels": "process/shared_libraries/test_statuses.py",
    "CUDADRV_EMULATE_LIBRARIES": "process/shared_libraries/test_emulate.py",
    "--native": "process/shared_libraries/test_native_processes.py",
    "--junit": "process/shared_libraries/test_continuous_integration.py",
    "CUDA_VISIBLE_DEVICES": "contract/runtime/test_probe.py",
    "CUDADRV_CACHE_DIR": "pure/cache/test_places.py",
    "CUDADRV_CACHE_MAX_MB": "pure/cache/test_faults.py",
    "CUDADRV_HEADERS": "pure/compile/test_headers.py",
    "CUDADRV_POOL_RELEASE_THRESHOLD_MB": "contract/client/test_environment.py",
    "CUDADRV_FREE_LIST_CAP_MB": "contract/client/test_environment.py",
    "CUDADRV_DEVICE_DEBUG": "process/debugger/test_terminal.py",
    "CUDADRV_DEBUG_ADDRESS": "process/debugger/test_terminal.py",
    "CUDADRV_KEEP_BLOCKS": "contract/memory/test_stream_block_cache.py",
    # Arguments of `session`, `use` and `stand_in`.
    "devices": HERE, "order": HERE, "seed": HERE, "check": HERE,
    "properties": "emulator/test_sessions.py", "limits": "emulator/test_sessions.py",
    "driver_version": "emulator/test_modules.py", "suppressions": "emulator/test_reports.py",
    "raise_findings": "emulator/test_checks.py",
    # Options of `check` and `emulate`.
    "--checks": HERE, "--order": HERE, "--seed": HERE, "--devices": HERE,
    "--compute-capability": HERE, "--suppressions": "emulator/cli/test_check.py",
    "--json": "emulator/cli/test_check.py", "--sarif": "emulator/cli/test_check.py",
    "-m": "emulator/cli/test_check.py", "--steps": "process/shared_libraries/test_emulate.py",
    "--fault": "process/shared_libraries/test_emulate.py",
    # Options, ini values, markers and fixtures of the pytest plugin.
    "--cuda": HERE, "--cuda-order": HERE, "--cuda-seed": HERE, "--cuda-check": HERE,
    "cuda": HERE, "cuda_order": HERE, "cuda_seed": HERE, "cuda_check": HERE, "emulated": HERE,
    "--cuda-seeds": f"{_PLUGIN}test_seeds.py", "cuda_seeds": f"{_PLUGIN}test_seeds.py",
    "--cuda-profile": f"{_PLUGIN}test_options.py", "cuda_profile": f"{_PLUGIN}test_options.py",
    "--cuda-leaks": f"{_PLUGIN}test_isolation.py", "cuda_leaks": f"{_PLUGIN}test_options.py",
    "--cuda-budget": f"{_PLUGIN}test_budgets.py", "cuda_budget": f"{_PLUGIN}test_budgets.py",
    "--cuda-require-gpu": f"{_PLUGIN}test_places.py", "gpu": f"{_PLUGIN}test_places.py",
    "multi_gpu": f"{_PLUGIN}test_places.py", "may_leak": f"{_PLUGIN}test_isolation.py",
    "cuda_context": f"{_PLUGIN}test_isolation.py", "cuda_stream": f"{_PLUGIN}test_isolation.py",
    "emulator": f"{_PLUGIN}test_places.py", "fault_injection": f"{_PLUGIN}test_places.py",
}  # fmt: skip
"""Each documented switch, and the test of the tests that switches it as a user does."""


def documented() -> set[str]:
    """Return all switches: variables, arguments, options, ini values, markers and fixtures."""
    page = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    found = set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE))
    for function in (emulator.session, emulator.use, emulator.stand_in):
        found |= inspect.signature(function).parameters.keys()
    for command in ("check", "emulate"):
        usage = make_parser(command).parse_args
        with (
            contextlib.redirect_stdout(io.StringIO()) as help_text,
            contextlib.suppress(SystemExit),
        ):
            usage([command, "--help"])
        found |= set(re.findall(r"^  (--?[a-z][\w-]*)", help_text.getvalue(), re.MULTILINE))
    parser = pytest.Parser(_ispytest=True)
    add_options(parser)
    found |= {name for group in parser._groups for each in group.options for name in each.names()}
    found |= set(parser._inidict)
    found |= {re.split(r"[(:]", marker)[0] for marker in MARKERS}
    found |= {
        name
        for name, value in vars(plugin).items()
        if type(value).__name__ == "FixtureFunctionDefinition" and not name.startswith("_")
    }
    return found - {"-h", "--help"}


def test_each_documented_switch_has_a_test() -> None:
    assert documented() == COVERED.keys()
    wrong = [
        f"{name}: not in tests/{file}"
        for name, file in COVERED.items()
        if name not in (ROOT / "tests" / file).read_text(encoding="utf-8")
    ]
    assert not wrong, "\n".join(wrong)


def test_a_killed_process_has_printed_what_it_found_before(tmp_path: Path) -> None:
    end = "os.kill(os.getpid(), signal.SIGKILL)"
    done = completed(tmp_path, WAYS["CUDADRV_CHECK"], ("race",), "faults.run_all(('race',))", end)
    assert (done.returncode, reported(done.stderr)) == (-9, ON_ONE_DEVICE)


@pytest.mark.slow
def test_tests_without_the_plugin_report_findings_as_any_process(tmp_path: Path) -> None:
    (tmp_path / "faults.py").write_text(FAULTS)
    (tmp_path / "test_it.py").write_text(
        "import faults\n\ndef test_it():\n    faults.run('race', 0)\n"
    )
    environment = os.environ | {
        "CUDADRV_DRIVER": "emulator",
        "CUDADRV_CHECK": "race",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)]),
    }
    words = ("-m", "pytest", "-q", "-s", "-p", "no:cudadrv.testing", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, *words, "test_it.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, reported(done.stderr)) == (66, ON_ONE_DEVICE), (
        done.stdout + done.stderr
    )
    assert "1 passed" in done.stdout


@pytest.mark.slow
def test_likely_intentional_findings_are_not_reported_and_leave_the_status_alone(
    tmp_path: Path,
) -> None:
    run = (
        "import cudadrv\n"
        "stream = cudadrv.cuda_context_for(0).default_stream\n"
        "source = 'extern \"C\" __global__ void flag(int* x) { *x = 1; }'\n"
        "kernel = stream.context.compile(source).kernel('flag')\n"
        "kernel.launch(stream, cudadrv.LaunchConfig(2, 64), stream.zeros(1, 'i4'))\n"
        "stream.synchronize()\n"
        "if cudadrv.Device.get(0).driver.api.findings[0].benign: print('found')"
    )
    for way in ("CUDADRV_CHECK", "check --checks"):
        done = completed(tmp_path, WAYS[way], ("race",), run, "")
        assert (done.returncode, done.stdout.strip()) == (0, "found"), done.stderr
        assert "race: kernel" not in done.stderr
