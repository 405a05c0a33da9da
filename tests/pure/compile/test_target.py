"""Targets: spellings, and which device runs what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptx import (
    CompileOptions,
    ImageKind,
    Target,
    UnsupportedTargetError,
    choose_target,
    nearest_target,
)
from ptx.compiling import nvrtc_version, supported_targets


@pytest.mark.parametrize(
    ("text", "kind", "arch", "capability"),
    [
        ("compute_90", ImageKind.PTX, "compute_90", (9, 0)),
        ("sm_90", ImageKind.CUBIN, "sm_90", (9, 0)),
        ("sm_90a", ImageKind.CUBIN, "sm_90a", (9, 0)),
        ("compute_90a", ImageKind.PTX, "compute_90a", (9, 0)),
        ("sm_100f", ImageKind.CUBIN, "sm_100f", (10, 0)),
        ("sm_121", ImageKind.CUBIN, "sm_121", (12, 1)),
        ("lto_75", ImageKind.LTOIR, "sm_75", (7, 5)),
    ],
)
def test_spelling_reports_kind_and_architecture(
    text: str, kind: ImageKind, arch: str, capability: tuple[int, int]
) -> None:
    target = Target.parse(text)
    assert (target.kind, target.arch, target.compute_capability) == (kind, arch, capability)


@pytest.mark.parametrize("text", ["", "90", "sm90", "sm_9", "sm_90b", "SM_90", "sm_90 ", "gpu_90"])
def test_other_spellings_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is not an architecture"):
        Target.parse(text)


def test_constructor_names_fix_the_kind() -> None:
    assert Target.ptx("compute_90") == Target(ImageKind.PTX, 90)
    assert Target.cubin("sm_90a") == Target(ImageKind.CUBIN, 90, "a")
    assert Target.ltoir("sm_90") == Target(ImageKind.LTOIR, 90)


class Address:
    """What has a number, as a device array has its address, and no order."""

    def __index__(self) -> int:
        return 1 << 40


def test_a_number_is_one_of_python() -> None:
    number: Any = np.int64(90)  # a type checker would take `int` only
    assert type(Target(ImageKind.PTX, number).number) is int
    wrong: Any = Address()
    with pytest.raises(ValueError, match="architecture number 1099511627776"):
        Target(ImageKind.PTX, wrong)
    assert Target.cubin("sm_90").as_kind(ImageKind.PTX) == Target.ptx("compute_90")


@pytest.mark.parametrize(
    ("target", "runs", "refuses"),
    [
        ("compute_80", [(8, 0), (8, 9), (9, 0), (12, 1)], [(7, 5)]),
        ("sm_80", [(8, 0), (8, 6)], [(7, 5), (9, 0)]),
        ("sm_86", [(8, 6), (8, 9)], [(8, 0), (9, 0)]),
        ("sm_90a", [(9, 0)], [(8, 9), (9, 1), (10, 0)]),
        ("compute_90a", [(9, 0)], [(10, 0)]),
        ("sm_100f", [(10, 0), (10, 3)], [(9, 0), (12, 0)]),
        ("compute_100f", [(10, 0), (10, 3)], [(12, 0)]),
    ],
)
def test_code_runs_where_the_programming_guide_specifies(
    target: str, runs: list[tuple[int, int]], refuses: list[tuple[int, int]]
) -> None:
    parsed = Target.parse(target)
    assert [c for c in runs + refuses if parsed.runs_on(c)] == runs


@pytest.mark.parametrize("kind", [ImageKind.PTX, ImageKind.CUBIN, ImageKind.LTOIR])
def test_nearest_target_is_the_newest_that_runs_and_the_only_one_made(
    kind: ImageKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = supported_targets(kind)
    made: list[Target] = []
    checked = Target.__post_init__

    def noted(target: Target) -> None:
        made.append(target)
        checked(target)

    monkeypatch.setattr(Target, "__post_init__", noted)
    for capability in [(major, minor) for major in range(7, 14) for minor in range(4)]:
        fitting = [target for target in known if target.runs_on(capability)]
        made.clear()
        if fitting:
            assert nearest_target(capability, kind) == fitting[-1]
            assert len(made) == 1
        else:
            with pytest.raises(UnsupportedTargetError):
                nearest_target(capability, kind)


def test_nearest_target_rounds_down_and_never_up() -> None:
    known = [t.compute_capability for t in supported_targets()]
    for capability in [*known, (7, 9), (8, 5), (9, 9), (10, 9), (11, 5), (99, 9)]:
        below = max(k for k in known if k <= capability)
        assert nearest_target(capability, ImageKind.PTX).compute_capability == below


def test_nearest_cubin_stays_within_the_major() -> None:
    assert nearest_target((8, 5), ImageKind.CUBIN) == Target.cubin("sm_80")
    with pytest.raises(UnsupportedTargetError, match=r"compute capability 99\.0"):
        nearest_target((99, 0), ImageKind.CUBIN)


def test_device_older_than_every_target_is_an_error_that_lists_what_is_known() -> None:
    with pytest.raises(UnsupportedTargetError, match="compute_80") as caught:
        nearest_target((3, 0))
    assert caught.value.supported == supported_targets(ImageKind.PTX)


def test_known_architecture_gets_a_cubin_whatever_the_driver() -> None:
    assert choose_target((9, 0), (12, 0)) == Target.cubin("sm_90")


def test_unknown_architecture_gets_ptx_that_the_driver_accepts() -> None:
    newest = supported_targets(ImageKind.PTX)[-1]
    assert choose_target((99, 0), nvrtc_version()) == newest


def test_unknown_architecture_with_an_older_driver_names_versions_and_remedy() -> None:
    major, minor = nvrtc_version()
    with pytest.raises(UnsupportedTargetError) as caught:
        choose_target((99, 0), (major - 1, 9))
    text = str(caught.value)
    assert f"NVRTC {major}.{minor} does not know sm_990" in text
    assert f"CUDA {major - 1}.9" in text
    assert f"update the driver to CUDA {major}.{minor}" in text


def test_what_is_no_target_is_rejected_where_it_is_given() -> None:
    with pytest.raises(TypeError, match=r"kind 'sm': expected an ImageKind"):
        Target("sm", 90)  # type: ignore[arg-type]  # the mistake that is tested
    with pytest.raises(TypeError, match=r"target='sm_90': expected a Target"):
        CompileOptions(target="sm_90")  # type: ignore[arg-type]  # the mistake that is tested
