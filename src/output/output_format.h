/*
 * output_format.h -- chooses the format of an output and describes it.
 *
 * The functions that choose print messages and check whether the path is a pipe; the others are
 * pure. Any thread.
 */
#ifndef ROCKSORT_OUTPUT_OUTPUT_FORMAT_H
#define ROCKSORT_OUTPUT_OUTPUT_FORMAT_H

#include <htslib/hts.h>
#include <stdbool.h>

enum { MOST_OUTPUTS = 2 };      /* of a sort: -o and --also */

enum output_kind {
    OUTPUT_BAM,
    OUTPUT_SAM,                 /* not compressed */
    OUTPUT_SAM_GZ,              /* compressed SAM */
    OUTPUT_CRAM,
    OUTPUT_ARROW,               /* columns, as Arrow IPC */
    OUTPUT_ARROW_STREAM,
    OUTPUT_PARQUET,             /* columns */
};

struct output_format {
    enum output_kind kind;
    htsFormat hts;              /* htslib's description, with the user's options */
};

/* Chooses the format: by the argument of -O, else by the extension of the path, else BAM. Both may
   be NULL; without a path, or to a pipe, Arrow is a stream. Returns 0, or -1 after a message. A
   name that promises another format is an error, too. The caller frees format->hts.specific with
   hts_opt_free. */
int output_format_choose(const char *option, const char *path, struct output_format *format);

/* The format that a file name promises by its extension, such as "FASTQ" (a static string) for
   reads.fastq.gz. NULL: BAM, or an unknown extension, which as in samtools means BAM. A file called
   reads.fastq.gz that holds BAM would mislead its readers. */
const char *output_format_promised(const char *path);

/* True if the extension of the path names a format. */
bool output_format_is_named(const char *path);

/* Chooses the format of --also by the extension of the path; without extension BAM. An unknown
   extension is an error, because no option can name the format. */
int output_format_choose_also(const char *path, struct output_format *format);

/* Changes SAM to compressed SAM. */
void output_format_compress(struct output_format *format);

/* The name that -O takes, and the one for messages. */
const char *output_format_option(const struct output_format *format);
const char *output_format_name(const struct output_format *format);

/* True if workers encode the file; htslib encodes CRAM. */
static inline bool output_format_has_bytes(const struct output_format *format)
{
    return format->kind != OUTPUT_CRAM;
}

/* True if the file consists of BGZF blocks, also at level 0. */
static inline bool output_format_is_bgzf(const struct output_format *format)
{
    return format->kind == OUTPUT_BAM || format->kind == OUTPUT_SAM_GZ;
}

static inline bool output_format_has_columns(const struct output_format *format)
{
    return format->kind == OUTPUT_ARROW || format->kind == OUTPUT_ARROW_STREAM ||
           format->kind == OUTPUT_PARQUET;
}

/* True if a BAI, CSI or CRAI index can be made for the format. */
static inline bool output_format_can_have_index(const struct output_format *format)
{
    return format->kind != OUTPUT_SAM && !output_format_has_columns(format);
}

static inline bool output_format_is_sam(const struct output_format *format)
{
    return format->kind == OUTPUT_SAM || format->kind == OUTPUT_SAM_GZ;
}

#endif
