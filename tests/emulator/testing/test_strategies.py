"""Strategies for kernels: what they draw, and what they shrink to."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import (
    HealthCheck,
    Phase,
    find,
    given,
    settings,
    strategies as hypothesis_strategies,
)

import cudadrv
from cudadrv import LaunchConfig, emulator
from cudadrv.errors import ArgumentTypeError, ArgumentValueError, RuntimeDependencyUnavailable
from cudadrv.testing import strategies as st
from cudadrv.testing.strategies import DrawnArray, Size
from ptx.signature import KernelSignature

T = TypeVar("T")
QUICK = settings(
    max_examples=60,
    database=None,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)
FEW = settings(QUICK, max_examples=10)


def smallest(strategy: hypothesis_strategies.SearchStrategy[T], fails: Callable[[T], bool]) -> T:
    return find(strategy, fails, settings=settings(QUICK, max_examples=500))


@pytest.mark.parametrize("threshold", [1, 32, 50, 257])
def test_a_size_shrinks_to_the_smallest_that_fails(threshold: int) -> None:
    assert smallest(st.sizes(1, 300).strategy, lambda n: n >= threshold) == threshold


def test_one_size_is_one_number_in_an_example_and_its_arithmetic_follows() -> None:
    n, m = st.sizes(1, 9), st.sizes(1, 9)
    sizes = (n, n, n + 1, 2 * n, n * m, n - m, n // 2, m)
    drawn = hypothesis_strategies.tuples(*(each.strategy for each in sizes))

    @FEW
    @given(drawn)
    def check(numbers: tuple[int, ...]) -> None:
        first, again, more, twice, product, apart, half, other = numbers
        assert (again, more, twice, half) == (first, first + 1, 2 * first, first // 2)
        assert (product, apart) == (first * other, first - other)

    check()


def test_an_array_has_its_shape_and_exact_values() -> None:
    n = st.sizes(0, 70)
    pair = hypothesis_strategies.tuples(n.strategy, st.arrays(np.float32, (n, 2)).strategy)

    @QUICK
    @given(pair)
    def check(drawn: tuple[int, DrawnArray]) -> None:
        count, array = drawn
        assert array.contents.shape == (count, 2)
        assert array.contents.dtype == np.float32
        assert np.all(np.isin(array.contents, np.arange(-8, 9)))

    check()


@pytest.mark.slow
@pytest.mark.parametrize("special", [math.nan, math.inf, -0.0, 5e-324])
def test_special_values_are_drawn(special: float) -> None:
    wanted = np.float64(special).tobytes()
    array = smallest(
        st.arrays(np.float64, 3, "special").strategy,
        lambda each: any(value.tobytes() == wanted for value in each.contents),
    )
    assert sorted(np.float64(value).tobytes() == wanted for value in array.contents)[-1]


@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", "f2", "f8", "c8", "?"])
@pytest.mark.parametrize("values", ["exact", "finite", "special"])
def test_every_dtype_can_be_drawn(dtype: str, values: st.ValueKind) -> None:
    @FEW
    @given(st.arrays(dtype, 5, values).strategy)
    def check(array: DrawnArray) -> None:
        assert array.contents.dtype == np.dtype(dtype)
        if values != "special":
            assert np.all(np.isfinite(array.contents))

    check()


def test_a_range_holds_all_values() -> None:
    @QUICK
    @given(st.arrays(np.float32, 40, (-1.5, 2.0)).strategy)
    def check(array: DrawnArray) -> None:
        assert all(-1.5 <= float(each) <= 2.0 for each in array.contents.tolist())

    check()


@pytest.mark.slow
def test_an_array_shrinks_to_zeros_with_the_one_value_that_fails() -> None:
    array = smallest(
        st.arrays(np.int32, 20).strategy,
        lambda each: sum(value > 3 for value in each.contents.tolist()) == 1,
    )
    assert sorted(array.contents.tolist()) == [0] * 19 + [4]


def test_an_unwritten_array_has_the_bytes_of_fresh_memory() -> None:
    @FEW
    @given(st.unwritten(np.uint16, 3).strategy)
    def check(array: DrawnArray) -> None:
        assert array.contents.tolist() == [0xCDCD] * 3
        assert not array.is_written

    check()


@pytest.mark.slow
def test_a_launch_covers_its_threads_and_fits_the_kernel() -> None:
    limited = KernelSignature("k", (), 0, 0, 64, None)
    n = st.sizes(1, 300)
    drawn = hypothesis_strategies.tuples(n.strategy, st.launch_configs(n).strategy(limited))

    @QUICK
    @given(drawn)
    def check(both: tuple[int, LaunchConfig]) -> None:
        count, config = both
        assert config.blocks * config.threads >= count
        assert config.threads <= 64

    check()


def test_a_required_block_is_used() -> None:
    required = KernelSignature("k", (), 0, 0, None, (48, 2, 1))
    config = smallest(st.launch_configs((90, 4)).strategy(required), lambda _: True)
    assert (config.grid, config.block) == ((2, 2, 1), (48, 2, 1))


def test_a_launch_shrinks_to_the_smallest_block() -> None:
    config = smallest(st.launch_configs(100).strategy(), lambda each: each.threads > 20)
    assert (config.grid, config.block) == ((4, 1, 1), (32, 1, 1))


def test_the_alternatives_of_a_launch_cover_its_threads() -> None:
    few, *_, many = smallest(st.launch_configs(100).alternatives(), lambda _: True)
    assert (few.blocks, few.threads, many.blocks, many.threads) == (100, 1, 1, 1024)


def test_shared_bytes_may_follow_the_block() -> None:
    strategy = st.launch_configs(blocks=3, block=[8, 4], shared_bytes=lambda block: 4 * block)
    config = smallest(strategy.strategy(), lambda _: True)
    assert (config.grid, config.block, config.shared_bytes) == ((3, 1, 1), (4, 1, 1), 16)


def test_a_grid_stride_loop_runs_with_fewer_blocks() -> None:
    looping = st.launch_configs(1000, block=10, loops=True).strategy()
    assert smallest(looping, lambda _: True).blocks == 1
    assert smallest(looping, lambda each: each.blocks > 50).blocks == 51


def test_schedules_shrink_to_immediate() -> None:
    assert str(smallest(st.schedules(), lambda _: True)) == "immediate"
    assert smallest(st.schedules(), lambda each: each.name == "random").seed == 0


@pytest.mark.parametrize("strided", [False, True])
def test_device_arrays_and_streams_serve_tests_of_ones_own(strided: bool) -> None:
    with emulator.session():
        context = cudadrv.cuda_context_for(0)
        stream = smallest(st.streams(context), lambda each: each is not context.default_stream)
        arrays = st.device_arrays(stream, np.int32, (2, 5), strided=strided)
        array = smallest(arrays, lambda each: each.is_contiguous is not strided)
        assert array.shape == (2, 5)
        assert stream.to_host(array).tolist() == [[0] * 5] * 2


def test_without_hypothesis_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    spec = spec_from_file_location("cudadrv.testing.strategies_again", st.__file__)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(RuntimeDependencyUnavailable, match=r"pip install \"cudadrv\[testing\]\""):
        spec.loader.exec_module(module_from_spec(spec))


WRONG: Any = st  # its functions without their types


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: st.sizes(3, 2), ArgumentValueError, "least <= most"),
        (lambda: WRONG.arrays("f4", "n"), ArgumentTypeError, "give integers, or sizes"),
        (lambda: WRONG.arrays("f4", 3, "odd"), ArgumentValueError, "values='odd' is unknown"),
        (lambda: st.numbers("f4", (2, 1)), ArgumentValueError, "low <= high"),
        (lambda: st.launch_configs(), ArgumentValueError, "give threads, or blocks"),
        (lambda: st.launch_configs(1, blocks=1), ArgumentValueError, "give threads, or blocks"),
        (lambda: WRONG.launch_configs(Size), ArgumentTypeError, "give integers, or sizes"),
    ],
)
def test_a_wrong_argument_is_named(
    make: Callable[[], object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        make()
