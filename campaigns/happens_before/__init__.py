"""The race check beside a model that keeps every access, on random kernels.

One disagreement in thousands of kernels is known. Of three threads as far apart that read a place,
the check keeps two, and a write may be ordered after these alone (docs/checks.md).
"""

from __future__ import annotations

import random
import time

from ..report import Report
from .judging import complaint_about
from .operations import Kernel, random_kernel


def run_campaign(seconds: float, seed: int) -> Report:
    """Compare random kernels; one without agreement is made as small as it gets."""
    report, end = Report(), time.monotonic() + seconds
    while time.monotonic() < end:
        name = f"{seed} {report.cases.get('kernels', 0)}"
        kernel = random_kernel(random.Random(name))
        report.count("kernels")
        if complaint_about(kernel):
            kernel = smallest(kernel)
            lines = [f"seed {name!r}: {complaint_about(kernel)}"]
            lines.append(f"  {kernel.geometry}, {kernel.times} times")
            lines += [f"  {number} {each}" for number, each in enumerate(kernel.operations)]
            report.failures.append("\n".join(lines))
    return report


def smallest(kernel: Kernel) -> Kernel:
    """Without the operations that are not needed for the complaint."""
    kind = complaint_about(kernel)[:12]
    at = 0
    while at < len(kernel.operations):
        gone = kernel.operations[at]
        operations = tuple(
            each
            for number, each in enumerate(kernel.operations)
            if number != at and not (gone.count and each.count and gone.word == each.word)
        )
        less = Kernel(kernel.geometry, operations, kernel.times)
        if operations and complaint_about(less)[:12] == kind:
            kernel = less
        else:
            at += 1
    return kernel
