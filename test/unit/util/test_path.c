/* test_path.c -- the directory that a path is in, and its name there. */
#include "unit_test.h"

#include "util/path.h"

TEST(test_paths)
{
    static const struct {
        const char *path, *parent, *name;
        bool goes_up;
    } cases[] = {
        {"/a/b", "/a", "b", true},         {"/a", "/", "a", true},     {"/", "/", "", false},
        {"a/b.bam", "a", "b.bam", true},   {"a.bam", ".", "a.bam", false},
        {"", ".", "", false},              {"./a", ".", "a", true},
        {"../a", "..", "a", true},         {"a/", "a", "", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[16], *parent = path_parent(cases[i].path);
        (void)snprintf(path, sizeof path, "%s", cases[i].path);
        assert_string_equal(parent, cases[i].parent);
        assert_string_equal(path_name(cases[i].path), cases[i].name);
        assert_true(path_go_up(path) == cases[i].goes_up);
        assert_string_equal(path, cases[i].goes_up ? parent : cases[i].path);
        free(parent);
    }
}
