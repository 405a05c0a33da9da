"""Random programs: each instruction is counted as often as the slow reference executes it."""

from __future__ import annotations

import pytest

from campaigns.random_ptx.comparison import given_memory, program_of
from campaigns.random_ptx.programs import Program
from ptx.emulate.codegen.table import Effect, find_operation, in_table_order
from ptx.emulate.count.counts import Line
from ptx.emulate.count.launch_counts import LaunchCounts
from ptx.emulate.threads.limits import Limits
from ptx.isa import parse
from ptx.isa.model import Instruction
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.reference.interpreter import Interpreter
from tests.short_cases import few

PROGRAMS = 24
MOST_BLOCKS = 4


def may_be_dropped(text: str) -> set[int]:
    """Lines of instructions without an effect, which nobody executes where no result is used."""
    module = parse(text)
    found = set()
    for name, function in module.functions.items():
        if function.span is None:
            continue
        for statement in module.body(name).statements:
            if isinstance(statement, Instruction):
                record = find_operation(in_table_order(statement))
                if record is not None and record.effect is Effect.PURE:
                    found.add(statement.line)
    return found


def differences(program: Program, seed: int) -> list[str]:
    text = program.text().replace("; ", ";\n")  # one instruction a line
    given = given_memory(program, seed)
    runner = KernelRunner(text, 1 << 25)
    places = {name: runner.put(data) for name, data in given.items()}
    counts = LaunchCounts()
    chunks = (32, 96, 65536)[seed % 3]
    runner.launch(
        "k",
        program.grid,
        program.block,
        *places.values(),
        limits=Limits(chunk_threads=chunks, share_from=1),
        counts=counts,
    )
    found = counts.lines()
    pieces = {places[name]: bytearray(data.tobytes()) for name, data in given.items()}
    reference = Interpreter(text, pieces)
    reference.run("k", program.grid, program.block, places)
    unused = may_be_dropped(text)
    said = []
    for line in sorted({*reference.executed, *(each.number for each in found)} - {0}):
        wanted = reference.executed[line]
        executed = found[Line("", line)].executed if Line("", line) in found else None
        if executed is None and (line in unused or not wanted):
            continue
        threads = executed.threads if executed is not None else 0
        if threads != wanted:
            said.append(f"line {line}: {threads}, not {wanted}: {text.splitlines()[line - 1]}")
        elif executed is not None and not -(-threads // 32) <= executed.warps:
            said.append(f"line {line}: {threads} threads in {executed.warps} warps")
    return said


@pytest.mark.slow
@pytest.mark.parametrize("group", few(range(4), 1))
def test_each_instruction_is_counted_as_often_as_threads_execute_it(group: int) -> None:
    compared = 0
    seed = group
    while compared < PROGRAMS // 4:
        program = program_of(seed)
        if program.grid <= MOST_BLOCKS:
            compared += 1
            assert differences(program, seed) == [], f"seed {seed}"
        seed += 4


def test_code_that_does_not_count_has_nothing_of_it() -> None:
    program = program_of(1)
    runner = KernelRunner(program.text(), 1 << 25)
    places = [runner.put(data) for data in given_memory(program, 1).values()]
    kernel = runner.program.kernel("k")
    runner.launch("k", program.grid, program.block, *places, counts=LaunchCounts())
    assert "followers" not in kernel.source
