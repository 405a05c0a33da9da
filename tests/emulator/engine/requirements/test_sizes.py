"""How much memory a module may declare, beside NVIDIA's assembler where it is installed."""

from __future__ import annotations

import pytest

from ptx.emulate.requirements.sizes import SizeLimitExceeded, check_sizes
from ptx.isa import parse
from ptx.isa.signature import signature_of
from tests.emulator.engine.requirements.assembler import assembles, has_assembler
from tests.rows import all_rows

KERNEL = ".visible .entry k() { ret; }\n"
USER = "mov.u64 %r, s; st.shared.u64 [%r], %r; ret; }\n"
CASES = [
    ("8.0 sm_80", ".const .b8 c[65536];\n" + KERNEL, ""),
    ("8.0 sm_80", ".const .b8 c[65537];\n" + KERNEL, "__constant__ memory: 65537 bytes, at most"),
    ("8.0 sm_80", ".const .b8 c[40000];\n.const .b8 d[40000];\n" + KERNEL, "__constant__ memory"),
    ("8.0 sm_80", ".shared .b8 s[49153];\n" + KERNEL, ""),
    ("8.0 sm_80", ".extern .shared .b8 s[];\n.entry k() { .reg .b64 %r; " + USER, ""),
    ("8.0 sm_80", ".shared .b8 s[49152];\n.entry k() { .reg .b64 %r; " + USER, ""),
    ("8.0 sm_80", ".shared .b8 s[49153];\n.entry k() { .reg .b64 %r; " + USER, "kernel k: 49153"),
    ("9.0 sm_100", ".entry k() { .shared .b8 s[49153]; .reg .b64 %r; " + USER, "kernel k: 49153"),
    (
        "8.0 sm_80",
        ".func f() { .shared .b8 s[50000]; .reg .b64 %r; " + USER + ".entry k() { call f; ret; }\n",
        "static __shared__ memory of kernel k: 50000 bytes",
    ),
    (
        "8.0 sm_80",
        ".func f() { .shared .b8 s[50000]; .reg .b64 %r; " + USER + KERNEL,
        "",
    ),
    ("8.0 sm_80", ".entry k(.param .b8 p[4352]) { ret; }\n", ""),
    ("8.0 sm_80", ".entry k(.param .b8 p[4353]) { ret; }\n", "kernel k: 4353 bytes, at most 4352"),
    ("8.1 sm_60", ".entry k(.param .b8 p[4353]) { ret; }\n", "kernel k: 4353 bytes, at most 4352"),
    ("8.1 sm_70", ".entry k(.param .b8 p[32764]) { ret; }\n", ""),
    ("8.1 sm_70", ".entry k(.param .b8 p[32765]) { ret; }\n", "32765 bytes, at most 32764"),
    ("8.8 sm_90", ".entry k(.param .b8 p[32757], .param .b64 q) { ret; }\n", "32768 bytes"),
]
# Driver 580 on an H200 rejects it, and nvJitLink moves the aligned constant to the front.
OF_DRIVERS = (
    "8.0 sm_80",
    ".const .b8 c[65535];\n.const .align 8 .b8 d[1];\n" + KERNEL,
    "65537 bytes",
)


def text_of(case: tuple[str, str, str]) -> str:
    version, target = case[0].split()
    return f".version {version}\n.target {target}\n.address_size 64\n{case[1]}"


@all_rows
@pytest.mark.parametrize("case", [*CASES, OF_DRIVERS], ids=range(len(CASES) + 1))
def test_what_is_more_than_a_gpu_has_is_rejected(case: tuple[str, str, str]) -> None:
    module = parse(text_of(case))
    signatures = [signature_of(module, each) for each in module.entries]
    if not case[2]:
        check_sizes(module, signatures)
        return
    with pytest.raises(SizeLimitExceeded, match=case[2]) as caught:
        check_sizes(module, signatures)
    assert caught.value.nbytes > caught.value.most
    assert len(str(caught.value).splitlines()[0]) <= 100


@pytest.mark.skipif(not has_assembler(), reason="there is no nvJitLink")
@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_the_limits_are_those_of_the_assembler(case: tuple[str, str, str]) -> None:
    assert assembles(text_of(case), case[0].split()[1]) == (not case[2])
