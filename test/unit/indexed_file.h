/*
 * indexed_file.h -- for test_bam_index.c: makes random sorted records, writes them to a file in
 * segments, as the program does, and makes our indexes of that file.
 */
#ifndef ROCKSORT_TEST_INDEXED_FILE_H
#define ROCKSORT_TEST_INDEXED_FILE_H

#include "random_records.h"
#include "test_place.h"

#include "bam/bam_convert.h"
#include "bam/bgzf_block.h"
#include "output/bam_index.h"

#include <htslib/kstring.h>
#include <unistd.h>

struct record {
    uint8_t *bytes;
    size_t n_bytes;
    int32_t tid, pos;
    int64_t end;
    uint32_t flag;
    size_t number;              /* its name is this number */
};

struct records {
    struct record *items;
    size_t n;
};

/* How a test wants its file. */
struct plan {
    size_t n_records;
    size_t unplaced_in;         /* one record in so many has no reference; 0: none */
    int64_t span;               /* positions lie in so many bases; 0: in the whole reference */
    size_t gap;                 /* most bases that an operation skips */
    size_t l_seq;               /* most bases of a read */
    size_t segment_records;     /* records of a segment on average; 1: exactly one */
    size_t payload_bytes;       /* of a block */
    bool straddle;              /* records may continue in the next block */
    bool as_text;               /* SAM, not BAM */
    int level;
    size_t n_queries;
};

static const struct plan small_plan = {.n_records = 300, .unplaced_in = 20, .gap = 100000,
                                       .l_seq = 300, .segment_records = 20, .level = 1,
                                       .payload_bytes = BGZF_PAYLOAD_BYTES, .n_queries = 60};

struct kind {                   /* a kind of index */
    enum bam_index_format format;
    int min_shift;              /* for sam_index_build3 */
    const char *ours, *theirs;  /* file of our index, file of htslib's */
};

static const struct kind kinds[2] = {{BAM_INDEX_BAI, 0, "ours.bai", "theirs.bai"},
                                     {BAM_INDEX_CSI, 14, "ours.csi", "theirs.csi"}};
static const char *const data_path = "data.gz";

/* ---- each test works in a directory of its own ---- */

static int leave_indexed_place(void **state)
{
    (void)unlink(data_path);
    for (int i = 0; i < 2; i++) {
        (void)unlink(kinds[i].ours);
        (void)unlink(kinds[i].theirs);
    }
    return leave_place(state);
}

/* ---- making records ---- */

/* References c0, c1, ...: the last of the given lengths is that of all further references, too. */
static sam_hdr_t *make_header(const int64_t *lengths, size_t n_lengths, size_t n_refs)
{
    kstring_t text = {0};
    assert_true(kputs("@HD\tVN:1.6\tSO:coordinate\n", &text) >= 0);
    for (size_t i = 0; i < n_refs; i++) {
        int64_t length = lengths[i < n_lengths ? i : n_lengths - 1];
        assert_true(ksprintf(&text, "@SQ\tSN:c%zu\tLN:%" PRId64 "\n", i, length) > 0);
    }
    sam_hdr_t *header = sam_hdr_parse(text.l, text.s);
    assert_non_null(header);
    free(text.s);
    return header;
}

/* Writes the CIGAR: the first operation matches the read, the others skip. Returns the number of
   bases covered. */
static int64_t put_operations(struct rng *rng, const struct plan *plan, uint8_t *ops,
                              const struct record_fields *fields, int64_t left)
{
    static const uint32_t others[] = {BAM_CDEL, BAM_CREF_SKIP, BAM_CPAD, BAM_CHARD_CLIP};
    int64_t covered = 0;
    for (uint32_t i = 0; i < fields->n_cigar; i++) {
        uint32_t op = i == 0 ? BAM_CMATCH : others[rng_below(rng, 4)];
        int64_t length = (int64_t)(rng_below(rng, plan->gap + 1) >> rng_below(rng, 20));
        if (length > left - covered) length = left - covered;
        if (i == 0 && fields->l_seq > 0) length = fields->l_seq;
        if (i == 0 && length == 0 && plan->as_text) length = 1;
        test_put_u32(ops + 4 * (size_t)i, (uint32_t)length << 4 | op);
        if (op != BAM_CPAD && op != BAM_CHARD_CLIP) covered += length;
    }
    return covered;
}

