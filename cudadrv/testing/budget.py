"""Budgets: the counts that a test's kernels may have, in a file beside the test."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

from ..errors import ArgumentValueError
from .foreign_json import ForeignJsonError, JsonValue, read_json

if TYPE_CHECKING:
    from ..emulator import CountedLaunch, Counters, Counts

Json: TypeAlias = dict[str, Any]  # numbers, texts and further objects
Numbers: TypeAlias = Mapping[str, int]
BUDGET_FILE: Final = "budget.json"
ACCEPT: Final = "accept the new counts: pytest --cuda-budget=update"
_COUNTED: Final = pytest.StashKey[tuple[str, str, Json]]()
_OF_REPORT: Final = "cudadrv_budget"  # an attribute of a report
_FORMAT: Final = 1
_MOST_BYTES: Final = 64 << 20  # a thousand lines of budgets take 100 KiB
_SECTOR: Final = 32  # bytes
_COMPILER: Final = re.compile(r"// Cuda compilation tools, release [\d.]+, V([\d.]+)")
# Comments have the compiler's build, and `.file` has the folder of the source.
_OF_BUILD: Final = re.compile(r"//[^\n]*|^\s*\.(?:file|loc)\b[^\n]*$", re.MULTILINE)
_SEPARATOR: Final = re.compile(r"[\\/]")


@dataclass(frozen=True, slots=True)
class KernelBudget:
    """The counts of all launches of one kernel in one test.

    Attributes:
        compiler: the version of NVRTC that compiled it; "" if its PTX does not have it.
        ptx: a hash of its module's PTX, without comments and line numbers.
        numbers: by name.
        lines: the numbers above 0 of each line, in order; a line is `FILE:NUMBER`.
    """

    compiler: str
    ptx: str
    numbers: Numbers
    lines: Mapping[str, Numbers]


Kernels: TypeAlias = Mapping[str, KernelBudget]


def kernels_of(counters: Counters) -> dict[str, KernelBudget]:
    """Return the budgets that counted launches need, by kernel."""
    lines: dict[str, dict[tuple[str, int], Counts]] = {}
    for (kernel, line), counts in counters.lines.items():
        # The folder of a file differs between machines.
        source_line = (_SEPARATOR.split(line.file)[-1] or "PTX", line.number)
        counts_of_kernel = lines.setdefault(kernel, {})
        counts_of_kernel[source_line] = (
            counts_of_kernel[source_line] + counts if source_line in counts_of_kernel else counts
        )
    return {
        kernel: _of_kernel(
            [launch for launch in counters.launches if launch.kernel == kernel],
            counts,
            {
                f"{file}:{line}": line_counts
                for (file, line), line_counts in sorted(lines[kernel].items())
            },
        )
        for kernel, counts in sorted(counters.kernels.items())
    }


def _of_kernel(
    launches: Sequence[CountedLaunch], total: Counts, lines: Mapping[str, Counts]
) -> KernelBudget:
    texts = sorted({launch.ptx for launch in launches})
    compilers = {match[1] for text in texts if (match := _COMPILER.search(text))}
    words = [" ".join(_OF_BUILD.sub("", text).split()) for text in texts]
    digest = hashlib.sha256("\0".join(sorted(set(words))).encode())
    sectors = total.global_loads + total.global_stores + total.global_copies
    numbers = {
        "launches": len(launches),
        **numbers_of(total),
        "bytes_moved": _SECTOR * sectors.sectors,
        "occupancy_warps": min(launch.occupancy.warps for launch in launches),
        "registers": max(launch.occupancy.registers for launch in launches),
    }
    lines_of_code = {
        line: {name: number for name, number in numbers_of(counts).items() if number}
        for line, counts in lines.items()
    }
    return KernelBudget(
        ", ".join(sorted(compilers)), digest.hexdigest()[:16], numbers, lines_of_code
    )


def numbers_of(counts: Counts) -> dict[str, int]:
    """Return the numbers of counts that budgets and reports show, by name."""
    shared = counts.shared_loads + counts.shared_stores
    return {
        "instructions": counts.executed.warps,
        "thread_instructions": counts.executed.threads,
        "branches": counts.branches.executed,
        "divergent_branches": counts.branches.divergent,
        "load_sectors": counts.global_loads.sectors,
        "store_sectors": counts.global_stores.sectors,
        "copy_sectors": counts.global_copies.sectors,
        "shared_wavefronts": shared.wavefronts,
        "bank_conflicts": shared.conflicts,
        "atomic_wavefronts": counts.global_atomics.turns + counts.shared_atomics.turns,
    }


def differences(before: Kernels, now: Kernels) -> list[str]:
    """Return the differences of budgets in words, by kernel and line; none if they are equal."""
    texts: list[str] = []
    for kernel in sorted({*before, *now}):
        old, new = before.get(kernel), now.get(kernel)
        if old is None or new is None:
            launches = 0 if new is None else new.numbers["launches"]
            former = 0 if old is None else old.numbers["launches"]
            texts.append(f"kernel {kernel}: launches {former} before, {launches} now")
        elif old.numbers != new.numbers:
            texts.append(f"kernel {kernel}:{_changed(old.numbers, new.numbers)}")
            texts += [f"  {line}" for line in _changed_lines(old, new)]
            texts.append(f"  {_cause(old, new)}")
    return texts


def _changed(before: Numbers, now: Numbers) -> str:
    names = dict.fromkeys([*before, *now])
    pairs = [(name, before.get(name, 0), now.get(name, 0)) for name in names]
    return ",".join(
        f" {name} {old} before, {new} now ({new - old:+})" for name, old, new in pairs if old != new
    )


def _changed_lines(before: KernelBudget, now: KernelBudget) -> Iterator[str]:
    """Yield the lines whose numbers changed; lines that only moved are left out."""
    old, new = list(before.lines.items()), list(now.lines.items())
    keys, new_keys = (
        [tuple(sorted(line_counts.items())) for _, line_counts in lines] for lines in (old, new)
    )
    matcher = SequenceMatcher(None, keys, new_keys, autojunk=False)
    for kind, first, last, new_first, new_last in matcher.get_opcodes():
        if kind == "equal":
            continue
        old_lines, new_lines = old[first:last], new[new_first:new_last]
        pairs = min(len(old_lines), len(new_lines))
        for (line, old_counts), (new_line, new_counts) in zip(old_lines, new_lines, strict=False):
            moved = "" if line == new_line else f" (before {line})"
            yield f"{new_line}{moved}:{_changed(old_counts, new_counts)}"
        for line, old_counts in old_lines[pairs:]:
            yield f"{line}, no longer executed:{_changed(old_counts, {})}"
        for line, new_counts in new_lines[pairs:]:
            yield f"{line}, new:{_changed({}, new_counts)}"


def _cause(before: KernelBudget, now: KernelBudget) -> str:
    if before.compiler != now.compiler:
        versions = [kernel_budget.compiler or "of no version" for kernel_budget in (before, now)]
        return f"NVRTC {versions[0]} before, {versions[1]} now: it can generate other instructions"
    if before.ptx == now.ptx:
        return "the PTX is the same: the launch, its data or the device changed"
    return f"the PTX changed (NVRTC {now.compiler or 'of no version'}, as before)"


def _to_json(kernels: Kernels) -> Json:
    """Return the budgets of a test as JSON."""
    return {name: asdict(kernel_budget) for name, kernel_budget in kernels.items()}


def _from_json(value: JsonValue) -> dict[str, KernelBudget]:
    return {name: _read_kernel(numbers) for name, numbers in value.fields().items()}


def _read_kernel(value: JsonValue) -> KernelBudget:
    value.fields(KernelBudget.__dataclass_fields__)
    return KernelBudget(
        value.field("compiler").text(),
        value.field("ptx").text(),
        _read_numbers(value.field("numbers")),
        {line: _read_numbers(counts) for line, counts in value.field("lines").fields().items()},
    )


def _read_numbers(value: JsonValue) -> Numbers:
    return {name: number.integer(0) for name, number in value.fields().items()}


def read_budgets(path: Path) -> dict[str, Kernels]:
    """Return the budgets of a file by test; none if there is no file.

    Raises:
        ArgumentValueError: it is no such file, or of another format.
    """
    try:
        stored = read_json(path, _MOST_BYTES)
        version = stored.field("format").integer()
        if version != _FORMAT:
            raise ArgumentValueError(
                f"{path} has format {version}: this cudadrv reads {_FORMAT}\n"
                "  delete it, and run pytest --cuda-budget=update"
            )
        tests = stored.field("tests").fields()
        return {name: _from_json(kernels) for name, kernels in tests.items()}
    except FileNotFoundError:
        return {}
    except ForeignJsonError as error:
        raise ArgumentValueError(
            f"{path} is not a file of budgets: {error}\n"
            "  restore it, or delete it and run pytest --cuda-budget=update"
        ) from None


def write_budgets(path: Path, tests: Mapping[str, Kernels]) -> None:
    """Replace a file: sorted by test and kernel, one line of text for each line of code."""
    parts = [
        f"  {json.dumps(test)}: {{\n"
        + ",\n".join(
            _kernel_text(name, kernel_budget) for name, kernel_budget in sorted(kernels.items())
        )
        + "\n  }"
        for test, kernels in sorted(tests.items())
    ]
    text = f'{{\n "format": {_FORMAT},\n "tests": {{\n' + ",\n".join(parts) + "\n }\n}\n"
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8", newline="\n")
    new.replace(path)


def _kernel_text(name: str, kernel: KernelBudget) -> str:
    lines = ",\n".join(
        f"     {json.dumps(line)}: {json.dumps(numbers)}" for line, numbers in kernel.lines.items()
    )
    fields = [
        f'    "{key}": {json.dumps(value)}'
        for key, value in (
            ("compiler", kernel.compiler),
            ("ptx", kernel.ptx),
            ("numbers", kernel.numbers),
        )
    ]
    fields.append(f'    "lines": {{\n{lines}\n    }}')
    return f"   {json.dumps(name)}: {{\n" + ",\n".join(fields) + "\n   }"


class Budgets:
    """The budgets of a run of pytest: a plugin of it.

    A worker of pytest-xdist adds the counts of a test to its report. The controller writes them.
    """

    def __init__(self, *, updates: bool) -> None:
        """`updates` is True to store budgets, and False to check them."""
        self._updates = updates
        self._stored: dict[Path, dict[str, Kernels]] = {}
        self._measured: dict[Path, dict[str, Kernels]] = {}

    def compare(self, item: pytest.Item, counters: Counters) -> str:
        """Return how the counts of a test differ from its budget; "" if they do not.

        With `updates` the counts become its budget, if it passes.
        """
        now = kernels_of(counters)
        test = f"{item.path.name}::{item.nodeid.partition('::')[2]}"
        path = item.path.parent / BUDGET_FILE
        if not now:
            return f"budget: {test} launches no kernel: remove the marker cuda_budget"
        if self._updates:
            item.stash[_COUNTED] = (str(path), test, _to_json(now))
            return ""
        try:
            if path not in self._stored:
                self._stored[path] = read_budgets(path)
        except ArgumentValueError as error:
            return f"budget: {error}"
        before = self._stored[path].get(test)
        if before is None:
            return f"budget: {path.name} has none of {test}\n  {ACCEPT}"
        texts = differences(before, now)
        head = f"budget: the counts of {test} differ from {path.name}"
        return "\n  ".join([head, *texts, ACCEPT]) if texts else ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the counts of a test that passed to its report."""
        report = yield
        if report.when == "call" and report.passed and _COUNTED in item.stash:
            setattr(report, _OF_REPORT, item.stash[_COUNTED])
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the counts of a report."""
        counted = getattr(report, _OF_REPORT, None)
        if counted is not None:
            path, test, kernels = counted
            self._measured.setdefault(Path(path), {})[test] = _from_json(JsonValue(kernels))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the new budgets; those of tests that did not run stay."""
        if hasattr(session.config, "workerinput"):
            return
        try:
            for path, tests in self._measured.items():
                write_budgets(path, {**read_budgets(path), **tests})
        except ArgumentValueError as error:
            raise pytest.UsageError(f"budget: {error}") from None
