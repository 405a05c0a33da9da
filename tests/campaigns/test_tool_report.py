"""Reading what compute-sanitizer prints."""

from __future__ import annotations

import pytest

from campaigns.race_truth.judging import programs
from campaigns.race_truth.program import Program
from campaigns.sanitized.one_program import ALL_RAN
from campaigns.sanitized.processes import Judged
from campaigns.sanitized.side_by_side import false_alarm, side, table
from campaigns.sanitized.tool_report import ToolReport, read

# As compute-sanitizer 2025.3 prints, on an H200.
MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at global_sums_by_clusters+0x220 in truth.cu:88
=========     by thread (61,0,0) in block (3,0,0)
=========     Access to 0x90200003f4 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x9020000000 of size 1,012 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========
LaunchFailedError: waiting for <Stream 0x1e4fd8c0 on device 0>: cuStreamSynchronize returned
========= ERROR SUMMARY: 1 error
"""
RACECHECK = f"""\
========= COMPUTE-SANITIZER
========= Warning: (Warp Level Programming) Potential WAR hazard detected at __shared__ 0x480
=========     Read Thread (33,0,0) at scan+0x120 in truth.cu:88
=========     Write Thread (32,0,0) at scan+0x140 in truth.cu:85
=========     Current Value : 0, Incoming Value : 144
=========
{ALL_RAN}
========= RACECHECK SUMMARY: 1 hazard displayed (17 errors, 992 warnings)
"""
SYNCCHECK = """\
========= COMPUTE-SANITIZER
========= Barrier error detected. Missing init.
=========     at asynchronous_copies_counted_by_an_mbarrier+0x200 in truth.cu:92
=========     by thread (32,0,0) in block (2,0,0)
=========     Barrier is located at shared address 0x500
=========
LaunchFailedError: waiting for <Stream 0x16497d90 on device 0>: cuStreamSynchronize returned
========= ERROR SUMMARY: 128 errors
========= ERROR SUMMARY: 127 errors were not printed. Use --print-limit option to adjust
"""
CLEAN = f"========= COMPUTE-SANITIZER\n{ALL_RAN}\n========= ERROR SUMMARY: 0 errors\n"
NO_RACE = f"========= COMPUTE-SANITIZER\n{ALL_RAN}\n" + (
    "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
)


@pytest.mark.parametrize(
    ("output", "findings", "first"),
    [
        (MEMCHECK, 1, "Invalid __global__ read of size 4 bytes"),
        (RACECHECK, 1009, RACECHECK.splitlines()[1].removeprefix("========= ")),
        (SYNCCHECK, 128, "Barrier error detected. Missing init."),
        (CLEAN, 0, ""),
        (NO_RACE, 0, ""),
    ],
    ids=["memcheck", "racecheck", "synccheck", "clean", "no race"],
)
def test_findings_are_counted_by_the_summary(output: str, findings: int, first: str) -> None:
    report = read(output, ended=True)
    assert (report.findings, report.first, report.trouble) == (findings, first, "")


def test_a_process_that_was_killed_is_reported_with_the_output_of_the_tool() -> None:
    killed = "\n".join(SYNCCHECK.splitlines()[:3])
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
def test_an_output_that_reports_nothing_is_no_clean_one(output: str, trouble: str) -> None:
    report = read(output, ended=True)
    assert (report.findings, report.trouble) == (0, trouble)


def test_the_table_has_which_tool_found_what_by_class_of_fault() -> None:
    faulty = next(each for each in programs() if each.fault == "barrier left out")
    right = next(each for each in programs() if each.is_right)
    found, clean = (read(text, ended=True) for text in (RACECHECK, NO_RACE))

    def judged(is_right: bool, own: dict[str, str], theirs: ToolReport) -> Judged:
        return Judged(right if is_right else faulty, own, {"racecheck": theirs})

    every = [
        judged(False, {"race": "…"}, found),
        judged(False, {"race": "…"}, clean),
        judged(False, {}, found),
        judged(False, {}, clean),
        judged(True, {}, clean),
        judged(True, {}, found),
        judged(True, {"race, may be meant so": "…"}, clean),
    ]
    sides = ["both", "only ours", "only theirs", "neither", "neither", "only theirs", "neither"]
    assert [side(each) for each in every] == sides
    rows = {line[:32].strip(): line[32:].split() for line in table(every).splitlines()[1:]}
    assert rows["barrier left out"] == ["4", "1", "1", "1", "1", "0", "2", "0", "0"]
    assert rows["none: false alarms"] == ["3", "0", "0", "1", "2", "0", "1", "0", "0"]
    assert rows["all that are faulty"] == rows["barrier left out"]


def test_a_right_program_is_no_find_where_the_reason_of_its_report_is_known() -> None:
    right = {each.pattern: each for each in programs() if each.is_right}

    def why(program: Program, tool: str) -> str:
        return false_alarm(Judged(program, {}, {tool: read(RACECHECK, ended=True)}))

    assert "flag" in why(right["flag in another block"], "racecheck")
    assert why(right["flag in another block"], "synccheck") == ""
    assert why(right["flag"], "racecheck") == ""
    faulty = next(
        each for each in programs() if each.pattern == "flag in another block" and not each.is_right
    )
    assert why(faulty, "racecheck") == ""
