"""Check that a module's `.target` and `.version` have all the features that it uses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache

from ptx.emulate.requirements.needs import (
    Needs,
    architecture_of,
    are_met,
    needs_of,
    version_of,
)
from ptx.errors import PtxError
from ptx.isa.directives import DIRECTIVES
from ptx.isa.instruction_facts import TYPE_BYTES, opcodes
from ptx.isa.model import Linkage, SymbolValue
from ptx.isa.module import PtxModule

_RECENT = "sm_100f sm_110f sm_120f"
"""The needs of features that only architecture- or family-specific Blackwell targets have."""

# A line is `opcodes | words | needs`, and every opcode has one. A line applies to an instruction of
# one of the opcodes whose modifiers have all the words. "a/b" is one of the two, "a.b" one directly
# after the other, "!a" excludes one, and "L2::*" is any with that prefix. All lines that apply must
# hold. The source is the "PTX ISA Notes" and "Target ISA Notes" of each instruction in the PTX ISA
# 9.0; tests/emulator/engine/requirements compares the table with the assembler. Requirements that
# follow from operands alone are not in the table.
_RULES = f"""
abs add and cnot cos cvt div ex2 fma lg2 mad mad24 max min mov mul mul24 neg not | | sm_10 1.0
or rcp rem rsqrt sad selp set setp shl shr sin slct sqrt sub xor | | sm_10 1.0
bra call exit ld ret st tex trap | | sm_10 1.0
atom bar red vote | | sm_11 1.0
addc subc brkpt | | sm_10 1.2
membar pmevent | | sm_10 1.4
membar | sys | sm_20 2.0
membar | proxy | sm_70 7.5
membar | proxy async | sm_90 8.0
bfe bfi bfind brev clz copysign isspacep ldu popc prefetch prefetchu prmt testp | | sm_20 2.0
cvta txq vabsdiff vadd vmad vmax vmin vset vshl vshr vsub | | sm_20 2.0
suld suq sured sust | | sm_20 2.0
madc shfl tld4 | | sm_20 3.0
vabsdiff2 vadd2 vavrg2 vmax2 vmin2 vset2 vsub2 | | sm_30 3.0
vabsdiff4 vadd4 vavrg4 vmax4 vmin4 vset4 vsub4 | | sm_30 3.0
istypep | | sm_30 4.0

abs | f16/f16x2 | sm_53 6.5
neg | f16/f16x2 | sm_53 6.0
abs neg | bf16/bf16x2 | sm_80 7.0
activemask | | sm_30 6.2
add sub mul fma | f16/f16x2 | sm_53 4.2
add sub mul | bf16/bf16x2 !f32 | sm_90 7.8
add min max | u16x2/s16x2 | sm_90 8.0
add | sat u32/u16x2/s16x2 | sm_120f 9.3
add sub mul fma | f32x2/f32.f16/f32.bf16 | sm_100 8.6
fma | bf16/bf16x2/relu | sm_80 7.0
fma | oob | sm_90 8.1
alloca stacksave stackrestore | | sm_52 7.3
bmsk szext | | sm_70 7.6
brx | idx | sm_30 5.1
dp2a dp4a | | sm_61 5.0
ex2 | f16/f16x2 | sm_75 7.0
tanh | | sm_75 7.0
ex2 tanh | bf16/bf16x2 | sm_90 7.8
fns | | sm_30 6.0
lop3 | | sm_50 4.3
lop3 | and/or/xor | sm_70 8.2
min max | f16/f16x2/bf16/bf16x2/NaN | sm_80 7.0
min max | xorsign | sm_86 7.2
min max | relu s32 | sm_90 8.0
shf | | sm_32 3.1
set setp | f16/f16x2 | sm_53 4.2
set | u16.f16/s16.f16/u32.f16/s32.f16/u32.f16x2/s32.f16x2 | sm_53 6.5
set setp | bf16/bf16x2 | sm_90 7.8

