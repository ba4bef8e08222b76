/*
 * output_file.h -- one sorted file and its index: opened, written in order, closed, committed.
 *
 * BAM, SAM, Arrow and Parquet are written from bytes that workers have made, CRAM from records
 * (cram_writer.h). Output is written under a temporary name and renamed when it is complete
 * (output_path.h).
 *
 * Order of calls: create_index, before output chunks are made; open; write, for each span of a
 * output chunk; end, if all is written; then close. The file borrows what its settings point to,
 * and the header. Threads: one at a time. Errors: -1 after a message that names the file.
 */
#ifndef ROCKSORT_OUTPUT_OUTPUT_FILE_H
#define ROCKSORT_OUTPUT_OUTPUT_FILE_H

#include "bam/bgzf_engine.h"
#include "columns/column_file.h"
#include "os/tape.h"
#include "output/bam_index.h"
#include "output/cram_writer.h"
#include "output/output_format.h"
#include "output/output_path.h"

/* The notes of a file of columns (column_bytes.h): in memory, and when that is full in a temporary
   file without a name. 1.5 billion reads in 512 MiB of memory become 54,000 row groups, whose notes
   take 70 MB. */
struct output_notes {           /* starts as {0}; must not move */
    struct footer_spool notes;
    struct tape_set *streams;
    struct tape_reader reader;
};

/* Memory for the notes of a file; and of a piece: many may be open. */
enum { OUTPUT_NOTES_BYTES = 1 << 20, OUTPUT_NOTES_GROUP_BYTES = 64 << 10 };

void output_notes_begin(struct output_notes *notes, size_t memory_bytes,
                        const struct temp_places *places);

/* Accepts notes that were not begun. */
void output_notes_release(struct output_notes *notes);

/* The header as bytes of the file. Files with the same header share it: the first one makes it.
   Starts as {0}; the owner frees `bytes`. */
struct output_header {
    uint8_t *bytes;
    size_t n_bytes, room;
};

struct output_settings {
    struct output_path *path;           /* its name is NULL: standard output */
    struct output_path *index_path;     /* its name is NULL: no index. CRAM: written here */
    bool index_is_bai;          /* else it is a CSI; the same for all pieces of an output */
    struct output_format format;
    struct bgzf_method method;  /* CRAM: only its level, 0-9, or -1: the default */
    htsThreadPool *pool;        /* CRAM: htslib encodes there */
    const struct column_output *columns;        /* of Arrow and Parquet; else NULL */
    struct cram_doubt *doubt;   /* of the records of CRAM so far */
    struct output_header *shared_header;        /* BAM and SAM; NULL: the file has its own */
};

struct output_file {            /* starts as {settings} */
    struct output_settings settings;
    size_t notes_bytes;         /* with columns: memory for notes; where others go: */
    const struct temp_places *places;
    struct bam_index *index;    /* NULL: none, or htslib makes it */
    /* set by open */
    struct output_path *path;   /* NULL: standard output */
    const char *name;           /* for messages */
    sam_hdr_t *header;
    hFILE *raw;                 /* NULL before open and when it is closed */
    bool file_exists;           /* the temporary file */
    bool lost_reader;           /* standard output is a pipe that was closed */
    bool is_ended;              /* nothing more can be written */
    uint64_t n_bytes;           /* of the closed file, if known */
    uint64_t writing_back;      /* how many bytes the kernel was told to write */
    uint64_t raw_bytes;         /* of all records */
    uint64_t raw_written, raw_writing;  /* bytes of records: without the current write, and with
                                           it */
    struct column_file *columns;
    struct output_notes notes;
    struct cram_writer *cram;
    pthread_t pump_thread;      /* CRAM only */
    bool pump_runs;
};

struct output_result {
    uint64_t n_bytes;           /* size of the file, if known */
    bool lost_reader;           /* the program that reads standard output closed it */
};

/* True if the index of this name is a BAI, else it is a CSI. */
bool output_index_is_bai(const char *name);

/* Makes the index to which spans add their parts. */
int output_file_create_index(struct output_file *file, sam_hdr_t *header);

/* Opens the file, about raw_bytes of records, which messages about a full disk need, and writes the
   header. May block on a named pipe. */
int output_file_open(struct output_file *file, sam_hdr_t *header, uint64_t raw_bytes);

/* Writes bytes, or the records of CRAM, that hold raw_bytes of records. `part` is of these bytes;
   it is looked at only if there is an index. notes: of batches of columns; their places
   (column_file.h) are counted from the start of the bytes, and changed. */
int output_file_write(struct output_file *file, const uint8_t *bytes, size_t n_bytes,
                      uint64_t raw_bytes, const struct bam_index_part *part,
                      struct column_bytes *notes);

/* Writes BGZF blocks as they are. With an index, output_file_copy_index comes first: `part` is of
   the file whose blocks from byte `begin` on will be written. */
int output_file_copy(struct output_file *file, const uint8_t *blocks, size_t n_bytes);
int output_file_copy_index(struct output_file *file, const struct bam_index_part *part,
                           uint64_t begin);

/* Writes the end of a complete file, and closes that. After a failure it is to be closed as one
   that is not complete. */
int output_file_end(struct output_file *file);

/* Commits the file, if output_file_end has completed it, and writes and commits the index; else
   removes it. Returns 0 if both succeed. A complete file stays if only its index fails. */
int output_file_close(struct output_file *file, bool complete, struct output_result *result);

#endif
