"""Runs the programs in turns and prints what each takes beside the bare one, median and best."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cudadrv
import ptx

from ..driver import has_gpu

SOURCE = """
extern "C" __global__ void twice(float* x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2.0f;
}
"""
PROGRAMS = ("bare", "ours", "core", "cupy_raw")
HERE = Path(__file__).parent
MOST_OF_BARE = 1.05
MOST_OF_CORE = 0.3


def commands(folder: Path) -> dict[str, list[str]]:
    """The programs' command lines, with the files they need made in `folder`."""
    source, cubin = folder / "twice.cu", folder / "twice.cubin"
    source.write_text(SOURCE)
    target = cudadrv.cuda_context_for(0).target
    cubin.write_bytes(ptx.compile(SOURCE, ptx.CompileOptions(target=target), cache=False).data)
    arguments = {"bare": [cubin], "core": [source, folder / "core"]}
    return {
        name: [sys.executable, str(HERE / f"{name}.py"), *map(str, arguments.get(name, [source]))]
        for name in PROGRAMS
    }


def start_to_result(command: list[str], folder: Path) -> float | None:
    """Seconds of one process; None if it failed."""
    environment = {
        **os.environ,
        "CUDADRV_CACHE_DIR": str(folder / "ours"),
        "CUPY_CACHE_DIR": str(folder / "cupy"),
        "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]),
    }
    # An installed package has its bytecode; a checkout gets it from the first run, if it may.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode:
        print(f"{command[1]} failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return seconds


def measure(rounds: int) -> dict[str, list[float]]:
    """The seconds of each program that works here, warm, ascending."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = commands(folder)
        # The first run fills the caches, the second the system's file cache.
        working = {
            program: line
            for program, line in lines.items()
            if start_to_result(line, folder) and start_to_result(line, folder)
        }
        times: dict[str, list[float]] = {program: [] for program in working}
        for _ in range(rounds):
            for program, line in working.items():
                seconds = start_to_result(line, folder)
                if seconds is not None:
                    times[program].append(seconds)
    return {program: sorted(found) for program, found in times.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not has_gpu():
        print("warm_start measures programs on a GPU, and there is none")
        return 1
    times = measure(options.rounds)
    if options.json:
        print(json.dumps(times))
        return 0
    for word, choose in (("median", statistics.median), ("best", min)):
        seconds = {program: choose(found) for program, found in times.items()}
        bare = seconds["bare"]
        print(f"{word} of {options.rounds}:")
        for program, taken in seconds.items():
            print(f"  {program:10} {taken:.3f} s  {taken / bare:.3f} of bare")
        if "core" in seconds:
            added = (seconds["ours"] - bare) / (seconds["core"] - bare)
            print(f"  ours adds {added:.2f} of what cuda.core adds (goal {MOST_OF_CORE})")
        print(f"  ours is {seconds['ours'] / bare:.3f} of bare (goal {MOST_OF_BARE})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
