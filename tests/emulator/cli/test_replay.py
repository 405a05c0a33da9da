"""The command that runs a saved finding again, and the history of an address or a thread."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudadrv.errors import ArgumentValueError
from cudadrv.testing import strategies as st
from cudadrv.testing.verify import (
    CannotVerifyError,
    KernelCase,
    SavedFinding,
    Verdict,
    VerifyOptions,
    saved_findings,
    verify,
)

from .in_process import Command, command

NEIGHBOUR = """extern "C" __global__ void shift(int* x, int* out) {
    __shared__ int tile[8];
    tile[threadIdx.x] = x[threadIdx.x];
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
    if (threadIdx.x == 0) atomicAdd(&x[1], 5);
}
"""


@pytest.fixture(scope="module")
def verdict() -> tuple[KernelCase, Verdict]:
    """A kernel with a race, and with wrong values of x[1]."""
    case = KernelCase(
        NEIGHBOUR,
        arguments={"x": np.arange(8, dtype=np.int32), "out": st.unwritten(np.int32, 8)},
        launch=st.launch_configs(blocks=1, block=8),
        reference=lambda x: {"out": x[[1, 0, 3, 2, 5, 4, 7, 6]]},
    ).named("shift")
    options = VerifyOptions(("race",), examples=2, database=None)
    return case, verify(case, options, name="shift.py::shift")


@pytest.fixture(scope="module")
def text(verdict: tuple[KernelCase, Verdict]) -> str:
    (saved,) = saved_findings(*verdict)
    return json.dumps(saved.to_json())


@pytest.fixture
def replay(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str) -> Command:
    """The command, with a saved race, or the same file after a change."""
    file = tmp_path / "shift-race.json"
    file.write_text(text)
    run = command(capsys)
    return lambda *words: run("replay", str(file), *words)


def changed(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:  # JSON
    file = tmp_path / "shift-race.json"
    given = json.loads(file.read_text())
    change(given)
    file.write_text(json.dumps(given))


def test_a_saved_finding_is_read_again(text: str, verdict: tuple[KernelCase, Verdict]) -> None:
    saved = SavedFinding.from_json(json.loads(text))
    assert json.dumps(saved.to_json()) == text
    assert saved.finding.to_json() == verdict[1].findings[0].to_json()
    assert saved.checks == ("race",)
    assert ".visible .entry shift" in saved.ptx


def test_a_replay_shows_the_same_fault_with_status_1(
    replay: Command, verdict: tuple[KernelCase, Verdict]
) -> None:
    done = replay()
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(verdict[1].findings[0].text)
    assert "values: x[1] is 6, the reference has 1" in done.stdout


def test_a_replay_names_an_instance_of_a_template_as_its_finding_does() -> None:
    case = KernelCase(
        "template <typename T> __global__ void k(T* x) { x[threadIdx.x + 1] = 1; }",
        arguments={"x": np.zeros(8, np.int32)},
        launch=st.launch_configs(blocks=1, block=8),
        reference=lambda: {"x": None},
        kernel="k<int>",
    )
    options = VerifyOptions(("bounds",), examples=1, database=None, explain=False)
    (saved,) = saved_findings(case, verify(case, options, name="k"))
    (fault,) = SavedFinding.from_json(json.loads(json.dumps(saved.to_json()))).faults()
    assert "kernel k<int>," in fault.text
    assert fault.text == saved.finding.text


def test_a_kernel_without_the_fault_has_status_0(replay: Command, tmp_path: Path) -> None:
    def mend(given: dict[str, Any]) -> None:  # JSON
        given["checks"] = []
        given["expected"] = {}

    changed(tmp_path, mend)
    done = replay()
    assert (done.returncode, done.stdout) == (0, "the kernel shows no fault any more\n")


def test_the_history_of_an_element_has_every_access_in_order(replay: Command) -> None:
    lines = replay("--address", "x[1]").stdout.partition("history of x[1]: ")[2].splitlines()
    assert lines[0] == "2 accesses"
    assert " read of 4 bytes at x + 4 by block (0, 0, 0), thread (1, 0, 0), shift.cu:3 " in lines[1]
    assert lines[1].endswith(": tile[threadIdx.x] = x[threadIdx.x];")
    assert " atomic of 4 bytes at x + 4 by block (0, 0, 0), thread (0, 0, 0), " in lines[2]


def test_the_history_of_shared_memory_is_that_of_one_block(text: str) -> None:
    saved = SavedFinding.from_json(json.loads(text))
    write, read = saved.history("shared+9")
    assert "write of 4 bytes at shared + 8 by block (0, 0, 0), thread (2, 0, 0)" in write
    assert "read of 4 bytes at shared + 8 by block (0, 0, 0), thread (3, 0, 0)" in read
    assert saved.history("shared+9", "0:3") == [read]
    assert saved.history("shared+9", "0:5") == []


def test_the_history_of_a_thread_has_all_its_accesses(text: str) -> None:
    saved = SavedFinding.from_json(json.loads(text))
    kinds = [line.partition(": ")[2].split(" by ")[0] for line in saved.history(thread="0,0,0:7")]
    assert kinds == [
        "read of 4 bytes at x + 28",
        "write of 4 bytes at shared + 28",
        "read of 4 bytes at shared + 24",
        "write of 4 bytes at out + 28",
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("--address", "y[1]"), ("--address", "x[-1]"), ("--address", "x[0, 1]"),
        ("--thread", "7"), ("--thread", "0:a"), ("--thread", "0:8"), ("--thread", "1:0"),
        ("--thread", "0:0,1"),
    ],
)  # fmt: skip
def test_a_wrong_address_or_thread_has_status_2(replay: Command, words: tuple[str, str]) -> None:
    done = replay(*words)
    assert (done.returncode, done.stdout) == (2, "")  # before the kernel runs
    assert words[1] in done.stderr


def test_a_thread_outside_of_the_launch_is_rejected_with_the_launch(text: str) -> None:
    saved = SavedFinding.from_json(json.loads(text))
    with pytest.raises(ArgumentValueError, match="1 block of 8 threads"):
        saved.history(thread="0:8")


def test_an_address_has_an_index_for_each_dimension(text: str) -> None:
    given = json.loads(text)
    given["finding"]["example"]["arguments"]["x"]["shape"] = [2, 4]
    given["expected"]["x"]["shape"] = [2, 4]
    saved = SavedFinding.from_json(given)
    assert saved.history("x[1, 3]") == saved.history("x[7]") == saved.history("x+28")[:1]
    with pytest.raises(ArgumentValueError, match=r"x has shape \(2, 4\)"):
        saved.history("x[1, 4]")


def test_an_address_may_be_shortly_after_an_array_but_not_far_from_it(replay: Command) -> None:
    assert "history of x[9]: 0 accesses\n" in replay("--address", "x[9]").stdout
    assert "history of x[3]: 1 access\n" in replay("--address", "x[3]").stdout
    done = replay("--address", "x+4000")
    assert done.returncode == 2
    assert "address 'x+4000': x has 32 bytes, 8 elements of int32" in done.stderr


def test_a_history_has_the_writes_of_an_asynchronous_copy() -> None:
    source = """#include <cuda_pipeline.h>
