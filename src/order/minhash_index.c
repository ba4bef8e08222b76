/*
 * minhash_index.c -- see minhash_index.h.
 *
 * The k-mers are in a hash table with linear probing. A slot has 16 bytes and at most three
 * quarters of the slots are taken, so a search usually touches one cache line.
 *
 * The windows are those of samtools 1.24, because the order depends on them. A window begins k
 * bases after the beginning of the previous one, or one base after the beginning of the k-mer found
 * in that window, whichever is further. The last one ends with the sequence. Each window is
 * searched by itself: with squeeze, a run of one base that began before the window counts from the
 * beginning of the window. The place of a k-mer is always k - 1 bases before its last base. With
 * squeeze the k-mer begins elsewhere, but minhash.c does the same with the read, and only the
 * difference matters.
 *
 * A window of fewer than k bases, or with squeeze in a long run of one base, has no k-mer. samtools
 * then enters UINT64_MAX as if it were a k-mer, and each read without a k-mer finds that entry;
 * no_kmer_place is its place.
 *
 * Parses FASTA itself: htslib would hold a whole sequence twice, limits the length of names and, in
 * 1.16, treats some errors as the end of the file.
 */
#include "order/minhash_index.h"

#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <htslib/bgzf.h>
#include <htslib/hts.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_SLOT_BITS = 12,
    TEXT_BYTES = 1 << 16,       /* bytes of the file that are read at a time: a BGZF block */
    BGZF_FORMAT = 2,            /* bgzf_compression returns this for BGZF */
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
    uint8_t *bases;             /* each byte: 4 times the BAM base, plus its code */
    int64_t first_base;         /* number of bases[0] in the sequence */
    size_t n_bases, bases_room;
    /* k-mers to be put into the table, in this order */
    struct waiting_kmer waiting[WAITING_MAX];
    size_t n_waiting;
    /* the text */
    bool any_sequence, in_name, line_begins;
    uint8_t base_of[256];       /* the byte in `bases` for each character */
    uint8_t text[TEXT_BYTES];
};

/* ---- the table ---- */

