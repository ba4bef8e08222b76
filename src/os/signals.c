/* signals.c -- see signals.h. */
#define _GNU_SOURCE             /* sigandset */
#include "os/signals.h"

#include "os/thread_pool.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/*
 * Lists the signals that end a run, and SIGURG, which ends the thread below: no program sends it,
 * and unlike a real-time signal it cannot fail to be queued (ulimit -i). Ignored signals stay
 * ignored, as SIGHUP under nohup. Grid Engine announces with SIGUSR1 and SIGUSR2 that it will stop
 * or kill a job; Slurm sends the signal that the user chose.
 */
static void list_signals(sigset_t *signals)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGUSR1, SIGUSR2};
    (void)sigemptyset(signals);
    (void)sigaddset(signals, SIGURG);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        struct sigaction action;
        if (sigaction(ending[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            (void)sigaddset(signals, ending[i]);
    }
}

static _Noreturn void die_of(int signal_number)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t signals;
    (void)sigaction(signal_number, &action, NULL);
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, signal_number);
    (void)pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    (void)raise(signal_number);
    _exit(128 + signal_number);
}

static void *wait_for_signals(void *arg)
{
    /* Schedulers kill some 10 to 30 seconds after the first signal. */
    static const struct timespec patience = {.tv_sec = 3};
    struct signal_watch *watch = arg;
    sigset_t signals;
    int last = 0;
    bool ask_again = false;
    list_signals(&signals);
    for (;;) {
        int number = ask_again ? sigtimedwait(&signals, NULL, &patience)
                               : sigwaitinfo(&signals, NULL);
        if (atomic_load(&watch->is_over)) {
            /* A signal that came at the same time stays pending, like later ones. */
            if (number > 0 && number != SIGURG) (void)kill(getpid(), number);
            return NULL;
        }
        if (number == SIGURG || (number < 0 && errno != EAGAIN)) continue;
        if (number > 0) last = number;
        enum signal_answer answer = watch->on_signal(watch->arg, number > 0 ? number : 0);
        if (answer == SIGNAL_DIE) die_of(last);
        ask_again = answer == SIGNAL_ASK_AGAIN;
    }
}

/* Blocks the signals in this thread and in all threads that it starts. */
static int block_signals(struct signal_watch *watch)
{
    sigset_t signals;
    list_signals(&signals);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (sigaction(SIGPIPE, &ignore, &watch->pipe_before) != 0 ||
        sigaction(SIGXFSZ, &ignore, NULL) != 0)
        return errno;
    return pthread_sigmask(SIG_BLOCK, &signals, &watch->before);
}

int signals_watch(struct signal_watch *watch)
{
    int error = block_signals(watch);
    return error ? error : thread_start(&watch->thread, "signals", wait_for_signals, watch);
}

void signals_hold(struct signal_watch *watch)
{
    atomic_store(&watch->is_over, true);
    (void)pthread_kill(watch->thread, SIGURG);
    (void)pthread_join(watch->thread, NULL);
}

bool signals_wait(void)
{
    sigset_t wanted, waiting, both;
    list_signals(&wanted);
    (void)sigdelset(&wanted, SIGURG);
    return sigpending(&waiting) == 0 && sigandset(&both, &wanted, &waiting) == 0 &&
           !sigisemptyset(&both);
}

void signals_restore(const struct signal_watch *watch)
{
    (void)pthread_sigmask(SIG_SETMASK, &watch->before, NULL);
    (void)sigaction(SIGPIPE, &watch->pipe_before, NULL);
}
