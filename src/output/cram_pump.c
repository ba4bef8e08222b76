/* cram_pump.c -- see cram_pump.h. */
#define _GNU_SOURCE             /* pipe2, F_SETPIPE_SZ */
#include "output/cram_pump.h"

#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { PIPE_BYTES = 1 << 20, CHUNK_BYTES = 256 << 10 };

int cram_pump_open(struct cram_pump *pump, hFILE **from)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0) return -1;
    /* The system may not allow so large a pipe. The default size works, too, but the threads must
       switch more often. */
    (void)fcntl(fds[1], F_SETPIPE_SZ, (int)PIPE_BYTES);
    *from = hdopen(fds[1], "w");
    if (!*from) {
        int error = errno;
        (void)close(fds[0]);
        (void)close(fds[1]);
        errno = error;
        return -1;
    }
    pump->chunk = xmalloc(CHUNK_BYTES);
    pump->read_fd = fds[0];
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
    for (;;) {
        ssize_t n = read(pump->read_fd, chunk, CHUNK_BYTES);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) error = errno;
        if (n > 0 && !error && !atomic_load(&pump->discarding)) {
            errno = 0;
            if (hwrite(atomic_load(&pump->target), chunk, (size_t)n) != n)
                error = errno ? errno : EIO;
        }
        if (error) atomic_store(&pump->error, error);
        if (n <= 0) return;
    }
}

void cram_pump_close(struct cram_pump *pump)
{
    (void)close(pump->read_fd);
    free(pump->chunk);
    pump->chunk = NULL;
}
