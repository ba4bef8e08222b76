/*
 * output_file.h -- one sorted file and its index: opened, written in order, closed, committed.
 *
 * Workers encode BAM, SAM, Arrow and Parquet; htslib encodes CRAM from records (cram_writer.h). The
 * file has a temporary name until it is complete (output_path.h).
 *
 * Order of calls: create_index, before output chunks are made; open; write, for each span of an
 * output chunk; end, if all was written; close. The file borrows the header and all that its
 * settings point to. Threads: one at a time. Errors: -1 after a message that names the file.
 */
#ifndef ROCKSORT_OUTPUT_OUTPUT_FILE_H
#define ROCKSORT_OUTPUT_OUTPUT_FILE_H

#include "bam/bgzf_engine.h"
#include "columns/column_file.h"
#include "output/bam_index.h"
#include "output/cram_writer.h"
#include "output/output_format.h"
#include "output/output_path.h"

/* Memory for the spool of a file of columns; less for a group, because many may be open. */
enum { OUTPUT_SPOOL_BYTES = 1 << 20, OUTPUT_SPOOL_GROUP_BYTES = 64 << 10 };

struct output_settings {
    struct output_path *path;           /* its name is NULL: standard output */
    struct output_path *index_path;     /* its name is NULL: no index */
    bool index_is_bai;          /* else CSI; the same for all groups of an output */
    struct output_format format;
    struct bgzf_method method;  /* CRAM: only its level, 0-9, or -1: the default */
    htsThreadPool *pool;        /* CRAM: htslib encodes there */
    const struct column_output *columns;        /* of Arrow and Parquet; else NULL */
    struct cram_doubt *doubt;   /* of the records of CRAM so far */
    struct byte_buffer *shared_header;  /* BAM and SAM: the encoded header of files that have the
                                           same one; the first one encodes it. NULL: it is not
                                           shared */
};

struct output_file {            /* starts as {settings} */
    struct output_settings settings;
    size_t spool_bytes;         /* with columns (column_file.h) */
    const struct temp_places *places;
    struct bam_index *index;    /* NULL: none, or htslib makes it */
    /* for chunk_encoder.h */
    size_t column_batch_bytes;  /* raw bytes of records after which a column batch is closed */
    _Atomic size_t room_hint;   /* bytes of the largest output chunk so far, and a margin */
    /* set by open */
    struct output_path *path;   /* NULL: standard output */
    const char *name;           /* for messages */
    sam_hdr_t *header;
    hFILE *raw;                 /* NULL before open and when it is closed */
    bool file_exists;           /* the temporary file */
    bool lost_reader;           /* standard output is a pipe that was closed */
    bool is_ended;              /* nothing more can be written */
    uint64_t n_bytes;           /* of the closed file, if known */
    uint64_t writing_back;      /* bytes whose write-back was started */
    uint64_t raw_bytes;         /* of all records */
    uint64_t raw_written, raw_writing;  /* bytes of records: before the current write, and after
                                           it */
    struct column_file *columns;
    struct cram_writer *cram;
};

/* True if an index of this name is a BAI, false if CSI. */
bool output_index_is_bai(const char *name);

/* Makes the index, to which output_file_write appends parts. */
int output_file_create_index(struct output_file *file, sam_hdr_t *header);

/* Opens the file and writes the header. raw_bytes: estimated size of the records, for messages
   about a full disk. May block on a named pipe. */
int output_file_open(struct output_file *file, sam_hdr_t *header, uint64_t raw_bytes);

/* Writes the encoded bytes (CRAM: the records) of raw_bytes of records. `part` is their part of the
   index; ignored without an index. `metadata`: of column batches (column_file.h), counted from the
   start of the bytes. */
int output_file_write(struct output_file *file, const uint8_t *bytes, size_t n_bytes,
                      uint64_t raw_bytes, const struct bam_index_part *part,
                      const struct byte_buffer *metadata);

/* Copies BGZF blocks unchanged. With an index, call output_file_copy_index first: `part` is the
   index of the file whose blocks will be copied from byte `begin` on. */
int output_file_copy(struct output_file *file, const uint8_t *blocks, size_t n_bytes);
int output_file_copy_index(struct output_file *file, const struct bam_index_part *part,
                           uint64_t begin);

/* Writes the end of a complete file and closes it. After a failure, call output_file_close with
   complete = false. */
int output_file_end(struct output_file *file);

/* Commits the file if output_file_end has completed it, then writes and commits the index; else
   removes the file. Returns 0 if both succeed. A complete file stays if only its index fails. */
int output_file_close(struct output_file *file, bool complete);

#endif
