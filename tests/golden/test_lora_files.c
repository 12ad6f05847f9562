/* Files of adapters: PEFT's give what the same numbers give in GGUF; those that are refused, each
 * with a sentence, change nothing. */
#include "golden/generation.h"

#include "fixture_file.h"
#include "golden/lora_files.h"

#include <wick/lora.h>

#include <sys/stat.h>
#include <unistd.h>

/* --- Files that are refused, each with a sentence, and change nothing --- */

typedef struct refusal {
    wick_model *model;
    char path[64];
    lora_values good, bad;
} refusal;

static void check_refused(const refusal *r, wick_status status, const char *says) {
    wick_error error = {.status = WICK_OK};
    wick_lora *lora = (wick_lora *)1;
    wick_model_info before, after;
    wick_model_get_info(r->model, &before);
    assert_int_equal(wick_lora_open(r->model, r->path, &lora, &error), status);
    assert_null(lora);
    print_message("%s\n", error.message);
    assert_non_null(strstr(error.message, says));
    assert_int_equal(wick_model_add_adapter(r->model, r->path, 1, NULL), status);
    wick_model_get_info(r->model, &after);
    assert_int_equal(after.weight_bytes, before.weight_bytes);
}

static void check_bad(refusal *r, double alpha, const wick_value *more, wick_status status,
                      const char *says) {
    lora_write(r->model, &r->bad, alpha, more, r->path);
    check_refused(r, status, says);
    r->bad = r->good;
}

static void check_shapes(refusal *r) {
    lora_pair *const pair = &r->bad.pairs[2];
    pair->n -= 1;
    check_bad(r, 1, NULL, WICK_ERR_MISMATCH, pair->weight.text);
    pair->k -= 2;
    check_bad(r, 1, NULL, WICK_ERR_MISMATCH, pair->weight.text);
    pair->weight = lora_text("blk.0.attn_norm.weight");
    check_bad(r, 1, NULL, WICK_ERR_UNSUPPORTED, "blk.0.attn_norm.weight");
    pair->weight = lora_text("blk.70000.attn_q.weight");
    check_bad(r, 1, NULL, WICK_ERR_UNSUPPORTED, "blk.70000.attn_q.weight");
    r->bad.n = 0;
    check_bad(r, 1, NULL, WICK_ERR_FORMAT, "no tensors");
    lora_values *const huge = malloc(sizeof *huge);
    lora_make(r->model, 5000, 0, 1000, huge);
    lora_write(r->model, huge, 1, NULL, r->path);
    check_refused(r, WICK_ERR_VALUE, "rank");
    lora_free(huge);
    free(huge);
}

static void check_settings(refusal *r) {
    const wick_value unknown = {
        .key = lora_text("adapter.alora.invocation_tokens"), .type = WICK_VALUE_U32, .u = 1};
    const wick_value no_flag = lora_text_value("adapter.lora.use_rslora", "yes");
    check_bad(r, (double)NAN, NULL, WICK_ERR_FORMAT, "alpha");
    check_bad(r, (double)INFINITY, NULL, WICK_ERR_FORMAT, "alpha");
    check_bad(r, 1, &unknown, WICK_ERR_UNSUPPORTED, "adapter.alora.invocation_tokens");
    check_bad(r, 1, &no_flag, WICK_ERR_FORMAT, "use_rslora");
}

/* Of any type but these three; and while a session is open, which adapters of all sessions change.
 */
static void check_types(refusal *r) {
    lora_write_as(r->model, &r->good, WICK_I32, 1, NULL, r->path);
    check_refused(r, WICK_ERR_UNSUPPORTED, "is i32: f32, f16 and bf16 are supported");
    wick_session *session;
    wick_error error = {.status = WICK_OK};
    lora_write(r->model, &r->good, 1, NULL, r->path);
    assert_int_equal(wick_session_open(r->model, NULL, &session, NULL), WICK_OK);
    assert_int_equal(wick_model_add_adapter(r->model, r->path, 1, &error), WICK_ERR_STATE);
    assert_non_null(strstr(error.message, "open sessions"));
    wick_session_close(session);
}

