// Kernels that call the device's runtime: printf, assert, malloc, free, trap.
extern "C" __global__ void integers(int i, long long l, unsigned u) {
  printf("%d|%5d|%-6d|%06d|%+d|% d|%.4d|%8.3d|%i|%u|%x|%X|%#x|%o|%#o\n", i, i, i, i, i, i, i, i, i, u, u, u, u, u, u);
  printf("%lld|%20lld|%llx|%llu|%#llx|%ld|%hd|%hhd|%hu|%c|%%|%*d|%-*d|\n", l, l, l, l, l, (long)l, (short)i, (char)i,
         (unsigned short)u, 'A' + (i & 15), 7, i, 9, i);
}
extern "C" __global__ void floats(double d, float f) {
  printf("%f|%.2f|%10.3f|%-12.1f|%+f|% f|%010.2f|%e|%.0e|%E|%g|%G|%#g|%.10g\n", d, d, d, d, d, d, d, d, d, d, d, d, d, d);
  printf("%f|%g|%a|%A|%.3a|%.0a|%20.5a|%#.0f|%*.*f\n", f, f, d, d, d, d, d, d, 12, 4, d);
}
extern "C" __global__ void strings(const char* s, int* returned) {
  returned[0] = printf("[%s][%10s][%-10s][%.3s][%s]\n", s, s, "left", "cut off", (const char*)0);
  returned[1] = printf("%p %p\n", (void*)0, (void*)0x1234abcd);
  returned[2] = printf("nothing to add\n");
  returned[3] = printf(s, 42, 2.5);
  char local[8] = {'l', 'o', 'c', (char)('0' + returned[2]), 0};
  returned[4] = printf("%s %d %lld %d\n", local, 1, 2ll, 3);
}
extern "C" __global__ void lines(int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i % 2 == 0 && i < n) printf("even %d of %d\n", i, n);
  else if (i < n) { printf("odd "); printf("%d\n", i); }
}
extern "C" __global__ void checked(const int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) printf("before\n");
  assert(i < n && x[i] != 13 && "no thirteen");
}
extern "C" __global__ void fill(int** out, int nbytes, int write) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = (int*)malloc(nbytes);
  if (write && out[i]) out[i][nbytes / 4 - 1] = i;
}
extern "C" __global__ void release(int** p) { free(p[blockIdx.x * blockDim.x + threadIdx.x]); }
extern "C" __global__ void past_end(int** p) { p[threadIdx.x][4] = 1; }
extern "C" __global__ void after_free(int** p, int* out) { free(p[0]); *out = p[0][1]; }
extern "C" __global__ void use(int** p, int* out) { *out = p[0][1]; }
extern "C" __global__ void stop(int how) {
  if (threadIdx.x == 3) { if (how == 0) __trap(); else if (how == 1) __brkpt(); else asm volatile("exit;"); }
  if (how == 3) { __shared__ int s[2]; s[threadIdx.x & 1] = 1; __syncthreads(); }
}
extern "C" __global__ void forever(volatile int* flag) { while (*flag == 0) {} }
extern "C" __global__ void sleepers(long long* out) {
  long long a = clock64(); unsigned c = clock();
  __nanosleep(1000);
  long long b = clock64();
  out[threadIdx.x] = b >= a && (unsigned)clock() - c < 1u << 31 ? 1 : 0;
}
