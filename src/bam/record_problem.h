/*
 * record_problem.h -- describes and reports a problem with a record of an input.
 *
 * A damaged record breaks the rules of its format. A valid record may lack something that this sort
 * needs, such as the tag to sort by. The function that finds the problem fills the struct; a caller
 * that knows the name of the input prints the message. Texts and names must stay valid until then.
 * Any thread.
 */
#ifndef ROCKSORT_BAM_RECORD_PROBLEM_H
#define ROCKSORT_BAM_RECORD_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#define RECORD_NUMBER_UNKNOWN UINT64_MAX

struct record_problem {
    const char *text;           /* follows "is damaged:" in the message, or "record 7 of 'FILE'" */
    bool is_damaged;            /* the record breaks the rules of its format */
    uint64_t record;            /* number of the record in its input, from 0; if it is unknown,
                                   read_name is needed */
    const char *read_name;      /* NULL or empty if unknown */
    const char *tag;            /* two letters that follow the text, or NULL */
};

/* Prints one error (diag.h), with the number counted from 1: "record 7 of 'FILE' (read 'NAME') is
   damaged: TEXT", or without "is damaged:". Without a number: "read 'NAME' of 'FILE' ...". */
void record_problem_print(const struct record_problem *problem, const char *input);

#endif