/* At many lengths; and the second tensor of a pair under another name. */
static void check_cut(refusal *r) {
    lora_write(r->model, &r->good, 1, NULL, r->path);
    FILE *file = fopen(r->path, "rb+");
    static char bytes[1 << 21];
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_true(size > 1000 && size < sizeof bytes);
    char *other = bytes; /* the first name that ends so */
    while (memcmp(other, ".lora_b", 7) != 0) other++;
    other[6] = 'c';
    rewind(file);
    fwrite(bytes, 1, size, file);
    fclose(file);
    check_refused(r, WICK_ERR_FORMAT, "the other one of the pair");
    other[6] = 'b';
    char *first = bytes;
    while (memcmp(first, ".lora_a", 7) != 0) first++;
    first[6] = 'x';
    file = fopen(r->path, "wb");
    fwrite(bytes, 1, size, file);
    fclose(file);
    check_refused(r, WICK_ERR_UNSUPPORTED, "is neither a .lora_a nor a .lora_b");
    first[6] = 'a';
    for (size_t n = 0; n < size; n = n * 5 / 4 + 1) {
        file = fopen(r->path, "wb");
        fwrite(bytes, 1, n, file);
        fclose(file);
        wick_error error = {.status = WICK_OK};
        wick_lora *lora;
        assert_true(wick_lora_open(r->model, r->path, &lora, &error) < 0);
        assert_true(error.message[0] != '\0');
    }
}

static void check_misuse(const refusal *r) {
    wick_lora *lora;
    const wick_lora_use none = {NULL, 1};
    wick_error error;
    wick_session *session;
    assert_int_equal(wick_lora_open(r->model, r->path, &lora, NULL), WICK_OK);
    assert_int_equal(wick_session_open(r->model, NULL, &session, NULL), WICK_OK);
    wick_lora_use uses[9];
    for (int i = 0; i < 9; i++) uses[i] = (wick_lora_use){lora, i == 8 ? NAN : 1};
    assert_int_equal(wick_session_set_loras(session, uses, 9), WICK_ERR_VALUE);
    assert_int_equal(wick_session_set_loras(session, uses + 8, 1), WICK_ERR_VALUE);
    assert_int_equal(wick_session_set_loras(session, &none, 1), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_set_loras(session, NULL, 1), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_error(session, &error), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_set_loras(NULL, NULL, 0), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_set_loras(session, uses, 8), WICK_OK);
    wick_session_close(session);
    assert_int_equal(wick_lora_close(lora, NULL), WICK_OK);
    assert_int_equal(wick_lora_close(NULL, NULL), WICK_ERR_ARGUMENT);
}

static void test_refused(void **state) {
    (void)state;
    static refusal r;
    wick_device *device;
    char path[1024];
    if (!fixture_path("WICK_SHARED_DATA", "families/llama.gguf", path, sizeof path)) skip();
    r.model = open_model(path, &(wick_device_desc){.backend = WICK_BACKEND_CPU}, &device);
    snprintf(r.path, sizeof r.path, "/tmp/wick-refused-%ld.gguf", (long)getpid());
    lora_make(r.model, 4, 0, 1, &r.good);
    r.bad = r.good;
    check_shapes(&r);
    check_settings(&r);
    check_types(&r);
    check_cut(&r);
    lora_write(r.model, &r.good, 1, NULL, r.path);
    check_misuse(&r);
    lora_free(&r.good);
    unlink(r.path);
    wick_model_close(r.model);
    give_back_device(device);
}

/* --- As PEFT has them --- */

