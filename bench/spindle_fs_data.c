/*
 * spindle_fs_data.c -- see spindle_fs_internal.h. Data are written to the backing file when the
 * request comes in, and read when its time has come, so that nothing is held in memory meanwhile;
 * only the replies wait for the model. The backing file is never synced: what the model says is
 * durable need not survive this process.
 *
 * A file's bytes have a place on the device from the moment they arrive here. What a file contained
 * before the mount gets one when it is first opened, in one piece. Holes have none and cost
 * nothing.
 */
#define _GNU_SOURCE
#include "spindle_fs_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* A request to FUSE and to the model. */
struct io {
    struct model_op op; /* first: op->done gets its address */
    fuse_req_t req;
    int fd;
    off_t offset;
    size_t size;
    struct range ranges[];
};

/* The places of the node's bytes in a new request; NULL if memory is short. */
static struct io *io_create(fuse_req_t req, const struct node *node, uint64_t offset, uint64_t len)
{
    size_t n = node ? space_ranges(&node->map, offset, len, NULL, 0) : 0;
    struct io *io = malloc(sizeof *io + n * sizeof *io->ranges);
    if (!io) {
        fuse_reply_err(req, ENOMEM);
        return NULL;
    }
    *io = (struct io){.req = req, .offset = (off_t)offset, .size = (size_t)len};
    io->op.ranges = io->ranges;
    io->op.n_ranges = n;
    if (n) (void)space_ranges(&node->map, offset, len, io->ranges, n);
    return io;
}

/* ---- open files ---- */

int node_open(struct node *node, bool for_writing)
{
    char path[PROC_PATH_BYTES];

    if (node->io_fd < 0 || (for_writing && !node->io_writable)) {
        node_proc_path(node, path);
        /* The page cache reads what a writer changes in part: always both, if that is allowed. */
        int fd = open(path, O_RDWR | O_CLOEXEC);
        bool writable = fd >= 0;
        if (fd < 0 && !for_writing) fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) return errno;
        if (node->io_fd >= 0) {
            /* Requests under way have the old number. */
            int same = dup3(fd, node->io_fd, O_CLOEXEC);
            close(fd);
            if (same < 0) return errno;
        } else {
            node->io_fd = fd;
        }
        node->io_writable = writable;
    }
    node->n_open++;
    return 0;
}

void node_close(struct fs *fs, struct node *node)
{
    struct stat attr;

    if (--node->n_open) return;
    /* What was allocated ahead goes back. */
    if (fstat(node->io_fd, &attr) == 0)
        node_unmap(fs, node, (uint64_t)attr.st_size, UINT64_MAX);
    close(node->io_fd);
    node->io_fd = -1;
    node->io_writable = false;
}

static void discard(void *arg, struct range range)
{
    model_discard(arg, range);
}

void node_unmap(struct fs *fs, struct node *node, uint64_t offset, uint64_t len)
{
    struct range part = {offset, len};
    /* If memory is short, some places stay taken: nothing else depends on them. */
    (void)space_unmap(fs->space, &node->map, &part, discard, fs->model);
}

/* Gives a place to what was there before the mount. */
static int node_map_old(struct fs *fs, struct node *node)
{
    struct stat attr;

    if (node->is_mapped) return 0;
    node->is_mapped = true;
    if (fstat(node->io_fd, &attr)) return errno;
    node->end = (uint64_t)attr.st_size;
    if (attr.st_size == 0 || node->map.n_extents) return 0;
    return space_map(fs->space, &node->map, 0, (uint64_t)attr.st_size) ? ENOMEM : 0;
}

/* ---- --size ---- */

/* After a change: what the file takes now. */
static void node_account(struct fs *fs, struct node *node)
{
    struct stat attr;

    if (!fs->options->size_bytes || fstat(node->io_fd, &attr)) return;
    uint64_t now = (uint64_t)attr.st_blocks * 512;
    fs->used_bytes += now;
    fs->used_bytes -= node->used_bytes < fs->used_bytes ? node->used_bytes : fs->used_bytes;
    node->used_bytes = now;
}

/* How many of len bytes may be written at offset. */
static size_t node_room(const struct fs *fs, const struct node *node, off_t offset, size_t len)
{
    struct stat attr;
    uint64_t size = fs->options->size_bytes;
    off_t end = offset + (off_t)len;

    if (!size || fs->used_bytes + len + SPACE_BLOCK_BYTES <= size) return len;
    if (fstat(node->io_fd, &attr) == 0 && end <= attr.st_size &&
        lseek(node->io_fd, offset, SEEK_HOLE) >= end)
        return len;
    uint64_t room = fs->used_bytes < size ? size - fs->used_bytes : 0;
    room -= room % SPACE_BLOCK_BYTES;
    /* Up to the end of the block that offset is in. */
    uint64_t within = (uint64_t)offset % SPACE_BLOCK_BYTES;
    if (within) room = room + SPACE_BLOCK_BYTES - within;
    return room < len ? (size_t)room : len;
}

int node_truncate(struct fs *fs, struct node *node, off_t size)
{
    int error = node_open(node, true);
    if (error) return error;
    error = node_map_old(fs, node);
    if (!error && ftruncate(node->io_fd, size)) error = errno;
    if (!error) {
        node_unmap(fs, node, (uint64_t)size, UINT64_MAX);
        node_account(fs, node);
        node->end = (uint64_t)size;
        node_changed(fs, node, true);
    }
    node_close(fs, node);
    return error;
}

/* ---- requests ---- */

