"""Products by four warps: `wgmma` of all types, with factors in registers and in shared memory.

Only GPUs of compute capability 9.0 have them.
"""

from __future__ import annotations

from dataclasses import dataclass

import ptx
from tests.emulator.differential.case import Case, In, Out, Source
from tests.emulator.differential.inputs import Factors, Kind

_BLOCKS = 4
_ROWS = 64
_K = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32, "b1": 256}
_QUARTERS = ("exponents far apart", "with infinities", "near each other", "subnormal")
_WIDTHS = (16, 128, 64, 32)  # by the descriptor's field: bytes of a row of the swizzled pattern


@dataclass(frozen=True)
class _Shared:
    """A factor in shared memory.

    Attributes:
        rows: of A, or columns of B.
        mode: the swizzling; transposed: whether 8 rows of one k lie side by side.
    """

    rows: int
    mode: int = 0
    transposed: bool = False

    @property
    def nbytes(self) -> int:
        if self.transposed:
            return self.rows * 32
        return self.rows * (_WIDTHS[self.mode] if self.mode else 32)

    def descriptor(self, start: str) -> str:
        """The descriptor's expression, for an address in units of 16 bytes."""
        width = _WIDTHS[self.mode]
        if self.transposed:
            leading, stride = (16 * width, 8 * width) if self.mode else (128, 256)
        else:
            leading, stride = (16, 8 * width) if self.mode else (16 * self.rows, 128)
        fixed = leading // 16 << 16 | stride // 16 << 32 | self.mode << 62
        return f"({start} | {fixed}ull)"


