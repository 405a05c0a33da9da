"""Device memory, pinned and managed memory, and memory that is page-locked afterwards.

CUDA Driver API: "Memory Management". Devices access host memory at its own address (unified
addressing). CUDA arrays are in the same chapter.
"""

from __future__ import annotations

from typing import Final

from ...driver._api import (
    CUDA_ARRAY3D_DESCRIPTOR,
    CUDA_ARRAY_DESCRIPTOR,
    CUarray,
    CUdeviceptr,
    CUmipmappedArray,
    CUresult,
)
from ..arrays import Array, ArrayLayout, MipmappedArray, read_layout
from ..call_error import OK, SUCCESS, CallError, invalid_handle, invalid_value
from ..caller_memory import is_readable
from ..contexts import Context
from ..device_state import Owner
from .call import DriverCalls, call
from .stream_ordered_memory import free_device_memory, free_of_host

_PITCH_BYTES: Final = 512
_ELEMENT_SIZES: Final = (4, 8, 16)
_HOST_FLAGS: Final = 7
_ATTACH: Final = (1, 2)  # globally, or to the host; CU_MEM_ATTACH_GLOBAL, _HOST
_REGISTER_FLAGS: Final = 15  # CU_MEMHOSTREGISTER_PORTABLE, _DEVICEMAP, _IOMEMORY, _READ_ONLY


