"""The check "nan": instructions that make NaNs and infinities of finite numbers.

The first matrix has a kernel for each operation and format. Its oracle calculates in float64, and
compares with the largest number of the format. The second one has the ways of a value after that,
with what is reported in a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import cudadrv
import ptx
from cudadrv import emulator

Floats = NDArray[np.float64]
Found = dict[str, int]
"""The first thread of the grid by "NaN" and "infinity"."""
_THREADS: Final = 96
_BLOCKS: Final = 12
HEAD: Final = ".version 8.6\n.target sm_90\n.address_size 64\n"


class Format(NamedTuple):
    """How a format lies in memory: bits of a word, numbers in it, and its largest number."""

    bits: int
    parts: int
    most: float

    def words(self, numbers: Floats) -> NDArray[Any]:
        """Return (n, parts) numbers as (n,) unsigned words."""
        width = self.bits // self.parts
        if self.most == BF16_MOST:
            parts = (numbers.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
        else:
            parts = numbers.astype(f"f{width // 8}").view(f"u{width // 8}")
        return np.ascontiguousarray(parts).view(f"u{self.bits // 8}").reshape(-1)


BF16_MOST: Final = 3.3895e38
FORMATS: Final = {
    "f32": Format(32, 1, 3.4028e38),
    "f64": Format(64, 1, 1.797e308),
    "f16": Format(16, 1, 65504.0),
    "f16x2": Format(32, 2, 65504.0),
    "bf16": Format(16, 1, BF16_MOST),
    "bf16x2": Format(32, 2, BF16_MOST),
    "f32x2": Format(64, 2, 3.4028e38),
}
OPERATIONS: Final[Mapping[str, tuple[Callable[..., Floats], tuple[str, ...]]]] = {
    "add": (np.add, ("add.f32", "add.rz.ftz.f32", "add.f64", "add.f16", "add.bf16x2", "add.f16x2")),
    "sub": (np.subtract, ("sub.f32", "sub.rz.f64", "sub.f16x2", "sub.bf16")),
    "mul": (np.multiply, ("mul.f32", "mul.f64", "mul.f16", "mul.bf16x2", "mul.f16x2")),
    "fma": (
        lambda a, b, c: a * b + c,
        ("fma.rn.f32", "fma.rn.f16x2", "fma.rn.bf16", "fma.rn.ftz.f32", "mad.rn.f32"),
    ),
    "div": (np.divide, ("div.rn.f32", "div.rn.f64")),
    "rcp": (lambda a: 1 / a, ("rcp.rn.f32", "rcp.approx.ftz.f32", "rcp.rn.f64")),
    "sqrt": (np.sqrt, ("sqrt.rn.f32", "sqrt.approx.f32", "sqrt.rn.f64")),
    "rsqrt": (lambda a: 1 / np.sqrt(a), ("rsqrt.approx.f32", "rsqrt.approx.f64")),
    "lg2": (np.log2, ("lg2.approx.f32",)),
    "ex2": (np.exp2, ("ex2.approx.f32", "ex2.approx.f16", "ex2.approx.ftz.bf16x2")),
    "sin": (np.sin, ("sin.approx.f32", "cos.approx.ftz.f32")),
    "max": (np.fmax, ("max.f32", "max.f64", "max.f16x2")),
    "NaN": (np.maximum, ("max.NaN.f32", "max.NaN.bf16")),
    "tanh": (np.tanh, ("tanh.approx.f32",)),
}
_SPECIAL: Final = (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan)


def inputs(kind: Format) -> list[Floats]:
    """Return (n, parts) numbers for three operands: special, ordinary, and very large ones."""
    generator = np.random.default_rng(7)
    most = kind.most
    values = np.array([*_SPECIAL, most * 0.9, -most * 0.9, np.sqrt(most) * 3, 300.0, 1e-3])
    chosen = generator.choice(values, (3, _THREADS * _BLOCKS, kind.parts))
    return [as_held(kind, numbers) for numbers in chosen]


def as_held(kind: Format, numbers: Floats) -> Floats:
    """Return the numbers as the format has them."""
    words = kind.words(numbers)
    width = kind.bits // kind.parts
    parts = words.view(f"u{width // 8}").reshape(len(words), -1)
    if kind.most == BF16_MOST:
        return (parts.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return np.asarray(parts.view(f"f{width // 8}").astype(np.float64))


def expected(operation: Callable[..., Floats], operands: list[Floats], most: float) -> Found:
    """Return the first thread that makes a NaN or an infinity."""
    with np.errstate(all="ignore"):
        result = operation(*operands)
    is_nan = np.isnan(result)
    is_infinite = ~is_nan & ~(np.abs(result) <= most * 1.0001)
    from_nan = np.any([np.isnan(each) for each in operands], axis=0)
    from_infinite = np.any([~np.isfinite(each) for each in operands], axis=0)
    makes_nan = (is_nan & ~from_nan).any(axis=1)
    makes_infinity = (is_infinite & ~from_infinite).any(axis=1) & ~makes_nan
    found = {}
    for name, makes in (("NaN", makes_nan), ("infinity", makes_infinity)):
        threads = np.flatnonzero(makes)
        if len(threads):
            found[name] = int(threads[0])
    return found


def kernel(name: str, instruction: str, bits: int, count: int) -> str:
    """Return a kernel that loads the operands of each thread, and stores the result."""
    registers = ["%a", "%b", "%c"][:count]
    loads = "".join(
        f"ld.param.u64 %x, [{name}_{number}]; add.u64 %x, %x, %z; ld.global.b{bits} {register},"
        " [%x];\n"
        for number, register in enumerate(registers)
    )
    return f"""
