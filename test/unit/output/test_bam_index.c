/*
 * test_bam_index.c -- compares indexes that are made from parts with those that htslib makes of the
 * same file.
 *
 * Random sorted records are cut into segments, deflated as the program does, and indexed meanwhile.
 * The index must have the same bytes as htslib's. Every query must find the records that a search
 * through all records finds. htslib's index must find them, too: that tests the search itself.
 */
#include "unit_test.h"
#include "indexed_file.h"

#include "util/diag.h"

#include <htslib/bgzf.h>

/* ---- comparing ---- */

static void read_all(const char *path, kstring_t *bytes)
{
    char buffer[4096];
    ssize_t n;
    BGZF *file = bgzf_open(path, "r");
    assert_non_null(file);
    while ((n = bgzf_read(file, buffer, sizeof buffer)) > 0)
        assert_true(kputsn(buffer, (size_t)n, bytes) >= 0);
    assert_int_equal(n, 0);
    assert_int_equal(bgzf_close(file), 0);
}

static void check_same_bytes(struct rng *rng, const char *ours, const char *theirs)
{
    kstring_t a = {0}, b = {0};
    read_all(ours, &a);
    read_all(theirs, &b);
    CHECK(rng, a.l == b.l);
    CHECK(rng, memcmp(a.s, b.s, a.l) == 0);
    free(a.s);
    free(b.s);
}

static void check_counts(struct rng *rng, const hts_idx_t *index, const struct records *records,
                         size_t n_refs)
{
    uint64_t(*counts)[2] = calloc(n_refs + 1, sizeof *counts), n_unplaced = 0;
    assert_non_null(counts);
    for (size_t i = 0; i < records->n; i++) {
        const struct record *r = &records->items[i];
        if (r->tid < 0)
            n_unplaced++;
        else
            counts[r->tid][(r->flag & BAM_FUNMAP) != 0]++;
    }
    CHECK(rng, hts_idx_get_n_no_coor(index) == n_unplaced);
    for (size_t i = 0; i < n_refs; i++) {
        uint64_t mapped = 0, unmapped = 0;
        int r = hts_idx_get_stat(index, (int)i, &mapped, &unmapped);
        CHECK(rng, (r == 0) == (counts[i][0] + counts[i][1] > 0));
        CHECK(rng, mapped == counts[i][0] && unmapped == counts[i][1]);
    }
    free(counts);
}

struct query {
    int tid;                    /* or HTS_IDX_NOCOOR */
    int64_t begin, end;
};

static bool is_answer(const struct record *r, const struct query *q)
{
    if (q->tid == HTS_IDX_NOCOOR) return r->tid < 0;
    return r->tid == q->tid && r->pos < q->end && r->end > q->begin;
}

static void check_query(struct rng *rng, samFile *file, const hts_idx_t *index,
                        const struct records *records, const struct query *q)
{
    OWNED_RECORD bam1_t *b = bam_init1();
    hts_itr_t *itr = sam_itr_queryi(index, q->tid, q->begin, q->end);
    CHECK(rng, b && itr);
    for (size_t i = 0; i < records->n; i++) {
        if (!is_answer(&records->items[i], q)) continue;
        CHECK(rng, sam_itr_next(file, itr, b) >= 0);
        CHECK(rng, strtoull(bam_get_qname(b), NULL, 10) == records->items[i].number);
    }
    CHECK(rng, sam_itr_next(file, itr, b) == -1);
    hts_itr_destroy(itr);
}

/* Mostly near a record, so that most queries find something. */
static struct query random_query(struct rng *rng, const struct records *records,
                                 const sam_hdr_t *header)
{
    const struct record *r = records->n ? &records->items[rng_below(rng, records->n)] : NULL;
    struct query q = {.tid = (int)rng_below(rng, (size_t)sam_hdr_nref(header))};
    if (r && r->tid >= 0) q.tid = r->tid;
    int64_t length = sam_hdr_tid2len(header, q.tid);
    q.begin = (int64_t)rng_below(rng, (size_t)length);
    if (r && r->tid >= 0 && !rng_one_in(rng, 4)) {
        int64_t around = (int64_t)(rng_below(rng, 1 << 20) >> rng_below(rng, 20));
        q.begin = (rng_one_in(rng, 2) ? r->pos : r->end) + (rng_one_in(rng, 2) ? around : -around);
        if (q.begin < 0) q.begin = 0;
    }
    q.end = q.begin + 1 + ((int64_t)rng_below(rng, (size_t)length) >> rng_below(rng, 30));
    return q;
}

