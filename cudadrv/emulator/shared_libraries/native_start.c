/* Gives a process that runs no Python an interpreter at its first driver call.

   `python -m cudadrv emulate --native` builds this file and preloads the library into each process
   of its command. The emulator's libcuda.so.1 and libnvidia-ml.so.1 find the four functions by their
   names, and call them before the first function of the driver runs. In a process of Python they
   lead to Python's own functions.

   LIBRARY, HOME and PREPARE are texts: the file of libpython, the folder of Python's library, and
   statements that set the path of imports. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*function)(void);

static struct {
  int (*is_initialized)(void);
  int (*ensure)(void);
  int (*run)(const char *);
  void (*release)(int);
} python;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *found(void *library, const char *name) {
  return dlsym(library, name);
}

static int find(void *library) {
  *(void **)&python.is_initialized = found(library, "Py_IsInitialized");
  *(void **)&python.ensure = found(library, "PyGILState_Ensure");
  *(void **)&python.run = found(library, "PyRun_SimpleString");
  *(void **)&python.release = found(library, "PyGILState_Release");
  return python.is_initialized && python.ensure && python.run && python.release;
}

/* A value of the environment during the initialisation; the program's own comes back after it. */
static char *set(const char *name, const char *value) {
  const char *former = getenv(name);
  char *kept = former ? strdup(former) : NULL;
  setenv(name, value, 1);
  return kept;
}

static void restore(const char *name, char *kept) {
  if (kept)
    setenv(name, kept, 1);
  else
    unsetenv(name);
  free(kept);
}

/* The status of a process with findings, after the program's own handlers and destructors, most of
   which are registered later than this one. */
static int status;

static void exit_with_status(void) {
  if (status) {
    fflush(NULL);
    _exit(status);
  }
}

__attribute__((constructor)) static void load(void) { atexit(exit_with_status); }

void cudadrv_exit_with(int wanted) { status = wanted; }

/* At the end of the process: queued work runs, and findings are reported, as at Python's end. */
static void end(void) {
  int state = python.ensure();
  python.run("import atexit; atexit._run_exitfuncs()");
  python.release(state);
}

/* The driver does not work in a forked child of a process that has used it. */
static void end_in_child(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  function gone = library ? (function)dlsym(library, "cudadrv_end") : NULL;
  if (gone)
    gone();
}

static void initialize(void *library) {
  void (*initialize_ex)(int) = (void (*)(int))dlsym(library, "Py_InitializeEx");
  void *(*save)(void) = (void *(*)(void))dlsym(library, "PyEval_SaveThread");
  char *locale = setlocale(LC_CTYPE, NULL), *kept_locale = locale ? strdup(locale) : NULL;
  char *home = set("PYTHONHOME", HOME);
  char *without = set("CUDADRV_NO_STAND_IN", "1"); /* of sitecustomize: the path is not set yet */
  initialize_ex(0);                                /* without handlers of signals */
  python.run("import os; [os.environ.pop(name, None) for name in "
             "('CUDADRV_NO_STAND_IN', 'PYTHONHOME')]"); /* of which Python has a copy */
  restore("CUDADRV_NO_STAND_IN", without);
  restore("PYTHONHOME", home);
  python.run(PREPARE);
  if (kept_locale)
    setlocale(LC_CTYPE, kept_locale);
  free(kept_locale);
  save();
  atexit(end);
  pthread_atfork(NULL, NULL, end_in_child);
}

static void start(void) {
  if (find(RTLD_DEFAULT))
    return;
  void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);
  if (library && find(library))
    initialize(library);
  else
    fprintf(stderr, "cudadrv: no emulator in this process: %s\n",
            library ? "libpython lacks functions" : dlerror());
}

int cudadrv_is_initialized(void) {
  pthread_once(&once, start);
  return python.is_initialized ? python.is_initialized() : 0;
}

int cudadrv_ensure(void) { return python.ensure(); }

int cudadrv_run(const char *statement) { return python.run(statement); }

void cudadrv_release(int state) { python.release(state); }
