"""What instructions on bits give, in Python's integers, bit by bit.

They follow the PTX ISA, apart from scalar video instructions, which follow the sequences that the
driver's assembler makes of them for GPUs without a video unit.
"""

from __future__ import annotations

from collections.abc import Callable

MASK32 = 0xFFFFFFFF
_MODES = {
    "f4e": ("3210", "4321", "5432", "6543"), "b4e": ("5670", "6701", "7012", "0123"),
    "rc8": ("0000", "1111", "2222", "3333"), "ecl": ("3210", "3211", "3222", "3333"),
    "ecr": ("0000", "1110", "2210", "3210"), "rc16": ("1010", "3232", "1010", "3232"),
}  # fmt: skip
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def as_signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def typed(value: int, ptx_type: str) -> int:
    bits = int(ptx_type[1:])
    return as_signed(value, bits) if ptx_type[0] == "s" else value & ((1 << bits) - 1)


def prmt(words: list[str], a: int, b: int, selector: int) -> int:
    digits = [selector >> 4 * k & 15 for k in range(4)]
    for word in words:
        if word in _MODES:
            digits = [int(d) for d in reversed(_MODES[word][selector & 3])]
    source = (a | b << 32).to_bytes(8, "little")
    result = [source[d & 7] if d < 8 else 255 * (source[d & 7] >> 7) for d in digits]
    return int.from_bytes(bytes(result), "little")


def lop3(words: list[str], a: int, b: int, c: int, table: int) -> int:
    result = 0
    for bit in range(32):
        index = (a >> bit & 1) * 4 + (b >> bit & 1) * 2 + (c >> bit & 1)
        result |= (table >> index & 1) << bit
    return result


def _field_place(start: int, length: int, bits: int) -> tuple[int, int]:
    # Hardware reads the lowest byte for 32-bit fields, the whole number for 64-bit ones.
    return (start & 255, length & 255) if bits == 32 else (start, length)


def bfe(words: list[str], a: int, start: int, length: int) -> int:
    bits = int(words[-1][1:])
    start, length = _field_place(start, length, bits)
    sign = 0
    if words[-1][0] == "s" and length:
        sign = a >> min(start + length - 1, bits - 1) & 1
    result = 0
    for bit in range(bits):
        inside = bit < length and start + bit < bits
        result |= (a >> (start + bit) & 1 if inside else sign) << bit
    return result


def bfi(words: list[str], a: int, b: int, start: int, length: int) -> int:
    bits = int(words[-1][1:])
    start, length = _field_place(start, length, bits)
    for bit in range(min(length, bits)):
        if start + bit < bits:
            b = b & ~(1 << start + bit) | (a >> bit & 1) << start + bit
    return b


def bfind(words: list[str], a: int) -> int:
    bits = int(words[-1][1:])
    if words[-1][0] == "s" and a >> (bits - 1):
        a ^= (1 << bits) - 1
    found = a.bit_length() - 1
    if found >= 0 and "shiftamt" in words:
        found = bits - 1 - found
    return found & MASK32


def clz(words: list[str], a: int) -> int:
    return int(words[-1][1:]) - a.bit_length()


def popc(words: list[str], a: int) -> int:
    return a.bit_count()


def brev(words: list[str], a: int) -> int:
    bits = int(words[-1][1:])
    return int(f"{a:0{bits}b}"[::-1], 2)


def fns(words: list[str], mask: int, base: int, offset: int) -> int:
    offset = as_signed(offset, 32)
    if base > 31:
        return MASK32
    if offset == 0:
        return base if mask >> base & 1 else MASK32
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    ones = [place for place in places if mask >> place & 1]
    return ones[abs(offset) - 1] if len(ones) >= abs(offset) else MASK32


def bmsk(words: list[str], start: int, width: int) -> int:
    if "wrap" in words:
        start, width = start & 31, width & 31
    return ((1 << min(width, 32)) - 1 << min(start, 32)) & MASK32


def szext(words: list[str], a: int, width: int) -> int:
    width = width & 31 if "wrap" in words else min(width, 32)
    if width == 0:
        return 0
    value = a & ((1 << width) - 1)
    return (as_signed(value, width) if words[-1] == "s32" else value) & MASK32


def shf(words: list[str], a: int, b: int, amount: int) -> int:
    amount = min(amount, 32) if "clamp" in words else amount & 31
    wide = a | b << 32
    return (wide << amount >> 32 if "l" in words else wide >> amount) & MASK32


def sad(words: list[str], a: int, b: int, c: int) -> int:
    kind = words[-1]
    return typed(c + abs(typed(a, kind) - typed(b, kind)), f"u{kind[1:]}")


