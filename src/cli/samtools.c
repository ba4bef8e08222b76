/*
 * samtools.c -- the `samtools` front end.
 *
 * `samtools rocksort ...` runs here, and so does `samtools sort ...` if the environment has
 * SAMTOOLS_SORT=rocksort. Every other command is handed over to the upstream samtools with exec, so
 * that its arguments, standard streams, process id and exit status are what they would be without
 * this program.
 *
 * The upstream is what SAMTOOLS_UPSTREAM names or, without that, the first `samtools` on PATH that
 * is not this program. Two tests tell which files are this program:
 *
 *   1. Device and inode. A candidate that is the same file as /proc/self/exe is this program,
 *      through whatever symbolic or hard link it was found.
 *   2. The environment variable ROCKSORT_FRONT_END_TRIED, a list of files. Before each hand-over
 *      the identities of our own file and of the candidate are added to it. A copy of this program
 *      or a wrapper script around it is a different file: it starts this program again, which finds
 *      the variable and tries the first candidate that is not listed. Each hand-over adds a
 *      file, so this ends, at the latest with "no upstream".
 *
 * The list holds identities of files, because wrappers change PATH and may run this program as a
 * child. The upstream inherits the variable; only this front end reads it. One case is not
 * recognised: a wrapper script that runs this program again and clears the environment.
 *
 * `samtools --version` runs the upstream as a child and prints our own line after its lines:
 * scripts take the version from the first line.
 *
 * Exit status: that of rocksort or of the upstream; 1 if there is no upstream to run, but 0 for
 * `samtools --version`, which then prints our own version alone.
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/bam_rocksort.h"
#include "util/version.h"
#include "util/xalloc.h"

#define UPSTREAM_ENV "SAMTOOLS_UPSTREAM"
#define SORT_ENV "SAMTOOLS_SORT"
#define TRIED_ENV "ROCKSORT_FRONT_END_TRIED"

/* ";device:inode;" in decimal: two 64-bit numbers of at most 20 digits, three separators, NUL. */
#define FILE_ID_BYTES 48

/* What execvp() uses if PATH is unset. */
#define DEFAULT_PATH "/bin:/usr/bin"

/* Writes the identity of the file st describes, with its separators, into id. */
static void file_id_format(const struct stat *st, char id[FILE_ID_BYTES])
{
    snprintf(id, FILE_ID_BYTES, ";%" PRIuMAX ":%" PRIuMAX ";", (uintmax_t)st->st_dev,
             (uintmax_t)st->st_ino);
}

/* Returns whether one of the hand-overs that led to this process ran file id. */
static int tried_contains(const char *id)
{
    const char *tried = getenv(TRIED_ENV);
    return tried && strstr(tried, id) != NULL;
}

/* Adds file id to the list that the next program inherits. Returns 0, or -1 with errno set. */
static int tried_add(const char *id)
{
    const char *tried = getenv(TRIED_ENV);
    if (!tried) tried = "";
    if (strstr(tried, id)) return 0;
    char *list = xasprintf("%s%s", tried, id);
    int ret = setenv(TRIED_ENV, list, 1);
    free(list);
    return ret;
}

/* Lists our own file, so that neither this process nor a copy of it hands over to it. Without /proc
 * this does nothing, and a link to this program costs one more exec before it is skipped. */
static int tried_add_self(void)
{
    struct stat st;
    char id[FILE_ID_BYTES];
    if (stat("/proc/self/exe", &st) != 0) return 0;
    file_id_format(&st, id);
    return tried_add(id);
}

/* Runs path in place of this process. Returns only on failure: -1 with errno set. ELOOP means that
 * path is this program or has run it before. */
static int run_upstream(const char *path, char *const argv[])
{
    struct stat st;
    char id[FILE_ID_BYTES];
    if (stat(path, &st) != 0) return -1;
    if (!S_ISREG(st.st_mode) || access(path, X_OK) != 0) {
        errno = EACCES;
        return -1;
    }
    file_id_format(&st, id);
    if (tried_contains(id)) {
        errno = ELOOP;
        return -1;
    }
    if (tried_add(id) != 0) return -1;
    /* path has a slash, so this does not search PATH. Unlike execv it runs a script without a #!
     * line with the shell, as typing its name would. argv[0] stays as the user wrote it. */
    return execvp(path, argv);
}

/* Hands over to the file that SAMTOOLS_UPSTREAM names. Returns only on failure, after a message.
 * The user asked for this file, so no other one on PATH is tried. */
static void hand_over_to_named(const char *name, char *const argv[])
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s%s", strchr(name, '/') ? "" : "./", name);
    if (n < 0 || (size_t)n >= sizeof path) {
        errno = ENAMETOOLONG;
    } else {
        (void)run_upstream(path, argv); /* errno says why it failed */
    }
    if (errno == ELOOP)
        fprintf(stderr,
                "samtools: " UPSTREAM_ENV "='%s' is this program itself, or runs it again; name "
                "the upstream samtools\n",
                name);
    else
        fprintf(stderr, "samtools: cannot run " UPSTREAM_ENV "='%s': %s\n", name, strerror(errno));
}

/* Hands over to the first samtools on PATH that is not this program and can be run. Returns only if
 * there is none. A candidate that cannot be executed is skipped, as a shell does. */
