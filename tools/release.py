"""The release checklist: builds, checks, installs and tries what is to be published.

    python -m tools.release OUT [--oldest]

It leaves the distributions of cudadrv and of the stubs in OUT, with a bill of materials of each
wheel, or stops at the first step that fails. `build` and `twine` are in the extra `dev`. By hand
remain: the version in `cudadrv/version.py`, its heading and date in CHANGELOG.md, `tox`, the
upload, and then the version and the hash in `recipe/recipe.yaml`.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from . import bill_of_materials

ROOT = Path(__file__).parent.parent
SELF_TEST = ("-m", "cudadrv", "selftest")


def main() -> int:
    """Answer the exit status."""
    parser = argparse.ArgumentParser(prog="tools.release", description=__doc__)
    parser.add_argument("out", type=Path, help="an empty or new folder")
    parser.add_argument("--oldest", action="store_true", help="run the oldest dependencies, too")
    arguments = parser.parse_args()
    out: Path = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        parser.error(f"{out} is not empty")
    check_changelog()
    with tempfile.TemporaryDirectory() as folder:
        projects = (ROOT, ROOT / "stubs", older_stubs(Path(folder)))
        build(out, projects)
        check_reproducible(out, projects)
    run(sys.executable, "-m", "twine", "check", "--strict", *map(str, sorted(out.iterdir())))
    for wheel in sorted(out.glob("*.whl")):
        bill_of_materials.write(wheel)
    try_installed(out)
    if arguments.oldest:
        run(sys.executable, "-m", "tox", "-e", "oldest")
    print("\nready:", *sorted(path.name for path in out.iterdir()), sep="\n  ")
    return 0


def check_changelog() -> None:
    """The version has a heading, so that nothing is published as unreleased."""
    found = re.search(r'VERSION = "(.+)"', (ROOT / "cudadrv/version.py").read_text())
    if found is None:
        raise SystemExit("cudadrv/version.py has no VERSION")
    if f"\n## {found[1]}" not in (ROOT / "CHANGELOG.md").read_text():
        raise SystemExit(f"CHANGELOG.md has no heading for version {found[1]}")


def older_stubs(folder: Path) -> Path:
    """The project of the stubs of CUDA 12, made of the cuda-bindings that its version names."""
    project = shutil.copytree(ROOT / "stubs/12.9", folder / "stubs")
    found = re.search(r'version = "([\d.]+)\.\d+"', (project / "pyproject.toml").read_text())
    if found is None:
        raise SystemExit("stubs/12.9/pyproject.toml has no version")
    venv.create(folder / "venv", with_pip=True)
    python = str(folder / "venv/bin/python")
    run(python, "-m", "pip", "install", "--quiet", f"cuda-bindings=={found[1]}")
    run(python, "-m", "tools.generate_stubs", str(project))
    return project


def build(out: Path, projects: tuple[Path, ...]) -> None:
    """Source distributions and wheels of all three projects."""
    for project in projects:
        run(sys.executable, "-m", "build", "--outdir", str(out), str(project))


def check_reproducible(out: Path, projects: tuple[Path, ...]) -> None:
    """Built again, each file has the same bytes."""
    with tempfile.TemporaryDirectory() as again:
        build(Path(again), projects)
        names = [path.name for path in out.iterdir()]
        _, different, missing = filecmp.cmpfiles(out, again, names, shallow=False)
        if different or missing:
            raise SystemExit(f"built twice, these differ: {', '.join(different + missing)}")
        print(f"built twice, {len(names)} files have the same bytes")


def try_installed(out: Path) -> None:
    """The wheel works in an environment of nothing else, in a folder of nothing else."""
    (wheel,) = out.glob("cudadrv-*.whl")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder, "venv"), with_pip=True)
        python = str(Path(folder, "venv", "bin", "python"))
        run(python, "-m", "pip", "install", "--quiet", f"{wheel}[cu13]")
        run(python, "-c", "import cudadrv, ptx; print(cudadrv.__version__)", folder=folder)
        # On the emulator, which every machine has.
        run(python, *SELF_TEST, folder=folder, driver="emulator")


def run(*command: str, folder: str | Path = ROOT, driver: str = "") -> None:
    """Run a step; one that fails ends the release."""
    print("$", *command, flush=True)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if driver:
        environment["CUDADRV_DRIVER"] = driver
    done = subprocess.run(command, cwd=folder, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"failed with status {done.returncode}: {' '.join(command)}")


if __name__ == "__main__":
    raise SystemExit(main())
