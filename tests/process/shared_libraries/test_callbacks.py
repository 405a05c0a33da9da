from __future__ import annotations

import builtins
import ctypes
import itertools
import sys
from collections.abc import Callable

import pytest

from cudadrv.emulator.shared_libraries.elf_file import HOOKS, elf_image
from cudadrv.emulator.shared_libraries.library_files import this_machine
from cudadrv.emulator.shared_libraries.shared_object import SharedObject, guarded
from cudadrv.emulator.shared_libraries.symbol_table import TABLE

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int)
_numbers = itertools.count()


def library() -> SharedObject:
    """A library of one function `f`, which stays loaded."""
    name = f"libcudadrv_test.so.{next(_numbers)}"
    return SharedObject(name, ["f"], lambda: elf_image(name, ["f"], this_machine(name), result=9))


def destroyer(function: Callable[[], int]) -> Callable[[], object]:
    """Return what makes an object at whose end C code calls the function."""
    called = library()
    called.connect({"f": _FUNCTION(guarded(function, 9))})
    made = ctypes.pythonapi.PyCapsule_New
    made.argtypes, made.restype = (
        (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p),
        ctypes.py_object,
    )
    return lambda: made(1, None, called.address("f"))


def test_an_exception_propagates_through_c_code_that_calls_the_library(
    capsys: pytest.CaptureFixture[str],
) -> None:
    calls: list[object] = []

    def call() -> int:
        # An attribute of a computed name: its access notices a pending exception.
        calls.append(getattr(calls, "app" + "end"))
        return 0

    made = destroyer(call)

    def fails() -> None:  # which catches nothing itself
        print(made(), 1 // len(calls))  # the object ends while this is raised

    with pytest.raises(ZeroDivisionError):
        fails()
    assert len(calls) == 1
    assert capsys.readouterr().err == ""


def test_an_error_of_a_call_during_an_exception_is_reported_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = destroyer(lambda: int("no number"))

    def fails() -> None:
        print(made(), dict[str, int]()["missing"])

    with pytest.raises(KeyError, match="missing"):
        fails()
    assert "ValueError" in (err := capsys.readouterr().err)
    assert "KeyError" not in err


@pytest.mark.parametrize("pending", [0, 7])
@pytest.mark.parametrize("has_hooks", [True, False])
def test_a_call_has_all_arguments_with_a_pending_exception_and_without(
    pending: int, has_hooks: bool
) -> None:
    told: list[tuple[object, ...]] = []

    def fetch(*places: int) -> None:
        for place, value in zip(places, (pending, 8, 9), strict=True):
            ctypes.c_size_t.from_address(place).value = value

    def ensure() -> int:
        told.append(("ensure",))
        return 5

    def called(*given: float) -> int:
        told.append(given)
        return 1 << 40

    words = [ctypes.c_size_t] * 9
    form = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_float, *words, ctypes.c_double, *words)
    of_words = ctypes.CFUNCTYPE(None, *[ctypes.c_size_t] * 3)
    hooks = (
        ctypes.CFUNCTYPE(ctypes.c_int)(ensure),
        of_words(fetch),
        of_words(lambda *given: told.append(given)),
        ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda state: told.append(("release", state))),
    )
    assert HOOKS == ("PyGILState_Ensure", "PyErr_Fetch", "PyErr_Restore", "PyGILState_Release")
    functions = (*(hooks if has_hooks else [None] * 4), form(called))
    table = (ctypes.c_void_p * 5)(*[ctypes.cast(f, ctypes.c_void_p).value for f in functions])

    made = library()
    address = made.address("f")
    assert address is not None
    assert form(address)(*[1] * 20) & 0xFFFFFFFF == 9  # without a table
    ctypes.c_void_p.in_dll(made._library, TABLE).value = ctypes.addressof(table)
    given = (0.5, *range(1 << 40, (1 << 40) + 9), 0.25, *range(100, 109))
    assert form(address)(*given) == 1 << 40
    assert told == ([("ensure",), given, (pending, 8, 9), ("release", 5)] if has_hooks else [given])


def test_a_function_that_fails_when_the_builtins_are_gone_ends_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    made = library()
    made.connect({"f": _FUNCTION(lambda: 0)})
    function = guarded(lambda: 1 // 0, 9, made.ending("f", 4))
    freeing = guarded(lambda: 1 // 0, 9, made.ending("cuMemFree_v2", 4))
    with monkeypatch.context() as gone:
        gone.setattr(builtins, "BaseException", None)
        codes = [function(), freeing()]
    assert codes == [4, 0]
    address = made.address("f")
    assert address is not None
    assert _FUNCTION(address)() == 9


def test_an_exception_of_the_function_is_reported_and_returned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _FUNCTION(guarded(lambda: 1 // 0, 9))() == 9
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert _FUNCTION(guarded(lambda: 7, 9))() == 7
