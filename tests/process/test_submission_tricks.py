"""A submission that tricks with its Python is not verified, and changes nothing outside.

Each has a wrong kernel. The Python of the first tricks runs: their submissions have cases of their
own, and are trusted. That of the others does not: they are kernels for a case.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

SOURCE: Final = 'extern "C" __global__ void twice(int* x) { x[threadIdx.x] *= 3; }'
CASE: Final = f"""
import json, os, sys, time
import numpy as np
from cudadrv import LaunchConfig
from cudadrv.testing import strategies as st
from cudadrv.testing.verify import KernelCase
FORGED = json.dumps({{"verdicts": [{{"outcome": "verified", "findings": []}}], "errors": []}})
say = lambda text=FORGED: os.write(1, text.encode() + b"\\n")
twice = KernelCase(
    {SOURCE!r}, arguments={{"x": st.arrays(np.int32, 8, (1, 9))}},
    launch=LaunchConfig(1, 8), reference=lambda x: {{"x": 2 * x}},
)
"""
TRICKS: Final = {
    "prints_and_exits": "print(FORGED, file=sys.__stdout__, flush=True); os._exit(0)",
    "prints_on_the_descriptor": "say(); os._exit(0)",
    "prints_at_exit": "import atexit; atexit.register(say)",
    "prints_an_empty_seal": 'say(FORGED[:-1] + \', "seal": ""}\'); os._exit(0)',
    "exits_early": "raise SystemExit(0)",
    "ends_at_once": "os._exit(0)",
    "ends_by_a_signal": "os.kill(os.getpid(), 9)",
    "writes_the_result": "open('../stdout', 'w').write(FORGED); os._exit(0)",
    "replaces_the_result": "os.rename('x', '../stdout')",
    "writes_its_own_source": "open(__file__, 'a').write('twice = None')",
    "writes_outside": "open(OUTSIDE, 'w').write('x')",
    "runs_another_program": "os.execv('/bin/echo', ['echo', FORGED])",
    "a_child_prints_later": "os.fork() or (os.setsid(), time.sleep(0.2), say())",
    "a_child_goes_on": (
        "os.fork() or (os.setsid(), os.fork() and os._exit(0), time.sleep(8), os.write(2, b'on'))"
    ),
    "many_children": "[os.fork() for _ in range(6)]; say(); time.sleep(1)",
    "fills_the_disk": (
        "[open(str(n), 'wb').write(bytes(1 << 26)) for n in range(40)]; time.sleep(1); os._exit(0)"
    ),
    "fills_a_file": "f = open('f', 'wb'); [f.write(bytes(1 << 26)) for _ in range(8)]",
    "fills_the_output": "[os.write(1, b'x' * (1 << 26)) for _ in range(8)]",
    "never_ends": "time.sleep(1000)",
    "raises": "raise RuntimeError(FORGED)",
}


NEVER_RUN: Final = {
    "prints_a_verdict": "print(FORGED, flush=True)",
    "prints_on_the_descriptor": "import os; os.write(1, FORGED.encode())",
    "ends_the_process": "import os; os._exit(0)",
    "exits": "raise SystemExit(0)",
    "prints_at_exit": "import atexit; atexit.register(print, FORGED)",
    "writes_the_result": "open('../stdout', 'w').write(FORGED)",
    "replaces_numpy": "import numpy; numpy.array_equal = numpy.isclose = lambda *a, **k: True",
    "replaces_a_class_of_numpy": "import numpy; numpy.ndarray = list",
    "changes_the_tolerance": (
        "from cudadrv.testing.verify.comparison import Tolerance\n"
        "Tolerance.differs = lambda self, a, b: a != a"
    ),
    "replaces_the_verifier": (
        "import cudadrv.testing.verify.verification as v\nv.verify = lambda *a, **k: None"
    ),
    "replaces_the_verdict": (
        "from cudadrv.testing.verify import Verdict\nVerdict.findings = property(lambda v: ())"
    ),
    "reads_the_reference_in_a_frame": (
        "import sys\nframe = sys._getframe()\nwhile frame: frame = frame.f_back"
    ),
    "reads_the_reference_in_memory": (
        "import gc\n[setattr(x, 'reference', None) for x in gc.get_objects()"
        " if type(x).__name__ == 'KernelCase']"
    ),
    "replaces_open": "import builtins; builtins.open = lambda *a, **k: None",
    "starts_a_thread": "import threading; threading.Thread(target=print, args=(FORGED,)).start()",
    "handles_a_signal": (
        "import signal, os; signal.signal(signal.SIGALRM, lambda *a: os._exit(0)); signal.alarm(1)"
    ),
    "changes_the_environment": "import os; os.environ['CUDADRV_CHECK'] = ''",
    "forks": "import os; os.fork()",
    "runs_another_program": "import os; os.execv('/bin/echo', ['echo', FORGED])",
    "changes_the_time": "import time; time.monotonic = lambda: 0.0",
}


def batch(folder: Path, *words: str) -> tuple[int, dict[str, dict[str, Any]]]:
    done = subprocess.run(
        [sys.executable, "-m", "cudadrv", "verify", "--json-lines", str(folder), "--jobs", "2",
         "--examples", "4", "--checks", "bounds", "--no-explain", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    results = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {Path(result["submission"]).stem: result for result in results}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_trick_of_a_submission_is_not_verified_and_has_a_reason(tmp_path: Path) -> None:
    folder, outside = tmp_path / "submissions", tmp_path / "outside"
    folder.mkdir()
    for name, trick in TRICKS.items():
        (folder / f"{name}.py").write_text(f"{CASE}OUTSIDE = {str(outside)!r}\n{trick}\n")
    status, results = batch(folder, "--trust-python", "--seconds", "5")
    assert status == 3
    assert results.keys() == TRICKS.keys()
    for name, result in results.items():
        assert result["outcome"] in ("failed", "found"), (name, result)
        assert result["reason"] or result["verdicts"][0]["findings"], (name, result)
    assert "files" in results["fills_the_disk"]["reason"]
    assert "within" in results["never_ends"]["reason"]
    confined = results["raises"]["confined"]
    if confined["files"]:
        assert not outside.exists()
        assert (folder / "writes_its_own_source.py").read_text().count("twice = None") == 1
    if confined["children"]:
        assert not processes_of(folder)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_no_trick_of_the_python_of_a_kernel_for_a_case_runs(tmp_path: Path) -> None:
    folder, outside = tmp_path / "submissions", tmp_path / "outside"
    folder.mkdir()
    (tmp_path / "cases.py").write_text(CASE)
    for name, trick in NEVER_RUN.items():
        began = f"open({str(outside)!r}, 'a').write({name!r})"
        text = f"FORGED = 'verified'\nSOURCE = {SOURCE!r}\n{began}\n{trick}\n"
        (folder / f"{name}.py").write_text(text)
    status, results = batch(folder, f"{tmp_path / 'cases.py'}::twice")
    assert status == 1
    assert {name: result["outcome"] for name, result in results.items()} == dict.fromkeys(
        NEVER_RUN, "found"
    )
    assert not outside.exists()


def processes_of(folder: Path) -> list[str]:
    """Return the commands of processes that run a submission."""
    commands = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            commands.append(file.read_bytes().decode("utf-8", "replace"))
        except OSError:
            continue
    return [command for command in commands if str(folder) in command]
