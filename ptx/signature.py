"""Signatures of kernels: the parameters' types, offsets and kinds, and the bounds of a launch.

Values only: `ptx.isa.signature` reads them from PTX, the cache of images stores them as lines.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptx.argument_checks import checks
from ptx.base_errors import PtxArgumentValueError

__all__ = ["KernelParam", "KernelSignature"]

# By `is_pointer`; an array is no pointer.
_KINDS = {True: "p", None: "?", False: "-"}
_ARRAY = "a"
_OF_KIND = {**{letter: kind for kind, letter in _KINDS.items()}, _ARRAY: False}


@dataclass(frozen=True, slots=True)
class KernelParam:
    """A kernel parameter: `count` elements of `ptx_type` at byte `offset` of the parameter block.

    `is_pointer` is True if the text has `.ptr`, None for another 64-bit integer, False for anything
    else. A 64-bit integer may be a pointer: the dialect up to sm_90 does not mark them.

    `cpp_type` is its type in C++, in the letters of the Itanium C++ ABI, such as "PKf" for ``const
    float*``. It is "" if neither the kernel's name nor the source contains it.

    `is_array` is True if the text declares an array, if only of one element. NVRTC declares each
    class type so, such as a structure or a ``__half``, and no number.
    """

    name: str
    ptx_type: str
    nbytes: int
    align: int
    offset: int
    is_pointer: bool | None
    count: int
    cpp_type: str = ""
    is_array: bool = False


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """A kernel's parameters and launch bounds.

    Attributes:
        nbytes: size of the parameter block.
        shared_bytes: static shared memory, without the dynamic part.
        max_threads: of a block, by `.maxntid` or `.reqntid`; None without a bound.
        required_block: by `.reqntid`; None if any will do.
    """

    name: str
    params: tuple[KernelParam, ...]
    nbytes: int
    shared_bytes: int
    max_threads: int | None
    required_block: tuple[int, int, int] | None

    def to_line(self) -> str:
        """One line of words for a cache; names in PTX hold neither blanks nor colons."""
        block = "-" if self.required_block is None else "x".join(map(str, self.required_block))
        threads = "-" if self.max_threads is None else str(self.max_threads)
        words = [self.name, str(self.nbytes), str(self.shared_bytes), threads, block]
        for p in self.params:
            kind = _ARRAY if p.is_array else _KINDS[p.is_pointer]
            layout = f"{p.ptx_type}:{p.nbytes}:{p.align}:{p.offset}:{kind}:{p.count}"
            words.append(f"{p.name}:{layout}:{p.cpp_type}")
        return " ".join(words)

    @classmethod
    def from_line(cls, line: str) -> KernelSignature:
        """The signature that `to_line` gave.

        Raises:
            PtxArgumentValueError: it gave no such line.
        """
        words = checks.instance_of("a signature", line, str).split(" ")
        try:
            name, nbytes, shared_bytes, threads, block, *of_params = words
            params = []
            for word in of_params:
                of, ptx_type, size, align, offset, kind, count, cpp_type = word.split(":")
                numbers = int(size), int(align), int(offset), _OF_KIND[kind], int(count)
                params.append(KernelParam(of, ptx_type, *numbers, cpp_type, kind == _ARRAY))
            x, y, z = (0, 0, 0) if block == "-" else map(int, block.split("x"))
            return cls(
                name,
                tuple(params),
                int(nbytes),
                int(shared_bytes),
                None if threads == "-" else int(threads),
                None if block == "-" else (x, y, z),
            )
        except (ValueError, KeyError) as error:
            raise PtxArgumentValueError(f"{line!r} is not a line of a signature") from error
