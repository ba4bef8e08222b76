/*
 * test_bam_record.c -- raw records: they are byte for byte what htslib writes and reads, and
 * records that lie about themselves are refused.
 *
 * Records come from SAM lines; htslib parses them, bam_record_pack packs them, and what htslib
 * writes for the same record is read back as plain bytes.
 */
#include "random_records.h"

#include "bam/bam_check.h"
#include "bam/bam_convert.h"
#include "bam/bam_fields.h"
#include "bam/bam_long.h"

#include <htslib/bgzf.h>
#include <unistd.h>

enum { N_REFS = 3 };

static const char header_text[] = "@HD\tVN:1.6\n@SQ\tSN:c1\tLN:2147483647\n@SQ\tSN:c2\tLN:1000\n"
                                  "@SQ\tSN:c3\tLN:536870912\n";

struct text {                   /* SAM text that is being put together */
    char *at;
    size_t n_bytes, room;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...)
{
    va_list args;
    if (text->room - text->n_bytes < 4096) {
        text->room = 2 * text->room + 8192;
        text->at = realloc(text->at, text->room);
        assert_non_null(text->at);
    }
    va_start(args, format);
    int n = vsnprintf(text->at + text->n_bytes, text->room - text->n_bytes, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < text->room - text->n_bytes);
    text->n_bytes += (size_t)n;
}

static void add_letters(struct rng *rng, struct text *text, size_t n, const char *letters)
{
    size_t n_letters = strlen(letters);
    for (size_t i = 0; i < n; i++) add(text, "%c", letters[rng_below(rng, n_letters)]);
}

static void add_tags(struct rng *rng, struct text *text)
{
    static const char types[] = "cCsSiIf";
    if (rng_one_in(rng, 2)) add(text, "\tXA:A:%c", (int)('!' + rng_below(rng, 94)));
    if (rng_one_in(rng, 2)) add(text, "\tXi:i:%d", (int)(rng_next(rng) >> rng_below(rng, 64)));
    if (rng_one_in(rng, 2)) add(text, "\tXu:i:%u", 4294967295u);
    if (rng_one_in(rng, 2)) add(text, "\tXf:f:%g", 0.25 * (double)rng_below(rng, 1000));
    if (rng_one_in(rng, 2)) {
        add(text, "\tXZ:Z:");
        add_letters(rng, text, rng_below(rng, 200), " ~abc:0");
    }
    if (rng_one_in(rng, 2)) add(text, "\tXH:H:1AE301");
    if (rng_one_in(rng, 2)) {
        char type = types[rng_below(rng, sizeof types - 1)];
        add(text, "\tXB:B:%c", type);
        for (size_t i = 0, n = rng_below(rng, 50); i < n; i++)
            add(text, ",%u", (unsigned)rng_below(rng, 128));
    }
}

/* n operations, all of them one or two bases; returns how many bases of the read they take. */
static size_t add_cigar(struct rng *rng, struct text *text, size_t n)
{
    size_t n_bases = 0;
    if (n == 0) add(text, "*");
    for (size_t i = 0; i < n; i++) {
        size_t length = 1 + rng_below(rng, 2), op = rng_below(rng, 9);
        add(text, "%zu%c", length, "MIDNSHP=X"[op]);
        if (strchr("MIS=X", "MIDNSHP=X"[op])) n_bases += length;
    }
    return n_bases;
}

struct line {
    const char *name;
    unsigned flag;
    const char *ref;
    long pos;                   /* as SAM has it: from 1; 0: none */
    size_t n_cigar;
    bool has_seq;
};

static void add_line(struct rng *rng, struct text *text, const struct line *line)
{
    add(text, "%s\t%u\t%s\t%ld\t%u\t", line->name, line->flag, line->ref, line->pos,
        (unsigned)rng_below(rng, 256));
    size_t n_bases = add_cigar(rng, text, line->n_cigar);
    if (line->n_cigar == 0) n_bases = rng_below(rng, 400);
    add(text, "\t%s\t%d\t%d\t", line->ref[0] == '*' ? "*" : "=", (int)rng_below(rng, 2000),
        (int)rng_below(rng, 2000) - 1000);
    if (line->has_seq && n_bases > 0) {
        add_letters(rng, text, n_bases, "=ACMGRSVTWYHKDBN");
        add(text, "\t");
        if (n_bases > 1 && rng_one_in(rng, 2))
            add_letters(rng, text, n_bases, "!#+5F~");
        else
            add(text, "*");
    } else {
        add(text, "*\t*");
    }
    add_tags(rng, text);
    add(text, "\n");
}

