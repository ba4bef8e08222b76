/* bam_plan.c -- see bam_plan.h. Gathers the facts for estimate.h, and prints the estimate. */
#include "command/bam_plan.h"

#include "command/plan_sample.h"
#include "input/input_file.h"
#include "machine/exception_guard.h"
#include "machine/memory.h"
#include "output/output_path.h"
#include "pipeline/load_cutter.h"
#include "pipeline/prepare.h"
#include "pipeline/sort_parts.h"
#include "pipeline/space.h"
#include "store/store_layout.h"
#include "store/temp_dir.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/size.h"
#include "util/xalloc.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { TYPICAL_RUN = 16 };      /* its block size is assumed; later runs have smaller blocks */

/* At level 9 the whole sample would take too long to deflate. */
#define MOST_DEFLATE_SECONDS 0.6

#define ASSUMED_BYTES ((uint64_t)1 << 30)       /* size of all records, if it is not known */

struct place {                  /* a directory for temporary data */
    char *path;
    struct disk_traits disk;
    uint64_t free_bytes;
};

struct planner {
    const struct sort_options *options;
    struct plan_sample sample;  /* raw_bytes 0: nothing could be read */
    struct estimate_facts facts;
    struct estimate plan;
    uint64_t file_bytes;        /* of all inputs; 0: unknown */
    bool has_estimate;          /* expected_bytes is from the sample or -s */
    struct place *places;
    size_t n_places;
    struct output_path output, also;
    struct space_places space;
};

/* ---- gathering ---- */

/* Estimates the size of all records from the sample and the sizes of the files. */
static void expect_bytes(struct planner *pl, bool may_read)
{
    const struct sort_settings *s = &pl->options->settings;
    const struct plan_sample *sample = &pl->sample;
    struct estimate_facts *facts = &pl->facts;
    bool is_empty = may_read && sample->raw_bytes == 0 && sample->whole;
    double n_read = (double)(sample->raw_bytes + sample->template_bytes);
    double ratio = sample->file_bytes > 0 ? n_read / (double)sample->file_bytes : 0;
    bool exact = sample->whole && s->n_inputs == 1;
    facts->expected_bytes = s->input_bytes;
    facts->size_is_known = s->input_bytes > 0;
    if (exact || (pl->file_bytes > 0 && ratio > 0)) {
        double n = exact ? (double)sample->raw_bytes : ratio * (double)pl->file_bytes;
        facts->expected_bytes = (uint64_t)n;
        facts->size_is_known = true;
    }
    pl->has_estimate = facts->size_is_known;
    if (facts->expected_bytes == 0) facts->expected_bytes = is_empty ? 1 : ASSUMED_BYTES;
}

/* Nobody knows where a template ends that is larger than the sample: perhaps with the input. */
static void expect_template(struct planner *pl)
{
    uint64_t rest = pl->facts.expected_bytes - pl->sample.raw_bytes;
    if (pl->sample.ends_in_template && rest > load_cutter_max_template(&pl->facts.budget))
        pl->facts.large_template_bytes = rest;
}

/* Standard input is not read even if it is a file: another process may have read a part of it
   already. */
static bool may_sample(const char *input)
{
    return !input_is_pipe(input) && strcmp(input, "-") != 0;
}

/* Reads the beginning of the first input that has records, unless the sort could not read it
   again. */
static int look_at_input(struct planner *pl)
{
    const struct sort_settings *s = &pl->options->settings;
    struct plan_sample *sample = &pl->sample;
    struct plan_sample_settings settings = {
        .sort = s,
        .measure = {.method = sort_settings_method(s),
                    .measures_usual = estimate_needs_usual(pl->facts.outputs, pl->facts.n_outputs),
                    .block_bytes = mem_budget_block_bytes(&pl->facts.budget, TYPICAL_RUN, 0),
                    .duplicates = s->markdup ? &s->duplicate_rules : NULL,
                    .pack_bytes = pl->facts.budget.pack_bytes,
                    .most_deflate_seconds = MOST_DEFLATE_SECONDS},
    };
    pl->file_bytes = input_bytes_of_all(s->inputs, s->n_inputs);
    bool may_read = true;
    for (size_t i = 0; i < s->n_inputs && sample->raw_bytes == 0; i++) {
        may_read = may_sample(s->inputs[i]);
        if (!may_read) break;
        settings.path = s->inputs[i];
        if (plan_sample_take(&settings, sample) < 0) return -1;
    }
    expect_bytes(pl, may_read);
    expect_template(pl);
    pl->facts.traits = sample->traits;
    if (sample->raw_bytes > 0) return 0;
    estimate_usual_traits(&pl->facts.traits);
    if (!sample->format) sample->format = "unknown";
    return 0;
}

