/*
 * bam_plan.c -- see bam_plan.h. Gathers what sort_plan.h decides by, and prints what it says.
 */
#include "command/bam_plan.h"

#include "command/machine_facts.h"
#include "command/sort_plan.h"
#include "input/input_file.h"
#include "machine/disk_probe.h"
#include "machine/disk_space.h"
#include "machine/exception_guard.h"
#include "machine/memory.h"
#include "store/store_layout.h"
#include "store/temp_dir.h"
#include "util/diag.h"
#include "util/path.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TYPICAL_RUN = 16 };      /* the later, the smaller its blocks */

struct place {                  /* a directory for temporary data or for the output */
    char *path;
    struct disk_traits disk;
    dev_t device;
    uint64_t free_bytes;
    bool shared;                /* another place before it is on the same file system */
};

struct planner {
    const struct sort_options *options;
    struct sort_plan_facts facts;
    struct sort_plan plan;
    uint64_t file_bytes;        /* of all inputs; 0: unknown */
    bool has_estimate;          /* expected_bytes is from the sample or -s */
    struct place *places;
    size_t n_places;
    struct place output;        /* path NULL: no file */
};

/* ---- gathering ---- */

/* Reads the beginning of the first input, unless that would take it away from the sort. */
static int look_at_input(struct planner *pl)
{
    const struct sort_settings *s = &pl->options->settings;
    struct sort_plan_facts *facts = &pl->facts;
    struct plan_sample *sample = &facts->sample;
    pl->file_bytes = input_bytes_of_all(s->inputs, s->n_inputs);
    facts->said_bytes = facts->expected_bytes = s->input_bytes;
    facts->size_is_known = s->input_bytes > 0;
    struct plan_sample_settings settings = {
        .path = s->inputs[0],
        .options = &s->input_format,
        .rules = s->rules,
        .level = s->level,
        .block_bytes = mem_budget_block_bytes(&facts->budget, TYPICAL_RUN, 0),
    };
    if (settings.block_bytes > PLAN_SAMPLE_MOST_BLOCK_BYTES)
        settings.block_bytes = PLAN_SAMPLE_MOST_BLOCK_BYTES;
    /* Standard input may be a file that is read behind its beginning. */
    bool may_read = !input_is_pipe(s->inputs[0]) && strcmp(s->inputs[0], "-") != 0;
    if (may_read && plan_sample_take(&settings, sample) < 0) return -1;
    bool is_empty = may_read && sample->raw_bytes == 0 && sample->whole;
    double ratio = sample->file_bytes > 0
                       ? (double)sample->raw_bytes / (double)sample->file_bytes : 0;
    bool exact = sample->whole && s->n_inputs == 1;
    if (exact || (pl->file_bytes > 0 && ratio > 0)) {
        double n = exact ? (double)sample->raw_bytes : ratio * (double)pl->file_bytes;
        facts->expected_bytes = (uint64_t)n;
        facts->size_is_known = true;
    }
    pl->has_estimate = facts->size_is_known;
    if (sample->raw_bytes == 0) sort_plan_usual_sample(sample);
    if (facts->expected_bytes == 0) facts->expected_bytes = is_empty ? 1 : (uint64_t)1 << 30;
    return 0;
}

/* Returns 0, or -1 with errno set. */
static int look_at_space(struct place *place)
{
    struct stat st;
    if (stat(place->path, &st) == 0) place->device = st.st_dev;
    return disk_space_free(place->path, &place->free_bytes);
}

/* Makes a temporary directory as a sort would, looks at the disk, and removes it. */
static int look_at_directory(const char *prefix, const char *output, struct place *place)
{
    sigset_t signals, before;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGHUP);
    /* A signal takes its course when the directory is gone: within half a second. */
    (void)sigprocmask(SIG_BLOCK, &signals, &before);
    int r = -1;
    place->path = temp_dir_create(prefix, output);
    if (place->path) {
        disk_probe(place->path, &place->disk);
        (void)look_at_space(place);
        r = temp_dir_remove(place->path);
        if (r < 0)
            diag_error("cannot remove the temporary directory '%s': %s", place->path,
                       strerror(errno));
        /* What matters to people is where it was. */
        if (!path_go_up(place->path)) (void)strcpy(place->path, ".");
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}