.visible .entry {name}(.param .u64 {name}_0, .param .u64 {name}_1, .param .u64 {name}_2) {{
    .reg .b{bits} %a, %b, %c, %d; .reg .b32 %i, %j, %k; .reg .b64 %x, %z;
    mov.u32 %i, %tid.x; mov.u32 %j, %ctaid.x; mov.u32 %k, %ntid.x;
    mad.lo.u32 %i, %j, %k, %i; mul.wide.u32 %z, %i, {bits // 8};
    {loads} {instruction} %d, {", ".join(registers)};
    ld.param.u64 %x, [{name}_0]; add.u64 %x, %x, %z; st.global.b{bits} [%x], %d; ret;
}}"""


def reported(machine: emulator.Emulator, name: str, threads: int = _THREADS) -> Found:
    """Return what the findings name for a kernel."""
    found = {}
    for finding in machine.findings:
        if finding.kernel == name:
            assert (finding.check, finding.benign) == ("nan", "")
            assert isinstance(finding, emulator.Finding)
            (place,) = finding.places
            assert place.where is not None
            assert place.where.block is not None
            assert place.where.thread is not None
            found[finding.kind] = place.where.block[0] * threads + place.where.thread[0]
    return found


def test_operations_that_make_nans_and_infinities_are_reported_with_the_first_thread() -> None:
    cells = {
        f"k{number}": (instruction, operation)
        for number, (instruction, operation) in enumerate(
            (instruction, operation)
            for operation, instructions in OPERATIONS.values()
            for instruction in instructions
        )
    }
    wrong = []
    text = HEAD
    operands = {}
    for name, (instruction, _) in cells.items():
        kind = FORMATS[instruction.rpartition(".")[2]]
        count = {"fma": 3, "mad": 3, "add": 2, "sub": 2, "mul": 2, "div": 2, "max": 2}.get(
            instruction.partition(".")[0], 1
        )
        operands[name] = inputs(kind)[:count]
        text += kernel(name, instruction, kind.bits, count)
    with emulator.session(check="nan", raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        module = context.load_module(ptx.Image.from_ptx(text))
        for name, (instruction, _) in cells.items():
            kind = FORMATS[instruction.rpartition(".")[2]]
            arrays = [stream.to_device(kind.words(each)) for each in operands[name]]
            arrays = (arrays * 3)[:3]
            module.kernel(name).launch(stream, cudadrv.LaunchConfig(_BLOCKS, _THREADS), *arrays)
        stream.synchronize()
    for name, (instruction, operation) in cells.items():
        most = FORMATS[instruction.rpartition(".")[2]].most
        if instruction.startswith(("add.rz", "sub.rz")):
            most *= 4  # it gives the largest number in place of an infinity
        right = expected(operation, operands[name], most)
        if reported(machine, name) != right:
            wrong.append(f"{instruction}: {reported(machine, name)}, expected {right}")
    assert not wrong, "\n".join(wrong)


class Way(NamedTuple):
    """What a kernel does with values: x is 0, y is 1 and z is a large number, by thread.

    Attributes:
        body: its instructions, from %x, %y and %z to the store of %d.
        kind: what is reported, "" for nothing; by: the instruction that makes it.
    """

    body: str
    kind: str = ""
    by: str = ""


_NAN: Final = "div.rn.f32 %a, %x, %x;"
_INFINITY: Final = "div.rn.f32 %a, %y, %x;"
_SHARED: Final = " .shared .b32 s[96]; mov.u32 %r, s; mad.lo.u32 %r, %i, 4, %r;"
WAYS: Final = {
    "stored": Way(_NAN + "mov.f32 %d, %a;", "NaN", "div.rn.f32"),
    "passed on": Way(_NAN + "add.f32 %b, %a, %y; mul.f32 %d, %b, %z;", "NaN", "div.rn.f32"),
    "infinity, then NaN": Way(_INFINITY + "sub.f32 %d, %a, %a;", "infinity", "div.rn.f32"),
    "overflow": Way("mul.f32 %d, %z, %z;", "infinity", "mul.f32"),
    "not selected": Way(_NAN + "setp.eq.f32 %p, %x, 0f00000000; selp.f32 %d, %y, %a, %p;"),
    "selected": Way(_NAN + "setp.eq.f32 %p, %x, 0f00000000; selp.f32 %d, %a, %y, %p;",
                    "NaN", "div.rn.f32"),
    "tested for NaN": Way(_NAN + "setp.nan.f32 %p, %a, %a; selp.f32 %d, %y, %a, %p;"),
    "compared with itself": Way(_NAN + "setp.neu.f32 %p, %a, %a; selp.f32 %d, %y, %a, %p;"),
    "tested for infinity": Way(
        _INFINITY + "abs.f32 %b, %a; setp.eq.f32 %p, %b, 0f7F800000; selp.f32 %d, %y, %a, %p;"
    ),
    "compared": Way(_NAN + "setp.lt.f32 %p, %a, %y; selp.f32 %d, %y, %z, %p;",
                    "NaN", "div.rn.f32"),
    "converted": Way(_NAN + "cvt.rzi.s32.f32 %r, %a; cvt.rn.f32.s32 %d, %r;", "NaN", "div.rn.f32"),
    "infinity converted": Way(_INFINITY + "cvt.rzi.s32.f32 %r, %a; cvt.rn.f32.s32 %d, %r;",
                              "infinity", "div.rn.f32"),
    "reciprocal of infinity": Way(_INFINITY + "rcp.rn.f32 %d, %a;"),
    "minimum of infinity": Way(_INFINITY + "min.f32 %d, %a, %y;"),
    "maximum of NaN": Way(_NAN + "max.f32 %d, %a, %y;", "NaN", "div.rn.f32"),
    "saturated NaN": Way(_NAN + "add.sat.f32 %d, %a, %y;", "NaN", "div.rn.f32"),
    "negated as bits": Way(_NAN + "mov.b32 %r, %a; xor.b32 %r, %r, 0x80000000; mov.b32 %d, %r;",
                           "NaN", "div.rn.f32"),
    "only its sign": Way(_NAN + "mov.b32 %r, %a; and.b32 %r, %r, 0x80000000; mov.b32 %d, %r;"),
    "constant": Way("mov.f32 %d, 0fFF800000;"),
    "masked by a constant": Way("setp.gt.f32 %p, %x, %y; selp.f32 %d, %y, 0fFF800000, %p;"),
    "infinity for zero": Way(
        "add.f32 %a, %x, %x; setp.eq.f32 %p, %x, 0f00000000; selp.f32 %d, 0fFF800000, %a, %p;",
        "infinity", "selp.f32",
    ),
    "infinity by the sign of a double": Way(
        "cvt.f64.f32 %e, %x; mov.b64 {%r, %s}, %e; setp.lt.s32 %p, %s, 0;"
        " selp.f32 %d, 0f00000000, 0f7F800000, %p;", "infinity", "selp.f32",
    ),
    "infinity or NaN": Way("setp.eq.f32 %p, %y, 0f3F800000;"
                           " selp.f32 %d, 0f7F800000, 0f7FFFFFFF, %p;", "infinity", "selp.f32"),
    "NaN before a branch": Way("mov.f32 %d, 0f7FFFFFFF; setp.lt.f32 %p, %x, %y; @%p bra SKIP;"
                               " mov.f32 %d, %y; SKIP:", "NaN", "mov.f32"),
    "constant NaN, overwritten": Way("mov.f32 %d, 0f7FFFFFFF; mov.f32 %d, %y;"),
    "maximum with a constant NaN": Way("mov.f32 %a, 0f7FFFFFFF; max.f32 %d, %a, %y;"),
    "compared with a constant NaN": Way("mov.f32 %a, 0f7FFFFFFF; setp.gt.f32 %p, %a, %y;"
                                        " selp.f32 %d, %x, %y, %p;"),
    "bits of an infinity": Way("add.f32 %a, %x, %x; mov.b32 %r, %a;"
                               " xor.b32 %s, %r, 0x7F800000; mov.b32 %d, %s;",
                               "infinity", "mov.b32"),
    "bits of integers": Way("or.b32 %r, %j, 0x7F800000; mov.b32 %d, %r;"),
    "NaN of a constant": Way("mov.f32 %a, 0fFF800000; sub.f32 %d, %a, %a;", "NaN", "sub.f32"),
    "maximum of constants": Way("mov.f32 %a, 0fFF800000; max.f32 %d, %a, %y;"),
    "excluded by a guard": Way(
        "mov.f32 %d, %y; setp.gt.f32 %p, %x, %y; @%p div.rn.f32 %d, %x, %x;"
    ),
    "under a guard": Way("mov.f32 %d, %y; setp.lt.f32 %p, %x, %y; @%p div.rn.f32 %d, %x, %x;",
                         "NaN", "div.rn.f32"),
    "in a branch": Way("setp.lt.f32 %p, %x, %y; mov.f32 %d, %x; @!%p bra OUT;"
                       "div.rn.f32 %d, %d, %d; OUT:", "NaN", "div.rn.f32"),
    "overwritten": Way(_NAN + "mov.f32 %d, %a; add.f32 %d, %y, %y;"),
    "overwritten in another register under a guard": Way(
        _NAN + "mul.f32 %b, %a, %y; mul.f32 %d, %a, %z; setp.eq.u32 %p, %i, 5;"
        " @%p mov.f32 %b, %y; add.f32 %d, %d, %b;", "NaN", "div.rn.f32",
    ),
    "overwritten in another register by a branch": Way(
        _NAN + "mul.f32 %b, %a, %y; mul.f32 %d, %a, %z; setp.eq.u32 %p, %i, 5;"
        " @!%p bra JOIN; mov.f32 %b, %y; JOIN: add.f32 %d, %d, %b;", "NaN", "div.rn.f32",
    ),
    "in place": Way("mov.f32 %d, %x; div.rn.f32 %d, %d, %d;", "NaN", "div.rn.f32"),
    "to halves": Way("cvt.rn.f16.f32 %h, %z; mov.b32 %d, {%h, %h};", "infinity", "cvt.rn.f16.f32"),
    "to packed halves": Way("cvt.rn.f16x2.f32 %r, %y, %z; mov.b32 %d, %r;",
                            "infinity", "cvt.rn.f16x2.f32"),
    "integer to half": Way("mov.u32 %r, 70000; cvt.rn.f16.u32 %h, %r; mov.b32 %d, {%h, %h};",
                           "infinity", "cvt.rn.f16.u32"),
    "double to single": Way("mov.f64 %e, 0d5000000000000000; cvt.rn.f32.f64 %d, %e;",
                            "infinity", "cvt.rn.f32.f64"),
    "halves of a double": Way(
        "cvt.f64.f32 %e, %x; rcp.rn.f64 %e, %e; mov.b64 {%r, %s}, %e; mov.b32 %d, %s;",
        "infinity", "rcp.rn.f64",
    ),
    "to shared memory": Way(
        _NAN + _SHARED + "st.shared.f32 [%r], %a; mov.f32 %d, %y;", "NaN", "div.rn.f32"
    ),
    "to another thread": Way(
        _NAN + "shfl.sync.bfly.b32 %b, %a, 1, 31, -1; mov.f32 %d, %y;", "NaN", "div.rn.f32"
    ),
    "added by an atomic operation": Way(
        _NAN + "red.global.add.f32 [%w], %a; mov.f32 %d, %y;", "NaN", "div.rn.f32"
    ),
    "returned by a function": Way(
        "{ .param .b32 p; .param .b32 q; st.param.f32 [p], %x; call (q), half, (p);"
        " ld.param.f32 %d, [q]; }", "NaN", "div.rn.f32",
    ),
    "in a loop": Way(
        "mov.f32 %d, %y; mov.u32 %r, 0; NEXT: mul.f32 %d, %d, 0f4B800000; add.u32 %r, %r, 1;"
        " setp.lt.u32 %p, %r, 9; @%p bra NEXT;", "infinity", "mul.f32",
    ),
}  # fmt: skip
_FUNCTION: Final = """
.func (.param .b32 q) half(.param .b32 p) {
    .reg .f32 %a; ld.param.f32 %a, [p]; div.rn.f32 %a, %a, %a; st.param.f32 [q], %a; ret;
}
"""


def way_kernel(name: str, body: str) -> str:
    """Return a kernel in which threads from number 37 on have the values of a way."""
    return f"""
.visible .entry {name}(.param .u64 {name}_0) {{
    .reg .f32 %a, %b, %d, %x, %y, %z; .reg .b32 %i, %j, %k, %r, %s; .reg .b64 %w; .reg .f64 %e;
    .reg .pred %p, %q; .reg .b16 %h;
    mov.u32 %i, %tid.x; mov.u32 %j, %ctaid.x; mov.u32 %k, %ntid.x; mad.lo.u32 %j, %j, %k, %i;
    ld.param.u64 %w, [{name}_0]; mad.wide.u32 %w, %j, 4, %w;
    ld.global.f32 %x, [%w]; mov.f32 %y, 0f3F800000; mov.f32 %z, 0f7E967699;
    setp.ge.u32 %q, %j, 37; @!%q bra SMALL; bra READY; SMALL: mov.f32 %x, %y; mov.f32 %z, %y;
    READY: @!%q bra STORE;
    {body}
    STORE: @!%q mov.f32 %d, %y; st.global.f32 [%w], %d; ret;
}}"""


def run_ways(**options: Any) -> dict[str, tuple[str, str, int]]:
    """Return for each way what is reported: the kind, the instruction and the thread."""
    names = {way: f"w{number}" for number, way in enumerate(WAYS)}
    text = HEAD + _FUNCTION + "".join(way_kernel(names[way], WAYS[way].body) for way in WAYS)
    with emulator.session(check="nan", raise_findings=False, **options) as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        module = context.load_module(ptx.Image.from_ptx(text))
        for name in names.values():
            x = stream.zeros(96, np.float32)
            module.kernel(name).launch(stream, cudadrv.LaunchConfig(3, 32), x)
        stream.synchronize()
    found: dict[str, tuple[str, str, int]] = {}
    for way, name in names.items():
        for kind, thread in reported(machine, name, 32).items():
            finding = next(
                each
                for each in machine.findings
                if (each.kernel, getattr(each, "kind", "")) == (name, kind)
            )
            found[f"{way}: {kind}"] = kind, finding.places[0].what, thread
    return found


_SCHEDULES: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"order": "late"},
    {"order": "random", "seed": 3},
    {"limits": emulator.Limits(chunk_threads=1)},
)


@pytest.mark.parametrize("options", _SCHEDULES, ids=["all at once", "late", "random", "by blocks"])
def test_a_value_is_reported_where_it_is_needed_by_the_instruction_that_made_it(
    options: dict[str, Any],
) -> None:
    right = {
        f"{name}: {way.kind}": (way.kind, way.by, 37) for name, way in WAYS.items() if way.kind
    }
    found = run_ways(**options)
    wrong = [
        f"{each}: {found.get(each)}, expected {right.get(each)}"
        for each in sorted({*found, *right})
        if found.get(each) != right.get(each)
    ]
    assert not wrong, "\n".join(wrong)


MIXED: Final = """
    mul.f32 %a, %x, %y; sub.f32 %b, %a, %x; rcp.rn.f32 %c, %b;
    fma.rn.f32 %a, %a, %b, %c; max.f32 %b, %a, %y; mul.f32 %b, %b, %c; min.f32 %d, %b, %a;
    sub.f32 %c, %c, %d; sqrt.rn.f32 %e, %b; add.f32 %c, %c, %e; fma.rn.f32 %a, %a, %b, %c;
    add.f32 %x, %a, %b; add.f32 %x, %x, %c;"""


def mixed_findings(guard: str, seed: int, threads: int = _THREADS) -> list[str]:
    """Return the findings of calculations that a guard may precede, which always holds.

    Threads beyond the first ones only store.
    """
    body = re.sub(r"(\w+\.[\w.]+ %)", rf"{guard}\1", MIXED)
    text = f"""{HEAD}.visible .entry mixed(.param .u64 xs, .param .u64 ys) {{
        .reg .f32 %a, %b, %c, %d, %e, %x, %y; .reg .b32 %i; .reg .b64 %v, %w; .reg .pred %p, %q;
        mov.u32 %i, %tid.x; setp.lt.u32 %p, %i, 1000; ld.param.u64 %v, [xs];
        ld.param.u64 %w, [ys]; mad.wide.u32 %v, %i, 4, %v; mad.wide.u32 %w, %i, 4, %w;
        ld.global.f32 %x, [%v]; ld.global.f32 %y, [%w]; setp.ge.u32 %q, %i, {threads};
        @%q bra DONE; {body} DONE: st.global.f32 [%v], %x; ret;
    }}"""
    source = np.random.default_rng(seed)
    numbers = np.array([0, 1, -2, 3e38, 1e-30, np.inf, -np.inf, np.nan], np.float32)
    x, y = source.choice(numbers, (2, _THREADS))
    with emulator.session(check="nan", raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        run = context.load_module(ptx.Image.from_ptx(text)).kernel("mixed")
        config = cudadrv.LaunchConfig(1, _THREADS)
        run.launch(stream, config, stream.to_device(x), stream.to_device(y))
        stream.synchronize()
    return [str(finding) for finding in machine.findings]


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 8))]
)
def test_calculations_under_a_guard_that_holds_give_the_findings_of_those_without(
    seed: int,
) -> None:
    for threads in (_THREADS, _THREADS - 5, 40):
        findings = mixed_findings("", seed, threads)
        assert findings == mixed_findings("@%p ", seed, threads)
        assert findings


POLES: Final[Mapping[str, tuple[float, ...]]] = {
    "acos(a)": (2,), "acosh(a)": (0.5,), "asin(a)": (2,), "atanh(a)": (1,), "exp(a)": (1e4,),
    "exp2(a)": (1e4,), "exp10(a)": (1e4,), "expm1(a)": (1e4,), "cosh(a)": (1e4,),
    "sinh(a)": (1e4,), "log1p(a)": (-2,), "sqrt(a)": (-1,), "rsqrt(a)": (0,), "rcbrt(a)": (0,),
    "pow(a, b)": (-2, 0.5), "pow(-a, T(0.5))": (2,), "pow(a, T(-1))": (0,), "fmod(a, b)": (1, 0),
    "remainder(a, b)": (1, 0), "tgamma(a)": (-1,), "lgamma(a)": (-1,), "erfinv(a)": (1,),
    "erfcinv(a)": (3,), "normcdfinv(a)": (0,), "erfcx(a)": (-1e3,), "logb(a)": (0,),
}  # fmt: skip
_UNNAMED: Final = {"lgamma(a) f", "lgamma(a)", "sinh(a)", "logb(a)"}
"""Those that move a constant infinity, or select one by a comparison with a limit."""


@pytest.mark.slow
@pytest.mark.parametrize("target", [90, 100])
def test_the_functions_of_cuda_whose_result_is_nan_or_infinite_are_named_by_their_line(
    target: int,
) -> None:
    options = ptx.CompileOptions(target=ptx.Target.parse(f"compute_{target}"))
    unnamed = set()
    for call, suffix in ((call, suffix) for call in POLES for suffix in ("f", "")):
        real = "float" if suffix else "double"
        name, _, rest = call.partition("(")
        source = f"""typedef {real} T;
extern "C" __global__ void pole(const T* x, T* o) {{
    T a = x[0], b = x[1];
    T r = {name}{suffix}({rest};
    o[0] = r + b;
}}"""
        with emulator.session(
            check="nan", raise_findings=False, compute_capability=divmod(target, 10)
        ) as machine:
            context = cudadrv.cuda_context_for(0)
            stream = context.default_stream
            kernel = context.compile(source, name="pole.cu", options=options).kernel("pole")
            operands = np.array([*POLES[call], 1.0][:2], np.float32 if suffix else np.float64)
            out = stream.zeros(1, operands.dtype)
            kernel.launch(stream, cudadrv.LaunchConfig(1, 1), stream.to_device(operands), out)
            assert not np.isfinite(stream.to_host(out)[0]), call
        if 4 not in [finding.places[0].line for finding in machine.findings]:
            unnamed.add(f"{call} {suffix}".strip())
    assert unnamed == _UNNAMED
