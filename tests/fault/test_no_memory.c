/* Memory that runs out in what is made beside models: saved sessions, grammars, schemas, templates,
 * embedders, training, and whatever writes files. For every n the n-th allocation fails, alone or
 * with all that follow. Then the status is WICK_ERR_OUT_OF_MEMORY with a sentence, nothing leaks,
 * no file is left, and where memory is there again the same does what it always did.
 *
 * Every heap of the library takes its memory from the one that refuses here: the program is linked
 * with --wrap=wk_heap_init. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "amount.h"
#include "checked_heap.h"

#include <wick/wick.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static checked_heap poor = {.n_allowed = UINT64_MAX};
static wick_device *device;
static wick_model *model;
static char folder[64], out_path[128];

void __real_wk_heap_init(wk_heap *heap, const wick_allocator *hook);
void __wrap_wk_heap_init(wk_heap *heap, const wick_allocator *hook);
void __wrap_wk_heap_init(wk_heap *heap, const wick_allocator *hook) {
    (void)hook;
    const wick_allocator refusing = {checked_allocate, checked_release, &poor};
    __real_wk_heap_init(heap, &refusing);
}

/* What a run gives: the same bytes each time. */
typedef struct outcome {
    unsigned char bytes[1 << 16];
    size_t size;
} outcome;

static void note(outcome *out, const void *bytes, size_t size) {
    const size_t room = sizeof out->bytes - out->size, n = size < room ? size : room;
    memcpy(out->bytes + out->size, bytes, n);
    out->size += n;
}

/* From nothing to nothing. A failure's sentence goes to error. */
typedef wick_status (*scenario)(outcome *out, wick_error *error);

/* The sentence of a failure of the session. */
static wick_status keep(const wick_session *session, wick_status status, wick_error *error) {
    return status == WICK_OK ? WICK_OK : wick_session_error(session, error);
}

static wick_status note_text(wick_session *session, outcome *out, wick_error *error) {
    wick_event event;
    do {
        const wick_status status = keep(session, wick_session_next(session, &event), error);
        if (status != WICK_OK) return status;
        note(out, event.text, event.text_size);
    } while (event.kind != WICK_EVENT_END);
    return WICK_OK;
}

static void note_file(outcome *out) {
    static unsigned char bytes[1 << 16];
    FILE *const file = fopen(out_path, "rb");
    assert_non_null(file);
    note(out, bytes, fread(bytes, 1, sizeof bytes, file));
    fclose(file);
    assert_int_equal(unlink(out_path), 0);
}

/* --- Sessions --- */

static const wick_session_desc greedy = {.context_length = 64, .max_tokens = 4};
static wick_session *saved; /* in the middle of a text */

static wick_status save_and_load(outcome *out, wick_error *error) {
    wick_session *loaded = NULL;
    wick_status status = wick_session_save(saved, out_path, error);
    if (status == WICK_OK) status = wick_session_open(model, &greedy, &loaded, error);
    if (status == WICK_OK) status = wick_session_load(loaded, out_path, error);
    if (status == WICK_OK) status = note_text(loaded, out, error);
    wick_session_close(loaded);
    (void)unlink(out_path);
    return status;
}

static wick_status generate(const wick_sampler_desc *sampler, outcome *out, wick_error *error) {
    const wick_session_desc desc = {.context_length = 64, .max_tokens = 8, .sampler = *sampler};
    wick_session *session = NULL;
    wick_status status = wick_session_open(model, &desc, &session, error);
    if (status == WICK_OK) status = keep(session, wick_session_append_text(session, "Once"), error);
    if (status == WICK_OK) status = note_text(session, out, error);
    wick_session_close(session);
    return status;
}

static wick_status follow_grammar(outcome *out, wick_error *error) {
    const wick_sampler_desc sampler = {
        .grammar =
            "root ::= name (\", \" name){1,3} \".\"\nname ::= [A-Z] [a-z]+ | \"no\" \" \" name"};
    return generate(&sampler, out, error);
}

static wick_status follow_schema(outcome *out, wick_error *error) {
    const wick_sampler_desc sampler = {
        .json_schema =
            "{\"type\": \"object\", \"required\": [\"a\"], \"properties\": {\"a\": {\"$ref\": "
            "\"#/$defs/n\"}, \"b\": {\"enum\": [\"x\", 1.5, null]}, \"c\": {\"type\": \"array\", "
            "\"items\": {\"type\": \"string\", \"pattern\": \"^[a-c]{2,5}$\"}, \"maxItems\": 3}}, "
            "\"$defs\": {\"n\": {\"type\": \"integer\", \"minimum\": 10, \"maximum\": 2345}}}"};
    return generate(&sampler, out, error);
}

