"""Texts with any instruction of the emulator's own table, on operands that fit it more or less."""

from __future__ import annotations

import random
import re
from functools import lru_cache

from campaigns.random_ptx.registers import COUNTS, TYPES, Picker
from ptx.emulate.codegen.table import OperationRecord, operations

_NUMBERS = ("0", "1", "-1", "3", "16", "31", "32", "64", "128", "255", "4096", "0xffffffff",
            "4294967296", "-9223372036854775808")  # fmt: skip
_FLOATS = ("0f3F800000", "0f7FC00001", "0d3FF0000000000000", "0d7FF0000000000001")
_SPECIAL = ("%tid.x", "%laneid", "%clock64", "%nctaid.y", "%lanemask_lt", "WARP_SZ")
_SYMBOLS = ("pool", "own", "k", "callee", "HERE", "there", "constants", "in")
_BITS = re.compile(r"(\d+)(?:x(\d))?$")
_ADDRESSED = (
    "ld", "ldu", "st", "atom", "red", "prefetch", "prefetchu", "applypriority", "discard", "cp",
    "mbarrier", "wmma", "ldmatrix", "stmatrix", "multimem",
)  # fmt: skip
# Where the handle and the coordinates of a texture or surface are.
_PLACES = {"tex": 1, "tld4": 1, "suld": 1, "sust": 0, "sured": 0}


@lru_cache(maxsize=1)  # the table, which does not change
def _records() -> tuple[tuple[OperationRecord, str], ...]:
    found = [(record, suffix) for record in operations() for suffix in record.types]
    return tuple(sorted(found, key=lambda each: (each[0].name, each[1])))


class TableText(Picker):
    """One stream of texts."""

    def one(self) -> str:
        """A kernel with one to three instructions between loads and stores of every register."""
        lines = [
            ".version 8.7", ".target sm_100", ".address_size 64",
            ".const .align 8 .b8 constants[64] = {1, 2, 3};", ".shared .align 128 .b8 pool[4096];",
            ".func (.param .b32 back) callee(.param .b32 one) { ret; }",
            ".visible .entry k(.param .u64 in)", "{",
            *(f".reg .{TYPES[bank]} %{bank}<{count}>;" for bank, count in COUNTS.items()),
            ".local .align 16 .b8 own[64];", ".reg .b64 %a<4>;", ".reg .b128 %w<2>;",
            "ld.param.u64 %a0, [in]; mov.u64 %a1, pool; cvta.shared.u64 %a2, %a1;",
            "mov.u64 %a3, own; cvta.local.u64 %a3, %a3; mov.b128 %w0, {%a0, %a1};",
            "mov.b128 %w1, %w0;",
        ]  # fmt: skip
        for bank, count in COUNTS.items():
            for number in range(count):
                if bank == "p":
                    lines.append(f"setp.lt.u32 %p{number}, %r{number}, %r{number + 1};")
                else:
                    kind = TYPES[bank]
                    lines.append(f"ld.global.{kind} %{bank}{number}, [%a0+{8 * number}];")
        lines += [self._instruction() for _ in range(self.rng.choice((1, 1, 1, 2, 3)))]
        lines.append("HERE:")
        for bank in "rfdgh":
            lines.append(f"st.global.{TYPES[bank]} [%a0], %{bank}0;")
        lines += ["there: .branchtargets HERE;", "ret;", "}"]
        return "\n".join(lines) + "\n"

    def _instruction(self) -> str:
        record, suffix = self.rng.choice(_records())
        chance = self.rng.choice((0.0, 0.1, 0.3))
        words = [word for word in sorted(record.modifiers) if self.rng.random() < chance]
        if record.name.split(".")[0] in _PLACES:  # a geometry, and seldom more
            known = sorted(record.modifiers)
            words = self.rng.sample(known, min(len(known), self.rng.choice((1, 1, 2, 2, 3))))
        text = ".".join([record.name, *words, *([suffix] if suffix else [])])
        count = self.rng.choice(record.arity)
        if self.rng.random() < 0.03:
            count += self.rng.choice((-1, 1))
        opcode = record.name.split(".")[0]
        types = suffix.split(".") if suffix else [self.pick("b32", "b64", "b16", "pred")]
        operands = []
        for position in range(count):
            kind = types[0] if position < record.writes else types[-1]
            if opcode in _PLACES and self.rng.random() < 0.8:
                is_place = position == _PLACES[opcode]
                operands.append(self._place() if is_place else self._vector(kind))
                continue
            addressed = opcode in _ADDRESSED and position in (0, 1)
            operands.append(self._operand(kind, position < record.writes, addressed))
        guard = self.maybe(f"@{self.pick('', '!')}{self.register('p')} ", 0.15)
        return f"{guard}{text} {', '.join(operands)};"

    def _operand(self, kind: str, is_target: bool, addressed: bool) -> str:
        chance = self.rng.random()
        if addressed and chance < 0.6:
            return self._address()
        if chance < 0.82:
            return self._fitting(kind)
        if is_target or chance < 0.88:
            return self.pick(
                self.register(self.pick(*COUNTS)),
                "_",
                self._vector(kind),
                f"{self._fitting(kind)}|{self.register('p')}",
            )
        return self.pick(
            self.pick(*_NUMBERS),
            self.pick(*_NUMBERS),
            self.pick(*_NUMBERS),
            self.pick(*_FLOATS),
            self._address(),
            self._vector(kind),
            self.pick(*_SPECIAL),
            self.pick(*_SYMBOLS),
            f"!{self.register('p')}",
            f"[{self.register('d')}, {self._vector('b32')}]",
        )

    def _fitting(self, kind: str) -> str:
        """A register of a type's width."""
        if kind == "pred":
            return self.register("p")
        found = _BITS.search(kind)
        bits = int(found[1]) * int(found[2] or 1) if found else 32
        if bits == 128:
            return self.pick("%w0", "%w1")
        return self.register({64: self.pick("d", "g"), 32: self.pick("r", "f")}.get(bits, "h"))

    def _vector(self, kind: str) -> str:
        items = ", ".join(self._fitting(kind) for _ in range(self.rng.choice((1, 2, 2, 4, 4, 8))))
        return f"{{{items}}}"

    def _place(self) -> str:
        """A handle and coordinates."""
        handle = self.pick(*[self.register("d")] * 4, self._fitting("b32"), "pool")
        return f"[{handle}, {self._vector(self.pick('b32', 'f32'))}]"

    def _address(self) -> str:
        base = self.pick("%a0", "%a1", "%a2", "%a3", "pool", "own", "in", self.register("d"))
        return f"[{base}{self.pick('', '', '+16', '+1', '-4', '+4096')}]"


def table_text(seed: int) -> str:
    """The text that a seed stands for."""
    return TableText(random.Random(seed)).one()
