/*
 * progress.h -- shows the progress of a sort, measures its phases, and takes samples.
 *
 * A thread copies the counters of the stages, and prints and samples them without holding a lock of
 * the sort; if nothing is to be shown or sampled there is no thread. It has a condition variable of
 * its own, so that it ends at once, and finished jobs do not wake it.
 *
 * The line is drawn only while this process is in the foreground of the terminal: a background
 * process that writes may be stopped. Of two sorts in one pipe, the one that holds a lock of the
 * terminal draws until it ends, then the other.
 *
 * Order of calls: start; enter; stop; finish. Threads: one. The other functions are pure.
 */
#ifndef ROCKSORT_SORT_PROGRESS_H
#define ROCKSORT_SORT_PROGRESS_H

#include "sort/sort_context.h"

struct progress;

/* Starts at the beginning of a sort. Puts phases and samples into its report. */
struct progress *progress_start(const struct sort_context *sort);

/* Notes that the sort enters a phase, perhaps the current one. */
void progress_enter(struct progress *progress, enum sort_phase phase);

/* Ends the thread; shows nothing more. */
void progress_stop(struct progress *progress);

/* Ends the last phase, after the sort has released its objects. Frees the progress. */
void progress_finish(struct progress *progress);

/* ---- one line of text ---- */

struct progress_facts {
    struct sample now;
    double phase_seconds;       /* since the phase began */
    bool writes_index;
    bool merges_inputs;         /* --merge: the merge reads the inputs */
    double bytes_per_second;    /* from progress_rate: read or merged; 0: unknown */
};

/* Uncompressed bytes a second: an exponential moving average. Each phase starts a new rate, with
   the current time and bytes. */
struct progress_rate {
    double seconds;             /* time of the last update; 0: none */
    uint64_t n_bytes;
    double weight;              /* of all updates together: 0 to 1 */
    double bytes_per_second;
};

/* Call this whenever the counters were copied, before progress_line. */
void progress_rate_update(struct progress_rate *rate, double seconds, uint64_t n_bytes);

/* The completed share of the phase, 0 to 1; negative: unknown. */
double progress_share(const struct progress_facts *facts);

/* Seconds until the phase ends at the current rate; negative: unknown. */
double progress_seconds_left(const struct progress_facts *facts);

/* Makes the line, in ASCII and without a newline, of at most `width` columns and room - 1 bytes.
   Omits less important parts that do not fit. Returns its length. */
size_t progress_line(char *line, size_t room, size_t width, const struct progress_facts *facts);

#endif