/* --- Texts --- */

static wick_status render(outcome *out, wick_error *error) {
    static const char text[] =
        "{%- macro show(m) %}<|{{ m.role | upper }}|>{{ m['content'] | trim }}{% endmacro %}"
        "{% set seen = namespace(n=0) %}{% for m in messages if m.content is string %}"
        "{{ show(m) ~ loop.index }}{% set seen.n = seen.n + 1 %}{% endfor %}"
        "{{ {'a': [1, 2.5], 'b': 'c' * 3} | tojson }}{{ messages | map(attribute='role') | "
        "join(',')"
        " }}{{ '%s-%d' | format('x', seen.n) }}{{ 'a,b'.split(',')[1:] }}";
    static const char chat[] = "[{\"role\": \"user\", \"content\": \" Hello <s> \"}, {\"role\": "
                               "\"assistant\", \"content\": \"Hi\"}]";
    wick_template *parsed = NULL;
    wick_json_document *messages = NULL;
    wick_prompt *prompt = NULL;
    uint32_t ids[256];
    size_t n = 0;
    wick_status status = wick_template_parse(text, sizeof text - 1, &parsed, error);
    if (status == WICK_OK) status = wick_json_parse(chat, sizeof chat - 1, &messages, error);
    const wick_conversation conversation = {.messages = wick_json_root(messages)};
    if (status == WICK_OK) status = wick_template_render(parsed, &conversation, &prompt, error);
    if (status == WICK_OK) {
        note(out, wick_prompt_text(prompt, &n), n);
        status = wick_prompt_tokenize(prompt, wick_model_tokenizer(model), ids, 256, &n);
        if (status == WICK_OK)
            note(out, ids, n * sizeof *ids);
        else
            *error = (wick_error){.status = status, .message = "tokenize has none"};
    }
    wick_prompt_free(prompt);
    wick_json_free(messages);
    wick_template_free(parsed);
    return status;
}

static wick_status embed_as(wick_pooling pooling, outcome *out, wick_error *error) {
    const wick_embedder_desc desc = {.max_tokens = 32, .pooling = pooling};
    wick_embedder *embedder = NULL;
    wick_status status = wick_embedder_open(model, &desc, &embedder, error);
    const bool is_open = status == WICK_OK;
    if (is_open) status = wick_embedder_start(embedder, "a little girl", 13);
    if (status == WICK_OK)
        while ((status = wick_embedder_poll(embedder)) == WICK_PENDING) continue;
    if (is_open && status != WICK_OK) (void)wick_embedder_error(embedder, error);
    size_t n_rows = 0;
    const float *const rows = wick_embedder_result(embedder, &n_rows);
    if (status == WICK_OK) note(out, rows, n_rows * 64 * sizeof *rows);
    wick_embedder_close(embedder);
    return status;
}

static wick_status embed(outcome *out, wick_error *error) {
    const wick_status status = embed_as(WICK_POOLING_NONE, out, error);
    return status == WICK_OK ? embed_as(WICK_POOLING_MEAN, out, error) : status;
}

/* --- Files --- */

