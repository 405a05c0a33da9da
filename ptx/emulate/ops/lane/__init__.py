"""Code of the common operations for single threads; the other files of `ops` say what they mean.

Each gives the bits that NumPy's code of the same operation gives, which the tests compare. Where a
result is rare to look for, a NaN among float64, the function for arrays is asked.
"""

from ptx.emulate.ops.lane import (
    lane_approximate,
    lane_compare,
    lane_convert,
    lane_floating,
    lane_integer,
    lane_logic,
    lane_memory,
    lane_move,
)

__all__ = [
    "lane_approximate",
    "lane_compare",
    "lane_convert",
    "lane_floating",
    "lane_integer",
    "lane_logic",
    "lane_memory",
    "lane_move",
]
