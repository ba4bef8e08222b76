/*
 * fuzz_sam_text.c -- SAM text: we read the same records as htslib's own reader, however the text is
 * cut into chunks. The first byte of the input says how large chunks are; the rest is the file.
 *
 * If htslib finds an error we find one, too, after the same records. We are stricter where htslib
 * changes what a line says: see is_stricter.
 */
#include "fuzz_input.h"

#include "bam/bam_check.h"
#include "bam/bam_convert.h"
#include "bam/bam_fields.h"
#include "bam/bam_long.h"
#include "input/span_reader.h"

#include <htslib/hfile.h>

/* Opens the bytes as a SAM file and reads its header; NULL if they are no SAM file. */
static samFile *open_sam(const uint8_t *bytes, size_t n, bool is_ours, sam_hdr_t **header)
{
    bool is_cut;
    *header = NULL;
    hFILE *hfile = hopen("mem:", "r:", fuzz_copy(bytes, n), n);
    if (!hfile) return NULL;
    samFile *file = hts_hopen(hfile, "fuzz", "r");
    if (!file) {
        hclose_abruptly(hfile);
        return NULL;
    }
    if (file->format.format == sam && file->format.compression == no_compression)
        *header = is_ours ? sam_text_read_header(file, "fuzz", &is_cut) : sam_hdr_read(file);
    if (*header) return file;
    (void)sam_close(file);
    return NULL;
}

struct records {
    uint8_t *bytes;
    size_t n_bytes, n_records;
    char problem[SAM_PROBLEM_BYTES];    /* what follows them, or "" */
};

static void append_bytes(struct records *r, const uint8_t *bytes, size_t n)
{
    r->bytes = realloc(r->bytes, r->n_bytes + n + 1);
    FUZZ_CHECK(r->bytes);
    if (n > 0) memcpy(r->bytes + r->n_bytes, bytes, n);
    r->n_bytes += n;
}

static void note_problem(struct records *r, const char *problem)
{
    FUZZ_CHECK(problem[0] && strlen(problem) < sizeof r->problem);
    memcpy(r->problem, problem, strlen(problem) + 1);
}

static void read_ours(samFile *file, sam_hdr_t *header, size_t span_bytes, struct records *out)
{
    RELEASED(record_span_release) struct record_span span = {0};
    OWNED_RECORD bam1_t *record = bam_init1();
    struct bam_reader reader = {.hts = file, .header = header, .span_bytes = span_bytes,
                                .long_positions = bam_header_long_reference(header) >= 0};
    int r = BAM_READER_END;
    FUZZ_CHECK(record);
    while (!out->problem[0] && (r = sam_text_next(&reader, &span)) == BAM_READER_PIECE) {
        sam_chunk_parse(&reader, &span, record);
        append_bytes(out, span.from, (size_t)(span.to - span.from));
        out->n_records += span.n_records;
        if (span.lines.problem) note_problem(out, span.lines.problem);
        record_span_reuse(&span);
    }
    FUZZ_CHECK(out->problem[0] || r == BAM_READER_END);
    free(reader.ahead);
}

static void read_theirs(samFile *file, sam_hdr_t *header, struct records *out)
{
    bool parsed = sam_hdr_name2tid(header, "*") >= -1;
    bool long_positions = parsed && bam_header_long_reference(header) >= 0;
    OWNED_RECORD bam1_t *record = bam_init1();
    int r;
    FUZZ_CHECK(record);
    while ((r = sam_read1(file, header, record)) >= 0) {
        OWNED uint8_t *raw = NULL;
        size_t room = 0;
        if (bam_record_put(record, long_positions, &raw, &room, 0)) {
            note_problem(out, "cannot be packed");
            break;
        }
        append_bytes(out, raw, bam_record_bytes(raw));
        out->n_records++;
    }
    if (r < -1) note_problem(out, "htslib's error");
}

/* For htslib a NUL ends the line, and an empty line may end the file; 1.16 changes numbers. */
static bool is_stricter(const char *problem)
{
    return strstr(problem, "NUL") || strstr(problem, "line is empty") ||
           strstr(problem, "is above") || strstr(problem, "has an array");
}

/* The bytes are whole records, and the check that every record gets does not fail on them. */
static void check_records(const struct records *r, int32_t n_refs)
{
    size_t at = 0, n = 0;
    for (; at < r->n_bytes; at += bam_record_bytes(r->bytes + at), n++)
        (void)bam_record_check(r->bytes + at, n_refs);
    FUZZ_CHECK(at == r->n_bytes && n == r->n_records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct fuzz_input in = {data, data + n_bytes};
    size_t span_bytes = 1 + fuzz_u8(&in);
    sam_hdr_t *header, *other_header;
    samFile *file = open_sam(in.at, fuzz_left(&in), true, &header);
    if (!file) return 0;
    samFile *other = open_sam(in.at, fuzz_left(&in), false, &other_header);
    FUZZ_CHECK(other);
    struct records ours = {0}, theirs = {0};
    if (span_bytes > 200) span_bytes *= 100;
    read_ours(file, header, span_bytes, &ours);
    read_theirs(other, other_header, &theirs);
    check_records(&ours, sam_hdr_nref(header));
    bool stricter = is_stricter(ours.problem);
    FUZZ_CHECK(stricter || (ours.problem[0] != '\0') == (theirs.problem[0] != '\0'));
    FUZZ_CHECK(ours.n_records == theirs.n_records ||
               (stricter && ours.n_records < theirs.n_records));
    FUZZ_CHECK(ours.n_bytes <= theirs.n_bytes);
    /* We and htslib 1.24 replace U by T, 1.16 by N. */
    bool has_uracil = memchr(in.at, 'U', fuzz_left(&in)) || memchr(in.at, 'u', fuzz_left(&in));
    FUZZ_CHECK(ours.n_bytes == 0 || has_uracil ||
               memcmp(ours.bytes, theirs.bytes, ours.n_bytes) == 0);
    free(ours.bytes);
    free(theirs.bytes);
    sam_hdr_destroy(header);
    sam_hdr_destroy(other_header);
    (void)sam_close(file);
    (void)sam_close(other);
    return 0;
}
