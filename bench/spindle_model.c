/*
 * spindle_model.c -- see spindle_model.h.
 *
 * Time. Each drive has a clock, free_at: the time at which it will have served all that it has
 * begun. A request begins at free_at, or TRIP_NS before it arrived here if that is later. So a
 * reply that is sent late delays only its receiver, and rates are exact while requests queue.
 * Replies are sent up to EARLY_NS before their time: threads wake up late by about as much, and
 * fast devices would need a timer for each request. free_at still counts the full time.
 *
 * Time of a request on a drive. If the request begins where the last one ended, it takes the time
 * of the transfer. Otherwise it also takes a seek: 1/IOPS less the transfer of 4 KiB, for any
 * distance. If the drive only has to pass over a gap ahead, and that takes less time than a seek,
 * it passes over the gap. On a metered volume (io_cap_bytes) a request takes the larger of transfer
 * and operations/IOPS. A request that does not continue the last one begins an operation. One that
 * does uses the rest of the operation and then fractions of new ones, since the volume merges them.
 *
 * Order. A drive has two queues in order of address. One has requests that a program waits for
 * (reads, direct and synced writes, the journal). The other is the write buffer, which stands for
 * the dirty pages of the page cache. The drive serves them as Linux' deadline scheduler does, with
 * its default numbers: 16 requests of one queue in ascending order, then it chooses again; the
 * write buffer waits for at most two such batches; requests older than half a second (5 s in the
 * write buffer) go first. The drive never waits for a better request: a single reader beside a full
 * write buffer waits for batches of writes, as it does in Linux.
 *
 * The write buffer. A write is accepted at once if the buffer has room, otherwise when it gets
 * room. Contiguous writes are merged up to 1 MiB. Data that are overwritten, deleted or truncated
 * in time are never written, and reading them back takes no time. Without the buffer close() would
 * wait for the disk: FUSE flushes a file's dirty pages then, which no other file system does.
 *
 * How much the choices matter. Sorts of 1 GB of records in 160 MB of memory, with temporary data on
 * a barracuda, were measured by seeks and busy seconds. With a write buffer of 8 or 256 MiB instead
 * of 64, and with places of up to 8 MiB instead of 32, they were within 2 %, as two equal runs are.
 * Without passing over gaps they had 0 to 2 % more busy seconds; with batches of 4 requests instead
 * of 16, 1 to 5 % more.
 *
 * There is one lock. Functions whose names begin with drive_, part_, op_ or buffer_ need it, and so
 * does advance(). op_begin takes it.
 */
#include "spindle_model.h"
#include "spindle_queue.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* On a busy VM with 2 cores a real-time thread woke up 30 to 40 us late in the median, 50 to 60 us
 * in one case of ten, 165 to 195 us in one of a hundred; after that it has to make the reply. */
#define EARLY_NS 100000
/* The time from one pread() of 4 KiB to the next if the device takes no time: 37 to 72 us on that
 * VM. A local disk would have got the request so much earlier. */
#define TRIP_NS 50000
/* Linux, block/mq-deadline.c: fifo_batch, writes_starved, read_expire, write_expire. */
#define BATCH_REQUESTS 16
#define MAX_STARVED 2
#define EXPIRE_NS {INT64_C(500000000), INT64_C(5000000000)}
#define COMMIT_BYTES 4096

enum { QUEUE_SYNC, QUEUE_BUFFER, N_QUEUES };

struct drive {
    struct queue queues[N_QUEUES];
    struct part *serving;
    int64_t finish, free_at;
    uint64_t head;
    uint64_t operation_left; /* bytes, on metered volumes */
    unsigned batch_queue, batch_left, n_starved;
};

struct model {
    /* Fixed after create. */
    struct device device;
    uint64_t buffer_bytes;
    double seek_ns[2], byte_ns[2], operation_ns[2]; /* [1]: writes */
    bool has_lock, has_clock;
    pthread_t clock;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* Under the lock. */
    struct drive drives[MAX_DRIVES];
    struct model_op *blocked, **blocked_end; /* writes that found no room */
    struct model_op *drains;
    struct model_op *finished, **finished_end; /* for done() after unlocking */
    uint64_t buffered;
    int64_t wake_at;
    bool stop;
    struct counters counters;
};

