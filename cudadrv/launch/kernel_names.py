"""The names of a module's kernels, and the errors for missing ones."""

from __future__ import annotations

from typing import Final

from ..border import shown_name
from ..driver.context_handle import ModuleHandle
from ..driver.driver_selection import failure
from ..errors import KernelNotFoundError

_MOST_NAMES: Final = 12  # names of a module's kernels in the text of an error


def no_kernel(name: str, names: tuple[str, ...]) -> KernelNotFoundError:
    """Return the error for a name that is none of these, with the remedy."""
    from difflib import get_close_matches  # 7 ms, only for an error

    listed = ", ".join(names[:_MOST_NAMES]) or "none"
    if len(names) > _MOST_NAMES:
        listed += f" and {len(names) - _MOST_NAMES} more"
    base = name.partition("<")[0].rpartition("::")[2].strip()
    close = get_close_matches(name, names, 1)
    if "<" in name or not names:
        hint = f"compile with name_expressions=[{shown_name(name)}]"
        hint += ", as a template is compiled only when named"
    elif any(
        kernel_name.startswith("_Z") and f"{len(base)}{base}" in kernel_name
        for kernel_name in names
    ):
        hint = f'declare it extern "C", or compile with name_expressions=[{shown_name(name)}]'
    elif close:
        hint = f"did you mean {shown_name(close[0])}?"
    else:
        hint = 'a kernel that is not extern "C" is found by one of the name_expressions of compile'
    return KernelNotFoundError(
        f"the module has no kernel {shown_name(name)}; it has: {listed}\n  {hint}",
        name=name,
        available=names,
    )


def no_variable(name: str) -> KernelNotFoundError:
    """Return the error for a variable that a module does not have, with the remedy."""
    expression = f"&{name.removeprefix('&')}"
    return KernelNotFoundError(
        f"the module has no variable {shown_name(name)}\n"
        "  a __device__ or __constant__ variable outside of "
        "namespaces has its own name; one of a namespace or template is found by one of the "
        f"name_expressions of compile, such as {shown_name(expression)}",
        name=name,
        available=(),
    )


def not_the_only_one(names: tuple[str, ...]) -> KernelNotFoundError:
    """Return the error for a request for the only kernel, where there are none or several."""
    text = f"the source has {len(names)} kernels: {', '.join(names[:_MOST_NAMES])}\n  name the one"
    if not names:
        text = (
            "the source has no kernel that is compiled without being named\n  name the instance of "
            'a template, such as "scale<float>"'
        )
    return KernelNotFoundError(text, name="", available=names)


def names_of(handle: ModuleHandle) -> tuple[str, ...]:
    """Return the names of a module's kernels; its context is current."""
    api = handle.api
    code, count = api.cuModuleGetFunctionCount(handle.raw)
    if code:
        raise failure(api, code, "cuModuleGetFunctionCount", "naming the kernels")
    if count == 0:
        return ()
    code, functions = api.cuModuleEnumerateFunctions(count, handle.raw)
    if code:
        raise failure(api, code, "cuModuleEnumerateFunctions", "naming the kernels")
    names = []
    for function in functions:
        code, text = api.cuFuncGetName(function)
        if code:
            raise failure(api, code, "cuFuncGetName", "naming the kernels")
        if text is not None:
            names.append(text.decode())
    return tuple(names)
