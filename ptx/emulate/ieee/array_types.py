"""The names by which the arithmetic's signatures call arrays.

All of them are `Any` to a type checker. NumPy's own stubs type the result of a mixed or in-place
ufunc expression differently from version to version (1.26 to 2.x are supported), often as `Any`,
sometimes wrongly; the dtypes are therefore told by these names and held by the tests.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Float: TypeAlias = Any
"""A float32 or float64 array or NumPy scalar; all operands of one call share the dtype."""
Integer: TypeAlias = Any
"""An integer array or NumPy scalar."""
Bits: TypeAlias = Any
"""An unsigned integer array or NumPy scalar that holds a format's bits."""

Array: TypeAlias = Any
"""An array whose dtype the function's docstring names."""
F64: TypeAlias = Any
"""A float64 array."""
F32: TypeAlias = Any
"""A float32 array."""
U64: TypeAlias = Any
"""A uint64 array."""
I64: TypeAlias = Any
"""An int64 array."""
Mask: TypeAlias = Any
"""A bool array."""
