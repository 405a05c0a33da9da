"""Kernel arguments: classifying values, packing them, and the errors for rejected ones."""

from __future__ import annotations

import ctypes
import operator
import struct
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

import numpy as np

import ptx

from ..border import shown
from ..driver._api import CUdeviceptr
from ..driver.context import BaseContext
from ..driver.stream import BaseStream
from ..errors import ArgumentError, ArgumentTypeError, WrongDeviceError
from ..interop.elements import Elements, elements_of, named_dtype, require_usable
from ..interop.reader import ByInterface, Foreign, found_for
from ..memory.array import AnyDeviceArray, DeviceArray
from ..memory.buffer import DeviceBuffer, DeviceData
from ..memory.dtypes import AnyArray, AnyDType
from ..memory.host_copy import host_address, is_reachable
from ..memory.order import AnyMemory
from .host_arguments import HostArgument, is_copied
from .scalars import (
    FORMATS_OF_BITS,
    FORMATS_OF_CLASSES,
    FORMATS_OF_PTX,
    OTHER_CLASSES,
    REALS,
    WHOLE,
    FloatFormat,
    fits_single,
    has_mask,
    is_small_number,
    name_of,
    real_number,
    unwrapped,
)

if TYPE_CHECKING:
    from ..interop.foreign import Pointer

Packable: TypeAlias = int | float | bytes


Word: TypeAlias = Literal[
    "memory",  # our device memory, which must be ordered on the launch's stream
    "array",  # the same as an array, whose dtype must match the pointer's type
    "vectors",  # such an array of whole vectors, as of a float4
    "buffer",  # the same without a dtype, where the parameter has one
    "whole",  # an integer of one of the types in `WHOLE`
    "signed",  # such an integer below 0, packed with the signed code
    "bool",  # a bool, for a parameter of one byte
    "single",  # a number of one of the types in `REALS`, for a float, in its range
    "real",  # such a number for a double
    "view",  # a texture, which reads its memory; its handle has its number
    "surface",  # a surface, which may write its memory; likewise
    "read",  # a device array in `In`, which the kernel only reads
    "tensor",  # a tensor map, which may write its memory; it has its bytes
    "raw",  # anything else, which is packed into bytes first
]
Kind: TypeAlias = Word | Foreign | ByInterface
"""How a launcher reads an argument; the fast path is generated for the kinds it has seen.

Memory of other libraries is of one kind for each type.
"""
ADDRESSED: Final[frozenset[Kind]] = frozenset(("memory", "array", "vectors", "buffer"))
"""Device memory of ours, whose address is packed."""
NUMBERS: Final[frozenset[Kind]] = frozenset(("whole", "signed", "bool", "single", "real"))
"""Numbers, which struct packs by their value."""
ADDRESSES: Final[frozenset[Kind]] = ADDRESSED | {"view", "surface"}
"""Addresses and numbers from the driver: 64 bits, never less than 0."""


class Argument:
    """A value ready for struct, its kind, and the objects that the launch must order and hold.

    Attributes:
        value: the value to pack.
        kind: how generated code reads such a value.
        memory: our memory that it refers to, if any.
        writes: whether the kernel may write that.
        holds: objects that must live until the launch is queued, and as long as a graph of it.
    """

    __slots__ = ("holds", "kind", "memory", "value", "writes")

    def __init__(
        self,
        value: Packable,
        kind: Kind,
        memory: AnyMemory | None = None,
        *,
        writes: bool = True,
        holds: object = None,
    ) -> None:
        self.value: Packable = value
        self.kind: Kind = kind
        self.memory: AnyMemory | None = memory
        self.writes: bool = writes
        self.holds: object = holds


class KernelObject:
    """An object that kernels take by value and that refers to memory: a texture, a tensor map.

    Attributes:
        context: the context of the memory.
    """

    __slots__ = ()

    context: BaseContext

    def _as_argument(self, nbytes: int) -> Argument | None:
        """Return the argument for a parameter of this size; None if it takes no such object."""
        raise NotImplementedError


COMPLEX_NAMES: Final = {8: "complex64", 16: "complex128"}
_OF_VIEW: Final = (
    "give its copy by Stream.contiguous, or `array.origin` to a kernel that takes strides"
)
_OF_STRUCTURE: Final = (
    "give bytes, a structured NumPy scalar, an array of one such element or a ctypes structure of "
    "that size"
)
_OF_HALF: Final = "\n  for a __half give numpy.float16(...).tobytes(): PTX does not name the type"
_PACKED: Final = "  a dtype made with align=True has C's layout"


