/*
 * spindle_selftest.c -- see spindle_selftest.h. It uses the mount as a program would: it writes a
 * file and calls fsync; reads it with the kernel's read-ahead; reads and writes 4 KiB at random
 * places with O_DIRECT. Slow devices get one random access at a time, fast ones 32, as their data
 * sheets have it. (A request through FUSE takes some 50 us: one at a time would measure only that.)
 *
 * A signal handler only notes the signal, which is looked at between accesses: before the program
 * ends, it has to unmount, and to remove a file of up to 1 GiB.
 */
#define _GNU_SOURCE
#include "spindle_selftest.h"
#include "spindle_client.h"
#include "spindle_device.h"
#include "spindle_model.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_NO_FUSE 77
#define TOLERANCE 0.10
#define SECONDS 1.5 /* for each measurement */
#define IO_BYTES 4096U
#define CHUNK_BYTES (1U << 20)
#define MAX_DEPTH 32
#define FAST_IOPS 5000 /* devices with more get several at a time */
#define UNLIMITED_BYTES (512.0 * (1 << 20))
#define UNLIMITED_ACCESSES 50000
#define MIN_FILE_BYTES (64.0 * (1 << 20))
#define MAX_FILE_BYTES (1024.0 * (1 << 20))
#define TMPFS_MAGIC_NUMBER 0x01021994
#define MIN_SHM_BYTES (2ULL << 30)

struct bench {
    const struct device *device;
    char folder[256], backing[300], mount_point[300], file[320], backing_file[320];
    char *buffer; /* CHUNK_BYTES, aligned */
    uint64_t file_bytes;
};

static volatile sig_atomic_t stop_signal; /* 0: none yet */

static void note_signal(int number)
{
    stop_signal = number;
}

static void note_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    const struct sigaction note = {.sa_handler = note_signal};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        (void)sigaction(numbers[i], &note, NULL);
}

