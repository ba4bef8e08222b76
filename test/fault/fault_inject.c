/*
 * fault_inject.c -- a library that tests preload into rocksort to make system calls fail.
 *
 *     FAULT='KIND:N:ACTION[:PART][,...]'    pwrite:3:ENOSPC    malloc:100+:ENOMEM
 *                                           pread:7:flip:.sst  open:1:term:.tmp,rmdir:1:500ms
 *     FAULT_REPORT=FILE                     when main returns, the number of calls of each kind,
 *                                           and of the calls that each fault counted, is written
 *                                           there
 *
 * KIND is one of the functions below. N is the number of a call, from 1; N+ means that call and all
 * after it. With PART only the calls count whose path contains the part. The path of a descriptor
 * is the one that /proc shows, with "dir:" before it if it is a directory. ACTION is one of
 *     an errno       the call fails with it (malloc and the like return NULL)
 *     short          a read or write does half of what it was asked for
 *     skip           the call is not made, but reports success: for fsync and fdatasync
 *     flip           one bit of what was read, or of what LZ4 decompressed, is changed
 *     swap           the first two records that LZ4 decompressed change places
 *     term           the process gets SIGTERM; the call is made 200 ms later
 *     kill           the process gets SIGKILL
 *     abort          the caller calls abort, as if an assert of it had failed
 *     500ms          the call is made so much later
 *
 * FAULT_SYNCED=FOLDER: shows what a power failure would leave. Whenever a file or directory is
 * synced, its state is written to the folder: the bytes of a file to f-KEY; for each name in a
 * directory a line "f-KEY NAME" or "d-KEY NAME" to d-KEY. KEY is made of the number of the inode
 * and the time of its creation.
 *
 * Calls of the program, of RocksDB and of htslib are counted in the whole process, but only while
 * main runs, and only in programs whose name begins with `samtools`. Calls that the C library makes
 * itself, such as those within fopen, are not seen; but fopen is.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define KINDS(K)                                                                                   \
    K(read) K(pread) K(write) K(pwrite) K(writev) K(open) K(openat) K(fopen) K(fdopen) K(close)    \
    K(flock) K(fsync) K(fdatasync) K(sync_file_range) K(ftruncate) K(fallocate)                    \
    K(posix_fallocate)                                                                             \
    K(rename) K(renameat2) K(link) K(unlink) K(unlinkat) K(mkdir) K(mkdtemp) K(rmdir) K(opendir)   \
    K(fdopendir)                                                                                   \
    K(readdir) K(stat) K(fstat) K(lstat) K(statvfs) K(fstatfs) K(fcntl) K(socketpair) K(realpath)  \
    K(mmap) K(malloc) K(calloc) K(realloc) K(posix_memalign) K(aligned_alloc) K(strdup)            \
    K(strndup) K(pthread_create) K(LZ4_decompress_safe)

#define AS_ENUM(name) KIND_##name,
#define AS_NAME(name) #name,
enum kind { KINDS(AS_ENUM) N_KINDS };
static const char *const kind_names[] = {KINDS(AS_NAME)};

enum action { FAIL, SHORT, SKIP, FLIP, SWAP, TERM, KILL, ABORT, DELAY };

struct fault {
    enum kind kind;
    unsigned long n;
    bool onwards;
    enum action action;
    int error;
    unsigned milliseconds;
    char part[64];
    atomic_ulong n_calls;
};

enum { MOST_FAULTS = 8 };

static struct fault faults[MOST_FAULTS];
static size_t n_faults;
static bool reporting;
static atomic_bool armed;
static atomic_ulong n_calls[N_KINDS];

/* ---- reading the settings ---- */

static void give_up(const char *problem)
{
    (void)fprintf(stderr, "fault_inject: %s in FAULT\n", problem);
    _exit(99);
}