def structure_bytes(value: object, nbytes: int) -> bytes | None:
    """Return the bytes of a value that may be a structure of this size; None for other values.

    Accepted are bytes, a structured NumPy scalar, an array of one such element, a ctypes structure
    and a complex number. The result may have another size than requested.

    Raises:
        OverflowError: a complex number is out of range.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, np.ndarray) and value.size == 1 and not has_mask(value):
        value = value.reshape(())[()]
    if isinstance(value, complex) and nbytes in COMPLEX_NAMES:
        # Two floats, in the layout of C++ complex types; as narrow as the parameter is.
        return struct.pack("=2f" if nbytes == 8 else "=2d", value.real, value.imag)
    # Not another number: its bytes may mean something else in the structure. Not a pointer.
    is_structure = isinstance(value, (np.void, np.complexfloating))
    if isinstance(value, np.generic) and is_structure and not value.dtype.hasobject:
        return value.tobytes()
    if isinstance(value, (ctypes.Structure, ctypes.Union, ctypes.Array)):
        return bytes(value)
    return None


def _is_swapped(value: object) -> bool:
    """Return whether numbers of a structure have another byte order than the device's."""
    if isinstance(value, (np.void, np.ndarray)):
        return not value.dtype.isnative
    if isinstance(value, (memoryview, ctypes.Structure, ctypes.Union, ctypes.Array)):
        # Only the class of a union tells it, not its format.
        return ">" in memoryview(value).format or hasattr(value, "_swappedbytes_")
    return False


def layout_hint(value: object) -> str:
    """Return a line on the layout of a NumPy structure whose size differs from C's, or nothing."""
    dtype = value.dtype if isinstance(value, (np.generic, np.ndarray)) else None
    is_packed = dtype is not None and dtype.names is not None and not dtype.isalignedstruct
    return f"\n{_PACKED}" if is_packed else ""


def dtype_name(dtype: AnyDType) -> str:
    """Return a dtype in a few words: the fields of a structure would fill lines."""
    return str(dtype) if dtype.names is None else "of structures"


_INTEGER_CODE: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
# By the type's letter in the Itanium C++ ABI; char, bool and unknown types take both ranges.
_SIGNS: Final = {
    **dict.fromkeys("asilxw", True),
    **dict.fromkeys(("h", "t", "j", "m", "y", "Du", "Ds", "Di"), False),
}
_FLOAT_CODE: Final[dict[Kind, str]] = {"single": "f", "real": "d"}
# CUDA's own types that complex numbers fit.
_COMPLEX: Final = ("6float2", "7double2")