static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
    struct fs *fs = fs_of(req);
    int error;

    if (control_is(ino)) {
        error = control_open(fs, ino, info);
    } else {
        struct node *node = node_of(fs, ino);
        error = node_open(node, (info->flags & O_ACCMODE) != O_RDONLY);
        if (!error && info->flags & O_TRUNC) {
            error = node_truncate(fs, node, 0);
            if (error) node_close(fs, node);
        }
        info->keep_cache = 1;
    }
    if (error)
        fuse_reply_err(req, error);
    else
        fuse_reply_open(req, info);
}

static void do_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
    struct fs *fs = fs_of(req);
    if (control_is(ino))
        control_release(info);
    else
        node_close(fs, node_of(fs, ino));
    fuse_reply_err(req, 0);
}

static void read_done(struct model_op *op)
{
    struct io *io = (struct io *)op;
    struct fs *fs = fs_of(io->req);
    char *buffer = fs->read_buffers[!pthread_equal(pthread_self(), fs->thread)];
    ssize_t n = pread(io->fd, buffer, io->size, io->offset);
    if (n < 0)
        fuse_reply_err(io->req, errno);
    else
        fuse_reply_buf(io->req, buffer, (size_t)n);
    free(io);
}

static void do_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                    struct fuse_file_info *info)
{
    struct fs *fs = fs_of(req);

    if (size > MAX_REQUEST_BYTES) size = MAX_REQUEST_BYTES; /* a short read is allowed */
    if (control_is(ino)) {
        control_read(req, size, offset, info);
        return;
    }
    struct node *node = node_of(fs, ino);
    int error = node_map_old(fs, node);
    if (error) {
        fuse_reply_err(req, error);
        return;
    }
    struct io *io = io_create(req, node, (uint64_t)offset, size);
    if (!io) return;
    io->fd = node->io_fd;
    io->op.done = read_done;
    model_read(fs->model, &io->op);
}

static void write_done(struct model_op *op)
{
    struct io *io = (struct io *)op;
    fuse_reply_write(io->req, io->size);
    free(io);
}

static void do_write(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *data, off_t offset,
                     struct fuse_file_info *info)
{
    struct fs *fs = fs_of(req);

    if (control_is(ino)) {
        control_write(req, ino, data);
        return;
    }
    struct node *node = node_of(fs, ino);
    int error = node_map_old(fs, node);
    size_t len = node_room(fs, node, offset, fuse_buf_size(data));
    if (!error && !len) error = ENOSPC;
    ssize_t n = 0;
    if (!error) {
        struct fuse_bufvec file = FUSE_BUFVEC_INIT(len);
        file.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
        file.buf[0].fd = node->io_fd;
        file.buf[0].pos = offset;
        n = fuse_buf_copy(&file, data, 0);
        if (n <= 0) error = n < 0 ? (int)-n : EIO;
        node_account(fs, node);
    }
    uint64_t mapped = node->map.mapped_bytes;
    if (!error && space_map(fs->space, &node->map, (uint64_t)offset, (uint64_t)n)) error = ENOMEM;
    if (error) {
        fuse_reply_err(req, error);
        return;
    }
    bool grown = (uint64_t)offset + (uint64_t)n > node->end || node->map.mapped_bytes > mapped;
    if ((uint64_t)offset + (uint64_t)n > node->end) node->end = (uint64_t)offset + (uint64_t)n;
    node_changed(fs, node, grown);
    struct io *io = io_create(req, node, (uint64_t)offset, (uint64_t)n);
    if (!io) return;
    io->op.done = write_done;
    /* What comes from the page cache has nobody's flags. */
    bool through = !info->writepage && info->flags & (O_DIRECT | O_SYNC | O_DSYNC);
    model_write(fs->model, &io->op, through);
}

static void sync_done(struct model_op *op)
{
    struct io *io = (struct io *)op;
    fuse_reply_err(io->req, 0);
    free(io);
}

/* A commit takes all that changed since the last one, as those of ext4 and XFS: what was changed
 * before it needs none of its own. */
static void start_sync(fuse_req_t req, const struct node *node, uint64_t changed_in)
{
    struct fs *fs = fs_of(req);
    bool commit = changed_in == fs->commit;
    struct io *io = io_create(req, node, 0, UINT64_MAX);
    if (!io) return;
    io->op.done = sync_done;
    if (commit) fs->commit++;
    model_sync(fs->model, &io->op, commit);
}

void names_sync(fuse_req_t req)
{
    start_sync(req, NULL, fs_of(req)->renamed_in);
}

static void do_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *info)
{
    (void)info;
    if (control_is(ino)) {
        control_drain(req);
        return;
    }
    const struct node *node = node_of(fs_of(req), ino);
    start_sync(req, node, datasync ? node->grown_in : node->changed_in);
}

static void do_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t len,
                         struct fuse_file_info *info)
{
    struct fs *fs = fs_of(req);

    (void)info;
    if (control_is(ino)) {
        fuse_reply_err(req, EPERM);
        return;
    }
    struct node *node = node_of(fs, ino);
    bool punches = mode & FALLOC_FL_PUNCH_HOLE;
    int error = node_map_old(fs, node);
    if (!error && !punches && node_room(fs, node, offset, (size_t)len) < (size_t)len)
        error = ENOSPC;
    if (!error && fallocate(node->io_fd, mode, offset, len)) error = errno;
    if (!error && punches) node_unmap(fs, node, (uint64_t)offset, (uint64_t)len);
    if (!error && !punches &&
        space_map(fs->space, &node->map, (uint64_t)offset, (uint64_t)len))
        error = ENOMEM;
    node_account(fs, node);
    if (!error) node_changed(fs, node, true);
    fuse_reply_err(req, error);
}

void data_ops(struct fuse_lowlevel_ops *ops)
{
    ops->open = do_open;
    ops->release = do_release;
    ops->read = do_read;
    ops->write_buf = do_write;
    ops->fsync = do_fsync;
    ops->fallocate = do_fallocate;
}
