/*
 * abort_cleanup.c -- see abort_cleanup.h.
 *
 * htslib restarts interrupted reads and writes, so a flag set by a handler would not be seen while
 * the program before or after us in a pipe pauses. So a thread waits for signals (sigwait).
 */
#define _GNU_SOURCE             /* sigandset */
#include "resume/abort_cleanup.h"

#include "os/exception_guard.h"
#include "os/temp_dir.h"
#include "util/diag.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/* Removes temporary files and directories before the process ends. With the lock held, which is
   never released, so that no other thread can make more of them. */
static void remove_temporaries(struct abort_cleanup *cleanup, bool keep_directories)
{
    thread_pool_fail_locked(cleanup->threads);
    diag_silence();             /* other threads would print errors about missing files */
    diag_end_status();
    output_set_unlink(cleanup->outputs);
    if (cleanup->outputs->state != OUTPUT_SET_NAMING) (void)temp_dir_remove(cleanup->groups->path);
    checkpoint_writer_remove_directories(cleanup->checkpoint, keep_directories);
}

/* With the lock held: tells the user what happens to the temporary directories, unless they are
   removed because the user ended the sort. SIGPIPE is reported: the user may not know that the
   reader of the output has failed. */
static void tell(const struct abort_cleanup *cleanup, int signal_number, bool kept,
                 unsigned n_durable)
{
    if (kept || signal_number == SIGPIPE || !checkpoint_writer_is_wish(signal_number))
        checkpoint_writer_tell(cleanup->checkpoint, kept, n_durable);
}

/* With the lock held: cleans up, and tells the user what happens to the temporary directories. */
static void clean_up(struct abort_cleanup *cleanup, int signal_number)
{
    unsigned n_durable = temp_store_totals(cleanup->store)->n_durable;
    bool kept = checkpoint_writer_keeps(cleanup->checkpoint, signal_number, n_durable);
    remove_temporaries(cleanup, kept);
    tell(cleanup, signal_number, kept, n_durable);
}

/* Called by exception_guard.h in any thread, which may already hold the lock. */
static void after_exception(void *arg)
{
    enum { LOCK_SECONDS = 5 };  /* its holder may wait, in RocksDB, for a lock that this thread
                                   holds */
    struct abort_cleanup *cleanup = arg;
    (void)thread_pool_lock_within(cleanup->threads, LOCK_SECONDS);
    /* Only an index or a report failed: publish the outputs without it. */
    if (cleanup->outputs->state == OUTPUT_SET_COMPLETE) (void)output_set_publish(cleanup->outputs);
    clean_up(cleanup, 0);
}

/* With the lock held: stops the reader, so that the records read so far are saved. Returns false if
   they are not to be saved, or if the reader was already told to stop. */
static bool stop_reading(struct abort_cleanup *cleanup, int signal_number)
{
    const struct load_counts *counts = load_totals_locked(cleanup->totals);
    bool is_early = (counts->is_loading || counts->input_is_cut) &&
                    !checkpoint_writer_is_loaded(cleanup->checkpoint);
    if (!is_early || !checkpoint_writer_saves_part(cleanup->checkpoint) ||
        cleanup->totals->stop_signal)
        return false;
    cleanup->totals->stop_signal = signal_number;
    diag_note("ended by a signal: what has arrived is being saved; another one ends at once");
    return true;
}

/* With the lock held: true if the reader, told to stop, seems to be blocked on input. */
static bool hangs_on_input(const struct abort_cleanup *cleanup)
{
    const struct load_counts *counts = load_totals_locked(cleanup->totals);
    return counts->is_loading && !counts->input_is_cut &&
           !sort_buffer_pool_reader_waits(cleanup->pool);
}

/* ---- signals ---- */

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

/* Handles a signal; or 0 if no other signal came for some seconds after one that stopped the
   reader. Ends the process, with the last signal that was not 0, unless the reader is being
   stopped. */
static void on_signal(struct abort_cleanup *cleanup, int signal_number, int last)
{
    thread_pool_lock(cleanup->threads);
    if (signal_number ? stop_reading(cleanup, signal_number) : !hangs_on_input(cleanup)) {
        thread_pool_unlock(cleanup->threads);
        return;
    }
    clean_up(cleanup, signal_number ? signal_number : cleanup->totals->stop_signal);
    die_of(last);
}

static void *wait_for_signals(void *arg)
{
    /* Schedulers kill 10 to 30 seconds after the first signal. */
    static const struct timespec patience = {.tv_sec = 3};
    struct abort_cleanup *cleanup = arg;
    sigset_t signals;
    int last = 0;
    list_signals(&signals);
    for (;;) {
        int number = last ? sigtimedwait(&signals, NULL, &patience) : sigwaitinfo(&signals, NULL);
        if (atomic_load(&cleanup->is_over)) {
            /* A signal that came at the same time stays pending, like later ones. */
            if (number > 0 && number != SIGURG) (void)kill(getpid(), number);
            return NULL;
        }
        if (number == SIGURG || (number < 0 && errno != EAGAIN)) continue;
        if (number > 0) last = number;
        on_signal(cleanup, number > 0 ? number : 0, last);
    }
}

/* Blocks the signals in this thread and in all threads that it starts. Returns 0 or an errno. */
static int block_signals(struct abort_cleanup *cleanup)
{
    sigset_t signals;
    list_signals(&signals);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (sigaction(SIGPIPE, &ignore, &cleanup->pipe_before) != 0 ||
        sigaction(SIGXFSZ, &ignore, NULL) != 0)
        return errno;
    return pthread_sigmask(SIG_BLOCK, &signals, &cleanup->before);
}

int abort_cleanup_watch(struct abort_cleanup *cleanup)
{
    int error = block_signals(cleanup);
    if (!error) error = thread_start(&cleanup->thread, "signals", wait_for_signals, cleanup);
    if (error) {
        diag_no_thread(error);
        return -1;
    }
    exception_guard_begin(after_exception, cleanup);
    return 0;
}

void abort_cleanup_hold_signals(struct abort_cleanup *cleanup)
{
    atomic_store(&cleanup->is_over, true);
    (void)pthread_kill(cleanup->thread, SIGURG);
    (void)pthread_join(cleanup->thread, NULL);
}

void abort_cleanup_restore_signals(const struct abort_cleanup *cleanup)
{
    (void)pthread_sigmask(SIG_SETMASK, &cleanup->before, NULL);
    (void)sigaction(SIGPIPE, &cleanup->pipe_before, NULL);
}

bool abort_cleanup_after_failure(struct abort_cleanup *cleanup, bool lost_reader)
{
    int signal_number = lost_reader ? SIGPIPE : 0;
    thread_pool_lock(cleanup->threads); /* the run committer may still change the count */
    unsigned n_durable = temp_store_totals(cleanup->store)->n_durable;
    bool stay = checkpoint_writer_keeps(cleanup->checkpoint, signal_number, n_durable);
    tell(cleanup, signal_number, stay, n_durable);
    thread_pool_unlock(cleanup->threads);
    return stay;
}

/* True if a signal is pending. */
static bool signal_waits(void)
{
    sigset_t wanted, waiting, both;
    list_signals(&wanted);
    (void)sigdelset(&wanted, SIGURG);
    return sigpending(&waiting) == 0 && sigandset(&both, &wanted, &waiting) == 0 &&
           !sigisemptyset(&both);
}

void abort_cleanup_tell_complete(const struct abort_cleanup *cleanup)
{
    if (cleanup->outputs->state == OUTPUT_SET_NAMED && signal_waits())
        diag_left("ended by a signal after the last record was written: '%s' is complete",
                  cleanup->outputs->output);
}
