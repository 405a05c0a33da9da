"""`python -m campaigns.order_faults.gpu`: which of the programs go wrong on a GPU.

Each runs in a process of its own, as some spoil their context.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from cudadrv.errors import CudadrvError

from .bench import Bench, Body
from .programs import PROGRAMS

# What comes late: nothing, what writes, what reads, all.
LATE: Final = ((), ("set", "add", "twice"), ("read",), ("set", "add", "twice", "read"))
ROUNDS: Final = 3 * len(LATE)
_AT_ONCE: Final = 8


def wrong_rounds(program: Body, is_corrected: bool) -> int:
    """In how many rounds the values are wrong, or an error is raised."""
    wrong = 0
    for number in range(ROUNDS):
        try:
            wrong += not program(Bench(LATE[number % len(LATE)]), is_corrected)
        except CudadrvError:
            wrong += 1
    return wrong


def _in_a_process(name: str, is_corrected: bool) -> str:
    command = [sys.executable, "-m", __spec__.name, name, "ok" if is_corrected else "wrong"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout.strip() or f"ended with {done.returncode}"


def main() -> int:
    """Print a line a program; 1 if a corrected twin is wrong."""
    if len(sys.argv) == 3:
        (program,) = (each for each in PROGRAMS if each.__name__ == sys.argv[1])
        print(wrong_rounds(program, sys.argv[2] == "ok"))
        return 0
    names = [program.__name__ for program in PROGRAMS]
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        wrong = list(threads.map(lambda name: _in_a_process(name, False), names))
        right = list(threads.map(lambda name: _in_a_process(name, True), names))
    for name, shown, twin in zip(names, wrong, right, strict=True):
        print(f"{name:42} wrong in {shown} of {ROUNDS} rounds; its twin in {twin}")
    return 1 if any(twin != "0" for twin in right) else 0


if __name__ == "__main__":
    sys.exit(main())
