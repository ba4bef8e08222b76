/*
 * signals.h -- the signals that end a run, taken by a thread of its own.
 *
 * htslib restarts interrupted reads and writes, so that a flag set by a handler would not be seen
 * while the aligner or the program that reads our output pauses. So a thread waits for signals
 * (sigwait). It calls on_signal, which cleans up and answers whether the process is to die.
 *
 * SIGPIPE and SIGXFSZ are ignored meanwhile: a broken pipe is a write error, and so is a file
 * beyond ulimit -f.
 *
 * Order of calls: watch, before any other thread is started, which inherit the blocked signals;
 * hold; restore. By one thread.
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
    SIGNAL_DIE,                 /* all is cleaned up: let the process die of the signal */
};

struct signal_watch {           /* starts as {on_signal, arg} */
    /* Called by the thread with a signal; or with 0, after SIGNAL_ASK_AGAIN, when no other signal
       has come for some seconds. The process dies of the last signal that was not 0. */
    enum signal_answer (*on_signal)(void *arg, int signal_number);
    void *arg;
    atomic_bool is_over;
    sigset_t before;
    struct sigaction pipe_before;
    pthread_t thread;
};

/* Returns 0 or an errno. */
int signals_watch(struct signal_watch *watch);

/* From here on signals wait. */
void signals_hold(struct signal_watch *watch);

/* True if a signal waits. */
bool signals_wait(void);

/* They take their former course; those that have waited, too. */
void signals_restore(const struct signal_watch *watch);

#endif
