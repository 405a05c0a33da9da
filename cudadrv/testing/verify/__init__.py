"""Verify kernels against a reference, under all checks (docs/howto/verify.md)."""

from .comparison import Tolerance
from .kernel_case import HostProgram, KernelCase
from .mutation import Mutant, MutationReport, mutate
from .replay import SavedFinding, saved_findings
from .verdict import (
    CannotVerifyError,
    Example,
    Finding,
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
    "saved_findings",
    "verify",
    "verify_kernel",
]