static void make_record(struct rng *rng, const struct plan *plan, int64_t left, struct record *r)
{
    char name[32];
    (void)snprintf(name, sizeof name, "%zu", r->number);
    struct record_fields fields = {.name = name, .tid = r->tid, .pos = r->pos, .flag = r->flag};
    fields.l_seq = (int32_t)rng_below(rng, plan->l_seq + 1);
    if (fields.l_seq > left) fields.l_seq = (int32_t)left;
    fields.n_cigar = (uint32_t)rng_below(rng, 4);
    /* When htslib reads SAM, it makes a read without a CIGAR unmapped. */
    if (plan->as_text && fields.n_cigar == 0) r->flag = fields.flag = BAM_FUNMAP;
    r->n_bytes = record_size(&fields);
    r->bytes = test_alloc(r->n_bytes);
    (void)put_record(r->bytes, &fields, '!');
    int64_t covered = put_operations(rng, plan, r->bytes + 36 + strlen(name) + 1, &fields, left);
    if (r->flag & BAM_FUNMAP || covered == 0) covered = 1;
    r->end = r->pos + covered;
}

/* Chooses reference and position. Returns how many bases of the reference follow. */
static int64_t choose_place(struct rng *rng, const struct plan *plan, const sam_hdr_t *header,
                            struct record *r)
{
    r->flag = rng_one_in(rng, 8) ? BAM_FUNMAP : 0;
    if (plan->unplaced_in && rng_one_in(rng, plan->unplaced_in)) {
        r->tid = -1;
        r->pos = rng_one_in(rng, 2) && !plan->as_text ? 17 : -1;
        r->flag = BAM_FUNMAP;
        return 1000;
    }
    r->tid = (int32_t)rng_below(rng, (size_t)sam_hdr_nref(header));
    int64_t length = sam_hdr_tid2len(header, r->tid);
    int64_t span = plan->span && plan->span < length ? plan->span : length;
    int64_t pos = (int64_t)rng_below(rng, (size_t)span);
    if (rng_one_in(rng, 2)) pos >>= rng_below(rng, 20);         /* more at the left end */
    if (rng_one_in(rng, 4)) pos += length - span;
    /* One such record a reference: with a second one htslib 1.16 to 1.24 says the file is not
       sorted. */
    if (!plan->as_text && r->number == (size_t)r->tid + 3) pos = -1;
    r->pos = (int32_t)pos;
    return length - pos;
}

