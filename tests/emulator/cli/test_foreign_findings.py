"""Findings and budgets that others wrote: each value in each wrong form gives a typed error."""

from __future__ import annotations

import copy
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pytest

from cudadrv.errors import ArgumentValueError
from cudadrv.launch import AccessWindow, LaunchAttributes
from cudadrv.testing import strategies as st
from cudadrv.testing.budget import KernelBudget, read_budgets, write_budgets
from cudadrv.testing.verify import (
    CannotVerifyError,
    Example,
    Finding,
    KernelCase,
    Tolerance,
    Verdict,
    VerifyOptions,
    saved_findings,
    verify,
)

from .in_process import Command, command

Json: TypeAlias = Any  # numbers, texts and further objects
Steps: TypeAlias = tuple[str | int, ...]

KERNEL: Final = """extern "C" __global__ void k(int n, float a, int b, float* x) {
    if (threadIdx.x <= n) x[threadIdx.x] = a * b;
}"""
HUGE: Final[tuple[Json, ...]] = (10**30, -(2**63), float("nan"), "x" * 100_000, [[]] * 1000)
FORMS: Final[tuple[Json, ...]] = (None, True, 7, "text", [7], {"a": 1})
# Where null, or a missing field, has a meaning.
NULLABLE: Final = {"file", "line", "ptx_line", "block", "thread", "cluster", "relative", "absolute",
                   "ulps"}  # fmt: skip
OPTIONAL: Final = {"repeat", "note", "repairs", "cluster", "relative", "absolute", "ulps",
                   "programmatic", "attributes", "priority", "preferred_cluster", "memory_domain",
                   "shared_carveout", "access_window", "hit_ratio", "hit", "miss",
                   "nvlink_centric", "cluster_size_mode", "shared_memory_mode", "measures",
                   "suspicions", "left_out", "unreached", "opened"}  # fmt: skip
# Objects whose names are the user's, with values of one form.
OPEN: Final = {"arguments", "expected", "opened", "tolerances"}


@pytest.fixture(scope="module")
def verdict() -> tuple[KernelCase, Verdict]:
    case = KernelCase(
        KERNEL,
        arguments={"n": st.sizes(1, 4), "a": np.float32(2), "b": 3, "x": st.arrays(np.float32, 4)},
        launch=st.launch_configs(
            blocks=1,
            block=8,
            cluster=1,
            attributes=LaunchAttributes(
                priority=0,
                memory_domain="remote",
                shared_carveout=50,
                access_window=AccessWindow(4096, 16, 0.5),
                nvlink_centric=True,
                cluster_size_mode="require_portable",
                shared_memory_mode="allow_non_portable",
            ),
        ),
        reference=lambda n, x: {"x": np.where(np.arange(4) < n, 6, x)},
        tolerance={"x": Tolerance(relative=0.5, absolute=1.5)},
    )
    options = VerifyOptions(("bounds",), examples=9, database=None)
    return case, verify(case, options, name="k")


@pytest.fixture(scope="module")
def saved(verdict: tuple[KernelCase, Verdict]) -> Json:
    (finding,) = (each for each in saved_findings(*verdict) if each.finding.check == "bounds")
    given: Json = json.loads(json.dumps(finding.to_json()))
    assert given["finding"]["repairs"], "the cells below need one"
    return given


def places(value: Json, steps: Steps = ()) -> Iterator[Steps]:
    """The steps to each value; of a list those to its first item."""
    if steps:
        yield steps
    if isinstance(value, dict):
        for name in value:
            yield from places(value[name], (*steps, name))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*steps, 0))


def changed(value: Json, steps: Steps, new: Json) -> Json:
    """A copy with another value at a place; without it for `...`."""
    result = copy.deepcopy(value)
    inner = result
    for step in steps[:-1]:
        inner = inner[step]
    if new is ...:
        del inner[steps[-1]]
    else:
        inner[steps[-1]] = new
    return result


