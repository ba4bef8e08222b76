/*
 * test_bam_convert.c -- raw records with long CIGARs are byte for byte what htslib writes, and
 * unpack to what htslib reads. test/differential.py compares the records of random SAM with those
 * of samtools, fuzz_keys.c packs again what was unpacked.
 */
#include "test_place.h"
#include "unit_test.h"

#include "bam/bam_check.h"
#include "bam/bam_convert.h"
#include "bam/bam_fields.h"
#include "bam/bam_long.h"

#include <htslib/bgzf.h>

enum { N_REFS = 3 };

static const char bam_path[] = "x.bam";

/* Packs a record into memory of exactly its size, which the caller frees; NULL if it has no raw
   form. */
static uint8_t *pack(const bam1_t *b, bool long_positions)
{
    OWNED uint8_t *buffer = NULL;
    size_t room = 0;
    if (bam_record_put(b, long_positions, &buffer, &room, 0)) return NULL;
    uint8_t *exact = test_alloc(bam_record_bytes(buffer));
    memcpy(exact, buffer, bam_record_bytes(buffer));
    return exact;
}

/* The size of the record in BAM; 0 if BAM cannot hold it. */
static size_t packed_bytes(const bam1_t *b)
{
    OWNED uint8_t *raw = pack(b, false);
    return raw ? bam_record_bytes(raw) : 0;
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

/* Packs a record, and compares with the bytes that htslib writes for it, and with what it reads. */
static void check_packing(struct rng *rng, const bam1_t *b)
{
    OWNED_RECORD bam1_t *theirs = new_record(), *ours = new_record();
    BGZF *file = bgzf_open(bam_path, "w1");
    assert_non_null(file);
    CHECK(rng, bam_write1(file, b) > 0);
    assert_int_equal(bgzf_close(file), 0);
    OWNED uint8_t *packed = pack(b, false);
    assert_non_null(packed);
    size_t n_bytes = bam_record_bytes(packed);
    OWNED uint8_t *written = test_alloc(n_bytes + 1);
    CHECK(rng, bam_record_check(packed, N_REFS) == NULL);
    file = bgzf_open(bam_path, "r");
    CHECK(rng, bgzf_read(file, written, n_bytes + 1) == (ssize_t)n_bytes);
    CHECK(rng, memcmp(packed, written, n_bytes) == 0);
    assert_int_equal(bgzf_close(file), 0);
    file = bgzf_open(bam_path, "r");
    CHECK(rng, bam_read1(file, theirs) > 0);
    assert_int_equal(bgzf_close(file), 0);
    bam_record_unpack(packed, ours);
    check_same_record(rng, ours, theirs);
    OWNED uint8_t *again = pack(ours, false);
    CHECK(rng, memcmp(again, packed, n_bytes) == 0);
    assert_int_equal(unlink(bam_path), 0);
}

/* A few operations less and more than 65,535, mapped or not, with and without bases. */
TEST_IN_OWN_DIR(test_packs_long_cigars_as_htslib_writes)
{
    static const size_t n_ops[] = {12, 65534, 65535, 65536, 70000};
    struct rng rng = rng_start(72);
    OWNED uint32_t *cigar = test_alloc(70000 * sizeof *cigar);
    OWNED char *seq = test_alloc(70000);
    memset(seq, 'C', 70000);
    for (size_t i = 0; i < 70000; i++)
        cigar[i] = (uint32_t)(1 + rng_below(&rng, 2)) << 4 | (i % 2 ? BAM_CDEL : BAM_CINS);
    for (size_t i = 0; i < sizeof n_ops / sizeof *n_ops; i++) {
        for (unsigned kind = 0; kind < 16; kind++) {
            OWNED_RECORD bam1_t *b = new_record();
            size_t n = kind & 1 ? (size_t)bam_cigar2qlen((int)n_ops[i], cigar) : 0;
            if (n > 70000) n = 0;
            assert_true(bam_set1(b, 1 + kind % 4, "long", (kind & 2) ? 4 : 16, 0,
                                 kind & 8 ? 400000000 : 1000000, 9, n_ops[i], cigar, -1, -1, 0, n,
                                 seq, NULL, 100) >= 0);
            if (kind & 4) assert_int_equal(bam_aux_update_str(b, "RG", 3, "xy"), 0);
            check_packing(&rng, b);
        }
    }
}

enum { CG_BASES = 7 };

/* A record with a CIGAR of two operations and tags, all chosen by the caller. */
static size_t put_with_tags(uint8_t *out, uint32_t flag, const uint32_t cigar[2],
                            const uint8_t *tags, size_t tag_bytes)
{
    /* The bin depends on the three bases that the operations cover. */
    struct record_fields f = {.name = "placeholder", .tid = 0, .pos = 16383, .flag = flag,
                              .n_cigar = 2, .l_seq = CG_BASES, .tag_bytes = tag_bytes};
    size_t size = put_record(out, &f, 0x11);
    size_t cigar_at = 36 + strlen(f.name) + 1;
    test_put_u32(out + cigar_at, cigar[0]);
    test_put_u32(out + cigar_at + 4, cigar[1]);
    memcpy(out + size - tag_bytes, tags, tag_bytes);
    test_put_u16(out + 14, 77);                 /* not trusted: computed again */
    return size;
}

/* Moves the CIGAR of a copy of the record. The result has the bytes that htslib would write for the
   record that it has read, but for the bin, which it computes anew. */
static void check_restored(struct rng *rng, const uint8_t *rec, size_t size, const bam1_t *read)
{
    OWNED uint8_t *restored = test_alloc(size), *want = pack(read, false);
    assert_non_null(want);
    memcpy(restored, rec, size);
    size_t n_bytes = bam_record_restore_cigar(restored);
    CHECK(rng, n_bytes == bam_record_bytes(restored) && n_bytes == bam_record_bytes(want));
    memcpy(want + BAM_BIN_AT, rec + BAM_BIN_AT, 2);
    assert_memory_equal(restored, want, n_bytes);
    CHECK(rng, bam_record_restore_cigar(restored) == n_bytes);      /* nothing more to move */
}

/* Records with a CG tag, alone or between other tags, which holds the CIGAR or only seems to. They
   unpack as htslib reads them. */
TEST_IN_OWN_DIR(test_unpacks_cg_tags_as_htslib_reads)
{
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
    uint8_t rec[256];
    OWNED_RECORD bam1_t *ours = bam_init1(), *theirs = bam_init1();
    assert_true(ours && theirs);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t c = 0; c < 6; c++) {
            size_t size = put_with_tags(rec, c < 3 ? 0 : BAM_FUNMAP, cigars[c % 3], cases[i].tags,
                                        cases[i].tag_bytes);
            OWNED uint8_t *exact = test_alloc(size);
            memcpy(exact, rec, size);
            BGZF *bgzf = bgzf_open(bam_path, "w");
            assert_non_null(bgzf);
            CHECK(&rng, bgzf_write(bgzf, rec, size) == (ssize_t)size);
            assert_int_equal(bgzf_close(bgzf), 0);
            bgzf = bgzf_open(bam_path, "r");
            assert_non_null(bgzf);
            CHECK(&rng, bam_read1(bgzf, theirs) > 0);
            assert_int_equal(bgzf_close(bgzf), 0);
            bam_record_unpack(exact, ours);
            bool moved = c % 3 == 0 && cases[i].moves;
            CHECK(&rng, (ours->core.n_cigar == 3) == moved);
            check_same_record(&rng, ours, theirs);
            check_restored(&rng, exact, size, theirs);
            assert_int_equal(unlink(bam_path), 0);
        }
    }
}

