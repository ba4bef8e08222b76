/* file_owner.c -- see file_owner.h. */
#include "os/file_owner.h"

#include "util/words.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static const char *const reach_names[] = {"none", "host", "all"};

/* ---- locks ---- */

enum file_lock file_lock_try(int fd, bool waits)
{
    enum { TRIES = 10, WAIT_MICROSECONDS = 20000 };
    for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
        bool has_none = errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP ||
                        errno == EINVAL;
        if (has_none) return FILE_LOCK_NONE;
        if (errno != EWOULDBLOCK) return FILE_LOCK_ERROR;
        if (!waits || i == TRIES) return FILE_LOCK_BUSY;
        (void)usleep(WAIT_MICROSECONDS);
    }
    return FILE_LOCK_HELD;
}

bool file_lock_has_name(int fd, int dir_fd, const char *name)
{
    struct stat held, there;
    return fstat(fd, &held) == 0 && fstatat(dir_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

/* ---- how far locks reach ---- */

enum { MAGIC_NFS = 0x6969, MAGIC_LUSTRE = 0x0bd00bd0 };

/* True for local file systems, and for shared ones whose locks all hosts see with any mount
   options. */
static bool reaches_all(unsigned long magic)
{
    static const unsigned long all[] = {
        0xef53 /* ext */, 0x58465342 /* XFS */, 0x9123683e /* Btrfs */, 0x01021994 /* tmpfs */,
        0x858458f6 /* ramfs */, 0x794c7630 /* overlay */, 0xf2f52010 /* F2FS */,
        0x2fc12fc1 /* ZFS */, 0xca451a4e /* bcachefs */, 0x3153464a /* JFS */,
        0x4d44 /* FAT */, 0x2011bab0 /* exFAT */, 0x7366746e /* NTFS */,
        0x00c36400 /* Ceph */, 0x01161970 /* GFS2 */, 0x7461636f /* OCFS2 */,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] == magic) return true;
    return false;
}

enum lock_reach file_owner_reach(unsigned long magic, const char *options)
{
    bool all = reaches_all(magic);
    if (magic == MAGIC_NFS && options)
        all = !words_list_has(options, "nolock") && !words_list_has(options, "local_lock=all") &&
              !words_list_has(options, "local_lock=flock");
    if (magic == MAGIC_LUSTRE && options) all = words_list_has(options, "flock");
    return all ? LOCK_REACH_ALL : LOCK_REACH_HOST;
}

/* Returns the mount options of the file system on a device, or NULL if it is not listed. The caller
   frees them. */
static char *find_options(dev_t device)
{
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    char *line = NULL, *options = NULL;
    size_t room = 0;
    while (mounts && !options && getline(&line, &room, mounts) > 0) {
        unsigned a, b;
        char *last = strrchr(line, ' ');
        if (sscanf(line, "%*d %*d %u:%u", &a, &b) != 2 || !last) continue;
        if (makedev(a, b) != device) continue;
        last[strcspn(last, "\n")] = '\0';
        options = xstrdup(last + 1);
    }
    free(line);
    if (mounts) (void)fclose(mounts);
    return options;
}

static enum lock_reach find_reach(int fd)
{
    struct statfs fs;
    struct stat st;
    if (fstatfs(fd, &fs) < 0) return LOCK_REACH_HOST;
    unsigned long magic = (unsigned long)fs.f_type & 0xffffffff;
    if (reaches_all(magic) || fstat(fd, &st) < 0) return file_owner_reach(magic, NULL);
    char *options = find_options(st.st_dev);
    enum lock_reach reach = file_owner_reach(magic, options);
    free(options);
    return reach;
}

/* ---- this process ---- */

/* Copies a name that must be one printable word. */
static void copy_word(const char *from, char to[FILE_OWNER_NAME_BYTES])
{
    size_t n = 0;
    for (; from[n] && from[n] != '\n' && n + 1 < FILE_OWNER_NAME_BYTES; n++)
        to[n] = isgraph((unsigned char)from[n]) ? from[n] : '?';
    to[n] = '\0';
    if (n == 0) (void)strcpy(to, "?");
}

/* Stores "?" if there is no /proc; "?" never equals another boot. */
static void find_boot(char boot[FILE_OWNER_NAME_BYTES])
{
    char text[FILE_OWNER_NAME_BYTES] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file && !fgets(text, sizeof text, file)) *text = '\0';
    if (file) (void)fclose(file);
    copy_word(text, boot);
}

void file_owner_self(int fd, enum file_lock lock, struct file_owner *self)
{
    char host[FILE_OWNER_NAME_BYTES] = "", processes[FILE_OWNER_NAME_BYTES] = "";
    *self = (struct file_owner){.process = (long)getpid()};
    if (gethostname(host, sizeof host - 1) < 0) *host = '\0';
    if (readlink("/proc/self/ns/pid", processes, sizeof processes - 1) < 0) *processes = '\0';
    copy_word(host, self->host);
    copy_word(processes, self->processes);
    find_boot(self->boot);
    self->reach = lock == FILE_LOCK_HELD ? find_reach(fd) : LOCK_REACH_NONE;
}

