"""Clients with wrong sizes, counts, pointers and paths receive a code; the process goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.patience import SECONDS

from .process import Ended, environment

PROGRAM: Final = Path(__file__).with_name("wrong_sizes.py")
INVALID_VALUE, OUT_OF_MEMORY = "1", "2"
COUNTING: Final = (
    "cuPointerGetAttributes", "cuStreamBeginCaptureToGraph", "cuStreamUpdateCaptureDependencies",
    "cuStreamBatchMemOp_v2", "cuGraphAddEmptyNode", "cuGraphAddDependencies", "cuLinkCreate_v2",
    "cuGraphRemoveDependencies", "cuModuleLoadDataEx", "cuLinkAddData_v2", "cuLaunchKernelEx",
    "cuParamSetv", "cuGraphGetNodes", "cuGraphGetRootNodes", "cuGraphNodeGetDependencies",
    "cuGraphNodeGetDependentNodes", "cuGraphGetEdges",
)  # fmt: skip


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    done = subprocess.run(
        [sys.executable, "-m", "cudadrv", "emulate", "python", str(PROGRAM)],
        env=environment(),
        cwd=tmp_path_factory.mktemp("client"),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def lines(ended: Ended, *starts: str) -> list[list[str]]:
    """The words of the lines that begin with one of some words."""
    found = (line.split() for line in ended.out.splitlines())
    return [words for words in found if words[0].startswith(starts)]


def test_each_size_that_cannot_be_is_an_invalid_value(ended: Ended) -> None:
    sizes = lines(ended, "cuMem", "cuArray", "cuGraphAddMemsetNode")
    others = [words for words in sizes if "Alloc" not in words[0] and words[-1] != INVALID_VALUE]
    allocating = {words[-1] for words in sizes if "Alloc" in words[0]}
    assert (ended.status, others, allocating) == (0, [], {OUT_OF_MEMORY})
    assert len(sizes) > 200


def test_each_count_beyond_the_callers_memory_is_an_invalid_value(ended: Ended) -> None:
    counts = [words for words in lines(ended, *COUNTING) if len(words) > 2]
    assert [words for words in counts if words[-1] != INVALID_VALUE] == []
    assert {words[0] for words in counts} == set(COUNTING)


def test_a_pointer_to_a_parameter_that_cannot_be_read_is_named(ended: Ended) -> None:
    assert lines(ended, "parameter") == [["parameter", *"1111"]] * 16
    assert [words[-1] for words in lines(ended, "array", "extra")] == [INVALID_VALUE] * 10
    for position, name in enumerate("xnac"):
        reason = f"the pointer to parameter {position} ({name}) cannot be read"
        assert f"kernel k takes 4 parameters; {reason}\n" in ended.err
        assert f"kernel k: the pointer to parameter {name} is null\n" in ended.err
    assert [words[-1] for words in lines(ended, "none", "right")] == ["0", "0"]


def test_each_page_of_the_callers_memory_is_checked_before_a_copy(ended: Ended) -> None:
    read_only, hidden, right = "1111100010", "1111111110", "0000000000"
    assert ["".join(words[1:]) for words in lines(ended, "pages")] == [read_only, hidden, right] * 3


def test_a_node_without_blocks_or_threads_is_an_invalid_value(ended: Ended) -> None:
    # The codes are those of driver 580, for the first extents of grid and block.
    assert lines(ended, "empty") == [["empty", *"110101"]] * 12


def test_memory_that_is_not_mapped_any_more_is_an_invalid_value(ended: Ended) -> None:
    assert lines(ended, "fabric") == [["fabric", INVALID_VALUE]] * 2
    found = [words[-1] for words in lines(ended, "released")]
    assert found == [INVALID_VALUE] * 2


def test_paths_are_bytes(ended: Ended) -> None:
    assert ended.out.splitlines()[-7:] == [
        "cuModuleLoad 0", "cuLibraryLoadFromFile 0", "cuLinkAddFile 0", "cuLogsDumpToFile 0",
        "absent 301", r"[b'caf\xe9.ptx', b'log-\xe9.txt']", "cuModuleGetFunction 500",
    ]  # fmt: skip
    assert "Traceback" not in ended.err
