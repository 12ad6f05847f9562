/* What `wick devices` says of the adapters of WebGPU, in words and as JSON. */
#define _XOPEN_SOURCE 700
#include "../../cli/adapters.c"
#include "../../cli/json_out.c"
#include "../../cli/text_out.c"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

static const wick_adapter_info *adapters;
static size_t n_adapters;

size_t cli_list_adapters(const char *library, wick_adapter_info *out, size_t capacity) {
    assert_string_equal(library, "lib.so");
    for (size_t i = 0; i < n_adapters && i < capacity; i++) out[i] = adapters[i];
    return n_adapters;
}

static void print_text(void) { cli_print_adapters("lib.so"); }

static void print_json(void) {
    cli_json json = {.out = stdout, .is_line = true};
    cli_json_adapters(&json, "lib.so");
}

/* What is printed of these. Freed by the caller. */
static char *printed(void (*print)(void), const wick_adapter_info *of, size_t n) {
    enum { MOST = 1 << 16 };
    adapters = of;
    n_adapters = n;
    FILE *const file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    const int before = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    print();
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    char *const out = calloc(1, MOST);
    assert_non_null(out);
    rewind(file);
    assert_true(fread(out, 1, MOST - 1, file) < MOST - 1);
    fclose(file);
    return out;
}

static void prints(void (*print)(void), const wick_adapter_info *of, size_t n,
                   const char *expected) {
    char *const out = printed(print, of, n);
    assert_string_equal(out, expected);
    free(out);
}

static const wick_adapter_info all[] = {
    {.name = "Fast",
     .vendor = "v",
     .architecture = "a1",
     .driver = "1.2",
     .api = "Vulkan",
     .library = "/lib.so",
     .implementation = "Dawn",
     .vendor_id = 0x10de,
     .device_id = 0x21,
     .type = WICK_ADAPTER_DISCRETE,
     .features =
         WICK_WEBGPU_F16 | WICK_WEBGPU_SUBGROUPS | WICK_WEBGPU_DOT4 | WICK_WEBGPU_TIMESTAMPS,
     .limits = {.buffer_bytes = 1 << 20,
                .binding_bytes = 1 << 19,
                .storage_bindings = 8,
                .storage_alignment = 256,
                .uniform_alignment = 64,
                .workgroup_bytes = 1 << 14,
                .workgroup_threads = 1024,
                .workgroup_size_x = 1000,
                .workgroup_size_y = 500,
                .workgroup_size_z = 64,
                .workgroups = 65535,
                .subgroup_min = 4,
                .subgroup_max = 32}},
    {.name = "Slow",
     .api = "GL",
     .library = "/lib.so",
     .implementation = "Dawn",
     .type = WICK_ADAPTER_SOFTWARE,
     .unusable = "it is lost"},
    {.library = "/other.so", .unusable = "no adapters"},
};

static void test_text(void **state) {
    (void)state;
    prints(print_text, all, 0, "");
    prints(print_text, all, 3,
           "\nAdapters of WebGPU:\n"
           "   0  Fast, discrete, by Dawn and Vulkan\n"
           "      vendor v 0x10de, device 0x0021, architecture a1\n"
           "      driver: 1.2\n"
           "      library: /lib.so\n"
           "      features: f16 subgroups (4 to 32 threads) dot4 timestamps\n"
           "      buffers: up to 1.0 MiB, 512.0 KiB of them seen at a time, 8 by a kernel, from "
           "multiples of 256\n"
           "      workgroups: 1024 threads (1000 x 500 x 64), 16.0 KiB shared, 65535 in each "
           "dimension\n"
           "   1  Slow, software, by Dawn and GL\n"
           "      cannot be used: it is lost\n"
           "      vendor  0x0000, device 0x0000\n"
           "      library: /lib.so\n"
           "      features: none\n"
           "      buffers: up to 0 bytes, 0 bytes of them seen at a time, 0 by a kernel, from "
           "multiples of 0\n"
           "      workgroups: 0 threads (0 x 0 x 0), 0 bytes shared, 0 in each dimension\n"
           "   2  /other.so: no adapters\n");
}

/* Threads of subgroups, where they are known. */
static void test_subgroups(void **state) {
    static const struct {
        uint32_t least, most;
        const char *text;
    } cases[] = {{32, 32, "subgroups (32 threads) dot4\n"}, {0, 0, "subgroups dot4\n"}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        wick_adapter_info one = all[0];
        one.features = WICK_WEBGPU_SUBGROUPS | WICK_WEBGPU_DOT4;
        one.limits.subgroup_min = cases[i].least;
        one.limits.subgroup_max = cases[i].most;
        char *const out = printed(print_text, &one, 1);
        const char *const found = strstr(out, "features: ");
        assert_non_null(found);
        assert_int_equal(strncmp(found + 10, cases[i].text, strlen(cases[i].text)), 0);
        free(out);
    }
}

/* As many as there is room for. */
static void test_many(void **state) {
    static wick_adapter_info many[MAX_ADAPTERS + 1];
    (void)state;
    for (size_t i = 0; i < MAX_ADAPTERS + 1; i++) many[i] = all[2];
    for (size_t n = MAX_ADAPTERS - 1; n <= MAX_ADAPTERS + 1; n++) {
        char *const out = printed(print_text, many, n);
        size_t found = 0;
        for (const char *at = out; (at = strstr(at, "/other.so")) != NULL; at++) found++;
        assert_int_equal(found, n < MAX_ADAPTERS ? n : MAX_ADAPTERS);
        free(out);
    }
}

static void test_json(void **state) {
    (void)state;
    prints(print_json, all, 0, "[]\n");
    prints(print_json, all, 1,
           "[{\"name\": \"Fast\", \"type\": \"discrete\", \"vendor\": \"v\", \"vendor_id\": 4318, "
           "\"device_id\": 33, \"architecture\": \"a1\", \"driver\": \"1.2\", \"api\": \"Vulkan\", "
           "\"implementation\": \"Dawn\", \"library\": \"/lib.so\", \"features\": [\"f16\", "
           "\"subgroups\", \"dot4\", \"timestamps\"], \"limits\": {\"buffer_bytes\": 1048576, "
           "\"binding_bytes\": 524288, \"storage_bindings\": 8, \"storage_alignment\": 256, "
           "\"uniform_alignment\": 64, \"workgroup_bytes\": 16384, \"workgroup_threads\": 1024, "
           "\"workgroup_size_x\": 1000, \"workgroup_size_y\": 500, \"workgroup_size_z\": 64, "
           "\"workgroups\": 65535, \"subgroup_min\": 4, \"subgroup_max\": 32}, \"unusable\": "
           "\"\"}]\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_subgroups),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
