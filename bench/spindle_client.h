/*
 * spindle_client.h -- what is done to a mounted spindle from outside, and to a command's memory.
 *
 * Each returns an exit status: 0, or 1 after a message.
 */
#ifndef SPINDLE_CLIENT_H
#define SPINDLE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

/* No memory cgroup can be made here; nothing was run. */
#define CLIENT_NO_CGROUP 78

/* Prints the counters of each program. */
int client_report(const char *mount_point, bool json);

/* Writes all dirty data, waits for the device, drops the mount's page cache, begins a new record.
 */
int client_reset(const char *mount_point, const char *label);

/* Unmounts and waits for the server's end. */
int client_unmount(const char *mount_point);

/* Runs a command in a memory cgroup of its own, page cache included; the command's exit status, 128
 * + signal, or CLIENT_NO_CGROUP after a message. */
int client_run(uint64_t memory_bytes, char *const *command);

#endif