def _parts(word: int, bits: int, kind: str) -> list[int]:
    return [typed(word >> low, f"{kind[0]}{bits}") for low in range(0, 32, bits)]


def dp4a(words: list[str], a: int, b: int, c: int) -> int:
    pairs = zip(_parts(a, 8, words[-2]), _parts(b, 8, words[-1]), strict=True)
    return (c + sum(x * y for x, y in pairs)) & MASK32


def dp2a(words: list[str], a: int, b: int, c: int) -> int:
    chosen = _parts(b, 8, words[-1])[2 * ("hi" in words) :][:2]
    pairs = zip(_parts(a, 16, words[-2]), chosen, strict=True)
    return (c + sum(x * y for x, y in pairs)) & MASK32


def mul24(words: list[str], a: int, b: int, c: int = 0) -> int:
    sign = words[-1][0]
    product = typed(a, f"{sign}24") * typed(b, f"{sign}24")
    part = product >> 16 if "hi" in words else product
    if "sat" in words:
        total = as_signed(part, 32) + as_signed(c, 32)
        return max(-(1 << 31), min((1 << 31) - 1, total)) & MASK32
    return (part + c) & MASK32


def halves(words: list[str], a: int, b: int) -> int:
    kind = next(word for word in words if word.endswith("x2"))
    functions: dict[str, Callable[[int, int], int]] = {
        "add": lambda x, y: x + y,
        "min": min,
        "max": max,
    }
    function = functions[words[0]]
    results = [
        function(x, y) for x, y in zip(_parts(a, 16, kind), _parts(b, 16, kind), strict=True)
    ]
    if "relu" in words:
        results = [max(0, value) for value in results]
    return (results[0] & 0xFFFF) | (results[1] & 0xFFFF) << 16


SIMPLE: dict[str, Callable[..., int]] = {
    "prmt": prmt, "lop3": lop3, "bfe": bfe, "bfi": bfi, "bfind": bfind, "clz": clz, "popc": popc,
    "brev": brev, "fns": fns, "bmsk": bmsk, "szext": szext, "shf": shf, "sad": sad, "dp4a": dp4a,
    "dp2a": dp2a, "mul24": mul24, "mad24": mul24, "add": halves, "min": halves, "max": halves,
}  # fmt: skip


def clamped(value: int, bits: int, signed: bool) -> int:
    low = -(1 << bits - 1) if signed else 0
    return max(low, min(low + (1 << bits) - 1, value))


def _selected(word: int, selector: str, kind: str) -> int:
    if not selector:
        return typed(word, kind)
    bits = 8 if selector[0] == "b" else 16
    return typed(word >> bits * int(selector[1]), f"{kind[0]}{bits}")


def _arithmetic(name: str, x: int, y: int, words: list[str]) -> int:
    match name:
        case "vadd":
            return x + y
        case "vsub":
            return x - y
        case "vabsdiff":
            return abs(x - y)
        case "vmin":
            return min(x, y)
        case "vmax":
            return max(x, y)
        case "vavrg":
            return (x + y + 1) >> 1 if x + y >= 0 else (x + y) >> 1
        case "vset":
            return int(next(f for word, f in _COMPARE.items() if word in words)(x, y))
    amount = y & 31 if "wrap" in words else min(y, 32)
    return x << amount if name == "vshl" else x >> amount


Source = tuple[int, str, bool]  # a word, its selector, whether it is negated


def _saturated(name: str, value: int, into: str, signed: bool) -> int:
    """Saturation in the assembler's sequences: no destination but a signed word limits well."""
    if name in ("vshl", "vshr"):
        return as_signed(clamped(as_signed(value, 34), 32, signed), 32)
    if into:
        highest = (1 << {"b": 8, "h": 16}[into[0]] - signed) - 1
        return value if 0 <= value <= highest else highest
    return clamped(value, 32, True) if signed else max(value, 0)


def scalar_video(words: list[str], into: str, a: Source, b: Source, c: int) -> int:
    name = words[0]
    kinds = [word for word in words if word in ("u32", "s32")]
    if name == "vset":
        kinds.insert(0, kinds[0])
    signed = kinds[0] == "s32"
    x, y = _selected(a[0], a[1], kinds[1]), _selected(b[0], b[1], kinds[2])
    value = _arithmetic(name, x, y, words)
    if "sat" in words:
        value = _saturated(name, value, into, signed)
    if name in ("vadd", "vsub"):
        value = as_signed(value, 32)
    third = typed(c, kinds[0])
    if "add" in words:
        value += third
    elif "min" in words or "max" in words:
        kind = "s64" if signed else "u64"
        value = (min if "min" in words else max)(typed(value, kind), typed(third, kind))
    if not into:
        return value & MASK32
    bits = {"b": 8, "h": 16}[into[0]]
    low, mask = bits * int(into[1]), (1 << bits) - 1
    if into == "h1":
        value >>= 16
    return c & ~(mask << low) & MASK32 | (value & mask) << low


