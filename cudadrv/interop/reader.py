"""Readers: how a launch finds the memory of another library's object, by that library's accessors.

The shared protocols build a dictionary or a capsule at each use. A library's own accessors take a
tenth of that time. The readers of a known library are made when a launch first gets one of its
objects, so no library is imported that the program does not use. For type checking the
libraries need not be installed: their objects are Any.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from .. import border
from ..memory.layout import is_dense

_T = TypeVar("_T")
_CLASS: Final = type

# Any: the argument has the registered type, which the type checker cannot see.
_Value: TypeAlias = Any


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """Finds the memory of objects of one type; see `register`.

    A launch calls `address` and `device` for each such argument, `dtype` and `is_lazy` where they
    matter, and `stream` once. They should be quick, at best functions written in C. An exception
    in them becomes an `ArgumentError` that names the kernel and the argument.

    Attributes:
        address: the address of the first element; 0 where there are no elements; None to use the
            shared protocols instead.
        device: the ordinal of the CUDA device where the memory lies; negative for memory elsewhere.
        stream: the number of the stream that comes after all that the library has queued so far for
            the memory of a device, given the ordinal: 0 is the legacy default stream. None where
            the memory may be used as it is.
        dtype: the type of the elements: NumPy's, or an object whose name ends in NumPy's name, such
            as ``torch.float32``. None where the elements have no type.
        is_lazy: True if the bytes are not yet the values, as of a negated view. None where they
            always are.
        examine: raises a `BufferError` with the reason if an object is unusable; returns True if
            the functions above are enough for objects of the same type and dtype. It is called
            before them for the first object of a type, and after a rejection. None where every
            object is usable.
        is_read_only: True if no kernel may write the memory; or a function that tells it of an
            object.
        is_contiguous: whether the elements lie in C order, one after the other. None where the
            array interface or DLPack tell it, which takes longer at each launch, and where all
            objects lie so: those that have neither protocol.
    """

    address: Callable[[_Value], int | None]
    device: Callable[[_Value], int]
    stream: Callable[[int], int] | None = None
    dtype: Callable[[_Value], object] | None = None
    is_lazy: Callable[[_Value], bool] | None = None
    examine: Callable[[_Value], bool] | None = None
    is_read_only: bool | Callable[[_Value], bool] = False
    is_contiguous: Callable[[_Value], bool] | None = None

    def tells_read_only(self, value: _Value) -> bool:
        """Return whether no kernel may write the memory of an object."""
        is_read_only = self.is_read_only
        return is_read_only(value) if callable(is_read_only) else is_read_only


class Foreign(NamedTuple):
    """A type of another library, its reader, and the dtype that its objects must have."""

    type: type
    reader: Reader
    dtype: object = None


class ByInterface(NamedTuple):
    """A type without a reader, whose objects are read by the CUDA array interface."""

    type: type


_loaded: Final[set[str]] = set()
_registered: Final[dict[type, Reader]] = {}
# By type. Bounded, as it keeps types alive that a program may make at run time.
_foreign_by_type: Final[dict[type, Foreign | None]] = {}
_MOST_TYPES: Final = 256


def register(type: type[_T], reader: Reader) -> None:
    """Register the reader that launches use for objects of a type.

    Objects of exactly this type are then nearly as fast an argument as arrays of this library.
    Objects of subclasses are read in the same way, but more slowly. A later reader for the same
    type replaces the earlier one, including the built-in readers. A launcher that has already
    launched with such an object keeps the reader that it found.

    Args:
        type: the class of the objects.
        reader: finds their memory.

    Raises:
        TypeError: `type` is no class, or `reader` is no `Reader`.
    """
    border.instance_of("interop.register: type", type, _CLASS)
    border.instance_of("interop.register: reader", reader, Reader)
    _registered[type] = reader
    _foreign_by_type.clear()


def found_for(kind: type) -> Foreign | None:
    """Return the nearest base class of a type that has a reader, with the reader."""
    try:
        return _foreign_by_type[kind]
    except KeyError:
        pass
    for base in kind.__mro__:
        _load_library_of(base)
    known = (Foreign(base, _registered[base]) for base in kind.__mro__ if base in _registered)
    foreign = next(known, None)
    if len(_foreign_by_type) >= _MOST_TYPES:
        _foreign_by_type.clear()
    _foreign_by_type[kind] = foreign
    return foreign


def _load_library_of(kind: type) -> None:
    """Register the readers of the library that a type belongs to, if it is a known one."""
    where = f"{kind.__module__}."
    for package, readers in LIBRARIES.items():
        if where.startswith(package) and package not in _loaded:
            for its_type, reader in readers():
                _registered.setdefault(its_type, reader)
            _loaded.add(package)


def _number_of(stream_of: Callable[[int], object], path: str) -> Callable[[int], int]:
    """Return a function from a device's ordinal to the number of a library's current stream.

    Args:
        stream_of: the library's function from an ordinal to its current stream or its device.
        path: the attributes from there to the number.
    """
    number_in = attrgetter(path)

    def number(ordinal: int) -> int:
        stream_number: int | None = number_in(stream_of(ordinal))
        return stream_number or 0

    return number


def _torch() -> Iterator[tuple[type, Reader]]:
    """Yield the readers of PyTorch's tensors.

    Their array interface rejects a tensor that requires a gradient, and names no stream;
    `data_ptr` accepts every tensor. So negated, conjugated and fake tensors are rejected here.
    """
    torch = sys.modules["torch"]
    if getattr(torch.version, "hip", None):
        return  # memory of another driver, though its tensors are named "cuda"
    tensor = torch.Tensor
    current = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    reader = Reader(
        tensor.data_ptr,
        tensor.get_device,
        current or _number_of(torch.cuda.current_stream, "cuda_stream"),
        attrgetter("dtype"),
        tensor.is_neg,
        _examine_tensor,
        is_contiguous=tensor.is_contiguous,
    )
    yield tensor, reader
    yield torch.nn.Parameter, reader


def _examine_tensor(tensor: _Value) -> bool:
    if tensor.is_neg() or tensor.is_conj():
        raise BufferError(
            "is negated or conjugated only when it is read\n"
            "  give tensor.resolve_conj() or tensor.resolve_neg()"
        )
    if not tensor.data_ptr() and tensor.numel():
        raise BufferError("has no memory: it is fake, meta, a zero tensor, or was freed")
    # Only complex tensors can be conjugated: others need no look at each launch.
    return not tensor.dtype.is_complex


def _cupy() -> Iterator[tuple[type, Reader]]:
    """Yield the reader of CuPy's arrays."""
    cupy = sys.modules["cupy"]
    if cupy.cuda.runtime.is_hip:
        return  # memory of another driver
    # Making the object of the public `x.flags` takes longer.
    has_quick = hasattr(cupy.ndarray, "_c_contiguous")
    is_contiguous = attrgetter("_c_contiguous" if has_quick else "flags.c_contiguous")
    # `device_id` belongs to the memory, as `ptr` does; the device object of `x.device` costs more.
    yield (
        cupy.ndarray,
        Reader(
            attrgetter("data.ptr"),
            attrgetter("data.device_id"),
            _number_of(cupy.cuda.get_current_stream, "ptr"),
            attrgetter("dtype"),
            is_contiguous=is_contiguous,
        ),
    )


