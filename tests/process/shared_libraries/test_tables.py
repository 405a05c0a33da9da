from __future__ import annotations

import ctypes
import importlib.util
import inspect
import re
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest

from cudadrv.driver.functions import FunctionForm, forms, read_table, without_version
from cudadrv.emulator import Emulator
from cudadrv.emulator.call_error import CallError
from cudadrv.emulator.calls.call import value_count
from cudadrv.emulator.shared_libraries.elf_file import HOOKS, MACHINES, elf_image
from cudadrv.emulator.shared_libraries.libcuda import HANDLERS
from cudadrv.emulator.shared_libraries.signature import Signature, signature
from tests.rows import all_rows

FORMS = {
    form.symbol: form
    for form in forms()
    if form.name != "cuGetProcAddress" and "absent" not in form.flags
}
PLAIN = [form for symbol, form in FORMS.items() if symbol not in HANDLERS]


def parsed(line: str) -> Signature:
    return signature(*read_table(line))


@all_rows
@pytest.mark.parametrize("form", PLAIN, ids=lambda form: form.symbol)
def test_the_emulator_accepts_and_returns_what_a_line_of_the_table_passes_on(
    form: FunctionForm,
) -> None:
    function = getattr(Emulator, form.name)
    results = sum(word.startswith(">") for word in form.parameters)
    taken = inspect.signature(function).parameters
    assert len(taken) - 1 == len(form.parameters) - results
    assert value_count(function) == results


@all_rows
@pytest.mark.parametrize("symbol", HANDLERS)
def test_a_handler_has_the_emulator_and_the_parameters_of_its_line(symbol: str) -> None:
    taken = list(inspect.signature(HANDLERS[symbol]).parameters.values())
    words = FORMS[symbol].parameters
    if taken[-1].kind is inspect.Parameter.VAR_POSITIONAL:
        assert len(words) >= len(taken) - 2
    else:
        assert len(taken) - 1 == len(words)


def test_no_function_is_there_twice() -> None:
    symbols = [form.symbol for form in forms()]
    assert len(symbols) == len(set(symbols))


def exported() -> set[str]:
    return {symbol for form in forms() for symbol in (form.symbol, form.per_thread) if symbol}


def test_every_function_of_cuda_h_is_exported_under_every_name() -> None:
    found = importlib.util.find_spec("nvidia")
    places = [] if found is None else list(found.submodule_search_locations or ())
    headers = [path for place in places for path in Path(place).glob("cu*/include/cuda.h")]
    if not headers:
        pytest.skip("needs cuda.h of nvidia-cuda-runtime")
    text = headers[0].read_text()
    declared = set(re.findall(r"CUresult CUDAAPI\s+(cu\w+)\(", text))
    macros = re.findall(r"#define (cu\w+)\s+(?:(__CUDA_API_PT[DS][SZ])\((\w+)\)|(cu\w+))", text)
    named = {
        name
        for _, variant, own, plain in macros
        for name in ((own, own + variant[10:].lower()) if variant else (plain,))
    }
    assert len(declared | named) > 600
    inline = {"cuGetProcAddress_v2_ptsz"}  # a function of the header
    assert (declared | named) - exported() == inline


def test_every_function_of_the_bindings_is_exported() -> None:
    from cuda.bindings import driver

    names = {name for name in dir(driver) if re.match(r"cu[A-Z]", name)}
    functions = {name for name in names if not isinstance(getattr(driver, name), type)}
    others = {name for name in functions if re.search("GL|E[Gg][Ll]|VDPAU", name)}  # other headers
    assert len(functions) > 300
    known = {name for symbol in exported() for name in (symbol, without_version(symbol))}
    assert functions - others - known == set()


