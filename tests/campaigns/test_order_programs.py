"""Generated programs give the values of the model, whatever is closed or dropped on the way.

The emulator takes a sample, a device all programs of two acts and a sample of those of three.
CUDADRV_ORDER_PROGRAMS=all takes all programs of two acts anywhere; those of three are for
``python -m campaigns order_programs --all``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from campaigns.order_programs.acts import ACTS, KINDS
from campaigns.order_programs.programs import (
    SCENES,
    WRITTEN,
    Program,
    legal,
    programs,
    run,
    sampled,
)
from campaigns.order_programs.world import Scene
from tests.contract.order.lab import Lab

pytestmark = pytest.mark.slow

ALL = os.environ.get("CUDADRV_ORDER_PROGRAMS") == "all"
SEED = 2025
FEW_CONTEXTS = 8


@pytest.fixture
def lab() -> Iterator[Lab]:
    """The devices, with late kernels; at the end everything must have been given back."""
    with Lab() as lab:
        yield lab


@pytest.mark.parametrize("scene", SCENES, ids=("written", "read", "replayed"))
@pytest.mark.parametrize("kind", KINDS)
def test_programs_of_two_acts_keep_order_and_lifetime(lab: Lab, scene: Scene, kind: str) -> None:
    report = run(lab, two_acts(lab, scene, kind))
    assert not report.failures, str(report)


@pytest.mark.parametrize("scene", SCENES, ids=("written", "read", "replayed"))
@pytest.mark.parametrize("kind", KINDS)
def test_programs_of_three_acts_keep_order_and_lifetime(lab: Lab, scene: Scene, kind: str) -> None:
    count = 12 if lab.is_emulated else 40
    report = run(lab, sampled(scene, 3, len(lab.contexts), count, SEED, kind=kind))
    assert not report.failures, str(report)


def two_acts(lab: Lab, scene: Scene, kind: str) -> Iterator[Program]:
    devices = len(lab.contexts)
    if ALL:
        return programs(scene, 2, devices, kind=kind)
    if lab.is_emulated:
        return sampled(scene, 2, devices, 30, SEED, kind=kind)
    if scene is SCENES[-1]:
        return sampled(scene, 2, devices, 150, SEED, kind=kind)
    return with_few_contexts(programs(scene, 2, devices, kind=kind), scene)


def with_few_contexts(chosen: Iterator[Program], scene: Scene) -> Iterator[Program]:
    """A device takes a tenth of a second for a context of one's own: only some programs get one."""
    seen = 0
    for program in chosen:
        if any("context" in act.names for act in program.acts):
            seen += 1
            if seen % (2 if scene is WRITTEN else FEW_CONTEXTS):
                continue
        yield program


def test_the_generator_distinguishes_legal_from_closed() -> None:
    by_text = {act.text: act for act in ACTS}
    assert len(by_text) == len(ACTS)

    def closed(*texts: str) -> tuple[bool, ...] | None:
        program = legal(WRITTEN, [by_text[text] for text in texts], 2)
        return None if program is None else program.closed

    assert closed("drop x", "read x on B") is None
    assert closed("close x", "read x on B", "new arrays on A") == (False, True, False)
    assert closed("close x", "read the view on B") == (False, True)
    assert closed("close A", "read x on B", "write x on A") == (False, False, True)
    assert closed("drop module", "launch the graph on A") == (False, False)
    assert closed("close context", "download x on B", "close x") == (False, True, False)
    assert closed("drop x", "call the prepared launch on B") == (False, False)
    assert legal(WRITTEN, [by_text["copy x to far between the devices on D"]], 1) is None
    for scene in SCENES:
        assert sum(1 for _ in programs(scene, 2, 2)) > 4000
