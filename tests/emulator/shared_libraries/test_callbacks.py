from __future__ import annotations

import ctypes

import pytest

from cudadrv.emulator.shared_libraries.shared_object import guarded

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int)


def test_what_c_tidies_up_while_an_exception_passes_is_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    calls: list[object] = []

    def call() -> int:
        # What looks for an exception after a call of C finds the one that passes.
        calls.append(getattr(calls, "app" + "end"))
        return 0

    function = _FUNCTION(guarded(call, 9))
    made = ctypes.pythonapi.PyCapsule_New
    made.argtypes, made.restype = (
        (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p),
        ctypes.py_object,
    )
    destroyed_by = ctypes.cast(function, ctypes.c_void_p)

    def fails() -> None:  # which catches nothing itself
        print(made(1, None, destroyed_by), 1 // len(calls))  # the capsule goes while this is raised

    # ctypes has no way to give the exception back: Python misses it in what C returns.
    with pytest.raises(SystemError):
        fails()
    assert len(calls) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_an_exception_of_the_function_is_told_and_answered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _FUNCTION(guarded(lambda: 1 // 0, 9))() == 9
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert _FUNCTION(guarded(lambda: 7, 9))() == 7
