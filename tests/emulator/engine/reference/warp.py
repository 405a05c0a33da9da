"""Votes, shuffles, matches and reductions among the lanes of one warp."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from tests.emulator.engine.reference import floats, integers
from tests.emulator.engine.reference.state import Request

Lanes = dict[int, Request]


def groups(lanes: Lanes) -> Iterator[Lanes]:
    """The lanes that wait for each other and are all there."""
    for mask in sorted({request.mask for request in lanes.values() if request.kind != "bar"}):
        group = {
            lane: request
            for lane, request in lanes.items()
            if request.kind != "bar" and request.mask == mask
        }
        if sum(1 << lane for lane in group) == mask:
            yield group


def warp_answers(lanes: Lanes) -> dict[int, int]:
    """What an instruction gives each lane of a group; a second result is bit 32."""
    kind, words = next((request.kind, request.words) for request in lanes.values())
    values = {lane: request.values for lane, request in lanes.items()}
    mask = sum(1 << lane for lane in lanes)
    if kind == "bar.warp":
        return dict.fromkeys(lanes, 0)
    if kind == "elect":
        leader = min(lanes)
        return {lane: leader | int(lane == leader) << 32 for lane in lanes}
    if kind == "vote":
        return dict.fromkeys(lanes, _vote(words, values))
    if kind == "redux":
        return dict.fromkeys(lanes, _reduced(words, [value for (value,) in values.values()]))
    if kind == "match":
        bits = integers.bits_of(words[-1])
        return _match(words, {k: integers.wrap(v, bits) for k, (v,) in values.items()}, mask)
    return {lane: _shuffled(words, lane, values) for lane in lanes}


def _vote(words: tuple[str, ...], values: dict[int, tuple[int, ...]]) -> int:
    true = [lane for lane, (predicate,) in values.items() if predicate]
    results = {
        "all": len(true) == len(values),
        "any": bool(true),
        "uni": len(true) in (0, len(values)),
        "ballot": sum(1 << lane for lane in true),
    }
    return int(results[next(word for word in words if word in results)])


def _reduced(words: tuple[str, ...], values: list[int]) -> int:
    name, kind = words[1], words[-1]
    if kind == "f32":
        return floats.compute(name, [*words, "NaN"] if "NaN" in words else words, (kind,), values)
    if name in ("and", "or", "xor"):
        return reduce(lambda a, b: integers.logic(name, kind, [a, b]), values)
    return reduce(lambda a, b: integers.arithmetic(name, (), kind, [a, b]), values)


def _match(words: tuple[str, ...], values: dict[int, int], mask: int) -> dict[int, int]:
    if "all" in words:
        same = len(set(values.values())) == 1
        return dict.fromkeys(values, mask | 1 << 32 if same else 0)
    return {
        lane: sum(1 << other for other, value in values.items() if value == mine)
        for lane, mine in values.items()
    }


def _shuffled(words: tuple[str, ...], lane: int, values: dict[int, tuple[int, ...]]) -> int:
    _, b, c = values[lane]
    segment, clamp = c >> 8 & 31, c & 31
    low = lane & segment
    top = low | (clamp & ~segment)
    b &= 31
    if "up" in words:
        source, inside = lane - b, lane - b >= top
    elif "down" in words:
        source, inside = lane + b, lane + b <= top
    elif "bfly" in words:
        source, inside = lane ^ b, lane ^ b <= top
    else:
        source = low | (b & ~segment)
        inside = source <= top
    source = source if inside else lane
    return values[source][0] & 0xFFFFFFFF | int(inside) << 32
