"""`ProcessReport`: what the checks find in a process that does not ask for its findings.

CUDADRV_CHECK switches checks on for a whole process. Nothing of the program reads the findings
then, so they are printed on standard error, and the process ends with the status `FOUND`.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable
from threading import main_thread
from typing import TYPE_CHECKING

from ptx.standard_streams import write_error

from ..emulator.command_events import Event
from ..emulator.emulator import Emulator
from ..emulator.hosting import report_after_calls
from .deferred_release import run_deferred
from .exit_status import FOUND, end_with
from .reachable_numbers import numbers_in_modules

if TYPE_CHECKING:
    from ptx.emulate.check.findings import Found


class ProcessReport:
    """Reports the findings of an emulator at the end of the process; also before, as they come.

    A signal or `os._exit` ends a process without another step of Python. So with `immediately`
    each finding is printed after the call that found it.

    Args:
        emulator: the emulator.
        roots: returns objects whose handles are no leaks, beside those of modules.
    """

    def __init__(
        self, emulator: Emulator, roots: Callable[[], Iterable[object]], *, immediately: bool
    ) -> None:
        self._emulator = emulator
        self._roots = roots
        self._pid = os.getpid()
        self._count = 0
        self._printed: dict[str, object] = {}
        if immediately and emulator.checks.names:
            report_after_calls(emulator, self.look)

    def look(self) -> None:
        """Print new findings; a program may also handle the error that one of them has raised.

        In an exit handler nothing may call `finish` any more, so they decide the status at once.
        """
        count = self._emulator.checks.found_count
        if count != self._count:
            self._count = count
            findings = self._findings()
            self._print(findings)
            if findings and not main_thread().is_alive():  # it has ended before exit handlers run
                end_with(FOUND)

    def finish(self) -> None:
        """Run queued work and look for leaks; print findings, and let the process end with 66.

        A forked child does nothing: the findings are its parent's.
        """
        if os.getpid() != self._pid:
            return
        self._emulator.finish()
        if not self._emulator.checks.names:
            return
        look_for_leaks(self._emulator, self._roots)
        findings = self._findings()
        self._print(findings)
        if findings:
            checks = ", ".join(sorted(self._emulator.checks.names))
            write_error(f"cudadrv: {len(findings)} found by {checks}\n")
            end_with(FOUND)
        listed = set(map(_lines, findings))
        intentional = sum(
            bool(finding.benign) and _lines(finding) not in listed
            for finding in self._emulator.findings
        )
        if intentional:
            write_error(f"cudadrv: {intentional} likely intentional, not listed\n")

    def _findings(self) -> list[Found]:
        """Return the findings that change the status: orders have a warning of their own."""
        handled = self._emulator.checks.handled
        return [
            finding
            for finding in self._emulator.findings
            if finding.check != "order" and not finding.benign and str(finding) not in handled
        ]

    def _print(self, findings: Iterable[Found]) -> None:
        own = object()
        for finding in findings:
            text = str(finding)
            if self._printed.setdefault(text, own) is own:  # else printed, maybe by another thread
                write_error(f"{text}\n")
                Event.FINDING.note(finding.check, text)
                if sys.stderr is not sys.__stderr__:  # captured: maybe nobody sees it
                    self._printed.pop(text, None)


def _lines(finding: Found) -> tuple[object, ...]:
    """Return the kernel and the lines of a finding: other threads may mean the same access."""
    return finding.kernel, frozenset((place.file, place.line) for place in finding.places)


def look_for_leaks(emulator: Emulator, roots: Callable[[], Iterable[object]] | None = None) -> None:
    """Look for objects that a program has left when it ended, where that is checked.

    Args:
        emulator: the emulator of the program.
        roots: returns objects whose handles are no leaks; then handles in modules are none either.
            None counts every object, as at the end of a block, whose emulator ends too.
    """
    if "leak" not in emulator.checks.names:
        return
    emulator.look_for_leaks()
    if emulator.checks.leaks:  # a collection costs more than most sessions
        gc.collect()
        run_deferred()  # what graphs kept
        emulator.look_for_leaks()
    if emulator.checks.leaks and roots is not None:
        emulator.look_for_leaks(numbers_in_modules(*roots()))
