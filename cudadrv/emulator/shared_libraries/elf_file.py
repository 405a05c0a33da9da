"""The file of a shared library whose functions call the addresses in a table of the process.

System V ABI, "Object Files", "Program Loading and Dynamic Linking". A process without a table gets
one number from all functions. A process of Python may first run a statement, which sets the table.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from .symbol_table import TABLE

HOOKS: Final = ("PyGILState_Ensure", "PyErr_Fetch", "PyErr_Restore", "PyGILState_Release")
"""The functions of Python whose addresses begin the table, if its functions run Python."""
END: Final = "cudadrv_end"
"""The name of a function without any Python that replaces the table by that for the end."""
RETURN_ZERO: Final = "cudadrv_done"
"""The name of a function that returns 0."""
STARTERS: Final = (
    "Py_IsInitialized",
    "PyGILState_Ensure",
    "PyRun_SimpleString",
    "PyGILState_Release",
)
"""The functions of Python that run the statement; a process without Python lacks them."""
NATIVE_STARTERS: Final = (
    "cudadrv_is_initialized",
    "cudadrv_ensure",
    "cudadrv_run",
    "cudadrv_release",
)
"""Those of `native_start.c`, which start Python in a process without it."""
TEXTS: Final = {"cuGetErrorName": "cudadrv_name", "cuGetErrorString": "cudadrv_text"}
"""Functions without any Python that have a function's results for each number, by its name."""
RETURN_CODE: Final = "cudadrv_gone"
"""The name of a function that returns what all functions return without a table."""

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_ENTRY: Final = struct.Struct("<QQ")
_VERSION: Final = struct.Struct("<HHHHIII")  # Elf64_Verdef
_VERSION_NAME: Final = struct.Struct("<II")  # Elf64_Verdaux
_IDENT: Final = b"\x7fELF\x02\x01\x01" + bytes(9)  # 64 bits, little-endian, System V
_SHARED_OBJECT: Final = 3
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_READ_EXECUTE, _READ_WRITE = 5, 6
_RELA, _RELASZ, _RELAENT = 7, 8, 9
_WEAK: Final = 0x20
_RELOCATION: Final = struct.Struct("<QQq")
_ADDRESS_X86: Final = 1  # R_X86_64_64
_HASH, _STRTAB, _SYMTAB, _STRSZ, _SYMENT, _SONAME = 4, 5, 6, 10, 11, 14
_VERSYM, _VERDEF, _VERDEFNUM = 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD
_GLOBAL_OBJECT, _GLOBAL_FUNCTION = 0x11, 0x12
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SECTIONS_AT, _SECTION_COUNT = struct.Struct("<Q"), struct.Struct("<HH")  # e_shoff; e_shnum and on
_WRITE, _ALLOC, _EXECUTE = 1, 2, 4
_VERSYM_SECTION, _VERDEF_SECTION = 0x6FFFFFFF, 0x6FFFFFFD
_TEXT, _DATA = 1, 2  # numbers of sections
_PAGE: Final = 0x10000  # the largest page that Linux has on either machine
_CODE: Final = 32  # bytes of a function
_COMMON_CODE: Final = 256
_START_CODE: Final = 256
_TEXT_CODE: Final = 64
_NOTICE_CODE: Final = 128
_MOST_TEXTS: Final = 1024  # more than any result; the last has no text


def _machine_code(listing: str) -> bytes:
    """Return the bytes of lines of hexadecimal digits and assembler."""
    return b"".join(bytes.fromhex(line.partition(";")[0]) for line in listing.split("\n"))


