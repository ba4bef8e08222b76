/*
 * parquet_reader.c -- see parquet_reader.h.
 *
 * Each leaf of the schema goes through its chunk of the row group by itself. All of them make the
 * same rows, as many as take some MiB; then the next ones.
 */
#include "columns/parquet_reader.h"

#include "columns/column_record.h"
#include "columns/parquet_format.h"
#include "columns/parquet_rows.h"
#include "util/byte_order.h"

#include <stdlib.h>

/* Decompressed, of the rows that are made at a time: a few bytes may claim to be many. */
#define MOST_ROW_BYTES ((uint64_t)2 << 30)

/* Of pages and dictionaries, as they are stored and decompressed, of all leaves together. */
#define MOST_PAGE_BYTES ((uint64_t)2 << 30)

enum {
    FILE_END_BYTES = 4 + PARQUET_MAGIC_BYTES,   /* the size of the footer, and the magic */
    STORED_BYTES = 32 << 20,                    /* of a group, in memory at a time, at most */
    LEAST_STORED_BYTES = 1 << 20,
    LEAST_STEP_BYTES = 64 << 10,                /* of a chunk */
    READ_BYTES = 8 << 20,       /* of the footer, whose size may be wrong */
    KEPT_BYTES = 256 << 20,     /* of what rows are made of: each leaf may have needed much once */
    LEAST_KEPT_BYTES = 4 << 20,
    PIECE_BYTES = 8 << 20,      /* of rows, about, at most */
    LEAST_PIECE_BYTES = 256 << 10,
    MOST_ROWS = 16 << 10,
    FIRST_ROWS = 512,           /* before it is known how large rows are */
    GROWTH = 4,                 /* from one piece to the next, at most */
};

struct parquet_reader {
    struct parquet_source source;
    size_t stored_bytes, piece_bytes, kept_bytes;
    size_t footer_bytes;        /* as it is stored: forgotten when it was read */
    const char *problem;
    char *made_problem;         /* that names a column */
    struct parquet_footer footer;
    struct parquet_decompressor decompressor;
    struct parquet_chunk_reader *leaves;
    uint64_t page_room;         /* of MOST_PAGE_BYTES, what is left */
    struct column_values *columns;
    struct column_values mapped;        /* rows of the values of a map; the column has its keys' */
    struct parquet_dictionary references;
    uint32_t n_references;
    size_t next_group;
    uint64_t n_rows;            /* of the group: those that were not read */
    uint64_t piece_rows;        /* of the next piece, at most; 0: nothing was read */
};

bool parquet_reader_knows(const uint8_t *start)
{
    return memcmp(start, PARQUET_MAGIC, PARQUET_MAGIC_BYTES) == 0;
}

struct parquet_reader *parquet_reader_create(parquet_read_at read_at, void *arg,
                                             uint64_t file_bytes)
{
    struct parquet_reader *reader = xcalloc(1, sizeof *reader);
    reader->source = (struct parquet_source){
        .read_at = read_at, .arg = arg, .n_bytes = file_bytes,
    };
    reader->stored_bytes = STORED_BYTES;
    reader->piece_bytes = PIECE_BYTES;
    reader->kept_bytes = KEPT_BYTES;
    return reader;
}

static size_t clamp(size_t n, size_t least, size_t most)
{
    return n < least ? least : n > most ? most : n;
}

/* Half is for what is stored. The other half is for two pieces of rows: the records of one are made
   while the other is read. Buffers from which rows were made are kept for the next ones, up to the
   whole limit. */
void parquet_reader_limit(struct parquet_reader *reader, size_t memory_bytes)
{
    reader->stored_bytes = clamp(memory_bytes / 2, LEAST_STORED_BYTES, STORED_BYTES);
    reader->piece_bytes = clamp(memory_bytes / 4, LEAST_PIECE_BYTES, PIECE_BYTES);
    reader->kept_bytes = clamp(memory_bytes, LEAST_KEPT_BYTES, KEPT_BYTES);
}