applypriority discard createpolicy | | sm_80 7.4
prefetch | L2::* | sm_80 7.4
cvta | param | sm_70 7.7
isspacep | param | sm_70 7.7
isspacep cvta | shared::cluster | sm_90 7.8
isspacep | shared::cta | sm_30 7.8
getctarank mapa | | sm_90 7.8
ld st | relaxed/acquire/release | sm_70 6.0
ld st | weak | sm_70 6.0
ld | nc | sm_32 3.1
ld st | cluster/shared::cluster | sm_90 7.8
ld st | shared::cta | sm_30 7.8
ld st | mmio | sm_70 8.2
ld st | L1::* | sm_70 7.4
ld st | L2::64B/L2::128B | sm_75 7.4
ld st | L2::256B/L2::cache_hint | sm_80 7.4
ld st | b128 | sm_70 8.3
ld st | v8 b32/u32/s32/f32 | sm_100 8.8
ld st | v4 b64/u64/s64/f64 | sm_100 8.8
ld | local volatile | sm_30 9.1
mov | b128 | sm_70 8.3
st | async | sm_90 8.1
st | async mmio | sm_100 8.7
st | bulk | sm_100 8.6
stmatrix | | sm_90 7.8
stmatrix | m16n8/b8 | {_RECENT} 8.6
ldmatrix | | sm_75 6.5
ldmatrix | shared::cta | sm_75 7.8
ldmatrix | m16n16/m8n16/b8/b8x16 | {_RECENT} 8.6
movmatrix | | sm_75 7.8
multimem | | sm_90 8.1
multimem | acc::f16/e4m3*/e5m2* | sm_100a 8.6, sm_120a 8.7, sm_100f sm_110f 8.8
tex tld4 | f16x2 | sm_53 4.2

atom red | cta/gpu/sys/f64 | sm_60 5.0
atom red | relaxed/acquire/release/acq_rel | sm_70 6.0
atom red | and/or/xor/min/max b64/u64/s64 | sm_32 3.1
atom red | f16x2 | sm_60 6.2
atom red | f16/b16 | sm_70 6.3
atom red | bf16/bf16x2/cluster/shared::cluster | sm_90 7.8
atom red | shared::cta | sm_30 7.8
atom red | L2::cache_hint | sm_80 7.4
atom red | v2/v4/v8 | sm_90 8.1
atom | b128 | sm_90 8.3
red | async | sm_90 8.1

cp | async | sm_80 7.0
cp | async L2::* | sm_80 7.4
cp | bulk | sm_90 8.0
cp | bulk shared::cta.global | sm_90 8.6
cp | bulk cp_mask | sm_100 8.6
cp | bulk tile::gather4/tile::scatter4 | sm_100f sm_110f 8.6
mbarrier | | sm_80 7.0
mbarrier | test_wait parity | sm_80 7.1
mbarrier | shared::cta | sm_80 7.8
mbarrier | relaxed/acquire/release/cta | sm_80 8.0
mbarrier | cluster/expect_tx/complete_tx/shared::cluster | sm_90 8.0
mbarrier | try_wait | sm_90 7.8
mbarrier | arrive/arrive_drop relaxed | sm_90 8.6

