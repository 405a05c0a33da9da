"""Accesses are held to the array or variable that their address was made from, where asked."""

from __future__ import annotations

import functools
import pathlib
import re
import struct

import numpy as np
import pytest

import ptx
from ptx.emulate.model.errors import OutOfBounds
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.rows import all_rows

SOURCE = pathlib.Path(__file__).with_name("bounds.cu")
CHECKED = Limits(checks={"bounds"})
WRONG = {
    "into_another_array": (
        128,
        "256 bytes past the end of 256 bytes at .* .a., which parameter 0",
    ),
    "by_an_index_that_was_read": (128, "parameter 0 points into"),
    "in_a_loop": (128, "parameter 0 points into"),
    "by_a_pointer_that_moves": (128, "parameter 0 points into"),
    "by_an_atomic": (128, "parameter 0 points into"),
    "by_a_vector": (128, "parameter 0 points into"),
    "in_the_end_of_a_range": (128, "parameter 0 points into"),
    "in_a_shared_array": (32, "past the end of the variable [st]"),
    "at_a_row_of_shared_memory": (8, "past the end of the variable tile"),
    "in_dynamic_shared_memory": (32, "past the end of the variable s"),
    "in_a_variable_of_the_module": (128, "past the end of the variable table"),
    "in_constant_memory": (64, "past the end of the variable weights"),
    "in_local_memory": (2, "past the end of the variable __local_depot"),
    "before_the_beginning": (128, "parameter 1 points into"),
}
RIGHT = (
    "one_of_two_arrays", "either_array_by_thread", "swapped_in_a_loop",
    "by_the_difference_of_pointers", "aligned_pointers", "generic_pointers",
    "two_parts_of_dynamic_memory", "pointers_in_memory", "a_local_array", "nothing_at_all",
)  # fmt: skip
TARGETS = ("compute_90", "compute_100")


@functools.cache
def text(target: str, source: pathlib.Path = SOURCE, *, debug: bool = False) -> str:
    options = ptx.CompileOptions(target=ptx.Target.ptx(target), lineinfo=not debug, debug=debug)
    found = ptx.compile(source.read_text(), options, name=source.name).ptx
    assert found is not None
    return found


def arrays(runner: KernelRunner) -> list[int]:
    return [runner.put(np.zeros(64, np.int32), origin=name) for name in "abc"]


def launch(target: str, name: str, by: int, limits: Limits = CHECKED) -> None:
    runner = KernelRunner(text(target))
    runner.launch(name, 2, 32, *arrays(runner), by, 64, shared=256, limits=limits)


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", WRONG)
def test_an_access_beyond_its_array_is_a_fault(name: str, target: str) -> None:
    launch(target, name, 0)
    by, words = WRONG[name]
    with pytest.raises(OutOfBounds, match=words) as caught:
        launch(target, name, by)
    assert caught.value.where.source_file is not None
    assert caught.value.where.source_file.endswith("bounds.cu")


@all_rows
@pytest.mark.parametrize("name", [n for n in WRONG if n != "in_constant_memory"])
def test_without_the_check_another_array_is_as_good(name: str) -> None:
    launch("compute_90", name, WRONG[name][0], Limits())


@all_rows
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_is_not_reported(name: str, target: str) -> None:
    launch(target, name, 0)


@pytest.mark.parametrize(
    ("target", "debug"),
    [
        pytest.param("compute_80", False, marks=pytest.mark.slow),
        pytest.param("compute_90", True, marks=pytest.mark.slow),
        ("compute_100", False),
        pytest.param("compute_120", False, marks=pytest.mark.slow),
    ],
)
def test_usual_code_is_not_reported_however_it_is_compiled(target: str, debug: bool) -> None:
    source = SOURCE.with_name("within_bounds.cu")
    runner = KernelRunner(text(target, source, debug=debug))
    checked = Limits(checks={"bounds"}, check_synchronisation=True)
    names = re.findall(r"KERNEL\((\w+)\) \{", source.read_text())
    assert len(names) > 20
    for name in names:
        runner.launch(name, 2, 32, *arrays(runner), 0, 64, limits=checked)


@pytest.mark.parametrize("target", TARGETS)
def test_pointers_in_structs_are_followed(target: str) -> None:
    runner = KernelRunner(text(target))
    a, b, _ = arrays(runner)
    both = struct.pack("<QQi4x", a, b, 64)
    runner.launch("in_a_struct", 2, 32, both, 0, limits=CHECKED)
    with pytest.raises(OutOfBounds, match="parameter 0 points into"):
        runner.launch("in_a_struct", 2, 32, both, 128, limits=CHECKED)
    runner.launch("from_begin_to_end", 2, 32, b, b + 256, both, limits=CHECKED)


def test_an_array_of_another_launch_is_not_stored() -> None:
    runner = KernelRunner(text("compute_90"))
    a, b, c = arrays(runner)
    for first, second in ((a, b), (b, a), (a, b)):
        runner.launch("in_a_loop", 2, 32, first, second, c, 0, 64, limits=CHECKED)
        with pytest.raises(OutOfBounds):
            runner.launch("in_a_loop", 2, 32, first, second, c, 128, 64, limits=CHECKED)
    runner.launch("in_a_loop", 2, 32, a, b, c, 128, 64)


def test_accesses_of_few_threads_stay_in_their_variable_after_many_repetitions() -> None:
    # The index grows by one in each 64 steps: after 256 it is beyond `s`, in `t`.
    body = """.reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .pred %p<2>;
        ld.param.u64 %rd1, [out]; ld.param.u32 %r5, [steps]; mov.u32 %r1, s; mov.u32 %r6, t;
        mov.u32 %r2, 0; st.shared.u32 [%r6], %r2;
        LOOP: shr.u32 %r3, %r2, 6; shl.b32 %r4, %r3, 2; add.u32 %r7, %r4, %r1;
        st.shared.u32 [%r7], %r2; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r5; @%p1 bra LOOP;
        st.global.u32 [%rd1], %r2; ret;"""
    variables = ".shared .align 16 .b32 s[4]; .shared .align 16 .b32 t[4];"
    code = ptx_text(body, ".param .u64 out, .param .u32 steps", before=variables)
    for steps, is_wrong in ((256, False), (257, True)):
        runner = KernelRunner(code, 1 << 20)
        out = runner.put(np.zeros(1, np.uint32))
        for _ in range(3):
            if is_wrong:
                with pytest.raises(OutOfBounds, match="past the end of the variable s"):
                    runner.launch("k", 1, 1, out, steps, limits=CHECKED)
            else:
                runner.launch("k", 1, 1, out, steps, limits=CHECKED)
