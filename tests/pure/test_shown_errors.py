"""The texts of errors and warnings, which tracebacks show on a terminal, are escaped."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
import traceback
from collections.abc import Iterator
from typing import Final

import pytest

import cudadrv.errors
import cudadrv.pool.tile
import ptx
from cudadrv.errors import CudadrvError, GpuError, OutOfMemoryError
from ptx.errors import FunctionNotFoundError

HOSTILE: Final = "\x1b]0;title\x07\x1b[2J\u202e\r\x85\u2028\udcff"
SHOWN: Final = "\\x1b]0;title\\x07\\x1b[2J\\u202e\\r\\x85\\u2028\\udcff"


def classes(root: type[CudadrvError]) -> Iterator[type[CudadrvError]]:
    """Yield a class and all that derive from it."""
    yield root
    for each in root.__subclasses__():
        yield from classes(each)


def test_the_text_of_each_class_of_errors_is_escaped() -> None:
    for module in pkgutil.iter_modules(cudadrv.errors.__path__):
        importlib.import_module(f"cudadrv.errors.{module.name}")
    attributes = {"doing": HOSTILE, "call": "", "text": HOSTILE, "reason": HOSTILE, "code": 1,
                  "explained": True}  # fmt: skip
    ours = ("cudadrv", "ptx")  # other tests derive classes too
    every = {each for each in classes(CudadrvError) if each.__module__.startswith(ours)}
    wrong = []
    for each in every:
        if issubclass(each, ExceptionGroup):
            error: CudadrvError = ExceptionGroup.__new__(each, HOSTILE, [ValueError()])
        else:
            error = each.__new__(each, HOSTILE)
        for name, value in attributes.items():
            if not isinstance(getattr(each, name, None), property):
                setattr(error, name, value)
        text = str(error)
        if SHOWN not in text.replace("'", "") or HOSTILE[0] in text:
            wrong.append((each, text))
    assert wrong == []
    assert len(every) > 100


def test_an_error_of_several_classes_is_escaped_and_keeps_its_arguments() -> None:
    error = GpuError.of(OutOfMemoryError(HOSTILE), HOSTILE)
    for each in (error, pickle.loads(pickle.dumps(error)), FunctionNotFoundError(HOSTILE)):
        assert str(each) == SHOWN
        assert each.args == (HOSTILE,)
        shown = "".join(traceback.format_exception_only(each))
        assert shown == f"{type(each).__module__}.{type(each).__qualname__}: {SHOWN}\n"


def test_the_text_of_a_compile_warning_is_escaped(recwarn: pytest.WarningsRecorder) -> None:
    text = HOSTILE[:-1]
    ptx.compile(f"__global__ void k() {{ int x; /* {text} */ }}", name=f"k{text}.cu")
    (warning,) = recwarn
    text = str(warning.message)
    assert text.startswith(f"k{SHOWN[:-6]}.cu(1): ")
    excerpt = SHOWN[:-6].replace("\\r", " ")  # as NVRTC's log has it
    assert f"/* {excerpt} */" in text


def test_a_name_with_a_line_end_keeps_the_line_of_each_message() -> None:
    with pytest.raises(ptx.CompileError) as caught:
        ptx.compile("int x;\nint y\n", name="a\nk.cu")
    assert [each.file for each in caught.value.diagnostics] == ["a\\nk.cu"] * 2
    assert [each.line for each in caught.value.diagnostics] == [1, 2]
