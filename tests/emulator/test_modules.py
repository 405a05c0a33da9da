from __future__ import annotations

import pytest

import ptx
from cudadrv.driver._api import (
    CUcontext,
    CUfunction,
    CUjit_option,
    CUjitInputType,
    CUmodule,
    CUresult,
)
from cudadrv.emulator import EmulatedDevice, Emulator
from ptx.emulate.model.errors import UndefinedSymbol, UnsupportedInstruction
from ptx.isa import PtxSyntaxError

from .calls import OpenApi, code, download, functions, launch, load, ok, text
from .fatbins import fatbin
from .kernels import EMPTY, FILL, INCREMENT, TRAP, UNKNOWN_OPCODE, VARIABLE

BROKEN = b".version 7.8\n.target sm_70\n.address_size 64\n.visible .entry k() { ret;\n"


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (b"hello world garbage", 200),
        (b"\0", 200),
        (b".visible .entry k() { ret; }\n", 200),
        (BROKEN, 218),
        (text(EMPTY, EMPTY), 218),
        (text(EMPTY, header=".version 99.0\n.target sm_70\n.address_size 64\n"), 222),
        (text(EMPTY, header=".version 8.6\n.target sm_100\n.address_size 64\n"), 218),
        (b"\x50\xed\x55\xba\x01\x00\x10\x00" + b"\0" * 60, 209),
    ],
    ids=[
        "garbage",
        "empty",
        "no-version",
        "broken",
        "twice",
        "new-version",
        "new-target",
        "fatbin",
    ],
)
def test_an_image_that_will_not_load(
    api: OpenApi, context: CUcontext, image: bytes, expected: int
) -> None:
    assert code(api.cuModuleLoadData(image)) == expected


def test_the_default_driver_is_a_released_one() -> None:
    newest = max((13, 5), ptx.nvrtc_version())
    found = {}
    for minor in (0, newest[1], newest[1] + 1, 9):
        emulator = Emulator(1)
        ok(emulator.cuInit(0))
        assert ok(emulator.cuDriverGetVersion()) == 13050
        ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
        header = f".version 9.{minor}\n.target sm_90\n.address_size 64\n"
        found[minor] = emulator.cuModuleLoadData(text(EMPTY, header=header))[0]
    unsupported = CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    assert found == {0: 0, newest[1]: 0, newest[1] + 1: unsupported, 9: unsupported}


def test_a_load_has_the_same_outcome_whatever_was_loaded_before() -> None:
    """Each text on each device and driver: alone, and after and before all others."""
    headers = [
        f".version {version}\n.target {target}\n.address_size 64\n"
        for version in ("7.8", "8.6", "9.1", "9.9")
        for target in ("sm_70", "sm_80a", "sm_90", "sm_100f")
    ]
    late = ".visible .entry late(.param .u64 p) { .reg .b32 %r; redux.sync.add.s32 %r, 1, -1; }"
    large = ".visible .entry large() { .shared .b8 s[50000]; ret; }"
    short = ".visible .entry short() { .reg .b32 %r; cvta.shared.u32 %r, %r; ret; }"
    kernels = EMPTY, late, large, short
    images = [text(kernel, header=each) for each in headers for kernel in kernels]
    images += [b"no PTX", BROKEN, text(TRAP, TRAP), fatbin((1, 70, text(TRAP)))]
    drivers = [((12, 4), (8, 0)), ((13, 0), (9, 0)), ((13, 0), (10, 0)), ((13, 2), (9, 0))]

    def outcomes(order: int) -> list[tuple[int, bytes | None]]:
        found = []
        for driver, capability in drivers[::order]:
            emulator = Emulator(
                [EmulatedDevice(compute_capability=capability)], driver_version=driver
            )
            ok(emulator.cuInit(0))
            ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
            for image in images[::order]:
                result, _ = emulator.cuModuleLoadData(image)
                found.append((int(result), ok(emulator.cuGetErrorString(result))))
        return found[::order]

    first = outcomes(1)
    assert outcomes(-1) == first == outcomes(1)
    assert {result for result, _ in first} == {0, 200, 218, 222}


