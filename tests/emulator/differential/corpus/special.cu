// Special registers that are the same at every run, and times that only go forward.
#define KERNEL extern "C" __global__ void
__device__ unsigned flat() {
  unsigned b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  return b * blockDim.x * blockDim.y * blockDim.z + (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
#define PUT(row, name) asm volatile("mov.u32 %0, %%" name ";" : "=r"(r)); out[(row) * n + i] = r;
KERNEL special_places(unsigned* out, int n) {
  unsigned i = flat(), r;
  PUT(0, "tid.x") PUT(1, "tid.y") PUT(2, "tid.z") PUT(3, "ntid.x") PUT(4, "ntid.y") PUT(5, "ntid.z")
  PUT(6, "ctaid.x") PUT(7, "ctaid.y") PUT(8, "ctaid.z") PUT(9, "nctaid.x") PUT(10, "nctaid.y") PUT(11, "nctaid.z")
  PUT(12, "laneid") PUT(13, "lanemask_eq") PUT(14, "lanemask_le") PUT(15, "lanemask_lt") PUT(16, "lanemask_ge")
  PUT(17, "lanemask_gt")
}
KERNEL special_warps(unsigned* out, int n) { unsigned i = flat(), r; PUT(0, "nwarpid") out[n + i] = warpSize; }
KERNEL special_clusters(unsigned* out, int n) {
  unsigned i = flat(), r;
  PUT(0, "cluster_ctaid.x") PUT(1, "cluster_nctaid.x") PUT(2, "clusterid.x") PUT(3, "nclusterid.x")
  PUT(4, "cluster_ctarank") PUT(5, "cluster_nctarank") PUT(6, "cluster_ctaid.y") PUT(7, "nclusterid.y")
  asm volatile("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(r));
  out[8 * n + i] = r;
}
KERNEL special_unclustered(unsigned* out, int n) {
  unsigned i = flat(), r;
  PUT(0, "cluster_ctaid.x") PUT(1, "cluster_nctaid.x") PUT(2, "clusterid.x") PUT(3, "nclusterid.x")
  PUT(4, "cluster_ctarank") PUT(5, "cluster_nctarank")
  asm volatile("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(r));
  out[6 * n + i] = r;
}
KERNEL special_shared(unsigned* out) {
  __shared__ int s[10];
  extern __shared__ int d[];
  s[threadIdx.x % 10] = 1; d[threadIdx.x % 20] = 2;
  unsigned r;
  asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(r));
  out[threadIdx.x] = r + (s[0] & 0) + (d[0] & 0);
}
KERNEL special_shared_total(unsigned* out) {
  __shared__ int s[10];
  extern __shared__ int d[];
  s[threadIdx.x % 10] = 1; d[threadIdx.x % 20] = 2;
  unsigned r;
  asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(r));
  out[threadIdx.x] = r + (s[0] & 0) + (d[0] & 0);
}
KERNEL special_processors(unsigned* out) {
  unsigned smid, nsmid;
  asm volatile("mov.u32 %0, %%smid; mov.u32 %1, %%nsmid;" : "=r"(smid), "=r"(nsmid));
  out[flat()] = smid < nsmid;
}
KERNEL special_times(unsigned* out) {
  unsigned i = flat();
  long long a = clock64(); unsigned long long t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  unsigned c = clock();
  __nanosleep(100);
  unsigned long long u; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(u));
  long long b = clock64();
  out[i] = (b >= a) + 2 * (u >= t) + 4 * (t > 1000000000ull) + 8 * (clock() - c < 1u << 31);
}
