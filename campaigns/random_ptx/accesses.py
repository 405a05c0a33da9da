"""Random loads, stores and atomics.

Threads never race: each writes places of its own, and what atomics do to common places does not
depend on their order.
"""

from __future__ import annotations

from campaigns.random_ptx.programs import LOCAL, OWN, TABLE, Node
from campaigns.random_ptx.registers import Picker

_PLACES = ((1, "h"), (2, "h"), (4, "r"), (4, "f"), (8, "d"), (8, "g"))
# Operations on common places, each with one of its own.
_TALLIES = ("add", "and", "or", "xor", "min", "max")
# Where in the tallies: 32-bit, 64-bit and floating-point places, the ticket and what it leads to.
_WIDE, _FLOATS, _TICKET, _TICKETED = 24, 72, 96, 256


class Accesses(Picker):
    """One stream of random accesses to memory."""

    def one(self) -> Node:
        """An access of the thread's own memory, the common table, or a tally."""
        kind = self.pick(
            "table",
            "own",
            "local",
            "vector",
            "atom",
            "float atom",
            "tally",
            "sum",
            "ticket",
            "generic",
        )
        size, bank = self.rng.choice(_PLACES)
        if kind == "table":
            return self._table(size, bank)
        if kind in ("own", "local"):
            return self._own(kind, size, bank)
        if kind == "vector":
            at = self.rng.randrange(0, LOCAL, 16)
            words = self.pick("{%r1, %r4, %r2, %r7}", "{%f1, %f4, %f2, %f0}")
            load = f"ld.global.v4.b32 {words}, [%a0+{at}];"
            return Node([self.pick(load, f"st.global.v4.b32 [%a0+{at}], {words};")])
        if kind == "atom":
            return Node([self._atomic()])
        if kind == "float atom":
            return Node([self._float_atomic()])
        if kind == "tally":
            return self._tally()
        if kind == "generic":
            return self._generic()
        return self._sum() if kind == "sum" else self._ticket()

    def _type(self, size: int, bank: str) -> str:
        """A type for a load: floats have no sign to extend."""
        return f"{'b' if bank in 'fg' else self.pick('u', 's')}{8 * size}"

    def _table(self, size: int, bank: str) -> Node:
        return Node(
            [
                f"rem.u32 %s6, {self.of(32)}, {TABLE // size}; mul.wide.u32 %a5, %s6, {size};",
                f"add.u64 %a5, %a5, %a1; ld.global.{self._type(size, bank)} {self.register(bank)},"
                " [%a5];",
            ]
        )

    def _own(self, kind: str, size: int, bank: str) -> Node:
        offset = self.rng.randrange(0, LOCAL, size)
        space, place = ("global", "%a0") if kind == "own" else ("local", "own")
        register = self.register(bank)
        load = f"ld.{space}.{self._type(size, bank)} {register}, [{place}+{offset}];"
        return Node([self.pick(load, f"st.{space}.b{8 * size} [{place}+{offset}], {register};")])

    def _own_place(self) -> tuple[str, str]:
        """Where an atomic's result can be used: nobody else comes there."""
        return self.rng.choice((("global", f"%a0+{OWN}"), ("shared", "%s5+8")))

    def _atomic(self) -> str:
        bits = self.rng.choice((32, 64))
        target, source = self.of(bits), self.of(bits)
        name = self.pick("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
        kind = f"{self.pick('u', 's')}{bits}" if name in ("min", "max") else f"u{bits}"
        if name in ("and", "or", "xor", "exch", "cas"):
            kind = f"b{bits}"
        if name in ("inc", "dec"):
            target, source, kind = self.of(32), self.of(32), "u32"
        more = f", {self.of(bits)}" if name == "cas" else ""
        space, place = self._own_place()
        return f"atom.{space}.{name}.{kind} {target}, [{place}], {source}{more};"

    def _float_atomic(self) -> str:
        kind = self.pick("f32", "f32", "f64", "noftz.f16", "noftz.f16x2", "noftz.bf16x2")
        bank = {"f32": "f", "f64": "g", "noftz.f16": "h"}.get(kind, "r")
        space, place = self._own_place()
        target, source = self.register(bank), self.register(bank)
        if self.rng.random() < 0.3:
            return f"red.{space}.add.{kind} [{place}], {source};"
        return f"atom.{space}.add.{kind} {target}, [{place}], {source};"

    def _generic(self) -> Node:
        """An address that means another memory from thread to thread."""
        p, q = self.two("p")
        lines = ["cvt.u64.u32 %a6, %s5; cvta.shared.u64 %a6, %a6;"]
        # Atomics on local memory are none.
        kind = self.pick("ld", "st", "atom", "isspacep")
        if kind != "atom":
            lines.append("mov.u64 %a7, own; cvta.local.u64 %a7, %a7;")
            lines.append(f"selp.b64 %a6, %a6, %a7, {p};")
        lines.append(f"cvta.global.u64 %a7, %a0; selp.b64 %a5, %a6, %a7, {q};")
        size, bank = self.rng.choice(_PLACES)
        register, offset = self.register(bank), self.rng.randrange(0, 16, size)
        lines.append(
            {
                "ld": f"ld.{self._type(size, bank)} {register}, [%a5+{offset}];",
                "st": f"st.b{8 * size} [%a5+{offset}], {register};",
                "atom": self.pick(
                    f"atom.add.u32 {self.of(32)}, [%a5+8], {self.of(32)};",
                    f"atom.add.f32 {self.register('f')}, [%a5+8], {self.register('f')};",
                    f"atom.exch.b64 {self.of(64)}, [%a5+8], {self.of(64)};",
                ),
                "isspacep": f"isspacep.{self.pick('shared', 'local', 'global')} {p}, %a5;",
            }[kind]
        )
        return Node(lines)

    def _tally(self) -> Node:
        """On common places, by an operation of which the order does not matter."""
        bits, number = self.rng.choice((32, 64)), self.rng.randrange(len(_TALLIES))
        name = _TALLIES[number]
        kind = f"{'b' if name in ('and', 'or', 'xor') else 'u'}{bits}"
        at = 4 * number if bits == 32 else _WIDE + 8 * number
        return Node([f"red.global.{name}.{kind} [%a2+{at}], {self.of(bits)};"])

    def _sum(self) -> Node:
        """Small whole numbers, whose sums are exact in any order."""
        kind = self.pick("f32", "f64")
        register, at = ("%u0", _FLOATS) if kind == "f32" else ("%a5", _FLOATS + 8)
        return Node(
            [
                f"and.b32 %s6, {self.of(32)}, 63; cvt.rn.{kind}.u32 {register}, %s6;",
                f"red.global.add.{kind} [%a2+{at}], {register};",
            ]
        )

    def _ticket(self) -> Node:
        """Every thread draws another number, and counts where that leads it."""
        return Node(
            [
                f"atom.global.add.u32 %s6, [%a2+{_TICKET}], 1; and.b32 %s6, %s6, 63;",
                "mul.wide.u32 %a5, %s6, 4; add.u64 %a5, %a5, %a2;",
                f"red.global.add.u32 [%a5+{_TICKETED}], 1;",
            ]
        )
