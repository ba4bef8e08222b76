/*
 * spindle_fs_names.c -- see spindle_fs_names.h. Each request becomes the system call of the same
 * name, relative to a node's O_PATH descriptor.
 */
#define _GNU_SOURCE
#include "spindle_fs_names.h"
#include "spindle_control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct dir {
    DIR *stream;
    off_t offset;
};

/* ---- requests: names ---- */

static void reply_lookup(fuse_req_t req, struct node *parent, const char *name)
{
    struct fuse_entry_param entry;
    int error = node_lookup(fs_of(req), parent, name, &entry);
    if (error)
        fuse_reply_err(req, error);
    else
        fuse_reply_entry(req, &entry);
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry;
    struct fs *fs = fs_of(req);

    if (control_is(parent) || (parent == FUSE_ROOT_ID && !strcmp(name, CONTROL_DIR))) {
        int error = control_lookup(parent, name, &entry);
        if (error)
            fuse_reply_err(req, error);
        else
            fuse_reply_entry(req, &entry);
        return;
    }
    int error = node_lookup(fs, node_of(fs, parent), name, &entry);
    if (error == ENOENT) { /* this reply lets the kernel remember it */
        entry.ino = 0;
        error = 0;
    }
    if (error)
        fuse_reply_err(req, error);
    else
        fuse_reply_entry(req, &entry);
}

static void do_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
    struct fs *fs = fs_of(req);
    if (!control_is(ino)) node_forget(fs, node_of(fs, ino), n);
    fuse_reply_none(req);
}

/* Gives a new file to the user who asked for it. */
static int give_to_caller(fuse_req_t req, const struct node *parent, const char *name)
{
    const struct fuse_ctx *ctx = fuse_req_ctx(req);
    fs_of(req)->renamed_in = fs_of(req)->commit;
    if (geteuid() || (!ctx->uid && !ctx->gid)) return 0;
    return fchownat(parent->path_fd, name, ctx->uid, ctx->gid, AT_SYMLINK_NOFOLLOW) ? errno : 0;
}

/* Ends a request that made a name. status: what the system call returned. */
static void reply_made(fuse_req_t req, struct node *parent, const char *name, int status)
{
    int error = status ? errno : give_to_caller(req, parent, name);
    if (error)
        fuse_reply_err(req, error);
    else
        reply_lookup(req, parent, name);
}

/* Ends a request that changed names. status: what the system call returned. */
static void reply_changed(fuse_req_t req, int status)
{
    if (!status) fs_of(req)->renamed_in = fs_of(req)->commit;
    fuse_reply_err(req, status ? errno : 0);
}

/* Replies EPERM, and returns true, for a control file. */
static bool refuses(fuse_req_t req, fuse_ino_t parent)
{
    if (!control_is(parent)) return false;
    fuse_reply_err(req, EPERM);
    return true;
}

static void do_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev)
{
    if (refuses(req, parent)) return;
    struct node *dir = node_of(fs_of(req), parent);
    reply_made(req, dir, name, mknodat(dir->path_fd, name, mode, dev));
}

static void do_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    if (refuses(req, parent)) return;
    struct node *dir = node_of(fs_of(req), parent);
    reply_made(req, dir, name, mkdirat(dir->path_fd, name, mode));
}

static void do_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    if (refuses(req, parent)) return;
    struct node *dir = node_of(fs_of(req), parent);
    reply_made(req, dir, name, symlinkat(target, dir->path_fd, name));
}

static void do_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    char path[PROC_PATH_BYTES];

    if (refuses(req, parent) || refuses(req, ino)) return;
    struct fs *fs = fs_of(req);
    struct node *dir = node_of(fs, parent);
    node_proc_path(node_of(fs, ino), path);
    if (linkat(AT_FDCWD, path, dir->path_fd, name, AT_SYMLINK_FOLLOW)) {
        fuse_reply_err(req, errno);
        return;
    }
    fs->renamed_in = fs->commit;
    node_changed(fs, node_of(fs, ino), false);
    reply_lookup(req, dir, name);
}

static void do_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    if (refuses(req, parent)) return;
    reply_changed(req, unlinkat(node_of(fs_of(req), parent)->path_fd, name, 0));
}

static void do_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    if (refuses(req, parent)) return;
    reply_changed(req, unlinkat(node_of(fs_of(req), parent)->path_fd, name, AT_REMOVEDIR));
}

static void do_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
                      const char *new_name, unsigned flags)
{
    if (refuses(req, parent) || refuses(req, new_parent)) return;
    struct fs *fs = fs_of(req);
    reply_changed(req, renameat2(node_of(fs, parent)->path_fd, name,
                                 node_of(fs, new_parent)->path_fd, new_name, flags));
}

static void do_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *info)
{
    struct fuse_entry_param entry;

    if (refuses(req, parent)) return;
    struct fs *fs = fs_of(req);
    struct node *dir = node_of(fs, parent);
    int flags = O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC | (info->flags & (O_EXCL | O_TRUNC));
    int fd = openat(dir->path_fd, name, flags, mode);
    int error = fd < 0 ? errno : 0;
    if (!error) error = give_to_caller(req, dir, name);
    if (!error) error = node_lookup(fs, dir, name, &entry);
    if (!error) {
        struct node *node = node_of(fs, entry.ino);
        if (node->io_fd < 0 && !node->n_open) {
            node->io_fd = fd;
            node->io_writable = true;
            fd = -1;
        }
        node_changed(fs, node, true);
        error = node_open(node, true);
        if (error) node_forget(fs, node, 1);
    }
    if (fd >= 0) close(fd);
    if (error) {
        fuse_reply_err(req, error);
        return;
    }
    info->keep_cache = 1;
    fuse_reply_create(req, &entry, info);
}

