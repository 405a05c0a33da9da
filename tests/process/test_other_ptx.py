"""Another package named ptx: told at the import of cudadrv, with what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cudadrv
from cudadrv.ptx_package import OWN_FILES, reject_other_ptx

ROOT = Path(cudadrv.__file__).parents[1]


def output_of(code: str, *paths: Path) -> str:
    """What a process prints that finds packages in these folders first, and none where it is."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, env=environment
    )
    return done.stdout + done.stderr


def error_of(code: str, *paths: Path) -> str:
    caught = f"try:\n    {code}\nexcept ImportError as error:\n    print(error)"
    return output_of(caught, *paths)


def write_other(folder: Path) -> Path:
    """Another package named ptx, in a folder of its own."""
    (folder / "ptx").mkdir(parents=True)
    (folder / "ptx" / "__init__.py").write_text("def assemble(): ...\n")
    return folder


@pytest.mark.slow
def test_another_package_named_ptx_is_reported_at_the_import_with_what_to_do(
    tmp_path: Path,
) -> None:
    other = write_other(tmp_path)
    (other / "ptx_assembler-1.0.dist-info").mkdir()
    (other / "ptx_assembler-1.0.dist-info" / "METADATA").write_text("Name: ptx-assembler\n")
    (other / "ptx_assembler-1.0.dist-info" / "top_level.txt").write_text("ptx\n")
    assert error_of("import cudadrv", other, ROOT) == (
        "cudadrv needs its own package ptx, but Python finds another one of that name, "
        f"{other}/ptx/__init__.py\n  uninstall the other distribution, then install "
        "cudadrv again: pip uninstall ptx-assembler && "
        "pip install --force-reinstall --no-deps cudadrv\n"
    )


@pytest.mark.slow
def test_the_error_about_a_users_file_named_ptx_recommends_a_new_name(tmp_path: Path) -> None:
    (tmp_path / "ptx.py").write_text("")
    told = error_of("import cudadrv", tmp_path, ROOT)
    assert f"another one of that name, {tmp_path}/ptx.py\n  rename your file" in told


@pytest.mark.slow
def test_another_ptx_that_was_imported_before_is_reported(tmp_path: Path) -> None:
    code = f"sys.path.insert(0, {str(write_other(tmp_path))!r}); import ptx; sys.path.pop(0)"
    told = error_of(f"import sys; {code}; import cudadrv", ROOT)
    assert told.startswith("cudadrv needs its own package ptx, but Python finds another one")


@pytest.mark.slow
def test_a_ptx_whose_files_were_overwritten_is_reported_at_the_import(tmp_path: Path) -> None:
    (linked_copy(tmp_path) / "ptx" / "__init__.py").unlink()
    (tmp_path / "ptx" / "__init__.py").write_text("def assemble(): ...\n")
    told = error_of("import cudadrv", tmp_path)
    assert told.startswith("cudadrv needs its own package ptx, but Python finds another one")


def linked_copy(folder: Path) -> Path:
    """A folder with both packages, whose files are links to the real ones."""
    for name in ("cudadrv", "ptx"):
        (folder / name).mkdir()
        for path in (ROOT / name).iterdir():
            (folder / name / path.name).symlink_to(path)
    return folder


def test_modules_of_another_distribution_in_the_same_folder_are_warned_of(tmp_path: Path) -> None:
    copy = linked_copy(tmp_path)
    (copy / "ptx" / "assembly.py").write_text("")
    (copy / "ptx" / "notes.txt").write_text("")
    told = output_of("import cudadrv; print('imported')", copy)
    assert "RuntimeWarning: another distribution has installed assembly.py into" in told
    assert f"{copy}/ptx, cudadrv's own package" in told
    assert "install them in separate environments" in told
    assert told.startswith("imported\n")


@pytest.mark.slow
def test_the_right_package_alone_is_not_warned_of(tmp_path: Path) -> None:
    code = "import cudadrv, ptx; print(hasattr(ptx, 'no_such_name'))"
    assert output_of(code, linked_copy(tmp_path)) == "False\n"


def test_every_file_of_ptx_is_known_to_the_check() -> None:
    files = {path.name for path in (ROOT / "ptx").iterdir()} - {"__pycache__"}
    assert files == OWN_FILES  # a new file of ptx goes into that list


@pytest.mark.slow
@pytest.mark.parametrize("code", ["import ptx; ptx.assemble", "from ptx import assemble"])
def test_a_name_of_another_ptx_that_cudadrvs_hides_is_reported_with_what_to_do(
    tmp_path: Path, code: str
) -> None:
    other = write_other(tmp_path)
    (other / "ptx_assembler-1.0.dist-info").mkdir()
    (other / "ptx_assembler-1.0.dist-info" / "METADATA").write_text("Name: ptx-assembler\n")
    (other / "ptx_assembler-1.0.dist-info" / "top_level.txt").write_text("ptx\n")
    told = output_of(code, ROOT, other)
    assert "RuntimeWarning: ptx is cudadrv's package here, and has no assemble" in told
    assert "ptx-assembler has a package ptx, too" in told
    assert "install them in separate environments" in told
    assert told.splitlines()[-1].startswith(("AttributeError: module 'ptx'", "ImportError"))


@pytest.mark.slow
def test_a_ptx_that_is_not_there_is_reported(tmp_path: Path) -> None:
    (tmp_path / "cudadrv").symlink_to(ROOT / "cudadrv")
    (tmp_path / "ptx.py").write_text("raise ModuleNotFoundError('No module named ptx')\n")
    told = error_of("import cudadrv", tmp_path)
    assert told.startswith("cudadrv needs its own package ptx, but it cannot be imported\n  ")


def test_a_folder_without_python_files_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ptx").mkdir()
    monkeypatch.delitem(sys.modules, "ptx")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(ImportError, match=f"another one of that name, {tmp_path}/ptx"):
        reject_other_ptx()


def test_the_import_brings_no_file_of_the_right_ptx() -> None:
    code = "import sys, cudadrv; print(*sorted(m for m in sys.modules if m.startswith('ptx')))"
    assert output_of(code, ROOT) == "ptx\n"
