/*
 * exception_guard.c -- see exception_guard.h.
 *
 * If no function catches an exception, the C++ library calls the terminate handler at the place
 * where the exception was thrown, before it unwinds the stack. The C++ library is loaded only
 * because RocksDB needs it, so the dynamic linker finds the function that sets the handler by name.
 * The exception is recognised by the mangled name of its type (Itanium C++ ABI).
 *
 * A failed assert of RocksDB (7.8.3: a read that fails while a file is ingested) or of htslib
 * (1.16: a count of references in its CRAM encoder) calls abort in the thread that failed, which
 * holds no lock of the C library. The message blames the innermost library in the stack that our
 * own code called or that started the thread. The C library also calls abort when it finds its heap
 * damaged. Then clean_up may wait forever, so an alarm ends the process after ABORT_SECONDS. A
 * SIGABRT from another process ends this one at once.
 */
#define _GNU_SOURCE             /* RTLD_DEFAULT, dladdr */
#include "os/exception_guard.h"

#include "os/find_function.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The reserve is freed before clean_up, which needs some memory to open directories. */
enum { RESERVE_BYTES = 256 << 10, ABORT_SECONDS = 10 };

typedef void (*terminate_handler)(void);

static struct {
    terminate_handler before;
    struct sigaction abort_before;
    void (*clean_up)(void *arg);
    void *arg;
    void *reserve;
    atomic_bool active;
    atomic_flag entered;
} guard = {.entered = ATOMIC_FLAG_INIT};

static _Thread_local bool cleaning_up;

static bool (*_Atomic explain)(void);   /* see exception_guard_explain */

static terminate_handler set_handler(terminate_handler handler)
{
    terminate_handler (*set_terminate)(terminate_handler) = NULL;
    find_function(RTLD_DEFAULT, "_ZSt13set_terminatePFvvE", &set_terminate);
    return set_terminate ? set_terminate(handler) : NULL;
}

/* The mangled name of the type that was thrown; "" if it is not known. */
static const char *thrown_type(void)
{
    struct type_info {          /* std::type_info */
        void *functions;
        const char *name;
    };
    const struct type_info *(*current_type)(void) = NULL;
    find_function(RTLD_DEFAULT, "__cxa_current_exception_type", &current_type);
    const struct type_info *type = current_type ? current_type() : NULL;
    return type ? type->name : "";
}

enum culprit { UNKNOWN, ROCKSDB, HTSLIB };

static bool is_in(const void *frame, const Dl_info *object, Dl_info *info)
{
    return dladdr(frame, info) && info->dli_fbase == object->dli_fbase;
}

/* Returns which library has called abort. Goes outwards from this function: the frames of the
   handler, which are ours, then those of libraries, up to the next frame of ours. */
static enum culprit find_culprit(void)
{
    enum { MOST_FRAMES = 64 };
    void *frames[MOST_FRAMES];
    Dl_info own, info;
    int n = backtrace(frames, MOST_FRAMES), i = 0;
    if (!dladdr(&guard, &own)) return UNKNOWN;
    while (i < n && !is_in(frames[i], &own, &info)) i++;        /* frames of a sanitizer */
    while (i < n && is_in(frames[i], &own, &info)) i++;
    for (; i < n && !is_in(frames[i], &own, &info); i++) {
        if (!dladdr(frames[i], &info) || !info.dli_fname) continue;
        if (strstr(info.dli_fname, "librocksdb")) return ROCKSDB;
        if (strstr(info.dli_fname, "libhts")) return HTSLIB;
    }
    return UNKNOWN;
}

static void report_abort(void)
{
    enum culprit culprit = find_culprit();
    if (culprit == ROCKSDB)
        diag_error("RocksDB has given up%s; the disk of the temporary data may be faulty",
                   diag_library_words());
    if (culprit == UNKNOWN)
        diag_error("the program has given up (abort)%s; please report this", diag_library_words());
    bool (*print)(void) = atomic_load(&explain);
    if (culprit == HTSLIB && !(print && print()))
        diag_error("htslib has given up%s; an input may be damaged, or htslib has a fault",
                   diag_library_words());
}

static void report(const char *type)
{
    if (strstr(type, "bad_alloc"))
        diag_no_memory();
    else if (strstr(type, "system_error"))
        diag_no_thread(EAGAIN);
    else if (strcmp(type, "told") == 0)
        return;                 /* the message was printed before */
    else if (strcmp(type, "abort") == 0)
        report_abort();
    else
        diag_error("RocksDB ended with an exception (%s); please report this", type);
}

static _Noreturn void end_process(const char *type)
{
    if (cleaning_up) _exit(EXIT_FAILURE);
    /* If a second thread fails, it waits here until the first one ends the process. */
    while (atomic_flag_test_and_set(&guard.entered)) (void)pause();
    cleaning_up = true;
    free(guard.reserve);
    guard.reserve = NULL;
    report(type);
    if (guard.clean_up) guard.clean_up(guard.arg);
    _exit(EXIT_FAILURE);
}

static void on_terminate(void)
{
    end_process(thrown_type());
}

static void on_abort(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_pid != getpid()) {     /* a user wants a core dump, whatever this thread does */
        (void)signal(number, SIG_DFL);
        (void)raise(number);            /* comes when this function returns */
        return;
    }
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(ABORT_SECONDS);
    end_process("abort");
}

void exception_guard_no_memory(void)
{
    if (atomic_load(&guard.active) && !cleaning_up) end_process("bad_alloc");
}

void exception_guard_give_up(void)
{
    if (atomic_load(&guard.active) && !cleaning_up) end_process("told");
}

void exception_guard_explain(bool (*print)(void))
{
    atomic_store(&explain, print);
}

void exception_guard_begin(void (*clean_up)(void *arg), void *arg)
{
    guard.clean_up = clean_up;
    guard.arg = arg;
    guard.reserve = xmalloc(RESERVE_BYTES);
    void *frame;
    (void)backtrace(&frame, 1); /* the first call allocates, which on_abort must not */
    guard.before = set_handler(on_terminate);
    struct sigaction action = {.sa_sigaction = on_abort, .sa_flags = SA_SIGINFO};
    (void)sigaction(SIGABRT, &action, &guard.abort_before);
    atomic_store(&guard.active, true);
    xalloc_on_failure(exception_guard_no_memory);
}

void exception_guard_end(void)
{
    xalloc_on_failure(NULL);
    atomic_store(&guard.active, false);
    if (guard.before) (void)set_handler(guard.before);
    (void)sigaction(SIGABRT, &guard.abort_before, NULL);
    free(guard.reserve);
    guard.reserve = NULL;
    guard.clean_up = NULL;
}