static int errno_of(const char *name)
{
    static const struct {
        const char *name;
        int value;
    } names[] = {
        {"ENOSPC", ENOSPC}, {"EIO", EIO},       {"ENOMEM", ENOMEM}, {"EMFILE", EMFILE},
        {"EINTR", EINTR},   {"EAGAIN", EAGAIN}, {"EACCES", EACCES}, {"EDQUOT", EDQUOT},
        {"EFBIG", EFBIG},   {"EPERM", EPERM},   {"EROFS", EROFS},   {"ENOENT", ENOENT},
        {"EEXIST", EEXIST}, {"EINVAL", EINVAL}, {"EXDEV", EXDEV},   {"ENOTSUP", ENOTSUP},
        {"EPIPE", EPIPE},   {"EBUSY", EBUSY},   {"ENOLCK", ENOLCK},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, name) == 0) return names[i].value;
    give_up("unknown action");
    return 0;
}

static void parse_action(struct fault *fault, const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (strcmp(text, "short") == 0) {
        fault->action = SHORT;
    } else if (strcmp(text, "skip") == 0) {
        fault->action = SKIP;
    } else if (strcmp(text, "flip") == 0) {
        fault->action = FLIP;
    } else if (strcmp(text, "swap") == 0) {
        fault->action = SWAP;
    } else if (strcmp(text, "term") == 0) {
        fault->action = TERM;
    } else if (strcmp(text, "kill") == 0) {
        fault->action = KILL;
    } else if (strcmp(text, "abort") == 0) {
        fault->action = ABORT;
    } else if (end > text && strcmp(end, "ms") == 0) {
        fault->action = DELAY;
        fault->milliseconds = (unsigned)number;
    } else {
        fault->action = FAIL;
        fault->error = errno_of(text);
    }
}

static void parse_fault(struct fault *fault, char *text)
{
    char *rest = text, *kind = strsep(&rest, ":"), *n = strsep(&rest, ":");
    char *action = strsep(&rest, ":"), *end;
    if (!action) give_up("too few parts");
    for (fault->kind = 0; fault->kind < N_KINDS; fault->kind++)
        if (strcmp(kind_names[fault->kind], kind) == 0) break;
    if (fault->kind == N_KINDS) give_up("unknown kind");
    fault->n = strtoul(n, &end, 10);
    fault->onwards = *end == '+';
    if (end == n || fault->n == 0) give_up("no number");
    parse_action(fault, action);
    (void)snprintf(fault->part, sizeof fault->part, "%s", rest ? rest : "");
}

static void read_settings(void)
{
    static char text[1024];
    const char *value = getenv("FAULT");
    reporting = getenv("FAULT_REPORT") != NULL;
    if (!value) return;
    (void)snprintf(text, sizeof text, "%s", value);
    for (char *rest = text, *one; (one = strsep(&rest, ",")) != NULL;) {
        if (n_faults == MOST_FAULTS) give_up("too many");
        parse_fault(&faults[n_faults++], one);
    }
}