class KernelParameter:
    """One parameter of a kernel: packs values for it, or raises the reason."""

    __slots__ = (
        "_array_kind", "_bits_format", "_format", "_integer", "_is_signed", "_takes_bytes",
        "_whole", "elements", "kernel", "param", "position", "usual_dtype",
    )  # fmt: skip

    def __init__(self, kernel: str, position: int, param: ptx.KernelParam) -> None:
        self.kernel: str = kernel
        self.position: int = position
        self.param: ptx.KernelParam = param
        is_single = param.count == 1 and not param.is_array
        of_ptx = FORMATS_OF_PTX.get(param.ptx_type) if is_single else None
        # The format of a floating-point number; else that of a float where PTX only has a size.
        self._format: FloatFormat | None = FORMATS_OF_CLASSES.get(param.cpp_type, of_ptx)
        self._bits_format = FORMATS_OF_BITS.get(param.ptx_type) if is_single else None
        is_integer = is_single and self._format is None
        self._integer = _INTEGER_CODE.get(param.nbytes) if is_integer else None
        # The elements of a pointer, and the sign of an integer; None if they are unknown.
        self.elements: Elements | None = elements_of(param.cpp_type)
        elements = self.elements
        self._takes_bytes = elements is None or elements.takes_bytes
        # The dtype of most of its arrays, which is compared first.
        usual = "" if elements is None else elements.usual
        self.usual_dtype: AnyDType | None = named_dtype(usual)
        self._is_signed = _SIGNS.get(param.cpp_type)
        # The kind of most of its arrays and integers, the range of those, and None for others.
        is_pointer = self._integer is not None and param.is_pointer is not False
        is_plain = elements is None or not (elements.is_vector or self._takes_bytes)
        of_array: Word = "memory" if elements is None else "array"
        self._array_kind = of_array if is_pointer and is_plain else None
        bits = 8 * param.nbytes
        least, end = (-(1 << bits - 1), 1 << bits - 1) if self._is_signed else (0, 1 << bits)
        whole: Word = "signed" if self._is_signed else "whole"
        is_range = self._integer is not None and param.cpp_type != "b"
        self._whole = (least, end, whole) if is_range else None

    def __repr__(self) -> str:
        return f"<KernelParameter {self.position} of {self.kernel!r}: {self.type_name}>"

    @property
    def is_const(self) -> bool:
        """Whether it is a pointer by which the kernel only reads."""
        return self.elements is not None and self.elements.is_const

    @property
    def type_name(self) -> str:
        """The parameter's type in words, for messages."""
        param = self.param
        if self._format is not None:
            return self._format.name
        if param.cpp_type in OTHER_CLASSES:
            return OTHER_CLASSES[param.cpp_type]
        if param.count > 1 or param.is_array or param.nbytes not in (1, 2, 4, 8):
            plural = "" if param.nbytes == 1 else "s"
            return f"a structure of {param.nbytes} byte{plural}"
        if param.cpp_type == "b":
            return "bool"
        if param.is_pointer:
            return self.elements.described if self.elements else "a device pointer"
        if self._is_signed is not None:
            sign = "a signed" if self._is_signed else "an unsigned"
            return f"{sign} {param.nbytes * 8}-bit integer"
        if param.is_pointer is None:
            return "a device pointer or a 64-bit integer"
        return f"{'an' if param.nbytes == 1 else 'a'} {param.nbytes * 8}-bit integer"

    def code(self, kind: Kind) -> str:
        """Return the struct code for a value of this kind."""
        if kind in _FLOAT_CODE:
            return _FLOAT_CODE[kind]
        if kind == "raw" or self._integer is None:
            return f"{self.param.nbytes}s"
        return self._integer.lower() if kind == "signed" else self._integer

    def read(self, value: object, stream: BaseStream) -> Argument:
        """Read a value: the data to pack, its kind, and its memory.

        Raises:
            ArgumentError: it has the wrong type, size or range.
            WrongDeviceError: it is memory of another device or context.
        """
        if value.__class__ is DeviceArray:  # the most frequent, as generated code tests it
            kind, array = self._array_kind, value
            if kind is not None and (kind == "memory" or array._dtype is self.usual_dtype):
                memory = array._handle
                if memory.ordered_on is stream._handle:
                    return Argument(array._address, kind, memory)
        elif value.__class__ is int and self._whole is not None:
            least, end, kind = self._whole
            if least <= value < end:
                return Argument(value, kind)
        if self._integer is not None and isinstance(value, DeviceData):
            return self._read_memory(cast("AnyDeviceArray | DeviceBuffer", value), stream)
        if self.param.is_pointer and found_for(type(value)) is not None:
            pointer = self._read_pointer(value, stream)
            if pointer is not None:
                return pointer
        plain = unwrapped(value)
        if plain is not value and not self._is_memory(value, stream):
            read = self.read(plain, stream)
            return Argument(
                self.packed(read), "raw", read.memory, writes=read.writes, holds=read.holds
            )
        if self._format is not None:
            return self._read_float(value, self._format)
        if self._integer is None:
            return self._read_object(value, stream) or Argument(self._structure(value), "raw")
        if isinstance(value, bool):
            return self._read_bool(value)
        if isinstance(value, int) or (isinstance(value, np.integer) and type(value) in WHOLE):
            return self._read_integer(value, int(value))
        if is_float(value) and (floats := self._read_bits(value)) is not None:
            return floats
        return self._read_foreign(value, stream)

    def _is_memory(self, value: object, stream: BaseStream) -> bool:
        """Return whether an array of no dimensions is the memory of a pointer, not an address."""
        return (
            self.param.is_pointer is True
            and isinstance(value, np.ndarray)
            and is_reachable(stream._handle, value)
        )

    def _read_memory(self, value: AnyDeviceArray | DeviceBuffer, stream: BaseStream) -> Argument:
        if self.param.is_pointer is False:
            raise self._rejection(value)
        memory = value._memory
        if value.stream.context is not stream.context and not memory.is_open_to(
            stream._handle.context
        ):
            raise WrongDeviceError(
                f"argument {self.position} of kernel {self.kernel!r} is {value!r}, "
                f"but the launch is on {stream!r}\n  copy it there with Stream.copy, or let its "
                "kernels use the memory where it lies by Context.enable_peer_access"
            )
        is_read_only = memory.is_read_only
        # A buffer has no elements.
        array = value if isinstance(value, DeviceArray) else None
        self._require_usable(value, array, value.is_contiguous, is_read_only)
        return Argument(value._address, self._memory_kind(array), memory, writes=not is_read_only)

    def _read_in(self, value: HostArgument, stream: BaseStream) -> Argument:
        """Read a device array that the kernel only reads, as the user says."""
        read = self._read_memory(cast("AnyDeviceArray", value.array), stream)
        if self.elements is not None and not self.elements.is_const:
            raise self._error(
                f"is a DeviceArray that is only read, but the parameter is {self.type_name}\n"
                "  declare the parameter const, or give the array without In"
            )
        return Argument(read.value, "read", read.memory, writes=False)

    def _require_usable(
        self,
        value: object,
        array: AnyDeviceArray | AnyArray | None,
        is_contiguous: bool,
        is_read_only: bool,
    ) -> None:
        try:
            require_usable(
                self.elements,
                None if array is None else array.dtype,
                is_contiguous=is_contiguous,
                is_read_only=is_read_only,
                nbytes=None if array is None else array.nbytes,
                remedy=_OF_VIEW,
            )
        except BufferError as error:
            raise self._error(f"is {_described(value)} and {error}") from None

    def _memory_kind(self, array: AnyDeviceArray | None) -> Kind:
        """Return how generated code reads our memory: an array must match the pointer's type."""
        elements = self.elements
        if elements is None or self._takes_bytes:
            return "memory"
        if array is None:
            return "buffer"
        return "vectors" if elements.is_vector else "array"

    def _read_bool(self, value: bool) -> Argument:
        """Read a bool, which only a parameter takes that is one or may be one."""
        if self.param.nbytes == 1 and self.param.cpp_type in ("", "b"):
            return Argument(value, "bool")
        raise self._mismatch(value, f"give {int(value)}, or look at the order of the arguments")

    def _read_integer(self, value: object, number: int) -> Argument:
        """Read a value that is an integer, or has an index."""
        bits = self.param.nbytes * 8
        # PTX does not state whether an integer is signed: if C++ does not either, both are
        # accepted.
        most = 1 << bits - 1 if self._is_signed else 0
        may_be_negative = self._is_signed is not False and not self.param.is_pointer
        if self.param.cpp_type == "b":
            if number in (0, 1):  # struct would accept others for it
                return Argument(bytes([number]), "raw")
        elif not self._is_signed and 0 <= number < 1 << bits:
            return self._of_type(value, WHOLE, Argument(number, "whole"))
        elif may_be_negative and -(1 << bits - 1) <= number < most:
            return self._of_type(value, WHOLE, Argument(number, "signed"))
        raise self._error(f"is {shown(number)}, out of range for {self.type_name}")

    def _read_float(self, value: object, form: FloatFormat) -> Argument:
        """Read a real number, rounded to the format of the parameter."""
        if isinstance(value, float) and type(value) in REALS:  # the most frequent
            if form.name == "float64":
                return Argument(value, "real")
            if form.name == "float32" and fits_single(value):
                return Argument(value, "single")
        if is_small(value) and name_of(value) == form.name:  # with the bits of a NaN
            return Argument(cast("np.generic", value).tobytes(), "raw")
        try:
            number = real_number(value)
            data = b"" if number is None else form.pack(number)
        except OverflowError:
            raise self._error(f"is {shown(value)}, out of range for {form.name}") from None
        except Exception as error:  # any error of the object
            raise self._rejection(value) from error
        if number is None:
            if form.nbytes <= 2:  # a class, which may be given by its bytes
                return Argument(self._structure(value), "raw")
            raise self._rejection(value)
        if type(value) in REALS and isinstance(number, (int, float)):
            # Code for such numbers also packs later ones, as this.
            if form.name == "float64":
                return Argument(number, "real")
            if form.name == "float32" and fits_single(value):
                return Argument(number, "single")
        return Argument(data, "raw")

    def _read_bits(self, value: object) -> Argument | None:
        """Read a float where PTX only has a size; None if it has no float of that size."""
        if self._bits_format is not None:
            # As bytes: code for floats would also pack a later integer as one.
            return Argument(self.packed(self._read_float(value, self._bits_format)), "raw")
        # The text does not tell a __half from a __nv_bfloat16, but the value does.
        if is_small(value) and self.param.ptx_type in ("b8", "b16"):
            data = cast("np.generic", value).tobytes()
            return Argument(data, "raw") if len(data) == self.param.nbytes else None
        return None

    def _read_foreign(self, value: object, stream: BaseStream) -> Argument:
        """Read another library's memory, None for a null pointer, or a scalar of the right size."""
        if self.param.nbytes == 8 and self.param.is_pointer is not False:
            if value is None:
                return Argument(b"\0" * 8, "raw")
            if self.param.is_pointer is None:
                read = self._read_object(value, stream)
                if read is not None:
                    return read
            if isinstance(value, HostArgument):
                if not is_copied(value):
                    return self._read_in(value, stream)
                # Not an ArgumentError: fast code treats that as a rejection, and takes the slow
                # path.
                raise ArgumentTypeError(f"{shown(value)} cannot be prepared: give it to the launch")
            pointer = self._read_pointer(value, stream)
            if pointer is not None:
                return pointer
        # Where only a size is known, the parameter may be a structure.
        has_bits = self.param.ptx_type[0] == "b" and not isinstance(value, np.ndarray)
        if has_bits and self._is_structure(value):
            return Argument(self._structure(value), "raw")
        if hasattr(value, "__index__") and not isinstance(value, np.ndarray):
            try:
                number = operator.index(value)
            except Exception as error:  # any error of the object
                raise self._rejection(value) from error
            return self._read_integer(value, number)
        raise self._rejection(value)

    def _read_object(self, value: object, stream: BaseStream) -> Argument | None:
        """Read a texture, surface or tensor map, if the parameter is of its size."""
        if not isinstance(value, KernelObject):
            return None
        read = value._as_argument(self.param.nbytes)
        if read is not None and self._integer is None and read.kind != "tensor":
            return None  # the number of a texture is no structure
        if read is not None and value.context is not stream.context:
            raise WrongDeviceError(
                f"argument {self.position} of kernel {self.kernel!r} is {value!r}, but the launch "
                f"is on {stream!r}\n  make one over memory of that device"
            )
        return read

    def _read_pointer(self, value: object, stream: BaseStream) -> Argument | None:
        """Read the address that an object of another library refers to, if any."""
        if isinstance(value, CUdeviceptr):
            return Argument(struct.pack("=Q", int(value)), "raw")
        try:
            resolved = _pointer_finder()(value, stream, self.elements)
        except BufferError as error:
            raise self._error(f"is {_described(value)} and {error}") from error
        if resolved is not None:
            address, way, keeper = resolved
            if way == "raw":
                # An export by DLPack may be a copy, which is freed with its tensor.
                return Argument(struct.pack("=Q", address), "raw", holds=(value, keeper))
            return Argument(address, way, holds=value)
        if isinstance(value, np.ndarray):
            if has_mask(value):
                raise self._mismatch(value, "give array.filled(value): kernels receive no mask")
            address = self._pinned_address(value, stream)
            self._require_usable(value, value, True, not value.flags.writeable)
            return Argument(struct.pack("=Q", address), "raw", holds=value)
        return None

    def _pinned_address(self, value: AnyArray, stream: BaseStream) -> int:
        """Return the address of a pinned host array, the same for host and device."""
        if value.flags.c_contiguous and is_reachable(stream._handle, value):
            return host_address(value)
        raise self._error(
            f"is {_described(value)}, but the parameter is {self.type_name}\n"
            "  copy it with Stream.to_device first, let the launch copy it by cudadrv.In, Out or "
            "InOut, or have a C-contiguous one in cudadrv.pinned_empty"
        )

    def _of_type(self, value: object, types: frozenset[type], read: Argument) -> Argument:
        """Return `read`, or its bytes if generated code does not take values of this type."""
        return read if type(value) in types else Argument(self.packed(read), "raw")

    def packed(self, argument: Argument) -> bytes:
        """Return the bytes of a value of any kind."""
        if isinstance(argument.value, bytes):
            return argument.value
        return struct.pack("=" + self.code(argument.kind), argument.value)

    def _structure(self, value: object) -> bytes:
        """Pack a structure by value; `structure_bytes` lists the accepted types."""
        nbytes = self.param.nbytes
        of_array = value.dtype.kind if isinstance(value, np.ndarray) else ""
        is_complex = of_array == "c" or isinstance(value, (complex, np.complexfloating))
        try:
            data = self._bytes_of_class(value) or structure_bytes(value, nbytes)
        except OverflowError:
            name = COMPLEX_NAMES[nbytes]
            raise self._error(f"is {shown(value)}, out of range for {name}") from None
        if data is None or (is_complex and self._is_other_vector()):
            is_half = is_float(value) and nbytes == 2 and not self.param.cpp_type
            raise self._mismatch(value, _OF_STRUCTURE + (_OF_HALF if is_half else ""))
        if _is_swapped(value):
            raise self._error(
                f"is {_described(value)} of another byte order, but the parameter is "
                f"{self.type_name}\n  convert it: NumPy's is array.astype(dtype.newbyteorder('='))"
            )
        if len(data) != nbytes:
            raise self._error(
                f"is {_described(value)} of {len(data)} bytes, but the parameter is "
                f"{self.type_name}{layout_hint(value)}"
            )
        return data

    def _is_structure(self, value: object) -> bool:
        try:
            return structure_bytes(value, self.param.nbytes) is not None
        except OverflowError:  # a complex number out of range
            return True

    def _bytes_of_class(self, value: object) -> bytes | None:
        """Return the bytes of a scalar that has the parameter's own format; None for others."""
        if is_small_number(value):
            name = OTHER_CLASSES.get(self.param.cpp_type)
            if name is not None and name == name_of(value):
                return cast("np.generic", value).tobytes()
        return None

    def _is_other_vector(self) -> bool:
        """Return whether the parameter is one of CUDA's vectors, and not two floats."""
        cpp_type = self.param.cpp_type
        return cpp_type[:1].isdigit() and cpp_type not in _COMPLEX

    def _rejection(self, value: object) -> ArgumentError:
        return self._mismatch(value, getattr(type(value), "argument_hint", "") or self._hint(value))

    def _mismatch(self, value: object, hint: str) -> ArgumentError:
        mismatch = f"is {_described(value)}, but the parameter is {self.type_name}"
        return self._error(f"{mismatch}\n  {hint}" if hint else mismatch)

    def _hint(self, value: object) -> str:
        """Return the remedy of a frequent mistake, or nothing."""
        if isinstance(value, (DeviceArray, DeviceBuffer)):
            return "device memory goes into pointers; look at the order of the arguments"
        if is_float(value) and self.param.ptx_type == "b16":
            return "give numpy.float16(...) or ml_dtypes.bfloat16(...): PTX has only the size"
        if isinstance(value, float) and not self.param.is_pointer and self._integer:
            remedy = "convert it, such as by int(...)"
            if value.is_integer():
                return remedy
            return f"{remedy}, or look at the order of the arguments"
        if isinstance(value, (list, tuple)) and self.param.is_pointer is not False:
            return "make an array of it: Stream.to_device(numpy.array(...))"
        if hasattr(type(value), "__dlpack__") and self.param.is_pointer is not False:
            return "its memory is on no CUDA device: copy the values with Stream.to_device"
        return ""

    def _error(self, problem: str) -> ArgumentError:
        return ArgumentError(
            f"argument {self.position} of kernel {self.kernel!r} {problem}",
            kernel=self.kernel,
            position=self.position,
        )


