"""Broken PTX: texts cut, shuffled and overwritten, which may only be refused with typed errors."""

from __future__ import annotations

import random
import re

from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.model.geometry import GridCall
from ptx.emulate.program import Program
from ptx.emulate.threads.device_model import DeviceModel
from ptx.emulate.threads.limits import Limits
from ptx.errors import PtxError
from ptx.isa import parse

_TOKEN = re.compile(r"[\w$%.]+|\s+|.", re.DOTALL)
_LIMITS = Limits(max_steps=3000, chunk_threads=64)
_SPICE = (
    "{", "}", "(", ")", "[", "]", ";", ",", ":", "|", "!", "@", "-", "~", '"', "/*", "//", ".reg",
    ".b32", ".u64", ".f32", ".pred", ".param", ".shared", ".local", ".entry", ".func", ".align 3",
    ".v2", "0x", "0f3F800000", "0d0", "099", "1e999", "99999999999999999999999", "-1", "%r99",
    "%r<99999999999>", "%p", "%tid.x", "%clock64", "_", "ret", "bra", "call", "trap", ".loc 1 2 3",
    ".pragma", "WARP_SZ", "mov.u32", "ld.global.v4.u32", "cvt.rn.f32.s32", "\x00", "\u00e9",
)  # fmt: skip

_NUMBERS = (
    "0", "1", "-1", "3", "31", "32", "33", "255", "256", "65536", "2147483648", "4294967295",
    "4294967296", "9223372036854775808", "18446744073709551615", "99999999999999999999",
)  # fmt: skip


def broken(rng: random.Random, text: str) -> str:
    """A text with a few random changes."""
    tokens = _TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 10))):
        at = rng.randrange(len(tokens) + 1)
        other = rng.randrange(len(tokens) + 1)
        low, high = sorted((at, other))
        kind = rng.randrange(16)
        if kind == 0:
            tokens = tokens[:at]
        elif kind == 1:
            tokens[at : at + rng.randrange(1, 6)] = []
        elif kind == 2:
            tokens.insert(at, rng.choice(_SPICE))
        elif kind == 3:
            tokens[at : at + 1] = [rng.choice(_SPICE)]
        elif kind == 4 and tokens:
            tokens[at : at + 1] = [rng.choice(tokens)]
        elif kind == 5:
            part = tokens[low : min(high, low + 12)]
            rng.shuffle(part)
            tokens[low : min(high, low + 12)] = part
        elif kind > 11:
            _exchange_word(rng, tokens)
        elif kind > 7:
            _exchange_alike(rng, tokens)
        elif kind == 6:
            tokens[at:at] = tokens[low : min(high, low + 30)]
        else:
            tokens.insert(at, "".join(chr(rng.randrange(1, 256)) for _ in range(8)))
        tokens = tokens or [" "]
    return "".join(tokens)


def _exchange_word(rng: random.Random, tokens: list[str]) -> None:
    """Put another word of the text in a word's place, or another part of one in its part's."""
    words = [at for at, token in enumerate(tokens) if token[0] in "%.$" or token[0].isalnum()]
    if not words:
        return
    at, other = rng.choice(words), rng.choice(words)
    mine, theirs = tokens[at].split("."), tokens[other].split(".")
    if rng.random() < 0.5 and len(mine) > 1 and len(theirs) > 1:
        mine[rng.randrange(len(mine))] = rng.choice(theirs)
        tokens[at] = ".".join(mine)
    else:
        tokens[at] = tokens[other]


def _exchange_alike(rng: random.Random, tokens: list[str]) -> None:
    """Put another register in a register's place, or another opcode, type, name or number."""
    words = [at for at, token in enumerate(tokens) if token[0] in "%.$" or token[0].isalnum()]
    if not words:
        return
    at = rng.choice(words)
    if tokens[at][0].isdigit():
        tokens[at] = rng.choice(_NUMBERS)
        return
    others = [tokens[other] for other in words if _class(tokens[other]) == _class(tokens[at])]
    tokens[at] = rng.choice(others)


def _class(word: str) -> str:
    """Registers by bank, directives and types, opcodes, other names."""
    if word[0] in "%.":
        return word.rstrip("0123456789")[:2]
    return "opcode" if "." in word else "name"


def provoke(text: str) -> str:
    """What a text does: "read" and "ran", or the name of the typed error that refused it.

    Raises:
        Exception: anything but a typed error, which is what the search is for.
    """
    try:
        module = parse(text)
        memory = DeviceMemory(1 << 40, 1 << 22)
        program = Program(module, DeviceModel(memory))
        done = "read"
        for entry in module.entries:
            if entry.span is None:
                continue
            kernel = program.kernel(entry.name)
            if kernel.signature.nbytes > 64:
                continue
            address = memory.allocate(1 << 16)
            params = (address.to_bytes(8, "little") * 8)[: max(kernel.signature.nbytes, 8)]
            kernel.launch(GridCall((2, 1, 1), (32, 1, 1), params), limits=_LIMITS)
            done = "ran"
    except PtxError as refused:
        return type(refused).__name__
    return done
