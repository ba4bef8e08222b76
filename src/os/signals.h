/*
 * signals.h -- handles the signals that end a run in a thread of its own.
 *
 * htslib restarts interrupted reads and writes, so a flag set by a handler would not be seen while
 * the program before or after us in a pipe pauses. So a thread waits for signals (sigwait). It
 * calls on_signal, which cleans up and returns whether the process must die.
 *
 * SIGPIPE and SIGXFSZ are ignored meanwhile: a broken pipe, or a file beyond ulimit -f, is a write
 * error.
 *
 * Order of calls: watch, before any other thread starts, because threads inherit the blocked
 * signals; hold; restore. All by one thread.
 */
#ifndef ROCKSORT_OS_SIGNALS_H
#define ROCKSORT_OS_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

/* What to do after a signal. */
enum signal_answer {
    SIGNAL_GO_ON,
    SIGNAL_ASK_AGAIN,           /* go on, but ask again in a moment, with the number 0 */
    SIGNAL_DIE,                 /* all is cleaned up: kill the process with the signal */
};

struct signal_watch {           /* starts as {on_signal, arg} */
    /* The thread calls it with a signal; or with 0 after SIGNAL_ASK_AGAIN, if no other signal came
       for some seconds. The process dies of the last signal that was not 0. */
    enum signal_answer (*on_signal)(void *arg, int signal_number);
    void *arg;
    atomic_bool is_over;
    sigset_t before;
    struct sigaction pipe_before;
    pthread_t thread;
};

/* Returns 0 or an errno. */
int signals_watch(struct signal_watch *watch);

/* Ends the thread. From now on signals stay pending. */
void signals_hold(struct signal_watch *watch);

/* True if a signal is pending. */
bool signals_wait(void);

/* Restores the former handling of signals; pending ones are delivered. */
void signals_restore(const struct signal_watch *watch);

#endif