static void add_ordinary_lines(struct rng *rng, struct text *text)
{
    static const char *const refs[] = {"c1", "c2", "c3", "*"};
    char name[TEST_MAX_NAME + 1];
    for (size_t length = 1; length <= TEST_MAX_NAME; length++) {
        name_of_letters(rng, name, length, "abc0189:/~");
        struct line line = {name, random_flag(rng), refs[rng_below(rng, 4)], 0, 0, true};
        if (line.ref[0] != '*') {
            line.pos = (long)(rng_next(rng) >> (33 + rng_below(rng, 30)));
            line.n_cigar = rng_one_in(rng, 3) ? 0 : 1 + rng_below(rng, 12);
        }
        line.has_seq = !rng_one_in(rng, 4);
        add_line(rng, text, &line);
    }
    struct line last = {"at_the_end", 0, "c1", 2147483647, 1, true};
    add_line(rng, text, &last);
    last.pos = 2147483640;
    last.n_cigar = 100;
    add_line(rng, text, &last);
}

/* On both sides of 65,535 operations, mapped or not, with and without bases. */
static void add_long_cigar_lines(struct rng *rng, struct text *text)
{
    static const size_t n_ops[] = {65534, 65535, 65536, 70000};
    char name[16];
    for (size_t i = 0; i < sizeof n_ops / sizeof *n_ops; i++) {
        for (unsigned kind = 0; kind < 8; kind++) {
            (void)snprintf(name, sizeof name, "%.*s", 1 + (int)(kind % 4), "long");
            struct line line = {name, (kind & 2) ? 4 : 16, "c1", 1000000, n_ops[i], kind & 1};
            if (kind & 4) line.pos = 400000000;
            if (kind == 6) line.pos = 0;
            if (kind == 7) line.ref = "*";
            add_line(rng, text, &line);
        }
    }
}