static wick_status quantize(outcome *out, wick_error *error) {
    char in[1024];
    snprintf(in, sizeof in, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    const wick_quantize_desc desc = {.type = "Q4_0", .n_threads = 1};
    wick_quantizing *quantizing;
    wick_status status = wick_quantize_start(in, out_path, &desc, &quantizing, error);
    if (status != WICK_OK) return status;
    while ((status = wick_quantize_poll(quantizing, NULL, error)) == WICK_PENDING) continue;
    const wick_status finished = wick_quantize_finish(quantizing, status == WICK_OK, error);
    if (status == WICK_OK) status = finished;
    if (status == WICK_OK) note_file(out);
    return status;
}

static wick_status measure(outcome *out, wick_error *error) {
    uint32_t ids[40];
    for (uint32_t i = 0; i < 40; i++) ids[i] = 300 + i;
    const wick_imatrix_desc desc = {.path = out_path, .dataset = "counting", .chunk_length = 16};
    wick_imatrix *imatrix;
    wick_status status = wick_imatrix_start(model, ids, 40, &desc, &imatrix, error);
    if (status != WICK_OK) return status;
    while ((status = wick_imatrix_poll(imatrix, NULL, error)) == WICK_PENDING) continue;
    const wick_status finished = wick_imatrix_finish(imatrix, status == WICK_OK, error);
    if (status == WICK_OK) status = finished;
    if (status == WICK_OK) note_file(out);
    return status;
}

static void write_file(const char *name, const void *bytes, size_t size) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* A llama of one layer: 6 tokens, 8 channels, 12 in between. */
static void write_checkpoint(void) {
    static const char config[] =
        "{\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": 8,"
        " \"intermediate_size\": 12, \"num_hidden_layers\": 1, \"num_attention_heads\": 2,"
        " \"rms_norm_eps\": 1e-5, \"vocab_size\": 6, \"max_position_embeddings\": 32,"
        " \"hidden_act\": \"silu\", \"tie_word_embeddings\": true, \"bos_token_id\": 5,"
        " \"eos_token_id\": 5}";
    static const char vocabulary[] =
        "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"c\": 3, "
        "\"d\": 4}, \"merges\": [\"a b\"]}, \"pre_tokenizer\": {\"type\": \"ByteLevel\", "
        "\"add_prefix_space\": false}, \"added_tokens\": [{\"id\": 5, \"content\": \"<s>\", "
        "\"special\": true}]}";
    static const struct {
        const char *name;
        int rows, columns;
    } tensors[] = {
        {"embed_tokens", 6, 8},
        {"norm", 0, 8},
        {"layers.0.input_layernorm", 0, 8},
        {"layers.0.post_attention_layernorm", 0, 8},
        {"layers.0.self_attn.q_proj", 8, 8},
        {"layers.0.self_attn.k_proj", 8, 8},
        {"layers.0.self_attn.v_proj", 8, 8},
        {"layers.0.self_attn.o_proj", 8, 8},
        {"layers.0.mlp.gate_proj", 12, 8},
        {"layers.0.mlp.up_proj", 12, 8},
        {"layers.0.mlp.down_proj", 8, 12},
    };
    static unsigned char file[8192];
    char *const header = (char *)file + 8;
    size_t length = 0, data = 0;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        const int rows = tensors[i].rows, columns = tensors[i].columns;
        const size_t size = 4 * (size_t)(rows > 0 ? rows : 1) * (size_t)columns;
        char shape[32];
        if (rows > 0)
            snprintf(shape, sizeof shape, "%d, %d", rows, columns);
        else
            snprintf(shape, sizeof shape, "%d", columns);
        length += (size_t)sprintf(header + length,
                                  "%s\"model.%s.weight\": {\"dtype\": \"F32\", \"shape\": [%s], "
                                  "\"data_offsets\": [%zu, %zu]}",
                                  i > 0 ? ", " : "{", tensors[i].name, shape, data, data + size);
        data += size;
    }
    header[length++] = '}';
    memcpy(file, &length, 8);
    assert_true(8 + length + data <= sizeof file);
    write_file("config.json", config, sizeof config - 1);
    write_file("tokenizer.json", vocabulary, sizeof vocabulary - 1);
    write_file("model.safetensors", file, 8 + length + data);
}

static wick_status convert(outcome *out, wick_error *error) {
    const wick_convert_desc desc = {.type = "F16"};
    wick_converting *converting;
    wick_status status = wick_convert_start(folder, out_path, &desc, &converting, error);
    if (status != WICK_OK) return status;
    while ((status = wick_convert_poll(converting, NULL, error)) == WICK_PENDING) continue;
    const wick_status finished = wick_convert_finish(converting, status == WICK_OK, error);
    if (status == WICK_OK) status = finished;
    if (status == WICK_OK) note_file(out);
    return status;
}

static wick_status preview(outcome *out, wick_error *error) {
    const wick_convert_desc desc = {.type = "F16"};
    wick_file *file;
    const wick_status status = wick_convert_preview(folder, &desc, &file, error);
    if (status != WICK_OK) return status;
    const size_t found[] = {wick_file_value_count(file), wick_file_tensor_count(file)};
    note(out, found, sizeof found);
    wick_file_close(file);
    return WICK_OK;
}

/* A device of its own: what tensors leave with it is no matter. */
static wick_status store_in(const char *path, outcome *out, wick_error *error) {
    static const float numbers[] = {3, 1, 2, 5, 4, 6};
    static const char *const names[] = {"a", "b"};
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    wick_device *own = NULL;
    float got[6];
    wick_status status = wick_device_open(&desc, &own, error);
    if (status != WICK_OK) return status;
    const wick_scope scope = wick_scope_begin(own);
    wick_tensor *const a =
        wick_tensor_from_data(own, WICK_F32, WICK_SHAPE(2, 3), numbers, sizeof numbers);
    wick_tensor *const both[] = {a, wick_transpose(a, 0, 1)};
    status = both[1] != NULL ? wick_tensor_file_save(path, names, both, 2, error)
                             : wick_device_error(own, error);
    if (status == WICK_OK) {
        status = wick_read(wick_tensor_load(own, path, "b"), got, sizeof got);
        if (status == WICK_OK)
            note(out, got, sizeof got);
        else
            status = wick_device_error(own, error);
    }
    wick_scope_end(scope);
    wick_device_close(own);
    (void)unlink(path);
    return status;
}