/* Makes a temporary directory as a sort would, looks at the disk, and removes it. */
static int look_at_directory(const char *prefix, const char *output, struct place *place)
{
    sigset_t signals, before;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGHUP);
    /* The signals are blocked until the directory is removed, at most half a second. */
    (void)sigprocmask(SIG_BLOCK, &signals, &before);
    int r = -1;
    place->path = temp_dir_create(prefix, output);
    if (place->path) {
        disk_probe(place->path, &place->disk);
        (void)disk_space_free(place->path, &place->free_bytes);
        r = temp_dir_remove(place->path);
        if (r < 0)
            diag_error("cannot remove the temporary directory '%s': %s", place->path,
                       strerror(errno));
        /* The plan prints the directory in which the temporary one was made. */
        if (!path_go_up(place->path)) (void)strcpy(place->path, ".");
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}

static int look_at_disks(struct planner *pl)
{
    const struct sort_settings *s = &pl->options->settings;
    struct estimate_facts *facts = &pl->facts;
    facts->disks = (struct run_store_disks){.in_memory = true};
    pl->places = xcalloc(s->n_temp_prefixes, sizeof *pl->places);
    for (size_t i = 0; i < s->n_temp_prefixes; i++) {
        struct place *place = &pl->places[i];
        pl->n_places = i + 1;
        const char *output = pl->output.final ? s->output : NULL;
        if (look_at_directory(s->temp_prefixes[i], output, place) < 0) return -1;
        run_store_disks_add(&facts->disks, &place->disk);
    }
    if (facts->disks.slow_to_seek) mem_budget_lengthen_runs(&facts->budget);
    facts->exceeds_memory = store_layout_exceeds_memory(
        facts->size_is_known ? facts->expected_bytes : facts->said_bytes,
        mem_budget_scan_bytes(&facts->budget));
    facts->n_lanes = store_layout_lanes(s->n_temp_prefixes, facts->disks.slow_to_seek);
    facts->most_files = store_layout_most_files(s->n_temp_prefixes * facts->n_lanes);
    return 0;
}

/* Looks at the space where temporary data, if there are any, and the output would go. */
static void look_at_space(struct planner *pl)
{
    const char **dirs = xcalloc(pl->n_places + 1, sizeof *dirs);
    for (size_t i = 0; i < pl->n_places; i++) dirs[i] = pl->places[i].path;
    space_look(&pl->space, dirs, pl->n_places, pl->output.final, pl->also.final);
    pl->facts.disks.free_bytes = pl->space.temporary.free_bytes;
    free(dirs);
}

static int gather(struct planner *pl)
{
    const struct sort_settings *s = &pl->options->settings;
    struct estimate_facts *facts = &pl->facts;
    struct machine_facts machine;
    machine_facts_gather(&machine);
    facts->n_cpus = machine_fit_cpus(&machine);
    sort_plan_memory(s, s->memory_bytes, &facts->budget);
    space_facts(s, facts);
    facts->n_dirs = (unsigned)s->n_temp_prefixes;
    facts->n_lanes = 1;         /* until the disks are looked at */
    if (prepare_path(s, s->output, &pl->output) < 0 || prepare_path(s, s->also, &pl->also) < 0)
        return -1;
    if (look_at_input(pl) < 0) return -1;
    estimate_make(facts, &pl->plan);
    /* If all fits into memory the disks do not matter: they need not even be writable. */
    bool uses_disk = !pl->plan.in_memory || pl->plan.needed_bytes > 0;
    if (uses_disk && look_at_disks(pl) < 0) return -1;
    look_at_space(pl);
    estimate_make(facts, &pl->plan);
    return 0;
}

/* ---- printing ---- */

static void print_line(const char *key, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void print_line(const char *key, const char *format, ...)
{
    va_list args;
    (void)printf("%s: ", key);
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)putchar('\n');
}