static void make_temp_path(char path[64])
{
    strcpy(path, "/tmp/rocksort-test-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fwrite(bytes, 1, n, file) == n);
    assert_int_equal(fclose(file), 0);
}

/* The next record of a file of bam_write1's records without a header, as plain bytes, or NULL. */
static uint8_t *next_raw_record(BGZF *bgzf)
{
    uint8_t size[4];
    ssize_t n = bgzf_read(bgzf, size, 4);
    assert_true(n == 4 || n == 0);
    if (n == 0) return NULL;
    size_t rec_bytes = (size_t)size[0] + 4 + ((size_t)size[1] << 8) + ((size_t)size[2] << 16) +
                       ((size_t)size[3] << 24);
    uint8_t *rec = test_alloc(rec_bytes);
    memcpy(rec, size, 4);
    assert_true(bgzf_read(bgzf, rec + 4, rec_bytes - 4) == (ssize_t)(rec_bytes - 4));
    return rec;
}

static void check_same_record(struct rng *rng, const bam1_t *ours, const bam1_t *theirs)
{
    const bam1_core_t *a = &ours->core, *b = &theirs->core;
    CHECK(rng, a->tid == b->tid && a->pos == b->pos && a->flag == b->flag && a->qual == b->qual);
    CHECK(rng, a->mtid == b->mtid && a->mpos == b->mpos && a->isize == b->isize);
    CHECK(rng, a->l_qname == b->l_qname && a->l_extranul == b->l_extranul);
    CHECK(rng, a->n_cigar == b->n_cigar && a->l_qseq == b->l_qseq);
    CHECK(rng, a->bin == b->bin);
    CHECK(rng, ours->l_data == theirs->l_data);
    CHECK(rng, memcmp(ours->data, theirs->data, (size_t)theirs->l_data) == 0);
    CHECK(rng, ours->m_data >= (uint32_t)ours->l_data);
}

/* Packs every line of a SAM file, and writes them with htslib; then compares what both made. */
static size_t check_packing(struct rng *rng, const struct text *text)
{
    char sam_path[64], bam_path[64];
    make_temp_path(sam_path);
    make_temp_path(bam_path);
    write_file(sam_path, text->at, text->n_bytes);
    samFile *sam = sam_open(sam_path, "r");
    BGZF *out = bgzf_open(bam_path, "w1");
    bam1_t *b = bam_init1();
    assert_true(sam && out && b);
    sam_hdr_t *header = sam_hdr_read(sam);
    assert_non_null(header);
    size_t n = 0, n_room = 4096;
    uint8_t **packed = test_alloc(n_room * sizeof *packed);
    int r;
    while ((r = sam_read1(sam, header, b)) >= 0) {
        size_t size = bam_record_packed_bytes(b);
        CHECK(rng, n < n_room && size > 0);
        packed[n] = test_alloc(size);
        bam_record_pack(b, packed[n]);
        CHECK(rng, bam_record_bytes(packed[n]) == size);
        CHECK(rng, bam_record_check(packed[n], N_REFS) == NULL);
        CHECK(rng, bam_write1(out, b) > 0);
        n++;
    }
    CHECK(rng, r == -1);
    assert_int_equal(bgzf_close(out), 0);
    assert_int_equal(sam_close(sam), 0);
    BGZF *plain = bgzf_open(bam_path, "r"), *again = bgzf_open(bam_path, "r");
    assert_true(plain && again);
    bam1_t *unpacked = bam_init1();
    assert_non_null(unpacked);
    for (size_t i = 0; i < n; i++) {
        uint8_t *theirs = next_raw_record(plain);
        assert_non_null(theirs);
        CHECK(rng, bam_record_bytes(packed[i]) == bam_record_bytes(theirs));
        CHECK(rng, memcmp(packed[i], theirs, bam_record_bytes(theirs)) == 0);
        CHECK(rng, bam_read1(again, b) > 0);
        CHECK(rng, bam_record_unpack(packed[i], unpacked) == 0);
        check_same_record(rng, unpacked, b);
        /* And back to the same bytes. */
        CHECK(rng, bam_record_packed_bytes(unpacked) == bam_record_bytes(theirs));
        uint8_t *repacked = test_alloc(bam_record_bytes(theirs));
        bam_record_pack(unpacked, repacked);
        CHECK(rng, memcmp(repacked, theirs, bam_record_bytes(theirs)) == 0);
        free(repacked);
        free(theirs);
        free(packed[i]);
    }
    assert_null(next_raw_record(plain));
    assert_int_equal(bgzf_close(plain), 0);
    assert_int_equal(bgzf_close(again), 0);
    assert_int_equal(unlink(sam_path), 0);
    assert_int_equal(unlink(bam_path), 0);
    bam_destroy1(unpacked);
    bam_destroy1(b);
    sam_hdr_destroy(header);
    free(packed);
    return n;
}

static void test_packs_as_htslib_writes(void **state)
{
    (void)state;
    struct rng rng = rng_start(71);
    struct text text = {0};
    add(&text, "%s", header_text);
    for (int i = 0; i < 4; i++) add_ordinary_lines(&rng, &text);
    CHECK(&rng, check_packing(&rng, &text) == (size_t)4 * (TEST_MAX_NAME + 2));
    free(text.at);
}

static void test_packs_long_cigars_as_htslib_writes(void **state)
{
    (void)state;
    struct rng rng = rng_start(72);
    struct text text = {0};
    add(&text, "%s", header_text);
    add_long_cigar_lines(&rng, &text);
    CHECK(&rng, check_packing(&rng, &text) == 32);
    free(text.at);
}

enum { CG_BASES = 7 };

/* A record with a CIGAR of two operations and tags, all chosen by the caller. */
static size_t put_with_tags(uint8_t *out, uint32_t flag, const uint32_t cigar[2],
                            const uint8_t *tags, size_t tag_bytes)
{
    /* With and without the three bases that the operations cover it lies in different bins. */
    struct record_fields f = {.name = "placeholder", .tid = 0, .pos = 16383, .flag = flag,
                              .n_cigar = 2, .l_seq = CG_BASES, .tag_bytes = tag_bytes};
    size_t size = put_record(out, &f, 0x11);
    size_t cigar_at = 36 + strlen(f.name) + 1;
    test_put_u32(out + cigar_at, cigar[0]);
    test_put_u32(out + cigar_at + 4, cigar[1]);
    memcpy(out + size - tag_bytes, tags, tag_bytes);
    test_put_u16(out + 14, 77);                 /* not trusted: computed anew */
    return size;
}

/*
 * Records with a CG tag, by itself or between others, that holds the CIGAR or only seems to: they
 * unpack as htslib reads them.
 */
static void test_unpacks_cg_tags_as_htslib_reads(void **state)
{
    (void)state;
    struct rng rng = rng_start(73);
    enum { L = CG_BASES };
    const uint32_t placeholder[2] = {L << 4 | BAM_CSOFT_CLIP, 5 << 4 | BAM_CREF_SKIP};
    const uint32_t other[2] = {(L - 1) << 4 | BAM_CSOFT_CLIP, 1 << 4 | BAM_CMATCH};
    const uint32_t matching[2] = {L << 4 | BAM_CMATCH, 5 << 4 | BAM_CREF_SKIP};
#define CG(type, count) 'C', 'G', 'B', type, count, 0, 0, 0
#define OPS 0x30, 0, 0, 0, 0x41, 0, 0, 0, 0x32, 0, 0, 0 /* 3M4I3D */
    static const uint8_t alone[] = {CG('I', 3), OPS};
    static const uint8_t as_int32[] = {CG('i', 3), OPS};
    static const uint8_t first[] = {CG('I', 3), OPS, 'N', 'M', 'C', 7, 'X', 'Z', 'Z', 'h', 'i', 0};
    static const uint8_t middle[] = {'N', 'M', 'C', 7, CG('I', 3), OPS, 'X', 'A', 'A', 'q'};
    static const uint8_t last[] = {'X', 'Z', 'Z', 'C', 'G', 'B', 'I', 0, CG('I', 3), OPS};
    static const uint8_t too_few[] = {CG('I', 1), 0x30, 0, 0, 0};
    static const uint8_t other_type[] = {CG('S', 2), 0x30, 0, 0x11, 0};
    static const uint8_t no_array[] = {'C', 'G', 'Z', 'I', 3, 0};
    const struct {
        const uint8_t *tags;
        size_t tag_bytes;
        bool moves;
    } cases[] = {
        {alone, sizeof alone, true},     {as_int32, sizeof as_int32, true},
        {first, sizeof first, true},     {middle, sizeof middle, true},
        {last, sizeof last, true},       {too_few, sizeof too_few, false},
        {other_type, sizeof other_type, false}, {no_array, sizeof no_array, false},
        {alone, 0, false},
    };
    const uint32_t *const cigars[] = {placeholder, other, matching};
    char path[64];
    uint8_t rec[256];
    bam1_t *ours = bam_init1(), *theirs = bam_init1();
    assert_true(ours && theirs);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t c = 0; c < 6; c++) {
            size_t size = put_with_tags(rec, c < 3 ? 0 : BAM_FUNMAP, cigars[c % 3], cases[i].tags,
                                        cases[i].tag_bytes);
            uint8_t *exact = test_alloc(size);
            memcpy(exact, rec, size);
            make_temp_path(path);
            BGZF *bgzf = bgzf_open(path, "w");
            assert_non_null(bgzf);
            CHECK(&rng, bgzf_write(bgzf, rec, size) == (ssize_t)size);
            assert_int_equal(bgzf_close(bgzf), 0);
            bgzf = bgzf_open(path, "r");
            assert_non_null(bgzf);
            CHECK(&rng, bam_read1(bgzf, theirs) > 0);
            assert_int_equal(bgzf_close(bgzf), 0);
            CHECK(&rng, bam_record_unpack(exact, ours) == 0);
            bool moved = c % 3 == 0 && cases[i].moves;
            CHECK(&rng, (ours->core.n_cigar == 3) == moved);
            check_same_record(&rng, ours, theirs);
            assert_int_equal(unlink(path), 0);
            free(exact);
        }
    }
    bam_destroy1(ours);
    bam_destroy1(theirs);
}

