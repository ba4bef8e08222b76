/*
 * fuzz_reader.c -- the reader of BAM files. The first two bytes of the input say how the rest
 * becomes a file (fuzz_file.h) and how large pieces are.
 *
 * A file that we read without an error htslib reads, too, with the same records. We refuse some
 * files that htslib takes: their records break the specification in ways that htslib mends or
 * overlooks.
 */
#include "fuzz_file.h"
#include "fuzz_record.h"

#include "bam/bam_check.h"
#include "bam/bam_fields.h"
#include "bam/bam_long.h"
#include "input/span_reader.h"

enum { MAX_STREAM = 1 << 20 };

static struct fuzz_file file;
static uint8_t stream_bytes[MAX_STREAM];

void fuzz_begin(void)
{
    fuzz_file_create(&file);
}

struct stream {
    uint8_t *bytes;             /* uncompressed, without the header */
    size_t n_bytes;
    bool failed, too_long;
};

/* Takes one piece; false after the last. */
static bool take_piece(struct bam_reader *reader, struct record_span *span, struct stream *s)
{
    RELEASED(bgzf_coder_release) struct bgzf_coder coder = {0};
    int r = span_reader_read(reader, span);
    if (r == BAM_READER_PIECE && span_reader_fill(reader, span, &coder, NULL) < 0)
        r = BAM_READER_ERROR;
    if (r == BAM_READER_ERROR) {
        s->failed = true;
        FUZZ_CHECK(diag_failed());
    }
    if (r != BAM_READER_PIECE) return false;
    s->too_long = span->raw_bytes > MAX_STREAM - s->n_bytes;
    if (s->too_long) return false;
    memcpy(s->bytes + s->n_bytes, span->memory + GAP_BYTES, span->raw_bytes);
    s->n_bytes += span->raw_bytes;
    record_span_shrink(span, 0);        /* so that AddressSanitizer sees every byte beyond */
    record_span_reuse(span);
    return true;
}

/* Counts the records before the first that is damaged, and tells whether all are sound. */
static size_t walk(const struct stream *s, int32_t n_refs, bool *sound)
{
    size_t at = 0, n = 0;
    *sound = false;
    while (s->n_bytes - at >= 4) {
        size_t size = bam_record_bytes(s->bytes + at);
        if (size < BAM_RECORD_FIXED_BYTES || size > s->n_bytes - at) return n;
        OWNED uint8_t *exact = fuzz_copy(s->bytes + at, size);
        bool refused = bam_record_check(exact, n_refs) || bam_record_is_long(exact);
        if (refused) return n;
        at += size;
        n++;
    }
    *sound = at == s->n_bytes;
    return n;
}

/* Reads the same file with htslib; the records must be the same. */
static void compare_with_htslib(const struct stream *s, size_t n_records)
{
    samFile *theirs = sam_open(file.path, "r");
    FUZZ_CHECK(theirs);
    OWNED_HEADER sam_hdr_t *header = sam_hdr_read(theirs);
    FUZZ_CHECK(header);
    OWNED_RECORD bam1_t *b = bam_init1();
    const uint8_t *rec = s->bytes;
    for (size_t i = 0; i < n_records; i++, rec += bam_record_bytes(rec)) {
        FUZZ_CHECK(b && sam_read1(theirs, header, b) >= 0);
        FUZZ_CHECK(b->core.tid == bam_record_tid(rec) && b->core.pos == bam_record_pos(rec));
        FUZZ_CHECK(b->core.flag == bam_record_flag(rec));
        FUZZ_CHECK(strcmp(bam_get_qname(b), (const char *)bam_record_name(rec)) == 0);
    }
    FUZZ_CHECK(sam_read1(theirs, header, b) == -1);
    (void)sam_close(theirs);
}

static void read_file(size_t span_bytes)
{
    static const htsFormat no_options;
    RELEASED(record_span_release) struct record_span span = {0};
    /* No threads of htslib: with them coverage differed from run to run, so that the same seed made
       other inputs, and htslib 1.16 leaks 32 bytes where they meet a damaged block. */
    struct bam_reader *reader = bam_reader_open(file.path, &no_options, NULL);
    FUZZ_CHECK(reader || diag_failed());
    if (!reader) return;
    bool is_text = reader->is_text;
    struct stream s = {.bytes = stream_bytes};
    span_reader_begin(reader, span_bytes, 0, 0);
    while (!is_text && take_piece(reader, &span, &s)) continue;
    if (!is_text && !s.failed && !s.too_long) {
        bool sound;
        size_t n = walk(&s, sam_hdr_nref(reader->header), &sound);
        if (sound) compare_with_htslib(&s, n);
    }
    bam_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct fuzz_input in = {data, data + n_bytes};
    enum fuzz_form form = (enum fuzz_form)fuzz_below(&in, FUZZ_N_FORMS);
    size_t span_bytes = (size_t)(1 + fuzz_u8(&in)) << 9, file_bytes;
    OWNED uint8_t *bytes = fuzz_make_file(&in, form, &file_bytes);
    diag_renew();
    if (!fuzz_is_for_htslib(bytes, file_bytes)) {
        fuzz_file_write(&file, bytes, file_bytes);
        read_file(span_bytes);
    }
    return 0;
}