/* What the footer says of row groups. */
static size_t groups_bytes(const struct parquet_reader *reader)
{
    const struct parquet_footer *footer = &reader->footer;
    return footer->n_groups * (sizeof *footer->groups +
                               footer->n_chunks * sizeof *footer->chunks);
}

size_t parquet_reader_footer_bytes(const struct parquet_reader *reader)
{
    return reader->footer_bytes + groups_bytes(reader);
}

size_t parquet_reader_bytes(const struct parquet_reader *reader)
{
    const struct parquet_footer *footer = &reader->footer;
    size_t n_bytes = groups_bytes(reader);
    for (unsigned i = 0; i < footer->n_leaves; i++)
        n_bytes += parquet_chunk_memory(&reader->leaves[i]);
    return n_bytes;
}

/* Forgets what the last rows were made of. Returns how many bytes of memory are kept. */
static size_t forget_rows(struct parquet_reader *reader, bool is_kept)
{
    size_t n_bytes = column_values_forget(&reader->mapped, is_kept);
    for (unsigned i = 0; reader->leaves && i < reader->footer.n_leaves; i++)
        n_bytes += parquet_values_forget(&reader->leaves[i].values, is_kept);
    return n_bytes;
}

void parquet_reader_destroy(struct parquet_reader *reader)
{
    if (!reader) return;
    (void)forget_rows(reader, false);
    for (unsigned i = 0; reader->leaves && i < reader->footer.n_leaves; i++)
        parquet_chunk_release(&reader->leaves[i]);
    free(reader->leaves);
    if (reader->columns) column_values_free(reader->columns, reader->footer.schema->n_columns);
    parquet_footer_release(&reader->footer);
    parquet_decompressor_release(&reader->decompressor);
    parquet_dictionary_release(&reader->references);
    free(reader->made_problem);
    free(reader);
}

const char *parquet_reader_problem(const struct parquet_reader *reader)
{
    return reader->source.failed ? NULL : reader->problem;
}

const char *parquet_reader_header(const struct parquet_reader *reader)
{
    return reader->footer.header;
}

const struct column_schema *parquet_reader_schema(const struct parquet_reader *reader)
{
    return reader->footer.schema;
}

const char *parquet_reader_unknown(const struct parquet_reader *reader)
{
    return reader->footer.unknown;
}

uint64_t parquet_reader_n_rows(const struct parquet_reader *reader)
{
    return reader->footer.n_rows;
}

void parquet_reader_set_references(struct parquet_reader *reader, const char *const *names,
                                   uint32_t n)
{
    reader->n_references = n;
    for (uint32_t i = 0; i < n; i++)
        (void)parquet_dictionary_add_text(&reader->references, (const uint8_t *)names[i],
                                          strlen(names[i]));
}

static int fail(struct parquet_reader *reader, const char *problem)
{
    reader->problem = problem;
    return -1;
}

/* ---- the end of the file ---- */

static const char *read_footer(struct parquet_reader *reader, struct column_bytes *bytes)
{
    struct parquet_source *source = &reader->source;
    if (source->n_bytes < PARQUET_MAGIC_BYTES + FILE_END_BYTES) return "it is truncated";
    uint64_t end = source->n_bytes - FILE_END_BYTES;
    const char *problem = parquet_source_read(source, end, FILE_END_BYTES, bytes);
    if (problem) return problem;
    if (memcmp(bytes->bytes + 4, PARQUET_MAGIC_ENCRYPTED, PARQUET_MAGIC_BYTES) == 0)
        return "it is encrypted";
    if (memcmp(bytes->bytes + 4, PARQUET_MAGIC, PARQUET_MAGIC_BYTES) != 0)
        return "it does not end with the footer of Parquet: it is truncated or damaged";
    uint32_t n_bytes = get_u32(bytes->bytes);
    if (n_bytes > end - PARQUET_MAGIC_BYTES) return parquet_damaged;
    if (n_bytes > PARQUET_MOST_FOOTER_BYTES)
        return "its footer is larger than 1 GiB: write it again with larger row groups";
    bytes->n_bytes = 0;
    while (!problem && bytes->n_bytes < n_bytes) {
        size_t left = n_bytes - bytes->n_bytes;
        problem = parquet_source_read(source, end - left, left < READ_BYTES ? left : READ_BYTES,
                                      bytes);
    }
    if (problem) return problem;
    return parquet_footer_read(&reader->footer, bytes->bytes, n_bytes, end - n_bytes);
}

