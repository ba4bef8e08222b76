/* early_end.c -- see early_end.h. */
#include "pipeline/early_end.h"

#include "machine/exception_guard.h"
#include "util/diag.h"

#include <unistd.h>

/* Removes what a run that ends at once would leave. The lock is held, and stays so: no thread makes
   another file or directory meanwhile. */
static void remove_temporaries(struct early_end *end, bool keep_directories)
{
    crew_fail_locked(end->crew);
    diag_silence();             /* the other threads will miss their files: that is no news */
    diag_end_status();
    if (end->output->temporary) (void)unlink(end->output->temporary);
    if (end->index->temporary) (void)unlink(end->index->temporary);
    if (keep_directories)
        checkpoint_writer_remove_unlisted(end->checkpoint);
    else
        checkpoint_writer_remove_directories(end->checkpoint);
}

/* With the lock held: tells the user what becomes of the temporary directories, unless it is what
   the user has asked for. Who reads the output may have failed, which is nobody's wish. */
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

/* For exception_guard.h. It may be any thread, and it may have the lock. */
static void after_exception(void *arg)
{
    enum { LOCK_SECONDS = 5 };  /* who has it may be waiting for a lock of ours, in RocksDB */
    struct early_end *end = arg;
    (void)crew_lock_within(end->crew, LOCK_SECONDS);
    clean_up(end, 0);
}

/* With the lock held: has the reader end and what came be written, since what memory holds is worth
   a moment. False if it is not, or if that has been tried before. */
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

/* With the lock held: true if reading has been told to end, and waits, as far as one knows, for the
   input. */
static bool hangs_on_input(const struct early_end *end)
{
    const struct load_counts *counts = load_totals_locked(end->totals);
    return counts->is_loading && !counts->input_is_cut && !batch_pool_reader_waits(end->pool);
}

/* For signals.h. */
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

void early_end_hold(struct early_end *end)
{
    signals_hold(&end->signals);
}

bool early_end_after_failure(struct early_end *end, bool lost_reader)
{
    int signal_number = lost_reader ? SIGPIPE : 0;
    crew_lock(end->crew);       /* the ender of runs counts on until it is closed */
    unsigned n_durable = temp_store_n_durable(end->store);
    bool stay = checkpoint_writer_keeps(end->checkpoint, signal_number, n_durable);
    tell(end, signal_number, stay, n_durable);
    crew_unlock(end->crew);
    return stay;
}

void early_end_is_over(void)
{
    exception_guard_end();
}

void early_end_restore(const struct early_end *end)
{
    signals_restore(&end->signals);
}
