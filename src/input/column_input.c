/* column_input.c -- see column_input.h. */
#include "input/column_input.h"

#include "columns/arrow_reader.h"
#include "columns/column_record.h"
#include "input/input_error.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct column_input {
    hFILE *file;
    const char *name;
    struct arrow_reader *reader;
    char **references;          /* names of the header's */
    size_t n_references;
    const struct column_values *columns;        /* the batch */
    uint64_t row, n_rows;
    uint64_t n_records;         /* in all batches so far */
    bool is_at_end;
};

static ssize_t read_file(void *arg, uint8_t *to, size_t n)
{
    return hread(arg, to, n);
}

static bool is_parquet(const uint8_t *start)
{
    return memcmp(start, "PAR1", 4) == 0;
}

int column_input_knows(hFILE *file)
{
    uint8_t start[ARROW_START_BYTES];
    ssize_t n = hpeek(file, start, sizeof start);
    return n < 0 ? -1 : n == sizeof start && (arrow_reader_knows(start) || is_parquet(start));
}

static int read_error(const struct column_input *input)
{
    const char *problem = arrow_reader_problem(input->reader);
    if (problem)
        diag_error("cannot read '%s' after record %" PRIu64 ": %s", input->name, input->n_records,
                   problem);
    else
        diag_error("cannot read '%s': %s", input->name, strerror(errno ? errno : EIO));
    return -1;
}

struct column_input *column_input_open(hFILE *file, const char *name)
{
    struct column_input *input = xcalloc(1, sizeof *input);
    input->file = file;
    input->name = name;
    input->reader = arrow_reader_create(read_file, file);
    uint8_t start[4];
    errno = 0;
    if (hpeek(file, start, sizeof start) == sizeof start && is_parquet(start))
        diag_error("'%s' is Parquet, which is written but not read: give the file that it was made "
                   "of, or write Arrow with -O arrow", name);
    else if (arrow_reader_open(input->reader) == 0)
        return input;
    else
        (void)read_error(input);
    column_input_close(input);
    return NULL;
}

void column_input_close(struct column_input *input)
{
    if (!input) return;
    arrow_reader_destroy(input->reader);
    for (size_t i = 0; i < input->n_references; i++) free(input->references[i]);
    free(input->references);
    hclose_abruptly(input->file);       /* nothing was written */
    free(input);
}

sam_hdr_t *column_input_make_header(struct column_input *input)
{
    const char *text = arrow_reader_header(input->reader);
    sam_hdr_t *header = sam_hdr_parse(strlen(text), text);
    int n = header ? sam_hdr_nref(header) : -1;
    if (n < 0) {
        diag_error("the header of '%s' is damaged", input->name);
        sam_hdr_destroy(header);
        return NULL;
    }
    /* sam_hdr_parse keeps no text of a header without references. */
    if (n == 0 && !header->text) {
        header->text = xstrdup(text);
        header->l_text = strlen(text);
    }
    input->references = xcalloc((size_t)n + 1, sizeof *input->references);
    input->n_references = (size_t)n;
    for (int i = 0; i < n; i++) input->references[i] = xstrdup(sam_hdr_tid2name(header, i));
    arrow_reader_set_references(input->reader, (const char *const *)input->references, (uint32_t)n);
    return header;
}

int column_input_next(struct column_input *input, uint8_t **raw, size_t *room)
{
    while (input->row == input->n_rows) {
        if (input->is_at_end) return 0;
        errno = 0;
        int r = arrow_reader_next(input->reader, &input->columns, &input->n_rows);
        input->is_at_end = r <= 0;
        input->row = 0;
        if (r <= 0) input->n_rows = 0;
        if (r < 0) return read_error(input);
    }
    struct column_bytes out = {.bytes = *raw, .room = *room};
    const char *problem = column_record_put(arrow_reader_schema(input->reader), input->columns,
                                            input->row++, &out);
    *raw = out.bytes;
    *room = out.room;
    input->n_records++;
    if (!problem) return 1;
    input_error_record(input->name, input->n_records, NULL, problem);
    return -1;
}
