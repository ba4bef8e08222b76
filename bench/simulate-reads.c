/* simulate-reads: writes realistic unsorted alignments, as an aligner would print them.
 *
 * The output depends on the options alone: the same mode, size, genome and seed give the same
 * records with any output format, level and number of threads, on any machine. (All random numbers
 * are integers. The last digit of libm's results differs between systems.)
 *
 * Algorithm. The genome is never stored: base i is two bits of a hash of i/32, so reads that
 * overlap share their sequence. For each template the program draws CIGARs first, then positions.
 * Then it walks the CIGARs over the genome, which gives bases, NM and MD at once. Bases take one
 * byte each until the end, when they are packed. Records are packed into one reused bam1_t by hand:
 * bam_set1 and bam_aux_append would check and move every field again.
 *
 * Calibration. 6 M records of the short mode are about 2.08 GB of uncompressed BAM, and 650 MB at
 * the default level: 345 bytes a record, 108 compressed, the sizes of the benchmarks. The runs and
 * dips in fill_quality_binned() were tuned for these sizes.
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <htslib/hts.h>
#include <htslib/kstring.h>
#include <htslib/sam.h>

#define N_CHROMS 25
#define SHORT_LEN 150
#define LONG_MIN_LEN 10000
#define LONG_MAX_LEN 500000
/* genome_fetch() and random_bases() write whole groups of 32 bases. */
#define BASE_PAD 32
/* Every 100th long read, beginning with the 11th, has 300-500 kb and an indel every few bases. Even
 * the shortest of them has more than 65,535 CIGAR operations, and 20 reads contain one. */
#define ULTRA_EVERY 100
#define ULTRA_FIRST 10
/* Shares of the templates, in 1/65536. Mapped/unmapped pairs count half, as one of their two reads
 * is unmapped: 1.5 % + 3 % / 2 = 3 % of the reads. */
#define SHARE(percent) ((uint32_t)((percent) * 65536 / 100))

enum mode { MODE_SHORT, MODE_LONG, MODE_PILEUP, MODE_UNMAPPED };

/* ---- random numbers ---- */

struct rng {
    uint64_t s[4];
};

static uint64_t mix64(uint64_t x) /* the finalizer of splitmix64 */
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void rng_seed(struct rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += UINT64_C(0x9e3779b97f4a7c15);
        r->s[i] = mix64(seed);
    }
}

static inline uint64_t rotl64(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static inline uint64_t rng_next(struct rng *r) /* xoshiro256** */
{
    uint64_t *s = r->s;
    uint64_t result = rotl64(s[1] * 5, 7) * 9, t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl64(s[3], 45);
    return result;
}

/* 0 .. n-1; the bias of the multiplication is below n / 2^32. */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
    return (uint32_t)(((rng_next(r) >> 32) * n) >> 32);
}

static uint64_t rng_below64(struct rng *r, uint64_t n)
{
    /* 33 bits of genome times 31 random bits fit 64; larger genomes take whole 2^20 steps. */
    if (n < (UINT64_C(1) << 32))
        return rng_below(r, (uint32_t)n);
    return (uint64_t)rng_below(r, (uint32_t)(n >> 20)) << 20 | (rng_next(r) & 0xfffff);
}

/* Geometric distribution as a table of 1024 equally likely values: one load for a draw. */
struct geom {
    uint16_t value[1024];
};

static void geom_init(struct geom *g, uint32_t mean)
{
    const uint64_t one = UINT64_C(1) << 32;
    const uint64_t q = one - one / mean; /* P(one more) */
    uint64_t alive = q;                  /* P(value > k) */
    uint16_t k = 1;

    for (uint32_t i = 0; i < 1024; i++) {
        uint64_t above = (one / 2048) * (2047 - 2 * (uint64_t)i);
        while (alive > above && k < UINT16_MAX) {
            alive = (alive * q) >> 32;
            k++;
        }
        g->value[i] = k;
    }
}

static inline uint32_t geom_draw(const struct geom *g, struct rng *r)
{
    return g->value[rng_next(r) >> 54];
}

/* About normal with the given mean: four uniform numbers, range mean +- 3.46 deviations. */
static int64_t normal_draw(struct rng *r, int64_t mean, int64_t deviation)
{
    uint64_t x = rng_next(r);
    int64_t sum = (int64_t)((x & 0xffff) + ((x >> 16) & 0xffff) + ((x >> 32) & 0xffff) + (x >> 48));

    return mean + (sum - 131072) * deviation / 37837; /* 65536 / sqrt(3) */
}

/* ---- the genome ---- */

struct genome {
    uint64_t start[N_CHROMS + 1]; /* start[i] .. start[i+1]: where chromosome i lies */
    uint32_t nibbles[256];        /* 8 hash bits -> four bases, as BAM's codes, a byte each */
};

/* Of GRCh38, so that bins, names and the share of each chromosome are those of a human genome. */
static const struct {
    const char *name;
    uint32_t length;
} chroms[N_CHROMS] = {
    {"chr1", 248956422},  {"chr2", 242193529},  {"chr3", 198295559},  {"chr4", 190214555},
    {"chr5", 181538259},  {"chr6", 170805979},  {"chr7", 159345973},  {"chr8", 145138636},
    {"chr9", 138394717},  {"chr10", 133797422}, {"chr11", 135086622}, {"chr12", 133275309},
    {"chr13", 114364328}, {"chr14", 107043718}, {"chr15", 101991189}, {"chr16", 90338345},
    {"chr17", 83257441},  {"chr18", 80373285},  {"chr19", 58617616},  {"chr20", 64444167},
    {"chr21", 46709983},  {"chr22", 50818468},  {"chrX", 156040895},  {"chrY", 57227415},
    {"chrM", 16569},
};

static uint64_t human_length(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < N_CHROMS; i++)
        sum += chroms[i].length;
    return sum;
}

static void genome_init(struct genome *g, uint64_t length)
{
    const uint64_t human = human_length();

    g->start[0] = 0;
    for (int i = 0; i < N_CHROMS; i++) {
        /* The product is below 2^64: lengths are at most 50 G, chromosomes of the table below 2^28.
         */
        uint64_t n = chroms[i].length * length / human;
        g->start[i + 1] = g->start[i] + (n > 0 ? n : 1);
    }
    for (uint32_t b = 0; b < 256; b++) {
        uint8_t four[4];
        for (uint32_t j = 0; j < 4; j++)
            four[j] = (uint8_t)(1u << ((b >> (2 * j)) & 3));
        memcpy(&g->nibbles[b], four, 4);
    }
}

static int64_t chrom_length(const struct genome *g, int tid)
{
    return (int64_t)(g->start[tid + 1] - g->start[tid]);
}

static inline void expand32(const struct genome *g, uint64_t x, uint8_t *out)
{
    for (int i = 0; i < 8; i++, x >>= 8)
        memcpy(out + 4 * i, &g->nibbles[x & 0xff], 4);
}

