from __future__ import annotations

import importlib
import pickle
import pkgutil
import types
from collections.abc import Iterator

import pytest
from cuda.bindings import driver

import cudadrv
import ptx
from cudadrv import emulator, errors
from cudadrv.errors import CudadrvError, CudaError, GpuError
from ptx.isa.errors import PtxSyntaxError
from tests.rows import all_rows


@all_rows
@pytest.mark.parametrize("result", sorted({int(r) for r in driver.CUresult.__members__.values()}))
def test_every_result_of_the_binding_has_a_class_of_its_own(result: int) -> None:
    if result == 0:
        assert CudaError.for_code(0) is CudaError
        return
    cls = CudaError.for_code(result)
    assert cls is not CudaError
    assert cls.result == result
    assert getattr(errors, cls.__name__) is cls
    assert cls("work").code == result


def test_a_result_that_is_not_known_keeps_its_code() -> None:
    error = CudaError.for_code(12345)("work", call="cuNew", code=12345, text="new fault")
    assert type(error) is CudaError
    assert str(error) == "work: cuNew returned CUresult (12345)\n  new fault"


def test_an_error_reports_what_where_and_what_to_do() -> None:
    error = errors.OutOfMemoryError("allocating 5 bytes", call="cuMemAllocAsync", text="no memory")
    assert str(error) == (
        "allocating 5 bytes: cuMemAllocAsync returned CUDA_ERROR_OUT_OF_MEMORY (2)\n  no memory\n"
        "  free device memory (close arrays, trim arenas), or allocate less"
    )
    assert (error.code, error.call, error.doing) == (2, "cuMemAllocAsync", "allocating 5 bytes")


def test_sticky_errors_say_that_the_process_must_restart() -> None:
    sticky = {cls.result for cls in CudaError.__subclasses__() if cls.sticky}
    assert {700, 714, 715, 716, 717, 718, 719, 710} <= sticky
    assert not sticky & {1, 2, 3, 200, 500, 600, 900}
    assert "restart the process" in str(errors.IllegalAddressError("work"))
    assert "restart the process" not in str(errors.InvalidValueError("work"))


def test_two_classes_for_one_result_are_rejected() -> None:
    with pytest.raises(TypeError, match="two classes for CUresult 700"):
        types.new_class("Another", (CudaError,), {"result": 700})


def test_a_class_of_a_user_keeps_the_result_of_the_class_that_it_inherits_from() -> None:
    class Mine(errors.OutOfMemoryError):
        pass

    assert Mine.result == errors.OutOfMemoryError.result == 2
    assert CudaError.for_code(2) is errors.OutOfMemoryError
    assert "free device memory" in str(Mine("work", call="cuMemAlloc"))


# Errors that a caller catches or turns into another one, or that a contributor gets at import; none
# reaches a user.
INTERNAL = {
    "BadDescriptor", "BadTensorMap", "CallError", "CaptureUnderWay", "ChunksDepend", "Elsewhere",
    "EpochsExhausted", "ForeignJsonError", "NoLaneCode", "ObserverExhausted", "OpcodeRowError",
    "UncacheableError", "UnreadableError", "UnusableTensorError", "FailedExampleError",
    "_NotUnderstoodError", "_UnsupportedNodeError",
}  # fmt: skip
SCRIPTS = ("__main__", "cli.startup", "cli.toolkit")  # act when they are imported


def derived(root: type[BaseException]) -> Iterator[type[BaseException]]:
    for cls in root.__subclasses__():
        yield cls
        yield from derived(cls)


def test_each_error_of_both_packages_has_one_root() -> None:
    for package in (cudadrv, ptx):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not any(script in module.name for script in SCRIPTS):
                importlib.import_module(module.name)
    own = [cls for cls in derived(BaseException) if cls.__module__.split(".")[0] in PACKAGES]
    # `verify` makes a class of each kind of fault, for Hypothesis, as it finds one. A test before
    # this one may import scripts.
    own = [
        cls
        for cls in own
        if not cls.__name__.endswith("Found")
        and not any(script in cls.__module__ for script in SCRIPTS)
    ]
    others = {cls.__name__ for cls in own if not issubclass(cls, (CudadrvError, Warning))}
    assert others == INTERNAL
    assert issubclass(ptx.PtxError, CudadrvError)


PACKAGES = ("cudadrv", "ptx")


def test_there_is_one_root() -> None:
    names = dir(errors)
    assert len(names) > 100
    for name in names:
        assert issubclass(getattr(errors, name), CudadrvError)
    variants = {cls.__name__ for cls in GpuError.__subclasses__()}
    assert variants == {
        "DriverLibraryUnavailable",
        "DriverLibraryLoadFailed",
        "RuntimeDependencyUnavailable",
        "DriverSymbolMissing",
        "DriverCallFailed",
        "CalibrationFailed",
        "NoDeviceKernel",
        "RequiredDeviceUnavailable",
    }
    assert errors.NoDeviceKernel("why").reason == "why"


