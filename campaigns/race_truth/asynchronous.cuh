// What the programs of clusters and bulk copies call: one instruction of PTX each.
namespace async {
typedef unsigned long long Barrier;
#define HERE(pointer) ((unsigned)__cvta_generic_to_shared(pointer))
__device__ __forceinline__ void init(Barrier* bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(HERE(bar)), "r"(count) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void expect(Barrier* bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               ::"r"(HERE(bar)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void arrive(Barrier* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(HERE(bar)) : "memory");
}
__device__ __forceinline__ void wait(Barrier* bar, int parity) {
  unsigned over = 0;
  while (!over)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
                 " selp.u32 %0, 1, 0, p; }"
                 : "=r"(over) : "r"(HERE(bar)), "r"(parity) : "memory");
}
__device__ __forceinline__ void wait_relaxed(Barrier* bar, int parity) {
  unsigned over = 0;
  while (!over)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 p, [%1],"
                 " %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(over) : "r"(HERE(bar)), "r"(parity) : "memory");
}
__device__ __forceinline__ void load(void* to, const void* from, int bytes, Barrier* bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2,"
               " [%3];" ::"r"(HERE(to)), "l"(from), "r"(bytes), "r"(HERE(bar)) : "memory");
}
__device__ __forceinline__ void load_to_all(void* to, const void* from, int bytes, Barrier* bar,
                                            int ranks) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".multicast::cluster [%0], [%1], %2, [%3], %4;"
               ::"r"(HERE(to)), "l"(from), "r"(bytes), "r"(HERE(bar)), "h"((short)ranks)
               : "memory");
}
__device__ __forceinline__ void store(void* to, const void* from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
               ::"l"(to), "r"(HERE(from)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void add(void* to, const void* from, int bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;"
               ::"l"(to), "r"(HERE(from)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
template <int N> __device__ __forceinline__ void wait_groups() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}
template <int N> __device__ __forceinline__ void wait_reads() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
__device__ __forceinline__ void proxy() { asm volatile("fence.proxy.async;" ::: "memory"); }
__device__ __forceinline__ unsigned of_block(const void* pointer, unsigned rank) {
  unsigned found;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(found) : "r"(HERE(pointer)), "r"(rank));
  return found;
}
__device__ __forceinline__ void send(unsigned to, int value, unsigned bar) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
               ::"r"(to), "r"(value), "r"(bar) : "memory");
}
__device__ __forceinline__ void send_sum(unsigned to, int value, unsigned bar) {
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.s32"
               " [%0], %1, [%2];" ::"r"(to), "r"(value), "r"(bar) : "memory");
}
__device__ __forceinline__ void copy_to_block(unsigned to, const void* from, int bytes,
                                              unsigned bar) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1],"
               " %2, [%3];" ::"r"(to), "r"(HERE(from)), "r"(bytes), "r"(bar) : "memory");
}
}  // namespace async
