/* Code that waits for a thread of its own, which calls the driver, in several ways.

   Python calls it with the interpreter lock held, as some extensions do. */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

typedef int (*function)(long, long, long, long, long, long);

static struct {
  const function *calls;
  const long (*arguments)[6];
  long count, failed;
  sem_t semaphore;
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  int pipe[2];
  pthread_t thread;
  volatile int done;
} work;

static void *body(void *unused) {
  for (long at = 0; at < work.count; ++at) {
    const long *a = work.arguments[at];
    work.failed |= work.calls[at](a[0], a[1], a[2], a[3], a[4], a[5]);
  }
  pthread_mutex_lock(&work.mutex);
  work.done = 1;
  pthread_cond_signal(&work.condition);
  pthread_mutex_unlock(&work.mutex);
  sem_post(&work.semaphore);
  return (void *)(write(work.pipe[1], "x", 1) == 1 ? unused : 0);
}

enum { JOIN, SEMAPHORE, CONDITION, POLL, READ, SLEEP, SPIN };

static void wait_by(int way) {
  struct pollfd ready = {work.pipe[0], POLLIN, 0};
  struct timespec pause = {0, 1000000};
  char byte;
  if (way == SEMAPHORE)
    while (sem_wait(&work.semaphore) && errno == EINTR)
      ;
  if (way == CONDITION) {
    pthread_mutex_lock(&work.mutex);
    while (!work.done)
      pthread_cond_wait(&work.condition, &work.mutex);
    pthread_mutex_unlock(&work.mutex);
  }
  if (way == POLL)
    while (poll(&ready, 1, -1) != 1)
      ;
  if (way == READ)
    while (read(work.pipe[0], &byte, 1) != 1)
      ;
  while (way == SLEEP && !work.done)
    nanosleep(&pause, 0);
  while (way == SPIN && !work.done)
    ;
}

int begin_calls(const function *calls, const long (*arguments)[6], long count) {
  work.calls = calls, work.arguments = arguments, work.count = count;
  work.failed = work.done = 0;
  sem_init(&work.semaphore, 0, 0);
  pthread_mutex_init(&work.mutex, 0);
  pthread_cond_init(&work.condition, 0);
  return pipe(work.pipe) || pthread_create(&work.thread, 0, body, &work);
}

/* What is not 0 of the calls' results. */
int wait_for_calls(int way) {
  wait_by(way);
  pthread_join(work.thread, 0);
  close(work.pipe[0]), close(work.pipe[1]);
  return work.failed;
}
