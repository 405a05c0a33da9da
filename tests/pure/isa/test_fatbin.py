"""Fatbins made here, in the form that CUDA 13.0's `fatbinary` writes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ptx.errors import ImageFormatError
from ptx.isa.fatbin import fatbin_ptx

from ...emulator.fatbins import fatbin

TEXT = ".version 8.0\n.target sm_{0}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"
HERE = (9, 0)


def test_the_newest_ptx_that_a_device_accepts_is_read_and_machine_code_is_skipped() -> None:
    entries = [(2, 90, b"\x7fELF" + bytes(100))]
    entries += [(1, each, TEXT.format(each).encode()) for each in (75, 120, 80)]
    assert fatbin_ptx(fatbin(*entries), HERE) == TEXT.format(80)
    assert fatbin_ptx(fatbin(*entries), (12, 0)) == TEXT.format(120)


def test_a_fatbin_without_ptx_is_rejected_with_its_architectures() -> None:
    with pytest.raises(ImageFormatError, match=r"no PTX.*machine code for sm_86(.|\n)*nvcc"):
        fatbin_ptx(fatbin((2, 86, b"\x7fELF")), HERE)


def test_a_damaged_fatbin_is_rejected() -> None:
    whole = fatbin((1, 80, TEXT.format(80).encode()))
    for damaged in (
        whole[:9],
        whole[:-8],
        b"none" + whole[4:],
        whole[:24] + b"\xff" * 8 + whole[32:],
    ):
        with pytest.raises(ImageFormatError):
            fatbin_ptx(damaged, HERE)


def _made(tmp_path: Path, *options: str) -> bytes:
    """What `fatbinary` writes for PTX with a long comment, in which copies overlap."""
    if shutil.which("fatbinary") is None:
        pytest.skip("needs CUDA's fatbinary")
    source, made = tmp_path / "k.ptx", tmp_path / "k.fatbin"
    source.write_text(TEXT.format(80) + "// " + "abc" * 400 + "\n.const .b8 t[99];\n")
    subprocess.run(
        [
            "fatbinary",
            f"--create={made}",
            "-64",
            *options,
            f"--image3=kind=ptx,sm=80,file={source}",
        ],
        check=True,
    )
    return made.read_bytes()


@pytest.mark.parametrize(
    "option", ["--compress=false", "--compress-mode=speed", "--compress-mode=size"]
)
def test_fatbins_of_the_toolkit_are_read(tmp_path: Path, option: str) -> None:
    found = fatbin_ptx(_made(tmp_path, option), HERE)
    assert found.startswith(TEXT.format(80))
    assert ".const .b8 t[99];" in found