/* SAM and CRAM can hold positions beyond 2^31 - 1, and BAM cannot. */
TEST(test_positions_beyond_31_bits_are_not_packed)
{
    OWNED_RECORD bam1_t *b = new_record();
    assert_true(bam_set1(b, 1, "r", 0, 0, 100, 60, 0, NULL, 0, 200, 50, 0, NULL, NULL, 0) >= 0);
    assert_int_equal(packed_bytes(b), 36 + 2);
    b->core.pos = INT32_MAX;
    assert_int_equal(packed_bytes(b), 36 + 2);
    b->core.pos = (hts_pos_t)INT32_MAX + 1;
    assert_int_equal(packed_bytes(b), 0);
    b->core.pos = 100;
    b->core.mpos = (hts_pos_t)INT32_MAX + 1;
    assert_int_equal(packed_bytes(b), 0);
    b->core.mpos = 200;
    b->core.isize = (hts_pos_t)INT32_MAX + 1;
    assert_int_equal(packed_bytes(b), 0);
    b->core.isize = (hts_pos_t)INT32_MIN - 1;
    assert_int_equal(packed_bytes(b), 0);
    b->core.isize = INT32_MIN;
    assert_int_equal(packed_bytes(b), 36 + 2);
}

/* A coordinate near one of the limits. */
static hts_pos_t random_coordinate(struct rng *rng, bool negative)
{
    static const hts_pos_t limits[] = {0, INT32_MAX, UINT32_MAX, INT64_C(1) << 40};
    hts_pos_t at = limits[rng_below(rng, 4)] + (hts_pos_t)rng_below(rng, 5) - 1;
    return negative && rng_one_in(rng, 2) ? -at : at;
}