static int look_at_disks(struct planner *pl)
{
    const struct sort_settings *s = &pl->options->settings;
    struct sort_plan_facts *facts = &pl->facts;
    facts->in_memory = true;
    facts->parallel = 1;
    pl->places = calloc(s->n_temp_prefixes, sizeof *pl->places);
    if (!pl->places) {
        diag_no_memory();
        return -1;
    }
    for (size_t i = 0; i < s->n_temp_prefixes; i++) {
        struct place *place = &pl->places[i];
        pl->n_places = i + 1;
        if (look_at_directory(s->temp_prefixes[i], s->output, place) < 0) return -1;
        const struct disk_traits *disk = &place->disk;
        for (size_t k = 0; k < i; k++)
            if (pl->places[k].device == place->device) place->shared = true;
        if (!place->shared) facts->free_bytes += place->free_bytes;
        if (!disk->is_memory) facts->in_memory = false;
        if (disk_is_slow_to_seek(disk)) facts->slow_to_seek = true;
        if (disk->seek_seconds > facts->seek_seconds) {
            facts->seek_seconds = disk->seek_seconds;
            facts->parallel = disk->parallel;
        }
        if (facts->bytes_per_second <= 0 ||
            (disk->bytes_per_second > 0 && disk->bytes_per_second < facts->bytes_per_second))
            facts->bytes_per_second = disk->bytes_per_second;
    }
    if (facts->slow_to_seek) mem_budget_lengthen_runs(&facts->budget);
    facts->exceeds_memory = store_layout_exceeds_memory(
        facts->size_is_known ? facts->expected_bytes : facts->said_bytes,
        mem_budget_scan_bytes(&facts->budget));
    facts->n_lanes = store_layout_lanes(s->n_temp_prefixes, facts->slow_to_seek);
    size_t n_databases = s->n_temp_prefixes * facts->n_lanes;
    facts->most_files = store_layout_most_files(n_databases) * (unsigned)n_databases;
    return 0;
}

/* The file system that the output file would be on. */
static int look_at_output(struct planner *pl)
{
    const char *output = pl->options->settings.output;
    struct stat st;
    if (!output || strstr(output, "://") || (stat(output, &st) == 0 && !S_ISREG(st.st_mode)))
        return 0;
    pl->output.path = path_parent(output);
    if (!pl->output.path) {
        diag_no_memory();
        return -1;
    }
    if (look_at_space(&pl->output) < 0) {
        diag_error("cannot look at '%s', where the output would go: %s", pl->output.path,
                   strerror(errno));
        return -1;
    }
    for (size_t i = 0; i < pl->n_places; i++)
        if (pl->places[i].device == pl->output.device) pl->output.shared = true;
    return 0;
}

static int gather(struct planner *pl)
{
    const struct sort_settings *s = &pl->options->settings;
    struct sort_plan_facts *facts = &pl->facts;
    struct machine_facts machine;
    machine_facts_gather(&machine);
    facts->n_cpus = machine_fit_cpus(&machine);
    mem_budget_plan(&facts->budget, s->memory_bytes, s->n_threads);
    facts->compaction = s->compaction;
    facts->codec_auto = s->codec_auto;
    facts->codec = s->codec;
    facts->n_dirs = (unsigned)s->n_temp_prefixes;
    facts->n_lanes = 1;         /* until the disks are looked at */
    if (look_at_input(pl) < 0) return -1;
    sort_plan_make(facts, &pl->plan);
    /* What fits into memory needs no disk: not even one that can be written to. */
    if (!pl->plan.in_memory && look_at_disks(pl) < 0) return -1;
    if (look_at_output(pl) < 0) return -1;
    sort_plan_make(facts, &pl->plan);
    return 0;
}

/* ---- printing ---- */

/* "12.3 MB", in the units of the closing line. */
static const char *size_text(double n_bytes, char text[32])
{
    if (n_bytes < 1e10)
        (void)snprintf(text, 32, "%.1f MB", 1e-6 * n_bytes);
    else
        (void)snprintf(text, 32, "%.1f GB", 1e-9 * n_bytes);
    return text;
}

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
    const struct plan_sample *sample = &pl->facts.sample;
    char size[32], raw[32];
    (void)size_text((double)pl->file_bytes, size);
    (void)size_text((double)pl->facts.expected_bytes, raw);
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
        print_line("uncompressed", "unknown; give -s SIZE for a plan of all of it");
    else if (s->input_bytes > 0 && pl->facts.expected_bytes == s->input_bytes)
        print_line("uncompressed", "%s, by -s", raw);
    else if (n_records > 0)
        print_line("uncompressed", "%s%s, %s%.0f records", about, raw, about, n_records);
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
               (double)(b->n_pieces * b->piece_bytes) / 0x1p20,
               (double)(b->n_packs * b->pack_bytes) / 0x1p20,
               (double)(b->n_segments * b->segment_bytes) / 0x1p20);
}

