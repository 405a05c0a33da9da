"""The parameters of the matrix: each type that NVRTC makes, with a kernel that copies its bytes.

A kernel is ``put(out, slot, value)``: it writes the bytes of `value` at a slot of `out`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cudadrv
import ptx

from ..conftest import compile_module, ptx_for_driver
from .facts import Parameter

SLOT_BYTES: Final = 16
"""The room for the bytes of one value."""
SIGNED: Final = {"signed char": 1, "short": 2, "int": 4, "long": 8, "long long": 8, "wchar_t": 4}
UNSIGNED: Final = {
    "unsigned char": 1, "unsigned short": 2, "unsigned int": 4, "unsigned long": 8,
    "unsigned long long": 8, "size_t": 8, "char16_t": 2, "char32_t": 4,
}  # fmt: skip
FLOATS: Final = {
    "float": ("float32", 4), "double": ("float64", 8), "__half": ("float16", 2),
    "__nv_bfloat16": ("bfloat16", 2), "__nv_fp8_e4m3": ("float8_e4m3fn", 1),
    "__nv_fp8_e5m2": ("float8_e5m2", 1),
}  # fmt: skip
# The source does not tell these, so that PTX alone does: sizes, floats, classes.
HIDDEN: Final = {
    "Real": Parameter("float", 4, "float32"), "Small": Parameter("class", 2),
    "Tiny": Parameter("class", 1), "Word": Parameter("word", 8),
    "Count": Parameter("integer", 4, "any"),
    "Letter": Parameter("integer", 1, "any"), "Kind": Parameter("integer", 4, "any"),
    "Byte": Parameter("integer", 1, "any"), "Realp": Parameter("pointer", 8, ""),
}  # fmt: skip
CLASSES: Final = {
    "One": Parameter("class", 1), "Two": Parameter("class", 2), "Four": Parameter("class", 4),
    "Pair": Parameter("class", 8), "Line": Parameter("class", 16), "Three": Parameter("class", 12),
    "float2": Parameter("class", 8, "float2"), "double2": Parameter("class", 16, "double2"),
    "int2": Parameter("class", 8, "int2"), "longlong2": Parameter("class", 16, "longlong2"),
    "float4": Parameter("class", 16, "float4"), "__half2": Parameter("class", 4, "half2"),
    "__nv_fp8_e8m0": Parameter("class", 1, "float8_e8m0fnu"),
    "__nv_fp4_e2m1": Parameter("class", 1, "float4_e2m1fn"),
}  # fmt: skip
# By the type of the elements in C++: the oracle's name of it.
POINTEES: Final = {
    "float": "float", "double": "double", "float4": "float4", "double2": "double2", "int": "int",
    "unsigned int": "unsigned int", "short": "short", "unsigned short": "unsigned short",
    "long long": "long long", "unsigned long long": "unsigned long long", "bool": "bool",
    "signed char": "signed char", "__half": "half", "half": "half", "nv_bfloat16": "bfloat16",
    "__half2": "half2", "__nv_fp8_e4m3": "e4m3", "__nv_fp8_e5m2": "e5m2", "void": "void",
    "char": "char", "unsigned char": "unsigned char", "Pair": "struct", "int2": "int2",
    "wchar_t": "int", "char16_t": "short", "char32_t": "unsigned int",
}  # fmt: skip
_DECLARATIONS: Final = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_fp4.h>
struct One { char a; };
struct Two { short a; };
struct Four { int a; };
struct Pair { float a; int b; };
struct Line { long long n; double value; };
struct Three { float x, y, z; };
enum Kind { A, B };
enum class Byte : unsigned char { A, B };
typedef float Real;
using Small = __half;
using Tiny = __nv_fp8_e4m3;
using Word = long long;
using Count = int;
using Letter = bool;
using Realp = float*;
"""
_KERNEL: Final = """
__global__ void {name}(unsigned char* out, int slot, {type} value) {{
  memcpy(out + (long long)slot * 16, &value, sizeof(value));
}}
"""
_TEMPLATE: Final = """
template <class T> __global__ void put(T value, unsigned char* out, int slot) {
  memcpy(out + (long long)slot * 16, &value, sizeof(T));
}
"""
# Parameters of bare PTX, by their declaration: what the text tells is a size, or a float.
_BARE: Final = {
    ".u8": Parameter("integer", 1, "any"), ".s16": Parameter("integer", 2, "any"),
    ".u32": Parameter("integer", 4, "any"), ".u64": Parameter("word", 8),
    ".f32": Parameter("float", 4, "float32"), ".f64": Parameter("float", 8, "float64"),
    ".b8": Parameter("bits", 1, "bits"), ".b16": Parameter("bits", 2, "bits"),
    ".b32": Parameter("bits", 4, "bits"), ".b64": Parameter("bits", 8, "bits"),
    ".u64 .ptr .global .align 4": Parameter("pointer", 8, ""),
    ".align 4 .b8 [4]": Parameter("class", 4), ".align 1 .b8 [1]": Parameter("class", 1),
    ".align 8 .b8 [16]": Parameter("class", 16),
}  # fmt: skip
_PTX: Final = """
.visible .entry bare_{number}(.param .u64 out, .param .u32 slot, .param {declared})
{{
    .reg .b64 %out, %slot;
    .reg .b32 %slot32, %word;
    .reg .b16 %byte;
    ld.param.u64 %out, [out];
    ld.param.u32 %slot32, [slot];
    mul.wide.u32 %slot, %slot32, 16;
    add.u64 %out, %out, %slot;
    {copies}
    ret;
}}
"""


