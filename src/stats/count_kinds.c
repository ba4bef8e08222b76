/* count_kinds.c -- see count_kinds.h. */
#include "stats/count_kinds.h"

const char *count_kind_option(enum count_kind kind)
{
#define KIND_OPTION(upper, lower) [COUNT_##upper] = "--" #lower,
    static const char *const options[COUNT_N_KINDS] = {COUNT_KINDS(KIND_OPTION)};
    return options[kind];
}

const char *count_kind_name(enum count_kind kind)
{
    return count_kind_option(kind) + 2;
}

struct record_observer *count_kind_observer(enum count_kind kind, sam_hdr_t *header)
{
#define KIND_OBSERVER(upper, lower) [COUNT_##upper] = lower##_observer,
    static struct record_observer *(*const make[COUNT_N_KINDS])(sam_hdr_t *) = {
        COUNT_KINDS(KIND_OBSERVER)};
    return make[kind](header);
}
