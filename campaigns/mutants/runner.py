"""Runs tests, one forked process for each line of its input.

The parent has imported what the tests import of others, but nothing of this repository. So a mutant
costs the imports of the repository and the tests themselves.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from typing import IO, Any

import hypothesis
import numpy.testing
import pytest

PRELOADED = numpy.testing
# The soft limit of CPU time, and the hard one.
_AT_LIMIT = signal.SIGXCPU, signal.SIGKILL
# A failed example is not made smaller: one is enough, and takes no time.
hypothesis.settings.register_profile(
    "mutants",
    deadline=None,
    database=None,
    derandomize=True,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)


def main() -> None:
    """Answer each job with the status of pytest, its CPU time in seconds, and its output.

    The status is None if the tests took too long.
    """
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as output:
            status, cpu_seconds = _run(json.loads(line), output)
            output.seek(0)
            text = output.read()[-4000:]
        answer = {"status": status, "cpu_seconds": cpu_seconds, "output": text}
        print(json.dumps(answer), flush=True)


def _run(job: dict[str, Any], output: IO[str]) -> tuple[int | None, float]:
    child = os.fork()
    if child == 0:
        # Not a session of its own: Linux gives each session an equal share of the processors.
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        limit = math.ceil(job["cpu_seconds"])
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        _run_tests(job)
    # A deadlock takes no CPU time.
    deadline = time.monotonic() + job["seconds"]
    while True:
        ended, status, used = os.wait4(child, os.WNOHANG)
        late = time.monotonic() > deadline
        if ended or late:
            # Processes that the tests have started go too.
            _kill_group(child)
            if not ended:
                _, status, used = os.wait4(child, 0)
            at_limit = os.WIFSIGNALED(status) and os.WTERMSIG(status) in _AT_LIMIT
            return None if late or at_limit else status, used.ru_utime + used.ru_stime
        time.sleep(0.02)


def _run_tests(job: dict[str, Any]) -> None:
    status = 99
    try:
        with tempfile.TemporaryDirectory(prefix="cudadrv-mutant-") as folder:
            os.environ["CUDADRV_CACHE_DIR"] = job["cache"] or folder
            os.environ["CUDADRV_DRIVER"] = "emulator:2"
            options = ["-x", "-q", "-pno:cacheprovider", "--no-header"]
            options.append(f"-m{job['marked']}")
            # The tests' own limits are of wall time.
            options.append("--timeout=0")
            # The parent has imported hypothesis already.
            options.append("-Wignore::pytest.PytestAssertRewriteWarning")
            options += ["--hypothesis-profile=mutants", f"--basetemp={folder}/tests"]
            if job["selection"]:
                options += ["-k", job["selection"]]
            status = int(pytest.main([*options, *job["tests"]]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


if __name__ == "__main__":
    main()
