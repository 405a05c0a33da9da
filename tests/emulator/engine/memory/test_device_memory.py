"""Device memory: the allocator, and loads and stores in every space."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ptx.emulate.memory.device_memory import GRANULE, DeviceMemory
from ptx.emulate.model.errors import BadFree, Misaligned, OutOfBounds, OutOfMemory
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text, run
from tests.rows import all_rows

BASE = 1 << 40


def test_eighty_gigabytes_cost_nothing_until_used() -> None:
    memory = DeviceMemory(BASE, 80 << 30)
    address = memory.allocate(79 << 30)
    memory.data[address - BASE + (78 << 30)] = 5
    assert memory.data[address - BASE + (78 << 30)] == 5


_UNDER_A_LIMIT = """
import gc, resource
from ptx.emulate.model.errors import AddressSpaceExhausted
from ptx.emulate.memory.device_memory import DeviceMemory

with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (3 << 30),) * 2)
gc.disable()
for _ in range(5):  # each in a reference cycle, as a device's parts are
    memory = DeviceMemory(1 << 40, 1 << 30)
    cycle = [memory]
    cycle.append(cycle)
    del memory, cycle
try:
    DeviceMemory(1 << 40, 1 << 36)
except AddressSpaceExhausted as error:
    print(error.nbytes, "ulimit -v" in str(error))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of addresses are set as on Linux")
def test_a_process_short_of_addresses_frees_old_devices_and_then_reports_it() -> None:
    # A process of its own: the limit cannot be taken back.
    done = subprocess.run(
        [sys.executable, "-c", _UNDER_A_LIMIT], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == (f"{1 << 36} True\n", "")


def test_freed_block_is_reused_and_neighbours_join() -> None:
    memory = DeviceMemory(BASE, 64 * GRANULE)
    memory.quarantine_bytes = 0
    first, second, third = (memory.allocate(10 * GRANULE - 16) for _ in range(3))
    memory.free(first)
    memory.free(second)
    assert memory.allocate(20 * GRANULE - 16) == first
    memory.free(first)
    memory.free(third)
    assert memory.used_bytes == 0
    assert memory.allocate(64 * GRANULE - 16) == BASE


def test_freed_memory_waits_until_as_much_was_freed_after_it() -> None:
    memory = DeviceMemory(BASE, 64 * GRANULE)
    memory.quarantine_bytes = 4 * GRANULE
    pieces = [memory.allocate(100) for _ in range(6)]
    for piece in pieces:
        memory.free(piece)
    assert memory.used_bytes == 0
    assert memory.free_bytes == memory.nbytes
    # The first two have left; the others have not, and are known by what they were.
    assert [memory.allocate(100), memory.allocate(100)] == pieces[:2]
    assert memory.allocate(100) not in pieces
    assert [memory.find_freed(piece) is not None for piece in pieces] == [False] * 2 + [True] * 4


def test_waiting_memory_is_given_up_before_memory_runs_out() -> None:
    memory = DeviceMemory(BASE, 16 * GRANULE)
    pieces = [memory.allocate(GRANULE - 16) for _ in range(16)]
    for piece in pieces[4:12]:
        memory.free(piece)
    assert memory.free_bytes == 8 * GRANULE
    # What was freed first goes first, and no more of it than is needed.
    assert memory.allocate(2 * GRANULE - 16) == pieces[4]
    assert memory.find_freed(pieces[6]) is not None
    assert memory.allocate(6 * GRANULE - 16) == pieces[6]
    with pytest.raises(OutOfMemory) as caught:
        memory.allocate(1)
    assert caught.value.free == 0


def test_memory_too_large_to_wait_lets_the_others_wait() -> None:
    memory = DeviceMemory(BASE, 64 * GRANULE)
    memory.quarantine_bytes = 4 * GRANULE
    small, large = memory.allocate(100), memory.allocate(5 * GRANULE)
    memory.free(small)
    memory.free(large)
    assert memory.allocate(5 * GRANULE) == large
    assert memory.allocate(100) != small


def test_many_small_pieces_that_wait_are_bounded_in_number() -> None:
    memory = DeviceMemory(BASE, 1 << 26)
    first, *_ = pieces = [memory.allocate(1) for _ in range(5000)]
    for piece in pieces:
        memory.free(piece)
    assert memory.allocate(900 * GRANULE) == first


def test_bytes_past_a_live_allocation_were_never_freed() -> None:
    memory = DeviceMemory(BASE, 64 * GRANULE)
    memory.quarantine_bytes = 0
    memory.free(memory.allocate(20 * GRANULE))
    small = memory.allocate(100)
    assert memory.find_freed(small + 100) is None
    assert memory.find_freed(small + GRANULE - 1) is None
    assert memory.find_freed(small + GRANULE) is not None


def test_out_of_memory_states_request_and_what_is_free() -> None:
    memory = DeviceMemory(BASE, 16 * GRANULE)
    memory.allocate(8 * GRANULE - 16)
    with pytest.raises(OutOfMemory) as caught:
        memory.allocate(9 * GRANULE)
    assert (caught.value.nbytes, caught.value.free) == (9 * GRANULE, 8 * GRANULE)


def test_wrong_frees_say_why() -> None:
    memory = DeviceMemory(BASE, 64 * GRANULE)
    address = memory.allocate(100, origin="a test")
    with pytest.raises(BadFree, match=r"inside the allocation of 100 bytes .*a test"):
        memory.free(address + 4)
    memory.free(address)
    with pytest.raises(BadFree, match="freed before"):
        memory.free(address)
    with pytest.raises(BadFree, match="nothing was allocated"):
        memory.free(BASE + 32 * GRANULE)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3000)), max_size=60))
