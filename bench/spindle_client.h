/*
 * spindle_client.h -- commands for a spindle that is mounted already, and `spindle run`.
 *
 * Each function is a whole command and returns its exit status: 0, or 1 after a message.
 */
#ifndef SPINDLE_CLIENT_H
#define SPINDLE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

/* In the mount's root; spindle_control.h says what it holds. */
#define CONTROL_DIR ".spindle"

/* No memory cgroup can be made here; nothing was run. */
#define CLIENT_NO_CGROUP 78

/* Prints the counters of each program. */
int client_report(const char *mount_point, bool json);

/* Writes all dirty data, waits for the device, drops the mount's page cache, counts from 0 again.
 */
int client_reset(const char *mount_point, const char *label);

/* Unmounts and waits until the server has ended. */
int client_unmount(const char *mount_point);

/* Runs a command in its own memory cgroup, which counts page cache too. Returns the command's exit
 * status, 128 + signal, or CLIENT_NO_CGROUP after a message. */
int client_run(uint64_t memory_bytes, char *const *command);

#endif
