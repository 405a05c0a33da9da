/* What happens while a thread of C waits for Python's interpreter lock, to call the driver.

   The code needs no library. `python -m tools.compile_lock_wait` compiles it for x86-64, and
   `lock_wait.py` places it in memory and sets `given`. The stand-in libraries call `acquire` in place
   of PyGILState_Ensure, and `release` in place of PyGILState_Release.

   C code may hold the lock while it waits for its own thread, which calls the driver. The driver
   itself needs no Python; the emulator does, and would hang. So a thread of this code, the watch,
   looks at the calls that do not go on. If none of them waits for the lock to begin, another thread,
   the probe, acquires the lock once: in a long kernel it can. Otherwise the watch sends a signal to
   the thread that holds the lock. If that one sleeps in a call of the system, twice in the same one,
   the handler of the signal lets go of the lock until the calls have ended, as the C code could have
   done around its wait. Otherwise the watch reports the wait, and ends the process after
   `given.last` steps. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define ENTRY __attribute__((section(".text.entry"), used))
enum { READ_SIZE = 4096, CALLERS = 16, PLACE_SHIFT = 8, TABLES = 8 };
enum { /* of Linux on x86-64 */
  READ = 0, WRITE = 1, CLOSE = 3, SIGPROCMASK = 14, NANOSLEEP = 35, GETPID = 39, ACCEPT = 43,
  RECEIVE = 45, RECEIVE_MESSAGE = 47, WAIT4 = 61, GETTID = 186, FUTEX = 202, GETDENTS = 217,
  EXIT_GROUP = 231, TGKILL = 234, WAITID = 247, OPENAT = 257,
};
enum { STEP_MS = 20, QUIET_MS = 100, LONGEST_MS = 1000, FIRST_STEPS = 12, IDLE_STEPS = 50 };
enum { PROBE_STEPS = 2, BEGINNING_MS = 20000 };

struct name {
  uint64_t function;
  const char *text;
};

/* Set by lock_wait.py; the order is that of its `_Given`. */
static struct {
  int (*ensure)(void);
  void (*release)(int);
  int (*is_initialized)(void);
  int (*check)(void);           /* PyGILState_Check, GetThisThreadState, ThreadState_GetUnchecked */
  void *(*own_state)(void);
  void *(*current_state)(void);
  void *(*save)(void);
  void (*restore)(void *);
  int (*add_pending_call)(int (*)(void *), void *);
  int (*create_thread)(void *, const void *, void *(*)(void *), void *);
  const void *thread_attributes;
  uint64_t main; /* what pthread_self returns in the main thread */
  uint64_t signal;
  uint64_t status;
  uint64_t report; /* steps of waiting until the report, and until the end; 0 for none */
  uint64_t last;
  const char *own_threads; /* a folder of Linux */
  const char *first_call;
  const char *thread; /* parts of the lines */
  const char *reported[2], *ended[2];
  const struct name *names[TABLES];
} given __attribute__((section(".given"), used));

/* A page of its own, which is zero in a forked child: that has no other thread. */
static struct {
  atomic_int started, waiting, within, acquired, released, asleep, let_go, reported;
  atomic_int begun;    /* the thread of C that made the first call */
  atomic_int again;    /* whether the main thread is to wait for it again */
  atomic_int probing;  /* whether a probe has not yet acquired the lock */
  atomic_int probed;   /* how many have */
  atomic_int holder; /* the thread that had the lock at the last signal */
  atomic_int sleeps; /* whether it slept then */
  atomic_ulong place;
  struct {
    atomic_int thread;
    uint64_t function;
  } callers[CALLERS];
} now __attribute__((section(".now"), used));

static long call(long number, long a, long b, long c, long d) {
  long result;
  register long fourth __asm__("r10") = d;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
  return result;
}

static void sleep_ms(long ms) {
  long time[2] = {0, ms * 1000000};
  call(NANOSLEEP, (long)time, 0, 0, 0);
}

