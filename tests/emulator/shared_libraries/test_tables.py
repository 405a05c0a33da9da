from __future__ import annotations

import ctypes
import inspect
import struct

import pytest

from cudadrv.emulator import Emulator
from cudadrv.emulator.calls.tensor_map import FUNCTIONS
from cudadrv.emulator.shared_libraries.driver_table import PLAIN
from cudadrv.emulator.shared_libraries.graphs import GRAPHS
from cudadrv.emulator.shared_libraries.green_contexts import GREEN_CONTEXTS
from cudadrv.emulator.shared_libraries.handlers import Handler
from cudadrv.emulator.shared_libraries.launching import LAUNCHING
from cudadrv.emulator.shared_libraries.loading import LOADING
from cudadrv.emulator.shared_libraries.memory import MEMORY
from cudadrv.emulator.shared_libraries.queries import QUERIES
from cudadrv.emulator.shared_libraries.shared_object import MACHINES, elf_image
from cudadrv.emulator.shared_libraries.signature import Signature, signature

TABLES = (LAUNCHING, LOADING, QUERIES, MEMORY, GRAPHS, GREEN_CONTEXTS)
SPECIAL: dict[Signature, Handler] = {
    signature(f"{name} {words}"): handler for name, (words, handler) in FUNCTIONS.items()
}
SPECIAL |= {s: h for table in TABLES for s, h in table.by_signature.items()}


@pytest.mark.parametrize("form", PLAIN, ids=lambda form: form.name)
def test_the_emulator_takes_what_a_line_of_the_table_passes_on(form: Signature) -> None:
    taken = inspect.signature(getattr(Emulator, form.base_name)).parameters
    assert len(taken) - 1 == sum(not p.is_result for p in form.parameters)


@pytest.mark.parametrize("form", SPECIAL, ids=lambda form: form.name)
def test_a_handler_takes_the_emulator_and_the_parameters_of_its_line(form: Signature) -> None:
    taken = list(inspect.signature(SPECIAL[form]).parameters.values())
    if taken[-1].kind is inspect.Parameter.VAR_POSITIONAL:
        assert len(form.parameters) >= len(taken) - 2
    else:
        assert len(taken) - 1 == len(form.parameters)


def test_no_function_is_there_twice() -> None:
    names = [form.name for form in (*PLAIN, *SPECIAL)]
    assert len(names) == len(set(names))


def test_a_structure_is_read_where_the_caller_has_it() -> None:
    form = signature("cuMemPoolCreate 11020 >size *CUmemPoolProps")
    assert form.parameters[1].read(0, per_thread=False) is None
    memory = ctypes.create_string_buffer(256)
    ctypes.c_uint.from_buffer(memory).value = 1
    props = form.parameters[1].read(ctypes.addressof(memory), per_thread=False)
    assert int(getattr(props, "allocType")) == 1  # noqa: B009  # its type is the bindings'


def test_a_default_stream_is_the_threads_own_only_in_its_variant() -> None:
    (stream,) = signature("cuStreamSynchronize 2000 stream").parameters
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
    reached = {form.base_name for form in (*PLAIN, *SPECIAL)}
    reached.add("cuGraphInstantiate")  # in C by cuGraphInstantiateWithFlags and ...WithParams
    reached.add("cuGetProcAddress")  # which the library answers by itself
    assert {name for name in dir(Emulator) if name.startswith("cu")} - reached == set()
