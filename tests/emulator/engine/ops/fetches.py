"""One texture or surface instruction a kernel, run once a thread on a row of eight words.

An instruction is written with tokens for its operands: `H` the handle, `F0` to `F7` and `I0` to
`I7` the words of the row as float32 or int32, `A4` the low half of a word, `B4` two words, `D` the
four results `{R0,R1,R2,R3}`, and for narrower or wider results `H0` to `H3` and `L0`, `L1`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.texture_object import AddressMode, TexelImage, TextureObject
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text

Words = NDArray[np.uint32]
HANDLE = 0x1_0000_0007
_TOKEN = re.compile(r"\b(?:[FIAB][0-7]|H|[RHL][0-3])\b")
_NAMES = {"F": "%f", "I": "%r", "A": "%rs", "B": "%rd1", "R": "%r1", "H": "%rs1", "L": "%rd2"}


def _register(token: re.Match[str]) -> str:
    word = token.group()
    return "%rd30" if word == "H" else _NAMES[word[0]] + word[1]


def kernel_text(instruction: str) -> str:
    """A module whose kernel `k` runs the instruction once a thread."""
    text = instruction.replace("D,", "{R0,R1,R2,R3},").replace("D|", "{R0,R1,R2,R3}|")
    text = _TOKEN.sub(_register, text)
    loads = [f"ld.global.u32 %r{k}, [%rd31+{4 * k}]; mov.b32 %f{k}, %r{k};" for k in range(8)]
    loads += [f"cvt.u16.u32 %rs{k}, %r{k};" for k in range(8)]
    loads += [f"mov.b64 %rd1{k}, {{%r{k}, %r{k + 1}}};" for k in range(0, 8, 2)]
    zeros = [f"mov.u32 %r1{k}, 0; mov.u16 %rs1{k}, 0;" for k in range(4)]
    joins = [f"cvt.u32.u16 %r2{k}, %rs1{k}; xor.b32 %r1{k}, %r1{k}, %r2{k};" for k in range(4)]
    for k in range(2):
        joins.append(f"mov.b64 {{%r30, %r31}}, %rd2{k}; xor.b32 %r1{2 * k}, %r1{2 * k}, %r30;")
        joins.append(f"xor.b32 %r1{2 * k + 1}, %r1{2 * k + 1}, %r31;")
    body = "\n".join(
        [
            ".reg .pred p; .reg .pred %q; .reg .b32 %r<40>; .reg .f32 %f<10>; .reg .b16 %rs<20>;",
            ".reg .b64 %rd<40>;",
            "ld.param.u64 %rd30, [handle]; ld.param.u64 %rd31, [rows];",
            "ld.param.u64 %rd32, [results]; ld.param.u32 %r32, [count];",
            "mov.u32 %r33, %ctaid.x; mov.u32 %r34, %ntid.x; mov.u32 %r35, %tid.x;",
            "mad.lo.u32 %r33, %r33, %r34, %r35; setp.ge.u32 %q, %r33, %r32; @%q bra DONE;",
            "mul.wide.u32 %rd33, %r33, 32; add.u64 %rd31, %rd31, %rd33;",
            "mul.wide.u32 %rd33, %r33, 16; add.u64 %rd32, %rd32, %rd33;",
            *loads, *zeros, "mov.u64 %rd20, 0; mov.u64 %rd21, 0;", text, *joins,
            "st.global.v4.u32 [%rd32], {%r10, %r11, %r12, %r13};", "DONE: ret;",
        ]
    )  # fmt: skip
    params = ".param .u64 handle, .param .u64 rows, .param .u64 results, .param .u32 count"
    return ptx_text(body, params)


def image_of(runner: KernelRunner, kind: str, array: NDArray[Any]) -> TexelImage:
    """An array `[layer or slice][row][column][channel]` as an image of a kind such as "a2d"."""
    shape = array.shape[:-1]
    extents: dict[str, Any] = {"width": shape[-1]}
    if kind in ("2d", "a2d", "3d", "cube", "acube", "pitch"):
        extents["height"] = shape[-2]
    if kind == "3d":
        extents["depth"] = shape[0]
    elif kind in ("a1d", "a2d", "cube", "acube"):
        extents["layers"] = shape[0]
    address = runner.put(array, origin="an image")
    cube = kind in ("cube", "acube")
    dtype, channels = array.dtype, array.shape[-1]
    return TexelImage(runner.memory, address, dtype, channels, **extents, cube=cube)


def texture_of(
    runner: KernelRunner, kind: str, levels: list[NDArray[Any]], how: Mapping[str, Any]
) -> TextureObject:
    """A texture; `how` names the fields as `TextureObject` does, with its own defaults."""
    fields = dict(how)
    modes = fields.pop("address_modes", (1, 1, 1))
    return TextureObject(
        levels=tuple(image_of(runner, kind, level) for level in levels),
        address_modes=(AddressMode(modes[0]), AddressMode(modes[1]), AddressMode(modes[2])),
        linear=bool(fields.pop("linear", False)),
        normalized_coordinates=bool(fields.pop("normalized_coordinates", False)),
        as_integer=bool(fields.pop("as_integer", False)),
        is_linear_memory=kind == "lin",
        **fields,
    )


def results_of(runner: KernelRunner, rows: Words, *, block: int = 128) -> Words:
    """(n, 4) what each thread wrote, for (n, 8) words."""
    count = len(rows)
    source = runner.put(np.ascontiguousarray(rows))
    target = runner.put(np.zeros((count, 4), np.uint32))
    runner.launch("k", -(-count // block), block, HANDLE, source, target, count)
    found: Words = runner.get(target, 4 * count, np.uint32).reshape(count, 4)
    return found


def fetched(
    instruction: str, kind: str, levels: list[NDArray[Any]], how: Mapping[str, Any], rows: Words
) -> Words:
    """(n, 4) what a texture instruction gives for (n, 8) words."""
    runner = KernelRunner(kernel_text(instruction), 1 << 24)
    runner.device.textures[HANDLE] = texture_of(runner, kind, levels, how)
    return results_of(runner, rows)


def accessed(
    instruction: str, kind: str, array: NDArray[Any], rows: Words
) -> tuple[Words, NDArray[Any]]:
    """What a surface instruction gives, and the array afterwards."""
    runner = KernelRunner(kernel_text(instruction), 1 << 24)
    image = runner.device.surfaces[HANDLE] = image_of(runner, kind, array)
    found = results_of(runner, rows)
    after = runner.get(image.address, array.size, array.dtype).reshape(array.shape)
    return found, after
