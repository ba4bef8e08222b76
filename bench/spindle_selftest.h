/*
 * spindle_selftest.h -- whether each preset reaches its figures on this machine.
 *
 * Mounts it in a temporary directory and measures sequential and random 4 KiB reading and writing,
 * as a program sees them. Prints a line for each; returns an exit status: 1 if one is off by more
 * than 10 %, 77 without FUSE. No names: all presets.
 */
#ifndef SPINDLE_SELFTEST_H
#define SPINDLE_SELFTEST_H

int selftest(char *const *names, int n_names);

#endif
