"""Symbols that no input of a link defines: nvJitLink, which makes machine code, and links of PTX.

All these inputs are right by themselves: after one that is not, nvJitLink 13.5 misses references.
"""

from __future__ import annotations

import re
from typing import Final

import pytest

import ptx
from ptx import LinkError, LinkOptions, Target

_HEADER: Final = ".version 8.0\n.target sm_80\n.address_size 64\n"
_FUNCTION: Final = ".extern .func f(.param .b64 x);\n"
_VARIABLE: Final = ".extern .global .u32 v;\n"
_CALL: Final = "{ .param .b64 p; st.param.b64 [p], 1; call.uni f, (p); } ret;"
_ADDRESS: Final = ".reg .b64 %a; mov.u64 %a, f; st.global.u64 [%a], %a; ret;"
_UNUSED: Final = f".visible .func g() {{ {_CALL} }}\n"
_READ: Final = ".reg .b32 %a; ld.global.u32 %a, [v]; st.global.u32 [v], %a; ret;"
_DEFINED: Final = ".visible .func f(.param .b64 x) { ret; }\n"


def _kernel(body: str = "ret;", name: str = "k") -> str:
    return f".visible .entry {name}() {{ {body} }}\n"


_INPUTS: Final[dict[str, tuple[str, ...]]] = {
    "unused": (_FUNCTION + _kernel(),),
    "called": (_FUNCTION + _kernel(_CALL),),
    "called behind a branch": (_FUNCTION + _kernel(f"bra E; {_CALL} E: ret;"),),
    "address": (_FUNCTION + _kernel(_ADDRESS),),
    "called by an unused function": (_FUNCTION + _UNUSED + _kernel(),),
    "called by an unused local one": (_FUNCTION + f".func g() {{ {_CALL} }}\n" + _kernel(),),
    "no kernel": (_FUNCTION + _UNUSED,),
    "called through two": (
        _FUNCTION
        + f".func g() {{ {_CALL} }}\n.func h() {{ call.uni g; ret; }}\n"
        + _kernel("call.uni h; ret;"),
    ),
    "in a table": (_FUNCTION + ".visible .global .u64 t[1] = {f};\n" + _kernel(),),
    "in a local table": (_FUNCTION + ".global .u64 t[1] = {f};\n" + _kernel(),),
    "called by a function of a table": (
        _FUNCTION + f".visible .func g() {{ {_CALL} }}\n.global .u64 t[1] = {{g}};\n" + _kernel(),
    ),
    "unused variable": (_VARIABLE + _kernel(),),
    "constant": (".extern .const .u32 v;\n" + _kernel(),),
    "variable": (_VARIABLE + _kernel(_READ),),
    "variable of an unused function": (
        _VARIABLE + f".visible .func g() {{ {_READ} }}\n" + _kernel(),
    ),
    "variable in a table": (_VARIABLE + ".visible .global .u64 t[1] = {v};\n" + _kernel(),),
    "shared memory": (".extern .shared .b8 s[];\n" + _kernel(),),
    "texture": (".extern .global .texref t;\n" + _kernel(),),
    "kernel": (".extern .entry e(.param .b64 x);\n" + _kernel(),),
    "function of the device": (
        ".extern .func (.param .b64 r) malloc(.param .b64 x);\n"
        + _kernel("{ .param .b64 p, r; st.param.b64 [p], 8; call.uni (r), malloc, (p); } ret;"),
    ),
    "function of the device's runtime": (
        ".extern .func (.param .b32 r) cudaCGGetIntrinsicHandle(.param .b32 x);\n"
        + _kernel(
            "{ .param .b32 p, r; st.param.b32 [p], 2;"
            " call.uni (r), cudaCGGetIntrinsicHandle, (p); } ret;"
        ),
    ),
    "defined in the second": (_FUNCTION + _kernel(_CALL), _DEFINED),
    "defined in the first": (_DEFINED, _FUNCTION + _kernel(_CALL)),
    "weakly defined": (_FUNCTION + _kernel(_CALL), _DEFINED.replace("visible", "weak")),
    "variable of the second": (_VARIABLE + _kernel(_READ), ".visible .global .u32 v;\n"),
    "called by both": (_FUNCTION + _kernel(_CALL), _FUNCTION + _kernel(_CALL, "l")),
    "used by none of two": (_kernel(), _FUNCTION + _UNUSED),
    "called by the second": (
        ".extern .func g();\n" + _kernel("call.uni g; ret;"),
        _FUNCTION + _UNUSED,
    ),
}


def _missing(texts: tuple[str, ...], target: Target) -> tuple[str, ...]:
    """The first symbol that is missing and an input that wants it; empty if the texts link."""
    try:
        ptx.link([_HEADER + text for text in texts], target, LinkOptions(), cache=False)
    except LinkError as error:
        found = re.search(r"Undefined reference to '(\w+)' in '(input \d+)", str(error))
        return found.groups() if found else (str(error),)
    return ()


@pytest.mark.slow
def test_links_to_ptx_miss_the_symbols_that_nvjitlink_misses() -> None:
    differences = {}
    for name, texts in _INPUTS.items():
        machine = _missing(texts, Target.cubin("sm_90"))
        linked = _missing(texts, Target.ptx("compute_90"))
        if machine != linked:
            differences[name] = (machine, linked)
    assert not differences
    rejected = sum(bool(_missing(each, Target.ptx("compute_90"))) for each in _INPUTS.values())
    assert (len(_INPUTS), rejected) == (28, 15)
