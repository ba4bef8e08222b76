/*
 * signals.c -- signals and exceptions: what a sort that they end leaves behind.
 *
 * Signals are taken by a thread of their own with sigwait: htslib restarts interrupted reads and
 * writes, so that a flag set by a handler would not be seen while the aligner, or whoever reads our
 * output, pauses. The thread removes the temporary files and lets the process die of the signal.
 */
#include "pipeline/pipeline_internal.h"

#include "util/diag.h"

#include <errno.h>
#include <unistd.h>

/*
 * The signals that end a run, and SIGURG, which ends the thread below: nobody else sends it, and
 * unlike one of real time it cannot fail to be queued (ulimit -i). One that is ignored, as
 * SIGHUP under nohup, stays ignored. Grid Engine announces with SIGUSR1 and SIGUSR2 that a job will
 * be stopped or killed, Slurm with whichever it is asked for.
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

/* Removes what a run that ends at once would leave. With the lock held, for good: nobody makes
   another file or directory meanwhile. */
static void remove_temporaries(struct pipeline *p, bool keep_store)
{
    atomic_store(&p->failed, true);
    diag_silence();             /* the other threads will miss their files: no news */
    diag_end_status();
    if (p->output.temporary) (void)unlink(p->output.temporary);
    if (p->index_output.temporary) (void)unlink(p->index_output.temporary);
    for (size_t i = 0; i < p->n_scratch_paths && !keep_store; i++) store_remove_directory(p, i);
}

void clean_up_after_exception(void *arg)
{
    enum { LOCK_SECONDS = 5 };  /* who has it may be waiting for a lock of ours, in RocksDB */
    struct pipeline *p = arg;
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LOCK_SECONDS;
    (void)pthread_mutex_timedlock(&p->lock, &until);
    bool kept = resume_keeps_store(p, 0);
    remove_temporaries(p, kept);
    resume_tell(p, kept);
}

/*
 * With -k, and of an input that cannot be read again, what memory holds is worth a moment: lets the
 * reader end, and what came be written. Returns false if that has been tried before. With the lock
 * held.
 */
static bool stop_reading(struct pipeline *p, int signal_number)
{
    bool is_early = (p->loading || p->input_is_cut) && !p->is_loaded;
    if (!is_early || !resume_saves_part(p) || p->stop_signal) return false;
    atomic_store(&p->stop_signal, signal_number);
    diag_note("ended by a signal: what has arrived is being saved; another one ends at once");
    return true;
}

/* True if reading has been told to end, and waits, as far as one knows, for the input. With the
   lock held. */
static bool hangs_on_input(const struct pipeline *p)
{
    return p->stop_signal && p->loading && !p->input_is_cut && !p->reader_waits;
}

/* Returns the next signal with the lock held; 0 if it is none to die of. */
static int next_signal(struct pipeline *p, const sigset_t *signals)
{
    /* Schedulers kill some 10 to 30 seconds after the first signal. */
    static const struct timespec patience = {.tv_sec = 3};
    bool told = atomic_load(&p->stop_signal) != 0;
    int number = told ? sigtimedwait(signals, NULL, &patience) : sigwaitinfo(signals, NULL);
    bool is_late = number < 0 && errno == EAGAIN;
    pipeline_lock(p);
    if (is_late && hangs_on_input(p)) return p->stop_signal;
    return number < 0 || number == SIGURG || stop_reading(p, number) ? 0 : number;
}

/* Thread that waits for a signal, cleans up and lets the process die of it. */
static void *wait_for_signal(void *arg)
{
    struct pipeline *p = arg;
    sigset_t signals;
    int signal_number;
    list_signals(&signals);
    for (;;) {
        signal_number = next_signal(p, &signals);
        if (signal_number) break;
        bool over = p->over;
        pipeline_unlock(p);
        if (over) return NULL;
    }
    bool kept = resume_keeps_store(p, signal_number);
    remove_temporaries(p, kept);
    if (kept || (signal_number != SIGINT && signal_number != SIGQUIT)) resume_tell(p, kept);
    struct sigaction action = {.sa_handler = SIG_DFL};
    (void)sigaction(signal_number, &action, NULL);
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, signal_number);
    (void)pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    (void)raise(signal_number);
    _exit(128 + signal_number);
}

/* Blocks the signals in this thread, and so in all that it starts. A broken pipe is a write error,
   and so is a file beyond ulimit -f. */
static int block_signals(struct signal_watch *watch)
{
    sigset_t signals;
    list_signals(&signals);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (sigaction(SIGPIPE, &ignore, &watch->pipe_before) != 0 ||
        sigaction(SIGXFSZ, &ignore, NULL) != 0)
        return -1;
    return pthread_sigmask(SIG_BLOCK, &signals, &watch->before);
}

int signals_watch(struct pipeline *p, struct signal_watch *watch)
{
    int error = block_signals(watch);
    return error ? error : pthread_create(&watch->thread, NULL, wait_for_signal, p);
}

void signals_hold(struct signal_watch *watch)
{
    (void)pthread_kill(watch->thread, SIGURG);
    (void)pthread_join(watch->thread, NULL);
}

void signals_restore(const struct signal_watch *watch)
{
    (void)pthread_sigmask(SIG_SETMASK, &watch->before, NULL);
    (void)sigaction(SIGPIPE, &watch->pipe_before, NULL);
}
