from __future__ import annotations

import ctypes
import inspect
import struct

import pytest

from cudadrv.driver.functions import FunctionForm, forms, read_table
from cudadrv.emulator import Emulator
from cudadrv.emulator.calls.call import value_count
from cudadrv.emulator.shared_libraries.libcuda import HANDLERS
from cudadrv.emulator.shared_libraries.shared_object import MACHINES, elf_image
from cudadrv.emulator.shared_libraries.signature import Signature, signature

FORMS = {form.symbol: form for form in forms() if form.name != "cuGetProcAddress"}
PLAIN = [form for symbol, form in FORMS.items() if symbol not in HANDLERS]


def parsed(line: str) -> Signature:
    return signature(*read_table(line))


@pytest.mark.parametrize("form", PLAIN, ids=lambda form: form.symbol)
def test_the_emulator_takes_and_gives_what_a_line_of_the_table_passes_on(
    form: FunctionForm,
) -> None:
    function = getattr(Emulator, form.name)
    results = sum(word.startswith(">") for word in form.parameters)
    taken = inspect.signature(function).parameters
    assert len(taken) - 1 == len(form.parameters) - results
    assert value_count(function) == results


@pytest.mark.parametrize("symbol", HANDLERS)
def test_a_handler_takes_the_emulator_and_the_parameters_of_its_line(symbol: str) -> None:
    taken = list(inspect.signature(HANDLERS[symbol]).parameters.values())
    words = FORMS[symbol].parameters
    if taken[-1].kind is inspect.Parameter.VAR_POSITIONAL:
        assert len(words) >= len(taken) - 2
    else:
        assert len(taken) - 1 == len(words)


def test_no_function_is_there_twice() -> None:
    symbols = [form.symbol for form in forms()]
    assert len(symbols) == len(set(symbols))


def test_a_structure_is_read_where_the_caller_has_it() -> None:
    form = parsed("cuMemPoolCreate 11020 >size *CUmemPoolProps")
    assert form.parameters[1].read(0, per_thread=False) is None
    memory = ctypes.create_string_buffer(256)
    ctypes.c_uint.from_buffer(memory).value = 1
    props = form.parameters[1].read(ctypes.addressof(memory), per_thread=False)
    assert int(getattr(props, "allocType")) == 1  # noqa: B009  # its type is the bindings'


def test_a_default_stream_is_the_threads_own_only_in_its_variant() -> None:
    (stream,) = parsed("cuStreamSynchronize 2000 stream").parameters
    assert [stream.read(0, per_thread=p) for p in (False, True)] == [0, 2]
    assert [stream.read(7, per_thread=p) for p in (False, True)] == [7, 7]


def test_jumps_of_64_bit_arm_load_their_slots() -> None:
    image = elf_image("libcuda.so.1", ["cuInit", "cuMemAlloc_v2"], MACHINES["aarch64"])
    (phoff,) = struct.unpack_from("<Q", image, 32)
    dynamic = struct.unpack_from("<IIQQQQQQ", image, phoff + 2 * 56)
    slots = dynamic[2] + dynamic[5]
    at = (64 + 4 * 56 + 15) // 16 * 16
    for function in range(2):
        load, branch = struct.unpack_from("<II", image, at + 16 * function)
        assert load & 0xFF00001F == 0x58000010  # ldr x16, literal
        assert at + 16 * function + 4 * (load >> 5 & 0x7FFFF) == slots + 8 * function
        assert branch == 0xD61F0200  # br x16
    assert struct.unpack_from("<II", image, at + 32) == (0x52800080, 0xD65F03C0)


def test_callers_of_c_reach_every_function_of_the_emulator() -> None:
    reached = {form.name for form in forms()}
    assert {name for name in dir(Emulator) if name.startswith("cu")} - reached == set()
