/* web/glue/tensors/finetune.c: doors to fine-tuning, and to the adapters that come of it. */
#include "../door.h"

/* --- Examples --- */

DOOR(wick_examples *, examples_make, const wick_model *model, uint32_t context_length) {
    wick_examples *examples = NULL;
    door_error = (wick_error){0};
    (void)wick_examples_make(model, context_length, &examples, &door_error);
    return examples;
}

DOOR(void, examples_release, wick_examples *examples) { wick_examples_free(examples); }

DOOR(int, examples_add_text, wick_examples *examples, const char *text, size_t size) {
    door_error = (wick_error){0};
    return wick_examples_add_text(examples, text, size, &door_error);
}

DOOR(int, examples_add_lines, wick_examples *examples, const char *text, size_t size) {
    door_error = (wick_error){0};
    return wick_examples_add_json_lines(examples, text, size, &door_error);
}

DOOR(const char *, examples_info, const wick_examples *examples) {
    wick_examples_info info;
    wick_examples_get_info(examples, &info);
    record_begin();
    record_number("examples", (double)info.n_examples);
    record_number("tokens", (double)info.n_tokens);
    record_number("learned", (double)info.n_learned);
    record_number("cut", (double)info.n_cut);
    record_number("leftOut", (double)info.n_left_out);
    return record_end();
}

/* --- Training --- */

#define AT(field) offsetof(wick_finetune_desc, field)
static const option_field finetune_fields[] = {
    {"rank", OPTION_UINT, AT(rank), NULL},          {"alpha", OPTION_FLOAT, AT(alpha), NULL},
    {"rate", OPTION_DOUBLE, AT(rate), NULL},        {"decay", OPTION_DOUBLE, AT(decay), NULL},
    {"maxNorm", OPTION_DOUBLE, AT(max_norm), NULL}, {"steps", OPTION_UINT64, AT(steps), NULL},
    {"epochs", OPTION_UINT, AT(epochs), NULL},      {"batch", OPTION_UINT, AT(batch), NULL},
    {"heldOut", OPTION_DOUBLE, AT(held_out), NULL}, {"seed", OPTION_UINT64, AT(seed), NULL},
};
#undef AT
enum { N_FINETUNE_FIELDS = sizeof finetune_fields / sizeof *finetune_fields };

DOOR(wick_finetune *, finetune_start, wick_model *model, const wick_examples *examples,
     const char *text) {
    wick_finetune_desc desc = {0};
    wick_json_document *document = NULL;
    wick_finetune *finetune = NULL;
    wick_status status = options_parse(text, &document);
    if (status == WICK_OK)
        status = options_read(wick_json_root(document), finetune_fields, N_FINETUNE_FIELDS, &desc);
    if (status == WICK_OK)
        (void)wick_finetune_start(model, examples, &desc, &finetune, &door_error);
    wick_json_free(document);
    return finetune;
}

/* event: its kind (0: there is none, 1: a step, 2: held-out examples were measured), the step,
 * all steps, tokens, loss and perplexity. A status. */
DOOR(int, finetune_poll, wick_finetune *finetune, double event[6]) {
    wick_finetune_event now = {0};
    door_error = (wick_error){0};
    const int status = wick_finetune_poll(finetune, &now, &door_error);
    event[0] = now.kind == WICK_FINETUNE_STEP ? 1 : now.kind == WICK_FINETUNE_HELD_OUT ? 2 : 0;
    event[1] = (double)now.step;
    event[2] = (double)now.steps;
    event[3] = (double)now.n_tokens;
    event[4] = now.loss;
    event[5] = now.perplexity;
    return status;
}

/* Tensor i of the adapter and its name; NULL: there are fewer. */
DOOR(wick_tensor *, finetune_tensor, const wick_finetune *finetune, size_t i) {
    return wick_finetune_tensor(finetune, i, NULL);
}

DOOR(const char *, finetune_name, const wick_finetune *finetune, size_t i) {
    const char *name;
    (void)wick_finetune_tensor(finetune, i, &name);
    return name;
}

/* The device has computed all that was queued. */
DOOR(void, finetune_finish, wick_finetune *finetune) { wick_finetune_finish(finetune); }

DOOR(int, model_add_adapter, wick_model *model, const void *bytes, size_t size, double scale) {
    door_error = (wick_error){0};
    return wick_model_add_adapter_source(model, wick_source_memory(bytes, size), (float)scale,
                                         &door_error);
}
