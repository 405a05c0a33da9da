"""Each test has a cache folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("CUDADRV_CACHE_DIR", str(folder))
    monkeypatch.delenv("CUDADRV_CACHE_MAX_MB", raising=False)
    return folder
