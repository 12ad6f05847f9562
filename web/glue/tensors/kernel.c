/* web/glue/tensors/kernel.c: doors to kernels of the page's own. */
#include "../door.h"

#include <string.h>

typedef struct kernel_options {
    wick_kernel_desc desc;
    bool f16, subgroups, dot4; /* the source uses them */
} kernel_options;

#define AT(field) offsetof(kernel_options, field)
static const option_field kernel_fields[] = {
    {"source", OPTION_TEXT, AT(desc.source), NULL},
    {"entry", OPTION_TEXT, AT(desc.entry), NULL},
    {"label", OPTION_TEXT, AT(desc.label), NULL},
    {"workgroup", OPTION_OTHER, 0, NULL},
    {"buffers", OPTION_OTHER, 0, NULL},
    {"uniformBytes", OPTION_UINT, AT(desc.uniform_bytes), NULL},
    {"f16", OPTION_BOOL, AT(f16), NULL},
    {"subgroups", OPTION_BOOL, AT(subgroups), NULL},
    {"dot4", OPTION_BOOL, AT(dot4), NULL},
};
#undef AT
enum { N_KERNEL_FIELDS = sizeof kernel_fields / sizeof *kernel_fields };

static wick_status read_workgroup(const wick_json *list, wick_kernel_desc *desc) {
    int i = 0;
    for (const wick_json *item = wick_json_first(list); item; item = wick_json_next(item)) {
        uint64_t threads = 0;
        if (i == 3 || !wick_json_get_whole(item, &threads) || threads == 0 || threads > UINT32_MAX)
            return door_refuse(
                WICK_ERR_VALUE,
                "the option 'workgroup' must be one to three positive whole numbers");
        desc->workgroup[i++] = (uint32_t)threads;
    }
    while (i > 0 && i < 3) desc->workgroup[i++] = 1;
    return WICK_OK;
}

static wick_status read_buffers(const wick_json *list, wick_kernel_desc *desc) {
    for (const wick_json *item = wick_json_first(list); item; item = wick_json_next(item)) {
        size_t size;
        const char *const word = wick_json_text(item, &size);
        const bool is_written = word != NULL && strcmp(word, "read_write") == 0;
        if (desc->n_buffers == WICK_KERNEL_MAX_BUFFERS || word == NULL ||
            (!is_written && strcmp(word, "read") != 0))
            return door_refuse(WICK_ERR_VALUE,
                               "the option 'buffers' must be up to 8 times 'read' or 'read_write'");
        desc->access[desc->n_buffers++] = is_written ? WICK_KERNEL_READ_WRITE : WICK_KERNEL_READ;
    }
    return WICK_OK;
}

DOOR(wick_kernel *, kernel_make, wick_device *device, const char *text) {
    kernel_options options = {0};
    wick_json_document *document = NULL;
    wick_kernel *kernel = NULL;
    wick_status status = options_parse(text, &document);
    const wick_json *const root = wick_json_root(document);
    wick_kernel_desc *const desc = &options.desc;
    if (status == WICK_OK) status = options_read(root, kernel_fields, N_KERNEL_FIELDS, &options);
    if (status == WICK_OK) status = read_workgroup(wick_json_get(root, "workgroup"), desc);
    if (status == WICK_OK) status = read_buffers(wick_json_get(root, "buffers"), desc);
    desc->needs = (options.f16 ? WICK_WEBGPU_F16 : 0U) |
                  (options.subgroups ? WICK_WEBGPU_SUBGROUPS : 0U) |
                  (options.dot4 ? WICK_WEBGPU_DOT4 : 0U);
    if (status == WICK_OK) (void)wick_kernel_make_start(device, desc, &kernel, &door_error);
    wick_json_free(document);
    return kernel;
}

DOOR(int, kernel_poll, wick_kernel *kernel) {
    return wick_kernel_make_poll(kernel, door_new_error());
}

DOOR(void, kernel_release, wick_kernel *kernel) { wick_kernel_release(kernel); }

/* workgroups: in x, y and z. */
DOOR(int, kernel_run, wick_kernel *kernel, wick_device *device, wick_tensor *const *tensors, int n,
     const uint32_t workgroups[3], const void *uniform, size_t bytes) {
    return door_fail(wick_kernel_run(kernel, tensors, n, workgroups, uniform, bytes), device);
}

DOOR(int, kernel_workgroups, const wick_kernel *kernel, wick_device *device, double n_threads,
     uint32_t workgroups[3]) {
    uint64_t n = n_threads > 0 ? UINT64_MAX : 0; /* NaN: 0, too */
    if (n > 0 && n_threads < 0x1p53) n = (uint64_t)n_threads;
    return door_fail(wick_kernel_workgroups(kernel, n, workgroups), device);
}
