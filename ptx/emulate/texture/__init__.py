"""Textures and surfaces: from coordinates to texels."""
