"""Build the package of conda from recipe/recipe.yaml, without a channel.

    python -m tools.conda_package FOLDER

writes `noarch/cudadrv-VERSION-….conda` below the folder, by rattler-build (py-rattler-build on
PyPI). In place of the released archive it takes the tracked files of this repository, and in place
of the host's packages of conda the installed pip and hatchling. It fails if the package lacks a
file of the wheel. Tests of the recipe need channels, and do not run.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rattler_build import Package, Stage0Recipe

ROOT = Path(__file__).parents[1]
PACKAGES = ("cudadrv", "ptx")


def main(output: Path) -> int:
    """Build the package, and return the exit status."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive = ["git", "archive", f"--output={folder / 'source.tar'}", "HEAD"]
        subprocess.run(archive, cwd=ROOT, check=True)
        recipe = folder / "recipe" / "recipe.yaml"
        recipe.parent.mkdir()
        text = (ROOT / "recipe" / "recipe.yaml").read_text()
        recipe.write_text(_without_channels(text, folder / "source.tar"))
        channel = _empty_channel(folder / "channel")
        (built,) = Stage0Recipe.from_file(recipe).run_build(
            output_dir=output, channels=[channel.as_uri()]
        )
    (path,) = built.packages
    there = {each.removeprefix("site-packages/") for each in Package.from_file(path).files}
    missing = sorted(set(_files()) - there)
    print(path, *missing, sep="\n  not in it: ")
    return int(bool(missing))


def _without_channels(recipe: str, archive: Path) -> str:
    """Return the recipe with another source, and without packages of the host."""
    install = f"{sys.executable} -m pip install . --no-deps --no-build-isolation --ignore-installed"
    for pattern, text in (
        (r"  url: .*\n  sha256: .*\n", f"  path: {archive}\n"),
        (r"  host:\n(?:    - .*\n)+", ""),
        (r"script: .* -m pip install .*", f"script: {install} --prefix=$PREFIX"),
    ):
        recipe, count = re.subn(pattern, text, recipe)
        assert count == 1, pattern
    return recipe


def _empty_channel(folder: Path) -> Path:
    for platform in ("noarch", "linux-64"):
        path = folder / platform / "repodata.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"info": {"subdir": platform}, "packages": {}}))
    return folder


def _files() -> list[str]:
    """Return the tracked files of the packages."""
    listed = ["git", "ls-files", *PACKAGES]
    done = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
