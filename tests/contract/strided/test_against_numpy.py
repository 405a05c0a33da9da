"""Views, copies, fills and assignments of any strides do what NumPy's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import cudadrv
from cudadrv.errors import InvalidValueError

from .cases import AnyArray, arrays, steps, viewed

ROUNDS = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def same(found: AnyArray, expected: AnyArray) -> bool:
    expected = np.asarray(expected)
    return (
        found.shape == expected.shape
        and found.dtype == expected.dtype
        and found.tobytes() == expected.tobytes()
    )


@pytest.mark.slow
@ROUNDS
@given(st.data())
def test_a_view_has_numpys_elements_strides_and_bytes(
    stream: cudadrv.Stream, data: st.DataObject
) -> None:
    host = data.draw(arrays())
    taken = data.draw(steps(host))
    expected = np.asarray(viewed(host, taken))
    view = viewed(stream.to_device(host), taken)
    assert view.shape == expected.shape
    assert view.dtype == expected.dtype
    assert view.is_contiguous == expected.flags.c_contiguous
    if expected.size:
        moved = (n for n, extent in enumerate(expected.shape) if extent > 1)
        assert all(view.strides[n] == expected.strides[n] for n in moved)
    assert same(stream.to_host(view), expected)
    dense = stream.contiguous(view)
    assert dense.is_contiguous
    assert same(stream.to_host(dense), expected)


@pytest.mark.slow
@ROUNDS
@given(st.data())
def test_a_copy_into_a_view_writes_its_elements_and_no_others(
    stream: cudadrv.Stream, data: st.DataObject
) -> None:
    host = data.draw(arrays())
    taken = data.draw(steps(host))
    array = stream.to_device(host)
    part = np.asarray(viewed(host, taken))
    values = np.frombuffer(bytes(range(255, 255 - 200, -1)) * 400, np.uint8)[: part.nbytes]
    new = values.view(part.dtype).reshape(part.shape)
    if part.dtype.kind in "fc":
        new = np.asarray(np.arange(part.size) - 9).astype(part.dtype).reshape(part.shape)
    source = data.draw(st.sampled_from(("host", "device", "turned")))
    given_values: Any = new
    if source == "device":
        given_values = stream.to_device(new)
    elif source == "turned":
        given_values = stream.to_device(new, order="F")
    stream.copy(viewed(array, taken), given_values)
    viewed(host, taken)[...] = new
    assert same(stream.to_host(array), host)


@pytest.mark.slow
@ROUNDS
@given(st.data())
def test_assignment_broadcasts_as_numpy_does(stream: cudadrv.Stream, data: st.DataObject) -> None:
    host = data.draw(arrays(("u1", "<i2", "<f4", "<f8")))
    taken = data.draw(steps(host))
    target = viewed(host, taken)
    array = stream.to_device(host)
    shape = tuple(1 if data.draw(st.booleans()) else n for n in target.shape)
    shape = shape[data.draw(st.integers(0, len(shape))) :]
    values = (np.arange(int(np.prod(shape))) % 100).reshape(shape)
    kind = data.draw(st.sampled_from(("integers", "own", "device", "list", "one")))
    given_values: Any = values
    if kind == "own":
        given_values = values.astype(host.dtype)
    elif kind == "device":
        given_values = stream.to_device(values.astype(host.dtype))
    elif kind == "list" and values.size:
        given_values = values.tolist()
    elif kind == "one":
        given_values = 7
    viewed(array, taken)[...] = given_values
    target[...] = 7 if kind == "one" else values
    assert same(stream.to_host(array), host)


@pytest.mark.slow
@ROUNDS
@given(st.data())
def test_a_fill_sets_the_elements_of_a_view_and_no_others(
    stream: cudadrv.Stream, data: st.DataObject
) -> None:
    host = data.draw(arrays(("u1", "<i2", "<f4", "<f8", "<c16", "S3")))
    taken = data.draw(steps(host))
    target = viewed(host, taken)
    array = stream.to_device(host)
    value: Any = b"xy" if host.dtype.kind == "S" else data.draw(st.sampled_from((0, 1, 85)))
    stream.fill(viewed(array, taken), value)
    target[...] = value
    assert same(stream.to_host(array), host)


@pytest.mark.slow
@ROUNDS
@given(st.data())
def test_what_overlaps_is_copied_as_if_all_was_read_first(
    stream: cudadrv.Stream, data: st.DataObject
) -> None:
    host = np.arange(60, dtype="i4")
    array = stream.to_device(host)
    begins, steps_ = st.integers(0, 59), st.sampled_from((1, 2, 3, -1, -2))
    count = data.draw(st.integers(1, 20))
    parts = []
    for _ in range(2):
        begin, step = data.draw(begins), data.draw(steps_)
        end = begin + step * count
        if not -1 <= end <= 60:
            begin, step, end = 0, 1, count
        parts.append(slice(begin, None if end < 0 else end, step))
    array[parts[0]] = array[parts[1]]
    host[parts[0]] = host[parts[1]].copy()  # NumPy 2.4 gets some of these wrong without
    assert same(stream.to_host(array), host)


@pytest.mark.slow
@ROUNDS
@given(st.data())
def test_shapes_and_dtypes_of_views_are_numpys_where_nothing_is_copied(
    stream: cudadrv.Stream, data: st.DataObject
) -> None:
    host = data.draw(arrays(("<i2", "<f4", "<c16")))
    taken = data.draw(steps(host))
    part = np.asarray(viewed(host, taken))
    view = viewed(stream.to_device(host), taken)
    shape = data.draw(st.sampled_from(_shapes(part.size)))
    turned = np.reshape(part, shape)
    if np.shares_memory(turned, part) or not part.size:
        assert same(stream.to_host(view.reshape(shape)), turned)
    else:
        with pytest.raises(InvalidValueError, match="make it contiguous"):
            view.reshape(shape)
    dtype = data.draw(st.sampled_from(("u1", "<u2", "<u4", "<u8")))
    if not part.size:
        return
    try:
        seen = part.view(dtype)
    except ValueError:
        with pytest.raises(InvalidValueError, match="has no view as"):
            view.view(dtype)
    else:
        assert same(stream.to_host(view.view(dtype)), seen)


def _shapes(size: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [(size,), (1, size), (size, 1)]
    for n in range(2, min(size, 12)):
        if size % n == 0:
            found += [(n, size // n), (size // n, 1, n)]
    return found
