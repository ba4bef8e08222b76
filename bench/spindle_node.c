/*
 * spindle_node.c -- see spindle_node.h.
 */
#define _GNU_SOURCE
#include "spindle_node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the table ---- */

struct node *node_of(struct fs *fs, fuse_ino_t ino)
{
    return ino == FUSE_ROOT_ID ? &fs->root : (struct node *)(uintptr_t)ino;
}

void node_proc_path(const struct node *node, char *path)
{
    (void)snprintf(path, PROC_PATH_BYTES, "/proc/self/fd/%d", node->path_fd);
}

static struct node **node_find(struct fs *fs, dev_t dev, ino_t ino)
{
    struct node **at = &fs->buckets[ino % fs->n_buckets];
    while (*at && ((*at)->ino != ino || (*at)->dev != dev))
        at = &(*at)->next;
    return at;
}

static int table_grow(struct fs *fs)
{
    size_t n_buckets = fs->n_buckets ? fs->n_buckets * 2 : 1024;
    struct node **buckets = calloc(n_buckets, sizeof(struct node *));
    if (!buckets) return ENOMEM;
    for (size_t i = 0; i < fs->n_buckets; i++) {
        while (fs->buckets[i]) {
            struct node *node = fs->buckets[i];
            fs->buckets[i] = node->next;
            node->next = buckets[node->ino % n_buckets];
            buckets[node->ino % n_buckets] = node;
        }
    }
    free(fs->buckets);
    fs->buckets = buckets;
    fs->n_buckets = n_buckets;
    return 0;
}

/* Finds or makes the node of a file. Takes over path_fd, which has the file open. */
static int node_get(struct fs *fs, int path_fd, const struct stat *attr, struct node **result)
{
    if (fs->n_nodes >= fs->n_buckets && table_grow(fs)) goto err;
    struct node **at = node_find(fs, attr->st_dev, attr->st_ino);
    if (*at) {
        if ((*at)->path_fd < 0)
            (*at)->path_fd = path_fd;
        else
            close(path_fd);
    } else {
        struct node *node = calloc(1, sizeof *node);
        if (!node) goto err;
        node->dev = attr->st_dev;
        node->ino = attr->st_ino;
        node->path_fd = path_fd;
        node->io_fd = -1;
        if (S_ISREG(attr->st_mode)) node->used_bytes = (uint64_t)attr->st_blocks * 512;
        *at = node;
        fs->n_nodes++;
    }
    (*at)->n_lookups++;
    *result = *at;
    return 0;
err:
    close(path_fd);
    return ENOMEM;
}

static void node_free(struct fs *fs, struct node *node)
{
    *node_find(fs, node->dev, node->ino) = node->next;
    fs->n_nodes--;
    file_map_release(&node->map);
    if (node->path_fd >= 0) close(node->path_fd);
    if (node->io_fd >= 0) close(node->io_fd);
    free(node);
}

void node_forget(struct fs *fs, struct node *node, uint64_t n)
{
    struct stat attr;

    if (node == &fs->root) return;
    node->n_lookups -= n < node->n_lookups ? n : node->n_lookups;
    if (node->n_lookups) return;
    if (fstat(node->path_fd, &attr) == 0 && attr.st_nlink && S_ISREG(attr.st_mode)) {
        close(node->path_fd);
        node->path_fd = -1;
        return;
    }
    node_unmap(fs, node, 0, UINT64_MAX);
    fs->used_bytes -= node->used_bytes < fs->used_bytes ? node->used_bytes : fs->used_bytes;
    node_free(fs, node);
}

void node_table_release(struct fs *fs)
{
    for (size_t i = 0; i < fs->n_buckets; i++)
        while (fs->buckets[i])
            node_free(fs, fs->buckets[i]);
    free(fs->buckets);
    fs->buckets = NULL;
    fs->n_buckets = 0;
}

int node_lookup(struct fs *fs, struct node *parent, const char *name,
                struct fuse_entry_param *entry)
{
    struct node *node;

    *entry = (struct fuse_entry_param){.attr_timeout = CACHE_SECONDS,
                                       .entry_timeout = CACHE_SECONDS};
    int fd = openat(parent->path_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return errno;
    if (fstat(fd, &entry->attr)) {
        int error = errno;
        close(fd);
        return error;
    }
    int error = node_get(fs, fd, &entry->attr, &node);
    if (!error) entry->ino = (uintptr_t)node;
    return error;
}

/* ---- open files ---- */

int node_open(struct node *node, bool for_writing)
{
    char path[PROC_PATH_BYTES];

    if (node->io_fd < 0 || (for_writing && !node->io_writable)) {
        node_proc_path(node, path);
        /* The page cache reads a page before a writer changes a part of it: open for both if that
         * is allowed. */
        int fd = open(path, O_RDWR | O_CLOEXEC);
        bool writable = fd >= 0;
        if (fd < 0 && !for_writing) fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) return errno;
        if (node->io_fd >= 0) {
            /* Requests that are under way use the old number. */
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
    /* Gives back what was allocated ahead. */
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
    /* If memory is short, some places stay taken. Nothing else depends on them. */
    (void)space_unmap(fs->space, &node->map, &part, discard, fs->model);
}

int node_map_old(struct fs *fs, struct node *node)
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

void node_account(struct fs *fs, struct node *node)
{
    struct stat attr;

    if (!fs->size_bytes || fstat(node->io_fd, &attr)) return;
    uint64_t now = (uint64_t)attr.st_blocks * 512;
    fs->used_bytes += now;
    fs->used_bytes -= node->used_bytes < fs->used_bytes ? node->used_bytes : fs->used_bytes;
    node->used_bytes = now;
}

size_t node_room(const struct fs *fs, const struct node *node, off_t offset, size_t len)
{
    struct stat attr;
    uint64_t size = fs->size_bytes;
    off_t end = offset + (off_t)len;

    if (!size || fs->used_bytes + len + SPACE_BLOCK_BYTES <= size) return len;
    if (fstat(node->io_fd, &attr) == 0 && end <= attr.st_size &&
        lseek(node->io_fd, offset, SEEK_HOLE) >= end)
        return len;
    uint64_t room = fs->used_bytes < size ? size - fs->used_bytes : 0;
    room -= room % SPACE_BLOCK_BYTES;
    /* The block that offset is in counts already. */
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
