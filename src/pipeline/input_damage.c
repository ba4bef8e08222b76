/* input_damage.c -- see input_damage.h. */
#include "pipeline/input_damage.h"

#include "input/bam_reader.h"
#include "pipeline/batch.h"
#include "util/diag.h"

#include <inttypes.h>

static void say(const char *input, uint64_t number, const char *read_name, const char *is_damaged,
                const char *problem)
{
    bool named = read_name && *read_name;
    diag_error("record %" PRIu64 " of '%s'%s%s%s%s %s", number, input, named ? " (read '" : "",
               named ? read_name : "", named ? "')" : "", is_damaged, problem);
}

void input_damage_record(const char *input, uint64_t number, const char *read_name,
                         const char *problem)
{
    say(input, number, read_name, " is damaged:", problem);
}

void input_damage_unfit(const char *input, uint64_t number, const char *read_name,
                        const char *problem)
{
    say(input, number, read_name, "", problem);
}

void input_damage_refused(const char *input, const struct batch_problem *problem)
{
    (problem->read_name ? input_damage_unfit : input_damage_record)(
        input, problem->record + 1, problem->read_name, problem->text);
}

void input_damage_piece(const char *input, const struct bam_piece *piece)
{
    diag_error("'%s' is damaged: a BGZF block after byte %" PRIu64 " cannot be inflated or fails "
               "its checksum", input, piece->file_offset);
}