static void hand_over_to_path(char *const argv[])
{
    const char *search = getenv("PATH");
    if (!search) search = DEFAULT_PATH;
    for (const char *dir = search;; dir++) {
        size_t dir_bytes = strcspn(dir, ":");
        char path[PATH_MAX];
        int n; /* an empty element of PATH is the working directory */
        if (dir_bytes == 0)
            n = snprintf(path, sizeof path, "./samtools");
        else
            n = dir_bytes < sizeof path
                    ? snprintf(path, sizeof path, "%.*s/samtools", (int)dir_bytes, dir)
                    : -1;
        if (n > 0 && (size_t)n < sizeof path)
            (void)run_upstream(path, argv); /* after a failure the next one is tried */
        dir += dir_bytes;
        if (*dir == '\0') return;
    }
}

/* Hands over to the upstream. Returns only on failure: -1 after a message if the upstream that the
 * user named cannot be run, 0 without a message if there is none on PATH. */
static int hand_over(char *const argv[])
{
    if (tried_add_self() != 0) {
        fprintf(stderr, "samtools: cannot set " TRIED_ENV ": %s\n", strerror(errno));
        return -1;
    }
    const char *named = getenv(UPSTREAM_ENV);
    if (named && *named) {
        hand_over_to_named(named, argv);
        return -1;
    }
    hand_over_to_path(argv);
    return 0;
}

/* Prints on standard error how to get an upstream samtools. */
static void print_how_to_install(const char *command)
{
    fprintf(stderr,
            "samtools: no upstream samtools found%s%s%s: set " UPSTREAM_ENV " to one, or "
            "apt-get, brew or conda (-c bioconda) install samtools\n",
            command ? " to run '" : "", command ? command : "", command ? "'" : "");
}

/* Writes what is buffered for `out`. Returns 0, or -1 after a message. A reader that has gone is no
 * error: `samtools --version | head -1` has what it wants. */
static int flush(FILE *out)
{
    if ((fflush(out) == 0 && !ferror(out)) || errno == EPIPE) return 0;
    fprintf(stderr, "samtools: cannot write 'standard output': %s\n", strerror(errno));
    return -1;
}

/* Prints our own lines above those of the upstream's usage. Returns 0, or -1 after a message. */
static int print_about(FILE *out)
{
    fprintf(out,
            "\nrocksort %s: sorts SAM, BAM and CRAM of any size in a fixed amount of memory\n"
            "Usage:   samtools rocksort [options] [in.bam]     (samtools rocksort --help)\n"
            "All other commands are run by the upstream samtools:\n",
            ROCKSORT_VERSION);
    /* The upstream writes to the same stream through a buffer of its own. */
    return flush(out);
}

/* Runs in the child: hands over, or writes a byte to the descriptor if there is no upstream. The
 * descriptor is closed when the upstream starts. */
static void hand_over_in_child(char *const argv[], int none_fd)
{
    int r = hand_over(argv);
    if (r == 0 && write(none_fd, "", 1) != 1) r = -1;
    _exit(r == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* Prints the versions of the upstream, then ours. Returns the exit status. */
static int print_versions(char *const argv[])
{
    int ends[2], status;
    char byte;
    pid_t child = -1;
    /* If the parent process ignored SIGCHLD, waitpid could not get the child's status. */
    (void)signal(SIGCHLD, SIG_DFL);
    if (pipe(ends) == 0 && fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0 &&
        fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0)
        child = fork();
    if (child < 0) {
        fprintf(stderr, "samtools: cannot start the upstream samtools: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    if (child == 0) hand_over_in_child(argv, ends[1]);
    (void)close(ends[1]);
    int has_none = read(ends[0], &byte, 1) == 1;
    (void)close(ends[0]);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return EXIT_FAILURE;
    (void)signal(SIGPIPE, SIG_IGN);
    /* Do not print "samtools " with a space: scripts take the version after the last one. */
    printf("rocksort %s, which runs the command rocksort\n%s", ROCKSORT_VERSION,
           has_none ? "no upstream for the other commands is on PATH\n" : "");
    if (flush(stdout) != 0) return EXIT_FAILURE;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Returns whether a command is rocksort: `sort` is if the user asked for that. */
static int runs_as_rocksort(const char *command)
{
    const char *sorter = getenv(SORT_ENV);
    if (strcmp(command, "rocksort") == 0) return 1;
    if (strcmp(command, "sort") != 0 || !sorter) return 0;
    if (strcmp(sorter, "rocksort") == 0) return 1;
    /* A front end that handed over to this one has said so. */
    if (*sorter && strcmp(sorter, "samtools") != 0 && !getenv(TRIED_ENV))
        fprintf(stderr,
                "samtools: warning: " SORT_ENV "='%s' has no effect: it may be rocksort, or "
                "samtools for the upstream\n",
                sorter);
    return 0;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : NULL;
    if (command && runs_as_rocksort(command)) return main_rocksort(argc - 1, argv + 1);
    int is_help = command && (strcmp(command, "--help") == 0 || strcmp(command, "help") == 0);
    if (is_help && argc > 2 && strcmp(argv[2], "rocksort") == 0) {
        char name[] = "rocksort", option[] = "--help";
        char *help_argv[] = {name, option, NULL};
        return main_rocksort(2, help_argv);
    }

    int is_version =
        command && (strcmp(command, "--version") == 0 || strcmp(command, "version") == 0);
    /* If a copy of this program handed over to this one, the copy prints our lines. `help view`
     * asks for the upstream's page alone. */
    int is_outermost = !getenv(TRIED_ENV);
    if (is_version && is_outermost) return print_versions(argv);
    int is_about = !command || (is_help && argc == 2);
    if (is_about && is_outermost && print_about(command ? stdout : stderr) != 0)
        return EXIT_FAILURE;
    if (hand_over(argv) < 0) return EXIT_FAILURE;
    if (is_version) {
        puts("no upstream samtools found on PATH");
        return flush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    print_how_to_install(command);
    return EXIT_FAILURE;
}
