/*
 * fuzz_index.c -- indexes of sorted records with any fields: byte for byte the ones that htslib
 * makes from the same places in a file. The input says how records lie in blocks and output chunks.
 * No BAM file is written: an index only needs to know where records begin.
 */
#include "fuzz_file.h"
#include "fuzz_record.h"

#include "bam/bam_check.h"
#include "bam/bam_convert.h"
#include "bam/bam_long.h"
#include "bam_sort_key.h"
#include "output/bam_index.h"
#include "util/byte_order.h"

#include <htslib/bgzf.h>

enum { MAX_RECORDS = 64, MAX_PAYLOAD = 0xff00 };

struct placed {                 /* a record and where it is in the file */
    uint8_t *bytes;
    uint64_t begin;             /* virtual offset in the file */
    bool new_chunk;             /* an output chunk begins with this record */
    uint64_t output_chunk;      /* where its output chunk begins in the file */
};

/* A BAI cannot hold the third reference of fuzz_header_text: it is too long. */
static const char bai_header_text[] = "@SQ\tSN:a\tLN:1000\n@SQ\tSN:b\tLN:536870912\n";

static sam_hdr_t *csi_header, *bai_header;
static struct fuzz_file ours, theirs;

void fuzz_begin(void)
{
    csi_header = sam_hdr_parse(strlen(fuzz_header_text), fuzz_header_text);
    bai_header = sam_hdr_parse(strlen(bai_header_text), bai_header_text);
    FUZZ_CHECK(csi_header && bai_header);
    fuzz_file_create(&ours);
    fuzz_file_create(&theirs);
}

static int compare_places(const void *a, const void *b)
{
    uint64_t x = sort_key_coordinate(((const struct placed *)a)->bytes);
    uint64_t y = sort_key_coordinate(((const struct placed *)b)->bytes);
    return (x > y) - (x < y);
}

static size_t make_records(struct fuzz_input *in, int32_t n_refs, struct placed *records)
{
    OWNED uint8_t *made = fuzz_alloc(FUZZ_MAX_RECORD);
    size_t n = 0;
    while (n < MAX_RECORDS && fuzz_left(in) > 4) {
        size_t size = fuzz_make_record(in, made);
        if (bam_record_check(made, n_refs) || bam_record_is_long(made)) continue;
        records[n++] = (struct placed){.bytes = fuzz_copy(made, size)};
    }
    qsort(records, n, sizeof *records, compare_places);
    return n;
}

/* Lays the records out in blocks and output chunks; returns the file's end. With a larger scale,
   blocks are so far apart that bins have more than 64 KB of the file. */
static uint64_t place_records(struct fuzz_input *in, unsigned scale, struct placed *records,
                              size_t n)
{
    uint64_t block = fuzz_u16(in), output_chunk = block, in_block = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned how = fuzz_u8(in);
        size_t size = bam_record_bytes(records[i].bytes);
        bool ends_block = in_block > 0 && (how & 3) == 0;
        if (ends_block) {
            block += 1 + (how & 128 ? (uint64_t)fuzz_u16(in) << scale : how);
            in_block = 0;
            if (how & 4) output_chunk = block;
        }
        records[i].new_chunk = i == 0 || (ends_block && (how & 4));
        records[i].output_chunk = output_chunk;
        records[i].begin = bam_index_voffset(block, in_block);
        in_block += size;
        if (in_block >= MAX_PAYLOAD) {
            block += 100;
            in_block -= MAX_PAYLOAD;
        }
    }
    return bam_index_voffset(block + 28, 0);
}

/* Appends the records from one output chunk's first to its last. Returns 0, or -1 after a message.
 */
static int append_chunk(struct bam_index *index, struct bam_index_part *part,
                        const struct placed *records, size_t n, uint64_t end)
{
    uint64_t base = bam_index_voffset(records[0].output_chunk, 0);
    bam_index_part_release(part);
    bam_index_part_init(part, bam_index_shape(index));
    for (size_t i = 0; i < n; i++)
        if (bam_index_part_add(part, records[i].bytes, records[i].begin - base) < 0) return -1;
    bam_index_part_end(part, end - base);
    return bam_index_append(index, part, records[0].output_chunk);
}

static int write_ours(enum bam_index_format format, const struct placed *records, size_t n,
                      uint64_t end)
{
    struct bam_index_part part;
    struct bam_index *index = bam_index_create(format, format == BAM_INDEX_BAI ? bai_header
                                                                               : csi_header);
    int r = 0;
    if (!index) return -1;
    bam_index_part_init(&part, bam_index_shape(index));
    for (size_t i = 0, next; r == 0 && i < n; i = next) {
        for (next = i + 1; next < n && !records[next].new_chunk; next++) continue;
        uint64_t stop = next < n ? bam_index_voffset(records[next].output_chunk, 0) : end;
        r = append_chunk(index, &part, records + i, next - i, stop);
    }
    struct output_path path = {.name = ours.path, .mode = 0600};
    if (r == 0) r = bam_index_write(index, &path);
    bam_index_part_release(&part);
    bam_index_destroy(index);
    return r;
}

