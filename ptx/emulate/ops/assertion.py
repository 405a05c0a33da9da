"""Failed assertions of kernels: the system call `__assertfail`.

CUDA C++ Programming Guide, "Assertion".
"""

from __future__ import annotations

import sys

from ptx.emulate.access.memory_access import read_string
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import external
from ptx.emulate.model.errors import AssertionFailed
from ptx.emulate.model.geometry import Value
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction, Symbol

_MOST_LINES = 1024


def fail(
    fibre: Fibre, message: Value, file: Value, line: Value, function: Value,
    instruction: Instruction,
) -> None:  # fmt: skip
    """Write what failed to standard error, a line for each thread.

    Raises:
        AssertionFailed: always.
    """
    blocks = fibre.blocks
    blocks.launch.output.flush()

    def words(position: int) -> tuple[str, str, int, str]:
        text, name, caller = (
            read_string(fibre, position, int(fibre.spread(each)[position]), instruction)
            for each in (message, file, function)
        )
        return text, name, int(fibre.spread(line)[position]), caller

    uniform = not any(each.ndim for each in (message, file, line, function))
    first = words(0)
    lanes = fibre.lane_numbers()
    report: list[str] = []
    for position in range(min(fibre.n, _MOST_LINES)):
        text, name, number, caller = first if uniform else words(position)
        block = ",".join(map(str, blocks.block_of(int(lanes[position]))))
        thread = ",".join(map(str, blocks.thread_of(int(lanes[position]))))
        report.append(
            f"{name}:{number}: {caller}: block: [{block}], thread: [{thread}] "
            f"Assertion `{text}` failed.\n"
        )
    if fibre.n > _MOST_LINES:
        report.append(f"... and {fibre.n - _MOST_LINES} more threads\n")
    sys.stderr.write("".join(report).encode("latin-1").decode(errors="replace"))
    text, name, number, caller = first
    raise AssertionFailed(
        f"assertion `{text}` failed in {caller} at {name}:{number}",
        fibre.where(0, instruction),
        assertion=text, file=name, line=number, function=caller,
    )  # fmt: skip


def _emit(e: Emitter, arguments: tuple[Symbol, ...], results: tuple[Symbol, ...]) -> None:
    types = ("u64", "u64", "u32", "u64")
    values = [e.parameter(symbol, kind) for symbol, kind in zip(arguments, types, strict=False)]
    site = e.scope.bind(e.instruction, "instruction")
    e.line(f"{e.helper(fail)}(f, {', '.join(values)}, {site})")


external("__assertfail", 4, _emit)
external("__assert_fail", 4, _emit)
