/* input_error.c -- see input_error.h. */
#include "input/input_error.h"

#include "bam/header_text.h"
#include "bam/record_problem.h"
#include "util/diag.h"

#include <errno.h>
#include <inttypes.h>
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

void input_error_read(const char *input, uint64_t offset)
{
    diag_error("cannot read '%s' near byte %" PRIu64 ": %s", input, offset,
               errno ? strerror(errno) : "it is damaged");
}

void input_error_header(const char *input, const char *text, bool known_types, bool is_cut)
{
    enum { MOST_SHOWN = 60 };
    struct text line;
    if (!text) {
        diag_error("failed to read header from '%s': it is empty, damaged or not an alignment file",
                   input);
        return;
    }
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

void input_warn_cut(const char *input, const char *read_name)
{
    diag_warning("'%s' has no newline at its end: it is probably truncated within its last record "
                 "(read '%s')", input, read_name);
}

void input_warn_no_eof_marker(const char *input)
{
    diag_warning("'%s' ends without an EOF marker; it is probably truncated", input);
}
