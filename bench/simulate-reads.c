/*
 * simulate-reads: writes realistic unsorted alignments in the order of an aligner.
 *
 * The output depends on the options alone: all random numbers are integers. The genome is never
 * stored: base i is two bits of a hash of i/32, so reads that overlap share their sequence. Place
 * and CIGARs of a pair are drawn from a seed of their own, which a duplicate takes again; bases, NM
 * and MD follow from both. A record is made as a line of SAM.
 *
 * 6 M records of the short mode are about 2.08 GB of uncompressed BAM and 650 MB at the default
 * level: 348 bytes a record, 110 compressed. fill_qualities() was tuned for these sizes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <htslib/kstring.h>
#include <htslib/sam.h>

#define N_CHROMS 25
#define SHORT_LEN 150
#define SHORT_MEAN 1500 /* bases between indels */
#define MAX_LEN 500000 /* of a long read */
#define MAX_OPS 400000
#define N_PLACES 65536

enum mode { MODE_SHORT, MODE_LONG, MODE_PILEUP, MODE_UNMAPPED, N_MODES };

static const char *const mode_names[N_MODES] = {"short", "long", "pileup", "unmapped"};

/* Of GRCh38, in kb, so that bins and the share of each chromosome are those of a human genome. */
static const uint32_t chrom_kb[N_CHROMS] = {
    248956, 242193, 198295, 190214, 181538, 170805, 159345, 145138, 138394, 133797, 135086, 133275,
    114364, 107043, 101991, 90338, 83257, 80373, 58617, 64444, 46709, 50818, 156040, 57227, 16,
};

/* One alignment. */
struct read {
    int tid; /* -1: no position */
    int64_t pos, ref_len, len, nm, n_match; /* bases of the reference, of the read, ... */
    bool mapped, reverse, no_seq;           /* no_seq: SEQ and QUAL are `*` */
    int mapq, n_md;
    size_t n_cigar;
    uint32_t cigar[MAX_OPS];
    char seq[MAX_LEN + 64], qual[MAX_LEN + 64], md[8 * SHORT_LEN]; /* text, as in SAM */
};

static enum mode mode;
static uint64_t n_records = 1000000, seed = 1, genome_len, duplicates; /* duplicates: percent */
static uint64_t random_state, chrom_start[N_CHROMS + 1], n_templates, n_written;
static uint64_t places[N_PLACES], n_places; /* the seeds of the last pairs that are no duplicates */
static samFile *out;
static sam_hdr_t *header;
static bam1_t *record;
static kstring_t line;
static char name[64], chrom_names[N_CHROMS][8];

__attribute__((noreturn)) static void die(const char *what, const char *why)
{
    fprintf(stderr, "simulate-reads: %s: %s\n", what, why);
    exit(1);
}

static void need(bool done)
{
    if (!done) die("htslib", strerror(errno));
}

/* ---- random numbers and the genome ---- */

static uint64_t mix64(uint64_t x) /* the finalizer of splitmix64 */
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t draw(void)
{
    return mix64(random_state += UINT64_C(0x9e3779b97f4a7c15));
}

static uint64_t below(uint64_t n)
{
    return draw() % n;
}

/* 1, 2 ... most, geometric. */
static uint64_t run_length(uint64_t mean, uint64_t most)
{
    uint64_t n = 1;
    while (n < most && below(mean))
        n++;
    return n;
}

static void copy_genome(uint64_t at, int64_t n, char *bases)
{
    uint64_t word = mix64(at / 32 + 1);
    for (int64_t i = 0; i < n; i++, at++) {
        if (at % 32 == 0) word = mix64(at / 32 + 1);
        bases[i] = "ACGT"[word >> at % 32 * 2 & 3];
    }
}

/* ---- one alignment ---- */

static void add_op(struct read *r, uint32_t op, uint64_t len)
{
    if (!len) return;
    need(r->n_cigar < MAX_OPS);
    r->cigar[r->n_cigar++] = bam_cigar_gen((uint32_t)len, op);
    if (bam_cigar_type(op) & 1) r->len += (int64_t)len;
    if (bam_cigar_type(op) & 2) r->ref_len += (int64_t)len;
}

/* Matches of such a mean length and indels in turn until the read has n bases. All long reads are
 * soft-clipped at both ends, one of 20 short ones at one end. */
