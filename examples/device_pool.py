"""One context a device: all devices in turn, and the one with the most memory to spare."""

from __future__ import annotations

import numpy as np

from cudadrv import DevicePool
from cudadrv.driver import ContextFlags


def main() -> None:
    with DevicePool() as pool:
        print(pool)
        for device, context in pool:
            free, total = context.memory_info()
            print(f"  {device}: {free >> 20} of {total >> 20} MiB free")

        # Independent pieces go round the devices; any number of threads may ask at once.
        for piece in np.arange(12.0).reshape(4, 3):
            device = pool.next_device()
            stream = pool.context(device.ordinal).default_stream
            with stream.to_device(piece) as there:
                stream.fill(there, device.ordinal)
                print(f"  {piece} became {stream.to_host(there)}")

        best = pool.best_available_device()
        with pool.context(best.ordinal).default_stream.zeros(1 << 20, np.float32) as large:
            print(f"  the largest piece went to device {large.context.ordinal}")

    # With flags the contexts are the pool's own: a thread that waits here sleeps, and `close`
    # destroys them. Other libraries' memory and streams are not reachable from them.
    with DevicePool(flags=ContextFlags.SCHED_BLOCKING_SYNC) as own:
        assert not any(context.is_primary for _, context in own)


if __name__ == "__main__":
    main()
