/*
 * test_record_counts.c -- the counts of random records, divided into output chunks at random,
 * compared with a plain count of each number: of flagstat and idxstats record by record, of
 * coverage with an array of depths. test/cli/sort/test_counts.py compares the texts with those of
 * samtools.
 */
#include "unit_test.h"

#include "stats/count_kinds.h"
#include "stats/flagstat.h"

enum { N_REFS = 5, MOST_OPS = 6, REF_BASES = 900, MOST_BYTES = 4096 };

static const char *const ref_names[N_REFS] = {"one", "two", "three", "four", "five"};

struct depths {                 /* what coverage.h says of one reference, counted plainly */
    uint64_t n_records, mapq, n_quals, quals;
    bool is_crossed;
    uint32_t depth[REF_BASES];
};

struct counted {
    uint64_t flagstat[FLAGSTAT_N_LINES][2];
    uint64_t idxstats[N_REFS + 1][2];
    struct depths refs[N_REFS];
};

static sam_hdr_t *make_header(void)
{
    sam_hdr_t *header = sam_hdr_init();
    assert_non_null(header);
    for (int i = 0; i < N_REFS; i++) {
        char length[16];
        (void)snprintf(length, sizeof length, "%d", REF_BASES);
        assert_int_equal(sam_hdr_add_line(header, "SQ", "SN", ref_names[i], "LN", length, NULL), 0);
    }
    return header;
}

/* A record with a random CIGAR and qualities. */
static size_t make_record(struct rng *rng, uint8_t *rec, int32_t tid, int32_t pos, size_t longest)
{
    static const uint32_t read_ops[] = {BAM_CMATCH, BAM_CINS, BAM_CSOFT_CLIP, BAM_CEQUAL,
                                        BAM_CDIFF};
    uint32_t ops[MOST_OPS], n_ops = (uint32_t)rng_below(rng, MOST_OPS + 1);
    int32_t n_bases = 0;
    for (uint32_t i = 0; i < n_ops; i++) {
        bool reads = rng_one_in(rng, 2);
        uint32_t op = reads ? read_ops[rng_below(rng, 5)]
                            : (uint32_t)(rng_one_in(rng, 2) ? BAM_CDEL : BAM_CREF_SKIP);
        uint32_t n = 1 + (uint32_t)rng_below(rng, op == BAM_CREF_SKIP ? 200 : longest);
        ops[i] = n << BAM_CIGAR_SHIFT | op;
        n_bases += reads ? (int32_t)n : 0;
    }
    struct record_fields fields = {
        .name = "r", .tid = tid, .pos = pos, .flag = random_flag(rng), .n_cigar = n_ops,
        .l_seq = rng_one_in(rng, 5) ? 0 : n_bases,
    };
    if (rng_one_in(rng, 2)) fields.flag = (uint32_t)rng_below(rng, 0x1000);
    size_t n_bytes = put_record(rec, &fields, 0);
    assert_true(n_bytes <= MOST_BYTES);
    for (uint32_t i = 0; i < n_ops; i++) test_put_u32(rec + 38 + 4 * i, ops[i]);
    rng_fill(rng, rec + n_bytes - fields.l_seq, (size_t)fields.l_seq);
    rec[13] = (uint8_t)rng_below(rng, 9);
    test_put_u32(rec + 24, rng_one_in(rng, 2) ? (uint32_t)tid : (uint32_t)rng_below(rng, N_REFS));
    return n_bytes;
}

static void count_flags(struct counted *counted, const bam1_core_t *c)
{
    int failed = c->flag & BAM_FQCFAIL ? 1 : 0;
    bool mapped = !(c->flag & BAM_FUNMAP);
#define COUNT(line) counted->flagstat[FLAGSTAT_##line][failed]++
    COUNT(TOTAL);
    if (mapped) COUNT(MAPPED);
    if (c->flag & BAM_FDUP) COUNT(DUPLICATES);
    if (c->flag & BAM_FSECONDARY) {
        COUNT(SECONDARY);
        return;
    }
    if (c->flag & BAM_FSUPPLEMENTARY) {
        COUNT(SUPPLEMENTARY);
        return;
    }
    COUNT(PRIMARY);
    if (mapped) COUNT(PRIMARY_MAPPED);
    if (c->flag & BAM_FDUP) COUNT(PRIMARY_DUPLICATES);
    if (!(c->flag & BAM_FPAIRED)) return;
    COUNT(PAIRED);
    if (c->flag & BAM_FREAD1) COUNT(READ1);
    if (c->flag & BAM_FREAD2) COUNT(READ2);
    if (!mapped) return;
    if (c->flag & BAM_FPROPER_PAIR) COUNT(PROPER);
    if (c->flag & BAM_FMUNMAP) {
        COUNT(SINGLETONS);
        return;
    }
    COUNT(BOTH_MAPPED);
    if (c->mtid == c->tid) return;
    COUNT(OTHER_REFERENCE);
    if (c->qual >= 5) COUNT(OTHER_REFERENCE_SURE);
#undef COUNT
}