static void draw_cigar(struct read *r, uint64_t n, uint64_t mean)
{
    uint64_t kind = mode == MODE_LONG ? 0 : below(40), clip = kind ? 0 : 5 + below(60);
    uint64_t tail = kind % 39 ? 0 : 5 + below(60), left = n - clip - tail, len;

    add_op(r, BAM_CSOFT_CLIP, clip);
    while ((len = run_length(mean, left)) < left) {
        uint64_t indel = run_length(2, left - len);
        bool inserts = draw() >> 63;
        if (len + indel == left) break;
        add_op(r, BAM_CMATCH, len);
        add_op(r, inserts ? BAM_CINS : BAM_CDEL, indel);
        left -= len + (inserts ? indel : 0);
    }
    add_op(r, BAM_CMATCH, left);
    add_op(r, BAM_CSOFT_CLIP, tail);
}

/* Gives the read a random position from which span bases stay in the chromosome. */
static void draw_position(struct read *r, int64_t span)
{
    uint64_t at;
    do {
        at = below(chrom_start[N_CHROMS]);
        for (r->tid = 0; at >= chrom_start[r->tid + 1];)
            r->tid++;
    } while (at + (uint64_t)span > chrom_start[r->tid + 1]);
    r->pos = (int64_t)(at - chrom_start[r->tid]);
    r->reverse = draw() >> 63;
}

/* A level that wanders, with noise on every base, as nanopore base callers give. */
static void fill_wandering(struct read *r)
{
    uint64_t x = 0, level = 45 + below(14);

    for (int64_t i = 0; i < r->len; i++, x >>= 5) {
        if (i % 12 == 0) {
            x = draw();
            level += (x >> 60) % 8 - 3 - (level > 51);
            level = level < 39 ? 39 : level > 69 ? 69 : level;
        }
        r->qual[i] = (char)(level + x % 8 - x / 8 % 4);
    }
}

/* Four bins, as a NovaSeq has: long runs of 37 that get shorter along the read, and dips of one or
 * two bases of 23 or 12. Bad reads have dips everywhere. */
static void fill_qualities(struct read *r, bool is_bad)
{
    uint64_t kind = is_bad ? 0 : below(256);
    uint32_t early = kind < 40 ? 4 : kind < 220 ? 10 : 40, late = kind < 40 ? 4 : 10;
    int64_t n = r->len;
    r->seq[n] = r->qual[n] = '\0';
    if (mode == MODE_LONG) {
        fill_wandering(r);
        return;
    }
    memset(r->qual, 37 + 33, (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        if (below(3 * i < 2 * n ? early : late)) continue;
        char q = below(100) < 55 ? 23 + 33 : 12 + 33;
        r->qual[r->reverse ? n - 1 - i : i] = q;
        if (++i < n && below(100) < 25) r->qual[r->reverse ? n - 1 - i : i] = q;
    }
}

/* Appends to MD the matches before and what follows them. Long reads have none. */
static void add_md(struct read *r, int64_t n_same, const char *bases)
{
    size_t left = sizeof r->md - (size_t)r->n_md;
    if (mode != MODE_LONG) r->n_md += snprintf(r->md + r->n_md, left, "%d%s", (int)n_same, bases);
}

/* Fills in the bases of a match, with mismatches. */
static void fill_match(struct read *r, uint64_t ref, int64_t at, int64_t n, int64_t *n_same)
{
    copy_genome(ref, n, r->seq + at);
    for (int64_t i = at; i < at + n; i++, ++*n_same) {
        if (below(mode == MODE_LONG ? 40 : 100)) continue;
        char old[2] = {r->seq[i]};
        /* Two bits tell these letters apart: A 0, C 1, T 2, G 3. */
        r->seq[i] = "ACTG"[((*old >> 1) + 1 + (int)below(3)) & 3];
        if (mode != MODE_LONG && below(2)) r->qual[i] = 12 + 33;
        add_md(r, *n_same, old);
        *n_same = -1;
        r->nm++;
    }
    r->n_match += n;
}

/* Fills in all else of a read whose position, strand and CIGAR are set. */
static void fill_mapped(struct read *r)
{
    uint64_t ref = chrom_start[r->tid] + (uint64_t)r->pos;
    int64_t at = 0, n_same = 0;

    r->mapped = true;
    r->mapq = below(100) < 86 ? 60 : below(100) < 33 ? 0 : (int)below(60);
    fill_qualities(r, false);
    for (size_t k = 0; k < r->n_cigar; k++) {
        uint32_t op = bam_cigar_op(r->cigar[k]);
        int64_t n = bam_cigar_oplen(r->cigar[k]);
        char gone[64] = "^";
        if (op == BAM_CMATCH) {
            fill_match(r, ref, at, n, &n_same);
        } else if (op == BAM_CDEL) {
            copy_genome(ref, n < 60 ? n : 60, gone + 1);
            add_md(r, n_same, gone);
            n_same = 0;
        } else if (op != BAM_CHARD_CLIP) {
            copy_genome(draw() >> 8, n, r->seq + at);
        }
        if (op == BAM_CINS || op == BAM_CDEL) r->nm += n;
        if (bam_cigar_type(op) & 1) at += n;
        if (bam_cigar_type(op) & 2) ref += (uint64_t)n;
    }
    add_md(r, n_same, "");
}

static void fill_unmapped(struct read *r, uint64_t n)
{
    r->len = (int64_t)n;
    fill_qualities(r, true);
    copy_genome(draw() >> 8, r->len, r->seq);
}

/* ---- records ---- */

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    need(kvsprintf(&line, format, args) >= 0);
    va_end(args);
}

