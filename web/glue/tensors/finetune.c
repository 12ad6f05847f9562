/* web/glue/tensors/finetune.c: doors to fine-tuning, and to the adapters that come of it. */
#include "../door.h"

/* --- Examples --- */

DOOR(wick_examples *, examples_make, const wick_model *model, uint32_t context_length) {
    wick_examples *examples = NULL;
    (void)wick_examples_make(model, context_length, &examples, door_new_error());
    return examples;
}

DOOR(void, examples_release, wick_examples *examples) { wick_examples_free(examples); }

DOOR(int, examples_add_text, wick_examples *examples, const char *text, size_t size) {
    return wick_examples_add_text(examples, text, size, door_new_error());
}

DOOR(int, examples_add_lines, wick_examples *examples, const char *text, size_t size) {
    return wick_examples_add_json_lines(examples, text, size, door_new_error());
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

/* state: of a training before, see wick_finetune_desc, or no bytes. */
DOOR(wick_finetune *, finetune_start, wick_model *model, const wick_examples *examples,
     const char *text, const void *state, size_t size) {
    wick_finetune_desc desc = {.state = size > 0 ? state : NULL, .state_size = size};
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

/* event: its kind (0: there is none, 1: a step, 2: held-out examples were measured, 3: a lost
 * device is back), the step, all steps, tokens, loss and perplexity. A status. */
DOOR(int, finetune_poll, wick_finetune *finetune, double event[6]) {
    wick_finetune_event now = {0};
    const int status = wick_finetune_poll(finetune, &now, door_new_error());
    event[0] = now.kind == WICK_FINETUNE_STEP       ? 1
               : now.kind == WICK_FINETUNE_HELD_OUT ? 2
               : now.kind == WICK_FINETUNE_RESTORED ? 3
                                                    : 0;
    event[1] = (double)now.step;
    event[2] = (double)now.steps;
    event[3] = (double)now.n_tokens;
    event[4] = now.loss;
    event[5] = now.perplexity;
    return status;
}

/* file: a wick_finetune_file. */
DOOR(int, finetune_save, wick_finetune *finetune, int file) {
    return wick_finetune_save_start(finetune, (wick_finetune_file)file, door_new_error());
}

/* saved: two words, get the bytes' address and number. They are the training's. */
DOOR(int, finetune_save_poll, wick_finetune *finetune, const void **saved) {
    return wick_finetune_save_poll(finetune, saved, (size_t *)(saved + 1), door_new_error());
}

/* The device has computed all that was queued. */
DOOR(void, finetune_finish, wick_finetune *finetune) { wick_finetune_finish(finetune); }

DOOR(wick_lora *, lora_open, wick_model *model, const void *bytes, size_t size) {
    wick_lora *lora = NULL;
    (void)wick_lora_open_source(model, wick_source_memory(bytes, size), &lora, door_new_error());
    return lora;
}

DOOR(int, lora_close, wick_lora *lora) { return wick_lora_close(lora, door_new_error()); }

/* uses [n]: an address and a float each. */
DOOR(int, session_set_loras, wick_session *session, const wick_lora_use *uses, size_t n) {
    const wick_status status = wick_session_set_loras(session, uses, n);
    return status == WICK_OK ? WICK_OK : wick_session_error(session, door_new_error());
}

DOOR(int, model_add_adapter, wick_model *model, const void *bytes, size_t size, double scale) {
    return wick_model_add_adapter_source(model, wick_source_memory(bytes, size), (float)scale,
                                         door_new_error());
}
