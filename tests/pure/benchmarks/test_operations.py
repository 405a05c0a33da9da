"""The list of measured operations: it misses no public callable."""

from __future__ import annotations

from benchmarks import groups
from benchmarks.groups import operations
from tests.documents.reference import named, names_of_cudadrv


def measured() -> list[str]:
    return [name for operation in operations.OPERATIONS for name in operation.covers.split()]


def measured_elsewhere() -> dict[str, str]:
    """The group of each callable."""
    lines = [line.split() for line in operations.ELSEWHERE.strip().splitlines()]
    return {name: group for group, *names in lines for name in names}


def excused() -> dict[str, str]:
    """The reason of each callable."""
    reasons: dict[str, str] = {}
    reason = ""
    for line in operations.EXCUSED.strip("\n").splitlines():
        if line.startswith(" " * 8):
            reasons |= dict.fromkeys(line.split(), reason)
        else:
            reason = line.strip()
    return reasons


def callables() -> set[str]:
    """The public methods of the classes, and the class whose objects a program makes many of."""
    names = {"Event"}
    full_names = {name.rpartition(".")[2]: name for name in names_of_cudadrv()}
    for name in operations.CLASSES:
        cls = named(full_names[name])
        names |= {
            f"{name}.{attribute}"
            for attribute in dir(cls)
            if not attribute.startswith("_") and callable(getattr(cls, attribute))
        }
    return names


def test_each_public_callable_is_measured_or_excused_with_a_reason() -> None:
    ours, others, reasons = measured(), measured_elsewhere(), excused()
    others_than_methods = {
        "DeviceArray", "Kernel.launch", "Launcher", "Launcher.prepare", "ptx.compile",
    }  # fmt: skip
    assert callables() - {*ours, *others, *reasons} == set()
    assert {*ours, *others, *reasons} - callables() == others_than_methods
    assert {*ours} & {*others} == {*ours} & {*reasons} == {*others} & {*reasons} == set()
    assert set(others.values()) <= set(groups.NAMES)
    assert min(len(reason.split()) for reason in reasons.values()) >= 4