static void add_cigar(const struct read *r)
{
    for (size_t i = 0; r->mapped && i < r->n_cigar; i++)
        add("%d%c", (int)bam_cigar_oplen(r->cigar[i]), bam_cigar_opchr(r->cigar[i]));
    if (!r->mapped) add("*");
}

static const char *chrom_of(const struct read *r)
{
    return r && r->tid >= 0 ? chrom_names[r->tid] : "*";
}

/* Writes a record with the tags of `bwa mem`. mate, other (part of a split read): may be NULL. */
static void emit(const struct read *r, unsigned flag, const struct read *mate,
                 const struct read *other)
{
    int64_t tlen = 0, score = r->n_match > 5 * r->nm ? r->n_match - 5 * r->nm : 0;
    /* Half of the reads have a second-best hit; if it is as good, mapping quality is 0. */
    int64_t second = r->mapq ? (int64_t)(19 + below((uint64_t)score / 2 + 1)) : score;

    flag |= (r->mapped ? 0u : BAM_FUNMAP) | (r->reverse ? BAM_FREVERSE : 0u);
    if (mate) flag |= BAM_FPAIRED | (mate->mapped ? 0u : BAM_FMUNMAP);
    if (mate && mate->reverse) flag |= BAM_FMREVERSE;
    if (mate && r->mapped && mate->mapped && r->tid == mate->tid) {
        tlen = mate->pos + (mate->reverse ? mate->ref_len - 1 : 0);
        tlen -= r->pos + (r->reverse ? r->ref_len - 1 : 0);
        tlen += tlen > 0 ? 1 : tlen < 0 ? -1 : 0; /* from one 5' end to the other, as in bwa mem */
    }
    line.l = 0;
    add("%s\t%u\t%s\t%" PRId64 "\t%d\t", name, flag, chrom_of(r), r->pos + 1, r->mapq);
    add_cigar(r);
    add("\t%s\t%" PRId64 "\t%" PRId64 "\t", chrom_of(mate), mate ? mate->pos + 1 : 0, tlen);
    add("%s\t%s", r->no_seq ? "*" : r->seq, r->no_seq ? "*" : r->qual);
    if (r->mapped) add("\tNM:i:%" PRId64, r->nm);
    if (r->n_md) add("\tMD:Z:%s", r->md);
    if (mate && mate->mapped) {
        add("\tMC:Z:");
        add_cigar(mate);
    }
    add("\tAS:i:%" PRId64 "\tXS:i:%" PRId64 "\tRG:Z:HX7KJDSX.%d", score,
        r->mapped && below(2) ? second : 0, (int)(1 + mix64(n_templates) % 2));
    if (other) {
        add("\tSA:Z:%s,%" PRId64 ",%c,", chrom_of(other), other->pos + 1, "+-"[other->reverse]);
        add_cigar(other);
        add(",%d,%" PRId64 ";", other->mapq, other->nm);
    }
    need(sam_parse1(&line, header, record) >= 0 && sam_write1(out, header, record) >= 0);
    n_written++;
}

/* ---- templates ---- */

/* Names in the order of a flow cell: rows of wells, tile by tile, 78 tiles a lane, 4 lanes. */
static void next_name(void)
{
    static uint64_t x = 1000, y = 1000, tile;

    x += 18 + below(460);
    y += x > 32000 ? 15 + (y & 1) : 0;
    x = x > 32000 ? 1000 + below(300) : x;
    tile += y > 37000;
    y = y > 37000 ? 1000 : y;
    if (mode == MODE_LONG)
        (void)snprintf(name, sizeof name, "%016" PRIx64 "-%016" PRIx64, draw(), draw());
    else
        (void)snprintf(name, sizeof name, "A00123:%d:HX7KJDSX2:%d:%d:%d:%d", (int)(45 + tile / 312),
                       (int)(1 + tile / 78 % 4), (int)(1101 + tile % 78), (int)x, (int)y);
}

