/* web/glue/tensors/train.c: doors to gradients and to optimizers. */
#include "../door.h"

/* --- Tapes --- */

DOOR(wick_tape *, tape_begin, wick_device *device) {
    wick_tape *tape = NULL;
    (void)door_fail(wick_tape_begin(device, &tape), device);
    return tape;
}

DOOR(int, tape_watch, wick_tape *tape, wick_tensor *x) {
    return door_fail(wick_tape_watch(tape, x), wick_tensor_device(x));
}

DOOR(void, tape_no_grad, wick_tape *tape, int is_on) { (void)wick_no_grad(tape, is_on != 0); }

DOOR(void, tape_end, wick_tape *tape) { wick_tape_end(tape); }

/* tensors: y, the gradient of y or NULL, and n more, whose places the gradients take. */
DOOR(int, tape_grad, wick_tape *tape, wick_tensor **tensors, size_t n) {
    wick_device *const device = wick_tensor_device(tensors[0]);
    return door_fail(wick_grad(tape, tensors[0], tensors[1], &tensors[2], n, &tensors[2 + n]),
                     device);
}

/* --- Optimizers --- */

typedef struct optimizer_options {
    wick_optimizer_desc desc;
    const char *const *names;
    size_t n_names;
} optimizer_options;

#define AT(field) offsetof(optimizer_options, field)
static const option_field optimizer_fields[] = {
    {"kind", OPTION_CHOICE, AT(desc.kind), "sgd adamw lion"},
    {"weightDecay", OPTION_DOUBLE, AT(desc.weight_decay), NULL},
    {"momentum", OPTION_DOUBLE, AT(desc.momentum), NULL},
    {"nesterov", OPTION_BOOL, AT(desc.nesterov), NULL},
    {"beta1", OPTION_DOUBLE, AT(desc.beta1), NULL},
    {"beta2", OPTION_DOUBLE, AT(desc.beta2), NULL},
    {"eps", OPTION_DOUBLE, AT(desc.eps), NULL},
    {"names", OPTION_TEXTS, AT(names), NULL},
};
#undef AT
enum { N_OPTIMIZER_FIELDS = sizeof optimizer_fields / sizeof *optimizer_fields };

DOOR(wick_optimizer *, optimizer_make, wick_device *device, const char *text,
     wick_tensor *const *params, size_t n) {
    optimizer_options options = {0};
    wick_json_document *document = NULL;
    wick_optimizer *optimizer = NULL;
    wick_status status = options_parse(text, &document);
    if (status == WICK_OK)
        status =
            options_read(wick_json_root(document), optimizer_fields, N_OPTIMIZER_FIELDS, &options);
    if (status == WICK_OK && options.names != NULL && options.n_names != n)
        status = door_refuse(WICK_ERR_VALUE, "optimizer: %zu names for %zu parameters",
                             options.n_names, n);
    if (status == WICK_OK)
        (void)door_fail(wick_optimizer_make(&options.desc, params, options.names, n, &optimizer),
                        device);
    options_free(optimizer_fields, N_OPTIMIZER_FIELDS, &options);
    wick_json_free(document);
    return optimizer;
}

DOOR(void, optimizer_release, wick_optimizer *optimizer) { wick_optimizer_free(optimizer); }

/* gradients: one for each parameter, or NULL. */
DOOR(int, optimizer_step, wick_optimizer *optimizer, wick_device *device,
     wick_tensor *const *gradients, double rate) {
    return door_fail(wick_optimizer_step(optimizer, gradients, rate), device);
}

DOOR(const char *, optimizer_states, const wick_optimizer *optimizer) {
    const size_t n = wick_optimizer_n_states(optimizer);
    record_begin();
    record_open("names", '[');
    for (size_t i = 0; i < n; i++) record_text(NULL, wick_optimizer_state_name(optimizer, i));
    record_close(']');
    return record_end();
}

/* The caller's. */
DOOR(wick_tensor *, optimizer_state, const wick_optimizer *optimizer, size_t i) {
    return wick_retain(wick_optimizer_state(optimizer, i));
}

DOOR(double, optimizer_steps, const wick_optimizer *optimizer, size_t param) {
    return (double)wick_optimizer_steps(optimizer, param);
}

DOOR(void, optimizer_set_steps, wick_optimizer *optimizer, size_t param, double steps) {
    wick_optimizer_set_steps(optimizer, param, (uint64_t)steps);
}
