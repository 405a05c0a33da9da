/* A library that initialises the driver in a thread of its own, and waits for it with the interpreter
   lock held, as Dr.Jit does. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

static volatile int calls = -1;

static void pause_ms(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, 0);
}

static void *initialize(void *pause) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
  int (*count)(int *) = (int (*)(int *))dlsym(library, "cuDeviceGetCount");
  int devices = 0, failed = init(0);
  for (int i = 0; i < 20; ++i) {
    failed |= count(&devices);
    pause_ms((long)pause);
  }
  calls = failed ? 0 : devices;
  return 0;
}

void begin(long pause) {
  pthread_t thread;
  pthread_create(&thread, 0, initialize, (void *)pause);
  pthread_detach(thread);
}

/* The devices that the thread has counted; -1 after a minute of waiting, with or without sleep. */
int end(int sleeps) {
  time_t last = time(0) + 60;
  while (calls < 0 && time(0) < last)
    if (sleeps)
      pause_ms(1);
  return calls;
}
