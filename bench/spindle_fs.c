/*
 * spindle_fs.c -- see spindle_fs.h: mounts, and takes requests until the end.
 *
 * The kernel does what it does for a local file system: page cache with write-back, read-ahead of
 * 128 KiB (for arrays two rows of stripes, as md sets it), names and attributes cached without
 * limit. Kernel and model have room for 64 requests, as a disk's queue has (nr_requests). With
 * --size there is no write-back, so that write() itself fails with ENOSPC, as it does on file
 * systems that reserve space for dirty pages.
 */
#define _GNU_SOURCE
#include "spindle_fs.h"
#include "spindle_fs_data.h"
#include "spindle_fs_names.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define QUEUE_REQUESTS 64
/* By default the kernel lets FUSE have 1 % of all dirty pages, 43 MB on a machine of 24 GB. A fixed
 * number makes results of different machines comparable. Together with the write buffer it is 20 %
 * of 480 MB, the page cache that a machine of 1 GB may have left. */
#define KERNEL_DIRTY_BYTES (UINT64_C(32) << 20)

static void want(struct fuse_conn_info *conn, unsigned capability, bool wanted)
{
    if (wanted)
        conn->want |= conn->capable & capability;
    else
        conn->want &= ~capability;
}

static void do_init(void *userdata, struct fuse_conn_info *conn)
{
    struct fs *fs = userdata;

    want(conn, FUSE_CAP_WRITEBACK_CACHE, !fs->size_bytes);
    want(conn, FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS, true);
    want(conn, FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_CACHE_SYMLINKS, true);
    want(conn, FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_HANDLE_KILLPRIV, false);
    /* Copying takes 0.34 to 0.38 s of CPU a GB, as splice does for writes; splice for reads takes
     * 0.30, but twice as much for requests of 1 MiB, which do not fit its pipe. */
    want(conn, FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE, false);
    conn->max_write = MAX_REQUEST_BYTES;
    conn->max_background = QUEUE_REQUESTS;
    conn->congestion_threshold = QUEUE_REQUESTS * 3 / 4;
    conn->time_gran = 1;
}

/* Writes an attribute of the mount's backing device. Says nothing if that fails: not root, or the
 * kernel is older than the attribute. */
static void set_attribute(dev_t dev, const char *name, uint64_t value)
{
    char path[80];
    (void)snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/%s", major(dev), minor(dev), name);
    FILE *file = fopen(path, "w");
    if (!file) return;
    (void)fprintf(file, "%" PRIu64 "\n", value);
    (void)fclose(file);
}

/* Runs in its own thread: it asks for the mount's attributes, and loop() answers. */
static void *tune_main(void *arg)
{
    const struct fs_options *options = arg;
    struct stat attr;

    if (stat(options->mount_point, &attr)) return NULL;
    set_attribute(attr.st_dev, "read_ahead_kb", options->readahead_bytes >> 10);
    set_attribute(attr.st_dev, "max_bytes", KERNEL_DIRTY_BYTES);
    return NULL;
}

/* A drive does not wait for a processor, so these threads run before the programs that use it. They
 * need little time. Says nothing if that fails: not root. */
static void set_priority(void)
{
    struct sched_param param = {.sched_priority = 1};
    struct rlimit files;

    (void)sched_setscheduler(0, SCHED_RR, &param);
    if (getrlimit(RLIMIT_NOFILE, &files)) return;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max = 1 << 20; /* one for each file that the kernel caches */
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

static int loop(struct fs *fs)
{
    struct fuse_buf buf = {0};
    int status = 0;

    while (!fuse_session_exited(fs->session)) {
        status = fuse_session_receive_buf(fs->session, &buf);
        if (status == -EINTR) continue;
        if (status <= 0) break;
        fuse_session_process_buf(fs->session, &buf);
    }
    free(buf.mem);
    return status < 0 && status != -ENODEV ? -1 : 0;
}

/* Bytes of the files that exist before the mount, for --size. */
static uint64_t used_below(const char *folder)
{
    char *const paths[] = {(char *)(uintptr_t)folder, NULL};
    uint64_t used = 0;
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!walk) return 0;
    for (FTSENT *entry = fts_read(walk); entry; entry = fts_read(walk))
        if (entry->fts_info == FTS_F && entry->fts_statp->st_nlink)
            used += (uint64_t)entry->fts_statp->st_blocks * 512 / entry->fts_statp->st_nlink;
    fts_close(walk);
    return used;
}

