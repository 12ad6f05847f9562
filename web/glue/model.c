/* web/glue/model.c: doors to model files, loading, and tokens. */
#include "session.h"
#include "source.h"

#include <stdlib.h>
#include <string.h>

/* --- A file's header --- */

DOOR(wick_file_opening *, file_open, wick_source *source) {
    wick_file_opening *opening = NULL;
    (void)wick_file_open_start(door_source_take(source), &opening, door_new_error());
    return opening;
}

DOOR(int, file_poll, wick_file_opening *opening) { return wick_file_open_poll(opening); }

DOOR(wick_file *, file_finish, wick_file_opening *opening) {
    wick_file *file = NULL;
    return wick_file_open_finish(opening, &file, door_new_error()) == WICK_OK ? file : NULL;
}

DOOR(void, file_close, wick_file *file) { wick_file_close(file); }

static void put_value(const wick_file *file, const char *key, const char *name) {
    const wick_value *const value = wick_file_find_value(file, key);
    if (value != NULL && value->type == WICK_VALUE_STRING) record_text(name, value->string.text);
}

/* What a session of these options would need on the device. NULL on failure. */
DOOR(const char *, file_predict, const wick_file *file, const wick_device *device,
     const char *text) {
    session_options options;
    wick_prediction p;
    wick_status status = session_options_read(text, &options);
    if (status == WICK_OK) status = wick_predict(file, device, &options.desc, &p, &door_error);
    session_options_free(&options);
    if (status != WICK_OK) return NULL;
    record_begin();
    put_value(file, "general.name", "name");
    put_value(file, "general.architecture", "architecture");
    record_number("fileBytes", (double)wick_file_size(file));
    record_number("weightBytes", (double)p.weight_bytes);
    record_number("cacheBytes", (double)p.cache_bytes);
    record_number("activationBytes", (double)p.activation_bytes);
    record_number("totalBytes", (double)p.total_bytes);
    record_number("availableBytes", (double)p.available_bytes);
    record_number("contextLength", p.context_length);
    record_number("longestContextLength", p.whole_context_length);
    record_number("layers", p.n_layers);
    record_number("deviceLayers", p.device_layers);
    return record_end();
}

/* --- Loading --- */

/* text: of the sessions to come; limit: bytes, see wick_model_desc. */
DOOR(wick_model_loading *, model_open, wick_device *device, wick_source *source, const char *text,
     double limit) {
    session_options options;
    wick_model_loading *loading = NULL;
    wick_source taken = door_source_take(source);
    const wick_status status = session_options_read(text, &options);
    const wick_model_desc desc = {.sessions = &options.desc, .memory_limit = (uint64_t)limit};
    if (status == WICK_OK)
        (void)wick_model_open_start(device, taken, &desc, &loading, &door_error);
    else
        taken.close(&taken);
    session_options_free(&options);
    return loading;
}

DOOR(int, model_poll, wick_model_loading *loading, double progress[2]) {
    wick_progress now = {0};
    const int status = wick_model_open_poll(loading, &now);
    progress[0] = (double)now.done;
    progress[1] = (double)now.total;
    return status;
}

DOOR(wick_model *, model_finish, wick_model_loading *loading) {
    wick_model *model = NULL;
    return wick_model_open_finish(loading, &model, door_new_error()) == WICK_OK ? model : NULL;
}

DOOR(void, model_close, wick_model *model) { wick_model_close(model); }

DOOR(const char *, model_info, const wick_model *model) {
    wick_model_info info;
    wick_model_get_info(model, &info);
    record_begin();
    record_text("name", info.name);
    record_text("architecture", info.architecture);
    record_text("types", info.types);
    record_text("slowTypes", info.types_ref);
    record_number("parameters", (double)info.n_parameters);
    record_number("fileBytes", (double)info.file_bytes);
    record_number("weightBytes", (double)info.weight_bytes);
    record_number("hostLayers", info.host_layers);
    record_number("hostWeightBytes", (double)info.host_weight_bytes);
    record_number("layers", info.n_layers);
    record_number("labels", info.n_labels);
    record_number("embeddingLength", info.n_embd);
    record_number("vocabularySize", info.n_vocab);
    record_number("contextLength", info.context_length);
    return record_end();
}