static uint64_t self(void) {
  uint64_t thread;
  __asm__("mov %%fs:16, %0" : "=r"(thread));
  return thread;
}

/* A place for this thread among those that call, from 1; 0 if all are taken. */
static int enter(uint64_t function) {
  int own = (int)call(GETTID, 0, 0, 0, 0);
  for (int at = 0; at < CALLERS; ++at) {
    int none = 0;
    if (atomic_compare_exchange_strong(&now.callers[at].thread, &none, own)) {
      now.callers[at].function = function;
      return at + 1;
    }
  }
  return 0;
}

static void *watch(void *unused);

ENTRY int acquire_for(uint64_t function) {
  atomic_fetch_add(&now.within, 1);
  atomic_fetch_add(&now.waiting, 1);
  int is_main = self() == given.main, place = is_main ? 0 : enter(function);
  /* The main thread alone is waited for rarely: a process without other threads has no watch. */
  if (!is_main && !atomic_load(&now.started) && !atomic_exchange(&now.started, 1)) {
    uint64_t thread;
    if (given.create_thread(&thread, given.thread_attributes, watch, NULL))
      atomic_store(&now.started, 0);
  }
  if (atomic_load(&now.asleep)) {
    atomic_store(&now.asleep, 0);
    call(FUTEX, (long)&now.asleep, 1 /* FUTEX_WAKE */, 1, 0);
  }
  int state = given.ensure();
  atomic_fetch_add(&now.acquired, 1);
  atomic_fetch_sub(&now.waiting, 1);
  return state | place << PLACE_SHIFT; /* the state is 0 or 1 */
}

static char *text(char *to, const char *from) {
  while (*from)
    *to++ = *from++;
  return to;
}

static char *digits(char *to, unsigned number) {
  if (number > 9)
    to = digits(to, number / 10);
  *to = (char)('0' + number % 10);
  return to + 1;
}

/* Whether a thread waits in the system: its state in /proc, after its name in parentheses. */
static int is_asleep(int thread) {
  char path[64], data[128], *end = text(path, given.own_threads);
  *end++ = '/';
  *text(digits(end, (unsigned)thread), "/stat") = 0;
  long file = call(OPENAT, -100 /* AT_FDCWD */, (long)path, 0x80000 /* O_CLOEXEC */, 0);
  if (file < 0)
    return 0;
  long size = call(READ, file, (long)data, sizeof data, 0);
  call(CLOSE, file, 0, 0, 0);
  for (long at = size - 3; at > 0; --at)
    if (data[at] == ')')
      return data[at + 2] == 'S';
  return 0;
}

/* Wait in the main thread, without the lock, for the calls that follow the first one. That one
   imports modules, and may need the lock of one that the main thread imports. Then the main thread
   goes on for a moment, until the watch lets it wait again. */
static int wait_for_beginning(void *unused) {
  (void)unused;
  void *thread = given.save();
  int asleep = 0;
  for (int quiet = 0, all = 0, seen = -1; quiet < QUIET_MS && all < BEGINNING_MS;) {
    int entered = atomic_load(&now.acquired), is_first = atomic_load(&now.released) == 0;
    quiet = atomic_load(&now.within) > 0 || entered != seen ? 0 : quiet + 1;
    all += !is_first; /* the first call may take long */
    seen = entered;
    asleep = is_first && is_asleep(atomic_load(&now.begun)) ? asleep + 1 : 0;
    if (asleep >= STEP_MS) {
      atomic_store(&now.again, 1);
      break;
    }
    sleep_ms(1);
  }
  given.restore(thread);
  return 0;
}

/* A library may initialise the driver in a thread of its own, and hold the lock until that thread
   has ended, as Dr.Jit does at its first call, and compute meanwhile. So the main thread waits from
   the next moment that it executes Python on. */
ENTRY int acquire_at_start(void) {
  int none = 0, own = (int)call(GETTID, 0, 0, 0, 0);
  if (self() != given.main && !given.own_state() &&
      atomic_compare_exchange_strong(&now.begun, &none, own))
    given.add_pending_call(wait_for_beginning, NULL);
  return acquire_for(0);
}