_CALL_X86: Final = _machine_code("""
4e8b1c18        ; mov r11,[rax+r11*1]
48833800        ; cmp [rax],0x0
7503            ; jne over the next
41ffe3          ; jmp r11
55              ; push rbp
4889e5          ; mov rbp,rsp
4881ec00010000  ; sub rsp,0x100
48897df8        ; mov [rbp-0x8],rdi
488975f0        ; mov [rbp-0x10],rsi
488955e8        ; mov [rbp-0x18],rdx
48894de0        ; mov [rbp-0x20],rcx
4c8945d8        ; mov [rbp-0x28],r8
4c894dd0        ; mov [rbp-0x30],r9
660fd645c8      ; movq [rbp-0x38],xmm0
660fd64dc0      ; movq [rbp-0x40],xmm1
4c895db8        ; mov [rbp-0x48],r11
488945b0        ; mov [rbp-0x50],rax
ff10            ; call [rax]
894590          ; mov DWORD PTR [rbp-0x70],eax
488d7d98        ; lea rdi,[rbp-0x68]
488d75a0        ; lea rsi,[rbp-0x60]
488d55a8        ; lea rdx,[rbp-0x58]
488b45b0        ; mov rax,[rbp-0x50]
ff5008          ; call [rax+0x8]
488d7510        ; lea rsi,[rbp+0x10]
4889e7          ; mov rdi,rsp
b910000000      ; mov ecx,0x10
f348a5          ; rep movsq
488b7df8        ; mov rdi,[rbp-0x8]
488b75f0        ; mov rsi,[rbp-0x10]
488b55e8        ; mov rdx,[rbp-0x18]
488b4de0        ; mov rcx,[rbp-0x20]
4c8b45d8        ; mov r8,[rbp-0x28]
4c8b4dd0        ; mov r9,[rbp-0x30]
f30f7e45c8      ; movq xmm0,[rbp-0x38]
f30f7e4dc0      ; movq xmm1,[rbp-0x40]
ff55b8          ; call [rbp-0x48]
488945b8        ; mov [rbp-0x48],rax
488b7d98        ; mov rdi,[rbp-0x68]
488b75a0        ; mov rsi,[rbp-0x60]
488b55a8        ; mov rdx,[rbp-0x58]
488b45b0        ; mov rax,[rbp-0x50]
ff5010          ; call [rax+0x10]
8b7d90          ; mov edi,DWORD PTR [rbp-0x70]
488b45b0        ; mov rax,[rbp-0x50]
ff5018          ; call [rax+0x18]
488b45b8        ; mov rax,[rbp-0x48]
c9              ; leave
c3              ; ret
""")
"""Call the function at offset r11 of the table at rax, with the GIL and no pending exception.

Python's functions would take an exception that propagates through the caller for their own. The
thread has one even where the caller has released the GIL. The frame has, from rbp downwards, the
arguments in registers, the function, the table, the exception, and the thread's state before. The
function gets a copy of 16 words of the stack, more than any takes. A table without hooks has
functions of C, which are called directly.
"""
_START_X86: Final = _machine_code("""
55              ; push rbp
4889e5          ; mov rbp,rsp
4883ec60        ; sub rsp,0x60
48897df8        ; mov [rbp-0x8],rdi
488975f0        ; mov [rbp-0x10],rsi
488955e8        ; mov [rbp-0x18],rdx
48894de0        ; mov [rbp-0x20],rcx
4c8945d8        ; mov [rbp-0x28],r8
4c894dd0        ; mov [rbp-0x30],r9
660fd645c8      ; movq [rbp-0x38],xmm0
660fd64dc0      ; movq [rbp-0x40],xmm1
4c895db8        ; mov [rbp-0x48],r11
488945a8        ; mov [rbp-0x58],rax
488b10          ; mov rdx,[rax]
4885d2          ; test rdx,rdx
7425            ; je to the end
ffd2            ; call rdx
85c0            ; test eax,eax
741f            ; je to the end
488b45a8        ; mov rax,[rbp-0x58]
ff5008          ; call [rax+0x8]
8945b0          ; mov [rbp-0x50],eax
488b45a8        ; mov rax,[rbp-0x58]
488d7820        ; lea rdi,[rax+0x20]
ff5010          ; call [rax+0x10]
8b7db0          ; mov edi,[rbp-0x50]
488b45a8        ; mov rax,[rbp-0x58]
ff5018          ; call [rax+0x18]
488b7df8        ; mov rdi,[rbp-0x8], the end
488b75f0        ; mov rsi,[rbp-0x10]
488b55e8        ; mov rdx,[rbp-0x18]
488b4de0        ; mov rcx,[rbp-0x20]
4c8b45d8        ; mov r8,[rbp-0x28]
4c8b4dd0        ; mov r9,[rbp-0x30]
f30f7e45c8      ; movq xmm0,[rbp-0x38]
f30f7e4dc0      ; movq xmm1,[rbp-0x40]
4c8b5db8        ; mov r11,[rbp-0x48]
c9              ; leave
""")
"""Run the statement after four addresses at rax, those of `STARTERS`, in an initialised Python."""
_CALL_ARM: Final = _machine_code("""
306a70f8        ; ldr x16, [x17, x16]
290240f9        ; ldr x9, [x17]
490000b5        ; cbnz x9, over the next
00021fd6        ; br x16
ff8304d1        ; sub sp, sp, #288
fd7b08a9        ; stp x29, x30, [sp, #128]
fd030291        ; add x29, sp, #128
e00709a9        ; stp x0, x1, [sp, #144]
e20f0aa9        ; stp x2, x3, [sp, #160]
e4170ba9        ; stp x4, x5, [sp, #176]
e61f0ca9        ; stp x6, x7, [sp, #192]
e0070d6d        ; stp d0, d1, [sp, #208]
f0470ea9        ; stp x16, x17, [sp, #224]
20013fd6        ; blr x9
e00b01b9        ; str w0, [sp, #264]
e0c30391        ; add x0, sp, #240
e1e30391        ; add x1, sp, #248
e2030491        ; add x2, sp, #256
f17740f9        ; ldr x17, [sp, #232]
300640f9        ; ldr x16, [x17, #8]
00023fd6        ; blr x16
e92b52a9        ; ldp x9, x10, [sp, #288]
e92b00a9        ; stp x9, x10, [sp]
e92b53a9        ; ldp x9, x10, [sp, #304]
e92b01a9        ; stp x9, x10, [sp, #16]
e92b54a9        ; ldp x9, x10, [sp, #320]
e92b02a9        ; stp x9, x10, [sp, #32]
e92b55a9        ; ldp x9, x10, [sp, #336]
e92b03a9        ; stp x9, x10, [sp, #48]
e92b56a9        ; ldp x9, x10, [sp, #352]
e92b04a9        ; stp x9, x10, [sp, #64]
e92b57a9        ; ldp x9, x10, [sp, #368]
e92b05a9        ; stp x9, x10, [sp, #80]
e92b58a9        ; ldp x9, x10, [sp, #384]
e92b06a9        ; stp x9, x10, [sp, #96]
e92b59a9        ; ldp x9, x10, [sp, #400]
e92b07a9        ; stp x9, x10, [sp, #112]
e00749a9        ; ldp x0, x1, [sp, #144]
e20f4aa9        ; ldp x2, x3, [sp, #160]
e4174ba9        ; ldp x4, x5, [sp, #176]
e61f4ca9        ; ldp x6, x7, [sp, #192]
e0074d6d        ; ldp d0, d1, [sp, #208]
f07340f9        ; ldr x16, [sp, #224]
00023fd6        ; blr x16
e07300f9        ; str x0, [sp, #224]
e0074fa9        ; ldp x0, x1, [sp, #240]
e28340f9        ; ldr x2, [sp, #256]
f17740f9        ; ldr x17, [sp, #232]
300a40f9        ; ldr x16, [x17, #16]
00023fd6        ; blr x16
e00b41b9        ; ldr w0, [sp, #264]
f17740f9        ; ldr x17, [sp, #232]
300e40f9        ; ldr x16, [x17, #24]
00023fd6        ; blr x16
e07340f9        ; ldr x0, [sp, #224]
fd7b48a9        ; ldp x29, x30, [sp, #128]
ff830491        ; add sp, sp, #288
c0035fd6        ; ret
""")
"""The same, with the offset in x16 and the table in x17."""


