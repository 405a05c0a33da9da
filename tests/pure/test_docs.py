"""What the documents name is there, and what they list is complete.

A name in backticks is a path of the repository, `path::name` for what a file defines, or neither.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from ptx.isa.opcodes.opcode_table import ROWS
from tests.documents.blocks import blocks_of
from tests.rooms import drawings, import_graph
from tools import repository
from tools.draw_pictures import FOLDER, PICTURES

ROOT = Path(__file__).parents[2]
DOCUMENTS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
TEXTS = {".py", ".md", ".toml", ".html", ".jinja"}
INVARIANTS = ROOT / "docs" / "contributing" / "invariants.md"
FOLDERS = (
    "cudadrv", "ptx", "tests", "campaigns", "docs", "stubs", "benchmarks", "examples", "tools",
)  # fmt: skip
LOCKS = (
    "Lock",
    "RLock",
    "allocate_lock",
    "Condition",
    "Semaphore",
    "BoundedSemaphore",
    "process_lock",
)
_QUOTED = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(rf"(?:(?:{'|'.join(FOLDERS)})/[\w./*-]*|[\w.-]+\.(?:md|toml|ini|yaml))(?:::.+)?")
_LOCK_ROW = re.compile(r"^\| `([^`]+::[^`]+)` \|", re.MULTILINE)


def paths_named(text: str) -> list[str]:
    """The paths in backticks, with the name behind `::` where there is one."""
    return [name for name in _QUOTED.findall(text) if _PATH.fullmatch(name)]


def names_in(body: list[ast.stmt]) -> set[str]:
    """What statements define: functions, classes with what is in them, and variables."""
    found: set[str] = set()
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name):
                found.add(name)
                found |= {f"{name}.{each}" for each in names_in(node.body)}
                found |= {f"{name}.{each}" for each in attributes_set_in(node)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.Assign(targets=targets):
                found |= {each.id for each in targets if isinstance(each, ast.Name)}
            case _:
                pass
    return found


def attributes_set_in(node: ast.AST) -> set[str]:
    """The attributes that are assigned, of whatever object."""
    return {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
    }


@cache  # by path: the files do not change
def defined_in(path: Path) -> frozenset[str]:
    """What a file of Python defines, with its generated names left out."""
    return frozenset(names_in(ast.parse(path.read_text()).body))


def locks_in(path: Path) -> set[str]:
    """The names under which a file keeps its locks, such as `Driver.lock`."""
    found: set[str] = set()
    text = path.read_text()
    if not any(f"{name}(" in text for name in LOCKS):
        return found  # most files: parsing them all takes seconds

    def look(node: ast.AST, owner: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call) and is_lock(child):
                assert isinstance(node, ast.Assign | ast.AnnAssign), (
                    f"{path.name}:{child.lineno}: a lock without a name"
                )
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found.update(owner + ast.unparse(target).rpartition(".")[2] for target in targets)
            look(child, f"{child.name}." if isinstance(child, ast.ClassDef) else owner)

    look(ast.parse(text), "")
    return found


def is_lock(call: ast.Call) -> bool:
    """Whether a call makes a lock."""
    return ast.unparse(call.func).rpartition(".")[2] in LOCKS


def test_every_path_that_a_document_names_exists() -> None:
    missing = [
        (document, name)
        for document in DOCUMENTS
        for name in set(paths_named(document.read_text()))
        - {each.file for each in blocks_of(document)}
        if not any(ROOT.glob(name.partition("::")[0].rstrip("/")))
    ]
    assert missing == []


def test_every_test_and_function_that_a_document_names_exists() -> None:
    missing = []
    for document in DOCUMENTS:
        for named in paths_named(document.read_text()):
            path, _, name = named.partition("::")
            if name and name.removesuffix("()") not in defined_in(ROOT / path):
                missing.append((document, named))
    assert missing == []


def test_every_link_of_a_document_leads_somewhere() -> None:
    missing = []
    for document in DOCUMENTS:
        text = _QUOTED.sub("", document.read_text())  # an index and a call look like a link
        links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
        there = [link for link in links if "://" in link or (document.parent / link).exists()]
        missing += [(document, link) for link in links if link not in there]
    assert missing == []


@pytest.mark.slow
def test_the_pictures_of_the_rooms_are_up_to_date() -> None:
    for path, drawn in drawings(import_graph()).items():
        assert path.read_text() == drawn, "python -m tests.rooms --write"


def test_the_pictures_that_explain_are_those_of_their_script() -> None:
    for name, draw in PICTURES.items():
        assert (FOLDER / name).read_text() == draw().svg(), "python -m tools.draw_pictures"


def test_every_picture_is_shown_and_needs_no_network() -> None:
    text = "".join(document.read_text() for document in DOCUMENTS)
    shown = set(re.findall(r"!\[[^\]]+\]\((?:docs/|\.\./)*images/([^)]+)\)", text))
    images = ROOT / "docs" / "images"
    files = {path.relative_to(images).as_posix() for path in images.rglob("*.*")}
    assert shown == files
    for path in images.rglob("*.svg"):
        assert "http" not in path.read_text().replace("http://www.w3.org/2000/svg", "")
    assert "mermaid" not in (ROOT / "docs" / "conf.py").read_text()


def test_every_lock_is_in_the_table_and_every_row_is_a_lock() -> None:
    there = {
        f"{path.relative_to(ROOT).as_posix()}::{name}"
        for package in ("cudadrv", "ptx")
        for path in sorted((ROOT / package).rglob("*.py"))
        for name in locks_in(path)
    }
    listed = _LOCK_ROW.findall(INVARIANTS.read_text())
    assert len(listed) == len(set(listed))
    assert set(listed) - there == set(), "these are no locks any more"
    assert there - set(listed) == set(), "say in the table what these guard"


def test_a_name_that_is_not_there_is_found(tmp_path: Path) -> None:
    text = (
        "`tests/pure/test_docs.py::test_nothing`, `python -m x`, `Handle`, "
        "`cudadrv/none.py`, `a.toml`"
    )
    assert paths_named(text) == [
        "tests/pure/test_docs.py::test_nothing",
        "cudadrv/none.py",
        "a.toml",
    ]
    assert "test_nothing" not in defined_in(ROOT / "tests" / "pure" / "test_docs.py")
    file = tmp_path / "locks.py"
    file.write_text("class A:\n  def f(self):\n    self.b = threading.RLock()\nc: Final = Lock()\n")
    assert locks_in(file) == {"A.b", "c"}
    assert defined_in(file) >= {"A", "A.f", "A.b", "c"}


def test_the_readme_on_a_package_index_links_to_files_of_the_repository() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    text = (ROOT / "README.md").read_text()
    for rule in project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    source = project["project"]["urls"]["Source"]
    below = re.compile(
        rf"(?:{source}/blob|https://raw.githubusercontent.com{source[18:]})/HEAD/(.*)"
    )
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    ours = [match[1] for link in links if (match := below.fullmatch(link))]
    assert len(ours) > 10
    assert [link for link in ours if not (ROOT / link.partition("#")[0]).exists()] == []
    assert all(link.startswith(("https://", "#")) for link in links)


def test_the_address_of_the_repository_is_changed_in_one_place(tmp_path: Path) -> None:
    for path in repository.files():
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text())
    old = repository.address()
    changed = repository.rename("someone/another.name", tmp_path)
    assert {path.name for path in changed} >= {"pyproject.toml", "emulate-other-libraries.md"}
    assert repository.address(tmp_path) == "someone/another.name"
    assert [path for path in repository.files(tmp_path) if old in path.read_text()] == []
    with pytest.raises(ValueError, match="give OWNER/NAME"):
        repository.rename("https://github.com/someone/name", tmp_path)


def test_no_other_file_names_the_repository() -> None:
    known = set(repository.files())
    folders = (ROOT / each for each in ("benchmarks", "cudadrv", "examples", "ptx", "stubs"))
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in TEXTS]
    address = f"github.com/{repository.address()}"
    assert [path for path in files if path not in known and address in path.read_text()] == []


def test_each_python_of_the_classifiers_is_tested_and_has_a_row_among_the_platforms() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = re.compile(r"\b3\.\d+\b")
    declared = [found for each in project["classifiers"] for found in version.findall(each)]
    assert declared[0] == project["requires-python"].removeprefix(">=")
    tox = (ROOT / "tox.ini").read_text()
    labels = dict(re.findall(r"^    (ci|full) = (.*)$", tox, re.MULTILINE))
    tested, in_ci = (
        [f"3.{minor}" for minor in re.findall(r"(?<!-)\bpy3(\d+t?)\b", labels[label])]
        for label in ("full", "ci")
    )
    platforms = (ROOT / "docs" / "platforms.md").read_text()
    rows = re.findall(r"^\| CPython (.*?) \| tested \|", platforms, re.MULTILINE)
    assert [python for python in tested if not python.endswith("t")] == declared
    ordinary = [row for row in rows if "free-threaded" not in row]
    assert version.findall(" ".join(ordinary)) == declared
    loop = re.search(r"for version in (.*); do", (ROOT / ".ci" / "run").read_text())
    assert loop is not None
    assert set(in_ci) <= set(loop[1].split()) <= set(tested)
    free_threaded = [python for python in tested if python.endswith("t")]
    assert [f"{version.findall(row)[0]}t" for row in rows if row not in ordinary] == free_threaded
    assert any("Free Threading" in each for each in project["classifiers"])


def test_one_environment_tests_each_release_of_the_bindings() -> None:
    tox = (ROOT / "tox.ini").read_text()
    header = re.search(r"^\[testenv:bindings-\{(.*)\}\]$", tox, re.MULTILINE)
    assert header is not None
    releases = header[1].split(",")
    full = re.search(r"^    full = .*bindings-\{(.*?)\}", tox, re.MULTILINE)
    assert full is not None
    assert full[1].split(",") == releases
    assert re.findall(r"^    ([\d.]+): cuda-bindings==\1$", tox, re.MULTILINE) == releases
    minors = re.search(r"^\[testenv:stubs-\{(.*)\}\]$", tox, re.MULTILINE)
    assert minors is not None
    assert {release.rpartition(".")[0] for release in releases} == set(minors[1].split(","))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (bindings,) = (each for each in project["dependencies"] if each.startswith("cuda-python"))
    assert not set(re.findall(r"!=([\d.]+)", bindings)) & set(releases)
    assert re.findall(r">=([\d.]+)", bindings) == releases[:1]


_ARGUMENT = re.compile(r"^(\s+)(\*{0,2}\w+(?:, \*{0,2}\w+)*):(?=\s)", re.MULTILINE)


def _documented_arguments(docstring: str) -> set[str]:
    """The names in the section Args of a docstring, at its least indentation."""
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)*)", docstring, re.MULTILINE)
    found = _ARGUMENT.findall(section[1]) if section else []
    least = min((len(indent) for indent, _ in found), default=0)
    return {
        name.lstrip("*")
        for indent, names in found
        if len(indent) == least
        for name in names.split(", ")
    }


def _parameters(node: ast.AST) -> set[str]:
    """The parameters of a function; of a class those of its constructor, and its fields."""
    if isinstance(node, ast.ClassDef):
        fields = {
            item.target.id
            for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        }
        makers = ("__init__", "__new__")
        return fields.union(
            *(_parameters(item) for item in node.body if getattr(item, "name", "") in makers)
        )
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    given = node.args
    optional = [each for each in (given.vararg, given.kwarg) if each is not None]
    return {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, *optional)}


@pytest.mark.slow
def test_documented_arguments_are_parameters() -> None:
    wrong, count = [], 0
    for path in sorted(path for name in ("cudadrv", "ptx") for path in (ROOT / name).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                documented = _documented_arguments(ast.get_docstring(node) or "")
                count += len(documented)
                if documented:
                    wrong += [
                        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has no {name}"
                        for name in sorted(documented - _parameters(node))
                    ]
    assert count > 500
    assert not wrong, "\n".join(wrong)


# Names of the PTX ISA and CUDA, of other packages and programs, and parts of names.
_NAMES_OF_OTHERS = {
    "frnd", "frnd2", "frnd3", "irnd", "override", "rbits", "rnd", "sm_80", "ue8m0x2", "vN",
    "__launch_bounds__", "__maxnreg__", "cudaTypedefs", "cuda_fp8", "fatbinary", "h", "objdump",
    "backend_probe", "find_library", "fmax", "fmin", "pythonw", "thread_inherit_context",
    "unraisablehook", "util", "_ZZ4turnE1s", "_v2", "add_", "exact_", "shared_u32", "stem0",
}  # fmt: skip
_NAMED = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)`(?!`)")


def _identifiers(path: Path, tree: ast.AST) -> set[str]:
    """The names that a file defines or uses, with the words of its short texts."""
    found = {path.stem, path.parent.name, "py"}
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                found.update(value.split("."))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            found.update(re.findall(r"\w+", node.value))
    return found


@pytest.mark.slow
def test_names_in_docstrings_and_comments_exist() -> None:
    known, texts = {*dir(builtins), *keyword.kwlist, *_NAMES_OF_OTHERS, *ROWS}, []
    for path in (
        path for name in ("cudadrv", "ptx", "stubs") for path in (ROOT / name).rglob("*.py*")
    ):
        if path.suffix not in (".py", ".pyi"):
            continue
        source = path.read_text()
        tree = ast.parse(source)
        documented = {
            ast.get_docstring(node, clean=False) or ""
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        }
        # A short docstring is no source of names.
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value in documented:
                node.value = ""
        known |= _identifiers(path, tree)
        comments = re.findall(r"(?:^|\s)#\s(.*)$", source, re.MULTILINE)
        texts += [(path, text) for text in (*documented, *comments)]
    wrong = {
        f"{path.relative_to(ROOT)}: `{name}`"
        for path, text in texts
        for name in _NAMED.findall(text)
        if not known.issuperset(filter(None, name.split(".")))
    }
    assert len(texts) > 9000
    assert not wrong, "\n".join(sorted(wrong))


def test_each_table_of_a_page_has_a_head() -> None:
    # A row after an empty line is no row: the site shows its text with the bars.
    lost = []
    for page in DOCUMENTS:
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        lines = ["", *text.splitlines(), ""]
        lost += [
            f"{page.relative_to(ROOT)}: {line[:60]}"
            for before, line, after in zip(lines, lines[1:], lines[2:], strict=False)
            if line.startswith("|") and not before.startswith("|") and not after.startswith("|")
        ]
    assert lost == []
