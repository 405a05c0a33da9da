"""The process heap, made fit for large arrays that live for one instruction."""

from __future__ import annotations

from functools import cache

import numpy as np

# Just below glibc's limit for its moving threshold, DEFAULT_MMAP_THRESHOLD_MAX (mallopt(3)).
_LARGE = (32 << 20) - 8192


@cache
def keep_temporaries() -> None:
    """Have freed temporaries reused by the process; done once, as the cache remembers.

    glibc maps every block above 128 KiB on its own and gives it back to the kernel when it is
    freed, so that each temporary of a basic block costs a page fault every 4 KiB: half of the time
    of a fused multiply-add. Freeing one large block raises that threshold, and the one for trimming
    the heap, above the sizes that occur (mallopt(3), M_MMAP_THRESHOLD). Other C libraries do not
    mind.
    """
    np.empty(_LARGE, np.uint8)
