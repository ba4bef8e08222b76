/*
 * draft.h -- changes fields, CIGAR and tags of a raw record, which is copied only when written.
 *
 * A draft holds the changes. Order of calls: draft_open; change fields and call draft_take_ops,
 * draft_take_tags, draft_set_tag and draft_remove_tag, in any order; draft_write; draft_close.
 *
 * Ownership: the record belongs to the caller and must outlive the draft, and so must the mates
 * given to draft_set_tag. Threads: one at a time. Nothing can fail.
 */
#ifndef ROCKSORT_FIXMATE_DRAFT_H
#define ROCKSORT_FIXMATE_DRAFT_H

#include "bam/bam_long.h"

/* The tags that a record gets: all except MN describe its mate. */
enum draft_tag {
    DRAFT_MN,                   /* MN, length of its own sequence */
    DRAFT_MQ,                   /* MQ:i, mapping quality of the mate */
    DRAFT_MC,                   /* MC:Z, CIGAR of the mate */
    DRAFT_CT,                   /* ct:Z, CIGAR of the template */
    DRAFT_MS,                   /* ms:i, score of the mate */
    DRAFT_COPY,                 /* any other tag of the mate (draft_copy_tag) */
    DRAFT_N_TAGS
};

struct draft {
    const uint8_t *rec;
    /* as they will be written; positions are 0-based and may lie beyond 2^31 - 1 */
    uint32_t flag;
    uint8_t mapq;
    int32_t tid, mate_tid;
    int64_t pos, mate_pos, template_length;
    struct bam_cigar cigar;
    int64_t cigar_bases;        /* reference bases that it covers */
    bool without_alignment_tags;        /* NM, MD, CG and SM are left out */
    const uint8_t *tags;        /* all tags of the record except the long tag */
    size_t tags_bytes;
    /* set by draft_open, for draft.c only */
    const uint8_t *long_cigar;  /* the CG tag that holds the CIGAR, or NULL */
    /* changes of the tags */
    unsigned n_removed[DRAFT_N_TAGS];   /* how many of the record's own tags to leave out; ends at a
                                           damaged tag */
    const struct draft *from[DRAFT_N_TAGS];     /* whose value is appended */
    enum draft_tag appended[DRAFT_N_TAGS];      /* in their order */
    unsigned n_appended;
    const uint8_t *copied;      /* the tag that DRAFT_COPY appends */
    size_t copied_bytes;
    uint8_t *own_ops, *own_tags;        /* owned, or NULL */
};

/* Begins a draft of a checked record (bam_check.h), whose CIGAR was moved from the CG tag to its
   field if it fits there (bam_record_restore_cigar). */
void draft_open(struct draft *draft, const uint8_t *rec);

/* Frees what the draft owns. */
void draft_close(struct draft *draft);

/* Replace the CIGAR or the tags. The draft takes ownership of the memory, which is from malloc. */
void draft_take_ops(struct draft *draft, uint8_t *ops, size_t n_ops);
void draft_take_tags(struct draft *draft, uint8_t *tags, size_t tags_bytes);

/* draft_set_tag deletes the first tag with this name and appends a new one; draft_write computes
   its value from `mate`: for DRAFT_CT the other record of the template, for DRAFT_MN NULL. */
void draft_set_tag(struct draft *draft, enum draft_tag tag, const struct draft *mate);
void draft_remove_tag(struct draft *draft, enum draft_tag tag);

/* Appends a copy of a tag of `mate`, before those of draft_set_tag. At most one tag, and none with
   the name of a draft_tag. */
void draft_copy_tag(struct draft *draft, const struct bam_aux *tag, const struct draft *mate);

static inline bool draft_is_mapped(const struct draft *draft)
{
    return !(draft->flag & BAM_FUNMAP);
}

/* True if a tag is damaged: it and those after it do not change. */
bool draft_has_damaged_tags(const struct draft *draft);

/* The position after the last base of the alignment. An alignment counts as at least one base long,
   also of an unmapped read. */
int64_t draft_end(const struct draft *draft);

/* Upper bound of the bytes that draft_write writes. */
size_t draft_bytes_at_most(const struct draft *draft);

/* Writes the record to out, and returns its end. */
uint8_t *draft_write(const struct draft *draft, uint8_t *out);

#endif
