/*
 * run_writer.h -- merges sorted sort buffers into one run and writes it to the store.
 *
 * A run is cut into *spill chunks*, at bounds that cut all of its sort buffers. For each chunk a
 * worker merges one slice of each sort buffer, cuts the result into blocks and compresses them. A
 * large run becomes several files, each with a range of its keys: a thread per file puts its chunks
 * into the store in order. A single thread would take 0.15 s of CPU per million records, which
 * limits loading to 10 cores.
 *
 * Threads: one.
 */
#ifndef ROCKSORT_SPILL_RUN_WRITER_H
#define ROCKSORT_SPILL_RUN_WRITER_H

#include "os/thread_pool.h"
#include "spill/memory_budget.h"
#include "spill/record_observers.h"
#include "spill/run_label.h"
#include "spill/run_store.h"
#include "spill/sort_buffer.h"
#include "spill/temp_codec.h"

struct run_writer_settings {
    struct threads *threads;
    const struct sort_rules *rules;
    struct run_store *store;
    const struct record_observers *observers;   /* of its records */
    struct memory_budget budget;
    struct run_label label;     /* without open_bytes, which the run sets */
    enum temp_codec codec;
    size_t block_bytes;         /* uncompressed size of a block */
    size_t record_growth;       /* bytes by which a record may grow when it is read */
    unsigned n_files;           /* maximum number of files */
};

/*
 * Writes the sort buffers as a run, again if the store says so. They must not change meanwhile.
 * Returns 0 and the *stored run, which is not committed yet, or -1 after a message and
 * thread_pool_fail. Sets *open_bytes to the memory for the run's open blocks in the merge: the size
 * of its largest block of several records, uncompressed and with the tags that records may get, and
 * half as much for each further file, of which only a compressed block is in memory.
 */
int run_writer_write(const struct run_writer_settings *settings,
                     struct sort_buffer *const *buffers, size_t n_buffers,
                     struct stored_run **stored, size_t *open_bytes);

#endif
