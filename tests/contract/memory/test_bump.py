from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from cudadrv.errors import InvalidValueError, OutOfMemoryError
from cudadrv.memory.reuse.allocator import BumpArena
from tests.several_threads import all_at_once

BASE = 0x7F00_0000_0000


@pytest.mark.slow
@given(
    base=st.integers(1, 1 << 48),
    size=st.integers(0, 1 << 20),
    requests=st.lists(st.tuples(st.integers(0, 1 << 17), st.booleans()), max_size=60),
)
def test_addresses_only_move_up_and_never_overlap(
    base: int, size: int, requests: list[tuple[int, bool]]
) -> None:
    arena = BumpArena(base, size)
    end, given_back = base, 0
    for nbytes, gives_back in requests:
        fits = -(-end // 256) * 256 + nbytes <= base + size
        if not fits:
            with pytest.raises(OutOfMemoryError):
                arena.take(nbytes)
            continue
        address = arena.take(nbytes)
        assert address % 256 == 0
        assert address >= end
        assert address + nbytes <= base + size
        end = max(address + nbytes, address + 1)
        if gives_back:
            arena.give(address)
            given_back += 1
        assert arena.given == given_back
        assert arena.used_bytes + arena.remaining_bytes <= size
        assert end <= base + arena.used_bytes or arena.remaining_bytes == 0


def test_what_is_released_is_not_handed_out_again() -> None:
    arena = BumpArena(BASE, 1024)
    seen = []
    for _ in range(4):
        seen.append(arena.take(256))
        arena.give(seen[-1])
    assert seen == [BASE, BASE + 256, BASE + 512, BASE + 768]
    with pytest.raises(OutOfMemoryError, match="capture arena of 1024 bytes, which has 0 left"):
        arena.take(1)


def test_a_request_of_no_bytes_has_an_address_of_its_own() -> None:
    arena = BumpArena(BASE, 4096)
    assert len({arena.take(0), arena.take(0), arena.take(1)}) == 3


def test_an_address_that_was_not_handed_out_cannot_be_released() -> None:
    arena = BumpArena(BASE, 4096)
    arena.take(10)
    with pytest.raises(InvalidValueError, match="never handed out"):
        arena.give(BASE + 256)


def test_an_arena_recognises_its_addresses() -> None:
    arena = BumpArena(BASE, 512)
    assert BASE in arena
    assert BASE + 511 in arena
    assert BASE + 512 not in arena
    assert arena.overlaps(BumpArena(BASE + 511, 1))
    assert not arena.overlaps(BumpArena(BASE + 512, 1))
    with pytest.raises(InvalidValueError, match="both are positive"):
        BumpArena(0, 16)


def test_threads_share_it_without_sharing_an_address() -> None:
    arena = BumpArena(BASE, 32 * 100 * 256)
    taken: list[list[int]] = []

    def take() -> None:
        taken.append([arena.take(200) for _ in range(100)])

    all_at_once([take] * 32)
    addresses = [address for part in taken for address in part]
    assert sorted(addresses) == [BASE + 256 * number for number in range(3200)]
