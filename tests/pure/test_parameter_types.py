"""The C++ types of kernels' parameters, from mangled names and from declarations."""

from __future__ import annotations

import pytest

import ptx
from ptx.kernel_types import declared_types, mangled_types
from tests.rows import all_rows

# What NVRTC 13.5 made of the functions beside them.
MANGLED = {
    # namespace ns: inner(vec* v, const vec* w, vec* z, float* q)
    "_ZN2ns5innerEPNS_3vecEPKS0_S1_Pf": ("P2ns3vec", "PK2ns3vec", "P2ns3vec", "Pf"),
    # ns::tin<float, 3>(T* a, const T* b, box<T>* c, box<T>* d, int n, const float* z)
    "_ZN2ns3tinIfLi3EEEvPT_PKS1_PNS_3boxIS1_EES7_iPKf": (
        "Pf", "PKf", "P2ns3boxIfE", "P2ns3boxIfE", "i", "PKf",
    ),
    "_Z5plainPKfS0_PfijxydchsbPvPKv": (
        "PKf", "PKf", "Pf", "i", "j", "x", "y", "d", "c", "h", "s", "b", "Pv", "PKv",
    ),
    "_Z4nonev": (),
    "_Z4vecsP6float4PKS_1SPS3_PKPKiPVfPVKiPfPKd": (
        "P6float4", "PK6float4", "1S", "P1S", "PKPKi", "PVf", "PVKi", "Pf", "PKd",
    ),
    "_Z2t1IKfEvPT_S2_PKS1_S1_": ("PKf", "PKf", "PKKf", "Kf"),
    "_Z2t2IN2ns3vecE6float4EvT_T0_PKS4_PKS3_": (
        "2ns3vec", "6float4", "PK6float4", "PK2ns3vec",
    ),
    "_Z2t3ILi5EEvPfS0_": ("Pf", "Pf"),
    "_Z2t6IdEvPN2ns3boxIT_EEPKS3_PNS0_3vecES4_": (
        "P2ns3boxIdE", "PK2ns3boxIdE", "P2ns3vec", "P2ns3boxIdE",
    ),
    "_Z2t8IDsEvPjT_PKS1_wPw": ("Pj", "Ds", "PKDs", "w", "Pw"),
    "_Z2t7ILb0EN2ns3boxIiEEEvPT0_PKS3_": ("P2ns3boxIiE", "PK2ns3boxIiE"),
}  # fmt: skip


@pytest.mark.parametrize("name", MANGLED)
def test_a_mangled_name_says_the_types(name: str) -> None:
    assert mangled_types(name) == MANGLED[name]


@all_rows
@pytest.mark.parametrize(
    "name",
    [
        "saxpy", "_Z", "_Z3", "_Z9short", "_Z1kS_", "_Z1kPS9_", "_Z1kT_", "_Z2fpPFviEPf",
        "_Z2t4IJiPfEEvDpT_", "_ZN12_GLOBAL__N_11kEPf", "_Z1kILN2ns4ModeE1EEvPf", "_Z1kDn",
        "_Z1kA3_i", "_ZNSt1kEPf", "_Z1kSsPf", "_ZN", "_Z1kI", "_Z1kILi", "_Z1kP",
    ],
)  # fmt: skip
def test_a_name_that_is_not_understood_reports_nothing(name: str) -> None:
    assert mangled_types(name) is None


