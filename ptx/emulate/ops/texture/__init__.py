"""Textures and surfaces."""

from ptx.emulate.ops.texture import surface, texture, texture_query

__all__ = ["surface", "texture", "texture_query"]
