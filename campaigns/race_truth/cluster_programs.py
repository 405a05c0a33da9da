"""Codes of clusters: blocks that reach each other's shared memory."""

from __future__ import annotations

from .program import (
    ATOMIC,
    BARRIER,
    BOUND,
    BUFFER,
    FENCE,
    MOVED,
    NARROW,
    PLAIN,
    Pattern,
    fault,
)

_ELEMENT = fault(BOUND, "element", inside="i <= n")
_RELAXED = (
    'asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");'
    ' asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");'
)
_FENCE = 'asm volatile("fence.acq_rel.{};" ::: "memory");'
_SET = 'asm volatile("st.{}.shared::cluster.u32 [%0], %1;" ::"r"(to), "r"(1) : "memory");'
_ASK = 'asm volatile("ld.{}.shared::cta.u32 %0, [%1];" : "=r"(seen) : "r"(HERE(&flag)) : "memory")'
_ARRIVE = 'asm volatile("mbarrier.arrive.{}shared::cluster.b64 _, [%0];" ::"r"(bars) : "memory");'

PATTERNS: tuple[Pattern, ...] = (
    Pattern("neighbours in a cluster", """
  __shared__ $T s[$BLOCK];
  auto cluster = cg::this_cluster();
  const int other = (cluster.block_rank() + 1) % cluster.num_blocks();
  s[t] = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  ⟦sync0: cluster.sync();⟧
  $T x = cluster.map_shared_rank(s, other)[$BLOCK - 1 - t];
  ⟦sync1: cluster.sync();⟧
  s[t] = x + 1;
  ⟦sync2: __syncthreads();⟧
  if (i < n) o[i] = s[t ^ 32];
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "second", sync1=""),
        fault(BARRIER, "third", sync2=""),
        fault(NARROW, "block for the first", sync0="__syncthreads();"),
        fault(NARROW, "block for the second", sync1="__syncthreads();"),
        fault(MOVED, sync0="", sync1="cluster.sync(); cluster.sync();"),
        fault(FENCE, "relaxed arrival", sync0=_RELAXED),
        _ELEMENT,
    ), cluster=2),
    Pattern("relaxed arrival", """
  __shared__ $T s[$BLOCK];
  auto cluster = cg::this_cluster();
  const int other = cluster.num_blocks() - 1 - cluster.block_rank();
  s[t] = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  ⟦fence: """ + _FENCE.format("cluster") + """⟧
  """ + _RELAXED + """
  $T x = cluster.map_shared_rank(s, other)[t];
  if (i < n) o[i] = x;
  ⟦sync: cluster.sync();⟧
  s[t] = 0;
""", (
        fault(FENCE, fence=""),
        fault(NARROW, "fence", fence=_FENCE.format("cta")),
        fault(BARRIER, sync=""),
        fault(NARROW, "barrier", sync="__syncthreads();"),
        _ELEMENT,
    ), cluster=4),
    Pattern("relaxed arrival behind a barrier", """
  __shared__ $T s[$BLOCK];
  auto cluster = cg::this_cluster();
  const int other = cluster.num_blocks() - 1 - cluster.block_rank();
  s[t] = i < n ? a[i] : ($T)0;
  ⟦sync: __syncthreads();⟧
  if (t == 0) { ⟦fence: """ + _FENCE.format("cluster") + """⟧ }
  """ + _RELAXED + """
  $T x = cluster.map_shared_rank(s, other)[t];
  if (⟦inside: i < n⟧) o[i] = x;
  cluster.sync();
""", (
        fault(FENCE, fence=""),
        fault(BARRIER, sync=""),
        fault(NARROW, "fence", fence=_FENCE.format("cta")),
        _ELEMENT,
    ), cluster=2),
    Pattern("arrival and wait", """
  __shared__ $T s[2][$BLOCK];
  auto cluster = cg::this_cluster();
  const int other = (cluster.block_rank() + 1) % cluster.num_blocks();
  $T sum = 0;
  for (int k = 0; k < 4; k++) {
    ⟦early: ⟧s[⟦into: k % 2⟧][t] = a[(i + k) % n];
    ⟦arrive: cluster.barrier_arrive();⟧
    sum += a[(i + k + 1) % n];
    ⟦before: ⟧
    ⟦wait: cluster.barrier_wait();⟧
    ⟦read: sum += cluster.map_shared_rank(s[k % 2], other)[t];⟧
  }
  if (⟦inside: i < n⟧) o[i] = sum;
  cluster.sync();
""", (
        fault(MOVED, "arrival", early="cluster.barrier_arrive(); ", arrive=""),
        fault(MOVED, "read", read="",
              before="sum += cluster.map_shared_rank(s[k % 2], other)[t];"),
        fault(BARRIER, arrive="", wait=""),
        fault(NARROW, arrive="", wait="__syncthreads();"),
        fault(BUFFER, into="0", read="sum += cluster.map_shared_rank(s[0], other)[t];"),
        _ELEMENT,
    ), cluster=2),
    Pattern("histogram of a cluster", """
  __shared__ int s[64];
  auto cluster = cg::this_cluster();
  if (t < 64) s[t] = 0;
  ⟦sync0: cluster.sync();⟧
  if (⟦inside: i < n⟧) {
    const int b = (int)a[i] % 128;
    int* bins = cluster.map_shared_rank(s, b / 64);
    ⟦count: atomicAdd(bins + b % 64, 1);⟧
  }
  ⟦sync1: cluster.sync();⟧
  if (t < 64) atomicAdd(flags + 64 * cluster.block_rank() + t, s[t]);
""", (
        fault(ATOMIC, count="bins[b % 64]++;"),
        fault(PLAIN, "read before", count="if (bins[b % 64] < 1000) atomicAdd(bins + b % 64, 1);"),
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "second", sync1=""),
        fault(NARROW, "block for the first", sync0="__syncthreads();"),
        fault(NARROW, "block for the second", sync1="__syncthreads();"),
        fault(FENCE, "relaxed arrival", sync0=_RELAXED),
        _ELEMENT,
    ), cluster=2),
    Pattern("histogram by atomics of a cluster", """
  __shared__ int s[64];
  auto cluster = cg::this_cluster();
  if (t < 64) s[t] = 0;
  cluster.sync();
  if (⟦inside: i < n⟧) {
    const int b = (int)a[i] % 64;
    const unsigned to = async::of_block(s + b % 16, b / 16);
    asm volatile("red.relaxed.⟦scope: cluster⟧.shared::cluster.add.u32 [%0], %1;"
                 ::"r"(to), "r"(1) : "memory");
  }
  ⟦sync: cluster.sync();⟧
  if (t < 64) atomicAdd(flags + 64 * cluster.block_rank() + t, s[t]);
""", (
        fault(NARROW, "atomic", scope="cta"),
        fault(BARRIER, sync=""),
        fault(NARROW, "block", sync="__syncthreads();"),
        _ELEMENT,
    ), cluster=4),
    Pattern("global sums by clusters", """
  auto cluster = cg::this_cluster();
  const int to = ⟦of: blockIdx.x / cluster.num_blocks()⟧;
  if (⟦inside: i < n⟧)
    asm volatile("red.relaxed.⟦scope: cluster⟧.global.add.s32 [%0], %1;"
                 ::"l"(flags + to), "r"((int)a[i]) : "memory");
  cluster.sync();
  if (i < n && t == ⟦who: 0 && cluster.block_rank() == 0⟧) o[i] = flags[to];
""", (
        fault(NARROW, "atomic", scope="cta"),
        fault(NARROW, "one for all clusters", of="0", who="-1"),
        _ELEMENT,
    ), cluster=2),
    Pattern("reduction of a cluster", """
  __shared__ $T s[$BLOCK];
  auto cluster = cg::this_cluster();
  s[t] = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  ⟦sync0: __syncthreads();⟧
  for (int k = $BLOCK / 2; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  ⟦sync1: cluster.sync();⟧
  if (cluster.block_rank() == 0 && t < (int)cluster.num_blocks()) {
    ⟦update: atomicAdd(o, cluster.map_shared_rank(s, t)[0]);⟧
  }
  ⟦sync2: cluster.sync();⟧
  s[t] = 0;
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "second", sync1=""),
        fault(BARRIER, "third", sync2=""),
        fault(NARROW, "block", sync1="__syncthreads();"),
        fault(ATOMIC, update="o[0] += cluster.map_shared_rank(s, t)[0];"),
        fault(NARROW, "atomic", update="atomicAdd_block(o, cluster.map_shared_rank(s, t)[0]);"),
        _ELEMENT,
    ), cluster=2),
    Pattern("flag in another block", """
  __shared__ int data[32], flag;
  auto cluster = cg::this_cluster();
  const int rank = cluster.block_rank();
  if (t == 0) flag = 0;
  ⟦sync: cluster.sync();⟧
  if (rank == 0 && t < 32) {
    cluster.map_shared_rank(data, 1)[t] = (int)a[⟦of: i % n⟧];
    __syncwarp();
    const unsigned to = async::of_block(&flag, 1);
    if (t == 0) { ⟦fence: ⟧⟦set: """ + _SET.format("release.cluster") + """⟧ }
  }
  if (rank == 1 && t < 32) {
    unsigned seen = 0;
    while (!seen) ⟦ask: """ + _ASK.format("acquire.cluster") + """⟧;
    ⟦behind: ⟧if (⟦inside: i < n⟧) o[i] = data[31 - t];
  }
  cluster.sync();
""", (
        fault(BARRIER, sync=""),
        fault(NARROW, "release", set=_SET.format("release.cta")),
        fault(NARROW, "acquire", ask=_ASK.format("acquire.cta")),
        fault(FENCE, "release", set=_SET.format("relaxed.cluster")),
        fault(FENCE, "acquire", ask=_ASK.format("relaxed.cluster")),
        fault(NARROW, "fence", fence=_FENCE.format("cta"), set=_SET.format("relaxed.cluster")),
    ), cluster=2),
    Pattern("mbarrier in another block", """
  __shared__ $T s[$BLOCK];
  __shared__ async::Barrier bar;
  auto cluster = cg::this_cluster();
  const int other = cluster.num_blocks() - 1 - cluster.block_rank();
  if (t == 0) async::init(&bar, $BLOCK);
  ⟦sync0: cluster.sync();⟧
  const unsigned bars = async::of_block(&bar, other);
  ⟦early: ⟧cluster.map_shared_rank(s, other)[t] = a[i % n];
  ⟦arrive: """ + _ARRIVE.format("release.cluster.") + """⟧
  ⟦wait: async::wait(&bar, 0);⟧
  ⟦late: ⟧if (⟦inside: i < n⟧) o[i] = s[$BLOCK - 1 - t];
  cluster.sync();
""", (
        fault(MOVED, "arrival", early=_ARRIVE.format(""), arrive=""),
        fault(BARRIER, "object", sync0=""),
        fault(NARROW, "object", sync0="__syncthreads();"),
        fault(BARRIER, "wait", wait=""),
        fault(NARROW, "block for the wait", wait="__syncthreads();"),
        fault(FENCE, "arrival", arrive=_ARRIVE.format("relaxed.cluster.")),
        fault(NARROW, "arrival", arrive=_ARRIVE.format("release.cta.")),
        fault(FENCE, "wait", wait="async::wait_relaxed(&bar, 0);"),
        fault(BUFFER, late="cluster.map_shared_rank(s, other)[t] = 0; "),
        _ELEMENT,
    ), cluster=2),
    Pattern("stencil over a cluster", """
  __shared__ $T s[2][$BLOCK];
  auto cluster = cg::this_cluster();
  const int blocks = cluster.num_blocks(), rank = cluster.block_rank();
  s[0][t] = ⟦inside: i < n⟧ ? a[i] : ($T)0;
  ⟦sync0: cluster.sync();⟧
  for (int k = 0; k < 3; k++) {
    const int of = t ? rank : (rank + blocks - 1) % blocks;
    const $T* left = cluster.map_shared_rank(s[k % 2], of);
    s[⟦next: (k + 1) % 2⟧][t] = s[k % 2][t] + left[(t + $BLOCK - 1) % $BLOCK];
    ⟦sync1: cluster.sync();⟧
  }
  if (i < n) o[i] = s[1][t];
""", (
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "second", sync1=""),
        fault(NARROW, "block for the first", sync0="__syncthreads();"),
        fault(NARROW, "block for the second", sync1="__syncthreads();"),
        fault(BUFFER, next="k % 2"),
        _ELEMENT,
    ), cluster=2),
)  # fmt: skip
