"""Each test stands in the folder of its layer."""

from __future__ import annotations

from pathlib import Path

import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.errors import DriverSelectionError

TESTS = Path(__file__).parents[1]
LAYERS = {"pure", "emulator", "contract", "process", "campaigns", "clients"}


def test_each_test_stands_in_one_layer_and_pure_has_no_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = {path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    assert {file.parts[0] for file in files} == LAYERS
    with pytest.raises(DriverSelectionError, match="tests/pure loads no driver"):
        cudadrv.list_devices()
    with pytest.raises(DriverSelectionError, match="tests/pure loads no driver"):
        emulator.Emulator()
    monkeypatch.setenv("CUDADRV_DRIVER", "emulator")
    with pytest.raises(AssertionError, match="another folder"), emulator.session():
        pass
