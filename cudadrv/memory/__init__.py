"""Device and pinned host memory: buffers, arrays, copies, and the allocators above them."""