int64_t model_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- the device ---- */

/* Gives the part of a range on each drive, which is contiguous there; len is 0 if it has none. */
static void split(const struct model *m, struct range range, struct range *parts)
{
    uint64_t n = m->device.n_drives, stripe = m->device.stripe_bytes;

    memset(parts, 0, sizeof *parts * n);
    if (n == 1) {
        parts[0] = range;
        return;
    }
    while (range.len) {
        uint64_t unit = range.addr / stripe, within = range.addr % stripe;
        uint64_t len = stripe - within < range.len ? stripe - within : range.len;
        struct range *part = &parts[unit % n];
        if (!part->len) part->addr = unit / n * stripe + within;
        part->len += len;
        range.addr += len;
        range.len -= len;
    }
}

/* Returns the time of a request, counts its seek and moves the head. */
static double drive_serve(struct model *m, struct drive *drive, const struct part *part)
{
    struct counters *c = &m->counters;
    bool w = part->is_write, continues = part->addr == drive->head && !part->is_commit;
    double len = (double)part->len, transfer = len * m->byte_ns[w], position = 0;

    if (continues) {
        c->consecutive++;
    } else {
        position = m->seek_ns[w];
        double pass = (double)(part->addr - drive->head) * m->byte_ns[w];
        if (part->addr > drive->head && !part->is_commit && pass < position) {
            position = pass;
            c->skips++;
        } else {
            c->seeks++;
            if (!w) c->read_seeks++;
        }
    }
    drive->head = part->addr + part->len;
    if (!m->device.io_cap_bytes) return position + transfer;

    double cap = (double)m->device.io_cap_bytes, operations = 0;
    if (!continues) {
        operations = 1;
        drive->operation_left = m->device.io_cap_bytes;
    }
    uint64_t rest = part->len < drive->operation_left ? part->len : drive->operation_left;
    drive->operation_left -= rest;
    operations += (len - (double)rest) / cap;
    double metered = operations * m->operation_ns[w];
    return metered > transfer ? metered : transfer;
}

static void drive_begin(struct model *m, struct drive *drive, struct part *part)
{
    struct counters *c = &m->counters;
    int64_t arrival = part->arrival - TRIP_NS;
    int64_t begin = arrival > drive->free_at ? arrival : drive->free_at;
    int64_t service = (int64_t)(drive_serve(m, drive, part) + 0.5);

    drive->serving = part;
    drive->finish = drive->free_at = begin + service;
    if (part->is_write) {
        c->writes++;
        c->write_bytes += part->len;
        c->write_busy_ns += service;
        return;
    }
    c->reads++;
    c->read_bytes += part->len;
    c->read_busy_ns += service;
    if (drive->finish > part->arrival) c->read_wait_ns += drive->finish - part->arrival;
    if (part->len < SMALL_READ_BYTES) {
        c->small_reads++;
        c->small_read_busy_ns += service;
    }
}

/* Takes the next part from the queues; NULL if they are empty. */
static struct part *drive_next(struct drive *drive)
{
    static const int64_t expire[N_QUEUES] = EXPIRE_NS;
    struct queue *sync = &drive->queues[QUEUE_SYNC], *buffer = &drive->queues[QUEUE_BUFFER];

    if (!sync->n && !buffer->n) return NULL;
    struct queue *queue = &drive->queues[drive->batch_queue];
    size_t i = queue_find_begin(queue, drive->head);
    if (drive->batch_left && i < queue->n) {
        drive->batch_left--;
        return queue_remove(queue, i);
    }
    bool reads = sync->n && (!buffer->n || drive->n_starved < MAX_STARVED);
    drive->n_starved = reads && buffer->n ? drive->n_starved + 1 : 0;
    drive->batch_queue = reads ? QUEUE_SYNC : QUEUE_BUFFER;
    drive->batch_left = BATCH_REQUESTS - 1;
    queue = &drive->queues[drive->batch_queue];
    i = queue_find_begin(queue, drive->head);
    size_t oldest = queue_oldest(queue);
    if (queue->parts[oldest]->arrival + expire[drive->batch_queue] < drive->free_at)
        i = oldest;
    else if (i == queue->n)
        i = 0;
    return queue_remove(queue, i);
}

