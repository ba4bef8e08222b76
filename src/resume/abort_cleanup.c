/* abort_cleanup.c -- see abort_cleanup.h. */
#include "resume/abort_cleanup.h"

#include "os/exception_guard.h"
#include "os/temp_dir.h"
#include "util/diag.h"

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
    if (keep_directories)
        checkpoint_writer_remove_unlisted(cleanup->checkpoint);
    else
        checkpoint_writer_remove_directories(cleanup->checkpoint);
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

/* Called by the thread of signals.h. */
static enum signal_answer on_signal(void *arg, int signal_number)
{
    struct abort_cleanup *cleanup = arg;
    thread_pool_lock(cleanup->threads);
    bool goes_on = signal_number ? stop_reading(cleanup, signal_number) : !hangs_on_input(cleanup);
    if (goes_on) {
        thread_pool_unlock(cleanup->threads);
        return SIGNAL_ASK_AGAIN;
    }
    clean_up(cleanup, signal_number ? signal_number : cleanup->totals->stop_signal);
    return SIGNAL_DIE;
}

int abort_cleanup_watch(struct abort_cleanup *cleanup)
{
    cleanup->signals = (struct signal_watch){.on_signal = on_signal, .arg = cleanup};
    int error = signals_watch(&cleanup->signals);
    if (error) {
        diag_no_thread(error);
        return -1;
    }
    exception_guard_begin(after_exception, cleanup);
    return 0;
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

void abort_cleanup_tell_complete(const struct abort_cleanup *cleanup)
{
    if (cleanup->outputs->state == OUTPUT_SET_NAMED && signals_wait())
        diag_left("ended by a signal after the last record was written: '%s' is complete",
                  cleanup->outputs->output);
}
