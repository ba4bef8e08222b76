/* input_error.c -- see input_error.h. */
#include "input/input_error.h"

#include "bam/bam_fields.h"
#include "bam/header_text.h"
#include "bam/record_problem.h"
#include "input/bam_piece.h"
#include "util/diag.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void input_error_record(const char *input, uint64_t number, const char *read_name,
                        const char *problem)
{
    struct record_problem p = {
        .text = problem, .is_damaged = true, .record = number - 1, .read_name = read_name};
    record_problem_print(&p, input);
}

void input_error_joined(const char *input, const char *format, const char *unit, uint64_t number)
{
    diag_error("'%s' holds a second %s file after %s %" PRIu64 " (from cat?): give both files",
               input, format, unit, number);
}

void input_error_size(const char *input, uint64_t number, size_t claimed_bytes)
{
    char problem[64];
    if (bam_size_is_magic(claimed_bytes)) {
        input_error_joined(input, "BAM", "record", number - 1);
        return;
    }
    (void)snprintf(problem, sizeof problem, "it claims a size of %zu bytes", claimed_bytes);
    input_error_record(input, number, NULL, problem);
}

void input_error_end(const char *input, uint64_t number)
{
    diag_error("'%s' is truncated: it ends within record %" PRIu64, input, number);
}

void input_error_piece(const char *input, const struct bam_piece *piece)
{
    diag_error("'%s' is damaged: a BGZF block after byte %" PRIu64 " cannot be inflated or fails "
               "its checksum", input, piece->file_offset);
}

void input_error_read(const char *input, uint64_t offset)
{
    diag_error("cannot read '%s' near byte %" PRIu64 ": %s", input, offset,
               errno ? strerror(errno) : "it is damaged");
}

void input_error_header(const char *input, const char *text, bool known_types, bool is_cut)
{
    enum { MOST_SHOWN = 60 };
    struct text line;
    const char *problem = header_find_bad_line(text, known_types, &line);
    if (!problem) {
        diag_error("the header of '%s' is damaged: htslib cannot parse it%s", input,
                   diag_library_words());
        return;
    }
    size_t number = 1;
    for (const char *at = text; at < line.at; at++) number += *at == '\n';
    int n = line.n <= MOST_SHOWN ? (int)line.n : MOST_SHOWN;
    const char *dots = line.n <= MOST_SHOWN ? "" : "...";
    bool is_last = line.at[line.n + strspn(line.at + line.n, "\n")] == '\0';
    diag_error("the header of '%s' is %s: line %zu, '%.*s%s', %s", input,
               is_cut && is_last ? "truncated" : "damaged", number, n, line.at, dots, problem);
}

void input_error_no_header(const char *input)
{
    diag_error("failed to read header from '%s': it is empty, damaged or not an alignment file",
               input);
}

int input_check_lines(const char *input, uint64_t n_before, const struct sam_chunk *lines)
{
    char text[SAM_PROBLEM_BYTES + SAM_LINE_START_BYTES + 32];
    uint64_t number = n_before + 1;
    const char *name = lines->read_name;
    if (!lines->problem) {
        if (lines->is_cut) input_warn_cut(input, name);
        return 0;
    }
    (void)snprintf(text, sizeof text, "%s; line %" PRIu64 ": '%s'", lines->problem,
                   lines->first_line + n_before, lines->line_start);
    if (!lines->is_cut)
        input_error_record(input, number, name, text);
    else if (*name)
        diag_error("'%s' is truncated: it ends within record %" PRIu64 " (read '%s'): %s", input,
                   number, name, text);
    else
        diag_error("'%s' is truncated: it ends within record %" PRIu64 ": %s", input, number, text);
    return -1;
}

void input_warn_cut(const char *input, const char *read_name)
{
    diag_warning("'%s' has no newline at its end: it is probably truncated within its last record "
                 "(read '%s')", input, read_name);
}

void input_warn_cut_header(const char *input, uint64_t n_lines)
{
    diag_warning("'%s' has no newline at its end: it is probably truncated, within line %" PRIu64
                 " of its header", input, n_lines);
}

void input_error_threads(const char *input)
{
    diag_error("cannot read '%s' with threads: htslib reports an error; give fewer with -@", input);
}

void input_warn_no_eof_marker(const char *input)
{
    diag_warning("'%s' ends without an EOF marker; it is probably truncated", input);
}