static wick_status store_tensors(outcome *out, wick_error *error) {
    static const char *const endings[] = {".safetensors", ".npz", ".pt"};
    wick_status status = WICK_OK;
    for (size_t i = 0; i < sizeof endings / sizeof *endings && status == WICK_OK; i++) {
        char path[256];
        (void)snprintf(path, sizeof path, "%s%s", out_path, endings[i]);
        status = store_in(path, out, error);
    }
    return status;
}

/* --- Training --- */

static wick_tensor *run_linear(void *user, wick_tensor *const *x) {
    return wick_tanh(wick_linear(x[0], user, NULL));
}

/* One step of a network of two layers, through a segment, with all that a step may have. */
static wick_status step_once(wick_tensor **params, wick_optimizer *optimizer, wick_tensor *x) {
    wick_tape *tape;
    wick_tensor *grads[2];
    wick_status status = wick_tape_begin(wick_tensor_device(x), &tape);
    if (status != WICK_OK) return status;
    for (int i = 0; i < 2 && status == WICK_OK; i++) status = wick_tape_watch(tape, params[i]);
    wick_tensor *hidden = wick_recompute(tape, run_linear, params[0], &x, 1);
    hidden = wick_dropout(wick_rms_norm(hidden, NULL, 1e-5F), 0.25, true);
    wick_tensor *const loss =
        wick_mse(wick_linear(hidden, params[1], NULL), x, WICK_REDUCTION_MEAN);
    if (status == WICK_OK) status = wick_grad(tape, loss, NULL, params, 2, grads);
    wick_tape_end(tape);
    if (status != WICK_OK) return status;
    if (wick_clip_grad_norm(grads, 2, 0.5) == NULL) return WICK_ERR_OUT_OF_MEMORY;
    return wick_optimizer_step(optimizer, grads, 1e-2);
}

static wick_status train(outcome *out, wick_error *error) {
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    const wick_optimizer_desc adamw = {.kind = WICK_OPTIMIZER_ADAMW, .masters = true};
    wick_device *own = NULL;
    wick_optimizer *optimizer = NULL;
    float got[12];
    wick_status status = wick_device_open(&desc, &own, error);
    if (status != WICK_OK) return status;
    const wick_scope scope = wick_scope_begin(own);
    wick_tensor *params[2] = {wick_randn(own, WICK_F32, WICK_SHAPE(4, 3), 0, 0.5),
                              wick_randn(own, WICK_BF16, WICK_SHAPE(3, 4), 0, 0.5)};
    wick_tensor *const x = wick_randn(own, WICK_F32, WICK_SHAPE(5, 3), 0, 1);
    status = x != NULL ? wick_optimizer_make(&adamw, params, NULL, 2, &optimizer)
                       : WICK_ERR_OUT_OF_MEMORY;
    for (int i = 0; i < 2 && status == WICK_OK; i++) {
        const wick_scope inner = wick_scope_begin(own);
        status = step_once(params, optimizer, x);
        wick_scope_end(inner);
    }
    for (int i = 0; i < 2 && status == WICK_OK; i++) {
        const wick_scope inner = wick_scope_begin(own);
        status = wick_read(wick_cast(params[i], WICK_F32), got, sizeof got);
        if (status == WICK_OK) note(out, got, sizeof got);
        wick_scope_end(inner);
    }
    const wick_status first = wick_device_error(own, error); /* why a tensor is NULL */
    if (status != WICK_OK && first != WICK_OK) status = first;
    wick_optimizer_free(optimizer);
    wick_scope_end(scope);
    wick_device_close(own);
    return status;
}

