from __future__ import annotations

import pytest

from .process import BINDINGS, run, run_program


def test_the_bindings_work_on_the_emulator_and_find_nothing_afterwards() -> None:
    out = run_program("""
        with stand_in(2, name="first") as emulator:
            prepare()
            print(ok(driver.cuDeviceGetCount()), ok(driver.cuDeviceGetName(16, 0)).rstrip(b" \\0"))
            memory = ok(driver.cuMemAlloc(16))
            launch(kernel(b"fill"), memory, 7, 0, threads=4)
            print(read(memory, 4), type(memory).__name__, emulator.last_fault)
        print(driver.cuDeviceGetCount()[0].name, driver.cuInit(0)[0].name)
        with stand_in(3):
            ok(driver.cuInit(0))
            print(ok(driver.cuDeviceGetCount()))
    """)
    assert out.splitlines() == [
        "2 b'first'",
        "[7, 7, 7, 7] CUdeviceptr None",
        "CUDA_ERROR_DEINITIALIZED CUDA_ERROR_DEINITIALIZED",
        "3",
    ]


@pytest.mark.slow
def test_a_plain_call_holds_though_its_result_is_dropped() -> None:
    out = run_program("""
        import gc
        stand_in()
        gc.collect()
        prepare()
        import cudadrv
        print(len(cudadrv.list_devices()), ok(driver.cuDeviceGetCount()))
        try:
            stand_in()
        except cudadrv.errors.DriverSelectionError as error:
            print(error)
    """)
    assert out.splitlines() == [
        "1 1",
        "an emulator already stands in for the CUDA driver: close it first",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("error", ["KeyboardInterrupt", "MemoryError"])
def test_an_exception_at_any_line_of_a_stand_in_lets_another_one_begin(error: str) -> None:
    out = run_program(f"""
        from cudadrv.sessions.stand_in import is_standing
        from tests.at_each_line import Line, raising
        number = 0
        while True:
            line, made = Line(number, ["cudadrv/sessions/"], raising({error})), []
            try:
                line.run(lambda: made.append(stand_in()))
            except {error}:
                assert not is_standing(), line.place
            if not line.place:
                break
            for _ in made:  # a finalizer took the error
                made.pop().close()
            with stand_in():
                prepare()
            number += 1
        made.pop().close()
        print(number > 30)
    """)
    assert out == "True\n"


@pytest.mark.slow
@pytest.mark.parametrize("error", ["KeyboardInterrupt", "MemoryError"])
def test_an_exception_at_any_line_of_its_end_lets_a_stand_in_be_closed_again(error: str) -> None:
    out = run_program(f"""
        from tests.at_each_line import Line, raising
        number = 0
        while True:
            standing = stand_in()
            prepare()
            line = Line(number, ["cudadrv/sessions/"], raising({error}))
            try:
                line.run(standing.close)
            except {error}:
                standing.close()
            if not line.place:
                break
            number += 1
        print(number > 10)
    """)
    assert out == "True\n"


@pytest.mark.slow
def test_this_library_and_others_see_one_memory() -> None:
    out = run_program("""
        import cudadrv
        with stand_in():
            prepare()
            stream = cudadrv.cuda_context_for(0).default_stream
            array = stream.to_device(np.arange(4, dtype=np.uint32))
            stream.synchronize()
            launch(kernel(b"increment"), driver.CUdeviceptr(array.ptr))
            print(stream.to_host(array).tolist(), read(driver.CUdeviceptr(array.ptr), 4))
    """)
    assert out == "[1, 1, 2, 3] [1, 1, 2, 3]\n"


@pytest.mark.slow
def test_the_emulators_own_file_may_be_loaded_before() -> None:
    out = run_program("""
        from cudadrv.emulator.shared_libraries.library_files import library_folder
        library = ctypes.CDLL(str(library_folder() / "libcuda.so.1"))
        with stand_in(devices=2):
            print(library.cuInit(0))
        print(library.cuInit(0))
    """)
    assert out == "0\n4\n"


@pytest.mark.slow
def test_a_file_of_the_emulator_starts_none_without_emulate() -> None:
    out = run_program("""
        from cudadrv.emulator.shared_libraries.library_files import library_folder
        library = ctypes.CDLL(str(library_folder() / "libcuda.so.1"))
        print(library.cuInit(0), library.cuInit(0))
    """)
    assert out == "4 4\n"


@pytest.mark.slow
def test_a_driver_that_is_loaded_is_not_replaced() -> None:
    out = run_program("""
        from cudadrv.errors import DriverSelectionError
        import tempfile
        from cudadrv.emulator.shared_libraries.elf_file import elf_image
        from cudadrv.emulator.shared_libraries.library_files import this_machine
        with tempfile.NamedTemporaryFile() as file:
            name = "libcuda.so.1"
            file.write(elf_image(name, ["cuInit"], this_machine(name), result=9))
            file.flush()
            ctypes.CDLL(file.name)
        try:
            stand_in()
        except DriverSelectionError as error:
            print(error)
    """)
    assert out == (
        "libcuda.so.1 is loaded already, so that its callers have it: call "
        "cudadrv.emulator.stand_in() before anything that uses the CUDA driver\n"
    )


@pytest.mark.slow
def test_the_reason_of_a_failed_call_is_printed_once_where_its_error_is_reported() -> None:
    ended = run(
        "-c",
        BINDINGS
        + """
stand_in(2)
ok(driver.cuInit(0))
for ordinal in (-1, -1, 5):
    code, _ = driver.cuDeviceGet(ordinal)
    print(ok(driver.cuGetErrorName(code)).decode(), ok(driver.cuGetErrorString(code)).decode())
driver.cuDeviceGet(7)  # nothing reports it
""",
    )
    assert ended.status == 0, ended.err
    # As the driver, whose texts are constant.
    assert ended.out.splitlines() == ["CUDA_ERROR_INVALID_DEVICE invalid device ordinal"] * 3
    assert [line for line in ended.err.splitlines() if line.startswith("cudadrv: ")] == [
        f"cudadrv: CUDA_ERROR_INVALID_DEVICE: invalid device ordinal: {ordinal} of 2 devices"
        for ordinal in (-1, 5)
    ]


@pytest.mark.slow
def test_what_a_kernel_did_wrong_is_reported_once() -> None:
    ended = run(
        "-c",
        BINDINGS
        + """
stand_in()
prepare()
function, memory = kernel(b"misaligned"), ok(driver.cuMemAlloc(8))
print(driver.cuLaunchKernel(
    function, 1, 1, 1, 1, 1, 1, 0, 0, ((memory,), (None,)), 0)[0].name)
code = driver.cuCtxSynchronize()[0]
print(code.name, ok(driver.cuGetErrorString(code)).decode().splitlines()[0])
""",
    )
    assert ended.status == 0, ended.err
    codes = ended.out.splitlines()
    assert codes[0] == "CUDA_ERROR_MISALIGNED_ADDRESS"
    assert codes[1].startswith("CUDA_ERROR_MISALIGNED_ADDRESS ")
    assert "misaligned" in codes[1]
    assert ended.err.count("cudadrv: ") == 1
    assert "kernel misaligned" in ended.err


@pytest.mark.slow
def test_an_interrupt_ends_a_kernel_and_is_raised_where_it_was_called() -> None:
    out = run_program("""
        import os
        import signal
        os.environ["CUDADRV_EMULATOR_STEPS"] = str(10**12)
        stand_in()
        prepare()
        function = kernel(b"spins")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)
            for _ in range(1000):
                pass
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert out == "interrupted\n"


@pytest.mark.slow
@pytest.mark.parametrize("order", ["immediate", "late", "random:7"])
def test_programs_run_in_the_order_that_the_environment_requests(order: str) -> None:
    out = run_program(
        """
        with stand_in() as emulator:
            prepare()
            memory, stream = ok(driver.cuMemAlloc(4)), ok(driver.cuStreamCreate(1))
            ok(driver.cuMemsetD32(memory, 5, 1))
            ok(driver.cuStreamSynchronize(0))
            function = kernel(b"increment")
            for _ in range(3):
                launch(function, memory, stream=stream)
            ok(driver.cuStreamSynchronize(stream))
            print(emulator.order, read(memory, 1))
        """,
        {"CUDADRV_EMULATOR_ORDER": order},
    )
    assert out == f"{order} [8]\n"


@pytest.mark.slow
def test_each_threads_default_stream_is_its_own_where_the_bindings_are_configured_so() -> None:
    out = run_program(
        """
        import threading
        with stand_in():
            prepare()
            def tell():
                ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
                streams.append(ok(driver.cuStreamGetId(0)))
                all_have_one.wait()
            streams, all_have_one = [], threading.Barrier(2)
            threads = [threading.Thread(target=tell) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            print(len({*streams}), ok(driver.cuStreamGetId(1)) in streams)
        """,
        {"CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM": "1"},
    )
    assert out == "2 False\n"


@pytest.mark.slow
def test_a_function_that_is_not_emulated_is_named_once() -> None:
    ended = run(
        "-c",
        BINDINGS
        + """
stand_in()
prepare()
library = ctypes.CDLL("libcuda.so.1")
print(driver.cuTexRefCreate()[0].name, driver.cuTexRefCreate()[0].name)
print(library.cuTexRefDestroy(0), library.cuMemMapArrayAsync_ptsz(0, 0, 0))
""",
    )
    assert ended.status == 0
    assert ended.out.split() == ["CUDA_ERROR_NOT_SUPPORTED"] * 2 + ["801"] * 2
    lacks = [line.partition("lacks ")[2].partition(":")[0] for line in ended.err.splitlines()]
    assert lacks == ["cuTexRefCreate", "cuTexRefDestroy", "cuMemMapArrayAsync"]


@pytest.mark.slow
def test_copies_and_fills_of_a_thread_run_in_its_own_stream() -> None:
    out = run_program("""
        with stand_in():
            prepare()
            library, graph = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t()
            memory, count = ctypes.c_size_t(int(ok(driver.cuMemAlloc(4)))), ctypes.c_size_t(9)
            print(library.cuStreamBeginCapture_v2_ptsz(0, 0))
            print(library.cuMemsetD8_v2_ptds(memory, 5, ctypes.c_size_t(4)))
            print(library.cuStreamEndCapture(2, ctypes.byref(graph)))
            print(library.cuGraphGetNodes(graph, 0, ctypes.byref(count)), count.value)
            print(library.cuMemsetD8_v2_ptds(memory, 5, ctypes.c_size_t(4)),
                  read(driver.CUdeviceptr(memory.value), 1))
    """)
    assert out.splitlines() == ["0", "0", "0", "0 1", "0 [84215045]"]


@pytest.mark.slow
def test_a_forked_child_is_rejected_as_by_the_driver() -> None:
    out = run_program("""
        import os
        stand_in()
        prepare()
        child = os.fork()
        if not child:
            os._exit(int(driver.cuMemAlloc(4)[0]))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert out == "3\n"


@pytest.mark.slow
def test_calls_of_an_uninitialised_driver_return_not_initialized() -> None:
    out = run_program("""
        stand_in(3)
        print(driver.cuDeviceGetCount()[0].name)
        ok(driver.cuInit(0))
        print(ok(driver.cuDeviceGetCount()))
    """)
    assert out == "CUDA_ERROR_NOT_INITIALIZED\n3\n"


@pytest.mark.slow
def test_a_forked_child_uses_what_its_parent_has_not_used_yet() -> None:
    out = run_program("""
        import os
        import cudadrv
        stand_in()
        def use():
            prepare()
            memory = ok(driver.cuMemAlloc(16))
            launch(kernel(b"fill"), memory, 7, 0, threads=4)
            array = cudadrv.cuda_context_for(0).default_stream.to_device(np.arange(2))
            return read(memory, 4), cudadrv.cuda_context_for(0).default_stream.to_host(array)
        child = os.fork()
        if not child:
            print(*use(), flush=True)
            os._exit(4)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), *use())
    """)
    assert out == "[7, 7, 7, 7] [0 1]\n4 [7, 7, 7, 7] [0 1]\n"


@pytest.mark.slow
def test_no_second_emulator_comes_between_though_nothing_is_used_yet() -> None:
    out = run_program("""
        import cudadrv.emulator
        stand_in()
        try:
            cudadrv.emulator.use()
        except cudadrv.errors.DriverSelectionError as error:
            print(str(error).splitlines()[0])
    """)
    assert out == (
        "cudadrv.emulator.use() came after the first driver call, which chose the emulator\n"
    )


@pytest.mark.slow
def test_objects_that_end_with_the_interpreter_still_reach_the_emulator() -> None:
    ended = run(
        "-c",
        BINDINGS
        + """
stand_in()
prepare()
class Held:
    def __init__(self):
        self.memory, self.free, self.sys = ok(driver.cuMemAlloc(64)), driver.cuMemFree, sys
    def __del__(self):
        print(self.free(self.memory)[0] == 0, self.sys.is_finalizing(), flush=True)
kept = Held()
""",
    )
    assert (ended.status, ended.out, ended.err) == (0, "True True\n", "")


@pytest.mark.slow
def test_functions_report_the_end_without_python() -> None:
    out = run_program("""
        with stand_in():
            prepare()
            library = ctypes.CDLL("libcuda.so.1")
            print(library.cuCtxSynchronize())
            library.cudadrv_end()
            print(library.cuCtxSynchronize(), library.cuMemFree_v2(ctypes.c_size_t(7)))
            print(library.cuDriverGetVersion(None), library.cuMemAlloc_v2(None, 8))
    """)
    assert out == "0\n0 0\n4 4\n"


@pytest.mark.slow
def test_a_thread_that_stays_cannot_hold_up_the_end() -> None:
    ended = run(
        "-c",
        BINDINGS
        + """
import threading
stand_in()
prepare()
threading.Thread(target=threading.Event().wait, daemon=True).start()
class Held:
    def __init__(self):
        self.memory, self.free = ok(driver.cuMemAlloc(64)), driver.cuMemFree
    def __del__(self):
        print(int(self.free(self.memory)[0]), flush=True)
kept = Held()
""",
    )
    assert (ended.status, ended.out, ended.err) == (0, "0\n", "")


@pytest.mark.slow
def test_a_table_that_is_in_no_manual_is_named_once() -> None:
    ended = run(
        "-c",
        BINDINGS
        + """
stand_in()
prepare()
library, table = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t(9)
for first in (1, 1, 2):
    print(library.cuGetExportTable(ctypes.byref(table), bytes([first, *range(1, 16)])), table.value)
""",
    )
    assert (ended.status, ended.out) == (0, "500 0\n" * 3)
    assert [
        line.partition("functions ")[2].partition(",")[0] for line in ended.err.splitlines()
    ] == [
        "01010203-0405-0607-0809-0a0b0c0d0e0f",
        "02010203-0405-0607-0809-0a0b0c0d0e0f",
    ]