/* ---- reading and writing the file ---- */

enum { TEXT_BYTES = 512 };

int file_owner_write(int fd, const struct file_owner *owner)
{
    char text[TEXT_BYTES];
    int n = snprintf(text, sizeof text,
                     "rocksort-owner 1\nhost %s\nboot %s\nprocesses %s\nprocess %ld\nlock %s\n",
                     owner->host, owner->boot, owner->processes, owner->process,
                     reach_names[owner->reach]);
    ssize_t written = pwrite(fd, text, (size_t)n, 0);
    int error = written < 0 ? errno : ENOSPC;
    if (written == n && ftruncate(fd, n) == 0) return 0;
    if (written == n) error = errno;
    (void)!ftruncate(fd, 0);
    errno = error;
    return -1;
}

/* Returns 1 and the owner, 0 if the file is empty, or -1 if it names no owner. */
static int read_owner(int fd, struct file_owner *owner)
{
    char text[TEXT_BYTES], reach[8], end;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    *owner = (struct file_owner){.host = "?"};
    if (n <= 0) return n == 0 ? 0 : -1;
    text[n] = '\0';
    int fields = sscanf(text, "rocksort-owner 1\nhost %64s\nboot %64s\nprocesses %64s\n"
                        "process %ld\nlock %7s%c", owner->host, owner->boot, owner->processes,
                        &owner->process, reach, &end);
    if (fields < 6 || end != '\n' || owner->process <= 0) return -1;
    for (int i = LOCK_REACH_NONE; i <= LOCK_REACH_ALL; i++)
        if (strcmp(reach, reach_names[i]) == 0) {
            owner->reach = (enum lock_reach)i;
            return 1;
        }
    return -1;
}

/* ---- the rule ---- */

/* True if a process runs as the same user as this one. */
static bool is_of_user(long process)
{
    char path[64];
    struct stat st;
    (void)snprintf(path, sizeof path, "/proc/%ld", process);
    return stat(path, &st) == 0 && st.st_uid == geteuid();
}

/* True if the process has this file open, or if that cannot be seen. False for a process of another
   user: it has reused the PID. */
static bool process_has_open(long process, const struct stat *st)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/fd", process);
    DIR *dir = opendir(path);
    if (!dir) return errno != ENOENT && is_of_user(process);
    bool found = false;
    for (struct dirent *entry; !found && (entry = readdir(dir)) != NULL;) {
        struct stat other;
        found = isdigit((unsigned char)*entry->d_name) &&
                fstatat(dirfd(dir), entry->d_name, &other, 0) == 0 &&
                other.st_dev == st->st_dev && other.st_ino == st->st_ino;
    }
    (void)closedir(dir);
    return found;
}

enum file_owner_state file_owner_judge(const struct file_owner *owner,
                                       const struct file_owner *self, bool has_open)
{
    if (self->reach == LOCK_REACH_ALL && owner->reach == LOCK_REACH_ALL) return FILE_OWNER_DEAD;
    bool same_host = strcmp(owner->host, self->host) == 0 && strcmp(owner->host, "?") != 0;
    bool same_kernel = strcmp(owner->boot, self->boot) == 0 && strcmp(owner->boot, "?") != 0;
    if (!same_kernel) return same_host ? FILE_OWNER_ON_NAMESAKE : FILE_OWNER_ON_HOST;
    if (self->reach != LOCK_REACH_NONE && owner->reach != LOCK_REACH_NONE) return FILE_OWNER_DEAD;
    if (strcmp(owner->processes, self->processes) != 0) return FILE_OWNER_IN_CONTAINER;
    return has_open ? FILE_OWNER_ALIVE : FILE_OWNER_DEAD;
}

enum file_owner_state file_owner_look(int fd, enum file_lock lock, struct file_owner *owner)
{
    struct file_owner self;
    struct stat st;
    int r = read_owner(fd, owner);
    if (r == 0) return FILE_OWNER_DEAD;
    if (r < 0 || fstat(fd, &st) < 0) return FILE_OWNER_ON_HOST;
    file_owner_self(fd, lock, &self);
    /* This process has it open itself. */
    bool has_open = owner->process != self.process && process_has_open(owner->process, &st);
    return file_owner_judge(owner, &self, has_open);
}

/* ---- outputs ---- */

bool file_owner_writes_output(int fd, long process)
{
    enum { RECENT_SECONDS = 600 };      /* a network disk may stall for minutes */
    struct stat st;
    struct statfs fs;
    if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0) return true;
    if (process != (long)getpid() && process_has_open(process, &st)) return true;
    return !reaches_all((unsigned long)fs.f_type & 0xffffffff) &&
           difftime(time(NULL), st.st_mtime) < RECENT_SECONDS;
}
