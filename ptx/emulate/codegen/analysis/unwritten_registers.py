"""Registers that an instruction may read although nothing on its way has written them.

NVRTC leaves such reads where a variable has no value on one path, and where inline assembly takes
a variable that has none. Correct code has them too, where nothing needs the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ptx.emulate.codegen.cfg import Block, bits
from ptx.emulate.codegen.registers import CARRY


def unwritten_registers(
    blocks: Sequence[Block], numbers: Mapping[str, int], written_before: Iterable[str]
) -> dict[int, str]:
    """Return the names of the registers that are live where a function begins.

    `written_before`: the names of parameters, which may be registers. A function that goes back to
    its first block has none: it may have written them there.
    """
    if any(0 in block.successors for block in blocks):
        return {}
    written = {CARRY.name, *written_before}
    live = frozenset(bits(blocks[0].live))
    return {
        number: name.split("@")[0]
        for name, number in numbers.items()
        if number in live and name not in written
    }
