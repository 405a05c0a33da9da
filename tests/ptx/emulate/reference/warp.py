"""Votes and shuffles among the lanes of one warp."""

from __future__ import annotations

from tests.ptx.emulate.reference.state import Request


def warp_answers(lanes: dict[int, Request]) -> dict[int, int]:
    """What a vote or shuffle of all lanes of a warp gives each; a shuffle's predicate is bit 32."""
    kind, words = next((request.kind, request.words) for request in lanes.values())
    values = {lane: request.values for lane, request in lanes.items()}
    if kind == "vote":
        true = [lane for lane, (predicate,) in values.items() if predicate]
        result = {
            "all": len(true) == len(lanes),
            "any": bool(true),
            "uni": len(true) in (0, len(lanes)),
            "ballot": sum(1 << lane for lane in true),
        }[next(word for word in words if word in ("all", "any", "uni", "ballot"))]
        return dict.fromkeys(lanes, int(result))
    found: dict[int, int] = {}
    for lane, (_, b, c) in values.items():
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
        found[lane] = values.get(source, values[lane])[0] | int(inside) << 32
    return found