def _warp() -> Iterator[tuple[type, Reader]]:
    """Yield the reader of Warp's arrays."""
    warp = sys.modules["warp"]

    def is_contiguous(array: _Value) -> bool:
        # Theirs also counts the strides of axes of one element, or of arrays without any.
        if array.is_contiguous:
            return True
        return is_dense(array.shape, array.strides, warp.types.type_size_in_bytes(array.dtype))

    yield (
        warp.array,
        Reader(
            lambda array: array.ptr or 0,  # None where there are no elements
            attrgetter("device.ordinal"),
            _number_of(warp.get_cuda_device, "stream.cuda_stream"),
            attrgetter("dtype"),
            is_contiguous=is_contiguous,
        ),
    )


def _cuda_core() -> Iterator[tuple[type, Reader]]:
    """Yield the readers of cuda.core's buffers and strided views.

    Neither names a stream: the maker of a view ordered it when it was made.
    """
    core = sys.modules.get("cuda.core") or sys.modules.get("cuda.core.experimental")
    if core is None:
        return  # other modules have this package, too
    yield core.Buffer, Reader(_address_of_buffer, attrgetter("device_id"), is_contiguous=_always)
    utils = sys.modules.get(f"{core.__name__}.utils")
    if utils is not None:
        reader = Reader(
            attrgetter("ptr"),
            attrgetter("device_id"),
            dtype=attrgetter("dtype"),
            is_read_only=attrgetter("readonly"),
            is_contiguous=_is_view_contiguous,
        )
        yield utils.StridedMemoryView, reader


def _address_of_buffer(buffer: _Value) -> int:
    handle = buffer.handle
    if handle is None or (not int(handle) and buffer.size):
        raise BufferError("was closed")
    return int(handle)


def _always(_: _Value) -> bool:
    return True