static void check_answers(struct rng rng, const char *index_path, const struct records *records,
                          size_t n_queries)
{
    /* First the records without reference: if no reference has any record, htslib reads them from
       its current position. */
    const struct query unplaced = {.tid = HTS_IDX_NOCOOR};
    samFile *file = sam_open(data_path, "r");
    assert_non_null(file);
    OWNED_HEADER sam_hdr_t *header = sam_hdr_read(file);
    assert_non_null(header);
    hts_idx_t *index = sam_index_load3(file, data_path, index_path, 0);
    assert_non_null(index);
    check_counts(&rng, index, records, (size_t)sam_hdr_nref(header));
    if (records->n > 0) check_query(&rng, file, index, records, &unplaced);
    for (size_t i = 0; i < n_queries && sam_hdr_nref(header) > 0; i++) {
        struct query q = random_query(&rng, records, header);
        check_query(&rng, file, index, records, &q);
    }
    hts_idx_destroy(index);
    assert_int_equal(sam_close(file), 0);
}

static void check_file(struct rng *rng, const struct plan *plan, const struct records *records,
                       sam_hdr_t *header)
{
    write_file(rng, plan, records, header);
    for (int i = 0; i < 2; i++) {
        if (kinds[i].format == BAM_INDEX_BAI && !fits_bai(header)) continue;
        CHECK(rng, sam_index_build3(data_path, kinds[i].theirs, kinds[i].min_shift, 0) == 0);
        check_same_bytes(rng, kinds[i].ours, kinds[i].theirs);
        check_answers(*rng, kinds[i].ours, records, plan->n_queries);
        check_answers(*rng, kinds[i].theirs, records, plan->n_queries);
    }
}

static void check_plan(struct rng *rng, const struct plan *plan, sam_hdr_t *header)
{
    struct records records = make_records(rng, plan, header);
    check_file(rng, plan, &records, header);
    free_records(&records);
}

/* ---- tests ---- */

TEST_WITH(test_random_files, enter_place, leave_indexed_place)
{
    struct rng rng = rng_start(81);
    static const size_t payloads[] = {BGZF_PAYLOAD_BYTES, 5000, 700, 100};
    for (int round = 0; round < 40; round++) {
        int64_t lengths[4];
        for (int i = 0; i < 4; i++)
            lengths[i] = 1 + (int64_t)(rng_below(&rng, 1 << 29) >> rng_below(&rng, 29));
        struct plan plan = small_plan;
        plan.n_records = rng_below(&rng, 600);
        plan.span = rng_one_in(&rng, 2) ? 0 : 1 + (int64_t)rng_below(&rng, 1000000);
        plan.gap >>= rng_below(&rng, 18);
        plan.segment_records = 1 + rng_below(&rng, 100);
        plan.payload_bytes = payloads[rng_below(&rng, 4)];
        plan.straddle = rng_one_in(&rng, 2);
        plan.as_text = rng_one_in(&rng, 3);
        OWNED_HEADER sam_hdr_t *header = make_header(lengths, 4, 1 + rng_below(&rng, 6));
        check_plan(&rng, &plan, header);
    }
}

/* Many bins just below and just above 64 KB of the file: smaller ones are given to their parents.
   */
TEST_WITH(test_bins_of_all_sizes, enter_place, leave_indexed_place)
{
    struct rng rng = rng_start(82);
    static const int64_t lengths[] = {1 << 21, 1 << 29, 3000000};
    struct plan plan = small_plan;
    plan.n_records = 15000;
    plan.l_seq = 1000;
    plan.level = 0;
    plan.segment_records = 3000;
    for (int round = 0; round < 3; round++) {
        OWNED_HEADER sam_hdr_t *header = make_header(lengths, 3, 3);
        plan.gap = (size_t[]){100, 20000, 10000000}[round];
        plan.straddle = round == 1;
        check_plan(&rng, &plan, header);
    }
}

TEST_WITH(test_many_references, enter_place, leave_indexed_place)
{
    struct rng rng = rng_start(83);
    static const int64_t lengths[] = {1000, 100000000, 500, 20000};
    struct plan plan = small_plan;
    plan.n_records = 3000;
    plan.segment_records = 200;
    plan.n_queries = 20;
    OWNED_HEADER sam_hdr_t *header = make_header(lengths, 4, 100000);
    check_plan(&rng, &plan, header);
}