class MemoryCalls(DriverCalls):
    """Device memory, pinned and managed memory."""

    @call
    def cuMemGetInfo(self) -> tuple[CUresult, int, int]:
        """Return free and total bytes; a pool's reserved memory is not free."""
        device = self._state.handles.current().device
        with device.lock:
            return SUCCESS, device.account.free_bytes, device.profile.total_memory

    @call
    def cuMemAlloc(self, bytesize: int, /) -> tuple[CUresult, CUdeviceptr]:
        """Allocate memory of the current context."""
        context = self._state.handles.current()
        self._state.captures.reject_unsafe()
        if bytesize <= 0:
            raise invalid_value("cuMemAlloc was asked for no bytes")
        with context.device.lock:
            piece = context.device.allocate(bytesize, Owner.PLAIN, context=context.handle)
        return SUCCESS, CUdeviceptr(piece.address)

    @call
    def cuMemAllocPitch(
        self, width_in_bytes: int, height: int, element_size_bytes: int, /
    ) -> tuple[CUresult, CUdeviceptr, int]:
        """Allocate rows, and return the bytes from one to the next, a multiple of 512."""
        if element_size_bytes not in _ELEMENT_SIZES or width_in_bytes <= 0 or height <= 0:
            raise invalid_value(
                f"{height} rows of {width_in_bytes} bytes, with elements of {element_size_bytes}: "
                "elements have 4, 8 or 16 bytes"
            )
        context = self._state.handles.current()
        self._state.captures.reject_unsafe()
        pitch = -(-width_in_bytes // _PITCH_BYTES) * _PITCH_BYTES
        with context.device.lock:
            piece = context.device.allocate(pitch * height, Owner.PLAIN, context=context.handle)
        return SUCCESS, CUdeviceptr(piece.address), pitch

    @call
    def cuMemFree(self, dptr: CUdeviceptr, /) -> tuple[CUresult]:
        """Free memory of cuMemAlloc, cuMemAllocManaged or a pool; null is allowed."""
        address = int(dptr)
        if address:
            self._reject_if_current_ended()
            self._free_anywhere(address)
        elif self._state.thread.stack:
            self._state.handles.current()
        return OK

    def _reject_if_current_ended(self) -> None:
        """Reject a free while the current context is destroyed, also of memory that outlives it."""
        if self._state.thread.stack and self._state.handles.top().destroyed:
            raise CallError(
                CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, "the current context is destroyed"
            )

    def _free_anywhere(self, address: int) -> None:
        host = self._state.memory.host.find(address)
        if host is not None and (host.pool is not None or host.graph is not None):
            free_of_host(self._state, address)
            return
        if host is not None and host.managed and host.address == address:
            self._state.operations.finish_context_of(host.context)
        with self._state.lock:
            managed = self._state.memory.host.free(address, managed=True)
        if not managed:
            free_device_memory(self._state, address)

    @call
    def cuMemAllocManaged(self, bytesize: int, flags: int, /) -> tuple[CUresult, CUdeviceptr]:
        """Allocate memory for host and devices, at one address."""
        if flags not in _ATTACH:
            raise invalid_value(f"invalid attachment flags of managed memory {flags:#x}")
        if bytesize <= 0:
            raise invalid_value("cuMemAllocManaged was asked for no bytes")
        return SUCCESS, CUdeviceptr(self._allocate_host(bytesize, managed=True))

    @call
    def cuMemHostAlloc(self, bytesize: int, flags: int, /) -> tuple[CUresult, int]:
        """Allocate pinned host memory, which kernels access at its address; 0 bytes give null."""
        if flags & ~_HOST_FLAGS:
            raise invalid_value(f"invalid flags of host memory {flags:#x}")
        return SUCCESS, self._allocate_host(bytesize, flags=flags) if bytesize > 0 else 0

    def _allocate_host(self, nbytes: int, *, managed: bool = False, flags: int = 0) -> int:
        context = self._state.handles.current()
        self._state.captures.reject_unsafe()
        try:
            with self._state.lock:
                piece = self._state.memory.host.allocate(
                    nbytes, context.handle, context.device.ordinal, managed=managed, flags=flags
                )
            if self._state.operations.accesses is not None:
                self._state.operations.accesses.born(piece.address)
        except (OSError, ValueError, OverflowError) as error:
            raise CallError(
                CUresult.CUDA_ERROR_OUT_OF_MEMORY,
                f"out of memory: {nbytes} bytes of host memory asked for ({error})",
            ) from error
        return piece.address

    @call
    def cuMemFreeHost(self, p: int, /) -> tuple[CUresult]:
        """Free pinned host memory; null is allowed."""
        if not p:
            return OK
        if self._state.thread.stack:
            self._state.handles.usable(self._state.handles.top())
        self._state.captures.reject_unsafe()
        host = self._state.memory.host.find(p)
        if host is not None and host.address == p and not host.managed:
            self._state.operations.finish_context_of(host.context)
        with self._state.lock:
            if not self._state.memory.host.free(p):
                raise invalid_value(f"cannot free {p:#x}: no pinned memory starts there")
        return OK

    @call
    def cuMemAllocHost(self, bytesize: int, /) -> tuple[CUresult, int]:
        """Allocate pinned host memory."""
        return self.cuMemHostAlloc(bytesize, 0)

    @call
    def cuMemHostRegister(self, p: int, bytesize: int, flags: int, /) -> tuple[CUresult]:
        """Page-lock memory that the caller still owns."""
        context = self._state.handles.current()
        self._state.captures.reject_unsafe()
        if flags & ~_REGISTER_FLAGS or not p or bytesize <= 0:
            raise invalid_value(f"cannot page-lock {bytesize} bytes at {p:#x} with flags {flags}")
        ends = p, p + bytesize - 1
        if self._state.process.has_foreign_callers and not all(is_readable(at, 1) for at in ends):
            raise invalid_value(f"{bytesize} bytes at {p:#x} are not all mapped")
        with self._state.lock:
            piece = self._state.memory.host.register(
                p, bytesize, context.handle, context.device.ordinal, flags
            )
        if piece is None:
            raise CallError(
                CUresult.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                f"some of the {bytesize} bytes at {p:#x} are page-locked already",
            )
        if self._state.operations.accesses is not None:
            self._state.operations.accesses.born(p)
        return OK

    @call
    def cuMemHostUnregister(self, p: int, /) -> tuple[CUresult]:
        """Undo the registration, when the work of its context is done."""
        self._state.handles.current()
        self._state.captures.reject_unsafe()
        piece = self._state.memory.host.find(p)
        if piece is not None and piece.is_registered:
            if piece.address != p:
                raise invalid_value(
                    f"{p:#x} lies within page-locked memory that begins at {piece.address:#x}"
                )
            self._state.operations.finish_context_of(piece.context)
        with self._state.lock:
            if not self._state.memory.host.free(p, registered=True):
                raise CallError(
                    CUresult.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
                    f"no memory that cuMemHostRegister was given begins at {p:#x}",
                )
        return OK

    @call
    def cuMemHostGetDevicePointer(self, p: int, flags: int, /) -> tuple[CUresult, CUdeviceptr]:
        """Return the address of page-locked memory on a device: its own address."""
        self._state.handles.current()
        if flags or self._state.memory.host.find(p) is None:
            raise invalid_value(f"{p:#x} is no page-locked memory")
        return SUCCESS, CUdeviceptr(p)

    @call
    def cuMemHostGetFlags(self, p: int, /) -> tuple[CUresult, int]:
        """Return the flags of its allocation or registration; all of it is mapped."""
        self._state.handles.current()
        piece = self._state.memory.host.find(p)
        if piece is None or piece.managed:
            raise invalid_value(f"{p:#x} is no page-locked memory")
        return SUCCESS, piece.flags | 2  # CU_MEMHOSTALLOC_DEVICEMAP

    @call
    def cuMemGetAddressRange(self, dptr: CUdeviceptr, /) -> tuple[CUresult, CUdeviceptr, int]:
        """Return start and size of the allocation that holds an address."""
        self._state.handles.current()
        address = int(dptr)
        host = self._state.memory.host.find(address)
        if host is not None:
            return SUCCESS, CUdeviceptr(host.address), host.nbytes
        device = self._state.devices.holding(address)
        if device is not None:
            with device.lock:
                allocation = device.memory.find(address)
            if allocation is not None:
                return SUCCESS, CUdeviceptr(allocation.address), allocation.nbytes
        raise CallError(
            CUresult.CUDA_ERROR_NOT_FOUND, f"named symbol not found: {address:#x} is no memory"
        )


class ArrayCalls(DriverCalls):
    """CUDA arrays and mipmapped arrays."""

    @call
    def cuArray3DCreate(
        self, allocate_array: CUDA_ARRAY3D_DESCRIPTOR | None, /
    ) -> tuple[CUresult, CUarray]:
        """Create an array of the current context; packed here, so smaller than a GPU's."""
        return self._create_array(allocate_array)

    def _create_array(self, descriptor: CUDA_ARRAY3D_DESCRIPTOR | None) -> tuple[CUresult, CUarray]:
        context = self._state.handles.current()
        layout = read_layout(descriptor, context.device)
        self._state.captures.reject_unsafe()
        with context.device.lock:
            piece = context.device.allocate(layout.nbytes, Owner.ARRAY, context=context.handle)
        array = Array(self._state.handles.new(), context, layout, piece.address, piece)
        self._state.handles.arrays[array.handle] = array
        return SUCCESS, CUarray(array.handle)

    @call
    def cuArrayCreate(
        self, allocate_array: CUDA_ARRAY_DESCRIPTOR | None, /
    ) -> tuple[CUresult, CUarray]:
        """Create an array of one or two dimensions; a height of 0 means one."""
        if allocate_array is None:
            raise invalid_value("the descriptor of the array is null")
        full = CUDA_ARRAY3D_DESCRIPTOR()
        full.Width, full.Height = allocate_array.Width, allocate_array.Height
        try:
            full.Format, full.NumChannels = allocate_array.Format, allocate_array.NumChannels
        except ValueError as error:
            raise invalid_value(f"the format of the array: {error}") from None
        return self._create_array(full)

    @call
    def cuArrayDestroy(self, h_array: CUarray, /) -> tuple[CUresult]:
        """Free an array, whichever context is current; a level of another is left unchanged."""
        array = self._state.handles.array(h_array)
        self._state.captures.reject_unsafe()
        if array.piece is not None:
            self._state.operations.finish_context(array.context)
            with array.context.device.lock:
                self._state.handles.array(h_array)  # another thread may have destroyed it
                del self._state.handles.arrays[array.handle]
                array.destroyed = True
                array.context.device.free(array.piece)
        return OK

    @call
    def cuArray3DGetDescriptor(
        self, h_array: CUarray, /
    ) -> tuple[CUresult, CUDA_ARRAY3D_DESCRIPTOR]:
        """Return the creation descriptor of the array, or that of a level."""
        return SUCCESS, self._state.handles.array(h_array).layout.descriptor()

    @call
    def cuMipmappedArrayCreate(
        self, mipmapped_array_desc: CUDA_ARRAY3D_DESCRIPTOR | None, num_mipmap_levels: int, /
    ) -> tuple[CUresult, CUmipmappedArray]:
        """Create a mipmapped array of as many of the requested levels as possible."""
        context = self._state.handles.current()
        layout = read_layout(mipmapped_array_desc, context.device)
        self._check_mipmaps(layout, context)
        self._state.captures.reject_unsafe()
        largest = max(layout.width, layout.height, 0 if layout.is_layered else layout.depth)
        layouts = [layout]
        for _ in range(1, min(num_mipmap_levels, largest.bit_length())):
            layouts.append(layouts[-1].halved())
        starts = [0]
        for level in layouts:
            starts.append(starts[-1] + -(-level.nbytes // 512) * 512)
        with context.device.lock:
            piece = context.device.allocate(starts[-1], Owner.MIPMAP, context=context.handle)
        levels = tuple(
            Array(self._state.handles.new(), context, level, piece.address + start, None)
            for level, start in zip(layouts, starts, strict=False)
        )
        self._state.handles.arrays |= {level.handle: level for level in levels}
        mipmapped = MipmappedArray(self._state.handles.new(), context, levels, piece)
        self._state.handles.mipmapped_arrays[mipmapped.handle] = mipmapped
        return SUCCESS, CUmipmappedArray(mipmapped.handle)

    @staticmethod
    def _check_mipmaps(layout: ArrayLayout, context: Context) -> None:
        """Check the separate limits of one- and two-dimensional mipmaps."""
        # CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, 2D_MIPMAPPED_WIDTH, _HEIGHT
        attributes = context.device.attributes
        if layout.depth:
            return
        largest = (attributes[73], attributes[74]) if layout.height else (attributes[77], 0)
        if layout.width > largest[0] or layout.height > largest[1]:
            raise invalid_value(
                f"a mipmapped array of {layout.width}, {layout.height} is above the limit of "
                f"{largest}"
            )

    @call
    def cuMipmappedArrayGetLevel(
        self, h_mipmapped_array: CUmipmappedArray, level: int, /
    ) -> tuple[CUresult, CUarray]:
        """Return a level, always with the same handle."""
        levels = self._mipmapped_array(h_mipmapped_array).levels
        if level >= len(levels):
            raise invalid_value(f"level {level} of a mipmapped array of {len(levels)}")
        return SUCCESS, CUarray(levels[level].handle)

    @call
    def cuMipmappedArrayDestroy(self, h_mipmapped_array: CUmipmappedArray, /) -> tuple[CUresult]:
        """Free a mipmapped array with its levels."""
        mipmapped = self._mipmapped_array(h_mipmapped_array)
        self._state.captures.reject_unsafe()
        self._state.operations.finish_context(mipmapped.context)
        with mipmapped.context.device.lock:
            self._mipmapped_array(h_mipmapped_array)  # another thread may have destroyed it
            del self._state.handles.mipmapped_arrays[mipmapped.handle]
            for level in mipmapped.levels:
                del self._state.handles.arrays[level.handle]
                level.destroyed = True
            mipmapped.context.device.free(mipmapped.piece)
        return OK

    def _mipmapped_array(self, handle: CUmipmappedArray) -> MipmappedArray:
        number = int(handle)
        if not number:
            raise invalid_handle("invalid resource handle: the mipmapped array is null")
        mipmap = self._state.handles.mipmapped_arrays.get(number)
        if mipmap is None:
            raise CallError(
                CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED,
                f"{number:#x} is no live mipmapped array",
            )
        self._state.handles.usable(mipmap.context)
        return mipmap
