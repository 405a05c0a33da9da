"""Paths that foreign text names: no command opens them, whether a file, a FIFO or a device."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from cudadrv.testing import strategies as st
from cudadrv.testing.verify import KernelCase, Verdict, VerifyOptions, saved_findings, verify
from ptx.disassembler import find_nvdisasm
from ptx.errors import NvdisasmNotFoundError

from .in_process import Command, command

SECRET: Final = "a line of a file of the user"
KERNEL: Final = """extern "C" __global__ void k(int n, int* x)
{
    int i = threadIdx.x;
    if (i <= n) x[i] = 1;
}
"""
PTX: Final = """.version 7.0
.target sm_80
.address_size 64
.file 1 "PATH"
.visible .entry k(.param .u64 x)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    .loc 1 1 0
    ld.param.u64 %rd1, [x];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, 7;
    st.global.u32 [%rd2], %r1;
    ret;
}
"""


def case_of(source: str | Path) -> KernelCase:
    n = st.sizes(1, 8)
    return KernelCase(
        source,
        arguments={"n": n, "x": st.arrays(np.int32, n)},
        launch=st.launch_configs(threads=n),
        reference=lambda x: {"x": np.ones_like(x)},
    )


OPTIONS: Final = VerifyOptions(("bounds",), examples=9, database=None, explain=False)


@pytest.fixture(scope="module")
def finding() -> Mapping[str, Any]:
    """A saved finding."""  # JSON
    case = case_of(KERNEL)
    verdict = verify(case, OPTIONS, name="k")
    (saved,) = (each for each in saved_findings(case, verdict) if each.finding.check == "bounds")
    return saved.to_json()


@pytest.fixture
def targets(tmp_path: Path) -> list[Path]:
    """What must not be opened; a FIFO would never end."""
    (tmp_path / "secret.txt").write_text(f"{SECRET}\n" * 9)
    (tmp_path / "link").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(tmp_path / "fifo")
    return [
        tmp_path / "secret.txt",
        tmp_path / "link",
        tmp_path / "fifo",
        Path("/dev/zero"),
        tmp_path,
        Path("secret.txt"),
    ]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("CUDADRV_DRIVER", "emulator")
    return command(capsys)


def lines_by(folder: Path, finding: Mapping[str, Any], target: Path) -> Iterator[list[str]]:
    """Command lines over files that name a target."""
    (folder / "k.ptx").write_text(PTX.replace("PATH", str(target)))
    (folder / "k.cu").write_text(f'#line 1 "{target}"\n{KERNEL}')
    named = re.sub(r'(\.file\s+1\s+)"[^"]+"', rf'\1"{target}"', finding["ptx"])
    changed = {**finding, "ptx": re.sub(r"\.loc\t1 \d+", ".loc\t1 1", named)}
    (folder / "name.json").write_text(json.dumps({**finding, "source_file": str(target)}))
    (folder / "ptx.json").write_text(json.dumps(changed))
    (folder / "both.json").write_text(json.dumps({**changed, "source_file": str(target)}))
    yield ["ptx", str(folder / "k.ptx"), "--source"]
    yield ["ptx", str(folder / "k.cu"), "--source", "--arch", "sm_80"]
    for name in ("name", "ptx", "both"):
        yield ["replay", str(folder / f"{name}.json"), "--thread", "0:1"]
    try:
        find_nvdisasm()
    except NvdisasmNotFoundError:
        return
    yield ["sass", str(folder / "k.cu"), "--arch", "sm_80"]
    yield ["sass", str(folder / "k.ptx"), "--arch", "sm_80"]


@pytest.mark.parametrize("turns", [(0,), pytest.param((1, 2, 3, 4, 5), marks=pytest.mark.slow)])
def test_no_command_opens_a_path_that_a_file_names(
    turns: tuple[int, ...],
    run: Command,
    tmp_path: Path,
    targets: list[Path],
    finding: Mapping[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    for target in (targets[turn] for turn in turns):
        for words in lines_by(tmp_path, finding, target):
            done = run(*words)
            named = target.name in done.stdout or words[1].endswith("name.json")
            if SECRET in done.stdout + done.stderr or done.returncode > 1 or not named:
                wrong.append((words, target, done))
    assert wrong == []


def verdicts_of(folder: Path, target: Path) -> Iterator[Verdict]:
    text = f'#line 1 "{target}"\n{KERNEL}'
    (folder / "k.cu").write_text(text)
    for source in (text, folder / "k.cu"):
        yield verify(case_of(source), OPTIONS, name="k")


@pytest.mark.slow
def test_verify_shows_no_line_of_a_path_that_a_source_names(
    tmp_path: Path, targets: list[Path]
) -> None:
    for target in targets:
        for verdict in verdicts_of(tmp_path, target):
            assert verdict.findings[0].lines[0].file is not None
            assert SECRET not in json.dumps(verdict.to_json())
            assert verdict.findings[0].lines[0].text == ""


@pytest.mark.slow
def test_the_page_of_a_verification_has_no_line_of_a_path_that_a_source_names(
    run: Command, tmp_path: Path, targets: list[Path]
) -> None:
    page = tmp_path / "page.html"
    cases = f"""
import numpy as np
from cudadrv.testing import strategies as st
from cudadrv.testing.verify import KernelCase
n = st.sizes(1, 8)
case = KernelCase({f'#line 1 "TARGET"{chr(10)}{KERNEL}'!r},
                  arguments={{"n": n, "x": st.arrays(np.int32, n)}},
                  launch=st.launch_configs(threads=n),
                  reference=lambda x: {{"x": np.ones_like(x)}})
"""
    for target in (targets[0], targets[2]):
        (tmp_path / "cases.py").write_text(cases.replace("TARGET", str(target)))
        run(
            "verify",
            str(tmp_path / "cases.py"),
            "--examples=3",
            "--no-explain",
            "--html",
            str(page),
            "--checks",
            "bounds",
        )
        assert target.name in page.read_text()
        assert SECRET not in page.read_text()
