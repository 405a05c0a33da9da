"""Reading what compute-sanitizer prints."""

from __future__ import annotations

import pytest

from tests.emulator.sanitized.one_program import ALL_RAN
from tests.emulator.sanitized.processes import Judged
from tests.emulator.sanitized.side_by_side import side, table
from tests.emulator.sanitized.tool_report import ToolReport, read
from tests.ptx.emulate.check.truth.judging import programs

MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at stencil_int+0x130 in truth.cu:52
=========     by thread (31,0,0) in block (7,0,0)
=========     Access at 0x7f2a4a0003f4 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f2a4a000000 of size 1012 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========
LaunchFailedError: cuStreamSynchronize: unspecified launch failure
========= Error: process didn't terminate successfully
========= Target application returned an error
========= ERROR SUMMARY: 33 errors
========= ERROR SUMMARY: 32 errors were not printed. Use --print-limit option to adjust the number of printed errors
"""  # noqa: E501 - as it is printed
RACECHECK = f"""\
========= COMPUTE-SANITIZER
{ALL_RAN}
========= Warning: Race reported between Read access at scan+0x170 in truth.cu:51
=========     and Write access at scan+0x1c0 in truth.cu:53 [2032 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
"""
SYNCCHECK = f"""\
========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at scan+0x170 in truth.cu:511
{ALL_RAN}
========= ERROR SUMMARY: 1 error
"""
CLEAN = f"========= COMPUTE-SANITIZER\n{ALL_RAN}\n========= ERROR SUMMARY: 0 errors\n"
NO_RACE = f"========= COMPUTE-SANITIZER\n{ALL_RAN}\n" + (
    "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
)


@pytest.mark.parametrize(
    ("output", "findings", "first"),
    [
        (MEMCHECK, 33, "Invalid __global__ read of size 4 bytes"),
        (RACECHECK, 1, "Warning: Race reported between Read access at scan+0x170 in truth.cu:51"),
        (SYNCCHECK, 1, "Barrier error detected. Divergent thread(s) in block."),
        (CLEAN, 0, ""),
        (NO_RACE, 0, ""),
    ],
    ids=["memcheck", "racecheck", "synccheck", "clean", "no race"],
)  # fmt: skip
def test_findings_are_counted_by_the_summary(output: str, findings: int, first: str) -> None:
    report = read(output, ended=True)
    assert (report.findings, report.first, report.trouble) == (findings, first, "")


def test_a_process_that_was_killed_is_told_by_what_the_tool_had_said() -> None:
    killed = "\n".join(line for line in SYNCCHECK.splitlines()[:3])
    report = read(killed, ended=False)
    assert (report.findings, report.ended, report.trouble) == (1, False, "")
    assert read(CLEAN.splitlines()[0], ended=False).trouble == ""


@pytest.mark.parametrize(
    ("output", "trouble"),
    [
        ("bash: compute-sanitizer: command not found\n", "the tool printed nothing"),
        (f"========= COMPUTE-SANITIZER\n{ALL_RAN}\n", "the tool printed no summary"),
        (
            "========= COMPUTE-SANITIZER\nTraceback (most recent call last):\n"
            "========= Target application returned an error\n========= ERROR SUMMARY: 1 error\n",
            "the launches did not end",
        ),
    ],
    ids=["no tool", "no summary", "no launch"],
)
def test_an_output_that_tells_nothing_is_no_clean_one(output: str, trouble: str) -> None:
    report = read(output, ended=True)
    assert (report.findings, report.trouble) == (0, trouble)


def test_the_table_has_who_found_what_by_class_of_fault() -> None:
    faulty = next(each for each in programs() if each.fault == "barrier left out")
    right = next(each for each in programs() if each.is_right)
    found, clean = (read(text, ended=True) for text in (RACECHECK, NO_RACE))

    def judged(is_right: bool, own: dict[str, str], theirs: ToolReport) -> Judged:
        return Judged(right if is_right else faulty, own, {"racecheck": theirs})

    every = [
        judged(False, {"race": "…"}, found), judged(False, {"race": "…"}, clean),
        judged(False, {}, found), judged(False, {}, clean), judged(True, {}, clean),
        judged(True, {}, found), judged(True, {"race, may be meant so": "…"}, clean),
    ]  # fmt: skip
    sides = ["both", "only ours", "only theirs", "neither", "neither", "only theirs", "neither"]
    assert [side(each) for each in every] == sides
    rows = {line[:32].strip(): line[32:].split() for line in table(every).splitlines()[1:]}
    assert rows["barrier left out"] == ["4", "1", "1", "1", "1", "0", "2", "0", "0"]
    assert rows["none: false alarms"] == ["3", "0", "0", "1", "2", "0", "1", "0", "0"]
    assert rows["all that are faulty"] == rows["barrier left out"]
