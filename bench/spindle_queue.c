/*
 * spindle_queue.c -- see spindle_queue.h. The parts are a sorted array of pointers. A write buffer
 * has 64 parts of 1 MiB, at worst 16,384 of 4 KiB; to move half of those pointers takes 5 us.
 */
#include "spindle_queue.h"

#include <stdlib.h>
#include <string.h>

/* The kernel's limit, max_sectors_kb, was 512 in 2014 and is 1280 today. */
#define MAX_MERGED_BYTES (UINT64_C(1) << 20)

size_t queue_find(const struct queue *queue, uint64_t addr)
{
    size_t low = 0, high = queue->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (queue->parts[mid]->addr + queue->parts[mid]->len > addr)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

size_t queue_find_begin(const struct queue *queue, uint64_t addr)
{
    size_t low = 0, high = queue->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (queue->parts[mid]->addr >= addr)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

int queue_insert(struct queue *queue, struct part part)
{
    if (queue->n == queue->room) {
        size_t room = queue->room ? queue->room * 2 : 64;
        struct part **parts = realloc(queue->parts, room * sizeof(struct part *));
        if (!parts) return -1;
        queue->parts = parts;
        queue->room = room;
    }
    struct part *copy = malloc(sizeof *copy);
    if (!copy) return -1;
    *copy = part;
    size_t i = queue_find_begin(queue, part.addr);
    memmove(queue->parts + i + 1, queue->parts + i, (queue->n - i) * sizeof(struct part *));
    queue->parts[i] = copy;
    queue->n++;
    return 0;
}

struct part *queue_remove(struct queue *queue, size_t i)
{
    struct part *part = queue->parts[i];
    queue->n--;
    memmove(queue->parts + i, queue->parts + i + 1, (queue->n - i) * sizeof(struct part *));
    return part;
}

size_t queue_oldest(const struct queue *queue)
{
    size_t oldest = 0;
    for (size_t i = 1; i < queue->n; i++)
        if (queue->parts[i]->arrival < queue->parts[oldest]->arrival) oldest = i;
    return oldest;
}

bool queue_merge(struct queue *queue, size_t i, uint64_t addr, uint64_t len)
{
    if (i > 0) {
        struct part *last = queue->parts[i - 1];
        if (last->addr + last->len == addr && last->len + len <= MAX_MERGED_BYTES) {
            last->len += len;
            return true;
        }
    }
    if (i < queue->n) {
        struct part *next = queue->parts[i];
        if (addr + len == next->addr && next->len + len <= MAX_MERGED_BYTES) {
            next->addr = addr;
            next->len += len;
            return true;
        }
    }
    return false;
}

void queue_release(struct queue *queue)
{
    for (size_t i = 0; i < queue->n; i++)
        free(queue->parts[i]);
    free(queue->parts);
    *queue = (struct queue){0};
}
