/*
 * spindle.c -- a disk of 2014: a FUSE file system that passes everything through to another
 * directory, at the speed of a modelled device.
 *
 *     spindle -o device=barracuda,counters=FILE BACKING_DIR MOUNT_POINT
 *
 * Time. Each drive has a clock, free_at: when it will have served all that it has begun. A request
 * begins then or when it arrives, whichever is later. So rates are exact while requests queue, and
 * a late reply delays only its receiver. A request that begins where the last one ended takes the
 * transfer. Any other also takes a random access: 1/IOPS less the transfer of 4 KiB, which is the
 * mean seek and half a rotation of a disk. If passing over a gap ahead takes less, it takes that. A
 * cloud volume (io_cap) takes the larger of transfer and operations/IOPS.
 *
 * Order. A drive has two queues: requests that a program waits for, and the write buffer, which
 * stands for the dirty pages of a local file system. (FUSE flushes them in close(), which would
 * wait for the disk.) Like Linux' deadline scheduler it serves 16 requests of one queue in
 * ascending order, then chooses again: writes after two batches of reads at the latest, requests
 * that have waited for half a second (5 s in the write buffer) first. In order of arrival, reads
 * would wait for all writes before them.
 *
 * Places. A file gets the device's space in pieces of 8 MiB: the piece behind its last one if that
 * is free, else the first free one. fsync() writes a journal block at the start of the device if
 * the file has grown since the last one.
 *
 * Threads. libfuse calls each operation in a thread of its own, which waits for its requests. Each
 * drive is a thread. There is one lock; functions named drive_, file_ or queue_ need it.
 */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 31

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <sched.h>
#include <search.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* libfuse gives its functions more arguments than they need. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define MB 1e6
#define MIB 1048576.0
#define BLOCK_BYTES 4096
#define PIECE_BYTES (UINT64_C(8) << 20)
#define N_PIECES 65536
#define MAX_DRIVES 4
/* The largest write that the kernel sends. */
#define MAX_REQUEST_BYTES (1u << 20)
/* What a disk's queue has (nr_requests). Each one that waits needs a thread. */
#define QUEUE_REQUESTS 64
#define THREADS "128"
/* Threads wake up late by up to this much, so replies are sent so much early. free_at still counts
 * the full time. */
#define EARLY_NS 100000
/* Linux, block/mq-deadline.c: fifo_batch, writes_starved, read_expire, write_expire. */
#define BATCH_REQUESTS 16
#define MAX_STARVED 2

/* Rates are in bytes a second and IOPS are random accesses of 4 KiB, of one drive. 0: no limit. */
struct device {
    const char *name;
    double read_rate, write_rate, read_iops, write_iops;
    unsigned n_drives; /* RAID 0 when more than one */
    uint64_t stripe_bytes;
    double io_cap; /* bytes of an operation of a cloud volume; 0: a drive */
};

static const struct device devices[] = {
    /* Seagate Barracuda 7200.14 data sheet (DS1737): 156 MB/s; 12.7 ms are 8.5 ms of seek and 4.16
     * of rotation. */
    {"barracuda", 156 * MB, 156 * MB, 79, 73, 1, 0, 0},
    /* Amazon EC2, previous generation instances: 4 x 420 GB. A stripe is mdadm's default. */
    {"c1.xlarge", 156 * MB, 156 * MB, 79, 73, 4, 512 << 10, 0},
    /* Samsung SSD 840 Pro data sheet, 128 GB, queue depth 32. */
    {"840-pro-pair", 530 * MB, 390 * MB, 97e3, 90e3, 2, 512 << 10, 0},
    /* Amazon EBS User Guide, "volume types" and "I/O characteristics"; without bursts: a short
     * benchmark stands for hours. gp2 of 100 GB has 3 IOPS a GiB; magnetic about 100 IOPS and 40 to
     * 90 MiB/s; st1 40 MiB/s a TiB. */
    {"ebs-gp2", 128 * MIB, 128 * MIB, 300, 300, 1, 0, 256 << 10},
    {"ebs-piops-100", 128 * MIB, 128 * MIB, 100, 100, 1, 0, 256 << 10},
    {"ebs-piops-500", 128 * MIB, 128 * MIB, 500, 500, 1, 0, 256 << 10},
    {"ebs-magnetic", 65 * MIB, 65 * MIB, 100, 100, 1, 0, 1 << 20},
    {"ebs-st1", 40 * MIB, 40 * MIB, 40, 40, 1, 0, 1 << 20},
    {"nvme", 0, 0, 0, 0, 1, 0, 0},
};

