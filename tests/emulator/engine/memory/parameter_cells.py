"""Modules that access a parameter by each form of address, and what they leave.

Each copies some of 32 bytes: of a kernel's parameter, of a parameter or the result of a function,
or of an argument or the result of a call.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

# What comes before the access, and its address. `p` is the parameter, {o} the place in it.
FORMS: Final[Mapping[str, tuple[str, str]]] = {
    "symbol": ("", "p+{o}"),
    "moved": ("mov.b64 a, p;", "a+{o}"),
    "moved with its place": ("mov.b64 a, p+{o};", "a"),
    "added": ("mov.b64 a, p; add.u64 a, a, {o};", "a"),
    "converted": ("cvta.param.u64 a, p;", "a+{o}"),
    "converted with its place": ("cvta.param.u64 a, p+{o};", "a"),
    "moved, converted": ("mov.b64 a, p; cvta.param.u64 a, a;", "a+{o}"),
    "moved, converted from local": ("mov.b64 a, p; cvta.local.u64 a, a;", "a+{o}"),
    "converted from local": ("cvta.local.u64 a, p;", "a+{o}"),
}
SPACES: Final = ("param", "param::func", "param::entry", "local", "")
OWNERS: Final = ("kernel", "parameter", "result", "argument", "returned")
TYPES: Final[Mapping[str, int]] = {
    "b8": 1, "u8": 1, "s16": 2, "b16": 2, "u32": 4, "b32": 4, "f32": 4, "u64": 8, "b64": 8,
    "f64": 8, "b128": 16, "v2.b8": 2, "v4.u8": 4, "v2.u16": 4, "v4.b16": 8, "v2.b32": 8,
    "v4.f32": 16, "v4.u32": 16, "v2.u64": 16, "v2.f64": 16,
}  # fmt: skip
BYTES: Final = 32
_SCALARS: Final = ("b16", "b32", "u32", "f32", "b64", "u64", "f64")


class Cell(NamedTuple):
    """One access.

    Attributes:
        owner, form, space, ptx_type: of the parameter, its address and the access.
        place: the first byte.
        is_store: whether it writes the parameter.
        scalar: the type of the parameter; "" for an array of bytes.
    """

    owner: str
    form: str
    space: str
    ptx_type: str
    place: int = 0
    is_store: bool = False
    scalar: str = ""

    @property
    def nbytes(self) -> int:
        """The size of the parameter."""
        return TYPES[self.scalar] if self.scalar else BYTES

    @property
    def is_defined(self) -> bool:
        """Whether PTX says what the access does: by a symbol, or an address of the same space."""
        if self.owner == "kernel" and self.is_store:
            return False
        if self.form == "symbol":
            return self.space.startswith("param")
        if self.owner in ("argument", "returned"):
            return False
        if self.form in ("converted", "converted with its place"):
            return not self.space
        if self.form.startswith("moved, converted"):
            return not self.space and (self.owner == "kernel") == (self.form == "moved, converted")
        spaces = ("param", "param::entry") if self.owner == "kernel" else ("param", "local")
        return self.space in spaces

    @property
    def is_compared(self) -> bool:
        """Whether both sides must agree. Of what ptxas takes besides, nothing says what it does."""
        is_own = self.owner in ("argument", "returned")
        return not (
            (self.form != "symbol" and self.space == "param::func")
            or (
                self.form == "symbol" and self.space == "param::entry" and self.owner == "parameter"
            )
            or (is_own and self.form == "converted with its place")
        )

    def expected(self, first: bytes, second: bytes) -> bytes:
        """What it leaves: the bytes that it reads of `first`, or `first` with its own ones."""
        end = self.place + TYPES[self.ptx_type]
        if self.is_store:
            before = first if self.owner == "parameter" else bytes(BYTES)
            return (before[: self.place] + second[self.place : end] + before[end:])[: self.nbytes]
        return (bytes(self.place) + first[self.place : end] + bytes(BYTES))[: self.nbytes]

    def text(self, target: str = "sm_90", version: str = "9.0") -> str:
        """The module: kernel `k` reads `first` and `second`, and writes `out`."""
        head = (
            f".version {version}\n.target {target}\n.address_size 64\n"
            ".global .align 16 .b8 first[32];\n.global .align 16 .b8 second[32];\n"
            ".global .align 16 .b8 out[32];\n"
        )
        made = {
            "kernel": self._of_kernel,
            "parameter": self._of_parameter,
            "result": self._of_result,
            "argument": self._of_argument,
            "returned": self._of_returned,
        }
        return head + made[self.owner]()

    def _of_kernel(self) -> str:
        head = f".visible .entry k({self._declared('p')}) {{ {self._registers}"
        return f"{head}\n{self._access}\nret; }}\n"

    def _of_parameter(self) -> str:
        after = self._out("p") if self.is_store else ""
        return (
            f".func f({self._declared('p')}) {{ {self._registers}\n{self._access}\n"
            f"{after} ret; }}\n"
            f".visible .entry k() {{ {self._registers} {self._declared('q')};"
            f" {self._filled('q')} call f, (q); ret; }}\n"
        )

    def _of_result(self) -> str:
        before = self._zeros("p") if self.is_store else self._filled("p")
        after = self._out("q") if self.is_store else ""
        return (
            f".func ({self._declared('p')}) f() {{ {self._registers} {before}\n"
            f"{self._access}\nret; }}\n"
            f".visible .entry k() {{ {self._registers} {self._declared('q')};"
            f" call (q), f; {after} ret; }}\n"
        )

    def _of_argument(self) -> str:
        return (
            f".func f({self._declared('p')}) {{ {self._registers} {self._out('p')} ret; }}\n"
            f".visible .entry k() {{ {self._registers} {self._declared('p')}; {self._zeros('p')}\n"
            f"{self._access}\ncall f, (p); ret; }}\n"
        )

    def _of_returned(self) -> str:
        return (
            f".func ({self._declared('p')}) f() {{ {self._registers} {self._filled('p')} ret; }}\n"
            f".visible .entry k() {{ {self._registers} {self._declared('p')}; call (p), f;\n"
            f"{self._access}\nret; }}\n"
        )

    def _declared(self, name: str) -> str:
        return (
            f".param .{self.scalar} {name}" if self.scalar else f".param .align 16 .b8 {name}[32]"
        )

    @property
    def _registers(self) -> str:
        kind = self.ptx_type.rpartition(".")[2]
        kind = {"b8": "b16", "u8": "u16"}.get(kind, kind)
        return f".reg .{kind} x<4>; .reg .b64 a, h; .reg .b16 s; .reg .b32 w;"

    @property
    def _access(self) -> str:
        setup, address = (each.format(o=self.place) for each in FORMS[self.form])
        lanes, _, _ = self.ptx_type.rpartition(".")
        values = "{" + ", ".join(f"x{n}" for n in range(int(lanes[1:]))) + "}" if lanes else "x0"
        word = f"{'.' * bool(self.space)}{self.space}.{self.ptx_type}"
        if self.is_store:
            read = f"ld.global.{self.ptx_type} {values}, [second+{self.place}];"
            return f"{read} {setup}\nst{word} [{address}], {values};"
        write = f"st.global.{self.ptx_type} [out+{self.place}], {values};"
        return f"{setup}\nld{word} {values}, [{address}];\n{write}"

    def _words(self) -> Iterator[tuple[str, str, int]]:
        """The type, a register and the place of each word of the parameter."""
        nbytes = min(self.nbytes, 8)
        kind, register = {2: ("b16", "s"), 4: ("b32", "w"), 8: ("b64", "h")}[nbytes]
        for place in range(0, self.nbytes, nbytes):
            yield kind, register, place

    def _filled(self, name: str) -> str:
        return " ".join(
            f"ld.global.{kind} {r}, [first+{at}]; st.param.{kind} [{name}+{at}], {r};"
            for kind, r, at in self._words()
        )

    def _zeros(self, name: str) -> str:
        return " ".join(f"st.param.{kind} [{name}+{at}], 0;" for kind, _, at in self._words())

    def _out(self, name: str) -> str:
        return " ".join(
            f"ld.param.{kind} {r}, [{name}+{at}]; st.global.{kind} [out+{at}], {r};"
            for kind, r, at in self._words()
        )


def cells(types: Iterable[str] = TYPES) -> Iterator[Cell]:
    """Each access of these types."""
    for owner, form, space, is_store in itertools.product(OWNERS, FORMS, SPACES, (False, True)):
        if owner == "returned" and is_store:
            continue  # the call writes it after that, or before
        for ptx_type in types:
            place = 16 if TYPES[ptx_type] == 16 else 8
            yield Cell(owner, form, space, ptx_type, place, is_store)
            if ptx_type in _SCALARS:
                yield Cell(owner, form, space, ptx_type, 0, is_store, ptx_type)