/* Ends the process as the signal would have done. */
static void die_of(int number)
{
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static int fail(const char *what)
{
    if (stop_signal) return -1;
    fprintf(stderr, "spindle: self-test: %s: %s\n", what, strerror(errno));
    return -1;
}

/* Runs this program to serve the mount. */
static int run_self(const struct bench *bench)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        (void)setsid(); /* Ctrl-C is to reach only the process that unmounts */
        execl("/proc/self/exe", "spindle", "--device", bench->device->name, bench->backing,
              bench->mount_point, (char *)NULL);
        _exit(1);
    }
    if (child < 0) return fail("fork");
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return fail("waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* ---- measurements: each returns a rate, or -1 after a message ---- */

static double seconds_since(int64_t begin)
{
    return (double)(model_now() - begin) / 1e9;
}

/* Overwrites a file that exists, as far as it goes. */
static double write_file(const struct bench *bench, const char *path, uint64_t n_bytes)
{
    int64_t begin = model_now();
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool ok = fd >= 0;
    for (uint64_t n = 0; ok && n < n_bytes; n += CHUNK_BYTES)
        ok = !stop_signal && write(fd, bench->buffer, CHUNK_BYTES) == CHUNK_BYTES;
    ok = ok && !fsync(fd);
    if (fd >= 0) close(fd);
    return ok ? (double)n_bytes / seconds_since(begin) : fail(path);
}

static double read_file(const struct bench *bench)
{
    int fd = open(bench->file, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    int64_t begin = model_now();
    for (uint64_t n = 0; ok && n < bench->file_bytes; n += CHUNK_BYTES)
        ok = !stop_signal && read(fd, bench->buffer, CHUNK_BYTES) == CHUNK_BYTES;
    if (fd >= 0) close(fd);
    return ok ? (double)bench->file_bytes / seconds_since(begin) : fail(bench->file);
}

static uint64_t random_next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

struct access {
    int fd;
    bool is_write;
    unsigned depth;
    uint64_t n;
};

/* Has depth accesses under way until n are done. */
static int access_randomly(const struct bench *bench, aio_context_t context,
                           const struct access *access)
{
    struct iocb blocks[MAX_DEPTH], *ready[MAX_DEPTH];
    struct io_event events[MAX_DEPTH];
    uint64_t state = 1, n_begun = 0, n_done = 0;
    long n_ready = access->depth;

    for (unsigned i = 0; i < access->depth; i++)
        ready[i] = &blocks[i];
    while (n_done < access->n) {
        long n_new = 0;
        for (; n_new < n_ready && n_begun < access->n; n_new++, n_begun++) {
            uint64_t place = random_next(&state) % (bench->file_bytes / IO_BYTES);
            *ready[n_new] = (struct iocb){
                .aio_lio_opcode = access->is_write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
                .aio_fildes = (uint32_t)access->fd,
                .aio_buf = (uintptr_t)bench->buffer +
                           (size_t)(ready[n_new] - blocks) * (size_t)IO_BYTES,
                .aio_nbytes = IO_BYTES,
                .aio_offset = (int64_t)(place * IO_BYTES)};
        }
        if (n_new && syscall(SYS_io_submit, context, n_new, ready) != n_new) return -1;
        n_ready = syscall(SYS_io_getevents, context, 1L, (long)access->depth, events, NULL);
        if (n_ready < 1 || stop_signal) return -1;
        for (long i = 0; i < n_ready; i++) {
            if (events[i].res != IO_BYTES) return -1;
            ready[i] = (struct iocb *)(uintptr_t)events[i].obj;
        }
        n_done += (uint64_t)n_ready;
    }
    return 0;
}

static double access_file(const struct bench *bench, double iops, bool is_write)
{
    aio_context_t context = 0;
    struct access access = {.is_write = is_write, .depth = 1, .n = UNLIMITED_ACCESSES};
    if (iops > 0) access.n = (uint64_t)(iops * SECONDS) + 1;
    if (iops <= 0 || iops >= FAST_IOPS) access.depth = MAX_DEPTH;

    access.fd = open(bench->file, (is_write ? O_WRONLY : O_RDONLY) | O_DIRECT | O_CLOEXEC);
    bool ok = access.fd >= 0 && !syscall(SYS_io_setup, (long)MAX_DEPTH, &context);
    int64_t begin = model_now();
    ok = ok && !access_randomly(bench, context, &access);
    double seconds = seconds_since(begin);
    if (context) syscall(SYS_io_destroy, context);
    if (access.fd >= 0) close(access.fd);
    return ok ? (double)access.n / seconds : fail(bench->file);
}

/* ---- a preset ---- */

/* The rate that sequential reading or writing should reach; 0: no limit. */
static double sequential_rate(const struct device *device, double rate, double iops)
{
    double metered = iops * (double)device->io_cap_bytes;
    if (device->io_cap_bytes && metered > 0 && metered < rate) rate = metered;
    return rate * device->n_drives;
}

/* Prints the rate of the preset and that measured. Returns whether they are near. */
static bool print_pair(double want, double got, double unit)
{
    if (want <= 0) {
        printf(" %8s %8.1f %6s", "-", got / unit, "");
        return true;
    }
    printf(" %8.1f %8.1f %+5.1f%%", want / unit, got / unit, 100 * (got / want - 1));
    return fabs(got / want - 1) <= TOLERANCE;
}

/* Returns 0, 1 if a rate is off, or -1 after a message. */
static int measure(struct bench *bench)
{
    const struct device *d = bench->device;
    double writing = sequential_rate(d, d->write_rate, d->write_iops);
    double reading = sequential_rate(d, d->read_rate, d->read_iops);
    double got[4] = {write_file(bench, bench->file, bench->file_bytes), -1, -1, -1};
    if (got[0] >= 0) got[1] = read_file(bench);
    if (got[1] >= 0) got[2] = access_file(bench, d->read_iops, false);
    if (got[2] >= 0) got[3] = access_file(bench, d->write_iops, true);
    if (got[3] < 0) return -1;
    printf("%-16s", d->name);
    int near = print_pair(writing, got[0], 1e6);
    near += print_pair(reading, got[1], 1e6);
    near += print_pair(d->read_iops, got[2], 1);
    near += print_pair(d->write_iops, got[3], 1);
    printf("  %s\n", near == 4 ? "ok" : "OFF");
    (void)fflush(stdout);
    return near == 4 ? 0 : 1;
}

/* Writes the file beforehand, as large as the preset needs: a virtual machine may get memory that
 * it has not used for a while more slowly (0.2 GB/s was seen) than the device writes. */
static int make_file(struct bench *bench)
{
    struct stat attr;
    const struct device *d = bench->device;
    double reading = sequential_rate(d, d->read_rate, d->read_iops);
    double bytes = (reading > 0 ? reading : UNLIMITED_BYTES / SECONDS) * SECONDS;
    bytes = fmin(fmax(bytes, MIN_FILE_BYTES), MAX_FILE_BYTES);
    bench->file_bytes = (uint64_t)bytes / CHUNK_BYTES * CHUNK_BYTES;
    if (stat(bench->backing_file, &attr) == 0 && (uint64_t)attr.st_size >= bench->file_bytes)
        return 0;
    return write_file(bench, bench->backing_file, bench->file_bytes) < 0 ? -1 : 0;
}

/* Returns an exit status. */
static int test_preset(struct bench *bench)
{
    if (make_file(bench)) return 1;
    int status = run_self(bench);
    if (status) return status < 0 ? 1 : status;
    status = measure(bench);
    if (client_unmount(bench->mount_point)) status = -1;
    return status ? 1 : 0;
}

/* Prefers memory, if there is enough: it is faster than every device of the model. */
static const char *parent_folder(void)
{
    struct statfs st;
    const char *wanted = getenv("TMPDIR");
    if (wanted && *wanted) return wanted;
    if (statfs("/dev/shm", &st) == 0 && st.f_type == TMPFS_MAGIC_NUMBER &&
        (uint64_t)st.f_bavail * (uint64_t)st.f_bsize >= MIN_SHM_BYTES)
        return "/dev/shm";
    return "/tmp";
}

static int make_folders(struct bench *bench)
{
    (void)snprintf(bench->folder, sizeof bench->folder, "%s/spindle-XXXXXX", parent_folder());
    if (!mkdtemp(bench->folder)) {
        (void)fail(bench->folder);
        bench->folder[0] = '\0';
        return -1;
    }
    (void)snprintf(bench->backing, sizeof bench->backing, "%s/backing", bench->folder);
    (void)snprintf(bench->mount_point, sizeof bench->mount_point, "%s/mount", bench->folder);
    (void)snprintf(bench->file, sizeof bench->file, "%s/file", bench->mount_point);
    (void)snprintf(bench->backing_file, sizeof bench->backing_file, "%s/file", bench->backing);
    if (mkdir(bench->backing, 0700) || mkdir(bench->mount_point, 0700)) return fail(bench->folder);
    if (posix_memalign((void **)&bench->buffer, IO_BYTES, CHUNK_BYTES)) return fail("memory");
    memset(bench->buffer, 's', CHUNK_BYTES);
    return 0;
}

int selftest(char *const *names, int n_names)
{
    /* Other work of the machine shall not slow the measurement. Says nothing on failure: not root.
     */
    const struct sched_param param = {.sched_priority = 1};
    struct bench bench = {0};
    int status = 0;

    note_signals();
    (void)sched_setscheduler(0, SCHED_RR, &param);
    for (int i = 0; i < n_names; i++) {
        if (device_find(names[i])) continue;
        fprintf(stderr, "spindle: %s: no such device; see --list\n", names[i]);
        return 1;
    }
    if (make_folders(&bench)) status = 1;
    if (!status)
        printf("%-16s %24s %24s %24s %24s\n%-16s", "", "write MB/s", "read MB/s", "4 KiB reads/s",
               "4 KiB writes/s", "device");
    for (int i = 0; !status && i < 4; i++)
        printf(" %8s %8s %6s", "model", "measured", "");
    if (!status) printf("\n");
    size_t n = 0;
    while (n_names ? n < (size_t)n_names : device_at(n) != NULL) n++;
    for (size_t i = 0; status <= 1 && !stop_signal && i < n; i++) {
        bench.device = n_names ? device_find(names[i]) : device_at(i);
        int one = test_preset(&bench);
        if (one) status = one;
    }
    free(bench.buffer);
    if (bench.folder[0]) {
        (void)unlink(bench.backing_file);
        (void)rmdir(bench.mount_point);
        (void)rmdir(bench.backing);
        (void)rmdir(bench.folder);
    }
    if (stop_signal) die_of(stop_signal);
    return status;
}