/* bench-2014.py reads these from the file of -o counters. Requests are those that drives get. */
struct counters {
    uint64_t n_drives, reads, writes, read_bytes, write_bytes, seeks, syncs, busy_ns;
    uint64_t buffered_bytes;
};

/* Where a file lies: the number of each piece, 0 where it has none. */
struct file {
    ino_t ino;
    uint32_t *pieces;
    size_t n_pieces;
    uint64_t end, grown_in; /* grown_in: the commit that will have its last growth */
};

struct waiter {
    pthread_cond_t done;
    unsigned n_left;
};

enum queue_name { QUEUE_SYNC, QUEUE_BUFFER, N_QUEUES };

struct request {
    struct request *next;
    uint64_t addr, len;
    int64_t arrival;
    const struct file *file;
    struct waiter *waiter; /* NULL in the write buffer */
    bool is_write, is_commit;
};

struct drive {
    struct request *queues[N_QUEUES]; /* in order of arrival */
    pthread_cond_t wake;
    int64_t free_at;
    uint64_t head;
    double operation_left; /* bytes, of a cloud volume */
    enum queue_name batch;
    unsigned batch_left, n_starved;
};

static struct {
    char *device, *counters;
    unsigned buffer_mib;
} options = {.buffer_mib = 64};

static int backing_fd = -1;
static struct device device;

/* Under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t room = PTHREAD_COND_INITIALIZER; /* in the write buffer */
static struct drive drives[MAX_DRIVES];
static struct counters no_counters, *counters = &no_counters;
static void *files; /* a tree of tsearch() */
static char taken[N_PIECES] = {1}; /* 1: a file has the piece; the first is the journal's */
static uint64_t commit = 1;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Returns what was allocated. There is nothing better to do without it. */
static void *need(void *allocated)
{
    if (allocated) return allocated;
    fprintf(stderr, "spindle: out of memory\n");
    exit(1);
}

/* ---- drives ---- */

static double ns_per(double rate)
{
    return rate > 0 ? 1e9 / rate : 0;
}

/* Returns the time of a request, counts it and moves the head. */
static double drive_service_ns(struct drive *drive, const struct request *r)
{
    double byte_ns = ns_per(r->is_write ? device.write_rate : device.read_rate);
    double access_ns = ns_per(r->is_write ? device.write_iops : device.read_iops);
    double transfer_ns = (double)r->len * byte_ns, position_ns = 0;
    bool continues = r->addr == drive->head && !r->is_commit;

    if (!continues) {
        double gap_ns = (double)(r->addr - drive->head) * byte_ns;
        position_ns = access_ns - BLOCK_BYTES * byte_ns;
        if (position_ns < 0) position_ns = 0;
        if (r->addr > drive->head && !r->is_commit && gap_ns < position_ns)
            position_ns = gap_ns;
        else
            counters->seeks++;
    }
    drive->head = r->addr + r->len;
    if (device.io_cap <= 0) return position_ns + transfer_ns;

    double left = continues ? drive->operation_left : device.io_cap;
    double operations = continues ? 0 : 1, beyond = (double)r->len - left;
    if (beyond > 0) operations += beyond / device.io_cap;
    drive->operation_left = beyond > 0 ? 0 : -beyond;
    return operations * access_ns > transfer_ns ? operations * access_ns : transfer_ns;
}

static void drive_begin(struct drive *drive, const struct request *r)
{
    int64_t service_ns = (int64_t)(drive_service_ns(drive, r) + 0.5);

    drive->free_at = (r->arrival > drive->free_at ? r->arrival : drive->free_at) + service_ns;
    counters->busy_ns += (uint64_t)service_ns;
    *(r->is_write ? &counters->writes : &counters->reads) += 1;
    *(r->is_write ? &counters->write_bytes : &counters->read_bytes) += r->len;
}

/* Takes the first request if it has waited for too long, otherwise the next one from the head on in
 * ascending order, otherwise the lowest. */
static struct request *drive_take(struct drive *drive, enum queue_name name)
{
    static const int64_t expire_ns[N_QUEUES] = {INT64_C(500000000), INT64_C(5000000000)};
    struct request **best = &drive->queues[name];

