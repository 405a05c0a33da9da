"""Targets and versions that an instruction needs because of its operands, as ptxas has them."""

from __future__ import annotations

from typing import Final

import pytest

import ptx
from ptx.emulate.requirements.check import (
    UnsupportedTarget,
    check_requirements,
    unmet_requirements,
)
from tests.emulator.engine.requirements.assembler import (
    has_assembler,
    has_target,
    kernel_of,
    newest_version,
    refused,
    takes,
)

HEADER: Final = ".version {}\n.target {}\n.address_size 64\n"
# Instructions, and those of one word that need less or more because of their operands; the first
# version that has them, by target; "" where none has.
FIRST: Final = {
    "max.f32 %f32_0, %f32_1, %f32_2;": "sm_80 7.0, sm_90a 8.0, sm_100a 8.6, sm_120a 8.7",
    "max.f32 %f32_0, %f32_1, %f32_2, 1.5;": "sm_80, sm_90a, sm_100a 8.8, sm_120a 8.8",
    "min.ftz.NaN.f32 %f32_0, %f32_1, %f32_2, %f32_3;": "sm_80, sm_90a, sm_100a 8.8, sm_120a 8.8",
    "cp.async.ca.shared.global [mem], [%u64_0], 4, %u32_0;": "sm_80 7.0, sm_90a 8.0, sm_100a 8.6",
    "cp.async.ca.shared.global [mem], [%u64_0], 4, %pred_0;": "sm_80 7.5, sm_90a 8.0, sm_100a 8.6",
    "cp.async.cg.shared.global [mem], [%u64_0], 16, !%pred_0;": "sm_80 7.5, sm_90a 8.0",
    "cp.async.ca.L2::cache_hint.shared.global [mem], [%u64_0], 4, %pred_0, %b64_0;": "sm_80 7.5",
    "mbarrier.arrive.b64 %b64_0, [mem];": "sm_80 7.0, sm_90a 8.0, sm_120a 8.7",
    "mbarrier.arrive.b64 %b64_0, [mem], %u32_0;": "sm_80, sm_90a 8.0, sm_120a 8.7",
    "mbarrier.arrive.noComplete.b64 %b64_0, [mem], %u32_0;": "sm_80 7.0, sm_90a 8.0",
    "mbarrier.arrive_drop.shared.b64 _, [mem], 2;": "sm_80, sm_90a 8.0",
    "@%pred_0 mbarrier.arrive_drop.release.cta.b64 _, [mem], 2;": "sm_80, sm_90a 8.0",
    "st.bulk [mem], %b64_0, 0;": "sm_90a, sm_100a 8.6, sm_120a 8.7",
    "st.bulk [mem], 1024, 0;": "sm_90a, sm_100a 8.6, sm_120a 8.7",
    "st.bulk.shared::cta [%u64_0], %b32_0, 0;": "sm_90a, sm_100a 9.0, sm_120a 9.0",
    "tensormap.replace.tile.elemtype.b1024.b32 [mem], 12;": "sm_90a 8.3, sm_100a 8.6, sm_103a 8.8",
    "tensormap.replace.tile.elemtype.b1024.b32 [mem], 13;": "sm_90a, sm_100a 8.7, sm_103a 8.8",
    "tensormap.replace.tile.swizzle_mode.b1024.b32 [mem], 3;": "sm_90a 8.3, sm_103a 8.8",
    "tensormap.replace.tile.swizzle_mode.b1024.b32 [mem], 4;": "sm_100a, sm_103a 8.8",
}
VERSIONS: Final = [
    "7.0", "7.1", "7.2", "7.4", "7.5", "7.6", "7.7", "7.8", "8.0", "8.1", "8.2", "8.3", "8.4",
    "8.5", "8.6", "8.7", "8.8", "9.0", "9.1", "9.2", "9.3", "9.4",
]  # fmt: skip
_FROM: Final = {
    "sm_80": "7.0", "sm_90a": "8.0", "sm_100a": "8.6", "sm_103a": "8.8", "sm_120a": "8.7",
}  # fmt: skip


def is_met(form: str, target: str, version: str) -> bool:
    """Whether a module may have the instruction."""
    return not unmet_requirements(ptx.parse(HEADER.format(version, target) + kernel_of(form, "k")))


def test_the_first_version_follows_from_the_operands() -> None:
    wrong = []
    for form, each in FIRST.items():
        for target, *first in map(str.split, each.split(", ")):
            versions = VERSIONS[VERSIONS.index(_FROM[target]) :]
            expected = versions[versions.index(first[0]) :] if first else []
            found = [version for version in versions if is_met(form, target, version)]
            wrong += [(form, target, found, expected)] if found != expected else []
    assert wrong == []


@pytest.mark.skipif(not has_assembler(), reason="there is no nvJitLink")
def test_the_assembler_has_the_same_first_versions() -> None:
    forms = list(FIRST)
    wrong = []
    for target in filter(has_target, _FROM):
        for version in VERSIONS:
            known = tuple(map(int, version.split("."))) <= newest_version()
            if known and takes(target, version):
                ours = {form for form in forms if not is_met(form, target, version)}
                wrong += [(target, version, refused(forms, target, version) ^ ours)]
    assert [each for each in wrong if each[2]] == []


def test_an_error_reports_the_line_of_the_operands() -> None:
    text = HEADER.format("9.0", "sm_90") + kernel_of("max.f32 %f32_0, %f32_1, %f32_2;", "a")
    text += kernel_of("max.f32 %f32_0, %f32_1, %f32_2, %f32_3;", "b")
    with pytest.raises(UnsupportedTarget) as caught:
        check_requirements(ptx.parse(text))
    assert str(caught.value) == (
        "max.f32 at PTX line 8 needs sm_100 or higher with PTX 8.8; the module is for .target"
        " sm_90 and .version 9.0"
    )