static void print_disk(const struct place *place)
{
    const struct disk_traits *disk = &place->disk;
    char size[32], rotation[DISK_ROTATION_TEXT_BYTES], speed[96] = "";
    if (disk->seek_seconds > 0)
        (void)snprintf(speed, sizeof speed, ", a seek takes %.2f ms, %.1f at a time, reading in "
                       "order %.0f MB/s", 1e3 * disk->seek_seconds, disk->parallel,
                       1e-6 * disk->bytes_per_second);
    print_line("temporary directory", "%s, %s%s%s, %s free", place->path, disk->file_system,
               disk_rotation_text(&disk->rotation, rotation), speed,
               size_text((double)place->free_bytes, size));
}

static void print_spilling(const struct planner *pl)
{
    const struct sort_plan *plan = &pl->plan;
    char run[32], temp[32], space[32];
    (void)size_text((double)plan->run_bytes, run);
    print_line("runs on disk", "%" PRIu64 ", of %s of records each", plan->n_runs, run);
    for (size_t i = 0; i < pl->n_places; i++) print_disk(&pl->places[i]);
    print_line("codec", "%s%s, because %s", temp_codec_name(plan->codec),
               plan->codec_may_change ? " at first, then none if the disk keeps up" : "",
               codec_reason_text(plan->codec_reason));
    print_line("temporary space", "%s to be written, up to %s needed",
               size_text(plan->temp_bytes, temp), size_text(plan->space_bytes, space));
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

static void print_warnings(const struct planner *pl)
{
    const struct sort_settings *s = &pl->options->settings;
    const struct sort_plan *plan = &pl->plan;
    uint64_t available = memory_available();
    char need[32], have[32];
    if (available < s->memory_bytes)
        print_line("warning", "%zu MiB of memory may be used, but only %" PRIu64 " are free: give "
                   "less with -m", s->memory_bytes >> 20, available >> 20);
    if (pl->facts.n_cpus > 0 && s->n_threads > pl->facts.n_cpus)
        print_line("warning", "%u threads share %u CPU%s: give fewer with -@", s->n_threads,
                   pl->facts.n_cpus, pl->facts.n_cpus == 1 ? "" : "s");
    for (size_t i = 0; i < pl->n_places && !plan->in_memory; i++) {
        const struct place *place = &pl->places[i];
        if (place->disk.is_memory)
            print_line("warning", "'%s' is memory (%s), beyond that of -m: choose another place "
                       "with -T", place->path, place->disk.file_system);
        else if (place->disk.is_network)
            print_line("warning", "'%s' is on a network file system (%s): choose a local disk with "
                       "-T", place->path, place->disk.file_system);
        else if (strcmp(place->disk.file_system, "fuse") == 0)
            print_line("warning", "'%s' is on a FUSE file system, maybe on a network: choose a "
                       "local disk with -T", place->path);
    }
    bool unsure = plan->codec_may_change;      /* none is chosen only if there is space */
    double space = unsure ? plan->temp_bytes : plan->space_bytes, output = plan->output_bytes;
    if (!plan->in_memory && space > (double)pl->facts.free_bytes)
        print_line("warning", "temporary data need %s, but only %s are free: choose other places "
                   "with -T",
                   size_text(space, need), size_text((double)pl->facts.free_bytes, have));
    if (!pl->output.path || !pl->has_estimate) return;
    if (pl->output.shared && !plan->in_memory) output += space;
    if (output > (double)pl->output.free_bytes)
        print_line("warning", "the output%s need%s about %s, but only %s are free in '%s': free "
                   "space",
                   output > plan->output_bytes ? " and the temporary data" : "",
                   output > plan->output_bytes ? "" : "s", size_text(output, need),
                   size_text((double)pl->output.free_bytes, have), pl->output.path);
}

static void print_plan(const struct planner *pl)
{
    const struct sort_settings *s = &pl->options->settings;
    const struct sort_plan *plan = &pl->plan;
    char size[32];
    print_input(pl);
    if (s->rules.order == SORT_TAG)
        print_line("order", "tag %.2s, then %s", s->rules.tag, sort_order_text(s->rules.below));
    else
        print_line("order", "%s", sort_order_text(s->rules.order));
    print_resources(pl);
    if (!pl->has_estimate) print_line("assumed", "1 GiB of records, for what follows");
    if (plan->in_memory)
        print_line("runs on disk", "none: all fits into memory");
    else
        print_spilling(pl);
    if (s->output_format.format == bam)
        print_line("output", "%s, about %s", s->output ? s->output : "standard output",
                   size_text(plan->output_bytes, size));
    else
        print_line("output", "%s", s->output ? s->output : "standard output");
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
    free(pl.output.path);
    return r;
}
