"""The list of what the emulator's calls reject, with where a GPU was seen to reject the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudadrv.driver._api import CUresult
from tools.list_refusals import ROOT, measured, refusals


@pytest.mark.slow
def test_each_refusal_has_a_code_a_text_and_a_function() -> None:
    names = {code.name for code in CUresult}
    wrong = [each for each in refusals() if each.code != "..." and each.code not in names]
    assert wrong == []
    assert len(refusals()) > 400
    assert [each for each in refusals() if not each.function.partition(" ")[2]] == []


def test_each_measured_refusal_has_a_test_that_runs_on_any_driver() -> None:
    tests = set(measured().values())
    assert tests
    for test in tests:
        path, _, name = test.partition("::")
        text = (ROOT / Path(path)).read_text()
        function = name.rpartition("::")[2]
        assert path.startswith("tests/contract/") or "api: OpenApi" in text, test
        assert f"def {function}(" in text, test
