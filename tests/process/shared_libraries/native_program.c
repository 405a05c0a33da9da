/* A program without Python that uses the driver: `native_program PTX KERNEL STATUS`. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <locale.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *library;
static uint64_t memory;

static void *at(const char *name) { return dlsym(library, name); }

static long call(const char *name, long a, long b, long c, long d) {
  return ((int (*)(long, long, long, long))at(name))(a, b, c, d);
}

static void *init(void *result) {
  *(long *)result = call("cuInit", 0, 0, 0, 0);
  return NULL;
}

/* Registered before the first call, as destructors of global objects are. */
static void last(void) {
  printf("freed %ld\n", call("cuMemFree_v2", memory, 0, 0, 0));
  fflush(stdout);
}

static void fork_child(void) {
  int count = -1, status;
  fflush(stdout);
  if (!fork())
    _exit((int)call("cuDeviceGetCount", (long)&count, 0, 0, 0));
  wait(&status);
  printf("child %d\n", WEXITSTATUS(status));
}

static void launch(const char *ptx, const char *name) {
  void *context, *module, *kernel;
  int numbers[4] = {1, 2, 3, 4};
  void *values[] = {&memory};
  call("cuDevicePrimaryCtxRetain", (long)&context, 0, 0, 0);
  call("cuCtxSetCurrent", (long)context, 0, 0, 0);
  printf("load %ld\n", call("cuModuleLoadData", (long)&module, (long)ptx, 0, 0));
  call("cuModuleGetFunction", (long)&kernel, (long)module, (long)name, 0);
  call("cuMemAlloc_v2", (long)&memory, sizeof numbers, 0, 0);
  call("cuMemcpyHtoD_v2", memory, (long)numbers, sizeof numbers, 0);
  int (*run)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
             void **, void **) = at("cuLaunchKernel");
  printf("launch %d\n", run(kernel, 1, 1, 1, 4, 1, 1, 0, NULL, values, NULL));
  call("cuMemcpyDtoH_v2", (long)numbers, memory, sizeof numbers, 0);
  printf("values %d %d %d %d\n", numbers[0], numbers[1], numbers[2], numbers[3]);
}

int main(int argument_count, char **arguments) {
  (void)argument_count;
  pthread_t threads[4];
  long results[4], sum = 0;
  int count = -1;
  atexit(last);
  library = dlopen("libcuda.so.1", RTLD_NOW);
  for (int i = 0; i < 4; ++i)
    pthread_create(&threads[i], NULL, init, &results[i]);
  for (int i = 0; i < 4; ++i) {
    pthread_join(threads[i], NULL);
    sum += results[i];
  }
  call("cuDeviceGetCount", (long)&count, 0, 0, 0);
  printf("init %ld devices %d locale %s home %s own %s\n", sum, count, setlocale(LC_CTYPE, NULL),
         getenv("PYTHONHOME") ? getenv("PYTHONHOME") : "-",
         getenv("CUDADRV_NO_STAND_IN") ? "left" : "-");
  launch(arguments[1], arguments[2]);
  fork_child();
  return atoi(arguments[3]);
}
