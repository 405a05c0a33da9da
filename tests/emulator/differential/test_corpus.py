from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.differential.case import Bound, Case, Source
from tests.emulator.differential.comparison import compare
from tests.emulator.differential.corpus import sources
from tests.emulator.differential.execution import digest_of_inputs
from tests.emulator.differential.inputs import edges_of, make
from tests.emulator.differential.recording import DATA, Recording, Result, path_of

GROUPS = {
    "integer", "bit", "carry", "compare", "select", "f32", "f64", "half", "fp8", "conversion",
    "memory", "atomic", "barrier", "warp", "control", "cooperative", "special", "math",
    "transaction", "matrix", "async_copy",
}  # fmt: skip


def test_every_group_of_instructions_has_kernels() -> None:
    cases = [case for source in sources() for case in source.cases]
    assert {case.group for case in cases} == GROUPS
    assert len(cases) > 400
    for source in sources():
        assert len({case.name for case in source.cases}) == len(source.cases)


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.name)
def test_the_recording_is_of_this_corpus_and_these_inputs(source: Source) -> None:
    if not path_of(source).exists():
        pytest.skip("no GPU has recorded this source yet")
    recording = Recording.load(path_of(source))
    again = "record again: python -m tests.emulator.differential.record"
    assert recording.source == source.digest, again
    assert recording.inputs == {case.name: digest_of_inputs(case) for case in source.cases}, again
    assert set(recording.results) == {case.name for case in source.cases}


def test_recordings_stay_small() -> None:
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 1_500_000


def test_floats_of_all_classes_are_among_the_inputs() -> None:
    for kind, dtype in (("f16", "f2"), ("f32", "f4"), ("f64", "f8")):
        x = make(kind, 768, 7).view(dtype)
        tiny = np.finfo(dtype).tiny
        with np.errstate(invalid="ignore"):
            assert {-np.inf, np.inf, 0.0, 1.0, -1.0} <= set(x.tolist())
            assert np.isnan(x).sum() > 5
            assert ((x != 0) & (np.abs(x) < tiny)).sum() > 10
            assert np.signbit(x[x == 0]).any()
    assert {0x7F7FFFFF, 0x4F000000, 0x7FC00000, 0x7F800001} <= set(edges_of("f32"))


def test_integers_have_their_extremes() -> None:
    assert {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF} <= set(make("u32", 768, 3).tolist())


def _case(bound: Bound | None = None, rows: tuple[str, ...] = ()) -> Case:
    return Case("k", "f32", (), bound=bound, rows=rows)


def test_one_wrong_bit_is_found_in_a_large_result() -> None:
    want = make("u32", 4096, 1)
    got = want.copy()
    case = _case(rows=("first", "second"))
    kept = [Result.of(want, 2, False)]
    assert compare(case, kept, [got]).problems == ()
    got[2100] ^= 1
    assert compare(case, kept, [got]).problems == ("array 0 from element 2048 (second) differs",)


def test_bits_of_nans_count_where_results_are_exact() -> None:
    want = np.array([0x7FFFFFFF, 0x3F800000], np.uint32)
    got = np.array([0x7FC00000, 0x3F800000], np.uint32)
    assert len(compare(_case(), [Result.of(want, 1, False)], [got]).problems) == 1
    assert compare(_case(Bound(ulp=1)), [Result.of(want, 1, True)], [got]).problems == ()


def test_approximate_results_may_differ_by_the_bound_and_no_more() -> None:
    want = np.array([1.0, -0.0, np.inf, 3.0], np.float32)
    got = np.array([1.0, 1e-45, 3.4028235e38, 3.0], np.float32)
    kept = [Result.of(want.view("u4"), 1, True)]
    near = compare(_case(Bound(ulp=1)), kept, [got.view("u4")])
    assert near.problems == ()
    assert near.worst_ulp == 1
    got[3] = np.nextafter(np.nextafter(np.float32(3), np.float32(4)), np.float32(4))
    assert len(compare(_case(Bound(ulp=1)), kept, [got.view("u4")]).problems) == 1
    assert compare(_case(Bound(ulp=1, absolute=1e-6)), kept, [got.view("u4")]).problems == ()
    got[3] = np.nan
    assert len(compare(_case(Bound(ulp=9, absolute=9)), kept, [got.view("u4")]).problems) == 1


def test_what_ptx_leaves_open_is_not_compared_and_is_but_one_row() -> None:
    cases = [case for source in sources() for case in source.cases]
    assert [row for case in cases for row in case.open_rows] == ["-x * y + z"]
    want = make("u32", 1024, 1)
    got = want.copy()
    got[[3, 600]] ^= 1
    case = Case("k", "f32", (), rows=("first", "second"), open_rows=("second",))
    problems = compare(case, [Result.of(want, 2, False)], [got]).problems
    assert [problem.split(":")[0] for problem in problems] == [
        "array 0 from element 0 (first) differs"
    ]
