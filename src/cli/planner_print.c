/* planner_print.c -- --plan: gathers the facts of a plan, and prints it. See planner.h. */
#include "sort/planner.h"

#include "input/input_file.h"
#include "os/exception_guard.h"
#include "os/memory.h"
#include "os/temp_dir.h"
#include "sort/load.h"
#include "sort/prepare.h"
#include "spill/store_layout.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/size.h"
#include "util/xalloc.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLE_BYTES = 6 << 20,     /* 18,000 short reads. No template in it is too large for memory */
    SAMPLE_MEMORY = 1 << 30,    /* with more, the sample fills no sort buffer */
    ASSUMED_BYTES = 1 << 30,    /* assumed size of all records, if unknown */
};

/* A size as text, valid until the end of the block. */
#define SIZE(n_bytes) size_format((uint64_t)(n_bytes), (char[SIZE_TEXT_BYTES]){0})

/* ---- gathering ---- */

/* Sets the fields of the plan from the sort buffers of the sample and the size of the input. */
static void take_buffers(struct plan *plan, const struct sort_context *sample,
                         const struct process_usage *used)
{
    struct load_counts counts;
    size_t n;
    struct sort_buffer *const *buffers = sort_buffer_pool_kept(sample->pool, &n);
    load_totals_look(sample->totals, &counts);
    double raw_bytes = (double)counts.sum.n_bytes, growth = 1;
    double n_read = (double)bam_inputs_bytes_read(sample->inputs);
    const htsFormat format = {.format = sample->inputs->files[0].format};
    plan->format = hts_format_file_extension(&format);
    plan->size_is_exact =
        !counts.input_is_cut && sample->settings->n_inputs == plan->settings->n_inputs;
    if (!plan->size_is_exact) growth = n_read > 0 ? (double)plan->file_bytes / n_read : 0;
    if (growth > 0) plan->expected_bytes = (uint64_t)(raw_bytes * growth);
    if (growth > 0) plan->size_is_known = true;
    if (n == 0) return;
    double cpu_seconds = used->user_seconds + used->system_seconds;
    plan->n_records = (double)plan->expected_bytes / raw_bytes * (double)counts.sum.n_records;
    plan->traits.load_seconds = cpu_seconds / raw_bytes;
    plan->traits.read_seconds = fmax(0, used->wall_seconds - cpu_seconds) / raw_bytes;
    (void)planner_sample(plan, buffers, n);
}

/* Loads the start of the inputs like a sort, with one thread. */
static int load_sample(struct plan *plan, struct sort_context *sample)
{
    const struct sort_settings *s = sample->settings;
    struct process_usage before, after, used = {0};
    if (thread_pool_start(sample->threads, 1) < 0) return -1;
    sample->inputs = bam_inputs_open(s->inputs, s->n_inputs, &s->input_format,
                                     thread_pool_hts(sample->threads), false);
    if (!sample->inputs) return -1;
    sample->header = sample->inputs->header;
    sample->rules = s->rules;
    if (rules_complete(&sample->rules_maker, sample->header, &sample->rules) < 0) return -1;
    if (s->fixmate) prepare_fixmate(sample);
    if (sort_buffer_pool_open(sample->pool, &sample->rules, true) < 0) return -1;
    process_usage_now(&before);
    if (load_input(sample, SAMPLE_BYTES) < 0) return -1;
    process_usage_now(&after);
    process_usage_add(&used, &before, &after);
    take_buffers(plan, sample, &used);
    return 0;
}

/* Loads the start of the inputs. Stops at the first pipe, because the sort would miss the data. */
static int look_at_input(struct plan *plan)
{
    const struct sort_settings *s = plan->settings;
    struct sort_settings settings = *s;
    struct sort_context sample;
    struct sort_report report;
    size_t n = 0;
    int r = 0;
    plan->file_bytes = input_bytes_of_all(s->inputs, s->n_inputs);
    plan->expected_bytes = s->input_bytes;
    plan->size_is_known = s->input_bytes > 0;
    /* Even if standard input is a file, another process may have read a part of it. */
    while (n < s->n_inputs && !input_is_pipe(s->inputs[n]) && strcmp(s->inputs[n], "-") != 0) n++;
    settings.n_inputs = n;
    settings.input_bytes = 0;
    settings.keep_checkpoint = false;
    settings.markdup = NULL;
    if (settings.memory_bytes > SAMPLE_MEMORY) settings.memory_bytes = SAMPLE_MEMORY;
    if (n > 0) {
        sort_init(&sample, &settings, &report);
        r = load_sample(plan, &sample);
        sort_release(&sample);
    }
    if (plan->expected_bytes == 0) plan->expected_bytes = plan->size_is_known ? 1 : ASSUMED_BYTES;
    return r;
}