/* A step, a checkpoint and an adapter. The model is as before whatever fails. */
static wick_status finetune(outcome *out, wick_error *error) {
    static const char line[] = "{\"prompt\": \"Once upon\", \"completion\": \" a time\"}";
    char checkpoint[160];
    snprintf(checkpoint, sizeof checkpoint, "%s.checkpoint", out_path);
    const wick_finetune_desc desc = {.rank = 1,
                                     .targets = WICK_TARGET_V,
                                     .rate = 1e-2,
                                     .dropout = 0.1,
                                     .steps = 1,
                                     .recompute = true,
                                     .checkpoint = checkpoint};
    wick_examples *examples = NULL;
    wick_finetune *training = NULL;
    wick_status status = wick_examples_make(model, 16, &examples, error);
    if (status == WICK_OK) status = wick_examples_add_json(examples, line, sizeof line - 1, error);
    if (status == WICK_OK) status = wick_finetune_start(model, examples, &desc, &training, error);
    if (status == WICK_OK)
        while ((status = wick_finetune_poll(training, NULL, error)) == WICK_PENDING) continue;
    if (status == WICK_OK) status = wick_finetune_save(training, out_path, error);
    if (status == WICK_OK) note_file(out);
    wick_finetune_finish(training);
    wick_examples_free(examples);
    (void)unlink(checkpoint);
    return status;
}

/* --- Adapters --- */

static wick_string text_of(const char *text) { return (wick_string){text, strlen(text)}; }

/* Of one matrix, [32, 64]. */
static void write_adapter(const char *path) {
    const wick_value values[] = {
        {.key = text_of("general.type"), .type = WICK_VALUE_STRING, .string = text_of("adapter")},
        {.key = text_of("general.architecture"),
         .type = WICK_VALUE_STRING,
         .string = text_of("llama")},
        {.key = text_of("adapter.type"), .type = WICK_VALUE_STRING, .string = text_of("lora")},
    };
    const wick_file_tensor tensors[] = {
        {text_of("blk.1.attn_v.weight.lora_a"), WICK_F32, WICK_SHAPE(2, 64), 0, 0},
        {text_of("blk.1.attn_v.weight.lora_b"), WICK_F32, WICK_SHAPE(32, 2), 0, 0},
    };
    const wick_file_desc desc = {values, 3, tensors, 2, .replace = true};
    float numbers[2 * 64 + 32 * 2];
    for (int i = 0; i < 2 * 64 + 32 * 2; i++) numbers[i] = (float)(i % 7 - 3) / 4;
    wick_file_writer *writer;
    assert_int_equal(wick_file_write_start(path, &desc, &writer, NULL), WICK_OK);
    assert_int_equal(wick_file_write(writer, numbers, sizeof numbers, NULL), WICK_OK);
    assert_int_equal(wick_file_write_finish(writer, true, NULL), WICK_OK);
}

/* Likewise, as PEFT has it: [32, 2] and [2, 64]. */
static void write_peft(const char *config_path, const char *tensors_path) {
    static const char config[] = "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4}";
    static const char header[] =
        "{\"base_model.model.model.layers.0.self_attn.v_proj.lora_A.weight\": "
        "{\"dtype\": \"F32\", \"shape\": [2, 64], \"data_offsets\": [0, 512]}, "
        "\"base_model.model.model.layers.0.self_attn.v_proj.lora_B.weight\": "
        "{\"dtype\": \"F32\", \"shape\": [32, 2], \"data_offsets\": [512, 768]}}       ";
    const uint64_t size = (sizeof header - 1) / 8 * 8;
    float numbers[2 * 64 + 32 * 2];
    for (int i = 0; i < 2 * 64 + 32 * 2; i++) numbers[i] = (float)(i % 5 - 2) / 4;
    FILE *const file = fopen(config_path, "wb"), *const tensors = fopen(tensors_path, "wb");
    assert_int_equal(fwrite(config, 1, sizeof config - 1, file), sizeof config - 1);
    assert_int_equal(fwrite(&size, sizeof size, 1, tensors), 1);
    assert_int_equal(fwrite(header, 1, size, tensors), size);
    assert_int_equal(fwrite(numbers, 1, sizeof numbers, tensors), sizeof numbers);
    fclose(file);
    fclose(tensors);
}

static char adapter_paths[2][160]; /* a GGUF file, and the config of a folder */

/* Two of them, of which the second one makes more room for both. */
static wick_status adapt(outcome *out, wick_error *error) {
    wick_session *session = NULL;
    wick_lora *loras[2] = {NULL};
    wick_status status = wick_session_open(model, &greedy, &session, error);
    for (int i = 0; i < 2 && status == WICK_OK; i++)
        status = wick_lora_open(model, adapter_paths[i], &loras[i], error);
    if (status == WICK_OK) {
        const wick_lora_use uses[] = {{loras[0], 1}, {loras[1], -0.5F}};
        status = keep(session, wick_session_set_loras(session, uses, 2), error);
    }
    if (status == WICK_OK)
        status = keep(session, wick_session_append_text(session, "Once upon"), error);
    if (status == WICK_OK) status = note_text(session, out, error);
    wick_session_close(session);
    for (int i = 0; i < 2 && loras[i] != NULL; i++)
        assert_int_equal(wick_lora_close(loras[i], NULL), WICK_OK);
    return status;
}