static void op_finish(struct model *m, struct model_op *op)
{
    op->next = NULL;
    *m->finished_end = op;
    m->finished_end = &op->next;
}

/* Counts one part of an operation as done. */
static void op_part_done(struct model *m, struct model_op *op)
{
    if (--op->n_left) return;
    if (!op->commits) {
        op_finish(m, op);
        return;
    }
    struct part part = {.len = COMMIT_BYTES, .op = op, .is_write = true, .is_commit = true};
    part.arrival = op->arrival;
    op->commits = false;
    op->n_left = 1;
    if (queue_insert(&m->drives[0].queues[QUEUE_SYNC], part)) op_finish(m, op);
}

static void part_complete(struct model *m, struct part *part)
{
    if (part->is_buffered) m->buffered -= part->len;
    if (part->op) op_part_done(m, part->op);
    free(part);
}

/* ---- the write buffer ---- */

static void buffer_add(struct model *m, struct drive *drive, struct range range, int64_t now)
{
    struct queue *queue = &drive->queues[QUEUE_BUFFER];

    while (range.len) {
        size_t i = queue_find(queue, range.addr);
        uint64_t len = range.len;
        if (i < queue->n && queue->parts[i]->addr <= range.addr) {
            uint64_t rest = queue->parts[i]->addr + queue->parts[i]->len - range.addr;
            if (len > rest) len = rest;
            m->counters.absorbed_bytes += len;
        } else {
            if (i < queue->n && len > queue->parts[i]->addr - range.addr)
                len = queue->parts[i]->addr - range.addr;
            struct part part = {.addr = range.addr, .len = len, .arrival = now};
            part.is_write = part.is_buffered = true;
            if (!queue_merge(queue, i, range.addr, len) && queue_insert(queue, part)) return;
            m->buffered += len;
        }
        range.addr += len;
        range.len -= len;
    }
    if (m->buffered > m->counters.max_buffered_bytes) m->counters.max_buffered_bytes = m->buffered;
}

static bool buffer_has(const struct drive *drive, struct range range)
{
    const struct queue *queue = &drive->queues[QUEUE_BUFFER];
    uint64_t end = range.addr + range.len;

    for (size_t i = queue_find(queue, range.addr); range.addr < end; i++) {
        if (i == queue->n || queue->parts[i]->addr > range.addr) return false;
        range.addr = queue->parts[i]->addr + queue->parts[i]->len;
    }
    return true;
}

static void buffer_discard(struct model *m, struct drive *drive, struct range range)
{
    struct queue *queue = &drive->queues[QUEUE_BUFFER];
    uint64_t end = range.addr + range.len;
    size_t i = queue_find(queue, range.addr);

    while (i < queue->n && queue->parts[i]->addr < end) {
        struct part *part = queue_remove(queue, i);
        struct part before = *part, after = *part;
        uint64_t part_end = part->addr + part->len;
        before.len = part->addr < range.addr ? range.addr - part->addr : 0;
        after.addr = end;
        after.len = part_end > end ? part_end - end : 0;
        uint64_t gone = part->len - before.len - after.len;
        free(part);
        m->buffered -= gone;
        m->counters.discarded_bytes += gone;
        if (before.len && queue_insert(queue, before)) m->buffered -= before.len;
        if (after.len && queue_insert(queue, after)) m->buffered -= after.len;
        i = queue_find(queue, range.addr);
    }
}

static void op_into_buffer(struct model *m, struct model_op *op, int64_t now)
{
    struct range parts[MAX_DRIVES];
    for (size_t r = 0; r < op->n_ranges; r++) {
        split(m, op->ranges[r], parts);
        for (unsigned d = 0; d < m->device.n_drives; d++)
            if (parts[d].len) buffer_add(m, &m->drives[d], parts[d], now);
    }
    op_finish(m, op);
}

/* Takes in writes that wait for room. Returns true if there were any. */
static bool buffer_admit(struct model *m, int64_t now)
{
    bool any = false;
    while (m->blocked && m->buffered < m->buffer_bytes) {
        struct model_op *op = m->blocked;
        m->blocked = op->next;
        if (!m->blocked) m->blocked_end = &m->blocked;
        m->counters.stall_ns += now - op->arrival;
        op_into_buffer(m, op, now);
        any = true;
    }
    return any;
}

