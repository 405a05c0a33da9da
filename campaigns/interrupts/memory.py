"""Operations on memory: copies, fills, allocations, and launches that use it."""

from __future__ import annotations

from typing import Final

import numpy as np

import cudadrv
from cudadrv import LaunchConfig

from .place import Act, Check, N, Place, numbers_of, whole

LARGE: Final = 16 << 20
HUGE: Final = 64 << 20


def upload(place: Place, count: int = N) -> tuple[Act, Check]:
    stream, source = place.stream, numbers_of(place, count)
    target = stream.zeros(count, np.int32)

    def check(done: bool) -> None:
        whole(stream.to_host(target), source, *(() if done else (0,)))

    return lambda: stream.copy(target, source), check


def download(place: Place, count: int = N) -> tuple[Act, Check]:
    stream, numbers = place.stream, numbers_of(place, count)
    source, target = stream.to_device(numbers), np.zeros(count, np.int32)
    stream.synchronize()

    def check(done: bool) -> None:
        then = target.copy()
        whole(target, numbers, *(() if done else (0,)))
        stream.fill(source, -1)
        stream.synchronize()
        assert np.array_equal(then, target), "the array was written after the interrupt"

    return lambda: stream.to_host(source, target), check


def large_upload(place: Place) -> tuple[Act, Check]:
    return upload(place, LARGE // 4)


def large_download(place: Place) -> tuple[Act, Check]:
    return download(place, LARGE // 4)


def pinned_copies(place: Place) -> tuple[Act, Check]:
    stream, numbers = place.stream, numbers_of(place)
    array = stream.zeros(N, np.int32)

    def act() -> None:
        source, target = cudadrv.pinned_empty(N, np.int32), cudadrv.pinned_empty(N, np.int32)
        source[...] = numbers
        stream.copy(array, source)
        stream.to_host(array, target)
        assert np.array_equal(target, numbers)

    def check(done: bool) -> None:
        whole(stream.to_host(array), numbers, *(() if done else (0,)))

    return act, check


def managed(place: Place) -> tuple[Act, Check]:
    def act() -> None:
        array = cudadrv.managed_empty(N, np.int32)
        array[...] = 1

    return act, lambda done: None


def fill(place: Place) -> tuple[Act, Check]:
    stream = place.stream
    array = stream.zeros(N, np.int32)

    def check(done: bool) -> None:
        whole(stream.to_host(array), place.serial, *(() if done else (0,)))

    return lambda: stream.fill(array, place.serial), check


def allocate(place: Place) -> tuple[Act, Check]:
    def act() -> None:
        buffer = place.stream.alloc(1000)
        array = place.stream.zeros(N, np.int32)
        buffer.close()
        del array

    return act, lambda done: None


def other_stream(place: Place) -> tuple[Act, Check]:
    """A use on a second stream, which waits for the first."""
    array = place.stream.to_device(numbers_of(place))

    def act() -> None:
        place.bump.launch(place.other, LaunchConfig(1, 1), array)
        place.bump.launch(place.stream, LaunchConfig(1, 1), array)

    def check(done: bool) -> None:
        found = int(place.stream.to_host(array)[0]) - place.serial
        assert found == 2 if done else found in (0, 1, 2)

    return act, check


def unordered(place: Place) -> tuple[Act, Check]:
    array = place.stream.zeros(N, np.int32)

    def act() -> None:
        with place.stream.unordered():
            place.stream.fill(array, 1)

    def check(done: bool) -> None:
        assert not place.stream._handle.unordered

    return act, check


def peer_copy(place: Place) -> tuple[Act, Check]:
    numbers = numbers_of(place)
    source, target = place.stream.to_device(numbers), place.far.zeros(N, np.int32)

    def check(done: bool) -> None:
        whole(place.far.to_host(target), numbers, *(() if done else (0,)))

    return lambda: place.far.copy(target, source), check


def launch(place: Place) -> tuple[Act, Check]:
    stream, config = place.stream, LaunchConfig(1, 1)
    array = stream.to_device(numbers_of(place))

    def act() -> None:
        for _ in range(3):
            place.bump.launch(stream, config, array)
        launcher = place.bump.bind(stream, config)
        launcher(array)
        launcher(array)

    def check(done: bool) -> None:
        found = int(stream.to_host(array)[0]) - place.serial
        assert found == 5 if done else 0 <= found <= 5

    return act, check


def host_function(place: Place) -> tuple[Act, Check]:
    called: list[int] = []

    def check(done: bool) -> None:
        place.stream.synchronize()
        assert called == [1] or not (done or called)

    return lambda: place.stream.call_on_host(called.append, 1), check


def huge_upload(place: Place) -> tuple[Act, Check]:
    return upload(place, HUGE // 4)


def huge_download(place: Place) -> tuple[Act, Check]:
    return download(place, HUGE // 4)
