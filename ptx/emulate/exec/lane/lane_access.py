"""Accesses of single threads to memory: within what the site hit last, else the long way.

The long way is the same as for many threads (`access/memory_access.py`), with its checks and its
faults.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptx.emulate.access.memory_access import load_vector, store
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, addresses_in
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.threads.rows import column, value_of

_ADDRESS = {4: np.uint32, 8: np.uint64}


class Elsewhere(Exception):
    """One of several threads needs the long way: all of them take it together."""


def _addresses(base: int, width: int) -> Addresses:
    """The address in a register of `width` bytes; of none where that is 0."""
    return addresses_in(_ADDRESS[width](base)) if width else Addresses(base, None)


def lane_load(fibre: Fibre, base: int, width: int, offset: int, site: Site) -> list[Any]:
    """`ld` of one thread: the elements of the vector."""
    values = load_vector(fibre, _addresses(base, width), offset, site)
    site.open_window()
    return [column(value, 1)[0] for value in values]


def lane_store(fibre: Fibre, base: int, width: int, offset: int, site: Site, *values: Any) -> None:
    """`st` of one thread."""
    dtype = np.dtype(site.dtype)
    store(
        fibre, _addresses(base, width), offset, site, *(value_of((each,), dtype) for each in values)
    )
    site.open_window()