/* Draws the place of a proper pair, or takes that of an earlier one. One duplicate of eight is
 * optical: it copies the pair before it, which is its neighbour on the flow cell. In the pileup
 * mode 30 % of the records lie at one position. */
static void place_proper_pair(struct read *reads)
{
    uint64_t known = n_places < N_PLACES ? n_places : N_PLACES, place = draw();

    if (known && below(100) < duplicates)
        place = places[(n_places - 1 - (below(8) ? below(known) : 0)) % N_PLACES];
    else
        places[n_places++ % N_PLACES] = place;
    uint64_t state = random_state;
    random_state = place;
    struct read *left = &reads[draw() >> 63], *right = left == reads ? reads + 1 : reads;
    int64_t span = (int64_t)(160 + below(147) + below(147) + below(147));
    draw_cigar(left, SHORT_LEN, SHORT_MEAN);
    draw_cigar(right, SHORT_LEN, SHORT_MEAN);
    if (span < left->ref_len) span = left->ref_len;
    if (span < right->ref_len) span = right->ref_len;
    draw_position(left, span);
    if (mode == MODE_PILEUP && below(100) < 65) {
        left->tid = 6;
        left->pos = (int64_t)(chrom_start[7] - chrom_start[6]) / 3;
        if (!below(4)) left->pos += right->ref_len - span;
    }
    left->reverse = false;
    right->reverse = true;
    right->tid = left->tid;
    right->pos = left->pos + span - right->ref_len;
    random_state = state;
}

/* Writes a pair or a single read, perhaps with a supplementary or secondary record. */
static void make_template(uint64_t n_max)
{
    static struct read reads[3];
    struct read *extra = &reads[2];
    bool is_pair = mode != MODE_LONG && n_max > 1;
    /* Every 100th long read has more than 65,535 CIGAR operations. */
    bool is_ultra = mode == MODE_LONG && n_templates % 100 == 10;
    uint64_t mean = mode != MODE_LONG ? SHORT_MEAN : is_ultra ? 5 : 25;
    uint64_t kind = mode == MODE_UNMAPPED ? 0 : is_ultra ? 500 : below(1000);
    uint64_t n = mode != MODE_LONG ? SHORT_LEN
                 : is_ultra        ? 300000 + below(200000)
                                   : (10000 + below(10000)) << ("0000001122"[below(10)] - '0');
    uint64_t clip = kind >= 990 ? n / 4 + below(n / 2) : 0;
    bool has_extra = kind >= 980 && n_max > 1u + is_pair;
    unsigned flag = is_pair && kind >= 65 ? BAM_FPROPER_PAIR : 0;
    unsigned first = flag | (is_pair ? BAM_FREAD1 : 0);

    for (int i = 0; i < 3; i++) {
        memset(&reads[i], 0, offsetof(struct read, cigar));
        reads[i].pos = reads[i].tid = -1;
    }
    n_templates++;
    next_name();
    if (flag) place_proper_pair(reads);
    for (uint64_t i = 0; i <= is_pair; i++) {
        if (kind < 15 || (is_pair && kind < 45 && i == kind % 2)) {
            fill_unmapped(&reads[i], n);
            continue;
        }
        if (!flag) {
            draw_cigar(&reads[i], n, mean);
            draw_position(&reads[i], reads[i].ref_len);
        }
        fill_mapped(&reads[i]);
    }
    if (is_pair && kind >= 15 && kind < 45) { /* the unmapped read gets its mate's position */
        reads[kind % 2].tid = reads[!(kind % 2)].tid;
        reads[kind % 2].pos = reads[!(kind % 2)].pos;
    }
    if (has_extra) { /* a part of the first read in another place, or all of it */
        add_op(extra, BAM_CHARD_CLIP, clip);
        add_op(extra, BAM_CMATCH, n - clip);
        draw_position(extra, extra->ref_len);
        fill_mapped(extra);
        extra->no_seq = !clip; /* bwa prints secondary records without bases */
    }
    emit(&reads[0], first, is_pair ? &reads[1] : NULL, has_extra && clip ? extra : NULL);
    if (has_extra)
        emit(extra, first | (clip ? BAM_FSUPPLEMENTARY : BAM_FSECONDARY),
             is_pair ? &reads[1] : NULL, clip ? &reads[0] : NULL);
    if (is_pair) emit(&reads[1], flag | BAM_FREAD2, &reads[0], NULL);
}