/* What BAM has no room for, SAM and CRAM may: a position beyond 2^31 - 1. */
static void test_what_bam_cannot_hold(void **state)
{
    (void)state;
    bam1_t *b = bam_init1();
    assert_non_null(b);
    assert_true(bam_set1(b, 1, "r", 0, 0, 100, 60, 0, NULL, 0, 200, 50, 0, NULL, NULL, 0) >= 0);
    assert_int_equal(bam_record_packed_bytes(b), 36 + 2);
    b->core.pos = INT32_MAX;
    assert_int_equal(bam_record_packed_bytes(b), 36 + 2);
    b->core.pos = (hts_pos_t)INT32_MAX + 1;
    assert_int_equal(bam_record_packed_bytes(b), 0);
    b->core.pos = 100;
    b->core.mpos = (hts_pos_t)INT32_MAX + 1;
    assert_int_equal(bam_record_packed_bytes(b), 0);
    b->core.mpos = 200;
    b->core.isize = (hts_pos_t)INT32_MAX + 1;
    assert_int_equal(bam_record_packed_bytes(b), 0);
    b->core.isize = (hts_pos_t)INT32_MIN - 1;
    assert_int_equal(bam_record_packed_bytes(b), 0);
    b->core.isize = INT32_MIN;
    assert_int_equal(bam_record_packed_bytes(b), 36 + 2);
    bam_destroy1(b);
}

/* A coordinate around one of the limits, or any. */
static hts_pos_t random_coordinate(struct rng *rng, bool negative)
{
    static const hts_pos_t limits[] = {0, INT32_MAX, UINT32_MAX, INT64_C(1) << 40};
    hts_pos_t at = limits[rng_below(rng, 4)] + (hts_pos_t)rng_below(rng, 5) - 1;
    return negative && rng_one_in(rng, 2) ? -at : at;
}

