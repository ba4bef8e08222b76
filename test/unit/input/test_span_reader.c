/*
 * test_span_reader.c -- BAM cut into spans: whatever the size of pieces, spans have whole records,
 * all of them, in their order, and know where these begin in the file.
 */
#include "bam_content.h"
#include "test_place.h"
#include "unit_test.h"

#include "input/header_union.h"
#include "input/span_reader.h"

#define HEADER "@SQ\tSN:c1\tLN:100000\n@RG\tID:x\tSM:s\n"

/* Few records are longer than a piece; the longest is longer than several. */
static struct content make_long_content(struct rng *rng)
{
    return make_content(rng, 60000, 600000);
}

struct reading {
    struct record_span spans[3];        /* used in turn */
    struct bgzf_coder coder;
    const struct id_renames *renames;
    uint64_t offsets[N_RECORDS + 1];    /* of each record, where it is known */
    size_t n_records;
    size_t most_template_bytes;
    size_t n_continued;         /* of the last span: records of a large template */
    bool has_problem;
};

static struct bam_reader *open_file(void)
{
    htsFormat options = {0};
    struct bam_reader *reader = bam_reader_open(path, &options, NULL, READER_FIRST);
    assert_non_null(reader);
    return reader;
}

/* True if record i of the content begins a template. */
static bool begins_template(const struct content *c, size_t i)
{
    return i == 0 || i == N_RECORDS ||
           !template_same_name(c->bytes + c->at[i - 1], c->bytes + c->at[i]);
}

/* Checks that a span of records from `first` on has whole templates, but of a large one. */
static void check_templates(struct rng *rng, struct reading *in, const struct content *c,
                            const struct record_span *span)
{
    size_t first = span->first_record, end = first + span->n_records;
    if (span->n_records == 0) return;
    for (size_t i = 0; i < span->n_continuing; i++) CHECK(rng, !begins_template(c, first + i));
    CHECK(rng, in->n_continued > 0 || (span->n_continuing == 0 && begins_template(c, first)));
    CHECK(rng, span->n_continuing == span->n_records ||
                   begins_template(c, first + span->n_continuing));
    if (span->n_continuing < span->n_records) in->n_continued = span->n_continued;
    CHECK(rng, in->n_continued > 0 || begins_template(c, end));
    CHECK(rng, span->n_continued == 0 || begins_template(c, end - span->n_continued));
}

static void check_span(struct rng *rng, struct reading *in, const struct content *c,
                       const struct record_span *span)
{
    const uint8_t *at = span->from;
    CHECK(rng, span->first_record == in->n_records);
    for (size_t i = 0; i < span->n_records; i++) {
        size_t n = in->n_records++, n_bytes = c->at[n + 1] - c->at[n];
        CHECK(rng, (size_t)(span->to - at) >= n_bytes);
        CHECK(rng, memcmp(at, c->bytes + c->at[n], n_bytes) == 0);
        CHECK(rng, record_span_place(span, i) == (size_t)(at - span->from));
        if (in->most_template_bytes == 0 || (i > 0 && begins_template(c, n)))
            in->offsets[n] = record_span_offset(span, at, i);
        at += n_bytes;
    }
    CHECK(rng, span->n_records == 0 || at == span->to);
    if (in->most_template_bytes > 0) check_templates(rng, in, c, span);
}

/* Reads the file, of which n_records come before the place that the reader is at. */
static void read_all(struct rng *rng, struct reading *in, const struct content *c,
                     struct bam_reader *reader, size_t span_bytes, size_t n_records)
{
    int r;
    in->n_records = n_records;
    in->n_continued = 0;
    in->has_problem = false;
    span_reader_begin(reader, span_bytes, in->most_template_bytes, n_records);
    for (unsigned i = 0;; i = (i + 1) % 3) {
        struct record_span *span = &in->spans[i];
        record_span_shrink(span, rng_one_in(rng, 10) ? 0 : 1 << 20);
        record_span_reuse(span);
        if ((r = span_reader_read(reader, span)) != BAM_READER_PIECE) break;
        CHECK(rng, span_reader_fill(reader, span, &in->coder, NULL) == 0);
        span_reader_cut(reader, span);
        CHECK(rng, !in->has_problem || span->n_records == 0);
        if (in->renames) record_span_rename(span, in->renames, 1);
        if (record_span_has_problem(span)) {
            CHECK(rng, !in->has_problem && record_span_check(span, "in") == -1);
            in->has_problem = true;
        } else {
            CHECK(rng, record_span_check(span, "in") == 0);
        }
        check_span(rng, in, c, span);
        if (rng_one_in(rng, 20)) free(record_span_take_memory(span));
    }
    record_span_reuse(&in->spans[0]);
    span_reader_flush(reader, &in->spans[0]);
    check_span(rng, in, c, &in->spans[0]);
    CHECK(rng, r == BAM_READER_END && reader->n_records == in->n_records);
}

