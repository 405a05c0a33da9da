"""What a kernel takes and needs, asked of its image and of the driver; `module.Kernel` launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import ptx

from .. import border, errors
from ..driver._api import CUfunction, CUfunction_attribute as _Attribute, CUresult
from ..driver.context import BaseContext
from ..driver.context_handle import ModuleHandle
from ..driver.driver_selection import failure
from ..driver.handle import NotCopyable
from .arguments import Parameter
from .kernel_attributes import KernelAttributes
from .parameter_block import ParameterBlock

_DEFAULT_DYNAMIC_SHARED: Final = 48 * 1024
_MOST_PARAMETER_BYTES: Final = 1 << 16  # above what any CUDA version takes


if TYPE_CHECKING:  # making a protocol takes a start longer than most modules

    class ModuleName(Protocol):
        """The module of a kernel, as far as this file goes."""

        context: BaseContext
        # A `ClosedHandle` once it is closed; see `Closeable`.
        _handle: ModuleHandle


class KernelCore(NotCopyable):
    """A kernel of a module, without its launches.

    Attributes:
        name: the name it was asked for.
        signature: its parameters.
        parameters: what packs each argument.
        parameter_bytes: size of the parameter block.
        handle: the CUfunction; reading it after the module's `close` raises `ClosedError`.
    """

    __slots__ = (
        "__weakref__", "_attributes", "_function", "_module", "_offsets", "_shared_allowed",
        "name", "parameter_bytes", "parameters", "signature",
    )  # fmt: skip

    def __init__(
        self,
        module: ModuleName,
        name: str,
        function: CUfunction,
        signature: ptx.KernelSignature | None,
    ) -> None:
        self._module = module
        self.name: str = name
        self._function = function
        self.signature: ptx.KernelSignature = signature or _asked_signature(module, name, function)
        self.parameters: tuple[Parameter, ...] = tuple(
            Parameter(name, position, param) for position, param in enumerate(self.signature.params)
        )
        self.parameter_bytes: int = self.signature.nbytes
        self._offsets = tuple(param.offset for param in self.signature.params)
        self._attributes: dict[int, int] = {}
        self._shared_allowed = _DEFAULT_DYNAMIC_SHARED

    def __repr__(self) -> str:
        return f"<Kernel {self.name}({self.describe_parameters()})>"

    @property
    def handle(self) -> CUfunction:
        """The CUfunction.

        Raises:
            ClosedError: the module was closed.
        """
        if not isinstance(self._module._handle, ModuleHandle):
            raise errors.ClosedError(f"the module of kernel {self.name!r} was closed")
        return self._function

    @property
    def attributes(self) -> KernelAttributes:
        """What the kernel needs, and what it may be told, by name."""
        return KernelAttributes(self)

    def attribute(self, attribute: int) -> int:
        """One attribute, which the driver is asked for once.

        Source: CUfunction_attribute in the CUDA Driver API manual.
        """
        number = border.integer("Kernel.attribute: attribute", attribute)
        found = self._attributes.get(number)
        if found is None:
            handle, box = self.handle, self._module._handle  # held until the call is made
            doing = f"attribute {number} of kernel {self.name!r}"
            try:
                known = _Attribute(number)
            except ValueError as error:
                raise errors.InvalidValueError(f"{doing}, which cuda-bindings lacks") from error
            code, found = box.api.cuFuncGetAttribute(known, handle)
            if code:
                raise failure(box.api, code, "cuFuncGetAttribute", doing)
            self._attributes[number] = found
        return found

    def set_attribute(self, attribute: int, value: int) -> None:
        """Set an attribute, for the launches from now on.

        Source: cuFuncSetAttribute in the CUDA Driver API manual.

        Raises:
            InvalidValueError: it cannot be set, or not to this.
        """
        number = border.integer("Kernel.set_attribute: attribute", attribute)
        value = border.whole("Kernel.set_attribute: value", value, least=-(2**31), most=2**31 - 1)
        handle, box = self.handle, self._module._handle  # held until the call is made
        doing = f"setting attribute {number} of kernel {self.name!r} to {value}"
        try:
            known = _Attribute(number)
        except ValueError as error:
            raise errors.InvalidValueError(f"{doing}, which cuda-bindings lacks") from error
        (code,) = box.api.cuFuncSetAttribute(handle, known, value)
        if code:
            raise failure(box.api, code, "cuFuncSetAttribute", doing)
        if known == _Attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            self._shared_allowed = value
        self._attributes.clear()  # one may depend on another

    def max_active_blocks(self, block_threads: int, shared_bytes: int = 0) -> int:
        """How many blocks one multiprocessor can hold at once (the occupancy calculator).

        Raises:
            InvalidValueError: a block cannot have so many threads or so much shared memory.
        """
        if type(block_threads) is not int or type(shared_bytes) is not int:
            block_threads = border.integer("max_active_blocks: block_threads", block_threads)
            shared_bytes = border.integer("max_active_blocks: shared_bytes", shared_bytes)
        if not 1 <= block_threads < 1 << 31 or not 0 <= shared_bytes < 1 << 31:
            raise errors.InvalidValueError(
                f"the occupancy of kernel {self.name!r} with {block_threads} threads and "
                f"{shared_bytes} bytes of shared memory a block"
            )
        self._allow_shared(shared_bytes)
        handle, box = self.handle, self._module._handle
        ask = box.api.cuOccupancyMaxActiveBlocksPerMultiprocessor
        code, blocks = box.context.call(ask, handle, block_threads, shared_bytes)
        if code:
            call = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
            raise failure(box.api, code, call, f"the occupancy of kernel {self.name!r}")
        return blocks

    def describe_parameters(self) -> str:
        """The parameters' types in words."""
        return ", ".join(parameter.type_name for parameter in self.parameters) or "none"

    def _forget(self, launcher: object) -> None:
        """Keep a launcher no longer, as its stream or the module was closed."""

    def _new_block(self) -> ParameterBlock:
        """Memory for one launch's parameters."""
        return ParameterBlock(self._offsets, self.parameter_bytes)

    def _allow_shared(self, nbytes: int) -> None:
        """Ask the driver for dynamic shared memory above 48 KiB; it must be asked once a kernel."""
        if nbytes <= self._shared_allowed:
            return
        handle, box = self.handle, self._module._handle  # held until the call is made
        (code,) = box.api.cuFuncSetAttribute(
            handle, _Attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, nbytes
        )
        if code:
            doing = f"allowing kernel {self.name!r} {nbytes} bytes of dynamic shared memory"
            raise failure(box.api, code, "cuFuncSetAttribute", doing)
        self._shared_allowed = nbytes
        self._attributes.clear()  # one of them tells of it


