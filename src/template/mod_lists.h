/*
 * mod_lists.h -- reads the value of the tag MM, which lists the modified bases of a read.
 *
 * The SAM specification (optional fields, section 1.7) defines it. A list such as "C+mh?,5,12,0;"
 * has a base and a strand, the codes of modifications (letters, or one ChEBI number), a flag or
 * none, and steps. Each step stands for one modified base: so many bases of this kind lie between
 * it and the modified base before it. The steps follow the read as it was sequenced. A read has any
 * number of lists.
 *
 * Every error of the text is found, so that nobody has to check it again. Pure; any thread.
 */
#ifndef ROCKSORT_TEMPLATE_MOD_LISTS_H
#define ROCKSORT_TEMPLATE_MOD_LISTS_H

#include <stddef.h>
#include <stdint.h>

enum { MOD_LISTS_ANY_BASE = 15 };

struct mod_list {
    const char *text;           /* where it begins */
    const char *steps;          /* the comma before the first step, or the semicolon */
    uint32_t base;              /* as in BAM: 1 A, 2 C, 4 G, 8 T, or MOD_LISTS_ANY_BASE */
    size_t n_codes;             /* the tag ML has as many bytes for each step */
    size_t n_steps;
    uint64_t n_bases;           /* so many bases of this kind must the read have */
};

/* Reads the list at *at and moves *at to the next one. The text ends in a NUL. Returns 1, 0 at the
   end, or -1 if the text is malformed. */
int mod_lists_next(const char **at, struct mod_list *list);

/* Reads the next step of a list. *at starts as list->steps; call this list->n_steps times. */
uint32_t mod_lists_step(const char **at);

#endif
