/*
 * spindle_fs.c -- see spindle_fs.h: mounting, the session, and the control files in .spindle, which
 * no listing shows: report.json (a new one at each open), reset (what is written begins a record
 * with that label; fsync waits until the write buffer is empty), rotational (0 or 1, as a block
 * device's queue/rotational), pid.
 *
 * The kernel side is as on a local file system: page cache with write-back, read-ahead of 128 KiB
 * (for arrays two rows of stripes, as md sets it), names and attributes cached for good. Kernel and
 * model have room for 64 requests, as a disk's queue (nr_requests). With --size there is no
 * write-back: write() says ENOSPC then, as it does on file systems that reserve space for dirty
 * pages.
 */
#define _GNU_SOURCE
#include "spindle_fs_internal.h"

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
/* FUSE is given 1 % of the dirty pages that the kernel allows, 43 MB on a machine of 24 GB. A fixed
 * number makes results of different machines comparable; with the write buffer it is 20 % of 480
 * MB, what a machine of 1 GB may have left for page cache. */
#define KERNEL_DIRTY_BYTES (UINT64_C(32) << 20)
#define MAX_LABEL_BYTES 256

/* ---- control files ---- */

enum { CONTROL_REPORT, CONTROL_RESET, CONTROL_ROTATIONAL, CONTROL_PID, N_CONTROLS };

static const char *const control_names[N_CONTROLS] = {"report.json", "reset", "rotational", "pid"};

bool control_is(fuse_ino_t ino)
{
    return ino >= CONTROL_DIR_INO && ino < CONTROL_FIRST_INO + N_CONTROLS;
}

int control_attr(fuse_ino_t ino, struct stat *attr)
{
    *attr = (struct stat){.st_ino = ino, .st_nlink = 1, .st_mode = S_IFREG | 0444};
    if (ino == CONTROL_DIR_INO) attr->st_mode = S_IFDIR | 0555;
    if (ino == CONTROL_FIRST_INO + CONTROL_RESET) attr->st_mode = S_IFREG | 0666;
    return 0;
}

int control_lookup(fuse_ino_t parent, const char *name, struct fuse_entry_param *entry)
{
    *entry = (struct fuse_entry_param){.entry_timeout = CACHE_SECONDS};
    if (parent == FUSE_ROOT_ID) entry->ino = CONTROL_DIR_INO;
    for (unsigned i = 0; parent == CONTROL_DIR_INO && i < N_CONTROLS; i++)
        if (!strcmp(name, control_names[i])) entry->ino = CONTROL_FIRST_INO + i;
    if (!entry->ino) return ENOENT;
    return control_attr(entry->ino, &entry->attr);
}

int control_open(struct fs *fs, fuse_ino_t ino, struct fuse_file_info *info)
{
    char *text = NULL;
    int n = 0;

    switch (ino - CONTROL_FIRST_INO) {
    case CONTROL_REPORT: text = report_json(&fs->report); break;
    case CONTROL_RESET: text = strdup(""); break;
    case CONTROL_ROTATIONAL: n = asprintf(&text, "%d\n", fs->options->device.rotates); break;
    case CONTROL_PID: n = asprintf(&text, "%ld\n", (long)getpid()); break;
    default: return EPERM;
    }
    if (n < 0 || !text) return ENOMEM;
    info->fh = (uintptr_t)text;
    info->direct_io = 1;
    return 0;
}

void control_read(fuse_req_t req, size_t size, off_t offset, const struct fuse_file_info *info)
{
    const char *text = (const char *)(uintptr_t)info->fh;
    size_t len = strlen(text), from = (size_t)offset < len ? (size_t)offset : len;
    fuse_reply_buf(req, text + from, len - from < size ? len - from : size);
}

void control_write(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *data)
{
    char label[MAX_LABEL_BYTES] = "";
    size_t size = fuse_buf_size(data);
    struct fuse_bufvec to = FUSE_BUFVEC_INIT(sizeof label - 1);

    to.buf[0].mem = label;
    if (ino != CONTROL_FIRST_INO + CONTROL_RESET || size >= sizeof label ||
        fuse_buf_copy(&to, data, 0) < 0) {
        fuse_reply_err(req, EINVAL);
    } else if (report_next(&fs_of(req)->report, label)) {
        fuse_reply_err(req, ENOMEM);
    } else {
        fuse_reply_write(req, size);
    }
}

