"""Windows of the generic address space; device memory starts above them.

PTX ISA, "Generic Addressing". CODE is no memory: its addresses stand for functions.
"""

from __future__ import annotations

SHARED_WINDOW = 0x0100_0000
LOCAL_WINDOW = 0x0200_0000
PARAM_WINDOW = 0x0300_0000
CODE_WINDOW = 0x0400_0000
WINDOW_BYTES = 0x0100_0000
