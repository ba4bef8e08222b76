/* stats_overlaps.c -- see stats_overlaps.h. */
#include "stats/stats_overlaps.h"

#include "util/xalloc.h"

#include <htslib/khash.h>
#include <stdlib.h>
#include <string.h>

enum { MANY_NAMES = 10000 };    /* as in samtools: it decides which names are known */

struct mate_spans {
    int number;                 /* of the mate that came first */
    int64_t (*spans)[2];
    size_t n, room;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
KHASH_MAP_INIT_INT64(spans, struct mate_spans)
#pragma GCC diagnostic pop

struct stats_overlaps {
    khash_t(spans) *names;
    uint64_t n_removed;
    uint32_t n_records;         /* since names were last removed */
    int32_t tid;
};

struct stats_overlaps *stats_overlaps_create(void)
{
    struct stats_overlaps *overlaps = xcalloc(1, sizeof *overlaps);
    overlaps->tid = -2;
    overlaps->names = kh_init(spans);
    xalloc_require(overlaps->names != NULL);
    return overlaps;
}

static void forget(struct stats_overlaps *overlaps, khint_t at)
{
    free(kh_val(overlaps->names, at).spans);
    kh_del(spans, overlaps->names, at);
}

/* Forgets the names whose spans end before pos. */
static void forget_before(struct stats_overlaps *overlaps, int64_t pos)
{
    for (khint_t at = kh_begin(overlaps->names); at != kh_end(overlaps->names); at++) {
        if (!kh_exist(overlaps->names, at)) continue;
        const struct mate_spans *mate = &kh_val(overlaps->names, at);
        if (mate->spans[mate->n - 1][1] < pos) forget(overlaps, at);
    }
    overlaps->n_records = 0;
}

void stats_overlaps_begin(struct stats_overlaps *overlaps, int32_t tid, int64_t pos)
{
    overlaps->n_records++;
    if (kh_size(overlaps->names) > MANY_NAMES && overlaps->n_records > MANY_NAMES)
        forget_before(overlaps, pos);
    if (overlaps->tid != tid) forget_before(overlaps, INT64_MAX);
    overlaps->tid = tid;
}

static void keep_span(struct mate_spans *mate, const int64_t span[2])
{
    xgrow(&mate->spans, &mate->room, mate->n + 1, mate->n, sizeof *mate->spans);
    memcpy(mate->spans[mate->n++], span, sizeof *mate->spans);
}

void stats_overlaps_span(struct stats_overlaps *overlaps, const struct stats_mate *mate,
                         const int64_t span[2],
                         void (*add)(void *arg, int64_t begin, int64_t end), void *arg)
{
    int64_t begin = span[0], end = span[1];
    int is_new = 0;
    if (mate->number > 0) {
        khint_t at = kh_put(spans, overlaps->names, mate->name, &is_new);
        xalloc_require(is_new >= 0);
        struct mate_spans *known = &kh_val(overlaps->names, at);
        if (is_new) *known = (struct mate_spans){.number = mate->number};
        if (known->number == mate->number) {
            keep_span(known, span);
        } else {
            for (size_t i = 0; i < known->n && end > known->spans[i][0]; i++) {
                const int64_t *other = known->spans[i];
                if (begin >= other[1]) continue;
                if (begin < other[0]) add(arg, begin, other[0]);
                if (begin < other[0]) begin = other[0];
                const int64_t cut = end <= other[1] ? end : other[1];
                overlaps->n_removed += (uint64_t)(cut - begin);
                if (end <= other[1]) return;
                begin = cut;
            }
        }
    }
    add(arg, begin, end);
}

void stats_overlaps_end(struct stats_overlaps *overlaps, const struct stats_mate *mate)
{
    if (mate->number == 0) return;
    khint_t at = kh_get(spans, overlaps->names, mate->name);
    if (at != kh_end(overlaps->names) && kh_val(overlaps->names, at).number != mate->number)
        forget(overlaps, at);
}

uint64_t stats_overlaps_removed(const struct stats_overlaps *overlaps)
{
    return overlaps->n_removed;
}

void stats_overlaps_destroy(struct stats_overlaps *overlaps)
{
    if (!overlaps) return;
    forget_before(overlaps, INT64_MAX);
    kh_destroy(spans, overlaps->names);
    free(overlaps);
}
