/*
 * record_problem.h -- what is wrong with a record of an input, and the message that says so.
 *
 * A damaged record breaks the rules of its format. Any other record is sound, but lacks something
 * that this sort needs, such as the tag to sort by. The function that finds the problem fills the
 * struct; a caller that knows the name of the input prints the message. Texts and names are
 * borrowed until then. Any thread.
 */
#ifndef ROCKSORT_BAM_RECORD_PROBLEM_H
#define ROCKSORT_BAM_RECORD_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#define RECORD_NUMBER_UNKNOWN UINT64_MAX

struct record_problem {
    const char *text;           /* follows "is damaged:" in the message, or "record 7 of 'FILE'" */
    bool is_damaged;            /* the record breaks the rules of its format */
    uint64_t record;            /* number of the record in its input, from 0; or unknown: then it
                                   must have a read name */
    const char *read_name;      /* NULL or empty if it is not known */
    const char *tag;            /* two letters that follow the text, or NULL */
};

/* Prints one error (diag.h), with the number counted from 1: "record 7 of 'FILE' (read 'NAME') is
   damaged: TEXT", or without "is damaged:". Without a number: "read 'NAME' of 'FILE' ...". */
void record_problem_print(const struct record_problem *problem, const char *input);

#endif
