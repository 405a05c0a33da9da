"""The command that prints the device times of a script's kernels and copies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cudadrv import emulator
from cudadrv.cli.profile import device_work
from cudadrv.driver._api import CUdevice_attribute
from cudadrv.tracing import DeviceSpan

from .in_process import Command, command

SCRIPT = '''
import sys
import numpy as np
import cudadrv
SOURCE = """
template <class T> __global__ void scale(T* x) { x[blockIdx.x * 256 + threadIdx.x] *= 2; }
extern "C" __global__ void astray(float* x) { x[1 << 30] = 1; }
"""
context = cudadrv.cuda_context_for(0)
module = context.compile(SOURCE, name_expressions=["scale<float>"])
stream = context.default_stream
x = stream.to_device(np.ones(1024, np.float32))
for _ in range(3):
    module.kernel("scale<float>").launch(stream, cudadrv.LaunchConfig(4, 256), x)
if "astray" in sys.argv:
    module.kernel("astray").launch(stream, cudadrv.LaunchConfig(1, 1), x)
stream.to_host(x)
sys.exit(int(sys.argv[1]))
'''


GRAPHS = """
import numpy as np
import cudadrv
context = cudadrv.cuda_context_for(0)
module = context.compile(
    'extern "C" __global__ void a(int* x) { x[threadIdx.x] += 1; }'
    'extern "C" __global__ void b(int* x) { x[threadIdx.x] *= 2; }'
)
a, b = module.kernel("a"), module.kernel("b")
stream = context.default_stream
config = cudadrv.LaunchConfig(1, 32)
x = stream.to_device(np.ones(32, np.int32))
with stream.capture() as graph:
    a.launch(stream, config, x)
    b.launch(stream, config, x)
    a.launch(stream, config, x)
captured = graph.instantiate()
for _ in range(3):
    captured.launch(stream)
built = context.new_graph()
built.add_kernel(b, config, x)
built.instantiate().launch(stream)
print(stream.to_host(x)[0])
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return command(capsys)


@pytest.fixture
def script(tmp_path: Path) -> str:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    return str(file)


def test_profile_prints_each_kernel_and_copy_once_and_returns_the_script_status(
    run: Command, script: str
) -> None:
    with emulator.session():
        done = run("profile", script, "3")
    assert done.returncode == 3, done.stderr
    title, header, *rows, note = done.stdout.splitlines()
    assert title == "work on devices"
    assert header.split("  ")[1:2] == ["what"]
    cells = {row.split()[0]: row.split()[1:3] for row in rows}
    assert cells == {
        "scale<float>": ["0", "3"],
        "cuMemcpyHtoDAsync": ["0", "1"],
        "cuMemcpyDtoHAsync": ["0", "1"],
    }
    assert note == "these times are the emulator's own: they do not predict the times of a GPU"


def test_bounds_follow_from_the_counted_sectors_and_instructions(run: Command, script: str) -> None:
    with emulator.session(clock_khz=1_000_000, sm_count=10, memory_clock_khz=1_000_000):
        done = run("profile", "--bounds", "--json", script, "0")
    document = json.loads(done.stdout.splitlines()[-1])
    assert document["is_emulated"]
    assert document["untimed"] == {}
    work = {each["what"]: each for each in document["work"]}
    scale = work["scale<float>"]
    assert (scale["count"], scale["category"]) == (3, "launch")
    assert 0 < scale["min_us"] <= scale["mean_us"] <= scale["max_us"] <= scale["total_ms"] * 1e3
    # 4 KiB read and written, by a bus of 1,024 bits at 1 GHz with two transfers a cycle.
    assert scale["bound"]["memory_us"] == pytest.approx(8192 / 256_000)
    # 32 warps, by 10 multiprocessors with 4 instructions a cycle of 1 GHz.
    instructions = scale["bound"]["issue_us"] * 40_000 / 32
    assert instructions == pytest.approx(round(instructions))
    assert 5 <= instructions <= 20
    assert work["cuMemcpyHtoDAsync"]["bound"] is None
    assert sum(each["share"] for each in document["work"]) == pytest.approx(1)


def test_profile_lists_the_kernels_of_each_graph_with_their_launches_in_all_replays(
    run: Command, tmp_path: Path
) -> None:
    file = tmp_path / "graphs.py"
    file.write_text(GRAPHS)
    with emulator.session():
        table = run("profile", str(file)).stdout.splitlines()
        output = run("profile", "--bounds", "--json", str(file)).stdout.splitlines()
    assert table[0] == output[0] == "58"  # x becomes 2 (x + 1) + 1 three times, and is doubled
    rows = [line.split()[:4] for line in table]
    parts = [tuple(row) for row in rows if row[0] in ("a", "b")]
    assert sorted(parts) == [("a", "0", "6", "-"), ("b", "0", "1", "-"), ("b", "0", "3", "-")]
    assert sorted(row[2] for row in rows if row[0] == "cuGraphLaunch") == ["1", "3"]
    graphs = {
        tuple((each["what"], each["count"]) for each in row["kernels"]): row["bound"]
        for row in json.loads(output[-1])["work"]
        if row["what"] == "cuGraphLaunch"
    }
    both, one = graphs.pop((("a", 6), ("b", 3))), graphs.pop((("b", 1),))
    assert not graphs
    # The kernels move the same bytes.
    assert both["memory_us"] == pytest.approx(3 * one["memory_us"])


def test_profile_of_a_script_that_a_fault_ends_has_the_work_before_it(
    run: Command, script: str
) -> None:
    with emulator.session():
        done = run("profile", script, "0", "astray")
    assert done.returncode == 1
    assert "IllegalAddressError" in done.stderr
    assert "scale<float>" in done.stdout or "could not be timed" in done.stdout


def test_an_interrupted_script_still_gets_its_table(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "interrupted.py"
    file.write_text(SCRIPT.replace("sys.exit", "raise KeyboardInterrupt\nsys.exit"))
    with emulator.session():
        done = run("profile", str(file), "0")
    assert done.returncode == 130
    assert "scale<float>" in done.stdout


@pytest.mark.slow
def test_bounds_of_a_gpu_come_from_a_second_run_on_the_emulator(
    run: Command, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cudadrv.cli.profile.Emulator", type("Other", (), {}))
    with emulator.session():
        done = run("profile", "--bounds", script, "0")
    (row,) = (line for line in done.stdout.splitlines() if "scale<float>" in line)
    assert row.endswith(" memory"), done.stderr


def test_a_device_that_hides_its_rates_has_no_bounds() -> None:
    clock = CUdevice_attribute.CU_DEVICE_ATTRIBUTE_CLOCK_RATE
    with emulator.session([emulator.EmulatedDevice(attributes={clock: 0})]):
        spans = [DeviceSpan(0, 1, "f", "launch", 0.0, 2000.0, 1)]
        (row,) = device_work(spans, {}, ())
    assert (row.count, row.mean_us, row.bound) == (1, 2.0, None)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "name a script, or a module with -m"),
        (("absent.py",), "absent.py: there is no such file"),
        (("-m", "absent_module"), "no module named absent_module"),
        (("--bounds", "-m", "this"), "--bounds needs a script, not a module"),
    ],
)
def test_a_wrong_command_line_runs_nothing(
    words: tuple[str, ...], reason: str, run: Command
) -> None:
    done = run("profile", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"cudadrv profile: {reason}\n"


@pytest.mark.slow
def test_profile_runs_a_module_in_a_process(tmp_path: Path, script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cudadrv", "profile", "-m", "script", "0"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(script).parent,
    )
    assert (done.returncode, "scale<float>" in done.stdout) == (0, True), done.stderr