/* --- Devices --- */

static wick_status use_null_device(outcome *out, wick_error *error) {
    const wick_device_desc desc = {.backend = WICK_BACKEND_NULL,
                                   .n_threads = 1,
                                   .null_flags = WICK_NULL_LATE | WICK_NULL_NO_FUSED};
    static const float numbers[] = {3, 1, 2, 5, 4, 6};
    wick_device *null = NULL;
    float got[6];
    wick_status status = wick_device_open(&desc, &null, error);
    if (status != WICK_OK) return status;
    const wick_scope scope = wick_scope_begin(null);
    wick_tensor *const a =
        wick_tensor_from_data(null, WICK_F32, WICK_SHAPE(2, 3), numbers, sizeof numbers);
    wick_tensor *const b = wick_rms_norm(wick_transpose(wick_mul(a, a), 0, 1), NULL, 1e-5F);
    status = wick_read(wick_softmax(b, -1), got, sizeof got);
    if (status == WICK_OK)
        note(out, got, sizeof got);
    else
        status = wick_device_error(null, error);
    wick_scope_end(scope);
    wick_device_close(null);
    return status;
}

/* --- Conversations --- */

static size_t count_messages(const wick_chat *chat) {
    size_t n = 0;
    const wick_json *m = wick_json_first(wick_chat_messages(chat));
    for (; m != NULL; m = wick_json_next(m)) n++;
    return n;
}

/* A failure leaves the messages as they were; an answer that cannot go on beyond the context stays,
 * and is taken back here. */
static wick_status ask(wick_chat *chat, const char *text, outcome *out) {
    const size_t n = count_messages(chat), size = out->size;
    wick_event event = {0};
    wick_status status = wick_chat_send(chat, text);
    while (status == WICK_OK && event.kind != WICK_EVENT_END) {
        status = wick_chat_next(chat, &event);
        if (event.kind == WICK_EVENT_LEFT_OUT) note(out, &event.total, sizeof event.total);
        note(out, event.text, event.text_size);
    }
    if (status == WICK_OK) return WICK_OK;
    const bool is_cut = text == NULL && count_messages(chat) == n + 1;
    if (is_cut) {
        wick_event end;
        assert_int_equal(wick_chat_step(chat, &end), WICK_OK);
        assert_int_equal(end.reason, WICK_END_CONTEXT_FULL);
        wick_chat_cut(chat, n);
    }
    assert_int_equal(count_messages(chat), n);
    out->size = size;
    return status;
}

/* Whatever fails does when it is done again, if memory is there again. */
static wick_status talk(wick_chat *chat, outcome *out) {
    wick_status status = ask(chat, "Once upon a time there was a cat", out);
    if (status != WICK_OK) status = ask(chat, "Once upon a time there was a cat", out);
    if (status == WICK_OK && wick_chat_set_system(chat, "Be kind.") != WICK_OK)
        status = wick_chat_set_system(chat, "Be kind.");
    if (status == WICK_OK && wick_chat_set_messages(chat, wick_chat_messages(chat)) != WICK_OK)
        status = wick_chat_set_messages(chat, wick_chat_messages(chat));
    if (status == WICK_OK && wick_chat_add(chat, "user", "Two", 3) != WICK_OK)
        status = wick_chat_add(chat, "user", "Two", 3);
    /* Its answer fills the context: the first turn goes in the middle. */
    if (status == WICK_OK && ask(chat, NULL, out) != WICK_OK) status = ask(chat, NULL, out);
    if (status == WICK_OK)
        assert_string_equal(wick_chat_prompt(chat, NULL), "[system]Be kind.[user]Two");
    return status;
}