static void do_readlink(fuse_req_t req, fuse_ino_t ino)
{
    char target[4097];
    ssize_t n = readlinkat(node_of(fs_of(req), ino)->path_fd, "", target, sizeof target - 1);
    if (n < 0) {
        fuse_reply_err(req, errno);
        return;
    }
    target[n] = '\0';
    fuse_reply_readlink(req, target);
}

/* ---- requests: attributes ---- */

static void do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
    struct stat attr;

    (void)info;
    if (control_is(ino) ? control_attr(ino, &attr)
                        : fstat(node_of(fs_of(req), ino)->path_fd, &attr))
        fuse_reply_err(req, errno);
    else
        fuse_reply_attr(req, &attr, control_is(ino) ? 0 : CACHE_SECONDS);
}

static int set_times(const char *path, const struct stat *attr, int set)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
    if (set & FUSE_SET_ATTR_ATIME) times[0] = attr->st_atim;
    if (set & FUSE_SET_ATTR_MTIME) times[1] = attr->st_mtim;
    if (set & FUSE_SET_ATTR_ATIME_NOW) times[0].tv_nsec = UTIME_NOW;
    if (set & FUSE_SET_ATTR_MTIME_NOW) times[1].tv_nsec = UTIME_NOW;
    return utimensat(AT_FDCWD, path, times, 0);
}

static int set_attr(struct fs *fs, struct node *node, const struct stat *attr, int set)
{
    char path[PROC_PATH_BYTES];

    node_proc_path(node, path);
    node_changed(fs, node, false);
    if (set & FUSE_SET_ATTR_MODE && chmod(path, attr->st_mode & 07777)) return errno;
    if (set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) {
        uid_t uid = set & FUSE_SET_ATTR_UID ? attr->st_uid : (uid_t)-1;
        gid_t gid = set & FUSE_SET_ATTR_GID ? attr->st_gid : (gid_t)-1;
        if (fchownat(node->path_fd, "", uid, gid, AT_EMPTY_PATH)) return errno;
    }
    if (set & FUSE_SET_ATTR_SIZE) {
        int error = node_truncate(fs, node, attr->st_size);
        if (error) return error;
    }
    if (set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW |
               FUSE_SET_ATTR_MTIME_NOW) &&
        set_times(path, attr, set))
        return errno;
    return 0;
}

static void do_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int set,
                       struct fuse_file_info *info)
{
    if (control_is(ino)) { /* a shell's > opened it with O_TRUNC */
        do_getattr(req, ino, info);
        return;
    }
    struct fs *fs = fs_of(req);
    int error = set_attr(fs, node_of(fs, ino), attr, set);
    if (error)
        fuse_reply_err(req, error);
    else
        do_getattr(req, ino, info);
}

static void do_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct statvfs st;

    (void)ino;
    struct fs *fs = fs_of(req);
    if (fstatvfs(fs->root.path_fd, &st)) {
        fuse_reply_err(req, errno);
        return;
    }
    uint64_t size = fs->size_bytes;
    if (size) {
        st.f_bsize = st.f_frsize = SPACE_BLOCK_BYTES;
        st.f_blocks = size / SPACE_BLOCK_BYTES;
        st.f_bfree = fs->used_bytes < size ? (size - fs->used_bytes) / SPACE_BLOCK_BYTES : 0;
        st.f_bavail = st.f_bfree;
    }
    fuse_reply_statfs(req, &st);
}

/* ---- requests: directories ---- */

static void do_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
    if (control_is(ino)) { /* its files are found by name only */
        fuse_reply_err(req, EACCES);
        return;
    }
    struct dir *dir = calloc(1, sizeof *dir);
    int fd = openat(node_of(fs_of(req), ino)->path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!dir || fd < 0 || !(dir->stream = fdopendir(fd))) {
        fuse_reply_err(req, errno);
        if (fd >= 0) close(fd);
        free(dir);
        return;
    }
    info->fh = (uintptr_t)dir;
    fuse_reply_open(req, info);
}

static void do_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                       struct fuse_file_info *info)
{
    struct dir *dir = (struct dir *)(uintptr_t)info->fh;
    char *list = malloc(size);
    size_t n = 0;

    (void)ino;
    if (!list) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    if (offset != dir->offset) {
        seekdir(dir->stream, offset);
        dir->offset = offset;
    }
    for (;;) {
        struct dirent *entry = readdir(dir->stream);
        if (!entry) break;
        struct stat attr = {.st_ino = entry->d_ino, .st_mode = (mode_t)entry->d_type << 12};
        size_t more = fuse_add_direntry(req, list + n, size - n, entry->d_name, &attr,
                                        entry->d_off);
        if (more > size - n) {
            seekdir(dir->stream, dir->offset);
            break;
        }
        n += more;
        dir->offset = entry->d_off;
    }
    fuse_reply_buf(req, list, n);
    free(list);
}

static void do_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
    struct dir *dir = (struct dir *)(uintptr_t)info->fh;
    (void)ino;
    closedir(dir->stream);
    free(dir);
    fuse_reply_err(req, 0);
}

void names_ops(struct fuse_lowlevel_ops *ops)
{
    ops->lookup = do_lookup;
    ops->forget = do_forget;
    ops->mknod = do_mknod;
    ops->mkdir = do_mkdir;
    ops->symlink = do_symlink;
    ops->link = do_link;
    ops->unlink = do_unlink;
    ops->rmdir = do_rmdir;
    ops->rename = do_rename;
    ops->create = do_create;
    ops->readlink = do_readlink;
    ops->getattr = do_getattr;
    ops->setattr = do_setattr;
    ops->statfs = do_statfs;
    ops->opendir = do_opendir;
    ops->readdir = do_readdir;
    ops->releasedir = do_releasedir;
}
