/*
 * test_checkpoint.c -- the command that goes on with a checkpoint; checkpoints of several directories,
 * to which a resumed sort may have added some.
 */
#include "test_place.h"
#include "unit_test.h"

#include "os/temp_dir.h"
#include "resume/checkpoint_dir.h"
#include "util/diag.h"

#include <stdlib.h>

static void check_command(const char *path, bool partial, bool has_output, const char *expected)
{
    char text[CHECKPOINT_COMMAND_BYTES];
    struct checkpoint_resuming resuming = {
        .path = path, .partial = partial, .has_output = has_output};
    assert_string_equal(checkpoint_command(&resuming, text), expected);
}

TEST(test_command_can_be_pasted)
{
    check_command("/x/rocksort.1.abcdef", false, true,
                  "samtools rocksort --resume /x/rocksort.1.abcdef");
    check_command("/x", true, false, "samtools rocksort --resume /x --partial -o FILE");
    check_command("/a b/$x", false, false, "samtools rocksort --resume '/a b/$x' -o FILE");
    check_command("/it's", false, true, "samtools rocksort --resume '/it'\\''s'");
    check_command("/\xc3\xa4", false, true, "samtools rocksort --resume /\xc3\xa4");
    /* No path is too long, even if each of its bytes has to be quoted. */
    char path[PATH_MAX], text[CHECKPOINT_COMMAND_BYTES];
    memset(path, '\'', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    struct checkpoint_resuming resuming = {.path = path, .partial = true};
    (void)checkpoint_command(&resuming, text);
    assert_true(strlen(text) > 4 * (sizeof path - 1));
    assert_string_equal(text + strlen(text) - strlen("' --partial -o FILE"),
                        "' --partial -o FILE");
    /* Three such paths do not fit: the text ends within its buffer. */
    resuming.temp_dir = path;
    for (int i = 0; i < CHECKPOINT_N_FILES; i++) resuming.files[i] = path;
    assert_true(strlen(checkpoint_command(&resuming, text)) < sizeof text);
}

TEST(test_command_with_other_places)
{
    char text[CHECKPOINT_COMMAND_BYTES];
    const struct checkpoint_resuming resuming = {
        .path = "/x", .has_output = true, .temp_dir = "/b c",
        .files = {"/o.bam", "/a.sam", NULL, "/i", "/c"}};
    assert_string_equal(checkpoint_command(&resuming, text),
                        "samtools rocksort --resume /x -T '/b c' -o /o.bam --also /a.sam "
                        "--idxstats /i --coverage /c");
}

/* Three directories of one sort; `listed`: how many of them each record lists, 0: no record. */
struct trio {
    char *paths[3];
};

static void make_trio(struct trio *trio, const size_t listed[3])
{
    struct checkpoint_file file = {
        .program = "0", .n_lanes = 1,
        .resources = {.n_threads = 1, .thread_bytes = 1}, .rules = {.minhash = {.k = 20}},
        .minhash_window = 1, .header = "", .can_read_again = true,
    };
    for (size_t i = 0; i < 3; i++) {
        OWNED char *path = temp_dir_create("s", NULL);
        int fd = checkpoint_dir_claim(path);
        assert_true(fd >= 0 && close(fd) == 0);
        trio->paths[i] = realpath(path, NULL);
        assert_non_null(trio->paths[i]);
    }
    file.directories = (const char **)trio->paths;
    for (unsigned i = 0; i < 3; i++) {
        file.directory = i;
        file.n_directories = listed[i];
        if (listed[i] > 0) assert_int_equal(checkpoint_dir_write(trio->paths[i], &file), 0);
    }
}

static void remove_trio(struct trio *trio)
{
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(temp_dir_remove(trio->paths[i]), 0);
        free(trio->paths[i]);
    }
}

TEST_IN_OWN_DIR(test_list_of_the_first_directory_counts)
{
    static const struct {
        size_t listed[3], expected[3];          /* 0: refused */
    } cases[] = {
        {{3, 3, 3}, {3, 3, 3}},
        {{3, 2, 3}, {3, 3, 3}},         /* the copy of the second is from when it was made */
        {{2, 2, 3}, {2, 2, 0}},         /* died before the first listed the new one */
        {{2, 2, 0}, {2, 2, 0}},         /* died before the new one was written */
        {{0, 3, 3}, {0, 0, 0}},         /* died while it was removed */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trio trio;
        make_trio(&trio, cases[i].listed);
        for (size_t k = 0; k < 3; k++) {
            diag_silence();
            struct checkpoint *checkpoint = checkpoint_open(trio.paths[k]);
            diag_renew();
            assert_int_equal(checkpoint != NULL, cases[i].expected[k] > 0);
            if (!checkpoint) continue;
            assert_int_equal(checkpoint->n_dirs, cases[i].expected[k]);
            assert_int_equal(checkpoint->file.n_directories, cases[i].expected[k]);
            for (size_t n = 0; n < checkpoint->n_dirs; n++)
                assert_string_equal(checkpoint->dirs[n].path, trio.paths[n]);
            checkpoint_close(checkpoint);
        }
        remove_trio(&trio);
    }
}

/* Without one of its directories a checkpoint is refused, whichever is named; when the directory
   comes back it is whole again. */
TEST_IN_OWN_DIR(test_lost_directory_makes_it_useless)
{
    for (int lost = 0; lost < 2; lost++) {
        struct trio trio;
        struct checkpoint_file file;
        make_trio(&trio, (size_t[]){2, 2, 0});
        assert_int_equal(checkpoint_dir_peek(trio.paths[1 - lost], &file), CHECKPOINT_OK);
        assert_null(checkpoint_lost_part(&file));
        assert_int_equal(rename(trio.paths[lost], "away"), 0);
        diag_silence();
        assert_null(checkpoint_open(trio.paths[1 - lost]));
        diag_renew();
        assert_string_equal(checkpoint_lost_part(&file), trio.paths[lost]);
        assert_int_equal(rename("away", trio.paths[lost]), 0);
        struct checkpoint *checkpoint = checkpoint_open(trio.paths[1 - lost]);
        assert_non_null(checkpoint);
        checkpoint_close(checkpoint);
        checkpoint_file_release(&file);
        remove_trio(&trio);
    }
}

TEST(test_output_ends_before_its_index)
{
    assert_int_equal(checkpoint_output_length("/o.bam"), 6);
    assert_int_equal(checkpoint_output_length("/o.bam##idx##/o.bai"), 6);
}

/* The second directory has a copy of another sort, whose first directory does not list it. */
TEST_IN_OWN_DIR(test_directory_of_another_sort_is_refused)
{
    struct trio trio, other;
    make_trio(&trio, (size_t[]){3, 3, 3});
    make_trio(&other, (size_t[]){3, 3, 3});
    struct checkpoint_file file;
    assert_int_equal(checkpoint_dir_peek(other.paths[1], &file), CHECKPOINT_OK);
    assert_int_equal(checkpoint_dir_write(trio.paths[1], &file), 0);
    checkpoint_file_release(&file);
    assert_null(checkpoint_dir_first(trio.paths[1]));
    diag_silence();
    assert_null(checkpoint_open(trio.paths[1]));
    diag_renew();
    remove_trio(&trio);
    remove_trio(&other);
}
