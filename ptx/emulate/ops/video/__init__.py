"""Video instructions."""

from ptx.emulate.ops.video import simd_video, video

__all__ = ["simd_video", "video"]
