"""Flags in every form: `CompileOptions.from_flags` compiles what NVRTC makes of the same flags.

NVRTC itself is the oracle. A probe is compiled with the flags as they are, and with the options
read from them; both fail, or both have the same PTX, machine code and diagnostics.
"""

from __future__ import annotations

import itertools
import random
import struct
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from cuda.bindings import nvrtc

import ptx

HEADER = "probe_of_flags.h"
PROBE = f"""
#if defined(__has_include)
#if __has_include("{HEADER}")
#include "{HEADER}"
#endif
#endif
#ifdef M
#define IS_DEFINED 1
#else
#define IS_DEFINED 0
#define M 22
#endif
#ifndef FROM_HEADER
#define FROM_HEADER 33
#endif
struct Order {{ int a, b; __device__ Order() : b(1), a(2) {{}} }};
__device__ float helper(float x) {{ return x / 3.0f + sqrtf(x); }}
extern "C" __global__ void f(float* o, const float* p, int n) {{
    int unused;
    float a = p[0], kept[8];
    for (int i = 0; i < 8; ++i) kept[i] = p[i + 1] * a + p[i + 9];
    o[0] = a * p[1] + p[2]; o[1] = a / p[3]; o[2] = sqrtf(a); o[3] = helper(a); o[4] = M;
    o[5] = __cplusplus; o[6] = IS_DEFINED; o[7] = FROM_HEADER; o[8] = Order().a;
#ifdef __CUDACC_RTC_INT128__
    o[9] = sizeof(__int128);
#endif
    switch (n) {{
        case 0: o[10] = 5; break; case 1: o[11] = 7; break; case 2: o[12] = 3; break;
        case 3: o[13] = 2; break; case 4: o[14] = 9; break; case 5: o[15] = a; break;
    }}
    for (int i = 0; i < 8; ++i) o[16 + i] = kept[(i + n) & 7];
}}
"""
# A line for each option of NVRTC 13.5's manual, "Supported Compile Options": its spellings, and
# values to try. HERE is a folder with a header. `--restrict` is missing: it has a test of its own.
OPTIONS = """
--gpu-architecture -arch = compute_90 sm_90 compute_80 sm_80 sm_90a compute_90a sm_100f
--device-c -dc
--device-w -dw
--relocatable-device-code -rdc = true false
--extensible-whole-program -ewp
--device-debug -G
--generate-line-info -lineinfo
--dopt -dopt = on
--Ofast-compile -Ofc = 0 min mid max
--ptxas-options -Xptxas = -O0 --maxrregcount=16 -maxrregcount=16
--maxrregcount -maxrregcount = 24 64
--ftz -ftz = true false
--prec-sqrt -prec-sqrt = true false
--prec-div -prec-div = true false
--fmad -fmad = true false
--use_fast_math -use_fast_math
--extra-device-vectorization -extra-device-vectorization
--modify-stack-limit -modify-stack-limit = true false
--dlink-time-opt -dlto
--gen-opt-lto -gen-opt-lto
--optix-ir -optix-ir
--jump-table-density -jtd = 0 101
--device-stack-protector -device-stack-protector = true false
--no-cache -no-cache
--frandom-seed -frandom-seed = 7
--define-macro -D = M M=3 M= M=a FROM_HEADER=5
--undefine-macro -U = M __CUDACC_RTC_INT128__
--include-path -I = HERE
--pre-include -include = HERE/probe_of_flags.h
--no-source-include -no-source-include
--std -std = c++03 c++11 c++14 c++17 c++20 c++23
--builtin-move-forward -builtin-move-forward = true false
--builtin-initializer-list -builtin-initializer-list = true false
--pch-verbose -pch-verbose = true false
--pch-messages -pch-messages = true false
--instantiate-templates-in-pch -instantiate-templates-in-pch = true false
--disable-warnings -w
--Wreorder -Wreorder
--warning-as-error -Werror = reorder all-warnings
--device-as-default-execution-space -default-device
--device-int128 -device-int128
--device-float128 -device-float128
--optimization-info -opt-info = inline
--display-error-number -err-no
--no-display-error-number -no-err-no
--diag-error -diag-error = 177
--diag-suppress -diag-suppress = 177
--diag-warn -diag-warn = 177
--brief-diagnostics -brief-diag = true false
--split-compile -split-compile = 0 1 2
--pch -pch
--pch-dir -pch-dir = HERE
--fdevice-syntax-only -fdevice-syntax-only
--minimal -minimal
"""
ON_CODE = (
    "-Xptxas", "--ptxas-options", "-maxrregcount", "--maxrregcount", "-G", "--device-debug", "-rdc",
    "--relocatable-device-code", "-dc", "--device-c", "-lineinfo", "--generate-line-info", "-dlto",
    "--dlink-time-opt",
)  # fmt: skip
Flags = tuple[str, ...]


