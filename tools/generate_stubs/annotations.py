"""The rules from documented types to Python types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import ModuleType

from .documentation import Documentation, Parameter, read
from .exceptions import PARAMETERS, UNDOCUMENTED

NUMBERS = {
    "int": "int",
    "unsigned": "int",
    "size_t": "int",
    "unsigned int": "int",
    "unsigned char": "int",
    "unsigned short": "int",
    "long long": "int",
    "unsigned long long": "int",
    "int32_t": "int",
    "uint32_t": "int",
    "intptr_t": "int",
    "void_ptr": "int",
    "float": "float",
    "str": "str",
}
"""C types, as Cython and the documentation write them."""


def is_enum(value: object) -> bool:
    """Whether it is an enumeration: IntEnum in some versions, an int subclass in others."""
    return isinstance(value, type) and issubclass(value, int) and hasattr(value, "__members__")


def is_handle(value: object) -> bool:
    """Whether it is a class that holds one number: a handle, a device pointer, a cuuint64_t."""
    return isinstance(value, type) and not is_enum(value) and hasattr(value, "__int__")


class Annotations:
    """Writes annotations for one module, in whose namespace class names are looked up."""

    def __init__(self, module: ModuleType) -> None:
        self._namespace: Mapping[str, object] = vars(module)
        self._documented_elsewhere = self._unanimous_parameters()

    def of_parameter(self, function: str, parameter: Parameter, said: Documentation) -> str:
        """What the function takes there.

        The signature tells C types, enumerations, structures and lists. Handles and `Any` stand in
        the section "Parameters" only, and in some functions not even there: then the type is that
        of the parameters of the same name in all other functions, or there is an error.
        """
        documented = said.type_of("Parameters", parameter.name)
        if parameter.name in PARAMETERS and documented in ("Any", "object"):
            return PARAMETERS[parameter.name]
        if parameter.annotation:
            return self._declared(parameter.annotation)
        if parameter.c_type.startswith("char"):
            # Cython takes the memory of either; what the C function writes goes there, too.
            return "bytes | bytearray"
        if parameter.c_type:
            return NUMBERS[parameter.c_type]
        documented = (
            documented
            or UNDOCUMENTED.get(parameter.name)
            or self._documented_elsewhere.get(parameter.name, "")
        )
        if not documented:
            raise LookupError(f"{function}: nothing tells the type of {parameter.name}")
        # Where memory is meant without a C type, it may as well be an address.
        return "Buffer | int" if documented == "bytes" else self.taken(documented)

    def names_enum(self, annotation: str) -> bool:
        """Whether a declared type is an enumeration."""
        return is_enum(self._namespace.get(annotation))

    def taken(self, documented: str) -> str:
        """What may be given where the documentation names a type: a handle also as a number."""
        given = self.given(documented)
        if given == "Any":
            return "_Pointer"
        return f"{given} | int | None" if is_handle(self._namespace.get(given)) else given

    def given(self, documented: str) -> str:
        """What comes back where the documentation names a type."""
        # "CUstream or cudaStream_t": the second is the same handle in the runtime's binding.
        documented = documented.split(" or ")[0].removesuffix(".NVRTC_SUCCESS")
        if items := re.fullmatch(r"[Ll]ist\[(.+)\]", documented):
            return f"list[{self.given(items[1])}]"
        if documented in NUMBERS:
            return NUMBERS[documented]
        if documented in ("Any", "bytes") or isinstance(self._namespace.get(documented), type):
            return documented
        raise LookupError(f"no rule for the documented type {documented!r}")

    def _declared(self, annotation: str) -> str:
        optional = re.fullmatch(r"Optional\[(.+)\]", annotation)
        declared = optional[1] if optional else annotation
        # The binding writes tuple[X] for a tuple of any length.
        declared = re.sub(r"[Tt]uple\[(\w+)\]", r"tuple[\1, ...]", declared)
        declared = declared.replace("List[", "list[")
        return f"{declared} | None" if optional else declared

    def _unanimous_parameters(self) -> dict[str, str]:
        types: dict[str, set[str]] = {}
        for value in self._namespace.values():
            if type(value).__name__ == "cython_function_or_method":
                for entry in read(value.__doc__ or "").sections.get("Parameters", []):
                    types.setdefault(entry.name, set()).add(entry.type)
        return {name: found.pop() for name, found in types.items() if len(found) == 1}
