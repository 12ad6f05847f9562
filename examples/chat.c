/* examples/chat.c: the next answer of a conversation, by the model's own chat template.
 *
 *   cc chat.c $(pkg-config --cflags --libs wick) -o chat
 *   ./chat MODEL.gguf '[{"role": "user", "content": "Why is the sky blue?"}]' */
#include <wick/wick.h>

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 4096 }; /* tokens */

/* The names of the begin and end tokens, which many templates write themselves. */
static wick_status make_variables(const wick_tokenizer *tokenizer, wick_json_document **variables,
                                  wick_error *error) {
    char text[512];
    size_t n_begin, n_end;
    const char *const begin =
        wick_token_bytes(tokenizer, wick_token_begin(tokenizer), true, &n_begin);
    const char *const end = wick_token_bytes(tokenizer, wick_token_end(tokenizer), true, &n_end);
    /* Names that are too long are cut, and then are no JSON. */
    snprintf(text, sizeof text, "{\"bos_token\": \"%.*s\", \"eos_token\": \"%.*s\"}", (int)n_begin,
             begin != NULL ? begin : "", (int)n_end, end != NULL ? end : "");
    return wick_json_parse(text, strlen(text), variables, error);
}

/* What the template makes of the messages, up to where the answer begins. A model without a
 * template gets its messages as they are, one behind the other. */
static wick_status render(const wick_model *model, const char *messages, wick_prompt **prompt,
                          wick_error *error) {
    static const char plain[] = "{% for message in messages %}{{ message.content }}{% endfor %}";
    wick_template *compiled = NULL;
    wick_json_document *parsed = NULL, *variables = NULL;
    wick_status status = wick_model_template(model, NULL, &compiled, error);
    if (status == WICK_ERR_NOT_FOUND) {
        *error = (wick_error){0}; /* the first failure would stay */
        status = wick_template_parse(plain, strlen(plain), &compiled, error);
    }
    if (status == WICK_OK) status = wick_json_parse(messages, strlen(messages), &parsed, error);
    if (status == WICK_OK) status = make_variables(wick_model_tokenizer(model), &variables, error);
    const wick_conversation conversation = {.messages = wick_json_root(parsed),
                                            .variables = wick_json_root(variables),
                                            .generation_prompt = WICK_GENERATION_PROMPT_ON};
    if (status == WICK_OK) status = wick_template_render(compiled, &conversation, prompt, error);
    wick_json_free(variables);
    wick_json_free(parsed);
    wick_template_free(compiled);
    return status;
}

/* Tokenized as a prompt, so that what a user wrote never becomes a special token. sync: of a
 * conversation that has grown only what is new is computed. */
static wick_status answer(wick_session *session, const wick_model *model,
                          const wick_prompt *prompt) {
    static uint32_t ids[CONTEXT];
    size_t n;
    wick_status status =
        wick_prompt_tokenize(prompt, wick_model_tokenizer(model), ids, CONTEXT, &n);
    if (status == WICK_OK && n > CONTEXT) status = WICK_ERR_STATE;
    if (status == WICK_OK) status = wick_session_sync_tokens(session, ids, n);
    wick_event event = {0};
    while (status == WICK_OK && event.kind != WICK_EVENT_END) {
        status = wick_session_next(session, &event);
        if (status == WICK_OK) fwrite(event.text, 1, event.text_size, stdout);
    }
    putchar('\n');
    return status;
}

static wick_status chat(wick_device *device, const char *path, const char *messages,
                        wick_error *error) {
    wick_model *model = NULL;
    wick_prompt *prompt = NULL;
    wick_session *session = NULL;
    const wick_session_desc desc = {.context_length = CONTEXT, .max_tokens = 200};
    wick_status status = wick_model_open(device, path, NULL, &model, error);
    if (status == WICK_OK) status = render(model, messages, &prompt, error);
    if (status == WICK_OK) status = wick_session_open(model, &desc, &session, error);
    if (status == WICK_OK) status = answer(session, model, prompt);
    wick_session_close(session);
    wick_prompt_free(prompt);
    wick_model_close(model);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL.gguf MESSAGES\n", argv[0]);
        return 2;
    }
    wick_error error = {0};
    wick_device *device = NULL;
    wick_status status = wick_device_open(NULL, &device, &error);
    if (status == WICK_OK) status = chat(device, argv[1], argv[2], &error);
    if (status != WICK_OK && error.status == WICK_OK) wick_device_error(device, &error);
    if (status != WICK_OK) fprintf(stderr, "%s\n", error.message);
    wick_device_close(device);
    return status == WICK_OK ? 0 : 1;
}