@all_rows
@pytest.mark.parametrize(
    "error",
    [
        errors.ArgumentError("is wrong", kernel="k", position=2),
        errors.KernelNotFoundError("there is none", name="k", available=("a", "b")),
        errors.OutOfMemoryError("allocating 5 bytes", call="cuMemAllocAsync", text="no memory"),
        CudaError("work", call="cuNew", code=12345),
        errors.DriverCallFailed("it failed"),
        cudadrv.pool.TileError((ValueError("v"),), 1, range(3)),
        cudadrv.pool.ScatterError("m", [ValueError("v")]),
        ptx.CompileError("the log", ptx.CompileOptions(defines={"N": 3}), name="k.cu"),
        ptx.HeaderNotFoundError("a.h", None, ("/x",), "the log", ptx.CompileOptions()),
        ptx.HeaderVersionError(
            "a.h",
            "p",
            ("/x",),
            "the log",
            ptx.CompileOptions(),
            folder="/y",
            versions=(("runtime", (13, 0)),),
            nvrtc=(13, 5),
            command="pip",
        ),
        ptx.LinkError("no", "the log", ("-arch=sm_90",)),
        ptx.UnsupportedTargetError("no", ptx.Target.ptx("compute_90"), ()),
        cudadrv.errors.UnsupportedTargetError("no", ptx.Target.ptx("compute_90"), ()),
        ptx.NvrtcNotFoundError("pip", "not there"),
        PtxSyntaxError("no", line=1, column=2, source_line="abc"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_cross_processes_with_all_they_hold(error: Exception) -> None:
    error.add_note("a note")
    twin = pickle.loads(pickle.dumps(error))
    assert type(twin) is type(error)
    assert (str(twin), repr(twin.args)) == (str(error), repr(error.args))
    assert {k: str(v) for k, v in vars(twin).items()} == {k: str(v) for k, v in vars(error).items()}


def test_a_target_that_nothing_can_be_made_for_is_one_error_of_both_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rejected = ptx.UnsupportedTargetError("no such architecture", None, ())

    def reject(*_: object) -> ptx.Target:
        raise rejected

    monkeypatch.setattr(ptx, "nearest_target", reject)
    with emulator.session():
        context = cudadrv.cuda_context_for(0)
        with pytest.raises(cudadrv.errors.UnsupportedTargetError, match="no such") as caught:
            _ = context.target
        with pytest.raises(cudadrv.CudadrvError):
            context.compile("")
    assert caught.value is rejected
    assert cudadrv.errors.UnsupportedTargetError is ptx.UnsupportedTargetError


def test_a_long_error_stands_on_short_lines() -> None:
    error = errors.IllegalAddressError("work " * 25, call="cuCall", text="what the driver said")
    assert str(error).split("\n")[1:3] == [
        "  cuCall returned CUDA_ERROR_ILLEGAL_ADDRESS (700)",
        "  what the driver said",
    ]
    assert all(len(line) < 150 for line in str(error).split("\n"))


def test_a_fault_on_the_emulator_breaks_the_device_of_a_session_and_not_the_process() -> None:
    error = errors.IllegalAddressError("work", call="cuCall", text="the fault", explained=True)
    assert "restart" not in str(error)
    assert "until the process or its emulator.session() ends" in str(error)


def test_a_compile_error_says_each_error_once_and_few_of_many() -> None:
    with pytest.raises(ptx.CompileError) as caught:
        ptx.compile("__device__ void f() {\n" + "".join(f"  x{n} = 1;\n" for n in range(20)) + "}")
    lines = str(caught.value).split("\n")
    assert lines[0] == (
        'kernel.cu does not compile: kernel.cu(2): error: identifier "x0" is undefined'
    )
    assert lines[1].strip() == "x0 = 1;"
    assert lines[3] == 'kernel.cu(3): error: identifier "x1" is undefined'
    assert lines[-1] == "and 15 more errors: see the error's `log`"
    assert len(lines) <= 10
    assert "x19" in caught.value.log


def test_the_error_about_a_missing_kernel_has_the_way_to_find_it() -> None:
    source = 'extern "C" __global__ void plain() {} namespace n { __global__ void named() {} }'
    with emulator.session():
        module = cudadrv.cuda_context_for(0).compile(source)
        for name, hint in (
            ("plane", "did you mean 'plain'?"),
            ("n::named", "declare it extern \"C\", or compile with name_expressions=['n::named']"),
            ("t<int>", "compile with name_expressions=['t<int>']"),
            ("absent", 'a kernel that is not extern "C"'),
        ):
            with pytest.raises(errors.KernelNotFoundError) as caught:
                module.kernel(name)
            assert hint in str(caught.value).split("\n")[1]


def test_a_header_of_the_hosts_library_is_distinguished() -> None:
    with pytest.raises(ptx.HeaderNotFoundError, match="host's C\\+\\+ standard library"):
        ptx.compile("#include <vector>\n")


def test_a_traceback_shows_the_name_that_users_import() -> None:
    modules = {name: getattr(errors, name).__module__ for name in dir(errors)}
    assert modules.pop("UnsupportedTargetError") == "ptx.errors"
    assert set(modules.values()) == {"cudadrv.errors"}
    assert cudadrv.pool.TileError.__module__ != "cudadrv.errors"