/* ---- the clock ---- */

/* Completes and begins all that is due. Returns the time of the next completion. */
static int64_t advance(struct model *m, int64_t now)
{
    bool again;
    do {
        again = false;
        for (unsigned d = 0; d < m->device.n_drives; d++) {
            struct drive *drive = &m->drives[d];
            for (;;) {
                if (!drive->serving) {
                    struct part *part = drive_next(drive);
                    if (!part) break;
                    drive_begin(m, drive, part);
                }
                if (drive->finish > now + EARLY_NS) break;
                struct part *part = drive->serving;
                drive->serving = NULL;
                part_complete(m, part);
                again = true; /* a commit on drive 0, or room in the write buffer */
            }
        }
        if (buffer_admit(m, now)) again = true;
    } while (again);

    while (m->drains && !m->buffered && !m->blocked) {
        struct model_op *op = m->drains;
        m->drains = op->next;
        op_finish(m, op);
    }
    int64_t next = INT64_MAX;
    for (unsigned d = 0; d < m->device.n_drives; d++)
        if (m->drives[d].serving && m->drives[d].finish - EARLY_NS < next)
            next = m->drives[d].finish - EARLY_NS;
    return next;
}

/* Releases the lock and calls done() of finished requests. */
static void unlock_and_finish(struct model *m)
{
    struct model_op *op = m->finished;
    m->finished = NULL;
    m->finished_end = &m->finished;
    pthread_mutex_unlock(&m->lock);
    while (op) {
        struct model_op *next = op->next;
        op->done(op);
        op = next;
    }
}

/* Ends each call: advances, and wakes the clock's thread if it would sleep too long. */
static void submit_end(struct model *m, int64_t now)
{
    int64_t next = advance(m, now);
    if (next < m->wake_at) {
        m->wake_at = next;
        pthread_cond_signal(&m->wake);
    }
    unlock_and_finish(m);
}

