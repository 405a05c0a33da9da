"""The table of driver functions beside `cudaTypedefs.h`, which has the C type of every form.

A compiler of C prints the size of each parameter, and of what each pointer leads to.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import cudadrv.emulator
from cudadrv.driver.functions import forms, without_version
from cudadrv.emulator.shared_libraries.signature import CParameter, signature

_TYPEDEF: Final = re.compile(r"CUresult \(CUDAAPI \*PFN_(cu\w+)_v(\d+)(_pt[ds][sz])?\)\((.*)\);")
_FUNCTION: Final = re.compile(r"CUresult CUDAAPI\s+(cu\w+)\(([^()]*)\);")
_NAME: Final = re.compile(r"^(.*?[\s*])(\w+)$")
_BYTES: Final = {"size": 8, "bytes": 8, "stream": 8, "int": 4, "uint": 4, "float": 4, "short": 2,
                 "byte": 1, "text": 8}  # fmt: skip


ANY: Final = 1 << 16


class CType(NamedTuple):
    """The bytes of a parameter.

    Attributes:
        target: the bytes that it points to, 0 if it is no pointer, and `ANY` for `void *`.
    """

    nbytes: int
    target: int


def include_folder() -> Path:
    found = importlib.util.find_spec("nvidia")
    places = [] if found is None else list(found.submodule_search_locations or ())
    for place in places:
        for header in Path(place).glob("cu*/include/cudaTypedefs.h"):
            return header.parent
    pytest.skip("needs cudaTypedefs.h of nvidia-cuda-runtime")


def declared(folder: Path) -> Iterator[tuple[str, int, list[str]]]:
    """Yield the name of each form, its version, and its parameters' types as C has them.

    The functions that have no type in `cudaTypedefs.h` come from `cuda.h`, with version 0.
    """
    names = set()
    for match in _TYPEDEF.finditer((folder / "cudaTypedefs.h").read_text()):
        names.add(match[1])
        if not match[3]:
            yield match[1], int(match[2]), _types(match[4])
    for match in _FUNCTION.finditer((folder / "cuda.h").read_text()):
        if without_version(match[1]) not in names:
            yield match[1], 0, _types(match[2])


def _types(parameters: str) -> list[str]:
    each_named = [_NAME.match(" ".join(each.split())) for each in parameters.split(",")]
    return [named[1].strip() for named in each_named if named]


def printed(folder: Path, scratch: Path, lines: Sequence[str]) -> str:
    """What a program of C with these lines prints."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a compiler of C")
    source, program = scratch / "sizes.c", scratch / "sizes"
    # The name brings the types of old forms.
    head = "#define __CUDA_API_VERSION_INTERNAL\n#include <stddef.h>\n#include <stdio.h>\n"
    main = "#include <cudaTypedefs.h>\nint main(void) {\n" + "\n".join(lines)
    source.write_text(f"{head}{main}\nreturn 0;\n}}\n")
    subprocess.run([compiler, "-w", f"-I{folder}", str(source), "-o", str(program)], check=True)
    return subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout


def c_types(folder: Path, scratch: Path) -> dict[tuple[str, int], list[CType]]:
    """What the compiler says of each form, by name and version."""
    lines = []
    for name, since, types in declared(folder):
        lines.append(f'printf("\\n{name} {since}");')
        for each in types:
            # Handles point to structures that only the driver knows.
            target = f"sizeof(*({each})0)" if each.endswith("*") else "(size_t)0"
            if each.replace(" ", "") in ("void*", "constvoid*"):
                target = f"(size_t){ANY}"
            lines.append(f'printf(" %zu/%zu", sizeof({each}), {target});')
    out = printed(folder, scratch, lines)
    found = {}
    for line in out.split("\n")[1:]:
        form, version, *sizes = line.split()
        found[form, int(version)] = [CType(*map(int, each.split("/"))) for each in sizes]
    return found


def difference(parameter: CParameter, c_type: CType) -> str:
    """What differs between a word of the table and the C type; empty if nothing does."""
    word = parameter.word
    if parameter.mark == ">":
        nbytes = int(word[1:]) if word.startswith("=") else _BYTES[word]
        if not c_type.target:
            return f"a result, where C has {c_type.nbytes} bytes"
        return (
            ""
            if nbytes == c_type.target or c_type.target == ANY
            else f"{nbytes} bytes, where C has {c_type.target}"
        )
    _, has_size, nbytes_of_structure = word.partition("=")
    if has_size and int(nbytes_of_structure) > c_type.target:
        return f"{nbytes_of_structure} bytes, where C has {c_type.target}"
    if word.startswith("@"):
        return "" if c_type.nbytes == 64 else f"64 bytes, where C has {c_type.nbytes}"
    is_address = parameter.mark or word.startswith("*") or parameter.count_at is not None
    nbytes = 8 if is_address or word == "location" else _BYTES[word]
    return "" if nbytes == c_type.nbytes else f"{nbytes} bytes, where C has {c_type.nbytes}"


