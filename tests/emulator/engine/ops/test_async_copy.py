"""`cp.async`: what arrives in shared memory, what is read for it, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate import Limits
from ptx.emulate.model.errors import (
    Misaligned,
    OutOfBounds,
    UninitialisedRead,
    UnsupportedInstruction,
)
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.rows import all_rows

N = 96


def text(body: str) -> str:
    """%r2 is a thread's 16 bytes of shared memory, full of ones; %rd1 its 16 bytes of `in`."""
    return ptx_text(
        f"""
        .reg .b32 %r<30>; .reg .b64 %rd<20>; .reg .pred %p<4>;
        .shared .align 16 .b8 area[{16 * N + 64}];
        ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r0, %tid.x;
        mul.wide.u32 %rd3, %r0, 16; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
        cvt.u32.u64 %r1, %rd3; mov.u32 %r2, area; add.u32 %r2, %r2, %r1; mov.b32 %r3, -1;
        createpolicy.fractional.L2::evict_last.b64 %rd8;
        {body}""",
        ".param .u64 in, .param .u64 out",
    )


ONES = "st.shared.v4.u32 [%r2], {%r3, %r3, %r3, %r3};"
END = """cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
    ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r2];
    st.global.v4.u32 [%rd2], {%r10, %r11, %r12, %r13}; ret;"""


def run(
    body: str, *, limits: Limits | None = None, nbytes: int = 16 * N + 64
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """(N, 16) bytes in, and (N, 16) bytes out."""
    source = np.random.default_rng(1).integers(1, 255, (N, 16)).astype(np.uint8)
    runner = KernelRunner(text(body), 1 << 20)
    out = runner.put(np.zeros((N, 16), np.uint8))
    place = runner.put(np.resize(source, nbytes))
    runner.launch("k", 1, N, place, out, limits=limits or Limits())
    return source, runner.get(out, 16 * N, np.uint8).reshape(N, 16)


FORMS = [
    *(("ca", size) for size in (4, 8, 16)),
    ("cg", 16),
]


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize(("level", "size"), FORMS)
@pytest.mark.parametrize("space", ["shared", "shared::cta"])
@pytest.mark.parametrize("hint", ["", ".L2::64B", ".L2::128B", ".L2::256B", ".L2::cache_hint"])
def test_as_many_bytes_arrive_as_the_size_specifies(
    level: str, size: int, space: str, hint: str
) -> None:
    policy = ", %rd8" if hint == ".L2::cache_hint" else ""
    source, found = run(
        f"{ONES} cp.async.{level}.{space}.global{hint} [%r2], [%rd1], {size}{policy}; {END}"
    )
    want = np.full((N, 16), 255, np.uint8)
    want[:, :size] = source[:, :size]
    assert np.array_equal(found, want)


@pytest.mark.parametrize(("level", "size"), FORMS)
@pytest.mark.parametrize("policy", ["", ", %rd8"])
def test_what_the_source_size_leaves_is_zero(level: str, size: int, policy: str) -> None:
    hint = ".L2::cache_hint" if policy else ""
    source, found = run(
        f"""{ONES} rem.u32 %r5, %r0, {size + 1};
        cp.async.{level}.shared.global{hint} [%r2], [%rd1], {size}, %r5{policy}; {END}"""
    )
    want = np.full((N, 16), 255, np.uint8)
    for thread in range(N):
        want[thread, :size] = 0
        part = thread % (size + 1)
        want[thread, :part] = source[thread, :part]
    assert np.array_equal(found, want)


@pytest.mark.parametrize(("level", "size"), FORMS)
def test_an_ignored_source_gives_zeros(level: str, size: int) -> None:
    source, found = run(
        f"""{ONES} and.b32 %r5, %r0, 1; setp.eq.u32 %p1, %r5, 1; @%p1 mov.b64 %rd1, 1;
        cp.async.{level}.shared.global [%r2], [%rd1], {size}, %p1; {END}"""
    )
    want = np.full((N, 16), 255, np.uint8)
    want[:, :size] = source[:, :size]
    want[1::2, :size] = 0
    assert np.array_equal(found, want)


def test_of_a_short_copy_no_byte_past_it_is_read() -> None:
    body = f"""{ONES} setp.eq.u32 %p1, %r0, {N - 1}; selp.u32 %r5, 5, 16, %p1;
        cp.async.cg.shared.global [%r2], [%rd1], 16, %r5; {END}"""
    source, found = run(body, nbytes=16 * N - 11)
    assert np.array_equal(found[:-1], source[:-1])
    assert found[-1].tolist() == [*source[-1, :5].tolist(), *[0] * 11]
    with pytest.raises(OutOfBounds, match="read of 1 byte ") as caught:
        run(body, nbytes=16 * N - 12)
    assert caught.value.where.thread == (N - 1, 0, 0)


def test_guarded_copies_leave_other_threads_alone() -> None:
    source, found = run(
        f"""{ONES} and.b32 %r5, %r0, 3; setp.eq.u32 %p1, %r5, 2;
        @%p1 cp.async.ca.shared.global [%r2], [%rd1], 8; cp.async.wait_all; {END}"""
    )
    want = np.full((N, 16), 255, np.uint8)
    want[2::4, :8] = source[2::4, :8]
    assert np.array_equal(found, want)


@pytest.mark.parametrize(("operands", "fault", "match"), [
    ("[%r2], [%rd1+8], 16", Misaligned, "misaligned read of 16 bytes"),
    ("[%r2+8], [%rd1], 16", Misaligned, "misaligned write of 16 bytes at shared"),
    ("[%r2], [%rd1+2], 4", Misaligned, "misaligned read of 4 bytes"),
    ("[%r2], [%rd1+4], 8, 3", Misaligned, "no multiple of 8, the size of the copy"),
    ("[%r2], [%rd1], 8, 9", OutOfBounds, "copy of 9 bytes by an instruction that copies 8"),
    ("[%r2], [%rd1+4096], 4", OutOfBounds, "out-of-bounds read of 4 bytes"),
    ("[%r2+1600], [%rd1], 4", OutOfBounds, "1600 bytes of shared memory"),
])  # fmt: skip
def test_both_addresses_are_checked(operands: str, fault: type[Exception], match: str) -> None:
    with pytest.raises(fault, match=match):
        run(f"cp.async.ca.shared.global {operands}; {END}")


def test_a_copy_initialises_shared_memory() -> None:
    limits = Limits(checks={"undefined"})
    copied = "cp.async.ca.shared.global [%r2], [%rd1], {0}; "
    run(f"mov.b32 %r5, 3; {copied.format('16, %r5')} {END}", limits=limits)
    with pytest.raises(UninitialisedRead, match="16 bytes at shared address"):
        run(END, limits=limits)


@pytest.mark.parametrize("instruction", [
    "cp.async.cg.shared.global [%r2], [%rd1], 8",
    "cp.async.ca.shared.global [%r2], [%rd1], 12",
    "cp.async.ca.shared.global [%r2], [%rd1], %r3",
    "cp.async.ca.shared.global [%r2], [%rd1], 16, %r3, %rd8",
    "cp.async.ca.shared.global.L2::cache_hint [%r2], [%rd1], 16",
    "cp.async.shared.global [%r2], [%rd1], 16",
    "cp.async.ca.shared::cluster.global [%r2], [%rd1], 16",
])  # fmt: skip
def test_other_forms_are_rejected(instruction: str) -> None:
    with pytest.raises(UnsupportedInstruction, match="cp.async"):
        KernelRunner(text(f"{instruction}; ret;"), 1 << 20).program.kernel("k")