@cache  # an import statement takes 2 µs, also for a module that is loaded
def _pointer_finder() -> Callable[[object, BaseStream, Elements | None], Pointer | None]:
    # Many programs use no other library's memory, and save a millisecond.
    from ..interop.foreign import pointer_of

    return pointer_of


def is_small(value: object) -> bool:
    """Return whether a value is a number of at most 16 bits, of NumPy or ml_dtypes."""
    return isinstance(value, np.float16) or is_small_number(value)


def is_float(value: object) -> bool:
    """Return whether a value is a floating-point number of Python, NumPy or ml_dtypes."""
    return isinstance(value, (float, np.floating)) or is_small_number(value)


def _described(value: object) -> str:
    if isinstance(value, np.ndarray):
        masked = "masked " if has_mask(value) else ""
        return f"a {masked}host array {value.shape} {dtype_name(value.dtype)}"
    if isinstance(value, DeviceArray) and not value.is_contiguous:
        return f"a DeviceArray of strides {value.strides}"
    if isinstance(value, (DeviceArray, DeviceBuffer)):  # views, too
        return "a DeviceArray" if isinstance(value, DeviceArray) else "a DeviceBuffer"
    if isinstance(value, np.void):
        return "a NumPy structure"
    if isinstance(value, (int, float, np.generic)):
        return f"{type(value).__name__} {shown(value)}"
    return f"of type {type(value).__name__}"