@dataclass(frozen=True)
class Case:
    """A kernel with a parameter of a type.

    Attributes:
        name: the type, and how the kernel was made.
        kernel: the kernel.
        parameter: what the oracle knows of it.
        is_first: whether the value comes before `out` and `slot`.
    """

    name: str
    kernel: cudadrv.Kernel
    parameter: Parameter
    is_first: bool = False

    def args(self, out: object, slot: int, value: object) -> tuple[object, ...]:
        """The arguments of a launch."""
        return (value, out, slot) if self.is_first else (out, slot, value)


def types(context: cudadrv.Context) -> dict[str, Parameter]:
    """What the oracle knows of each type of C++."""
    known = {
        "bool": Parameter("bool", 1),
        # A number, of either sign: that is the compiler's affair.
        "char": Parameter("integer", 1, "char"),
        **{name: Parameter("integer", size, "signed") for name, size in SIGNED.items()},
        **{name: Parameter("integer", size, "unsigned") for name, size in UNSIGNED.items()},
        **{name: Parameter("float", size, form) for name, (form, size) in FLOATS.items()},
        **HIDDEN,
        **CLASSES,
    }
    if context.target.number < 100:  # PTX of older targets does not tell pointers from integers
        known["Realp"] = Parameter("word", 8)
    for pointee, name in POINTEES.items():
        known[f"{pointee}*"] = Parameter("pointer", 8, name)
        known[f"const {pointee}*"] = Parameter("pointer", 8, name, is_const=True)
    # The elements are pointers, which are not const.
    known["float**"] = known["const float**"] = Parameter("pointer", 8, "pointer")
    return known


def declared(context: cudadrv.Context) -> list[Case]:
    """A kernel of each type with C linkage; its declaration has the type. And those of bare PTX."""
    known = types(context)
    kernels = [_KERNEL.format(name=f"put_{n}", type=text) for n, text in enumerate(known)]
    module = compile_module(context, _DECLARATIONS + 'extern "C" {' + "".join(kernels) + "}")
    found = [
        Case(f"{text} declared", module.kernel(f"put_{n}"), parameter)
        for n, (text, parameter) in enumerate(known.items())
    ]
    return found + _bare_cases(context)


def instantiated(context: cudadrv.Context) -> list[Case]:
    """An instance of a template for each type; its name has the type, whatever the source hides."""
    known = types(context)
    known |= {
        "Small": known["__half"],
        "Tiny": known["__nv_fp8_e4m3"],
        "Word": known["long long"],
        "Count": known["int"],
        "Letter": known["bool"],
        "Realp": known["float*"],
    }
    module = compile_module(context, _DECLARATIONS + _TEMPLATE, *(f"put<{text}>" for text in known))
    return [
        Case(f"put<{text}>", module.kernel(f"put<{text}>"), parameter, is_first=True)
        for text, parameter in known.items()
    ]


def _bare_cases(context: cudadrv.Context) -> list[Case]:
    head = "\n".join(
        line
        for line in ptx_for_driver(context, "__global__ void nothing() {}").splitlines()
        if line.startswith((".version", ".target", ".address_size"))
    )
    text = head
    for number, (declared, parameter) in enumerate(_BARE.items()):
        brackets = declared.partition("[")[2]
        declared = declared.partition(" [")[0]
        name = f"value[{brackets}" if brackets else "value"
        copies = [
            f"ld.param.u8 %byte, [value+{at}]; st.global.u8 [%out+{at}], %byte;"
            for at in range(parameter.nbytes)
        ]
        text += _PTX.format(
            number=number, declared=f"{declared} {name}", copies="\n    ".join(copies)
        )
    module = context.load_module(ptx.Image.from_ptx(text))
    return [
        Case(f"{declared} of PTX", module.kernel(f"bare_{number}"), parameter)
        for number, (declared, parameter) in enumerate(_BARE.items())
    ]
