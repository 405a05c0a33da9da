"""`KernelAttributes`: the driver's attributes of a kernel, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final, Self, overload

from .. import border, errors
from ..driver._api import CUfunction, CUfunction_attribute as _Attribute
from ..driver.context_handle import ModuleHandle
from ..driver.driver_selection import failure
from .config import LaunchConfig

_DEFAULT_DYNAMIC_SHARED: Final = 48 * 1024


class _Readable:
    """An attribute that is queried from the driver once."""

    def __init__(self, attribute: _Attribute, doc: str) -> None:
        self.number: Final = int(attribute)
        self.__doc__ = doc

    @overload
    def __get__(self, owner: None, cls: type[KernelAttributes]) -> Self: ...
    @overload
    def __get__(self, owner: KernelAttributes, cls: type[KernelAttributes]) -> int: ...
    def __get__(self, owner: KernelAttributes | None, cls: type[KernelAttributes]) -> int | Self:
        return self if owner is None else owner[self.number]

    def __set__(self, owner: KernelAttributes, value: int) -> None:
        raise AttributeError("this kernel attribute is read-only")


class _Settable(_Readable):
    """An attribute that can be set as well."""

    def __set__(self, owner: KernelAttributes, value: int) -> None:
        owner[self.number] = value


class KernelAttributes:
    """The driver's attributes of a kernel; sizes in bytes.

    ``attributes[number]`` reads or sets an attribute by its number, which may be newer than the
    names. The text of each name states if it can be set. An attribute is queried once.

    Source: CUfunction_attribute in the CUDA Driver API manual.

    Raises:
        InvalidValueError: the driver does not know the number, the attribute cannot be set, or not
            to this value.
        ClosedError: the module was closed.
    """

    __slots__ = ("_changes", "_kernel", "_known", "_loaded", "_shared_allowed")

    def __init__(self, kernel: str, loaded: Callable[[], tuple[CUfunction, ModuleHandle]]) -> None:
        self._kernel = kernel
        self._loaded = loaded
        self._known: dict[int, int] = {}
        self._shared_allowed = _DEFAULT_DYNAMIC_SHARED
        self._changes = 0  # how often the driver set one

    def __repr__(self) -> str:
        names = [name for name, kind in vars(type(self)).items() if isinstance(kind, _Readable)]
        return f"<KernelAttributes {', '.join(f'{name}={getattr(self, name)}' for name in names)}>"

    # Otherwise Python would try the numbers from 0 on.
    __iter__: ClassVar[None] = None
    __contains__: ClassVar[None] = None

    def __getitem__(self, number: int) -> int:
        enumerator: object = number
        if isinstance(enumerator, int):
            number = int.__index__(enumerator)  # a subclass may print as another number
        else:
            number = border.integer("Kernel.attributes: attribute", enumerator)
        function, module = self._loaded()  # held until the call is made
        value = self._known.get(number)
        if value is None:
            doing = f"attribute {number} of kernel {self._kernel!r}"
            code, value = module.api.cuFuncGetAttribute(_known_number(number, doing), function)
            if code:
                raise failure(module.api, code, "cuFuncGetAttribute", doing)
            self._known[number] = value
        return value

    def __setitem__(self, number: int, value: int) -> None:
        number = border.integer("Kernel.attributes: attribute", number)
        value = border.int_in_range(
            "Kernel.attributes: value", value, least=-(2**31), most=2**31 - 1
        )
        doing = f"setting attribute {number} of kernel {self._kernel!r} to {value}"
        self._change(number, value, doing)
        if number == _Attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            self._shared_allowed = value

    def _allow_shared_of(self, config: LaunchConfig) -> None:
        """Request the dynamic shared memory of a configuration from the driver."""
        if config.attributes.shared_memory_mode is None:  # else the driver ignores the limit
            self._allow_shared(config.shared_bytes)

    def _allow_shared(self, nbytes: int) -> None:
        """Request dynamic shared memory above 48 KiB from the driver, once per kernel."""
        if nbytes <= self._shared_allowed:
            return
        number = _Attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        doing = f"allowing kernel {self._kernel!r} {nbytes} bytes of dynamic shared memory"
        self._change(number, nbytes, doing)
        self._shared_allowed = nbytes

    def _change(self, number: int, value: int, doing: str) -> None:
        function, module = self._loaded()  # held until the call is made
        (code,) = module.api.cuFuncSetAttribute(function, _known_number(number, doing), value)
        if code:
            raise failure(module.api, code, "cuFuncSetAttribute", doing)
        self._known.clear()  # one may depend on another
        self._changes += 1

    if not TYPE_CHECKING:
        __iter__ = None  # else Python would count numbers up until one is unknown

    max_threads_per_block: _Readable = _Readable(
        _Attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, "The most threads of a block."
    )
    static_shared_bytes: _Readable = _Readable(
        _Attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, "Shared memory that its code asks for."
    )
    const_bytes: _Readable = _Readable(
        _Attribute.CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, "Constant memory of its module."
    )
    local_bytes: _Readable = _Readable(
        _Attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, "Local memory of each thread."
    )
    registers: _Readable = _Readable(
        _Attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, "Registers of each thread."
    )
    ptx_version: _Readable = _Readable(
        _Attribute.CU_FUNC_ATTRIBUTE_PTX_VERSION, "The PTX target, such as 90 for 9.0."
    )
    binary_version: _Readable = _Readable(
        _Attribute.CU_FUNC_ATTRIBUTE_BINARY_VERSION, "The architecture of its code, such as 90."
    )
    caches_globals: _Readable = _Readable(
        _Attribute.CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, "1 if it was compiled with ``-dlcm=ca``."
    )
    max_dynamic_shared_bytes: _Settable = _Settable(
        _Attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        "The most dynamic shared memory of a block; may be set, and a launch raises it by itself.",
    )
    preferred_shared_carveout: _Settable = _Settable(
        _Attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
        "How much of the L1 cache is to be shared memory, in percent; -1 leaves it to the driver. "
        "May be set.",
    )
    cluster_size_must_be_set: _Readable = _Readable(
        _Attribute.CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET,
        "1 if each launch must name its cluster.",
    )
    required_cluster_width: _Settable = _Settable(
        _Attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
        "Blocks of its clusters along x, 0 where that is open; may be set where it was.",
    )
    required_cluster_height: _Settable = _Settable(
        _Attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, "The same along y."
    )
    required_cluster_depth: _Settable = _Settable(
        _Attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, "The same along z."
    )
    allows_non_portable_clusters: _Settable = _Settable(
        _Attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
        "1 if clusters of more than 8 blocks are allowed; may be set.",
    )
    cluster_scheduling_policy: _Settable = _Settable(
        _Attribute.CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
        "How blocks of a cluster are spread; 0 by default, 1 widely, 2 by load; may be set.",
    )


def _known_number(number: int, doing: str) -> _Attribute:
    """Return a kernel attribute as cuda.bindings names it.

    Raises:
        InvalidValueError: the installed cuda-bindings does not know the number.
    """
    try:
        return _Attribute(number)
    except ValueError as error:
        raise errors.InvalidValueError(
            f"{doing}, which is missing in the installed cuda-bindings"
        ) from error