def _jump_x86(address: int, common: int, offset: int) -> bytes:
    """`mov offset, %r11d; jmp common`."""
    return struct.pack("<2sIBi", b"\x41\xbb", offset, 0xE9, common - (address + 11))


def _jump_arm(address: int, common: int, offset: int) -> bytes:
    """`movz w16, offset; b common`."""
    branch = 0x14000000 | ((common - address - 4) // 4 & 0x3FFFFFF)
    return struct.pack("<II", 0x52800010 | offset << 5, branch)


def _common_x86(address: int, table: int, return_at: int) -> bytes:
    """`mov table(%rip), %rax; test %rax, %rax; je return_at`, and the call."""
    load = b"\x48\x8b\x05" + struct.pack("<i", table - (address + 7)) + b"\x48\x85\xc0"
    skip = b"\x0f\x84" + struct.pack("<i", return_at - (address + 16))
    return load + skip + _CALL_X86


def _common_arm(address: int, table: int, return_at: int) -> bytes:
    """`ldr x17, table; cbz x17, return_at`, and the call."""
    load = 0x58000011 | ((table - address) // 4 & 0x7FFFF) << 5
    skip = 0xB4000011 | ((return_at - address - 4) // 4 & 0x7FFFF) << 5
    return struct.pack("<II", load, skip) + _CALL_ARM


def _start_x86(address: int, starters: int, table: int, return_at: int, call: int) -> bytes:
    """`lea starters(%rip), %rax`; the start; then the call if there is a table now."""
    begin = b"\x48\x8d\x05" + struct.pack("<i", starters - (address + 7)) + _START_X86
    address += len(begin)
    load = b"\x48\x8b\x05" + struct.pack("<i", table - (address + 7)) + b"\x48\x85\xc0"
    skip = b"\x0f\x84" + struct.pack("<i", return_at - (address + 16))
    return begin + load + skip + b"\xe9" + struct.pack("<i", call - (address + 21))


def _end_x86(address: int, table: int) -> bytes:
    """`mov 8+table(%rip), %rax; mov %rax, table(%rip); ret`."""
    load = b"\x48\x8b\x05" + struct.pack("<i", table + 8 - (address + 7))
    return load + b"\x48\x89\x05" + struct.pack("<i", table - (address + 14)) + b"\xc3"


def _end_arm(at: int, table: int) -> bytes:
    """`adr x0, table; ldr x1, [x0, 8]; str x1, [x0]; ret`; the table is less than 1 MiB away."""
    distance = table - at
    load = 0x10000000 | (distance & 3) << 29 | (distance >> 2 & 0x7FFFF) << 5
    return struct.pack("<IIII", load, 0xF9400401, 0xF9000001, 0xD65F03C0)


def _text_x86(at: int, offsets: int) -> bytes:
    """`*rsi = the text of edi`, null for none; return whether there is none."""
    begin = b"\xb9\xff\x03\0\0\x39\xcf\x0f\x47\xf9"  # mov $1023, %ecx; cmp; cmova %ecx, %edi
    load = b"\x48\x8d\x15" + struct.pack("<i", offsets - (at + len(begin) + 7))  # lea, to %rdx
    return begin + load + _TEXT_X86


def _text_arm(at: int, offsets: int) -> bytes:
    """Same, for w0 and x1."""
    distance = offsets - (at + 12)
    address = 0x10000009 | (distance & 3) << 29 | (distance >> 2 & 0x7FFFF) << 5  # adr x9
    return struct.pack("<IIII", 0x52807FE9, 0x6B09001F, 0x1A899000, address) + _TEXT_ARM


def _without_x86(at: int, texts: Sequence[tuple[int, int]], number: int) -> bytes:
    """Return a number, but go to another function if r11 has its offset in the table."""
    code = b""
    for offset, target in texts:
        code += b"\x41\x81\xfb" + struct.pack("<i", offset)  # cmp $offset, %r11d
        code += b"\x0f\x84" + struct.pack("<i", target - (at + len(code) + 6))  # je
    return code + _return_x86(number)


def _without_arm(at: int, texts: Sequence[tuple[int, int]], number: int) -> bytes:
    """Same, for x16."""
    code = b""
    for offset, target in texts:
        distance = (target - (at + len(code) + 8)) // 4 & 0x7FFFF
        code += struct.pack(
            "<III", 0x52800009 | offset << 5, 0x6B09021F, 0x54000000 | distance << 5
        )  # movz w9; cmp w16, w9; b.eq
    return code + _return_arm(number)


def _notice_x86(at: int, starters: int, flag: int, text: tuple[int, int], then: int) -> bytes:
    """Write a text to standard error once, if the process has no Python; then go on."""
    code = b""

    def at_address(instruction: bytes, target: int) -> bytes:
        return instruction + struct.pack("<i", target - (at + len(code) + len(instruction) + 4))

    if starters:
        code += at_address(b"\x48\x8b\x05", starters) + b"\x48\x85\xc0"  # mov, to %rax; test
        code += at_address(b"\x0f\x85", then)  # jne
    code += b"\xb8\x01\0\0\0"  # mov $1, %eax
    code += at_address(b"\x87\x05", flag) + b"\x85\xc0"  # xchg; test
    code += at_address(b"\x0f\x85", then)
    code += b"\x57\x56\x52\x41\x53\xbf\x02\0\0\0"  # push %rdi, %rsi, %rdx, %r11; mov $2, %edi
    code += at_address(b"\x48\x8d\x35", text[0])  # lea, to %rsi
    code += b"\xba" + struct.pack("<i", text[1])  # mov, to %edx
    code += b"\xb8\x01\0\0\0\x0f\x05\x41\x5b\x5a\x5e\x5f"  # mov $1, %eax (write); syscall; pop
    return code + at_address(b"\xe9", then)


def _notice_arm(at: int, starters: int, flag: int, text: tuple[int, int], then: int) -> bytes:
    """Same."""

    def address(register: int, target: int, place: int) -> int:
        distance = target - (at + place)  # adr
        return 0x10000000 | (distance & 3) << 29 | (distance >> 2 & 0x7FFFF) << 5 | register

    def jump(place: int) -> int:
        return (then - (at + place)) // 4

    return struct.pack(
        "<15I",
        address(9, flag, 0),
        0xB940012A,  # adr x9; ldr w10, [x9]
        0x3500000A | (jump(8) & 0x7FFFF) << 5,  # cbnz w10
        0x5280002A,
        0xB900012A,  # mov w10, #1; str w10, [x9]
        0xA9BE07E0,
        0xF9000BE2,  # stp x0, x1, [sp, #-32]!; str x2, [sp, #16]
        0x52800040,
        address(1, text[0], 32),  # mov w0, #2; adr x1
        0x52800002 | text[1] << 5,
        0x52800808,
        0xD4000001,  # mov w2; mov w8, #64 (write); svc #0
        0xF9400BE2,
        0xA8C207E0,  # ldr x2, [sp, #16]; ldp x0, x1, [sp], #32
        0x14000000 | jump(56) & 0x3FFFFFF,  # b
    )


def _return_x86(number: int) -> bytes:
    """`mov number, %eax; ret`."""
    return b"\xb8" + struct.pack("<i", number) + b"\xc3"


def _return_arm(number: int) -> bytes:
    """`mov w0, number; ret`."""
    return struct.pack("<II", 0x52800000 | number << 5, 0xD65F03C0)


_TEXT_X86: Final = _machine_code("""
486304ba        ; movslq (%rdx,%rdi,4),%rax
4801c2          ; add %rax,%rdx
85c0            ; test %eax,%eax
480f44d0        ; cmove %rax,%rdx
4885f6          ; test %rsi,%rsi
7403            ; je over the next
488916          ; mov %rdx,(%rsi)
85c0            ; test %eax,%eax
0f94c0          ; sete %al
0fb6c0          ; movzx %al,%eax
c3              ; ret
""")
_TEXT_ARM: Final = _machine_code("""
2a59a0b8        ; ldrsw x10, [x9, w0, uxtw #2]
29010a8b        ; add x9, x9, x10
5f0100f1        ; cmp x10, #0
e903899a        ; csel x9, xzr, x9, eq
410000b4        ; cbz x1, over the next
290000f9        ; str x9, [x1]
5f0100f1        ; cmp x10, #0
e0179f1a        ; cset w0, eq
c0035fd6        ; ret
""")


@dataclass(frozen=True, slots=True)
class Machine:
    """The facts that depend on the processor.

    Attributes:
        number: e_machine.
        jump: a function of the library, from its offset in the file, that of the common code, and
            the offset in the table of the function to call.
        common: a call of a function of the table, or a jump to `return_at` if there is no table;
            from the offsets in the file of this code, of the table's address and of that function.
        end: the function END, from its offset and that of the table's address.
        return_value: a function that returns a number.
        text: a function of `TEXTS`, from its offset and that of its texts.
        without: what a call without a table does, from the offset of this code, the offsets in the
            table of the functions in `TEXTS` with those of their code, and the number to return.
        notice: code that writes a text once in a process without Python, from its offset, those of
            the address of Python's first starter (0 for none) and of the flag, the text's offset
            and bytes, and the offset of the code that follows.
        start: code that runs the statement and then calls, from the offsets of this code, of the
            addresses of `STARTERS`, of the table's address, of `return_at` and of the call; None if
            there is none for this processor.
        common_head: bytes of `common` before the call.
    """

    number: int
    jump: Callable[[int, int, int], bytes]
    common: Callable[[int, int, int], bytes]
    end: Callable[[int, int], bytes]
    return_value: Callable[[int], bytes]
    text: Callable[[int, int], bytes]
    without: Callable[[int, Sequence[tuple[int, int]], int], bytes]
    notice: Callable[[int, int, int, tuple[int, int], int], bytes]
    start: Callable[[int, int, int, int, int], bytes] | None = None
    common_head: int = 0


MACHINES: Final = {
    "x86_64": Machine(
        62,
        _jump_x86,
        _common_x86,
        _end_x86,
        _return_x86,
        _text_x86,
        _without_x86,
        _notice_x86,
        _start_x86,
        16,
    ),
    "aarch64": Machine(
        183, _jump_arm, _common_arm, _end_arm, _return_arm, _text_arm, _without_arm, _notice_arm
    ),
}
"""By the name that `os.uname()` returns."""


class _Section(NamedTuple):
    """A section; `link` is the number of another one, as the System V ABI has it ("Sections")."""

    name: str
    kind: int
    flags: int
    offset: int
    nbytes: int
    link: int = 0
    info: int = 0
    entry: int = 0
    alignment: int = 1


class _Parts:
    """The parts of a file, each after the one before."""

    def __init__(self, start: int) -> None:
        self._end = start

    def add(self, nbytes: int, alignment: int = 1) -> int:
        """Add a part, and return where it begins."""
        start = self._end + -self._end % alignment
        self._end = start + nbytes
        return start


class _Layout(NamedTuple):
    """Where the parts of a file begin, in bytes from its start."""

    code: int
    end_function: int
    return_zero: int
    return_code: int
    common: int
    start: int
    texts: int
    notice: int
    hashes: int
    symbols: int
    numbers: int
    versions: int
    relocations: int
    strings: int
    tables: int
    dynamic: int
    table: int
    starters: int
    statement: int
    flag: int
    message: int
    end: int

    @classmethod
    def of(
        cls,
        names: int,
        symbols: int,
        strings: bytes,
        starters: int,
        statement: bytes,
        tables: int,
        notice: bytes,
    ) -> Self:
        """Return the layout for numbers of names, symbols and starters, and for texts.

        `tables` is the number of bytes of the texts of results.
        """
        parts = _Parts(_HEADER.size + 4 * _SEGMENT.size)
        return cls(
            code=parts.add(_CODE * names, _CODE),
            end_function=parts.add(_CODE),
            return_zero=parts.add(_CODE),
            return_code=parts.add(_CODE),
            common=parts.add(_COMMON_CODE),
            start=parts.add(_START_CODE),
            texts=parts.add(_TEXT_CODE * len(TEXTS)),
            notice=parts.add(_NOTICE_CODE),
            hashes=parts.add(4 * (3 + symbols)),
            symbols=parts.add(_SYMBOL.size * symbols, 8),
            numbers=parts.add(2 * symbols),
            versions=parts.add(2 * (_VERSION.size + _VERSION_NAME.size), 8),
            relocations=parts.add(_RELOCATION.size * starters),
            strings=parts.add(len(strings)),
            tables=parts.add(tables, 4),
            dynamic=parts.add(13 * _ENTRY.size, _PAGE),
            table=parts.add(16),
            starters=parts.add(8 * starters),
            statement=parts.add(len(statement) + 1),
            flag=parts.add(8, 8),
            message=parts.add(len(notice)),
            end=parts.add(0),
        )


def elf_image(
    soname: str,
    names: Sequence[str],
    machine: Machine,
    version: str = "",
    *,
    result: int,
    statement: str = "",
    starters: Sequence[str] = STARTERS,
    texts: Mapping[str, Mapping[int, str]] | None = None,
    notice: str = "",
) -> bytes:
    """Return the file of a shared library with these functions, of one version or of none.

    Without a table they return `result`. `statement` is of Python; each call without a table runs
    it first by the functions `starters`, if the machine has the code for that. `texts` has the
    results of the functions in `TEXTS`, which have them also without a table. A process without
    Python writes `notice` to standard error once.
    """
    texts = texts or {}
    tables = [_text_table(texts[name]) for name in texts]
    functions = [*names, END, RETURN_ZERO, RETURN_CODE, *(TEXTS[name] for name in texts)]
    if not statement or machine.start is None:
        starters = ()
    strings, string_offsets = _strings((soname, version, TABLE, *functions, *starters))
    count = len(functions) + len(starters) + 2  # and the null symbol, and the table's address
    nbytes = sum(map(len, tables))
    said, told = statement.encode(), notice.encode()
    at = _Layout.of(len(names), count, strings, len(starters), said, nbytes, told)

    image = bytearray(at.end)
    _put(image, 0, _headers(machine, at.tables + nbytes, at.dynamic, at.table, at.end))
    _put_code(image, at, machine, len(names), said, told)
    _put_texts(image, at, machine, [names.index(name) for name in texts], tables, result)
    # One bucket, whose chain contains all symbols.
    chain = [0, *range(2, count), 0]
    _put(image, at.hashes, struct.pack(f"<{3 + count}I", 1, count, 1, *chain))
    _put_symbols(image, at, string_offsets[2:], len(functions))
    _put(image, at.strings, strings)
    if version:
        _put(image, at.numbers, struct.pack(f"<{count}H", 0, *[2] * (count - 1)))
        named = (soname, string_offsets[0]), (version, string_offsets[1])
        _put(image, at.versions, _versions(*named))
    entries = _dynamic_entries(
        at, string_offsets[0], len(strings), len(starters), has_version=bool(version)
    )
    _put(image, at.dynamic, b"".join(_ENTRY.pack(*words) for words in entries))
    _put_sections(image, at, count, len(strings), len(entries), has_version=bool(version))
    return bytes(image)


def _dynamic_entries(
    at: _Layout, soname: int, string_bytes: int, starters: int, *, has_version: bool
) -> list[tuple[int, int]]:
    """Return the dynamic section: where the loader finds the tables, and their sizes."""
    entries = [
        (_SONAME, soname), (_HASH, at.hashes), (_STRTAB, at.strings),
        (_SYMTAB, at.symbols), (_STRSZ, string_bytes), (_SYMENT, _SYMBOL.size),
    ]  # fmt: skip
    if starters:
        entries += [
            (_RELA, at.relocations),
            (_RELASZ, starters * _RELOCATION.size),
            (_RELAENT, _RELOCATION.size),
        ]
    if has_version:
        entries += [(_VERSYM, at.numbers), (_VERDEF, at.versions), (_VERDEFNUM, 2)]
    return [*entries, (0, 0)]


def _put_sections(
    image: bytearray, at: _Layout, symbols: int, strings: int, entries: int, *, has_version: bool
) -> None:
    """Add section headers after the content.

    The loader does not need them. `ld` and `objdump` do, which `ctypes.util.find_library` runs.
    """
    sections = [
        _Section("", 0, 0, 0, 0),
        _Section(".text", 1, _ALLOC | _EXECUTE, at.code, at.hashes - at.code, alignment=_CODE),
        _Section(".data", 1, _ALLOC | _WRITE, at.table, at.end - at.table, alignment=8),
        _Section(".dynsym", 11, _ALLOC, at.symbols, _SYMBOL.size * symbols, 4, 1, _SYMBOL.size, 8),
        _Section(".dynstr", 3, _ALLOC, at.strings, strings),
        _Section(".hash", 5, _ALLOC, at.hashes, 4 * (3 + symbols), 3, entry=4, alignment=4),
        _Section(".dynamic", 6, _ALLOC | _WRITE, at.dynamic, _ENTRY.size * entries, 4, 0, 16, 8),
    ]
    if has_version:
        versions = at.relocations - at.versions
        sections += [
            _Section(".gnu.version", _VERSYM_SECTION, _ALLOC, at.numbers, 2 * symbols, 3, 0, 2, 2),
            _Section(".gnu.version_d", _VERDEF_SECTION, _ALLOC, at.versions, versions, 4, 2, 0, 8),
        ]
    names, name_offsets = _strings([*(section.name for section in sections), ".shstrtab"])
    sections.append(_Section(".shstrtab", 3, 0, len(image), len(names)))
    image += names + bytes(-(len(image) + len(names)) % 8)
    _SECTIONS_AT.pack_into(image, 40, len(image))
    _SECTION_COUNT.pack_into(image, 60, len(sections), len(sections) - 1)
    for section, name in zip(sections, name_offsets, strict=True):
        address = section.offset if section.flags else 0
        image += _SECTION.pack(
            name,
            section.kind,
            section.flags,
            address,
            section.offset,
            section.nbytes,
            section.link,
            section.info,
            section.alignment,
            section.entry,
        )


def _put_code(
    image: bytearray, at: _Layout, machine: Machine, names: int, statement: bytes, notice: bytes
) -> None:
    """Write the machine code, the statement that it runs, and the text that it writes."""
    for index in range(names):
        entry = at.code + _CODE * index
        _put(image, entry, machine.jump(entry, at.common, 8 * (len(HOOKS) + index)))
    _put(image, at.end_function, machine.end(at.end_function, at.table))
    _put(image, at.return_zero, machine.return_value(0))
    start = machine.start if statement else None
    then = at.notice if notice else at.return_code
    _put(image, at.common, machine.common(at.common, at.table, at.start if start else then))
    if notice:
        place, message = at.starters if start else 0, (at.message, len(notice))
        code = machine.notice(at.notice, place, at.flag, message, at.return_code)
        _put(image, at.notice, code)
        _put(image, at.message, notice)
    if start:
        call = at.common + machine.common_head
        _put(image, at.start, start(at.start, at.starters, at.table, then, call))
        _put(image, at.statement, statement)


def _put_texts(
    image: bytearray,
    at: _Layout,
    machine: Machine,
    indices: Sequence[int],
    tables: Sequence[bytes],
    result: int,
) -> None:
    """Write the functions of texts, their tables, and the code that runs without a table."""
    places, where = [], at.tables
    for number, (index, table) in enumerate(zip(indices, tables, strict=True)):
        code = at.texts + _TEXT_CODE * number
        _put(image, code, machine.text(code, where))
        _put(image, where, table)
        where += len(table)
        places.append((8 * (len(HOOKS) + index), code))
    _put(image, at.return_code, machine.without(at.return_code, places, result))


def _text_table(texts: Mapping[int, str]) -> bytes:
    """Return the offset of each number's text from the table's begin, 0 for none; and the texts."""
    offsets, content = [0] * _MOST_TEXTS, bytearray()
    for number, text in texts.items():
        offsets[number] = 4 * _MOST_TEXTS + len(content)
        content += text.encode() + b"\0"
    content += bytes(-len(content) % 4)
    return struct.pack(f"<{_MOST_TEXTS}i", *offsets) + bytes(content)


def _put_symbols(
    image: bytearray, at: _Layout, name_offsets: Sequence[int], functions: int
) -> None:
    """Write the symbols: the table, the functions of the file, and the starters of Python."""
    table, *others = name_offsets
    symbols = [bytes(_SYMBOL.size), _SYMBOL.pack(table, _GLOBAL_OBJECT, 0, _DATA, at.table, 16)]
    for index, name_at in enumerate(others[:functions]):
        beyond = at.code + _CODE * index - at.common  # the functions of texts come last
        entry = at.common + beyond if beyond < 0 else at.texts + beyond // _CODE * _TEXT_CODE
        symbols.append(_SYMBOL.pack(name_at, _GLOBAL_FUNCTION, 0, _TEXT, entry, _CODE))
    for index, name_at in enumerate(others[functions:]):
        target = _ADDRESS_X86 | len(symbols) << 32
        symbols.append(_SYMBOL.pack(name_at, _WEAK, 0, 0, 0, 0))
        relocation = _RELOCATION.pack(at.starters + 8 * index, target, 0)
        _put(image, at.relocations + index * _RELOCATION.size, relocation)
    _put(image, at.symbols, b"".join(symbols))


def _versions(*named: tuple[str, int]) -> bytes:
    """Return the definitions of versions, of which the first is the library itself."""
    size = _VERSION.size + _VERSION_NAME.size
    parts = []
    for number, (name, place) in enumerate(named, 1):
        following = 0 if number == len(named) else size
        is_base = int(number == 1)
        parts.append(_VERSION.pack(1, is_base, number, 1, _hash(name), _VERSION.size, following))
        parts.append(_VERSION_NAME.pack(place, 0))
    return b"".join(parts)


def _hash(name: str) -> int:
    """Return the hash of a name, as the System V ABI has it ("Hash Table")."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value


def _headers(machine: Machine, read_only: int, dynamic: int, table: int, end: int) -> bytes:
    """Return the header, and the segments: code and names, writable data, `dynamic`, no stack."""
    header = _HEADER.pack(
        _IDENT,
        _SHARED_OBJECT,
        machine.number,
        1,
        0,
        _HEADER.size,
        0,
        0,
        _HEADER.size,
        _SEGMENT.size,
        4,
        64,
        0,
        0,
    )
    written = end - dynamic
    segments = (
        (_LOAD, _READ_EXECUTE, 0, read_only, _PAGE),
        (_LOAD, _READ_WRITE, dynamic, written, _PAGE),
        (_DYNAMIC, _READ_WRITE, dynamic, table - dynamic, 8),
        (_STACK, _READ_WRITE, 0, 0, 16),
    )
    return header + b"".join(
        _SEGMENT.pack(kind, flags, at, at, at, nbytes, nbytes, alignment)
        for kind, flags, at, nbytes, alignment in segments
    )


def _strings(texts: Sequence[str]) -> tuple[bytes, list[int]]:
    """Return a table of strings, and the beginning of each."""
    table, string_offsets = bytearray(1), []
    for text in texts:
        string_offsets.append(len(table))
        table += text.encode() + b"\0"
    return bytes(table), string_offsets


def _put(image: bytearray, at: int, part: bytes) -> None:
    image[at : at + len(part)] = part
