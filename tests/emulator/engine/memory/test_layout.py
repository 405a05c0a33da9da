"""Module variables in memory."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from ptx.emulate.model.errors import OutOfBounds
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.rows import all_rows

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"


def _content(declarations: str, name: str) -> bytes:
    runner = KernelRunner(HEADER + declarations)
    address, nbytes = runner.program.globals[name]
    return runner.get(address, nbytes, np.uint8).tobytes()


@all_rows
@pytest.mark.parametrize("count", [3, 16, 500])
@pytest.mark.parametrize(
    ("ptx_type", "code"),
    [
        ("b8", "B"),
        ("s8", "b"),
        ("u16", "H"),
        ("s32", "i"),
        ("u32", "I"),
        ("s64", "q"),
        ("u64", "Q"),
    ],
)
def test_integers_of_an_initialiser_lie_in_memory(ptx_type: str, code: str, count: int) -> None:
    size = struct.calcsize(f"<{code}")
    low, most = (
        (-(1 << 8 * size - 1), (1 << 8 * size - 1) - 1)
        if code.islower()
        else (0, (1 << 8 * size) - 1)
    )
    numbers = [low, most, *(index % 100 for index in range(count - 2))]
    text = ", ".join(map(str, numbers))
    found = _content(f".global .{ptx_type} x[{count + 2}] = {{{text}}};\n", "x")
    assert found == struct.pack(f"<{count}{code}", *numbers) + bytes(2 * size)


def test_floats_and_addresses_lie_in_memory() -> None:
    reals = _content(".const .f32 x[3] = {0f3F800000, 2.5, 0fC0400000};\n", "x")
    assert reals == struct.pack("<3f", 1.0, 2.5, -3.0)
    wide = _content(".const .f64 x[2] = {0d3FF0000000000000, 2.5};\n", "x")
    assert wide == struct.pack("<2d", 1.0, 2.5)
    assert _content(".const .f32 x = 1e300;\n", "x") == struct.pack("<f", float("inf"))
    runner = KernelRunner(
        f"{HEADER}.global .u32 to[4];\n.global .u64 p[3] = {{1, generic(to)+8, 2}};\n"
    )
    address, nbytes = runner.program.globals["p"]
    at = runner.program.globals["to"][0]
    assert runner.get(address, 3, np.uint64).tolist() == [1, at + 8, 2]
    assert nbytes == 24


@pytest.mark.parametrize(
    ("declaration", "content"),
    [
        ("f64 x = 0f3F800000", "0000803f00000000"),
        ("b64 x = 0fBF800000", "000080bf00000000"),
        ("b32 x = 0d3FF8000000001234", "0000c03f"),
        ("b16 x[2] = {0d3FF8000000001234, 0f3F805678}", "34127856"),
        ("b8 x = 2.5", "00"),
        ("b8 x[2][2] = {{1}, {2}}", "01020000"),
        ("b8 x[][2] = {{1}, {2, 3}}", "01020300"),
        ("b8 x[2][2] = {{}, {2}}", "02000000"),
        ("v2 .b8 x[2] = {{1, 2}}", "01020000"),
    ],
)
def test_bytes_of_an_initialiser_are_those_of_ptxas(declaration: str, content: str) -> None:
    """The sections .nv.global.init of what ptxas of CUDA 13.0 assembles."""
    assert _content(f".global .{declaration};\n", "x").hex() == content


def test_an_initialiser_of_128_bits_lies_in_memory() -> None:
    found = _content(".global .align 16 .b128 x[2] = {5, 7};\n", "x")
    assert found == (5).to_bytes(16, "little") + (7).to_bytes(16, "little")


@pytest.mark.parametrize(
    ("declared", "nbytes", "hint"),
    [
        (".extern .shared .b8 t[];", 0, "arrays of extern __shared__ have as many bytes as"),
        (".shared .b8 t[64];", 64, "an index may be past the end of a __shared__ array"),
    ],
)
def test_a_write_past_shared_memory_has_the_likely_cause(
    declared: str, nbytes: int, hint: str
) -> None:
    body = ".reg .b32 %r<3>; mov.u32 %r1, t; mov.u32 %r2, %tid.x; mad.lo.u32 %r1, %r2, 4, %r1;"
    runner = KernelRunner(ptx_text(f"{body} st.shared.u32 [%r1], %r2; ret;", before=declared))
    with pytest.raises(OutOfBounds, match=rf"(?s)has {nbytes} bytes of shared memory\n  {hint}"):
        runner.launch("k", 1, 17)
