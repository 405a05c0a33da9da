"""The process that Numba simulates CUDA in: `python -m benchmarks.emulator.simulator IN OUT`.

Its own, since Numba reads `NUMBA_ENABLE_CUDASIM` when it is imported and has no real CUDA after.
A result is compared with the emulator's before it is timed.
"""

from __future__ import annotations

import pickle
import sys
import time
from pathlib import Path
from typing import Any, Final  # Numba has no types

import numpy as np

from .cases import Outcome, Task

_ROUNDS: Final = 3
# No further launch of a case begins after so many seconds.
_ENOUGH_S: Final = 6.0


def run(task: Task, cuda: Any, function: Any) -> Outcome:
    """Launch once and compare, then time."""
    case, outcome = task.case, Outcome()
    given: list[Any] = [
        cuda.to_device(one) if isinstance(one, np.ndarray) else one for one in case.arguments
    ]
    launch = cuda.jit(function)[case.grid, case.block, 0, case.shared_bytes]
    end = time.perf_counter() + _ENOUGH_S
    launch(*given)
    for number, (found, wanted) in enumerate(zip(given, task.expected, strict=True)):
        if isinstance(wanted, np.ndarray) and not np.array_equal(found.copy_to_host(), wanted):
            return Outcome(error=f"argument {number} differs from the emulator's")
    while len(outcome.elapsed_us) < _ROUNDS:
        if outcome.elapsed_us and time.perf_counter() > end:
            break
        start = time.perf_counter()
        launch(*given)
        outcome.elapsed_us.append((time.perf_counter() - start) * 1e6)
    return outcome


def main() -> None:
    """Run the tasks of one file and write their outcomes to another."""
    from .numba_kernels import KERNELS, cuda

    tasks: list[Task] = pickle.loads(Path(sys.argv[1]).read_bytes())
    outcomes = []
    for task in tasks:
        try:
            outcomes.append(run(task, cuda, KERNELS[task.case.kernel]))
        except AttributeError as error:
            outcomes.append(Outcome(error=f"it has no{str(error).rpartition('no attribute')[2]}"))
        except Exception as error:
            # Whatever else is wrong there is a line of the table, too.
            outcomes.append(Outcome(error=f"{type(error).__name__}: {error}"))
    Path(sys.argv[2]).write_bytes(pickle.dumps(outcomes))


if __name__ == "__main__":
    main()
