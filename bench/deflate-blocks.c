/*
 * deflate-blocks -- measures what encoders take for the blocks of a BAM file: CPU time, one thread.
 *
 *     deflate-blocks SIZE REPEATS FILE.bam ENGINE:LEVEL...
 *
 * Reads records until the next one would exceed SIZE bytes, and cuts them into payloads as a BAM
 * writer does. Engines and levels are those of bgzf_engine.h. Output, with tabs between the fields:
 *
 *     records    their number, how many have a tag CB
 *     libdeflate its version
 *     method     ENGINE:LEVEL, bytes of payloads, of BGZF blocks, ns a byte to deflate, to inflate
 *
 * The methods take turns group by group of blocks, in the opposite order in every other repeat. The
 * time of a group is its shortest. Every group must inflate to what it was in every repeat. An
 * engine that is not built in is left out.
 */
#define _GNU_SOURCE             /* memmem */
#include "bam/bgzf_block.h"
#include "util/size.h"
#include "util/xalloc.h"

#include <err.h>
#include <htslib/bgzf.h>
#include <htslib/sam.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    GROUP_BLOCKS = 16,          /* some ms: more than the clock's step, less than a time slice */
    FRAME_BYTES = BGZF_HEADER_BYTES + BGZF_FOOTER_BYTES,
    DEFLATED_BYTES = BGZF_MAX_BYTES - FRAME_BYTES,
};

struct payloads {
    uint8_t *bytes;
    size_t *bounds;             /* 0, then the end of each payload */
    size_t n, room;             /* n: of the bounds */
    uint64_t n_records, n_barcoded;
};

struct method {
    const char *name;
    struct bgzf_method how;
    struct bgzf_coder coder;
    uint64_t block_bytes;
    uint64_t (*least_ns)[2];    /* of each group, to deflate and to inflate */
};

/* ---- payloads ---- */

static size_t add_bound(struct payloads *payloads, size_t at)
{
    xgrow(&payloads->bounds, &payloads->room, payloads->n + 1, payloads->n, sizeof at);
    return payloads->bounds[payloads->n++] = at;
}

/* A record that does not fit starts a payload; one that is longer than a payload is divided. */
static void cut_record(struct payloads *payloads, size_t start, size_t end)
{
    size_t last = payloads->bounds[payloads->n - 1];
    if (end - last > BGZF_PAYLOAD_BYTES && start > last) last = add_bound(payloads, start);
    while (end - last > BGZF_PAYLOAD_BYTES) last = add_bound(payloads, last + BGZF_PAYLOAD_BYTES);
}

static void read_payloads(const char *path, size_t most_bytes, struct payloads *payloads)
{
    BGZF *file = bgzf_open(path, "r");
    sam_hdr_t *header = file ? bam_hdr_read(file) : NULL;
    if (!header) errx(1, "cannot read '%s' as BAM", path);
    payloads->bytes = xmalloc(most_bytes);
    size_t used = add_bound(payloads, 0);
    while (most_bytes - used > 4) {
        uint8_t *record = payloads->bytes + used;
        const ssize_t got = bgzf_read(file, record, 4);
        if (got == 0) break;
        const size_t n = record[0] | record[1] << 8 | record[2] << 16 | (size_t)record[3] << 24;
        if (got == 4 && n > most_bytes - used - 4) break;
        if (got != 4 || bgzf_read(file, record + 4, n) != (ssize_t)n)
            errx(1, "'%s' is truncated or damaged", path);
        cut_record(payloads, used, used + 4 + n);
        used += 4 + n;
        payloads->n_records++;
        payloads->n_barcoded += memmem(record, 4 + n, "CBZ", 3) != NULL;
    }
    if (used == 0) errx(1, "'%s' has no record that fits", path);
    add_bound(payloads, used);
    sam_hdr_destroy(header);
    if (bgzf_close(file) != 0) errx(1, "cannot close '%s'", path);
}

/* ---- methods ---- */

/* Returns false if the engine is not built in. */
static bool parse_method(const char *name, struct method *method)
{
    char engine[16], rest;
    int level;
    *method = (struct method){.name = name};
    if (sscanf(name, "%15[a-z]:%d%c", engine, &level, &rest) != 2 || level < 1 || level > 9 ||
        bgzf_engine_parse(engine, &method->how.engine) != 0 ||
        !bgzf_engine_has_level(method->how.engine, level))
        errx(1, "'%s' is not ENGINE:LEVEL, such as libdeflate:6 or rocksort:3", name);
    method->how.level = level;
    if (bgzf_engine_is_built_in(method->how.engine)) return true;
    warnx("%s is not built in: left out", engine);
    return false;
}

/* ---- measuring ---- */

