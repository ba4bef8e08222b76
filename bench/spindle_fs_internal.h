/*
 * spindle_fs_internal.h -- what the files of the file system share: spindle_fs.c (session, control
 * files), spindle_fs_names.c (names and attributes), spindle_fs_data.c (contents).
 *
 * Threads: FUSE requests are taken by one thread, which alone uses all that is here. The clock's
 * thread only finishes requests: it reads their data from the backing file and replies. Errors: an
 * errno to reply with, or 0.
 */
#ifndef SPINDLE_FS_INTERNAL_H
#define SPINDLE_FS_INTERNAL_H

#define FUSE_USE_VERSION 35

#include "spindle_fs.h"
#include "spindle_report.h"
#include "spindle_space.h"

#include <fuse3/fuse_lowlevel.h>
#include <pthread.h>
#include <sys/stat.h>

/* Everything changes through the mount only, so what the kernel knows stays right. */
#define CACHE_SECONDS 86400.0
#define MAX_REQUEST_BYTES (1U << 20) /* what FUSE takes at most: 256 pages */

/* A file of the backing directory, whatever its names. It stays in the table after the kernel
 * forgot it, without descriptor, as long as it has a place on the device. */
struct node {
    struct node *next;
    dev_t dev;
    ino_t ino;
    uint64_t n_lookups;
    int path_fd; /* O_PATH; -1: forgotten */
    int io_fd;   /* shared by all that have it open */
    bool io_writable;
    unsigned n_open;
    bool is_mapped; /* what it had before the mount has a place, too */
    uint64_t changed_in; /* the commit that will have its attributes: fs->commit of then */
    uint64_t grown_in;   /* the same of its size or places, which fdatasync needs, too */
    uint64_t end;        /* of what was written */
    struct file_map map;
    uint64_t used_bytes; /* of --size */
};

struct fs {
    const struct fs_options *options;
    struct fuse_session *session;
    struct model *model;
    struct space *space;
    struct report report;
    struct node root;
    struct node **buckets;
    size_t n_buckets, n_nodes;
    uint64_t used_bytes;
    uint64_t commit;     /* the number of the journal's next one */
    uint64_t renamed_in; /* the commit that will have the last change of names */
    pthread_t thread;   /* which takes requests */
    char *read_buffers[2]; /* MAX_REQUEST_BYTES: that thread's and the clock's */
};

static inline struct fs *fs_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

/* ---- spindle_fs_names.c ---- */

void names_ops(struct fuse_lowlevel_ops *ops);

/* The node behind a number that is not a control file's. */
struct node *node_of(struct fs *fs, fuse_ino_t ino);

/* Opens an entry of a directory and makes it known to the kernel. */
int node_lookup(struct fs *fs, struct node *parent, const char *name,
                struct fuse_entry_param *entry);

/* /proc/self/fd/N: works for whatever O_PATH has open. */
#define PROC_PATH_BYTES 32
void node_proc_path(const struct node *node, char *path);

void node_table_release(struct fs *fs);

/* ---- spindle_fs_data.c ---- */

void data_ops(struct fuse_lowlevel_ops *ops);

/* The shared descriptor, one user more; node_close ends that. */
int node_open(struct node *node, bool for_writing);
void node_close(struct fs *fs, struct node *node);

/* Cuts or extends the file. */
int node_truncate(struct fs *fs, struct node *node, off_t size);

/* Gives back the places of a file's bytes; what was not written to the device never is. */
void node_unmap(struct fs *fs, struct node *node, uint64_t offset, uint64_t len);

/* Replies when the changes of names are in the journal. */
void names_sync(fuse_req_t req);

static inline void node_changed(const struct fs *fs, struct node *node, bool grown)
{
    node->changed_in = fs->commit;
    if (grown) node->grown_in = fs->commit;
}

/* ---- spindle_fs.c: the control directory and its files ---- */

#define CONTROL_DIR_INO 2
#define CONTROL_FIRST_INO 3

bool control_is(fuse_ino_t ino);
int control_lookup(fuse_ino_t parent, const char *name, struct fuse_entry_param *entry);
int control_attr(fuse_ino_t ino, struct stat *attr);
int control_open(struct fs *fs, fuse_ino_t ino, struct fuse_file_info *info);
void control_read(fuse_req_t req, size_t size, off_t offset, const struct fuse_file_info *info);
void control_write(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *data);
void control_drain(fuse_req_t req);
void control_release(const struct fuse_file_info *info);

#endif
