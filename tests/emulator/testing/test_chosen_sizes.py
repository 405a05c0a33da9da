"""Sizes that a kernel may have left out: shapes that are not square, and constants together."""

from __future__ import annotations

from collections.abc import Callable

from cudadrv.testing import strategies as st
from cudadrv.testing.verify.chosen_sizes import chosen_sizes

MOST = 40
# The constants that the kernel compares with, and which sizes it gets wrong.
WRONG: dict[str, tuple[tuple[int, ...], Callable[[int, int, int], bool]]] = {
    "one long": ((), lambda n, m, k: n > 30 and m == k == 1),
    "one of length one": ((), lambda n, m, k: k == 1 and min(n, m) > 35),
    "wide": ((), lambda n, m, k: m >= 4 * n and k > 2),
    "ordered, near the largest": ((), lambda n, m, k: n > m > k > 25),
    "ordered otherwise": ((), lambda n, m, k: k > n > m > 25),
    "three constants": ((13, 29, 31), lambda n, m, k: (n, m, k) == (13, 29, 31)),
    "transposed constants": ((12, 35), lambda n, m, k: (k, n) == (12, 35)),
    "a product and a constant": ((1369, 37), lambda n, m, k: n * m == 1369 and k == 37),
    "another product": ((600, 7), lambda n, m, k: n * k == 600 and m == 7),
    "a product of three": ((6000,), lambda n, m, k: n * m * k == 6000),
    "a sum and a constant": ((61, 7), lambda n, m, k: n + m == 61 and k == 7),
    "all the largest": ((), lambda n, m, k: n == m == k == MOST),
    "all equal": ((), lambda n, m, k: n == m == k == 31),
}


def test_some_chosen_sizes_have_each_relation() -> None:
    roots = [st.sizes(1, MOST) for _ in range(3)]
    bounds = dict.fromkeys(roots, (1, MOST))
    missed = {}
    for name, (constants, is_wrong) in WRONG.items():
        chosen = list(chosen_sizes(bounds, constants))
        numbers = [[sizes[root] for root in roots] for sizes in chosen if len(sizes) == len(roots)]
        assert all(1 <= number <= MOST for sizes in chosen for number in sizes.values())
        if not any(is_wrong(*each) for each in numbers):
            missed[name] = len(chosen)
    assert missed == {}


def test_numbers_as_people_write_them_are_chosen_from_a_long_range() -> None:
    root = st.sizes(1, 5000)
    chosen = {sizes[root] for sizes in chosen_sizes({root: (1, 5000)}, ())}
    assert {10, 100, 200, 1000, 2000, 3000, 5000} <= chosen


def test_each_number_of_a_short_range_is_chosen_for_each_size_alone() -> None:
    roots = [st.sizes(3, 90), st.sizes(1, 20)]
    bounds = {roots[0]: (3, 90), roots[1]: (1, 20)}
    chosen = list(chosen_sizes(bounds, (17,)))
    alone = [(root, sizes[root]) for sizes in chosen for root in sizes if len(sizes) == 1]
    assert len(alone) == len(set(alone))
    assert {number for root, number in alone if root is roots[0]} == set(range(3, 91))
    assert {number for root, number in alone if root is roots[1]} == set(range(1, 21))
    first = next(sizes for sizes in chosen if len(sizes) == 1)
    assert set(first.values()) == {17}