def kind(value: Json) -> str:
    """The form of a value, in which all others are wrong."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, (int, float)):
        return "number"
    return type(value).__name__


def wrong_forms(value: Json, steps: Steps) -> Iterator[Json]:
    """What cannot stand at a place."""
    here: Json = value
    for step in steps:
        here = here[step]
    name = steps[-1]
    for form in (*FORMS, *HUGE):
        is_bool = isinstance(here, bool) and isinstance(form, bool)
        is_null = form is None and name in NULLABLE
        if kind(form) != kind(here) and not is_bool and not is_null and here is not None:
            yield form
    if isinstance(here, int) and not isinstance(here, bool) and name != "value":
        yield from (0.5, 10**30, -(10**30), 1e999)
    if isinstance(here, dict) and name not in OPEN:
        yield {**here, "further": 1} if "kind" not in here and "schedule" not in here else []
    if name not in OPTIONAL and (len(steps) < 2 or steps[-2] not in OPEN) and steps[-1] != 0:
        yield ...


def broken(value: Json) -> Iterator[tuple[Steps, Json]]:
    for steps in places(value):
        for form in wrong_forms(value, steps):
            if not (steps[-1] == 0 and form in ([], [7])):
                yield steps, form


TEXTS: Final = {
    "deep list": "[" * 100_000, "deep object": '{"a":' * 100_000, "nothing": "", "null": "null",
    "list": "[]", "text": '"x"', "number": "7", "many digits": "[" + "9" * 10_000 + "]",
    "half": '{"format": 1, "finding": {', "not UTF-8": "\udcff", "two": "{}{}",
    "deep but closed": "[" * 900 + "]" * 900,
}  # fmt: skip


@pytest.fixture
def replay(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    run = command(capsys)
    return lambda *words: run("replay", str(tmp_path / "f.json"), *words)


@pytest.mark.slow
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)], ids=["few", "all"])
def test_each_wrong_value_of_a_finding_has_status_3(
    replay: Command, tmp_path: Path, saved: Json, every: int
) -> None:
    file, wrong, cells = tmp_path / "f.json", [], 0
    for steps, form in itertools.islice(broken(saved), None, None, every):
        file.write_text(json.dumps(changed(saved, steps, form)))
        done, cells = replay(), cells + 1
        if done.returncode != 3 or "not a saved finding" not in done.stderr or done.stdout:
            wrong.append((steps, repr(form)[:30], done))
    assert (wrong[:5], len(wrong)) == ([], 0)
    assert cells > 500 // every


@pytest.mark.slow
def test_the_output_of_a_foreign_kernel_is_escaped(
    replay: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = KernelCase(
        """extern "C" __global__ void k(int* x) {
    printf("\\x1b[2J %s\\n", "\\xe2\\x80\\xae"); assert(!"\\x1b[3J" || x[0] == 7);
}""",
        arguments={"x": st.arrays(np.int32, 1)},
        launch=st.launch_configs(blocks=1, block=1),
        reference=lambda x: {"x": x},
    )
    found = verify(case, VerifyOptions(("bounds",), examples=1, database=None, explain=False))
    (finding, *_) = saved_findings(case, found)
    (tmp_path / "f.json").write_text(json.dumps(finding.to_json()))
    capsys.readouterr()  # of the verification
    done = replay()
    assert done.returncode == 1
    assert "\\x1b[3J" in done.stderr
    assert "\\x1b[2J \\u202e\n" in done.stdout
    assert not {"\x1b", "\u202e"} & set(done.stdout + done.stderr)


def test_text_that_is_no_finding_has_status_3(replay: Command, tmp_path: Path) -> None:
    wrong = []
    for name, text in TEXTS.items():
        (tmp_path / "f.json").write_bytes(text.encode("utf-8", "surrogateescape"))
        done = replay("--thread", "0:1")
        said = done.stderr
        if done.returncode != 3 or "cannot be replayed" not in said or len(said) > 999:
            wrong.append((name, done))
    assert wrong == []


@pytest.mark.slow
def test_what_is_no_file_has_status_3_and_is_not_waited_for(
    replay: Command, tmp_path: Path
) -> None:
    file = tmp_path / "f.json"
    os.mkfifo(file)
    assert (replay().returncode, "not an ordinary file" in replay().stderr) == (3, True)
    file.unlink()
    file.mkdir()
    assert replay().returncode == 3
    file.rmdir()
    file.symlink_to("/dev/zero")
    assert replay().returncode == 3
    file.unlink()
    file.touch()
    os.truncate(file, 1 << 40)
    assert (replay().returncode, "has more than" in replay().stderr) == (3, True)


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)], ids=["few", "all"])
def test_a_finding_of_right_form_that_does_not_fit_its_kernel_has_status_3(
    replay: Command, tmp_path: Path, saved: Json, every: int
) -> None:
    example, arguments = ("finding", "example"), ("finding", "example", "arguments")
    changes: dict[Steps, Json] = {
        ("kernel",): "other", ("ptx",): "", ("ptx",)[:1]: "no PTX",
        (*example, "launch", "grid"): [2**31 - 1, 65535, 65535],
        (*example, "schedule"): "never", (*example, "stream"): "third",
        (*arguments, "x", "dtype"): "O", (*arguments, "x", "dtype")[:5]: "<f4,<f4",
        (*arguments, "x", "shape"): [2**40, 2**40], (*arguments, "x", "data"): "AAAA",
        (*arguments, "x"): {"kind": "python", "value": 1}, (*arguments, "n", "value"): 2**40,
        ("expected", "x", "shape"): [2, 2], ("checks",): ["values"], ("expected",): {"y": {}},
        ("tolerances", "x"): {"relative": 1.0, "absolute": None, "ulps": 2},
    }  # fmt: skip
    wrong = []
    for steps, new in [*changes.items()][::every]:
        (tmp_path / "f.json").write_text(json.dumps(changed(saved, steps, new)))
        done = replay("--address", "x[0]")
        if done.returncode != 3:
            wrong.append((steps, new, done))
    assert wrong == []


@pytest.mark.slow
def test_the_other_readers_raise_the_same_type(verdict: tuple[KernelCase, Verdict]) -> None:
    given = json.loads(json.dumps(verdict[1].to_json()))
    finding = given["findings"][0]
    readers = (
        (Verdict.from_json, given),
        (Finding.from_json, finding),
        (Example.from_json, finding["example"]),
    )
    for read, value in readers:
        for steps, form in broken(value):
            with pytest.raises(CannotVerifyError, match=r"it is not a|has format"):
                read(changed(value, steps, form))


def test_each_wrong_value_of_a_file_of_budgets_raises_argument_value_error(tmp_path: Path) -> None:
    budget = KernelBudget("13.0.48", "0123", {"launches": 1}, {"k.cu:1": {"instructions": 7}})
    file = tmp_path / "budget.json"
    write_budgets(file, {"test_k.py::test": {"k": budget}})
    assert read_budgets(file) == {"test_k.py::test": {"k": budget}}
    given = json.loads(file.read_text())
    open_names = {"numbers", "lines", "tests", "test_k.py::test", "k.cu:1"}
    for steps, form in broken(given):
        of_open = {*map(str, steps[-2:])} & open_names
        if of_open and (form is ... or (isinstance(form, dict) and "further" in form)):
            continue
        if isinstance(form, dict) and form in ({}, {"a": 1}):
            continue
        file.write_text(json.dumps(changed(given, steps, form)))
        with pytest.raises(ArgumentValueError, match="is not a file of budgets|has format"):
            read_budgets(file)
    for text in TEXTS.values():
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(ArgumentValueError, match="is not a file of budgets"):
            read_budgets(file)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(ArgumentValueError, match="not an ordinary file"):
        read_budgets(file)
