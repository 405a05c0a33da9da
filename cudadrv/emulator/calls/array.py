"""CUDA arrays and mipmapped arrays.

CUDA Driver API: "Memory Management". What the calls return for a destroyed array, and with another
or no current context, was measured with driver 580 on an H100.
"""

from __future__ import annotations

from ...driver._api import CUDA_ARRAY3D_DESCRIPTOR, CUarray, CUmipmappedArray, CUresult
from ..arrays import Array, Layout, MipmappedArray, read_layout
from ..call_error import OK, SUCCESS, CallError, invalid_handle, invalid_value
from ..call_rules import CallRules
from ..contexts import Context
from ..device_state import Owner
from .call import call


class ArrayCalls(CallRules):
    """CUDA arrays and mipmapped arrays."""

    @call
    def cuArray3DCreate(
        self, allocate_array: CUDA_ARRAY3D_DESCRIPTOR | None, /
    ) -> tuple[CUresult, CUarray]:
        """An array of the current context; packed here, so smaller than a GPU's."""
        context = self._current()
        layout = read_layout(allocate_array, context.device)
        self._refuse_unsafe()
        with context.device.lock:
            piece = context.device.allocate(layout.nbytes, Owner.ARRAY, context=context.handle)
        array = Array(next(self._handles), context, layout, piece.address, piece)
        self._arrays[array.handle] = array
        return SUCCESS, CUarray(array.handle)

    @call
    def cuArrayDestroy(self, h_array: CUarray, /) -> tuple[CUresult]:
        """Free an array, whichever context is current; a level of another is left as it is."""
        array = self._array(h_array)
        self._refuse_unsafe()
        if array.piece is not None:
            self._finish_context(array.context)
            with array.context.device.lock:
                self._array(h_array)  # another thread may have destroyed it
                del self._arrays[array.handle]
                array.destroyed = True
                array.context.device.free(array.piece)
        return OK

    @call
    def cuArray3DGetDescriptor(
        self, h_array: CUarray, /
    ) -> tuple[CUresult, CUDA_ARRAY3D_DESCRIPTOR]:
        """The descriptor that the array was made of, or that of a level."""
        return SUCCESS, self._array(h_array).layout.descriptor()

    @call
    def cuMipmappedArrayCreate(
        self, mipmapped_array_desc: CUDA_ARRAY3D_DESCRIPTOR | None, num_mipmap_levels: int, /
    ) -> tuple[CUresult, CUmipmappedArray]:
        """A mipmapped array of as many levels as asked for, as far as there are so many."""
        context = self._current()
        layout = read_layout(mipmapped_array_desc, context.device)
        self._check_mipmaps(layout, context)
        self._refuse_unsafe()
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
            Array(next(self._handles), context, level, piece.address + start, None)
            for level, start in zip(layouts, starts, strict=False)
        )
        self._arrays |= {level.handle: level for level in levels}
        mipmapped = MipmappedArray(next(self._handles), context, levels, piece)
        self._mipmapped_arrays[mipmapped.handle] = mipmapped
        return SUCCESS, CUmipmappedArray(mipmapped.handle)

    @staticmethod
    def _check_mipmaps(layout: Layout, context: Context) -> None:
        """One- and two-dimensional mipmaps have limits of their own."""
        # CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, 2D_MIPMAPPED_WIDTH, _HEIGHT
        attributes = context.device.attributes
        if layout.depth:
            return
        most = (attributes[73], attributes[74]) if layout.height else (attributes[77], 0)
        if layout.width > most[0] or layout.height > most[1]:
            raise invalid_value(
                f"a mipmapped array of {layout.width}, {layout.height} is above the limit of {most}"
            )

    @call
    def cuMipmappedArrayGetLevel(
        self, h_mipmapped_array: CUmipmappedArray, level: int, /
    ) -> tuple[CUresult, CUarray]:
        """A level, always with the same handle."""
        levels = self._mipmapped_array(h_mipmapped_array).levels
        if level >= len(levels):
            raise invalid_value(f"level {level} of a mipmapped array of {len(levels)}")
        return SUCCESS, CUarray(levels[level].handle)

    @call
    def cuMipmappedArrayDestroy(self, h_mipmapped_array: CUmipmappedArray, /) -> tuple[CUresult]:
        """Free a mipmapped array with its levels."""
        mipmapped = self._mipmapped_array(h_mipmapped_array)
        self._refuse_unsafe()
        self._finish_context(mipmapped.context)
        with mipmapped.context.device.lock:
            self._mipmapped_array(h_mipmapped_array)  # another thread may have destroyed it
            del self._mipmapped_arrays[mipmapped.handle]
            for level in mipmapped.levels:
                del self._arrays[level.handle]
                level.destroyed = True
            mipmapped.context.device.free(mipmapped.piece)
        return OK

    def _mipmapped_array(self, handle: CUmipmappedArray) -> MipmappedArray:
        number = int(handle)
        if not number:
            raise invalid_handle("invalid resource handle: the mipmapped array is null")
        found = self._mipmapped_arrays.get(number)
        if found is None:
            raise CallError(
                CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED,
                f"{number:#x} is no live mipmapped array",
            )
        self._usable(found.context)
        return found
