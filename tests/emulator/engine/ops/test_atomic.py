"""Atomics where many threads meet, against a simulation; and each alone, against a GPU.

`gpu_atomics.txt` has for each instruction a digest of what an H100 (compute capability 9.0, driver
580) gave for 256 rows of `sample_float_rows`, each thread on memory of its own.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate.model.errors import Misaligned, OutOfBounds, UnsupportedInstruction, UseAfterFree
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.emulator.engine.ops.assembly import digest, emulate, sample_float_rows
from tests.emulator.engine.ops.atomic_reference import Words, simulate, width_of
from tests.rows import all_rows
from tests.short_cases import few

N = 768  # threads
SPACES = ("global", "shared", "generic", "mixed")


def test_instructions_give_the_bits_of_the_gpu() -> None:
    lines = Path(__file__).with_name("gpu_atomics.txt").read_text().splitlines()
    recorded = {text: int(number, 16) for number, _, text in (x.split(" ", 2) for x in lines)}
    found = emulate(tuple(recorded), sample_float_rows(256))
    wrong = [
        text
        for (text, number), bits in zip(recorded.items(), found, strict=True)
        if digest(bits) != number
    ]
    assert len(recorded) > 300
    assert wrong == []


def kernel(text: str, nbytes: int, space: str, elements: int) -> str:
    """Each thread executes `text` on [%at] with %v and %w, and stores %o.

    Mixed: even threads use shared memory, odd ones global memory, by generic addresses.
    """
    bits = 8 * nbytes
    reg, shift = f".b{bits}", nbytes.bit_length() - 1
    in_shared = {"global": "0", "generic": "0", "shared": "1", "mixed": "1"}[space]
    body = f"""
    .shared .align 8 .b8 area[{elements * nbytes}];
    .reg .b64 %mem, %in, %out, %at, %sh, %p64, %s64; .reg .b32 %i, %k, %odd, %use;
    .reg {reg} %v, %w, %o, %t; .reg .pred %p, %small, %glob;
    ld.param.u64 %mem, [mem]; ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
    mov.u32 %i, %tid.x; mul.wide.u32 %p64, %i, 24; add.u64 %in, %in, %p64;
    mul.wide.u32 %p64, %i, {nbytes}; add.u64 %out, %out, %p64; add.u64 %s64, %mem, %p64;
    ld.global.u32 %k, [%in]; ld.global.b{bits} %v, [%in+8]; ld.global.b{bits} %w, [%in+16];
    mov.u64 %sh, area; cvta.shared.u64 %sh, %sh; setp.lt.u32 %small, %i, {elements};
    mov.u32 %use, {in_shared};
    add.u64 %p64, %sh, %p64;
    @%small ld.global.b{bits} %t, [%s64];
    @%small st.b{bits} [%p64], %t;
    bar.sync 0;
    shl.b32 %k, %k, {shift}; cvt.u64.u32 %at, %k;
    and.b32 %odd, %i, {1 if space == "mixed" else 0}; setp.ne.u32 %glob, %odd, 0;
    @!%glob add.u64 %at, %at, {"%sh" if in_shared == "1" else "%mem"};
    @%glob add.u64 %at, %at, %mem;
    {"cvta.to.shared.u64 %at, %at;" if space == "shared" else ""}
    {text}
    st.global.b{bits} [%out], %o;
    bar.sync 0;
    @!%small bra DONE;
    {f"ld.b{bits} %t, [%p64]; st.global.b{bits} [%s64], %t;" if space == "shared" else ""}
    DONE: ret;"""
    return ptx_text(body, ".param .u64 mem, .param .u64 in, .param .u64 out")


def contend(
    text: str, dtype: str, space: str, memory: Words, places: Words, values: Words, others: Words
) -> tuple[Words, Words]:
    """What the emulator's threads found, and the memory after them."""
    nbytes = np.dtype(dtype).itemsize
    runner = KernelRunner(kernel(text, nbytes, space, len(memory)), 1 << 20)
    rows = np.zeros((len(places), 3), np.uint64)
    rows[:, 0], rows[:, 1], rows[:, 2] = places, values, others
    where = runner.put(np.array(memory, dtype))
    out = runner.put(np.zeros(len(places), dtype))
    runner.launch("k", 1, len(places), where, runner.put(rows), out)
    found: NDArray[Any] = runner.get(out, len(places), dtype)
    return found.tolist(), runner.get(where, len(memory), dtype).tolist()


CASES = [
    (name, kind)
    for name, kinds in {
        "add": ("u32", "s32", "u64", "f32", "f64", "f16", "bf16"),
        "min": ("u32", "s32", "u64", "s64"), "max": ("u32", "s32", "u64", "s64"),
        "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"),
        "exch": ("b32", "b64"), "cas": ("b16", "b32", "b64"), "inc": ("u32",), "dec": ("u32",),
    }.items()
    for kind in kinds
]  # fmt: skip