def test_a_structure_is_read_where_the_caller_has_it() -> None:
    form = parsed("cuMemPoolCreate 11020 >size *CUmemPoolProps")
    assert form.parameters[1].read((0, 0), 1, per_thread=False) is None
    memory = ctypes.create_string_buffer(256)
    ctypes.c_uint.from_buffer(memory).value = 1
    props = form.parameters[1].read((0, ctypes.addressof(memory)), 1, per_thread=False)
    assert int(getattr(props, "allocType")) == 1  # noqa: B009  # its type is the bindings'


def test_a_default_stream_is_the_threads_own_only_in_its_variant() -> None:
    (stream,) = parsed("cuStreamSynchronize 2000 stream").parameters
    assert [stream.read((0,), 0, per_thread=p) for p in (False, True)] == [0, 2]
    assert [stream.read((7,), 0, per_thread=p) for p in (False, True)] == [7, 7]


def test_an_array_has_as_many_elements_as_the_parameter_that_counts_them() -> None:
    handles = (ctypes.c_size_t * 3)(5, 6, 7)
    numbers = (ctypes.c_int * 6)(1, 0, 3, 1, 1, 0)
    form = parsed("cuX 12000 size[2] access[3] size uint location")
    arguments = (ctypes.addressof(handles), ctypes.addressof(numbers), 3, 2, 2 | 7 << 32)
    read = [p.read(arguments, at, per_thread=False) for at, p in enumerate(form.parameters)]
    first, second = (SimpleNamespace(type=1, id=device) for device in (0, 1))
    assert read[0] == [5, 6, 7]
    assert read[1] == [
        SimpleNamespace(location=first, flags=3),
        SimpleNamespace(location=second, flags=0),
    ]
    assert read[2:] == [3, 2, SimpleNamespace(type=2, id=7)]
    with pytest.raises(CallError, match="is no array of 2 elements"):
        form.parameters[1].read((0, 0, 0, 2, 0), 1, per_thread=False)


def test_functions_of_64_bit_arm_call_by_the_table_or_jump_to_the_result() -> None:
    image = elf_image("libcuda.so.1", ["cuInit", "cuMemAlloc_v2"], MACHINES["aarch64"], result=9)
    (phoff,) = struct.unpack_from("<Q", image, 32)
    dynamic = struct.unpack_from("<IIQQQQQQ", image, phoff + 2 * 56)
    table = dynamic[2] + dynamic[5]
    at = (64 + 4 * 56 + 31) // 32 * 32
    answer = at + 4 * 32
    common = answer + 32
    assert struct.unpack_from("<II", image, answer) == (0x52800120, 0xD65F03C0)
    for function in range(2):
        place = at + 32 * function
        offset, branch = struct.unpack_from("<II", image, place)
        assert offset == 0x52800010 | 8 * (len(HOOKS) + function) << 5  # movz w16
        assert branch == 0x14000000 | (common - place - 4) // 4  # b common
    load, skip, entry = struct.unpack_from("<III", image, common)
    assert load & 0xFF00001F == 0x58000011  # ldr x17, literal
    assert common + 4 * (load >> 5 & 0x7FFFF) == table
    assert skip & 0xFF00001F == 0xB4000011  # cbz x17, label
    assert common + 4 + 4 * ((skip >> 5 & 0x7FFFF) - (1 << 19)) == answer
    assert entry == 0xF8706A30  # ldr x16, [x17, x16]
    address, *rest = struct.unpack_from("<IIII", image, at + 2 * 32)
    assert address & 0x9F00001F == 0x10000000  # adr x0, label
    assert at + 2 * 32 + ((address >> 5 & 0x7FFFF) << 2 | address >> 29 & 3) == table
    assert rest == [0xF9400401, 0xF9000001, 0xD65F03C0]  # ldr x1, [x0, 8]; str x1, [x0]; ret


def test_callers_of_c_reach_every_function_of_the_emulator() -> None:
    reached = {form.name for form in forms() if "absent" not in form.flags}
    assert {name for name in dir(Emulator) if name.startswith("cu")} - reached == set()