/* Such records go from SAM to SAM: what is unpacked is what was packed, at its exact size. */
static void test_long_coordinates(void **state)
{
    (void)state;
    struct rng rng = rng_start(71);
    bam1_t *b = bam_init1(), *back = bam_init1();
    assert_non_null(b);
    assert_non_null(back);
    size_t n_long = 0;
    for (int round = 0; round < 3000; round++) {
        hts_pos_t pos = random_coordinate(&rng, false), mate = random_coordinate(&rng, false);
        hts_pos_t length = random_coordinate(&rng, true);
        uint32_t cigar = 4 << 4 | BAM_CMATCH;
        assert_true(bam_set1(b, 1, "r", 0, 0, pos, 60, 1, &cigar, 0, mate, length, 4, "ACGT",
                             NULL, 100) >= 0);
        if (rng_one_in(&rng, 2)) assert_int_equal(bam_aux_update_str(b, "RG", 3, "xy"), 0);
        size_t plain = bam_record_packed_bytes(b), n_bytes = bam_record_long_bytes(b);
        CHECK(&rng, (plain == 0) == (n_bytes > 0));
        uint8_t *raw = test_alloc(plain + n_bytes);
        if (n_bytes)
            bam_record_pack_long(b, raw);
        else
            bam_record_pack(b, raw);
        n_long += n_bytes > 0;
        CHECK(&rng, bam_record_bytes(raw) == plain + n_bytes && !bam_record_check(raw, 1));
        CHECK(&rng, bam_record_true_pos(raw) == pos && bam_record_true_mate_pos(raw) == mate);
        CHECK(&rng, bam_record_unpack(raw, back) == 0);
        CHECK(&rng, back->core.pos == pos && back->core.mpos == mate);
        CHECK(&rng, back->core.isize == length && back->l_data == b->l_data);
        CHECK(&rng, memcmp(back->data, b->data, (size_t)b->l_data) == 0);
        free(raw);
    }
    CHECK(&rng, n_long > 500 && n_long < 2900);
    bam_destroy1(b);
    bam_destroy1(back);
}

/* The tag that holds long coordinates is ours alone: only at the end, with what SAM can have. */
static void test_forged_long_coordinates(void **state)
{
    (void)state;
    static const uint8_t tag[8] = {1, 1, 'B', 'I', 6, 0, 0, 0};
    struct rng rng = rng_start(72);
    struct record_fields f = {.name = "r", .tid = 0, .pos = INT32_MAX, .tag_bytes = 32 + 8};
    uint8_t rec[128];
    size_t size = put_record(rec, &f, 0);
    uint8_t *values = rec + size - 24, *before = rec + size - 40;
    int64_t sound[3] = {INT64_C(1) << 40, -1, INT64_MIN};
    memcpy(before, "XZZ1234", 8);
    memcpy(values - 8, tag, sizeof tag);
    memcpy(values, sound, sizeof sound);
    assert_true(bam_record_is_long(rec) && !bam_record_check(rec, 1));
    assert_true(bam_record_true_pos(rec) == sound[0]);
    for (int i = 0; i < 2; i++) {
        static const int64_t impossible[] = {-2, INT64_MIN, INT64_MAX, INT64_C(1) << 62};
        for (size_t k = 0; k < 4; k++) {
            memcpy(values + 8 * i, &impossible[k], 8);
            assert_non_null(bam_record_check(rec, 1));
        }
        memcpy(values, sound, sizeof sound);
    }
    /* The same bytes within another tag, or behind what is no tag. */
    memcpy(before, "XZBC\x20\0\0", 8);
    assert_true(!bam_record_is_long(rec) && !bam_record_check(rec, 1));
    assert_true(bam_record_true_pos(rec) == INT32_MAX);
    for (int round = 0; round < 1000; round++) {
        rng_fill(&rng, before, 8);
        (void)bam_record_is_long(rec);
        (void)bam_record_check(rec, 1);
    }
    /* Or as qualities. */
    f = (struct record_fields){.name = "r", .tid = 0, .pos = INT32_MAX, .l_seq = 60};
    size = put_record(rec, &f, 0);
    memcpy(rec + size - 32, tag, sizeof tag);
    assert_true(!bam_record_is_long(rec) && !bam_record_check(rec, 1));
}

/* In place of a long CIGAR stands one operation as long as what it covers: less than 2^28. */
static void test_long_cigar_that_covers_too_much(void **state)
{
    (void)state;
    enum { N = 65536 };
    uint32_t *cigar = test_alloc(N * sizeof *cigar);
    for (size_t i = 0; i < N; i++) cigar[i] = 1 << 4 | (i % 2 ? BAM_CMATCH : BAM_CINS);
    bam1_t *b = bam_init1();
    assert_non_null(b);
    const uint32_t most = (1u << 28) - 1, rest = N / 2 - 1;
    for (uint32_t beyond = 0; beyond < 3; beyond++) {
        cigar[1] = (most - rest) << 4 | BAM_CREF_SKIP;
        cigar[3] = (1 + beyond) << 4 | BAM_CMATCH;
        assert_true(bam_set1(b, 1, "r", 0, 0, 100, 60, N, cigar, -1, -1, 0, 0, NULL, NULL, 0) >= 0);
        assert_true(bam_cigar2rlen((int)b->core.n_cigar, bam_get_cigar(b)) == most + beyond);
        size_t size = 36 + 2 + 8 + 8 + (size_t)N * 4;
        assert_int_equal(bam_record_packed_bytes(b), beyond ? 0 : size);
    }
    bam_destroy1(b);
    free(cigar);
}

