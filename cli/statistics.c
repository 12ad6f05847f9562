/* statistics.c: figures of a generation for people, one or two lines. */
#include "statistics.h"

#include "cli.h"
#include "engine.h"
#include "text_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_device(const wick_device *device) {
    wick_device_info info;
    wick_device_get_info(device, &info);
    const bool is_fast = wick_device_math(device) == WICK_MATH_FAST;
    fprintf(stderr, "backend %s: %s", info.backend_name, info.name);
    if (info.isa[0] != '\0')
        fprintf(stderr, ", %s, %d thread%s", info.isa, info.n_threads,
                info.n_threads == 1 ? "" : "s");
    if (info.backend == WICK_BACKEND_WEBGPU)
        fprintf(stderr, ", %s, %s%s", info.adapter.api, info.adapter.implementation,
                info.adapter.type == WICK_ADAPTER_SOFTWARE ? ", a driver in software" : "");
    fprintf(stderr, ", %s math\n", is_fast ? "fast" : "exact");
    /* A machine without a GPU needs no excuse. */
    static const char no_gpu[] = "there is no GPU";
    const bool is_plain = strncmp(info.fallback_reason, no_gpu, sizeof no_gpu - 1) == 0;
    if (info.is_fallback && info.fallback_reason[0] != '\0' && (!is_plain || cli_common.verbose))
        fprintf(stderr, "on the CPU because %s\n", info.fallback_reason);
}

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

/* n_timed: of the n tokens those that the seconds were spent on. */
static void print_part(const char *name, uint32_t n, uint32_t n_timed, double seconds) {
    fprintf(stderr, "%s %" PRIu32 " token%s", name, n, plural(n));
    if (n_timed > 0 && seconds > 0) fprintf(stderr, ", %.1f tokens/s", (double)n_timed / seconds);
}

static void print_speed(const wick_session_stats *stats) {
    const uint32_t n = stats->n_generated;
    print_part("prompt", stats->n_prompt, n > 0 ? stats->n_prompt : 0, stats->prompt_seconds);
    if (n > 0) {
        /* The prompt's last step gives the first token: one step less was spent on the others. */
        print_part("; generation", n, n - 1, stats->generate_seconds);
        fprintf(stderr, "; first token after %.1f ms", 1e3 * stats->first_token_seconds);
    } else {
        fputs("; nothing generated", stderr);
    }
    if (stats->n_drafted > 0)
        fprintf(stderr, "; %" PRIu32 " of %" PRIu32 " guesses right", stats->n_accepted,
                stats->n_drafted);
    if (stats->seed != 0) fprintf(stderr, "; seed %" PRIu64, stats->seed);
    fprintf(stderr, "; peak memory %s\n", cli_bytes_text(wick_peak_memory()).text);
}

static void print_slow(const wick_model *model, const wick_device *device) {
    wick_model_info info;
    wick_device_stats stats, host;
    wick_model_get_info(model, &info);
    wick_device_get_stats(device, &stats);
    wick_device_get_stats(wick_model_host(model), &host); /* zeros where there is none */
    if (info.types_ref[0] != '\0')
        cli_say("no fast kernel here for %s: %" PRIu64
                " matrix product%s ran in plain loops (cpu/ref)",
                info.types_ref, stats.n_ops_ref + host.n_ops_ref,
                plural(stats.n_ops_ref + host.n_ops_ref));
    if (stats.n_fallbacks > 0)
        fprintf(stderr, "%" PRIu64 " of %" PRIu64 " operations fell back to the CPU\n",
                stats.n_fallbacks, stats.n_ops);
    if (stats.n_losses > 0)
        cli_say("the device was lost and opened again %" PRIu64 " time%s", stats.n_losses,
                plural(stats.n_losses));
}

void cli_print_statistics(const wick_model *model, const wick_session *session,
                          wick_end_reason reason) {
    const wick_device *const device = wick_model_device(model);
    wick_session_stats stats;
    wick_session_get_stats(session, &stats);
    print_device(device);
    cli_print_placement(model);
    print_speed(&stats);
    print_slow(model, device);
    if (reason == WICK_END_CONTEXT_FULL)
        cli_say("ended because the context of %" PRIu32
                " tokens is full; --context N sets its length",
                stats.context_length);
}