bar | warp | sm_30 6.0
bar barrier | cta | sm_30 7.8
barrier | | sm_30 6.0
barrier | cluster | sm_90 7.8
barrier | cluster arrive relaxed/release | sm_90 8.0
barrier | cluster wait acquire | sm_90 8.0
clusterlaunchcontrol | | sm_100 8.6
elect | | sm_90 8.0
fence | | sm_70 6.0
fence | cluster | sm_90 7.8
fence | proxy alias | sm_70 7.5
fence | proxy async/async.global/async.shared::cta/async.shared::cluster | sm_90 8.0
fence | mbarrier_init | sm_90 8.0
fence | sync_restrict::shared::cluster::read | sm_90 9.4
fence | tensormap::generic | sm_90 8.3
fence | acquire/release !mbarrier_init !tensormap::generic | sm_90 8.6
griddepcontrol | | sm_90 7.8
match | | sm_70 6.0
nanosleep | | sm_70 6.2
redux | | sm_80 7.0
redux | f32 | sm_100f 8.6
setmaxnreg | | sm_90a 8.0, {_RECENT} 8.6
shfl vote | sync | sm_30 6.0
tcgen05 | | sm_100f sm_110f 8.6
tcgen05 | kind::i8 | sm_100a sm_110a 8.6
tcgen05 | shift | sm_100a sm_103a sm_110a 8.6, sm_107a 9.4
tcgen05 | scale_vec::* | sm_100a sm_103a sm_110a 8.6, sm_107a 9.4
tcgen05 | block16/block32 | sm_100f sm_110f 8.8
tcgen05 | block_scale !scale_vec::* | sm_100a 8.6, sm_100f sm_110f 8.8
tcgen05 | sp kind::mxf4/kind::mxf4nvf4 | sm_100a sm_103a sm_110a 8.6, sm_107a 9.4
tensormap | replace !swizzle_atomicity | sm_90a 8.3, {_RECENT} 8.6
tensormap | replace swizzle_atomicity | {_RECENT} 8.6
tensormap | cp_fenceproxy | sm_90 8.3

cvt | pack | sm_72 6.5
cvt | pack u2/s2/u4/s4 | sm_75 6.5
cvt | bf16.f32/bf16x2/tf32/f16x2/relu !rs | sm_80 7.0
cvt | f32.bf16 | sm_80 7.1
cvt | f32.bf16 ftz | sm_90 7.8
cvt | bf16 !bf16.f32 !f32.bf16 | sm_90 7.8
cvt | f16.f32 satfinite | sm_70 8.1
cvt | bf16.f32/bf16x2.f32/f16x2.f32/tf32.f32 satfinite | sm_80 8.1
cvt | tf32 rn/rz | sm_90 7.8
cvt | tf32 rn/rz satfinite | sm_100 8.6
cvt | e4m3x2/e5m2x2 | sm_89 8.1, sm_90 7.8
cvt | e4m3x2.bf16x2/e5m2x2.bf16x2 | {_RECENT} 9.1
cvt | bf16x2.e4m3x2/bf16x2.e5m2x2 | {_RECENT} 9.2
cvt | e2m1x2/e2m3x2/e3m2x2/ue8m0x2 | {_RECENT} 8.6
cvt | e2m1x2/e2m3x2/e3m2x2 satfinite f16x2/bf16x2 | {_RECENT} 9.1
cvt | bf16x2.e2m1x2/bf16x2.e2m3x2/bf16x2.e3m2x2 | {_RECENT} 9.2
cvt | rz e2m1x2/e2m3x2/e3m2x2/e4m3x2/e5m2x2 | sm_107f 9.4
cvt | rs | sm_100a sm_103a sm_107a 8.7
cvt | s2f6x2 | sm_100a sm_103a sm_107a sm_110a sm_120a sm_121a 9.1