static void print_input(const struct planner *pl)
{
    const struct sort_settings *s = &pl->options->settings;
    const struct plan_sample *sample = &pl->sample;
    char size[SIZE_TEXT_BYTES], raw[SIZE_TEXT_BYTES];
    (void)size_format(pl->file_bytes, size);
    (void)size_format(pl->facts.expected_bytes, raw);
    if (s->n_inputs == 1)
        print_line("input", "%s, %s, %s", s->inputs[0], sample->format,
                   pl->file_bytes ? size : "of unknown size");
    else
        print_line("input", "%zu files, the first one %s, %s", s->n_inputs, sample->format,
                   pl->file_bytes ? size : "of unknown size");
    double n_records = sample->n_records > 0
                           ? (double)pl->facts.expected_bytes / (double)sample->raw_bytes *
                                 (double)sample->n_records : 0;
    const char *about = sample->whole && s->n_inputs == 1 ? "" : "about ";
    if (!pl->has_estimate)
        print_line("uncompressed", "unknown; give -s SIZE for a plan of the whole input");
    else if (s->input_bytes > 0 && pl->facts.expected_bytes == s->input_bytes)
        print_line("uncompressed", "%s, by -s", raw);
    else if (n_records > 0)
        print_line("uncompressed", "%s%s, %s%.0f records", about, raw, about, n_records);
    else if (sample->template_bytes > 0)
        print_line("uncompressed", "about %s", raw);
    else
        print_line("uncompressed", "nothing");
}

static void print_resources(const struct planner *pl)
{
    const struct sort_options *o = pl->options;
    const struct mem_budget *b = &pl->facts.budget;
    const struct machine_fit *fit = &o->fit;
    if (o->auto_threads)
        print_line("threads", "%u (auto: %s)", b->n_threads, fit->threads_reason);
    else
        print_line("threads", "%u", b->n_threads);
    if (fit->n_threads > 0 && o->settings.memory_bytes == fit->memory_bytes)
        print_line("memory", "%zu MiB (auto: %s)", b->total_bytes >> 20, fit->memory_reason);
    else
        print_line("memory", "%zu MiB", b->total_bytes >> 20);
    print_line("memory split", "%u batches of %.1f MiB for records; while loading %.1f MiB for "
               "pieces of input and %.1f for packs of runs; while merging %.1f MiB for segments, "
               "and for blocks of runs what they need",
               b->n_batches, (double)b->batch_bytes / 0x1p20,
               (double)b->input_bytes / 0x1p20,
               (double)(b->n_packs * b->pack_bytes) / 0x1p20,
               (double)(b->n_segments * b->segment_bytes) / 0x1p20);
}

static void print_disk(const struct place *place)
{
    const struct disk_traits *disk = &place->disk;
    char size[SIZE_TEXT_BYTES], rotation[DISK_ROTATION_TEXT_BYTES], speed[96] = "";
    if (disk->seek_seconds > 0)
        (void)snprintf(speed, sizeof speed, ", a seek takes %.2f ms, %.1f at a time, reading in "
                       "order %.0f MB/s", 1e3 * disk->seek_seconds, disk->parallel,
                       1e-6 * disk->bytes_per_second);
    print_line("temporary directory", "%s, %s%s%s, %s free", place->path, disk->file_system,
               disk_rotation_text(&disk->rotation, rotation), speed,
               size_format(place->free_bytes, size));
}

static void print_spilling(const struct planner *pl)
{
    const struct estimate *plan = &pl->plan;
    char run[SIZE_TEXT_BYTES], temp[SIZE_TEXT_BYTES], space[SIZE_TEXT_BYTES];
    (void)size_format(plan->run_bytes, run);
    print_line("runs on disk", "%" PRIu64 ", of %s of records each", plan->n_runs, run);
    for (size_t i = 0; i < pl->n_places; i++) print_disk(&pl->places[i]);
    print_line("codec", "%s%s, because %s", temp_codec_name(plan->codec),
               plan->codec_may_change ? " at first, then none if the disk keeps up" : "",
               codec_reason_text(plan->codec_reason));
    double temp_bytes = plan->temp_bytes + plan->view_bytes + plan->template_bytes;
    print_line("temporary space", "%s to be written, up to %s needed",
               size_format((uint64_t)temp_bytes, temp),
               size_format((uint64_t)plan->peak_bytes, space));
    print_line("compaction", "%s, because %s", plan->compaction.compact ? "on" : "off",
               compaction_reason_text(plan->compaction.reason));
    if (plan->read_bytes > 0)
        print_line("merge", "%d pass%s, over %" PRIu64 " files, reading %zu KiB at a time, with "
                   "about %.0f seeks", plan->compaction.compact ? 2 : 1,
                   plan->compaction.compact ? "es" : "", plan->n_files, plan->read_bytes >> 10,
                   plan->n_seeks);
    else
        print_line("merge", "%d pass%s, over %" PRIu64 " files",
                   plan->compaction.compact ? 2 : 1, plan->compaction.compact ? "es" : "",
                   plan->n_files);
}

