/*
 * spindle_selftest.h -- measures whether each preset reaches its figures on this machine.
 *
 * Mounts each preset in a temporary directory and measures sequential and random 4 KiB reading and
 * writing, as a program sees them. Prints a line for each. Returns an exit status: 0, 1 if a figure
 * is off by more than 10 %, 77 without FUSE. Without names it measures all presets.
 */
#ifndef SPINDLE_SELFTEST_H
#define SPINDLE_SELFTEST_H

int selftest(char *const *names, int n_names);

#endif