TEST_WITH(test_long_references, enter_place, leave_indexed_place)
{
    struct rng rng = rng_start(84);
    struct plan plan = small_plan;
    plan.gap = (1 << 28) - 1;
    plan.n_records = 1000;
    for (int round = 0; round < 4; round++) {
        int64_t lengths[] = {(INT64_C(1) << (29 + round / 2)) + 1, 700, INT32_MAX};
        plan.span = round % 2 ? 1000000 : 0;
        OWNED_HEADER sam_hdr_t *header = make_header(lengths, 3, round % 2 ? 2 : 3);
        check_plan(&rng, &plan, header);
    }
}

/* The depth of a CSI depends on the longest reference: lengths around each step. */
TEST_WITH(test_steps_of_depth, enter_place, leave_indexed_place)
{
    struct rng rng = rng_start(85);
    struct plan plan = small_plan;
    plan.n_records = 100;
    plan.n_queries = 20;
    for (int shift = 14; shift <= 29; shift += 3) {
        for (int by = -1; by <= 1; by++) {
            int64_t length = (INT64_C(1) << shift) - 256 + by;
            OWNED_HEADER sam_hdr_t *header = make_header(&length, 1, 1);
            check_plan(&rng, &plan, header);
        }
    }
}

TEST_WITH(test_deep_pile, enter_place, leave_indexed_place)
{
    struct rng rng = rng_start(86);
    const int64_t length = 1000000;
    struct plan plan = small_plan;
    plan.n_records = 8000;
    plan.span = 2;
    plan.gap = 300000;
    plan.level = 0;
    plan.segment_records = 1000;
    OWNED_HEADER sam_hdr_t *header = make_header(&length, 1, 2);
    check_plan(&rng, &plan, header);
}

TEST_WITH(test_empty_and_unplaced_files, enter_place, leave_indexed_place)
{
    struct rng rng = rng_start(87);
    const int64_t length = 30000;
    for (size_t n_refs = 0; n_refs < 3; n_refs++) {
        OWNED_HEADER sam_hdr_t *header = make_header(&length, 1, n_refs);
        struct plan plan = small_plan;
        plan.n_records = 0;
        check_plan(&rng, &plan, header);
        plan.n_records = 100;
        plan.unplaced_in = 1;
        check_plan(&rng, &plan, header);
    }
}

TEST_WITH(test_one_record_a_segment, enter_place, leave_indexed_place)
{
    struct rng rng = rng_start(88);
    static const int64_t lengths[] = {100000, 3000000};
    struct plan plan = small_plan;
    plan.segment_records = 1;
    OWNED_HEADER sam_hdr_t *header = make_header(lengths, 2, 5);
    for (int as_text = 0; as_text < 2; as_text++) {
        plan.as_text = as_text;
        check_plan(&rng, &plan, header);
    }
}

/* Makes a read with more than 65,535 operations, which are in its CG tag. */
static void make_long_cigar(struct record *r)
{
    enum { N_OPS = 70000, L_SEQ = N_OPS / 2 * 2 };
    char name[32];
    (void)snprintf(name, sizeof name, "%zu", r->number);
    free(r->bytes);
    struct record_fields fields = {.name = name, .tid = r->tid, .pos = r->pos, .n_cigar = 2,
                                   .l_seq = L_SEQ, .tag_bytes = 8 + 4 * (size_t)N_OPS};
    r->flag = 0;
    r->n_bytes = record_size(&fields);
    r->bytes = test_alloc(r->n_bytes);
    (void)put_record(r->bytes, &fields, '!');
    uint8_t *at = r->bytes + 36 + strlen(name) + 1;
    test_put_u32(at, (uint32_t)L_SEQ << 4 | BAM_CSOFT_CLIP);
    test_put_u32(at + 4, (uint32_t)(N_OPS / 2 * 3) << 4 | BAM_CREF_SKIP);
    at = r->bytes + r->n_bytes - fields.tag_bytes;
    memcpy(at, "CGBI", 4);
    test_put_u32(at + 4, N_OPS);
    for (size_t i = 0; i < N_OPS; i++)
        test_put_u32(at + 8 + 4 * i, i % 2 ? 1 << 4 | BAM_CDEL : 2 << 4 | BAM_CMATCH);
    r->end = r->pos + N_OPS / 2 * 3;
}

