"""Device and host memory: buffers, arrays, copies, pools, and the sources of new memory."""

from typing import TYPE_CHECKING

from ..lazy_names import at_first_use

if TYPE_CHECKING:
    from .array import (
        DeviceArray as DeviceArray,
    )
    from .buffer import (
        DeviceBuffer as DeviceBuffer,
    )
    from .driver_pool import (
        PoolInfo as PoolInfo,
        pool_info as pool_info,
        set_release_threshold as set_release_threshold,
        trim_pool as trim_pool,
    )
    from .growing_buffer import (
        GrowingBuffer as GrowingBuffer,
    )
    from .managed import (
        Advice as Advice,
        Attachment as Attachment,
        advise as advise,
        managed_empty as managed_empty,
    )
    from .memory_pool import (
        MemoryPool as MemoryPool,
        PoolStatistics as PoolStatistics,
    )
    from .multicast import (
        MulticastObject as MulticastObject,
    )
    from .physical_memory import (
        MappedBuffer as MappedBuffer,
        PhysicalMemory as PhysicalMemory,
    )
    from .pinned import (
        pinned_empty as pinned_empty,
    )
    from .registered import (
        RegisteredArray as RegisteredArray,
    )
    from .resource import (
        DriverMemory as DriverMemory,
        MemoryResource as MemoryResource,
        MemoryStream as MemoryStream,
        using_memory as using_memory,
    )
    from .resource_adaptors import (
        CountedMemory as CountedMemory,
        HookedMemory as HookedMemory,
        MemoryStatistics as MemoryStatistics,
    )
    from .reuse.allocator import (
        CudaAllocator as CudaAllocator,
    )
    from .reuse.arena import (
        ArenaMemory as ArenaMemory,
        DeviceArena as DeviceArena,
    )
    from .reuse.pinned_pool import (
        PinnedPool as PinnedPool,
        PinnedStatistics as PinnedStatistics,
    )
    from .unpooled import (
        UnpooledMemory as UnpooledMemory,
    )
    from .virtual_memory_resource import (
        VirtualMemoryResource as VirtualMemoryResource,
    )
else:
    _NAMES = {
        "array": "DeviceArray",
        "buffer": "DeviceBuffer",
        "driver_pool": "PoolInfo pool_info set_release_threshold trim_pool",
        "growing_buffer": "GrowingBuffer",
        "managed": "Advice Attachment advise managed_empty",
        "memory_pool": "MemoryPool PoolStatistics",
        "multicast": "MulticastObject",
        "physical_memory": "MappedBuffer PhysicalMemory",
        "pinned": "pinned_empty",
        "registered": "RegisteredArray",
        "resource": "DriverMemory MemoryResource MemoryStream using_memory",
        "resource_adaptors": "CountedMemory HookedMemory MemoryStatistics",
        "reuse.allocator": "CudaAllocator",
        "reuse.arena": "ArenaMemory DeviceArena",
        "reuse.pinned_pool": "PinnedPool PinnedStatistics",
        "unpooled": "UnpooledMemory",
        "virtual_memory_resource": "VirtualMemoryResource",
    }
    __getattr__, __dir__ = at_first_use(__name__, _NAMES)