/* What --fixmate and --markdup put into files of their own. */
static void print_other_files(const struct planner *pl)
{
    const struct sort_settings *s = &pl->options->settings;
    const struct estimate *plan = &pl->plan;
    double view_bytes = (double)pl->facts.expected_bytes * pl->facts.traits.view_ratio;
    char size[SIZE_TEXT_BYTES];
    if (plan->template_bytes > 0)
        print_line("template", "up to %s in a temporary file: it does not fit into memory",
                   size_format((uint64_t)plan->template_bytes, size));
    if (s->markdup)
        print_line("duplicates", "%s remembered of all records, %s",
                   size_format((uint64_t)view_bytes, size),
                   plan->view_bytes > 0 ? "in a temporary file" : "in memory");
}

static void print_warnings(const struct planner *pl)
{
    const struct sort_settings *s = &pl->options->settings;
    const struct estimate *plan = &pl->plan;
    uint64_t available = memory_available();
    char texts[SPACE_MOST_TEXTS][SPACE_TEXT_BYTES];
    if (available < s->memory_bytes)
        print_line("warning", "%zu MiB of memory may be used, but only %" PRIu64 " are free: give "
                   "less with -m", s->memory_bytes >> 20, available >> 20);
    if (pl->facts.n_cpus > 0 && s->n_threads > pl->facts.n_cpus)
        print_line("warning", "%u threads share %u CPU%s: give fewer with -@", s->n_threads,
                   pl->facts.n_cpus, pl->facts.n_cpus == 1 ? "" : "s");
    for (size_t i = 0; i < pl->n_places && !plan->in_memory; i++) {
        const struct place *place = &pl->places[i];
        if (place->disk.is_memory)
            print_line("warning", "'%s' is memory (%s), in addition to that of -m: choose another "
                       "place with -T", place->path, place->disk.file_system);
        else if (place->disk.is_network)
            print_line("warning", "'%s' is on a network file system (%s): choose a local disk with "
                       "-T", place->path, place->disk.file_system);
        else if (strcmp(place->disk.file_system, "fuse") == 0)
            print_line("warning", "'%s' is on a FUSE file system, maybe on a network: choose a "
                       "local disk with -T", place->path);
    }
    /* Without an estimate the plan is for an assumed size, so it says nothing about the output. */
    struct estimate needed = *plan;
    if (!pl->has_estimate) needed.output_bytes = needed.also_bytes = 0;
    size_t n = space_compare(&pl->space, &needed, texts);
    for (size_t i = 0; i < n; i++) print_line("warning", "%s", texts[i]);
}

/* The sizes of SAM and CRAM are too rough to be said. */
static void print_output(const char *key, const char *name, const struct output_format *format,
                         double n_bytes)
{
    char size[SIZE_TEXT_BYTES];
    if (format->kind == OUTPUT_BAM || output_format_has_columns(format))
        print_line(key, "%s, about %s", name, size_format((uint64_t)n_bytes, size));
    else
        print_line(key, "%s", name);
}

static void print_plan(const struct planner *pl)
{
    const struct sort_settings *s = &pl->options->settings;
    const struct estimate *plan = &pl->plan;
    print_input(pl);
    if (s->rules.order == SORT_TAG)
        print_line("order", "tag %.2s, then %s", s->rules.tag, sort_order_text(s->rules.below));
    else
        print_line("order", "%s", sort_order_text(s->rules.order));
    print_resources(pl);
    if (!pl->has_estimate) print_line("assumed", "1 GiB of records, in the lines below");
    if (plan->in_memory)
        print_line("runs on disk", "none: all fits into memory");
    else
        print_spilling(pl);
    print_other_files(pl);
    print_output("output", s->output ? s->output : "standard output", &s->output_format,
                 plan->output_bytes);
    if (s->also) print_output("also", s->also, &s->also_format, plan->also_bytes);
    print_line("time", "about %.1f s (load %.1f, merge %.1f)",
               plan->load_seconds + plan->merge_seconds, plan->load_seconds, plan->merge_seconds);
    print_warnings(pl);
}

int bam_plan_run(const struct sort_options *options)
{
    struct planner pl = {.options = options};
    exception_guard_begin(NULL, NULL);
    int r = gather(&pl);
    if (r == 0) print_plan(&pl);
    exception_guard_end();
    for (size_t i = 0; i < pl.n_places; i++) free(pl.places[i].path);
    free(pl.places);
    output_path_release(&pl.output);
    output_path_release(&pl.also);
    return r;
}
