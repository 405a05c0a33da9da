"""Raw addresses in the order of one stream, from free lists by exact size."""

from __future__ import annotations

import cudadrv
from cudadrv.memory.reuse.allocator import DeallocationError


def main() -> None:
    stream = cudadrv.cuda_context_for(0).new_stream()
    allocator = cudadrv.memory.CudaAllocator(stream, cap_bytes=16 << 20)

    address = allocator.allocate(4096)
    allocator.deallocate(address, 4096)
    assert allocator.allocate(4096) == address  # from the free list, without the driver
    try:
        allocator.deallocate(address, 4000)
    except DeallocationError as error:
        print(error)
    allocator.deallocate(address, 4096)

    # Over the cap the largest blocks go back to the driver first.
    for nbytes in (12 << 20, 8 << 20, 1 << 20):
        allocator.deallocate(allocator.allocate(nbytes), nbytes)
    now = allocator.statistics()
    assert now.cached_bytes == 4096 + (8 << 20) + (1 << 20)
    print(f"{now.cached_bytes} bytes cached, at most {now.cap_bytes}")
    allocator.reset()


if __name__ == "__main__":
    main()
