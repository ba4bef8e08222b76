/*
 * minhash_index.c -- see minhash_index.h.
 *
 * The k-mers lie in a hash table with linear probing: slots of 16 bytes, so that a search mostly
 * touches one cache line, at most three quarters of them taken.
 *
 * The windows are those of samtools 1.24, or the order would not be. A window begins k bases behind
 * the beginning of the one before it, or one base behind the beginning of the k-mer that was found
 * there if that is further, and the last one ends with the sequence. Each is searched by itself:
 * with squeeze a run that is cut by a window's beginning counts from there. Where a k-mer begins is
 * always taken to be k - 1 bases before the base that completes it, with squeeze too, where that
 * is not so; minhash.c does the same with the read, and only the difference matters.
 *
 * A window can be without any k-mer: with squeeze in a long run of one base, and if it has fewer
 * than k bases. samtools then files UINT64_MAX as if it were a k-mer, and finds it for each read
 * that has none either. no_kmer_place is for that.
 *
 * The file is parsed here, since htslib would hold a whole sequence twice, limits names and, as of
 * 1.16, takes some errors for the end of the file. Only the bases of windows to come are kept.
 */
#include "order/minhash_index.h"

#include "util/diag.h"
#include "util/grow.h"

#include <errno.h>
#include <htslib/bgzf.h>
#include <htslib/hts.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_SLOT_BITS = 12,
    TEXT_BYTES = 1 << 16,       /* of the file at a time: a BGZF block */
    BGZF_FORMAT = 2,            /* bgzf_compression says so */
    WAITING_MAX = 32,
};

struct waiting_kmer {
    uint64_t kmer, place;
};

struct loader {
    struct minhash_index *index;
    int k;
    int64_t window;
    bool squeeze;
    /* the sequence that is being read */
    uint64_t offset;            /* number of its first base in the reference */
    int64_t from;               /* where its next window begins */
    uint8_t *bases;             /* in a byte the base of BAM, times 4, and its code */
    int64_t first_base;         /* number of bases[0] in the sequence */
    size_t n_bases, bases_room;
    /* k-mers on their way into the table, in this order */
    struct waiting_kmer waiting[WAITING_MAX];
    size_t n_waiting;
    /* the text */
    bool any_sequence, in_name, line_begins;
    uint8_t base_of[256];       /* what a character becomes in bases */
    uint8_t text[TEXT_BYTES];
};

/* ---- the table ---- */

static struct minhash_index *create_index(int k)
{
    struct minhash_index *index = calloc(1, sizeof *index);
    if (!index) return NULL;
    index->slot_bits = FIRST_SLOT_BITS;
    index->filter_shift = 2 * k > MINHASH_FILTER_BITS ? 2 * k - MINHASH_FILTER_BITS : 0;
    index->slots = calloc((size_t)1 << index->slot_bits, sizeof *index->slots);
    if (!index->slots) {
        free(index);
        return NULL;
    }
    return index;
}

void minhash_index_destroy(struct minhash_index *index)
{
    if (!index) return;
    free(index->slots);
    free(index);
}

size_t minhash_index_bytes(const struct minhash_index *index)
{
    return sizeof *index + sizeof *index->slots * ((size_t)1 << index->slot_bits);
}

/* Doubles the table. Returns 0, or -1 without memory. */
static int grow(struct minhash_index *index)
{
    struct minhash_index larger = *index;
    larger.slot_bits++;
    larger.slots = calloc((size_t)1 << larger.slot_bits, sizeof *larger.slots);
    if (!larger.slots) return -1;
    for (size_t i = 0; i < (size_t)1 << index->slot_bits; i++) {
        const struct minhash_slot *slot = &index->slots[i];
        if (slot->kmer != 0) *minhash_index_slot(&larger, slot->kmer - 1) = *slot;
    }
    free(index->slots);
    *index = larger;
    return 0;
}

/* Adds a k-mer, or its next place. Returns 0, or -1 without memory. */
static int add_kmer(struct minhash_index *index, uint64_t kmer, uint64_t place)
{
    struct minhash_slot *slot = minhash_index_slot(index, kmer);
    if (slot->kmer != 0) {
        slot->place = place << 1 | 1;
        return 0;
    }
    *slot = (struct minhash_slot){.kmer = kmer + 1, .place = place << 1};
    uint64_t prefix = kmer >> index->filter_shift;
    index->filter[prefix / 64] |= UINT64_C(1) << prefix % 64;
    index->n_kmers++;
    size_t n_slots = (size_t)1 << index->slot_bits;
    return index->n_kmers > n_slots - n_slots / 4 ? grow(index) : 0;
}

