/*
 * run_writer.h -- writes sorted sort buffers as one run into the store.
 *
 * A run is cut into *packs*, at places where all of its sort buffers can be cut. For each pack a
 * worker merges one slice of each sort buffer, cuts the result into blocks and compresses them. A
 * large run becomes several files, each with a range of its keys: each file has a thread that puts
 * its packs into the store in order. One thread would take 0.15 s of CPU for each million records,
 * so loading would use 10 cores at most.
 *
 * Order of calls: create; write, again and again while it returns RUN_STORE_AGAIN; destroy. One
 * thread makes these calls. The sort buffers stay as they are until then.
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

struct run_writer;

struct run_writer_settings {
    struct threads *threads;
    const struct sort_rules *rules;
    struct run_store *store;
    const struct record_observers *observers;   /* of its records */
    struct memory_budget budget;
    struct run_label label;     /* but open_bytes, which the run sets */
    enum temp_codec codec;
    size_t block_bytes;         /* uncompressed size of a block */
    size_t record_growth;       /* by so many bytes a record may get longer when it is read */
    unsigned n_files;           /* at most so many */
};

struct run_writer *run_writer_create(const struct run_writer_settings *settings,
                                     struct sort_buffer *const *buffers, size_t n_buffers);

/* NULL is accepted. */
void run_writer_destroy(struct run_writer *run);

/* Writes the run. Returns 0 and the *stored run, which has not ended yet; RUN_STORE_AGAIN: call it
   again; or RUN_STORE_ERROR after a message and thread_pool_fail. */
int run_writer_write(struct run_writer *run, struct stored_run **stored);

/* When it is written: how many bytes its blocks have that are open at a time in the merge. This is
   the size of its largest block, uncompressed and with the tags that records may get; but blocks of
   one record are not counted. Each further file has one block in memory as it was stored, which
   counts half as much. */
size_t run_writer_open_bytes(const struct run_writer *run);

#endif
