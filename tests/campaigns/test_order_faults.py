"""Each wrong program is found, and each corrected twin is right in every order.

CUDADRV_ORDER_SEEDS says how many seeds the twins are run with.
"""

from __future__ import annotations

import os

import pytest

from campaigns.order_faults import SEEDS_TO_FIND
from campaigns.order_faults.bench import Body, run
from campaigns.order_faults.programs import PROGRAMS
from tests.short_cases import few

SEEDS_OF_TWINS = int(os.environ.get("CUDADRV_ORDER_SEEDS", "10"))
# Their values are wrong at once, where memory is given out again.
WRONG_IN_ANY_ORDER = ("used_after_it_was_freed",)

of_each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda body: body.__name__)


@of_each_program
def test_a_wrong_program_passes_where_everything_runs_at_its_call(program: Body) -> None:
    is_clean = run(program, False, "immediate").is_clean
    assert is_clean == (program.__name__ not in WRONG_IN_ANY_ORDER)


@of_each_program
def test_a_wrong_program_is_found_by_a_seed(program: Body) -> None:
    assert any(not run(program, False, "random", seed).is_clean for seed in range(SEEDS_TO_FIND))


@pytest.mark.parametrize("program", few(PROGRAMS, 8), ids=lambda body: body.__name__)
def test_the_corrected_version_is_right_in_every_order(program: Body) -> None:
    assert run(program, True, "immediate").is_clean
    assert run(program, True, "late").is_clean
    for seed in range(SEEDS_OF_TWINS):
        verdict = run(program, True, "random", seed)
        assert verdict.is_clean, (seed, verdict)


@of_each_program
def test_a_wrong_program_is_found_late(program: Body) -> None:
    assert not run(program, False, "late").is_clean