TEST_WITH(test_cigar_in_tag, enter_place, leave_indexed_place)
{
    struct rng rng = rng_start(89);
    const int64_t length = 5000000;
    OWNED_HEADER sam_hdr_t *header = make_header(&length, 1, 2);
    for (int as_text = 0; as_text < 2; as_text++) {
        struct plan plan = small_plan;
        plan.span = 4000000;
        plan.as_text = as_text;
        struct records records = make_records(&rng, &plan, header);
        for (size_t i = 0; i < records.n; i++)
            if (records.items[i].tid >= 0 && records.items[i].pos >= 0 &&
                records.items[i].pos < 4000000 && rng_one_in(&rng, 20))
                make_long_cigar(&records.items[i]);
        check_file(&rng, &plan, &records, header);
        free_records(&records);
    }
}

static void add_one(struct bam_index_part *part, int32_t tid, int32_t pos, int r)
{
    uint8_t rec[64];
    struct record_fields fields = {.name = "far", .tid = tid, .pos = pos};
    (void)put_record(rec, &fields, 0);
    assert_int_equal(bam_index_part_add(part, rec, 0), r);
}

TEST_WITH(test_what_no_index_can_hold_is_refused, enter_place, leave_indexed_place)
{
    static const int64_t lengths[] = {1 << 29, (1 << 29) + 1};
    diag_silence();
    sam_hdr_t *header = make_header(lengths + 1, 1, 1);
    assert_null(bam_index_create(BAM_INDEX_BAI, header));
    sam_hdr_destroy(header);
    header = make_header(lengths, 1, 3);
    struct bam_index *index = bam_index_create(BAM_INDEX_BAI, header);
    assert_non_null(index);
    struct bam_index_part part;
    bam_index_part_init(&part, bam_index_shape(index));
    add_one(&part, 0, (1 << 29) - 1, 0);
    add_one(&part, 0, 1 << 29, -1);
    bam_index_part_release(&part);
    bam_index_part_init(&part, bam_index_shape(index));
    /* References must ascend, and records without one must come last. */
    static const int32_t disorders[][2] = {{1, 0}, {-1, 2}, {2, 1}};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 2; k++) {
            add_one(&part, disorders[i][k], 0, 0);
            bam_index_part_end(&part, bam_index_voffset(1, 0));
            int r = bam_index_append(index, &part, (uint64_t)k);
            assert_int_equal(r, k == 0 ? 0 : -1);
            bam_index_part_release(&part);
            bam_index_part_init(&part, bam_index_shape(index));
        }
        bam_index_destroy(index);
        index = bam_index_create(BAM_INDEX_BAI, header);
        assert_non_null(index);
    }
    struct output_path path = {.name = "no-directory/index.bai"};
    assert_int_equal(bam_index_write(index, &path), -1);
    bam_index_destroy(index);
    index = bam_index_create(BAM_INDEX_CSI, header);
    assert_non_null(index);
    if (access("/dev/full", W_OK) == 0) {
        path.name = "/dev/full";
        assert_int_equal(bam_index_write(index, &path), -1);
        assert_int_equal(access("/dev/full", W_OK), 0);
    }
    bam_index_destroy(index);
    bam_index_destroy(NULL);
    bam_index_part_release(&part);
    bam_index_part_release(&part);
    sam_hdr_destroy(header);
}

/* Positions have 62 bits, and LN may claim more. No shape is large enough then, and none is sought.
   */
TEST_WITH(test_impossible_lengths, enter_place, leave_indexed_place)
{
    static const int64_t most = INT64_C(1) << 62;
    static const int64_t lengths[] = {(INT64_C(1) << 59) - 256, most - 256, most - 255, most,
                                      INT64_MAX - 256, INT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        OWNED_HEADER sam_hdr_t *header = make_header(lengths + i, 1, 1);
        assert_true(sam_hdr_tid2len(header, 0) == lengths[i]);
        (void)alarm(60);
        struct bam_index *index = bam_index_create(BAM_INDEX_CSI, header);
        (void)alarm(0);
        assert_non_null(index);
        const struct bam_index_shape *shape = bam_index_shape(index);
        int bits = shape->min_shift + 3 * shape->depth;
        assert_in_range(bits, 1, 62);
        /* For possible lengths the index holds the reference and what htslib adds to it. */
        if (lengths[i] <= most - 256) assert_true(lengths[i] + 256 <= INT64_C(1) << bits);
        bam_index_destroy(index);
    }
}
