"""CUDA arrays, and the textures and surfaces through which kernels use them."""

from typing import TYPE_CHECKING

from ..lazy_names import at_first_use

if TYPE_CHECKING:
    from .cuda_array import (
        CudaArray as CudaArray,
    )
    from .mipmapped_array import (
        MipmappedArray as MipmappedArray,
    )
    from .surface import (
        Surface as Surface,
    )
    from .texture import (
        AddressMode as AddressMode,
        FilterMode as FilterMode,
        ReadMode as ReadMode,
        Texture as Texture,
    )
else:
    _NAMES = {
        "cuda_array": "CudaArray",
        "mipmapped_array": "MipmappedArray",
        "surface": "Surface",
        "texture": "AddressMode FilterMode ReadMode Texture",
    }
    __getattr__, __dir__ = at_first_use(__name__, _NAMES)
