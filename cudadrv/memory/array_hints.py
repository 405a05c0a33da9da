"""What the methods of other libraries' arrays are called here, for errors."""

from __future__ import annotations

from typing import Final

_TO_HOST = "copy it to the host: stream.to_host(array)"
_FROM_HOST = "copy to it: stream.copy(array, host_array)"
_COPY = "copy it: stream.copy(stream.empty(array.shape, array.dtype), array)"
_FILL = "fill it: stream.fill(array, value)"
_FLAT = "view it by array.reshape(-1)"
_COMPUTE = (
    "cudadrv computes nothing by itself: use a kernel, or share the memory with a library that "
    "does, such as cupy.asarray(array) or torch.from_dlpack(array)"
)
# By the names of NumPy, CuPy, PyCUDA, Numba, PyTorch and JAX.
_NAMES: Final = {
    _TO_HOST: "get get_async numpy cpu to_host copy_to_host tolist item tobytes",
    _FROM_HOST: "set set_async copy_to_device copy_from_host copy_ put",
    _COPY: "copy clone copy_device_to_device",
    _FILL: "fill fill_ zero_ memset",
    _FLAT: "ravel flatten flat",
    _COMPUTE: (
        "abs all any argmax argmin argsort astype clip conj cumsum dot float half int matmul max "
        "mean min nonzero prod round sort std sum to var"
    ),
}
_HINTS: Final = {name: hint for hint, names in _NAMES.items() for name in names.split()}


def missing_attribute(array: object, name: str) -> AttributeError | None:
    """Return the error for an attribute that arrays of other libraries have; None for others."""
    hint = _HINTS.get(name)
    if hint is None:
        return None
    text = f"{type(array).__name__!r} object has no attribute {name!r}\n  {hint}"
    return AttributeError(text, name=name, obj=array)