static void count_depths(struct depths *ref, const bam1_core_t *c, const uint8_t *ops,
                         const uint8_t *quals)
{
    int64_t x = c->pos;
    ref->n_records++;
    ref->mapq += c->qual;
    for (uint32_t i = 0; i < c->n_cigar; i++) {
        uint32_t op = get_u32(ops + 4 * i) & 15, n = get_u32(ops + 4 * i) >> 4;
        for (uint32_t k = 0; k < n; k++) {
            bool reads = op == BAM_CMATCH || op == BAM_CINS || op == BAM_CSOFT_CLIP ||
                         op == BAM_CEQUAL || op == BAM_CDIFF;
            bool moves = op != BAM_CINS && op != BAM_CSOFT_CLIP;
            if (reads && moves && x >= 0 && x < REF_BASES) {
                ref->depth[x]++;
                ref->n_quals += c->l_qseq > 0;
                ref->quals += c->l_qseq > 0 ? *quals : 0;
            }
            if (reads && c->l_qseq > 0) quals++;
            x += moves;
            ref->is_crossed |= moves;
        }
    }
}

static void count_plainly(struct counted *counted, const uint8_t *rec)
{
    const bam1_core_t c = {
        .tid = bam_record_tid(rec), .pos = bam_record_pos(rec), .mtid = bam_record_mate_tid(rec),
        .flag = (uint16_t)bam_record_flag(rec), .qual = rec[13], .l_qseq = bam_record_n_bases(rec),
        .n_cigar = (uint32_t)bam_record_n_ops(rec),
    };
    count_flags(counted, &c);
    counted->idxstats[c.tid + 1][c.flag & BAM_FUNMAP ? 1 : 0]++;
    if (c.tid >= 0 && !(c.flag & (BAM_FUNMAP | BAM_FSECONDARY | BAM_FQCFAIL | BAM_FDUP)))
        count_depths(&counted->refs[c.tid], &c, bam_record_ops(rec), bam_record_quals(rec));
}

static char *print_counts(const struct record_observer *counts)
{
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *to = open_memstream(&text, &n_bytes);
    assert_non_null(to);
    counts->kind->print(counts, to);
    assert_int_equal(fclose(to), 0);
    return text;
}

static void add_record(struct record_observer *counts, void *part, const uint8_t *rec)
{
    const struct observed_records one = {.all = {rec, rec + bam_record_bytes(rec)}};
    assert_int_equal(counts->kind->add_records(counts, part, &one), 0);
}

static void check_flagstat(const struct rng *rng, const struct counted *counted, const char *at)
{
    for (int i = 0; i < FLAGSTAT_N_LINES; i++) {
        char *end;
        CHECK(rng, strtoull(at, &end, 10) == counted->flagstat[i][0]);
        CHECK(rng, strtoull(end + 3, &end, 10) == counted->flagstat[i][1]);
        at = strchr(at, '\n') + 1;
    }
    CHECK(rng, *at == 0);
}

static void check_idxstats(const struct rng *rng, const struct counted *counted, const char *at)
{
    char line[128];
    for (int i = 1; i <= N_REFS; i++, at = strchr(at, '\n') + 1) {
        int n = snprintf(line, sizeof line, "%s\t%d\t%" PRIu64 "\t%" PRIu64 "\n", ref_names[i - 1],
                         REF_BASES, counted->idxstats[i][0], counted->idxstats[i][1]);
        CHECK(rng, strncmp(at, line, (size_t)n) == 0);
    }
    (void)snprintf(line, sizeof line, "*\t0\t0\t%" PRIu64 "\n",
                   counted->idxstats[0][0] + counted->idxstats[0][1]);
    CHECK(rng, strcmp(at, line) == 0);
}

static void check_coverage(const struct rng *rng, const struct counted *counted, const char *at)
{
    at = strchr(at, '\n') + 1;
    for (int i = 0; i < 2 * N_REFS; i++) {
        const struct depths *ref = &counted->refs[i % N_REFS];
        if (ref->is_crossed != (i < N_REFS)) continue;
        uint64_t n_covered = 0, depth = 0;
        for (size_t k = 0; k < REF_BASES; k++) {
            n_covered += ref->depth[k] > 0;
            depth += ref->depth[k];
        }
        char line[256];
        int n = snprintf(
            line, sizeof line, "%s\t1\t%d\t%" PRIu64 "\t%" PRIu64 "\t%g\t%g\t%.3g\t%.3g\n",
            ref_names[i % N_REFS], REF_BASES, ref->n_records, n_covered,
            100.0 * (double)n_covered / REF_BASES, (double)depth / REF_BASES,
            ref->n_quals ? (double)ref->quals / (double)ref->n_quals : 0,
            ref->n_records ? (double)ref->mapq / (double)ref->n_records : 0);
        CHECK(rng, strncmp(at, line, (size_t)n) == 0);
        at = strchr(at, '\n') + 1;
    }
    CHECK(rng, *at == 0);
}

