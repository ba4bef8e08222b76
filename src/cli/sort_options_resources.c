/* sort_options_resources.c -- threads, memory and the codec of temporary data. */
#include "cli/sort_options.h"

#include "input/input_file.h"
#include "os/memory.h"
#include "spill/memory_budget.h"
#include "util/diag.h"
#include "util/size.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>

/* For tests only. */
#define TEST_BUDGET_VARIABLE "ROCKSORT_TEST_BUDGET"     /* the whole budget in bytes */
#define TEST_SORT_BUFFER_VARIABLE "ROCKSORT_TEST_SORT_BUFFER"     /* bytes, each a run: whole
                                                                   pages, at least two */
#define TEST_FILE_VARIABLE "ROCKSORT_TEST_FILE" /* bytes that a file of a run has at least */

/* Takes a size from an environment variable, if it is there. Returns 0, or -1 after a message. */
static int take_test_size(const char *variable, uint64_t *n_bytes)
{
    const char *text = getenv(variable);
    if (!text || size_parse(text, n_bytes) == 0) return 0;
    diag_error("%s takes a size such as 1M, not '%s'", variable, text);
    return -1;
}

/* Replaces auto with values that fit the machine. */
static void fit_machine(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    if (!o->auto_threads && !o->auto_memory) return;
    struct machine_facts facts;
    machine_facts_gather(&facts);       /* without input_is_pipe */
    for (size_t i = 0; i < s->n_inputs; i++)
        if (input_is_pipe(s->inputs[i])) facts.input_is_pipe = true;
    machine_fit_choose(&facts, &o->fit);
    if (o->auto_threads) s->n_threads = o->fit.n_threads;
    /* -@ auto without a memory option takes no more than --max-memory auto. */
    if (o->auto_memory || (!o->total_memory_bytes && !o->thread_memory_given &&
                           o->fit.memory_bytes < o->thread_memory_bytes * s->n_threads)) {
        o->total_memory_bytes = o->fit.memory_bytes;
        option_list_add(&o->kept, OPTION_KEPT,
                        xasprintf("--max-memory=%" PRIu64, o->total_memory_bytes));
    }
    if (o->auto_threads)
        option_list_add(&o->kept, OPTION_KEPT, xasprintf("-@%u", s->n_threads));
}

/* Warns if the machine has less memory: the system might kill the sort hours later, when it needs
   it. */
static void warn_of_memory(const struct sort_options *o, uint64_t n_bytes)
{
    char asked[SIZE_TEXT_BYTES], has[SIZE_TEXT_BYTES];
    uint64_t most = memory_of_machine();
    if (n_bytes <= most) return;
    diag_warning("%s of memory (%s) is more than the %s that there is: the system may kill the "
                 "sort; give less", size_format(n_bytes, asked),
                 o->total_memory_bytes ? "--max-memory" : "-m times -@", size_format(most, has));
}

/* Limits the threads to the memory. Returns their number. */
static unsigned choose_threads(unsigned n_asked, uint64_t total_bytes)
{
    unsigned most = memory_budget_most_threads((size_t)total_bytes);
    if (n_asked <= most) return n_asked;
    diag_note("%zu MiB of memory is enough for %u worker threads, not for %u: for these give "
              "--max-memory %zuM", (size_t)total_bytes >> 20, most, n_asked,
              (size_t)n_asked * MEMORY_THREAD_BYTES >> 20);
    return most;
}

int sort_options_finish_resources(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    fit_machine(o);
    uint64_t total = o->total_memory_bytes ? o->total_memory_bytes
                                           : o->thread_memory_bytes * s->n_threads;
    if (total <= SIZE_MAX / 2) s->n_threads = choose_threads(s->n_threads, total);
    if (take_test_size(TEST_BUDGET_VARIABLE, &total) < 0 ||
        take_test_size(TEST_SORT_BUFFER_VARIABLE, &s->test_buffer_bytes) < 0 ||
        take_test_size(TEST_FILE_VARIABLE, &s->test_file_bytes) < 0)
        return -1;
    if (total > SIZE_MAX / 2 || o->thread_memory_bytes > SIZE_MAX / 2 / s->n_threads) {
        diag_error("so much memory cannot be addressed; give less with -m");
        return -1;
    }
    s->memory_bytes = (size_t)total;
    s->options = o->kept.words;
    s->n_options = o->kept.n;
    if (!s->sum_only) warn_of_memory(o, s->memory_bytes);
    return 0;
}