/* --- Tokens --- */

enum { MOST_IDS = INT32_MAX / sizeof(uint32_t) };

static uint32_t *ids; /* [ids_capacity] of the last call */
static size_t ids_capacity;

static bool has_room(size_t n) {
    if (n <= ids_capacity) return true;
    if (n > MOST_IDS) return false; /* n * sizeof *ids would not fit a size_t */
    uint32_t *const grown = realloc(ids, n * sizeof *ids);
    if (grown == NULL) return false;
    ids = grown;
    ids_capacity = n;
    return true;
}

DOOR(const uint32_t *, token_ids, void) { return ids; }

/* The number of tokens, which are then at token_ids; negative: a status. flags: WICK_TOKENIZE_*. */
DOOR(int, tokenize, const wick_model *model, const char *text, size_t size, uint32_t flags) {
    const wick_tokenizer *const tokenizer = wick_model_tokenizer(model);
    size_t n = 0;
    if (!has_room(size + 2)) return door_fail(WICK_ERR_OUT_OF_MEMORY, NULL);
    wick_status status = wick_tokenize(tokenizer, text, size, flags, ids, ids_capacity, &n);
    if (status == WICK_OK && n > ids_capacity) {
        if (!has_room(n)) return door_fail(WICK_ERR_OUT_OF_MEMORY, NULL);
        status = wick_tokenize(tokenizer, text, size, flags, ids, ids_capacity, &n);
    }
    return status == WICK_OK ? (int)n : door_fail(status, NULL);
}

/* A new text of at most capacity bytes, see wick_detokenize; returns its size or a status. */
DOOR(int, detokenize, const wick_model *model, const uint32_t *tokens, size_t n, int special,
     char *out, size_t capacity) {
    wick_detokenizer state = {.tokenizer = wick_model_tokenizer(model), .special = special};
    size_t size = 0, used = 0;
    for (size_t i = 0; i < n; i++) {
        const wick_status status =
            wick_detokenize(&state, tokens[i], out + used, capacity - used, &size);
        if (status == WICK_ERR_INDEX)
            return door_refuse(status, "token %u is not in the vocabulary of %u",
                               (unsigned)tokens[i], (unsigned)wick_tokenizer_size(state.tokenizer));
        if (status != WICK_OK) return door_fail(status, NULL);
        used += size;
    }
    char held[3];
    wick_detokenize_flush(&state, held, &size);
    if (size > capacity - used) return door_fail(WICK_ERR_ARGUMENT, NULL);
    memcpy(out + used, held, size);
    return (int)(used + size);
}

/* Bytes that are enough for the text of any token. */
DOOR(int, detokenize_bound, const wick_model *model) {
    return (int)wick_detokenize_bound(wick_model_tokenizer(model));
}

/* --- Conversations --- */

static void put_token(const char *key, const wick_tokenizer *tokenizer, uint32_t id) {
    size_t size = 0;
    const char *const bytes =
        id != WICK_NO_TOKEN ? wick_token_bytes(tokenizer, id, true, &size) : NULL;
    if (bytes == NULL) return;
    char text[256];
    if (size >= sizeof text) return;
    memcpy(text, bytes, size);
    text[size] = '\0';
    record_text(key, text);
}

static wick_status make_variables(const wick_tokenizer *tokenizer, wick_json_document **out) {
    record_begin();
    put_token("bos_token", tokenizer, wick_token_begin(tokenizer));
    put_token("eos_token", tokenizer, wick_token_end(tokenizer));
    const char *const text = record_end();
    if (text == NULL) return WICK_ERR_OUT_OF_MEMORY;
    return wick_json_parse(text, strlen(text), out, &door_error);
}

/* name NULL: the main one. */
static wick_status refuse_template(const char *name) {
    return door_refuse(
        WICK_ERR_NOT_FOUND,
        "the model has no chat template%s%s: session.generate takes the whole prompt",
        name != NULL ? " named " : "", name != NULL ? name : "");
}