static inline uint64_t genome_word(uint64_t w)
{
    return mix64((w + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

/* Writes bases at .. at+n of the genome to out, which has room for BASE_PAD more. */
static void genome_fetch(const struct genome *g, uint64_t at, int64_t n, uint8_t *out)
{
    uint64_t w = at / 32, shift = at % 32 * 2, lo = genome_word(w);

    for (int64_t i = 0; i < n; i += 32) {
        uint64_t hi = genome_word(++w);
        expand32(g, shift ? lo >> shift | hi << (64 - shift) : lo, out + i);
        lo = hi;
    }
}

static void random_bases(const struct genome *g, struct rng *r, int64_t n, uint8_t *out)
{
    for (int64_t i = 0; i < n; i += 32)
        expand32(g, rng_next(r), out + i);
}

/* ---- one alignment ---- */

struct aln {
    int tid; /* -1: no position */
    int64_t pos;
    bool mapped, reverse;
    uint8_t mapq;
    bool no_seq; /* SEQ and QUAL are `*` (secondary alignments) */

    uint32_t *cigar;
    size_t n_cigar, m_cigar;
    int64_t ref_len; /* reference bases that the CIGAR covers */
    int64_t l_seq;   /* read bases that the CIGAR covers, hard clips not counted */

    uint8_t *base; /* BAM codes, one a byte */
    uint8_t *qual;
    size_t m_seq; /* room of both */
    uint32_t nm;
    uint32_t n_match;
    kstring_t md;
};

struct sim {
    /* fixed after init */
    enum mode mode;
    struct genome genome;
    struct geom clean_run, fair_run, poor_run; /* lengths of high-quality runs */
    struct geom mismatch_gap, long_mismatch_gap;
    struct geom match_run, ultra_match_run, indel_len;
    int pile_tid;
    int64_t pile_pos;
    uint32_t duplicates; /* share of the proper pairs, in 1/65536 */
    samFile *out;
    sam_hdr_t *header;

    /* changes from record to record */
    struct rng rng;
    uint64_t n_records, n_bases, n_piled, raw_bytes;
    uint64_t n_templates;
    struct fragment *fragments; /* the last N_FRAGMENTS that are no duplicates; NULL: not needed */
    uint64_t n_fragments;       /* that there were so far */
    uint32_t lane, tile, x, y, flow_cell;
    struct aln read[2], extra; /* reused for every template */
    bam1_t *record;
    kstring_t name, aux, text;
};

/* Where a proper pair lies: all that a duplicate has in common with the pair that it copies. */
#define SHORT_MAX_OPS 3
#define N_FRAGMENTS 65536
struct fragment {
    struct placed {
        int64_t pos;
        int tid;
        bool reverse;
        uint32_t n_cigar, cigar[SHORT_MAX_OPS];
    } read[2];
};

/* What a record has besides its alignment. */
struct context {
    uint16_t flag;           /* without the bits that follow from the alignments */
    const struct aln *mate;  /* NULL: not paired */
    const struct aln *chimeric; /* the other part of a split read, for SA; else NULL */
    bool chimeric_supplementary;
};

static int out_of_memory(void)
{
    fprintf(stderr, "simulate-reads: out of memory\n");
    return -1;
}

static int aln_reserve_seq(struct aln *a, int64_t n)
{
    size_t need = (size_t)n + BASE_PAD;

    if (need <= a->m_seq)
        return 0;
    uint8_t *base = realloc(a->base, need);
    if (!base)
        return out_of_memory();
    a->base = base;
    uint8_t *qual = realloc(a->qual, need);
    if (!qual)
        return out_of_memory();
    a->qual = qual;
    a->m_seq = need;
    return 0;
}

static int aln_push_op(struct aln *a, uint32_t op, uint32_t len)
{
    if (a->n_cigar == a->m_cigar) {
        size_t m = a->m_cigar ? a->m_cigar * 2 : 16;
        uint32_t *p = realloc(a->cigar, m * sizeof *p);
        if (!p)
            return out_of_memory();
        a->cigar = p;
        a->m_cigar = m;
    }
    a->cigar[a->n_cigar++] = len << BAM_CIGAR_SHIFT | op;
    if (bam_cigar_type(op) & 1)
        a->l_seq += len;
    if (bam_cigar_type(op) & 2)
        a->ref_len += len;
    return 0;
}

static void aln_reset(struct aln *a)
{
    a->tid = -1;
    a->pos = -1;
    a->mapped = a->reverse = a->no_seq = false;
    a->mapq = 0;
    a->n_cigar = 0;
    a->ref_len = a->l_seq = 0;
    a->nm = a->n_match = 0;
    a->md.l = 0;
}

static void aln_release(struct aln *a)
{
    free(a->cigar);
    free(a->base);
    free(a->qual);
    free(a->md.s);
}

/* 90 % whole matches, 5 % soft-clipped at one end, 5 % with one small indel. */
static int draw_short_cigar(struct rng *r, struct aln *a)
{
    uint32_t kind = rng_below(r, 100), n = SHORT_LEN;

    if (kind < 5) {
        uint32_t clip = 5 + rng_below(r, 70);
        if (kind & 1)
            return aln_push_op(a, BAM_CSOFT_CLIP, clip) | aln_push_op(a, BAM_CMATCH, n - clip);
        return aln_push_op(a, BAM_CMATCH, n - clip) | aln_push_op(a, BAM_CSOFT_CLIP, clip);
    }
    if (kind < 10) {
        uint32_t before = 20 + rng_below(r, 100), len = 1 + (rng_below(r, 4) ? 0 : rng_below(r, 8));
        uint32_t op = kind & 1 ? BAM_CINS : BAM_CDEL;
        uint32_t after = n - before - (op == BAM_CINS ? len : 0);
        return aln_push_op(a, BAM_CMATCH, before) | aln_push_op(a, op, len) |
               aln_push_op(a, BAM_CMATCH, after);
    }
    return aln_push_op(a, BAM_CMATCH, n);
}

/* Matches and indels in turn until the read has n bases. */
static int draw_long_cigar(struct sim *s, struct aln *a, uint32_t n, bool ultra)
{
    const struct geom *run = ultra ? &s->ultra_match_run : &s->match_run;
    uint32_t clip = 5 + rng_below(&s->rng, 60), tail = 5 + rng_below(&s->rng, 40);
    uint32_t left = n - clip - tail;

    if (aln_push_op(a, BAM_CSOFT_CLIP, clip) != 0)
        return -1;
    for (;;) {
        uint32_t len = geom_draw(run, &s->rng);
        if (len >= left)
            break;
        if (aln_push_op(a, BAM_CMATCH, len) != 0)
            return -1;
        left -= len;
        len = geom_draw(&s->indel_len, &s->rng);
        bool insertion = rng_next(&s->rng) >> 63;
        if (insertion && len >= left)
            break;
        if (aln_push_op(a, insertion ? BAM_CINS : BAM_CDEL, len) != 0)
            return -1;
        if (insertion)
            left -= len;
    }
    return aln_push_op(a, BAM_CMATCH, left) | aln_push_op(a, BAM_CSOFT_CLIP, tail);
}

/* Gives the alignment a random position from which span bases stay in the chromosome. Ends after a
 * few tries: check_genome() has checked that the largest chromosomes have room. */
static void draw_position(struct sim *s, struct aln *a, int64_t span)
{
    const struct genome *g = &s->genome;

    for (;;) {
        uint64_t at = rng_below64(&s->rng, g->start[N_CHROMS]);
        int tid = 0;
        while (at >= g->start[tid + 1])
            tid++;
        int64_t pos = (int64_t)(at - g->start[tid]);
        if (pos + span <= chrom_length(g, tid)) {
            a->tid = tid;
            a->pos = pos;
            return;
        }
    }
}

static uint8_t draw_mapq(struct rng *r)
{
    uint32_t x = rng_below(r, 128);
    return (uint8_t)(x < 110 ? 60 : x < 116 ? 0 : rng_below(r, 60));
}

static const char base_letter[] = "=ACMGRSVTWYHKDBN";

/* Puts mismatches into n matched bases. *gap is the number of bases to the next one. The new base
 * is made from the old one, so that it always differs; one of 64 is an N, of quality 2. */
static int put_mismatches(struct sim *s, struct aln *a, int64_t at, int64_t n, int64_t *md_run)
{
    const struct geom *table = s->mode == MODE_LONG ? &s->long_mismatch_gap : &s->mismatch_gap;
    int64_t i = (int64_t)geom_draw(table, &s->rng) - 1, last = 0;

    for (; i < n; i += geom_draw(table, &s->rng)) {
        uint8_t *b = a->base + at + i;
        uint64_t x = rng_next(&s->rng);
        uint8_t old = *b;
        unsigned turned = (unsigned)old << (1 + x % 3);

        *b = (uint8_t)((turned | turned >> 4) & 15);
        if ((x >> 58) == 0) {
            *b = 15;
            a->qual[at + i] = 2;
        } else if (s->mode != MODE_LONG && (x >> 57 & 1)) {
            a->qual[at + i] = 12;
        }
        a->nm++;
        if (s->mode != MODE_LONG) {
            if (kputl((long)(*md_run + i - last), &a->md) < 0 ||
                kputc(base_letter[old], &a->md) < 0)
                return out_of_memory();
            *md_run = 0;
            last = i + 1;
        }
    }
    *md_run += n - last;
    return 0;
}

static int put_deletion(struct sim *s, struct aln *a, uint64_t ref, uint32_t n, int64_t *md_run)
{
    uint8_t gone[32 + BASE_PAD];

    a->nm += n;
    if (s->mode == MODE_LONG) /* no MD there: it would be as long as the read */
        return 0;
    if (kputl((long)*md_run, &a->md) < 0 || kputc('^', &a->md) < 0)
        return out_of_memory();
    genome_fetch(&s->genome, ref, n, gone); /* short indels are of at most 8 bases */
    for (uint32_t i = 0; i < n; i++)
        if (kputc(base_letter[gone[i]], &a->md) < 0)
            return out_of_memory();
    *md_run = 0;
    return 0;
}

/* Fills in bases, NM and MD from position and CIGAR. Needs the qualities. */
static int align_to_genome(struct sim *s, struct aln *a)
{
    uint64_t ref = s->genome.start[a->tid] + (uint64_t)a->pos;
    int64_t at = 0, md_run = 0;

    for (size_t k = 0; k < a->n_cigar; k++) {
        uint32_t op = bam_cigar_op(a->cigar[k]), n = bam_cigar_oplen(a->cigar[k]);
        switch (op) {
        case BAM_CMATCH:
            genome_fetch(&s->genome, ref, n, a->base + at);
            if (put_mismatches(s, a, at, n, &md_run) != 0)
                return -1;
            a->n_match += n;
            break;
        case BAM_CDEL:
            if (put_deletion(s, a, ref, n, &md_run) != 0)
                return -1;
            break;
        case BAM_CINS:
            a->nm += n; /* fall through */
        case BAM_CSOFT_CLIP:
            random_bases(&s->genome, &s->rng, n, a->base + at);
            break;
        default:
            break;
        }
        if (bam_cigar_type(op) & 1)
            at += n;
        if (bam_cigar_type(op) & 2)
            ref += n;
    }
    if (s->mode != MODE_LONG && kputl((long)md_run, &a->md) < 0)
        return out_of_memory();
    return 0;
}

/* Four bins, as a NovaSeq has: long runs of 37 that get shorter along the read, between them dips
 * of one or two bases of 23 or 12. Bad reads have dips everywhere. The share of bad reads and the
 * length of runs set the compressed size: see the top of this file. */
static void fill_quality_binned(struct sim *s, struct aln *a, bool bad)
{
    uint64_t kind = rng_next(&s->rng);
    const struct geom *early, *late;
    int64_t n = a->l_seq, i = 0;

    if (bad || (kind & 0xff) < 40)
        early = &s->poor_run, late = &s->poor_run;
    else if ((kind & 0xff) < 220)
        early = &s->fair_run, late = &s->fair_run;
    else
        early = &s->clean_run, late = &s->fair_run;

    memset(a->qual, 37, (size_t)n);
    for (;;) {
        i += geom_draw(3 * i < 2 * n ? early : late, &s->rng);
        if (i >= n)
            return;
        uint64_t x = rng_next(&s->rng);
        uint8_t q = (x & 0xff) < 140 ? 23 : 12;
        a->qual[a->reverse ? n - 1 - i : i] = q;
        i++;
        if ((x >> 8 & 7) < 2 && i < n)
            a->qual[a->reverse ? n - 1 - i : i] = q;
    }
}

/* A level that wanders, with noise on every base, as nanopore base callers give. */
static void fill_quality_wandering(struct sim *s, struct aln *a)
{
    int level = 12 + (int)rng_below(&s->rng, 14);
    int64_t n = a->l_seq;

    for (int64_t i = 0; i < n;) {
        uint64_t x = rng_next(&s->rng);
        level += (int)(x & 7) - 3 - (level > 18);
        level = level < 6 ? 6 : level > 36 ? 36 : level;
        for (x >>= 4; i < n && x > 0xff; i++, x >>= 5)
            a->qual[i] = (uint8_t)(level + (int)(x & 7) - (int)(x >> 3 & 3));
    }
}

/* ---- records ---- */

static int put_tag(kstring_t *k, const char *tag_and_type, const void *data, size_t n)
{
    if (kputsn(tag_and_type, 3, k) < 0 || kputsn(data, n, k) < 0)
        return out_of_memory();
    return 0;
}

/* The smallest unsigned type that holds the value, as htslib reads it from SAM. */
static int put_int_tag(kstring_t *k, const char *tag, uint32_t value)
{
    char head[4] = {tag[0], tag[1], value < 0x100 ? 'C' : value < 0x10000 ? 'S' : 'I', 0};
    uint8_t le[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                     (uint8_t)(value >> 24)};
    return put_tag(k, head, le, value < 0x100 ? 1 : value < 0x10000 ? 2 : 4);
}

static int put_string_tag(kstring_t *k, const char *tag_and_type, const kstring_t *value)
{
    return put_tag(k, tag_and_type, value->s, value->l + 1);
}

static int put_cigar_text(kstring_t *k, const struct aln *a)
{
    for (size_t i = 0; i < a->n_cigar; i++)
        if (kputuw(bam_cigar_oplen(a->cigar[i]), k) < 0 ||
            kputc(bam_cigar_opchr(a->cigar[i]), k) < 0)
            return out_of_memory();
    return 0;
}

static int put_sa_tag(struct sim *s, const struct aln *o)
{
    kstring_t *t = &s->text;

    t->l = 0;
    if (ksprintf(t, "%s,%" PRId64 ",%c,", chroms[o->tid].name, o->pos + 1,
                 o->reverse ? '-' : '+') < 0 ||
        put_cigar_text(t, o) != 0 || ksprintf(t, ",%d,%" PRIu32 ";", o->mapq, o->nm) < 0)
        return out_of_memory();
    return put_string_tag(&s->aux, "SAZ", t);
}

static const char *const read_groups[2] = {"HX7KJDSX.1", "HX7KJDSX.2"};

/* The tags of `bwa mem -R`, in its order. */
static int put_short_tags(struct sim *s, const struct aln *a, const struct context *c)
{
    kstring_t *k = &s->aux;
    uint32_t score = a->n_match > 5 * a->nm ? a->n_match - 5 * a->nm : 0;
    const char *group = read_groups[mix64(s->n_templates) & 1];

    if (a->mapped && (put_int_tag(k, "NM", a->nm) != 0 || put_string_tag(k, "MDZ", &a->md) != 0))
        return -1;
    if (c->mate && c->mate->mapped) {
        s->text.l = 0;
        if (put_cigar_text(&s->text, c->mate) != 0 || put_string_tag(k, "MCZ", &s->text) != 0)
            return -1;
    }
    if (put_int_tag(k, "AS", a->mapped ? score : 0) != 0)
        return -1;
    /* Half of the reads have a second-best hit. If it is as good as the best, mapping quality is 0.
     */
    uint32_t second = a->mapq == 0 ? score : score / 2 ? 19 + rng_below(&s->rng, score / 2) : 0;
    if (put_int_tag(k, "XS", a->mapped && rng_next(&s->rng) >> 63 ? second : 0) != 0)
        return -1;
    if (put_tag(k, "RGZ", group, strlen(group) + 1) != 0)
        return -1;
    return c->chimeric ? put_sa_tag(s, c->chimeric) : 0;
}

/* The tags of `minimap2 -ax map-ont`. */
static int put_long_tags(struct sim *s, const struct aln *a, const struct context *c)
{
    kstring_t *k = &s->aux;
    uint32_t score = a->n_match > 3 * a->nm ? 2 * (a->n_match - 3 * a->nm) : 40;

    if (a->mapped) {
        const char *type = c->flag & BAM_FSECONDARY ? "S" : "P";
        if (put_int_tag(k, "NM", a->nm) != 0 || put_int_tag(k, "ms", score + 12) != 0 ||
            put_int_tag(k, "AS", score) != 0 || put_int_tag(k, "nn", 0) != 0 ||
            put_tag(k, "tpA", type, 1) != 0 || put_int_tag(k, "cm", a->n_match / 11) != 0 ||
            put_int_tag(k, "s1", a->n_match * 9 / 10) != 0 ||
            put_int_tag(k, "s2", rng_below(&s->rng, 4000)) != 0)
            return -1;
        if (c->chimeric && put_sa_tag(s, c->chimeric) != 0)
            return -1;
    }
    if (put_int_tag(k, "rl", rng_below(&s->rng, 900)) != 0)
        return -1;
    return put_tag(k, "RGZ", read_groups[0], strlen(read_groups[0]) + 1);
}

static inline void pack_bases(const uint8_t *base, int64_t n, uint8_t *out)
{
    for (int64_t i = 0; i < n / 2; i++)
        out[i] = (uint8_t)(base[2 * i] << 4 | base[2 * i + 1]);
    if (n & 1)
        out[n / 2] = (uint8_t)(base[n - 1] << 4);
}

/* Packs name, CIGAR, bases, qualities and s->aux into s->record, and sets their lengths in core. */
static int pack_record(struct sim *s, const struct aln *a)
{
    bam1_t *b = s->record;
    size_t pad = 3 - s->name.l % 4, l_name = s->name.l + 1 + pad;
    size_t n_cigar = a->mapped ? a->n_cigar : 0, l_seq = a->no_seq ? 0 : (size_t)a->l_seq;
    size_t need = l_name + 4 * n_cigar + (l_seq + 1) / 2 + l_seq + s->aux.l;

    if (need > INT32_MAX) {
        fprintf(stderr, "simulate-reads: record of %zu bytes is too large\n", need);
        return -1;
    }
    if (need > b->m_data) {
        uint8_t *p = realloc(b->data, need * 3 / 2);
        if (!p)
            return out_of_memory();
        b->data = p;
        b->m_data = (uint32_t)(need * 3 / 2);
    }
    uint8_t *p = b->data;
    memcpy(p, s->name.s, s->name.l);
    memset(p + s->name.l, 0, 1 + pad);
    p += l_name;
    if (n_cigar)
        memcpy(p, a->cigar, 4 * n_cigar);
    p += 4 * n_cigar;
    if (l_seq) {
        pack_bases(a->base, (int64_t)l_seq, p);
        p += (l_seq + 1) / 2;
        memcpy(p, a->qual, l_seq);
        p += l_seq;
    }
    memcpy(p, s->aux.s, s->aux.l);
    b->l_data = (int)need;
    b->core.l_qname = (uint16_t)l_name;
    b->core.l_extranul = (uint8_t)pad;
    b->core.n_cigar = (uint32_t)n_cigar;
    b->core.l_qseq = (int32_t)l_seq;
    s->raw_bytes += 36 + need - pad;
    return 0;
}

static int64_t five_prime(const struct aln *a)
{
    return a->reverse ? a->pos + (a->ref_len ? a->ref_len : 1) - 1 : a->pos;
}

/* TLEN from one 5' end to the other, as bwa mem computes it. */
static int64_t template_length(const struct aln *a, const struct aln *mate)
{
    if (!a->mapped || !mate->mapped || a->tid != mate->tid)
        return 0;
    int64_t d = five_prime(mate) - five_prime(a);
    return d > 0 ? d + 1 : d < 0 ? d - 1 : 0;
}

static int emit(struct sim *s, const struct aln *a, const struct context *c)
{
    bam1_core_t *core = &s->record->core;
    uint16_t flag = c->flag;

    flag |= a->mapped ? 0 : BAM_FUNMAP;
    flag |= a->reverse ? BAM_FREVERSE : 0;
    core->mtid = -1;
    core->mpos = -1;
    core->isize = 0;
    if (c->mate) {
        flag |= BAM_FPAIRED;
        flag |= c->mate->mapped ? 0 : BAM_FMUNMAP;
        flag |= c->mate->reverse ? BAM_FMREVERSE : 0;
        core->mtid = c->mate->tid;
        core->mpos = c->mate->pos;
        core->isize = template_length(a, c->mate);
    }
    core->tid = a->tid;
    core->pos = a->pos;
    core->flag = flag;
    core->qual = a->mapq;
    core->bin = (uint16_t)hts_reg2bin(a->pos, a->pos + (a->mapped ? a->ref_len : 1), 14, 5);
    s->aux.l = 0;
    int rc = s->mode == MODE_LONG ? put_long_tags(s, a, c) : put_short_tags(s, a, c);
    if (rc != 0 || pack_record(s, a) != 0)
        return -1;
    if (sam_write1(s->out, s->header, s->record) < 0) {
        fprintf(stderr, "simulate-reads: cannot write record %" PRIu64 ": %s\n", s->n_records + 1,
                errno ? strerror(errno) : "unknown error");
        return -1;
    }
    s->n_records++;
    if (!(flag & (BAM_FSECONDARY | BAM_FSUPPLEMENTARY)))
        s->n_bases += (uint64_t)a->l_seq;
    s->n_piled += a->tid == s->pile_tid && a->pos == s->pile_pos;
    return 0;
}

/* ---- templates ---- */

/* Names in the order of a patterned flow cell: rows of wells from left to right, tile by tile. */
static int next_illumina_name(struct sim *s)
{
    s->x += 18 + rng_below(&s->rng, 460);
    if (s->x > 32000) {
        s->x = 1000 + rng_below(&s->rng, 300);
        s->y += 15 + (s->y & 1);
    }
    if (s->y > 37000) {
        s->y = 1000;
        s->tile++;
        if (s->tile % 100 > 78) /* 78 tiles a swath, 6 swaths a surface, 2 surfaces, 4 lanes */
            s->tile += 100 - 78;
        if (s->tile / 100 % 10 > 6)
            s->tile = s->tile / 1000 * 1000 + 1101;
        if (s->tile > 3000) {
            s->tile = 1101;
            s->lane++;
        }
        if (s->lane > 4) {
            s->lane = 1;
            s->flow_cell++;
        }
    }
    s->name.l = 0;
    if (kputsn("A00123:", 7, &s->name) < 0 || kputuw(s->flow_cell, &s->name) < 0 ||
        kputsn(":HX7KJDSX2:", 11, &s->name) < 0 || kputuw(s->lane, &s->name) < 0 ||
        kputc(':', &s->name) < 0 || kputuw(s->tile, &s->name) < 0 || kputc(':', &s->name) < 0 ||
        kputuw(s->x, &s->name) < 0 || kputc(':', &s->name) < 0 || kputuw(s->y, &s->name) < 0)
        return out_of_memory();
    return 0;
}

static int next_uuid_name(struct sim *s)
{
    uint64_t hi = rng_next(&s->rng), lo = rng_next(&s->rng);

    s->name.l = 0;
    if (ksprintf(&s->name, "%08x-%04x-4%03x-%04x-%012" PRIx64, (unsigned)(hi >> 32),
                 (unsigned)(hi >> 16 & 0xffff), (unsigned)(hi & 0xfff),
                 (unsigned)(0x8000 | (lo >> 50)), lo & UINT64_C(0xffffffffffff)) < 0)
        return out_of_memory();
    return 0;
}

/* A read without position. */
static int make_unmapped(struct sim *s, struct aln *a)
{
    a->mapped = false;
    a->reverse = false;
    a->l_seq = SHORT_LEN;
    if (aln_reserve_seq(a, a->l_seq) != 0)
        return -1;
    fill_quality_binned(s, a, true);
    random_bases(&s->genome, &s->rng, a->l_seq, a->base);
    return 0;
}

/* Qualities and bases of a short read whose position, strand and CIGAR are set. */
static int finish_short(struct sim *s, struct aln *a)
{
    a->mapped = true;
    a->mapq = draw_mapq(&s->rng);
    if (aln_reserve_seq(a, a->l_seq) != 0)
        return -1;
    fill_quality_binned(s, a, false);
    return align_to_genome(s, a);
}

/* Positions of a proper pair. In the pileup mode, 30 % of the records go to one position: three
 * quarters as the left, forward read of their pair, one quarter as the right, reverse one. */
static void place_proper_pair(struct sim *s, struct aln *left, struct aln *right)
{
    int64_t fragment = normal_draw(&s->rng, 380, 90);
    int64_t longest = left->ref_len > right->ref_len ? left->ref_len : right->ref_len;

    if (fragment < longest)
        fragment = longest;
    left->reverse = false;
    right->reverse = true;
    if (s->mode == MODE_PILEUP && s->n_piled * 10 < s->n_records * 3) {
        left->tid = right->tid = s->pile_tid;
        if (rng_below(&s->rng, 4)) {
            left->pos = s->pile_pos;
            right->pos = left->pos + fragment - right->ref_len;
        } else {
            right->pos = s->pile_pos;
            left->pos = right->pos + right->ref_len - fragment;
        }
        return;
    }
    draw_position(s, left, fragment);
    right->tid = left->tid;
    right->pos = left->pos + fragment - right->ref_len;
}

static void remember_fragment(struct sim *s)
{
    struct fragment *f = &s->fragments[s->n_fragments++ % N_FRAGMENTS];

    for (int i = 0; i < 2; i++) {
        const struct aln *a = &s->read[i];
        f->read[i] = (struct placed){a->pos, a->tid, a->reverse, (uint32_t)a->n_cigar, {0}};
        memcpy(f->read[i].cigar, a->cigar, a->n_cigar * sizeof *a->cigar);
    }
}

/* Places both reads as those of an earlier pair. One duplicate of eight is optical: it copies the
 * pair before it, which is its neighbour on the flow cell. */
static int place_duplicate(struct sim *s)
{
    uint32_t known = s->n_fragments < N_FRAGMENTS ? (uint32_t)s->n_fragments : N_FRAGMENTS;
    uint32_t back = rng_below(&s->rng, 8) ? rng_below(&s->rng, known) : 0;
    const struct fragment *f = &s->fragments[(s->n_fragments - 1 - back) % N_FRAGMENTS];

    for (int i = 0; i < 2; i++) {
        const struct placed *from = &f->read[i];
        struct aln *a = &s->read[i];
        for (uint32_t k = 0; k < from->n_cigar; k++)
            if (aln_push_op(a, bam_cigar_op(from->cigar[k]), bam_cigar_oplen(from->cigar[k])) != 0)
                return -1;
        a->tid = from->tid;
        a->pos = from->pos;
        a->reverse = from->reverse;
    }
    return 0;
}

static int make_mapped_pair(struct sim *s, bool proper)
{
    struct aln *a = &s->read[0], *b = &s->read[1];

    /* Nothing is drawn without duplicates: the records must be those of a simulation without. */
    if (proper && s->duplicates && s->n_fragments && rng_below(&s->rng, 65536) < s->duplicates) {
        if (place_duplicate(s) != 0)
            return -1;
        return finish_short(s, a) | finish_short(s, b);
    }
    if (draw_short_cigar(&s->rng, a) != 0 || draw_short_cigar(&s->rng, b) != 0)
        return -1;
    if (proper) {
        bool first_is_left = rng_next(&s->rng) >> 63;
        place_proper_pair(s, first_is_left ? a : b, first_is_left ? b : a);
        if (s->duplicates)
            remember_fragment(s);
    } else {
        draw_position(s, a, a->ref_len);
        draw_position(s, b, b->ref_len);
        a->reverse = rng_next(&s->rng) >> 63;
        b->reverse = rng_next(&s->rng) >> 63;
    }
    return finish_short(s, a) | finish_short(s, b);
}

/* One read is mapped and its mate is not: the mate gets the mapped read's position. */
static int make_half_mapped_pair(struct sim *s)
{
    int which = (int)(rng_next(&s->rng) >> 63);
    struct aln *a = &s->read[which], *u = &s->read[!which];

    if (draw_short_cigar(&s->rng, a) != 0)
        return -1;
    draw_position(s, a, a->ref_len);
    a->reverse = rng_next(&s->rng) >> 63;
    if (finish_short(s, a) != 0 || make_unmapped(s, u) != 0)
        return -1;
    u->tid = a->tid;
    u->pos = a->pos;
    return 0;
}

/* The same read in another place: a hard-clipped part of it (supplementary), or all of it
 * (secondary; bwa prints those without bases). */
static int make_extra(struct sim *s, bool supplementary)
{
    struct aln *a = &s->extra;
    int rc;

    aln_reset(a);
    if (supplementary) {
        uint32_t clip = 40 + rng_below(&s->rng, 70);
        rc = rng_next(&s->rng) >> 63 ? aln_push_op(a, BAM_CHARD_CLIP, clip) |
                                           aln_push_op(a, BAM_CMATCH, SHORT_LEN - clip)
                                     : aln_push_op(a, BAM_CMATCH, SHORT_LEN - clip) |
                                           aln_push_op(a, BAM_CHARD_CLIP, clip);
    } else {
        rc = aln_push_op(a, BAM_CMATCH, SHORT_LEN);
    }
    if (rc != 0)
        return -1;
    draw_position(s, a, a->ref_len);
    a->reverse = rng_next(&s->rng) >> 63;
    if (finish_short(s, a) != 0)
        return -1;
    a->no_seq = !supplementary;
    if (!supplementary)
        a->mapq = 0;
    return 0;
}

/* Both reads of a pair and, after the first, its supplementary or secondary record. Stops at n_max
 * records. The caller makes a single read if one is left over. */
static int make_pair(struct sim *s, uint64_t n_max)
{
    uint32_t draw = rng_below(&s->rng, 65536);
    bool proper = false, extra = false, supplementary = false;
    int rc;

    if (s->mode == MODE_UNMAPPED || draw < SHARE(1.5)) {
        rc = make_unmapped(s, &s->read[0]) | make_unmapped(s, &s->read[1]);
    } else if (draw < SHARE(4.5)) {
        rc = make_half_mapped_pair(s);
    } else {
        proper = draw >= SHARE(6.5);
        extra = draw >= SHARE(98) && n_max >= 3;
        supplementary = draw >= SHARE(99);
        rc = make_mapped_pair(s, proper);
        if (rc == 0 && extra)
            rc = make_extra(s, supplementary);
    }
    if (rc != 0)
        return -1;

    struct context c = {.flag = (uint16_t)(BAM_FREAD1 | (proper ? BAM_FPROPER_PAIR : 0)),
                        .mate = &s->read[1],
                        .chimeric = extra && supplementary ? &s->extra : NULL};
    if (emit(s, &s->read[0], &c) != 0)
        return -1;
    if (extra) {
        c.flag |= supplementary ? BAM_FSUPPLEMENTARY : BAM_FSECONDARY;
        c.chimeric = supplementary ? &s->read[0] : NULL;
        if (emit(s, &s->extra, &c) != 0)
            return -1;
    }
    c = (struct context){.flag = (uint16_t)(BAM_FREAD2 | (proper ? BAM_FPROPER_PAIR : 0)),
                         .mate = &s->read[0]};
    return emit(s, &s->read[1], &c);
}

static int make_single(struct sim *s)
{
    struct aln *a = &s->read[0];
    struct context c = {.flag = 0};

    if (s->mode == MODE_UNMAPPED)
        return make_unmapped(s, a) != 0 ? -1 : emit(s, a, &c);
    if (draw_short_cigar(&s->rng, a) != 0)
        return -1;
    draw_position(s, a, a->ref_len);
    a->reverse = rng_next(&s->rng) >> 63;
    return finish_short(s, a) != 0 ? -1 : emit(s, a, &c);
}

/* Roughly log-normal, median 20 kb, up to 220 kb. Lengths below the minimum are drawn again. 2^x is
 * computed from its whole part and a straight line, which is the same on every machine. */
static uint32_t draw_long_length(struct rng *r)
{
    for (;;) {
        int64_t log2_len = normal_draw(r, 936509, 65536); /* 14.29 +- 1, in 1/65536 */
        uint32_t n = (uint32_t)((65536 + (log2_len & 0xffff)) << (log2_len >> 16) >> 16);
        if (n >= LONG_MIN_LEN)
            return n < LONG_MAX_LEN ? n : LONG_MAX_LEN;
    }
}

static int make_long_alignment(struct sim *s, struct aln *a, uint32_t n, bool ultra)
{
    if (draw_long_cigar(s, a, n, ultra) != 0 || aln_reserve_seq(a, a->l_seq) != 0)
        return -1;
    draw_position(s, a, a->ref_len);
    a->reverse = rng_next(&s->rng) >> 63;
    a->mapped = true;
    a->mapq = draw_mapq(&s->rng);
    fill_quality_wandering(s, a);
    return align_to_genome(s, a);
}

static int make_long(struct sim *s, uint64_t n_max)
{
    struct aln *a = &s->read[0], *x = &s->extra;
    bool ultra = s->n_templates % ULTRA_EVERY == ULTRA_FIRST;
    uint32_t n = ultra ? 300000 + rng_below(&s->rng, 200001) : draw_long_length(&s->rng);
    uint32_t draw = rng_below(&s->rng, 65536);
    struct context c = {.flag = 0};

    if (!ultra && draw < SHARE(3)) {
        a->l_seq = n;
        if (aln_reserve_seq(a, n) != 0)
            return -1;
        fill_quality_wandering(s, a);
        random_bases(&s->genome, &s->rng, n, a->base);
        return emit(s, a, &c);
    }
    if (make_long_alignment(s, a, n, ultra) != 0)
        return -1;
    if (ultra || draw < SHARE(90) || n_max < 2)
        return emit(s, a, &c);

    bool supplementary = draw >= SHARE(95);
    aln_reset(x);
    if (make_long_alignment(s, x, n / 3, false) != 0)
        return -1;
    if (supplementary) { /* hard clips in place of the soft ones, so their bases go */
        uint32_t front = bam_cigar_oplen(x->cigar[0]);
        uint32_t back = bam_cigar_oplen(x->cigar[x->n_cigar - 1]);
        x->cigar[0] = (n - n / 3 + front) << BAM_CIGAR_SHIFT | BAM_CHARD_CLIP;
        x->cigar[x->n_cigar - 1] = back << BAM_CIGAR_SHIFT | BAM_CHARD_CLIP;
        x->l_seq -= front + back;
        memmove(x->base, x->base + front, (size_t)x->l_seq);
        memmove(x->qual, x->qual + front, (size_t)x->l_seq);
        c.chimeric = x;
    } else {
        x->no_seq = true;
        x->mapq = 0;
    }
    if (emit(s, a, &c) != 0)
        return -1;
    c.flag = supplementary ? BAM_FSUPPLEMENTARY : BAM_FSECONDARY;
    c.chimeric = supplementary ? a : NULL;
    return emit(s, x, &c);
}

static int make_template(struct sim *s, uint64_t n_max)
{
    s->n_templates++;
    aln_reset(&s->read[0]);
    aln_reset(&s->read[1]);
    if (s->mode == MODE_LONG)
        return next_uuid_name(s) != 0 ? -1 : make_long(s, n_max);
    if (next_illumina_name(s) != 0)
        return -1;
    return n_max == 1 ? make_single(s) : make_pair(s, n_max);
}

/* ---- options, header, main ---- */

struct options {
    enum mode mode;
    const char *output;
    bool bam, verbose;
    int level; /* -1: htslib's default */
    int n_threads;
    uint64_t n_records; /* 0: stop at the coverage */
    uint64_t seed, genome_length;
    uint64_t coverage_milli;
    int duplicate_percent;
};

static const char *const mode_names[] = {"short", "long", "pileup", "unmapped"};

static void usage(FILE *f)
{
    fprintf(f,
            "Usage: simulate-reads [options]\n"
            "Writes simulated alignments in an aligner's order (not sorted). The same options and\n"
            "seed give the same records in either format.\n\n"
            "  -n, --records N     number of records, with K, M or G for 10^3, 10^6, 10^9 [1M]\n"
            "  -c, --coverage X    instead of -n: stop when the genome is covered X times\n"
            "  -L, --genome N      genome length in bases, K, M or G allowed; 25 chromosomes of\n"
            "                      human proportions [%" PRIu64 "]\n"
            "  -m, --mode MODE     short: pairs of 150 bases, as from bwa mem [default]\n"
            "                      long: 10-500 kb, every 100th with > 65,535 CIGAR operations\n"
            "                      pileup: short, with 30 %% of the records at one position\n"
            "                      unmapped: short, none mapped, all without a position\n"
            "  -d, --duplicates N  so many percent of the proper pairs, 0 to 99, lie where an\n"
            "                      earlier one lies; with other errors and qualities [0]\n"
            "  -s, --seed N        [1]\n"
            "  -o, --output FILE   `-` is standard output [-]\n"
            "  -O, --format FMT    sam or bam [bam if FILE ends in .bam, else sam]\n"
            "  -l, --level N       compression of BAM, 0 to 9 [htslib's default]\n"
            "  -@, --threads N     compression threads [0]\n"
            "  -v, --verbose       say at the end what was written\n"
            "  -h, --help\n",
            human_length());
}

/* Parses digits, one decimal point if scale > 1, a suffix if allowed. Gives the value times scale.
 */
static int parse_number(const char *option, const char *text, uint64_t scale, uint64_t *value)
{
    const char *p = text;
    uint64_t v = 0, fraction = 0, unit = scale;

    for (; *p >= '0' && *p <= '9' && v < UINT64_MAX / 100; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    bool ok = p != text && v < UINT64_C(1) << 50;
    if (*p == '.' && scale > 1)
        for (p++; *p >= '0' && *p <= '9'; p++) {
            unit /= 10;
            fraction += unit * (uint64_t)(*p - '0');
        }
    v = v * scale + fraction;
    uint64_t factor = *p == 'K' || *p == 'k'   ? 1000
                      : *p == 'M' || *p == 'm' ? 1000000
                      : *p == 'G' || *p == 'g' ? 1000000000
                                               : 1;
    p += factor > 1;
    if (!ok || *p || v > (UINT64_C(1) << 60) / factor) {
        fprintf(stderr, "simulate-reads: %s %s: not a number like 500, 20K, 6M or 2G\n", option,
                text);
        return -1;
    }
    *value = v * factor;
    return 0;
}

static int parse_small(const char *option, const char *text, uint64_t max, int *value)
{
    uint64_t v;

    if (parse_number(option, text, 1, &v) != 0)
        return -1;
    if (v > max) {
        fprintf(stderr, "simulate-reads: %s %s: at most %" PRIu64 "\n", option, text, max);
        return -1;
    }
    *value = (int)v;
    return 0;
}

static int parse_mode(const char *text, enum mode *mode)
{
    for (int i = 0; i < 4; i++)
        if (strcmp(text, mode_names[i]) == 0) {
            *mode = (enum mode)i;
            return 0;
        }
    fprintf(stderr, "simulate-reads: -m %s: not one of short, long, pileup, unmapped\n", text);
    return -1;
}

static int check_options(struct options *o, const char *format)
{
    size_t n = strlen(o->output);

    o->bam = format ? strcmp(format, "bam") == 0 : n > 4 && strcmp(o->output + n - 4, ".bam") == 0;
    if (format && !o->bam && strcmp(format, "sam") != 0) {
        fprintf(stderr, "simulate-reads: -O %s: not one of sam, bam\n", format);
        return -1;
    }
    if (!o->bam && o->level >= 0) {
        fprintf(stderr, "simulate-reads: -l needs BAM output\n");
        return -1;
    }
    if (o->n_records && o->coverage_milli) {
        fprintf(stderr, "simulate-reads: -n and -c both give the size: use one of them\n");
        return -1;
    }
    if (o->coverage_milli > 1000000000) {
        fprintf(stderr, "simulate-reads: -c: at most 1M\n");
        return -1;
    }
    if (o->duplicate_percent && o->mode != MODE_SHORT && o->mode != MODE_PILEUP) {
        fprintf(stderr, "simulate-reads: -d: the mode %s has no proper pairs to copy\n",
                mode_names[o->mode]);
        return -1;
    }
    if (!o->n_records && !o->coverage_milli)
        o->n_records = 1000000;
    /* The longest alignment must fit on the first chromosomes; a BAM position has 31 bits. */
    uint64_t least = o->mode == MODE_LONG ? 20000000 : 100000;
    uint64_t most = o->bam ? UINT64_C(26000000000) : UINT64_C(50000000000);
    if (o->genome_length < least || o->genome_length > most) {
        fprintf(stderr,
                "simulate-reads: -L %" PRIu64 ": must be %" PRIu64 " to %" PRIu64
                " in this mode and format\n",
                o->genome_length, least, most);
        return -1;
    }
    return 0;
}

/* Returns 0, 1 if help was printed, or -1 after a message. */
static int parse_options(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {{"records", required_argument, NULL, 'n'},
                                          {"coverage", required_argument, NULL, 'c'},
                                          {"genome", required_argument, NULL, 'L'},
                                          {"mode", required_argument, NULL, 'm'},
                                          {"duplicates", required_argument, NULL, 'd'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"format", required_argument, NULL, 'O'},
                                          {"level", required_argument, NULL, 'l'},
                                          {"threads", required_argument, NULL, '@'},
                                          {"verbose", no_argument, NULL, 'v'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    const char *format = NULL;
    bool sized = false;
    int c, rc = 0;

    *o = (struct options){
        .output = "-", .level = -1, .seed = 1, .genome_length = human_length()};
    while (rc == 0 && (c = getopt_long(argc, argv, "n:c:L:m:d:s:o:O:l:@:vh", longs, NULL)) != -1) {
        switch (c) {
        case 'n': rc = parse_number("-n", optarg, 1, &o->n_records); sized = true; break;
        case 'c': rc = parse_number("-c", optarg, 1000, &o->coverage_milli); sized = true; break;
        case 'L': rc = parse_number("-L", optarg, 1, &o->genome_length); break;
        case 'm': rc = parse_mode(optarg, &o->mode); break;
        case 'd': rc = parse_small("-d", optarg, 99, &o->duplicate_percent); break;
        case 's': rc = parse_number("-s", optarg, 1, &o->seed); break;
        case 'o': o->output = optarg; break;
        case 'O': format = optarg; break;
        case 'l': rc = parse_small("-l", optarg, 9, &o->level); break;
        case '@': rc = parse_small("-@", optarg, 1024, &o->n_threads); break;
        case 'v': o->verbose = true; break;
        case 'h': usage(stdout); return 1;
        default: rc = -1; break;
        }
    }
    if (rc == 0 && optind < argc) {
        fprintf(stderr, "simulate-reads: unexpected argument %s\n", argv[optind]);
        rc = -1;
    }
    if (rc == 0 && sized && o->n_records == 0 && o->coverage_milli == 0) {
        fprintf(stderr, "simulate-reads: -n 0 or -c 0: must be more than none\n");
        rc = -1;
    }
    return rc == 0 ? check_options(o, format) : rc;
}

/* The command line in @PG leaves out options that do not change the records, so that SAM and BAM of
 * the same data have the same header. */
static sam_hdr_t *make_header(const struct sim *s, const struct options *o)
{
    kstring_t t = KS_INITIALIZE;
    sam_hdr_t *h = NULL;
    int bad = kputs("@HD\tVN:1.6\tSO:unsorted\tGO:query\n", &t) < 0;

    for (int i = 0; i < N_CHROMS; i++)
        bad |= ksprintf(&t, "@SQ\tSN:%s\tLN:%" PRId64 "\n", chroms[i].name,
                        chrom_length(&s->genome, i)) < 0;
    for (int i = 0; i < (o->mode == MODE_LONG ? 1 : 2); i++)
        bad |= ksprintf(&t, "@RG\tID:%s\tSM:sim\tLB:lib1\tPU:%s\tPL:%s\n", read_groups[i],
                        read_groups[i], o->mode == MODE_LONG ? "ONT" : "ILLUMINA") < 0;
    bad |= ksprintf(&t, "@PG\tID:simulate-reads\tPN:simulate-reads\tVN:1.0\tCL:simulate-reads"
                        " -m %s -s %" PRIu64 " -L %" PRIu64,
                    mode_names[o->mode], o->seed, o->genome_length) < 0;
    if (o->duplicate_percent)
        bad |= ksprintf(&t, " -d %d", o->duplicate_percent) < 0;
    if (o->n_records)
        bad |= ksprintf(&t, " -n %" PRIu64 "\n", o->n_records) < 0;
    else
        bad |= ksprintf(&t, " -c %" PRIu64 ".%03" PRIu64 "\n", o->coverage_milli / 1000,
                        o->coverage_milli % 1000) < 0;
    if (!bad)
        h = sam_hdr_init();
    if (h && sam_hdr_add_lines(h, t.s, t.l) < 0) {
        sam_hdr_destroy(h);
        h = NULL;
    }
    free(t.s);
    if (!h)
        fprintf(stderr, "simulate-reads: cannot make the header\n");
    return h;
}

static void sim_init(struct sim *s, const struct options *o)
{
    memset(s, 0, sizeof *s);
    s->mode = o->mode;
    genome_init(&s->genome, o->genome_length);
    rng_seed(&s->rng, o->seed);
    geom_init(&s->clean_run, 40);
    geom_init(&s->fair_run, 10);
    geom_init(&s->poor_run, 4);
    geom_init(&s->mismatch_gap, 100);
    geom_init(&s->long_mismatch_gap, 40);
    geom_init(&s->match_run, 25);
    geom_init(&s->ultra_match_run, 5);
    geom_init(&s->indel_len, 2);
    s->duplicates = SHARE((uint32_t)o->duplicate_percent);
    s->pile_tid = o->mode == MODE_PILEUP ? 6 : N_CHROMS;
    s->pile_pos = o->mode == MODE_PILEUP ? chrom_length(&s->genome, 6) / 3 : -1;
    s->flow_cell = 45;
    s->lane = 1;
    s->tile = 1101;
    s->x = s->y = 1000;
}

/* Opens the output and writes the header. */
static int open_output(struct sim *s, const struct options *o)
{
    char mode[4] = "w";

    if (o->bam && strcmp(o->output, "-") == 0 && isatty(STDOUT_FILENO)) {
        fprintf(stderr, "simulate-reads: will not write BAM to a terminal\n");
        return -1;
    }
    if (o->bam)
        mode[1] = 'b';
    if (o->bam && o->level >= 0)
        mode[2] = (char)('0' + o->level);
    s->out = sam_open(o->output, mode);
    if (!s->out) {
        fprintf(stderr, "simulate-reads: cannot open %s: %s\n", o->output, strerror(errno));
        return -1;
    }
    if (o->n_threads > 0 && hts_set_threads(s->out, o->n_threads) != 0) {
        fprintf(stderr, "simulate-reads: cannot start %d threads\n", o->n_threads);
        return -1;
    }
    s->header = make_header(s, o);
    if (!s->header)
        return -1;
    s->record = bam_init1();
    if (!s->record)
        return out_of_memory();
    if (s->duplicates) {
        s->fragments = malloc(N_FRAGMENTS * sizeof *s->fragments);
        if (!s->fragments)
            return out_of_memory();
    }
    if (sam_hdr_write(s->out, s->header) < 0) {
        fprintf(stderr, "simulate-reads: cannot write the header to %s\n", o->output);
        return -1;
    }
    return 0;
}

static int generate(struct sim *s, const struct options *o)
{
    const uint64_t n_max = o->n_records ? o->n_records : UINT64_MAX;
    /* check_options() limits both factors, so that this cannot overflow. */
    const uint64_t bases = o->n_records ? UINT64_MAX : o->genome_length / 1000 * o->coverage_milli;

    while (s->n_records < n_max && s->n_bases < bases)
        if (make_template(s, n_max - s->n_records) != 0)
            return -1;
    return 0;
}

int main(int argc, char **argv)
{
    struct options o;
    struct sim s;
    int rc = parse_options(argc, argv, &o);

    if (rc != 0) {
        if (rc < 0)
            fprintf(stderr, "Try `simulate-reads --help`.\n");
        return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    sim_init(&s, &o);
    rc = open_output(&s, &o);
    if (rc == 0)
        rc = generate(&s, &o);
    if (s.out && sam_close(s.out) < 0 && rc == 0) {
        fprintf(stderr, "simulate-reads: cannot finish %s\n", o.output);
        rc = -1;
    }
    if (rc == 0 && o.verbose)
        fprintf(stderr,
                "simulate-reads: %" PRIu64 " records, %" PRIu64 " bytes as uncompressed BAM, "
                "%.1f a record\n",
                s.n_records, s.raw_bytes, (double)s.raw_bytes / (double)s.n_records);
    if (s.header)
        sam_hdr_destroy(s.header);
    if (s.record)
        bam_destroy1(s.record);
    free(s.fragments);
    aln_release(&s.read[0]);
    aln_release(&s.read[1]);
    aln_release(&s.extra);
    free(s.name.s);
    free(s.aux.s);
    free(s.text.s);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