static int open_root(struct fs *fs, const char *backing)
{
    struct stat attr;

    fs->root.io_fd = -1;
    fs->root.path_fd = open(backing, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fs->root.path_fd < 0 || fstat(fs->root.path_fd, &attr)) {
        fprintf(stderr, "spindle: %s: %s\n", backing, strerror(errno));
        return -1;
    }
    fs->root.dev = attr.st_dev;
    fs->root.ino = attr.st_ino;
    if (fs->size_bytes) fs->used_bytes = used_below(backing);
    return 0;
}

static int check_fuse(const char *mount_point)
{
    struct stat attr;
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        fprintf(stderr, "spindle: no FUSE here: /dev/fuse: %s\n", strerror(errno));
        return FS_NO_FUSE;
    }
    close(fd);
    if (stat(mount_point, &attr) || !S_ISDIR(attr.st_mode)) {
        fprintf(stderr, "spindle: %s is not a directory\n", mount_point);
        return -1;
    }
    return 0;
}

static int mount_session(struct fs *fs, const struct fs_options *o)
{
    char source[256];
    struct fuse_lowlevel_ops ops = {.init = do_init};
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);

    (void)snprintf(source, sizeof source, "-ofsname=spindle:%s,subtype=spindle", o->device.name);
    names_ops(&ops);
    data_ops(&ops);
    int failed = fuse_opt_add_arg(&args, "spindle") || fuse_opt_add_arg(&args, source) ||
                 fuse_opt_add_arg(&args, "-odefault_permissions") ||
                 (geteuid() == 0 && fuse_opt_add_arg(&args, "-oallow_other"));
    if (!failed) fs->session = fuse_session_new(&args, &ops, sizeof ops, fs);
    fuse_opt_free_args(&args);
    if (!fs->session) {
        fprintf(stderr, "spindle: libfuse made no session\n");
        return -1;
    }
    if (fuse_session_mount(fs->session, o->mount_point)) {
        fprintf(stderr, "spindle: no FUSE here: it cannot be mounted on %s\n", o->mount_point);
        return FS_NO_FUSE;
    }
    return 0;
}

/* Goes into the background, starts the threads, serves until the end. */
static int run_session(struct fs *fs, const struct fs_options *options)
{
    pthread_t tuning;

    if (fuse_daemonize(options->foreground) || fuse_set_signal_handlers(fs->session)) return -1;
    umask(0);
    set_priority();
    fs->thread = pthread_self();
    int status = model_start(fs->model);
    if (status) fprintf(stderr, "spindle: no thread for the clock\n");
    bool tunes =
        !status && !pthread_create(&tuning, NULL, tune_main, (void *)(uintptr_t)options);
    if (!status) status = loop(fs);
    if (tunes) pthread_join(tuning, NULL);
    fuse_remove_signal_handlers(fs->session);
    return status;
}

int fs_serve(const struct fs_options *options)
{
    struct fs fs = {.size_bytes = options->size_bytes,
                    .rotates = options->device.rotates,
                    .root.path_fd = -1,
                    .commit = 1};
    int status = check_fuse(options->mount_point);
    if (status) return status;

    status = -1;
    if (open_root(&fs, options->backing)) goto err;
    fs.model = model_create(&options->device, options->write_buffer_bytes);
    fs.space = space_create();
    for (int i = 0; i < 2; i++)
        fs.read_buffers[i] = malloc(MAX_REQUEST_BYTES);
    if (!fs.model || !fs.space || !fs.read_buffers[0] || !fs.read_buffers[1]) {
        fprintf(stderr, "spindle: out of memory\n");
        goto err;
    }
    fs.report.device = &options->device;
    fs.report.model = fs.model;
    fs.report.write_buffer_bytes = options->write_buffer_bytes;
    report_init(&fs.report, "start");
    status = mount_session(&fs, options);
    if (!status) {
        status = run_session(&fs, options);
        fuse_session_unmount(fs.session);
    }
err:
    model_destroy(fs.model);
    if (fs.session) fuse_session_destroy(fs.session);
    node_table_release(&fs);
    space_destroy(fs.space);
    report_release(&fs.report);
    free(fs.read_buffers[0]);
    free(fs.read_buffers[1]);
    if (fs.root.path_fd >= 0) close(fs.root.path_fd);
    return status;
}