/* Ends a part and begins another one. The part before it ends only now, as output chunks may be
   merged at the same time. */
static void *next_part(struct record_observer *counts, void *part)
{
    void *next = counts->kind->begin(counts);
    if (counts->kind->end) counts->kind->end(counts, part);
    assert_int_equal(counts->kind->combine(counts, part), 0);
    return next;
}

/* Ends the last part. */
static void finish(struct record_observer *counts, void *part)
{
    counts->kind->discard(next_part(counts, part));
    if (counts->kind->finish) counts->kind->finish(counts);
}

TEST(test_counts_of_chunk_are_those_of_the_records)
{
    for (size_t seed = 0; seed < 120; seed++) {
        struct rng rng = rng_start(3000 + seed);
        OWNED struct counted *counted = calloc(1, sizeof *counted);
        assert_non_null(counted);
        OWNED_HEADER sam_hdr_t *header = make_header();
        struct record_observer *counts[COUNT_N_KINDS];
        void *parts[COUNT_N_KINDS];
        for (int kind = 0; kind < COUNT_N_KINDS; kind++) {
            counts[kind] = count_kind_observer((enum count_kind)kind, header);
            parts[kind] = counts[kind]->kind->begin(counts[kind]);
        }
        size_t most_records = seed % 3 ? 400 : 30, a_chunk = 2 + rng_below(&rng, 60);
        for (int32_t tid = 0; tid <= N_REFS; tid++) {
            bool is_placed = tid < N_REFS;
            int32_t pos = -1;
            for (size_t n = rng_one_in(&rng, 4) ? 0 : rng_below(&rng, most_records); n-- > 0;) {
                uint8_t rec[MOST_BYTES];
                (void)make_record(&rng, rec, is_placed ? tid : -1, is_placed ? pos : -1,
                                  seed % 4 == 1 ? 2 : 60);
                count_plainly(counted, rec);
                for (int kind = 0; kind < COUNT_N_KINDS; kind++)
                    add_record(counts[kind], parts[kind], rec);
                pos += (int32_t)rng_below(&rng, seed % 2 ? 3 : 30);
                while (rng_one_in(&rng, a_chunk))
                    for (int kind = 0; kind < COUNT_N_KINDS; kind++)
                        parts[kind] = next_part(counts[kind], parts[kind]);
            }
        }
        void (*const checks[COUNT_N_KINDS])(const struct rng *, const struct counted *,
                                            const char *) = {check_flagstat, check_idxstats,
                                                             check_coverage};
        for (int kind = 0; kind < COUNT_N_KINDS; kind++) {
            finish(counts[kind], parts[kind]);
            OWNED char *text = print_counts(counts[kind]);
            checks[kind](&rng, counted, text);
            counts[kind]->kind->destroy(counts[kind]);
        }
    }
}

/* High qualities of reads of all lengths around the steps in which they are added. */
TEST(test_high_qualities_of_any_length_are_summed)
{
    enum { MOST = 5000 };
    OWNED uint8_t *rec = test_alloc(MOST * 2);
    for (int32_t n = 1; n <= MOST; n += n < 40 ? 1 : 331) {
        OWNED_HEADER sam_hdr_t *header = sam_hdr_init();
        assert_non_null(header);
        assert_int_equal(sam_hdr_add_line(header, "SQ", "SN", "a", "LN", "10000", NULL), 0);
        struct record_observer *counts = coverage_observer(header);
        void *part = counts->kind->begin(counts);
        const struct record_fields fields = {.name = "r", .pos = 3, .n_cigar = 1, .l_seq = n};
        (void)put_record(rec, &fields, 254);
        add_record(counts, part, rec);
        finish(counts, part);
        char *text = print_counts(counts), want[64];
        (void)snprintf(want, sizeof want, "\na\t1\t10000\t1\t%d\t", n);
        assert_non_null(strstr(text, want));
        assert_non_null(strstr(text, "\t254\t60\n"));
        free(text);
        counts->kind->destroy(counts);
    }
}

TEST(test_percentages_have_single_precision)
{
    struct flagstat stat = {0};
    stat.n[FLAGSTAT_TOTAL][0] = 123456789;
    stat.n[FLAGSTAT_MAPPED][0] = 123450617;     /* 100.00 % in double precision */
    OWNED char *text = NULL;
    size_t n_bytes = 0;
    FILE *to = open_memstream(&text, &n_bytes);
    assert_non_null(to);
    flagstat_print(&stat, to);
    assert_int_equal(fclose(to), 0);
    assert_non_null(strstr(text, "\n123450617 + 0 mapped (99.99% : N/A)\n"));
    assert_non_null(strstr(text, "\n0 + 0 properly paired (N/A : N/A)\n"));
}