struct lie {
    const char *what;
    size_t at, n_bytes;
    uint32_t value;
};

static void test_lying_records_are_refused(void **state)
{
    (void)state;
    /* 36 fixed bytes, "name" and NUL, 3 operations, 5 bases in 3 bytes, 5 qualities, no tags. */
    struct record_fields f = {.name = "name", .tid = 1, .pos = 10, .n_cigar = 3, .l_seq = 5};
    enum { SIZE = 36 + 5 + 12 + 3 + 5 };
    const uint32_t minus = (uint32_t)-1;
    const struct lie lies[] = {
        {"size one too small", 0, 4, SIZE - 4 - 1},
        {"size of the fixed fields", 0, 4, 32},
        {"size below the fixed fields", 0, 4, 31},
        {"size 0", 0, 4, 0},
        {"tid beyond the header", 4, 4, N_REFS},
        {"tid far beyond the header", 4, 4, INT32_MAX},
        {"tid -2", 4, 4, minus - 1},
        {"tid -2^31", 4, 4, UINT32_C(1) << 31},
        {"pos -2", 8, 4, minus - 1},
        {"pos -2^31", 8, 4, UINT32_C(1) << 31},
        {"no name", 12, 1, 0},
        {"name shorter than its NUL", 12, 1, 4},
        {"name longer than its NUL", 12, 1, 6},
        {"name longer than the record", 12, 1, 255},
        {"CIGAR longer than the record by one", 16, 2, 4},
        {"CIGAR much longer than the record", 16, 2, 65535},
        {"bases longer than the record by one", 20, 4, 6},
        {"bases much longer than the record", 20, 4, INT32_MAX},
        {"-1 bases", 20, 4, minus},
        {"-2^31 bases", 20, 4, UINT32_C(1) << 31},
        {"mate's tid beyond the header", 24, 4, N_REFS},
        {"mate's tid -2", 24, 4, minus - 1},
        {"name without its NUL", 40, 1, 'x'},
        {"CIGAR of one base more than there are", 41, 4, 6 << 4 | BAM_CMATCH},
        {"CIGAR of one base less than there are", 41, 4, 4 << 4 | BAM_CMATCH},
        {"CIGAR of other operations", 41, 4, 5 << 4 | BAM_CDEL},
    };
    uint8_t *rec = test_alloc(SIZE), *lying = test_alloc(SIZE);
    assert_int_equal(put_record(rec, &f, 1), SIZE);
    assert_null(bam_record_check(rec, N_REFS));
    assert_null(bam_record_check(rec, 2));
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        memcpy(lying, rec, SIZE);
        for (size_t k = 0; k < lies[i].n_bytes; k++)
            lying[lies[i].at + k] = (uint8_t)(lies[i].value >> (8 * k));
        if (!bam_record_check(lying, N_REFS)) fail_msg("%s was believed", lies[i].what);
    }
    free(lying);
    free(rec);
    /* Shorter than what its fields would take: they are not looked at. */
    for (size_t size = 4; size < 36; size++) {
        uint8_t *stump = test_alloc(size);
        memset(stump, 0, size);
        test_put_u32(stump, (uint32_t)(size - 4));
        assert_non_null(bam_record_check(stump, N_REFS));
        free(stump);
    }
}

/* A long CIGAR is compared with the sequence, too, and not only the operations that hold its place:
   htslib refuses such records, and they were written. */
static void test_long_cigar_against_sequence(void **state)
{
    (void)state;
    enum { L_SEQ = 5, TAG = 8 + 2 * 4 };
    struct record_fields f = {.name = "r", .tid = 0, .pos = 7, .n_cigar = 2, .l_seq = L_SEQ,
                              .tag_bytes = TAG};
    uint8_t rec[128];
    size_t size = put_record(rec, &f, 0);
    uint8_t *cigar = rec + 38, *tag = rec + size - TAG;
    test_put_u32(cigar, L_SEQ << 4 | BAM_CSOFT_CLIP);
    test_put_u32(cigar + 4, 9 << 4 | BAM_CREF_SKIP);
    memcpy(tag, "CGBI\2\0\0\0", 8);
    test_put_u32(tag + 8, 3 << 4 | BAM_CMATCH);
    for (uint32_t n = 0; n < 5; n++) {
        test_put_u32(tag + 12, n << 4 | BAM_CINS);
        assert_true((bam_record_check(rec, 1) == NULL) == (n == L_SEQ - 3));
    }
    /* htslib finds no CIGAR in these. */
    tag[3] = 'c';
    test_put_u32(tag + 4, 8);
    assert_null(bam_record_check(rec, 1));
    test_put_u32(tag + 4, 9);           /* longer than the record: no tag */
    assert_non_null(bam_record_check(rec, 1));
    /* It looks for it in unmapped reads, too, and compares nothing there. */
    test_put_u16(rec + 18, BAM_FUNMAP);
    assert_non_null(bam_record_check(rec, 1));
    test_put_u32(tag + 4, 8);
    test_put_u32(cigar + 4, 9 << 4 | BAM_CINS);
    assert_null(bam_record_check(rec, 1));
}

