"""A tensor that an object offers by DLPack: by its type's exchange functions, or by its methods.

Source: the Python specification of DLPack.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from ..driver.stream_core import StreamCore
from ..errors import DTypeError, WrongDeviceError
from ..memory.export import DL_CUDA, EXTENDED, DLTensor, VersionedTensor, is_read_only
from .elements import named_dtype
from .exchange import Exchange, exchange_of
from .ordering import follow_producers
from .reader import found_for

_DL_MANAGED: Final = 13  # kDLCUDAManaged
_ON_GPU: Final = (DL_CUDA, _DL_MANAGED)
_DLPACK_VERSION: Final = (1, 1)
# dlpack.h: DLDataTypeCode as the kinds of NumPy's dtypes.
_KIND: Final = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}


class Offer(NamedTuple):
    """A tensor, which our stream comes after.

    Attributes:
        tensor: it lives as long as `keeper`.
        is_read_only: whether nobody may write the memory.
        keeper: gives the tensor back to its producer when it is dropped.
    """

    tensor: DLTensor
    is_read_only: bool
    keeper: object

    @property
    def address(self) -> int:
        """The address of the first element.

        Raises:
            ValueError: it does not fit 64 bits.
        """
        address: int = (self.tensor.data or 0) + self.tensor.byte_offset
        if address >= 1 << 64:
            raise ValueError(f"the address {address:#x} does not fit 64 bits")
        return address

    @property
    def dtype_name(self) -> str:
        """NumPy's or ml_dtypes' name of the dtype; "" for what neither has."""
        tensor = self.tensor
        return _name_of(tensor.code, tensor.bits, tensor.lanes)

    # Its type is the producer's affair.
    def dtype(self, value: object) -> np.dtype[Any]:
        """The dtype of the elements of `value`, which is named in the error."""
        name = self.dtype_name
        found = named_dtype(name)
        if found is not None:
            return found
        hint = "import ml_dtypes, or view it" if name else "view it"
        raise DTypeError(
            f"a {type(value).__name__} of DLPack's type code {self.tensor.code} with "
            f"{self.tensor.bits} bits and {self.tensor.lanes} lanes: NumPy has no such dtype; "
            f"{hint} as one of that size first"
        )


@lru_cache(maxsize=256)
def _name_of(code: int, bits: int, lanes: int) -> str:
    kind = _KIND.get(code)
    try:
        if kind is not None and lanes == 1 and bits % 8 == 0:
            return np.dtype(f"{kind}{bits // 8}").name
    except TypeError:
        pass
    return EXTENDED.get((code, bits), "") if lanes == 1 else ""


def offered(value: object, stream: StreamCore) -> Offer | None:
    """What an object offers by DLPack in memory of a GPU, or None.

    Raises:
        WrongDeviceError: its library says that it lies on another device.
    """
    exchange = exchange_of(type(value))
    if exchange is None or not _may_exchange(value):
        return _by_method(value, stream)
    return _by_exchange(value, stream, exchange)


def _may_exchange(value: object) -> bool:
    """Whether the exchange functions are to be asked, as for memory of a GPU alone.

    A library whose reader tells of no stream, as JAX's, may still compute the values; its method
    waits for that. A reader knows sooner than ``__dlpack_device__`` where memory lies.
    """
    kind: type = type(value)
    found = found_for(kind)
    if found is not None:
        reader = found.reader
        return found.type is kind and reader.stream is not None and reader.device(value) >= 0
    where = getattr(value, "__dlpack_device__", None)
    return where is None or int(where()[0]) in _ON_GPU


def _by_exchange(value: object, stream: StreamCore, exchange: Exchange) -> Offer | None:
    lent = exchange.lend(value)
    managed = VersionedTensor.at(lent.value or 0)
    tensor = managed.tensor
    if tensor.device_type not in _ON_GPU:
        return None
    if tensor.device_type == DL_CUDA and tensor.device_id != stream.context.ordinal:
        raise WrongDeviceError(
            f"a {type(value).__name__} on device {tensor.device_id} was given to {stream!r}"
        )
    follow_producers(stream, (exchange.current_stream(tensor.device_type, tensor.device_id),))
    return Offer(tensor, managed.is_read_only, lent)


def _by_method(value: object, stream: StreamCore) -> Offer | None:
    where = getattr(value, "__dlpack_device__", None)
    export = getattr(value, "__dlpack__", None)
    if where is None or export is None or int(where()[0]) not in _ON_GPU:
        return None
    number = int(stream.handle)
    try:
        capsule: object = export(stream=number, max_version=_DLPACK_VERSION)
    except TypeError:  # a producer from before there were versions
        capsule = export(stream=number)
    # The capsule's own destructor gives the tensor back; its producer stays with the caller.
    return Offer(DLTensor.of(capsule), is_read_only(capsule), capsule)
