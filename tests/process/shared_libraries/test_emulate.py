from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from cudadrv.__main__ import main
from cudadrv.cli import emulate
from cudadrv.emulator.checks import Checks
from tests.emulator.kernels import EMPTY, TRAP
from tests.patience import SECONDS

from .process import BINDINGS, HEADER, environment, run

EMULATE = ("-m", "cudadrv", "emulate")

WRITES_TWICE = """
import cudadrv
context = cudadrv.cuda_context_for(0)
module = context.compile('''
extern "C" __global__ void race(int *x) { x[0] = threadIdx.x; }
''')
with context.new_stream() as stream:
    array = stream.zeros(1, "i4")
    module.kernel("race").launch(stream, cudadrv.LaunchConfig(1, 64), array)
    stream.synchronize()
"""


@pytest.mark.slow
def test_a_command_and_its_children_have_the_devices_that_were_requested() -> None:
    count = "from cuda.bindings import driver as d; d.cuInit(0); print(d.cuDeviceGetCount()[1])"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {count!r}])"
    ended = run("-m", "cudadrv", "emulate", "--devices", "3", "python", "-c", nested)
    assert (ended.status, ended.out, ended.err) == (0, "3\n", "")


NEEDS_START = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="needs the code of the files that starts an emulator"
)


@pytest.mark.slow
@NEEDS_START
@pytest.mark.parametrize("isolation", ["-E", "-Es"])
def test_a_child_that_ignores_pythonpath_finds_the_emulator(isolation: str) -> None:
    count = f"""
import sys
sys.path[:] = {sys.path!r}
from cuda.bindings import driver
before = set(vars())
driver.cuInit(0)
new = set(vars()) - before - {{"before"}}
print(driver.cuDeviceGetCount()[1], new, sys.flags.ignore_environment)
"""
    nested = (
        f"import subprocess, sys; subprocess.run([sys.executable, {isolation!r}, '-c', {count!r}])"
    )
    ended = run(*EMULATE, "--devices", "3", "python", "-c", nested)
    assert (ended.status, ended.out, ended.err) == (0, "3 set() 1\n", "")


@pytest.mark.slow
@NEEDS_START
def test_the_first_calls_of_several_threads_start_one_emulator() -> None:
    count = f"""
import ctypes, sys, threading
sys.path[:] = {sys.path!r}
library, found = ctypes.CDLL("libcuda.so.1"), []
def call(start):
    start.wait()
    found.append(library.cuInit(0))
start = threading.Barrier(4)
threads = [threading.Thread(target=call, args=(start,)) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
print(found)
"""
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-E', '-c', {count!r}])"
    ended = run(*EMULATE, "python", "-c", nested)
    assert (ended.status, ended.out, ended.err) == (0, "[0, 0, 0, 0]\n", "")


@pytest.mark.slow
@NEEDS_START
def test_a_child_without_cudadrv_reports_that_once() -> None:
    calls = "import ctypes; f = ctypes.CDLL('libcuda.so.1').cuInit; print(f(0), f(0))"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-ES', '-c', {calls!r}])"
    ended = run(*EMULATE, "python", "-c", nested)
    assert (ended.status, ended.out) == (0, "4 4\n")
    assert ended.err.count("cudadrv: no emulator in") == 1


@pytest.mark.slow
def test_the_compute_capability_is_an_option() -> None:
    program = """
from cuda.bindings import driver
driver.cuInit(0)
print([driver.cuDeviceComputeCapability(each)[1:] for each in range(2)])
"""
    options = ("--devices", "2", "--compute-capability", "10.0")
    ended = run(*EMULATE, *options, "python", "-c", program)
    assert (ended.status, ended.out) == (0, "[(10, 0), (10, 0)]\n"), ended.err
    ended = run(*EMULATE, "--compute-capability", "9.5", "python", "-c", program)
    assert (ended.status, ended.out) == (2, "")
    assert "CUDADRV_EMULATOR_COMPUTE_CAPABILITY is '9.5': use one of 7.0" in ended.err


@pytest.mark.slow
def test_the_limit_of_steps_is_an_option() -> None:
    program = "import os; print(os.environ['CUDADRV_EMULATOR_STEPS'])"
    ended = run(*EMULATE, "--steps", "12345", "python", "-c", program)
    assert (ended.status, ended.out) == (0, "12345\n"), ended.err
    assert run(*EMULATE, "--steps", "0", "python", "-c", program).status == 2
    # Long loops of other libraries' kernels change no memory for millions of steps.
    assert run(*EMULATE, "python", "-c", program).out == "100000000\n"
    by_environment = run(*EMULATE, "python", "-c", program, names={"CUDADRV_EMULATOR_STEPS": "77"})
    assert by_environment.out == "77\n"


