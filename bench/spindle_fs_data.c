/*
 * spindle_fs_data.c -- see spindle_fs_data.h. A file's bytes get places on the device when they
 * arrive here. What a file contained before the mount gets its places, in one piece, when it is
 * first used. Holes have no places and take no time.
 */
#define _GNU_SOURCE
#include "spindle_fs_data.h"
#include "spindle_control.h"

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

/* Makes a request for the places of the node's bytes. Replies and returns NULL if memory is short.
 */
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
    /* A write by the page cache does not have the flags of the program that opened the file. */
    bool through = !info->writepage && info->flags & (O_DIRECT | O_SYNC | O_DSYNC);
    model_write(fs->model, &io->op, through);
}

static void sync_done(struct model_op *op)
{
    struct io *io = (struct io *)op;
    fuse_reply_err(io->req, 0);
    free(io);
}

/* Replies when the file's data and its last change are on the device. A commit contains all that
 * changed since the last one, as those of ext4 and XFS do, so what changed before the last commit
 * needs no new one. */
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

static void do_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *info)
{
    (void)ino;
    (void)datasync;
    (void)info;
    start_sync(req, NULL, fs_of(req)->renamed_in);
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
    ops->fsyncdir = do_fsyncdir;
    ops->fallocate = do_fallocate;
}
