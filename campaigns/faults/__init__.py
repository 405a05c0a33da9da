"""Every driver function that the library calls fails once, wherever it is called."""

from .campaign import run_campaign as run_campaign
