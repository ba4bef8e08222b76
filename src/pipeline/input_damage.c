/* input_damage.c -- see input_damage.h. */
#include "pipeline/input_damage.h"

#include "bam/record_problem.h"
#include "input/bam_reader.h"
#include "util/diag.h"

#include <inttypes.h>

void input_damage_record(const char *input, uint64_t number, const char *read_name,
                         const char *problem)
{
    record_problem_print(&(struct record_problem){problem, true, number - 1, read_name}, input);
}

void input_damage_piece(const char *input, const struct bam_piece *piece)
{
    diag_error("'%s' is damaged: a BGZF block after byte %" PRIu64 " cannot be inflated or fails "
               "its checksum", input, piece->file_offset);
}
