"""What a module's target and version lack is refused, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

import ptx
from ptx.emulate.requirements.check import (
    UnsupportedTarget,
    check_requirements,
    instruction_needs,
    unmet_requirements,
)
from tests.emulator.differential.corpus import sources
from tests.emulator.differential.recording import Recording, path_of
from tests.emulator.engine.ops.corpus import text_of
from tests.emulator.engine.requirements.assembler import (
    assembles,
    has_assembler,
    has_target,
    kernel_of,
    newest_version,
    refused,
    takes,
)

FORMS = Path(__file__).with_name("forms.txt").read_text().splitlines()
RECENT = "blackwell.cu"  # its packed floats need 10.0
# Its instruction and its special register.
WORDS = {form: {*re.findall(r"^[\w.:]+|%[a-z]\w+(?=\.[xyz]|;)", form)} for form in FORMS}
HEADER = ".version {}\n.target {}\n.address_size 64\n"
# These need more than the assembler asked for before PTX 9.1.
NOT_YET_REFUSED = {
    "fence.acquire.gpu;",
    "fence.release.sys;",
    "cvt.rn.satfinite.e2m1x2.f16x2 %b8_0, %b32_0;",
    "cvt.ftz.f32.bf16 %f32_0, %b16_0;",
}
FEW = ["sm_70 6.0", "sm_80 7.8", "sm_90a 8.6", "sm_100 8.8", "sm_120f 9.0"]
TARGETS = (
    "sm_53 sm_60 sm_61 sm_70 sm_72 sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a sm_100 sm_100a sm_100f"
    " sm_103 sm_103a sm_103f sm_107a sm_110 sm_110a sm_110f sm_120 sm_120a sm_120f sm_121 sm_121a"
    " sm_121f"
)
VERSIONS = (
    "6.0 6.1 6.2 6.3 6.4 6.5 7.0 7.1 7.2 7.4 7.5 7.6 7.7 7.8 8.0 8.1 8.2 8.3 8.4 8.5 8.6 8.7 8.8"
    " 9.0 9.1 9.2 9.3 9.4"
)
needs_assembler = pytest.mark.skipif(not has_assembler(), reason="there is no nvJitLink")


def differing(target: str, version: str) -> list[str]:
    """Where the assembler and the table do not agree."""
    kernels = "".join(kernel_of(form, f"k{at}") for at, form in enumerate(FORMS))
    unmet = unmet_requirements(ptx.parse(HEADER.format(version, target) + kernels))
    ours = {form for form in FORMS if WORDS[form] & unmet.keys()}
    taken = set() if newest_version() >= (9, 1) else NOT_YET_REFUSED
    return sorted((refused(FORMS, target, version) ^ ours) - taken)


def is_refused(form: str, target: str, version: str) -> bool:
    text = HEADER.format(version, target) + kernel_of(form, "k")
    return bool(unmet_requirements(ptx.parse(text)))


def is_known(target: str, version: str) -> bool:
    """Whether the assembler knows both, and that version the target."""
    major, minor = version.split(".")
    if (int(major), int(minor)) > newest_version() or not has_target(target):
        return False
    return takes(target, version)


@pytest.mark.slow
@needs_assembler
@pytest.mark.parametrize("module", FEW)
def test_the_same_is_rejected_as_by_the_assembler(module: str) -> None:
    target, version = module.split()
    if not is_known(target, version):
        pytest.skip(f"this ptxas has no {target} or no PTX {version}")
    assert differing(target, version) == []


@needs_assembler
@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS.split())
def test_the_same_is_rejected_in_every_version(target: str) -> None:
    found = {
        version: differing(target, version)
        for version in VERSIONS.split()
        if is_known(target, version)
    }
    assert not any(found.values()), {version: forms for version, forms in found.items() if forms}


@pytest.mark.parametrize(("form", "module", "needs"), [
    ("wgmma.fence.sync.aligned;", "sm_90 8.0", "needs sm_90a with PTX 8.0; "),
    ("wgmma.fence.sync.aligned;", "sm_100a 8.6", "needs sm_90a with PTX 8.0; "),
    ("cp.async.wait_all;", "sm_75 7.0", "needs sm_80 or higher with PTX 7.0; "),
    ("cp.async.wait_all;", "sm_80 6.5", "needs sm_80 or higher with PTX 7.0; "),
    ("cvt.rn.satfinite.e4m3x2.f32 %b16_0, %f32_0, %f32_1;", "sm_89 7.8",
     "needs sm_89 or higher with PTX 8.1; or sm_90 or higher with PTX 7.8; "),
    ("redux.sync.min.f32 %f32_0, %f32_1, 0xffffffff;", "sm_120a 8.7",
     "needs sm_100f (or sm_100a, or a later one of the family) with PTX 8.6; "),
    ("mov.u32 %u32_0, %clusterid.x;", "sm_80 8.0", "needs sm_90 or higher with PTX 7.8; "),
    ("st.volatile.local.b32 [%u64_0], %u32_0;", "sm_90 9.0",
     "needs sm_30 or higher with PTX 9.1; "),
    ("mbarrier.test_wait.relaxed.cta.b64 %pred_0, [mem], %b64_0;", "sm_80 8.0",
     "needs sm_90 or higher with PTX 8.6; "),
    ("cp.async.bulk.shared::cta.mbarrier::complete_tx::bytes.global [mem], [%u64_0], 16, [mem];",
     "sm_90 8.5", "needs sm_90 or higher with PTX 8.6; "),
    ("prefetch.tensormap [%u64_0];", "sm_80 8.0", "needs sm_90 or higher with PTX 8.0; "),
    ("isspacep.param::entry %pred_0, %u64_0;", "sm_80 8.2",
     "needs sm_70 or higher with PTX 8.3; "),
])  # fmt: skip
def test_an_error_reports_what_is_needed_and_where(form: str, module: str, needs: str) -> None:
    target, version = module.split()
    text = HEADER.format(version, target) + kernel_of("ret;", "a") + kernel_of(form, "b")
    with pytest.raises(UnsupportedTarget) as raised:
        check_requirements(ptx.parse(text))
    error = raised.value
    word = "%clusterid" if "%clusterid" in form else form.split()[0].rstrip(";")
    said = f"{word} at PTX line 8 {needs}the module is for .target {target} and .version {version}"
    assert str(error) == said
    assert (error.instruction, error.line, error.target, error.version) == (
        word,
        8,
        target,
        version,
    )


def test_a_family_has_what_its_first_member_brought() -> None:
    form = "redux.sync.max.f32 %f32_0, %f32_1, 0xffffffff;"
    has = {
        target: not is_refused(form, target, "9.0")
        for target in ("sm_100", "sm_100a", "sm_100f", "sm_103a", "sm_103f", "sm_120f", "sm_90a")
    }
    assert has == {
        "sm_100": False, "sm_100a": True, "sm_100f": True, "sm_103a": True, "sm_103f": True,
        "sm_120f": False, "sm_90a": False,
    }  # fmt: skip


def test_the_order_of_modifiers_does_not_change_what_is_needed() -> None:
    ordered = "cvt.rn.bf16x2.{}", "cvt.bf16x2.rn.{}", "cvt.bf16x2.{}.rn"
    for kind in ("e2m1x2", "e3m2x2", "e4m3x2", "f32"):
        assert len({instruction_needs(form.format(kind)) for form in ordered}) == 1, kind


def test_a_type_needs_its_target_wherever_it_is_declared() -> None:
    """As ptxas of CUDA 13.5, which looks for no needs of arrays of .b128 and vectors of .f16x2."""
    entry, function = ".visible .entry k() {{ {} ret; }}\n", ".func {}\n"
    scalars = (
        ".extern .func f(.param .T x); .global .T x;",
        ".global .T x;", ".const .T x;", ".shared .T x;", ".global .T x<2>;", ".global .T x<0>;",
        *map(entry.format, (".reg .T x;", ".reg .T x<3>;", ".local .T x;", ".shared .T x;")),
        function.format("f(.reg .T x);"),
    )  # fmt: skip
    arrays = (
        ".global .T x[2];",
        ".entry k(.param .T x[2]) { ret; }\n",
        entry.format(".local .T x[2];"),
    )
    others = (
        "// .global .T x;",
        ".global .b32 T;",
        entry.format("P: .callprototype _ (.param .T _);"),
        entry.format("P: .callprototype (.param .T r) _ (.param .T p);"),
        ".extern .func f(.param .T x);",
        ".extern .func (.reg .T x) f(.reg .T y);",
    )
    parameters = (
        *map(function.format, ("f(.param .T x);", "(.param .T x) f();")),
        ".entry k(.param .b32 x, .param .T _) { ret; }\n",
    )

    def unmet(ptx_type: str, declarations: Iterable[str], target: str) -> list[str]:
        head = HEADER.format(*reversed(target.split()))
        texts = [each.replace("T", ptx_type) for each in declarations]
        return [text for text in texts if unmet_requirements(ptx.parse(head + text))]

    assert len(unmet("b128", (*scalars, *parameters), "sm_60 8.3")) == 14
    assert len(unmet("b128", (*scalars, *parameters), "sm_70 8.2")) == 14
    assert len(unmet("f16x2", (*scalars, *arrays), "sm_52 9.0")) == 14
    assert unmet("b128", (*scalars, *parameters), "sm_70 8.3") == []
    assert unmet("f16x2", (*scalars, *arrays), "sm_53 4.2") == []
    assert unmet("b128", (*arrays, *others), "sm_60 8.2") == []
    assert unmet("f16x2", (".global .v2 .T x;", *others[:2]), "sm_52 9.0") == []


def test_an_instruction_is_found_wherever_it_stands_in_a_line() -> None:
    for body in (
        "wgmma.fence.sync.aligned;", "ret; wgmma.fence.sync.aligned;",
        "{ wgmma.fence.sync.aligned; }", "L: wgmma.fence.sync.aligned;",
        "@%p wgmma.fence.sync.aligned;", "L:\n\t@!%p\twgmma.fence.sync.aligned;",
        ".loc 1 2 3\n\twgmma.fence.sync.aligned;", "}wgmma.fence.sync.aligned;{",
    ):  # fmt: skip
        text = HEADER.format("8.0", "sm_90") + ".visible .entry k() {\n.reg .pred %p;\n"
        with pytest.raises(UnsupportedTarget, match=r"wgmma\.fence"):
            check_requirements(ptx.parse(f"{text}{{ {body} }}\nret; }}\n"))


def test_words_of_operands_and_comments_are_no_instructions() -> None:
    text = HEADER.format("8.0", "sm_90") + (
        ".global .b32 wgmma;\n.visible .entry k() {\n.reg .b32 %r<3>;\n"
        "// wgmma.fence.sync.aligned;\n/* ; wgmma.fence.sync.aligned; %aggr_smem_size */\n"
        ".reg .b32 %aggr_smem_sizes;\n"
        'ld.global.b32 %r1, [wgmma];\n.pragma "wgmma.fence";\nadd.s32\n%r1, %r1, %r2;\nret; }\n'
    )
    check_requirements(ptx.parse(text))


SECTIONS = {
    "{ .b8 1, 255 .b32 k .b64 .debug_str+4 }": (6, 0), "{ $L__c1: .b8 1 }": (7, 0),
    "{ .b64 B1-A0 }": (7, 5), "{ .b32 B1 - A0 }": (7, 5), "{ .b16 -128 }": (7, 5),
    "{ .b8 1,- 2 }": (7, 5),
}  # fmt: skip
"""What sections of debug information have, with the oldest version that may."""


@pytest.mark.parametrize("version", ["6.5", "7.0", "7.4", "7.5", "8.8"])
@pytest.mark.parametrize("section", SECTIONS)
def test_sections_have_what_their_version_has(section: str, version: str) -> None:
    text = (
        f".version {version}\n.target sm_75, debug\n.address_size 64\n"
        f".visible .entry k() {{ ret; }}\n.section .debug_info\n{section}\n"
    )
    is_met = tuple(map(int, version.split("."))) >= SECTIONS[section]
    assert (unmet_requirements(ptx.parse(text)) == {}) is is_met
    if has_assembler():
        assert assembles(text, "sm_75") is is_met
    if not is_met:
        with pytest.raises(UnsupportedTarget, match="at PTX line 6 needs"):
            check_requirements(ptx.parse(text))


def test_no_module_that_a_gpu_ran_is_rejected() -> None:
    texts = {source.name: Recording.load(path_of(source)).ptx for source in sources()}
    assert len(texts) > 10
    for name, text in texts.items():
        assert unmet_requirements(ptx.parse(text)) == {}, name


@pytest.mark.slow
@pytest.mark.parametrize("target", ["compute_100", "compute_100a", "compute_120", "compute_120f"])
def test_nothing_of_the_compiler_is_rejected_for_recent_targets(target: str) -> None:
    assert unmet_requirements(ptx.parse(text_of(RECENT, target))) == {}