def test_allocations_never_overlap_and_all_comes_back(steps: list[tuple[int, int]]) -> None:
    memory = DeviceMemory(BASE, 64 * GRANULE)
    live: dict[int, int] = {}
    for choice, size in steps:
        if choice and live:
            address = sorted(live)[size % len(live)]
            memory.free(address)
            del live[address]
            continue
        try:
            address = memory.allocate(size, alignment=1 << (size % 12))
        except OutOfMemory:
            continue
        assert address % (1 << (size % 12)) == 0
        assert all(address >= a + n or address + size <= a for a, n in live.items())
        live[address] = size
        found = memory.find(address + size - 1)
        assert found is not None
        assert found.address == address
        assert memory.find(address + size) is None
    for address in live:
        memory.free(address)
    assert memory.used_bytes == 0
    assert memory.allocate(64 * GRANULE - 16) == BASE


def test_vectors_move_their_elements_in_order() -> None:
    rows = np.arange(64, dtype=np.uint32).reshape(16, 4)
    found = run(
        "ld.global.nc.L1::no_allocate.v4.u32 {%r10, %r11, %r12, %r13}, [%rd1];"
        "st.global.cs.v4.b32 [%rd1], {%r13, %r12, %r11, %r10};"
        "ld.volatile.global.v2.u32 {%r14, _}, [%rd1+8]; ld.relaxed.gpu.global.u32 %r15, [%rd1];"
        "mad.lo.u32 %r16, %r14, 1000, %r15; st.release.gpu.global.u32 [%rd2], %r16;",
        rows,
        np.uint32,
    )
    assert found.tolist() == [row[1] * 1000 + row[3] for row in rows.tolist()]


def test_narrow_loads_extend_by_their_sign_and_stores_cut() -> None:
    rows = np.array([[0x80, 0x7F], [0xFF, 0x01]], np.uint8)
    found = run(
        "ld.global.s8 %r10, [%rd1]; ld.global.u8 %r11, [%rd1]; ld.global.s8 %rd10, [%rd1+1];"
        "st.global.b16 [%rd2], %r10; st.global.b8 [%rd2+2], %rd10; st.global.u8 [%rd2+3], %r11;",
        rows,
        np.uint32,
    )
    assert found.tolist() == [0x807FFF80, 0xFF01FFFF]


