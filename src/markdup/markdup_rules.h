/*
 * markdup_rules.h -- what duplicates are and what becomes of them: the options of --markdup.
 *
 * The parser of the options (cli/sort_options_markdup.h) sets all but `groups`, which comes
 * from the header of the records. The rules must not change while records are looked at. Threads:
 * any may read them, and match the patterns.
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
    bool ignores_strand;        /* --ignore-strand: strands play no part (read_ends.h) */
    bool include_fails;         /* --include-fails: reads that failed QC are examined, too */
    bool use_read_groups;       /* --use-read-groups: duplicates are of one RG */
    bool use_libraries;         /* --use-libraries: duplicates are of one LB */
    enum barcode_source barcode_source;
    char barcode_tag[2];
    bool own_barcodes;          /* --barcode-own: --fixmate does not copy barcodes between mates */
    struct name_pattern *barcode_pattern;       /* its first group is the barcode; NULL: the
                                                   eighth field of the name is */
    unsigned barcode_mismatches;        /* --barcode-mismatches */
    const struct read_groups *groups;   /* with use_read_groups or use_libraries, and statistics */

    /* what becomes of them */
    bool removes;               /* -r */
    bool clears;                /* -c: earlier marks are removed first */
    bool marks_others;          /* -S: also the other alignments of a duplicate */
    bool names_original;        /* -t: tag do */
    bool counts;                /* --duplicate-count: tag dc */
    int64_t optical_distance;   /* -d: tag dt; 0: not asked for */
    bool only_optical;          /* --optical-only: other duplicates are counted and stay as they are */
    bool checks_chains;         /* without --no-multi-dup: duplicates are compared, too */
    struct name_pattern *coords;        /* --read-coords, or NULL: by colons */
    unsigned coords_t, coords_x, coords_y;      /* its groups (--coords-order); t is 0 if it has
                                                   none */
    bool moves_umi;             /* --move-umi-to-tag */
    char umi_separator;

    /* reports; the names point into `words` */
    bool prints_statistics;     /* -s, -f or --json */
    bool json;
    const char *statistics_path;        /* -f; NULL: standard error */
    const char *metrics_path;   /* --metrics */
    char **words;               /* memory of the parser, sort_options_release_markdup frees it */
};

/* True if reads of two groups are never duplicates of each other. */
static inline bool duplicate_rules_keep_groups_apart(const struct markdup_rules *rules)
{
    return rules->use_read_groups || rules->use_libraries;
}

/* True if --fixmate gives a read without barcode that of its mate. Barcodes in names need not be
   copied: both reads have one name. */
static inline bool duplicate_rules_share_barcodes(const struct markdup_rules *rules)
{
    return rules->barcode_source == BARCODE_TAG && !rules->own_barcodes;
}

/* True if records get tags, not only a flag. */
static inline bool duplicate_rules_set_tags(const struct markdup_rules *rules)
{
    return rules->names_original || rules->counts || rules->optical_distance > 0;
}

/* True if records change in other ways than by a flag. */
static inline bool duplicate_rules_rewrite(const struct markdup_rules *rules)
{
    return duplicate_rules_set_tags(rules) || rules->moves_umi;
}

/* True if it must be known of which reads each is a duplicate (markdup/resolve_sets.h), not only
   that it is one. */
static inline bool duplicate_rules_need_sets(const struct markdup_rules *rules)
{
    return duplicate_rules_set_tags(rules) || rules->barcode_mismatches > 0;
}

#endif