static int compare_records(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    uint32_t tid_x = (uint32_t)x->tid, tid_y = (uint32_t)y->tid;
    if (tid_x != tid_y) return tid_x < tid_y ? -1 : 1;
    if (x->pos != y->pos) return x->pos < y->pos ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

static struct records make_records(struct rng *rng, const struct plan *plan,
                                   const sam_hdr_t *header)
{
    struct records records = {test_alloc(plan->n_records * sizeof(struct record)),
                              plan->n_records};
    for (size_t i = 0; i < records.n; i++) {
        struct record *r = &records.items[i];
        *r = (struct record){.number = i};
        int64_t left = choose_place(rng, plan, header, r);
        make_record(rng, plan, left, r);
    }
    qsort(records.items, records.n, sizeof(struct record), compare_records);
    return records;
}

static void free_records(struct records *records)
{
    for (size_t i = 0; i < records->n; i++) free(records->items[i].bytes);
    free(records->items);
}

/* ---- writing a file and its indexes ---- */

struct output {
    const struct plan *plan;
    sam_hdr_t *header;
    FILE *file;
    uint64_t n_written;
    struct bgzf_coder coder;
    uint8_t payload[BGZF_PAYLOAD_BYTES];
    size_t n_payload;
    kstring_t segment;
    struct bam_index *indexes[2];       /* one of each kind; NULL: the references are too long */
    struct bam_index_part parts[2];
};

static bool fits_bai(const sam_hdr_t *header)
{
    for (int i = 0; i < sam_hdr_nref(header); i++)
        if (sam_hdr_tid2len(header, i) > 1 << 29) return false;
    return true;
}

static struct output *open_output(const struct plan *plan, sam_hdr_t *header)
{
    struct output *out = test_alloc(sizeof *out);
    *out = (struct output){.plan = plan, .header = header, .file = fopen(data_path, "wb")};
    assert_non_null(out->file);
    for (int i = 0; i < 2; i++) {
        if (kinds[i].format == BAM_INDEX_BAI && !fits_bai(header)) continue;
        out->indexes[i] = bam_index_create(kinds[i].format, header);
        assert_non_null(out->indexes[i]);
        bam_index_part_init(&out->parts[i], bam_index_shape(out->indexes[i]));
    }
    return out;
}

static void end_block(struct output *out)
{
    uint8_t block[BGZF_MAX_BYTES];
    if (out->n_payload == 0) return;
    const struct bgzf_method method = {.level = out->plan->level};
    ssize_t n = bgzf_block_deflate(&out->coder, method, out->payload, out->n_payload, block);
    assert_true(n > 0);
    assert_true(kputsn((const char *)block, (size_t)n, &out->segment) >= 0);
    out->n_payload = 0;
}

/* Adds bytes to the segment and returns the virtual offset at which they begin. */
static uint64_t add_bytes(struct output *out, const void *bytes, size_t n)
{
    size_t room = out->plan->payload_bytes;
    const uint8_t *from = bytes;
    if (out->n_payload == room || (!out->plan->straddle && out->n_payload + n > room))
        end_block(out);
    uint64_t begin = bam_index_voffset(out->segment.l, out->n_payload);
    while (n > 0) {
        if (out->n_payload == room) end_block(out);
        size_t now = n < room - out->n_payload ? n : room - out->n_payload;
        memcpy(out->payload + out->n_payload, from, now);
        out->n_payload += now;
        from += now;
        n -= now;
    }
    return begin;
}

static void end_segment(struct output *out)
{
    end_block(out);
    for (int i = 0; i < 2; i++) {
        if (!out->indexes[i]) continue;
        bam_index_part_end(&out->parts[i], bam_index_voffset(out->segment.l, 0));
        assert_int_equal(bam_index_append(out->indexes[i], &out->parts[i], out->n_written), 0);
        bam_index_part_release(&out->parts[i]);
        bam_index_part_init(&out->parts[i], bam_index_shape(out->indexes[i]));
    }
    size_t n = out->segment.l;
    assert_true(n == 0 || fwrite(out->segment.s, 1, n, out->file) == n);
    out->n_written += n;
    out->segment.l = 0;
}

static void add_u32(struct output *out, size_t value)
{
    uint8_t bytes[4];
    test_put_u32(bytes, (uint32_t)value);
    (void)add_bytes(out, bytes, 4);
}

/* Writes the header, in blocks of its own, before the first segment. */
static void write_header(struct output *out)
{
    const char *text = sam_hdr_str(out->header);
    if (!out->plan->as_text) {
        (void)add_bytes(out, "BAM\1", 4);
        add_u32(out, strlen(text));
    }
    (void)add_bytes(out, text, strlen(text));
    if (!out->plan->as_text) {
        add_u32(out, (size_t)sam_hdr_nref(out->header));
        for (int i = 0; i < sam_hdr_nref(out->header); i++) {
            const char *name = sam_hdr_tid2name(out->header, i);
            add_u32(out, strlen(name) + 1);
            (void)add_bytes(out, name, strlen(name) + 1);
            add_u32(out, (size_t)sam_hdr_tid2len(out->header, i));
        }
    }
    end_segment(out);
}

/* Returns the raw record, or its line of SAM. */
static const void *record_in_file(const struct output *out, const struct record *r,
                                  kstring_t *line, size_t *n_bytes)
{
    *n_bytes = r->n_bytes;
    if (!out->plan->as_text) return r->bytes;
    OWNED_RECORD bam1_t *b = bam_init1();
    assert_non_null(b);
    bam_record_unpack(r->bytes, b);
    assert_true(sam_format1(out->header, b, line) >= 0 && kputc('\n', line) >= 0);
    *n_bytes = line->l;
    return line->s;
}

static void close_output(struct output *out)
{
    static const uint8_t end_of_file[28] = {0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, 'B', 'C',
                                            2,    0,    27, 0, 3, 0, 0, 0, 0, 0,    0, 0, 0,   0};
    assert_true(fwrite(end_of_file, 1, sizeof end_of_file, out->file) == sizeof end_of_file);
    assert_int_equal(fclose(out->file), 0);
    for (int i = 0; i < 2; i++) {
        bam_index_part_release(&out->parts[i]);
        struct output_path path = {.name = kinds[i].ours, .mode = 0666};
        if (out->indexes[i]) assert_int_equal(bam_index_write(out->indexes[i], &path), 0);
        bam_index_destroy(out->indexes[i]);
    }
    bgzf_coder_release(&out->coder);
    free(out->segment.s);
    free(out);
}

static void write_file(struct rng *rng, const struct plan *plan, const struct records *records,
                       sam_hdr_t *header)
{
    struct output *out = open_output(plan, header);
    kstring_t line = {0};
    write_header(out);
    for (size_t i = 0; i < records->n; i++) {
        const uint8_t *rec = records->items[i].bytes;
        size_t n;
        const void *bytes = record_in_file(out, &records->items[i], &line, &n);
        uint64_t begin = add_bytes(out, bytes, n);
        for (int k = 0; k < 2; k++)
            if (out->indexes[k])
                assert_int_equal(bam_index_part_add(&out->parts[k], rec, begin), 0);
        if (rng_one_in(rng, plan->segment_records)) end_segment(out);
        if (rng_one_in(rng, 4 * plan->segment_records)) end_segment(out);       /* an empty one */
    }
    end_segment(out);
    close_output(out);
    free(line.s);
}

#endif
