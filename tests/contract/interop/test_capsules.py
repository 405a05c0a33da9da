"""Capsules of DLPack: a consumer renames one and takes its tensor, once."""

from __future__ import annotations

import ctypes
import gc
import itertools
import threading
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import cudadrv
from cudadrv.errors import ArgumentTypeError, ArgumentValueError, CudadrvError, WrongDeviceError
from cudadrv.memory.array import AnyDeviceArray
from tests.at_each_line import Line, raising

from .tensors import DLTensor, ManagedTensor, VersionedTensor

PLAIN, VERSIONED = b"dltensor", b"dltensor_versioned"
SOURCE: Final = 'extern "C" __global__ void add(int* x) { x[threadIdx.x] += 1; }'

_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)


class Producer:
    """Exports an array by one capsule, whatever the number of calls; counts its deleter's calls."""

    def __init__(self, array: AnyDeviceArray, name: bytes, *, device: int = 0, major: int = 1):
        self.array, self.name, self.deleted = array, name, 0
        # Any: of two layouts.
        self.managed: Any = VersionedTensor() if name == VERSIONED else ManagedTensor()
        if name == VERSIONED:
            self.managed.major, self.managed.minor = major, 1
        self.shape = (ctypes.c_int64 * 1)(array.size)
        tensor: DLTensor = self.managed.tensor
        tensor.data, tensor.device_type, tensor.device_id = array.ptr, 2, device
        tensor.ndim, tensor.code, tensor.bits, tensor.lanes = 1, 0, 32, 1
        tensor.shape = ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64))
        self.deleter = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self._count)
        self.managed.deleter = ctypes.cast(self.deleter, ctypes.c_void_p).value
        self.capsule = _new(ctypes.addressof(self.managed), name, None)

    def _count(self, address: int) -> None:
        assert address == ctypes.addressof(self.managed)
        self.deleted += 1

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, *, stream: int | None = None, max_version: object = None) -> object:
        return self.capsule


Use = Callable[[cudadrv.Stream, Producer], object]


def uses(context: cudadrv.Context) -> dict[str, Use]:
    kernel = context.compile(SOURCE).kernel("add")
    config = cudadrv.LaunchConfig(1, 4)
    return {
        "import": lambda stream, value: stream.import_array(value),
        "launch": lambda stream, value: kernel.launch(stream, config, value),
        "bind": lambda stream, value: kernel.bind(stream, config)(value),
        "prepare": lambda stream, value: kernel.bind(stream, config).prepare(value),
        "graph": lambda stream, value: context.new_graph().add_kernel(kernel, config, value),
    }


def test_a_capsule_is_renamed_and_used_once(stream: cudadrv.Stream) -> None:
    wrong = []
    for name in (PLAIN, VERSIONED):
        for how, use in uses(stream.context).items():
            array = stream.to_device(np.arange(4, dtype=np.int32))
            producer = Producer(array, name)
            used = use(stream, producer)
            stream.synchronize()
            if _name(producer.capsule) != b"used_" + name:
                wrong.append(f"{how}: the name is {_name(producer.capsule)!r}")
            for again, second in uses(stream.context).items():
                with pytest.raises(CudadrvError) as caught:
                    second(stream, producer)
                texts = f"{caught.value!r} {caught.value.__cause__!r}"
                if "was used before" not in texts:
                    wrong.append(f"{how}, then {again}: {texts}")
            del used
            gc.collect()
            if producer.deleted != 1:
                wrong.append(f"{how}: the deleter ran {producer.deleted} times")
            expected = [1, 2, 3, 4] if how in ("launch", "bind") else [0, 1, 2, 3]
            if stream.to_host(array).tolist() != expected:
                wrong.append(f"{how}: {stream.to_host(array)}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", [PLAIN, VERSIONED])
def test_an_imported_array_keeps_the_tensor(stream: cudadrv.Stream, name: bytes) -> None:
    producer = Producer(stream.to_device(np.arange(4, dtype=np.int32)), name)
    view = stream.import_array(producer)[1:]
    gc.collect()
    assert producer.deleted == 0
    assert stream.to_host(view).tolist() == [1, 2, 3]
    del view
    gc.collect()
    assert producer.deleted == 1
    with pytest.raises(ArgumentValueError, match="capsule of a Producer was used before"):
        stream.import_array(producer)


def test_a_rejected_tensor_returns_to_its_producer(stream: cudadrv.Stream) -> None:
    array = stream.to_device(np.arange(4, dtype=np.int32))
    elsewhere = Producer(array, PLAIN, device=7)
    with pytest.raises(WrongDeviceError):
        stream.import_array(elsewhere)
    gc.collect()
    assert (_name(elsewhere.capsule), elsewhere.deleted) == (b"used_dltensor", 1)
    # Its layout is unknown, and so is the place of its deleter.
    newer = Producer(array, VERSIONED, major=2)
    with pytest.raises(ArgumentTypeError, match=r"DLPack 2\.1"):
        stream.import_array(newer)
    gc.collect()
    assert (_name(newer.capsule), newer.deleted) == (VERSIONED, 0)


def test_an_interrupt_at_any_line_of_an_import_spoils_no_other_capsule(
    stream: cudadrv.Stream,
) -> None:
    array = stream.to_device(np.arange(4, dtype=np.int32))
    for number in itertools.count():
        line = Line(number, ["interop/dlpack.py"], raising(KeyboardInterrupt))
        try:
            line.run(lambda: stream.import_array(array))
        except KeyboardInterrupt:
            pass
        else:
            break
        # Some of them are where the capsule of the interrupted import was.
        for _ in range(3):
            stream.import_array(array)
    assert number > 20


def test_one_of_several_threads_gets_the_tensor(stream: cudadrv.Stream) -> None:
    array = stream.to_device(np.arange(4, dtype=np.int32))
    for _ in range(20):
        producer, begin = Producer(array, PLAIN), threading.Barrier(4)
        outcomes: list[object] = []

        def take(
            producer: Producer = producer,
            begin: threading.Barrier = begin,
            outcomes: list[object] = outcomes,
        ) -> None:
            begin.wait()
            try:
                outcomes.append(stream.import_array(producer))
            except ArgumentValueError as error:
                outcomes.append(error)

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(type(each).__name__ for each in outcomes)[0] == "ArgumentValueError"
        assert sum(isinstance(each, ArgumentValueError) for each in outcomes) == 3
        outcomes.clear()
        gc.collect()
        stream.synchronize()
        assert producer.deleted == 1
