"""Programs: every legal ordered choice of acts in a scene, run and compared with the model."""

from __future__ import annotations

import gc
import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from cudadrv.errors import CudadrvError
from tests.contract.order.lab import POOL_SLACK, Lab
from tests.contract.order.late_kernels import count_from

from .acts import ACTS, Act
from .world import CLOSED_WITH, Scene, World, given, refused

_SHOWN: Final = 20


def _write_late(w: World) -> None:
    value = w.value()
    given(w.kernels).write(w.stream("A"), w.arrays["x"], value)
    w.values["x"][:] = count_from(value, w.n)
    given(w.kernels).spin(w.stream("B"))
    for event in w.events.values():
        event.record(w.stream("A"))


def _read_late(w: World) -> None:
    out = w.out()
    given(w.kernels).read(w.stream("B"), out, w.arrays["x"])
    w.saw("x read at the beginning", out, w.values["x"])


def _replay_late(w: World) -> None:
    w.replay("B")
    out = w.out()
    given(w.kernels).read(w.stream("C"), out, w.arrays["replayed"])
    w.saw("what the graph read at the beginning", out, w.values["replayed"])


WRITTEN: Final = Scene("x is being written on A, B is busy", 1024, _write_late)
READ: Final = Scene("x is being read on B", 16384, _read_late)
REPLAYED: Final = Scene("a graph of x runs on B", 1024, _replay_late, frozenset({"exec"}))
SCENES: Final = (WRITTEN, READ, REPLAYED)


@dataclass(frozen=True)
class Program:
    """A scene and acts; `closed` says of each act whether it must raise `ClosedError`."""

    scene: Scene
    acts: tuple[Act, ...]
    closed: tuple[bool, ...]

    def __str__(self) -> str:
        acts = "; ".join(
            f"{act.text}{' (closed)' if closed else ''}"
            for act, closed in zip(self.acts, self.closed, strict=True)
        )
        return f"{self.scene.text}: {acts}"


def legal(scene: Scene, acts: Sequence[Act], devices: int) -> Program | None:
    """The program of these acts, unless one of them uses what was dropped or is not there."""
    dropped: set[str] = set()
    closed: set[str] = set()
    refused: list[bool] = []
    names = scene.names.union(*(act.names for act in acts))
    if devices < 2 and names & {"far", "D"}:
        return None
    if any(_pointless(act, scene, acts) for act in acts):
        return None
    for act in acts:
        if (act.uses | {act.closes, act.drops}) & dropped:
            return None
        if act.closes:
            closed |= {act.closes, *CLOSED_WITH.get(act.closes, ())}
        if act.drops:
            dropped.add(act.drops)
        refused.append(bool(act.uses & closed))
    return Program(scene, tuple(acts), tuple(refused))


def _pointless(end: Act, scene: Scene, acts: Sequence[Act]) -> bool:
    """Whether an act ends what nothing else of the program has to do with."""
    what = end.closes or end.drops
    if not what:
        return False
    touched = {"x", "A", "B", "context"}.union(
        scene.names, *(other.names for other in acts if other is not end)
    )
    if touched & {"image", "surface"}:
        touched |= {"image", "surface"}
    if touched & {"graph", "exec"}:
        touched |= {"graph", "exec"}
    return what not in touched and what not in ("module", "D")


def programs(
    scene: Scene, length: int, devices: int, *, kind: str | None = None
) -> Iterator[Program]:
    """All legal programs of so many acts, or those whose first act is of a kind."""
    first = [act for act in ACTS if kind in (None, act.kind)]
    for acts in itertools.product(first, *(ACTS for _ in range(length - 1))):
        program = legal(scene, acts, devices)
        if program is not None:
            yield program


def sampled(
    scene: Scene, length: int, devices: int, count: int, seed: int, *, kind: str | None = None
) -> Iterator[Program]:
    """So many legal programs, chosen by the seed."""
    chance = random.Random(f"{seed} {scene.text} {length} {kind}")
    first = [act for act in ACTS if kind in (None, act.kind)]
    while count:
        acts = [chance.choice(first), *chance.choices(ACTS, k=length - 1)]
        program = legal(scene, acts, devices)
        if program is not None:
            count -= 1
            yield program


@dataclass
class Report:
    """What was run, and what failed, in words.

    Attributes:
        count: programs run.
        failures: a text for each that failed.
        grown: the programs after which a pool had more in use, and how many bytes.
    """

    count: int = 0
    failures: list[str] = field(default_factory=list)
    grown: list[tuple[str, int]] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{len(self.failures)} of {self.count} programs failed"]
        lines += self.failures[:_SHOWN]
        if len(self.failures) > _SHOWN:
            lines.append(f"... and {len(self.failures) - _SHOWN} more")
        return "\n".join(lines)


def run(lab: Lab, chosen: Iterable[Program]) -> Report:
    """Run programs one after the other; at the end all memory must be back."""
    report = Report()
    held = max(lab.leftovers())
    for program in chosen:
        report.count += 1
        wrong = run_one(lab, program)
        try:
            lab.settle()
            wrong += lab.unraisable.take()
            now = max(lab.leftovers())
        except CudadrvError as error:
            report.failures.append(f"{program}\n    {_words(wrong)}; the device is lost: {error}")
            if not lab.renew():
                return report
            lab.unraisable.take()
            held = 0
            continue
        if now > held:
            report.grown.append((str(program), now - held))
            if lab.is_emulated:
                wrong.append(f"{now - held} bytes are not given back")
        held = now
        if wrong:
            report.failures.append(f"{program}\n    {_words(wrong)}")
            gc.freeze()  # what it left behind would slow all later collections
    if not lab.is_emulated and held > POOL_SLACK:
        report.failures.append(
            f"{held} bytes are not given back; more were in use after: "
            + "; ".join(f"{text} ({nbytes})" for text, nbytes in report.grown[:_SHOWN])
        )
    lab.forgive()
    return report


def run_one(lab: Lab, program: Program) -> list[str]:
    """Run a program, and say in words what was wrong."""
    wrong: list[str] = []
    names = program.scene.names.union(*(act.names for act in program.acts))
    try:
        world = World(lab, program.scene, names)
        for act, closed in zip(program.acts, program.closed, strict=True):
            if not closed:
                act.run(world)
            elif text := refused(act.run, world):
                wrong.append(f"{act.text}: {text}")
        wrong += world.differences()
    except Exception as error:  # whatever it is, it is a finding
        wrong.append(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    return wrong


def _words(wrong: list[str]) -> str:
    return "; ".join(wrong)