int parquet_reader_open(struct parquet_reader *reader)
{
    struct column_bytes bytes = {0};
    const char *problem = read_footer(reader, &bytes);
    reader->footer_bytes = bytes.room;
    free(bytes.bytes);
    if (problem) return fail(reader, problem);
    reader->leaves = xcalloc(reader->footer.n_leaves + 1, sizeof *reader->leaves);
    reader->columns = xcalloc(reader->footer.schema->n_columns, sizeof *reader->columns);
    reader->page_room = MOST_PAGE_BYTES;
    for (unsigned i = 0; i < reader->footer.n_leaves; i++) {
        reader->leaves[i].room = &reader->page_room;
        reader->leaves[i].source = &reader->source;
        reader->leaves[i].decompressor = &reader->decompressor;
    }
    return 0;
}

/* ---- rows ---- */

/* Sets how many rows are read next, at most `most` if they have row_bytes each. */
static void plan_piece(struct parquet_reader *reader, uint64_t row_bytes, uint64_t most)
{
    reader->piece_rows = row_bytes > 0 ? reader->piece_bytes / row_bytes : most;
    if (reader->piece_rows > most) reader->piece_rows = most;
    if (reader->piece_rows == 0) reader->piece_rows = 1;
}

/* The same by the rows that were read: what a file says of itself does not tell how large a row is
   whose texts a dictionary has, or long reads after short ones. */
static void plan_by_last(struct parquet_reader *reader, uint64_t n_rows)
{
    uint64_t n_bytes = 0, most = GROWTH * n_rows;
    for (unsigned i = 0; i < reader->footer.schema->n_columns; i++)
        n_bytes += column_values_bytes(&reader->columns[i]);
    plan_piece(reader, n_bytes / n_rows, most < MOST_ROWS ? most : MOST_ROWS);
}

static void begin_group(struct parquet_reader *reader)
{
    const struct parquet_footer *footer = &reader->footer;
    const struct parquet_stored_group *group = &footer->groups[reader->next_group];
    const struct parquet_stored_chunk *chunks =
        &footer->chunks[reader->next_group * footer->n_chunks];
    size_t step = reader->stored_bytes / footer->n_leaves;
    if (step < LEAST_STEP_BYTES) step = LEAST_STEP_BYTES;
    /* Chunks that are read as a whole are read in the order of the file. */
    if (group->n_bytes <= reader->stored_bytes) step = reader->stored_bytes;
    for (unsigned i = 0; i < footer->n_leaves; i++)
        parquet_chunk_begin(&reader->leaves[i], &footer->leaves[i],
                            &chunks[footer->leaves[i].chunk], step);
    reader->n_rows = group->n_rows;
    reader->next_group++;
    if (reader->piece_rows > 0) return;
    uint64_t row_bytes = group->n_rows > 0 ? group->raw_bytes / group->n_rows : 0;
    plan_piece(reader, row_bytes, FIRST_ROWS);
}

