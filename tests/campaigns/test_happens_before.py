"""The check and a model that keeps every access agree about which kernels race."""

from __future__ import annotations

import random

import pytest

from campaigns.happens_before.judging import complaint_about, judged
from campaigns.happens_before.model import Walk
from campaigns.happens_before.operations import Geometry, Guard, Kernel, Operation, random_kernel
from tests.short_cases import few


@pytest.mark.parametrize("seed", few([3, 0, 1, 2, *range(4, 10)], 1))
def test_random_kernels_race_where_the_model_predicts_it(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        kernel = random_kernel(rng)
        assert complaint_about(kernel) == "", kernel


DATA = Operation(Guard(0, 0, 1), "store")
FLAG = Operation(Guard(0, 0, 1), "add", "release", word=1)
TAKEN = Operation(Guard(), "load", "acquire", word=1)
READ = Operation(Guard(), "load")


def test_the_model_has_what_is_synchronised_through_memory() -> None:
    geometry = Geometry(2, 32, 2)
    everyone = list(range(64))

    def walk(*operations: Operation) -> Walk:
        guards = [
            {each for each in everyone if one.guard.holds(*divmod(each, 32))} for one in operations
        ]
        return Walk(
            Kernel(geometry, operations),
            [(number, sorted(threads)) for number, threads in enumerate(guards)],
        )

    right = walk(DATA, FLAG, TAKEN, READ)
    assert right.races == right.open == []
    assert walk(DATA, TAKEN, READ).races
    assert walk(DATA, FLAG, READ).races


# What random kernels have shown, as small as it gets.
FOUND = {
    "a block in the middle did not take over what those around it did": Kernel(
        Geometry(3, 32, 3), (DATA, FLAG, Operation(Guard(2), "load", "acquire", word=1),
                             Operation(Guard(), "barrier"), READ),
    ),
    "a strong access behind the one that hands over": Kernel(
        Geometry(1, 2, 1),
        (Operation(Guard(None, 1, 2), "fence"), Operation(Guard(None, 1, 2), "store", "relaxed"),
         Operation(Guard(), "add", "acquire"), READ),
    ),
    "what others do behind their arrival, at a barrier of all threads of a block": Kernel(
        Geometry(1, 64, 1),
        (Operation(Guard(None, 32, 64), "arrive", word=2, count=64),
         Operation(Guard(None, 63, 64), "store"), Operation(Guard(None, 0, 32), "fence"),
         Operation(Guard(None, 0, 32), "wait", word=2, count=64),
         Operation(Guard(None, 0, 32), "load")),
    ),
    "a swap in vain hands nothing over": Kernel(
        Geometry(2, 2, 2),
        (Operation(Guard(None, 1, 2), "add", "release"), Operation(Guard(), "swap", "acquire"),
         Operation(Guard(None, 1, 2), "store", "release", "cta")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kernel", FOUND.values(), ids=FOUND)
def test_what_was_once_missed_is_found(kernel: Kernel) -> None:
    found, walk = judged(kernel)
    assert walk.races
    assert found