TEST(test_long_coordinates_unpack_to_what_was_packed)
{
    struct rng rng = rng_start(71);
    OWNED_RECORD bam1_t *b = bam_init1(), *back = bam_init1();
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
        size_t plain = packed_bytes(b);
        OWNED uint8_t *raw = pack(b, true);
        assert_non_null(raw);
        CHECK(&rng, bam_record_is_long(raw) == (plain == 0));
        n_long += plain == 0;
        CHECK(&rng, (plain == 0 || bam_record_bytes(raw) == plain) && !bam_record_check(raw, 1));
        CHECK(&rng, bam_record_true_pos(raw) == pos && bam_record_true_mate_pos(raw) == mate);
        bam_record_unpack(raw, back);
        CHECK(&rng, back->core.pos == pos && back->core.mpos == mate);
        CHECK(&rng, back->core.isize == length && back->l_data == b->l_data);
        CHECK(&rng, memcmp(back->data, b->data, (size_t)b->l_data) == 0);
    }
    CHECK(&rng, n_long > 500 && n_long < 2900);
}

/* The placeholder has one operation for all bases that a long CIGAR covers: fewer than 2^28. */
TEST(test_long_cigar_that_covers_too_much)
{
    enum { N = 65536 };
    OWNED uint32_t *cigar = test_alloc(N * sizeof *cigar);
    for (size_t i = 0; i < N; i++) cigar[i] = 1 << 4 | (i % 2 ? BAM_CMATCH : BAM_CINS);
    OWNED_RECORD bam1_t *b = new_record();
    const uint32_t most = (1u << 28) - 1, rest = N / 2 - 1;
    for (uint32_t beyond = 0; beyond < 3; beyond++) {
        cigar[1] = (most - rest) << 4 | BAM_CREF_SKIP;
        cigar[3] = (1 + beyond) << 4 | BAM_CMATCH;
        assert_true(bam_set1(b, 1, "r", 0, 0, 100, 60, N, cigar, -1, -1, 0, 0, NULL, NULL, 0) >= 0);
        assert_true(bam_cigar2rlen((int)b->core.n_cigar, bam_get_cigar(b)) == most + beyond);
        size_t size = 36 + 2 + 8 + 8 + (size_t)N * 4;
        assert_int_equal(packed_bytes(b), beyond ? 0 : size);
    }
}

/*
 * bam_record_check and htslib accept the same records with random operations, even ones that do not
 * exist, and random flags and places. Accepted records unpack as htslib reads them.
 */
