"""Signatures of kernels: from PTX text, from the driver, or from users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import ptx

from .. import border, errors
from ..driver._api import CUfunction, CUresult
from ..driver.context_handle import ModuleHandle
from ..driver.driver_selection import failure
from .images import is_binary

_MOST_PARAMETER_BYTES: Final = 1 << 16  # above the limit of any CUDA version


class WrittenSignatures:
    """The signatures of kernels in the PTX text of an image, which is read at the first query."""

    __slots__ = ("_signatures", "_text")

    def __init__(self, data: bytes) -> None:
        self._text: bytes | None = None if is_binary(data) else data
        self._signatures: Mapping[str, ptx.KernelSignature] = {}

    def get(self, name: str) -> ptx.KernelSignature | None:
        """Return the signature of a kernel; None without PTX, or if our reader cannot read it."""
        text = self._text
        if text is not None:
            from ptx.isa.signature import signatures_of  # saves 10 ms where PTX is not read

            try:
                self._signatures = signatures_of(text.split(b"\0", 1)[0].decode(errors="replace"))
            except ptx.PtxError:
                pass  # the driver accepted it, and is queried
            self._text = None
        return self._signatures.get(name)


def signature_by_driver(module: ModuleHandle, name: str, handle: CUfunction) -> ptx.KernelSignature:
    """Return sizes and offsets as the driver reports them, for an image without PTX text.

    A parameter of 1, 2, 4 or 8 bytes is "bits": it takes an integer or a float of that size.
    """
    api = module.api
    count = _parameter_count(module, name, handle)
    params: list[ptx.KernelParam] = []
    end = 0
    while len(params) != count:
        code, offset, nbytes = api.cuFuncGetParamInfo(handle, len(params))
        if count is None and code == CUresult.CUDA_ERROR_INVALID_VALUE:
            break
        if code:
            raise failure(api, code, "cuFuncGetParamInfo", f"the parameters of kernel {name!r}")
        scalar = nbytes in (1, 2, 4, 8)
        params.append(
            ptx.KernelParam(
                name=f"{name}_param_{len(params)}",
                ptx_type=f"b{8 * nbytes}" if scalar else "b8",
                nbytes=nbytes,
                align=nbytes if scalar else 1,
                offset=offset,
                is_pointer=None if nbytes == 8 else False,
                count=1 if scalar else nbytes,
            )
        )
        end = offset + nbytes
    return ptx.KernelSignature(name, tuple(params), end, 0, None, None)


def _parameter_count(module: ModuleHandle, name: str, handle: CUfunction) -> int | None:
    """Return how many parameters a kernel has; None if the driver or its binding cannot report it.

    They can since CUDA 13.2. Before that the manual gives one way: query one parameter after the
    other, until cuFuncGetParamInfo returns CUDA_ERROR_INVALID_VALUE.
    """
    try:
        code, count = module.context.call(module.api.cuFuncGetParamCount, handle)
    except errors.DriverSymbolMissingError:
        return None
    if code:
        raise failure(module.api, code, "cuFuncGetParamCount", f"the parameters of kernel {name!r}")
    return count


def check_signature(signature: ptx.KernelSignature) -> None:
    """Raise for a signature that arguments cannot be packed by."""
    where = "Module.kernel: signature"
    border.instance_of(where, signature, ptx.KernelSignature)
    border.int_in_range(f"{where}.nbytes", signature.nbytes)
    end = 0
    for param in border.sequence_of(f"{where}.params", signature.params, ptx.KernelParam):
        border.text(f"{where}: ptx_type", param.ptx_type)
        border.int_in_range(f"{where}: count", param.count, 1)
        border.int_in_range(f"{where}: offset", param.offset, end)
        end = param.offset + border.int_in_range(f"{where}: nbytes", param.nbytes, 1)
    border.int_in_range(f"{where}.nbytes", signature.nbytes, end, _MOST_PARAMETER_BYTES)