static wick_status render_by(const wick_template *compiled, const wick_conversation *conversation,
                             wick_prompt **prompt) {
    wick_error reason = {0};
    const wick_status status = wick_template_render(compiled, conversation, prompt, &reason);
    door_error = reason;
    if (status != WICK_ERR_VALUE) return status;
    return door_refuse(status, "the chat template refuses this: %s", reason.message);
}

static wick_status render(const wick_model *model, const wick_json *given, wick_prompt **prompt) {
    wick_template *compiled = NULL;
    wick_json_document *variables = NULL;
    const wick_json *const continues = wick_json_get(given, "continueLast");
    wick_conversation conversation = {.messages = wick_json_get(given, "messages"),
                                      .tools = wick_json_get(given, "tools"),
                                      .documents = wick_json_get(given, "documents"),
                                      .generation_prompt = wick_json_is_true(continues)
                                                               ? WICK_GENERATION_PROMPT_OFF
                                                               : WICK_GENERATION_PROMPT_ON};
    int *const now[] = {&conversation.now.year, &conversation.now.month,  &conversation.now.day,
                        &conversation.now.hour, &conversation.now.minute, &conversation.now.second};
    const wick_json *number = wick_json_first(wick_json_get(given, "now"));
    for (int i = 0; i < 6 && number != NULL; i++, number = wick_json_next(number)) {
        uint64_t value = 0;
        if (wick_json_get_whole(number, &value)) *now[i] = (int)value;
    }
    const char *const name = wick_json_text(wick_json_get(given, "template"), NULL);
    wick_status status = wick_model_template(model, name, &compiled, &door_error);
    if (status == WICK_ERR_NOT_FOUND) status = refuse_template(name);
    if (status == WICK_OK) status = make_variables(wick_model_tokenizer(model), &variables);
    conversation.variables = variables != NULL ? wick_json_root(variables) : NULL;
    if (status == WICK_OK) status = render_by(compiled, &conversation, prompt);
    wick_json_free(variables);
    wick_template_free(compiled);
    return status;
}

static wick_status tokenize_prompt(const wick_prompt *prompt, const wick_tokenizer *tokenizer,
                                   size_t *n) {
    size_t size = 0;
    (void)wick_prompt_text(prompt, &size);
    for (size_t capacity = size + 2;; capacity = *n) {
        if (!has_room(capacity)) return WICK_ERR_OUT_OF_MEMORY;
        const wick_status status = wick_prompt_tokenize(prompt, tokenizer, ids, ids_capacity, n);
        if (status != WICK_OK || *n <= ids_capacity) return status;
    }
}

static wick_answer *begun; /* to the conversation of the last call */

static wick_status begin_answer(const wick_prompt *prompt, const wick_json *tools) {
    wick_answer_desc desc = {.tools = tools};
    desc.prompt = wick_prompt_text(prompt, &desc.prompt_size);
    wick_answer_close(begun);
    return wick_answer_open(&desc, &begun);
}

/* Of the last chat_tokens, for the caller to close. */
DOOR(wick_answer *, chat_answer, void) {
    wick_answer *const answer = begun;
    begun = NULL;
    return answer;
}

/* As tokenize, of a conversation: text is {messages, tools, documents, template, continueLast,
 * now: [year, month, day, hour, minute, second]}. */
DOOR(int, chat_tokens, const wick_model *model, const char *text) {
    wick_json_document *document = NULL;
    wick_prompt *prompt = NULL;
    size_t n = 0;
    wick_status status = options_parse(text, &document);
    if (status == WICK_OK) status = render(model, wick_json_root(document), &prompt);
    if (status == WICK_OK) {
        status = begin_answer(prompt, wick_json_get(wick_json_root(document), "tools"));
        if (status == WICK_OK) status = tokenize_prompt(prompt, wick_model_tokenizer(model), &n);
        if (status != WICK_OK) status = door_fail(status, NULL);
    }
    wick_prompt_free(prompt);
    wick_json_free(document);
    return status == WICK_OK ? (int)n : (int)door_error.status;
}