def test_misaligned_vectors_are_reported() -> None:
    with pytest.raises(Misaligned, match="no multiple of 8"):
        run("ld.global.v2.u32 {%r1, %r2}, [%rd1+4];", np.zeros((2, 4), np.uint32), np.uint32)


def test_generic_addresses_of_all_spaces_mix_in_one_access() -> None:
    text = ptx_text(
        """.reg .pred %p<5>; .reg .b32 %r<9>; .reg .b64 %rd<20>;
        .shared .align 4 .b8 s[64]; .local .align 4 .b8 l[8];
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3;
        mov.u64 %rd2, s; cvta.shared.u64 %rd3, %rd2; mov.u64 %rd4, l; cvta.local.u64 %rd5, %rd4;
        mov.u64 %rd6, g; cvta.global.u64 %rd7, %rd6; mov.b64 %rd8, out; cvta.param.u64 %rd9, %rd8;
        st.shared.u32 [s], 11; st.local.u32 [l], %r1; st.local.u32 [l+4], 99;
        mov.u64 %rd10, %rd3; setp.eq.u32 %p1, %r2, 1; selp.b64 %rd10, %rd5, %rd10, %p1;
        setp.eq.u32 %p1, %r2, 2; selp.b64 %rd10, %rd7, %rd10, %p1;
        setp.eq.u32 %p1, %r2, 3; selp.b64 %rd10, %rd9, %rd10, %p1;
        ld.u32 %r3, [%rd10];
        isspacep.shared %p1, %rd10; selp.u32 %r4, 1, 0, %p1; isspacep.local %p2, %rd10;
        @%p2 add.u32 %r4, %r4, 2; isspacep.global %p3, %rd10; @%p3 add.u32 %r4, %r4, 4;
        isspacep.param %p4, %rd10; @%p4 add.u32 %r4, %r4, 8;
        mul.wide.u32 %rd11, %r1, 8; add.u64 %rd12, %rd1, %rd11; st.v2.u32 [%rd12], {%r3, %r4};
        @%p4 bra END; add.u32 %r3, %r3, 1; st.u32 [%rd10], %r3; ld.u32 %r5, [%rd10];
        st.global.u32 [%rd12], %r5;
        END: ret;""",
        ".param .u64 out",
        ".global .align 4 .u32 g = 77;",
    )
    runner = KernelRunner(text)
    out = runner.put(np.zeros(128, np.uint32))
    runner.launch("k", 1, 64, out)
    found = runner.get(out, 128, np.uint32).reshape(64, 2)
    for lane, (value, spaces) in enumerate(found.tolist()):
        expected = (12, lane + 1, 78, out & 0xFFFFFFFF)[lane % 4]
        assert (value, spaces) == (expected, (1, 2, 4, 4 + 8)[lane % 4]), lane


def test_what_is_in_no_window_is_global_as_an_h100_has_it() -> None:
    """Constants are not, parameters are, and so are the null pointer and whatever is not mapped."""
    places = ("g", "c", "s", "l", "given", "0", "12345")
    body = [
        """.reg .pred %p<6>; .reg .b32 %r<6>; .reg .b64 %rd<4>; .shared .b32 s; .local .b32 l;
        ld.param.u64 %rd1, [out]; ld.param.u64 %rd3, [given];"""
    ]
    windows = dict(zip(places, ("global", "const", "shared", "local", "param"), strict=False))
    for at, place in enumerate(places):
        body.append(f"mov.u64 %rd2, {place};")
        if place in windows:
            body.append(f"cvta.{windows[place]}.u64 %rd2, %rd2;")
        body.append("mov.u32 %r1, 0;")
        for bit, space in enumerate(("global", "const", "shared", "local", "param")):
            body.append(f"isspacep.{space} %p1, %rd2; @%p1 or.b32 %r1, %r1, {1 << bit};")
        body.append(f"st.global.u32 [%rd1 + {4 * at}], %r1;")
    before = ".global .b32 g; .const .b32 c = 1;"
    params = ".param .u64 out, .param .u64 given"
    runner = KernelRunner(ptx_text(" ".join([*body, "ret;"]), params, before))
    out = runner.put(np.zeros(len(places), np.uint32))
    runner.launch("k", 1, 1, out, 0)
    assert runner.get(out, len(places), np.uint32).tolist() == [1, 2, 4, 8, 17, 1, 1]


