/* web/glue/session.c: doors to sessions: text in, tokens out, saving, and texts as vectors. */
#include "session.h"

#include "source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- Options --- */

#define AT(field) offsetof(wick_session_desc, field)
static const option_field session_fields[] = {
    {"contextLength", OPTION_UINT, AT(context_length), NULL},
    {"chunkLength", OPTION_UINT, AT(chunk_length), NULL},
    {"cache", OPTION_CHOICE, AT(cache), "auto f32 f16 q8_0 q4_0"},
    {"maxTokens", OPTION_UINT, AT(max_tokens), NULL},
    {"stop", OPTION_TEXTS, AT(stop), NULL},
    {"special", OPTION_BOOL, AT(special), NULL},
    {"ignoreEnd", OPTION_BOOL, AT(ignore_end), NULL},
    {"logprobs", OPTION_UINT, AT(n_logprobs), NULL},
    {"speculate", OPTION_CHOICE, AT(speculate), "auto none ngram draft heads ahead"},
    {"noReuse", OPTION_BOOL, AT(no_reuse), NULL},
    {"temperature", OPTION_FLOAT, AT(sampler.temperature), NULL},
    {"topK", OPTION_UINT, AT(sampler.top_k), NULL},
    {"typicalP", OPTION_FLOAT, AT(sampler.typical_p), NULL},
    {"topP", OPTION_FLOAT, AT(sampler.top_p), NULL},
    {"minP", OPTION_FLOAT, AT(sampler.min_p), NULL},
    {"repeatLast", OPTION_UINT, AT(sampler.repeat_last), NULL},
    {"repeatPenalty", OPTION_FLOAT, AT(sampler.repeat_penalty), NULL},
    {"frequencyPenalty", OPTION_FLOAT, AT(sampler.frequency_penalty), NULL},
    {"presencePenalty", OPTION_FLOAT, AT(sampler.presence_penalty), NULL},
    {"logitBias", OPTION_OTHER, 0, NULL},
    {"dryMultiplier", OPTION_FLOAT, AT(sampler.dry_multiplier), NULL},
    {"dryBase", OPTION_FLOAT, AT(sampler.dry_base), NULL},
    {"dryAllowed", OPTION_UINT, AT(sampler.dry_allowed), NULL},
    {"dryLast", OPTION_UINT, AT(sampler.dry_last), NULL},
    {"dryBreakers", OPTION_TEXTS, AT(sampler.dry_breakers), NULL},
    {"xtcProbability", OPTION_FLOAT, AT(sampler.xtc_probability), NULL},
    {"xtcThreshold", OPTION_FLOAT, AT(sampler.xtc_threshold), NULL},
    {"mirostatTau", OPTION_FLOAT, AT(sampler.mirostat_tau), NULL},
    {"mirostatEta", OPTION_FLOAT, AT(sampler.mirostat_eta), NULL},
    {"seed", OPTION_UINT64, AT(sampler.seed), NULL},
    {"grammar", OPTION_TEXT, AT(sampler.grammar), NULL},
    {"jsonSchema", OPTION_TEXT, AT(sampler.json_schema), NULL},
};
#undef AT
enum { N_SESSION_FIELDS = sizeof session_fields / sizeof *session_fields };

/* bias null: the token is never chosen. */
static bool read_bias(const wick_json *pair, wick_logit_bias *out) {
    const wick_json *const id = wick_json_first(pair);
    const wick_json *const bias = id != NULL ? wick_json_next(id) : NULL;
    uint64_t number = 0;
    double value = -INFINITY;
    if (!wick_json_get_whole(id, &number) || number > UINT32_MAX || bias == NULL) return false;
    if (!wick_json_get_number(bias, &value) && wick_json_kind_of(bias) != WICK_JSON_NULL)
        return false;
    *out = (wick_logit_bias){(uint32_t)number, (float)value};
    return true;
}

