/*
 * loser_tree.h -- finds the source with the smallest head among n sorted sources. When the head of
 * one source changes, it replays one path of the tournament: log2(n) comparisons.
 *
 * The caller's `before` compares the heads of two sources, given by their numbers. An exhausted
 * source comes last. `before` must break ties, for example by number.
 *
 * Order of calls: loser_tree_build, when all sources have their first heads; then any number of
 * loser_tree_first and, after the head of that source has changed, loser_tree_replay;
 * loser_tree_release. Threads: one at a time.
 */
#ifndef ROCKSORT_UTIL_LOSER_TREE_H
#define ROCKSORT_UTIL_LOSER_TREE_H

#include "util/xalloc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Starts as {0}. */
struct loser_tree {
    size_t n;
    size_t *losers; /* [0]: the winner; [k]: the loser at node k, whose children are 2k and
                       2k + 1; source i is node n + i */
};

typedef bool (*loser_tree_before)(const void *sources, size_t a, size_t b);

static inline size_t loser_tree_first(const struct loser_tree *tree)
{
    return tree->losers[0];
}

/* Updates the tree after the head of source i, the winner, has changed. */
static inline void loser_tree_replay(struct loser_tree *tree, size_t i, loser_tree_before before,
                                     const void *sources)
{
    for (size_t node = (tree->n + i) / 2; node > 0; node /= 2)
        if (before(sources, tree->losers[node], i)) {
            size_t loser = i;
            i = tree->losers[node];
            tree->losers[node] = loser;
        }
    tree->losers[0] = i;
}

/* Builds the tree of n >= 1 sources. */
static inline void loser_tree_build(struct loser_tree *tree, size_t n, loser_tree_before before,
                                    const void *sources)
{
    size_t *winners = xmalloc(2 * n * sizeof *winners);
    tree->losers = xrealloc(tree->losers, n * sizeof *tree->losers);
    tree->n = n;
    for (size_t i = 0; i < n; i++)
        winners[n + i] = i;
    for (size_t node = n - 1; node > 0; node--) {
        size_t a = winners[2 * node], b = winners[2 * node + 1];
        bool b_wins = before(sources, b, a);
        winners[node] = b_wins ? b : a;
        tree->losers[node] = b_wins ? a : b;
    }
    tree->losers[0] = n > 1 ? winners[1] : 0;
    free(winners);
}

static inline void loser_tree_release(struct loser_tree *tree)
{
    free(tree->losers);
    *tree = (struct loser_tree){0};
}

#endif