TEST_IN_OWN_DIR(test_cigar_is_judged_as_by_htslib)
{
    enum { N = 20000 };
    struct rng rng = rng_start(75);
    OWNED uint8_t (*recs)[64] = test_alloc(N * sizeof *recs);
    OWNED bool *good = test_alloc(N * sizeof *good);
    size_t n_good = 0;
    BGZF *bgzf = bgzf_open(bam_path, "w1");
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
        test_put_u16(rec + 14, 77);             /* the bin; with a CIGAR it is not trusted */
        for (size_t k = 0; k < f.n_cigar; k++) {
            size_t length = rng_below(&rng, 4), op = rng_below(&rng, rng_one_in(&rng, 4) ? 16 : 9);
            test_put_u32(rec + 38 + 4 * k, (uint32_t)(length << 4 | op));
        }
        good[i] = bam_record_check(rec, N_REFS) == NULL;
        n_good += good[i];
        CHECK(&rng, bgzf_write(bgzf, rec, size) == (ssize_t)size);
    }
    assert_int_equal(bgzf_close(bgzf), 0);
    bgzf = bgzf_open(bam_path, "r");
    OWNED_RECORD bam1_t *b = bam_init1(), *ours = bam_init1();
    assert_true(bgzf && b && ours);
    for (size_t i = 0; i < N; i++) {
        int r = bam_read1(bgzf, b);
        CHECK(&rng, r > 0 || r < -1);
        CHECK(&rng, (r > 0) == good[i]);
        if (r < 0) continue;
        bam_record_unpack(recs[i], ours);
        check_same_record(&rng, ours, b);
    }
    CHECK(&rng, bam_read1(bgzf, b) == -1);
    CHECK(&rng, n_good > N / 10 && n_good < N - N / 10);
    assert_int_equal(bgzf_close(bgzf), 0);
    assert_int_equal(unlink(bam_path), 0);
}

/* The buffer of a bam1_t may have any size, from too small to just large enough. */
TEST(test_unpacks_into_any_buffer)
{
    for (size_t length = 0; length < 9; length++) {
        for (size_t room = 0; room < 64; room++) {
            struct record_fields f = {.name = &"12345678"[8 - length], .tid = -1, .pos = -1,
                                      .l_seq = 10, .tag_bytes = 5};
            uint8_t rec[128];
            size_t size = put_record(rec, &f, 3);
            OWNED_RECORD bam1_t *b = new_record();
            b->data = test_alloc(room);
            b->m_data = (uint32_t)room;
            bam_record_unpack(rec, b);
            assert_string_equal(bam_get_qname(b), f.name);
            assert_int_equal(packed_bytes(b), size);
            assert_true(b->m_data >= (uint32_t)b->l_data);
        }
    }
}

/* Records at the limits that are sound. */
TEST(test_true_records_are_accepted)
{
    char longest[TEST_MAX_NAME + 1];
    alternating_name(longest, TEST_MAX_NAME, true);
    const struct record_fields records[] = {
        {.name = "", .tid = -1, .pos = -1},
        {.name = longest, .tid = N_REFS - 1, .pos = INT32_MAX},
        {.name = "a", .tid = 0, .pos = 0, .n_cigar = 65535},
        {.name = "a", .tid = 0, .pos = 0, .l_seq = 1},
        {.name = "a", .tid = -1, .pos = INT32_MAX, .l_seq = 2, .tag_bytes = 1000},
    };
    OWNED_RECORD bam1_t *b = new_record();
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        const struct record_fields *f = &records[i];
        size_t size = record_size(f);
        OWNED uint8_t *rec = test_alloc(size);
        assert_int_equal(put_record(rec, f, 2), size);
        assert_null(bam_record_check(rec, N_REFS));
        assert_int_equal(bam_record_bytes(rec), size);
        assert_int_equal(bam_record_tid(rec), f->tid);
        assert_int_equal(bam_record_pos(rec), f->pos);
        assert_int_equal(bam_record_name_bytes(rec), strlen(f->name) + 1);
        assert_string_equal((const char *)bam_record_name(rec), f->name);
        bam_record_unpack(rec, b);
        assert_int_equal(packed_bytes(b), size);
        OWNED uint8_t *back = pack(b, false);
        assert_memory_equal(back, rec, size);
    }
    /* Without references only unplaced records are sound. */
    uint8_t rec[64];
    struct record_fields f = {.name = "a", .tid = -1, .pos = -1};
    (void)put_record(rec, &f, 0);
    assert_null(bam_record_check(rec, 0));
    f.tid = 0;
    (void)put_record(rec, &f, 0);
    assert_non_null(bam_record_check(rec, 0));
}

/* It says of each record that it refuses why. */
__attribute__((constructor)) static void silence_htslib(void)
{
    hts_set_log_level(HTS_LOG_OFF);
}
