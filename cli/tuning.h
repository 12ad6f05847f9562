/* tuning.h: which kernels a GPU takes and in which tunings (wick_device_tune), kept in a small file
 * for each device: `wick bench --kernels --store` and `wick verify --store` write it, every command
 * that computes reads it. */
#ifndef WICK_CLI_TUNING_H
#define WICK_CLI_TUNING_H

#include <wick/wick.h>

/* given: the file; "none": nothing is read; NULL: the device's own file in the cache folder
 * (cache_folder.h), which need not be there. What cannot be used of it is a warning.
 * Returns an exit code; a file that was named, is_needed and cannot be read is a failure. */
int cli_tuning_load(wick_device *device, const char *given, bool is_needed);
/* Writes it, and says where. */
int cli_tuning_store(wick_device *device, const char *given);

#endif