def _is_view_contiguous(view: _Value) -> bool:
    strides: tuple[int, ...] | None = view.strides  # in elements
    return strides is None or is_dense(view.shape, strides, 1)


_LEGACY_STREAM: Final = 0
_PER_THREAD_STREAM: Final = 2


def _numba() -> Iterator[tuple[type, Reader]]:
    """Yield the reader of Numba's device arrays.

    An allocation's address and device never change, and finding them costs more than all the rest:
    so they are stored on the allocation.
    """
    arrays = sys.modules["numba.cuda.cudadrv.devicearray"]
    # Numba reads this once, for its default stream.
    per_thread = os.environ.get("NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM", "0") not in ("", "0")
    default = _PER_THREAD_STREAM if per_thread else _LEGACY_STREAM
    reader = Reader(
        _address_in_numba,
        attrgetter("gpu_data._cudadrv_device"),
        lambda ordinal: default,
        attrgetter("dtype"),
        examine=_examine_numba,
        is_contiguous=arrays.DeviceNDArray.is_c_contiguous,
    )
    yield arrays.DeviceNDArray, reader


def _address_in_numba(array: _Value) -> int | None:
    # An array may have a stream of its own, which its array interface names. The number 0 is one
    # object in CPython.
    if array.stream is not _LEGACY_STREAM:
        return None
    data = array.gpu_data
    try:
        known: int = data._cudadrv_address
    except AttributeError:
        _examine_numba(array)
        known = data._cudadrv_address = int(data.device_pointer)
    return known


def _examine_numba(array: _Value) -> bool:
    """Store the device of an allocation on it."""
    array.gpu_data._cudadrv_device = array.gpu_data.context.device.id
    return True


_JAX_PLATFORMS: Final = ("gpu", "cuda")
_NOT_CUDA: Final = -1


def _jax() -> Iterator[tuple[type, Reader]]:
    """Yield the reader of JAX's arrays.

    JAX may still compute an array, on a stream that it does not name. An array that is ready stays
    ready, at the same address, until it is deleted or donated. So its address is stored on it, and
    later launches only check that it was not deleted. An array that is not ready is read by DLPack,
    which makes our stream wait.
    """
    for name in ("jaxlib._jax", "jaxlib.xla_extension"):  # by version
        array_type = getattr(sys.modules.get(name), "ArrayImpl", None)
        if array_type is not None:
            yield (
                array_type,
                Reader(
                    _address_in_jax,
                    attrgetter("_cudadrv_device"),
                    dtype=attrgetter("_cudadrv_dtype"),
                    examine=_examine_jax,
                    is_read_only=True,
                    is_contiguous=attrgetter("_cudadrv_is_contiguous"),
                ),
            )
            return


def _address_in_jax(array: _Value) -> int | None:
    if array.is_deleted():
        return None
    try:
        known: int | None = array._cudadrv_address
    except AttributeError:
        _examine_jax(array)
        known = getattr(array, "_cudadrv_address", None)
    return known


def _examine_jax(array: _Value) -> bool:
    """Store an array's device and dtype on it, and its address once it is ready."""
    pointer: int = array.unsafe_buffer_pointer()  # a deleted array raises here, and crashes below
    devices = tuple(array.sharding.device_set)
    if len(devices) != 1:
        raise BufferError(
            f"lies on {len(devices)} devices\n"
            "  give the part on this one, array.addressable_data(number)"
        )
    (device,) = devices
    is_cuda = device.platform in _JAX_PLATFORMS
    array._cudadrv_dtype = array.dtype  # read in a third of the time
    array._cudadrv_device = int(device.local_hardware_id) if is_cuda else _NOT_CUDA
    array._cudadrv_is_contiguous = _is_row_major(array)
    if array.is_ready():
        array._cudadrv_address = pointer
    return True


def _is_row_major(array: _Value) -> bool:
    """Return whether an array of JAX has the usual layout; a computation may choose another one."""
    # By version; arrays of older ones have no choice.
    described = getattr(array, "format", None) or getattr(array, "layout", None)
    layout = getattr(described, "layout", None) or getattr(described, "device_local_layout", None)
    axes = getattr(layout, "major_to_minor", None) or ()
    order = [axis for axis in axes if array.shape[axis] != 1]
    return order == sorted(order) or 0 in array.shape


LIBRARIES: Final[dict[str, Callable[[], Iterator[tuple[type, Reader]]]]] = {
    "torch.": _torch,
    "cupy.": _cupy,
    "numba.cuda.": _numba,
    "jaxlib.": _jax,
    "cuda.core.": _cuda_core,
    "warp.": _warp,
}
"""The readers of the known libraries, by the package that the objects' types belong to."""