def test_declarations_of_c_linkage_say_the_types() -> None:
    source = """
    #include <cuda_fp16.h>
    #define REAL float
    extern "C" __global__ void __launch_bounds__(256, 2)
    a(const float* __restrict__ x, float const* y, float* const z, int n, unsigned int m, REAL q,
      REAL* qq, size_t k, long long unsigned t) { if (n) { x; } }
    extern "C" { static __device__ int f() { return '{'; }
      __global__ void b(float4* v, const float x[], int y[3], int z[3][4], float** pp, void* w,
        const void* cw, struct S* s, S t, __half* h, half* hh, char c, unsigned char* uc, bool* bb,
        uint32_t u, const volatile int* vi); }
    extern "C" void __global__ c(cudaTextureObject_t t, const unsigned short *p, signed char x,
        long double y, short int z, unsigned long *ul, int (*fp)(int, int), int n = 3) {}
    extern "C" __global__ void d(void) {}
    """
    assert declared_types(source) == {
        "a": ("PKf", "PKf", "Pf", "i", "j", "", "", "m", "y"),
        "b": ("P6float4", "PKf", "Pi", "", "PPf", "Pv", "PKv", "P1S", "", "P6__half", "P6__half",
              "c", "Ph", "Pb", "j", "PKi"),
        "c": ("", "PKt", "a", "", "s", "Pm", "", ""),
        "d": (),
    }  # fmt: skip


@all_rows
@pytest.mark.parametrize(
    "source",
    [
        '// extern "C" __global__ void k(double* x) {}',
        '/* extern "C" __global__ void k(double* x) {} */',
        'const char* s = "extern \\"C\\" __global__ void k(double* x) {}";',
        'const char* s = R"x(extern "C" __global__ void k(double* x) {} )" )x";',
        '#define k_ extern "C" __global__ void k(double* x) {}',
        '#define MAKE(k) \\\n  extern "C" __global__ void k(double* x) {}',
        '#if 0\nextern "C" __global__ void k(double* x) {}\n#endif',
        '#ifdef A\n#else\nextern "C" __global__ void k(double* x) {}\n#endif',
        'namespace n { extern "C" __global__ void k(double* x) {} }',
        "namespace n { __global__ void k(double* x) {} }",
        "template <class T> __global__ void k(T* x) {}",
        "__global__ void k(double* x) {}",
        'extern "C" { namespace n { __global__ void k(double* x) {} } }',
        '#define __global__ __device__\nextern "C" __global__ void k(double* x) {}',
        '#define k other\nextern "C" __global__ void k(double* x) {}',
        '#ifdef A\nnamespace a {\n#endif\nextern "C" __global__ void k(double* x) {}',
        '#define BEGIN namespace a {\nBEGIN\nextern "C" __global__ void k(double* x) {}',
        "EXPORT __global__ void k(double* x) {}",
        'MACRO(3)\nextern "C" __global__ void k(double* x) {}',
        '}\nextern "C" __global__ void k(double* x) {}',
        'extern "C" __global__ void k(double* x',
    ],
)
def test_what_may_be_no_declaration_of_the_kernel_reports_nothing(source: str) -> None:
    assert declared_types(source) == {}


def test_a_type_that_a_macro_may_stand_for_is_unknown() -> None:
    source = 'extern "C" __global__ void k(float* x, int* y) {}'
    assert declared_types(source, ["float"]) == {"k": ("", "Pi")}
    assert declared_types(f"#define float double\n{source}") == {"k": ("", "Pi")}


def types_of(source: str, name: str, **options: object) -> list[str]:
    made = ptx.CompileOptions(**options)  # type: ignore[arg-type]  # what a test gives
    image = ptx.compile(source, made, name_expressions=[name] if "<" in name else ())
    lowered = image.lowered_names.get(name, name)
    return [param.cpp_type for param in image.signatures[lowered].params]


def test_an_image_has_the_types_of_its_kernels() -> None:
    source = """
    template <class T> __global__ void scale(T* x, T by, const T* y) {}
    extern "C" __global__ void plain(const float* x, REAL* y, unsigned long long n) {}
    """
    assert types_of(source, "scale<double>", defines={"REAL": "int"}) == ["Pd", "d", "PKd"]
    assert types_of(source, "plain", defines={"REAL": "int"}) == ["PKf", "", "y"]


