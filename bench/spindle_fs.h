/*
 * spindle_fs.h -- the file system: serves a directory through libfuse at the speed of the model.
 *
 * fs_serve mounts and serves until the file system is unmounted or a signal ends it. Unless
 * foreground is true it goes into the background once it is mounted. Returns 0, -1 after a message,
 * or FS_NO_FUSE after a message if there is no FUSE.
 */
#ifndef SPINDLE_FS_H
#define SPINDLE_FS_H

#include "spindle_device.h"

#include <stdbool.h>

#define FS_NO_FUSE (-2)

struct fs_options {
    const char *backing, *mount_point;
    struct device device;
    uint64_t size_bytes;         /* 0: no limit but the backing directory's */
    uint64_t write_buffer_bytes;
    uint64_t readahead_bytes;
    bool foreground;
};

int fs_serve(const struct fs_options *options);

#endif