/*
 * Whether CIGAR and sequence agree is judged as by htslib, which reads all these records: random
 * operations, even such as there are none, and random flags and places. Those that pass unpack as
 * htslib has them.
 */
static void test_cigar_is_judged_as_by_htslib(void **state)
{
    (void)state;
    enum { N = 20000 };
    struct rng rng = rng_start(75);
    char path[64];
    uint8_t (*recs)[64] = test_alloc(N * sizeof *recs);
    bool *good = test_alloc(N * sizeof *good);
    size_t n_good = 0;
    make_temp_path(path);
    BGZF *bgzf = bgzf_open(path, "w1");
    assert_non_null(bgzf);
    for (size_t i = 0; i < N; i++) {
        struct record_fields f = {.name = "r", .flag = random_flag(&rng), .tid = 0,
                                  .pos = (int32_t)rng_below(&rng, 3) - 1,
                                  .n_cigar = (uint32_t)rng_below(&rng, 4),
                                  .l_seq = (int32_t)rng_below(&rng, 5)};
        if (rng_one_in(&rng, 8)) f.tid = -1;
        uint8_t *rec = recs[i];
        CHECK(&rng, record_size(&f) <= sizeof recs[i]);
        size_t size = put_record(rec, &f, 0);
        test_put_u16(rec + 14, 77);             /* the bin: of a record with a CIGAR not trusted */
        for (size_t k = 0; k < f.n_cigar; k++) {
            size_t length = rng_below(&rng, 4), op = rng_below(&rng, rng_one_in(&rng, 4) ? 16 : 9);
            test_put_u32(rec + 38 + 4 * k, (uint32_t)(length << 4 | op));
        }
        good[i] = bam_record_check(rec, N_REFS) == NULL;
        n_good += good[i];
        CHECK(&rng, bgzf_write(bgzf, rec, size) == (ssize_t)size);
    }
    assert_int_equal(bgzf_close(bgzf), 0);
    bgzf = bgzf_open(path, "r");
    bam1_t *b = bam_init1(), *ours = bam_init1();
    assert_true(bgzf && b && ours);
    for (size_t i = 0; i < N; i++) {
        int r = bam_read1(bgzf, b);
        CHECK(&rng, r > 0 || r < -1);
        CHECK(&rng, (r > 0) == good[i]);
        if (r < 0) continue;
        CHECK(&rng, bam_record_unpack(recs[i], ours) == 0);
        check_same_record(&rng, ours, b);
    }
    CHECK(&rng, bam_read1(bgzf, b) == -1);
    CHECK(&rng, n_good > N / 10 && n_good < N - N / 10);
    assert_int_equal(bgzf_close(bgzf), 0);
    assert_int_equal(unlink(path), 0);
    bam_destroy1(ours);
    bam_destroy1(b);
    free(good);
    free(recs);
}

/* A buffer that held a record before may be anything from too small to just large enough. */
static void test_unpacks_into_any_buffer(void **state)
{
    (void)state;
    for (size_t length = 0; length < 9; length++) {
        for (size_t room = 0; room < 64; room++) {
            struct record_fields f = {.name = &"12345678"[8 - length], .tid = -1, .pos = -1,
                                      .l_seq = 10, .tag_bytes = 5};
            uint8_t rec[128];
            size_t size = put_record(rec, &f, 3);
            bam1_t *b = bam_init1();
            assert_non_null(b);
            b->data = test_alloc(room);
            b->m_data = (uint32_t)room;
            assert_int_equal(bam_record_unpack(rec, b), 0);
            assert_string_equal(bam_get_qname(b), f.name);
            assert_int_equal(bam_record_packed_bytes(b), size);
            assert_true(b->m_data >= (uint32_t)b->l_data);
            bam_destroy1(b);
        }
    }
}

