"""Green contexts as libraries in C make them, by the addresses of the functions."""

from __future__ import annotations

import textwrap

import pytest

from .process import run_program

_C = """
import struct
import ctypes as c

def library():
    prepare()
    return c.CDLL("libcuda.so.1")

def function(cuda, name, version=12050):
    found, status = c.c_void_p(), c.c_int()
    given = name.encode(), c.byref(found), version, c.c_uint64(0), c.byref(status)
    return cuda.cuGetProcAddress_v2(*given), found.value, status.value

def of(cuda, name, *kinds):
    code, address, status = function(cuda, name)
    assert (code, status) == (0, 0), name
    return c.CFUNCTYPE(c.c_int, *kinds)(address)

size, uint, int_ = c.c_size_t, c.c_uint, c.c_int

def resources(count=1):
    return c.create_string_buffer(144 * count)

def sms(resource, at=0):
    # CUdevResource: type, 92 bytes, then how many multiprocessors.
    kind, number = struct.unpack_from("<i92xI", resource, 144 * at)
    return kind, number

class Green:
    def __init__(self, cuda):
        self.of_device = of(cuda, "cuDeviceGetDevResource", int_, c.c_char_p, int_)
        self.of_context = of(cuda, "cuCtxGetDevResource", size, c.c_char_p, int_)
        self.of_green = of(cuda, "cuGreenCtxGetDevResource", size, c.c_char_p, int_)
        self.split = of(cuda, "cuDevSmResourceSplitByCount", c.c_char_p, c.c_void_p, c.c_char_p,
                        c.c_char_p, uint, uint)
        self.describe = of(cuda, "cuDevResourceGenerateDesc", c.c_void_p, c.c_char_p, uint)
        self.create = of(cuda, "cuGreenCtxCreate", c.c_void_p, size, int_, uint)
        self.destroy = of(cuda, "cuGreenCtxDestroy", size)
        self.context = of(cuda, "cuCtxFromGreenCtx", c.c_void_p, size)
        self.stream = of(cuda, "cuGreenCtxStreamCreate", c.c_void_p, size, uint, int_)
        self.contexts = of(cuda, "cuStreamGetCtx", size, c.c_void_p, c.c_void_p)

def made(function, *given):
    result = size()
    code = function(c.byref(result), *given)
    assert code == 0, code
    return result.value
"""


def _told(program: str) -> list[str]:
    return run_program(_C + textwrap.dedent(program)).splitlines()


@pytest.mark.slow
def test_a_kernel_runs_in_a_green_context_that_c_made() -> None:
    assert _told("""
        with stand_in():
            cuda = library()
            green = Green(cuda)
            whole, parts, rest, count = resources(), resources(2), resources(), uint(2)
            assert green.of_device(0, whole, 1) == 0
            assert green.split(parts, c.byref(count), whole, rest, 0, 8) == 0
            total = sms(whole)[1]
            print(sms(whole)[0], count.value, sms(parts), sms(parts, 1), total - sms(rest)[1])
            handle = made(green.create, made(green.describe, parts, 1), 0, 1)
            found = resources()
            assert green.of_green(handle, found, 1) == 0
            context = made(green.context, handle)
            other = resources()
            assert green.of_context(context, other, 1) == 0
            print(sms(found), sms(other))

            stream = made(green.stream, handle, 1, 0)
            regular, of_stream = size(), size()
            assert green.contexts(stream, c.byref(regular), c.byref(of_stream)) == 0
            primary = int(ok(driver.cuCtxGetCurrent()))
            print(regular.value == primary, of_stream.value == handle)
            assert green.contexts(0, c.byref(regular), c.byref(of_stream)) == 0
            print(regular.value == primary, of_stream.value)
            ok(driver.cuCtxSetCurrent(context))
            assert green.contexts(0, c.byref(regular), c.byref(of_stream)) == 0
            print(regular.value == primary, of_stream.value == handle)

            memory = ok(driver.cuMemAlloc(16))
            launch(kernel(b"fill"), memory, 7, 0, threads=4, stream=stream)
            ok(driver.cuStreamSynchronize(stream))
            print(read(memory, 4))
            ok(driver.cuStreamDestroy(stream))
            print(green.destroy(handle), green.destroy(handle))
    """) == [
        "1 2 (1, 8) (1, 8) 16", "(1, 8) (1, 8)", "True True", "True 0", "True True",
        "[7, 7, 7, 7]", "0 400",
    ]  # fmt: skip


@pytest.mark.slow
def test_without_a_place_for_parts_their_number_is_reported() -> None:
    assert _told("""
        with stand_in():
            cuda = library()
            green = Green(cuda)
            whole, rest, count = resources(), resources(), uint(77)
            assert green.of_device(0, whole, 1) == 0
            assert green.split(None, c.byref(count), whole, None, 0, 8) == 0
            print(count.value == sms(whole)[1] // 8)
            # Fewer than there is room for: what lies behind the last one stays.
            parts, most = resources(40), count.value
            c.memset(parts, 0xEE, 144 * 40)
            count.value = 40
            assert green.split(parts, c.byref(count), whole, rest, 0, 8) == 0
            print(count.value == most, sms(parts, most - 1), parts.raw[144 * most] == 0xEE)
    """) == ["True", "True (1, 8) True"]


@pytest.mark.slow
def test_what_c_gives_wrongly_is_an_error() -> None:
    assert _told("""
        with stand_in():
            cuda = library()
            green = Green(cuda)
            whole, other, count, found = resources(), resources(), uint(1), size()
            assert green.of_device(0, whole, 1) == 0
            print(green.of_device(0, None, 1), green.of_device(9, whole, 1),
                  green.of_device(0, whole, 10000))
            print(green.split(other, None, whole, None, 0, 8),
                  green.split(other, c.byref(count), None, None, 0, 8),
                  green.split(other, c.byref(count), other, None, 0, 8),
                  green.split(other, c.byref(count), whole, None, 0, 5000))
            struct.pack_into("<i", other, 0, 12345)  # no type of a resource
            print(green.split(other, c.byref(count), other, None, 0, 8), count.value)
            print(green.describe(None, whole, 1), green.describe(c.byref(found), None, 1),
                  green.describe(c.byref(found), whole, 0), green.create(c.byref(found), 5, 0, 1))
            print(function(cuda, "cuGreenCtxCreate", 12030), function(cuda, "cuGreenNothing"))
    """) == ["1 101 914", "1 1 914 915", "914 1", "1 1 915 1", "(0, None, 2) (500, None, 1)"]
