"""Every driver function that the library calls fails once, wherever it is called."""

from .campaign import attack as attack