extern "C" __global__ void stage(const int* x, int* out) {
    __shared__ int tile[4];
    __pipeline_memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = tile[threadIdx.x];
}"""
    case = KernelCase(
        source,
        arguments={"x": np.arange(4, dtype=np.int32), "out": st.unwritten(np.int32, 4)},
        launch=st.launch_configs(blocks=1, block=4),
        reference=lambda x: {"out": x + 1},
    )
    found = verify(case, VerifyOptions((), examples=1, database=None, explain=False))
    (saved,) = saved_findings(case, found)
    lines = [line.partition(": ")[2].split(" by ")[0] for line in saved.history("shared+4")]
    assert lines == ["write of 4 bytes at shared + 4", "read of 4 bytes at shared + 4"]
    assert "read of 4 bytes at x + 4" in saved.history("x[1]")[0]


def test_a_wrong_file_has_status_3_and_a_missing_one_2(replay: Command, tmp_path: Path) -> None:
    changed(tmp_path, lambda given: given.update(format=9))
    done = replay()
    assert done.returncode == 3
    assert "has format 9: this cudadrv reads 1" in done.stderr
    changed(tmp_path, lambda given: given.update(format=1, finding={}))
    assert "not a saved finding" in replay().stderr
    (tmp_path / "shift-race.json").write_text('{"verdicts": []}')
    told = replay().stderr
    assert "it is not a saved finding: it has no 'format'\n  write one: python -m cudadrv" in told
    (tmp_path / "shift-race.json").write_text("import numpy")
    assert "it is not JSON" in replay().stderr
    (tmp_path / "shift-race.json").unlink()
    assert replay().returncode == 2


def test_an_unknown_index_of_shared_memory_is_rejected(text: str) -> None:
    saved = SavedFinding.from_json(json.loads(text))
    with pytest.raises(ArgumentValueError, match=r"shared\+BYTES"):
        saved.history("shared[2]")


def test_a_host_program_cannot_be_saved(verdict: tuple[KernelCase, Verdict]) -> None:
    case, found = verdict
    other = KernelCase(
        NEIGHBOUR,
        arguments=case.arguments,
        launch=case.launch,
        reference=lambda x: {},
        program=lambda stream, module, config, *arguments: None,
    )
    with pytest.raises(CannotVerifyError, match="program="):
        saved_findings(other, found)
