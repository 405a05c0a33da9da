"""Verify kernels against a reference, under all checks (docs/howto/verify.md)."""

from .comparison import Tolerance
from .kernel_case import HostProgram, KernelCase
from .mutation import Mutant, MutationReport, mutate
from .problems import problem_case
from .replay import SavedFinding, saved_findings
from .verdict import (
    CannotVerifyError,
    Example,
    Finding,
    Measure,
    Repair,
    SourceLine,
    Verdict,
    VerificationError,
)
from .verification import VerifyOptions, verify, verify_kernel

__all__ = [
    "CannotVerifyError",
    "Example",
    "Finding",
    "HostProgram",
    "KernelCase",
    "Measure",
    "Mutant",
    "MutationReport",
    "Repair",
    "SavedFinding",
    "SourceLine",
    "Tolerance",
    "Verdict",
    "VerificationError",
    "VerifyOptions",
    "mutate",
    "problem_case",
    "saved_findings",
    "verify",
    "verify_kernel",
]
