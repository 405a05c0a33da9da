"""What kernels ask of the system: printf against the C library, assertions, the device heap."""

from __future__ import annotations

import ctypes
import struct
import sys
from contextlib import nullcontext

import numpy as np
import pytest

from ptx.emulate.model.errors import (
    AssertionFailed,
    EmulationFault,
    InvalidFree,
    Misaligned,
    OutOfBounds,
    Runaway,
    Trap,
    UnsupportedInstruction,
    UseAfterFree,
)
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.emulator.engine.ops.corpus import TARGETS, runner_of

VARIANTS = [*((target, False) for target in TARGETS), ("compute_90", True)]
needs_c_library = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="needs glibc's snprintf to compare with"
)


@pytest.fixture(params=VARIANTS, ids=lambda v: v[0] + ("-G" if v[1] else ""))
def runner(request: pytest.FixtureRequest) -> KernelRunner:
    target, debug = request.param
    return runner_of("runtime_calls.cu", target, debug=debug, lineinfo=not debug)


@pytest.fixture
def one() -> KernelRunner:
    return runner_of("runtime_calls.cu", "compute_90", lineinfo=True)


def c_text(form: str, *arguments: object) -> str:
    """What the C library prints."""
    buffer = ctypes.create_string_buffer(4096)
    ctypes.CDLL(None).snprintf(buffer, ctypes.c_size_t(4096), form.encode(), *arguments)
    return buffer.value.decode()


INTEGERS = [0, 1, -1, 7, 255, -128, 2**31 - 1, -(2**31), 123456]


