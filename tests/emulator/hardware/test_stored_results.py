"""The emulator gives the stored results of an H200, by form; every operation has a row."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import cudadrv
import ptx
from campaigns.hardware import in_orders, on_emulator
from campaigns.hardware.case import Case, case_of
from campaigns.hardware.comparison import allowed_for, differences
from campaigns.hardware.contended import contended_case
from campaigns.hardware.coverage import (
    NOT_PTX,
    PAGE,
    Operation,
    all_operations,
    measured_operations,
    needs_newer,
    page,
    reason_of,
    stored_rows,
)
from campaigns.hardware.forms import forms
from campaigns.hardware.kernels import kernel_cases
from campaigns.hardware.programs import program_case
from campaigns.hardware.running import run_case
from campaigns.hardware.stored import FORMS, KERNELS, PROGRAMS, Measured
from campaigns.hardware.warpgroup import warpgroup_case
from cudadrv import emulator
from cudadrv.errors import InvalidPTXError

MOST_BYTES = 5_000_000


def unexplained(measured: Measured, every: int = 1) -> list[str]:
    """Run stored cases on the emulator; return what differs and has no explanation."""
    chosen = list(zip(measured.cases, measured.results, strict=True))[::every]
    with emulator.session(devices=[emulator.H200]):
        context = cudadrv.cuda_context_for(0)
        return [
            str(difference)
            for case, gpu in chosen
            if not case.name.startswith("contended")
            for difference in differences(case, run_case(context, case), gpu)
        ]


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.slow)], ids=["few", "all"])
def test_each_form_gives_the_bits_of_the_gpu_or_differs_for_a_known_reason(every: int) -> None:
    assert unexplained(Measured.load(FORMS), every) == []


@pytest.mark.parametrize("every", [32, pytest.param(1, marks=pytest.mark.slow)], ids=["few", "all"])
def test_products_and_tensor_copies_of_every_shape_give_the_bits_of_the_gpu(every: int) -> None:
    assert unexplained(Measured.load(KERNELS), every) == []


@pytest.mark.parametrize("every", [40, pytest.param(1, marks=pytest.mark.slow)], ids=["few", "all"])
def test_random_programs_give_the_bits_of_the_gpu(every: int) -> None:
    assert unexplained(Measured.load(PROGRAMS), every) == []


def test_every_operation_has_a_row_measured_or_not_measured() -> None:
    measured, absent = stored_rows()
    hint = "write a form and measure it, then: python -m campaigns.hardware.coverage --write"
    assert all_operations() - measured - absent == set(), hint
    assert (measured | absent) - all_operations() == set(), hint
    assert measured & absent == set()
    assert len(measured) > 1000


@pytest.mark.slow
def test_rows_say_measured_where_a_stored_result_has_the_operation() -> None:
    assert stored_rows()[0] == measured_operations()


def test_the_page_lists_the_operations_that_were_never_compared() -> None:
    text = PAGE.read_text()
    assert page(text) == text, "python -m campaigns.hardware.coverage --write"


def test_every_operation_without_a_result_has_a_reason() -> None:
    with pytest.raises(KeyError, match=r"measure add\.f32, or add why"):
        reason_of(("add", "f32"))
    absent = {each for each in stored_rows()[1] if not needs_newer(each)}
    assert all(map(reason_of, absent))


def test_operations_that_no_ptx_has_are_rejected() -> None:
    texts = {
        **{("cvt", f"bf16.{t}"): f"cvt.rn.bf16.{t} %h0, %h1;" for t in ("s8", "u8")},
        **{("cvt", f"{t}.bf16"): f"cvt.rni.{t}.bf16 %h0, %h1;" for t in ("s8", "u8")},
        ("set", "f16.bf16"): "set.lt.f16.bf16 %h0, %h1, %h1;",
        **{("set", f"f32.{t}"): f"set.lt.f32.{t} %r0, %h1, %h1;" for t in ("f16", "bf16")},
    }
    fields = (
        "box_dim", "element_stride", "elemtype", "fill_mode", "global_dim", "rank",
        "interleave_layout", "swizzle_mode", "global_address", "global_stride",
    )  # fmt: skip
    for field in fields:
        name, t = f"tensormap.replace.tile.{field}", "b32" if "global_" in field else "b64"
        t = "b64" if field == "global_dim" else t
        ordinal = "0, " if field.endswith(("dim", "stride")) else ""
        value = "%d1" if t == "b64" else "%r1"
        texts[name, t] = f"{name}.shared::cta.b1024.{t} [%d0], {ordinal}{value};"
    absent: set[Operation] = {each for each in stored_rows()[1] if not needs_newer(each)}
    assert texts.keys() == {each for each in absent if reason_of(each) == NOT_PTX}
    accepted = []
    with emulator.session(devices=[emulator.H200]):
        context = cudadrv.cuda_context_for(0)
        for text in texts.values():
            registers = ".reg .b16 %h<2>; .reg .b32 %r<2>; .reg .b64 %d<2>;"
            head = ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry K()\n"
            image = ptx.Image.from_ptx(f"{head}{{\n{registers}\n{text}\nret;\n}}\n")
            try:
                context.load_module(image)
                accepted.append(text)
            except InvalidPTXError:
                pass
    assert accepted == []


def test_stored_results_take_at_most_five_megabytes() -> None:
    folder = Path(FORMS).parent
    assert sum(path.stat().st_size for path in folder.glob("*.xz")) <= MOST_BYTES


def test_every_form_is_stored_and_has_its_own_name() -> None:
    stored = {name for case in Measured.load(FORMS).cases for name in case.forms}
    assert {form.name for form in forms()} - stored == set(), "measure the new forms"


def test_every_kernel_is_stored_as_it_is_made() -> None:
    stored = {case.name: case for case in Measured.load(KERNELS).cases}
    assert stored == kernel_cases(), "measure the new kernels"


def test_a_changed_bit_is_reported_with_both_values() -> None:
    form = next(form for form in forms() if form.name == "add.u32")
    case = case_of("one", [form])
    found = on_emulator(case)
    assert found is not None
    (result,) = (each.copy() for each in found)
    result[16] ^= 1
    (difference,) = differences(case, found, [result])
    assert (difference.name, difference.count, difference.threads) == ("add.u32", 1, (2,))
    assert int(difference.emulator[0], 16) ^ int(difference.gpu[0], 16) == 1


@pytest.mark.parametrize(
    ("form", "off", "is_allowed"),
    [
        ("rcp.approx.f32", 1, True),
        ("rcp.approx.f32", 3, False),
        ("tanh.approx.f16", 1, True),
        ("tanh.approx.f16", 2, False),
        ("rcp.rn.f32", 1, False),
    ],
)
def test_an_approximate_result_may_differ_by_its_bound(
    form: str, off: int, is_allowed: bool
) -> None:
    row = np.zeros((256, 8), np.uint8)
    row[:, :2] = np.frombuffer(np.uint16(0x3C10).tobytes(), np.uint8)
    row[:, 2:4] = row[:, :2] if form.endswith("f32") else 0
    other = row.copy()
    other[0, 0] += off
    case = Case("one", "", (), (form,))
    found = list(differences(case, [row.ravel()], [other.ravel()]))
    assert (found == []) is is_allowed
    assert (allowed_for(form) is None) is form.startswith("rcp.rn")


def test_results_that_depend_on_the_order_are_compared_with_their_spread() -> None:
    case = contended_case(3)
    first, *others, last = in_orders(case, [*range(4), 99])
    assert any((a != b).any() for a, b in zip(first, last, strict=True))
    assert list(differences(case, first, last, others)) == []
    wrong = [each.copy() for each in last]
    for result in wrong:  # the last value of the cell, of one thread
        result.reshape(-1, 2, 8)[7, 1, :8] ^= 0x55
    found = {each.name: each.threads for each in differences(case, first, wrong, others)}
    exact = [name for name in case.forms if not name.endswith(("exch.b32", "cas.b32"))]
    assert dict.fromkeys(exact, (7,)).items() <= found.items()


@pytest.mark.slow
def test_atomic_operations_on_one_cell_give_what_some_order_gives_or_lie_in_the_spread() -> None:
    stored = Measured.load(PROGRAMS)
    found = [
        str(difference)
        for case, gpu in zip(stored.cases, stored.results, strict=True)
        if case.name.startswith("contended")
        for orders in [in_orders(case, range(16))]
        for difference in differences(case, orders[0], gpu, orders[1:])
    ]
    assert found == []
    assert any(case.name.startswith("contended") for case in stored.cases)


def test_programs_are_the_same_for_a_seed_and_have_no_finding() -> None:
    assert program_case(3, 7) == program_case(3, 7)
    assert program_case(3, 7).ptx != program_case(3, 8).ptx
    assert warpgroup_case(3, 7) == warpgroup_case(3, 7)
    for case in (program_case(0, 7), warpgroup_case(0, 7)):
        assert on_emulator(case, ("race", "init", "bounds")) is not None


def test_programs_guard_nothing_that_the_assembler_executes_without_its_guard() -> None:
    unguarded = re.compile(r"@!?%p\d (?:testp|set)\.|@!?%p\d v(?:add|sub)4\.u32\.u32\.u32\.add ")
    texts = [program_case(number, 2).ptx for number in range(80)]
    assert [found for text in texts for found in unguarded.findall(text)] == []
    assert any(re.search(r"v(?:add|sub)4\.u32\.u32\.u32\.add ", text) for text in texts)
    assert any("testp." in text for text in texts)