/*
 * Nearly every k-mer goes to memory that is not in the caches. A few wait until it is on its way,
 * as in minhash.c.
 */
static int add_waiting(struct loader *ld)
{
    for (size_t i = 0; i < ld->n_waiting; i++)
        if (add_kmer(ld->index, ld->waiting[i].kmer, ld->waiting[i].place) < 0) return -1;
    ld->n_waiting = 0;
    return 0;
}

static int queue_kmer(struct loader *ld, uint64_t kmer, uint64_t place)
{
    minhash_index_prefetch(ld->index, kmer);
    ld->waiting[ld->n_waiting++] = (struct waiting_kmer){kmer, place};
    return ld->n_waiting == WAITING_MAX ? add_waiting(ld) : 0;
}

/* ---- windows ---- */

/*
 * Returns the smallest k-mer of n bases, the first if there are several, or MINHASH_NO_KMER. *last
 * is the base that completes it. Inlined for each value of squeeze.
 */
static inline __attribute__((always_inline)) uint64_t
smallest_kmer_as(bool squeeze, int k, const uint8_t *bases, int64_t n, int64_t *last)
{
    const uint64_t mask = minhash_mask(k), scramble = minhash_scramble(k);
    uint64_t kmer = 0, smallest = MINHASH_NO_KMER;
    uint32_t base_before = UINT32_MAX;
    int n_missing = k - 1;
    for (int64_t i = 0; i < n; i++) {
        uint32_t base = bases[i];
        if (squeeze && base == base_before) continue;
        base_before = base;
        kmer = kmer << 2 | (base & 3);
        if (n_missing > 0) {
            n_missing--;
            continue;
        }
        uint64_t value = (kmer ^ scramble) & mask;
        if (value < smallest) {
            smallest = value;
            *last = i;
        }
    }
    return smallest;
}

/* Adds the window from ld->from to before `to` and moves on. Returns 0, or -1 without memory. */
static int add_window(struct loader *ld, int64_t to)
{
    /* A window without k-mers may have a place below 0: as samtools does, places are cut to 60
       bits. */
    const uint64_t place_mask = (UINT64_C(1) << 60) - 1;
    const uint8_t *bases = ld->bases;
    int64_t n = to - ld->from, last = 0;
    if (n > 0) bases += ld->from - ld->first_base;
    uint64_t kmer = ld->squeeze ? smallest_kmer_as(true, ld->k, bases, n, &last)
                                : smallest_kmer_as(false, ld->k, bases, n, &last);
    int64_t first = ld->from + last - (ld->k - 1);
    uint64_t place = (ld->offset + (uint64_t)first) & place_mask;
    ld->from = first + 1 > ld->from + ld->k ? first + 1 : ld->from + ld->k;
    if (kmer != MINHASH_NO_KMER) return queue_kmer(ld, kmer, place);
    ld->index->no_kmer_place = place;
    return 0;
}

/* Adds the windows that end before the last base so far, and drops bases that are done with. */
static int add_windows(struct loader *ld)
{
    int64_t end = ld->first_base + (int64_t)ld->n_bases;
    while (ld->from + ld->window < end)
        if (add_window(ld, ld->from + ld->window) < 0) return -1;
    size_t n_done = (size_t)((ld->from < end ? ld->from : end) - ld->first_base);
    /* Moving each base once or twice is enough. */
    if (n_done == 0 || n_done < ld->n_bases / 2) return 0;
    memmove(ld->bases, ld->bases + n_done, ld->n_bases - n_done);
    ld->n_bases -= n_done;
    ld->first_base += (int64_t)n_done;
    return 0;
}

/* Adds the last window of the sequence and makes ready for the next. */
static int end_sequence(struct loader *ld)
{
    if (!ld->any_sequence) return 0;
    if (add_windows(ld) < 0) return -1;
    int64_t length = ld->first_base + (int64_t)ld->n_bases;
    if (length >= ld->window) {
        if (add_window(ld, length) < 0) return -1;
        ld->offset += (uint64_t)length;
    }
    ld->from = ld->first_base = 0;
    ld->n_bases = 0;
    return 0;
}