FAULTS = f"""
import ctypes
import pytest
from cuda.bindings import driver

PTX = {HEADER + TRAP + EMPTY!r}.encode()

@pytest.fixture(scope="module")
def module():
    assert driver.cuInit(0)[0] == 0
    context = driver.cuDevicePrimaryCtxRetain(0)[1]
    assert driver.cuCtxSetCurrent(context)[0] == 0
    return driver.cuModuleLoadData(PTX)[1]

@pytest.fixture
def memory():
    memory = driver.cuMemAlloc(4)[1]
    yield memory
    assert driver.cuMemFree(memory)[0] == 0

@pytest.mark.parametrize("name", [b"traps", b"empty"])
def test_kernel(module, memory, name):
    function = driver.cuModuleGetFunction(module, name)[1]
    launched = driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)[0]
    waited = driver.cuCtxSynchronize()[0]
    assert (launched, waited) == (0, 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("order", ["immediate", pytest.param("late", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("policy", "outcome"),
    [
        pytest.param("sticky", "2 failed, 2 errors", marks=pytest.mark.slow),
        ("test", "1 failed, 1 passed"),
        pytest.param("continue", "1 failed, 1 passed", marks=pytest.mark.slow),
    ],
)
def test_a_fault_fails_its_own_test_alone_if_that_is_wished(
    tmp_path: Path, policy: str, outcome: str, order: str
) -> None:
    (tmp_path / "test_user.py").write_text(FAULTS)
    command = ("python", "-m", "pytest", "-q", "-pno:cacheprovider", str(tmp_path))
    ended = run(*EMULATE, f"--fault={policy}", f"--order={order}", *command)
    assert ended.status == 1, ended.err
    assert outcome in ended.out
    assert "trap" in ended.err + ended.out


@pytest.mark.slow
def test_the_status_is_the_commands_own() -> None:
    assert run(*EMULATE, "python", "-c", "raise SystemExit(5)").status == 5
    absent = run(*EMULATE, "no-such-command")
    assert (absent.status, absent.err) == (
        127,
        "python -m cudadrv: no-such-command: No such file or directory\n",
    )
    assert run(*EMULATE).status == 2


@pytest.mark.slow
def test_a_sitecustomize_of_the_users_runs_as_well(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('mine')\n")
    ended = run(
        "-m",
        "cudadrv",
        "emulate",
        "python",
        "-c",
        BINDINGS + "prepare(); print('ran')",
        names={"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
    )
    # Once for the command line itself, once for its command.
    assert ended.out == "mine\nmine\nran\n", ended.err


def test_what_checks_found_is_reported_at_the_end(tmp_path: Path) -> None:
    script = tmp_path / "races.py"
    script.write_text(WRITES_TWICE)
    ended = run("-m", "cudadrv", "emulate", "--checks", "race", "python", str(script))
    assert ended.status == 66, ended.err
    assert "race" in ended.err


COUNTS = """
import sys
from cuda.bindings import driver
print(int(driver.cuInit(0)[0]), driver.cuDeviceGetCount()[1], sys.argv, sys.stdin.read())
"""


@pytest.mark.slow
def test_a_program_has_its_own_arguments_and_input(tmp_path: Path) -> None:
    (tmp_path / "counts.py").write_text(COUNTS)
    own = ["--devices", "5", "--", "-c", "", "a b"]
    names = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    script = str(tmp_path / "counts.py")
    begins: dict[str, Sequence[str]] = {script: [script], "-c": ["-c", COUNTS]}
    for first, program in begins.items():
        ended = run(*EMULATE, "--devices", "2", "python", *program, *own, given="in")
        assert (ended.status, ended.out) == (0, f"0 2 {[first, *own]} in\n"), ended.err
    module = run(*EMULATE, "--", "python", "-m", "counts", *own, names=names, given="in")
    assert (module.status, module.out) == (0, f"0 1 {[script, *own]} in\n"), module.err


@pytest.mark.slow
def test_a_program_may_come_through_the_input() -> None:
    ended = run(*EMULATE, "--devices", "2", "python", "-", "x", given=COUNTS)
    assert (ended.status, ended.out) == (0, "0 2 ['-', 'x'] \n"), ended.err


COUNTED_IN_CHILDREN = """
import multiprocessing
import sys