    if ((*best)->arrival + expire_ns[name] >= drive->free_at)
        for (struct request **at = best; *at; at = &(*at)->next)
            /* Differences below 0 become the largest. */
            if ((*at)->addr - drive->head < (*best)->addr - drive->head) best = at;
    struct request *r = *best;
    *best = r->next;
    return r;
}

/* Takes the next request; NULL if there is none. */
static struct request *drive_next(struct drive *drive)
{
    bool reads = drive->queues[QUEUE_SYNC], writes = drive->queues[QUEUE_BUFFER];

    if (!reads && !writes) return NULL;
    if (!drive->batch_left || !drive->queues[drive->batch]) {
        if (writes && drive->n_starved == MAX_STARVED) reads = false;
        drive->n_starved = reads && writes ? drive->n_starved + 1 : 0;
        drive->batch = reads ? QUEUE_SYNC : QUEUE_BUFFER;
        drive->batch_left = BATCH_REQUESTS;
    }
    drive->batch_left--;
    return drive_take(drive, drive->batch);
}

static void *drive_main(void *arg)
{
    struct drive *drive = arg;

    pthread_mutex_lock(&lock);
    for (;;) {
        struct request *r = drive_next(drive);
        if (!r) {
            pthread_cond_wait(&drive->wake, &lock);
            continue;
        }
        drive_begin(drive, r);
        int64_t end = drive->free_at - EARLY_NS;
        if (end > now_ns()) {
            struct timespec until = {end / 1000000000, end % 1000000000};
            pthread_mutex_unlock(&lock);
            while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
                ;
            pthread_mutex_lock(&lock);
        }
        if (!r->waiter) {
            counters->buffered_bytes -= r->len;
            pthread_cond_broadcast(&room);
        } else if (--r->waiter->n_left == 0) {
            pthread_cond_signal(&r->waiter->done);
        }
        free(r);
    }
    return NULL;
}

/* ---- queues ---- */

static void queue_add(struct drive *drive, struct request *r)
{
    struct request **end = &drive->queues[r->waiter ? QUEUE_SYNC : QUEUE_BUFFER];

    while (*end)
        end = &(*end)->next;
    *end = r;
    r->next = NULL;
    if (r->waiter)
        r->waiter->n_left++;
    else
        counters->buffered_bytes += r->len;
    pthread_cond_signal(&drive->wake);
}

/* Adds requests for a place that is contiguous on the device to the queues of its drives. */
static void queue_place(struct request r)
{
    uint64_t n = device.n_drives, stripe = n > 1 ? device.stripe_bytes : UINT64_MAX;
    uint64_t addr = r.addr, left = r.len, addrs[MAX_DRIVES] = {0}, lens[MAX_DRIVES] = {0};

    while (left) {
        uint64_t unit = addr / stripe, within = addr % stripe, d = unit % n;
        uint64_t len = stripe - within < left ? stripe - within : left;
        if (!lens[d]) addrs[d] = n > 1 ? unit / n * stripe + within : addr;
        lens[d] += len;
        addr += len;
        left -= len;
    }
    for (uint64_t d = 0; d < n; d++) {
        if (!lens[d]) continue;
        struct request *part = need(malloc(sizeof *part));
        *part = r;
        part->addr = addrs[d];
        part->len = lens[d];
        queue_add(&drives[d], part);
    }
}

/* Takes a file's requests out of the write buffer. waiter: moves them to those that are waited for;
 * NULL: they are never written. */
static void queue_flush(const struct file *file, struct waiter *waiter)
{
    for (unsigned d = 0; d < device.n_drives; d++) {
        struct request **at = &drives[d].queues[QUEUE_BUFFER];
        while (*at) {
            struct request *r = *at;
            if (r->file != file) {
                at = &r->next;
                continue;
            }
            *at = r->next;
            counters->buffered_bytes -= r->len;
            r->waiter = waiter;
            if (waiter)
                queue_add(&drives[d], r);
            else
                free(r);
        }
    }
    pthread_cond_broadcast(&room);
}

static void queue_wait(struct waiter *waiter)
{
    while (waiter->n_left)
        pthread_cond_wait(&waiter->done, &lock);
}

/* ---- files ---- */

static int compare_files(const void *a, const void *b)
{
    ino_t x = ((const struct file *)a)->ino, y = ((const struct file *)b)->ino;
    return x < y ? -1 : x > y;
}

