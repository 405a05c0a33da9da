// What the programs for tensor cores call, beside asynchronous.cuh: one instruction of PTX each.
#include <cuda_fp16.h>
constexpr int A = 1024, B = 128;  // elements of a tile: 64 x 16 and 16 x 8, as core matrices
__device__ __forceinline__ void named_barrier(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
__device__ __forceinline__ void proxy_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void proxy_global() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
#ifdef HOPPER
namespace wg {
__device__ __forceinline__ unsigned long long tile(const void* p, unsigned leading) {
  return (HERE(p) & 0x3ffff) >> 4 | (unsigned long long)(leading >> 4) << 16 | 8ull << 32;
}
__device__ __forceinline__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void product(float (&d)[4], const half* a, const half* b, int adds = 1) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;"
               " wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1,"
               " 1, 0, 0; }"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(tile(a, 1024)), "l"(tile(b, 128)), "r"(adds) : "memory");
}
__device__ __forceinline__ void product_of(float (&d)[4], const unsigned (&a)[4], const half* b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3},"
               " {%4, %5, %6, %7}, %8, 1, 1, 1, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tile(b, 128)) : "memory");
}
__device__ __forceinline__ void commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N> __device__ __forceinline__ void wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
template <int N> __device__ __forceinline__ void wait(float (&d)[4]) {
  asm volatile("wgmma.wait_group.sync.aligned %4;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "n"(N) : "memory");
}
__device__ __forceinline__ void keep(float* o, const float (&d)[4]) {
  for (int i = 0; i < 4; i++) o[i] = d[i];
}
}  // namespace wg
#else
namespace tc {  // D has 128 rows and 16 columns, A 128 x 16 and B 16 x 16
constexpr int A = 2048, B = 256;
__device__ __forceinline__ void allocate(unsigned* where) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;"
               ::"r"(HERE(where)) : "memory");
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
}
__device__ __forceinline__ void free(unsigned d) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" ::"r"(d));
}
__device__ __forceinline__ unsigned long long tile(const void* p, unsigned leading) {
  return 1ull << 46 | (HERE(p) & 0x3ffff) >> 4 | (unsigned long long)(leading >> 4) << 16
         | 8ull << 32;
}
constexpr unsigned SHAPE = 1u << 4 | 2u << 17 | 8u << 24;
__device__ __forceinline__ void product(unsigned d, const half* a, const half* b, int adds) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0;"
               " tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }"
               ::"r"(d), "l"(tile(a, 2048)), "l"(tile(b, 256)), "r"(SHAPE), "r"(adds) : "memory");
}
__device__ __forceinline__ void product_of(unsigned d, unsigned a, const half* b, int adds) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0;"
               " tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p; }"
               ::"r"(d), "r"(a), "l"(tile(b, 256)), "r"(SHAPE), "r"(adds) : "memory");
}
__device__ __forceinline__ void copy(unsigned d, const half* rows) {
  asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(d), "l"(tile(rows, 2048))
               : "memory");
}
__device__ __forceinline__ void commit(async::Barrier* bar) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
               ::"r"(HERE(bar)) : "memory");
}
__device__ __forceinline__ void load(unsigned (&v)[8], unsigned d) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]),
                 "=r"(v[6]), "=r"(v[7])
               : "r"(d + ((threadIdx.x / 32 % 4 * 32) << 16)));
}
__device__ __forceinline__ void store(unsigned d, const unsigned (&v)[8]) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};"
               ::"r"(d + ((threadIdx.x / 32 % 4 * 32) << 16)), "r"(v[0]), "r"(v[1]), "r"(v[2]),
                 "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7]) : "memory");
}
__device__ __forceinline__ void wait_loads() {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wait_stores() {
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void before_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ __forceinline__ void after_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}
__device__ __forceinline__ void keep(unsigned* o, const unsigned (&v)[8]) {
  for (int i = 0; i < 8; i++) o[i] = v[i];
}
}  // namespace tc
#endif