static struct reading *new_reading(void)
{
    struct reading *in = test_alloc(sizeof *in);
    *in = (struct reading){.n_records = 0};
    return in;
}

static void end_reading(struct reading *in)
{
    for (unsigned i = 0; i < 3; i++) record_span_release(&in->spans[i]);
    bgzf_coder_release(&in->coder);
    free(in);
}

OWNER(struct reading, end_reading)

static const size_t sizes[] = {1, 5000, 65536, 100000, 1 << 20};

TEST_IN_OWN_DIR(test_spans_have_all_records_in_their_order)
{
    struct rng rng = rng_start(61);
    for (size_t i = 0; i < 4 * sizeof sizes / sizeof *sizes; i++) {
        RELEASED(own_end_reading) struct reading *in = new_reading();
        RELEASED(release_content) struct content c = make_long_content(&rng);
        write_content(&rng, HEADER, &c, c.n_bytes, i % 4 == 0 ? "wu" : i % 4 == 1 ? "wg" : "w1");
        struct bam_reader *reader = open_file();
        read_all(&rng, in, &c, reader, sizes[i / 4], 0);
        CHECK(&rng, in->n_records == N_RECORDS && !in->has_problem);
        CHECK(&rng, span_reader_end(reader) == 0 && span_reader_tail_bytes(reader) == 0);
        bam_reader_close(reader);
    }
    assert_int_equal(unlink(path), 0);
}

TEST_IN_OWN_DIR(test_reading_begins_again_at_any_record)
{
    struct rng rng = rng_start(62);
    RELEASED(release_content) struct content c = make_long_content(&rng);
    write_content(&rng, HEADER, &c, c.n_bytes, "w1");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        RELEASED(own_end_reading) struct reading *in = new_reading();
        uint64_t offsets[N_RECORDS + 1];
        struct bam_reader *reader = open_file();
        read_all(&rng, in, &c, reader, sizes[i], 0);
        memcpy(offsets, in->offsets, sizeof offsets);
        bam_reader_close(reader);
        for (size_t n = 0; n < N_RECORDS; n += 1 + rng_below(&rng, 40)) {
            CHECK(&rng, offsets[n] != INPUT_OFFSET_UNKNOWN);
            reader = open_file();
            CHECK(&rng, bam_reader_seek(reader, offsets[n]) == 0);
            read_all(&rng, in, &c, reader, sizes[i], n);
            CHECK(&rng, in->n_records == N_RECORDS);
            bam_reader_close(reader);
        }
    }
    assert_int_equal(unlink(path), 0);
}

TEST_IN_OWN_DIR(test_spans_have_whole_templates)
{
    struct rng rng = rng_start(66);
    for (size_t i = 0; i < 8 * sizeof sizes / sizeof *sizes; i++) {
        RELEASED(own_end_reading) struct reading *in = new_reading();
        RELEASED(release_content) struct content c = make_long_content(&rng);
        for (size_t n = 1; n < N_RECORDS; n++) {
            uint8_t *before = c.bytes + c.at[n - 1], *rec = c.bytes + c.at[n];
            if (bam_record_name_bytes(before) == bam_record_name_bytes(rec) &&
                !rng_one_in(&rng, 1 + i % 5 * 4))
                memcpy(rec + 36, before + 36, bam_record_name_bytes(rec));
        }
        write_content(&rng, HEADER, &c, c.n_bytes, i % 4 == 0 ? "wu" : "w1");
        uint64_t offsets[N_RECORDS + 1];
        for (int round = 0; round < 2; round++) {
            memcpy(offsets, in->offsets, sizeof offsets);
            in->most_template_bytes = round == 0 ? 0 : 1 + rng_below(&rng, 1 << (1 + 3 * (i % 8)));
            struct bam_reader *reader = open_file();
            read_all(&rng, in, &c, reader, sizes[i / 8], 0);
            CHECK(&rng, in->n_records == N_RECORDS && span_reader_end(reader) == 0);
            CHECK(&rng, memcmp(offsets, in->offsets, sizeof offsets) == 0 || round == 0);
            bam_reader_close(reader);
        }
    }
    assert_int_equal(unlink(path), 0);
}

