"""Rows of video instructions. PTX ISA, "Video Instructions"."""

from __future__ import annotations

from typing import Final

from ptx.isa.opcodes.opcode_row import Chapter

_VIDEO_TYPES: Final = [
    f"{d}.{a}.{b}" for d in ("u32", "s32") for a in ("u32", "s32") for b in ("u32", "s32")
]
_THREE: Final = " ".join(_VIDEO_TYPES)
_SHIFTS: Final = " ".join(each for each in _VIDEO_TYPES if each.endswith(".u32"))
_TWO: Final = "u32.u32 u32.s32 s32.u32 s32.s32"
_SECOND: Final = "add/min/max"
_COMPARE: Final = "eq/ne/lt/le/gt/ge"

OPCODES: Final = Chapter(
    f"""
opcode vadd vsub vabsdiff vmin vmax | video | video | - | sm_20 2.0
vadd vsub vabsdiff vmin vmax | [sat] | {_THREE} | d e2 e3 ; E e2 e3 a
vadd vsub vabsdiff vmin vmax | [sat] {_SECOND} | {_THREE} | d e2 e3 a

opcode vshl vshr | video | video | - | sm_20 2.0
vshl vshr | [sat] clamp/wrap | {_SHIFTS} | d e2 e3 ; E e2 e3 a
vshl vshr | [sat] clamp/wrap {_SECOND} | {_SHIFTS} | d e2 e3 a

opcode vset | video | video | - | sm_20 2.0
vset | {_COMPARE} | {_TWO} | N e1 e2 ; V e1 e2 n
vset | {_COMPARE} {_SECOND} | {_TWO} | N e1 e2 n

opcode vmad | video | video | - | sm_20 2.0
vmad | [sat] [shr7/shr15] | {_THREE} | d g2 g3 a ; d e2 e3 G ; d k2 k3 K
vmad | [sat] [shr7/shr15] po | {_THREE} | d e2 e3 a

opcode vadd2 vsub2 vabsdiff2 vmin2 vmax2 vavrg2 | video | video | - | sm_30 3.0
vadd2 vsub2 vabsdiff2 vmin2 vmax2 vavrg2 | [sat] | {_THREE} | F2 f2 f2 r
vadd2 vsub2 vabsdiff2 vmin2 vmax2 vavrg2 | add | {_THREE} | F2 f2 f2 r

opcode vadd4 vsub4 vabsdiff4 vmin4 vmax4 vavrg4 | video | video | - | sm_30 3.0
vadd4 vsub4 vabsdiff4 vmin4 vmax4 vavrg4 | [sat] | {_THREE} | F4 f4 f4 r
vadd4 vsub4 vabsdiff4 vmin4 vmax4 vavrg4 | add | {_THREE} | F4 f4 f4 r

opcode vset2 | video | video | - | sm_30 3.0
vset2 | {_COMPARE} | {_TWO} | F2 f2 f2 N
vset2 | {_COMPARE} add | {_TWO} | F2 f2 f2 N

opcode vset4 | video | video | - | sm_30 3.0
vset4 | {_COMPARE} | {_TWO} | F4 f4 f4 N
vset4 | {_COMPARE} add | {_TWO} | F4 f4 f4 N
""",
    {},
)
