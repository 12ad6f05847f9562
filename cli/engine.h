/* engine.h: a device and a model for the commands that compute, and the options they share. */
#ifndef WICK_CLI_ENGINE_H
#define WICK_CLI_ENGINE_H

#include "kernel_cache.h"
#include "options.h"

#include <wick/wick.h>

/* The first member of the options of every command that uses cli_engine_group. */
typedef struct cli_engine_options {
    wick_backend backend;
    const char *adapter, *webgpu_lib, *tuning;
    uint32_t n_threads;
    int isa;  /* wick_isa */
    int math; /* wick_math */
    uint32_t chunk_length;
    int cache;             /* wick_cache */
    int speculate;         /* wick_speculate */
    const char *draft;     /* path of a draft model; NULL: none */
    int32_t device_layers; /* as in wick_model_desc */
    uint64_t gpu_memory;   /* bytes; 0: all there is */
    uint64_t cache_limit;  /* as in wick_model_desc */
    cli_texts adapters;    /* of the model that cli_engine_open loads */
    bool strict, verify, profile, no_fusion;
    bool debug, no_map, low_memory, no_warm_up, no_kernel_cache, as_gpu;
} cli_engine_options;

void cli_engine_defaults(cli_engine_options *options, wick_math math);

extern const cli_group cli_engine_group;
/* For commands that compute on the CPU alone. */
extern const cli_group cli_engine_host_group;
/* All but --threads, for commands that have their own. */
extern const cli_group cli_engine_rest_group;
/* For commands that generate. */
extern const cli_group cli_speculation_group;

typedef struct cli_engine {
    cli_kernel_cache kernel_cache; /* of the device: an engine stays where it was opened */
    wick_device *device;
    wick_model *model;
    wick_model *draft; /* NULL: there is none */
} cli_engine;

/* Opens the device and loads path, or the model inside the command for NULL, to be used by such
 * sessions; a remote path (store.h) is fetched first. Watches signals from here on (interrupt.h).
 * Returns an exit code; anything but CLI_OK has been reported, and engine is closed. */
int cli_engine_open(cli_engine *engine, const cli_engine_options *options,
                    const wick_session_desc *sessions, const char *path);
/* Another model on the same device, for wick_model_close before the engine is closed. */
int cli_engine_load(const cli_engine *engine, const cli_engine_options *options,
                    const wick_session_desc *sessions, const char *path, wick_model **model);
/* The device alone; models are loaded later, as the desc says. */
int cli_engine_open_device(cli_engine *engine, const cli_engine_options *options);
/* The draft model that the options name, into engine->draft; without one it does nothing. */
int cli_engine_load_draft(cli_engine *engine, const cli_engine_options *options,
                          const wick_session_desc *sessions);
wick_model_desc cli_engine_model_desc(const cli_engine_options *options,
                                      const wick_session_desc *sessions);
void cli_engine_close(cli_engine *engine);

/* What to do about a failed step of a session, for cli_report_step. */
const char *cli_step_hint(wick_status status);

/* One line on standard error where a session is longer than what the model was made for. */
void cli_warn_context(const wick_model *model, uint32_t context_length);
/* Where the model has a longer context than sessions have by default, and none was asked for. */
void cli_note_short_context(const wick_model *model, uint32_t context_length);

/* Which layers run on the CPU beside a GPU, and why; on standard error, if any do. */
void cli_print_placement(const wick_model *model);

/* How many operations --verify has compared, on standard error. */
void cli_print_verified(const wick_model *model);

/* What kernels took how long, on standard error. */
void cli_print_profile(const wick_model *model);

#endif