/* Reads rows of a leaf into its buffers of the column. */
static const char *read_leaf(struct parquet_reader *reader, unsigned i, uint64_t n, uint64_t *room)
{
    const struct parquet_stored_leaf *leaf = &reader->footer.leaves[i];
    struct column_values *column = &reader->columns[leaf->column];
    struct parquet_rows rows = {
        .validity = &column->buffers[BUFFER_VALIDITY], .values = &column->buffers[BUFFER_VALUES],
        .references = &reader->references, .n_references = reader->n_references, .room = room,
    };
    if (leaf->is_repeated) rows.offsets = &column->buffers[BUFFER_OFFSETS];
    switch (leaf->part) {
    case PART_VALUES: rows.text_offsets = &column->buffers[BUFFER_OFFSETS]; break;
    case PART_KEYS:
        rows.text_offsets = &column->buffers[BUFFER_KEY_OFFSETS];
        rows.values = &column->buffers[BUFFER_KEYS];
        break;
    case PART_MAPPED:
        rows.validity = &reader->mapped.buffers[BUFFER_VALIDITY];
        rows.offsets = &reader->mapped.buffers[BUFFER_OFFSETS];
        rows.text_offsets = &column->buffers[BUFFER_MAPPED_OFFSETS];
        rows.values = &column->buffers[BUFFER_MAPPED];
        break;
    }
    if (!column_type_is_text(leaf->value)) rows.text_offsets = NULL;
    column->n_rows = n;
    const char *problem = parquet_rows_read(&reader->leaves[i], n, &rows);
    if (!parquet_rows_is_of_column(problem)) return problem;
    reader->made_problem = xasprintf("its column '%s' %s",
                                     reader->footer.schema->columns[leaf->column].name, problem);
    return reader->made_problem;
}

static bool is_same(const struct column_bytes *a, const struct column_bytes *b)
{
    return a->n_bytes == b->n_bytes &&
           (a->n_bytes == 0 || memcmp(a->bytes, b->bytes, a->n_bytes) == 0);
}

/* Keys and values of the map must be in the same rows. */
static bool map_agrees(const struct parquet_reader *reader)
{
    const struct column_schema *schema = reader->footer.schema;
    const struct column_values *map = &reader->columns[schema->by_field[FIELD_TAGS]];
    return is_same(&map->buffers[BUFFER_VALIDITY], &reader->mapped.buffers[BUFFER_VALIDITY]) &&
           is_same(&map->buffers[BUFFER_OFFSETS], &reader->mapped.buffers[BUFFER_OFFSETS]);
}

/* After the last row of a group: nothing may be left of its chunks. */
static const char *end_group(struct parquet_reader *reader)
{
    for (unsigned i = 0; i < reader->footer.n_leaves; i++) {
        const char *problem = parquet_chunk_levels(&reader->leaves[i]);
        if (problem) return problem;
        if (reader->leaves[i].levels.at < reader->leaves[i].levels.n) return parquet_damaged;
    }
    return NULL;
}

static const char *read_rows(struct parquet_reader *reader, uint64_t n)
{
    const struct column_schema *schema = reader->footer.schema;
    uint64_t room = MOST_ROW_BYTES;
    const char *problem = NULL;
    if (forget_rows(reader, true) > reader->kept_bytes) (void)forget_rows(reader, false);
    for (unsigned i = 0; i < reader->footer.n_leaves && !problem; i++)
        problem = read_leaf(reader, i, n, &room);
    if (!problem && !map_agrees(reader)) problem = parquet_damaged;
    reader->n_rows -= n;
    if (!problem && reader->n_rows == 0) problem = end_group(reader);
    return problem ? problem : column_values_problem(schema, reader->columns, n,
                                                     reader->n_references);
}

int parquet_reader_next(struct parquet_reader *reader, struct column_values **columns,
                        uint64_t *n_rows)
{
    while (reader->n_rows == 0) {
        if (reader->next_group == reader->footer.n_groups) return 0;
        begin_group(reader);
    }
    *n_rows = reader->n_rows < reader->piece_rows ? reader->n_rows : reader->piece_rows;
    const char *problem = read_rows(reader, *n_rows);
    if (problem) return fail(reader, problem);
    plan_by_last(reader, *n_rows);
    *columns = reader->columns;
    reader->columns = xcalloc(reader->footer.schema->n_columns, sizeof *reader->columns);
    return 1;
}