mma | m8n8k4 f16 | sm_70 6.4
mma | m16n8k8 f16 | sm_75 6.5
mma | m8n8k16/m8n8k32 | sm_75 6.5
mma | m8n8k128 | sm_75 7.0
mma | m8n8k4 f64 | sm_80 7.0
mma | m16n8k4/m16n8k8 tf32/bf16 | sm_80 7.0
mma | m16n8k16/m16n8k32/m16n8k64/m16n8k128/m16n8k256 | sm_80 7.0
mma | m16n8k4/m16n8k8/m16n8k16 f64 | sm_90 7.8
mma | and.popc/and | sm_80 7.1
mma | sp | sm_80 7.1
mma | sp::ordered_metadata | sm_80 8.5
mma | e4m3/e5m2 | sm_89 8.4
mma | e4m3/e5m2 m16n8k16/f16 | sm_89 8.7
mma | sp/sp::ordered_metadata e4m3/e5m2 f16 !kind::f8f6f4 | sm_120a 8.7, sm_120f 8.8
mma | kind::f8f6f4 | {_RECENT} 8.6
mma | kind::f8f6f4 e2m1/e2m3/e3m2 | sm_120f 8.7
mma | block_scale | sm_120f 8.7
mma | scale_vec::4X ue8m0 | sm_120f 9.1
wgmma | | sm_90a 8.0
wgmma | sp | sm_90a 8.2
wgmma | s8.u8/u8.s8 | sm_90a 8.4
wmma | | sm_70 6.0
wmma | aligned | sm_70 6.3
wmma | s8/u8/s32 | sm_72 6.3
wmma | m8n8k32/m8n8k128 | sm_75 6.3
wmma | bf16/tf32/f64/m16n16k8 | sm_80 7.0
wmma | b1 and | sm_80 7.1
"""

_ABSENT = opcodes() - {
    opcode for line in _RULES.split("\n") for opcode in line.partition("|")[0].split()
}
if _ABSENT:
    raise ValueError(f"opcodes without a line of their needs: {sorted(_ABSENT)}")

_DIRECTIVES = """
.version .target .file .entry .func .maxntid .extern .visible .align .section | sm_10 1.0
.maxnreg .maxnctapersm | sm_10 1.3
.loc | sm_10 1.0
.minnctapersm .pragma | sm_10 2.0
.reqntid .callprototype .calltargets | sm_20 2.1
.ptr | sm_20 2.2
.address_size | sm_10 2.3
.weak | sm_20 3.1
.attribute | sm_30 4.0
.common | sm_20 5.0
.branchtargets | sm_30 5.1
.alias | sm_30 6.3
.noreturn | sm_30 6.4
.reqnctapercluster .explicitcluster .maxclusterrank | sm_90 7.8
.blocksareclusters | sm_90 9.0
.abi_preserve .abi_preserve_control | sm_80 9.0
.language | sm_20 9.5
"""
"""The needs of each directive."""

# The needs of types, and of other parts of declarations.
_OTHERS = {"b128": "sm_70 8.3", "a byte of an address": "sm_20 7.1"}

_SPECIAL = """
cluster_ctaid cluster_nctaid clusterid nclusterid | sm_90 7.8
cluster_ctarank cluster_nctarank is_explicit_cluster | sm_90 7.8
aggr_smem_size | sm_90 8.1
total_smem_size dynamic_smem_size | sm_30 4.1
reserved_smem_offset_begin reserved_smem_offset_end reserved_smem_offset_cap | sm_80 7.6
current_graph_exec | sm_50 8.0
"""


def _has(modifiers: tuple[str, ...], word: str) -> bool:
    if word.endswith("*"):
        return any(modifier.startswith(word[:-1]) for modifier in modifiers)
    if "." in word:
        types = [modifier for modifier in modifiers if modifier in TYPE_BYTES]
        return any(f".{word}." in f".{'.'.join(each)}." for each in (modifiers, types))
    return word in modifiers


def _has_all(modifiers: tuple[str, ...], words: str) -> bool:
    for word in words.split():
        if word.startswith("!"):
            if _has(modifiers, word[1:]):
                return False
        elif not any(_has(modifiers, alternative) for alternative in word.split("/")):
            return False
    return True


@cache
def _rules() -> dict[str, list[tuple[str, str]]]:
    """Return the words and the needs of the lines, by opcode; read on first use."""
    rules: dict[str, list[tuple[str, str]]] = {}
    for line in filter(None, _RULES.split("\n")):
        opcodes, words, needs = line.split("|")
        for opcode in opcodes.split():
            rules.setdefault(opcode, []).append((words, needs))
    return rules


@cache
def special_needs() -> dict[str, Needs]:
    """Return the needs of special registers, by name without the %."""
    lines = (line.split("|") for line in _SPECIAL.split("\n") if line)
    return {name: needs_of(needs) for names, needs in lines for name in names.split()}


def _directive_needs() -> dict[str, Needs]:
    lines = (line.split("|") for line in _DIRECTIVES.split("\n") if line)
    needs_by_name = {name: needs_of(needs) for names, needs in lines for name in names.split()}
    absent = {directive.name for directive in DIRECTIVES} - needs_by_name.keys()
    if absent:
        raise ValueError(f"directives without a line of their needs: {sorted(absent)}")
    return needs_by_name


_DIRECTIVE_NEEDS = _directive_needs()


@lru_cache(maxsize=8192)  # by the words of a text, of which there are few
def instruction_needs(word: str) -> tuple[Needs, ...]:
    """Return all needs of an instruction such as `cvt.rn.satfinite.e2m1x2.f32`."""
    opcode, *modifiers = word.split(".")
    rules = _rules().get(opcode, ())
    return tuple([needs_of(needs) for words, needs in rules if _has_all(tuple(modifiers), words)])


class UnsupportedTarget(PtxError):
    """A module uses a feature that its `.target` or `.version` lacks, as in NVIDIA's assembler.

    Attributes:
        instruction: what it is: an opcode with its modifiers, or a special register; line: of the
            PTX text; target, version: the module's own.
    """

    def __init__(self, module: PtxModule, instruction: str, line: int, needs: Needs) -> None:
        self.instruction = instruction
        self.line = line
        self.target: str = module.target
        self.version: str = module.version
        requirements = "; or ".join(map(str, needs))
        super().__init__(
            f"{instruction} at PTX line {line} needs {requirements}; the module is for .target"
            f" {module.target} and .version {module.version}"
        )


def check_requirements(module: PtxModule) -> None:
    """Check every instruction of the module, in unused kernels as well.

    Raises:
        UnsupportedTarget: at the first one that the target or the version lacks.
    """
    unmet = unmet_requirements(module)
    if unmet:
        line, word = min((module.line_of(word), word) for word in unmet)
        raise UnsupportedTarget(module, word, line, unmet[word])


def unmet_requirements(module: PtxModule) -> dict[str, Needs]:
    """Return the features that the module uses without their needs being met, with the needs."""
    target = architecture_of(module.target)
    if target is None:
        return {}
    version = version_of(module.version)
    unmet: dict[str, Needs] = {}
    for word in module.instruction_words:
        for needs in instruction_needs(word):
            if not are_met(needs, target, version):
                unmet.setdefault(word, needs)
    for word, needs in _declared(module):
        if not are_met(needs, target, version):
            unmet.setdefault(word, needs)
    for name, needs in special_needs().items():
        if not are_met(needs, target, version) and module.uses_special(f"%{name}"):
            unmet[f"%{name}"] = needs
    return unmet


def _declared(module: PtxModule) -> Iterator[tuple[str, Needs]]:
    """The words of declarations that have needs, with the needs."""
    for function in module.functions.values():
        for name in function.directives:
            yield f".{name}", _DIRECTIVE_NEEDS[f".{name}"]
    if module.aliases:
        yield ".alias", _DIRECTIVE_NEEDS[".alias"]
    for variable in module.variables.values():
        if variable.linkage is not Linkage.NONE:
            word = f".{variable.linkage.value}"
            yield word, _DIRECTIVE_NEEDS[word]
        if variable.ptx_type in _OTHERS:
            yield f".{variable.ptx_type}", needs_of(_OTHERS[variable.ptx_type])
        if any(isinstance(e, SymbolValue) and e.mask for e in variable.initialiser):
            yield variable.name, needs_of(_OTHERS["a byte of an address"])
