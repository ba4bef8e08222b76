/*
 * fasta_reference.c -- see fasta_reference.h.
 *
 * A window reads ahead. In coordinate order it soon reads 256 KiB at a time; where records jump, it
 * reads little more than is asked for.
 */
#include "bam/fasta_reference.h"

#include "util/diag.h"
#include "util/xalloc.h"

#include <htslib/faidx.h>
#include <pthread.h>
#include <stdlib.h>

enum { LEAST_AHEAD = 4 << 10, MOST_AHEAD = 256 << 10 };

struct reader {
    struct fasta_window window;        /* must be the first member */
    const struct fasta_reference *reference;
    faidx_t *file;
    uint8_t *codes;
    size_t room;
    int64_t ahead;
    struct reader *next;        /* that is not in use */
};

struct fasta_reference {
    const struct fasta_use *use;
    const char *path;
    sam_hdr_t *header;
    pthread_mutex_t lock;
    struct reader *idle;
};

static struct reader *open_reader(const struct fasta_reference *reference)
{
    struct reader *reader = xcalloc(1, sizeof *reader);
    reader->reference = reference;
    reader->window.tid = -1;
    reader->file = fai_load(reference->path);
    if (reader->file) return reader;
    diag_error("%s: cannot read the index of '%s'%s", reference->use->option, reference->path,
               diag_library_words());
    free(reader);
    return NULL;
}

static void close_reader(struct reader *reader)
{
    fai_destroy(reader->file);
    free(reader->codes);
    free(reader);
}

struct fasta_reference *fasta_reference_open(const char *path, sam_hdr_t *header,
                                             const struct fasta_use *use)
{
    struct fasta_reference *reference = xcalloc(1, sizeof *reference);
    *reference = (struct fasta_reference){.use = use, .path = path, .header = header,
                                          .lock = PTHREAD_MUTEX_INITIALIZER};
    reference->idle = open_reader(reference);
    for (int32_t tid = 0; reference->idle && tid < sam_hdr_nref(header); tid++) {
        const char *name = sam_hdr_tid2name(header, tid);
        if (faidx_has_seq(reference->idle->file, name)) continue;
        diag_error("%s: '%s' lacks the reference '%s' of the header", use->option, path, name);
        fasta_reference_close(reference);
        return NULL;
    }
    if (reference->idle) return reference;
    fasta_reference_close(reference);
    return NULL;
}

void fasta_reference_close(struct fasta_reference *reference)
{
    if (!reference) return;
    for (struct reader *next; reference->idle; reference->idle = next) {
        next = reference->idle->next;
        close_reader(reference->idle);
    }
    (void)pthread_mutex_destroy(&reference->lock);
    free(reference);
}

struct fasta_window *fasta_window_take(struct fasta_reference *reference)
{
    (void)pthread_mutex_lock(&reference->lock);
    struct reader *reader = reference->idle;
    if (reader) reference->idle = reader->next;
    (void)pthread_mutex_unlock(&reference->lock);
    if (!reader) reader = open_reader(reference);
    return reader ? &reader->window : NULL;
}

void fasta_window_give_back(struct fasta_reference *reference, struct fasta_window *window)
{
    struct reader *reader = (struct reader *)window;
    (void)pthread_mutex_lock(&reference->lock);
    reader->next = reference->idle;
    reference->idle = reader;
    (void)pthread_mutex_unlock(&reference->lock);
}

/* Reads the bases from begin to end, which the reference has. */
static int read_bases(struct reader *reader, const char *name, int64_t begin, int64_t end)
{
    hts_pos_t n = 0;
    char *text = begin < end ? faidx_fetch_seq64(reader->file, name, begin, end - 1, &n) : NULL;
    if (begin < end && (!text || n != end - begin)) {
        diag_error("%s: cannot read '%s' in '%s'%s", reader->reference->use->option, name,
                   reader->reference->path, diag_library_words());
        free(text);
        return -1;
    }
    xgrow(&reader->codes, &reader->room, (size_t)n + 1, 0, 1);
    const unsigned char *codes = reader->reference->use->codes;
    for (hts_pos_t i = 0; i < n; i++) reader->codes[i] = codes[(unsigned char)text[i]];
    free(text);
    return 0;
}

int fasta_window_move(struct fasta_window *window, int32_t tid, int64_t begin, int64_t end)
{
    struct reader *reader = (struct reader *)window;
    const char *name = sam_hdr_tid2name(reader->reference->header, tid);
    if (begin < 0) begin = 0;
    if (end < begin) end = begin;
    bool is_same = window->tid == tid;
    const hts_pos_t n = sam_hdr_tid2len(reader->reference->header, tid);
    if (!is_same)               /* faidx_seq_len returns an int */
        window->n_bases = !name ? 0 : n > INT32_MAX ? n : faidx_seq_len(reader->file, name);
    if (end > window->n_bases) end = window->n_bases;
    if (begin > end) begin = end;
    if (is_same && window->begin <= begin && end <= window->end) return 0;
    bool is_near = is_same && begin >= window->begin && begin < window->end + reader->ahead;
    reader->ahead = !is_near                        ? LEAST_AHEAD
                    : reader->ahead < MOST_AHEAD ? 2 * reader->ahead
                                                 : MOST_AHEAD;
    end = end + reader->ahead < window->n_bases ? end + reader->ahead : window->n_bases;
    window->tid = -1;
    if (read_bases(reader, name, begin, end) < 0) return -1;
    window->tid = tid;
    window->begin = begin;
    window->end = end;
    window->codes = reader->codes;
    return 0;
}