/* ---- options, header, main ---- */

static const char usage[] =
    "simulate-reads [options] writes alignments in an aligner's order (not sorted).\n"
    "  -n N     records, with K, M or G for 10^3, 10^6, 10^9 [1M]\n"
    "  -L N     genome length [human]; 25 chromosomes of human proportions\n"
    "  -m MODE  short: pairs of 150 bases [default]; pileup: 30 % of the records at one position;\n"
    "           unmapped; long: 10 kb and more, some with more than 65,535 CIGAR operations\n"
    "  -d N     percent of the proper pairs that lie where an earlier one lies, 0 to 99 [0]\n"
    "  -s SEED [1], -o FILE [-], -O sam or bam [by FILE, otherwise sam], -l LEVEL, -@ THREADS\n";

static uint64_t parse_number(const char *text)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    unsigned long long unit = *end == 'K' ? 1000 : *end == 'M' ? 1000000 : *end == 'G' ? 1e9 : 1;

    if (*text < '0' || *text > '9' || end[unit > 1] || n > (UINT64_C(1) << 40) / unit)
        die(text, "a number like 500, 20K or 6M is needed");
    return n * unit;
}

/* Lays out the chromosomes and makes the header, which is the same for SAM and BAM. */
static void make_header(void)
{
    uint64_t human = 0;
    for (int i = 0; i < N_CHROMS; i++)
        human += chrom_kb[i] * UINT64_C(1000);
    if (!genome_len) genome_len = human;
    if (genome_len < (mode == MODE_LONG ? 20000000 : 100000)) die("-L", "the genome is too short");
    add("@HD\tVN:1.6\tSO:unsorted\tGO:query\n");
    for (int i = 0; i < N_CHROMS; i++) {
        uint64_t length = chrom_kb[i] * UINT64_C(1000) * genome_len / human + 1;
        chrom_start[i + 1] = chrom_start[i] + length;
        (void)snprintf(chrom_names[i], sizeof chrom_names[i], i < 22 ? "chr%d" : "chr%c",
                       i < 22 ? i + 1 : "XYM"[i - 22]);
        add("@SQ\tSN:%s\tLN:%" PRIu64 "\n", chrom_names[i], length);
    }
    for (int i = 1; i <= 2; i++)
        add("@RG\tID:HX7KJDSX.%d\tSM:sim\tLB:lib1\tPL:ILLUMINA\n", i);
    add("@PG\tID:simulate-reads\tCL:simulate-reads -m %s -s %" PRIu64 " -L %" PRIu64 " -d %" PRIu64
        " -n %" PRIu64 "\n", mode_names[mode], seed, genome_len, duplicates, n_records);
    header = sam_hdr_init();
    need(header && sam_hdr_add_lines(header, line.s, line.l) >= 0);
}

int main(int argc, char **argv)
{
    const char *output = "-", *format = NULL, *level = "";
    int n_threads = 0, c;

    while ((c = getopt(argc, argv, "n:L:m:d:s:o:O:l:@:h")) != -1) {
        switch (c) {
        case 'n': n_records = parse_number(optarg); break;
        case 'L': genome_len = parse_number(optarg); break;
        case 'm':
            for (mode = 0; strcmp(optarg, mode_names[mode]);)
                if (++mode == N_MODES) die(optarg, "no mode: see -h");
            break;
        case 'd': duplicates = parse_number(optarg); break;
        case 's': seed = parse_number(optarg); break;
        case 'o': output = optarg; break;
        case 'O': format = optarg; break;
        case 'l': level = optarg; break;
        case '@': n_threads = (int)parse_number(optarg); break;
        case 'h': return fputs(usage, stdout) < 0;
        default: return 1;
        }
    }
    if (optind < argc || !n_records || duplicates > 99) die("bad options", "see -h");
    size_t n = strlen(output);
    bool is_bam = !strcmp(format ? format : n > 4 ? output + n - 3 : "sam", "bam");
    random_state = mix64(seed);
    make_header();
    record = bam_init1();
    char open_mode[4] = {'w', is_bam ? 'b' : '\0', *level, '\0'};
    out = sam_open(output, open_mode);
    if (!out) die(output, strerror(errno));
    if (n_threads) need(!hts_set_threads(out, n_threads));
    need(record && sam_hdr_write(out, header) >= 0);
    while (n_written < n_records)
        make_template(n_records - n_written);
    need(sam_close(out) >= 0);
    return 0;
}