def vmad(words: list[str], into: str, a: Source, b: Source, c: Source) -> int:
    kinds = [word for word in words if word in ("u32", "s32")]
    minus = a[2] != b[2]
    signed = "s32" in kinds[1:] or minus or c[2]
    x = _selected(a[0], a[1], kinds[1] if a[1] else "s32")
    y = _selected(b[0], b[1], kinds[2] if b[1] else "s32")
    third = as_signed(~c[0], 32) + 1 if c[2] else as_signed(c[0], 32)
    total = (-x * y if minus else x * y) + third + ("po" in words)
    shift = 7 if "shr7" in words else 15 if "shr15" in words else 0
    total = (total if signed or not shift else typed(total, "u64")) >> shift
    return (clamped(total, 32, signed) if "sat" in words else total) & MASK32


def simd_video(words: list[str], into: str, a: Source, b: Source, c: int) -> int:
    name, count = words[0][:-1], int(words[0][-1])
    kinds = [word for word in words if word in ("u32", "s32")]
    if name == "vset":
        kinds.insert(0, "u32")
    bits = 32 // count
    wide = a[0] | b[0] << 32
    first = a[1][1:] or "3210"[4 - count :]
    second = b[1][1:] or ("7654" if count == 4 else "32")
    written = {int(digit) for digit in into[1:]} or set(range(count))
    result = c
    for k in range(count):
        if k not in written:
            continue
        x = typed(wide >> bits * int(first[-1 - k]), f"{kinds[1][0]}{bits}")
        y = typed(wide >> bits * int(second[-1 - k]), f"{kinds[2][0]}{bits}")
        value = _arithmetic(name, x, y, words)
        if "sat" in words:
            value = clamped(value, bits, kinds[0] == "s32")
        if "add" in words:
            result += value
        else:
            mask = (1 << bits) - 1
            result = result & ~(mask << bits * k) | (value & mask) << bits * k
    return result & MASK32


def evaluate(instruction: str, row: tuple[int, int, int, int]) -> int:
    """The result of one instruction of `assembly`, which may be a few separated by semicolons."""
    a, b, c, e = row
    values = {"a": a, "b": b, "c": c, "e": e, "A": a | b << 32, "B": c | e << 32, "p": a & 1}
    for statement in instruction.split(";"):
        opcode, _, rest = statement.strip().partition(" ")
        words = opcode.split(".")
        _, *sources = [_operand(text, values) for text in rest.split(",")]
        name, _, second = rest.split(",")[0].strip().lstrip("%").partition("|%")
        name, _, into = name.partition(".")
        values[name] = _one(words, into, sources)
        if second:
            condition = sources[4][0]
            found = values[name] != 0
            values[second] = found and condition if "and" in words else found or condition
    return values["D"] if "D" in values else values["d"]


def _operand(text: str, values: dict[str, int]) -> Source:
    text = text.strip()
    if text[0] == "!":
        return 1 - values[text[2:]], "", False
    minus = text[0] == "-" and "%" in text
    name, _, selector = text.lstrip("-%" if minus else "%").partition(".")
    if "%" not in text:
        return int(text, 0), "", False
    return values.get(name.split("|")[0], 0), selector, minus


def _one(words: list[str], into: str, sources: list[Source]) -> int:
    plain = [value for value, _, _ in sources]
    name = words[0]
    if name == "lop3":
        return lop3(words, *plain[:4])
    if name == "selp":
        return plain[0] if plain[2] else plain[1]
    if name == "and":
        return plain[0] & plain[1]
    if name == "cvt":
        return typed(plain[0], words[1])
    if name in SIMPLE:
        bits = 64 if words[-1][-2:] == "64" else 16 if words[-1][-2:] == "16" else 32
        wide = [value if bits == 64 else value & MASK32 for value in plain]
        return SIMPLE[name](words, *wide)
    if name == "vmad":
        a, b, c = sources
        return vmad(words, into, a, b, c)
    third = plain[2] if len(plain) > 2 else 0
    function = simd_video if name[-1] in "24" else scalar_video
    return function(words, into, sources[0], sources[1], third)
