/*
 * spindle_queue.h -- the requests that wait for one drive, in order of address.
 *
 * A queue begins as zeroes; queue_release frees it with its parts. queue_insert copies a part, and
 * queue_remove gives the copy to the caller, who frees it. Callers hold the model's lock. Errors:
 * -1 if memory is short.
 */
#ifndef SPINDLE_QUEUE_H
#define SPINDLE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model_op;

/* What a request has to do on one drive. Addresses are those of the drive. */
struct part {
    uint64_t addr, len;
    int64_t arrival;
    struct model_op *op; /* NULL: no request waits for it */
    bool is_write;
    bool is_buffered; /* counts in the write buffer */
    bool is_commit;
};

struct queue {
    struct part **parts; /* by address; those of a write buffer do not overlap */
    size_t n, room;
};

/* The first part that ends after addr. Only for queues whose parts do not overlap. */
size_t queue_find(const struct queue *queue, uint64_t addr);

/* The first part that begins at addr or later. */
size_t queue_find_begin(const struct queue *queue, uint64_t addr);

size_t queue_oldest(const struct queue *queue);

int queue_insert(struct queue *queue, struct part part);
struct part *queue_remove(struct queue *queue, size_t i);

/* Adds the place to part i - 1 if that part ends where the place begins, or to part i if that part
 * begins where the place ends. False if neither does, or if the sum were too long for one request.
 */
bool queue_merge(struct queue *queue, size_t i, uint64_t addr, uint64_t len);

void queue_release(struct queue *queue);

#endif
