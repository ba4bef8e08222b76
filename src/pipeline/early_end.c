/* early_end.c -- see early_end.h. */
#include "pipeline/early_end.h"

#include "machine/exception_guard.h"
#include "store/temp_dir.h"
#include "util/diag.h"

#include <unistd.h>

/* Removes what a sort that ends at once would leave. The lock is held and is not released, so that
   no other thread can make another file or directory. */
static void remove_temporaries(struct early_end *end, bool keep_directories)
{
    crew_fail_locked(end->crew);
    diag_silence();             /* other threads will miss their files and print errors */
    diag_end_status();
    output_set_unlink(end->outputs);
    if (end->outputs->state != OUTPUT_SET_NAMING) (void)temp_dir_remove(end->pieces->path);
    if (keep_directories)
        checkpoint_writer_remove_unlisted(end->checkpoint);
    else
        checkpoint_writer_remove_directories(end->checkpoint);
}

/* With the lock held: tells the user what becomes of the temporary directories. Says nothing if
   they are removed because the user ended the sort. After SIGPIPE it does: the user may not know
   that the program that reads the output has failed. */
static void tell(const struct early_end *end, int signal_number, bool kept, unsigned n_durable)
{
    if (kept || signal_number == SIGPIPE || !checkpoint_writer_is_wish(signal_number))
        checkpoint_writer_tell(end->checkpoint, kept, n_durable);
}

/* With the lock held: cleans up, and tells the user what becomes of the temporary directories. */
static void clean_up(struct early_end *end, int signal_number)
{
    unsigned n_durable = temp_store_n_durable(end->store);
    bool kept = checkpoint_writer_keeps(end->checkpoint, signal_number, n_durable);
    remove_temporaries(end, kept);
    tell(end, signal_number, kept, n_durable);
}

/* Called by exception_guard.h, in any thread, which may have the lock already. */
static void after_exception(void *arg)
{
    enum { LOCK_SECONDS = 5 };  /* its holder may wait, in RocksDB, for a lock of this thread */
    struct early_end *end = arg;
    (void)crew_lock_within(end->crew, LOCK_SECONDS);
    /* What failed is an index or a report: outputs stay without it. */
    if (end->outputs->state == OUTPUT_SET_COMPLETE) (void)output_set_publish(end->outputs);
    clean_up(end, 0);
}

/* With the lock held: makes the reader stop, so that the records that came so far are saved.
   Returns false if they are not to be saved, or if the reader was told to stop before. */
static bool stop_reading(struct early_end *end, int signal_number)
{
    const struct load_counts *counts = load_totals_locked(end->totals);
    bool is_early = (counts->is_loading || counts->input_is_cut) &&
                    !checkpoint_writer_is_loaded(end->checkpoint);
    if (!is_early || !checkpoint_writer_saves_part(end->checkpoint) ||
        load_totals_stop_signal(end->totals))
        return false;
    load_totals_stop(end->totals, signal_number);
    diag_note("ended by a signal: what has arrived is being saved; another one ends at once");
    return true;
}

/* With the lock held: true if the reader, which was told to stop, seems to wait for input. */
static bool hangs_on_input(const struct early_end *end)
{
    const struct load_counts *counts = load_totals_locked(end->totals);
    return counts->is_loading && !counts->input_is_cut && !batch_pool_reader_waits(end->pool);
}

/* Called by the thread of signals.h. */
static enum signal_answer on_signal(void *arg, int signal_number)
{
    struct early_end *end = arg;
    crew_lock(end->crew);
    bool goes_on = signal_number ? stop_reading(end, signal_number) : !hangs_on_input(end);
    if (goes_on) {
        crew_unlock(end->crew);
        return SIGNAL_ASK_AGAIN;
    }
    clean_up(end, signal_number ? signal_number : load_totals_stop_signal(end->totals));
    return SIGNAL_DIE;
}

int early_end_watch(struct early_end *end)
{
    end->signals = (struct signal_watch){.on_signal = on_signal, .arg = end};
    int error = signals_watch(&end->signals);
    if (error) {
        diag_no_thread(error);
        return -1;
    }
    exception_guard_begin(after_exception, end);
    return 0;
}

bool early_end_after_failure(struct early_end *end, bool lost_reader)
{
    int signal_number = lost_reader ? SIGPIPE : 0;
    crew_lock(end->crew);       /* the ender of runs may still change the count */
    unsigned n_durable = temp_store_n_durable(end->store);
    bool stay = checkpoint_writer_keeps(end->checkpoint, signal_number, n_durable);
    tell(end, signal_number, stay, n_durable);
    crew_unlock(end->crew);
    return stay;
}

void early_end_tell_complete(const struct early_end *end)
{
    if (end->outputs->state == OUTPUT_SET_NAMED && signals_wait())
        diag_left("ended by a signal after the last record was written: '%s' is complete",
                  end->outputs->output);
}
