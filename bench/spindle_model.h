/*
 * spindle_model.h -- the modelled device: how long requests take, in which order, and what is
 * counted.
 *
 * Calls: model_create; model_start, after fork, which starts the clock's thread; then requests,
 * from any thread; model_destroy when no request is under way. A request is a struct model_op of
 * the caller, with the places that it touches, given to model_read, _write, _sync or _drain. When
 * the device has done it, op->done(op) is called without a lock: by the same thread before the call
 * returns, or later by the clock's thread.
 *
 * Errors: NULL or -1 if memory is short when it is created or started. A request for which memory
 * is short is done at once, without being modelled.
 */
#ifndef SPINDLE_MODEL_H
#define SPINDLE_MODEL_H

#include "spindle_device.h"
#include "spindle_space.h"

#define SMALL_READ_BYTES (UINT64_C(32) << 10)

/* Counted since the last reset. Requests are what drives get, after merging and splitting. */
struct counters {
    uint64_t reads, writes, read_bytes, write_bytes;
    uint64_t seeks, read_seeks; /* positioned the head */
    uint64_t skips;             /* passed over a gap, which took less time than a seek */
    uint64_t consecutive;       /* began where the drive's last request ended */
    uint64_t small_reads, syncs;
    int64_t read_busy_ns, write_busy_ns, small_read_busy_ns; /* service, summed over drives */
    int64_t read_wait_ns;                                    /* from arrival to completion */
    uint64_t buffer_hits, buffer_hit_bytes; /* read from the write buffer, no device request */
    uint64_t absorbed_bytes;                /* overwritten in the write buffer */
    uint64_t discarded_bytes;               /* deleted or truncated in the write buffer */
    uint64_t stalls;                        /* writes that found the write buffer full */
    int64_t stall_ns;
    uint64_t max_buffered_bytes;
    int64_t begin_ns, end_ns; /* of the counting; CLOCK_MONOTONIC */
};

struct model_op {
    void (*done)(struct model_op *op);
    /* Only the model uses these. */
    struct model_op *next;
    unsigned n_left;
    bool commits;
    int64_t arrival;
    /* The caller sets these. */
    size_t n_ranges;
    struct range *ranges;
};

struct model;

int64_t model_now(void);

struct model *model_create(const struct device *device, uint64_t write_buffer_bytes);
int model_start(struct model *model);
void model_destroy(struct model *model);

void model_read(struct model *model, struct model_op *op);

/* Puts data into the write buffer, and is done when it has room. If through, it writes to the
 * device, and is done when the device has them. */
void model_write(struct model *model, struct model_op *op, bool through);

/* Done when the device has the data of the ranges that were in the write buffer and, if commit, the
 * journal. */
void model_sync(struct model *model, struct model_op *op, bool commit);

/* Done when the write buffer is empty. */
void model_drain(struct model *model, struct model_op *op);

/* Tells that the place is free: data for it in the write buffer are never written. */
void model_discard(struct model *model, struct range range);

/* Copies the counters; with reset, counting begins again from 0. */
void model_count(struct model *model, struct counters *counters, bool reset);

#endif
