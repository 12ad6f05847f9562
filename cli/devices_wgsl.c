/* devices_wgsl.c: see devices_wgsl.h. A program is made when an operation needs it, so the kernel
 * is verified on a few random ones first; whether it is right does not matter here. */
#include "devices_wgsl.h"

#include "cli.h"
#include "hush.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_CASES = 4 };

/* Named with or without the end that all of them have. */
static const char *find_kernel(const wick_device *device, const char *wanted) {
    const size_t length = strlen(wanted);
    const char *name;
    for (size_t i = 0; (name = wick_device_kernel_name(device, i)) != NULL; i++)
        if (strncmp(name, wanted, length) == 0 &&
            (name[length] == '\0' || strcmp(name + length, "_wgsl") == 0))
            return name;
    return NULL;
}

static int refuse(const wick_device *device, const char *wanted) {
    const char *name;
    const int code = cli_error("there is no kernel '%s' on this device; its kernels:", wanted);
    for (size_t i = 0; (name = wick_device_kernel_name(device, i)) != NULL; i++)
        fprintf(stderr, "  %s\n", name);
    return code;
}

static int print_program(wick_device *device, size_t index, size_t size, const char *kernel) {
    char *const text = malloc(size);
    if (text == NULL) return cli_error("out of memory");
    (void)wick_device_program(device, index, &kernel, text, size);
    printf("// program %zu of %s\n", index + 1, kernel);
    fwrite(text, 1, size, stdout);
    printf("\n");
    free(text);
    return CLI_OK;
}

static int print_programs(wick_device *device, const char *kernel) {
    const wick_verify_desc desc = {.kernels = kernel, .n_cases = N_CASES};
    wick_error error = {0};
    const wick_status status = wick_verify(device, &desc, &error);
    int code = CLI_OK, n_programs = 0;
    const char *of;
    size_t size;
    for (size_t i = 0; code == CLI_OK && (size = wick_device_program(device, i, &of, NULL, 0)) > 0;
         i++) {
        if (strcmp(of, kernel) != 0) continue;
        code = print_program(device, i, size, kernel);
        n_programs++;
    }
    if (code == CLI_OK && n_programs == 0)
        return status == WICK_OK ? cli_error("no random operation was one for %s", kernel)
                                 : cli_report(&error, NULL);
    return code;
}

int cli_print_wgsl(const wick_webgpu_desc *webgpu, const char *kernel) {
    const wick_device_desc desc = {.backend = WICK_BACKEND_WEBGPU, .webgpu = *webgpu};
    wick_device *device = NULL;
    wick_error error = {0};
    if (cli_open_device(&desc, &device, &error) != WICK_OK) return cli_report(&error, NULL);
    const char *const name = find_kernel(device, kernel);
    const int code = name != NULL ? print_programs(device, name) : refuse(device, kernel);
    wick_device_close(device);
    return code;
}