/* Takes a free piece of the device, if possible the goal. */
static uint32_t file_take_piece(uint32_t goal)
{
    if (goal >= N_PIECES || taken[goal])
        goal = (uint32_t)((char *)need(memchr(taken, 0, N_PIECES)) - taken);
    taken[goal] = 1;
    return goal;
}

/* Gives a file places for this range of its bytes. */
static void file_map(struct file *file, uint64_t offset, uint64_t len)
{
    size_t n = (offset + len + PIECE_BYTES - 1) / PIECE_BYTES;

    if (n > file->n_pieces) {
        file->pieces = need(realloc(file->pieces, n * sizeof *file->pieces));
        memset(file->pieces + file->n_pieces, 0, (n - file->n_pieces) * sizeof *file->pieces);
        file->n_pieces = n;
    }
    for (size_t i = offset / PIECE_BYTES; i < n; i++)
        if (!file->pieces[i]) file->pieces[i] = file_take_piece(i ? file->pieces[i - 1] + 1 : 0);
    if (offset + len <= file->end) return;
    file->end = offset + len;
    file->grown_in = commit;
}

/* Finds a file, or makes one, which has places for what it contained before. */
static struct file *file_of(const struct stat *st)
{
    struct file key = {.ino = st->st_ino}, **found = tfind(&key, &files, compare_files);
    if (found) return *found;

    struct file *file = need(calloc(1, sizeof *file));
    file->ino = st->st_ino;
    file_map(file, 0, (uint64_t)st->st_size);
    file->grown_in = st->st_size ? 0 : commit;
    need(tsearch(file, &files, compare_files));
    return file;
}