/* ---- text ---- */

static int reserve_bases(struct loader *ld, size_t n_more)
{
    size_t n = ld->n_bases + n_more;
    return grow_array(&ld->bases, &ld->bases_room, n, n / 2, 1);
}

/* Takes a line or a piece of one, without its end. */
static int add_line(struct loader *ld, const uint8_t *text, size_t n)
{
    if (n == 0) return 0;
    if (ld->line_begins && text[0] == '>') {
        if (end_sequence(ld) < 0) return -1;
        ld->any_sequence = ld->in_name = true;
    }
    ld->line_begins = false;
    if (ld->in_name) return 0;
    if (reserve_bases(ld, n) < 0) return -1;
    uint8_t *to = ld->bases + ld->n_bases;
    for (size_t i = 0; i < n; i++)
        if (text[i] != '\r') *to++ = ld->base_of[text[i]];
    ld->n_bases = (size_t)(to - ld->bases);
    return 0;
}

static int add_text(struct loader *ld, size_t n)
{
    const uint8_t *at = ld->text, *end = at + n;
    while (at < end) {
        const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));
        const uint8_t *line_end = newline ? newline : end;
        if (add_line(ld, at, (size_t)(line_end - at)) < 0) return -1;
        if (!newline) break;
        ld->line_begins = true;
        ld->in_name = false;
        at = newline + 1;
    }
    return add_windows(ld);
}

static int no_memory(const char *fasta)
{
    diag_error("no memory for the k-mers of '%s'; give less with -m, or a larger -w", fasta);
    return -1;
}

/* Reads the whole file. Returns 0, or -1 after a message. */
static int read_fasta(struct loader *ld, BGZF *file, const char *fasta)
{
    ssize_t n;
    while ((n = bgzf_read(file, ld->text, sizeof ld->text)) > 0) {
        if (!ld->any_sequence && ld->text[0] != '>') break;
        if (add_text(ld, (size_t)n) < 0) return no_memory(fasta);
    }
    if (n < 0) {
        diag_error("cannot read '%s': it is truncated or damaged", fasta);
        return -1;
    }
    if (!ld->any_sequence) {
        diag_error("'%s' is not a FASTA file: it does not begin with '>'", fasta);
        return -1;
    }
    if (end_sequence(ld) < 0 || add_waiting(ld) < 0) return no_memory(fasta);
    if (bgzf_compression(file) == BGZF_FORMAT && bgzf_check_EOF(file) == 0)
        diag_warning("'%s' ends without an EOF marker; it is probably truncated", fasta);
    return 0;
}

static struct loader *create_loader(int k, int window, bool squeeze)
{
    struct loader *ld = calloc(1, sizeof *ld);
    if (!ld) return NULL;
    ld->index = create_index(k);
    if (!ld->index) {
        free(ld);
        return NULL;
    }
    ld->k = k;
    ld->window = window;
    ld->squeeze = squeeze;
    ld->line_begins = true;
    for (int c = 0; c < 256; c++) {
        uint32_t base = seq_nt16_table[c];
        ld->base_of[c] = (uint8_t)(base << 2 | minhash_code(base));
    }
    /* Only newer versions of htslib know U. */
    ld->base_of['U'] = ld->base_of['u'] = ld->base_of['T'];
    return ld;
}

static void destroy_loader(struct loader *ld)
{
    if (!ld) return;
    minhash_index_destroy(ld->index);
    free(ld->bases);
    free(ld);
}

struct minhash_index *minhash_index_load(const char *fasta, int k, int window, bool squeeze)
{
    struct minhash_index *index = NULL;
    struct loader *ld = NULL;
    BGZF *file = bgzf_open(fasta, "r");
    if (!file) {
        diag_error("cannot open '%s': %s", fasta, strerror(errno));
        return NULL;
    }
    ld = create_loader(k, window, squeeze);
    if (!ld) {
        no_memory(fasta);
    } else if (read_fasta(ld, file, fasta) == 0) {
        index = ld->index;
        ld->index = NULL;
    }
    destroy_loader(ld);
    if (bgzf_close(file) < 0 && index) {
        diag_error("cannot read '%s': %s", fasta, strerror(errno));
        minhash_index_destroy(index);
        index = NULL;
    }
    return index;
}