/* As sam_index does it: each record with the place after it. */
static int write_theirs(enum bam_index_format kind, const struct placed *records, size_t n,
                        uint64_t end)
{
    uint64_t first = n > 0 ? records[0].begin : end;
    /* 6 levels above 2^14 bases for the longest reference of the CSI's header. */
    int format = kind == BAM_INDEX_BAI ? HTS_FMT_BAI : HTS_FMT_CSI;
    int n_levels = kind == BAM_INDEX_BAI ? 5 : 6, n_refs = kind == BAM_INDEX_BAI ? 2 : FUZZ_N_REFS;
    hts_idx_t *index = hts_idx_init(n_refs, format, first, 14, n_levels);
    OWNED_RECORD bam1_t *b = bam_init1();
    int r = 0;
    FUZZ_CHECK(index && b);
    for (size_t i = 0; r == 0 && i < n; i++) {
        bam_record_unpack(records[i].bytes, b);
        bool mapped = !(b->core.flag & BAM_FUNMAP);
        r = hts_idx_push(index, b->core.tid, b->core.pos, bam_endpos(b),
                         i + 1 < n ? records[i + 1].begin : end, mapped);
    }
    if (r == 0) r = hts_idx_finish(index, end);
    if (r == 0) r = hts_idx_save_as(index, NULL, theirs.path, format);
    hts_idx_destroy(index);
    return r;
}

/* True for two reads at position -1 of one reference, which htslib calls out of order. */
static bool has_two_before_the_first(const struct placed *records, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (bam_record_tid(records[i].bytes) >= 0 && bam_record_pos(records[i].bytes) < 0 &&
            bam_record_tid(records[i].bytes) == bam_record_tid(records[i - 1].bytes))
            return true;
    return false;
}

/* True if a CIGAR is in the CG tag: we take the length from the operations in its place. */
static bool has_long_cigar(const struct placed *records, size_t n)
{
    bool found = false;
    OWNED_RECORD bam1_t *b = bam_init1();
    for (size_t i = 0; i < n && !found; i++) {
        const uint8_t *rec = records[i].bytes;
        FUZZ_CHECK(b);
        bam_record_unpack(rec, b);
        size_t n_bytes = 4 * (size_t)b->core.n_cigar;
        found = b->core.n_cigar != get_u16(rec + 16) ||
                (n_bytes > 0 && memcmp(bam_get_cigar(b), bam_record_name(rec) +
                                       bam_record_name_bytes(rec), n_bytes) != 0);
    }
    return found;
}

/* The content of an index, without compression. */
static uint8_t *read_index(const struct fuzz_file *file, size_t *n_bytes)
{
    enum { MOST = 1 << 22 };
    uint8_t *content = fuzz_alloc(MOST);
    BGZF *bgzf = bgzf_open(file->path, "r");
    FUZZ_CHECK(bgzf);
    ssize_t n = bgzf_read(bgzf, content, MOST);
    FUZZ_CHECK(n >= 0 && n < MOST);
    (void)bgzf_close(bgzf);
    *n_bytes = (size_t)n;
    return content;
}

static void compare_indexes(void)
{
    size_t n_ours, n_theirs;
    OWNED uint8_t *a = read_index(&ours, &n_ours), *b = read_index(&theirs, &n_theirs);
    FUZZ_CHECK(n_ours == n_theirs && memcmp(a, b, n_ours) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct placed records[MAX_RECORDS];
    struct fuzz_input layout = {data, data + n_bytes / 4}, in = {layout.end, data + n_bytes};
    unsigned how = fuzz_u8(&layout);
    enum bam_index_format format = how & 1 ? BAM_INDEX_BAI : BAM_INDEX_CSI;
    size_t n = make_records(&in, format == BAM_INDEX_BAI ? 2 : FUZZ_N_REFS, records);
    uint64_t end = place_records(&layout, how >> 1 & 3, records, n);
    diag_renew();
    int r = write_ours(format, records, n, end);
    FUZZ_CHECK(r == 0 || diag_failed());
    if (!has_two_before_the_first(records, n) && !has_long_cigar(records, n)) {
        /* A record that reaches beyond the index is an error for both. */
        FUZZ_CHECK((write_theirs(format, records, n, end) == 0) == (r == 0));
        if (r == 0) compare_indexes();
    }
    for (size_t i = 0; i < n; i++) free(records[i].bytes);
    return 0;
}
