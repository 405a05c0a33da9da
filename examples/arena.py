"""Scratch memory from an arena: allocated once, reused by each step and across streams."""

from __future__ import annotations

import numpy as np

import cudadrv


def main() -> None:
    context = cudadrv.cuda_context_for(0)
    arena = cudadrv.DeviceArena(np.float64, max_cached_bytes=64 << 20)
    with context.new_stream() as first, context.new_stream() as second:
        for step in range(100):
            # The slab is zeroed when it is fresh, and holds what was left in it when reused.
            bucket, slab = arena.alloc(first, 1000, "example")
            first.fill(slab, step)
            arena.release(bucket, slab)

        # On another stream the arena lets that stream wait for the first one's work.
        bucket, slab = arena.alloc(second, 600, "example")
        assert (second.to_host(slab) == 99).all()
        arena.release(bucket, slab)

        now = arena.statistics()
        assert now.slabs == 1
        print(f"{now.allocations} allocations, {now.hit_rate:.0%} of them from {now.slabs} slab")
        print(f"{arena.trim()} bytes given back")


if __name__ == "__main__":
    main()