struct places {                 /* the directories for temporary data */
    char **dirs;                /* NULL: not examined */
    struct disk_traits *disks;
};

/* Makes a temporary directory like a sort, examines the disk, and removes it. */
static int look_at_disk(const char *prefix, const char *output, char **dir,
                        struct disk_traits *disk)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    /* Block signals until the directory is removed, at most half a second. */
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    int r = -1;
    *dir = temp_dir_create(prefix, output);
    if (*dir) {
        disk_probe(*dir, disk);
        r = temp_dir_remove(*dir);
        if (r < 0)
            diag_error("cannot remove the temporary directory '%s': %s", *dir, strerror(errno));
        /* Print the parent of the temporary directory. */
        if (!path_go_up(*dir)) (void)strcpy(*dir, ".");
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

static int look_at_disks(struct plan *plan, const char *output, struct places *places)
{
    const struct sort_settings *s = plan->settings;
    unsigned n = (unsigned)s->n_temp_prefixes;
    struct run_store_disks disks = {.in_memory = true};
    for (unsigned i = 0; i < n; i++) {
        if (look_at_disk(s->temp_prefixes[i], output, &places->dirs[i], &places->disks[i]) < 0)
            return -1;
        run_store_disks_add(&disks, &places->disks[i]);
    }
    planner_set_disks(plan, &disks, n, store_layout_lanes(n, disks.slow_to_seek));
    return 0;
}

static int gather(struct plan *plan, struct places *places)
{
    const struct sort_settings *s = plan->settings;
    struct output_path output = {0}, also = {0};
    int r = prepare_path(s, s->output, &output);
    if (r == 0) r = prepare_path(s, s->also, &also);
    if (r == 0) r = look_at_input(plan);
    if (r == 0) {
        planner_estimate(plan);
        /* If all records fit in memory the disks need not even be writable. */
        bool uses_disk = !plan->in_memory || plan->needed_bytes > 0;
        if (uses_disk) r = look_at_disks(plan, output.final ? s->output : NULL, places);
        size_t n_dirs = r == 0 && uses_disk ? s->n_temp_prefixes : 0;
        planner_look_at_space(plan, (const char *const *)places->dirs, n_dirs, output.final,
                              also.final);
        plan->disks.free_bytes = plan->temporary.free_bytes;
        planner_estimate(plan);
    }
    output_path_release(&output);
    output_path_release(&also);
    return r;
}

/* ---- printing ---- */

static void print_input(const struct plan *plan, const char *threads_reason,
                        const char *memory_reason)
{
    const struct sort_settings *s = plan->settings;
    const char *about = plan->size_is_exact ? "" : "about ", *raw = SIZE(plan->expected_bytes);
    const char *size = plan->file_bytes > 0 ? SIZE(plan->file_bytes) : "of unknown size";
    if (s->n_inputs == 1)
        (void)printf("input: %s, %s, %s\n", s->inputs[0], plan->format, size);
    else
        (void)printf("input: %zu files, the first one %s, %s\n", s->n_inputs, plan->format, size);
    if (!plan->size_is_known)
        (void)printf("uncompressed: unknown; give -s SIZE for a plan of the whole input\n");
    else if (s->input_bytes > 0 && plan->expected_bytes == s->input_bytes)
        (void)printf("uncompressed: %s, from -s\n", raw);
    else if (plan->n_records > 0)
        (void)printf("uncompressed: %s%s, %s%.0f records\n", about, raw, about, plan->n_records);
    else
        (void)printf("uncompressed: %s%s\n", about, plan->size_is_exact ? "nothing" : raw);
    if (s->rules.order == SORT_TAG)
        (void)printf("order: tag %.2s, then %s\n", s->rules.tag, sort_order_text(s->rules.below));
    else
        (void)printf("order: %s\n", sort_order_text(s->rules.order));
    (void)printf("threads: %u%s\n", plan->budget.n_threads, threads_reason);
    (void)printf("memory: %zu MiB%s\n", plan->budget.total_bytes >> 20, memory_reason);
}

static void print_disk(const char *dir, const struct disk_traits *disk)
{
    struct disk_space space;
    (void)disk_space_look(dir, &space);
    (void)printf("temporary directory: %s, %s, ", dir, disk->file_system);
    if (disk->seek_seconds > 0)
        (void)printf("random read %.2f ms (%.1f concurrent), sequential read %.0f MB/s, ",
                     1e3 * disk->seek_seconds, disk->parallel, 1e-6 * disk->bytes_per_second);
    (void)printf("%s free\n", SIZE(space.free_bytes));
}

static void print_spilling(const struct plan *plan, const struct places *places)
{
    (void)printf("runs on disk: %" PRIu64 ", of %s of records each\n", plan->n_runs,
                 SIZE(plan->run_bytes));
    for (size_t i = 0; i < plan->n_dirs; i++) print_disk(places->dirs[i], &places->disks[i]);
    (void)printf("codec: %s, because %s\n", temp_codec_name(plan->codec),
                 codec_reason_text(plan->codec_reason));
    (void)printf("temporary space: %s to be written, up to %s needed\n",
                 SIZE(plan->spilled_bytes + plan->read_ends_bytes), SIZE(plan->needed_bytes));
    bool compacts = plan->compaction.compact;
    (void)printf("compaction: %s, because %s\n", compacts ? "on" : "off",
                 compaction_reason_text(plan->compaction.reason));
    (void)printf("merge: %s, over %" PRIu64 " files", compacts ? "2 passes" : "1 pass",
                 plan->n_files);
    if (plan->read_bytes > 0)
        (void)printf(", reading %zu KiB at a time, with about %.0f seeks", plan->read_bytes >> 10,
                     plan->n_seeks);
    (void)putchar('\n');
}

/* Omits the size of SAM and CRAM: it is too rough. */
static void print_output(const char *key, const char *name, const struct output_format *format,
                         double n_bytes)
{
    bool is_said = format->kind == OUTPUT_BAM || output_format_has_columns(format);
    (void)printf("%s: %s%s%s\n", key, name, is_said ? ", about " : "",
                 is_said ? SIZE(n_bytes) : "");
}

static void print_warnings(const struct plan *plan, const struct places *places)
{
    const struct sort_settings *s = plan->settings;
    uint64_t available = memory_available();
    char texts[PLAN_MOST_TEXTS][PLAN_TEXT_BYTES], problem[DISK_PROBLEM_TEXT_BYTES];
    if (available < s->memory_bytes)
        (void)printf("warning: %zu MiB of memory may be used, but only %" PRIu64 " are free: give "
                     "less with -m\n", s->memory_bytes >> 20, available >> 20);
    if (plan->n_cpus > 0 && s->n_threads > plan->n_cpus)
        (void)printf("warning: %u threads share %u CPU%s: give fewer with -@\n", s->n_threads,
                     plan->n_cpus, plan->n_cpus == 1 ? "" : "s");
    for (size_t i = 0; i < plan->n_dirs && !plan->in_memory; i++) {
        const struct disk_traits *disk = &places->disks[i];
        const char *is_on = disk_problem(disk, problem);
        if (disk->is_memory)
            (void)printf("warning: '%s' is memory (%s), in addition to that of -m: choose another "
                         "place with -T\n", places->dirs[i], disk->file_system);
        else if (is_on)
            (void)printf("warning: '%s' is on %s: choose a local disk with -T\n",
                         places->dirs[i], is_on);
    }
    size_t n = planner_compare_space(plan, texts);
    for (size_t i = 0; i < n; i++) (void)printf("warning: %s\n", texts[i]);
}

static void print_plan(const struct plan *plan, const struct places *places)
{
    const struct sort_settings *s = plan->settings;
    if (!plan->size_is_known) (void)printf("assumed: 1 GiB of records, in the lines below\n");
    if (plan->in_memory)
        (void)printf("runs on disk: none: all fits into memory\n");
    else
        print_spilling(plan, places);
    if (s->markdup)
        (void)printf("duplicates: %s kept for all records, in %s\n",
                     SIZE((double)plan->expected_bytes * plan->traits.read_ends_ratio),
                     plan->read_ends_bytes > 0 ? "a temporary file" : "memory");
    print_output("output", s->output ? s->output : "standard output", &s->output_format,
                 plan->output_bytes);
    if (s->also) print_output("also", s->also, &s->also_format, plan->also_bytes);
    (void)printf("time: about %.1f s (load %.1f, merge %.1f)\n",
                 plan->load_seconds + plan->merge_seconds, plan->load_seconds,
                 plan->merge_seconds);
    print_warnings(plan, places);
}

int planner_print(const struct sort_settings *settings, unsigned n_cpus,
                  const char *threads_reason, const char *memory_reason)
{
    struct plan plan;
    struct memory_budget budget;
    size_t n = settings->n_temp_prefixes;
    struct places places = {xcalloc(n, sizeof *places.dirs), xcalloc(n, sizeof *places.disks)};
    exception_guard_begin(NULL, NULL);
    sort_plan_memory(settings, settings->memory_bytes, &budget);
    planner_begin(&plan, settings, &budget);
    plan.n_cpus = n_cpus;
    int r = gather(&plan, &places);
    if (r == 0) {
        print_input(&plan, threads_reason, memory_reason);
        print_plan(&plan, &places);
    }
    exception_guard_end();
    for (size_t i = 0; i < n; i++) free(places.dirs[i]);
    free(places.dirs);
    free(places.disks);
    return r;
}