/* Takes the time of reading or writing these bytes. through: past the write buffer. */
static int transfer(int fd, uint64_t offset, uint64_t len, bool is_write, bool through)
{
    struct waiter waiter = {.done = PTHREAD_COND_INITIALIZER};
    struct request r = {.arrival = now_ns(), .is_write = is_write};
    struct stat st;

    if (fstat(fd, &st)) return -errno;
    pthread_mutex_lock(&lock);
    struct file *file = file_of(&st);
    if (is_write) file_map(file, offset, len);
    r.file = file;
    r.waiter = is_write && !through ? NULL : &waiter;
    while (!r.waiter && counters->buffered_bytes >= (uint64_t)options.buffer_mib << 20)
        pthread_cond_wait(&room, &lock);
    for (uint64_t at = offset, end = offset + len; at < end; at += r.len) {
        size_t i = at / PIECE_BYTES;
        r.len = PIECE_BYTES - at % PIECE_BYTES;
        if (r.len > end - at) r.len = end - at;
        if (i >= file->n_pieces || !file->pieces[i]) continue;
        r.addr = file->pieces[i] * PIECE_BYTES + at % PIECE_BYTES;
        queue_place(r);
    }
    queue_wait(&waiter);
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Waits until the file's data and, if it has grown since the last commit, a new one are on the
 * device. A commit has all that changed before it, as those of ext4 and XFS. */
static int sync_file(int fd)
{
    struct waiter waiter = {.done = PTHREAD_COND_INITIALIZER};
    struct request journal = {.len = BLOCK_BYTES, .is_write = true, .is_commit = true};
    struct stat st;

    if (fstat(fd, &st)) return -errno;
    pthread_mutex_lock(&lock);
    struct file *file = file_of(&st);
    counters->syncs++;
    queue_flush(file, &waiter);
    queue_wait(&waiter);
    if (file->grown_in == commit) {
        commit++;
        journal.arrival = now_ns();
        journal.waiter = &waiter;
        queue_place(journal);
        queue_wait(&waiter);
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Frees what a file has beyond its new end. */
static void cut_file(const struct stat *st, uint64_t end)
{
    size_t n = (end + PIECE_BYTES - 1) / PIECE_BYTES;

    pthread_mutex_lock(&lock);
    struct file *file = file_of(st);
    for (size_t i = n; i < file->n_pieces; i++)
        if (file->pieces[i]) taken[file->pieces[i]] = 0;
    if (n < file->n_pieces) file->n_pieces = n;
    if (end != file->end) file->grown_in = commit;
    file->end = end;
    if (!end) queue_flush(file, NULL);
    pthread_mutex_unlock(&lock);
}

/* ---- operations: names ---- */

/* The path below the backing directory. */
static const char *below(const char *path)
{
    return path[1] ? path + 1 : ".";
}

static int done(int status)
{
    return status < 0 ? -errno : 0;
}

static int do_getattr(const char *path, struct stat *st, struct fuse_file_info *info)
{
    return done(fstatat(backing_fd, below(path), st, AT_SYMLINK_NOFOLLOW));
}

static int do_mkdir(const char *path, mode_t mode)
{
    return done(mkdirat(backing_fd, below(path), mode));
}

static int do_rmdir(const char *path)
{
    return done(unlinkat(backing_fd, below(path), AT_REMOVEDIR));
}

static int do_link(const char *from, const char *to)
{
    return done(linkat(backing_fd, below(from), backing_fd, below(to), 0));
}

static int do_unlink(const char *path)
{
    struct stat st;
    if (fstatat(backing_fd, below(path), &st, AT_SYMLINK_NOFOLLOW) ||
        unlinkat(backing_fd, below(path), 0))
        return -errno;
    if (S_ISREG(st.st_mode) && st.st_nlink == 1) cut_file(&st, 0);
    return 0;
}

static int do_rename(const char *from, const char *to, unsigned flags)
{
    struct stat st;
    bool replaces = !flags && !fstatat(backing_fd, below(to), &st, AT_SYMLINK_NOFOLLOW);
    if (renameat2(backing_fd, below(from), backing_fd, below(to), flags)) return -errno;
    if (replaces && S_ISREG(st.st_mode) && st.st_nlink == 1) cut_file(&st, 0);
    return 0;
}

static int do_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *info)
{
    return done(utimensat(backing_fd, below(path), times, AT_SYMLINK_NOFOLLOW));
}

static int do_statfs(const char *path, struct statvfs *st)
{
    return done(fstatvfs(backing_fd, st));
}

static int do_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset,
                      struct fuse_file_info *info, enum fuse_readdir_flags flags)
{
    int fd = openat(backing_fd, below(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -errno;
    DIR *dir = need(fdopendir(fd));
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        struct stat st = {.st_ino = entry->d_ino, .st_mode = DTTOIF(entry->d_type)};
        if (fill(buffer, entry->d_name, &st, 0, 0)) break;
    }
    closedir(dir);
    return 0;
}

/* ---- operations: contents ---- */

/* Opens a file of the backing directory. The kernel's page cache also reads files that are opened
 * for writing, and it does O_APPEND and O_DIRECT itself. */
static int do_create(const char *path, mode_t mode, struct fuse_file_info *info)
{
    int flags = info->flags & ~(O_APPEND | O_DIRECT | O_NOFOLLOW);
    struct stat st;

    if ((flags & O_ACCMODE) == O_WRONLY) flags = (flags & ~O_ACCMODE) | O_RDWR;
    int fd = openat(backing_fd, below(path), flags | O_CLOEXEC, mode);
    if (fd < 0) return -errno;
    info->fh = (uint64_t)fd;
    /* A new file must be known before its first write. */
    if (!fstat(fd, &st)) cut_file(&st, (uint64_t)st.st_size);
    return 0;
}

static int do_open(const char *path, struct fuse_file_info *info)
{
    return do_create(path, 0, info);
}

static int do_release(const char *path, struct fuse_file_info *info)
{
    close((int)info->fh);
    return 0;
}

static int do_read(const char *path, char *data, size_t size, off_t offset,
                   struct fuse_file_info *info)
{
    int error = transfer((int)info->fh, (uint64_t)offset, size, false, false);
    ssize_t n = error ? error : pread((int)info->fh, data, size, offset);
    return n < 0 && !error ? -errno : (int)n;
}

static int do_write(const char *path, const char *data, size_t size, off_t offset,
                    struct fuse_file_info *info)
{
    ssize_t n = pwrite((int)info->fh, data, size, offset);
    if (n < 0) return -errno;
    /* A write by the page cache does not have the flags of the program that opened the file. */
    bool through = !info->writepage && info->flags & (O_DIRECT | O_SYNC | O_DSYNC);
    int error = transfer((int)info->fh, (uint64_t)offset, (uint64_t)n, true, through);
    return error ? error : (int)n;
}

static int do_truncate(const char *path, off_t size, struct fuse_file_info *info)
{
    struct stat st;
    int fd = openat(backing_fd, below(path), O_RDWR | O_CLOEXEC);
    int error = fd < 0 || fstat(fd, &st) || ftruncate(fd, size) ? -errno : 0;
    if (!error) cut_file(&st, (uint64_t)size);
    if (fd >= 0) close(fd);
    return error;
}

static int do_fallocate(const char *path, int mode, off_t offset, off_t len,
                        struct fuse_file_info *info)
{
    return done(fallocate((int)info->fh, mode, offset, len));
}

static int do_fsync(const char *path, int data_only, struct fuse_file_info *info)
{
    return sync_file((int)info->fh);
}

/* ---- main ---- */

/* The kernel does what it does for a local file system: page cache with write-back, names and
 * attributes cached without limit. Splicing instead of copying saves no CPU here. */
static void *do_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
    pthread_t thread;

    conn->want |= conn->capable & FUSE_CAP_WRITEBACK_CACHE;
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
                              FUSE_CAP_AUTO_INVAL_DATA);
    conn->max_write = MAX_REQUEST_BYTES;
    conn->max_background = QUEUE_REQUESTS;
    conn->congestion_threshold = QUEUE_REQUESTS * 3 / 4;
    config->use_ino = config->kernel_cache = 1;
    config->entry_timeout = config->attr_timeout = 1e9;
    for (unsigned d = 0; d < device.n_drives; d++) {
        drives[d].head = PIECE_BYTES;
        if (pthread_cond_init(&drives[d].wake, NULL) ||
            pthread_create(&thread, NULL, drive_main, &drives[d]))
            need(NULL);
    }
    return NULL;
}

