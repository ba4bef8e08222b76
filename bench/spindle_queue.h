/*
 * spindle_queue.h -- the requests that wait for one drive, in order of address.
 *
 * A queue begins as zeroes; queue_release frees it with its parts. Inserting copies a part,
 * removing hands the copy over. The model's lock is held. Errors: -1 if memory is short.
 */
#ifndef SPINDLE_QUEUE_H
#define SPINDLE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model_op;

/* What a request has to do on one drive; addresses are the drive's. */
struct part {
    uint64_t addr, len;
    int64_t arrival;
    struct model_op *op; /* NULL: nobody waits */
    bool is_write;
    bool is_buffered; /* counts in the write buffer */
    bool is_commit;
};

struct queue {
    struct part **parts; /* by address; those of the write buffer do not overlap */
    size_t n, room;
};

/* The first part that ends behind addr; only of parts that do not overlap. */
size_t queue_find(const struct queue *queue, uint64_t addr);

/* The first part that begins at addr or behind. */
size_t queue_find_begin(const struct queue *queue, uint64_t addr);

size_t queue_oldest(const struct queue *queue);

int queue_insert(struct queue *queue, struct part part);
struct part *queue_remove(struct queue *queue, size_t i);

/* Adds a place to part i - 1 if that ends where it begins, or to part i if that begins where it
 * ends; false if neither does or the sum would be too long for one request. */
bool queue_merge(struct queue *queue, size_t i, uint64_t addr, uint64_t len);

void queue_release(struct queue *queue);

#endif
