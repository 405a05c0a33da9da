"""A case whose reference is another kernel."""

from __future__ import annotations

from pathlib import Path

from .example_run import CompiledCase
from .kernel_case import KernelCase


def against(case: KernelCase, source: Path, kernel: str = "") -> KernelCase:
    """Return a copy of a case that compares its kernel with another one of the same parameters.

    The other kernel runs on each example with the same launch, in a module of its own.

    Args:
        case: the case; its reference is not called.
        source: the file of the other kernel.
        kernel: its name; the case's name where it is empty.

    Raises:
        CannotVerifyError: the other source does not compile, or does not fit the arguments.
    """
    other = case.of_source(source.resolve(), kernel)
    image, name = other.compile()
    compiled = CompiledCase(other, image, name, (), other.source_text())
    return case.with_reference(compiled.arrays)
