/* Memory that runs out in what writes files, and in training (no_memory.h). */
#include "no_memory.h"

static void note_file(outcome *out) {
    static unsigned char bytes[1 << 16];
    FILE *const file = fopen(out_path, "rb");
    assert_non_null(file);
    note(out, bytes, fread(bytes, 1, sizeof bytes, file));
    fclose(file);
    assert_int_equal(unlink(out_path), 0);
}

/* --- Models --- */

static const char *model_path(void) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    return path;
}

static wick_status write_copy(wick_file *from, wick_error *error) {
    static char bytes[1 << 16];
    const wick_file_desc desc = {.values = wick_file_value(from, 0),
                                 .n_values = wick_file_value_count(from),
                                 .tensors = wick_file_get_tensor(from, 0),
                                 .n_tensors = wick_file_tensor_count(from)};
    wick_file_writer *writer;
    wick_status status = wick_file_write_start(out_path, &desc, &writer, error);
    if (status != WICK_OK) return status;
    for (size_t i = 0; i < desc.n_tensors; i++) {
        const wick_file_tensor *const tensor = &desc.tensors[i];
        for (uint64_t at = 0; at < tensor->size && status == WICK_OK;) {
            const uint64_t left = tensor->size - at;
            const size_t n = left < sizeof bytes ? (size_t)left : sizeof bytes;
            status = wick_file_read(from, tensor->offset + at, bytes, n, error);
            if (status == WICK_OK) status = wick_file_write(writer, bytes, n, error);
            at += n;
        }
    }
    const wick_status finished = wick_file_write_finish(writer, status == WICK_OK, error);
    return status == WICK_OK ? finished : status;
}

static wick_status open_in_steps(wick_file **file, wick_error *error) {
    wick_source source;
    wick_file_opening *opening;
    wick_status status = wick_source_file(model_path(), &source, error);
    if (status == WICK_OK) status = wick_file_open_start(source, &opening, error);
    if (status != WICK_OK) return status;
    while (wick_file_open_poll(opening) == WICK_PENDING) continue;
    return wick_file_open_finish(opening, file, error);
}

static wick_status copy(outcome *out, wick_error *error) {
    wick_file *file;
    wick_status status = wick_file_open(model_path(), &file, error);
    wick_file_close(status == WICK_OK ? file : NULL);
    if (status == WICK_OK) status = open_in_steps(&file, error);
    if (status != WICK_OK) return status;
    status = write_copy(file, error);
    wick_file_close(file);
    if (status == WICK_OK) note_file(out);
    return status;
}

static wick_status quantize(outcome *out, wick_error *error) {
    const wick_quantize_desc desc = {.type = "Q4_0", .n_threads = 1};
    wick_quantizing *quantizing;
    wick_status status = wick_quantize_start(model_path(), out_path, &desc, &quantizing, error);
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

/* --- Tests --- */

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

/* Few allocations: each of them. */
static void test_copy(void **state) {
    (void)state;
    fail_at_each(copy, 1, 10);
}

TEST(test_quantize, quantize, 10)
TEST(test_imatrix, measure, 20)
TEST(test_convert, convert, 10)
TEST(test_preview, preview, 10)
TEST(test_tensors, store_tensors, 10)
TEST(test_training, train, 100)

/* Thousands of allocations, of which each run makes most. */
static void test_finetuning(void **state) {
    (void)state;
    fail_at_each(finetune, tests_all() ? 7 : 23 * failing_step(), 1000);
}

static int setup_checkpoint(void **state) {
    if (setup(state) != 0) return 1;
    write_checkpoint();
    return 0;
}

static int teardown_checkpoint(void **state) {
    static const char *const names[] = {"config.json", "tokenizer.json", "model.safetensors"};
    char path[256];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    return teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantize),   cmocka_unit_test(test_imatrix),
        cmocka_unit_test(test_convert),    cmocka_unit_test(test_preview),
        cmocka_unit_test(test_tensors),    cmocka_unit_test(test_training),
        cmocka_unit_test(test_finetuning), cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_copy),
    };
    return cmocka_run_group_tests(tests, setup_checkpoint, teardown_checkpoint);
}
