"""Codes that hand over through memory: locks, queues, flags, last blocks, decoupled look-back."""

from __future__ import annotations

from .program import ATOMIC, BARRIER, FENCE, GUARD, HEARD, MOVED, NARROW, PLAIN, Pattern, fault

_TYPES = ("int", "float")

PATTERNS: tuple[Pattern, ...] = (
    Pattern("lock", """
  if (t % 32 == 0 && i < n) {
    ⟦early: ⟧while (⟦lock: atomicCAS(flags, 0, 1)⟧ != 0);
    ⟦acquire: __threadfence();⟧
    ⟦section: o[0] += a[i];⟧
    ⟦release: __threadfence();⟧
    ⟦unlock: atomicExch(flags, 0);⟧
    ⟦late: ⟧
  }
""", (
        fault(GUARD, "lock of one's own", lock="atomicCAS(flags + 64 + i, 0, 1)",
              unlock="atomicExch(flags + 64 + i, 0);"),
        fault(GUARD, "before the lock", early="o[0] += a[i]; ", section=""),
        fault(GUARD, "behind the lock", section="", late="o[0] += a[i];"),
        fault(GUARD, "other data", section="o[0] += a[i];", late="if (o[0] < 0) flags[1] = 1;"),
        fault(FENCE, "acquire", acquire=""),
        fault(FENCE, "release", release=""),
        fault(FENCE, "both", acquire="", release=""),
        fault(NARROW, "acquire", acquire="__threadfence_block();"),
        fault(NARROW, "release", release="__threadfence_block();"),
        fault(NARROW, "lock", lock="atomicCAS_block(flags, 0, 1)"),
        fault(NARROW, "unlock", unlock="atomicExch_block(flags, 0);"),
        fault(PLAIN, "unlock", unlock="flags[0] = 0;"),
        fault(MOVED, release="atomicExch(flags, 0);", unlock="__threadfence();", section="",
              late="o[0] += a[i];"),
    )),
    Pattern("lock by acquire and release", """
  if (t % 32 == 0 && i < n) {
    int old;
    do asm volatile("⟦lock: atom.acquire.gpu.cas.b32⟧ %0, [%1], 0, 1;"
                    : "=r"(old) : "l"(flags) : "memory");
    while (old != 0);
    o[0] += a[i];
    asm volatile("⟦unlock: st.release.gpu.b32⟧ [%0], %1;" :: "l"(flags), "r"(0) : "memory");
    ⟦late: ⟧
  }
""", (
        fault(FENCE, "acquire", lock="atom.relaxed.gpu.cas.b32"),
        fault(FENCE, "release", unlock="st.relaxed.gpu.b32"),
        fault(NARROW, "lock", lock="atom.acquire.cta.cas.b32"),
        fault(NARROW, "unlock", unlock="st.release.cta.b32"),
        fault(PLAIN, "unlock", unlock="st.b32"),
        fault(GUARD, "behind the lock", late="o[0] += a[i];"),
    )),
    Pattern("locks of buckets", """
  if (t % 32 == 0 && i < n) {
    int at = ⟦lock: i / 32 % 2⟧;
    while (atomicCAS(flags + 32 * at, 0, 1) != 0);
    ⟦acquire: __threadfence();⟧
    o[⟦data: at⟧] += a[i];
    ⟦release: __threadfence();⟧
    *(volatile int*)(flags + 32 * at) = 0;
  }
""", (
        fault(GUARD, "other lock", data="i / 64 % 2"),
        fault(GUARD, "one element for both", data="0"),
        fault(FENCE, "acquire", acquire=""),
        fault(FENCE, "release", release=""),
        fault(NARROW, "both", acquire="__threadfence_block();", release="__threadfence_block();"),
    )),
    Pattern("lock of a block", """
  __shared__ int lock;
  __shared__ $T sum;
  if (t == 0) { lock = 0; sum = 0; }
  ⟦sync0: __syncthreads();⟧
  if (t % 32 == 0) {
    while (atomicCAS_block(&lock, 0, 1) != 0);
    ⟦acquire: __threadfence_block();⟧
    sum += a[i % n];
    ⟦release: __threadfence_block();⟧
    ⟦unlock: atomicExch_block(&lock, 0);⟧
  }
  ⟦sync1: __syncthreads();⟧
  if (t == 0) o[blockIdx.x] = sum;
""", (
        fault(BARRIER, "second", sync1=""),
        fault(FENCE, "acquire", acquire=""),
        fault(FENCE, "release", release=""),
        fault(PLAIN, "unlock", unlock="lock = 0;"),
    )),
    Pattern("ticket lock", """
  if (t % 32 == 0 && i < n) {
    int mine = ⟦take: atomicAdd(flags, 1)⟧;
    while (*(volatile int*)(flags + 1) != mine);
    ⟦acquire: __threadfence();⟧
    o[0] += a[i];
    ⟦release: __threadfence();⟧
    ⟦next: *(volatile int*)(flags + 1) = mine + 1;⟧
  }
""", (
        fault(NARROW, "ticket", take="atomicAdd_block(flags, 1)"),
        fault(FENCE, "acquire", acquire=""),
        fault(FENCE, "release", release=""),
        fault(NARROW, "release", release="__threadfence_block();"),
        fault(PLAIN, "next", next="flags[1] = mine + 1;"),
        fault(MOVED, release="", next="*(volatile int*)(flags + 1) = mine + 1; __threadfence();"),
    )),
    Pattern("queue", """
  int w = i / 32;
  if (t % 32 == 0 && t / 32 < n) {
    if (blockIdx.x % 2 == 0) {
      int at = ⟦tail: atomicAdd(flags, 1)⟧;
      ⟦write: o[at] = a[i % n];⟧
      ⟦release: __threadfence();⟧
      ⟦publish: atomicExch(flags + 64 + at, 1);⟧
      ⟦late: ⟧
    } else {
      int at = ⟦head: atomicAdd(flags + 32, 1)⟧;
      while (⟦poll: atomicAdd(flags + 64 + at, 0)⟧ == 0);
      ⟦acquire: __threadfence();⟧
      flags[64 + n + $BLOCK + w] = (int)o[at];
    }
  }
""", (
        fault(ATOMIC, "tail", tail="flags[0]++"),
        fault(ATOMIC, "head", head="flags[32]++"),
        fault(NARROW, "tail", tail="atomicAdd_block(flags, 1)"),
        fault(NARROW, "head", head="atomicAdd_block(flags + 32, 1)"),
        fault(NARROW, "publish", publish="atomicExch_block(flags + 64 + at, 1);"),
        fault(NARROW, "release", release="__threadfence_block();"),
        fault(NARROW, "acquire", acquire="__threadfence_block();"),
        fault(FENCE, "release", release=""),
        fault(FENCE, "acquire", acquire=""),
        fault(PLAIN, "publish", publish="flags[64 + at] = 1;"),
        fault(MOVED, "published early", write="", late="o[at] = a[i % n];"),
    )),
    Pattern("flag", """
  if (blockIdx.x == 0) {
    ⟦write: if (i < n) o[i] = a[i];⟧
    ⟦sync0: __syncthreads();⟧
    if (t == 0) { ⟦release: __threadfence();⟧ ⟦publish: atomicExch(flags, 1);⟧ }
    ⟦late: ⟧
  } else {
    if (t == 0) { while (⟦poll: *(volatile int*)flags⟧ == 0); ⟦acquire: __threadfence();⟧ }
    ⟦sync1: __syncthreads();⟧
    flags[64 + i] = (int)o[t];
  }
""", (
        fault(BARRIER, "producer", sync0=""),
        fault(BARRIER, "consumer", sync1=""),
        fault(NARROW, "warps of the producer", sync0="__syncwarp();"),
        fault(NARROW, "warps of the consumer", sync1="__syncwarp();"),
        fault(FENCE, "release", release=""),
        fault(HEARD, "no fence", acquire=""),
        fault(NARROW, "release", release="__threadfence_block();"),
        fault(HEARD, "narrow fence", acquire="__threadfence_block();"),
        fault(NARROW, "publish", publish="atomicExch_block(flags, 1);"),
        fault(PLAIN, "publish", publish="flags[0] = 1;"),
        fault(MOVED, "published early", write="", late="if (i < n) o[i] = a[i];"),
    )),
    Pattern("flag by acquire and release", """
  if (blockIdx.x == 0) {
    if (i < n) o[i] = a[i];
    __syncthreads();
    if (t == 0) asm volatile("⟦publish: st.release.gpu.b32⟧ [%0], %1;"
                             :: "l"(flags), "r"(1) : "memory");
  } else {
    int seen;
    do asm volatile("⟦poll: ld.acquire.gpu.b32⟧ %0, [%1];" : "=r"(seen) : "l"(flags) : "memory");
    while (seen == 0);
    flags[64 + i] = (int)o[t];
  }
""", (
        fault(FENCE, "release", publish="st.relaxed.gpu.b32"),
        fault(FENCE, "acquire", poll="ld.relaxed.gpu.b32"),
        fault(NARROW, "publish", publish="st.release.cta.b32"),
        fault(NARROW, "poll", poll="ld.acquire.cta.b32"),
        fault(PLAIN, "publish", publish="st.b32"),
    )),
    Pattern("flag within a block", """
  __shared__ int ready;
  __shared__ $T s[32];
  if (t == 0) ready = 0;
  ⟦sync: __syncthreads();⟧
  if (t < 32) {
    ⟦write: s[t] = a[i % n];⟧
    ⟦meet: __syncwarp();⟧
    if (t == 0) { ⟦release: __threadfence_block();⟧ ⟦publish: *(volatile int*)&ready = 1;⟧ }
    ⟦late: ⟧
  } else {
    while (*(volatile int*)&ready == 0);
    ⟦acquire: __threadfence_block();⟧
    if (i < n) o[i] = s[t % 32];
  }
""", (
        fault(BARRIER, "first", sync=""),
        fault(BARRIER, "of the warp", meet=""),
        fault(FENCE, "release", release=""),
        fault(FENCE, "acquire", acquire=""),
        fault(PLAIN, "publish", publish="ready = 1;"),
        fault(MOVED, "published early", write="", late="s[t] = a[i % n];"),
    )),
    Pattern("once", """
  if (t == 0) {
    if (⟦first: atomicCAS(flags, 0, 1)⟧ == 0) {
      ⟦write: o[0] = a[0];⟧
      ⟦release: __threadfence();⟧
      ⟦publish: atomicExch(flags, 2);⟧
    } else {
      while (*(volatile int*)flags != 2);
      ⟦acquire: __threadfence();⟧
    }
    flags[64 + i] = (int)o[0];
  }
""", (
        fault(NARROW, "first", first="atomicCAS_block(flags, 0, 1)"),
        fault(GUARD, first="atomicCAS(flags + 64 + i, 0, 1)"),
        fault(FENCE, "release", release=""),
        fault(FENCE, "acquire", acquire=""),
        fault(NARROW, "release", release="__threadfence_block();"),
        fault(PLAIN, "publish", publish="flags[0] = 2;"),
    )),
    Pattern("last block", """
  __shared__ bool last;
  if (i < n) o[i] = a[i];
  ⟦sync0: __syncthreads();⟧
  if (t == 0) {
    ⟦release: __threadfence();⟧
    last = ⟦count: atomicAdd(flags, 1)⟧ == gridDim.x - 1;
    ⟦acquire: __threadfence();⟧
  }
  ⟦sync1: __syncthreads();⟧
  if (⟦guard: last⟧) {
    $T sum = 0;
    for (int at = t; at < n; at += $BLOCK) sum += o[at];
    flags[64 + t] = (int)sum;
    if (t == 0) flags[0] = 0;
  }
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "second", sync1=""),
        fault(FENCE, "release", release=""),
        fault(HEARD, "no fence", acquire=""),
        fault(NARROW, "release", release="__threadfence_block();"),
        fault(HEARD, "narrow fence", acquire="__threadfence_block();"),
        fault(NARROW, "count", count="atomicAdd_block(flags, 1)"),
        fault(ATOMIC, count="flags[0]++"),
        fault(GUARD, guard="blockIdx.x == 0"),
        fault(MOVED, sync0="", sync1="__syncthreads(); __syncthreads();"),
    )),
    Pattern("barrier of the grid", """
  if (i < n) o[i] = a[i];
  ⟦sync0: __syncthreads();⟧
  if (t == 0) {
    ⟦release: __threadfence();⟧
    ⟦arrive: atomicAdd(flags, 1);⟧
    while (⟦poll: *(volatile int*)flags⟧ < gridDim.x);
    ⟦acquire: __threadfence();⟧
  }
  ⟦sync1: __syncthreads();⟧
  if (i < n) flags[64 + i] = (int)o[n - 1 - i];
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "second", sync1=""),
        fault(FENCE, "release", release=""),
        fault(HEARD, "no fence", acquire=""),
        fault(NARROW, "release", release="__threadfence_block();"),
        fault(HEARD, "narrow fence", acquire="__threadfence_block();"),
        fault(NARROW, "arrive", arrive="atomicAdd_block(flags, 1);"),
        fault(GUARD, "other counter", poll="gridDim.x + *(volatile int*)(flags + 1)"),
    ), cooperative=True),
    Pattern("chain of blocks", """
  if (t == 0) {
    int b = blockIdx.x;
    $T before = 0;
    if (b > 0) {
      while (⟦poll: *(volatile int*)(flags + 63 + b)⟧ == 0);
      ⟦acquire: __threadfence();⟧
      before = o[b - 1];
    }
    ⟦write: o[b] = before + a[i % n];⟧
    ⟦release: __threadfence();⟧
    ⟦publish: *(volatile int*)(flags + 64 + b) = 1;⟧
    ⟦late: ⟧
  }
""", (
        fault(FENCE, "release", release=""),
        fault(FENCE, "acquire", acquire=""),
        fault(NARROW, "release", release="__threadfence_block();"),
        fault(NARROW, "acquire", acquire="__threadfence_block();"),
        fault(PLAIN, "publish", publish="flags[64 + b] = 1;"),
        fault(NARROW, "publish", publish="atomicExch_block(flags + 64 + b, 1);"),
        fault(MOVED, "published early", write="", late="o[b] = before + a[i % n];"),
    )),
    Pattern("decoupled look back", """
  __shared__ $T prefix;
  volatile int* status = flags + 64;
  if (t == 0) {
    int b = blockIdx.x;
    $T total = 0, before = 0;
    for (int at = 0; at < 8; at++) total += a[(i + at) % n];
    if (b > 0) {
      o[b] = total;
      ⟦release0: __threadfence();⟧
      ⟦publish: status[b] = 1;⟧
    }
    for (int p = b - 1, state; p >= 0; p--) {
      do state = status[p]; while (state == 0);
      ⟦acquire: __threadfence();⟧
      if (⟦guard: state == 2⟧) { before += o[gridDim.x + p]; break; }
      before += o[p];
    }
    ⟦write: o[gridDim.x + b] = before + total;⟧
    ⟦release1: __threadfence();⟧
    status[b] = 2;
    ⟦late: ⟧
    prefix = before;
  }
  ⟦sync: __syncthreads();⟧
  if (i < n) flags[64 + gridDim.x + i] = (int)(prefix + a[i]);
""", (
        fault(BARRIER, sync=""),
        fault(NARROW, "warps", sync="__syncwarp();"),
        fault(FENCE, "aggregate", release0=""),
        fault(FENCE, "prefix", release1=""),
        fault(FENCE, "acquire", acquire=""),
        fault(NARROW, "aggregate", release0="__threadfence_block();"),
        fault(NARROW, "acquire", acquire="__threadfence_block();"),
        fault(GUARD, "state", guard="state >= 1"),
        fault(PLAIN, "publish", publish="flags[64 + b] = 1;"),
        fault(MOVED, "published early", write="", late="o[gridDim.x + b] = before + total;"),
    )),
    Pattern("look back by words", """
  volatile unsigned long long* words = (volatile unsigned long long*)(flags + 64);
  if (t == 0) {
    int b = blockIdx.x, before = 0;
    if (b > 0) {
      unsigned long long word;
      do word = words[b - 1]; while (word >> 32 == 0);
      before = (int)word ⟦extra: ⟧;
    }
    ⟦extra2: ⟧
    ⟦publish: words[b] = 1ull << 32 | (unsigned)(before + (int)a[i % n]);⟧
  }
""", (
        fault(FENCE, "beside the word", extra="+ (int)o[b - 1]", extra2="o[b] = a[i % n];"),
        fault(PLAIN, "publish",
              publish="((unsigned long long*)words)[b] = 1ull << 32 | (unsigned)before;"),
        fault(NARROW, "publish",
              publish="atomicExch_block((unsigned long long*)words + b, 1ull << 32 | 1);"),
    )),
    Pattern("largest by compare and swap", """
  if (i < n) {
    int mine = __float_as_int((float)a[i]), old = ⟦load: *(volatile int*)flags⟧;
    while (old < mine) {
      int seen = ⟦swap: atomicCAS(flags, old, mine)⟧;
      if (seen == old) break;
      old = seen;
    }
    ⟦after: ⟧
  }
""", (
        fault(NARROW, swap="atomicCAS_block(flags, old, mine)"),
        fault(ATOMIC, swap="old; flags[0] = mine"),
        fault(PLAIN, "read before", load="flags[0]"),
        fault(PLAIN, "read after", after="if (i == 0) o[0] = flags[0];"),
    )),
)  # fmt: skip
