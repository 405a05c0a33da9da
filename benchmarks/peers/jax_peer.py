"""JAX."""

from __future__ import annotations

import importlib
import os

import cudadrv

from ..setting import Setting
from ..timing import Case

NAME = "JAX"


def given_to_cudadrv(setting: Setting, stream: cudadrv.Stream) -> list[Case]:
    """Its arrays, given to a launcher of cudadrv."""
    # It would take most of the device's memory, which the others need.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jnp = importlib.import_module("jax.numpy")
    a, b, c = (jnp.full(256, value, "float32").block_until_ready() for value in (1, 2, 3))
    return [setting.given(stream, f"{NAME} arrays", (a, b, c))]
