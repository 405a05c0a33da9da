"""Programs that an H200 runs otherwise are explained by what its assembler made of them.

`differing.npz` has the text of twelve random programs, the first contents of three buffers, the
results of an H200 (driver 580), and the kinds of changes that explain the difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import cudadrv
import ptx
from campaigns.hardware.assembled import KINDS, changed, changes
from campaigns.hardware.case import Bits
from campaigns.hardware.explained import OPEN, explanation
from campaigns.hardware.nan_bits import with_other_nans
from cudadrv import emulator

THREADS = 128
BYTES_OF_A_THREAD = (8, 32, 40)


def result(text: str, contents: Bits) -> Bits:
    """Run a program on the emulator; return its results."""
    places = [int(each) for each in np.cumsum((0, *BYTES_OF_A_THREAD)) * THREADS]
    with emulator.session(devices=[emulator.H200]):
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        inputs = stream.to_device(contents)
        cells = stream.zeros(16 * THREADS, np.uint8)
        found = stream.zeros(88 * THREADS, np.uint8)
        parts = [inputs[start:end] for start, end in pairwise(places)]
        kernel = context.load_module(ptx.Image.from_ptx(text)).kernel("K")
        config = cudadrv.LaunchConfig(1, THREADS)
        kernel.launch(stream, config, *parts, cells, found)
        return stream.to_host(found)


class Difference:
    """Counts the results of a program that differ from the GPU's."""

    def __init__(self, contents: Bits, gpu: Bits) -> None:
        self.contents = contents
        self.gpu = gpu.view("<u2")

    def __call__(self, text: str, variants: Sequence[str] = ()) -> Counter[str]:
        own = result(text, self.contents).view("<u2")
        wrong = own != self.gpu
        for each in variants:
            wrong &= own == result(each, self.contents).view("<u2")
        return +Counter({"": int(wrong.sum())})


def stored() -> list[tuple[str, Difference, str]]:
    """The text of each program, its difference and the kinds that explain it."""
    arrays = np.load(Path(__file__).with_name("differing.npz"))
    columns = (arrays[name] for name in ("texts", "inputs", "results", "kinds"))
    return [
        (str(text), Difference(contents, gpu), str(kinds))
        for text, contents, gpu, kinds in zip(*columns, strict=True)
    ]


@pytest.mark.parametrize(
    "most", [3_500, pytest.param(20_000, marks=pytest.mark.slow)], ids=["short", "all"]
)
def test_each_program_is_explained_by_the_kinds_that_were_found(most: int) -> None:
    wrong, kinds = [], set()
    for text, count, expected in stored():
        if len(text) > most:
            continue
        assert count(text)
        found = explanation(text, count)
        kinds |= set(found.kinds)
        if found.left or ", ".join(found.kinds) != expected:
            wrong.append(f"{expected}: {found}")
    assert not wrong, "\n".join(wrong)
    if most == 20_000:
        assert kinds == {*KINDS, OPEN} - {"max(x, x)"}


def test_a_wrong_value_has_no_explanation() -> None:
    """Also of a program with values that change with the bits of a NaN."""
    programs = [each for each in stored() if each[2] in ("set", f"testp, {OPEN}")]
    assert len(programs) == 2
    for text, count, expected in programs:
        right = changed(text, [each for each in changes(text) if each.is_certain])
        own = result(right, count.contents).view("<u2")
        varied = np.zeros(len(own), np.bool_)
        for seed in range(8):
            varied |= own != result(with_other_nans(right, seed), count.contents).view("<u2")
        defined = np.flatnonzero((own == count.gpu) & ~varied)
        # Few values depend on a NaN, so that most of a program is compared.
        assert len(defined) > 0.9 * len(own)
        count.gpu = count.gpu.copy()
        count.gpu[defined[7]] ^= 0x10
        assert explanation(text, count, seconds=0).left == Counter({"": 1}), expected


def test_another_nan_replaces_only_results_that_ptx_leaves_open() -> None:
    statements = {
        "add.f64 %d0, %d1, %d2;": True, "@%p0 div.rn.f64 %d0, %d1, %d2;": True,
        "neg.f32 %r0, %r1;": True, "abs.bf16x2 %r0, %r1;": True, "cvt.f64.f32 %d0, %r1;": True,
        "red.shared.add.f64 [%ss], %d0;": True, "add.rn.f32 %r0, %r1, %r2;": False,
        "mov.b64 %d0, %d1;": False, "copysign.f64 %d0, %d1, %d2;": False,
        "setp.nan.f64 %p0, %d1, %d2;": False, "add.s64 %d0, %d1, %d2;": False,
        "selp.f64 %d0, %d1, %d2, %p0;": False, "cvt.rn.f32.f64 %r0, %d1;": False,
    }  # fmt: skip
    assert {each: with_other_nans(each, 1) != each for each in statements} == statements


def test_statements_that_the_optimiser_changes_give_the_results_of_the_h200() -> None:
    """An H200 adds the sign, here 0xffff, to the upper half, and leaves a carry as it is."""
    head = """.version 8.0
.target sm_90
.address_size 64
.visible .entry K(.param .u64 A, .param .u64 B, .param .u64 C, .param .u64 M, .param .u64 O)
{
.reg .b32 %r<4>; .reg .b64 %o; .reg .pred %p; .shared .b32 s[1]; ld.param.u64 %o, [O];
mov.u32 %r3, %tid.x; setp.ne.u32 %p, %r3, 0; @%p ret;
mov.b32 %r0, 0xbf803c00; mov.b32 %r1, 0x3f804000; st.shared.b32 [s], %r1;
red.shared.add.noftz.f16x2 [s], %r0;
ld.shared.b32 %r1, [s]; st.global.b32 [%o], %r1;
mov.b32 %r2, -1; add.cc.u32 %r2, %r2, %r2; addc.u32 %r2, 0, 0;
cvt.rmi.sat.u32.f32 %r3, %r2;
st.global.b32 [%o+4], %r3;
ret;
}
"""
    contents = np.zeros(80 * THREADS, np.uint8)
    exact = result(head, contents).view("<u4")[:2].tolist()
    texts = changed(head, [each for each in changes(head) if each.kind != "fused"])
    found = result(texts, contents).view("<u4")[:2].tolist()
    assert exact == [0x00004200, 0]
    assert found == [0x7FFF4200, 1]


def test_a_program_without_such_statements_has_no_changes() -> None:
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry K()\n{\nret;\n}\n"
    assert changes(text) == []
    assert changed(text, []) == text
