/*
 * space.c -- early warnings: will temporary data and output fit their file systems?
 *
 * Asked once, as soon as the size of the input is known, or told by -s: with the first batches of a
 * file. What is needed is taken as the least that real data were seen to need, so that a warning
 * means what it says. (2 GB of records of 150 bp: BAM at level 1 0.31, at level 6 0.27, CRAM 0.1 of
 * them; blocks with lz4 0.32, with zstd 0.21. Of the newest sequencers, with few different
 * qualities, a third less.) Somebody else may use the disk as well, or free it: it is no error.
 */
#include "pipeline/space.h"

#include "machine/disk_space.h"
#include "util/diag.h"
#include "util/size.h"

#include <stdlib.h>
#include <string.h>

static const double packed_share = 0.2, cram_share = 0.07, lz4_share = 0.25, zstd_share = 0.15;

static uint64_t output_bytes(const struct space_settings *s, uint64_t raw_bytes)
{
    const htsFormat *format = s->output_format;
    double share = packed_share;
    if (format->format == cram)
        share = cram_share;
    else if (s->level == 0 || (format->format == sam && format->compression != bgzf))
        share = 1;
    return (uint64_t)(share * (double)raw_bytes);
}

static uint64_t temporary_bytes(const struct space_settings *s, uint64_t raw_bytes)
{
    /* Entries and what else is kept of a record take an eighth. */
    if (raw_bytes + raw_bytes / 8 < s->memory_bytes) return 0;
    double share = s->codec_auto || s->codec == TEMP_CODEC_ZSTD ? zstd_share
                   : s->codec == TEMP_CODEC_NONE                ? 1
                                                                : lz4_share;
    return (uint64_t)(share * (double)raw_bytes);
}

/* Where temporary data will be (temp_dir.h). */
static const char *temporary_place(const struct space_settings *s, size_t number)
{
    const char *prefix = s->temp_prefixes[number], *tmpdir = getenv("TMPDIR");
    if (prefix) return prefix;
    if (s->output) return s->output;
    return tmpdir && *tmpdir ? tmpdir : ".";
}

/* Warns if there is not so much space. */
static void compare(const char *what, const char *advice, const struct disk_space *space,
                    uint64_t free_bytes, uint64_t needed_bytes)
{
    char needed[SIZE_TEXT_BYTES], has[SIZE_TEXT_BYTES];
    if (needed_bytes <= free_bytes) return;
    diag_warning("%s will need %s or more, but file system '%s' has %s free%s", what,
                 size_format(needed_bytes, needed), space->mount,
                 size_format(free_bytes, has), advice);
}

/* Sums the free space of all directories of temporary data; true if the output's is among them. */
static bool sum_temporary_space(const struct space_settings *s, const struct disk_space *output,
                                struct disk_space *first, uint64_t *free_bytes)
{
    dev_t seen[64];
    size_t n_seen = 0;
    bool shared = false;
    *free_bytes = 0;
    first->known = false;
    for (size_t i = 0; i < s->n_temp_prefixes && n_seen < 64; i++) {
        struct disk_space space;
        bool is_new = disk_space_look(temporary_place(s, i), &space);
        for (size_t k = 0; k < n_seen; k++) is_new = is_new && seen[k] != space.device;
        if (!is_new) continue;
        seen[n_seen++] = space.device;
        *free_bytes += space.free_bytes;
        if (!first->known) *first = space;
        if (output->known && output->device == space.device) shared = true;
    }
    return shared;
}

void space_warn(const struct space_settings *s, uint64_t raw_bytes)
{
    struct disk_space output = {.known = false}, first;
    uint64_t free_bytes;
    if (s->nothing_is_written || raw_bytes == 0) return;
    if (s->output) (void)disk_space_look(s->output, &output);
    uint64_t out_bytes = output.known ? output_bytes(s, raw_bytes) : 0;
    uint64_t temp_bytes = temporary_bytes(s, raw_bytes);
    bool shared = sum_temporary_space(s, &output, &first, &free_bytes);
    if (output.known && !(shared && temp_bytes > 0))
        compare("the output", "; free space there", &output, output.free_bytes, out_bytes);
    if (first.known && temp_bytes > 0 && shared)
        compare("temporary data and output", "; choose other places with -T", &first, free_bytes,
                temp_bytes + out_bytes);
    else if (first.known && temp_bytes > 0)
        compare("temporary data", "; choose other places with -T", &first, free_bytes, temp_bytes);
}
