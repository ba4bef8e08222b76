/*
 * test_checkpoint_dir.c -- a checkpoint directory is locked as long as a process works there, its
 * checkpoint file is written whole or not at all, and nothing is followed that others may have
 * planted.
 */
#include "test_place.h"
#include "unit_test.h"

#include "os/temp_dir.h"
#include "resume/checkpoint_dir.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const directories[] = {"/x/rocksort.1.abcdef"};

static struct checkpoint_file make_file(enum checkpoint_state state)
{
    return (struct checkpoint_file){
        .program = "0", .state = state,
        .n_directories = 1, .directories = (const char **)(uintptr_t)directories, .n_lanes = 1,
        .resources = {.n_threads = 1, .thread_bytes = 1}, .rules = {.minhash = {.k = 20}}, .minhash_window = 1, .header = "@CO\thello\n",
        .header_bytes = 10,
    };
}

static int open_code(const char *path)
{
    struct checkpoint_dir dir;
    const char *problem = NULL;
    int r = checkpoint_dir_open(path, &dir, &problem);
    if (r == CHECKPOINT_OK)
        checkpoint_dir_close(&dir);
    else
        assert_non_null(problem);
    return r;
}

static int read_code(const char *path)
{
    struct checkpoint_dir dir;
    struct checkpoint_file file;
    const char *problem = NULL;
    assert_int_equal(checkpoint_dir_open(path, &dir, &problem), CHECKPOINT_OK);
    int r = checkpoint_dir_read(&dir, &file, &problem);
    if (r == CHECKPOINT_OK)
        checkpoint_file_release(&file);
    else
        assert_non_null(problem);
    checkpoint_dir_close(&dir);
    return r;
}

static char *make_checkpoint_dir(int *lock_fd)
{
    char *path = temp_dir_create("s", NULL);
    assert_non_null(path);
    *lock_fd = checkpoint_dir_claim(path);
    assert_true(*lock_fd >= 0);
    return path;
}

static void remove_checkpoint_dir(char *path)
{
    assert_int_equal(temp_dir_remove(path), 0);
    free(path);
}

TEST_IN_OWN_DIR(test_directory_in_use_is_busy)
{
    int fd;
    char *path = make_checkpoint_dir(&fd);
    assert_int_equal(open_code(path), CHECKPOINT_BUSY);
    assert_int_equal(close(fd), 0);
    assert_int_equal(open_code(path), CHECKPOINT_OK);
    struct checkpoint_dir dir;
    const char *problem;
    assert_int_equal(checkpoint_dir_open(path, &dir, &problem), CHECKPOINT_OK);
    assert_int_equal(dir.path[0], '/');
    assert_int_equal(open_code(path), CHECKPOINT_BUSY);
    checkpoint_dir_close(&dir);
    remove_checkpoint_dir(path);
}

TEST_IN_OWN_DIR(test_killed_process_releases_its_lock)
{
    char *path = temp_dir_create("s", NULL);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        if (write(ready[1], checkpoint_dir_claim(path) >= 0 ? "y" : "n", 1) != 1) _exit(1);
        for (;;) (void)pause();
    }
    char answer;
    assert_int_equal(read(ready[0], &answer, 1), 1);
    assert_int_equal(answer, 'y');
    assert_int_equal(open_code(path), CHECKPOINT_BUSY);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(open_code(path), CHECKPOINT_OK);
    (void)close(ready[0]);
    (void)close(ready[1]);
    remove_checkpoint_dir(path);
}

