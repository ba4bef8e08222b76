/* test_checkpoint_writer.c -- which records must be in runs, when temporary directories stay, and
   when they are synced. */
#include "test_place.h"
#include "unit_test.h"

#include "os/interpose.h"
#include "resume/checkpoint_writer.h"
#include "util/diag.h"

#include <signal.h>

enum stage { OPENED, RECORDED, HAS_ALL_RUNS, LOADED };

struct state {
    bool is_pipe, keep, overwrites, is_bad;
    enum stage stage;
    int signal_number;
    unsigned n_durable;
    bool needs_all_runs, keeps; /* expected */
};

/* A sort from in.bam, up to a stage. */
static void check_state(const struct state *c)
{
    static const char *const input = "in.bam", *const prefix = ".";
    const struct sort_settings settings = {
        .inputs = &input, .n_inputs = 1, .output = c->overwrites ? input : "out.bam",
        .temp_prefixes = &prefix, .n_temp_prefixes = 1, .keep_checkpoint = c->keep,
        .fsync_after_seconds = 600};
    struct opened_file file = {.is_regular = !c->is_pipe};
    struct bam_inputs inputs = {.files = &file, .can_seek = !c->is_pipe};
    struct output_path output = {.name = settings.output}, none = {0};
    struct group_dir groups = {.path = NULL};
    struct temp_dirs dirs;
    struct threads *threads = thread_pool_create();
    struct load_totals totals = {.threads = threads};
    const struct checkpoint_sort_parts parts = {threads, &totals, &output, &none, &none, &groups,
                                                true};
    OWNED_HEADER sam_hdr_t *header = parse_header("@HD\tVN:1.6\n");
    struct checkpoint_writer *w = checkpoint_writer_create(&settings, &parts);
    totals.counts = (struct load_counts){.sum.n_records = 1, .input_is_bad = c->is_bad};
    checkpoint_writer_look_at_output(w);
    checkpoint_writer_remember_inputs(w, &inputs, header);
    assert_int_equal(checkpoint_writer_make_directories(w, &dirs), 0);
    if (c->stage >= RECORDED) assert_int_equal(checkpoint_writer_begin(w, 1), 0);
    /* The records of an input that is overwritten exist only here. */
    assert_int_equal(interpose_make_all_syncs(), c->stage >= RECORDED && !c->overwrites);
    if (c->stage == HAS_ALL_RUNS) assert_int_equal(rename(dirs.paths[0], "away"), 0);
    assert_int_equal(checkpoint_writer_needs_all_runs(w), c->needs_all_runs);
    if (c->stage >= HAS_ALL_RUNS) assert_int_equal(checkpoint_writer_end_load(w, 1), 0);
    if (c->stage == HAS_ALL_RUNS) assert_int_equal(rename("away", dirs.paths[0]), 0);
    assert_int_equal(checkpoint_writer_saves_part(w), c->keep && c->is_pipe);
    thread_pool_lock(threads);
    assert_int_equal(checkpoint_writer_is_loaded(w), c->stage == LOADED);
    assert_int_equal(checkpoint_writer_keeps(w, c->signal_number, c->n_durable), c->keeps);
    thread_pool_unlock(threads);
    assert_int_equal(checkpoint_writer_may_write(w), !c->overwrites || c->stage == LOADED);
    diag_renew();
    checkpoint_writer_end_syncs(w, false);
    checkpoint_writer_remove_directories(w, false);
    checkpoint_writer_destroy(w);
    thread_pool_destroy(threads);
}

TEST_IN_OWN_DIR(test_what_another_process_can_finish_stays)
{
    static const struct state cases[] = {
        {.stage = OPENED, .n_durable = 1, .is_pipe = true},
        {.stage = RECORDED},
        {.stage = RECORDED, .n_durable = 1, .keeps = true},
        {.stage = RECORDED, .n_durable = 1, .is_bad = true},
        {.stage = RECORDED, .n_durable = 1, .is_pipe = true, .needs_all_runs = true},
        {.stage = RECORDED, .n_durable = 1, .is_pipe = true, .keep = true, .needs_all_runs = true,
         .keeps = true},
        {.stage = RECORDED, .n_durable = 1, .signal_number = SIGTERM, .keeps = true},
        {.stage = RECORDED, .n_durable = 1, .signal_number = SIGINT},
        {.stage = HAS_ALL_RUNS, .is_pipe = true, .needs_all_runs = true, .keeps = true},
        {.stage = LOADED, .is_bad = true, .keeps = true},
        {.stage = LOADED, .n_durable = 1, .signal_number = SIGPIPE},
        {.stage = LOADED, .keep = true, .signal_number = SIGINT, .needs_all_runs = true,
         .keeps = true},
        {.stage = RECORDED, .n_durable = 1, .overwrites = true, .signal_number = SIGQUIT,
         .needs_all_runs = true},
        {.stage = LOADED, .overwrites = true, .signal_number = SIGINT, .needs_all_runs = true,
         .keeps = true},
    };
    put_file("in.bam", "", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("case %zu\n", i);
        check_state(&cases[i]);
    }
    assert_int_equal(unlink("in.bam"), 0);
}

TEST(test_resumed_sort_syncs_at_once_and_fails_with_the_sync)
{
    const struct checkpoint checkpoint = {.n_dirs = 1};
    const struct sort_settings settings = {.fsync_after_seconds = 600, .resumed = &checkpoint};
    struct threads *threads = thread_pool_create();
    char **directories = test_alloc(2 * sizeof *directories);
    directories[0] = (char *)(uintptr_t)"/dev/null";    /* no directory */
    directories[1] = NULL;
    struct delayed_fsync *d = delayed_fsync_begin(&settings, threads, directories, false);
    assert_false(interpose_make_all_syncs());
    thread_pool_lock(threads);
    while (!thread_pool_failed(threads)) thread_pool_wait(threads);
    thread_pool_unlock(threads);
    delayed_fsync_tell(d, 0);
    assert_false(diag_failed());
    delayed_fsync_tell(d, -1);
    assert_non_null(strstr(diag_error_text(), "cannot write temporary data in '/dev/null'"));
    diag_renew();
    delayed_fsync_end(d, false);
    thread_pool_destroy(threads);
}