@needs_c_library
def test_integer_conversions_print_what_c_prints(
    runner: KernelRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in INTEGERS:
        large = value * 1234567891
        unsigned = value & 0xFFFFFFFF
        runner.launch("integers", 1, 1, value, large, unsigned)
        i, u, n = ctypes.c_int(value), ctypes.c_uint(unsigned), ctypes.c_longlong(large)
        first = "%d|%5d|%-6d|%06d|%+d|% d|%.4d|%8.3d|%i|%u|%x|%X|%#x|%o|%#o\n"
        second = "%lld|%20lld|%llx|%llu|%#llx|%ld|%hd|%hhd|%hu|%c|%%|%*d|%-*d|\n"
        letter = ctypes.c_int(65 + (value & 15))
        expected = c_text(first, *[i] * 9, *[u] * 6)
        expected += c_text(
            second, n, n, n, n, n, n, i, i, u, letter, ctypes.c_int(7), i, ctypes.c_int(9), i
        )
        assert capsys.readouterr().out == expected


FLOATS = [
    0.0, -0.0, 1.0, -1.5, 0.1, 1e10, -1e-10, 123456.789, 1e300, 5e-324, 2.2250738585072014e-308,
    float("inf"), float("-inf"), float("nan"), -float("nan"), 0.5, 2.5, 1 / 3, 9.9999995,
]  # fmt: skip


@needs_c_library
def test_float_conversions_print_what_c_prints(
    runner: KernelRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in FLOATS:
        single = struct.unpack("<f", struct.pack("<f", value if abs(value) < 3e38 else 1.5))[0]
        runner.launch("floats", 1, 1, value, single)
        d, f = ctypes.c_double(value), ctypes.c_double(single)
        first = "%f|%.2f|%10.3f|%-12.1f|%+f|% f|%010.2f|%e|%.0e|%E|%g|%G|%#g|%.10g\n"
        second = "%f|%g|%a|%A|%.3a|%.0a|%20.5a|%#.0f|%*.*f\n"
        expected = c_text(first, *[d] * 14)
        expected += c_text(second, f, f, *[d] * 6, ctypes.c_int(12), ctypes.c_int(4), d)
        assert capsys.readouterr().out == expected


def test_strings_pointers_and_the_number_of_arguments(
    runner: KernelRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    text = runner.put(np.frombuffer("größe %d %g\n\0".encode(), np.uint8))
    returned = runner.put(np.zeros(5, np.int32))
    runner.launch("strings", 1, 1, text, returned)
    lines = capsys.readouterr().out
    assert lines == (
        "[größe %d %g\n][größe %d %g\n][left      ][cut][(null)]\n"
        "(nil) 0x1234abcd\n"
        "nothing to add\n"
        "größe 42 2.5\n"
        "loc0 1 2 3\n"
    )
    assert runner.get(returned, 5, np.int32).tolist() == [5, 2, 0, 2, 4]


@pytest.mark.parametrize(
    "form",
    ["%9999999999d", "%.9999999999f", "%1048577d", "%*d", "%.*e", "%" + "9" * 5000 + "d"],
    ids=["width", "precision", "megabyte", "star", "stars", "digits"],
)
def test_a_conversion_of_too_many_characters_is_rejected(form: str) -> None:
    data = ", ".join(map(str, form.encode() + b"\0"))
    text = ptx_text(
        """.local .align 8 .b32 given[4]; .reg .b64 %rd<3>;
        mov.u64 %rd0, form; cvta.global.u64 %rd1, %rd0;
        mov.u64 %rd0, given; cvta.local.u64 %rd2, %rd0;
        st.local.u32 [given], 2000000000; st.local.u32 [given+4], 1;
        { .param .b64 a; .param .b64 b; .param .b32 r;
        st.param.b64 [a], %rd1; st.param.b64 [b], %rd2; call (r), vprintf, (a, b); } ret;""",
        before=".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
        f".global .b8 form[{len(form) + 1}] = {{{data}}};",
    )
    with pytest.raises(
        UnsupportedInstruction, match="k: call at PTX line 13: a conversion of printf"
    ):
        KernelRunner(text).launch("k", 1, 1)


@pytest.mark.parametrize(
    ("offset", "printed"),
    [
        (0, "2222222211111111\n"),
        (4, "4444444433333333\n"),
        (8, "4444444433333333\n"),
        *((offset, "") for offset in (1, 2, 3, 6)),
    ],
)
def test_arguments_lie_at_the_next_multiple_of_their_size(
    offset: int, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # The lines are those of an H200.
    words = "".join(f"st.local.u32 [given+{4 * i}], {0x11111111 * (i + 1)};" for i in range(5))
    text = ptx_text(
        f""".local .align 16 .b8 given[64]; .reg .b64 %rd<3>; {words}
        mov.u64 %rd0, form; cvta.global.u64 %rd1, %rd0;
        mov.u64 %rd0, given; cvta.local.u64 %rd2, %rd0; add.u64 %rd2, %rd2, {offset};
        {{ .param .b64 a; .param .b64 b; .param .b32 r;
        st.param.b64 [a], %rd1; st.param.b64 [b], %rd2; call (r), vprintf, (a, b); }} ret;""",
        before=".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
        f".global .b8 form[6] = {{{', '.join(map(str, b'%llx' + bytes([10, 0])))}}};",
    )
    with nullcontext() if printed else pytest.raises(Misaligned, match="vprintf reads its arg"):
        KernelRunner(text).launch("k", 1, 1)
    assert capsys.readouterr().out == printed


def test_threads_print_in_their_order(
    runner: KernelRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    runner.launch("lines", 3, 4, 10)
    # As on a GPU, each call adds its text for all threads that are together, in their order.
    even = "".join(f"even {i} of 10\n" for i in range(0, 10, 2))
    odd = "odd " * 5 + "".join(f"{i}\n" for i in range(1, 10, 2))
    assert capsys.readouterr().out in (even + odd, odd + even)


def test_a_failed_assertion_prints_as_cuda_does_and_is_typed(
    runner: KernelRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    x = runner.put(np.array([1, 13, 2, 13, 5, 6], np.int32))
    with pytest.raises(AssertionFailed, match="no thirteen") as caught:
        runner.launch("checked", 2, 3, x, 6)
    captured = capsys.readouterr()
    assert captured.out == "before\n"
    text = 'i < n && x[i] != 13 && "no thirteen"'
    name = "void checked(const int *, int)"
    places = [("0", "1"), ("1", "0")]
    assert captured.err == "".join(
        f"runtime_calls.cu:{caught.value.line}: {name}: block: [{b},0,0], thread: [{t},0,0] "
        f"Assertion `{text}` failed.\n"
        for b, t in places
    )
    assert caught.value.assertion == text
    assert caught.value.function == name
    assert caught.value.where.thread == (1, 0, 0)


def test_assertions_that_hold_cost_nothing(runner: KernelRunner) -> None:
    runner.launch("checked", 2, 3, runner.put(np.zeros(6, np.int32)), 6)


def test_the_heap_returns_null_when_it_is_full_and_reuses_freed_memory(
    runner: KernelRunner,
) -> None:
    pointers = runner.put(np.zeros(64, np.uint64))
    runner.launch("fill", 1, 12, pointers, 1 << 20, 1)
    found = runner.get(pointers, 12, np.uint64)
    assert (found[:8] != 0).all()
    assert (found[8:] == 0).all()
    assert (found % 16 == 0).all()
    assert runner.device.heap.used_bytes == 8 << 20
    last = [int(runner.get(int(p) + (1 << 20) - 4, 1, np.int32)[0]) for p in found[:8]]
    assert last == list(range(8))
    runner.launch("release", 1, 12, pointers)
    assert runner.device.heap.used_bytes == 0
    runner.device.heap.limit = 100
    runner.launch("fill", 1, 4, pointers, 30, 0)
    assert np.count_nonzero(runner.get(pointers, 4, np.uint64)) == 3


def test_an_allocation_of_nothing_is_an_address(runner: KernelRunner) -> None:
    pointers = runner.put(np.zeros(1, np.uint64))
    runner.launch("fill", 1, 1, pointers, 0, 0)
    assert runner.get(pointers, 1, np.uint64)[0] != 0
    runner.launch("release", 1, 1, pointers)
    assert runner.device.heap.used_bytes == 0


def test_a_write_past_the_end_names_the_kernel_that_allocated(one: KernelRunner) -> None:
    pointers = one.put(np.zeros(4, np.uint64))
    one.launch("fill", 1, 4, pointers, 16, 0)
    words = r"0 bytes past the end of the nearest allocation .*malloc in kernel fill, .*\.cu:\d+"
    with pytest.raises(OutOfBounds, match=words) as caught:
        one.launch("past_end", 1, 4, pointers)
    assert caught.value.where.source_line is not None


def test_a_use_after_free_is_reported(one: KernelRunner) -> None:
    pointers, out = one.put(np.zeros(1, np.uint64)), one.put(np.zeros(1, np.int32))
    one.launch("fill", 1, 1, pointers, 16, 0)
    with pytest.raises(UseAfterFree, match="malloc in kernel fill"):
        one.launch("after_free", 1, 1, pointers, out)


def test_a_double_free_is_reported(runner: KernelRunner) -> None:
    pointers = runner.put(np.zeros(2, np.uint64))
    runner.launch("fill", 1, 2, pointers, 16, 0)
    runner.launch("release", 1, 2, pointers)
    with pytest.raises(InvalidFree, match="was freed before") as caught:
        runner.launch("release", 1, 2, pointers)
    assert caught.value.where.thread == (0, 0, 0)


def test_a_free_of_the_hosts_memory_is_reported(runner: KernelRunner) -> None:
    mine = runner.put(np.zeros(16, np.int32), "the host's")
    pointers = runner.put(np.array([0, mine], np.uint64))
    with pytest.raises(InvalidFree, match="not allocated by device code") as caught:
        runner.launch("release", 1, 2, pointers)
    assert caught.value.address == mine
    assert caught.value.where.thread == (1, 0, 0)
    inside = runner.put(np.array([mine + 16], np.uint64))
    with pytest.raises(InvalidFree, match="lies inside the allocation"):
        runner.launch("release", 1, 1, inside)


@pytest.mark.parametrize("how", [0, 1])
def test_traps_and_breakpoints_stop_the_kernel(runner: KernelRunner, how: int) -> None:
    with pytest.raises(Trap) as caught:
        runner.launch("stop", 1, 8, how)
    assert caught.value.where.thread == (3, 0, 0)


@pytest.mark.parametrize("how", [2, 3])
def test_a_thread_may_exit_in_a_branch(runner: KernelRunner, how: int) -> None:
    runner.launch("stop", 2, 8, how)


def test_the_runaway_limit_can_be_set(one: KernelRunner) -> None:
    flag = one.put(np.zeros(1, np.int32))
    with pytest.raises(Runaway, match="Limits.max_steps") as caught:
        one.launch("forever", 1, 32, flag, limits=Limits(max_steps=5000))
    assert caught.value.where.source_line is not None


def test_sleeping_and_clocks(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(32, np.int64))
    runner.launch("sleepers", 1, 32, out)
    assert runner.get(out, 32, np.int64).tolist() == [1] * 32


def test_what_was_printed_before_a_fault_is_not_lost(
    one: KernelRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    x = one.put(np.zeros(1, np.int32))
    with pytest.raises(EmulationFault):
        one.launch("checked", 1, 200, x, 200)
    assert capsys.readouterr().out == "before\n"