/* [[id, bias], ...] */
static wick_status read_biases(const wick_json *list, wick_sampler_desc *sampler) {
    size_t n = 0;
    for (const wick_json *pair = wick_json_first(list); pair; pair = wick_json_next(pair)) n++;
    if (n == 0) return WICK_OK;
    wick_logit_bias *const biases = malloc(n * sizeof *biases);
    if (biases == NULL) return door_fail(WICK_ERR_OUT_OF_MEMORY, NULL);
    sampler->bias = biases;
    for (const wick_json *pair = wick_json_first(list); pair; pair = wick_json_next(pair)) {
        if (!read_bias(pair, &biases[sampler->n_bias++]))
            return door_refuse(WICK_ERR_VALUE,
                               "the option 'logitBias' must be an array of [token, bias]");
    }
    return WICK_OK;
}

wick_status session_options_read(const char *text, session_options *options) {
    *options = (session_options){0};
    wick_status status = options_parse(text, &options->document);
    if (status != WICK_OK) return status;
    const wick_json *const root = wick_json_root(options->document);
    status = options_read(root, session_fields, N_SESSION_FIELDS, &options->desc);
    if (status != WICK_OK) return status;
    return read_biases(wick_json_get(root, "logitBias"), &options->desc.sampler);
}

void session_options_free(session_options *options) {
    options_free(session_fields, N_SESSION_FIELDS, &options->desc);
    free((void *)(uintptr_t)options->desc.sampler.bias);
    wick_json_free(options->document);
}

/* --- Sessions --- */

static int take_error(const wick_session *session, wick_status status) {
    if (status >= 0) return status;
    (void)wick_session_error(session, &door_error);
    return status;
}

DOOR(wick_session *, session_open, wick_model *model, const char *text) {
    session_options options;
    wick_session *session = NULL;
    wick_status status = session_options_read(text, &options);
    if (status == WICK_OK) status = wick_session_open(model, &options.desc, &session, &door_error);
    session_options_free(&options);
    return session;
}

DOOR(int, session_configure, wick_session *s, const char *text) {
    session_options options;
    wick_status status = session_options_read(text, &options);
    if (status == WICK_OK) status = wick_session_configure(s, &options.desc, &door_error);
    session_options_free(&options);
    return status;
}

DOOR(void, session_close, wick_session *s) { wick_session_close(s); }

DOOR(int, session_append_text, wick_session *s, const char *text) {
    return take_error(s, wick_session_append_text(s, text));
}

DOOR(int, session_append_tokens, wick_session *s, const uint32_t *tokens, size_t n) {
    return take_error(s, wick_session_append_tokens(s, tokens, n));
}

DOOR(int, session_sync_tokens, wick_session *s, const uint32_t *tokens, size_t n) {
    return take_error(s, wick_session_sync_tokens(s, tokens, n));
}

DOOR(void, session_cancel, wick_session *s) { wick_session_cancel(s); }
DOOR(void, session_reset, wick_session *s) { wick_session_reset(s); }

/* out: kind, reason, token, text, its size, done, total, log probabilities, their number. */
DOOR(int, session_step, wick_session *s, uint32_t out[9]) {
    wick_event event = {0};
    const wick_status status = wick_session_step(s, &event);
    out[0] = event.kind;
    out[1] = event.reason;
    out[2] = event.token;
    out[3] = (uint32_t)(uintptr_t)event.text;
    out[4] = (uint32_t)event.text_size;
    out[5] = event.done;
    out[6] = event.total;
    out[7] = (uint32_t)(uintptr_t)event.logprobs;
    out[8] = (uint32_t)event.n_logprobs;
    return take_error(s, status);
}

/* The sentence of a failure stays for the step that follows. */
DOOR(int, session_prepare, wick_session *s) { return wick_session_prepare(s); }

DOOR(const char *, session_stats, wick_session *s) {
    wick_session_stats stats;
    wick_session_get_stats(s, &stats);
    record_begin();
    record_number("promptTokens", stats.n_prompt);
    record_number("reusedTokens", stats.n_reused);
    record_number("generatedTokens", stats.n_generated);
    record_number("draftedTokens", stats.n_drafted);
    record_number("acceptedTokens", stats.n_accepted);
    record_number("promptSeconds", stats.prompt_seconds);
    record_number("generateSeconds", stats.generate_seconds);
    record_number("firstTokenSeconds", stats.first_token_seconds);
    record_number("cacheBytes", (double)stats.cache_bytes);
    record_number("contextUsed", stats.n_context);
    record_number("contextLength", stats.context_length);
    record_digits("seed", stats.seed);
    return record_end();
}

