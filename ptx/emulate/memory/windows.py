"""Windows of the generic address space; device memory starts above them.

PTX ISA, "Generic Addressing". CODE is no memory: its addresses stand for functions. The windows lie
at odd distances, so that an index that is out by a power of two meets no other window.
"""

from __future__ import annotations

CODE_WINDOW = 0x0400_0000
SHARED_WINDOW = 0x3700_0000
LOCAL_WINDOW = 0x7D00_0000
PARAM_WINDOW = 0xC500_0000
WINDOW_BYTES = 0x0100_0000
NEAR_WINDOW = 0x0200_0000
"""How far from a window's start an address is still taken for one of its space, out of bounds."""