def test_a_reference_is_a_pointer() -> None:
    source = """template <class T> __global__ void t(T& a, const T& b, float*& c) {}
extern "C" __global__ void k(int& a, const float& b, const double*& c, int d) {}"""
    image = ptx.compile(source, name_expressions=["t<int>"])
    types = {
        name: [each.cpp_type for each in signature.params]
        for name, signature in image.signatures.items()
    }
    assert types == {
        "k": ["Pi", "PKf", "PPKd", "i"],
        image.lowered_names["t<int>"]: ["Pi", "PKi", "PPf"],
    }


def test_types_that_are_not_of_the_parameters_are_dropped() -> None:
    # The declaration is believed; a macro from a header stands for its type all the same.
    source = '#include "types.h"\nextern "C" __global__ void k(float* x, short n) {}'
    image = ptx.compile(source, headers={"types.h": "#define short long long\n"})
    assert [param.cpp_type for param in image.signatures["k"].params] == ["", ""]


def test_a_signature_keeps_its_types_in_a_cache() -> None:
    image = ptx.compile('extern "C" __global__ void k(const float4* x, int n) {}')
    signature = image.signatures["k"]
    assert [param.cpp_type for param in signature.params] == ["PK6float4", "i"]
    assert ptx.KernelSignature.from_line(signature.to_line()) == signature
    assert image.signatures["k"].params[0].is_pointer is True


def test_bare_ptx_reports_no_types() -> None:
    image = ptx.compile("__global__ void k(float* x) {}", name_expressions=["k"])
    assert image.ptx is not None
    (signature,) = ptx.Image.from_ptx(image.ptx).signatures.values()
    assert [param.cpp_type for param in signature.params] == [""]


def test_other_names_of_cudas_classes_are_known_unless_the_source_declares_them() -> None:
    kernel = 'extern "C" __global__ void k(half a, const nv_bfloat16* b, half2 c, float4 d) {}'
    known = ("6__half", "PK13__nv_bfloat16", "7__half2", "6float4")
    assert declared_types(kernel) == {"k": known}
    for own, types in {
        "struct half { short bits; };": ("", *known[1:]),
        "class alignas(2) half; enum class float4 : char { X };": ("", *known[1:3], ""),
        "using half = short; typedef struct { int a; float b[2]; } half2;": (
            "",
            known[1],
            "",
            known[3],
        ),
        "typedef short nv_bfloat16;": (known[0], "PK12_nv_bfloat16", *known[2:]),
    }.items():
        assert declared_types(own + kernel) == {"k": types}


@pytest.mark.slow
def test_a_class_of_cuda_is_known_by_value_and_a_number_is_no_array() -> None:
    source = """
    #include <cuda_fp16.h>
    #include <cuda_fp8.h>
    struct Own { char c; };
    template <class T> __global__ void k(T value, unsigned char byte) {}
    """
    types = {"half": "6__half", "__nv_fp8_e4m3": "13__nv_fp8_e4m3", "Own": "", "float4": "6float4"}
    image = ptx.compile(source, name_expressions=[f"k<{name}>" for name in types])
    for name, cpp_type in types.items():
        value, byte = image.signatures[image.lowered_names[f"k<{name}>"]].params
        assert (value.cpp_type, value.is_array) == (cpp_type, True)
        assert (byte.cpp_type, byte.is_array) == ("h", False)


def test_a_pointer_to_a_type_of_the_source_reports_whether_that_is_const() -> None:
    source = """
    struct Pair { float a; int b; };
    typedef float* Pointer;
    extern "C" __global__ void k(Pair* a, const Pair* b, Pair const* c, struct Pair* d, Pair e,
        Pointer f, const Pointer* g, const float** h, ns::T* i, const Box<int>* j, Pair& l) {}
    """
    assert declared_types(source)["k"] == (
        "P4Pair", "PK4Pair", "PK4Pair", "P4Pair", "", "", "PK7Pointer", "PPKf", "", "",
        "P4Pair",
    )  # fmt: skip
