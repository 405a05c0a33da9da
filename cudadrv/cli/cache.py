"""``python -m cudadrv cache``: show, fill, check and clear the image cache."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import asdict
from pathlib import Path

import ptx
from ptx.ordinary_files import read_text
from ptx.prewarming import Prewarmed, prewarm

from .command_line import Commands, add_command, positive
from .compile import add_compile_options, requests_of
from .output import print_error, print_table, print_text

_WRONG = {"2": "the command line is wrong"}


def add_to(commands: Commands) -> None:
    """Add the command and its actions."""
    parser = add_command(
        commands,
        "cache",
        "Show, clear, verify or fill the cache of compiled images.",
        example="info",
        statuses={"0": "done", "1": "see the action's --help", **_WRONG},
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _add_looks(actions)
    _add_prewarm(actions)


def _add_looks(actions: Commands) -> None:
    """Add the actions on the images that are there."""
    info = add_command(
        actions,
        "info",
        "Show the cache's content, and the time that it saved.",
        example="--json",
        statuses={"0": "printed", **_WRONG},
    )
    info.add_argument("--json", action="store_true", help="print it as JSON")
    info.set_defaults(run=lambda options: run_info(options.json))

    clear = add_command(
        actions,
        "clear",
        "Remove every entry of the cache.",
        example="",
        statuses={"0": "removed", **_WRONG},
    )
    clear.set_defaults(run=lambda options: run_clear())

    verify = add_command(
        actions,
        "verify",
        "Read every entry of the cache, and list the damaged ones.",
        example="--remove",
        statuses={"0": "no entry is damaged", "1": "entries are damaged", **_WRONG},
    )
    verify.add_argument("--remove", action="store_true", help="remove the damaged ones")
    verify.set_defaults(run=lambda options: run_verify(options.remove))


def _add_prewarm(actions: Commands) -> None:
    prewarm = add_command(
        actions,
        "prewarm",
        "Compile the images of a list into the cache.",
        example="kernels.txt --jobs 4",
        statuses={"0": "every image is ready", "1": "an image or the list failed", **_WRONG},
    )
    prewarm.add_argument(
        "list", type=Path, metavar="LIST", help="one line per image: FILE.cu [options of compile]"
    )
    prewarm.add_argument("--jobs", type=positive, default=1, metavar="N", help="processes")
    prewarm.set_defaults(run=lambda options: run_prewarm(options.list, options.jobs))


def run_info(as_json: bool) -> int:
    """Print the cache's statistics; return 0."""
    stats = ptx.default_cache().stats()
    if as_json:
        print_text(json.dumps(asdict(stats), default=str, indent=2))
        return 0
    life = stats.lifetime
    requests = life.hits + life.misses
    rows = [
        ("folder", str(stats.folder or "none: only in memory")),
        ("entries", str(stats.entries)),
        ("MiB on disk", f"{stats.disk_bytes / 2**20:.1f} of at most {stats.max_bytes / 2**20:.0f}"),
        ("requests so far", str(requests)),
        ("hits", f"{life.hits} ({100 * life.hits / requests if requests else 0:.0f} %)"),
        ("compiled", f"{life.compiled} in {life.build_ms / 1e3:.1f} s"),
        ("linked", str(life.linked)),
        ("time saved", f"{life.saved_ms / 1e3:.1f} s"),
        ("evicted", str(life.evicted)),
        ("rejected as damaged", str(life.rejected)),
        ("writes that failed", str(life.failed)),
    ]
    print_table("image cache", ("what", "value"), rows)
    return 0


def run_clear() -> int:
    """Remove every entry; return 0."""
    print_text(f"{ptx.default_cache().clear()} entries removed")
    return 0


def run_verify(remove: bool) -> int:
    """Read every entry; return 1 if a damaged one was left in place."""
    verified = ptx.default_cache().verify(remove=remove)
    print_text(f"{verified.checked} entries read, {len(verified.damaged)} damaged")
    for digest in verified.damaged:
        print_text(f"  {digest}{' removed' if remove else ''}")
    return 1 if verified.damaged and not remove else 0


def run_prewarm(path: Path, jobs: int) -> int:
    """Compile every line of a list; return 1 if one fails.

    A line has the arguments of ``python -m cudadrv compile``: a file and its options. Empty lines
    and lines that begin with # are ignored; files are relative to the list's folder.
    """
    try:
        requests = _requests(path)
    except (OSError, ValueError) as error:
        print_error(f"{path}: {error}")
        return 1
    results = prewarm(requests, processes=jobs, on_progress=_show)
    failed = [result for result in results if result.error]
    for result in failed:
        print_error(f"{result.name}: {result.error}")
    print_text(f"{len(results) - len(failed)} of {len(results)} images ready")
    return 1 if failed else 0


class _LineParser(argparse.ArgumentParser):
    """A parser whose errors name the line of the list instead of ending the process."""

    def error(self, message: str) -> None:  # type: ignore[override]  # raises as the base exits
        raise ValueError(message)


def _requests(path: Path) -> list[ptx.CompileRequest]:
    parser = _LineParser(prog="", add_help=False)
    add_compile_options(parser)
    requests: list[ptx.CompileRequest] = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        words = shlex.split(line, comments=True)
        if not words:
            continue
        try:
            options = parser.parse_args(words)
            options.file = path.parent / options.file
            requests += requests_of(options)
        except (OSError, ValueError) as error:
            raise ValueError(f"line {number}: {error}") from error
    return requests


def _show(result: Prewarmed, count: int, total: int) -> None:
    origin = result.origin.value if result.origin else "FAILED"
    print_text(f"[{count}/{total}] {result.name} {result.target}: {origin} in {result.ms:.0f} ms")