@pytest.mark.slow
def test_the_table_has_the_sizes_of_the_headers(tmp_path: Path) -> None:
    """Each parameter of each form."""
    by_header = c_types(include_folder(), tmp_path)
    cells, wrong = 0, []
    for form in forms():
        of_header = by_header.get((without_version(form.symbol), form.since))
        of_header = of_header or by_header.get((form.symbol, 0))
        if of_header is None:
            continue
        parameters = signature(form).parameters
        if len(parameters) != len(of_header):
            wrong.append(f"{form.symbol}: {len(parameters)} parameters, not {len(of_header)}")
            continue
        for at, (parameter, c_type) in enumerate(zip(parameters, of_header, strict=True)):
            cells += 1
            text = difference(parameter, c_type)
            if text:
                wrong.append(f"{form.symbol} {at}: {text}")
    assert wrong == []
    assert cells > 1500


def test_the_table_has_the_versions_of_the_headers() -> None:
    known = {(without_version(form.symbol), form.since) for form in forms()}
    by_header = {(name, since) for name, since, _ in declared(include_folder()) if since}
    assert by_header - known == set()


EMULATOR: Final = Path(cudadrv.emulator.__file__).parent
# The form of a structure in the source, with the structure's name as its comment.
_FORM: Final = re.compile(r'struct\.Struct\("(<[^"]+)"\)  # (CU\w+)(, as far)?')
_SIZE: Final = re.compile(r"(\d+)  # sizeof\((CU\w+)\)")


def members(folder: Path, name: str) -> list[str]:
    """The members of a structure of `cuda.h`, without those of unions and of other structures."""
    text = (folder / "cuda.h").read_text()
    base = re.search(
        rf"typedef struct (\w+) {{([^{{}}]*(?:{{[^{{}}]*}}[^{{}}]*)*)}} {name}\w*;", text
    )
    if base is None:
        alias = re.search(rf"typedef (\w+) {name};", text)
        assert alias is not None, name
        return members(folder, alias[1])
    plain = re.sub(r"/\*.*?\*/|//[^\n]*", "", base[2], flags=re.DOTALL)
    return re.findall(r"(\w+)(?:\[[^]]*\])?;", re.sub(r"{[^{}]*}", "", plain))


def items(form: str) -> list[tuple[int, int]]:
    """The offset and the bytes of each number of a form."""
    found, offset = [], 0
    for count, kind in re.findall(r"(\d*)(\w)", form[1:]):
        nbytes = struct.calcsize("<" + kind)
        for _ in range(int(count or 1)):
            if kind != "x":
                found.append((offset, nbytes))
            offset += nbytes
    return found


@pytest.mark.slow
def test_the_structures_in_the_source_have_the_sizes_and_offsets_of_the_headers(
    tmp_path: Path,
) -> None:
    text = "\n".join(path.read_text() for path in sorted(EMULATOR.rglob("*.py")))
    forms_of, sizes = _FORM.findall(text), _SIZE.findall(text)
    folder = include_folder()
    lines = [f'printf("{name} %zu\\n", sizeof({name}));' for _, name in sizes]
    for _, name, _ in forms_of:
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [
            f'printf("{name}.{each} %zu %zu\\n", offsetof({name}, {each}), '
            f"sizeof((({name} *)0)->{each}));"
            for each in members(folder, name)
        ]
    rows = [line.split() for line in printed(folder, tmp_path, lines).splitlines()]
    nbytes = {row[0]: int(row[1]) for row in rows if len(row) == 2}
    wrong = [(name, size, nbytes[name]) for size, name in sizes if int(size) != nbytes[name]]
    for form, name, is_partial in forms_of:
        spans = {(int(r[1]), int(r[2])) for r in rows if r[0].startswith(f"{name}.")}
        for offset, size in items(form):
            if not any(at <= offset and offset + size <= at + n for at, n in spans):
                wrong.append((name, offset, size))
        starts = {offset for offset, _ in items(form)}
        missed = [at for at, _ in spans if at not in starts and at < struct.calcsize(form)]
        wrong += [(name, at, -1) for at in missed if name != "CUDA_MEM_ALLOC_NODE_PARAMS_v2"]
        if not is_partial and struct.calcsize(form) != nbytes[name]:
            wrong.append((name, struct.calcsize(form), nbytes[name]))
    assert wrong == []
    assert (len(sizes), len(forms_of)) >= (7, 8)