struct drain {
    struct model_op op;
    fuse_req_t req;
};

static void drain_done(struct model_op *op)
{
    struct drain *drain = (struct drain *)op;
    fuse_reply_err(drain->req, 0);
    free(drain);
}

void control_drain(fuse_req_t req)
{
    struct drain *drain = calloc(1, sizeof *drain);
    if (!drain) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    drain->op.done = drain_done;
    drain->req = req;
    model_drain(fs_of(req)->model, &drain->op);
}

void control_release(const struct fuse_file_info *info)
{
    free((char *)(uintptr_t)info->fh);
}

/* ---- session ---- */

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

    want(conn, FUSE_CAP_WRITEBACK_CACHE, !fs->options->size_bytes);
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

/* Writes an attribute of the mount's backing device. Quiet on failure: not root, or the kernel is
 * older than the attribute. */
static void set_attribute(dev_t dev, const char *name, uint64_t value)
{
    char path[80];
    (void)snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/%s", major(dev), minor(dev), name);
    FILE *file = fopen(path, "w");
    if (!file) return;
    (void)fprintf(file, "%" PRIu64 "\n", value);
    (void)fclose(file);
}

/* A thread, since it asks for the mount's attributes, which the loop answers. */
static void *tune_main(void *arg)
{
    const struct fs_options *options = arg;
    struct stat attr;

    if (stat(options->mount_point, &attr)) return NULL;
    set_attribute(attr.st_dev, "read_ahead_kb", options->readahead_bytes >> 10);
    set_attribute(attr.st_dev, "max_bytes", KERNEL_DIRTY_BYTES);
    return NULL;
}

/* A drive does not wait for a processor: these threads go before the programs that use it. They
 * need little time. Quiet on failure: not root. */
static void set_priority(void)
{
    struct sched_param param = {.sched_priority = 1};
    struct rlimit files;

    (void)sched_setscheduler(0, SCHED_RR, &param);
    if (getrlimit(RLIMIT_NOFILE, &files)) return;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max = 1 << 20; /* one for each name that the kernel caches */
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

/* Bytes of the files that are there already, for --size. */
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

static int open_root(struct fs *fs)
{
    struct stat attr;
    const char *backing = fs->options->backing;

    fs->root.io_fd = -1;
    fs->root.path_fd = open(backing, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fs->root.path_fd < 0 || fstat(fs->root.path_fd, &attr)) {
        fprintf(stderr, "spindle: %s: %s\n", backing, strerror(errno));
        return -1;
    }
    fs->root.dev = attr.st_dev;
    fs->root.ino = attr.st_ino;
    if (fs->options->size_bytes) fs->used_bytes = used_below(backing);
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

static int mount_session(struct fs *fs)
{
    char source[256];
    struct fuse_lowlevel_ops ops = {.init = do_init};
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    const struct fs_options *o = fs->options;

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

/* From the background on: threads and signals. */
static int run_session(struct fs *fs)
{
    pthread_t tuning;

    if (fuse_daemonize(fs->options->foreground) || fuse_set_signal_handlers(fs->session)) return -1;
    umask(0);
    set_priority();
    fs->thread = pthread_self();
    int status = model_start(fs->model);
    if (status) fprintf(stderr, "spindle: no thread for the clock\n");
    bool tunes =
        !status && !pthread_create(&tuning, NULL, tune_main, (void *)(uintptr_t)fs->options);
    if (!status) status = loop(fs);
    if (tunes) pthread_join(tuning, NULL);
    fuse_remove_signal_handlers(fs->session);
    return status;
}

int fs_serve(const struct fs_options *options)
{
    struct fs fs = {.options = options, .root.path_fd = -1, .commit = 1};
    int status = check_fuse(options->mount_point);
    if (status) return status;

    status = -1;
    if (open_root(&fs)) goto err;
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
    status = mount_session(&fs);
    if (!status) {
        status = run_session(&fs);
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
