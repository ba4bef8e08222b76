/*
 * disk_space.c -- see disk_space.h.
 *
 * Finds the mount point by going up from the path until the device changes. This misses a bind
 * mount of a directory of the same file system, which is harmless: both share the space.
 */
#include "os/disk_space.h"

#include "os/transfers.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/size.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* Resolves all links in the path or, if it does not exist, in the path of its directory. Returns
   false if neither exists. */
static bool resolve(const char *path, char resolved[PATH_MAX])
{
    char dir[PATH_MAX];
    if (realpath(path, resolved)) return true;
    int n = snprintf(dir, sizeof dir, "%s", path);
    if (n < 0 || (size_t)n >= sizeof dir) return false;
    if (!strchr(dir, '/')) return realpath(".", resolved) != NULL;
    return path_go_up(dir) && realpath(dir, resolved) != NULL;
}

bool disk_space_look(const char *path, struct disk_space *space)
{
    struct statvfs fs;
    struct stat st;
    char up[PATH_MAX];
    *space = (struct disk_space){.known = false};
    if (!resolve(path, space->mount) || statvfs(space->mount, &fs) != 0 ||
        stat(space->mount, &st) != 0)
        return false;
    space->free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    space->free_files = fs.f_files > 0 ? (uint64_t)fs.f_favail : UINT64_MAX;
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

enum { TEXT_BYTES = PATH_MAX + 128 };

/* Writes the part of an error that is about space. Returns text, empty if nothing is known. */
static const char *describe(const char *path, uint64_t needed_bytes, char text[TEXT_BYTES])
{
    struct disk_space space;
    char size[SIZE_TEXT_BYTES];
    text[0] = '\0';
    if (!disk_space_look(path, &space)) return text;
    /* A few inodes may be free again, because files were removed after the failure. File systems
       that create inodes on demand report none when they have no space, so the message is about
       inodes only if there is space. */
    enum { FEW_FILES = 64, ROOM_BYTES = 1 << 20 };
    if (space.free_files < FEW_FILES && space.free_bytes >= ROOM_BYTES) {
        (void)snprintf(text, TEXT_BYTES,
                       "; '%s' has %s free, but only %" PRIu64 " inodes for files", space.mount,
                       size_format(space.free_bytes, size), space.free_files);
        return text;
    }
    int n = snprintf(text, TEXT_BYTES, "; '%s' has %s free", space.mount,
                     size_format(space.free_bytes, size));
    if (needed_bytes > 0 && n > 0 && n < TEXT_BYTES)
        (void)snprintf(text + n, TEXT_BYTES - (size_t)n,
                       ", %s more are needed", size_format(needed_bytes, size));
    return text;
}

void disk_space_print_full(const char *dir, const char *reason, uint64_t needed_bytes)
{
    char space[TEXT_BYTES];
    diag_full_disk(dir, "cannot write in '%s': %s%s; free space or change -T", dir, reason,
                   describe(dir, needed_bytes, space));
}

void disk_space_print_output_error(const char *name, int error, const char *path,
                                   uint64_t needed_bytes)
{
    char space[TEXT_BYTES];
    const char *problem = error ? strerror(error) : "htslib reports an error";
    if (path && disk_space_is_short(error))
        diag_full_disk(path, "cannot write '%s': %s%s", name, problem,
                       describe(path, needed_bytes, space));
    else
        diag_error("cannot write '%s': %s%s", name,
                   path_is_url(name) ? transfers_problem(error) : problem, diag_advice(error));
}