def _asked_signature(module: ModuleName, name: str, handle: CUfunction) -> ptx.KernelSignature:
    """Sizes and offsets as the driver knows them, for an image without PTX text.

    A parameter of 1, 2, 4 or 8 bytes is "bits": it takes an integer or a float of that size.
    """
    api = module._handle.api
    count = _asked_count(module._handle, name, handle)
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


def _asked_count(box: ModuleHandle, name: str, handle: CUfunction) -> int | None:
    """How many parameters a kernel has; None where the driver or its binding cannot be asked.

    They can since CUDA 13.2. Before that the manual gives one way: to ask for one parameter after
    the other, until cuFuncGetParamInfo answers CUDA_ERROR_INVALID_VALUE.
    """
    try:
        code, count = box.context.call(box.api.cuFuncGetParamCount, handle)
    except errors.DriverSymbolMissingError:
        return None
    if code:
        raise failure(box.api, code, "cuFuncGetParamCount", f"the parameters of kernel {name!r}")
    return count


def check_signature(signature: ptx.KernelSignature) -> None:
    """Raise for what is no signature that arguments can be packed by."""
    where = "Module.kernel: signature"
    border.instance(where, signature, ptx.KernelSignature)
    border.whole(f"{where}.nbytes", signature.nbytes)
    end = 0
    for param in border.several(f"{where}.params", signature.params, ptx.KernelParam):
        border.text(f"{where}: ptx_type", param.ptx_type)
        border.whole(f"{where}: count", param.count, 1)
        border.whole(f"{where}: offset", param.offset, end)
        end = param.offset + border.whole(f"{where}: nbytes", param.nbytes, 1)
    border.whole(f"{where}.nbytes", signature.nbytes, end, _MOST_PARAMETER_BYTES)