static void write_report(void)
{
    const char *path = getenv("FAULT_REPORT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    for (int i = 0; i < N_KINDS; i++)
        (void)fprintf(file, "%s %lu\n", kind_names[i], atomic_load(&n_calls[i]));
    for (size_t i = 0; i < n_faults; i++)
        (void)fprintf(file, "fault%zu %lu\n", i, atomic_load(&faults[i].n_calls));
    (void)fclose(file);
}

/* ---- applying a fault ---- */

static int (*real_fstat)(int fd, struct stat *st);

static void wait_milliseconds(unsigned n)
{
    struct timespec left = {n / 1000, (long)(n % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}

static bool has_part(const struct fault *fault, const char *path, int fd)
{
    char link[64], target[PATH_MAX];
    if (!fault->part[0]) return true;
    if (path) return strstr(path, fault->part) != NULL;
    struct stat st;
    if (fd < 0 || real_fstat(fd, &st) != 0) return false;
    /* What the link says of a file without a name, but sooner. */
    if (strcmp(fault->part, "(deleted)") == 0) return st.st_nlink == 0;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    size_t n_kind = S_ISDIR(st.st_mode) ? strlen(strcpy(target, "dir:")) : 0;
    ssize_t n = readlink(link, target + n_kind, sizeof target - n_kind - 1);
    if (n < 0) return false;
    target[n_kind + (size_t)n] = '\0';
    return strstr(target, fault->part) != NULL;
}

/* True for an error of a disk in a call that writes to a pipe or a socket. */
static bool cannot_happen(const struct fault *fault, int fd)
{
    struct stat st;
    bool of_disk = fault->action == FAIL && (fault->error == ENOSPC || fault->error == EIO);
    return of_disk && fault->kind == KIND_write && real_fstat(fd, &st) == 0 &&
           (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

/* Counts a call. Returns the fault that the caller must apply, or NULL if there is none or if it
   is done already. */
static const struct fault *strike(enum kind kind, const char *path, int fd)
{
    if (!atomic_load_explicit(&armed, memory_order_relaxed)) return NULL;
    if (reporting) (void)atomic_fetch_add(&n_calls[kind], 1);
    for (size_t i = 0; i < n_faults; i++) {
        struct fault *fault = &faults[i];
        if (fault->kind != kind || !has_part(fault, path, fd) || cannot_happen(fault, fd)) continue;
        unsigned long n = atomic_fetch_add(&fault->n_calls, 1) + 1;
        if (n != fault->n && !(fault->onwards && n > fault->n)) continue;
        switch (fault->action) {
        case TERM:
            (void)kill(getpid(), SIGTERM);
            wait_milliseconds(200);
            break;
        case KILL: (void)kill(getpid(), SIGKILL); break;
        case ABORT: abort();
        case DELAY: wait_milliseconds(fault->milliseconds); break;
        case FAIL: errno = fault->error; return fault;
        default: return fault;
        }
    }
    return NULL;
}

/* Returns true, with errno set, if the call must fail. */
static bool fails(enum kind kind, const char *path, int fd)
{
    const struct fault *fault = strike(kind, path, fd);
    return fault && fault->action == FAIL;
}

/* ---- the real functions ---- */

#define REAL(name) real_##name
#define FIND(name)                                                                                 \
    do {                                                                                           \
        if (!REAL(name)) *(void **)&REAL(name) = dlsym(RTLD_NEXT, #name);                          \
    } while (0)

/* Calls that know no other fault than failing. */
#define PLAIN(result, failed, name, parameters, arguments, path, fd)                               \
    static result (*REAL(name)) parameters;                                                        \
    result name parameters                                                                         \
    {                                                                                              \
        FIND(name);                                                                                \
        if (fails(KIND_##name, path, fd)) return failed;                                           \
        return REAL(name) arguments;                                                               \
    }

/* Calls that return their error and leave errno as it is. */
#define NUMBERED(name, parameters, arguments, fd)                                                  \
    static int(*REAL(name)) parameters;                                                            \
    int name parameters                                                                            \
    {                                                                                              \
        FIND(name);                                                                                \
        int before = errno;                                                                        \
        if (fails(KIND_##name, NULL, fd)) {                                                        \
            int error = errno;                                                                     \
            errno = before;                                                                        \
            return error;                                                                          \
        }                                                                                          \
        return REAL(name) arguments;                                                               \
    }

PLAIN(FILE *, NULL, fopen, (const char *path, const char *mode), (path, mode), path, -1)
PLAIN(FILE *, NULL, fdopen, (int fd, const char *mode), (fd, mode), NULL, fd)
PLAIN(int, -1, flock, (int fd, int operation), (fd, operation), NULL, fd)
PLAIN(int, -1, sync_file_range, (int fd, off_t at, off_t n, unsigned flags), (fd, at, n, flags),
      NULL, fd)
PLAIN(int, -1, ftruncate, (int fd, off_t n), (fd, n), NULL, fd)
PLAIN(int, -1, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n), NULL, fd)
PLAIN(int, -1, rename, (const char *from, const char *to), (from, to), to, -1)
PLAIN(int, -1, renameat2, (int old, const char *from, int new, const char *to, unsigned flags),
      (old, from, new, to, flags), to, -1)
PLAIN(int, -1, link, (const char *from, const char *to), (from, to), to, -1)
PLAIN(int, -1, unlink, (const char *path), (path), path, -1)
PLAIN(int, -1, unlinkat, (int fd, const char *path, int flags), (fd, path, flags), path, -1)
PLAIN(int, -1, mkdir, (const char *path, mode_t mode), (path, mode), path, -1)
PLAIN(char *, NULL, mkdtemp, (char *path), (path), path, -1)
PLAIN(int, -1, rmdir, (const char *path), (path), path, -1)
PLAIN(DIR *, NULL, opendir, (const char *path), (path), path, -1)
PLAIN(DIR *, NULL, fdopendir, (int fd), (fd), NULL, fd)
PLAIN(struct dirent *, NULL, readdir, (DIR * dir), (dir), NULL, -1)
PLAIN(int, -1, stat, (const char *path, struct stat *st), (path, st), path, -1)
PLAIN(int, -1, fstat, (int fd, struct stat *st), (fd, st), NULL, fd)
PLAIN(int, -1, lstat, (const char *path, struct stat *st), (path, st), path, -1)
PLAIN(int, -1, fstatfs, (int fd, struct statfs *fs), (fd, fs), NULL, fd)
PLAIN(int, -1, statvfs, (const char *path, struct statvfs *fs), (path, fs), path, -1)
PLAIN(int, -1, socketpair, (int domain, int type, int protocol, int fds[2]),
      (domain, type, protocol, fds), NULL, -1)
PLAIN(char *, NULL, realpath, (const char *path, char *out), (path, out), path, -1)
PLAIN(void *, MAP_FAILED, mmap, (void *at, size_t n, int prot, int flags, int fd, off_t offset),
      (at, n, prot, flags, fd, offset), NULL, fd)
NUMBERED(posix_fallocate, (int fd, off_t at, off_t n), (fd, at, n), fd)
NUMBERED(pthread_create,
         (pthread_t * thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg),
         (thread, attr, run, arg), -1)

/* ---- what a power failure leaves ---- */

/* Makes the name f-KEY or d-KEY of a file or directory. */
static void name_synced(int dir, const char *path, char *name, size_t room)
{
    struct statx st = {0};
    (void)statx(dir, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME,
                &st);
    (void)snprintf(name, room, "%c-%llu-%lld-%u", S_ISDIR(st.stx_mode) ? 'd' : 'f',
                   (unsigned long long)st.stx_ino, (long long)st.stx_btime.tv_sec,
                   st.stx_btime.tv_nsec);
}

static void list_names(const char *path, FILE *to)
{
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        char name[80];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        name_synced(dirfd(dir), entry->d_name, name, sizeof name);
        (void)fprintf(to, "%s %s\n", name, entry->d_name);
    }
    if (dir) (void)closedir(dir);
}

static void copy_bytes(const char *path, FILE *to)
{
    FILE *from = fopen(path, "r");
    char bytes[65536];
    for (size_t n; from && (n = fread(bytes, 1, sizeof bytes, from)) > 0;)
        (void)fwrite(bytes, 1, n, to);
    if (from) (void)fclose(from);
}

static void remember_synced(int fd)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const char *folder = getenv("FAULT_SYNCED");
    char self[64], name[80], path[PATH_MAX], half[PATH_MAX + 8];
    if (!folder) return;
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    name_synced(fd, "", name, sizeof name);
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)snprintf(half, sizeof half, "%s.half", path);
    FIND(rename);
    (void)pthread_mutex_lock(&lock);
    FILE *to = fopen(half, "w");
    if (to) {
        if (*name == 'd')
            list_names(self, to);
        else
            copy_bytes(self, to);
        (void)fclose(to);
        (void)REAL(rename)(half, path);
    }
    (void)pthread_mutex_unlock(&lock);
}

/* Calls that may also be skipped. */
#define SYNC(name)                                                                                 \
    static int (*REAL(name))(int fd);                                                              \
    int name(int fd)                                                                               \
    {                                                                                              \
        FIND(name);                                                                                \
        const struct fault *fault = strike(KIND_##name, NULL, fd);                                 \
        if (fault && fault->action == SKIP) return 0;                                              \
        if (fault && fault->action == FAIL) return -1;                                             \
        int r = REAL(name)(fd);                                                                    \
        if (r == 0) remember_synced(fd);                                                           \
        return r;                                                                                  \
    }

SYNC(fsync)
SYNC(fdatasync)

/* A close that fails closes the descriptor all the same, as it does on Linux. */
static int (*REAL(close))(int fd);

int close(int fd)
{
    FIND(close);
    bool fail = fails(KIND_close, NULL, fd);
    int error = errno, r = REAL(close)(fd);
    if (!fail) return r;
    errno = error;
    return -1;
}

static int (*REAL(open))(const char *path, int flags, ...);
static int (*REAL(openat))(int dir, const char *path, int flags, ...);
static int (*REAL(fcntl))(int fd, int command, ...);

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, unsigned) : 0;
    va_end(args);
    FIND(open);
    return fails(KIND_open, path, -1) ? -1 : REAL(open)(path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, unsigned) : 0;
    va_end(args);
    FIND(openat);
    return fails(KIND_openat, path, -1) ? -1 : REAL(openat)(dir, path, flags, mode);
}

int fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *arg = va_arg(args, void *);
    va_end(args);
    FIND(fcntl);
    return fails(KIND_fcntl, NULL, fd) ? -1 : REAL(fcntl)(fd, command, arg);
}

/* ---- reading and writing ---- */

static size_t shorter(const struct fault *fault, size_t n_bytes)
{
    return fault && fault->action == SHORT && n_bytes > 1 ? n_bytes / 2 : n_bytes;
}

static ssize_t flip(const struct fault *fault, void *bytes, ssize_t n)
{
    if (fault && fault->action == FLIP && n > 0) ((uint8_t *)bytes)[n / 2] ^= 4;
    return n;
}

#define TRANSFER(name, parameters, result)                                                         \
    static ssize_t(*REAL(name)) parameters;                                                        \
    ssize_t name parameters                                                                        \
    {                                                                                              \
        FIND(name);                                                                                \
        const struct fault *fault = strike(KIND_##name, NULL, fd);                                 \
        if (fault && fault->action == FAIL) return -1;                                             \
        n = shorter(fault, n);                                                                     \
        return result;                                                                             \
    }

#define READER(name, parameters, arguments)                                                        \
    TRANSFER(name, parameters, flip(fault, bytes, REAL(name) arguments))

#define WRITER(name, parameters, arguments) TRANSFER(name, parameters, REAL(name) arguments)

READER(read, (int fd, void *bytes, size_t n), (fd, bytes, n))
READER(pread, (int fd, void *bytes, size_t n, off_t at), (fd, bytes, n, at))
WRITER(write, (int fd, const void *bytes, size_t n), (fd, bytes, n))
WRITER(pwrite, (int fd, const void *bytes, size_t n, off_t at), (fd, bytes, n, at))
PLAIN(ssize_t, -1, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n), NULL, fd)

/* Swaps the first two BAM records. */
static void swap_records(uint8_t *bytes, int n_bytes)
{
    uint32_t first = 0, second = 0;
    uint8_t copy[4096];
    if (n_bytes < 40) return;
    memcpy(&first, bytes, sizeof first);
    first += 4;
    if (first + 4 > (unsigned)n_bytes || first > sizeof copy) return;
    memcpy(&second, bytes + first, sizeof second);
    second += 4;
    if (first + second > (unsigned)n_bytes) return;
    memcpy(copy, bytes, first);
    memmove(bytes, bytes + first, second);
    memcpy(bytes + second, copy, first);
}

/* Data that are changed here have passed the checksums of the databases. */
static int (*REAL(LZ4_decompress_safe))(const char *from, char *to, int n_from, int room);
int LZ4_decompress_safe(const char *from, char *to, int n_from, int room);

int LZ4_decompress_safe(const char *from, char *to, int n_from, int room)
{
    FIND(LZ4_decompress_safe);
    const struct fault *fault = strike(KIND_LZ4_decompress_safe, NULL, -1);
    if (fault && fault->action == FAIL) return -1;
    int n = REAL(LZ4_decompress_safe)(from, to, n_from, room);
    if (fault && fault->action == SWAP) swap_records((uint8_t *)to, n);
    return (int)flip(fault, to, n);
}

/* ---- memory ---- */

/* Memory for the dynamic linker while it looks for the real functions; never freed. */
static char early[1 << 16];
static size_t early_used;

static void *take_early(size_t n_bytes)
{
    size_t at = (early_used + 15) & ~(size_t)15;
    if (n_bytes > sizeof early - at) return NULL;
    early_used = at + n_bytes;
    return early + at;
}

static bool is_early(const void *mem)
{
    return (const char *)mem >= early && (const char *)mem < early + sizeof early;
}

static void *(*REAL(malloc))(size_t);
static void *(*REAL(calloc))(size_t, size_t);
static void *(*REAL(realloc))(void *, size_t);
static void (*REAL(free))(void *);

static bool find_allocator(void)
{
    static atomic_flag looking = ATOMIC_FLAG_INIT;
    if (REAL(free)) return true;
    /* There is only one thread so far, so a second call comes from within the first. */
    if (atomic_flag_test_and_set(&looking)) return false;
    FIND(malloc);
    FIND(calloc);
    FIND(realloc);
    FIND(free);
    return true;
}

void *malloc(size_t n_bytes)
{
    if (!find_allocator()) return take_early(n_bytes);
    return fails(KIND_malloc, NULL, -1) ? NULL : REAL(malloc)(n_bytes);
}

void *calloc(size_t n, size_t n_bytes)
{
    if (!find_allocator()) return take_early(n * n_bytes);
    return fails(KIND_calloc, NULL, -1) ? NULL : REAL(calloc)(n, n_bytes);
}

void *realloc(void *mem, size_t n_bytes)
{
    if (!find_allocator()) return take_early(n_bytes);
    if (is_early(mem)) return NULL;
    return fails(KIND_realloc, NULL, -1) ? NULL : REAL(realloc)(mem, n_bytes);
}

void free(void *mem)
{
    if (mem && !is_early(mem) && find_allocator()) REAL(free)(mem);
}

PLAIN(void *, NULL, aligned_alloc, (size_t alignment, size_t n), (alignment, n), NULL, -1)
NUMBERED(posix_memalign, (void **mem, size_t alignment, size_t n), (mem, alignment, n), -1)
PLAIN(char *, NULL, strdup, (const char *text), (text), NULL, -1)
PLAIN(char *, NULL, strndup, (const char *text, size_t n), (text, n), NULL, -1)

/* ---- main ---- */

static int (*real_main)(int, char **, char **);

static int watched_main(int argc, char **argv, char **environment)
{
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    if (strncmp(name, "samtools", 8) != 0) return real_main(argc, argv, environment);
    FIND(fstat);
    read_settings();
    atomic_store(&armed, true);
    int status = real_main(argc, argv, environment);
    atomic_store(&armed, false);
    write_report();
    return status;
}

static int (*REAL(__libc_start_main))(int (*)(int, char **, char **), int, char **,
                                      void (*)(void), void (*)(void), void (*)(void), void *);
int __libc_start_main(int (*main_function)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
                      void *stack_end);

int __libc_start_main(int (*main_function)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
                      void *stack_end)
{
    FIND(__libc_start_main);
    real_main = main_function;
    return REAL(__libc_start_main)(watched_main, argc, argv, init, fini, rtld_fini, stack_end);
}