/* What is at the limit and yet true. */
static void test_true_records_are_accepted(void **state)
{
    (void)state;
    char longest[TEST_MAX_NAME + 1];
    alternating_name(longest, TEST_MAX_NAME, true);
    const struct record_fields records[] = {
        {.name = "", .tid = -1, .pos = -1},
        {.name = longest, .tid = N_REFS - 1, .pos = INT32_MAX},
        {.name = "a", .tid = 0, .pos = 0, .n_cigar = 65535},
        {.name = "a", .tid = 0, .pos = 0, .l_seq = 1},
        {.name = "a", .tid = -1, .pos = INT32_MAX, .l_seq = 2, .tag_bytes = 1000},
    };
    bam1_t *b = bam_init1();
    assert_non_null(b);
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        const struct record_fields *f = &records[i];
        size_t size = record_size(f);
        uint8_t *rec = test_alloc(size);
        assert_int_equal(put_record(rec, f, 2), size);
        assert_null(bam_record_check(rec, N_REFS));
        assert_int_equal(bam_record_bytes(rec), size);
        assert_int_equal(bam_record_tid(rec), f->tid);
        assert_int_equal(bam_record_pos(rec), f->pos);
        assert_int_equal(bam_record_name_bytes(rec), strlen(f->name) + 1);
        assert_string_equal((const char *)bam_record_name(rec), f->name);
        assert_int_equal(bam_record_unpack(rec, b), 0);
        assert_int_equal(bam_record_packed_bytes(b), size);
        uint8_t *back = test_alloc(size);
        bam_record_pack(b, back);
        assert_memory_equal(back, rec, size);
        free(back);
        free(rec);
    }
    bam_destroy1(b);
    /* Without references only unplaced records are true. */
    uint8_t rec[64];
    struct record_fields f = {.name = "a", .tid = -1, .pos = -1};
    (void)put_record(rec, &f, 0);
    assert_null(bam_record_check(rec, 0));
    f.tid = 0;
    (void)put_record(rec, &f, 0);
    assert_non_null(bam_record_check(rec, 0));
}

/* Random bytes never make the check, or what may be done after it, read beyond the record. */
static void test_random_bytes_stay_within_the_record(void **state)
{
    (void)state;
    struct rng rng = rng_start(74);
    bam1_t *b = bam_init1();
    assert_non_null(b);
    size_t n_accepted = 0;
    for (int round = 0; round < 200000; round++) {
        size_t size = 36 + rng_below(&rng, 60);
        uint8_t *rec = test_alloc(size);
        rng_fill(&rng, rec, size);
        test_put_u32(rec, (uint32_t)(size - 4));
        /* Mostly near the truth, or hardly any would be accepted. */
        if (!rng_one_in(&rng, 9)) test_put_u32(rec + 4, (uint32_t)rng_below(&rng, 4) - 1);
        if (!rng_one_in(&rng, 9)) test_put_u32(rec + 8, (uint32_t)rng_below(&rng, 100));
        if (!rng_one_in(&rng, 9)) rec[12] = (uint8_t)rng_below(&rng, 8);
        if (!rng_one_in(&rng, 9)) test_put_u16(rec + 16, (uint32_t)rng_below(&rng, 6));
        if (!rng_one_in(&rng, 9)) test_put_u32(rec + 20, (uint32_t)rng_below(&rng, 20));
        if (!rng_one_in(&rng, 9)) test_put_u32(rec + 24, (uint32_t)rng_below(&rng, 4) - 1);
        if (36 + (size_t)rec[12] <= size && rec[12] > 0 && !rng_one_in(&rng, 9))
            rec[36 + rec[12] - 1] = 0;
        if (!bam_record_check(rec, N_REFS)) {
            n_accepted++;
            CHECK(&rng, bam_record_unpack(rec, b) == 0);
            CHECK(&rng, strlen((const char *)bam_record_name(rec)) < bam_record_name_bytes(rec));
        }
        free(rec);
    }
    CHECK(&rng, n_accepted > 1000 && n_accepted < 199000);
    bam_destroy1(b);
}

int main(void)
{
    /* Its parser has something to say about most of these lines. */
    hts_set_log_level(HTS_LOG_OFF);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packs_as_htslib_writes),
        cmocka_unit_test(test_packs_long_cigars_as_htslib_writes),
        cmocka_unit_test(test_unpacks_cg_tags_as_htslib_reads),
        cmocka_unit_test(test_what_bam_cannot_hold),
        cmocka_unit_test(test_long_coordinates),
        cmocka_unit_test(test_forged_long_coordinates),
        cmocka_unit_test(test_long_cigar_against_sequence),
        cmocka_unit_test(test_long_cigar_that_covers_too_much),
        cmocka_unit_test(test_lying_records_are_refused),
        cmocka_unit_test(test_cigar_is_judged_as_by_htslib),
        cmocka_unit_test(test_unpacks_into_any_buffer),
        cmocka_unit_test(test_true_records_are_accepted),
        cmocka_unit_test(test_random_bytes_stay_within_the_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
