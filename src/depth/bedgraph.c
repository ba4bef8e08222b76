/*
 * bedgraph.c -- --bedgraph (depth_track.h): runs of equal depth as text, one a line: reference,
 * begin, end, depth. Runs of depth 0 are left out.
 *
 * Whole numbers are printed with all digits, others with six, as bedtools prints them.
 */
#include "depth/depth_track.h"

#include "util/decimal.h"

#include <stdio.h>
#include <string.h>

static uint8_t *put_value(uint8_t *at, double value)
{
    const double most = 1e15;
    if (value >= 0 && value < most && value == (double)(uint64_t)value)
        return put_decimal(at, (uint64_t)value);
    return at + sprintf((char *)at, "%g", value);
}

static int encode(const void *header, struct bgzf_coder *coder, unsigned level,
                  const struct track_item *items, size_t n, struct byte_buffer *out)
{
    enum { NUMBERS_BYTES = 72 };        /* three numbers, tabs and the end of a line */
    const char *name = sam_hdr_tid2name((const sam_hdr_t *)header, (int)items->tid);
    size_t name_bytes = strlen(name);
    (void)coder;
    (void)level;
    for (size_t i = 0; i < n; i++) {
        uint8_t *at = byte_buffer_reserve(out, name_bytes + NUMBERS_BYTES);
        at = copy_bytes(at, name, name_bytes);
        *at++ = '\t';
        at = put_decimal(at, (uint64_t)items[i].begin);
        *at++ = '\t';
        at = put_decimal(at, (uint64_t)items[i].end);
        *at++ = '\t';
        at = put_value(at, items[i].max);
        *at++ = '\n';
        out->n_bytes = (size_t)(at - out->bytes);
    }
    return 0;
}

static void *open_sink(const struct count_setup *setup, const struct track_settings *settings)
{
    (void)settings;
    return setup->sinks[0];
}

static int write_lines(void *file, unsigned level, const struct track_section *section,
                       const uint8_t *bytes)
{
    struct count_sink *sink = file;
    (void)level;
    return section ? sink->write(sink, bytes, section->n_bytes) : 0;
}

static struct record_observer *observe(const struct count_setup *setup)
{
    static const struct depth_track_format format = {.encode = encode, .open = open_sink,
                                                     .write = write_lines};
    return depth_track_observe(setup, &format);
}

const struct count_kind bedgraph_kind = {
    .in_coordinate_order = true, .parse = depth_track_parse, .free_options = free,
    .is_streamed = depth_track_is_streamed, .observe = observe};