/* The stand-in has the function that it calls in %r11 (elf_file.py). */
__asm__(".section .text.entry, \"ax\"\nacquire: mov %r11, %rdi\njmp acquire_for\n.text");

ENTRY void release(int state) {
  given.release(state & ((1 << PLACE_SHIFT) - 1));
  if (state >> PLACE_SHIFT)
    atomic_store(&now.callers[(state >> PLACE_SHIFT) - 1].thread, 0);
  atomic_fetch_add(&now.released, 1);
  atomic_fetch_sub(&now.within, 1);
}

/* Wait, without the lock, until no call has run for a while. */
static void wait_for_calls(void) {
  int quiet = 0, all = 0;
  for (int seen = -1;; ++all) {
    int entered = atomic_load(&now.acquired);
    if (atomic_load(&now.within) > 0 || entered != seen)
      quiet = 0;
    else if (++quiet >= QUIET_MS || all >= LONGEST_MS)
      return;
    seen = entered;
    sleep_ms(1);
  }
}

/* Whether a function of the system sleeps until another thread or process acts, and begins anew
   after a signal. Others that memory of Python may need, such as mmap, do not count. */
static int is_wait(long number) {
  return number == READ || number == RECEIVE || number == RECEIVE_MESSAGE || number == ACCEPT ||
         number == WAIT4 || number == WAITID || number == FUTEX;
}

/* Whether the interrupted thread slept in a call of the system: registers of struct ucontext_t. */
static int was_asleep(const uint64_t *context) {
  enum { RAX = 18, RIP = 21 };
  const unsigned char *next = (const unsigned char *)context[RIP];
  long result = (long)context[RAX];
  if (next[0] == 0x0f && next[1] == 0x05 && is_wait(result))
    return 1;
  return result == -4 /* EINTR */ && ((uint64_t)next & 4095) >= 2 && next[-2] == 0x0f &&
         next[-1] == 0x05;
}

/* Also right where PyGILState_Check is not, in a process that has had other interpreters. */
static int holds_lock(void) {
  void *own = given.own_state();
  return given.check() && own && own == given.current_state();
}

ENTRY void on_signal(int number, void *info, const uint64_t *context) {
  (void)number, (void)info;
  enum { RSP = 20, RIP = 21 };
  if (atomic_load(&now.within) <= 0 || !holds_lock())
    return;
  atomic_store(&now.sleeps, was_asleep(context));
  unsigned long place = context[RIP] ^ context[RSP] << 16;
  unsigned long former = atomic_exchange(&now.place, atomic_load(&now.sleeps) ? place : 0);
  atomic_store(&now.holder, (int)call(GETTID, 0, 0, 0, 0));
  if (!atomic_load(&now.sleeps) || former != place)
    return;
  atomic_store(&now.place, 0);
  void *thread = given.save();
  atomic_fetch_add(&now.let_go, 1);
  wait_for_calls();
  given.restore(thread);
}

static void send(int thread) {
  call(TGKILL, call(GETPID, 0, 0, 0, 0), thread, (long)given.signal, 0);
}

/* Send the signal to all threads but this one and the main one. */
static void send_to_others(void) {
  char data[READ_SIZE];
  int own = (int)call(GETTID, 0, 0, 0, 0), main = (int)call(GETPID, 0, 0, 0, 0);
  long folder = call(OPENAT, -100 /* AT_FDCWD */, (long)given.own_threads, 0x90000, 0);
  if (folder < 0)
    return;
  for (long size; (size = call(GETDENTS, folder, (long)data, READ_SIZE, 0)) > 0;)
    for (long at = 0; at < size; at += *(uint16_t *)(data + at + 16)) {
      int thread = 0;
      for (const char *digit = data + at + 19; *digit >= '0' && *digit <= '9'; ++digit)
        thread = 10 * thread + (*digit - '0');
      if (thread && thread != own && thread != main)
        send(thread);
    }
  call(CLOSE, folder, 0, 0, 0);
}

