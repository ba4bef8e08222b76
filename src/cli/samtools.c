/*
 * samtools.c -- the `samtools` front end.
 *
 * `samtools rocksort ...` runs here, and so does `samtools sort ...` if the environment has
 * SAMTOOLS_SORT=rocksort. Every other command is handed over to the upstream samtools with exec, so
 * that its arguments, standard streams, process id and exit status are what they would be without
 * this program.
 *
 * The upstream is what SAMTOOLS_UPSTREAM names or, without that, the first `samtools` on PATH that
 * is not this program. The environment variable ROCKSORT_FRONT_END_TRIED lists device and inode of
 * this program's file, whatever link it was found through, and of each file that was handed over
 * to. A copy of this program or a wrapper script around it starts this program again, which tries
 * the first candidate that is not listed. It lists files, not names, because wrappers change PATH.
 * A wrapper that clears the environment is not recognised.
 *
 * `samtools --version` runs the upstream as a child and prints our own line after its lines:
 * scripts take the version from the first line.
 *
 * Exit status: that of rocksort or of the upstream; 1 if there is no upstream to run, but 0 for
 * `samtools --version`, which then prints our own version alone.
 */
#define _GNU_SOURCE             /* MAP_ANONYMOUS */

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/bam_rocksort.h"
#include "util/version.h"
#include "util/xalloc.h"

#define UPSTREAM_ENV "SAMTOOLS_UPSTREAM"
#define SORT_ENV "SAMTOOLS_SORT"
#define TRIED_ENV "ROCKSORT_FRONT_END_TRIED"

/* What execvp() uses if PATH is unset. */
#define DEFAULT_PATH "/bin:/usr/bin"

/* Adds a file to the list that the next program inherits. Returns 0, or -1 with errno set: ELOOP if
 * the list has it already. */
static int list_file(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) return -1;
    const char *tried = getenv(TRIED_ENV);
    char *id = xasprintf(";%ju:%ju;", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    char *list = xasprintf("%s%s", tried ? tried : "", id);
    int r = -1;
    if (tried && strstr(tried, id))
        errno = ELOOP;
    else
        r = setenv(TRIED_ENV, list, 1);
    free(id);
    free(list);
    return r;
}

/* Runs path in place of this process. Returns only on failure, with errno set. ELOOP means that
 * path is this program or has run it before. */
static void run_upstream(const char *path, char *const argv[])
{
    struct stat st;
    if (stat(path, &st) != 0) return;
    errno = EACCES;
    if (!S_ISREG(st.st_mode) || access(path, X_OK) != 0 || list_file(path) != 0) return;
    /* path has a slash, so this does not search PATH. Unlike execv it runs a script without a #!
     * line with the shell, as typing its name would. argv[0] stays as the user wrote it. */
    (void)execvp(path, argv);
}

/* Hands over to the file that SAMTOOLS_UPSTREAM names. Returns only on failure, after a message.
 * The user asked for this file, so no other one on PATH is tried. */
static void hand_over_to_named(const char *name, char *const argv[])
{
    char *path = xasprintf("%s%s", strchr(name, '/') ? "" : "./", name);
    run_upstream(path, argv);
    if (errno == ELOOP)
        fprintf(stderr,
                "samtools: " UPSTREAM_ENV "='%s' is this program itself, or runs it again; name "
                "the upstream samtools\n",
                name);
    else
        fprintf(stderr, "samtools: cannot run " UPSTREAM_ENV "='%s': %s\n", name, strerror(errno));
    free(path);
}

/* Hands over to the first samtools on PATH that is not this program and can be run. Returns only if
 * there is none. A candidate that cannot be executed is skipped, as a shell does. */
static void hand_over_to_path(char *const argv[])
{
    const char *search = getenv("PATH");
    if (!search) search = DEFAULT_PATH;
    for (const char *dir = search;; dir++) {
        int n = (int)strcspn(dir, ":");
        /* An empty element of PATH is the working directory. */
        char *path = xasprintf("%.*s/samtools", n > 0 ? n : 1, n > 0 ? dir : ".");
        run_upstream(path, argv);
        free(path);
        dir += n;
        if (*dir == '\0') return;
    }
}

/* Hands over to the upstream. Returns only on failure: -1 after a message if the upstream that the
 * user named cannot be run, 0 without a message if there is none on PATH. */
static int hand_over(char *const argv[])
{
    /* Without /proc, a link to this program costs one more exec before it is skipped. */
    (void)list_file("/proc/self/exe");
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

/* Writes what is buffered for `out`. Returns 0, or -1 after a message. It is not an error if the
   reader has gone: `samtools --version | head -1` has what it wants. */
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

/* Prints the versions of the upstream, then ours. Returns the exit status. */
static int print_versions(char *const argv[])
{
    int status;
    /* The child shares it: an upstream may exit with any status. */
    bool *has_none = mmap(NULL, sizeof *has_none, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    /* If the parent process ignored SIGCHLD, waitpid could not get the child's status. */
    (void)signal(SIGCHLD, SIG_DFL);
    pid_t child = has_none == MAP_FAILED ? -1 : fork();
    if (child == 0) {
        *has_none = hand_over(argv) == 0;
        _exit(EXIT_FAILURE);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) {
        fprintf(stderr, "samtools: cannot run the upstream samtools: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    /* Do not print "samtools " with a space: scripts take the version after the last one. */
    printf("rocksort %s, which runs the command rocksort\n%s", ROCKSORT_VERSION,
           *has_none ? "no upstream for the other commands is on PATH\n" : "");
    if (flush(stdout) != 0) return EXIT_FAILURE;
    return *has_none ? EXIT_SUCCESS
           : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* True for rocksort, and for `sort` if SAMTOOLS_SORT asks for it. */
static int runs_as_rocksort(const char *command)
{
    const char *sorter = getenv(SORT_ENV);
    if (strcmp(command, "rocksort") == 0) return 1;
    if (strcmp(command, "sort") != 0 || !sorter) return 0;
    if (strcmp(sorter, "rocksort") == 0) return 1;
    /* A front end that handed over to this one has already warned. */
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