static struct minhash_index *create_index(int k)
{
    struct minhash_index *index = xcalloc(1, sizeof *index);
    index->slot_bits = FIRST_SLOT_BITS;
    index->filter_shift = 2 * k > MINHASH_FILTER_BITS ? 2 * k - MINHASH_FILTER_BITS : 0;
    index->slots = xcalloc((size_t)1 << index->slot_bits, sizeof *index->slots);
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

/* Doubles the table. */
static void grow(struct minhash_index *index)
{
    struct minhash_index larger = *index;
    larger.slot_bits++;
    larger.slots = xcalloc((size_t)1 << larger.slot_bits, sizeof *larger.slots);
    for (size_t i = 0; i < (size_t)1 << index->slot_bits; i++) {
        const struct minhash_slot *slot = &index->slots[i];
        if (slot->kmer != 0) *minhash_index_slot(&larger, slot->kmer - 1) = *slot;
    }
    free(index->slots);
    *index = larger;
}

/* Adds a k-mer. If the table has it already, marks it as repeated and updates its place. */
static void add_kmer(struct minhash_index *index, uint64_t kmer, uint64_t place)
{
    struct minhash_slot *slot = minhash_index_slot(index, kmer);
    if (slot->kmer != 0) {
        slot->place = place << 1 | 1;
        return;
    }
    *slot = (struct minhash_slot){.kmer = kmer + 1, .place = place << 1};
    uint64_t prefix = kmer >> index->filter_shift;
    index->filter[prefix / 64] |= UINT64_C(1) << prefix % 64;
    index->n_kmers++;
    size_t n_slots = (size_t)1 << index->slot_bits;
    if (index->n_kmers > n_slots - n_slots / 4) grow(index);
}

/* Adds the queued k-mers. Nearly every slot misses the caches; as in minhash.c, several k-mers are
   queued while their memory is prefetched. */
static void add_waiting(struct loader *ld)
{
    for (size_t i = 0; i < ld->n_waiting; i++)
        add_kmer(ld->index, ld->waiting[i].kmer, ld->waiting[i].place);
    ld->n_waiting = 0;
}

/* ---- windows ---- */

/*
 * Returns the smallest k-mer of n bases, or MINHASH_NO_KMER. Sets *last to the last base of its
 * first occurrence. Inlined for each value of squeeze.
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

/* Adds the window [ld->from, to) and advances ld->from. */
static void add_window(struct loader *ld, int64_t to)
{
    /* A window without k-mers may have a negative place. As in samtools, places have 60 bits. */
    const uint64_t place_mask = (UINT64_C(1) << 60) - 1;
    const uint8_t *bases = ld->bases;
    int64_t n = to - ld->from, last = 0;
    if (n > 0) bases += ld->from - ld->first_base;
    uint64_t kmer = ld->squeeze ? smallest_kmer_as(true, ld->k, bases, n, &last)
                                : smallest_kmer_as(false, ld->k, bases, n, &last);
    int64_t first = ld->from + last - (ld->k - 1);
    uint64_t place = (ld->offset + (uint64_t)first) & place_mask;
    ld->from = first + 1 > ld->from + ld->k ? first + 1 : ld->from + ld->k;
    if (kmer == MINHASH_NO_KMER) {
        ld->index->no_kmer_place = place;
        return;
    }
    minhash_index_prefetch(ld->index, kmer);
    ld->waiting[ld->n_waiting++] = (struct waiting_kmer){kmer, place};
    if (ld->n_waiting == WAITING_MAX) add_waiting(ld);
}

/* Adds the windows that end before the last base so far, and drops the bases before the next. */
static void add_windows(struct loader *ld)
{
    int64_t end = ld->first_base + (int64_t)ld->n_bases;
    while (ld->from + ld->window < end) add_window(ld, ld->from + ld->window);
    size_t n_done = (size_t)((ld->from < end ? ld->from : end) - ld->first_base);
    /* Waits until half of the bases can be dropped, so that each base is moved once or twice. */
    if (n_done == 0 || n_done < ld->n_bases / 2) return;
    memmove(ld->bases, ld->bases + n_done, ld->n_bases - n_done);
    ld->n_bases -= n_done;
    ld->first_base += (int64_t)n_done;
}

/* Adds the last window of the sequence, and starts the next sequence. */
static void end_sequence(struct loader *ld)
{
    if (!ld->any_sequence) return;
    add_windows(ld);
    int64_t length = ld->first_base + (int64_t)ld->n_bases;
    if (length >= ld->window) {
        add_window(ld, length);
        ld->offset += (uint64_t)length;
    }
    ld->from = ld->first_base = 0;
    ld->n_bases = 0;
}

/* ---- text ---- */

/* Adds a line or a part of one, without its newline. */
static void add_line(struct loader *ld, const uint8_t *text, size_t n)
{
    if (n == 0) return;
    if (ld->line_begins && text[0] == '>') {
        end_sequence(ld);
        ld->any_sequence = ld->in_name = true;
    }
    ld->line_begins = false;
    if (ld->in_name) return;
    size_t n_after = ld->n_bases + n;
    xgrow(&ld->bases, &ld->bases_room, n_after, n_after / 2, 1);
    uint8_t *to = ld->bases + ld->n_bases;
    for (size_t i = 0; i < n; i++)
        if (text[i] != '\r') *to++ = ld->base_of[text[i]];
    ld->n_bases = (size_t)(to - ld->bases);
}

static void add_text(struct loader *ld, size_t n)
{
    const uint8_t *at = ld->text, *end = at + n;
    while (at < end) {
        const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));
        const uint8_t *line_end = newline ? newline : end;
        add_line(ld, at, (size_t)(line_end - at));
        if (!newline) break;
        ld->line_begins = true;
        ld->in_name = false;
        at = newline + 1;
    }
    add_windows(ld);
}

/* Reads the whole file. Returns 0, or -1 after a message. */
static int read_fasta(struct loader *ld, BGZF *file, const char *fasta)
{
    ssize_t n;
    while ((n = bgzf_read(file, ld->text, sizeof ld->text)) > 0) {
        if (!ld->any_sequence && ld->text[0] != '>') break;
        add_text(ld, (size_t)n);
    }
    if (n < 0) {
        diag_error("cannot read '%s': it is truncated or damaged", fasta);
        return -1;
    }
    if (!ld->any_sequence) {
        diag_error("'%s' is not a FASTA file: it does not begin with '>'", fasta);
        return -1;
    }
    end_sequence(ld);
    add_waiting(ld);
    if (bgzf_compression(file) == BGZF_FORMAT && bgzf_check_EOF(file) == 0)
        diag_warning("'%s' ends without an EOF marker; it is probably truncated", fasta);
    return 0;
}

static struct loader *create_loader(int k, int window, bool squeeze)
{
    struct loader *ld = xcalloc(1, sizeof *ld);
    ld->index = create_index(k);
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

struct minhash_index *minhash_index_load(const char *fasta, int k, int window, bool squeeze)
{
    struct minhash_index *index = NULL;
    BGZF *file = bgzf_open(fasta, "r");
    if (!file) {
        diag_error("cannot open '%s': %s", fasta, strerror(errno));
        return NULL;
    }
    struct loader *ld = create_loader(k, window, squeeze);
    if (read_fasta(ld, file, fasta) == 0) {
        index = ld->index;
        ld->index = NULL;
    }
    minhash_index_destroy(ld->index);
    free(ld->bases);
    free(ld);
    if (bgzf_close(file) < 0 && index) {
        diag_error("cannot read '%s': %s", fasta, strerror(errno));
        minhash_index_destroy(index);
        index = NULL;
    }
    return index;
}