static struct header_union *make_union(void)
{
    static const char other[] = "@SQ\tSN:c1\tLN:100000\n@RG\tID:x\tSM:other\n";
    static const char *const names[] = {"other.bam", "in.bam"};
    sam_hdr_t *headers[] = {parse_header(other), parse_header(HEADER)};
    struct header_union *u = header_union_create(headers, names, 2);
    assert_true(u && header_union_renames(u, 1));
    sam_hdr_destroy(headers[0]);
    sam_hdr_destroy(headers[1]);
    return u;
}

TEST_IN_OWN_DIR(test_renamed_records_keep_their_offsets)
{
    struct rng rng = rng_start(65);
    struct header_union *u = make_union();
    RELEASED(release_content) struct content renamed = {
        .bytes = test_alloc(MAX_CONTENT_BYTES + 2 * N_RECORDS)};
    RELEASED(release_content) struct content c = make_long_content(&rng);
    write_content(&rng, HEADER, &c, c.n_bytes, "w1");
    for (size_t i = 0; i < N_RECORDS; i++) {
        renamed.at[i] = renamed.n_bytes;
        renamed.n_bytes += id_renames_rewrite(header_union_renames(u, 1), c.bytes + c.at[i],
                                              renamed.bytes + renamed.n_bytes);
    }
    renamed.at[N_RECORDS] = renamed.n_bytes;
    assert_int_equal(renamed.n_bytes, c.n_bytes + 2 * N_RECORDS);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        RELEASED(own_end_reading) struct reading *in = new_reading();
        uint64_t offsets[N_RECORDS + 1];
        for (int round = 0; round < 2; round++) {
            struct bam_reader *reader = open_file();
            in->renames = round == 0 ? NULL : header_union_renames(u, 1);
            read_all(&rng, in, round == 0 ? &c : &renamed, reader, sizes[i], 0);
            CHECK(&rng, in->n_records == N_RECORDS);
            if (round == 0) memcpy(offsets, in->offsets, sizeof offsets);
            CHECK(&rng, memcmp(offsets, in->offsets, sizeof offsets) == 0);
            bam_reader_close(reader);
        }
    }
    header_union_destroy(u);
    assert_int_equal(unlink(path), 0);
}

TEST_IN_OWN_DIR(test_records_before_the_end_of_a_truncated_file_are_there)
{
    struct rng rng = rng_start(63);
    for (size_t i = 0; i < 20; i++) {
        RELEASED(own_end_reading) struct reading *in = new_reading();
        RELEASED(release_content) struct content c = make_long_content(&rng);
        size_t n_whole = rng_below(&rng, N_RECORDS), n_bytes = c.at[n_whole + 1] - c.at[n_whole];
        write_content(&rng, HEADER, &c, c.at[n_whole] + 1 + rng_below(&rng, n_bytes - 1), "w1");
        struct bam_reader *reader = open_file();
        read_all(&rng, in, &c, reader, sizes[i % 5], 0);
        CHECK(&rng, in->n_records == n_whole && !in->has_problem);
        CHECK(&rng, span_reader_end(reader) == -1);
        bam_reader_close(reader);
    }
    assert_int_equal(unlink(path), 0);
}

TEST_IN_OWN_DIR(test_records_before_one_with_an_impossible_size_are_there)
{
    struct rng rng = rng_start(64);
    for (size_t i = 0; i < 20; i++) {
        RELEASED(own_end_reading) struct reading *in = new_reading();
        RELEASED(release_content) struct content c = make_long_content(&rng);
        size_t wrong = rng_below(&rng, N_RECORDS - 1);
        uint32_t size = rng_one_in(&rng, 2) ? 31 : 0xfffffff0;
        test_put_u32(c.bytes + c.at[wrong], size);
        write_content(&rng, HEADER, &c, c.n_bytes, "w1");
        struct bam_reader *reader = open_file();
        read_all(&rng, in, &c, reader, sizes[i % 5], 0);
        CHECK(&rng, in->n_records == wrong && in->has_problem);
        bam_reader_close(reader);
    }
    assert_int_equal(unlink(path), 0);
}
