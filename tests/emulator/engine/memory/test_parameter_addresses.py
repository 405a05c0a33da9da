"""Accesses of parameters by each form of their address: values, and the verdict of nvJitLink."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import pytest

from campaigns.assembled_ptx.judging import emulators_error
from ptx.assembler import default_assembler
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.memory.parameter_cells import BYTES, TYPES, Cell, cells
from tests.emulator.engine.requirements.assembler import has_assembler

FIRST, SECOND = bytes(range(1, BYTES + 1)), bytes(range(101, 101 + BYTES))
TARGETS = (
    ("sm_75", "7.7"), ("sm_75", "9.0"), ("sm_80", "8.3"), ("sm_86", "8.8"), ("sm_90", "7.8"),
    ("sm_100", "8.6"), ("sm_120", "9.0"),
)  # fmt: skip


def found(cell: Cell) -> bytes:
    """What a cell leaves."""
    runner = KernelRunner(cell.text(), 1 << 20)
    places = {name: address for name, (address, _) in runner.program.globals.items()}
    runner.set(places["first"], np.frombuffer(FIRST, np.uint8))
    runner.set(places["second"], np.frombuffer(SECOND, np.uint8))
    runner.launch("k", 1, 1, *([FIRST[: cell.nbytes]] if cell.owner == "kernel" else []))
    return runner.get(places["out"], cell.nbytes, np.uint8).tobytes()


def differing(of: Iterable[Cell]) -> list[Cell]:
    return [cell for cell in of if found(cell) != cell.expected(FIRST, SECOND)]


def accepted(types: Iterable[str] = TYPES) -> list[Cell]:
    """The cells that mean something, and that the emulator loads."""
    return [
        each for each in cells(types) if each.is_defined and not emulators_error(each.text())[0]
    ]


def test_each_form_of_an_address_reaches_the_same_bytes() -> None:
    types = itertools.cycle(TYPES)
    forms = [each for each in cells(["b32"]) if each.is_defined and not each.scalar]
    chosen = [each._replace(ptx_type=next(types), place=16) for each in forms]
    chosen = [each for each in chosen[::3] if not emulators_error(each.text())[0]]
    assert len(chosen) > 15
    assert differing(chosen) == []


def test_a_kernel_reads_128_bits_of_its_parameter_by_an_address() -> None:
    cell = Cell("kernel", "moved", "param", "b128", 16)
    assert differing([cell]) == []


@pytest.mark.slow
def test_each_form_reaches_the_bytes_of_each_type() -> None:
    chosen = accepted()
    assert len(chosen) > 700
    assert differing(chosen) == []


@pytest.mark.slow
@pytest.mark.skipif(not has_assembler(), reason="nvJitLink is not installed")
@pytest.mark.parametrize(("target", "version"), TARGETS)
def test_the_assembler_accepts_the_same_forms(target: str, version: str) -> None:
    capability = int(target[3:-1]), int(target[-1])
    types = TYPES if target == "sm_90" else ("b32", "v2.b8", "v4.f32", "b128")
    differences = []
    for cell in cells(types):
        text = cell.text(target, version)
        assembly = default_assembler().assemble(text, target)
        error, _ = emulators_error(text, capability)
        if cell.is_compared and not assembly.skipped and bool(error) != bool(assembly.errors):
            differences.append((cell, error or assembly.errors))
    assert differences == []