/* n: one word, gets their number. */
DOOR(const uint32_t *, session_tokens, wick_session *s, size_t *n) {
    return wick_session_tokens(s, n);
}

/* --- Saving --- */

/* The next bytes of the saved state of this number. */
HOST("write") void host_write(uint32_t id, const void *bytes, size_t size);

static wick_status write_bytes(void *user, const void *bytes, size_t size, wick_error *error) {
    (void)error;
    host_write((uint32_t)(uintptr_t)user, bytes, size);
    return WICK_OK;
}

DOOR(wick_session_saving *, session_save, wick_session *s, uint32_t id) {
    wick_session_saving *saving = NULL;
    void *const user = (void *)(uintptr_t)id;
    (void)wick_session_save_start(s, write_bytes, user, &saving, door_new_error());
    return saving;
}

DOOR(int, session_save_poll, wick_session_saving *saving) { return wick_session_save_poll(saving); }

DOOR(int, session_save_finish, wick_session_saving *saving) {
    return wick_session_save_finish(saving, door_new_error());
}

DOOR(wick_session_loading *, session_load, wick_session *s, wick_source *source) {
    wick_session_loading *loading = NULL;
    (void)wick_session_load_start(s, door_source_take(source), &loading, door_new_error());
    return loading;
}

DOOR(int, session_load_poll, wick_session_loading *loading) {
    return wick_session_load_poll(loading);
}

DOOR(int, session_load_finish, wick_session_loading *loading) {
    return wick_session_load_finish(loading, door_new_error());
}

/* --- Texts as vectors --- */

#define AT(field) offsetof(wick_embedder_desc, field)
static const option_field embedder_fields[] = {
    {"maxTokens", OPTION_UINT, AT(max_tokens), NULL},
    {"pooling", OPTION_CHOICE, AT(pooling), "auto none mean cls last rank"},
    {"raw", OPTION_BOOL, AT(is_raw), NULL},
};
#undef AT
enum { N_EMBEDDER_FIELDS = sizeof embedder_fields / sizeof *embedder_fields };

DOOR(wick_embedder *, embedder_open, wick_model *model, const char *text) {
    wick_embedder_desc desc = {0};
    wick_json_document *document = NULL;
    wick_embedder *embedder = NULL;
    wick_status status = options_parse(text, &document);
    if (status == WICK_OK)
        status = options_read(wick_json_root(document), embedder_fields, N_EMBEDDER_FIELDS, &desc);
    if (status == WICK_OK) (void)wick_embedder_open(model, &desc, &embedder, &door_error);
    wick_json_free(document);
    return embedder;
}

DOOR(void, embedder_close, wick_embedder *embedder) { wick_embedder_close(embedder); }

int take_embedder_error(const wick_embedder *embedder, wick_status status) {
    if (status >= 0) return status;
    (void)wick_embedder_error(embedder, &door_error);
    return status;
}

/* How many texts it takes at once. */
DOOR(int, embedder_most, const wick_embedder *embedder) {
    return wick_embedder_pooling(embedder) == WICK_POOLING_NONE ? 1 : 128;
}

DOOR(int, embedder_start, wick_embedder *embedder, const char *const *texts, const size_t *sizes,
     size_t n) {
    return take_embedder_error(embedder, wick_embedder_start_texts(embedder, texts, sizes, n));
}

DOOR(int, embedder_poll, wick_embedder *embedder) {
    return take_embedder_error(embedder, wick_embedder_poll(embedder));
}

/* n: one word, gets the number of rows. */
DOOR(const float *, embedder_result, const wick_embedder *embedder, size_t *n) {
    return wick_embedder_result(embedder, n);
}
