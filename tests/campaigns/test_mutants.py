"""Mutants: chosen by the seed, of code alone, and tested in a copy."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="needs cosmic-ray, of the extra dev")

from campaigns.mutants.mutant import mutants_of
from campaigns.mutants.results import Results
from campaigns.mutants.subjects import SUBJECTS
from campaigns.mutants.testbed import Outcome, Testbed

ROOT = Path(__file__).parents[2]
CODE = '''"""1 < 2"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Box:
    """True"""

    width: int | None = None

    def grow(self, by: "int | str") -> "int | None":
        self.checks.append(by)
        return self.width
'''


def test_only_code_changes(tmp_path: Path) -> None:
    (tmp_path / "box.py").write_text(CODE)
    assert [(each.operator, each.change) for each in mutants_of(tmp_path, ["box.py"], 1)] == [
        ("RemoveStatement", "-        self.checks.append(by)\n+        pass")
    ]


def test_a_seed_chooses_the_same_mutants_and_another_seed_others() -> None:
    def keys(seed: int) -> list[str]:
        return [each.key for each in islice(mutants_of(ROOT, ["cudadrv/memory/order.py"], seed), 6)]

    assert keys(1) == keys(1)
    assert len(set(keys(1))) == 6
    assert keys(1) != keys(2)


def test_every_file_and_test_of_a_subject_exists() -> None:
    paths = [path for each in SUBJECTS.values() for path in (*each.files, *each.tests)]
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_copy_has_each_package_that_tests_import() -> None:
    with Testbed(ROOT) as testbed:
        copied = {path.name for path in testbed.root.iterdir()}
    text = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    imported = set(re.findall(r"^\s*(?:from|import) (\w+)", text, re.MULTILINE))
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert len(imported & packages) > 4
    assert imported & packages - copied == set()


@pytest.mark.slow
def test_a_mutant_is_tested_in_a_copy_and_its_outcome_is_found_again(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    with Testbed(ROOT) as testbed:
        assert testbed.prepare("memory_order") is None
        path = testbed.root / "cudadrv/memory/order.py"
        assert path != ROOT / "cudadrv/memory/order.py"
        before = path.read_text()
        mutant = next(
            each
            for each in mutants_of(testbed.root, ["cudadrv/memory/order.py"], 1)
            if "follow" in each.change
        )
        assert testbed.test("memory_order", mutant) is Outcome.KILLED
        assert path.read_text() == before
    results.add("memory_order", mutant, Outcome.KILLED)
    assert Results(tmp_path / "results.jsonl").known(mutant) is Outcome.KILLED
    assert results.totals() == {"mutants killed": 1}