def test_a_global_load_reads_parameters_by_their_generic_address() -> None:
    body = """.reg .b64 %rd<6>; .reg .b32 %r<6>; ld.param.u64 %rd1, [out];
        mov.b64 %rd2, many; cvta.param.u64 %rd3, %rd2; mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd4, %r1, 4; add.u64 %rd5, %rd3, %rd4; cvta.to.global.u64 %rd5, %rd5;
        ld.global.u32 %r2, [%rd5]; add.u64 %rd5, %rd1, %rd4; st.global.u32 [%rd5], %r2; ret;"""
    runner = KernelRunner(ptx_text(body, ".param .u64 out, .param .align 4 .b8 many[32]"))
    out = runner.put(np.zeros(9, np.uint32))
    given = np.arange(8, dtype=np.uint32) * np.uint32(0x01234567)
    runner.launch("k", 1, 8, out, given.tobytes())
    assert (runner.get(out, 8, np.uint32) == given).all()
    with pytest.raises(OutOfBounds):
        runner.launch("k", 1, 32, out, given.tobytes())


def test_local_memory_is_each_threads_own_and_ends() -> None:
    body = """.local .align 8 .b8 box[32]; mov.u64 %rd10, box; and.b32 %r10, %r0, 7;
        mul.wide.u32 %rd11, %r10, 4; add.u64 %rd12, %rd10, %rd11; st.local.u32 [%rd12], %r0;
        ld.local.u32 %r11, [%rd12]; {more} st.global.u32 [%rd2], %r11;"""
    rows = np.zeros((300, 1), np.uint32)
    assert run(body.format(more=""), rows, np.uint32).tolist() == list(range(300))
    with pytest.raises(OutOfBounds, match="32 bytes of local memory"):
        run(body.format(more="ld.local.u32 %r11, [%rd12+28];"), rows, np.uint32)


def test_module_variables_start_with_their_values_and_addresses() -> None:
    before = """
        .const .align 4 .f32 c[3] = {0f3F800000, 0f40000000, 2.5};
        .global .align 4 .s32 table[4] = {-1, 7};
        .global .align 8 .u64 where[2] = {generic(c)+4, table};
        .global .align 1 .u8 low[2] = {0xFF(table), 0xFF00(table)};
        .visible .global .align 4 .u32 counter;"""
    text = ptx_text(
        """.reg .f32 %f<4>; .reg .b64 %rd<6>; .reg .b32 %r<9>; ld.param.u64 %rd1, [out];
        ld.global.u64 %rd2, [where]; ld.f32 %f1, [%rd2]; ld.const.f32 %f2, [c+8];
        ld.global.u64 %rd3, [where+8]; ld.global.s32 %r1, [%rd3+4]; ld.global.s32 %r2, [table+12];
        ld.global.u8 %r3, [low]; ld.global.u8 %r4, [low+1]; shl.b32 %r4, %r4, 8;
        or.b32 %r3, %r3, %r4; cvt.u32.u64 %r5, %rd3; and.b32 %r5, %r5, 65535;
        setp.eq.u32 %p, %r3, %r5; selp.u32 %r3, 1, 0, %p;
        st.global.f32 [%rd1], %f1; st.global.f32 [%rd1+4], %f2; st.global.u32 [%rd1+8], %r1;
        st.global.u32 [%rd1+12], %r2; st.global.u32 [%rd1+16], %r3;
        ld.global.u32 %r6, [counter]; add.u32 %r6, %r6, 1; st.global.u32 [counter], %r6;
        ret;""".replace(".reg .f32", ".reg .pred %p; .reg .f32"),
        ".param .u64 out",
        before,
    )
    runner = KernelRunner(text)
    out = runner.put(np.zeros(5, np.uint32))
    runner.launch("k", 1, 1, out)
    runner.launch("k", 1, 1, out)
    found = runner.get(out, 5, np.uint32)
    assert found[:2].view(np.float32).tolist() == [2.0, 2.5]
    assert found[2:].tolist() == [7, 0, 1]
    address, nbytes = runner.program.globals["counter"]
    assert (runner.get(address, 1, np.uint32)[0], nbytes) == (2, 4)
    used = runner.memory.used_bytes
    runner.program.close()
    assert runner.memory.used_bytes < used
    runner.program.close()


