"""The target of PTX text, in each layout of its header that the assembler takes."""

from __future__ import annotations

import pytest

import ptx

BODY = "\n.visible .entry k() { ret; }\n"


@pytest.mark.parametrize(
    "header",
    [
        ".version 8.5\n.target sm_90a\n.address_size 64",
        ".version 8.5 .target sm_90a .address_size 64",
        ".version\n8.5\n.target\nsm_90a",
        "\n\n  .version 8.5\n\t.target sm_90a, debug",
        "/*\n.target sm_80\n*/\n.version 8.5\n.target sm_90a",
        "// .version 7.0 .target sm_80\n.version 8.5 /* .target sm_80 */ .target sm_90a",
        ".version 8.5 // of\n/* x\n.target sm_70 */ .target sm_90a",
        ".version 8.5\n.target compute_90a, debug",
        ".version 8.5 .target // sm_80\n/**/compute_90a",
        '# 1 "k.ptx"\n.version 8.5\n.target sm_90a',
    ],
)
def test_the_target_is_that_of_the_header(header: str) -> None:
    assert str(ptx.Image.from_ptx(header + BODY).target) == "ptx for compute_90a"


@pytest.mark.parametrize(
    "header",
    [
        ".version 8.5",
        "// .version 7.0\n.version 8.5",
        "/*\n.version 7.0\n*/\n.version 8.5",
        "/* .version 7.0 */ .version // 6.0\n8.5",
    ],
)
def test_the_version_is_that_of_the_header_and_of_no_comment(header: str) -> None:
    image = ptx.Image.from_ptx(f"{header}\n.target sm_90{BODY}// .version 9.0\n")
    assert image.ptx_version == (8, 5)


def test_many_comments_before_a_wrong_header_are_read_once() -> None:
    with pytest.raises(ptx.ImageFormatError):
        ptx.Image.from_ptx("/**/" * 5000 + ".entry")


def test_a_long_start_without_a_target_raises_soon() -> None:
    with pytest.raises(ptx.ImageFormatError):
        ptx.Image.from_ptx(" " * 20_000 + "/* " * 1000 + "x")
