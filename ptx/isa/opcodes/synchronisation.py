"""Rows of synchronisation, exchanges within a warp, and control flow.

PTX ISA, "Parallel Synchronization and Communication Instructions", "Control Flow Instructions",
"Miscellaneous Instructions".
"""

from __future__ import annotations

from typing import Final

from ptx.isa.opcodes.opcode_row import RECENT, Chapter

_SCOPE: Final = "cta/cluster/gpu/sys"
_CTA: Final = "cta/cluster"

_NUMBER: Final = "N/=0..15"
_RESTRICTED: Final = "sync_restrict::shared::cta/sync_restrict::shared::cluster::read"
_THREADS: Final = "N/=0..4096%32"

_SHARED: Final = "[shared/shared::cta]"
_OF_CLUSTER: Final = "[shared/shared::cta/shared::cluster]"

OPCODES: Final = Chapter(
    f"""
opcode bar | barrier, warp=warp barrier, has_two_words | barrier warp:warp | - | sm_11 1.0
needs warp | sm_30 6.0
needs cta | sm_30 7.8
bar.sync bar.cta.sync | | - | {_NUMBER} ; {_NUMBER} {_THREADS}
bar.arrive bar.cta.arrive | | - | {_NUMBER} N/=32..4096%32
bar.red bar.cta.red | popc | u32 | N {_NUMBER} p ; N {_NUMBER} {_THREADS} p
bar.red bar.cta.red | and/or | pred | q {_NUMBER} p ; q {_NUMBER} {_THREADS} p
bar.warp.sync | | - | n

opcode barrier | barrier, has_two_words | barrier | - | -
needs cta | sm_30 7.8
needs | sm_30 6.0
needs cluster | sm_90 7.8
needs cluster arrive relaxed/release | sm_90 8.0
needs cluster wait acquire | sm_90 8.0
barrier barrier.cta | sync [aligned] | - | {_NUMBER} ; {_NUMBER} {_THREADS}
barrier.arrive barrier.cta.arrive | [aligned] | - | {_NUMBER} N/=32..4096%32
barrier.red barrier.cta.red | popc [aligned] | u32 | N {_NUMBER} p ; N {_NUMBER} {_THREADS} p
barrier.red barrier.cta.red | and/or [aligned] | pred | q {_NUMBER} p ; q {_NUMBER} {_THREADS} p
barrier.cluster.arrive | [release/relaxed] [aligned] | - |
barrier.cluster.wait | [acquire] [aligned] | - |

opcode membar | fence | barrier | - | sm_10 1.4
needs sys | sm_20 2.0
needs proxy | sm_70 7.5
needs proxy async | sm_90 8.0
membar | cta/gl/sys | - |
membar.proxy | alias/async | - |

opcode fence | fence, has_two_words | barrier tensormap::generic:tensor_copy | - | sm_70 6.0
needs cluster | sm_90 7.8
needs proxy alias | sm_70 7.5
needs proxy async/async.global/async.shared::cta/async.shared::cluster | sm_90 8.0
needs mbarrier_init | sm_90 8.0
needs sync_restrict::shared::cluster::read | sm_90 9.4
needs tensormap::generic | sm_90 8.3
needs acquire/release !mbarrier_init !tensormap::generic | sm_90 8.6
fence | [sc/acq_rel/acquire/release] {_SCOPE} | - |
fence | acquire sync_restrict::shared::cluster cluster | - |
fence | release sync_restrict::shared::cta cluster | - |
fence | mbarrier_init release cluster | - |
fence.proxy | alias | - |
fence.proxy | async [global/shared::cta/shared::cluster] | - |
fence.proxy | async::generic acquire sync_restrict::shared::cluster cluster | - |
fence.proxy | async::generic release {_RESTRICTED} cluster | - |
fence.proxy | tensormap::generic release {_SCOPE} | - |
fence.proxy | tensormap::generic acquire {_SCOPE} | - | m:generic =128

opcode griddepcontrol | control | barrier | - | sm_90 7.8
griddepcontrol | launch_dependents/wait | - |

opcode nanosleep | control | control_flow | - | sm_70 6.2
nanosleep | | u32 | n

opcode activemask | warp state, gives_number | warp | - | sm_30 6.2
activemask | | b32 | d

opcode elect | election, gives_number | warp | - | sm_90 8.0
elect | sync | - | N_|q n

opcode vote | exchange, gives_number | warp | - | sm_11 1.0
needs sync | sm_30 6.0
vote | sync all/any/uni | pred | q p n
vote | sync ballot | b32 | d p n

opcode match | exchange, gives_number | warp | - | sm_70 6.0
match | sync any | b32 b64 | N a n
match | sync all | b32 b64 | N a n ; N|q a n

opcode shfl | exchange, copies_value | warp | - | sm_20 3.0
needs sync | sm_30 6.0
shfl | sync up/down/bfly/idx | b32 | d a a a n ; d|q a a a n

opcode redux | exchange | warp | - | sm_80 7.0
needs f32 | sm_100f 8.6
redux | sync add/min/max | u32 s32 | N n n
redux | sync and/or/xor | b32 | N n n
redux | sync min/max [abs] [NaN] | f32 | d a n

opcode movmatrix | move | matrix_move | - | sm_75 7.8
movmatrix | sync aligned m8n8 trans | b16 | d:b32 d:b32

opcode ret | return | control_flow | - | sm_10 1.0
ret | [uni] | - |

opcode exit | exit | control_flow | - | sm_10 1.0
exit | | - |

opcode trap | trap | control_flow | - | sm_10 1.0
trap | | - |

opcode brkpt | control | control_flow | - | sm_10 1.2
brkpt | | - |

opcode bra | branch | - | - | sm_10 1.0
bra | [uni] | - | l

opcode brx | branch | control_flow | - | -
needs idx | sm_30 5.1
brx.idx | [uni] | - | n t

opcode pmevent | control | control_flow | - | sm_10 1.4
pmevent | | - | =0..15
pmevent | mask | - | =0..65535

opcode setmaxnreg | control | control_flow | - | sm_90a 8.0, {RECENT} 8.6
setmaxnreg.inc setmaxnreg.dec | sync aligned | u32 s32 | =24..256%8

opcode mbarrier | mbarrier, gives_number, has_two_words | mbarrier | - | sm_80 7.0
needs test_wait parity | sm_80 7.1
needs shared::cta | sm_80 7.8
needs relaxed/acquire/release/cta | sm_80 8.0
needs cluster/expect_tx/complete_tx/shared::cluster | sm_90 8.0
needs try_wait | sm_90 7.8
needs arrive/arrive_drop !noComplete 3: | sm_90 7.8
needs arrive/arrive_drop/test_wait/try_wait relaxed | sm_90 8.6
mbarrier.init | {_SHARED} | b64 | M N/=1..1048575
mbarrier.inval | {_SHARED} | b64 | M
mbarrier.expect_tx | relaxed {_CTA} {_OF_CLUSTER} | b64 | M n
mbarrier.expect_tx | {_OF_CLUSTER} | b64 | M n
mbarrier.complete_tx | relaxed {_CTA} {_OF_CLUSTER} | b64 | M n
mbarrier.complete_tx | {_OF_CLUSTER} | b64 | M n
mbarrier.arrive mbarrier.arrive_drop | {_SHARED} | b64 | H_ M ; H_ M N/=1..1048575
mbarrier.arrive mbarrier.arrive_drop | release/relaxed {_CTA} {_SHARED} | b64 | H_ M ; H_ M N/=1..1048575
mbarrier.arrive mbarrier.arrive_drop | shared::cluster | b64 | _ M ; _ M N/=1..1048575
mbarrier.arrive mbarrier.arrive_drop | release/relaxed {_CTA} shared::cluster | b64 | _ M ; _ M N/=1..1048575
mbarrier.arrive.expect_tx mbarrier.arrive_drop.expect_tx | {_SHARED} | b64 | H_ M n
mbarrier.arrive.expect_tx mbarrier.arrive_drop.expect_tx | release/relaxed {_CTA} {_SHARED} | b64 | H_ M n
mbarrier.arrive.expect_tx mbarrier.arrive_drop.expect_tx | shared::cluster | b64 | _ M n
mbarrier.arrive.expect_tx mbarrier.arrive_drop.expect_tx | release/relaxed {_CTA} shared::cluster | b64 | _ M n
mbarrier.arrive mbarrier.arrive_drop | noComplete {_SHARED} | b64 | H_ M N/=1..1048575
mbarrier.arrive mbarrier.arrive_drop | noComplete release cta {_SHARED} | b64 | H_ M N/=1..1048575
mbarrier.test_wait | {_SHARED} | b64 | q M h
mbarrier.test_wait | acquire/relaxed {_CTA} {_SHARED} | b64 | q M h
mbarrier.test_wait.parity | {_SHARED} | b64 | q M N/=0..1
mbarrier.test_wait.parity | acquire/relaxed {_CTA} {_SHARED} | b64 | q M N/=0..1
mbarrier.try_wait | {_SHARED} | b64 | q M h ; q M h n
mbarrier.try_wait | acquire/relaxed {_CTA} {_SHARED} | b64 | q M h ; q M h n
mbarrier.try_wait.parity | {_SHARED} | b64 | q M N/=0..1 ; q M N/=0..1 n
mbarrier.try_wait.parity | acquire/relaxed {_CTA} {_SHARED} | b64 | q M N/=0..1 ; q M N/=0..1 n
mbarrier.pending_count | | b64 | N h

opcode call | call, gives_number | control_flow | - | sm_10 1.0
unchecked its operands are those of its function, or of a .callprototype

opcode alloca stackrestore stacksave | - | - | - | sm_52 7.3

opcode clusterlaunchcontrol | - | - | - | sm_100 8.6
""",
    {},
)
