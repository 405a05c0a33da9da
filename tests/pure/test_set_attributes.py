"""Assignments to attributes of public objects: none but those below change an object.

The objects are made without their constructors, as the classes alone decide about assignments.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any, Final, Protocol

import cudadrv
from cudadrv.driver.handle import Handle
from cudadrv.emulator import Emulator
from tests.documents.reference import named, public_names

# The attributes that the reference lets users set, with the functions that decide about values.
SETTABLE: Final = {
    "Context.cache_preference",
    "ContextLimits.heap_bytes",
    "ContextLimits.persisting_l2_bytes",
    "ContextLimits.printf_bytes",
    "ContextLimits.stack_bytes",
    "GpuExecutor.policy",
    "KernelAttributes.allows_non_portable_clusters",
    "KernelAttributes.cluster_scheduling_policy",
    "KernelAttributes.max_dynamic_shared_bytes",
    "KernelAttributes.preferred_shared_carveout",
    "KernelAttributes.required_cluster_depth",
    "KernelAttributes.required_cluster_height",
    "KernelAttributes.required_cluster_width",
}


def classes() -> list[type]:
    """The public classes and their subclasses in the packages, which users hold as well.

    Exceptions and members of enumerations take further attributes, as all of Python's do.
    """
    for module in pkgutil.walk_packages(cudadrv.__path__, "cudadrv."):
        if "__main__" not in module.name and ".testing" not in module.name:
            importlib.import_module(module.name)
    found: dict[type, None] = {}
    waiting = [each for name in public_names() if isinstance(each := named(name), type)]
    while waiting:
        each = waiting.pop()
        if each not in found and each.__module__.startswith(("cudadrv.", "ptx.")):
            found[each] = None
            waiting += type.__subclasses__(each)
    return sorted((each for each in found if _has_objects(each)), key=lambda each: each.__name__)


def _has_objects(each: type) -> bool:
    return not (
        issubclass(each, (BaseException, enum.Enum, Handle, dict))
        or Protocol in each.__bases__
        or inspect.isabstract(each)
        or each.__name__.startswith("_")
    )


def attributes(each: type) -> Iterator[str]:
    """The public attributes of a class, and one that it does not have."""
    annotated = {name for base in each.__mro__ for name in getattr(base, "__annotations__", ())}
    for name in sorted({*dir(each), *annotated}):
        # Tests replace functions of the emulated driver.
        if not name.startswith(("_", "cu") if issubclass(each, Emulator) else "_"):
            yield name
    yield "shpae"


def assigned(value: Any, name: str) -> list[str]:
    """The ways in which an attribute of an object can be changed."""
    ways = []
    try:
        setattr(value, name, 7)
    except (AttributeError, TypeError):
        pass
    else:
        ways.append("set")
    try:
        delattr(value, name)
    except (AttributeError, TypeError):
        pass
    else:
        ways.append("deleted")
    return ways


def test_assigning_to_an_attribute_of_a_public_object_raises_unless_it_may_be_set() -> None:
    wrong = []
    settable = set()
    for each in classes():
        value = tuple.__new__(each) if issubclass(each, tuple) else object.__new__(each)
        for name in attributes(each):
            descriptor = inspect.getattr_static(each, name, None)
            if getattr(descriptor, "fset", None) or f"{each.__name__}.{name}" in SETTABLE:
                settable.add(f"{each.__name__}.{name}")
                continue
            if ways := assigned(value, name):
                wrong.append(f"{each.__module__}.{each.__name__}.{name}: {ways}")
    assert wrong == []
    assert settable == SETTABLE
