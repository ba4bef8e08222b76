/*
 * test_bam_reader.c -- BAM files of all forms, read in pieces: whatever their size, the bytes are
 * those of the file; and reading can begin at any record. SAM has tests of its own
 * (test_sam_text.c).
 */
#include "bam_content.h"
#include "test_place.h"
#include "unit_test.h"

#include "bam/bam_fields.h"
#include "bam/header_text.h"
#include "input/span_reader.h"

#include <htslib/hts_log.h>
#include <sys/stat.h>

enum form { BGZF_BLOCKS, GZIP, UNCOMPRESSED, FILTERED, N_FORMS };
enum { MAX_BYTES = 1 << 20 };

#define HEADER "@SQ\tSN:c1\tLN:100000\n"

static void write_file(struct rng *rng, enum form form, const struct content *c)
{
    static const char *const modes[N_FORMS] = {"w1", "wg", "wu", "w1"};
    write_content(rng, HEADER, c, c->n_bytes, modes[form]);
}

struct reading {
    struct bam_reader *reader;
    htsThreadPool pool;
    size_t span_bytes;
};

static void open_reading(struct reading *in, enum form form)
{
    htsFormat options = {0};
    if (form == FILTERED)
        assert_int_equal(hts_opt_add((hts_opt **)&options.specific, "filter=mapq>=0"), 0);
    in->reader = bam_reader_open(path, &options, &in->pool, READER_FIRST);
    assert_non_null(in->reader);
    if (options.specific) hts_opt_free(options.specific);
    assert_false(in->reader->is_text);
    assert_int_equal(in->reader->can_seek, form == BGZF_BLOCKS);
}

/* Reads to the end; the bytes must be those of the file. */
static void check_bytes(struct reading *in, const struct content *c)
{
    RELEASED(record_span_release) struct record_span span = {0};
    RELEASED(bgzf_coder_release) struct bgzf_coder coder = {0};
    size_t at = 0;
    int r;
    span_reader_begin(in->reader, in->span_bytes, 0, 0);
    while ((r = span_reader_read(in->reader, &span)) == BAM_READER_PIECE) {
        assert_int_equal(span_reader_fill(in->reader, &span, &coder, NULL), 0);
        assert_true(span.raw_bytes <= c->n_bytes - at);
        assert_true(span.raw_bytes <= 1 << 16 || span.raw_bytes <= in->span_bytes);
        if (span.raw_bytes > 0)
            assert_memory_equal(span.memory + GAP_BYTES, c->bytes + at, span.raw_bytes);
        at += span.raw_bytes;
        record_span_shrink(&span, 0);   /* so that AddressSanitizer sees every byte beyond */
        record_span_reuse(&span);
    }
    assert_int_equal(r, BAM_READER_END);
    assert_int_equal(at, c->n_bytes);
    bam_reader_close(in->reader);
}

static const size_t sizes[] = {1, 3000, 5000, 65536, 70000, 1 << 18, MAX_BYTES};

TEST_IN_OWN_DIR(test_pieces_of_all_sizes)
{
    struct rng rng = rng_start(31);
    OWNED struct reading *in = test_alloc(sizeof *in);
    in->pool = (htsThreadPool){.pool = hts_tpool_init(2)};
    assert_non_null(in->pool.pool);
    for (enum form form = BGZF_BLOCKS; form < N_FORMS; form++) {
        RELEASED(release_content) struct content c = make_content(&rng, 30000, 30000);
        write_file(&rng, form, &c);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            in->span_bytes = sizes[i];
            /* Other forms have whole blocks or records in a piece. */
            if (in->span_bytes == 1 && (form == GZIP || form == UNCOMPRESSED))
                in->span_bytes = 777;
            open_reading(in, form);
            check_bytes(in, &c);
        }
    }
    assert_int_equal(unlink(path), 0);
    hts_tpool_destroy(in->pool.pool);
}

/* What has been read of a file is counted in bytes of the file, also where these are compressed and
   htslib inflates them: it is never more than the file has, and all of it at the end. */
TEST_IN_OWN_DIR(test_offset_is_that_of_the_file)
{
    struct rng rng = rng_start(34);
    for (enum form form = BGZF_BLOCKS; form <= UNCOMPRESSED; form++) {
        struct stat st;
        RELEASED(record_span_release) struct record_span span = {0};
        struct reading in = {0};
        RELEASED(release_content) struct content c = make_content(&rng, 30000, 30000);
        write_file(&rng, form, &c);
        assert_int_equal(stat(path, &st), 0);
        open_reading(&in, form);
        uint64_t before = 0;
        span_reader_begin(in.reader, 1 << 17, 0, 0);
        while (span_reader_read(in.reader, &span) == BAM_READER_PIECE) {
            uint64_t offset = in.reader->file_offset;
            CHECK(&rng, offset >= before && offset <= (uint64_t)st.st_size);
            before = offset;
            record_span_reuse(&span);
        }
        CHECK(&rng, in.reader->file_offset == (uint64_t)st.st_size);
        bam_reader_close(in.reader);
    }
    assert_int_equal(unlink(path), 0);
}

/* A comment without even a tab stays, as in samtools 1.24; htslib 1.16 drops it when it takes the
   header apart. */
TEST_IN_OWN_DIR(test_comments_without_text)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"@CO\n", "@CO\t\n"},
        {"@CO\n@SQ\tSN:c\tLN:9\n@CO\n@CO\n@CO\tx\n@CO\t\n@CO",
         "@CO\t\n@SQ\tSN:c\tLN:9\n@CO\t\n@CO\t\n@CO\tx\n@CO\t\n@CO\t"},
        {"@SQ\tSN:c\tLN:9\n@CO\tx\n", NULL},
        {"@CO\t@CO\n", NULL},
        {"@COx\n", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED char *complete = header_complete_comments(cases[i].text);
        if (cases[i].want)
            assert_string_equal(complete, cases[i].want);
        else
            assert_null(complete);
    }
    char text[256];
    (void)snprintf(text, sizeof text, "@HD\tVN:1.6\n%s\n", cases[1].text);
    put_file(path, text, strlen(text));
    htsFormat options = {0};
    struct bam_reader *reader = bam_reader_open(path, &options, NULL, READER_FIRST);
    assert_non_null(reader);
    sam_hdr_t *header = reader->header;
    assert_int_equal(sam_hdr_count_lines(header, "CO"), 6);
    bam_reader_close(reader);
    assert_int_equal(unlink(path), 0);
}

/* Only BGZF has an EOF marker. */
__attribute__((constructor)) static void silence_htslib(void)
{
    hts_set_log_level(HTS_LOG_ERROR);
}