class Outcome(NamedTuple):
    """What flags make of the probe; `error` is a word, and the rest is empty then."""

    error: str
    ptx: str = ""
    code: bytes = b""
    remarks: tuple[str, ...] = ()


def remarks(log: str) -> tuple[str, ...]:
    """The lines of a log about the probe, without NVRTC's remarks on its flags."""
    return tuple(line for line in log.splitlines() if line.startswith("probe.cu("))


def by_nvrtc(flags: Flags, source: str = PROBE) -> Outcome:
    """Compile with the flags as they are."""
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"probe.cu", 0, [], [])
    given = [flag.encode() for flag in flags]
    (result,) = nvrtc.nvrtcCompileProgram(program, len(given), given)
    log = _read(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).decode()
    if int(result):
        return Outcome("error", remarks=remarks(log))
    text = _read(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX).decode()
    cubin = _read(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    ltoir = _read(program, nvrtc.nvrtcGetLTOIRSize, nvrtc.nvrtcGetLTOIR)
    nvrtc.nvrtcDestroyProgram(program)
    text = text.rstrip("\0")
    return Outcome("", text, machine_code(cubin) or ltoir, remarks(log))


def machine_code(cubin: bytes) -> bytes:
    """The sections of code of a cubin: the others have the flags, too. Nothing for other bytes."""
    if not cubin.startswith(b"\x7fELF"):
        return b""
    (at,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    # Each header: name, type, flags, address, offset, size.
    headers = [struct.unpack_from("<IIQQQQ", cubin, at + i * size) for i in range(count)]
    texts = headers[names][4]
    return b"".join(
        cubin[header[4] : header[4] + header[5]]
        for header in headers
        if cubin.startswith(b".text", texts + header[0])
    )


Program = nvrtc.nvrtcProgram


def _read(
    program: Program,
    size: Callable[[Program], tuple[nvrtc.nvrtcResult, int]],
    read: Callable[[Program, bytearray], tuple[nvrtc.nvrtcResult]],
) -> bytes:
    _, nbytes = size(program)
    if not nbytes:
        return b""
    data = bytearray(nbytes)
    read(program, data)
    return bytes(data)


def by_options(flags: Flags) -> Outcome:
    """Compile with the options that are read from the flags."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ptx.CompileWarning)
            options = ptx.CompileOptions.from_flags(*flags)
            image = ptx.compile(PROBE, options, name="probe.cu", cache=False)
    except ptx.CompileError as error:
        return Outcome("error", remarks=remarks(error.log))
    except ValueError:
        return Outcome("error")
    code = image.data if options.target and options.target.kind is ptx.ImageKind.LTOIR else b""
    return Outcome("", image.ptx or "", machine_code(image.data) or code, remarks(image.log))


class Option(NamedTuple):
    """One option: its spellings, and values to try, none for a switch."""

    spellings: tuple[str, ...]
    values: tuple[str, ...]


def options_in(folder: Path) -> list[Option]:
    """Return the options of the manual, with a folder that has the header."""
    read = []
    for line in OPTIONS.strip().splitlines():
        spellings, _, values = line.replace("HERE", str(folder)).partition(" = ")
        if ptx.nvrtc_version() < (13, 0):
            values = values.replace(" c++23", "")  # unknown there, also before another standard
        read.append(Option(tuple(spellings.split()), tuple(values.split())))
    return read


def misspelled(spelling: str) -> Iterator[str]:
    """An option with a hyphen more or less, and with underscores."""
    yield spelling[1:] if spelling.startswith("--") else f"-{spelling}"
    yield spelling[:2] + spelling[2:].translate({ord("-"): "_", ord("_"): "-"})
    yield spelling[:2] + spelling[2:].upper()


def forms_of_value(option: Option, value: str) -> Iterator[Flags]:
    """One value of an option in the forms that NVRTC takes."""
    for spelling in option.spellings:
        yield (f"{spelling}={value}",)
        yield (spelling, value)


def unusual_forms(option: Option, value: str) -> Iterator[Flags]:
    """One value of an option in other forms, most of which NVRTC rejects."""
    for spelling in option.spellings:
        yield (f"  {spelling}={value} ",)
        yield (spelling, f" {value} ")
        yield (f"{spelling}= {value}",)
        yield (f"{spelling} ={value}",)
        yield (f"{spelling} {value}",)
        yield (f"{spelling}{value}",)
        yield (spelling, f"={value}")
        yield (f"{spelling}={value}", value)
        for wrong in misspelled(spelling):
            yield (f"{wrong}={value}",)
            yield (wrong, value)


def forms_of_switch(option: Option) -> Iterator[Flags]:
    """A switch in every form."""
    for spelling in option.spellings:
        yield (spelling,)
        yield (f" {spelling} ",)
        yield (spelling, spelling)
        yield (f"{spelling}=true",)
        yield (f"{spelling}=",)
        yield (spelling, "true")
        yield (spelling, "-DM=4")
        for wrong in misspelled(spelling):
            yield (wrong,)


def forms_without_value(option: Option) -> Iterator[Flags]:
    """An option without its value: NVRTC drops some in silence, and ends the process for others."""
    for spelling in option.spellings:
        yield (spelling,)
        yield (f"{spelling}=",)
        yield (spelling, "")
        yield ("-DM=4", f" {spelling}= ")


def forms_of_wrong_value(option: Option) -> Iterator[Flags]:
    """An option with a wrong value, or with another option where its value may stand."""
    for spelling in option.spellings:
        yield (spelling, "-DM=4")
        for wrong in ("1", "0", "TRUE", "maybe", "+32", "0x20", "３２"):
            yield (f"{spelling}={wrong}",)


def repetitions(option: Option) -> Iterator[Flags]:
    """An option twice, with each pair of values and both spellings."""
    first, last = option.spellings[0], option.spellings[-1]
    for one, other in itertools.permutations(option.values, 2):
        yield (f"{first}={one}", f"{last}={other}")


MACROS = (
    ("-DM",), ("-DM=3",), ("-D", "M=4"), ("--define-macro=M=5",), ("-DM(x)=x",), ("-DN=M",),
    ("-UM",), ("-U", "M"), ("--undefine-macro=M",), ("-UN",),
)  # fmt: skip


def macro_sequences() -> Iterator[Flags]:
    """Sequences of definitions and undefinitions: all pairs, and random longer ones."""
    for pair in itertools.product(MACROS, repeat=2):
        yield tuple(itertools.chain(*pair))
    chosen = random.Random(44)
    for _ in range(100):
        yield tuple(itertools.chain(*chosen.choices(MACROS, k=chosen.randint(3, 5))))


def others(folder: Path) -> Iterator[Flags]:
    """Values that look like options, folders with spaces, definitions of no macro."""
    spaced, comma = folder / "a b", folder / "a,b"
    for place in (spaced, comma):
        place.mkdir(exist_ok=True)
        (place / HEADER).write_text("#define FROM_HEADER 77\n")
        for form in (
            f"-I{place}",
            f"-I {place}",
            f"-I={place}",
            f'-I"{place}"',
            f"--include-path={place}",
        ):
            yield (form,)
            yield (form, f"-I{folder}")
            yield (f"-I{folder}", form)
    for value in (
        "-UM",
        "-fmad=false",
        "-arch=sm_90",
        "-I",
        "M 3",
        "3M=4",
        "M-N=3",
        "M==3",
        "=M",
        'M="3"',
        "M= 3",
        "M =3",
        " M=3",
        "$M=3",
        "M=3,N=4",
        "é=3",
    ):
        for spelling in (
            "-D",
            "--define-macro",
            "-U",
            "--undefine-macro",
            "-Xptxas",
            "-include",
            "-I",
        ):
            yield (spelling, value)
            yield (f"{spelling}={value}", "-DM=8")
    # NVRTC ends the process where it cannot write the file that these name.
    for spelling in ("--time", "-time", "--fdevice-time-trace", "-fdevice-time-trace"):
        yield (f"{spelling}={folder / 'times'}",)
        yield (spelling, str(folder / "times"))
    yield from [("",), (" ",), ("-",), ("--",), ("name",), ("-nothing",), ("--nothing=3",)]


def cells(folder: Path) -> Iterator[Flags]:
    """Each option in each form, sequences of macros, and flags that mislead a reader."""
    for option in options_in(folder):
        for value in option.values:
            yield from forms_of_value(option, value)
        if option.values:
            yield from unusual_forms(option, option.values[0])
            yield from forms_of_wrong_value(option)
        else:
            yield from forms_of_switch(option)
        yield from repetitions(option)
    yield from macro_sequences()
    yield from others(folder)


def with_target(flags: Flags) -> Flags:
    """Flags with an architecture, as NVRTC 12 has another one without; with code where it acts."""
    if any(flag.strip().startswith(("-arch", "--gpu-arch")) for flag in flags):
        return flags
    acts_on_code = any(flag.strip().startswith(ON_CODE) for flag in flags)
    return ("-arch=sm_75" if acts_on_code else "-arch=compute_75", *flags)


def differs_by_design(flags: Flags) -> bool:
    """Whether other flags are accepted than by NVRTC.

    A folder for precompiled headers is made where it is needed. No registers are no limit for nvcc,
    and a very low one for NVRTC.
    """
    return bool({"--maxrregcount=0", "-maxrregcount=0"} & {*flags}) or any(
        flag.lstrip("-").startswith("pch-dir=") for flag in flags
    )


def differing(tried: Iterable[Flags]) -> tuple[list[str], int]:
    """Return the flags whose options compile otherwise than they do, and how many compile."""
    by_fields: dict[str, Outcome] = {}
    wrong, compiled = [], 0
    for flags in dict.fromkeys(map(with_target, tried)):
        if differs_by_design(flags):
            continue
        expected = by_nvrtc(flags)
        compiled += not expected.error
        try:
            fields = repr(ptx.CompileOptions.from_flags(*flags))
        except ValueError:
            fields = "rejected"
        if fields not in by_fields:
            by_fields[fields] = by_options(flags)
        if by_fields[fields] != expected:
            wrong.append(f"{flags}: NVRTC {expected.error or 'compiles'}, read as {fields}")
    return wrong, compiled


@pytest.fixture
def header_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the header; the working folder is another one, without it."""
    (tmp_path / "with").mkdir()
    (tmp_path / "with" / HEADER).write_text("#define FROM_HEADER 44\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "with"


def test_a_standard_in_the_next_flag_raises_as_in_nvrtc() -> None:
    for spelling in ("-std", "--std"):
        flags = ("-arch=compute_80", spelling, "c++20")
        assert by_nvrtc(flags).error
        with pytest.raises(ValueError, match=f"only after =, as in {spelling}=VALUE"):
            ptx.CompileOptions.from_flags(*flags)


@pytest.mark.slow
def test_flags_in_every_form_compile_as_nvrtc_compiles_them(header_folder: Path) -> None:
    wrong, compiled = differing(cells(header_folder))
    assert not wrong
    assert compiled > 700  # others NVRTC rejects, and so do the options


@pytest.mark.slow
def test_the_probe_shows_a_lost_flag(header_folder: Path) -> None:
    targets: tuple[Flags, ...] = ((), ("-arch=sm_75",), ("-arch=compute_75",))
    bases = {flags: by_nvrtc(flags) for flags in targets}
    without_effect = []
    for flag in (
        "-arch=compute_90", "-dc", "-rdc=true", "-G", "-lineinfo", "-Xptxas=-O0",
        "-dlto", "-maxrregcount=16", "-ftz=true", "-prec-sqrt=false", "-prec-div=false",
        "-fmad=false", "-use_fast_math", "-DM=3", f"-I{header_folder}",
        f"-include={header_folder / HEADER}",
        "-std=c++20", "-w", "-Wreorder", "-Werror=all-warnings", "-device-int128", "-no-err-no",
        "-diag-error=177", "-diag-suppress=177", "-fdevice-syntax-only",
    ):  # fmt: skip
        flags = with_target((flag,))
        if by_nvrtc(flags) == bases[flags[:-1]]:
            without_effect.append(flag)
    assert not without_effect


@pytest.mark.slow
def test_pairs_and_orders_of_flags_compile_as_nvrtc_compiles_them(header_folder: Path) -> None:
    wrong, compiled = differing([
        ("-UM", "-DM"), ("-DM", "-UM"), ("-D", "M=4", "--undefine-macro", "M", "-D M=6"),
        ("-DM(x)=x", "-DM=3"), ("-arch", "compute_90"), ("--gpu-architecture", "compute_80"),
        ("--include-path", str(header_folder)), ("-I", str(header_folder), "-fmad", "false"),
        ("--define-macro", "M"), ("-maxrregcount", "32"), ("-fmad", "-DM=3"), ("--ftz", "true"),
        ("-Xptxas", "-maxrregcount=32", "-DM=3"), ("-D", "-arch=sm_90"), ("-G=true",), ("-fmad=1",),
        ("--arch=sm_90",), ("-include", str(header_folder / HEADER), "--prec-div", "false"),
    ])  # fmt: skip
    assert not wrong
    assert compiled == 13


@pytest.mark.slow
def test_repeated_and_contradicting_flags_compile_as_nvrtc_compiles_them() -> None:
    wrong, compiled = differing([
        ("-arch=compute_80", "-arch=compute_90"), ("-arch=compute_90", "-arch=sm_90"),
        ("-arch=sm_90", "--gpu-architecture=compute_90"), ("-arch", "sm_90a", "-arch=sm_90"),
        ("-arch=sm_90a", "-arch", "compute_80"), ("-arch=compute_90a", "-arch=sm_90"),
        ("-arch=sm_90", "-arch=compute_80", "-arch=compute_90a"), ("-arch=x", "-arch=sm_90"),
        ("-std=c++11", "--std=c++20"), ("--std=c++20", "-std=c++14"), ("-std=c++9", "-std=c++17"),
        ("-fmad=false", "--fmad=true"), ("-fmad", "true", "-fmad=false"),
        ("-use_fast_math", "-fmad=false"), ("-fmad=false", "-use_fast_math"),
        ("-ftz=false", "-use_fast_math"), ("-prec-div=true", "--use_fast_math", "-prec-sqrt=true"),
        ("-maxrregcount=24", "--maxrregcount=64"), ("-Xptxas=-O0", "-Xptxas=-O3"),
        ("-G", "-lineinfo"), ("-lineinfo", "-G"), ("-G", "-dopt=on"), ("-G", "--dopt=off"),
        ("-dopt=on",), ("-G", "-G"), ("-G", "-Xptxas=-O3"), ("-Xptxas=-O3", "-G"),
        ("-rdc=true", "-rdc=false"), ("-dc", "-rdc=false"), ("-O3",), ("-O", "3"),
    ])  # fmt: skip
    assert not wrong
    assert compiled > 20


def test_flags_without_their_value_raise(tmp_path: Path) -> None:
    # NVRTC drops some of them in silence, and ends the process for others.
    accepted = [
        flags
        for option in options_in(tmp_path)
        if option.values
        for flags in forms_without_value(option)
        if not by_options(flags).error
    ]
    assert not accepted


def test_an_option_that_acts_on_later_compilations_is_rejected() -> None:
    for option in ("--restrict", "-restrict"):
        with pytest.raises(ValueError, match=r"later compilations too; write __restrict__"):
            ptx.CompileOptions.from_flags(option)
