from __future__ import annotations

import subprocess
import sys

import pytest

import cudadrv
import ptx


@pytest.mark.parametrize("package", [cudadrv, ptx], ids=["cudadrv", "ptx"])
def test_every_public_name_is_there_and_listed(package: object) -> None:
    names = package.__all__  # type: ignore[attr-defined]  # there at run time alone
    assert len(names) == len(set(names)) > 30
    for name in names:
        assert getattr(package, name) is not None
        assert name in dir(package)
    with pytest.raises(AttributeError, match="has no attribute 'absent'"):
        _ = package.absent  # type: ignore[attr-defined]  # what is tested


@pytest.mark.parametrize("package", ["cudadrv", "cudadrv.errors", "ptx"])
def test_a_star_import_brings_the_public_names_and_no_others(package: str) -> None:
    names: dict[str, object] = {}
    exec(f"from {package} import *", names)
    assert names.keys() - {"__builtins__"} == set(dir(sys.modules[package]))


def test_importing_loads_only_devices_and_contexts() -> None:
    code = (
        "import sys, cudadrv\n"
        "print(*[m for m in sys.modules if m.startswith(('cudadrv.', 'rich', 'scipy', 'logging'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "cudadrv.driver.context" in loaded
    for name in (
        "launch",
        "memory",
        "stream",
        "runtime",
        "pool",
        "client",
        "emulator",
        "cli",
        "blas",
        "texture",
    ):
        assert not [module for module in loaded if module.startswith(f"cudadrv.{name}")], name
    assert "rich" not in loaded
    assert "scipy" not in loaded
