from __future__ import annotations

import json
import os

import numpy as np
import pytest

from cudadrv import Context, Module
from cudadrv.__main__ import main
from cudadrv.cli import selftest
from cudadrv.cli.selftest import Check

STEPS_A_DEVICE = ["load", "copies both ways", *selftest.CHECKS]


@pytest.mark.slow
def test_every_step_passes_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert report["driver"] == os.environ["CUDADRV_DRIVER"].partition(":")[0]
    expected = ["find devices", "compile"]
    for device in report["devices"]:
        expected += [f"device {device['ordinal']}: {name}" for name in STEPS_A_DEVICE]
    assert [step["name"] for step in report["steps"]] == [
        *expected,
        "second request from the module cache",
    ]
    assert all(step["ok"] and step["ms"] >= 0 and step["detail"] for step in report["steps"])
    assert set(report["devices"][0]) >= {"ordinal", "name", "compute_capability", "total_memory"}


@pytest.mark.slow
def test_the_table_names_the_device_and_reports_passed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", "--devices", "1"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("driver: ")
    assert "device 0: matmul" in text
    assert "device 1" not in text
    assert text.rstrip().endswith("passed")


def wrong(context: Context, module: Module) -> Check:
    return Check(np.array([1.0, 2.0]), np.array([1.0, 2.5]), 0.1)


def broken(context: Context, module: Module) -> Check:
    raise RuntimeError("the kernel fell over")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "detail"),
    [
        (wrong, "CheckFailedError: differs from NumPy by 0.2 relative"),
        (broken, "RuntimeError: the kernel fell over"),
    ],
)
def test_a_failing_step_is_reported_and_the_status_is_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], check: object, detail: str
) -> None:
    monkeypatch.setitem(selftest.CHECKS, "matmul", check)
    assert main(["selftest", "--devices", "1"]) == 1
    text = capsys.readouterr().out
    assert f"failed: device 0: matmul: {detail}" in text
    assert text.rstrip().endswith("FAILED")
    report = selftest.selftest(1)
    assert not report.ok
    assert [step.name for step in report.steps if not step.ok] == ["device 0: matmul"]


@pytest.mark.parametrize("count", ["0", "-1", "two"])
def test_a_bad_count_of_devices_is_rejected(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["selftest", "--devices", count])
    assert caught.value.code == 2
    assert "is not an integer of 1 or more" in capsys.readouterr().err


def test_a_check_measures_relative_to_the_largest_value() -> None:
    check = Check(np.array([100.0, 0.0]), np.array([100.0, 1.0]), 0.02)
    assert check.error == 0.01
    assert check.ok
    assert not Check(check.result, check.expected).ok
