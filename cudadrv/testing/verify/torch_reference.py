"""References that are functions and modules of PyTorch, called on the CPU."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

# PyTorch is an extra, without types here.
_Tensor: TypeAlias = Any
_Result: TypeAlias = "dict[str, object] | object"


def is_of_torch(function: object) -> bool:
    """Return whether a reference takes tensors.

    It is a module or a function of PyTorch, or annotates a parameter or its result as a tensor.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return False
    if isinstance(function, torch.nn.Module):
        return True
    if str(getattr(function, "__module__", "")).partition(".")[0] == "torch":
        return True
    annotations = getattr(function, "__annotations__", {}).values()
    return any(each is torch.Tensor or "Tensor" in str(each) for each in annotations)


def parameters_of(function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function, or of a module's `forward`.

    Raises:
        TypeError, ValueError: it has no signature.
    """
    return inspect.signature(getattr(function, "forward", function)).parameters


def with_tensors(
    function: Callable[..., object], output: str
) -> Callable[..., dict[str, object] | object]:
    """Return a reference of NumPy that calls one of PyTorch.

    Args:
        function: takes tensors on the CPU, by DLPack, that share no memory with the case's arrays.
        output: the array that a single tensor is the contents of; "" if there is no such one.
    """

    def reference(**arguments: object) -> dict[str, object] | object:
        torch: Any = import_module("torch")  # an extra without types here
        copies = {name: np.array(each) for name, each in arguments.items() if _is_array(each)}
        tensors = {name: torch.from_dlpack(copy) for name, copy in copies.items()}
        numbers = {
            name: each.item() if isinstance(each, np.generic) else each
            for name, each in arguments.items()
            if name not in tensors
        }
        with torch.no_grad():
            returned = function(**tensors, **numbers)
        changed = {name: np.from_dlpack(tensor) for name, tensor in tensors.items()}
        if returned is None:
            return changed
        if isinstance(returned, torch.Tensor) and output:
            return {output: _on_host(returned)}
        if isinstance(returned, Mapping):
            return {name: _on_host(each) for name, each in returned.items()}
        return returned

    return reference


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray)


def _on_host(value: _Tensor) -> object:
    """Return a tensor as an array of NumPy; anything else as it is."""
    detach = getattr(value, "detach", None)
    if detach is None:
        return value
    tensor = detach().cpu().contiguous()
    # NumPy has no bfloat16.
    return np.from_dlpack(tensor.float() if "bfloat16" in str(tensor.dtype) else tensor)
