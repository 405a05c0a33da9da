"""Forms of synchronisation, exchanges within a warp, and control flow.

PTX ISA, "Parallel Synchronization and Communication Instructions", "Control Flow Instructions",
"Miscellaneous Instructions". `ptx.isa.forms.grammar` has the notation.
"""

from __future__ import annotations

from typing import Final

_SCOPE: Final = "cta/cluster/gpu/sys"
_CTA: Final = "cta/cluster"

_NUMBER: Final = "N/=0..15"
_RESTRICTED: Final = "sync_restrict::shared::cta/sync_restrict::shared::cluster::read"
_THREADS: Final = "N/=0..4096%32"

BARRIERS: Final = f"""
bar.sync bar.cta.sync | | - | {_NUMBER} ; {_NUMBER} {_THREADS}
bar.arrive bar.cta.arrive | | - | {_NUMBER} N/=32..4096%32
bar.red bar.cta.red | popc | u32 | N {_NUMBER} p ; N {_NUMBER} {_THREADS} p
bar.red bar.cta.red | and/or | pred | q {_NUMBER} p ; q {_NUMBER} {_THREADS} p
bar.warp.sync | | - | n
barrier barrier.cta | sync [aligned] | - | {_NUMBER} ; {_NUMBER} {_THREADS}
barrier.arrive barrier.cta.arrive | [aligned] | - | {_NUMBER} N/=32..4096%32
barrier.red barrier.cta.red | popc [aligned] | u32 | N {_NUMBER} p ; N {_NUMBER} {_THREADS} p
barrier.red barrier.cta.red | and/or [aligned] | pred | q {_NUMBER} p ; q {_NUMBER} {_THREADS} p
barrier.cluster.arrive | [release/relaxed] [aligned] | - |
barrier.cluster.wait | [acquire] [aligned] | - |
membar | cta/gl/sys | - |
membar.proxy | alias/async | - |
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
griddepcontrol | launch_dependents/wait | - |
nanosleep | | u32 | n
"""

WARPS: Final = """
activemask | | b32 | d
elect | sync | - | N_|q n
vote | sync all/any/uni | pred | q p n
vote | sync ballot | b32 | d p n
match | sync any | b32 b64 | N a n
match | sync all | b32 b64 | N a n ; N|q a n
shfl | sync up/down/bfly/idx | b32 | d a a a n ; d|q a a a n
redux | sync add/min/max | u32 s32 | N n n
redux | sync and/or/xor | b32 | N n n
redux | sync min/max [abs] [NaN] | f32 | d a n
movmatrix | sync aligned m8n8 trans | b16 | d:b32 d:b32
"""

CONTROL: Final = """
ret | [uni] | - |
exit | | - |
trap brkpt | | - |
bra | [uni] | - | l
brx.idx | [uni] | - | n t
pmevent | | - | =0..15
pmevent | mask | - | =0..65535
setmaxnreg.inc setmaxnreg.dec | sync aligned | u32 s32 | =24..256%8
"""

_SHARED: Final = "[shared/shared::cta]"
_OF_CLUSTER: Final = "[shared/shared::cta/shared::cluster]"
MBARRIERS: Final = f"""
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
mbarrier.arrive mbarrier.arrive_drop | noComplete {_SHARED} | b64 | H M N/=1..1048575
mbarrier.arrive mbarrier.arrive_drop | noComplete release cta {_SHARED} | b64 | H M N/=1..1048575
mbarrier.test_wait | {_SHARED} | b64 | q M h
mbarrier.test_wait | acquire/relaxed {_CTA} {_SHARED} | b64 | q M h
mbarrier.test_wait.parity | {_SHARED} | b64 | q M N/=0..1
mbarrier.test_wait.parity | acquire/relaxed {_CTA} {_SHARED} | b64 | q M N/=0..1
mbarrier.try_wait | {_SHARED} | b64 | q M h ; q M h n
mbarrier.try_wait | acquire/relaxed {_CTA} {_SHARED} | b64 | q M h ; q M h n
mbarrier.try_wait.parity | {_SHARED} | b64 | q M N/=0..1 ; q M N/=0..1 n
mbarrier.try_wait.parity | acquire/relaxed {_CTA} {_SHARED} | b64 | q M N/=0..1 ; q M N/=0..1 n
mbarrier.pending_count | | b64 | N h
cp.async.mbarrier.arrive | [noinc] | b64 | M
cp.async.mbarrier.arrive | [noinc] | shared.b64 shared::cta.b64 b64.shared b64.shared::cta | m:shared
"""
