"""`TensorMap`: a device array as kernels copy boxes of it to and from shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from .. import border
from ..driver.context import ContextCore
from ..driver.handle import Closed, Uncopied
from ..errors import ClosedError, TensorMapError
from ..memory.array import AnyDeviceArray, DeviceArray
from ..memory.buffer import DeviceMemory
from ..memory.order import AnyMemory
from .encoding import IM2COL, IM2COL_WIDE, REPLACE, TILED, Encoder, encoded, offsets, sizes, words
from .tensor_modes import L2Promotion, TensorElement, TensorFill, TensorInterleave, TensorSwizzle
from .tensor_rules import (
    TensorModes,
    check_tensor,
    checked_box,
    checked_corners,
    checked_pixels,
    checked_steps,
    checked_width,
    modes_of,
)


class TensorMap(Uncopied):
    """A device array as the tensor memory accelerator (TMA) copies boxes of it.

    It is given to a kernel where a ``const __grid_constant__ CUtensorMap`` stands, which
    ``cp.async.bulk.tensor`` takes. It keeps its array. A launch with it uses the array as a launch
    with the array itself would, and may write it.

    Axes are counted as NumPy does, outermost first. The coordinates in a kernel are in the other
    order: of ``a[i, j]`` they are ``{j, i}``.

    Args:
        array: 1 to 5 axes; the last one's elements lie one behind the other, and the strides of
            the others are multiples of 16 bytes. Interleaved ones have axes (N, C/8, W, 8),
            (N, C/8, H, W, 8) or (N, C/8, D, H, W, 8), the last one for the channels of a slice,
            which are as many as its bytes hold; slices lie side by side along W.
        box: how many elements are copied at once along each axis, 1 to 256; those of the last axis
            are a multiple of 16 bytes. Of interleaved ones 1 along C/8 and a whole slice along the
            last axis; as many along W as elements in a multiple of 16 bytes.
        element_strides: the distances of the elements that are copied, 1 to 8 for each axis; of
            ``box[i]`` elements every one in so many. 1 for the last axis, and for slices.
        swizzle: where the pieces of rows lie in shared memory; rows are no longer than its span,
            and each takes all of it (`shared_nbytes`).
        interleave: whether channels lie in slices. A kernel's coordinates leave out the channel
            within a slice: of ``a[n, c, h, w]`` they are ``{w, h, c, n}``.
        l2_promotion: how much the L2 cache fetches at once.
        fill: what stands for elements outside of the array.
        element: the type of elements; None: that of the dtype. Signed integers of 8 and 16 bits
            are copied as unsigned ones, floats of 8 bits as bytes.

    Attributes:
        context: the array's.
        box: as given; of images, pixels and channels.
        box_nbytes: what one copy brings to shared memory, and an mbarrier must expect.
        element_strides: as given.

    Raises:
        TensorMapError: CUDA has no such tensor map.
        DTypeError: tensors have no elements of the dtype.
        ClosedError: the array was closed.

    Source: CUDA Driver API, cuTensorMapEncodeTiled; CUDA Programming Guide, "Tensor Memory Access".
    """

    __slots__ = (
        "_array", "_encoded", "_modes", "box", "box_nbytes", "buffer", "context", "element_strides",
    )  # fmt: skip

    def __init__(
        self,
        array: AnyDeviceArray,
        box: Sequence[int],
        *,
        element_strides: Sequence[int] | None = None,
        swizzle: TensorSwizzle = TensorSwizzle.NONE,
        interleave: TensorInterleave = TensorInterleave.NONE,
        l2_promotion: L2Promotion = L2Promotion.NONE,
        fill: TensorFill = TensorFill.ZERO,
        element: TensorElement | None = None,
    ) -> None:
        border.instance("TensorMap: array", array, DeviceArray)
        modes = modes_of(array, element, swizzle, interleave, l2_promotion, fill)
        check_tensor(array, modes)
        steps = checked_steps(array, element_strides, modes)
        found = checked_box(array, box, modes)
        self._set(array, modes, found, steps)
        self.box_nbytes: int = modes.element.nbytes * prod(map(_copied, found, steps))
        copied = map(words, map(modes.told, (found, steps)))
        given = (*_tensor(array, modes), *copied, *_numbers(modes))
        self._encoded = self._made(TILED, given)

    @classmethod
    def im2col(
        cls,
        array: AnyDeviceArray,
        lower_corner: Sequence[int],
        upper_corner: Sequence[int],
        channels: int,
        pixels: int,
        *,
        element_strides: Sequence[int] | None = None,
        swizzle: TensorSwizzle = TensorSwizzle.NONE,
        interleave: TensorInterleave = TensorInterleave.NONE,
        l2_promotion: L2Promotion = L2Promotion.NONE,
        fill: TensorFill = TensorFill.ZERO,
        element: TensorElement | None = None,
    ) -> TensorMap:
        """Images as a convolution reads them: the pixels under one place of a filter.

        Args:
            array: images with axes (N, W, C), (N, H, W, C) or (N, D, H, W, C); interleaved ones as
                for `TensorMap`.
            lower_corner: the first position of the filter along each of D, H and W.
            upper_corner: the last one, from the last pixel on.
            channels: channels that are copied at once, at most 256; interleaved: those of a slice.
            pixels: positions that are copied at once, at most 1024.
            element_strides: the distances of positions; this and what follows as for `TensorMap`.

        Raises:
            TensorMapError: CUDA has no such tensor map.

        Source: CUDA Driver API, cuTensorMapEncodeIm2col.
        """
        border.instance("TensorMap.im2col: array", array, DeviceArray)
        modes = modes_of(array, element, swizzle, interleave, l2_promotion, fill)
        check_tensor(array, modes, least=3)
        steps = checked_steps(array, element_strides, modes)
        corners = checked_corners(array, lower_corner, upper_corner, modes)
        box = checked_pixels(array, channels, pixels, modes)
        strides = words(modes.told(steps))
        given = (*map(offsets, corners), *box[::-1], strides, *_numbers(modes))
        return cls._of_images(IM2COL, array, modes, box, steps, given)

    @classmethod
    def im2col_wide(
        cls,
        array: AnyDeviceArray,
        lower_corner: int,
        upper_corner: int,
        channels: int,
        pixels: int | None,
        *,
        element_strides: Sequence[int] | None = None,
        swizzle: TensorSwizzle = TensorSwizzle.BYTES_128,
        l2_promotion: L2Promotion = L2Promotion.NONE,
        fill: TensorFill = TensorFill.ZERO,
        element: TensorElement | None = None,
    ) -> TensorMap:
        """Rows of images, for `im2col::w` on devices of compute capability 10.0.

        The emulator does not copy so, and refuses it.

        Args:
            array: as for `im2col`.
            lower_corner: the first position of the filter along W.
            upper_corner: the last one, from the last pixel on.
            channels: as for `im2col`, and so are those behind `pixels`; a swizzle is needed.
            pixels: as for `im2col`; None: the 128 of `im2col::w::128`. The halo that an
                instruction asks for is not among them, nor in `box_nbytes`.

        Raises:
            TensorMapError: CUDA has no such tensor map, or not on this device.

        Source: CUDA Driver API, cuTensorMapEncodeIm2colWide.
        """
        border.instance("TensorMap.im2col_wide: array", array, DeviceArray)
        modes = modes_of(array, element, swizzle, TensorInterleave.NONE, l2_promotion, fill)
        check_tensor(array, modes, least=3)
        steps = checked_steps(array, element_strides, modes)
        corners = checked_width(array, lower_corner, upper_corner, modes)
        box = checked_pixels(array, channels, 128 if pixels is None else pixels, modes)
        interleave, *others = _numbers(modes)
        given = (*corners, *box[::-1], words(steps), interleave, int(pixels is None), *others)
        return cls._of_images(IM2COL_WIDE, array, modes, box, steps, given)

    @classmethod
    def _of_images(
        cls, encoder: Encoder, array: AnyDeviceArray, modes: TensorModes, box: tuple[int, int],
        steps: tuple[int, ...], given: Sequence[object],
    ) -> TensorMap:  # fmt: skip
        """Of pixels and channels; what is given is all behind the strides."""
        found = cls.__new__(cls)
        found._set(array, modes, box, steps)
        found.box_nbytes = modes.element.nbytes * prod(box)
        found._encoded = found._made(encoder, (*_tensor(array, modes), *given))
        return found

    def _set(
        self, array: AnyDeviceArray, modes: TensorModes, box: tuple[int, ...],
        steps: tuple[int, ...],
    ) -> None:  # fmt: skip
        self.context: ContextCore = array.context
        self._array = array
        # What has the memory's box, for the quick test of a launch.
        self.buffer: DeviceMemory = array._root
        self._modes = modes
        self.box: tuple[int, ...] = box
        self.element_strides: tuple[int, ...] = steps

    def _made(self, encoder: Encoder, given: Sequence[object], before: bytes = b"") -> bytes:
        return encoded(self.context._box, encoder, given, f"making {self!r}", before)

    def __repr__(self) -> str:
        what = "closed memory" if self.buffer.closed else repr(self._array)
        return f"<TensorMap of boxes {self.box} over {what}>"

    def __bytes__(self) -> bytes:
        """The 128 bytes, as a kernel's parameter has them; a GPU's and the emulator's differ."""
        return self._encoded

    @property
    def array(self) -> AnyDeviceArray:
        """What it is over."""
        return self._array

    @property
    def element(self) -> TensorElement:
        """The type of elements."""
        return self._modes.element

    @property
    def swizzle(self) -> TensorSwizzle:
        """Where pieces of rows lie in shared memory."""
        return self._modes.swizzle

    @property
    def shared_nbytes(self) -> int:
        """What the box takes in shared memory: a row takes the whole width of the swizzle.

        More than `box_nbytes`, if rows are shorter than that; an mbarrier expects `box_nbytes`.
        """
        row, span = self.box[-1] * self.element.nbytes, self.swizzle.nbytes
        if row >= span or self._modes.interleave:
            return self.box_nbytes
        return self.box_nbytes // row * span

    def replace(self, array: AnyDeviceArray) -> TensorMap:
        """The same map over another array, of the same shape, strides and dtype, and context.

        Raises:
            TensorMapError: the array differs.

        Source: CUDA Driver API, cuTensorMapReplaceAddress.
        """
        border.instance("TensorMap.replace: array", array, DeviceArray)
        own = self._array
        if (array.shape, array.strides, array.dtype, array.context) != (
            own.shape, own.strides, own.dtype, own.context,
        ):  # fmt: skip
            raise TensorMapError(
                f"{self!r} cannot be over {array!r}: its shape, strides {own.strides}, dtype and "
                "context stay; make another TensorMap"
            )
        check_tensor(array, self._modes)
        found = object.__new__(type(self))
        found._set(array, self._modes, self.box, self.element_strides)
        found.box_nbytes = self.box_nbytes
        found._encoded = found._made(REPLACE, (array.ptr,), self._encoded)
        return found

    @property
    def _memory(self) -> AnyMemory:
        memory = self.buffer._box
        if isinstance(memory, Closed):
            raise ClosedError("the array of a tensor map was closed")
        return memory


def _copied(box: int, step: int) -> int:
    """How many elements are copied along an axis."""
    return -(-box // step)


def _tensor(array: AnyDeviceArray, modes: TensorModes) -> tuple[object, ...]:
    """What all ways of copying say of the array."""
    extents, strides = modes.told(array.shape), modes.told(array.strides)[:-1]
    return int(modes.element), len(extents), array.ptr, sizes(extents), sizes(strides)


def _numbers(modes: TensorModes) -> tuple[int, ...]:
    return int(modes.interleave), int(modes.swizzle), int(modes.l2_promotion), int(modes.fill)
