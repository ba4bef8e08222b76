/*
 * fork-server.c -- runs `samtools rocksort` many times without loading the program again, for tests
 * that run it on thousands of files. Each run is a child process, forked before anything else has
 * happened, so that it is like a program that was just started. The child ends as usual, with
 * everything that sanitizers do at the end of a program.
 *
 * Requests come on standard input; for each an answer goes to standard output; it ends with its
 * input. All numbers are 32 bits, in the byte order of the machine. A request is the number of its
 * strings, then each string as its length and its bytes. The strings are
 *     time limit in seconds; any number of NAME=VALUE to set in the environment, and of >FILE for
 *     standard output; "--"; argv
 * An answer is
 *     wait status; 1 if the child was killed at the time limit, otherwise 0; peak resident memory
 *     in KiB; number of bytes that follow: what the child wrote to standard error, at most
 *     MAX_ERROR_BYTES of it; these bytes
 * Standard input of the child is /dev/null, and so is standard output without >FILE.
 */
#define _GNU_SOURCE
#include "cli/bam_rocksort.h"
#include "util/monotonic.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_STRINGS = 64, MAX_STRING_BYTES = 1 << 16, MAX_ERROR_BYTES = 1 << 16 };

struct request {
    char *strings[MAX_STRINGS + 1];     /* the last is NULL */
    uint32_t n;
};

struct answer {
    int32_t wait_status;
    uint32_t timed_out, peak_kib, n_error_bytes;
};

static void fail(const char *what)
{
    (void)fprintf(stderr, "fork-server: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

/* Returns false at the end of the input. */
static bool read_all(void *to, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t r = read(STDIN_FILENO, (char *)to + at, n - at);
        if (r < 0) fail("cannot read a request");
        if (r == 0) return false;
        at += (size_t)r;
    }
    return true;
}

static void write_all(const void *from, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t r = write(STDOUT_FILENO, (const char *)from + at, n - at);
        if (r < 0) fail("cannot write an answer");
        at += (size_t)r;
    }
}

static bool read_request(struct request *request)
{
    uint32_t n_bytes;
    if (!read_all(&request->n, sizeof request->n)) return false;
    if (request->n > MAX_STRINGS) fail("too many strings");
    for (uint32_t i = 0; i < request->n; i++) {
        if (!read_all(&n_bytes, sizeof n_bytes) || n_bytes > MAX_STRING_BYTES) fail("bad request");
        char *string = xmalloc((size_t)n_bytes + 1);
        if (n_bytes > 0 && !read_all(string, n_bytes)) fail("bad request");
        string[n_bytes] = '\0';
        request->strings[i] = string;
    }
    request->strings[request->n] = NULL;
    return true;
}

/* Makes a new file standard output. */
static void set_output(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0) _exit(99);
    (void)close(fd);
}

static void set_variable(char *text)
{
    char *equals = strchr(text, '=');
    if (!equals) _exit(99);
    *equals = '\0';
    if (setenv(text, equals + 1, 1) != 0) _exit(99);
}

/* Runs in the child; does not return. */
static void run(const struct request *request, int error_fd)
{
    uint32_t i = 1;
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(error_fd, STDERR_FILENO) < 0)
        _exit(99);
    (void)close(null);
    (void)close(error_fd);
    for (; i < request->n && strcmp(request->strings[i], "--") != 0; i++) {
        char *string = request->strings[i];
        if (string[0] == '>')
            set_output(string + 1);
        else
            set_variable(string);
    }
    i++;
    exit(main_rocksort((int)(request->n - i), (char **)(uintptr_t)&request->strings[i]));
}

/* Reads what the child writes until it closes its end; kills it when the time is up. */
static void read_errors(int fd, pid_t child, double limit_s, char *errors, struct answer *answer)
{
    double end = monotonic_seconds() + limit_s;
    char beyond[4096];
    for (;;) {
        double left = end - monotonic_seconds();
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        if (left <= 0 || poll(&waiting, 1, (int)(1000 * left) + 1) == 0) {
            answer->timed_out = 1;
            (void)kill(child, SIGKILL);
            return;
        }
        bool fits = answer->n_error_bytes < MAX_ERROR_BYTES;
        ssize_t n = fits ? read(fd, errors + answer->n_error_bytes,
                                MAX_ERROR_BYTES - answer->n_error_bytes)
                         : read(fd, beyond, sizeof beyond);
        if (n < 0 && errno != EINTR) fail("cannot read standard error");
        if (n == 0) return;
        if (n > 0 && fits) answer->n_error_bytes += (uint32_t)n;
    }
}

static void serve(const struct request *request)
{
    static char errors[MAX_ERROR_BYTES];
    struct answer answer = {0};
    struct rusage usage;
    int ends[2], status;
    if (pipe2(ends, O_CLOEXEC) != 0) fail("cannot make a pipe");
    pid_t child = fork();
    if (child < 0) fail("cannot fork");
    if (child == 0) {
        (void)close(ends[0]);
        run(request, ends[1]);
    }
    (void)close(ends[1]);
    read_errors(ends[0], child, atof(request->strings[0]), errors, &answer);
    (void)close(ends[0]);
    if (wait4(child, &status, 0, &usage) != child) fail("cannot wait");
    answer.wait_status = status;
    answer.peak_kib = (uint32_t)usage.ru_maxrss;
    write_all(&answer, sizeof answer);
    write_all(errors, answer.n_error_bytes);
}

int main(void)
{
    struct request request;
    while (read_request(&request)) {
        if (request.n < 2) fail("bad request");
        serve(&request);
        for (uint32_t i = 0; i < request.n; i++) free(request.strings[i]);
    }
    return EXIT_SUCCESS;
}