def count(ordinal):
    from cuda.bindings import driver
    codes = [driver.cuInit(0), driver.cuDevicePrimaryCtxRetain(ordinal)]
    return [int(code[0]) for code in codes] + [driver.cuDeviceGetCount()[1]]

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(pool.map(count, range(3)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing_have_the_devices(tmp_path: Path, start: str) -> None:
    program = tmp_path / "counts.py"
    program.write_text(COUNTED_IN_CHILDREN)
    ended = run(*EMULATE, "--devices", "2", "python", str(program), start)
    assert (ended.status, ended.out) == (0, "[[0, 0, 2], [0, 0, 2], [0, 101, 2]]\n"), ended.err


SPINS = (
    BINDINGS
    + """
prepare()
function = kernel(b"spins")
try:
    print("spins", flush=True)
    driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)
    for _ in range(1000):
        pass
except KeyboardInterrupt:
    raise SystemExit(int(sys.argv[1]))
"""
)


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGINT, 9), (signal.SIGTERM, -signal.SIGTERM)]
)
def test_signals_reach_the_program_and_end_its_kernel(sent: signal.Signals, status: int) -> None:
    command = [sys.executable, *EMULATE, "python", "-c", SPINS, "9"]
    names = environment({"CUDADRV_EMULATOR_STEPS": str(10**12)})
    with subprocess.Popen(command, env=names, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "spins\n"
        time.sleep(0.2)  # most likely in the kernel; before it the same holds
        process.send_signal(sent)
        try:
            assert process.wait(timeout=SECONDS) == status
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "name"),
    [
        (("--order", "nonsense"), {}),
        (("--checks", "nonsense"), {}),
        (("--suppressions", "nonsense"), {}),
        ((), {"CUDADRV_DRIVER": "nonsense"}),
        (("--compute-capability", "nonsense"), {}),
        ((), {"CUDADRV_EMULATOR_STEPS": "nonsense"}),
        ((), {"CUDADRV_EMULATOR_FAULT": "nonsense"}),
    ],
)
def test_a_program_does_not_run_without_the_emulator_that_was_requested(
    option: Sequence[str], name: dict[str, str]
) -> None:
    program = "import ctypes; ctypes.CDLL('libcuda.so.1').cuInit(0); print('ran')"
    ended = run(*EMULATE, *option, "python", "-c", program, names=name)
    assert (ended.status, ended.out) == (2, "")
    assert "cudadrv" in ended.err
    assert "nonsense" in ended.err
    assert "Traceback" not in ended.err


def test_a_python_that_cannot_import_this_library_reports_it_and_runs(tmp_path: Path) -> None:
    (tmp_path / "cudadrv").mkdir()
    (tmp_path / "cudadrv" / "__init__.py").write_text("raise ImportError('too old')\n")
    startup = Path(__file__).parents[3] / "cudadrv" / "cli" / "startup"
    names = {"PYTHONPATH": os.pathsep.join([str(startup), str(tmp_path)])}
    ended = run("-c", "print('ran')", names=names)
    assert (ended.status, ended.out) == (0, "ran\n")
    assert ended.err == f"cudadrv: no emulator in {sys.executable}: too old\n"


def test_a_process_imports_the_emulator_at_its_first_driver_call_and_the_parser_later() -> None:
    program = """
import ctypes, os, sys
def found(*names):
    print([each for each in sys.modules if each.startswith(names)])
folder = os.environ["CUDADRV_EMULATE_LIBRARIES"]
print(sorted(each for each in os.listdir(folder) if each.endswith((".so.1", ".so"))) != [])
found("ptx.emulate", "numpy")
print(ctypes.CDLL("libcuda.so.1").cuInit(0), "ptx.emulate" in sys.modules)
found("ptx.isa.module", "ptx.isa.opcodes", "ptx.image", "ptx.emulate.check.", "email.",
      "cudadrv.driver.context")
"""
    ended = run(*EMULATE, "python", "-c", program)
    assert (ended.status, ended.out) == (0, "True\n[]\n0 True\n[]\n"), ended.err


