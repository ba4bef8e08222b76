/* small_disk.h -- mounts a small file system and fills it. Needs root. */
#ifndef ROCKSORT_TEST_SMALL_DISK_H
#define ROCKSORT_TEST_SMALL_DISK_H

#include "random_records.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes the directory and mounts a tmpfs of n_bytes there. Returns false if this machine does not
   allow it. */
static inline bool mount_small_disk(const char *path, size_t n_bytes)
{
    char options[64];
    (void)snprintf(options, sizeof options, "size=%zu", n_bytes);
    assert_int_equal(mkdir(path, 0700), 0);
    if (mount("none", path, "tmpfs", 0, options) == 0) return true;
    assert_int_equal(rmdir(path), 0);
    return false;
}

static inline void unmount_small_disk(const char *path)
{
    assert_int_equal(umount2(path, MNT_DETACH), 0);
    assert_int_equal(rmdir(path), 0);
}

/* Writes a file until nothing more fits. */
static inline void fill_small_disk(const char *path)
{
    static const char zeros[4096];
    char name[1024];
    (void)snprintf(name, sizeof name, "%s/filler", path);
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_int_equal(setvbuf(file, NULL, _IONBF, 0), 0);
    while (fwrite(zeros, 1, sizeof zeros, file) == sizeof zeros) continue;
    (void)fclose(file);
}

#endif