TEST_IN_OWN_DIR(test_checkpoint_file_is_written_whole)
{
    int fd;
    char *path = make_checkpoint_dir(&fd), name[256];
    struct stat st;
    (void)close(fd);
    assert_int_equal(read_code(path), CHECKPOINT_BAD);
    assert_false(checkpoint_dir_has_file(path));
    for (int i = CHECKPOINT_LOADING; i <= CHECKPOINT_PARTIAL; i++) {
        struct checkpoint_file file = make_file((enum checkpoint_state)i), read;
        struct checkpoint_dir dir;
        const char *problem;
        assert_int_equal(checkpoint_dir_write(path, &file), 0);
        assert_int_equal(checkpoint_dir_open(path, &dir, &problem), CHECKPOINT_OK);
        assert_true(checkpoint_dir_has_file(path));
        assert_int_equal(checkpoint_dir_read(&dir, &read, &problem), CHECKPOINT_OK);
        assert_int_equal(read.state, i);
        assert_string_equal(read.header, "@CO\thello\n");
        checkpoint_file_release(&read);
        checkpoint_dir_close(&dir);
    }
    static const char *const files[] = {TEMP_DIR_CHECKPOINT_NAME, TEMP_DIR_LOCK_NAME};
    for (int i = 0; i < 2; i++) {
        (void)snprintf(name, sizeof name, "%s/%s", path, files[i]);
        assert_int_equal(lstat(name, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
    assert_int_equal(chmod(name, 0600), 0);
    (void)snprintf(name, sizeof name, "%s/" TEMP_DIR_CHECKPOINT_NAME, path);
    assert_int_equal(truncate(name, 100), 0);
    assert_int_equal(read_code(path), CHECKPOINT_BAD);
    assert_int_equal(truncate(name, 0), 0);
    assert_int_equal(read_code(path), CHECKPOINT_BAD);
    remove_checkpoint_dir(path);
}

static int peek_code(const char *path)
{
    struct checkpoint_file file;
    int r = checkpoint_dir_peek(path, &file);
    if (r == CHECKPOINT_OK) checkpoint_file_release(&file);
    return r;
}

/* A look at a directory that is in use, or is no checkpoint. */
TEST_IN_OWN_DIR(test_directory_in_use_can_be_looked_at)
{
    int fd;
    char *path = make_checkpoint_dir(&fd), name[256];
    struct checkpoint_file file = make_file(CHECKPOINT_LOADING);
    assert_int_equal(peek_code(path), CHECKPOINT_BAD);
    assert_int_equal(checkpoint_dir_write(path, &file), 0);
    assert_int_equal(peek_code(path), CHECKPOINT_OK);
    assert_int_equal(open_code(path), CHECKPOINT_BUSY);
    assert_int_equal(close(fd), 0);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(peek_code(path), CHECKPOINT_FOREIGN);
    assert_int_equal(chmod(path, 0700), 0);
    (void)snprintf(name, sizeof name, "%s/" TEMP_DIR_CHECKPOINT_NAME, path);
    assert_int_equal(truncate(name, (off_t)1 << 40), 0);        /* more than fits into memory */
    assert_int_equal(peek_code(path), CHECKPOINT_BAD);
    remove_checkpoint_dir(path);
    assert_int_equal(peek_code("missing"), CHECKPOINT_LOST);
}

TEST_IN_OWN_DIR(test_directories_of_others_are_refused)
{
    int fd;
    char *path = make_checkpoint_dir(&fd), name[256], *bare = temp_dir_create("b", NULL);
    (void)close(fd);
    assert_int_equal(open_code(bare), CHECKPOINT_FOREIGN);
    assert_int_equal(open_code("nothing"), CHECKPOINT_LOST);
    assert_int_equal(symlink(path, "link"), 0);
    assert_int_equal(open_code("link"), CHECKPOINT_FOREIGN);
    assert_int_equal(unlink("link"), 0);
    (void)snprintf(name, sizeof name, "%s/" TEMP_DIR_LOCK_NAME, path);
    assert_int_equal(open_code(name), CHECKPOINT_FOREIGN);
    assert_int_equal(chmod(path, 0750), 0);
    assert_int_equal(open_code(path), CHECKPOINT_FOREIGN);
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(open_code(path), CHECKPOINT_OK);
    assert_int_equal(chmod(name, 0644), 0);
    assert_int_equal(open_code(path), CHECKPOINT_FOREIGN);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(symlink("/etc/passwd", name), 0);
    assert_int_equal(open_code(path), CHECKPOINT_FOREIGN);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(mkfifo(name, 0600), 0);
    assert_int_equal(open_code(path), CHECKPOINT_FOREIGN);
    remove_checkpoint_dir(path);
    remove_checkpoint_dir(bare);
}

/* A link in place of the checkpoint file is neither written through nor read through. */
TEST_IN_OWN_DIR(test_planted_links_are_not_followed)
{
    int fd;
    char *path = make_checkpoint_dir(&fd), name[256];
    struct stat st;
    (void)close(fd);
    struct checkpoint_file file = make_file(CHECKPOINT_LOADED);
    (void)snprintf(name, sizeof name, "%s/" TEMP_DIR_CHECKPOINT_NAME, path);
    assert_int_equal(symlink("../victim", name), 0);
    assert_int_equal(read_code(path), CHECKPOINT_BAD);
    assert_int_equal(checkpoint_dir_write(path, &file), 0);
    assert_int_equal(lstat(name, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    (void)snprintf(name, sizeof name, "%s/" TEMP_DIR_CHECKPOINT_NAME ".new", path);
    assert_int_equal(symlink("../victim", name), 0);
    assert_int_equal(checkpoint_dir_write(path, &file), 0);
    assert_int_equal(lstat("victim", &st), -1);
    assert_int_equal(lstat(name, &st), -1);
    assert_int_equal(read_code(path), CHECKPOINT_OK);
    (void)snprintf(name, sizeof name, "%s/" TEMP_DIR_LOCK_NAME ".new", path);
    assert_int_equal(symlink("../victim", name), 0);
    assert_int_equal(checkpoint_dir_claim(path), -1);
    assert_int_equal(lstat("victim", &st), -1);
    /* Nor is a link to the directory followed. */
    assert_int_equal(symlink(path, "link"), 0);
    assert_int_equal(checkpoint_dir_claim("link"), -1);
    assert_int_equal(checkpoint_dir_write("link", &file), -1);
    assert_int_equal(unlink("link"), 0);
    remove_checkpoint_dir(path);
}

/* Writes what the file LOCK is to say. */
static void write_lock(const char *path, const char *text)
{
    char name[256];
    (void)snprintf(name, sizeof name, "%s/" TEMP_DIR_LOCK_NAME, path);
    put_file(name, text, strlen(text));
}

/* A lock that can be had does not show that the owner is dead, if the owner had none. */
TEST_IN_OWN_DIR(test_owner_without_a_lock_may_be_alive)
{
    int fd;
    char *path = make_checkpoint_dir(&fd), name[256];
    struct stat st;
    (void)close(fd);
    (void)snprintf(name, sizeof name, "%s/" TEMP_DIR_LOCK_NAME, path);
    assert_int_equal(stat(name, &st), 0);
    assert_true(st.st_size > 0);
    struct checkpoint_dir dir = {.fd = -1, .lock_fd = -1};
    const char *problem = NULL;
    static const char elsewhere[] =
        "rocksort-owner 1\nhost n17\nboot none\nprocesses pid:[1]\nprocess 4711\nlock none\n";
    write_lock(path, elsewhere);
    assert_int_equal(checkpoint_dir_open(path, &dir, &problem), CHECKPOINT_ELSEWHERE);
    assert_non_null(strstr(problem, "'n17'"));
    static const char *const unclear[] = {"x", "rocksort-owner 2\n", "rocksort-owner 1\nhost x\n"};
    for (size_t i = 0; i < sizeof unclear / sizeof *unclear; i++) {
        write_lock(path, unclear[i]);
        assert_int_equal(open_code(path), CHECKPOINT_ELSEWHERE);
    }
    /* Somebody who knows that the owner is dead empties the file. */
    write_lock(path, "");
    assert_int_equal(checkpoint_dir_open(path, &dir, &problem), CHECKPOINT_OK);
    assert_int_equal(stat(name, &st), 0);
    assert_int_equal(st.st_size, 0);
    assert_int_equal(checkpoint_dir_take(&dir, &problem), CHECKPOINT_OK);
    assert_int_equal(stat(name, &st), 0);
    assert_true(st.st_size > 0);
    checkpoint_dir_close(&dir);
    assert_int_equal(open_code(path), CHECKPOINT_OK);
    remove_checkpoint_dir(path);
}
