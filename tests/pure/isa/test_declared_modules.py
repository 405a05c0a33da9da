"""The random modules of the campaign `assembled_ptx`: right, or with one fault that has a name."""

from __future__ import annotations

import random

import pytest

from campaigns.assembled_ptx.declarations import DeclaredModule, declared_module
from campaigns.assembled_ptx.judging import emulators_error
from ptx.assembler import default_assembler
from ptx.errors import NvJitLinkNotFoundError


def modules(seed: int, count: int) -> list[DeclaredModule]:
    """Return modules of a seed."""
    source = random.Random(seed)
    return [declared_module(source) for _ in range(count)]


def test_modules_of_a_seed_are_the_same_and_most_have_no_fault() -> None:
    made = modules(3, 30)
    assert modules(3, 30) == made
    faults = [module.fault for module in made if module.fault]
    assert 5 <= len(faults) <= 15
    assert len(set(faults)) > 4


@pytest.mark.slow
def test_modules_without_a_fault_are_accepted_by_the_emulator_and_the_assembler() -> None:
    right = [module for module in modules(4, 150) if not module.fault]
    assert len(right) > 75
    assert [module.text for module in right if emulators_error(module.text)[0]] == []
    plain = [module for module in right if ".section" not in module.text]
    try:
        logs = [default_assembler().assemble(each.text, each.arch) for each in plain]
    except NvJitLinkNotFoundError:
        pytest.skip("nvJitLink is not installed")
    assert [log.errors for log in logs if log.errors or log.skipped] == []
