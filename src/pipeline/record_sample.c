/* record_sample.c -- see record_sample.h. */
#include "pipeline/record_sample.h"

#include "bam/bgzf_block.h"
#include "duplicates/view_streams.h"
#include "util/monotonic.h"
#include "util/xalloc.h"

#include <stdlib.h>

enum { MOST_BLOCK_BYTES = 128 << 10 };

size_t record_sample_gather(enum sort_order order, const struct sort_entry *entries,
                            size_t n_entries, uint8_t *out, size_t room)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < n_entries; i++) {
        const uint8_t *rec = sort_entry_record(order, &entries[i]);
        size_t rec_bytes = bam_record_bytes(rec);
        if (rec_bytes > room - n_bytes) break;
        memcpy(out + n_bytes, rec, rec_bytes);
        n_bytes += rec_bytes;
    }
    return n_bytes;
}

/* CPU time, which does not depend on what else the machine does. */
static double since(double start)
{
    return thread_cpu_seconds() - start;
}

/* Packs and unpacks the sample in blocks with one codec. */
static int measure_codec(enum temp_codec codec, size_t block_bytes, const uint8_t *sorted,
                         size_t n_bytes, struct record_traits *traits)
{
    struct temp_coder coder = {0};
    size_t room = temp_codec_bound(codec, MOST_BLOCK_BYTES), packed_bytes = 0, at = 0;
    uint8_t *packed = xmalloc(room), *unpacked = xmalloc(MOST_BLOCK_BYTES);
    double pack_seconds = 0, unpack_seconds = 0;
    int r = 0;
    while (at < n_bytes && r == 0) {
        size_t n_raw = n_bytes - at < block_bytes ? n_bytes - at : block_bytes;
        double start = thread_cpu_seconds();
        ssize_t n = temp_codec_compress(&coder, codec, sorted + at, n_raw, packed, room);
        pack_seconds += since(start);
        start = thread_cpu_seconds();
        if (n < 0 ||
            temp_codec_decompress(&coder, codec, packed, (size_t)n, unpacked, n_raw) < 0)
            r = -1;
        unpack_seconds += since(start);
        packed_bytes += n > 0 ? (size_t)n : 0;
        at += n_raw;
    }
    traits->pack_ratio[codec] = (double)packed_bytes / (double)n_bytes;
    traits->pack_seconds[codec] = pack_seconds / (double)n_bytes;
    traits->unpack_seconds[codec] = unpack_seconds / (double)n_bytes;
    free(packed);
    free(unpacked);
    temp_coder_release(&coder);
    return r;
}

/* Deflates as much of the sample as the time allows. */
static int measure_deflate(const struct record_sample_settings *settings,
                           struct bgzf_method method, const uint8_t *sorted, size_t n_bytes,
                           double *ratio, double *raw_seconds)
{
    struct bgzf_coder coder = {0};
    uint8_t *block = xmalloc(BGZF_MAX_BYTES);
    size_t at = 0, deflated_bytes = 0;
    double start = thread_cpu_seconds(), seconds = 0;
    while (at < n_bytes && seconds <= settings->most_deflate_seconds) {
        size_t n_raw = n_bytes - at < BGZF_PAYLOAD_BYTES ? n_bytes - at : BGZF_PAYLOAD_BYTES;
        ssize_t n = bgzf_block_deflate(&coder, method, sorted + at, n_raw, block);
        if (n < 0) break;
        deflated_bytes += (size_t)n;
        at += n_raw;
        seconds = since(start);
    }
    free(block);
    bgzf_coder_release(&coder);
    if (at == 0) return -1;
    *raw_seconds = seconds / (double)at;
    *ratio = (double)deflated_bytes / (double)at;
    return 0;
}

/* Makes the views of the sample. Groups change little of them. */
static void measure_views(const struct record_sample_settings *settings, const uint8_t *sorted,
                          size_t n_bytes, struct record_traits *traits)
{
    struct duplicate_rules rules = *settings->duplicates;
    struct bam_walk walk = {.at = sorted, .end = sorted + n_bytes};
    struct view_gather gather = {0};
    struct record_views views;
    uint8_t *out = NULL;
    size_t out_bytes = 0, room = 0, begin = 0;
    uint32_t index = 0;
    rules.groups = NULL;
    rules.use_read_groups = rules.use_libraries = false;
    for (const uint8_t *rec; (rec = bam_walk_next(&walk)) != NULL; index++) {
        if (duplicate_views_make(&rules, rec, &views)) continue;
        for (unsigned i = 0; i < views.n; i++) {
            views.view[i].ordinal = views.view[i].index = index;
            view_gather_add(&gather, &views.view[i]);
        }
        size_t at = (size_t)(walk.at - sorted);
        if (gather.n < VIEW_GATHER_ENOUGH && at - begin < settings->pack_bytes) continue;
        view_gather_end(&gather, 0, &out, &out_bytes, &room);
        begin = at;
    }
    view_gather_end(&gather, 0, &out, &out_bytes, &room);
    traits->view_ratio = (double)out_bytes / (double)n_bytes;
    view_gather_release(&gather);
    free(out);
}

int record_sample_measure(const struct record_sample_settings *settings, const uint8_t *sorted,
                          size_t n_bytes, struct record_traits *traits)
{
    size_t block_bytes = settings->block_bytes;
    if (block_bytes > MOST_BLOCK_BYTES) block_bytes = MOST_BLOCK_BYTES;
    for (int i = 0; i < TEMP_CODEC_COUNT; i++)
        if (measure_codec((enum temp_codec)i, block_bytes, sorted, n_bytes, traits) < 0) return -1;
    if (settings->duplicates) measure_views(settings, sorted, n_bytes, traits);
    if (measure_deflate(settings, settings->method, sorted, n_bytes, &traits->deflate_ratio,
                        &traits->deflate_seconds) < 0)
        return -1;
    traits->usual_ratio = traits->deflate_ratio;
    traits->usual_seconds = traits->deflate_seconds;
    const struct bgzf_method usual = {.level = -1};
    if (!settings->measures_usual || settings->method.level < 0) return 0;
    return measure_deflate(settings, usual, sorted, n_bytes, &traits->usual_ratio,
                           &traits->usual_seconds);
}
