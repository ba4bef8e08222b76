/* stats_reference.c -- see stats_reference.h. */
#include "stats/stats_reference.h"

#include "util/diag.h"
#include "util/xalloc.h"

#include <htslib/faidx.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW_BASES = 1 << 18 };

struct stats_reference {
    const char *path;
    sam_hdr_t *header;
    faidx_t *file;
    int32_t tid;                /* of the window; -1: none */
    int64_t begin, end;
    uint8_t *bases;
    size_t room;
};

static int check_names(const struct stats_reference *reference)
{
    for (int32_t tid = 0; tid < sam_hdr_nref(reference->header); tid++) {
        const char *name = sam_hdr_tid2name(reference->header, tid);
        if (faidx_has_seq(reference->file, name)) continue;
        diag_error("--stats: '%s' lacks the reference '%s' of the header", reference->path, name);
        return -1;
    }
    return 0;
}

struct stats_reference *stats_reference_open(const char *path, sam_hdr_t *header)
{
    struct stats_reference *reference = xcalloc(1, sizeof *reference);
    *reference = (struct stats_reference){.path = path, .header = header, .tid = -1};
    reference->file = fai_load(path);
    if (!reference->file)
        diag_error("--stats: cannot read the index of '%s'%s", path, diag_library_words());
    if (reference->file && check_names(reference) == 0) return reference;
    stats_reference_close(reference);
    return NULL;
}

int64_t stats_reference_bases(const struct stats_reference *reference, int32_t tid)
{
    const char *name = sam_hdr_tid2name(reference->header, tid);
    const hts_pos_t n = sam_hdr_tid2len(reference->header, tid);
    if (!name) return 0;
    return n > INT32_MAX ? n : faidx_seq_len(reference->file, name);    /* which returns an int */
}

static const uint8_t code_of[256] = {
    ['A'] = 1, ['a'] = 1, ['C'] = 2, ['c'] = 2, ['G'] = 4, ['g'] = 4, ['T'] = 8, ['t'] = 8,
};

/* Reads a window. The reference has the bases from `begin` to `last`. */
static int read_window(struct stats_reference *reference, int32_t tid, int64_t begin, int64_t last)
{
    const char *name = sam_hdr_tid2name(reference->header, tid);
    hts_pos_t n = 0;
    char *text = faidx_fetch_seq64(reference->file, name, begin, last, &n);
    if (!text || n < 0 || (uint64_t)n > reference->room) {
        diag_error("--stats: cannot read '%s' in '%s'%s", name, reference->path,
                   diag_library_words());
        free(text);
        return -1;
    }
    for (hts_pos_t i = 0; i < n; i++) reference->bases[i] = code_of[(uint8_t)text[i]];
    free(text);
    return 0;
}

const uint8_t *stats_reference_read(struct stats_reference *reference, int32_t tid, int64_t begin,
                                    int64_t end)
{
    if (begin < 0) begin = 0;
    if (reference->tid == tid && reference->begin <= begin && end <= reference->end)
        return reference->bases + (begin - reference->begin);
    const int64_t n_bases = stats_reference_bases(reference, tid);
    const int64_t new_end = end - begin > WINDOW_BASES ? end : begin + WINDOW_BASES;
    const size_t n = (size_t)(new_end - begin);
    xgrow(&reference->bases, &reference->room, n, 0, 1);
    memset(reference->bases, 0, n);
    reference->tid = -1;
    const int64_t last = new_end < n_bases ? new_end - 1 : n_bases - 1;
    if (begin <= last && read_window(reference, tid, begin, last) < 0) return NULL;
    reference->tid = tid;
    reference->begin = begin;
    reference->end = new_end;
    return reference->bases;
}

void stats_reference_close(struct stats_reference *reference)
{
    if (!reference) return;
    if (reference->file) fai_destroy(reference->file);
    free(reference->bases);
    free(reference);
}
