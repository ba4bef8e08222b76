/* cram_pump.c -- see cram_pump.h. */
#define _GNU_SOURCE             /* F_DUPFD_CLOEXEC, SOCK_CLOEXEC */
#include "output/cram_pump.h"

#include "os/transfers.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHUNK_BYTES = 256 << 10 };

/* Closes the descriptors that are open; keeps errno. */
static void close_all(const int *fds, size_t n)
{
    int error = errno;
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0) (void)close(fds[i]);
    errno = error;
}

int cram_pump_open(struct cram_pump *pump, hFILE **from)
{
    enum { READ, WRITE, END, N };
    int fds[N] = {-1, -1, -1};
    *from = NULL;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) return -1;
    fds[END] = fcntl(fds[WRITE], F_DUPFD_CLOEXEC, 0);
    if (fds[END] >= 0) *from = hdopen(fds[WRITE], "w");
    if (!*from) {
        close_all(fds, N);
        return -1;
    }
    pump->chunk = xmalloc(CHUNK_BYTES);
    pump->read_fd = fds[READ];
    pump->end_fd = fds[END];
    pump->failure[0] = '\0';
    atomic_init(&pump->error, 0);
    atomic_init(&pump->target, NULL);
    atomic_init(&pump->discarding, false);
    return 0;
}

void cram_pump_set_target(struct cram_pump *pump, hFILE *target)
{
    atomic_store(&pump->target, target);
}

void cram_pump_discard(struct cram_pump *pump)
{
    atomic_store(&pump->discarding, true);
}

void cram_pump_run(struct cram_pump *pump)
{
    char *chunk = pump->chunk;
    int error = 0;
    bool tries_again = false;
    for (;;) {
        ssize_t n = read(pump->read_fd, chunk, CHUNK_BYTES);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) error = errno;
        /* Retry a failed read once: without a reader the writer would wait forever. */
        tries_again = n < 0 && !tries_again;
        if (n > 0 && !error && !atomic_load(&pump->discarding)) {
            errno = 0;
            if (hwrite(atomic_load(&pump->target), chunk, (size_t)n) != n)
                error = errno ? errno : EIO;
        }
        if (error && !atomic_load(&pump->error)) {
            const char *failure = transfers_failure();
            (void)snprintf(pump->failure, sizeof pump->failure, "%s", failure ? failure : "");
            atomic_store(&pump->error, error);
        }
        if (n <= 0 && !tries_again) return;
    }
}

void cram_pump_end(struct cram_pump *pump)
{
    /* This ends the stream for all descriptors of the writing end. It cannot fail: the other end is
       still open. */
    (void)shutdown(pump->end_fd, SHUT_WR);
}

void cram_pump_close(struct cram_pump *pump)
{
    close_all((const int[]){pump->read_fd, pump->end_fd}, 2);
    free(pump->chunk);
    pump->chunk = NULL;
}
