"""Findings: what a check found, once for each pair of places in the program."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptx.emulate.model.errors import Where


@dataclass(frozen=True, slots=True)
class Access:
    """One side of a race.

    Attributes:
        what: "read", "write" or "atomic".
        where: kernel, block, thread, and the lines of PTX and CUDA.
    """

    what: str
    where: Where

    def __str__(self) -> str:
        where = self.where
        line = f"PTX line {where.ptx_line}"
        if where.source_line is not None:
            line = f"{where.source_file}:{where.source_line} ({line})"
        return f"{self.what} by block {where.block}, thread {where.thread}, at {line}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of a program that a check found.

    Attributes:
        check: the check that found it: "race".
        kernel: the kernel.
        first, second: both accesses, in the order in which the emulator executed them.
        space: "global" or "shared".
        address: of the first byte that both access.
        nbytes: how many bytes the second one accesses.
        memory: the allocation, in words.
        benign: why it may be meant so, "" where nothing speaks for it.
        missing: what would order the two.
    """

    check: str
    kernel: str
    first: Access
    second: Access
    space: str
    address: int
    nbytes: int
    memory: str
    benign: str
    missing: str

    def __str__(self) -> str:
        lines = [
            f"{self.check}: kernel {self.kernel}, {self.nbytes} bytes of {self.space} memory at "
            f"{self.address:#x}{f' ({self.memory})' if self.memory else ''}",
            f"  {self.first}",
            f"  {self.second}",
            f"  nothing orders the two: {self.missing}",
        ]
        if self.benign:
            lines.append(f"  it may be meant so: {self.benign}")
        return "\n".join(lines)


@dataclass
class Findings:
    """What the launches of a device found.

    Attributes:
        found: each once.
    """

    found: list[Finding] = field(default_factory=list)
    _keys: set[tuple[object, ...]] = field(default_factory=set)

    def add(self, finding: Finding) -> None:
        """Keep a finding, unless one of the same two places is known."""
        key = (
            finding.check, finding.kernel, _line(finding.first.where),
            _line(finding.second.where), finding.first.what, finding.second.what,
            bool(finding.benign),
        )  # fmt: skip
        if key not in self._keys:
            self._keys.add(key)
            self.found.append(finding)


def _line(where: Where) -> tuple[str | None, int]:
    """A line of CUDA, or of PTX where that is all there is."""
    if where.source_line is not None:
        return where.source_file, where.source_line
    return None, where.ptx_line
