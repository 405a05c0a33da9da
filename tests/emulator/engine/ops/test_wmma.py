"""`wmma` in every form: loads, products and stores through memory, against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate import Limits
from ptx.emulate.model.errors import (
    Deadlock,
    Misaligned,
    OutOfBounds,
    SynchronisationFault,
    UninitialisedRead,
    UnsupportedInstruction,
)
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.ops.matrix_lanes import WIDTHS, encoded, packed, sizes
from tests.rows import all_rows
from tests.short_cases import few

LARGE = ["m16n16k16", "m8n32k16", "m32n8k16"]
FORMS = [
    *itertools.product(
        LARGE,
        ["f32.f16.f16.f32", "f16.f16.f16.f16", "f32.f16.f16.f16", "f16.f16.f16.f32",
         "f32.bf16.bf16.f32", "s32.s8.s8.s32", "s32.u8.u8.s32"],
    ),
    ("m16n16k8", "f32.tf32.tf32.f32"),
    ("m8n8k4", "f64.f64.f64.f64"),
    ("m8n8k32", "s32.s4.s4.s32"),
    ("m8n8k32", "s32.u4.u4.s32"),
    ("m8n8k128", "s32.b1.b1.s32"),
]  # fmt: skip
SHARED_BYTES = 16384


def registers(shape: str, element: str, role: str) -> int:
    """How many the fragment has; those of f16 are eight for every A and B."""
    m, n, k = sizes(shape)
    if element == "f16" and role != "c":
        return 8
    elements = {"a": m * k, "b": k * n, "c": m * n}[role]
    return elements // 32 if element == "f64" else elements * WIDTHS[element] // 1024


def names(start: int, count: int, wide: bool) -> str:
    return "{" + ", ".join(f"%{'fd' if wide else 'r'}{start + k}" for k in range(count)) + "}"


def laid_out(values: NDArray[Any], element: str, order: str, stride: int) -> NDArray[np.uint8]:
    """(rows, columns) numbers as they lie in memory, with 0xcc between the rows (columns)."""
    lines = encoded(values if order == "row" else values.T, element)
    width = WIDTHS[element]
    if width < 8:
        lines = packed(lines, element)
    octets = np.ascontiguousarray(lines).view(np.uint8).reshape(len(lines), -1)
    found = np.full((len(lines), stride * width // 8), 0xCC, np.uint8)
    found[:, : octets.shape[1]] = octets
    return found


def kernel(moves: str) -> str:
    """`k(a, b, c, d)`: what a, b and c point to is copied to shared memory first, at 4096 each."""
    copies = "".join(
        f"""ld.param.u64 %rd{k}, [p{k}]; cvta.to.global.u64 %rd{k}, %rd{k};
        mov.u32 %r90, 0; LOOP{k}: add.u32 %r91, %r90, %r89; cvt.u64.u32 %rd9, %r91;
        add.u64 %rd9, %rd{k}, %rd9; ld.global.u32 %r92, [%rd9]; add.u32 %r91, %r91, {4096 * k};
        mov.u32 %r93, area; add.u32 %r91, %r93, %r91; st.shared.u32 [%r91], %r92;
        add.u32 %r90, %r90, 128; setp.lt.u32 %p1, %r90, 4096; @%p1 bra LOOP{k};
        mov.u32 %r{94 + k}, area; add.u32 %r{94 + k}, %r{94 + k}, {4096 * k};
        cvt.u64.u32 %rd{k + 10}, %r{94 + k}; cvta.shared.u64 %rd{k + 10}, %rd{k + 10};
        """
        for k in range(3)
    )
    return f""".version 8.7
        .target sm_90
        .address_size 64
        .visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3) {{
        .reg .b32 %r<100>; .reg .b64 %rd<20>; .reg .f64 %fd<60>; .reg .pred %p<3>;
        .shared .align 128 .b8 area[{SHARED_BYTES}];
        mov.u32 %r89, %tid.x; shl.b32 %r89, %r89, 2;
        {copies}
        ld.param.u64 %rd3, [p3]; cvta.to.global.u64 %rd3, %rd3; bar.warp.sync -1;
        {moves}
        ret; }}"""


def product(
    shape: str, types: str, orders: str, space: str, pad: int, option: str = "", op: str = ""
) -> tuple[NDArray[Any], NDArray[Any]]:
    """What the emulator stores, and what NumPy says."""
    d, of_a, of_b, of_c = types.split(".")
    m, n, k = sizes(shape)
    rng = np.random.default_rng(len(shape) + len(types))
    low, high = (-6, 6) if of_a in ("s8", "s4") or of_a[0] not in "sub" else (0, 9)
    if of_a == "b1":
        low, high = 0, 1
    a, b = rng.integers(low, high + 1, (m, k)), rng.integers(low, high + 1, (k, n))
    c = rng.integers(-50, 51, (m, n))
    order_a, order_b, order_c = orders.split(".")
    wide = d == "f64"
    lists = {
        "a": names(0, registers(shape, of_a, "a"), wide),
        "b": names(10, registers(shape, of_b, "b"), wide),
        "c": names(20, registers(shape, of_c, "c"), wide),
        "d": names(40, registers(shape, d, "c"), wide),
    }
    arrays, lines = [], []
    base = {
        "global": ("%rd0", "%rd1", "%rd2"),
        "shared": ("%r94", "%r95", "%r96"),
        "generic": ("%rd10", "%rd11", "%rd12"),
    }[space]
    where = "" if space == "generic" else f".{space}"
    for at, (role, values, element, order) in enumerate(
        (("a", a, of_a, order_a), ("b", b, of_b, order_b), ("c", c, of_c, order_c))
    ):
        rows, columns = values.shape
        dense = columns if order == "row" else rows
        stride = dense + pad * max(1, 128 // WIDTHS[element])
        arrays.append(laid_out(values, element, order, stride))
        text = f", {stride}" if pad else ""
        lines.append(
            f"wmma.load.{role}.sync.aligned.{order}.{shape}{where}.{element} {lists[role]},"
            f" [{base[at]}]{text};"
        )
    types_text = f"{d}.{of_c}" if of_a == "f16" else types
    lines.append(
        f"wmma.mma{op}.sync.aligned.{order_a}.{order_b}.{shape}.{types_text}{option} {lists['d']},"
        f" {lists['a']}, {lists['b']}, {lists['c']};"
    )
    dense = n if order_c == "row" else m
    stride = dense + pad * max(1, 128 // WIDTHS[d])
    lines.append(
        f"wmma.store.d.sync.aligned.{order_c}.{shape}.global.{d} [%rd3], {lists['d']}"
        f"{f', {stride}' if pad else ''};"
    )
    runner = KernelRunner(kernel("\n".join(lines)), 1 << 24)
    places = []
    for array in arrays:
        whole = np.zeros(4096, np.uint8)
        whole[: array.size] = array.reshape(-1)
        places.append(runner.put(whole))
    size = stride * (m if order_c == "row" else n)
    dtype = {"f32": "f4", "f16": "f2", "f64": "f8", "s32": "i4"}[d]
    out = runner.put(np.full(size, 77, dtype))
    runner.launch("k", 1, 32, *places, out)
    stored = runner.get(out, size, dtype).reshape(-1, stride)
    assert (stored[:, dense:] == 77).all()
    found = stored[:, :dense] if order_c == "row" else stored[:, :dense].T
    exact = a @ b if op != ".xor.popc" else (a[:, :, None] ^ b[None]).sum(axis=1)
    return found, exact + c


def orders_of(types: str) -> list[str]:
    if types.split(".")[1] in ("s4", "u4", "b1"):
        return ["row.col.row", "row.col.col"]
    return [".".join(each) for each in itertools.product(("row", "col"), repeat=3)]


@all_rows
@pytest.mark.parametrize(
    ("shape", "types", "orders"),
    few([(shape, types, orders) for shape, types in FORMS for orders in orders_of(types)], 40),
)
def test_every_form_multiplies_as_numpy_does(shape: str, types: str, orders: str) -> None:
    for number, (space, pad) in enumerate(
        itertools.product(("global", "shared", "generic"), (0, 1))
    ):
        if number % 3 != len(orders + types) % 3:
            continue
        op = ".and.popc" if ".b1" in types else ""
        found, want = product(shape, types, orders, space, pad, op=op)
        assert np.array_equal(found, want), (space, pad)


def test_bits_that_differ_are_counted() -> None:
    found, want = product("m8n8k128", "s32.b1.b1.s32", "row.col.row", "shared", 1, op=".xor.popc")
    assert np.array_equal(found, want)


def test_the_satfinite_option_is_accepted() -> None:
    found, want = product(
        "m16n16k16", "s32.s8.s8.s32", "row.col.row", "global", 0, option=".satfinite"
    )
    assert np.array_equal(found, want)


@pytest.mark.parametrize(("addend", "bits"), [("f32", 0x8000), ("f16", 0x0000)])
def test_a_sum_of_f32_is_rounded_to_f16_with_its_sign(addend: str, bits: int) -> None:
    a, b = np.zeros((16, 16), np.float16), np.zeros((16, 16), np.float16)
    a[0, 0], b[0, 0] = 2.0**-12, -(2.0**-14)
    loaded = names(20, 8 if addend == "f32" else 4, False)
    lines = [
        f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {names(0, 8, False)}, [%rd0];",
        f"wmma.load.b.sync.aligned.row.m16n16k16.global.f16 {names(10, 8, False)}, [%rd1];",
        f"wmma.load.c.sync.aligned.row.m16n16k16.global.{addend} {loaded}, [%rd2];",
        f"wmma.mma.sync.aligned.row.row.m16n16k16.f16.{addend} {names(40, 4, False)},"
        f" {names(0, 8, False)}, {names(10, 8, False)}, {loaded};",
        f"wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%rd3], {names(40, 4, False)};",
    ]
    runner = KernelRunner(kernel("\n".join(lines)), 1 << 24)
    places = [runner.put(np.resize(x.view(np.uint8), 4096)) for x in (a, b)]
    out = runner.put(np.ones(256, np.uint16))
    runner.launch("k", 1, 32, *places, runner.put(np.zeros(4096, np.uint8)), out)
    assert runner.get(out, 256, np.uint16).tolist() == [bits, *[0] * 255]


LOAD = "wmma.load.a.sync.aligned.row.m16n16k16"
REGISTERS = names(0, 8, False)


def launch(
    moves: str, *, threads: int = 32, limits: Limits | None = None, size: int = 4096
) -> None:
    runner = KernelRunner(kernel(moves), 1 << 24)
    sizes_in = 128 * threads
    places = [runner.put(np.zeros(size if k == 3 else sizes_in, np.uint8)) for k in range(4)]
    runner.launch("k", 1, threads, *places, limits=limits or Limits())


@pytest.mark.parametrize(
    ("moves", "text"),
    [
        (
            f"{LOAD}.global.f16 {REGISTERS}, [%rd0+8], 16;",
            "with a stride of 16 elements of 16 bits",
        ),
        (f"{LOAD}.shared.f16 {REGISTERS}, [%r94], 20;", "shared address 0x0 with a stride of 20"),
        (f"{LOAD}.f16 {REGISTERS}, [%rd10+2], 16;", "multiples of 16 bytes"),
        (
            "wmma.store.d.sync.aligned.col.m16n16k16.global.f32 [%rd3], " + REGISTERS + ", 18;",
            "stride of 18 elements of 32 bits",
        ),
    ],
)
def test_rows_that_start_anywhere_are_misaligned(moves: str, text: str) -> None:
    with pytest.raises(Misaligned, match=text):
        launch(moves)


def test_a_matrix_beyond_its_allocation_is_out_of_bounds() -> None:
    with pytest.raises(OutOfBounds, match="read of 4 bytes"):
        launch(f"{LOAD}.global.f16 {REGISTERS}, [%rd0], 136;")
    store = "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd3], "
    launch(store + REGISTERS + ";", size=1024)
    with pytest.raises(OutOfBounds, match="write of 4 bytes"):
        launch(store + REGISTERS + ";", size=1020)
    with pytest.raises(OutOfBounds, match=f"{SHARED_BYTES} bytes of shared memory"):
        launch(f"{LOAD}.shared.f16 {REGISTERS}, [%r96+8176], 16;")


def test_unwritten_shared_memory_is_found() -> None:
    limits = Limits(checks={"undefined"})
    launch(f"{LOAD}.shared.f16 {REGISTERS}, [%r96], 16;", limits=limits)
    with pytest.raises(UninitialisedRead, match="wmma.load"):
        launch(f"{LOAD}.shared.f16 {REGISTERS}, [%r96+4096], 16;", limits=limits)


def test_all_lanes_must_load() -> None:
    load = f"{LOAD}.shared.f16 {REGISTERS}, [%r94], 16;"
    with pytest.raises(SynchronisationFault, match="wmma.sync.aligned"):
        launch(load, threads=48)
    with pytest.raises(Deadlock):
        launch(f"setp.lt.u32 %p2, %r89, 40; @%p2 bra OVER; {load} OVER: bar.warp.sync -1;")


@all_rows
@pytest.mark.parametrize("instruction", [
    "wmma.load.a.sync.aligned.row.m16n16k16.shared.f32 {%r0}, [%r94]",
    "wmma.load.a.sync.aligned.col.m8n8k32.shared.s4 {%r0}, [%r94]",
    "wmma.load.a.sync.aligned.row.m8n8k32.shared {%r0}, [%r94]",
    "wmma.load.a.sync.aligned.row.m8n8k32.shared.s4.u4 {%r0}, [%r94]",
    "wmma.load.a.sync.aligned.row.m16n16k8.shared.f16 {%r0}, [%r94]",
    "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r0, %r1}, [%r94]",
    "wmma.load.a.sync.aligned.row.m16n16k16.local.f16 {%r0, %r1}, [%r94]",
    "wmma.store.d.sync.aligned.row.m16n16k16.shared.bf16 [%r94], {%r0}",
    "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 {%r0}, {%r0}, {%r0}, {%r0}",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32.satfinite {%r0},{%r0},{%r0},{%r0}",
    "wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32.and {%r0}, {%r0}, {%r0}, {%r0}",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16.satfinite {%r0}, {%r0}, {%r0}, {%r0}",
    "wmma.mma.sync.aligned.row.row.m8n8k32.s32.s4.s4.s32 {%r0, %r1}, {%r2}, {%r3}, {%r4, %r5}",
])  # fmt: skip
def test_what_the_isa_does_not_have_is_rejected(instruction: str) -> None:
    with pytest.raises(UnsupportedInstruction, match="wmma"):
        KernelRunner(kernel(instruction + ";"), 1 << 24).program.kernel("k")
