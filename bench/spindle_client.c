/*
 * spindle_client.c -- see spindle_client.h: report, reset, unmount. They talk to the server through
 * its control files.
 */
#define _GNU_SOURCE
#include "spindle_client.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_END_WAIT_MS 20000

static int fail(const char *path, const char *what)
{
    fprintf(stderr, "spindle: %s: %s: %s\n", path, what, strerror(errno));
    return 1;
}

/* Opens a control file. */
static int control_file(const char *mount_point, const char *name, int flags)
{
    char *path;
    if (asprintf(&path, "%s/" CONTROL_DIR "/%s", mount_point, name) < 0) return -1;
    int fd = open(path, flags | O_CLOEXEC);
    free(path);
    return fd;
}

/* The text of a control file, which the caller frees; NULL with errno. */
static char *control_text(const char *mount_point, const char *name)
{
    size_t n = 0, room = 1 << 16;
    char *text = malloc(room);
    int fd = control_file(mount_point, name, O_RDONLY);
    ssize_t got = -1;

    while (fd >= 0 && text) {
        if (n + 1 == room) {
            char *more = realloc(text, room * 2);
            if (!more) break;
            text = more;
            room *= 2;
        }
        got = read(fd, text + n, room - n - 1);
        if (got <= 0) break;
        n += (size_t)got;
    }
    if (fd >= 0) close(fd);
    if (got == 0) {
        text[n] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

/* ---- report ---- */

/* A number of a period, which ends at the next brace. */
static double number_of(const char *period, const char *name)
{
    char key[64];
    (void)snprintf(key, sizeof key, "\"%s\": ", name);
    const char *at = strstr(period, key), *end = strchr(period, '}');
    return at && at < end ? strtod(at + strlen(key), NULL) : 0;
}

static void print_table_row(const char *period)
{
    char label[64] = "";
    (void)sscanf(period, "{\"label\": \"%63[^\"]", label);
    printf("%-20s %8.1f %8.1f %5.1f %5.1f %7.0f %8.1f %7.1f %7.1f %7.0f %8.1f %7.1f %7.1f %7.0f"
           " %5.1f %7.0f %7.2f\n",
           label, number_of(period, "elapsed_s"), number_of(period, "busy_s"),
           100 * number_of(period, "utilisation"), 100 * number_of(period, "bandwidth_utilisation"),
           number_of(period, "reads"), number_of(period, "read_bytes") / 1e6,
           number_of(period, "mean_read_bytes") / 1024, number_of(period, "read_iops"),
           number_of(period, "writes"), number_of(period, "write_bytes") / 1e6,
           number_of(period, "mean_write_bytes") / 1024, number_of(period, "write_iops"),
           number_of(period, "seeks"), 100 * number_of(period, "consecutive_ratio"),
           number_of(period, "small_reads"), number_of(period, "small_read_busy_s"));
}

int client_report(const char *mount_point, bool json)
{
    char *text = control_text(mount_point, "report.json");
    if (!text) return fail(mount_point, "no spindle is mounted here");
    if (json) {
        fputs(text, stdout);
    } else {
        printf("%-20s %8s %8s %5s %5s %7s %8s %7s %7s %7s %8s %7s %7s %7s %5s %7s %7s\n", "program",
               "elapsed", "busy s", "util%", "bw %", "reads", "MB", "KiB", "IOPS", "writes", "MB",
               "KiB", "IOPS", "seeks", "cons%", "<32K rd", "s");
        for (char *at = strstr(text, "{\"label\""); at; at = strstr(at + 1, "{\"label\""))
            print_table_row(at);
    }
    free(text);
    return fflush(stdout) || ferror(stdout) ? fail("standard output", "cannot write") : 0;
}

/* ---- reset ---- */

static int drop_caches(const char *mount_point)
{
    char *const paths[] = {(char *)(uintptr_t)mount_point, NULL};
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    if (!walk) return -1;
    for (FTSENT *entry = fts_read(walk); entry; entry = fts_read(walk)) {
        if (entry->fts_info != FTS_F) continue;
        int fd = open(entry->fts_accpath, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0) continue;
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
    return fts_close(walk);
}

int client_reset(const char *mount_point, const char *label)
{
    int fd = control_file(mount_point, "reset", O_WRONLY);
    if (fd < 0) return fail(mount_point, "no spindle is mounted here");
    int failed = syncfs(fd) || fsync(fd) || drop_caches(mount_point);
    /* An empty write would not reach the server. */
    if (!*label) label = " ";
    if (!failed) failed = write(fd, label, strlen(label)) < 0;
    if (failed) (void)fail(mount_point, "reset");
    close(fd);
    return failed ? 1 : 0;
}

/* ---- unmount ---- */

static int unmount_as_user(const char *mount_point)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        execlp("fusermount3", "fusermount3", "-u", mount_point, (char *)NULL);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) return -1;
    return status ? -1 : 0;
}

/* Whether the process has ended, even if its parent has not waited for it yet. */
static bool has_ended(pid_t pid)
{
    char path[64], state;
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "r");
    if (!file) return true;
    /* The name in brackets is that of this program: it has no blanks. */
    bool ended = fscanf(file, "%*s %*s %c", &state) != 1 || state == 'Z';
    (void)fclose(file);
    return ended;
}

int client_unmount(const char *mount_point)
{
    char *text = control_text(mount_point, "pid");
    bool dead = !text && errno == ENOTCONN;
    if (!text && !dead) return fail(mount_point, "no spindle is mounted here");
    pid_t server = text ? (pid_t)strtol(text, NULL, 10) : 0;
    free(text);
    if (geteuid() == 0) {
        if (umount2(mount_point, dead ? MNT_DETACH : 0)) return fail(mount_point, "unmount");
    } else if (unmount_as_user(mount_point)) {
        return fail(mount_point, "fusermount3 -u");
    }
    for (int ms = 0; server > 0 && ms < MAX_END_WAIT_MS; ms += 10) {
        if (has_ended(server)) return 0;
        usleep(10000);
    }
    if (server <= 0) return 0;
    fprintf(stderr, "spindle: process %ld has not ended\n", (long)server);
    return 1;
}
