/* adapters.c: the adapters of WebGPU, for people and as JSON. */
#include "adapters.h"

#include "hush.h"
#include "text_out.h"

#include <inttypes.h>
#include <stdio.h>

enum { MAX_ADAPTERS = 32 };

static const char *const type_names[] = {
    [WICK_ADAPTER_UNKNOWN] = "kind unknown",
    [WICK_ADAPTER_DISCRETE] = "discrete",
    [WICK_ADAPTER_INTEGRATED] = "integrated",
    [WICK_ADAPTER_SOFTWARE] = "software",
};

static const struct {
    uint32_t bit;
    const char *name;
} features[] = {
    {WICK_WEBGPU_F16, "f16"},
    {WICK_WEBGPU_SUBGROUPS, "subgroups"},
    {WICK_WEBGPU_DOT4, "dot4"},
    {WICK_WEBGPU_TIMESTAMPS, "timestamps"},
};

static size_t list(const char *library, wick_adapter_info infos[MAX_ADAPTERS]) {
    const size_t n = cli_list_adapters(library, infos, MAX_ADAPTERS);
    return n < MAX_ADAPTERS ? n : MAX_ADAPTERS;
}

static void print_features(const wick_adapter_info *info) {
    const wick_adapter_limits *const limits = &info->limits;
    printf("      features:");
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        if (!(info->features & features[i].bit)) continue;
        printf(" %s", features[i].name);
        if (features[i].bit != WICK_WEBGPU_SUBGROUPS || limits->subgroup_max == 0) continue;
        printf(" (%" PRIu32, limits->subgroup_min);
        if (limits->subgroup_max > limits->subgroup_min)
            printf(" to %" PRIu32, limits->subgroup_max);
        printf(" threads)");
    }
    printf("%s\n", info->features == 0 ? " none" : "");
}

static void print_limits(const wick_adapter_limits *limits) {
    printf("      buffers: up to %s, %s of them seen at a time, %" PRIu32
           " by a kernel, from multiples of %" PRIu32 "\n",
           cli_bytes_text(limits->buffer_bytes).text, cli_bytes_text(limits->binding_bytes).text,
           limits->storage_bindings, limits->storage_alignment);
    printf("      workgroups: %" PRIu32 " threads (%" PRIu32 " x %" PRIu32 " x %" PRIu32
           "), %s shared, %" PRIu32 " in each dimension\n",
           limits->workgroup_threads, limits->workgroup_size_x, limits->workgroup_size_y,
           limits->workgroup_size_z, cli_bytes_text(limits->workgroup_bytes).text,
           limits->workgroups);
}

static void print_adapter(const wick_adapter_info *info) {
    if (info->api[0] == '\0') { /* an implementation without adapters */
        printf("%s: %s\n", info->library, info->unusable);
        return;
    }
    printf("%s, %s, by %s and %s\n", info->name, type_names[info->type], info->implementation,
           info->api);
    if (info->unusable[0] != '\0') printf("      cannot be used: %s\n", info->unusable);
    printf("      vendor %s 0x%04" PRIx32 ", device 0x%04" PRIx32, info->vendor, info->vendor_id,
           info->device_id);
    printf("%s%s\n", info->architecture[0] != '\0' ? ", architecture " : "", info->architecture);
    if (info->driver[0] != '\0') printf("      driver: %s\n", info->driver);
    printf("      library: %s\n", info->library);
    print_features(info);
    print_limits(&info->limits);
}

void cli_print_adapters(const char *library) {
    wick_adapter_info infos[MAX_ADAPTERS];
    const size_t n = list(library, infos);
    if (n == 0) return;
    printf("\nAdapters of WebGPU:\n");
    for (size_t i = 0; i < n; i++) {
        printf("  %2zu  ", i);
        print_adapter(&infos[i]);
    }
}

static void json_limits(cli_json *json, const wick_adapter_limits *limits) {
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {{"buffer_bytes", limits->buffer_bytes},
                {"binding_bytes", limits->binding_bytes},
                {"storage_bindings", limits->storage_bindings},
                {"storage_alignment", limits->storage_alignment},
                {"uniform_alignment", limits->uniform_alignment},
                {"workgroup_bytes", limits->workgroup_bytes},
                {"workgroup_threads", limits->workgroup_threads},
                {"workgroup_size_x", limits->workgroup_size_x},
                {"workgroup_size_y", limits->workgroup_size_y},
                {"workgroup_size_z", limits->workgroup_size_z},
                {"workgroups", limits->workgroups},
                {"subgroup_min", limits->subgroup_min},
                {"subgroup_max", limits->subgroup_max}};
    cli_json_key(json, "limits");
    cli_json_open(json, '{');
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cli_json_put_unsigned(json, rows[i].key, rows[i].value);
    cli_json_close(json, '}');
}

static void json_adapter(cli_json *json, const wick_adapter_info *info) {
    cli_json_open(json, '{');
    cli_json_put_string(json, "name", info->name);
    cli_json_put_string(json, "type", type_names[info->type]);
    cli_json_put_string(json, "vendor", info->vendor);
    cli_json_put_unsigned(json, "vendor_id", info->vendor_id);
    cli_json_put_unsigned(json, "device_id", info->device_id);
    cli_json_put_string(json, "architecture", info->architecture);
    cli_json_put_string(json, "driver", info->driver);
    cli_json_put_string(json, "api", info->api);
    cli_json_put_string(json, "implementation", info->implementation);
    cli_json_put_string(json, "library", info->library);
    cli_json_key(json, "features");
    cli_json_open(json, '[');
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        if (info->features & features[i].bit) cli_json_string(json, features[i].name);
    cli_json_close(json, ']');
    json_limits(json, &info->limits);
    cli_json_put_string(json, "unusable", info->unusable);
    cli_json_close(json, '}');
}

void cli_json_adapters(cli_json *json, const char *library) {
    wick_adapter_info infos[MAX_ADAPTERS];
    const size_t n = list(library, infos);
    cli_json_open(json, '[');
    for (size_t i = 0; i < n; i++) json_adapter(json, &infos[i]);
    cli_json_close(json, ']');
}
