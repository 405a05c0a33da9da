"""What `python -m cudadrv cluster` tells of workers."""

from __future__ import annotations

import json

import pytest

from cudadrv.__main__ import main


@pytest.mark.slow
def test_each_worker_is_reported_with_its_self_test(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "--devices", "1", "--json"]) == 0
    (worker,) = json.loads(capsys.readouterr().out)
    assert worker["ok"]
    assert worker["selftest"]["ok"]
    names = [step["name"] for step in worker["selftest"]["steps"]]
    assert names[:2] == ["compile", "device 0: load"]
    assert worker["score"] > 0
    assert worker["device"]["free_mem_bytes"] > 0


@pytest.mark.slow
def test_workers_are_a_table_and_without_a_self_test_where_none_is_wanted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["cluster", "--devices", "1", "--no-selftest"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("workers\n")
    assert out.endswith("1 of 1 workers passed\n")


def test_a_scheduler_that_is_not_there_is_reported_in_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("distributed", reason="needs distributed")
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "0.2s"}):
        assert main(["cluster", "--scheduler", "tcp://127.0.0.1:9"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("cudadrv cluster: ")
    assert "127.0.0.1:9" in told
