/*
 * spindle_node.h -- the files of the backing directory that the kernel knows, and what all parts of
 * the file system share.
 *
 * A node is a file, found by device and inode number and held open with O_PATH. No path is ever
 * composed, so hard links, renames and files without a name need no care.
 *
 * Calls: fs_serve fills a struct fs. node_lookup makes a node known and counts the kernel's
 * reference to it; node_forget gives references back. Between node_open and node_close the node has
 * a descriptor for its contents. node_table_release frees all nodes at the end.
 *
 * Threads: one thread takes the requests of FUSE, and it alone calls these functions and changes
 * what is here. The clock's thread only finishes requests: it reads from a node's descriptor and
 * replies. Errors: an errno to reply with, or 0.
 */
#ifndef SPINDLE_NODE_H
#define SPINDLE_NODE_H

#define FUSE_USE_VERSION 35

#include "spindle_report.h"
#include "spindle_space.h"

#include <fuse3/fuse_lowlevel.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>

/* Files change only through the mount, so what the kernel knows of them stays right. */
#define CACHE_SECONDS 86400.0
#define MAX_REQUEST_BYTES (1U << 20) /* FUSE takes at most 256 pages */

/* A file, whatever its names. While it has places on the device it stays in the table, without a
 * descriptor, even after the kernel forgot it. */
struct node {
    struct node *next; /* in its bucket */
    dev_t dev;
    ino_t ino;
    uint64_t n_lookups; /* references that the kernel has */
    int path_fd;        /* O_PATH; -1: the kernel forgot it */
    int io_fd;          /* for the contents; all who have the file open share it */
    bool io_writable;
    unsigned n_open;
    bool is_mapped;      /* what it contained before the mount has places */
    uint64_t changed_in; /* number of the commit that will contain its attributes */
    uint64_t grown_in;   /* the same for its size and places, which fdatasync needs */
    uint64_t end;        /* of what was written */
    struct file_map map;
    uint64_t used_bytes; /* of --size */
};

struct fs {
    /* Fixed once it is mounted. */
    uint64_t size_bytes; /* --size; 0: no limit but the backing directory's */
    bool rotates;
    struct fuse_session *session;
    struct model *model;
    struct space *space;
    pthread_t thread;      /* takes the requests */
    char *read_buffers[2]; /* MAX_REQUEST_BYTES each: for that thread and for the clock's */
    /* Only that thread. */
    struct report report;
    struct node root;
    struct node **buckets;
    size_t n_buckets, n_nodes;
    uint64_t used_bytes; /* of --size */
    uint64_t commit;     /* number of the journal's next commit */
    uint64_t renamed_in; /* number of the commit that will contain the last change of names */
};

static inline struct fs *fs_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

/* The node that has this number, which is not that of a control file. */
struct node *node_of(struct fs *fs, fuse_ino_t ino);

/* Opens an entry of a directory and makes it known to the kernel. */
int node_lookup(struct fs *fs, struct node *parent, const char *name,
                struct fuse_entry_param *entry);

/* Takes n references back. Frees the node, and its places, if no name is left. */
void node_forget(struct fs *fs, struct node *node, uint64_t n);

void node_table_release(struct fs *fs);

/* A path, /proc/self/fd/N, for calls that do not take an O_PATH descriptor. */
#define PROC_PATH_BYTES 32
void node_proc_path(const struct node *node, char *path);

/* Counts one user more of the descriptor, which is made for the first; node_close one less. */
int node_open(struct node *node, bool for_writing);
void node_close(struct fs *fs, struct node *node);

/* Gives places to what an open file contained before the mount. */
int node_map_old(struct fs *fs, struct node *node);

/* Gives back the places of a file's bytes. Data for them that wait in the write buffer are never
 * written to the device. */
void node_unmap(struct fs *fs, struct node *node, uint64_t offset, uint64_t len);

/* Cuts or extends the file. */
int node_truncate(struct fs *fs, struct node *node, off_t size);

/* Counts again how much of --size an open file uses; to be called after its size may have changed.
 */
void node_account(struct fs *fs, struct node *node);

/* How many of len bytes --size allows to write at offset of an open file. */
size_t node_room(const struct fs *fs, const struct node *node, off_t offset, size_t len);

/* Notes that the next commit must contain the file's attributes and, if grown, size and places. */
static inline void node_changed(const struct fs *fs, struct node *node, bool grown)
{
    node->changed_in = fs->commit;
    if (grown) node->grown_in = fs->commit;
}

#endif
