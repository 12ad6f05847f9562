/* web/glue/tensors/verify.c: doors to the verification of a device's kernels. */
#include "../door.h"

#include <stdlib.h>

/* A verification, and the kernel that the last poll came to the end of. */
typedef struct door_verification {
    wick_verifying *verifying;
    const char *check; /* a record; NULL: none */
} door_verification;

static bool keep_check(void *user, const wick_kernel_check *check) {
    door_verification *const v = user;
    record_begin();
    record_text("kernel", check->kernel);
    record_number("status", check->status);
    record_number("cases", (double)check->n_cases);
    record_number("elements", (double)check->n_elements);
    record_number("meanError", check->mean_error);
    record_number("rmsError", check->rms_error);
    record_number("maxError", check->max_error);
    record_number("worst", check->worst);
    record_digits("seed", check->seed);
    record_text("failure", check->failure);
    record_bool("isDisabled", check->is_disabled);
    v->check = record_end();
    return true;
}

#define AT(field) offsetof(wick_verify_desc, field)
static const option_field verify_fields[] = {
    {"kernels", OPTION_TEXT, AT(kernels), NULL},
    {"seed", OPTION_UINT64, AT(seed), NULL},
    {"cases", OPTION_UINT, AT(n_cases), NULL},
};
#undef AT
enum { N_VERIFY_FIELDS = sizeof verify_fields / sizeof *verify_fields };

DOOR(door_verification *, verify_start, wick_device *device, const char *text) {
    wick_json_document *document = NULL;
    door_verification *const made = calloc(1, sizeof *made);
    wick_verify_desc desc = {.report = keep_check, .user = made};
    wick_status status =
        made != NULL ? options_parse(text, &document) : door_fail(WICK_ERR_OUT_OF_MEMORY, NULL);
    if (status == WICK_OK)
        status = options_read(wick_json_root(document), verify_fields, N_VERIFY_FIELDS, &desc);
    if (status == WICK_OK) status = wick_verify_start(device, &desc, &made->verifying, &door_error);
    wick_json_free(document);
    if (status == WICK_OK) return made;
    free(made);
    return NULL;
}

DOOR(int, verify_poll, door_verification *v) {
    v->check = NULL;
    return wick_verify_poll(v->verifying);
}

/* Of the kernel that the last poll came to the end of, until the next call; NULL: of none. */
DOOR(const char *, verify_check, const door_verification *v) { return v->check; }

DOOR(int, verify_finish, door_verification *v) {
    const wick_status status = wick_verify_finish(v->verifying, door_new_error());
    free(v);
    return status;
}
