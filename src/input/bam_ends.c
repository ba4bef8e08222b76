/* bam_ends.c -- see bam_ends.h. */
#include "input/bam_ends.h"

#include <htslib/bgzf.h>
#include <htslib/hts_log.h>
#include <stdlib.h>

enum { BGZF_COMPRESSED = 2 };

/* Reads the next record into *record, which is made if it is NULL. Returns 1, 0 at the end, or
   -1. */
static int read_record(BGZF *file, bam1_t **record)
{
    enum { END = -1 };
    bam1_t *next = bam_init1();
    int r = next ? bam_read1(file, next) : -2;
    if (r < 0) {
        bam_destroy1(next);
        return r == END ? 0 : -1;
    }
    bam_destroy1(*record);
    *record = next;
    return 1;
}

/* With the header read: where the next block begins, or -1 if the block at hand has records. */
static int64_t end_of_header(BGZF *file)
{
    int64_t at = bgzf_tell(file);
    if ((at & 0xffff) == 0) return at >> 16;
    if (file->block_offset < file->block_length) return -1;
    /* htslib goes on to the next block when it reads. */
    return bgzf_read_block(file) < 0 ? -1 : file->block_address;
}

static int read_ends(BGZF *file, const struct bam_ends_places *places, struct bam_ends *ends)
{
    bam_hdr_t *header = bam_hdr_read(file);
    if (!header) return -1;
    bam_hdr_destroy(header);
    int64_t begin = end_of_header(file);
    if (begin < 0) return -1;
    ends->begin = (uint64_t)begin;
    int r = read_record(file, &ends->first);
    if (r <= 0) return r;
    if (places->placed_end > 0 && (bgzf_seek(file, (int64_t)places->placed_end, SEEK_SET) < 0 ||
                                   read_record(file, &ends->after) < 0))
        return -1;
    if (places->last_begin == 0) return 0;
    if (bgzf_seek(file, (int64_t)places->last_begin, SEEK_SET) < 0) return -1;
    while ((r = read_record(file, &ends->last)) > 0) continue;
    return r < 0 || !ends->last ? -1 : 0;
}

int bam_ends_read(const char *path, const struct bam_ends_places *places, struct bam_ends *ends)
{
    *ends = (struct bam_ends){0};
    /* What is wrong with the file will be found again when it is read. If the places are wrong,
       that is no error. */
    enum htsLogLevel level = hts_get_log_level();
    hts_set_log_level(HTS_LOG_OFF);
    BGZF *file = bgzf_open(path, "r");
    int r = -1;
    if (file) {
        if (bgzf_compression(file) == BGZF_COMPRESSED && bgzf_check_EOF(file) == 1)
            r = read_ends(file, places, ends);
        if (bgzf_close(file) < 0) r = -1;
    }
    hts_set_log_level(level);
    if (r < 0) bam_ends_release(ends);
    return r;
}

void bam_ends_release(struct bam_ends *ends)
{
    bam_destroy1(ends->first);
    bam_destroy1(ends->last);
    bam_destroy1(ends->after);
    *ends = (struct bam_ends){0};
}
