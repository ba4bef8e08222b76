/* input_error.c -- see input_error.h. */
#include "input/input_error.h"

#include "bam/bam_fields.h"
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

void input_error_header(const char *input)
{
    diag_error("the header of '%s' is damaged: htslib cannot parse it%s", input,
               diag_library_words());
}

void input_error_threads(const char *input)
{
    diag_error("cannot read '%s' with threads: htslib reports an error; give fewer with -@", input);
}

void input_warn_no_eof_marker(const char *input)
{
    diag_warning("'%s' ends without an EOF marker; it is probably truncated", input);
}
