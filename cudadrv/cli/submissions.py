"""``verify --json-lines``: verify a folder of submissions, each in a process of its own."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from ..errors import ArgumentValueError

Json: TypeAlias = dict[str, Any]  # numbers, texts, lists and further objects
_CONFINE: Final = Path(__file__).parent / "confine.py"
_EXTRA_SECONDS: Final = 60.0  # for imports, the compiler and the last example
_FILE_BYTES: Final = 1 << 28
_FOLDER_BYTES: Final = 1 << 30
_POLL_SECONDS: Final = 0.1
_KINDS: Final = (".cu", ".py")
_MOST_TEXT: Final = 2000
# Anything else of the environment, such as a token, is not passed on.
_PASSED_ON: Final = (
    "PATH", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "CUDA_HOME",
    "CUDA_PATH", "CUDADRV_HEADERS", "PYTHONUTF8",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SubmissionLimits:
    """The limits of one submission.

    Attributes:
        seconds: of the verification; the process ends a minute later.
        memory_mb: of resident memory.
    """

    seconds: float
    memory_mb: int

    @property
    def wall_seconds(self) -> float:
        """When the process is ended."""
        return self.seconds + _EXTRA_SECONDS


def submissions_of(folder: Path, case: str) -> list[Path]:
    """Return the submissions in a folder by name.

    With a case they are all `.cu` and `.py` files, without one the `.py` files.

    Raises:
        ArgumentValueError: there are none.
    """
    kinds = _KINDS if case else (".py",)
    found = sorted(path for path in folder.iterdir() if path.suffix in kinds and path.is_file())
    if not found:
        raise ArgumentValueError(f"{folder}: it has no submissions: files {' or '.join(kinds)}")
    return found


def verify_submissions(
    submissions: Sequence[Path],
    case: str,
    options: Sequence[str],
    jobs: int,
    limits: SubmissionLimits,
) -> Iterator[Json]:
    """Verify submissions in processes of their own; yield the result of each as it ends.

    Args:
        submissions: the files.
        case: the case whose source they replace, `FILE.py::CASE`; "" if they have their own.
        options: of `verify`, for each.
        jobs: how many run at once.
        limits: of each.
    """
    with ThreadPoolExecutor(jobs) as pool:
        futures = [
            pool.submit(_verify_one, submission.resolve(), case, options, limits)
            for submission in submissions
        ]
        for future in as_completed(futures):
            yield future.result()


def _verify_one(
    submission: Path, case: str, options: Sequence[str], limits: SubmissionLimits
) -> Json:
    """Verify a submission in a process of its own, in a folder that is removed afterwards."""
    began = time.monotonic()
    target = [case, "--source", str(submission)] if case else [str(submission)]
    with tempfile.TemporaryDirectory(prefix="cudadrv-verify-", ignore_cleanup_errors=True) as name:
        folder, seal = Path(name).resolve(), secrets.token_hex()
        command = [sys.executable, "-m", "cudadrv", "verify", *target, "--json", *options]
        ended = _run([*command, "--sealed"], folder, limits, seal)
        result = _result_of(folder / "stdout", seal)
        with (folder / "stderr").open("rb") as errors_of_it:
            errors_of_it.seek(max(0, (folder / "stderr").stat().st_size - _MOST_TEXT))
            text = errors_of_it.read().decode("utf-8", "replace")
    verdicts = result.get("verdicts", [])
    errors = [error.get("text", "") for error in result.get("errors", [])]
    reason = ended.reason or "; ".join(errors)
    if not reason and not verdicts:
        reason = f"the process ended with status {ended.status} and no result: {text.strip()}"
    outcomes = {verdict.get("outcome") for verdict in verdicts}
    return {
        "submission": submission.name,
        "outcome": "failed" if reason else _worst(outcomes),
        "reason": reason,
        "seconds": round(time.monotonic() - began, 3),
        "confined": ended.confined,
        "verdicts": verdicts,
    }


def _worst(outcomes: Set[object]) -> str:
    """Return the outcome of all cases of a submission."""
    if outcomes == {"verified"}:
        return "verified"
    return "unfinished" if outcomes <= {"verified", "unfinished"} else "found"


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a process ended.

    Attributes:
        status: its exit status.
        reason: the limit that ended it, or "".
        confined: which limits were in force.
    """

    status: int
    reason: str
    confined: dict[str, bool]


def _run(command: Sequence[str], folder: Path, limits: SubmissionLimits, seal: str) -> _Ended:
    """Run a command until it ends, or exceeds a limit; it writes to the folder `own` alone.

    Its first line of input is a seal, which its result must have.
    """
    reader, writer = os.pipe()
    own = folder / "own"
    own.mkdir()
    given = {
        "folder": str(own),
        "cpu_seconds": int(4 * limits.wall_seconds),
        "file_bytes": _FILE_BYTES,
        "report": writer,
    }
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_CONFINE), json.dumps(given), *command],
            cwd=own,
            env=_environment(own),
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            pass_fds=[writer],
        )
    os.close(writer)
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as stdin:
        stdin.write(f"{seal}\n".encode())
    try:
        with os.fdopen(reader, "rb") as report:
            confined = json.loads(report.read() or b"{}")
        reason = _wait(process, own, limits)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    memory = {"memory": Path("/proc/self/statm").exists()}
    return _Ended(process.returncode, reason, {**confined, **memory})


def _wait(process: subprocess.Popen[bytes], own: Path, limits: SubmissionLimits) -> str:
    """Wait for a process; return the limit that it exceeds, or ""."""
    end = time.monotonic() + limits.wall_seconds
    while process.poll() is None:
        if time.monotonic() > end:
            return f"it did not end within {limits.wall_seconds:g} seconds"
        if _resident_mb(process.pid) > limits.memory_mb:
            return f"it used more than {limits.memory_mb} MiB of memory"
        if _bytes_below(own) > _FOLDER_BYTES:
            return f"it wrote more than {_FOLDER_BYTES >> 20} MiB of files"
        time.sleep(_POLL_SECONDS)
    return ""


def _bytes_below(folder: Path) -> int:
    """Return the bytes on disk of the files below a folder."""
    total = 0
    for name, _, files in os.walk(folder):
        for file in files:
            with suppress(OSError):
                total += 512 * os.lstat(os.path.join(name, file)).st_blocks
    return total


def _resident_mb(first: int) -> float:
    """Return the resident memory of a process and its children in MiB; 0 where it is not known.

    A child of a session of its own counts too.
    """
    children: dict[int, list[int]] = {}
    pages: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            # The name of the program, in parentheses, may have spaces.
            fields = stat.read_text().rpartition(")")[2].split()
            process = int(stat.parent.name)
            children.setdefault(int(fields[1]), []).append(process)
            pages[process] = int(fields[21])
    found = [first]
    for process in found:
        found += children.get(process, [])
    total = sum(pages.get(process, 0) for process in found)
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20 if total else 0


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {
        **kept,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "CUDADRV_CACHE_DIR": str(folder / "cache"),
        "CUDADRV_DRIVER": "emulator",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _result_of(file: Path, seal: str) -> Json:
    """Return what `verify --json` printed as its last line; {} if there is none with the seal."""
    text = file.read_bytes()[-_FILE_BYTES:].decode("utf-8", "replace").strip()
    with suppress(ValueError):
        result = json.loads(text.rpartition("\n")[2]) if text else {}
        is_sealed = isinstance(result, dict) and result.pop("seal", "") == seal
        if is_sealed and isinstance(result.get("verdicts"), list):
            return dict(result)
    return {}