FIRST_USES = """
import atexit, ctypes, os, sys

def bindings():
    from cuda.bindings import driver
    driver.cuInit(0)
    return driver.cuDeviceGetCount()[1]

def of_c():
    library, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    library.cuInit(0), library.cuDeviceGetCount(ctypes.byref(count))
    return count.value

def nvml():
    library, count = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_int()
    library.nvmlInit_v2(), library.nvmlDeviceGetCount_v2(ctypes.byref(count))
    return count.value

def runtime():
    from cuda.bindings.runtime import cudaGetDeviceCount
    return cudaGetDeviceCount()[1]

def linker():
    from cuda.bindings import nvjitlink
    link = nvjitlink.create(1, ["-arch=sm_90"])
    text = b".version 8.0\\n.target sm_80\\n.address_size 64\\n.visible .entry k() { ret; }"
    nvjitlink.add_data(link, nvjitlink.InputType.PTX, text, len(text), "k")
    nvjitlink.complete(link)
    image = bytearray(nvjitlink.get_linked_cubin_size(link))
    nvjitlink.get_linked_cubin(link, image)
    return 3 if b".entry k" in image else "machine code"

def own():
    import cudadrv
    with cudadrv.cuda_context_for(2).new_stream() as stream:
        array = stream.to_device([1, 2])
        found = (ctypes.c_int64 * 2)()
        library = ctypes.CDLL("libcuda.so.1")  # on the same emulator
        library.cuMemcpyDtoH_v2(found, ctypes.c_size_t(array.ptr), ctypes.c_size_t(16))
        return sum(found)

def session():
    from cudadrv import emulator
    with emulator.session(4):
        inner = bindings() + of_c()
    return inner // 2

def late():
    atexit.register(lambda: os.write(1, b"%d 0\\n" % memory_of_exit()))
    return bindings()

def memory_of_exit():
    from cuda.bindings import driver
    driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])
    return driver.cuMemFree(driver.cuMemAlloc(8)[1])[0] + 3

def stand_in():
    from cudadrv import emulator, errors
    try:
        emulator.stand_in(5)
    except errors.DriverSelectionError:
        return bindings()

for use in (bindings, of_c, nvml, runtime, linker, own, session, late, stand_in):
    loaded = [name for name in ("numpy", "cuda", "cudadrv.sessions") if name in sys.modules]
    sys.stdout.flush()
    if not os.fork():
        print(use.__name__, use(), loaded, flush=True)
        atexit._run_exitfuncs()
        os._exit(0)
    os.wait()
"""


@pytest.mark.slow
@NEEDS_START
def test_the_emulator_starts_at_the_first_call_of_any_library_and_not_before() -> None:
    ended = run(*EMULATE, "--devices", "3", "python", "-c", FIRST_USES)
    assert (ended.status, ended.err) == (0, "")
    uses = "bindings of_c nvml runtime linker own session late stand_in"
    expected = [f"{name} 3 []" for name in uses.split()]
    expected.insert(8, "3 0")
    assert ended.out.splitlines() == expected


SAME_VALUES = """
import cudadrv
from cudadrv import LaunchConfig
context = cudadrv.cuda_context_for(0)
module = context.compile('''
struct alignas(16) Four { float x[4]; };
extern "C" __global__ void same(float *x) { x[0] = 1.5f; }
extern "C" __global__ void warps(float *x) {
    __shared__ float s[2]; s[threadIdx.x / 32] = threadIdx.x / 32 + 0.5f; __syncthreads();
    x[threadIdx.x] = s[0] + s[1];
}
extern "C" __global__ void vector(Four *x) { *x = Four{1, 2, 3, 4}; }
extern "C" __global__ void zeros(float *x) { x[0] = threadIdx.x == 63 ? -0.0f : 0.0f; }
extern "C" __global__ void last(Four *x) { *x = Four{1, 2, 3, threadIdx.x == 1 ? 5.0f : 4.0f}; }
''')
with context.new_stream() as stream:
    for name in ("same", "warps", "vector", "zeros", "last"):
        array = stream.zeros(64, "f4")
        module.kernel(name).launch(stream, LaunchConfig(1, 64), array)
        stream.synchronize()
"""


@pytest.mark.slow
@pytest.mark.parametrize("order", ["immediate", "late", "random:3"])
def test_stores_of_one_value_are_counted_and_others_are_listed(tmp_path: Path, order: str) -> None:
    script = tmp_path / "stores.py"
    script.write_text(SAME_VALUES)
    ended = run(*EMULATE, "--checks", "race", "--order", order, "python", str(script))
    assert ended.status == 66, ended.err
    listed = re.findall("^race: kernel (\\w+),", ended.err, re.MULTILINE)
    assert sorted(listed) == ["last", "zeros"]
    *_, found, intentional = ended.err.splitlines()
    assert (found, intentional) == (
        "cudadrv: 2 found by race",
        "cudadrv: 3 likely intentional, not listed",
    )


@pytest.mark.parametrize("command", [[], [""], ["--", ""], ["", "script.py"]])
def test_a_command_without_a_name_is_rejected(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["emulate", *command])
    assert caught.value.code == 2
    assert "name a command, such as: " in capsys.readouterr().err


def test_the_command_knows_the_emulators_checks() -> None:
    assert emulate.CHECKS == Checks.NAMES


def test_the_command_itself_imports_nothing_of_the_emulator() -> None:
    program = """
import sys
from cudadrv.cli.command_line import make_parser

make_parser("emulate")
print([n for n in sys.modules if n.split(".")[0] == "numpy" or "emulator" in n])
"""
    ended = run("-c", program)
    assert (ended.status, ended.out) == (0, "[]\n"), ended.err