static void *clock_main(void *arg)
{
    struct model *m = arg;
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    pthread_mutex_lock(&m->lock);
    while (!m->stop) {
        m->wake_at = advance(m, model_now());
        if (m->finished) {
            unlock_and_finish(m);
            pthread_mutex_lock(&m->lock);
            continue;
        }
        if (m->wake_at == INT64_MAX) {
            pthread_cond_wait(&m->wake, &m->lock);
            continue;
        }
        struct timespec until = {m->wake_at / 1000000000, m->wake_at % 1000000000};
        pthread_cond_timedwait(&m->wake, &m->lock, &until);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* ---- interface ---- */

static double per(double rate)
{
    return rate > 0 ? 1e9 / rate : 0;
}

struct model *model_create(const struct device *device, uint64_t write_buffer_bytes)
{
    struct model *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->device = *device;
    m->buffer_bytes = write_buffer_bytes;
    m->byte_ns[0] = per(device->read_rate);
    m->byte_ns[1] = per(device->write_rate);
    m->operation_ns[0] = per(device->read_iops);
    m->operation_ns[1] = per(device->write_iops);
    for (int w = 0; w < 2; w++) {
        double seek = m->operation_ns[w] - (double)SPACE_BLOCK_BYTES * m->byte_ns[w];
        m->seek_ns[w] = seek > 0 ? seek : 0;
    }
    for (unsigned d = 0; d < device->n_drives; d++)
        m->drives[d].head = SPACE_JOURNAL_BYTES;
    m->blocked_end = &m->blocked;
    m->finished_end = &m->finished;
    m->wake_at = INT64_MAX;
    m->counters.begin_ns = model_now();

    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    m->has_lock = !pthread_mutex_init(&m->lock, NULL) && !pthread_cond_init(&m->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (m->has_lock) return m;
    model_destroy(m);
    return NULL;
}

int model_start(struct model *m)
{
    sigset_t all, old;
    /* The thread that takes requests gets the signals. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    m->has_clock = !pthread_create(&m->clock, NULL, clock_main, m);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return m->has_clock ? 0 : -1;
}

void model_destroy(struct model *m)
{
    if (!m) return;
    if (m->has_clock) {
        pthread_mutex_lock(&m->lock);
        m->stop = true;
        pthread_cond_signal(&m->wake);
        pthread_mutex_unlock(&m->lock);
        pthread_join(m->clock, NULL);
    }
    for (unsigned d = 0; d < m->device.n_drives; d++) {
        for (int q = 0; q < N_QUEUES; q++)
            queue_release(&m->drives[d].queues[q]);
        free(m->drives[d].serving);
    }
    if (m->has_lock) {
        pthread_cond_destroy(&m->wake);
        pthread_mutex_destroy(&m->lock);
    }
    free(m);
}

/* Queues the ranges for a program that waits. Data in the write buffer need no read. */
static void op_queue(struct model *m, struct model_op *op, bool is_write)
{
    struct range parts[MAX_DRIVES];

    op->n_left = 1; /* until all parts are in the queue */
    for (size_t r = 0; r < op->n_ranges; r++) {
        split(m, op->ranges[r], parts);
        for (unsigned d = 0; d < m->device.n_drives; d++) {
            if (!parts[d].len) continue;
            if (is_write) {
                buffer_discard(m, &m->drives[d], parts[d]);
            } else if (buffer_has(&m->drives[d], parts[d])) {
                m->counters.buffer_hits++;
                m->counters.buffer_hit_bytes += parts[d].len;
                continue;
            }
            struct part part = {.addr = parts[d].addr, .len = parts[d].len, .op = op};
            part.arrival = op->arrival;
            part.is_write = is_write;
            if (!queue_insert(&m->drives[d].queues[QUEUE_SYNC], part)) op->n_left++;
        }
    }
    op_part_done(m, op);
}

static void op_begin(struct model *m, struct model_op *op)
{
    op->next = NULL;
    op->commits = false;
    op->arrival = model_now();
    pthread_mutex_lock(&m->lock);
}

void model_read(struct model *m, struct model_op *op)
{
    op_begin(m, op);
    op_queue(m, op, false);
    submit_end(m, op->arrival);
}

void model_write(struct model *m, struct model_op *op, bool through)
{
    op_begin(m, op);
    if (through) {
        op_queue(m, op, true);
    } else if (m->buffered < m->buffer_bytes && !m->blocked) {
        op_into_buffer(m, op, op->arrival);
    } else {
        m->counters.stalls++;
        *m->blocked_end = op;
        m->blocked_end = &op->next;
    }
    submit_end(m, op->arrival);
}

void model_sync(struct model *m, struct model_op *op, bool commit)
{
    struct range parts[MAX_DRIVES];

    op_begin(m, op);
    m->counters.syncs++;
    op->commits = commit;
    op->n_left = 1;
    for (size_t r = 0; r < op->n_ranges; r++) {
        split(m, op->ranges[r], parts);
        for (unsigned d = 0; d < m->device.n_drives; d++) {
            if (!parts[d].len) continue;
            struct queue *queue = &m->drives[d].queues[QUEUE_BUFFER];
            size_t i = queue_find(queue, parts[d].addr);
            while (i < queue->n && queue->parts[i]->addr < parts[d].addr + parts[d].len) {
                struct part *part = queue_remove(queue, i), moved = *part;
                moved.op = op;
                if (queue_insert(&m->drives[d].queues[QUEUE_SYNC], moved))
                    m->buffered -= part->len;
                else
                    op->n_left++;
                free(part);
            }
        }
    }
    op_part_done(m, op);
    submit_end(m, op->arrival);
}

void model_drain(struct model *m, struct model_op *op)
{
    op_begin(m, op);
    op->next = m->drains;
    m->drains = op;
    submit_end(m, op->arrival);
}

void model_discard(struct model *m, struct range range)
{
    struct range parts[MAX_DRIVES];

    pthread_mutex_lock(&m->lock);
    split(m, range, parts);
    for (unsigned d = 0; d < m->device.n_drives; d++)
        if (parts[d].len) buffer_discard(m, &m->drives[d], parts[d]);
    submit_end(m, model_now());
}

void model_count(struct model *m, struct counters *counters, bool reset)
{
    pthread_mutex_lock(&m->lock);
    m->counters.end_ns = model_now();
    *counters = m->counters;
    if (reset) {
        m->counters = (struct counters){.begin_ns = counters->end_ns};
        m->counters.max_buffered_bytes = m->buffered;
    }
    pthread_mutex_unlock(&m->lock);
}