@dataclass(frozen=True)
class _Product:
    """One instruction.

    Attributes:
        types: of D, A and B.
        a: A, None where it is in registers; b: B.
        option: a modifier behind the types.
        signs: what the factors are multiplied by.
        scaled: whether every second block leaves D's former value out.
    """

    types: str
    a: _Shared | None
    b: _Shared
    option: str = ""
    signs: tuple[int, int] = (1, 1)
    scaled: bool = False

    @property
    def name(self) -> str:
        layout = "registers" if self.a is None else f"{self.a.mode}{'t' * self.a.transposed}"
        right = f"{self.b.rows}_{self.b.mode}{'t' * self.b.transposed}"
        rest = "_scaled" * self.scaled + "_minus" * (self.signs != (1, 1)) + self.option
        return f"{self.types}_{layout}_{right}{rest}".replace(".", "_")

    @property
    def registers(self) -> int:
        """Of D, for each thread."""
        return self.b.rows // (4 if self.types.startswith("f16") else 2)

    def text(self) -> str:
        """The kernel."""
        count, (d, a, _) = self.registers, self.types.split(".")
        target = "{" + ", ".join(f"%{k}" for k in range(count)) + "}"
        left = [f"%{count + k}" for k in range(4 if self.a is None else 1)]
        factor = f"{{{', '.join(left)}}}" if self.a is None else left[0]
        numbers = [*self.signs] if d != "s32" else []
        if a in ("f16", "bf16"):
            numbers += [int(each.transposed) for each in (self.a, self.b) if each is not None]
        after = count + len(left)
        operands = ", ".join([target, factor, f"%{after}", "p", *map(str, numbers)])
        shape = f"m64n{self.b.rows}k{_K[a]}"
        instruction = f"wgmma.mma_async.sync.aligned.{shape}.{self.types}{self.option} {operands};"
        results = ", ".join(f'"+r"(w[{k}])' for k in range(count))
        below = 0 if self.a is None else self.a.nbytes
        source = (
            ", ".join(f'"r"(a[4 * thread + {k}])' for k in range(4))
            if self.a is None
            else f'"l"({self.a.descriptor("start")})'
        )
        second = self.b.descriptor(f"(start + {below // 16})")
        return f"""
extern "C" __global__ void {self.name}(const uint4* image, const unsigned* a, const unsigned* c,
                                       unsigned* d, unsigned scale) {{
  extern __shared__ __align__(1024) uint4 shared[];
  unsigned thread = blockIdx.x * 128 + threadIdx.x;
  for (int k = threadIdx.x; k < {(below + self.b.nbytes) // 16}; k += 128)
    shared[k] = image[blockIdx.x * {(below + self.b.nbytes) // 16} + k];
  unsigned w[{count}];
  for (int k = 0; k < {count}; ++k) w[k] = c[thread * {count} + k];
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  unsigned long long start = (unsigned)__cvta_generic_to_shared(shared) >> 4;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{{ .reg .pred p; setp.ne.b32 p, %{after + 1}, 0; {instruction} }}" : {results}
               : {source}, "l"({second}), "r"(scale >> blockIdx.x & 1));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int k = 0; k < {count}; ++k) d[thread * {count} + k] = w[k];
}}
"""

    def case(self) -> Case:
        d, a, _ = self.types.split(".")
        words = _BLOCKS * 128 * self.registers
        nbytes = (0 if self.a is None else self.a.nbytes) + self.b.nbytes
        arguments = (
            In(_kind(a), _BLOCKS * nbytes // 4),
            In(_kind(a), _BLOCKS * 512),
            In(_kind(d), words),
            Out("u4", words),
            5 if self.scaled else 15,
        )
        rows = _QUARTERS if isinstance(_kind(a), Factors) else ()
        return Case(self.name, "matrix", arguments, _BLOCKS, 128, shared_bytes=nbytes, rows=rows)


def _kind(element: str) -> Kind:
    return "u32" if element in ("s32", "s8", "u8", "b1") else Factors(element)


def _products() -> list[_Product]:
    found = [
        _Product(f"{d}.{a}.{b}", _Shared(_ROWS, number % 4), _Shared(columns, -number % 4))
        for number, (d, a, b, columns) in enumerate((
            ("f32", "f16", "f16", 64), ("f16", "f16", "f16", 24), ("f32", "bf16", "bf16", 40),
            ("f32", "tf32", "tf32", 16), ("f32", "e4m3", "e4m3", 32), ("f32", "e5m2", "e5m2", 8),
            ("f32", "e4m3", "e5m2", 48), ("f32", "e5m2", "e4m3", 16), ("f16", "e4m3", "e4m3", 32),
            ("f16", "e5m2", "e5m2", 16), ("f16", "e4m3", "e5m2", 8), ("f16", "e5m2", "e4m3", 8),
            ("s32", "s8", "s8", 32), ("s32", "u8", "u8", 16), ("s32", "s8", "u8", 8),
            ("s32", "u8", "s8", 24),
        ))
    ]  # fmt: skip
    found += [
        _Product("f32.f16.f16", _Shared(_ROWS, mode, mode % 2 == 1), _Shared(128, mode, True))
        for mode in range(4)
    ]
    found += [
        _Product("f32.bf16.bf16", _Shared(_ROWS, 3, True), _Shared(96, 2, False)),
        _Product("f32.f16.f16", _Shared(_ROWS, 1), _Shared(256, 0)),
        _Product("s32.s8.s8", _Shared(_ROWS), _Shared(16), ".satfinite"),
        _Product("s32.b1.b1", _Shared(_ROWS, 1), _Shared(16, 2), ".and.popc"),
        _Product("s32.b1.b1", None, _Shared(8), ".and.popc"),
        _Product("f32.f16.f16", _Shared(_ROWS), _Shared(8), signs=(-1, 1), scaled=True),
        _Product("f16.f16.f16", None, _Shared(16, 3, True), signs=(1, -1), scaled=True),
        _Product("f32.tf32.tf32", _Shared(_ROWS), _Shared(8), signs=(-1, -1)),
    ]
    in_registers = ("f32.f16.f16", "f32.bf16.bf16", "f32.tf32.tf32", "f32.e4m3.e5m2", "s32.u8.s8")
    return found + [_Product(types, None, _Shared(16, 1)) for types in in_registers]


def source() -> Source:
    products = _products()
    text = "".join(product.text() for product in products)
    options = ptx.CompileOptions(target=ptx.Target.cubin("sm_90a"))
    return Source("warpgroup", text, tuple(product.case() for product in products), options)
