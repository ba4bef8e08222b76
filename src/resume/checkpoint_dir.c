/* checkpoint_dir.c -- see checkpoint_dir.h. */
#include "resume/checkpoint_dir.h"

#include "os/file_owner.h"
#include "os/temp_dir.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/words.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Upper limit of a checkpoint file: a header with ten million references has 500 MB. */
#define MAX_FILE_BYTES ((off_t)8 << 30)

enum { OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

static const char lock_new[] = TEMP_DIR_LOCK_NAME ".new";
static const char checkpoint_new[] = TEMP_DIR_CHECKPOINT_NAME ".new";

/* Creates a private file; fails if the name exists. */
static int create_at(int dir_fd, const char *name)
{
    return openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Closes without changing errno. */
static void close_quietly(int fd)
{
    int saved = errno;
    if (fd >= 0) (void)close(fd);
    errno = saved;
}

/* Writes the name of this process into LOCK, after an attempt to lock it. Ignores a full disk if
   all hosts see the lock. Returns 0, or -1 with errno set. */
static int write_owner(int fd, enum file_lock lock)
{
    struct file_owner self;
    file_owner_self(fd, lock, &self);
    return file_owner_write(fd, &self) == 0 || self.reach == LOCK_REACH_ALL ? 0 : -1;
}

/* Locks a new file, if the file system has locks. Returns 0, or -1 with errno set. */
static int lock_new_file(int fd)
{
    enum file_lock lock = file_lock_try(fd, true);
    return lock == FILE_LOCK_HELD || lock == FILE_LOCK_NONE ? write_owner(fd, lock) : -1;
}

int checkpoint_dir_claim(const char *path)
{
    int dir_fd = open(path, OPEN_DIR);
    if (dir_fd < 0) return -1;
    int fd = create_at(dir_fd, lock_new);
    /* Lock the file before it is renamed to LOCK, because other processes consider a directory with
       a file LOCK part of a checkpoint. */
    if (fd >= 0 && (lock_new_file(fd) < 0 ||
                    renameat(dir_fd, lock_new, dir_fd, TEMP_DIR_LOCK_NAME) < 0)) {
        close_quietly(fd);
        fd = -1;
    }
    close_quietly(dir_fd);
    return fd;
}

/* Syncs the parent of the directory, if it can be opened. */
static void sync_parent(int dir_fd)
{
    int fd = openat(dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;         /* it may be searchable but not readable */
    (void)fsync(fd);
    (void)close(fd);
}

/* Returns 0, or -1 with errno set. */
static int write_file(int dir_fd, const kstring_t *text)
{
    (void)unlinkat(dir_fd, checkpoint_new, 0);
    int fd = create_at(dir_fd, checkpoint_new);
    if (fd < 0) return -1;
    int r = -1;
    if (path_write_all(fd, text->s, text->l) == 0 && fsync(fd) == 0 &&
        renameat(dir_fd, checkpoint_new, dir_fd, TEMP_DIR_CHECKPOINT_NAME) == 0 &&
        fsync(dir_fd) == 0)
        r = 0;
    close_quietly(fd);
    return r;
}

int checkpoint_dir_write(const char *path, const struct checkpoint_file *file)
{
    kstring_t text = {0, 0, NULL};
    int dir_fd = open(path, OPEN_DIR);
    if (dir_fd < 0) return -1;
    checkpoint_file_format(file, &text);
    int r = write_file(dir_fd, &text);
    if (r == 0) sync_parent(dir_fd);
    close_quietly(dir_fd);
    ks_free(&text);
    return r;
}

/* True if a file or directory is ours and closed to others. */
static bool is_private(const struct stat *st)
{
    return st->st_uid == geteuid() && (st->st_mode & 077) == 0;
}

/* Makes the text of the problem: the owner may be a process on another host. */
static void put_unknown_owner(struct checkpoint_dir *dir, const char *host,
                              enum file_owner_state state)
{
    static const char *const texts[][2] = {             /* before and after the host name */
        [FILE_OWNER_ON_HOST] = {"may be in use on host '", "'; go there, or empty"},
        [FILE_OWNER_IN_CONTAINER] = {"may be in use in another container on host '",
                                     "'; go there, or empty"},
        [FILE_OWNER_ON_NAMESAKE] = {"is from before '", "' was restarted, or in use on another "
                                    "host with that name; empty"},
    };
    (void)snprintf(dir->problem, sizeof dir->problem, "%s%s%s its file LOCK if no sort uses it",
                   texts[state][0], host, texts[state][1]);
}

/* Opens the file LOCK and locks it. waits: as in file_lock_try. */
static int lock_dir(struct checkpoint_dir *dir, bool waits, const char **problem)
{
    struct stat held;
    dir->lock_fd = openat(dir->fd, TEMP_DIR_LOCK_NAME,
                          O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (dir->lock_fd < 0 && (errno == EROFS || errno == EACCES || errno == EMFILE)) {
        *problem = "cannot be locked; look at permissions, at the disk and 'ulimit -n'";
        return CHECKPOINT_CLOSED;
    }
    if (dir->lock_fd < 0 || fstat(dir->lock_fd, &held) < 0 || !S_ISREG(held.st_mode) ||
        !is_private(&held)) {
        *problem = "is not a checkpoint of rocksort; --clean DIR lists those in DIR";
        return CHECKPOINT_FOREIGN;
    }
    enum file_lock lock = file_lock_try(dir->lock_fd, waits);
    dir->is_locked = lock == FILE_LOCK_HELD;
    struct file_owner owner;
    enum file_owner_state state = FILE_OWNER_ALIVE;
    if (dir->is_locked || lock == FILE_LOCK_NONE)
        state = file_owner_look(dir->lock_fd, lock, &owner);
    if (state == FILE_OWNER_ALIVE) {
        *problem = "is in use by another rocksort; wait until that has ended";
        return CHECKPOINT_BUSY;
    }
    if (state != FILE_OWNER_DEAD) {     /* locks of that host are invisible here */
        put_unknown_owner(dir, owner.host, state);
        *problem = dir->problem;
        return CHECKPOINT_ELSEWHERE;
    }
    /* The process that held the lock may have removed the directory meanwhile. */
    if (!file_lock_has_name(dir->lock_fd, dir->fd, TEMP_DIR_LOCK_NAME)) {
        *problem = "has just been removed; sort the input again";
        return CHECKPOINT_BUSY;
    }
    return CHECKPOINT_OK;
}

/* As checkpoint_dir_open, but without the lock. */
static int open_dir(const char *path, struct checkpoint_dir *dir, const char **problem)
{
    struct stat st;
    int r = CHECKPOINT_FOREIGN;
    *dir = (struct checkpoint_dir){.fd = -1, .lock_fd = -1};
    dir->fd = open(path, OPEN_DIR);
    if (dir->fd < 0) {
        if (errno == ENOENT) r = CHECKPOINT_LOST;
        *problem = errno == ENOENT ? "does not exist; --clean DIR lists the checkpoints in DIR"
                   : errno == ENOTDIR || errno == ELOOP
                       ? "is not a directory, or is a symbolic link; name the directory itself"
                       : "cannot be opened; look at its permissions and 'ulimit -n'";
    } else if (fstat(dir->fd, &st) < 0 || !is_private(&st)) {
        *problem = "is not a checkpoint directory of yours (wrong owner or mode)";
    } else {
        dir->path = realpath(path, NULL);
        if (dir->path)
            r = CHECKPOINT_OK;
        else
            *problem = "has just been moved; give its new name";
    }
    if (r != CHECKPOINT_OK) checkpoint_dir_close(dir);
    return r;
}

int checkpoint_dir_open(const char *path, struct checkpoint_dir *dir, const char **problem)
{
    int r = open_dir(path, dir, problem);
    if (r != CHECKPOINT_OK) return r;
    r = lock_dir(dir, true, problem);
    if (r != CHECKPOINT_OK) checkpoint_dir_close(dir);
    return r;
}

bool checkpoint_dir_is_dead(const char *path)
{
    struct checkpoint_dir dir;
    const char *problem;
    if (open_dir(path, &dir, &problem) != CHECKPOINT_OK) return false;
    bool is_dead = lock_dir(&dir, false, &problem) == CHECKPOINT_OK && dir.is_locked;
    checkpoint_dir_close(&dir);
    return is_dead;
}

int checkpoint_dir_peek(const char *path, struct checkpoint_file *file)
{
    struct checkpoint_dir dir;
    const char *problem;
    int r = open_dir(path, &dir, &problem);
    if (r != CHECKPOINT_OK) return r;
    r = checkpoint_dir_read(&dir, file, &problem);
    checkpoint_dir_close(&dir);
    return r;
}

bool checkpoint_dir_has_file(const char *path)
{
    char name[PATH_MAX];
    int n = snprintf(name, sizeof name, "%s/" TEMP_DIR_CHECKPOINT_NAME, path);
    return n < (int)sizeof name && access(name, F_OK) == 0;
}

char *checkpoint_dir_first(const char *path)
{
    struct checkpoint_file part, file;
    char *first = NULL, *real = realpath(path, NULL);
    if (real && checkpoint_dir_peek(path, &part) == CHECKPOINT_OK) {
        if (part.directory > 0 &&
            checkpoint_dir_peek(part.directories[0], &file) == CHECKPOINT_OK) {
            for (size_t i = 1; file.directory == 0 && i < file.n_directories && !first; i++)
                if (strcmp(file.directories[i], real) == 0) first = xstrdup(part.directories[0]);
            checkpoint_file_release(&file);
        }
        checkpoint_file_release(&part);
    }
    free(real);
    return first;
}

/* Reads the whole checkpoint file. Returns NULL on failure, and *problem says why. */
static char *read_file(int fd, size_t *n_bytes, const char **problem)
{
    struct stat st;
    *problem = "has a STORE file that rocksort did not write; sort the input again";
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !is_private(&st) ||
        st.st_size > MAX_FILE_BYTES)
        return NULL;
    char *text = malloc((size_t)st.st_size + 1);        /* the size is untrusted */
    for (*n_bytes = 0; text && *n_bytes < (size_t)st.st_size;) {
        ssize_t n = read(fd, text + *n_bytes, (size_t)st.st_size - *n_bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        *n_bytes += (size_t)n;
    }
    if (*n_bytes == (size_t)st.st_size) return text;
    *problem = "has a STORE file that cannot be read, or is too large for the memory";
    free(text);
    return NULL;
}

int checkpoint_dir_read(const struct checkpoint_dir *dir, struct checkpoint_file *file,
                        const char **problem)
{
    int fd = openat(dir->fd, TEMP_DIR_CHECKPOINT_NAME,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        *problem = "has no STORE file: it began with --no-resume or ended early; sort the input "
                   "again";
        return CHECKPOINT_BAD;
    }
    size_t n_bytes;
    char *text = read_file(fd, &n_bytes, problem);
    (void)close(fd);
    if (!text) return CHECKPOINT_BAD;
    int r = checkpoint_file_parse(text, n_bytes, file, problem);
    free(text);
    return r == 0 ? CHECKPOINT_OK : CHECKPOINT_BAD;
}

/* Keeps the text of a problem, which may still be printed. */
void checkpoint_dir_close(struct checkpoint_dir *dir)
{
    close_quietly(dir->lock_fd);
    close_quietly(dir->fd);
    free(dir->path);
    dir->path = NULL;
    dir->fd = dir->lock_fd = -1;
    dir->is_locked = false;
}

/* ---- all directories of a checkpoint ---- */

static int refuse(const char *path, const char *problem)
{
    diag_error("cannot resume '%s': it %s", path, problem);
    return -1;
}

const char *checkpoint_lost_part(const struct checkpoint_file *file)
{
    for (size_t i = 0; i < file->n_directories; i++)
        if (i != file->directory && access(file->directories[i], F_OK) < 0 && errno == ENOENT)
            return file->directories[i];
    return NULL;
}

/* Names this process in LOCK of all directories. */
static int take(const struct checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->n_dirs; i++) {
        const struct checkpoint_dir *dir = &checkpoint->dirs[i];
        if (write_owner(dir->lock_fd, dir->is_locked ? FILE_LOCK_HELD : FILE_LOCK_NONE) < 0)
            return refuse(dir->path, "has a file LOCK that cannot be written; free a little space "
                                     "there");
    }
    return 0;
}

/* Opens the first directory, and prepares the others. */
static int open_first(struct checkpoint *checkpoint, const char *path)
{
    struct checkpoint_file *file = &checkpoint->file;
    struct checkpoint_dir dir;
    const char *problem;
    if (checkpoint_dir_open(path, &dir, &problem) < 0) return refuse(path, problem);
    if (checkpoint_dir_read(&dir, file, &problem) < 0) {
        checkpoint_dir_close(&dir);
        return refuse(path, problem);
    }
    checkpoint->n_dirs = file->n_directories;
    checkpoint->dirs = xcalloc(file->n_directories, sizeof *checkpoint->dirs);
    for (size_t i = 0; i < file->n_directories; i++)
        checkpoint->dirs[i] = (struct checkpoint_dir){.fd = -1, .lock_fd = -1};
    checkpoint->dirs[file->directory] = dir;
    return 0;
}

static int open_others(struct checkpoint *checkpoint, const char *path)
{
    for (size_t i = 0; i < checkpoint->n_dirs; i++) {
        const char *part = checkpoint->file.directories[i], *problem;
        if (checkpoint->dirs[i].path) continue;
        int r = checkpoint_dir_open(part, &checkpoint->dirs[i], &problem);
        if (r == CHECKPOINT_OK) continue;
        if (r == CHECKPOINT_LOST) problem = "does not exist on this host; sort the input again";
        diag_error("cannot resume '%s': its part '%s' %s", path, part, problem);
        return -1;
    }
    if (checkpoint->file.directory == 0) return 0;
    return refuse(path, "belongs to another sort; sort the input again");
}

/* Takes the file of another directory if it has a later state: when the load ended, the disk of the
   first directory was full. */
static void take_later_state(struct checkpoint *checkpoint)
{
    struct checkpoint_file *file = &checkpoint->file;
    for (size_t i = 1; i < checkpoint->n_dirs && file->state == CHECKPOINT_LOADING; i++) {
        struct checkpoint_file other;
        const char *problem;
        if (checkpoint_dir_read(&checkpoint->dirs[i], &other, &problem) != CHECKPOINT_OK) continue;
        if (other.state != CHECKPOINT_LOADING && other.n_directories == file->n_directories &&
            strcmp(other.directories[0], file->directories[0]) == 0) {
            struct checkpoint_file earlier = *file;
            *file = other;
            file->directory = 0;
            other = earlier;
        }
        checkpoint_file_release(&other);
    }
}

struct checkpoint *checkpoint_open(const char *path)
{
    struct checkpoint *checkpoint = xcalloc(1, sizeof *checkpoint);
    char *first = checkpoint_dir_first(path);
    int r = open_first(checkpoint, first ? first : path);
    free(first);
    if (r == 0) r = open_others(checkpoint, path);
    if (r == 0) take_later_state(checkpoint);
    if (r == 0 && take(checkpoint) == 0) return checkpoint;
    checkpoint_close(checkpoint);
    return NULL;
}

void checkpoint_remove(const struct checkpoint *checkpoint)
{
    /* Without the file of the first directory, none is a checkpoint. */
    temp_dir_remove_checkpoint(checkpoint->dirs[0].path);
    for (size_t i = 0; i < checkpoint->n_dirs; i++)
        if (temp_dir_remove(checkpoint->dirs[i].path) < 0)
            diag_left("warning: cannot remove the temporary directory '%s': %s",
                      checkpoint->dirs[i].path, strerror(errno));
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    if (!checkpoint) return;
    for (size_t i = 0; i < checkpoint->n_dirs; i++) checkpoint_dir_close(&checkpoint->dirs[i]);
    free(checkpoint->dirs);
    checkpoint_file_release(&checkpoint->file);
    free(checkpoint);
}

/* ---- how to resume a checkpoint ---- */

bool checkpoint_is_partial(const struct checkpoint_file *file)
{
    return file->state == CHECKPOINT_PARTIAL ||
           (file->state == CHECKPOINT_LOADING && !file->can_read_again);
}

enum { OPTION_BYTES = 32 };

/* Appends an option and its argument, unless that is NULL or does not fit. */
static void put_option(const char *option, const char *argument,
                       char text[CHECKPOINT_COMMAND_BYTES])
{
    enum { ROOM_BYTES = CHECKPOINT_COMMAND_BYTES - OPTION_BYTES };
    size_t at = strlen(text);
    if (!argument || at > ROOM_BYTES - OPTION_BYTES) return;
    (void)snprintf(text + at, OPTION_BYTES, " %s%s", option, *argument ? " " : "");
    words_quote(argument, text, ROOM_BYTES);
}

const char *checkpoint_command(const char *path, bool partial, bool has_output,
                               const struct checkpoint_places *places,
                               char text[CHECKPOINT_COMMAND_BYTES])
{
    static const struct checkpoint_places same = {NULL, {NULL}};
    if (!places) places = &same;
    (void)strcpy(text, "samtools rocksort");
    put_option("--resume", path, text);
    if (partial) put_option("--partial", "", text);
    put_option("-T", places->temp_dir, text);
    const char *output = places->files[CHECKPOINT_OUTPUT];
    put_option("-o", output || has_output ? output : "FILE", text);
    put_option("--also", places->files[CHECKPOINT_ALSO], text);
    for (int i = 0; i < COUNT_N_KINDS; i++)
        put_option(count_kind_option(i), places->files[CHECKPOINT_COUNTS + i], text);
    return text;
}

const char *checkpoint_command_of(const struct checkpoint_file *file, const char *path,
                                  char text[CHECKPOINT_COMMAND_BYTES])
{
    char *real = realpath(path, NULL);
    (void)checkpoint_command(real ? real : path, checkpoint_is_partial(file),
                             file->output.path != NULL, NULL, text);
    free(real);
    return text;
}
