"""Codes of copies that go on beside their threads: bulk copies, and the sources of all of them.

Data lies in `flags`, of which each block has a row of $BLOCK elements to read, and one to write.
"""

from __future__ import annotations

from .program import (
    ATOMIC,
    BARRIER,
    BUFFER,
    FENCE,
    MOVED,
    NARROW,
    PLAIN,
    WAIT,
    Pattern,
    fault,
)

_ROWS = """
  int* from = flags + 64 + blockIdx.x * $BLOCK;
  int* to = flags + 64 + (gridDim.x + blockIdx.x) * $BLOCK;
"""
_BAR = """
  __shared__ async::Barrier bar;
  if (t == 0) async::init(&bar, 1);
"""

PATTERNS: tuple[Pattern, ...] = (
    Pattern("bulk copy", _ROWS + """
  __shared__ alignas(128) int s[$BLOCK];
""" + _BAR + """
  ⟦fill: s[t] = 0;⟧
  ⟦sync: __syncthreads();⟧
  if (t == 0) {
    async::expect(&bar, 4 * $BLOCK);
    async::load(s, from, 4 * $BLOCK, &bar);
    ⟦after: ⟧
  }
  ⟦early: ⟧
  ⟦wait: async::wait(&bar, 0);⟧
  ⟦late: ⟧to[t] = s[$BLOCK - 1 - t];
""", (
        fault(WAIT, wait=""),
        fault(WAIT, "barrier instead", wait="__syncthreads();"),
        fault(WAIT, "own read", after="to[0] = s[3];", late="if (t) "),
        fault(WAIT, "of one thread", wait="if (t) async::wait(&bar, 0);"),
        fault(MOVED, "read", early="to[t] = s[t];", late="if (i < 0) "),
        fault(MOVED, "barrier", sync="", early="__syncthreads();"),
        fault(BUFFER, "write of the target", after="s[7] = 1;"),
        fault(BUFFER, "write of the target by another", early="if (t == 40) s[7] = 1;"),
        fault(BUFFER, "write of the source", after="from[5] = 1;"),
        fault(BUFFER, "write of the source by another",
              early="__syncthreads(); if (t == 40) from[5] = 1;"),
    ), types=("int",)),
    Pattern("source reused behind its copy", _ROWS + """
  __shared__ alignas(128) int s[$BLOCK];
""" + _BAR + """
  __syncthreads();
  if (t == 0) {
    async::expect(&bar, 4 * $BLOCK);
    async::load(s, from, 4 * $BLOCK, &bar);
  }
  ⟦early: ⟧
  ⟦wait: async::wait(&bar, 0);⟧
  ⟦write: from[t] = t;⟧
  ⟦sync: __syncthreads();⟧
  if (t == 0) to[0] = from[$BLOCK - 1];
""", (
        fault(WAIT, wait=""),
        fault(WAIT, "barrier instead", wait="__syncthreads();"),
        fault(MOVED, early="from[t] = t;", write=""),
        fault(BARRIER, sync=""),
    ), types=("int",)),
    Pattern("double buffer of bulk copies", _ROWS + """
  __shared__ alignas(128) int s[2][$BLOCK];
  __shared__ async::Barrier bars[2];
  if (t == 0) { async::init(bars, 1); async::init(bars + 1, 1); }
  __syncthreads();
  int sum = 0;
  if (t == 0) {
    async::expect(bars, 4 * $BLOCK);
    async::load(s[0], from, 4 * $BLOCK, bars);
  }
  for (int k = 0; k < 4; k++) {
    if (t == 0 && k < 3) {
      const int next = ⟦next: (k + 1) % 2⟧;
      async::expect(bars + (k + 1) % 2, 4 * $BLOCK);
      async::load(s[next], from, 4 * $BLOCK, bars + (k + 1) % 2);
    }
    ⟦wait: async::wait(bars + k % 2, ⟦k / 2 % 2⟧);⟧
    sum += s[k % 2][$BLOCK - 1 - t];
    ⟦sync: __syncthreads();⟧
  }
  to[t] = sum;
""".replace("⟦k / 2 % 2⟧", "k / 2 % 2"), (
        fault(WAIT, wait=""),
        fault(WAIT, "of the first alone", wait="if (k == 0) async::wait(bars, 0);"),
        fault(WAIT, "of the other",
              wait="if (k) async::wait(bars + (k + 1) % 2, (k - 1) / 2 % 2);"),
        fault(BARRIER, sync=""),
        fault(NARROW, "warps", sync="__syncwarp();"),
        fault(BUFFER, next="k % 2"),
    ), types=("int",)),
    Pattern("ring of bulk copies", _ROWS + """
  __shared__ alignas(128) int s[2][$BLOCK];
  __shared__ async::Barrier full[2], empty[2];
  if (t == 0)
    for (int k = 0; k < 2; k++) { async::init(full + k, 1); async::init(empty + k, $BLOCK - 32); }
  ⟦sync: __syncthreads();⟧
  if (t < 32) {
    if (t == 0)
      for (int k = 0; k < 6; k++) {
        if (k >= 2) { ⟦empty: async::wait(empty + k % 2, (k / 2 - 1) % 2);⟧ }
        async::expect(full + k % 2, 4 * $BLOCK);
        async::load(s[⟦into: k % 2⟧], from, 4 * $BLOCK, full + k % 2);
      }
  } else {
    int sum = 0;
    for (int k = 0; k < 6; k++) {
      ⟦full: async::wait(full + k % 2, k / 2 % 2);⟧
      ⟦early: ⟧sum += s[k % 2][t];
      ⟦free: async::arrive(empty + k % 2);⟧
    }
    to[t] = sum;
  }
""", (
        fault(WAIT, "full", full=""),
        fault(BARRIER, "empty", empty=""),
        fault(BARRIER, "objects", sync=""),
        fault(BUFFER, into="0"),
        fault(MOVED, "arrival", early="async::arrive(empty + k % 2); ", free=""),
    ), types=("int",)),
    Pattern("bulk copy back", _ROWS + """
  __shared__ alignas(128) int s[$BLOCK];
  s[t] = from[t];
  ⟦proxy: async::proxy();⟧
  ⟦sync0: __syncthreads();⟧
  if (t == 0) {
    async::store(to, s, 4 * $BLOCK);
    async::commit();
    ⟦after: ⟧
    ⟦wait: async::wait_reads<0>();⟧
  }
  ⟦sync1: __syncthreads();⟧
  s[t] = 0;
""", (
        fault(FENCE, "of the proxy", proxy=""),
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "second", sync1=""),
        fault(NARROW, "warps for the second", sync1="__syncwarp();"),
        fault(WAIT, wait=""),
        fault(WAIT, "one group too few", wait="async::wait_reads<1>();"),
        fault(WAIT, "of another thread", wait="", sync1="if (t == 1) async::wait_reads<0>(); "
              "__syncthreads();"),
        fault(MOVED, "write of the source", after="s[0] = 1;"),
        fault(BUFFER, "the target written", after="to[1] = 1;"),
    ), types=("int",)),
    Pattern("bulk copy back, read again", _ROWS + """
  __shared__ alignas(128) int s[$BLOCK];
  s[t] = from[t];
  ⟦proxy: async::proxy();⟧
  __syncthreads();
  if (t == 0) {
    async::store(to, s, 4 * $BLOCK);
    ⟦commit: async::commit();⟧
    ⟦after: ⟧
    ⟦wait: async::wait_groups<0>();⟧
    ⟦late: ⟧
  }
  ⟦sync: __syncthreads();⟧
  from[t] = to[$BLOCK - 1 - t];
""", (
        fault(FENCE, "of the proxy", proxy=""),
        fault(WAIT, wait=""),
        fault(WAIT, "for its reads alone", wait="async::wait_reads<0>();"),
        fault(WAIT, "of nothing", commit="", late="async::commit();"),
        fault(WAIT, "own read", after="from[0] = to[0];", sync="__syncthreads(); if (t)"),
        fault(BARRIER, sync=""),
        fault(NARROW, sync="__syncwarp();"),
    ), types=("int",)),
    Pattern("two bulk copies back", _ROWS + """
  __shared__ alignas(128) int s[2][$BLOCK];
  for (int k = 0; k < 4; k++) {
    if (t == 0) { ⟦wait: async::wait_reads<1>();⟧ }
    ⟦sync0: __syncthreads();⟧
    s[⟦of: k % 2⟧][t] = from[t] + k;
    ⟦proxy: async::proxy();⟧
    ⟦sync1: __syncthreads();⟧
    if (t == 0) {
      async::store(⟦to: flags + 64 + ((k % 2 + 1) * gridDim.x + blockIdx.x) * $BLOCK⟧,
                   s[⟦of: k % 2⟧], 4 * $BLOCK);
      async::commit();
      ⟦end: async::wait_groups<1>();⟧
    }
  }
""", (
        fault(FENCE, "of the proxy", proxy=""),
        fault(WAIT, wait="", end=""),
        fault(WAIT, "one group too few", wait="async::wait_reads<2>();", end=""),
        fault(BUFFER, of="0"),
        fault(BARRIER, "first", sync0=""),
        fault(BARRIER, "second", sync1=""),
        fault(BUFFER, "one target", to="to", end=""),
    ), types=("int",)),
    Pattern("bulk sums", """
  __shared__ alignas(128) int s[$BLOCK];
  s[t] = i;
  ⟦proxy: async::proxy();⟧
  ⟦sync: __syncthreads();⟧
  if (t == 0) {
    async::⟦add: add⟧(flags + 64, s, 4 * $BLOCK);
    async::commit();
    ⟦after: ⟧
    ⟦wait: async::wait_groups<0>();⟧
    ⟦late: ⟧
  }
""", (
        fault(FENCE, "of the proxy", proxy=""),
        fault(ATOMIC, add="store"),
        fault(BARRIER, sync=""),
        fault(PLAIN, "read", after="flags[0] = flags[64];"),
        fault(PLAIN, "read of all", late="o[0] = flags[64];"),
        fault(BUFFER, after="s[0] = 0;"),
        fault(WAIT, wait="", late="s[0] = 0;"),
    ), types=("int",)),
    Pattern("one bulk copy for a cluster", """
  int* from = flags + 64 + blockIdx.x / 2 * $BLOCK;
  int* to = flags + 64 + (gridDim.x + blockIdx.x) * $BLOCK;
  __shared__ alignas(128) int s[$BLOCK];
""" + _BAR + """
  auto cluster = cg::this_cluster();
  s[t] = 0;
  ⟦sync: cluster.sync();⟧
  if (t == 0) async::expect(&bar, 4 * $BLOCK);
  ⟦sync1: cluster.sync();⟧
  if (cluster.block_rank() == 0 && t == 0) async::load_to_all(s, from, 4 * $BLOCK, &bar, 3);
  ⟦wait: async::wait(&bar, 0);⟧
  to[t] = s[$BLOCK - 1 - t];
  cluster.sync();
""", (
        fault(WAIT, wait=""),
        fault(WAIT, "barrier instead", wait="cluster.sync();"),
        fault(WAIT, "of one block", wait="if (cluster.block_rank()) async::wait(&bar, 0);"),
        fault(NARROW, "block", sync="__syncthreads();", sync1="__syncthreads();"),
    ), types=("int",), cluster=2),
    Pattern("stores to another block", _ROWS + """
  __shared__ alignas(128) int s[$BLOCK];
""" + _BAR + """
  auto cluster = cg::this_cluster();
  const int other = 1 - cluster.block_rank();
  s[t] = 0;
  if (t == 0) async::expect(&bar, 4 * $BLOCK);
  ⟦sync: cluster.sync();⟧
  async::send(async::of_block(s + t, other), t, async::of_block(&bar, other));
  ⟦wait: async::wait(&bar, 0);⟧
  ⟦late: ⟧to[t] = s[$BLOCK - 1 - t];
  cluster.sync();
""", (
        fault(WAIT, wait=""),
        fault(WAIT, "barrier instead", wait="cluster.sync();"),
        fault(NARROW, "block", sync="__syncthreads();"),
        fault(BUFFER, late="cluster.map_shared_rank(s, other)[t] = 1; "),
    ), types=("int",), cluster=2),
    Pattern("sums in another block", _ROWS + """
  __shared__ alignas(128) int s[32];
""" + _BAR + """
  auto cluster = cg::this_cluster();
  const int other = 1 - cluster.block_rank();
  if (t < 32) s[t] = 0;
  if (t == 0) async::expect(&bar, 4 * $BLOCK);
  ⟦sync: cluster.sync();⟧
  ⟦add: async::send_sum⟧(async::of_block(s + t % 32, other), t, async::of_block(&bar, other));
  ⟦wait: async::wait(&bar, 0);⟧
  to[t] = s[31 - t % 32];
  cluster.sync();
""", (
        fault(WAIT, wait=""),
        fault(WAIT, "barrier instead", wait="cluster.sync();"),
        fault(NARROW, "block", sync="__syncthreads();"),
        fault(ATOMIC, add="async::send"),
    ), types=("int",), cluster=2),
    Pattern("bulk copy to another block", _ROWS + """
  __shared__ alignas(128) int s[$BLOCK], r[$BLOCK];
""" + _BAR + """
  auto cluster = cg::this_cluster();
  const int other = 1 - cluster.block_rank();
  s[t] = from[t];
  r[t] = 0;
  if (t == 0) async::expect(&bar, 4 * $BLOCK);
  ⟦proxy: async::proxy();⟧
  ⟦sync: cluster.sync();⟧
  if (t == 0)
    async::copy_to_block(async::of_block(r, other), s, 4 * $BLOCK, async::of_block(&bar, other));
  ⟦wait: async::wait(&bar, 0);⟧
  to[t] = r[$BLOCK - 1 - t];
  ⟦sync1: cluster.sync();⟧
  s[t] = 0;
""", (
        fault(FENCE, "of the proxy", proxy=""),
        fault(WAIT, wait=""),
        fault(NARROW, "block", sync="__syncthreads();"),
        fault(BARRIER, "before the source is written", sync1=""),
        fault(NARROW, "block before the source is written", sync1="__syncthreads();"),
    ), types=("int",), cluster=2),
    Pattern("source of an asynchronous copy", """
  __shared__ $T s[$BLOCK];
  if (i < n) __pipeline_memcpy_async(s + t, o + i, 4);
  __pipeline_commit();
  ⟦early: ⟧
  ⟦wait: __pipeline_wait_prior(0);⟧
  if (⟦inside: i < n⟧) o[i] = s[t] + 1;
""", (
        fault(WAIT, wait="", inside="i < n && (s[t], true)"),
        fault(MOVED, "write of the source", early="if (i < n) o[i] = 1;"),
        fault(WAIT, "one group too few", wait="__pipeline_wait_prior(1);"),
    )),
    Pattern("source written by a neighbour", _ROWS + """
  __shared__ int s[$BLOCK];
  __pipeline_memcpy_async(s + t, from + t, 4);
  __pipeline_commit();
  ⟦early: ⟧
  ⟦wait: __pipeline_wait_prior(0);⟧
  ⟦sync: __syncthreads();⟧
  from[$BLOCK - 1 - t] = s[t];
""", (
        fault(WAIT, wait=""),
        fault(BARRIER, sync=""),
        fault(NARROW, sync="__syncwarp();"),
        fault(MOVED, "barrier", early="__syncthreads();", sync=""),
        fault(MOVED, "write", early="__syncthreads(); from[$BLOCK - 1 - t] = 1;"),
    ), types=("int",)),
    Pattern("asynchronous copies counted by an mbarrier", _ROWS + """
  __shared__ int s[$BLOCK];
  __shared__ async::Barrier bar;
  if (t == 0) async::init(&bar, $BLOCK);
  ⟦sync: __syncthreads();⟧
  __pipeline_memcpy_async(s + t, from + t, 4);
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(HERE(&bar)) : "memory");
  ⟦early: ⟧
  ⟦wait: async::wait(&bar, 0);⟧
  to[t] = s[⟦of: $BLOCK - 1 - t⟧];
  from[⟦of: $BLOCK - 1 - t⟧] = 0;
""", (
        fault(WAIT, wait=""),
        fault(WAIT, "own", wait="", of="t"),
        fault(WAIT, "barrier instead", wait="__syncthreads();"),
        fault(MOVED, "write of the source", early="from[t] = 1;"),
        fault(MOVED, "read", early="to[t] = s[t];"),
        fault(BARRIER, "object", sync=""),
    ), types=("int",)),
)  # fmt: skip