def test_older_targets_and_the_own_variant_load(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    for target in ("sm_50", "sm_75", "sm_90", "sm_90a"):
        header = f".version 8.0\n.target {target}\n.address_size 64\n"
        assert code(emulator.cuModuleLoadData(text(EMPTY, header=header))) == 0
    other = text(EMPTY, header=".version 8.0\n.target sm_80a\n.address_size 64\n")
    assert code(emulator.cuModuleLoadData(other)) == 218


def test_machine_code_is_rejected_with_the_remedy(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    result, _ = emulator.cuModuleLoadData(b"\x7fELF" + b"\0" * 60)
    assert int(result) == 209
    said = ok(emulator.cuGetErrorString(result))
    assert said is not None
    assert b"ptx.Target.ptx" in said


def test_an_older_driver_rejects_newer_ptx() -> None:
    emulator = Emulator(1, driver_version=(12, 4))
    ok(emulator.cuInit(0))
    assert ok(emulator.cuDriverGetVersion()) == 12040
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    for version, expected in (("8.4", 0), ("8.5", 222), ("9.0", 222)):
        header = f".version {version}\n.target sm_70\n.address_size 64\n"
        assert code(emulator.cuModuleLoadData(text(EMPTY, header=header))) == expected


@pytest.mark.parametrize(
    ("driver", "newest"),
    [
        ((12, 0), "8.0"), ((12, 3), "8.3"), ((12, 5), "8.5"), ((12, 6), "8.5"), ((12, 8), "8.7"),
        ((12, 9), "8.8"), ((13, 0), "9.0"), ((13, 1), "9.1"), ((11, 8), "7.8"),
    ],
)  # fmt: skip
def test_each_driver_accepts_the_ptx_of_its_release(driver: tuple[int, int], newest: str) -> None:
    """PTX ISA, "Release Notes", table of versions."""
    emulator = Emulator([EmulatedDevice()], driver_version=driver)
    ok(emulator.cuInit(0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    major, minor = map(int, newest.split("."))
    for version, expected in ((newest, 0), (f"{major}.{minor + 1}", 222)):
        header = f".version {version}\n.target sm_70\n.address_size 64\n"
        assert code(emulator.cuModuleLoadData(text(EMPTY, header=header))) == expected


@pytest.mark.parametrize(
    ("version", "image", "expected"),
    [
        ("8.0", ".const .b8 c[65537];", "__constant__ memory: 65537 bytes, at most 65536"),
        ("8.0", ".entry k(.param .b8 p[5000]) { ret; }", "parameters of kernel k: 5000 bytes"),
        (
            "8.0",
            ".entry k() { .shared .b8 s[50000]; ret; }",
            "static __shared__ memory of kernel k",
        ),
        ("8.0", ".entry k() { .shared .b8 s[; ret; }", "line 4, column 28: expected an integer"),
        ("8.0", ".global .b8 a[2] = {1, 2, 3};", "3 initial values for 2 elements"),
        ("8.0", ".global .u64 a = nothing;", "nothing is not declared before"),
        ("8.0", ".address_size 16", ".address_size takes 32 or 64"),
        ("8.0", ".address_size 32", "unsupported .address_size 32: the driver takes 64"),
        ("8.0", "\n.address_size 64\n.address_size 64", "a second .address_size"),
        ("abc", "", ".version takes a version such as 8.0, found 'abc'"),
    ],
)
def test_what_no_gpu_loads_is_rejected_with_the_reason(
    emulator: Emulator, version: str, image: str, expected: str
) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    memory = ok(emulator.cuMemGetInfo())
    image_of = f".version {version}\n.target sm_75\n\n{image}".encode()
    result, _ = emulator.cuModuleLoadData(image_of)
    assert int(result) == 218
    said = ok(emulator.cuGetErrorString(result))
    assert said is not None
    assert expected in said.decode()
    assert ok(emulator.cuMemGetInfo()) == memory


@pytest.mark.parametrize(("capability", "expected"), [((8, 9), 0), ((9, 0), 218), ((12, 0), 218)])
@pytest.mark.parametrize("instruction", ["cvta.shared.u32", "cvta.u32.global"])
def test_an_address_of_32_bits_is_converted_below_sm_90_only(
    instruction: str, capability: tuple[int, int], expected: int
) -> None:
    body = f".reg .u32 %r; {instruction} %r, %r; ret;"
    image = f".version 7.0\n.target sm_75\n.address_size 64\n.entry k() {{ {body} }}"
    emulator = Emulator([EmulatedDevice(compute_capability=capability)])
    ok(emulator.cuInit(0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    assert code(emulator.cuModuleLoadData(image.encode())) == expected


@pytest.mark.parametrize("version", ["7.9", "6.6", "8.9", "0.9", "3.3"])
def test_a_version_that_never_was_is_rejected(emulator: Emulator, version: str) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    header = f".version {version}\n.target sm_50\n.address_size 64\n"
    assert code(emulator.cuModuleLoadData(text(EMPTY, header=header))) == 222


def test_the_jit_error_log_reports_what_is_wrong(api: OpenApi, context: CUcontext) -> None:
    log = bytearray(1024)
    options = (
        CUjit_option.CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    )
    assert code(api.cuModuleLoadDataEx(BROKEN, 2, options, (log, len(log)))) == 218
    said = bytes(log).split(b"\0")[0]
    assert b"error" in said or b"fatal" in said


def test_broken_ptx_is_reported_with_its_line(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    log = bytearray(1024)
    options = [
        CUjit_option.CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ]
    result, _ = emulator.cuModuleLoadDataEx(BROKEN, 2, options, [log, len(log)])
    assert isinstance(emulator.last_fault, PtxSyntaxError)
    assert emulator.last_fault.line == 4
    said = ok(emulator.cuGetErrorString(result))
    assert said == str(emulator.last_fault).encode()
    assert said in bytes(log)


@pytest.mark.parametrize("size", [1, 5, 64])
def test_a_log_is_cut_to_its_buffer(emulator: Emulator, size: int) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    log = bytearray(b"x" * 100)
    options = [
        CUjit_option.CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ]
    assert code(emulator.cuModuleLoadDataEx(BROKEN, 2, options, [log, size])) == 218
    assert log[size - 1] == 0
    assert log[size:] == b"x" * (100 - size)


def test_functions_are_found_counted_and_named(api: OpenApi, context: CUcontext) -> None:
    module = load(api, EMPTY, FILL, INCREMENT)
    assert ok(api.cuModuleGetFunctionCount(module)) == 3
    found = ok(api.cuModuleEnumerateFunctions(3, module))
    assert [ok(api.cuFuncGetName(f)) for f in found] == [b"empty", b"fill", b"increment"]
    assert len(ok(api.cuModuleEnumerateFunctions(2, module))) == 2
    assert code(api.cuModuleEnumerateFunctions(0, module)) == 1
    fill = ok(api.cuModuleGetFunction(module, b"fill"))
    assert int(fill) == int(ok(api.cuModuleGetFunction(module, b"fill"))) == int(found[1])


def test_names_that_are_not_there(api: OpenApi, context: CUcontext) -> None:
    module = load(api, EMPTY, VARIABLE)
    assert code(api.cuModuleGetFunction(module, b"nope")) == 500
    assert code(api.cuModuleGetFunction(module, b"gv")) == 500
    assert code(api.cuModuleGetFunction(module, b"")) == 1
    assert code(api.cuModuleGetGlobal(module, b"nope")) == 500


def test_a_variable_is_initialised_for_each_load(api: OpenApi, context: CUcontext) -> None:
    first, second = load(api, EMPTY, VARIABLE), load(api, EMPTY, VARIABLE)
    a, nbytes = ok(api.cuModuleGetGlobal(first, b"gv"))
    b, _ = ok(api.cuModuleGetGlobal(second, b"gv"))
    assert nbytes == 16
    assert int(a) != int(b)
    assert download(api, a, 4).tolist() == [1, 2, 3, 4]
    assert download(api, b, 4).tolist() == [1, 2, 3, 4]


def test_a_function_of_an_unloaded_module_is_an_invalid_handle(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    module = load(emulator, EMPTY)
    (empty,) = functions(emulator, module, "empty")
    ok(emulator.cuModuleUnload(module))
    assert code(launch(emulator, empty)) == 400
    assert code(emulator.cuFuncGetName(empty)) == 400


def test_an_unloaded_module_is_an_invalid_handle(emulator: Emulator) -> None:
    # A driver may end the process instead.
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    module = load(emulator, EMPTY)
    ok(emulator.cuModuleUnload(module))
    assert code(emulator.cuModuleUnload(module)) == 400
    assert code(emulator.cuModuleGetFunction(module, b"empty")) == 400


def test_no_module_is_an_invalid_handle(api: OpenApi, context: CUcontext) -> None:
    null = CUmodule(0)
    assert code(api.cuModuleUnload(null)) == 400
    assert code(api.cuModuleGetGlobal(null, b"x")) == 400
    assert code(api.cuModuleGetFunctionCount(null)) == 400
    assert code(launch(api, CUfunction(0))) == 400


def test_an_opcode_that_ptx_does_not_have_rejects_its_module(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    wrong = UNKNOWN_OPCODE.replace("alloca", "wobble")
    assert code(emulator.cuModuleLoadData(text(EMPTY, wrong))) == 218


def test_an_opcode_that_is_not_executed_rejects_its_kernel_and_no_other(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    module = load(emulator, EMPTY, UNKNOWN_OPCODE)
    result, _ = emulator.cuModuleGetFunction(module, b"unknown")
    assert int(result) == 801
    fault = emulator.last_fault
    assert isinstance(fault, UnsupportedInstruction)
    assert fault.opcode.startswith("alloca")
    assert fault.line == 7
    said = ok(emulator.cuGetErrorString(result))
    assert said is not None
    assert b"alloca" in said
    (empty,) = functions(emulator, module, "empty")
    assert code(launch(emulator, empty)) == 0
    assert ok(emulator.cuModuleGetFunctionCount(module)) == 2
    unknown = ok(emulator.cuModuleEnumerateFunctions(2, module))[1]
    assert code(launch(emulator, unknown)) == 801


def test_a_module_outlives_no_variable(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    before = ok(emulator.cuMemGetInfo())
    for _ in range(3):
        ok(emulator.cuModuleUnload(load(emulator, TRAP, VARIABLE)))
    assert ok(emulator.cuMemGetInfo()) == before


def test_a_broken_body_rejects_its_module_and_is_reported_in_the_log(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    broken = text(
        EMPTY, ".visible .entry broken() {\n .reg .b32 %r<3>;\n add.s32 %r1 %r2, %r1;\n ret; }"
    )
    options = (
        CUjit_option.CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    )
    log, library_log = bytearray(1024), bytearray(1024)
    assert code(emulator.cuModuleLoadDataEx(broken, 2, options, (log, 1024))) == 218
    given = (library_log, 1024)
    library = ok(emulator.cuLibraryLoadData(broken, options, given, 2, (), (), 0))
    assert code(emulator.cuLibraryGetKernel(library, b"broken")) == 218
    assert log == library_log
    assert isinstance(emulator.last_fault, PtxSyntaxError)
    assert emulator.last_fault.line == 7
    assert str(emulator.last_fault).encode() in log


@pytest.mark.parametrize("is_library", [False, True])
def test_the_ptx_of_a_fatbin_is_loaded_and_linked(emulator: Emulator, is_library: bool) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    image = fatbin((2, 80, b"\x7fELF"), (1, 70, text(EMPTY)))
    if is_library:
        library = ok(emulator.cuLibraryLoadData(image, (), (), 0, (), (), 0))
        module = ok(emulator.cuLibraryGetModule(library))
    else:
        module = ok(emulator.cuModuleLoadData(image))
    assert code(emulator.cuModuleGetFunction(module, b"empty")) == 0
    link = ok(emulator.cuLinkCreate(0, (), ()))
    kind = CUjitInputType.CU_JIT_INPUT_FATBINARY
    assert code(emulator.cuLinkAddData(link, kind, image, len(image), b"", 0, (), ())) == 0
    refused = fatbin((2, 80, b"\x7fELF"))
    assert code(emulator.cuModuleLoadData(refused)) == 209
    said = ok(emulator.cuGetErrorString(CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU))
    assert said is not None
    assert b"machine code for sm_80" in said


def test_an_undefined_function_rejects_its_module_and_reports_what_to_link(
    emulator: Emulator,
) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    image = text(EMPTY, ".extern .func missing();\n.func unused() { call missing; ret; }")
    result, _ = emulator.cuModuleLoadData(image)
    assert int(result) == 218
    assert isinstance(emulator.last_fault, UndefinedSymbol)
    assert emulator.last_fault.symbol == "missing"
    said = ok(emulator.cuGetErrorString(result))
    assert said is not None
    assert b"ptx.link" in said
    library = ok(emulator.cuLibraryLoadData(image, (), (), 0, (), (), 0))
    assert code(emulator.cuLibraryGetKernel(library, b"empty")) == 218


@pytest.mark.parametrize("space", ["global", "const"])
def test_an_undefined_variable_is_zero_and_reported(emulator: Emulator, space: str) -> None:
    """Measured on driver 580."""
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    image = text(EMPTY, f".extern .{space} .align 4 .b32 x[2];")
    with pytest.warns(RuntimeWarning, match="declares the variable x, and does not define it"):
        module = ok(emulator.cuModuleLoadData(image))
    address, nbytes = ok(emulator.cuModuleGetGlobal(module, b"x"))
    assert (nbytes, download(emulator, address, 2).tolist()) == (8, [0, 0])