static wick_status converse(outcome *out, wick_error *error) {
    wick_chat *chat = NULL;
    const wick_chat_desc desc = {
        .session = {.context_length = 64, .max_tokens = 12, .ignore_end = true},
        .system = "Be brief.",
        .tools = "[{\"name\": \"sum\"}]",
        .thinking = WICK_THINKING_OFF,
        .chat_template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"};
    wick_status status = wick_chat_open(model, &desc, &chat, error);
    if (status == WICK_OK) {
        status = talk(chat, out);
        if (wick_chat_error(chat, error) != status) fail_msg("another error than the last one");
    }
    wick_chat_close(chat);
    return status;
}

/* --- Failing --- */

/* Blocks in use, when device and model keep nothing for later: so that each run allocates the
 * same. */
static uint64_t count_live(void) {
    wick_model_trim(model);
    assert_int_equal(wick_device_trim(device, NULL, NULL), WICK_OK);
    return poor.n_live;
}

/* One run in which allocation n fails; false: there was none of that number. */
static bool fail_at(scenario run, uint64_t n, bool once, const outcome *want) {
    static outcome got;
    wick_error error = {.status = WICK_OK};
    got = (outcome){.size = 0};
    (void)count_live();
    poor.n_allowed = n, poor.refuses_once = once, poor.n_refused = 0;
    const wick_status status = run(&got, &error);
    const bool was_refused = poor.n_refused > 0;
    poor.n_allowed = UINT64_MAX;
    if (status != WICK_OK && (status != WICK_ERR_OUT_OF_MEMORY || error.status != status ||
                              error.message[0] == '\0' || !was_refused))
        fail_msg("allocation %u%s: status %d, %d: '%s'", (unsigned)n, once ? "" : " and all later",
                 (int)status, (int)error.status, error.message);
    if (status == WICK_OK) assert_memory_equal(&got, want, sizeof got);
    if (access(out_path, F_OK) == 0) fail_msg("allocation %u: a file is left", (unsigned)n);
    assert_int_equal(poor.n_wrong_sizes, 0);
    assert_int_equal(wick_device_error(device, NULL), WICK_OK);
    return was_refused;
}

/* step: from one allocation that fails to the next. */
static void fail_at_each(scenario run, uint64_t step, uint64_t n_at_least) {
    static outcome want, again;
    wick_error error = {.status = WICK_OK};
    want = again = (outcome){.size = 0};
    poor.n_wrong_sizes = 0;
    if (run(&want, &error) != WICK_OK) fail_msg("%s", error.message);
    assert_true(want.size > 0);
    const uint64_t n_live = count_live(); /* of the model and the device */
    uint64_t n = 0;
    while (fail_at(run, n, false, &want)) n += step;
    for (uint64_t i = 0; i < n; i += step) assert_true(fail_at(run, i, true, &want));
    assert_true(n >= n_at_least);
    if (run(&again, &error) != WICK_OK) fail_msg("and then: %s", error.message);
    assert_memory_equal(&again, &want, sizeof want);
    assert_int_equal(count_live(), n_live);
    print_message("%u allocations\n", (unsigned)n);
}

static void fail_everywhere(scenario run, uint64_t n_at_least) {
    fail_at_each(run, failing_step(), n_at_least);
}

static void test_sessions(void **state) {
    (void)state;
    wick_event event;
    static outcome rest;
    assert_int_equal(wick_session_open(model, &greedy, &saved, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(saved, "Once upon"), WICK_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(wick_session_next(saved, &event), WICK_OK);
    fail_everywhere(save_and_load, 10);
    assert_int_equal(note_text(saved, &rest, NULL), WICK_OK); /* it is as before */
    assert_true(rest.size > 0);
    wick_session_close(saved);
}

static void test_adapters(void **state) {
    (void)state;
    char tensors[160];
    snprintf(adapter_paths[0], sizeof adapter_paths[0], "%s/adapter.gguf", folder);
    snprintf(adapter_paths[1], sizeof adapter_paths[1], "%s/adapter_config.json", folder);
    snprintf(tensors, sizeof tensors, "%s/adapter_model.safetensors", folder);
    write_adapter(adapter_paths[0]);
    write_peft(adapter_paths[1], tensors);
    fail_everywhere(adapt, 40);
    for (int i = 0; i < 2; i++) assert_int_equal(unlink(adapter_paths[i]), 0);
    assert_int_equal(unlink(tensors), 0);
}

#define TEST(name, run, n_at_least)                                                                \
    static void name(void **state) {                                                               \
        (void)state;                                                                               \
        fail_everywhere(run, n_at_least);                                                          \
    }

TEST(test_grammar, follow_grammar, 20)
TEST(test_schema, follow_schema, 20)
TEST(test_template, render, 5)
TEST(test_embedder, embed, 20)
TEST(test_quantize, quantize, 10)
TEST(test_imatrix, measure, 20)
TEST(test_convert, convert, 10)
TEST(test_preview, preview, 10)
TEST(test_tensors, store_tensors, 10)
TEST(test_training, train, 100)
TEST(test_null_device, use_null_device, 10)
TEST(test_conversation, converse, 40)

/* Of requests, the one that fails is answered by status 503 or by an event; the others are whole.
 */
static wick_status answer_one(wick_api *api, const char *path, const char *body, outcome *out,
                              wick_error *error) {
    const wick_request request = {
        .method = "POST", .path = path, .body = body, .body_size = strlen(body)};
    wick_exchange *exchange = NULL;
    wick_status status = wick_exchange_open(api, &request, &exchange, error);
    if (status != WICK_OK) return status;
    while (!wick_exchange_is_over(exchange)) (void)wick_api_step(api);
    size_t size;
    const char *const bytes = wick_exchange_take(exchange, &size);
    const bool is_refused = wick_exchange_status(exchange) == 503;
    const bool is_cut =
        size > 0 && (strstr(bytes, "\"error\":{") || strstr(bytes, "\"type\":\"error\""));
    if (!is_refused && !is_cut) assert_int_equal(wick_exchange_status(exchange), 200);
    if (is_refused || is_cut || size == 0) { /* 0: not even for that */
        status = WICK_ERR_OUT_OF_MEMORY;
        *error = (wick_error){.status = status};
        snprintf(error->message, sizeof error->message, "%s: %.200s", path, bytes ? bytes : "");
    } else {
        /* Where memory is short, less of a prompt is found in the cache. */
        const char *const usage = strstr(bytes, "\"usage\"");
        note(out, bytes, usage ? (size_t)(usage - bytes) : size);
    }
    wick_exchange_close(exchange);
    return status;
}

static wick_status answer_requests(outcome *out, wick_error *error) {
    static const struct {
        const char *path, *body;
    } asked[] = {
        {"/v1/chat/completions",
         "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Hi\"}]}],"
         "\"stream\":true,\"temperature\":0,\"max_tokens\":2,\"logprobs\":true,\"stop\":[\"x\"]}"},
        {"/v1/messages",
         "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"max_tokens\":40,"
         "\"temperature\":0,\"tool_choice\":{\"type\":\"any\"},\"tools\":[{\"name\":"
         "\"f\",\"input_schema\":{\"type\":\"object\",\"properties\":{},"
         "\"additionalProperties\":false}}]}"},
        {"/v1/responses", "{\"input\":\"Hi\",\"stream\":true,\"temperature\":0,"
                          "\"max_output_tokens\":2}"},
        {"/v1/completions", "{\"prompt\":[\"a\",[5,6]],\"echo\":true,\"temperature\":0,"
                            "\"max_tokens\":2}"},
        {"/v1/embeddings", "{\"input\":\"a\",\"dimensions\":2}"},
        {"/detokenize", "{\"tokens\":[300,301]}"},
    };
    const wick_api_desc desc = {.name = "m", .session = {.context_length = 512}};
    wick_api *api = NULL;
    wick_status status = wick_api_open(model, &desc, &api, error);
    for (size_t i = 0; i < sizeof asked / sizeof *asked && status == WICK_OK; i++)
        status = answer_one(api, asked[i].path, asked[i].body, out, error);
    wick_api_close(api);
    return status;
}

/* Thousands of allocations. */
static void test_api(void **state) {
    (void)state;
    fail_at_each(answer_requests, tests_all() ? 7 : 23 * failing_step(), 500);
}

/* Thousands of allocations, of which each run makes most. */
static void test_finetuning(void **state) {
    (void)state;
    fail_at_each(finetune, tests_all() ? 7 : 23 * failing_step(), 1000);
}

static int setup(void **state) {
    (void)state;
    char path[1024];
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    const char *const top = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; /* fsync is slow */
    snprintf(folder, sizeof folder, "%s/wick_no_memory_%ld", top, (long)getpid());
    snprintf(out_path, sizeof out_path, "%s/out", folder);
    if (mkdir(folder, 0700) != 0) return 1;
    write_checkpoint();
    if (wick_device_open(&desc, &device, NULL) != WICK_OK) return 1;
    return wick_model_open(device, path, NULL, &model, NULL) != WICK_OK;
}

static int teardown(void **state) {
    (void)state;
    static const char *const names[] = {"config.json", "tokenizer.json", "model.safetensors"};
    char path[256];
    wick_model_close(model);
    wick_device_close(device);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    /* It is empty: no temporary file is left. */
    return rmdir(folder) != 0 || poor.n_live != 0 || poor.n_wrong_sizes != 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sessions),    cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_schema),      cmocka_unit_test(test_template),
        cmocka_unit_test(test_embedder),    cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_imatrix),     cmocka_unit_test(test_convert),
        cmocka_unit_test(test_preview),     cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_null_device), cmocka_unit_test(test_conversation),
        cmocka_unit_test(test_training),    cmocka_unit_test(test_finetuning),
        cmocka_unit_test(test_adapters),    cmocka_unit_test(test_api),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
