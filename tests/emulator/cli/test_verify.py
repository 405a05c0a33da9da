"""The command that verifies kernels against their references."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cudadrv.cli.verify import status_of
from cudadrv.testing.verify import Verdict

from .in_process import Command, command

CASES = """
from pathlib import Path

import numpy as np

from cudadrv.testing import strategies as st
from cudadrv.testing.verify import KernelCase

n = st.sizes(1, 40)


def twice(source):
    return KernelCase(
        source,
        arguments={"n": n, "x": st.arrays(np.int32, n)},
        launch=st.launch_configs(threads=n),
        reference=lambda x: {"x": 2 * x},
    )


right = twice(Path("twice.cu"))
wrong = twice(Path("twice.cu").read_text().replace("2", "3"))
"""
KERNEL = """extern "C" __global__ void twice(int n, int* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
"""
FEW = ("--examples", "8", "--checks", "race,bounds")


@pytest.fixture
def verify(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    monkeypatch.chdir(tmp_path)
    Path("twice.py").write_text(CASES)
    Path("twice.cu").write_text(KERNEL)
    run = command(capsys)
    return lambda *words: run("verify", *words)


@pytest.mark.slow
def test_a_right_kernel_has_status_0(verify: Command) -> None:
    done = verify("twice.cu::right", *FEW)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("twice.py::right: verified (")


@pytest.mark.slow
def test_a_fault_has_status_1_and_the_smallest_example(verify: Command) -> None:
    done = verify("twice.py", *FEW)
    assert done.returncode == 1
    assert "twice.py::right: verified (" in done.stdout
    assert "twice.py::wrong: found values\n" in done.stdout
    assert "launch: 1 block of 1 thread, order immediate, default stream" in done.stdout
    assert "    n = 1\n" in done.stdout
    assert "repeat: python -m cudadrv verify twice.py::wrong --examples 8" in done.stdout


def test_json_has_the_verdicts(verify: Command) -> None:
    done = verify("twice.py::wrong", "--json", "--mutate", *FEW)
    report = json.loads(done.stdout)
    (verdict,) = (Verdict.from_json(each) for each in report["verdicts"])
    assert [each.check for each in verdict.findings] == ["values"]
    assert (report["mutations"], report["errors"]) == ([], [])


@pytest.mark.slow
def test_repairs_are_tried_unless_they_are_switched_off(verify: Command) -> None:
    def tried(*words: str) -> int:
        report = json.loads(verify("twice.py::wrong", "--json", *FEW, *words).stdout)
        (verdict,) = (Verdict.from_json(each) for each in report["verdicts"])
        return len(verdict.findings[0].repairs)

    assert tried() > 0
    assert tried("--no-explain") == 0


def test_mutants_are_counted(verify: Command) -> None:
    done = verify("twice.py::right", "--mutate", "--json", *FEW)
    assert done.returncode == 0
    (mutation,) = json.loads(done.stdout)["mutations"]
    assert mutation["total"] == len(mutation["tried"]) >= 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import numpy\n", "it defines no KernelCase"),
        ("import absent_module\n", "the file failed"),
        ("raise SystemExit\n", "the file failed"),
        (CASES.replace('Path("twice.cu"))', '"__device__ int i;")'), "right.cu has no kernel"),
    ],
)
def test_a_file_that_cannot_be_verified_has_status_3(
    verify: Command, text: str, words: str
) -> None:
    Path("other.py").write_text(text)
    done = verify("other.py", *FEW)
    assert done.returncode == 3
    assert words in done.stderr


@pytest.mark.slow
def test_a_file_with_cases_is_a_module_while_it_runs(verify: Command) -> None:
    """From Python 3.15 on, a traceback warns about a module without a loader."""
    check = """
import sys

assert __spec__.loader.get_filename() == __file__ == "other.py"
assert vars(sys.modules[__name__]) is globals()
"""
    Path("other.py").write_text(CASES + check)
    assert verify("other.py::right", *FEW).returncode == 0
    assert "other" not in sys.modules


@pytest.mark.parametrize(
    ("given", "status", "words"),
    [
        (["twice.py::absent"], 3, "its cases are: right, wrong"),
        (["absent.py"], 2, "absent.py: there is no such file"),
        (["twice.py", "--checks", "odd"], 2, "'odd' is no check"),
        (["twice.py", "--examples", "0"], 2, "'0' is not an integer"),
        (["twice.py", "--seconds", "nan"], 2, "'nan' is not a number of seconds"),
        ([], 2, "required: FILE[::CASE]"),
        (["--json-lines", "absent"], 2, "absent: there is no such folder"),
        (["--json-lines", "."], 2, "can replace the verifier: name a case for all"),
        (["a.py::a", "--json-lines", ".", "--trust-python"], 2, "does not go with a case"),
        (["--json-lines", ".", "--html", "x"], 2, "--html does not go with --json-lines"),
        (["a.py", "b.py", "--json-lines", "."], 2, "takes one case, FILE.py::CASE, or none"),
        (["absent.py::a", "--json-lines", "."], 2, "absent.py: there is no such file"),
        (["twice.py::right", "--source", "absent.cu"], 3, "absent.cu cannot be read"),
    ],
)
def test_a_wrong_command_line_is_named(
    verify: Command, given: list[str], status: int, words: str
) -> None:
    done = verify(*given)
    assert done.returncode == status
    assert words in done.stderr


def test_a_missing_extra_is_named(verify: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    done = verify("twice.py")
    assert done.returncode == 3
    assert 'pip install "cudadrv[testing]"' in done.stderr


@pytest.mark.slow
def test_save_writes_a_file_for_each_finding(verify: Command) -> None:
    done = verify("twice.py", "--save", "found", *FEW)
    assert done.returncode == 1
    assert done.stdout.endswith(
        f"  replay: python -m cudadrv replay {Path('found', 'wrong-values.json')}\n"
    )
    assert [each.name for each in Path("found").iterdir()] == ["wrong-values.json"]


SHARED = """
from pathlib import Path

import numpy as np

from cudadrv import LaunchConfig
from cudadrv.testing import strategies as st
from cudadrv.testing.verify import KernelCase

fill = KernelCase(
    Path("ones.cu"), arguments={"x": st.arrays(np.int32, 4)}, launch=LaunchConfig(1, 4),
    reference=lambda x: {"x": EXPECTED},
)
also = fill
"""
ONES = 'extern "C" __global__ void ones(int* x) { x[threadIdx.x] = 1; }'


def shared_case(expected: int) -> None:
    """Write a case below the working folder, and modules of two folders that import it."""
    Path("sub", "other").mkdir(parents=True)
    Path("sub", "ones.cu").write_text(ONES)
    Path("sub", "shared.py").write_text(SHARED.replace("EXPECTED", str(expected)))
    path = f"import sys; sys.path.insert(0, {str(Path('sub').resolve())!r})"
    for name in ("top.py", "sub/one.py", "sub/other/two.py"):
        Path(name).write_text(f"{path}\nfrom shared import fill as mine, also\n")


@pytest.fixture
def _fresh_import() -> Iterator[None]:
    yield
    sys.modules.pop("shared", None)


@pytest.mark.slow
@pytest.mark.usefixtures("_fresh_import")
def test_one_case_of_several_names_and_files_is_verified_under_each(
    verify: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared_case(1)
    files = ["sub/shared.py", "sub/one.py", "sub/other/two.py", "top.py"]
    done = verify(*files, *FEW)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    verified = [line.partition(": verified")[0] for line in lines if ": verified" in line]
    assert verified[:2] == ["sub/shared.py::fill", "sub/shared.py::also"]
    assert verified[2:] == [f"{file}::{name}" for file in files[1:] for name in ("mine", "also")]
    monkeypatch.chdir("sub")
    done = verify("shared.py::also", "other/two.py::mine", "../top.py::mine", *FEW)
    assert (done.returncode, done.stdout.count(": verified (")) == (0, 3)


@pytest.mark.usefixtures("_fresh_import")
def test_findings_of_one_case_in_two_files_are_saved_in_two_files(verify: Command) -> None:
    shared_case(2)
    done = verify("sub/one.py::mine", "top.py::mine", "--save", "found", "--no-explain", *FEW)
    assert done.returncode == 1
    saved = sorted(path.name for path in Path("found").iterdir())
    assert saved == ["mine-values-2.json", "mine-values.json"]


@pytest.mark.slow
def test_html_writes_the_page_of_all_cases(verify: Command) -> None:
    done = verify("twice.py", "--html", "page.html", *FEW)
    assert done.returncode == 1
    assert done.stdout.endswith("page: page.html\n")
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.count('<h2 id="case-') == 2
    assert "found values" in page


def test_a_page_that_cannot_be_written_has_status_3(verify: Command) -> None:
    done = verify("twice.py::right", "--html", "no/such/page.html", *FEW)
    assert done.returncode == 3
    assert "no/such/page.html: the page cannot be written" in done.stderr


PROGRAM = """
import numpy as np

from cudadrv.testing import strategies as st
from cudadrv.testing.verify import KernelCase

print("imported")
SOURCE = 'extern "C" __global__ void f(int* x) { printf("hello"); x[threadIdx.x] = 3; }'


def program(stream, module, config, x):
    print("called")
    module.kernel("f").launch(stream, config, x)


wrong = KernelCase(
    SOURCE,
    arguments={"x": st.arrays(np.int32, 2)},
    launch=st.launch_configs(blocks=1, block=2),
    reference=lambda x: {"x": 4},
    program=program,
)
"""


def test_output_of_the_case_does_not_mix_with_json(verify: Command) -> None:
    Path("program.py").write_text(PROGRAM)
    done = verify("program.py", "--json", "--no-explain", *FEW)
    assert done.returncode == 1
    (verdict,) = json.loads(done.stdout)["verdicts"]
    assert verdict["outcome"] == "found"
    assert {"imported", "called", "hello"} <= set(done.stderr.replace("hello", "\nhello\n").split())


@pytest.mark.slow
def test_a_finding_that_cannot_be_saved_keeps_its_verdict(verify: Command) -> None:
    Path("program.py").write_text(PROGRAM)
    done = verify("program.py", "--save", "found", "--no-explain", *FEW)
    assert done.returncode == 3
    assert "program.py::wrong: found values" in done.stdout
    assert done.stderr.startswith("program.py::wrong: its findings cannot be saved: program= is")


def test_a_folder_that_cannot_be_written_is_named(verify: Command) -> None:
    done = verify("twice.py::wrong", "--save", "twice.cu/found", "--no-explain", *FEW)
    assert done.returncode == 3
    assert done.stderr.startswith("twice.py::wrong: a finding cannot be written: ")


def test_html_without_jinja2_reports_how_to_install_it(
    verify: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = verify("twice.py::right", "--html", "page.html", *FEW)
    assert done.returncode == 3
    assert done.stderr == 'verify --html needs jinja2: pip install "cudadrv[testing]"\n'
    assert not Path("page.html").exists()


AGAINST = """
import numpy as np
from pathlib import Path
from cudadrv.testing import strategies as st
from cudadrv.testing.verify import KernelCase

n = st.sizes(1, 60)
case = KernelCase(
    Path("first.cu"),
    arguments={"n": n, "x": st.arrays(np.float32, n), "out": st.unwritten(np.float32, n)},
    launch=st.launch_configs(threads=n), reference=lambda x: {"out": x + 123},
)
"""


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)], ids=["few", "all"])
def test_a_kernel_is_compared_with_another_one(verify: Command, every: int) -> None:
    Path("cases.py").write_text(AGAINST)
    for name, value in {
        "first": "x[i] / 3",
        "same": "x[i] * (1 / 3.f)",
        "other": "i == 40 ? 9 : x[i] / 3",
        "fails": "x[i + 1000000]",
    }.items():
        Path(f"{name}.cu").write_text(
            'extern "C" __global__ void k(int n, const float* x, float* out) {\n'
            "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            f"    if (i < n) out[i] = {value};\n}}\n"
        )
    wanted = {
        "--against same.cu": (0, "cases.py::case: verified"),
        "--against same.cu --exact": (1, "--against same.cu --exact"),
        "--against other.cu": (1, "values: out[40] is "),
        "--against fails.cu": (3, "the kernel of "),
        "--against first.cu::none": (3, "has no kernel 'none'"),
        "--against none.cu": (2, "there is no such file"),
        "--against same.cu --save found": (2, "--save does not go with --against"),
        "--exact": (2, "--exact needs --against"),
        "": (1, "the reference has "),
    }
    for options, (status, text) in [*wanted.items()][::every]:
        few = ("--examples", "3", "--checks", "bounds", "--no-explain")
        done = verify("cases.py", *few, *options.split())
        assert (done.returncode, text in done.stdout + done.stderr) == (status, True), done


def test_an_unfinished_verification_is_no_success() -> None:
    statuses = {
        (): 0, ("verified",): 0, ("verified", "unfinished"): 3, ("unfinished", "found"): 1,
        ("failed", "found"): 3,
    }  # fmt: skip
    assert {outcomes: status_of(set(outcomes)) for outcomes in statuses} == statuses