static void ask(void) {
  atomic_store(&now.holder, 0);
  send((int)call(GETPID, 0, 0, 0, 0));
  sleep_ms(STEP_MS);
  if (!atomic_load(&now.holder)) {
    send_to_others();
    sleep_ms(STEP_MS);
  }
  if (atomic_load(&now.holder) && atomic_load(&now.sleeps))
    send(atomic_load(&now.holder));
}

static const char *name_of(uint64_t function) {
  for (int table = 0; table < TABLES; ++table)
    for (const struct name *each = given.names[table]; each && each->function; ++each)
      if (each->function == function)
        return each->text;
  return given.first_call;
}

static void report(const char *const *parts) {
  char line[2048], *end = text(line, given.thread);
  int thread = 0;
  uint64_t function = 0;
  for (int at = 0; at < CALLERS && !thread; ++at) {
    thread = atomic_load(&now.callers[at].thread);
    function = now.callers[at].function;
  }
  end = digits(end, (unsigned)(thread ? thread : call(GETPID, 0, 0, 0, 0)));
  end = text(end, parts[0]);
  end = text(end, name_of(function));
  end = text(end, parts[1]);
  call(WRITE, 2, (long)line, end - line, 0);
}

static int progress(void) {
  return atomic_load(&now.acquired) + atomic_load(&now.released) + atomic_load(&now.let_go) +
         atomic_load(&now.probed);
}

/* Wait until a thread calls. */
static void rest(int seen) {
  atomic_store(&now.asleep, 1);
  if (seen == progress() && atomic_load(&now.within) <= 0)
    call(FUTEX, (long)&now.asleep, 0 /* FUTEX_WAIT */, 1, 0);
  atomic_store(&now.asleep, 0);
}

static void *probe(void *unused) {
  if (given.is_initialized()) {
    given.release(given.ensure());
    atomic_fetch_add(&now.probed, 1);
  }
  atomic_store(&now.probing, 0);
  return unused;
}

/* Whether a thread waits for the lock; if none does, begin a probe before the next signal is due. */
static int is_waited_for(uint64_t steps, uint64_t next) {
  uint64_t thread;
  if (atomic_load(&now.waiting) > 0 || atomic_load(&now.probing))
    return 1;
  if (steps + PROBE_STEPS >= next && !atomic_exchange(&now.probing, 1) &&
      given.create_thread(&thread, given.thread_attributes, probe, NULL))
    atomic_store(&now.probing, 0);
  return 0;
}

static void act(uint64_t steps, uint64_t *next) {
  if (!is_waited_for(steps, *next))
    return;
  if (steps >= *next) {
    ask();
    *next = 2 * steps;
  }
  if (steps >= given.report && !atomic_exchange(&now.reported, 1))
    report(given.reported);
  if (given.last && steps >= given.last) {
    report(given.ended);
    call(EXIT_GROUP, (long)given.status, 0, 0, 0);
  }
}

static void *watch(void *unused) {
  uint64_t all = ~(3ul << 31), steps = 0, next = FIRST_STEPS, idle = 0; /* signals 32 and 33 are of libc */
  call(SIGPROCMASK, 2 /* SIG_SETMASK */, (long)&all, 0, sizeof all);
  int seen = progress();
  while (given.is_initialized()) {
    sleep_ms(STEP_MS);
    if (atomic_exchange(&now.again, 0))
      given.add_pending_call(wait_for_beginning, NULL);
    if (atomic_load(&now.within) <= 0 || seen != progress()) {
      idle = seen == progress() ? idle + 1 : 0;
      seen = progress();
      steps = 0;
      /* After the first time the next wait is the same one. */
      next = atomic_load(&now.let_go) ? 1 : FIRST_STEPS;
      if (idle > IDLE_STEPS && atomic_load(&now.within) <= 0)
        rest(seen), idle = 0;
    } else {
      act(++steps, &next);
    }
  }
  return unused;
}
