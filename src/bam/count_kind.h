/*
 * count_kind.h -- what a kind of report about the output is made of: --flagstat and others.
 *
 * A kind has an observer of the output (record_observer.h) and writes one file, or several whose
 * names begin with a prefix. counts/count_kinds.h lists all kinds; output/count_files.h writes the
 * files.
 *
 * Order of calls: parse; suffix, is_streamed; observe; the observer's own functions, with finish
 * before the first print; destroy; free_options. Errors: after a message.
 */
#ifndef ROCKSORT_BAM_COUNT_KIND_H
#define ROCKSORT_BAM_COUNT_KIND_H

#include "bam/record_observer.h"

#include <htslib/sam.h>

struct temp_places;             /* os/tape.h */
struct threads;                 /* os/thread_pool.h */

/* A file that grows while parts are combined. The functions return 0, or -1 after a message. */
struct count_sink {
    int (*write)(struct count_sink *sink, const void *bytes, size_t n_bytes);
    /* Overwrites earlier bytes, as of a header that holds offsets. */
    int (*rewrite)(struct count_sink *sink, uint64_t offset, const void *bytes, size_t n_bytes);
    uint64_t n_bytes;           /* written so far */
};

struct count_setup {            /* what an observer is made of; lives as long as the sort */
    sam_hdr_t *header;          /* of the output; its references do not change */
    bool is_in_coordinate_order;        /* the output; unplaced records may have another order */
    const void *options;        /* what parse returned, or NULL */
    const char *name;           /* the user's FILE or PREFIX */
    const char *reference;      /* of --reference, or NULL */
    const char *command_line;
    uint64_t memory_bytes;      /* what the observer may hold in all */
    const struct temp_places *places;
    struct threads *threads;    /* for work in finish */
    struct count_sink *const *sinks;    /* [i]: of file i; NULL unless it is streamed */
};

enum { COUNT_LITTLE_MEMORY = 64 };      /* the share of an observer that needs little */

struct count_kind {
    bool in_coordinate_order;   /* refused in other orders */
    unsigned memory_share;      /* the observer may hold one part in this many of the memory limit,
                                   which is set aside for it. 0: it needs little */
    /* Parses the words before FILE or PREFIX, as in --mosdepth='-n -t 4 PREFIX', as getopt takes
       them: argv[0] is "--mosdepth". Refuses words that are no options. Returns an object, which
       may point into the words, or NULL. parse NULL: there are no options. */
    void *(*parse)(int argc, char **argv);
    bool takes_settings;        /* options may also be words such as LEVELS=SAMPLE */
    void (*free_options)(void *options);
    /* Offset of the struct option_list (util/option_table.h) in the object, which has the options
       with absolute paths, for a checkpoint. 0: it keeps the words as they were given. */
    size_t list;
    /* What follows FILE or PREFIX in the name of file i; NULL: there are i files. suffix NULL: the
       one file is FILE. */
    const char *(*suffix)(const void *options, unsigned i);
    bool (*is_streamed)(const void *options, unsigned i);       /* NULL: no file is */
    struct record_observer *(*observe)(const struct count_setup *setup);        /* or NULL */
};

#endif