def test_parameters_are_read_by_place_by_address_and_as_vectors() -> None:
    text = ptx_text(
        """.reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .b16 %rs<5>;
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;
        ld.param.v2.u32 {%r2, %r3}, [s+8]; ld.param.u8 %rs1, [s+1]; cvt.u32.u16 %r4, %rs1;
        mov.b64 %rd2, s; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd2, %rd3;
        ld.param.u32 %r5, [%rd4]; mad.lo.u32 %r6, %r2, 1000, %r3; mad.lo.u32 %r6, %r4, 7, %r6;
        add.u32 %r6, %r6, %r5; add.u64 %rd5, %rd1, %rd3; st.global.u32 [%rd5], %r6; ret;""",
        ".param .u64 out, .param .align 8 .b8 s[16]",
    )
    runner = KernelRunner(text)
    out = runner.put(np.zeros(4, np.uint32))
    values = np.array([0x0300, 5, 6, 9], np.uint32)
    runner.launch("k", 1, 4, out, values.tobytes())
    assert runner.get(out, 4, np.uint32).tolist() == [6009 + 21 + int(v) for v in values]


Dim3 = tuple[int, int, int]
SPECIAL: dict[str, Callable[[Dim3, Dim3], int]] = {
    "tid.x": lambda b, t: t[0], "tid.y": lambda b, t: t[1], "tid.z": lambda b, t: t[2],
    "ctaid.x": lambda b, t: b[0], "ctaid.y": lambda b, t: b[1], "ctaid.z": lambda b, t: b[2],
    "ntid.x": lambda b, t: 5, "ntid.y": lambda b, t: 3, "ntid.z": lambda b, t: 4,
    "nctaid.x": lambda b, t: 3, "nctaid.y": lambda b, t: 2, "nctaid.z": lambda b, t: 2,
    "laneid": lambda b, t: (t[0] + 5 * t[1] + 15 * t[2]) % 32,
    "warpid": lambda b, t: (t[0] + 5 * t[1] + 15 * t[2]) // 32,
    "lanemask_lt": lambda b, t: (1 << (t[0] + 5 * t[1] + 15 * t[2]) % 32) - 1,
    "lanemask_ge": lambda b, t: 0xFFFFFFFF & ~((1 << (t[0] + 5 * t[1] + 15 * t[2]) % 32) - 1),
    "dynamic_smem_size": lambda b, t: 96, "total_smem_size": lambda b, t: 128,
}  # fmt: skip


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("chunk", [1, 150, 32768])
def test_special_registers_say_where_a_thread_is(name: str, chunk: int) -> None:
    text = ptx_text(
        f""".reg .b32 %r<20>; .reg .b64 %rd<4>; .shared .align 16 .b8 s[16];
        ld.param.u64 %rd1, [out]; st.shared.u32 [s], 0;
        mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ctaid.x;
        mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z; mad.lo.u32 %r7, %r6, 2, %r5;
        mad.lo.u32 %r7, %r7, 3, %r4; mad.lo.u32 %r7, %r7, 4, %r3; mad.lo.u32 %r7, %r7, 3, %r2;
        mad.lo.u32 %r7, %r7, 5, %r1; mul.wide.u32 %rd2, %r7, 4; add.u64 %rd3, %rd1, %rd2;
        mov.u32 %r8, %{name}; st.global.u32 [%rd3], %r8; ret;""",
        ".param .u64 out",
    )
    runner = KernelRunner(text)
    out = runner.put(np.zeros(720, np.uint32))
    runner.launch("k", (3, 2, 2), (5, 3, 4), out, shared=96, limits=Limits(chunk_threads=chunk))
    expected = [
        SPECIAL[name]((bx, by, bz), (x, y, z))
        for bz in range(2)
        for by in range(2)
        for bx in range(3)
        for z in range(4)
        for y in range(3)
        for x in range(5)
    ]
    assert runner.get(out, 720, np.uint32).tolist() == expected


