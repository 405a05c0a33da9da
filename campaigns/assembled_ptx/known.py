"""The classes of modules for which the emulator and the assembler differ, with their reasons."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from campaigns.assembled_ptx.instructions import operands_of
from ptx.isa.forms.table import form_table
from ptx.isa.opcodes.opcode_table import ROWS

# ptxas accepts these beside any modifiers of some opcodes, and repeated, without a meaning.
_IGNORED: Final = frozenset({
    "finite", "infinite", "number", "notanumber", "normal", "subnormal", "pred", "rank",
    "fill_mode", "global_stride", "box_dim", "elemtype", "swizzle_mode", "global_dim",
    "global_address", "interleave_layout", "swizzle_atomicity", "element_stride",
    "acc::f32", "acc::f16",
    "b8x16", "b6x16_p32", "b4x16_p64", "texref", "samplerref", "surfref", "s2",
})  # fmt: skip
_IGNORED_BY: Final = {
    "cp": frozenset({"cta", "cluster", "gpu", "sys", "weak", "b128"}),
    "bar": frozenset({"any", "all"}),
    "tensormap.cp_fenceproxy": _IGNORED,
    "fence": frozenset({"sync_restrict::shared::cta", "sync_restrict::shared::cluster"}),
    "tex": frozenset({"uni"}),
    **dict.fromkeys(("multimem.red", "multimem.st"), frozenset({"acc::f32", "acc::f16"})),
    **dict.fromkeys(("wgmma", "ldmatrix", "stmatrix"), frozenset({"row", "col"})),
    "movmatrix": frozenset({"row", "col"}),
}
# ptxas accepts these among the modifiers of products and moves of matrices without a meaning.
_STRAYS: Final = frozenset({
    "bf16", "bf16x2", "tf32", "s2", "s4", "u2", "u4", "b1", "v2", "v4", "v8", "and", "or", "xor",
    "kind::f8f6f4", "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4",
})  # fmt: skip
_HAS_NUMBER: Final = re.compile(r"\{(?:.* )?(?:[-\d]|WARP_SZ)")  # among the elements of a vector
_MATRICES: Final = ("mma", "wmma", "wgmma", "movmatrix", "ldmatrix", "stmatrix")


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """One class.

    Attributes:
        reason: why it stays.
        is_accepted: whether the assembler accepts what the emulator rejects, or the reverse.
        matches: the test of a text, and of the log or the error of the side that rejects.
    """

    reason: str
    is_accepted: bool
    matches: Callable[[str, str], bool]


def _opcode(text: str) -> str:
    return text.partition(" ")[0].partition(".")[0].rstrip(";")


def _has_ignored_words(text: str, _: str) -> bool:
    """Whether a modifier is there twice that is no type, or one of other opcodes."""
    opcode, *words = text.partition(" ")[0].rstrip(";").split(".")
    table = form_table()
    own = table.types(opcode) | table.modifiers(opcode) if opcode in table.opcodes else frozenset()
    ignored = (_IGNORED - own).union(
        *(_IGNORED_BY.get(name, frozenset()) for name in (opcode, ".".join((opcode, *words[:1]))))
    )
    may_repeat = (table.types(opcode) if own else frozenset[str]()) | {"row", "col"}
    repeated = [word for word in set(words) - may_repeat if words.count(word) > 1]
    return bool(repeated) or not ignored.isdisjoint(words)


def _has_strays(text: str, error: str) -> bool:
    """Whether a product or a move of matrices is a form, but for one or two stray modifiers."""
    opcode, *modifiers = text.partition(" ")[0].rstrip(";").split(".")
    if opcode not in _MATRICES or "no such combination" not in error:
        return False
    strays = [place for place, word in enumerate(modifiers) if word in _STRAYS]
    return any(
        form_table().matching(
            opcode, tuple(word for place, word in enumerate(modifiers) if place not in left_out)
        )
        for left_out in itertools.chain(
            itertools.combinations(strays, 1), itertools.combinations(strays, 2)
        )
    )


def _has_unchecked_operands(text: str, log: str) -> bool:
    opcode, *modifiers = text.partition(" ")[0].rstrip(";").split(".")
    if opcode in ROWS and ROWS[opcode].unchecked:
        return True
    table = form_table()
    forms = table.matching(opcode, tuple(modifiers)) if opcode in table.opcodes else ()
    return not re.search("requires|not supported on", log) and any(
        pattern[-1:] == ("...",) for form, _ in forms for pattern in form.patterns
    )


def _wrong_operand(text: str, error: str) -> str:
    """The operand that the emulator rejects, "" if it rejects something else."""
    place = re.search(r"operand (\d+) has a wrong kind", error)
    operands = operands_of(text.partition(" ")[2].rstrip(";"))
    return operands[int(place[1]) - 1] if place else ""


def _mixes_sizes(text: str, error: str) -> bool:
    """Whether the wrong operand is a vector of numbers and of registers of another size."""
    wrong = _wrong_operand(text, error)
    sizes = set(re.findall(r"%[usbf](\d+)_", wrong))
    of_types = set(re.findall(r"\.[usbf](\d+)\b", text.partition(" ")[0]))
    if _opcode(text) == "mov":  # it has one element's share of its type
        of_types = {str(int(bits) // (wrong.count(",") + 1)) for bits in of_types}
    return _HAS_NUMBER.match(wrong) is not None and not sizes <= of_types


def _fails_inside(text: str, log: str) -> bool:
    """Whether the wrong instruction is one that the text does not have."""
    named = re.search(r"Arguments mismatch for instruction '(\w+)", log)
    return (named is not None and named[1] != _opcode(text)) or (
        re.match(r"(?:cp|mma|st\.bulk)\.", text) is not None and "must be register" in log
    )


KNOWN: Final = (
    KnownDifference(
        "a name of another module rejects the kernels that use it, when they are taken",
        False,
        lambda text, log: "Undefined reference" in log,
    ),
    KnownDifference(
        "nvJitLink does not link some machine code whose debug information is no DWARF",
        False,
        lambda text, log: ", debug" in text and "NVJITLINK_INPUT_CUBIN" in log,
    ),
    KnownDifference(
        "ptxas takes vectors as parameters of functions: no compiler writes them",
        True,
        lambda text, error: re.search(r"expected a type such as .b32, found '\.v[24]'", error)
        is not None,
    ),
    KnownDifference(
        "ptxas takes an unknown letter behind an architecture, as in sm_90b, or a zero before it",
        True,
        lambda text, error: "takes an architecture such as" in error
        or re.search(r"unsupported \.target sm_0", error) is not None,
    ),
    KnownDifference(
        "labels of debug sections are not looked up",
        False,
        lambda text, log: re.search(r"used in function_name|label '\S+' invalid", log) is not None,
    ),
    KnownDifference(
        "ptxas takes strings of several lines, as of .file",
        True, lambda text, error: "expected a string, found" in error,
    ),
    KnownDifference(
        "ptxas ignores repeated modifiers, and some of other instructions: no compiler writes them",
        True, _has_ignored_words,
    ),
    KnownDifference(
        "the operands of these instructions are checked where a kernel is taken from its module",
        False, _has_unchecked_operands,
    ),
    KnownDifference(
        "ptxas of CUDA 13.5 gives a variable its own address as value, the one of driver 580 not",
        True, lambda text, error: "is not declared before" in error,
    ),
    KnownDifference(
        "ptxas takes the number of a cache policy as the mbarrier of a bulk copy",
        True,
        lambda text, error: "complete_tx" in text and text.count("[") == 2
        and "operand 4 has a wrong kind" in error,
    ),
    KnownDifference(
        "ptxas takes .async in fences, and state spaces in those of tensor maps, without a meaning",
        True,
        lambda text, error: _opcode(text) == "fence" and "no such combination" in error
        and re.search(r"\.async[.;]|tensormap::generic", text) is not None,
    ),
    KnownDifference(
        "the emulator does not execute conversions of .s2f6x2, nor those with factors",
        True,
        lambda text, error: text.startswith("cvt.") and "no such combination" in error
        and re.search(r"s2f6x2|scaled::", text) is not None,
    ),
    KnownDifference(
        "ptxas takes the types of tensormap.replace in any order",
        True,
        lambda text, error: re.match(r"tensormap\.replace.*\.b(32|64)\b.*b1024", text) is not None,
    ),
    KnownDifference(
        "ptxas takes .sp away from mma, and other types as a fifth one",
        True,
        lambda text, error: "no such combination" in error and re.match(
            r"mma\..*(?:\.sp[.:]|[us]32\.[us]\d\.[us]\d\.s32\.[usb]\d)", text
        ) is not None,
    ),
    KnownDifference(
        "ptxas ignores types and operations of other matrices in products and moves of matrices",
        True, _has_strays,
    ),
    KnownDifference(
        "the emulator does not execute .noftz of f32, which PTX 9.4 adds",
        True,
        lambda text, error: _opcode(text) in ("atom", "red", "cp") and "no such comb" in error
        and re.match(r"(?=\S*\.noftz\b)\S*\.f32\b", text) is not None,
    ),
    KnownDifference(
        "ptxas takes floats with a number as integers, and integers with a number as halves",
        True,
        lambda text, error: _HAS_NUMBER.match(_wrong_operand(text, error)) is not None
        and re.match(r"\S*\.[us]\d+\b.*\{.*%f|\S*\.b?f16.*\{.*%(?:[us]|f)", text) is not None,
    ),
    KnownDifference(
        "ptxas takes registers of any size beside a number in a vector", True, _mixes_sizes,
    ),
    KnownDifference(
        "ptxas takes a number as the last element of halves, and not as the first",
        False,
        lambda text, log: "Arguments mismatch" in log
        and re.match(r"\S*\.b?f16(?:x2)? .*\{[-\d]", text) is not None,
    ),
    KnownDifference(
        "ptxas fails to make other instructions of some with rare operands, as of bulk copies",
        False, _fails_inside,
    ),
    KnownDifference(
        "ptxas before PTX 9.0 takes one type of 32 bits as the size of st.bulk, .s32",
        True,
        lambda text, error: re.match(r"st\.bulk.*, %s32_", text) is not None
        and "with PTX 9.0" in error,
    ),
    KnownDifference(
        "ptxas takes .sat with .oob, and of sums with a carry",
        True,
        lambda text, error: re.match(
            r"(?:addc|subc|madc\.hi)\.sat\.|fma\.(?=.*\boob\b).*\bsat\b", text
        ) is not None,
    ),
    KnownDifference(
        "ptxas takes floats as B of m8n8k16 from sm_100 on, but not as A",
        True,
        lambda text, error: "m8n8k16" in text and "operand 3 has a wrong kind" in error,
    ),
    KnownDifference(
        "ptxas takes st.async and red.async without their mbarrier, or scalar types with vectors",
        True,
        lambda text, error: _opcode(text) in ("st", "red") and ".async" in text
        and re.search("not take 2 operands|operand 2 has|no such comb", error) is not None,
    ),
    KnownDifference(
        "ptxas takes predicates as matrices, their metadata, results of atom, fp8x4, pairs of bf16",
        True,
        lambda text, error: "%pred" in _wrong_operand(text, error)
        and re.match(
            r"(?:movmatrix|ldmatrix|w?g?mma|atom)\.|multimem\.ld_r.*e[45]m[23]x4|cvt\..*e2m1x2.*bf16x2",
            text,
        ) is not None,
    ),
    KnownDifference(
        "ptxas takes addresses in registers of any type for some instructions that need 64 bits",
        True,
        lambda text, error: re.match(
            r"\[%([usb](8|16)|f\d+|pred)_", _wrong_operand(text, error)
        ) is not None or (text.startswith("fence.proxy.tensormap") and "operand 1" in error),
    ),
    KnownDifference(
        "ptxas takes registers of 32 bits as addresses of all memory below sm_90 only",
        True,
        lambda text, error: re.search(r"\[%[usb]32_", text) is not None
        and "has a wrong kind" in error,
    ),
    KnownDifference(
        "ptxas takes the type of cp.reduce between its state spaces",
        True,
        lambda text, error: text.startswith("cp.reduce.") and "no such combination" in error,
    ),
    KnownDifference(
        "ptxas takes txq.memory_layout, which is of surfaces alone",
        True, lambda text, error: text.startswith("txq.memory_layout."),
    ),
    KnownDifference(
        "ptxas takes the values of variables of .f16x2 in braces of any depth",
        True,
        lambda text, error: ".f16x2" in text and "expected a constant, found '{'" in error,
    ),
    KnownDifference(
        "ptxas takes testp without a property, which means nothing",
        True,
        lambda text, error: _opcode(text) == "testp" and "no such combination" in error,
    ),
    KnownDifference(
        "ptxas takes registers of type .f16x2 where it takes no other type of that size",
        True,
        lambda text, error: "%f16x2_" in _wrong_operand(text, error),
    ),
    KnownDifference(
        "ptxas takes a vector as the count of mbarrier.arrive, or as metadata of products",
        True,
        lambda text, error: _opcode(text) in ("mbarrier", "wgmma", "mma")
        and _wrong_operand(text, error)[:1] == "{",
    ),
    KnownDifference(
        "a register is no address of an argument: ptxas crashes, or rejects it",
        False,
        lambda text, log: text.startswith("st.") and "param" in text.partition(" ")[0]
        and "Illegal state space for address" in log,
    ),
    KnownDifference(
        "ptxas takes floats as arguments without a type of another size",
        True,
        lambda text, error: "an operand of the call does not fit" in error
        and re.search(r"\.(?:b\d+|f16)$|\.(?:b\d+|f16):", error) is not None
        and re.search(r"[(,] ?(?:0[fd][0-9A-F]+|-?\d\.\d)[,)]", text) is not None,
    ),
    KnownDifference(
        "ptxas takes an address as a number, if an offset is added",
        True,
        lambda text, error: re.search(r"mem ?\+", _wrong_operand(text, error)) is not None,
    ),
    KnownDifference(
        "ptxas takes a further number as operand of atom",
        True,
        lambda text, error: _opcode(text) == "atom" and "does not take 4 operands" in error,
    ),
    KnownDifference(
        "ptxas takes addresses and special registers apart in a move, cuts or repeats them",
        True,
        lambda text, error: "has a wrong kind" in error and re.match(
            r"mov\.(?:b\d+ .*(?:mem|%tid)|[us]32 .*, gmem;"
            r"|(?:v[24]\.)?[usb]\d+ \{.*\}, (?:\w*mem|%[a-z]+[0-9.a-z]*);)", text
        ) is not None,
    ),
    KnownDifference(
        "ptxas takes special registers and sinks as elements of matrices and of results of atom",
        True,
        lambda text, error: _opcode(text) in ("atom", *_MATRICES)
        and re.match(r"\{.*(?:%tid|%laneid|\b_[,}])", _wrong_operand(text, error)) is not None,
    ),
    KnownDifference(
        "the numbers of cache policies are not compared with each other, as they have no effect",
        False,
        lambda text, log: _opcode(text) == "createpolicy" and "value '" in log,
    ),
    KnownDifference(
        "ptxas takes a number or `_` for some destinations and addresses, and writes nowhere",
        True,
        lambda text, error: re.match(
            r"[-\d_]|WARP|\{[-\d_][^%]*\}|\{.*\b_[,}]", _wrong_operand(text, error)
        ) is not None
        or ("operand 1" in error and _HAS_NUMBER.match(_wrong_operand(text, error)) is not None),
    ),
)  # fmt: skip