def floats(kind: str, count: int, source: random.Random) -> Words:
    """Bits of numbers that need rounding in every sum, and none is subnormal."""
    numbers = [source.choice((-1, 1)) * source.uniform(1, 1000) for _ in range(count)]
    if kind == "bf16":
        bits = np.array(numbers, "f4").view("u4") >> np.uint32(16)
    else:
        nbytes = int(kind[1:]) // 8
        bits = np.array(numbers, f"f{nbytes}").view(f"u{nbytes}")
    return [int(each) for each in bits]


def operands(name: str, kind: str, count: int, source: random.Random) -> Words:
    if "f" in kind:
        return floats(kind, count, source)
    bits = int(kind[1:])
    if name in ("inc", "dec", "cas"):
        return [source.randrange(4) for _ in range(count)]
    return [source.getrandbits(bits) for _ in range(count)]


@all_rows
@pytest.mark.parametrize("live", [True, False], ids=["used", "unused"])
@pytest.mark.parametrize(
    ("name", "kind"), few(CASES, len(CASES) // 3), ids=[".".join(case) for case in CASES]
)
def test_threads_act_one_after_another(name: str, kind: str, live: bool) -> None:
    source = random.Random(f"{name}{kind}")
    dtype = f"u{width_of(kind) // 8}"
    modifiers = ".noftz" if kind in ("f16", "bf16") else ""
    cases = (("global", 1, "%at"), ("shared", 5, "%at"), ("generic", 400, "%at"),
             ("mixed", 3, "%at"), ("global", 1, "%mem"))  # fmt: skip
    for space, elements, base in cases:
        suffix = f".{space}" if space in ("global", "shared") else ""
        arguments = f"[{base}], %v, %w" if name == "cas" else f"[{base}], %v"
        text = f"atom{suffix}.{name}{modifiers}.{kind} %o, {arguments};"
        if not live:
            opcode = "atom" if name in ("exch", "cas") else "red"
            target = "_, " if opcode == "atom" else ""
            text = f"{opcode}{suffix}.{name}{modifiers}.{kind} {target}{arguments};"
            text += f"mov.b{8 * int(dtype[1:])} %o, %v;"
        memory = operands(name, kind, elements, source)
        places = [source.randrange(elements) for _ in range(N)]
        values, others = (operands(name, kind, N, source) for _ in range(2))
        found, after = contend(text, dtype, space, memory, places, values, others)
        expected = list(memory)
        if space != "mixed":
            olds = simulate(name, kind, expected, places, values, others)
        else:
            shared, olds = list(memory), [0] * N
            for memories, first in ((shared, 0), (expected, 1)):
                chosen = slice(first, N, 2)
                olds[chosen] = simulate(
                    name, kind, memories, places[chosen], values[chosen], others[chosen]
                )
        assert after == expected, space
        if live:
            assert found == olds, space


@pytest.mark.parametrize("name", ["inc", "dec", "add", "exch", "cas", "max"])
def test_a_value_that_all_threads_share_gives_the_same_as_values_of_their_own(name: str) -> None:
    source = random.Random(name)
    arguments = "[%at], 5, 9" if name == "cas" else "[%at], 5"
    kind = {"inc": "u32", "dec": "u32", "add": "u32", "max": "u32"}.get(name, "b32")
    for start in (0, 3, 5, 77, 0xFFFFFFFF):
        memory = [start, 5, 6]
        places = [source.randrange(3) for _ in range(N)]
        text = f"atom.global.{name}.{kind} %o, {arguments};"
        found, after = contend(text, "u4", "global", memory, places, [0] * N, [0] * N)
        expected = list(memory)
        assert found == simulate(name, kind, expected, places, [5] * N, [9] * N)
        assert after == expected


def test_a_chain_of_swaps_is_followed_to_its_end() -> None:
    values, others = list(range(N)), list(range(1, N + 1))
    found, after = contend(
        "atom.global.cas.b32 %o, [%at], %v, %w;", "u4", "global", [0], [0] * N, values, others
    )
    assert found == values
    assert after == [N]


def test_a_swap_that_many_wait_for_succeeds_once() -> None:
    places, wanted, values = [k % 3 for k in range(N)], [7] * N, list(range(100, 100 + N))
    text = "atom.global.cas.b64 %o, [%at], %v, %w;"
    found, after = contend(text, "u8", "global", [7] * 3, places, wanted, values)
    assert after == [100, 101, 102]
    assert found == [7] * 3 + [100 + k % 3 for k in range(3, N)]


def test_subnormal_sums_vanish_in_global_memory_and_stay_in_shared_memory() -> None:
    tiny, least = 0x00000400, 0x00800001  # a subnormal, and just above the least normal number
    for space, expected in (("global", 0x00000000), ("shared", least - 0x00800000 + tiny)):
        text = f"red.{space}.add.f32 [%at], %v; mov.b32 %o, %v;"
        _, after = contend(text, "u4", space, [0], [0] * 3, [tiny, least, 0x80800000], [0] * 3)
        # Global: the subnormal is flushed, then least - 2**-126, itself subnormal, is too.
        assert after == [expected]


VECTOR = """
.reg .b64 %mem, %out, %p64; .reg .b32 %i; .reg .b16 %h<8>; .reg .f32 %f<8>;
ld.param.u64 %mem, [mem]; ld.param.u64 %out, [out]; mov.u32 %i, %tid.x;
mul.wide.u32 %p64, %i, 16; add.u64 %out, %out, %p64;
"""


def test_each_element_of_a_vector_is_combined_in_the_order_of_the_threads() -> None:
    text = ptx_text(
        VECTOR
        + """cvt.rn.f32.u32 %f0, %i; mov.f32 %f1, 0f3F800000;
        atom.global.v2.f32.add {%f2, %f3}, [%mem+8], {%f0, %f1};
        st.global.v2.f32 [%out], {%f2, %f3}; ret;""",
        ".param .u64 mem, .param .u64 out",
    )
    runner = KernelRunner(text, 1 << 20)
    where, out = runner.put(np.zeros(4, "f4")), runner.put(np.zeros((200, 4), "f4"))
    runner.launch("k", 1, 200, where, out)
    found = runner.get(out, 800, "f4").reshape(200, 4)
    order = np.arange(200)
    assert np.array_equal(found[:, 0], order * (order - 1) // 2)
    assert np.array_equal(found[:, 1], order)
    assert runner.get(where, 4, "f4").tolist() == [0, 0, 19900, 200]


def launch_one(instruction: str, address: int, device_bytes: int = 1 << 20) -> None:
    text = ptx_text(
        f".reg .b64 %p; .reg .b32 %r; .reg .f32 %f<4>; ld.param.u64 %p, [p]; {instruction} ret;",
        ".param .u64 p",
    )
    runner = KernelRunner(text, device_bytes)
    start = runner.put(np.zeros(4, np.uint32), "numbers")
    runner.launch("k", 1, 1, start + address)


def test_atomics_fault_like_stores() -> None:
    with pytest.raises(OutOfBounds, match=r"(?s)write of 4 .*0 bytes past the end of.*numbers"):
        launch_one("red.global.add.u32 [%p], 1;", 16)
    with pytest.raises(Misaligned):
        launch_one("atom.global.add.u32 %r, [%p], 1;", 2)
    with pytest.raises(Misaligned):
        launch_one("red.global.add.v2.f32 [%p], {%f0, %f1};", 4)
    with pytest.raises(OutOfBounds):
        launch_one("atom.shared.exch.b32 %r, [0], 1;", 0)
    text = ptx_text(
        ".reg .b64 %p; ld.param.u64 %p, [p]; red.add.u32 [%p], 1; ret;", ".param .u64 p"
    )
    runner = KernelRunner(text, 1 << 20)
    address = runner.put(np.zeros(4, np.uint32))
    runner.launch("k", 1, 1, address)
    runner.memory.free(address)
    with pytest.raises(UseAfterFree):
        runner.launch("k", 1, 1, address)


@pytest.mark.parametrize(
    "instruction",
    [
        "atom.global.add.f16 %h, [%p], %h;",
        "atom.global.min.noftz.f16 %h, [%p], %h;",
        "atom.global.add.noftz.u32 %r, [%p], 1;",
        "atom.global.add.v8.f32 %f0, [%p], %f0;",
        "atom.global.add.v2.f32 {%f0, %f1}, [%p], %f0;",
        "atom.global.min.f32 %f0, [%p], %f0;",
        "atom.global.cas.b32 %r, [%p], 1;",
        "atom.local.add.u32 %r, [%p], 1;",
        "red.global.exch.b32 [%p], 1;",
        "red.global.cas.b32 [%p], 1, 2;",
    ],
)
def test_forms_that_ptx_lacks_are_rejected_with_their_opcode(instruction: str) -> None:
    text = ptx_text(
        ".reg .b64 %p; .reg .b32 %r; .reg .b16 %h; .reg .f32 %f<4>; ld.param.u64 %p, [p];"
        f"{instruction} ret;",
        ".param .u64 p",
    )
    with pytest.raises(UnsupportedInstruction) as refused:
        KernelRunner(text, 1 << 20).program.kernel("k")
    assert instruction.split()[0] in str(refused.value)
