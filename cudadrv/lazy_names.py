"""The names of a package that are imported at their first use.

A package imports none of its files: two threads that import the package and a file of it at once
would wait for each other (`tests/pure/test_layers.py`). A start pays only for the names it uses.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def at_first_use(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package.

    Args:
        package: its `__name__`.
        names: the public names, separated by spaces, by the module that has them: one of the
            package, or the full name of one of another package.
    """
    modules = {name: module for module, text in names.items() for name in text.split()}

    def value_of(name: str) -> object:
        if name == "__all__":
            return all_names()
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = modules[name]
        is_full = module.startswith(("cudadrv.", "ptx."))
        value = getattr(import_module(module if is_full else f"{package}.{module}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def all_names() -> list[str]:
        return sorted(modules)

    return value_of, all_names
