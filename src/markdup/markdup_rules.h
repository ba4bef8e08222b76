/*
 * markdup_rules.h -- the options of --markdup: which reads are duplicates, and how they are marked.
 *
 * The parser of the options (cli/sort_options_markdup.c) sets all fields except `groups`, which is
 * made from the header. The rules must not change while they are in use. Threads: any thread may
 * read them and match the patterns.
 */
#ifndef ROCKSORT_MARKDUP_MARKDUP_RULES_H
#define ROCKSORT_MARKDUP_MARKDUP_RULES_H

#include <stdbool.h>
#include <stdint.h>

struct name_pattern;
struct read_groups;

enum barcode_source {
    BARCODE_NONE,
    BARCODE_TAG,                /* --barcode-tag */
    BARCODE_NAME,               /* --barcode-name or --barcode-rgx */
};

struct markdup_rules {
    /* which reads are duplicates of each other */
    bool by_sequence;           /* --mode s: both 5' ends; else the ends of the template */
    bool ignores_strand;        /* --ignore-strand (read_ends.h) */
    bool include_fails;         /* --include-fails: reads that failed QC are examined, too */
    bool use_read_groups;       /* --use-read-groups: duplicates have the same RG */
    bool use_libraries;         /* --use-libraries: duplicates have the same LB */
    enum barcode_source barcode_source;
    char barcode_tag[2];
    bool own_barcodes;          /* --barcode-own: --fixmate does not copy barcodes between mates */
    struct name_pattern *barcode_pattern;       /* its first group is the barcode; NULL: the eighth
                                                   field of the name */
    unsigned barcode_mismatches;        /* --barcode-mismatches */
    const struct read_groups *groups;   /* if use_read_groups, use_libraries or statistics */

    /* how they are marked */
    bool removes;               /* -r */
    bool clears;                /* -c: earlier marks are removed first */
    bool marks_others;          /* -S: also marks other alignments of a duplicate */
    bool names_original;        /* -t: tag do */
    bool counts;                /* --duplicate-count: tag dc */
    int64_t optical_distance;   /* -d: tag dt; 0: off */
    bool only_optical;          /* --optical-only: other duplicates are counted, not marked */
    bool checks_chains;         /* unless --no-multi-dup: compares duplicates with each other */
    struct name_pattern *coords;        /* --read-coords; NULL: fields between colons */
    unsigned coords_t, coords_x, coords_y;      /* its groups (--coords-order); t 0: no tile */
    bool moves_umi;             /* --move-umi-to-tag */
    char umi_separator;

    /* reports; the names point into `words` */
    bool prints_statistics;     /* -s, -f or --json */
    bool json;
    const char *statistics_path;        /* -f; NULL: standard error */
    const char *metrics_path;   /* --metrics */
    char **words;               /* of the parser; sort_options_release_markdup frees it */
};

/* True if reads of different read groups or libraries are never duplicates. */
static inline bool markdup_rules_keep_groups_apart(const struct markdup_rules *rules)
{
    return rules->use_read_groups || rules->use_libraries;
}

/* True if --fixmate copies the barcode of the mate to a read without one. Barcodes in names need no
   copy: both reads have the same name. */
static inline bool markdup_rules_share_barcodes(const struct markdup_rules *rules)
{
    return rules->barcode_source == BARCODE_TAG && !rules->own_barcodes;
}

/* True if records get tags, not only a flag. */
static inline bool markdup_rules_set_tags(const struct markdup_rules *rules)
{
    return rules->names_original || rules->counts || rules->optical_distance > 0;
}

/* True if more than the flag of a record changes. */
static inline bool markdup_rules_rewrite(const struct markdup_rules *rules)
{
    return markdup_rules_set_tags(rules) || rules->moves_umi;
}

/* True if duplicate sets must be known (resolve_sets.h), not only whether a read is a duplicate. */
static inline bool markdup_rules_need_sets(const struct markdup_rules *rules)
{
    return markdup_rules_set_tags(rules) || rules->barcode_mismatches > 0;
}

#endif