static const char *const roles[][2] = {
    {"attn_q", "self_attn.q_proj"}, {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"}, {"attn_output", "self_attn.o_proj"},
    {"ffn_gate", "mlp.gate_proj"},  {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};

static void name_module(const char *weight, char *out, size_t size) {
    unsigned layer = 0;
    char role[32] = "";
    assert_int_equal(sscanf(weight, "blk.%u.%31[^.].weight", &layer, role), 2);
    for (size_t i = 0; i < WK_COUNT(roles); i++)
        if (strcmp(role, roles[i][0]) == 0)
            snprintf(out, size, "base_model.model.model.layers.%u.%s", layer, roles[i][1]);
}

/* Rows 2 i and 2 i + 1 of a head in GGUF are rows i and i + dim / 2 here. */
static float *permuted(const lora_pair *pair, int64_t rank, int64_t n_heads) {
    const int64_t dim = pair->n / n_heads;
    float *const b = malloc((size_t)(pair->n * rank) * sizeof *b);
    for (int64_t row = 0; row < pair->n; row++) {
        const int64_t i = row % dim, to = row - i + i / 2 + i % 2 * (dim / 2);
        memcpy(b + to * rank, pair->b + row * rank, (size_t)rank * sizeof *b);
    }
    return b;
}

static int64_t heads_of(const wick_model *model, const char *weight) {
    wick_string key = lora_text(strstr(weight, "attn_q") != NULL ? "llama.attention.head_count"
                                                                 : "llama.attention.head_count_kv");
    const bool is_moved = strstr(weight, "attn_q") != NULL || strstr(weight, "attn_k") != NULL;
    const wick_value *const value = wk_gguf_find(model->gguf, key.text);
    return is_moved ? (int64_t)value->u : 0;
}

typedef struct peft {
    char folder[64], config[96], tensors[96];
} peft;

static peft make_folder(void) {
    peft p;
    snprintf(p.folder, sizeof p.folder, "/tmp/wick-peft-%ld", (long)getpid());
    snprintf(p.config, sizeof p.config, "%s/adapter_config.json", p.folder);
    snprintf(p.tensors, sizeof p.tensors, "%s/adapter_model.safetensors", p.folder);
    mkdir(p.folder, 0700);
    return p;
}

static void write_bytes(const char *path, const void *bytes, size_t size) {
    FILE *const file = fopen(path, "wb");
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* The header of safetensors: its length, JSON, then the tensors. */
static void write_tensors(const wick_model *model, const lora_values *from, const char *path) {
    static char json[1 << 16], name[160];
    size_t n = 0, at = 0;
    const int64_t rank = from->rank;
    FILE *const file = fopen(path, "wb");
    for (size_t i = 0; i < 2 * from->n; i++) {
        const lora_pair *const pair = &from->pairs[i / 2];
        const int64_t rows = i % 2 ? pair->n : rank, columns = i % 2 ? rank : pair->k;
        const size_t size = (size_t)(rows * columns) * sizeof(float);
        name_module(pair->weight.text, name, sizeof name);
        n += (size_t)snprintf(json + n, sizeof json - n,
                              "%s\"%s.lora_%c%s.weight\":{\"dtype\":\"F32\",\"shape\":[%d,%d],"
                              "\"data_offsets\":[%zu,%zu]}",
                              i > 0 ? "," : "{", name, i % 2 ? 'B' : 'A',
                              i / 2 % 2 ? ".default" : "", (int)rows, (int)columns, at, at + size);
        at += size;
    }
    json[n++] = '}';
    while (n % 8 != 0) json[n++] = ' ';
    const uint64_t length = n;
    fwrite(&length, 1, sizeof length, file);
    fwrite(json, 1, n, file);
    for (size_t i = 0; i < from->n; i++) {
        const lora_pair *const pair = &from->pairs[i];
        const int64_t n_heads = heads_of(model, pair->weight.text);
        float *const b = permuted(pair, rank, n_heads > 0 ? n_heads : pair->n / 2);
        fwrite(pair->a, sizeof(float), (size_t)(rank * pair->k), file);
        fwrite(b, sizeof(float), (size_t)(rank * pair->n), file);
        free(b);
    }
    fclose(file);
}

static void write_config(const peft *p, const char *more) {
    char text[400];
    snprintf(text, sizeof text,
             "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 6, \"bias\": \"none\", "
             "\"target_modules\": [\"q_proj\"], \"use_dora\": false, \"new\": null%s}",
             more);
    write_bytes(p->config, text, strlen(text));
}

/* The probabilities of what the model says with an adapter, which is closed. */
static void say_with(wick_model *model, wick_lora *lora, wick_logprob out[8]) {
    static const uint32_t prompt[] = {1, 5, 9, 2, 14, 33};
    const wick_session_desc desc = {.max_tokens = 8, .ignore_end = true, .n_logprobs = 1};
    wick_session *session;
    wick_event event;
    size_t n = 0;
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_set_loras(session, &(wick_lora_use){lora, 1}, 1), WICK_OK);
    assert_int_equal(wick_session_append_tokens(session, prompt, WK_COUNT(prompt)), WICK_OK);
    do {
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        if (event.kind == WICK_EVENT_TOKEN) out[n++] = event.logprobs[0];
    } while (event.kind != WICK_EVENT_END);
    assert_int_equal(n, 8);
    wick_session_close(session);
    assert_int_equal(wick_lora_close(lora, NULL), WICK_OK);
}

static void run_with(wick_model *model, const char *path, wick_logprob out[8]) {
    wick_error error = {.status = WICK_OK};
    wick_lora *lora;
    if (wick_lora_open(model, path, &lora, &error) != WICK_OK) fail_msg("%s", error.message);
    say_with(model, lora, out);
}

/* The same as numbers of 16 bits, and as these in float32. */
static void check_halves(wick_model *model, lora_values *values, wick_dtype dtype,
                         const char *path) {
    wick_logprob want[8], found[8];
    lora_write_as(model, values, dtype, 6, NULL, path);
    run_with(model, path, found);
    for (size_t i = 0; i < values->n; i++) {
        const lora_pair *const pair = &values->pairs[i];
        for (int k = 0; k < 2; k++) {
            float *const x = k == 0 ? pair->a : pair->b;
            for (int64_t j = 0; j < values->rank * (k == 0 ? pair->k : pair->n); j++)
                x[j] = dtype == WICK_F16 ? wk_f16_to_f32(wk_f32_to_f16(x[j]))
                                         : wk_bf16_to_f32(wk_f32_to_bf16(x[j]));
        }
    }
    lora_write(model, values, 6, NULL, path);
    run_with(model, path, want);
    assert_memory_equal(found, want, sizeof found);
}

/* From memory as from a file; a source that is not wanted is closed. */
static void check_source(wick_model *model, const char *path) {
    static char bytes[1 << 21];
    FILE *const file = fopen(path, "rb");
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size > 1000 && size < sizeof bytes);
    wick_lora *lora = NULL;
    wick_error error = {.status = WICK_OK};
    const wick_source none = {.size = size};
    assert_int_equal(wick_lora_open_source(model, none, &lora, &error), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_lora_open_source(NULL, wick_source_memory(bytes, size), &lora, &error),
                     WICK_ERR_ARGUMENT);
    assert_int_equal(wick_lora_open_source(model, wick_source_memory(bytes, size), NULL, &error),
                     WICK_ERR_ARGUMENT);
    assert_int_equal(
        wick_lora_open_source(model, wick_source_memory(bytes, size / 2), &lora, &error),
        WICK_ERR_FORMAT);
    assert_null(lora);
    wick_logprob want[8], found[8];
    run_with(model, path, want);
    assert_int_equal(wick_lora_open_source(model, wick_source_memory(bytes, size), &lora, &error),
                     WICK_OK);
    say_with(model, lora, found);
    assert_memory_equal(found, want, sizeof found);
}

static void test_gguf(void **state) {
    (void)state;
    static lora_values values;
    wick_device *device;
    char path[1024], to[64];
    if (!fixture_path("WICK_SHARED_DATA", "families/llama.gguf", path, sizeof path)) skip();
    wick_model *const model =
        open_model(path, &(wick_device_desc){.backend = WICK_BACKEND_CPU}, &device);
    snprintf(to, sizeof to, "/tmp/wick-lora-%ld.gguf", (long)getpid());
    lora_make(model, 4, 0, 1, &values);
    check_halves(model, &values, WICK_F16, to);
    check_halves(model, &values, WICK_BF16, to);
    check_source(model, to);
    lora_free(&values);
    unlink(to);
    wick_model_close(model);
    give_back_device(device);
}

static void check_peft_refused(wick_model *model, const char *path, const char *says) {
    wick_error error = {.status = WICK_OK};
    wick_lora *lora;
    if (wick_lora_open(model, path, &lora, &error) >= 0) fail_msg("not refused: %s", says);
    print_message("%s\n", error.message);
    assert_non_null(strstr(error.message, says));
}

static void check_peft_settings(wick_model *model, const peft *p) {
    static const char *const settings[][2] = {
        {", \"modules_to_save\": [\"lm_head\"]", "modules_to_save"},
        {", \"use_dora\": true", "use_dora"},
        {", \"bias\": \"all\"", "bias"},
        {", \"alpha_pattern\": {\"q_proj\": 3}", "alpha_pattern"},
        {", \"init_lora_weights\": \"pissa\"", "init_lora_weights"},
        {", \"peft_type\": \"IA3\"", "peft_type"},
        {", \"layer_replication\": [[0, 1]]", "layer_replication"},
        {", \"something\": 3", "something"},
        {", \"r\": 5", "r is 5"},
        {", \"r\": \"4\"", "'r' is not"},
        {", \"lora_alpha\": NaN", "'lora_alpha' is not"},
        {", \"lora_alpha\": 1e30", "'lora_alpha' is not"},
        {", ", "adapter_config.json"},
    };
    for (size_t i = 0; i < WK_COUNT(settings); i++) {
        write_config(p, settings[i][0]);
        check_peft_refused(model, p->folder, settings[i][1]);
    }
    unlink(p->config);
    check_peft_refused(model, p->folder, "adapter_config.json");
}

static void check_peft_tensors(wick_model *model, const peft *p) {
    static char bytes[1 << 20];
    FILE *const file = fopen(p->tensors, "rb");
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    static const char *const others[][3] = {
        {"q_proj.lora_A", "q_proj.lora_C", "neither a lora_A nor a lora_B"},
        {"self_attn.q_proj.lora_B", "self_attn.r_proj.lora_B", "the other one of the pair"},
        {"mlp.down_proj", "mlp.upon_proj", "mlp.upon_proj"},
        {"[4,64]", "[64,4]", "do not fit"},
    };
    write_config(p, "");
    for (size_t i = 0; i < WK_COUNT(others); i++) {
        static char changed[1 << 20];
        memcpy(changed, bytes, size);
        for (size_t k = 8; k < size - 80; k++)
            if (memcmp(changed + k, others[i][0], strlen(others[i][0])) == 0)
                memcpy(changed + k, others[i][1], strlen(others[i][1]));
        write_bytes(p->tensors, changed, size);
        check_peft_refused(model, p->folder, others[i][2]);
    }
    for (size_t n = 0; n < size; n = n * 3 / 2 + 1) {
        write_bytes(p->tensors, bytes, n);
        wick_error error = {.status = WICK_OK};
        wick_lora *lora;
        assert_true(wick_lora_open(model, p->folder, &lora, &error) < 0);
        assert_true(error.message[0] != '\0');
    }
}

static void check_same_values(wick_model *model, const lora_values *values, const peft *p) {
    const wick_value stabilized = {
        .key = lora_text("adapter.lora.use_rslora"), .type = WICK_VALUE_BOOL, .u = 1};
    wick_logprob want[2][8], found[8];
    char gguf[80];
    snprintf(gguf, sizeof gguf, "%s.gguf", p->folder);
    write_tensors(model, values, p->tensors);
    for (int i = 0; i < 2; i++) {
        lora_write(model, values, 6, i > 0 ? &stabilized : NULL, gguf);
        run_with(model, gguf, want[i]);
        write_config(p, i > 0 ? ", \"use_rslora\": true" : "");
        run_with(model, i > 0 ? p->tensors : p->folder, found);
        assert_memory_equal(found, want[i], sizeof found);
    }
    assert_memory_not_equal(want[0], want[1], sizeof found);
    unlink(gguf);
}

static void test_peft(void **state) {
    (void)state;
    static lora_values values;
    wick_device *device;
    char path[1024];
    if (!fixture_path("WICK_SHARED_DATA", "families/llama.gguf", path, sizeof path)) skip();
    wick_model *const model =
        open_model(path, &(wick_device_desc){.backend = WICK_BACKEND_CPU}, &device);
    const peft p = make_folder();
    lora_make(model, 4, 0, 1, &values);
    check_same_values(model, &values, &p);
    check_peft_settings(model, &p);
    check_peft_tensors(model, &p);
    lora_free(&values);
    unlink(p.config);
    unlink(p.tensors);
    assert_int_equal(rmdir(p.folder), 0);
    wick_model_close(model);
    give_back_device(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused), cmocka_unit_test(test_gguf),
                                       cmocka_unit_test(test_peft)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