static uint64_t cpu_ns(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) errx(1, "there is no clock of CPU time");
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void keep_least(uint64_t *so_far, uint64_t ns)
{
    if (*so_far == 0 || ns < *so_far) *so_far = ns;
}

/* Deflates and inflates the n payloads of a group. raw: the bytes from bounds[0] to bounds[n]. */
static void run_group(struct method *method, size_t group, const uint8_t *raw, const size_t *bounds,
                      size_t n)
{
    static uint8_t out[GROUP_BLOCKS][DEFLATED_BYTES], back[GROUP_BLOCKS * BGZF_PAYLOAD_BYTES];
    ssize_t sizes[GROUP_BLOCKS];
    const uint64_t start = cpu_ns();
    for (size_t i = 0; i < n; i++)
        sizes[i] = bgzf_engine_deflate(&method->coder, method->how, raw + (bounds[i] - bounds[0]),
                                       bounds[i + 1] - bounds[i], out[i], sizeof out[i]);
    const uint64_t middle = cpu_ns();
    for (size_t i = 0; i < n; i++)
        if (sizes[i] <= 0 ||
            bgzf_engine_inflate(&method->coder, out[i], (size_t)sizes[i],
                                back + (bounds[i] - bounds[0]), bounds[i + 1] - bounds[i]) != 0)
            errx(1, "%s fails", method->name);
    const uint64_t end = cpu_ns();
    if (memcmp(back, raw, bounds[n] - bounds[0]) != 0)
        errx(1, "%s: a block inflates to other bytes", method->name);
    for (size_t i = 0; i < n; i++) method->block_bytes += (uint64_t)sizes[i] + FRAME_BYTES;
    keep_least(&method->least_ns[group][0], middle - start);
    keep_least(&method->least_ns[group][1], end - middle);
}

/* The payloads of a group are copied first: a writer, too, has just filled them. */
static void run_all(struct method *methods, size_t n_methods, const struct payloads *payloads,
                    bool is_odd)
{
    static uint8_t raw[GROUP_BLOCKS * BGZF_PAYLOAD_BYTES];
    for (size_t at = 0; at + 1 < payloads->n; at += GROUP_BLOCKS) {
        const size_t left = payloads->n - 1 - at, n = left < GROUP_BLOCKS ? left : GROUP_BLOCKS;
        const size_t *bounds = payloads->bounds + at;
        memcpy(raw, payloads->bytes + bounds[0], bounds[n] - bounds[0]);
        for (size_t i = 0; i < n_methods; i++)
            run_group(&methods[is_odd ? n_methods - 1 - i : i], at / GROUP_BLOCKS, raw, bounds, n);
    }
}

static void print_method(const struct method *method, size_t n_groups, size_t n_bytes,
                         uint64_t repeats)
{
    double ns[2] = {0};
    for (size_t i = 0; i < n_groups * 2; i++) ns[i % 2] += (double)method->least_ns[i / 2][i % 2];
    printf("method\t%s\t%zu\t%" PRIu64 "\t%.3f\t%.3f\n", method->name, n_bytes,
           method->block_bytes / repeats, ns[0] / (double)n_bytes, ns[1] / (double)n_bytes);
}

int main(int argc, char **argv)
{
    uint64_t most_bytes;
    const long repeats = argc > 4 ? atol(argv[2]) : 0;
    if (repeats < 1 || size_parse(argv[1], &most_bytes) != 0)
        errx(1, "usage: deflate-blocks SIZE REPEATS FILE.bam ENGINE:LEVEL...");
    struct payloads payloads = {0};
    read_payloads(argv[3], most_bytes, &payloads);
    const size_t n_groups = (payloads.n - 1 + GROUP_BLOCKS - 1) / GROUP_BLOCKS;
    struct method *methods = xcalloc((size_t)argc, sizeof *methods);
    size_t n_methods = 0;
    for (int i = 4; i < argc; i++)
        if (parse_method(argv[i], &methods[n_methods]))
            methods[n_methods++].least_ns = xcalloc(n_groups, sizeof *methods->least_ns);
    for (long repeat = 0; repeat < repeats; repeat++)
        run_all(methods, n_methods, &payloads, repeat % 2 == 1);
    printf("records\t%" PRIu64 "\t%" PRIu64 "\n", payloads.n_records, payloads.n_barcoded);
    const char *version;
    if (bgzf_engine_library(BGZF_ENGINE_LIBDEFLATE, &version)) printf("libdeflate\t%s\n", version);
    for (size_t i = 0; i < n_methods; i++) {
        print_method(&methods[i], n_groups, payloads.bounds[payloads.n - 1], (uint64_t)repeats);
        bgzf_coder_release(&methods[i].coder);
        free(methods[i].least_ns);
    }
    free(methods);
    free(payloads.bounds);
    free(payloads.bytes);
    return fflush(stdout) == 0 ? 0 : 1;
}