static const struct fuse_operations operations = {
    .init = do_init,         .getattr = do_getattr, .mkdir = do_mkdir,     .rmdir = do_rmdir,
    .link = do_link,         .unlink = do_unlink,   .rename = do_rename,   .utimens = do_utimens,
    .statfs = do_statfs,     .readdir = do_readdir, .open = do_open,       .create = do_create,
    .release = do_release,   .read = do_read,       .write = do_write,     .fsync = do_fsync,
    .truncate = do_truncate, .fallocate = do_fallocate,
};

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "spindle: %s: %s\n", what, why);
    return -1;
}

/* The first word that is no option is the backing directory; the next one is libfuse's. */
static int take_word(void *data, const char *word, int key, struct fuse_args *args)
{
    if (key != FUSE_OPT_KEY_NONOPT || backing_fd >= 0) return 1;
    backing_fd = open(word, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return backing_fd < 0 ? complain(word, strerror(errno)) : 0;
}

/* Puts the counters into a file that other programs can read. */
static int share_counters(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *counters)) return complain(path, strerror(errno));
    counters = mmap(NULL, sizeof *counters, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return counters == MAP_FAILED ? complain(path, strerror(errno)) : 0;
}

int main(int argc, char **argv)
{
    static const struct fuse_opt known[] = {
        {"device=%s", offsetof(__typeof__(options), device), 0},
        {"counters=%s", offsetof(__typeof__(options), counters), 0},
        {"buffer_mib=%u", offsetof(__typeof__(options), buffer_mib), 0},
        FUSE_OPT_END,
    };
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);

    if (fuse_opt_parse(&args, &options, known, take_word)) return 1;
    if (backing_fd < 0 || !options.device || !options.buffer_mib) {
        fprintf(stderr, "usage: spindle [-f] -o device=NAME[,counters=FILE][,buffer_mib=N] "
                        "BACKING_DIR MOUNT_POINT\n");
        return 1;
    }
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
        if (!strcmp(devices[i].name, options.device)) device = devices[i];
    if (!device.name) return -complain(options.device, "no such device: see bench/spindle.c");
    if (options.counters && share_counters(options.counters)) return 1;
    counters->n_drives = device.n_drives;
    if (fuse_opt_add_arg(&args, "-ofsname=spindle,max_idle_threads=" THREADS) ||
        (fuse_version() >= 312 && fuse_opt_add_arg(&args, "-omax_threads=" THREADS)))
        return 1;
    umask(0);
    /* A drive does not wait for a processor, so its threads run before the programs that use it.
     * Only root may do that. */
    (void)sched_setscheduler(0, SCHED_RR, &(struct sched_param){.sched_priority = 1});
    return fuse_main(args.argc, args.argv, &operations, NULL);
}
