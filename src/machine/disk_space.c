/*
 * disk_space.c -- see disk_space.h.
 *
 * The mount point is found by going up from the path until the device changes. A bind mount of a
 * directory of the same file system is not seen in this way, but its space is the same.
 */
#include "machine/disk_space.h"

#include "util/path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* The path without links, or that of its directory; false: neither exists. */
static bool resolve(const char *path, char resolved[PATH_MAX])
{
    char dir[PATH_MAX];
    if (realpath(path, resolved)) return true;
    int n = snprintf(dir, sizeof dir, "%s", path);
    if (n < 0 || (size_t)n >= sizeof dir) return false;
    if (!strchr(dir, '/')) return realpath(".", resolved) != NULL;
    return path_go_up(dir) && realpath(dir, resolved) != NULL;
}

static int look_at_free(const char *path, uint64_t *free_bytes, uint64_t *free_files)
{
    struct statvfs fs;
    *free_bytes = *free_files = 0;
    if (statvfs(path, &fs) != 0) return -1;
    *free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    *free_files = fs.f_files > 0 ? (uint64_t)fs.f_favail : UINT64_MAX;
    return 0;
}

int disk_space_free(const char *path, uint64_t *free_bytes)
{
    uint64_t free_files;
    return look_at_free(path, free_bytes, &free_files);
}

bool disk_space_look(const char *path, struct disk_space *space)
{
    struct stat st;
    char up[PATH_MAX];
    *space = (struct disk_space){.known = false};
    if (!resolve(path, space->mount) ||
        look_at_free(space->mount, &space->free_bytes, &space->free_files) < 0 ||
        stat(space->mount, &st) != 0)
        return false;
    space->device = st.st_dev;
    memcpy(up, space->mount, sizeof up);
    while (path_go_up(up) && stat(up, &st) == 0 && st.st_dev == space->device)
        memcpy(space->mount, up, sizeof up);
    space->known = true;
    return true;
}

bool disk_space_is_short(int error)
{
    return error == ENOSPC || error == EDQUOT;
}

const char *disk_space_size(uint64_t n_bytes, char text[DISK_SPACE_SIZE_BYTES])
{
    static const struct {
        double bytes;
        const char *name;
    } units[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}};
    (void)snprintf(text, DISK_SPACE_SIZE_BYTES, "%" PRIu64 " bytes", n_bytes);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if ((double)n_bytes < units[i].bytes) continue;
        (void)snprintf(text, DISK_SPACE_SIZE_BYTES, "%.1f %s", (double)n_bytes / units[i].bytes,
                       units[i].name);
        break;
    }
    return text;
}

const char *disk_space_describe(const char *path, uint64_t needed_bytes,
                                char text[DISK_SPACE_TEXT_BYTES])
{
    struct disk_space space;
    char size[DISK_SPACE_SIZE_BYTES];
    text[0] = '\0';
    if (!disk_space_look(path, &space)) return text;
    /* Whoever failed may have removed some meanwhile; and a disk may make inodes as it needs them,
       in its free space. */
    enum { FEW_FILES = 64, ROOM_BYTES = 1 << 20 };
    if (space.free_files < FEW_FILES && space.free_bytes >= ROOM_BYTES) {
        (void)snprintf(text, DISK_SPACE_TEXT_BYTES,
                       "; '%s' has %s free, but only %" PRIu64 " inodes for files", space.mount,
                       disk_space_size(space.free_bytes, size), space.free_files);
        return text;
    }
    int n = snprintf(text, DISK_SPACE_TEXT_BYTES, "; '%s' has %s free", space.mount,
                     disk_space_size(space.free_bytes, size));
    if (needed_bytes > 0 && n > 0 && n < DISK_SPACE_TEXT_BYTES)
        (void)snprintf(text + n, DISK_SPACE_TEXT_BYTES - (size_t)n,
                       ", %s more are needed", disk_space_size(needed_bytes, size));
    return text;
}