def test_clocks_go_on() -> None:
    found = run(
        "mov.u64 %rd10, %clock64; mov.u64 %rd11, %clock64; sub.s64 %rd10, %rd11, %rd10;"
        "mov.u64 %rd12, %globaltimer; shr.u64 %rd12, %rd12, 40; add.u64 %rd10, %rd10, %rd12;"
        "st.global.u64 [%rd2], %rd10;",
        np.zeros((1, 1), np.uint32),
        np.int64,
    )
    assert found[0] > 0


def test_floating_atomics_round_each_step_in_thread_order() -> None:
    rng = np.random.default_rng(4)
    values = (rng.standard_normal(1000) * 10.0 ** rng.integers(-6, 7, 1000)).astype(np.float32)
    body = """.reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<5>; ld.param.u64 %rd1, [x];
        ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;
        add.u64 %rd1, %rd1, %rd3; ld.global.f32 %f1, [%rd1]; {atomic} ret;"""
    total = np.float32(0)
    before = []
    for value in values:
        before.append(total)
        total = np.float32(total + value)
    plain = KernelRunner(
        ptx_text(
            body.format(atomic="red.global.add.f32 [%rd2], %f1;"), ".param .u64 x, .param .u64 out"
        )
    )
    out = plain.put(np.zeros(1, np.float32))
    plain.launch("k", 1, 1000, plain.put(values), out)
    assert plain.get(out, 1, np.float32)[0] == total
    used = KernelRunner(
        ptx_text(
            body.format(atomic="atom.global.add.f32 %f2, [%rd2], %f1; st.global.f32 [%rd1], %f2;"),
            ".param .u64 x, .param .u64 out",
        )
    )
    out, source = used.put(np.zeros(1, np.float32)), used.put(values)
    used.launch("k", 1, 1000, source, out)
    assert used.get(out, 1, np.float32)[0] == total
    np.testing.assert_array_equal(used.get(source, 1000, np.float32), before)


def test_a_peers_memory_is_reached_by_its_addresses() -> None:
    text = ptx_text(
        """.reg .b64 %rd<5>; .reg .b32 %r<4>; ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1; ret;""",
        ".param .u64 a",
    )
    here, there = KernelRunner(text), KernelRunner(text)
    out = there.put(np.zeros(32, np.uint32))
    with pytest.raises(OutOfBounds):
        here.launch("k", 1, 32, out)
    here.device.peers = (there.memory,)
    here.launch("k", 1, 32, out)
    assert there.get(out, 32, np.uint32).tolist() == list(range(32))
    with pytest.raises(OutOfBounds):
        here.launch("k", 1, 33, out)
    there.memory.free(out)
    with pytest.raises(OutOfBounds):
        here.launch("k", 1, 32, out)
