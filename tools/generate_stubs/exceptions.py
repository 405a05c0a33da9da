"""What the documentation of cuda.bindings leaves out or tells wrongly, and no rule gives.

Each entry was read from the Cython sources that the packages of 12.9 and 13.1 bring. A function
that a later version documents is taken from its documentation there: `RESULTS` counts only where
the documentation names no result.
"""

from __future__ import annotations

RESULTS = {
    "cuGraphExecGetId": ("int",),
    "cuGraphGetId": ("int",),
    "cuGraphNodeGetContainingGraph": ("CUgraph",),
    "cuGraphNodeGetToolsId": ("int",),
    "cuLogsDumpToMemory": ("CUlogIterator", "int"),
}
"""Results after the CUresult, of functions whose documentation names none."""

NOT_RESULTS = {
    "cuCoredumpGetAttribute": {"size"},
    "cuCoredumpGetAttributeGlobal": {"size"},
    "cuCoredumpSetAttribute": {"size"},
    "cuCoredumpSetAttributeGlobal": {"size"},
}
"""Documented results that are not in the tuple: the binding fills them in itself."""

PARAMETERS = {
    "kernelParams": "_KernelParams",
    "objType": "type[object]",
    "options": "int | Sequence[int] | Sequence[str]",
    "type_name": "str",
}
"""Parameters that are documented as `Any` or `object`, whatever function has them."""

UNDOCUMENTED = {"opList": "list[CUDA_FABRIC_COPY_BATCH_OP]"}
"""Parameters of undocumented functions whose name means something else where it is documented."""

WHOLE = {
    "sizeof": "int",
    "version": "tuple[int, int]",
    "ir_version": "tuple[int, int, int, int]",
    "nvrtcGetErrorString": "tuple[nvrtcResult, bytes]",
}
"""What functions return that return no tuple of a result code, or document it as none."""
