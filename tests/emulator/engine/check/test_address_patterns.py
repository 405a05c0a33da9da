"""Accesses with the same differences between their addresses have one array of them."""

from __future__ import annotations

import numpy as np

from ptx.emulate.check.lazy_shadow_memory import AddressPatterns
from ptx.emulate.model.addresses import Addresses, addresses_in

COUNT = 1024
ROWS = np.arange(COUNT) // 16 * 4096 + np.arange(COUNT) % 16 * 4


def _every(addresses: Addresses) -> list[int]:
    found: list[int] = addresses.every(COUNT).tolist()
    return found


def test_addresses_that_differ_by_a_constant_have_one_array() -> None:
    patterns = AddressPatterns()
    one = patterns.share(addresses_in(ROWS + 512))
    other = patterns.share(addresses_in(ROWS + 99).moved(1 << 40))
    assert one.varying is other.varying
    assert _every(one) == (ROWS + 512).tolist()
    assert _every(other) == (ROWS + 99 + (1 << 40)).tolist()


def test_addresses_with_a_like_beginning_and_end_are_distinguished() -> None:
    patterns = AddressPatterns()
    changed = ROWS.copy()
    changed[[500, 501]] = changed[[501, 500]]
    one, other = patterns.share(addresses_in(ROWS)), patterns.share(addresses_in(changed))
    assert one.varying is not other.varying
    assert _every(other) == changed.tolist()


def test_addresses_too_far_apart_for_32_bits_stay_as_they_are() -> None:
    far = ROWS.copy()
    far[7] += 1 << 33
    given = addresses_in(far)
    assert AddressPatterns().share(given) is given
    assert given.varying is not None
    assert given.varying.pattern is None  # a reference to itself would outlive the launch


def test_values_that_are_apart_are_so_in_any_order() -> None:
    shuffled = addresses_in(np.random.default_rng(0).permutation(ROWS)).varying
    assert shuffled is not None
    assert shuffled.is_apart(4, None)
    assert not shuffled.is_apart(8, None)


def test_stretches_are_given_where_they_are_much_fewer_than_the_values() -> None:
    shuffled = addresses_in(np.random.default_rng(0).permutation(ROWS)).varying
    assert shuffled is not None
    found = shuffled.stretches(4)
    assert found is not None
    starts, ends = found
    assert starts.tolist() == (np.arange(COUNT // 16) * 4096).tolist()
    assert (ends - starts).tolist() == [64] * (COUNT // 16)
    assert shuffled.stretches(2) is None
