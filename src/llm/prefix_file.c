/* llm/prefix_file.c: the beginnings of texts that are in the caches of a model, with their
 * snapshots, to bytes and back: see wick/saving.h. Numbers are little-endian.
 *
 *   "wickpref", the fields of header
 *   for each runner: the fields of section; its nodes, each after its parent; its snapshots
 *   checksum   u64, of everything before (core/checksum.h)
 *
 * A node is a node_record and its block, layer by layer as it lies in memory (wk_state_pack); a
 * snapshot is a snapshot_record, its tokens and its bytes. */
#include <wick/saving.h>

#include "core/checksum.h"
#include "core/dtype.h"
#include "llm/runner_struct.h"
#include "source/reader.h"

#include <wick/ops.h>

#include <string.h>

#define MAGIC "wickpref"
#define NO_NODE UINT32_MAX

enum { VERSION = 1, PIECE = 1 << 20 };

typedef struct header {
    char magic[8];
    uint64_t version, model, weights; /* wk_gguf_checksum, wick_model.weights_checksum */
    uint64_t n_sections;
} header;

/* What keys and values depend on, and how they lie. */
typedef struct section {
    uint64_t math, cache_type, context_length, chunk_length;
    uint64_t layout; /* of how layers lie in stages, and of what a block and a slot take */
    uint64_t n_nodes, n_snapshots;
} section;

typedef struct node_record {
    uint64_t key;
    uint32_t parent; /* number of the node; NO_NODE: it begins a text */
    uint32_t n, tokens[WK_BLOCK_SIZE];
} node_record;

typedef struct snapshot_record {
    uint64_t key;
    uint32_t n, begin;
} snapshot_record;

typedef enum step { CHECK, HEADER, SECTION, NODES, SNAPSHOTS, END } step;

struct wick_prefixes {
    wick_model *model;
    wick_write_fn write; /* NULL: it is loaded */
    void *user;
    wick_source source;
    wk_reader reader;
    wick_status status;
    wick_error error;
    step step;
    uint64_t offset, checksum, clock;
    uint64_t section, n_sections;
    struct section of; /* the section that it is in */
    wk_runner *runner;
    uint32_t i;       /* the next node or snapshot */
    uint32_t *blocks; /* [of.n_nodes] of the nodes, in order */
    uint32_t n_blocks;
    wk_snapshot *snapshot; /* the next one to save */
    unsigned char *bytes;  /* [n_bytes] of a block */
    size_t n_bytes;
    wick_reading *readings[WK_MAX_STAGES];
    bool is_reading;
};

/* --- Both ways --- */

static wk_heap *heap_of(const wick_prefixes *p) { return p->model->heap; }

static size_t block_bytes(const wk_runner *runner, uint32_t stage) {
    return wk_state_cell_bytes(runner->net, wk_stage_state(runner->stages[stage]), WK_STATE_BLOCKS);
}

static uint64_t layout_of(const wk_runner *runner) {
    const wk_placement *const placement = wk_model_placement(runner->net);
    uint64_t sum = wk_checksum(WK_CHECKSUM_BEGIN, &(uint64_t){WK_BLOCK_SIZE}, sizeof(uint64_t));
    for (uint32_t i = 0; i < runner->n_stages; i++) {
        uint64_t sizes[5] = {placement->stages[i].first, placement->stages[i].count};
        for (int kind = WK_STATE_BLOCKS; kind <= WK_STATE_SLOTS; kind++)
            sizes[2 + kind] = wk_state_cell_bytes(runner->net, wk_stage_state(runner->stages[i]),
                                                  (wk_state_kind)kind);
        sum = wk_checksum(sum, sizes, sizeof sizes);
    }
    return sum;
}

/* Memory of a section. */
static wick_status reserve(wick_prefixes *p) {
    p->n_bytes = 0;
    for (uint32_t i = 0; i < p->runner->n_stages; i++) p->n_bytes += block_bytes(p->runner, i);
    p->n_blocks = (uint32_t)p->of.n_nodes;
    if (p->n_blocks > 0) p->blocks = wk_alloc_array(heap_of(p), p->n_blocks, sizeof *p->blocks);
    if (p->n_bytes > 0) p->bytes = wk_alloc(heap_of(p), p->n_bytes);
    if ((p->n_blocks > 0 && !p->blocks) || (p->n_bytes > 0 && !p->bytes))
        return wk_fail_memory(&p->error, p->n_bytes, "prefixes");
    return WICK_OK;
}

static void release(wick_prefixes *p) {
    for (uint32_t i = 0; i < WK_MAX_STAGES; i++) {
        if (p->readings[i]) (void)wick_read_finish(p->readings[i], NULL, 0);
        p->readings[i] = NULL;
    }
    wk_free(heap_of(p), p->blocks, p->n_blocks * sizeof *p->blocks);
    wk_free(heap_of(p), p->bytes, p->n_bytes);
    p->blocks = NULL;
    p->bytes = NULL;
    p->is_reading = false;
}

/* --- Saving --- */

static wick_status put(wick_prefixes *p, const void *bytes, size_t size) {
    if (size == 0) return WICK_OK;
    p->checksum = wk_checksum(p->checksum, bytes, size);
    const wick_status status = p->write(p->user, bytes, size, &p->error);
    return status == WICK_OK
               ? WICK_OK
               : wk_fail(&p->error, status < 0 ? status : WICK_ERR_IO, "writing prefixes failed");
}

/* Those whose contents are there. */
static bool is_saved(const wk_runner *runner) {
    const wk_outputs outputs = runner->desc.outputs;
    return runner->has_prefixes && outputs != WK_OUTPUTS_STATES && outputs != WK_OUTPUTS_SCORES &&
           !wk_runner_is_stale(runner);
}

static uint64_t clock_of(const wick_prefixes *p) {
    uint64_t clock = p->model->cache_clock;
    for (const wk_runner *r = p->model->runners; r; r = r->next) clock += wk_runner_clock(r);
    return clock;
}

static wick_status save_header(wick_prefixes *p) {
    WK_TRY(wick_model_step(p->model, &p->error)); /* what is being computed ends first */
    header h = {.version = VERSION,
                .model = wk_gguf_checksum(p->model->gguf),
                .weights = p->model->weights_checksum};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    for (wk_runner *r = p->model->runners; r; r = r->next) {
        wk_snapshots_poll(r);
        h.n_sections += is_saved(r);
        if (is_saved(r)) wk_runner_learn_tails(r);
    }
    p->clock = clock_of(p);
    p->runner = p->model->runners;
    p->step = SECTION;
    return put(p, &h, sizeof h);
}

static wick_status save_section(wick_prefixes *p) {
    while (p->runner && !is_saved(p->runner)) p->runner = p->runner->next;
    p->step = p->runner ? NODES : END;
    if (!p->runner) return WICK_OK;
    const wk_runner *const r = p->runner;
    p->of = (section){.math = (uint64_t)r->desc.math,
                      .cache_type = (uint64_t)wk_dtype_get(r->desc.cache_dtype)->ggml_type,
                      .context_length = r->desc.context_length,
                      .chunk_length = r->desc.chunk_length,
                      .layout = layout_of(r),
                      .n_nodes = wk_prefix_count(&r->prefixes)};
    for (const wk_snapshot *s = r->snapshots.first; s; s = s->next)
        p->of.n_snapshots += wk_snapshot_is_here(r, s);
    WK_TRY(reserve(p));
    wk_prefix_list(&r->prefixes, p->blocks);
    p->i = 0;
    p->snapshot = r->snapshots.first;
    return put(p, &p->of, sizeof p->of);
}

/* The block of the node begins to be read, from all stages. */
static wick_status start_block(wick_prefixes *p) {
    const wk_runner *const r = p->runner;
    wick_status status = WICK_OK;
    for (uint32_t i = 0; i < r->n_stages && status == WICK_OK; i++) {
        const int64_t n = (int64_t)(block_bytes(r, i) / sizeof(uint32_t));
        wick_device *const device = wk_model_placement(r->net)->stages[i].device;
        if (n == 0) continue;
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const packed = wick_empty(device, WICK_U32, WICK_SHAPE(1, n));
        int64_t at = 0;
        const bool is_packed =
            packed && wk_state_pack(r->net, wk_stage_state(r->stages[i]), WK_STATE_BLOCKS,
                                    p->blocks[p->i], packed, &at);
        status =
            is_packed ? wick_read_start(packed, &p->readings[i]) : wk_device_err(device)->status;
        wick_scope_end(scope);
    }
    p->is_reading = true;
    return status;
}

static wick_status finish_block(wick_prefixes *p) {
    unsigned char *to = p->bytes;
    for (uint32_t i = 0; i < p->runner->n_stages; to += block_bytes(p->runner, i++)) {
        if (!p->readings[i]) continue;
        if (wick_read_poll(p->readings[i]) == WICK_PENDING) return WICK_PENDING;
        const wick_status status = wick_read_finish(p->readings[i], to, block_bytes(p->runner, i));
        p->readings[i] = NULL;
        if (status != WICK_OK) return status;
    }
    p->is_reading = false;
    return WICK_OK;
}

/* Its number among those before n. */
static uint32_t number_of(const wick_prefixes *p, uint32_t block, uint32_t n) {
    while (n > 0 && p->blocks[n - 1] != block) n--;
    return n > 0 ? n - 1 : NO_NODE;
}

static wick_status save_node(wick_prefixes *p) {
    if (p->i == p->of.n_nodes) {
        p->step = SNAPSHOTS;
        return WICK_OK;
    }
    if (!p->is_reading) WK_TRY(start_block(p));
    WK_TRY(finish_block(p));
    const wk_prefix_node *const node = &p->runner->prefixes.nodes[p->blocks[p->i]];
    node_record record = {
        .key = node->key, .parent = number_of(p, node->parent, p->i), .n = node->n};
    memcpy(record.tokens, node->tokens, node->n * sizeof *node->tokens);
    WK_TRY(put(p, &record, sizeof record));
    p->i++;
    return put(p, p->bytes, p->n_bytes);
}

static wick_status save_snapshot(wick_prefixes *p) {
    const wk_snapshot *const s = p->snapshot;
    if (!s) {
        release(p);
        p->runner = p->runner->next;
        p->step = SECTION;
        return WICK_OK;
    }
    p->snapshot = s->next;
    if (!wk_snapshot_is_here(p->runner, s)) return WICK_OK;
    const snapshot_record record = {.key = s->key, .n = s->n, .begin = s->begin};
    WK_TRY(put(p, &record, sizeof record));
    WK_TRY(put(p, s->ids, s->n * sizeof *s->ids));
    return put(p, s->bytes, wk_snapshot_size(p->runner, s->n, s->begin));
}

/* WICK_OK: all of it is written. */
static wick_status save(wick_prefixes *p) {
    if (p->step > HEADER && clock_of(p) != p->clock)
        return wk_fail(&p->error, WICK_ERR_STATE, "sessions went on while prefixes were saved");
    if (p->step > SECTION && p->step < END && wk_runner_is_stale(p->runner))
        return wk_fail(&p->error, WICK_ERR_DEVICE_LOST,
                       "the device was lost while prefixes were saved");
    switch (p->step) {
    case SECTION: WK_TRY(save_section(p)); break;
    case NODES: WK_TRY(save_node(p)); break;
    case SNAPSHOTS: WK_TRY(save_snapshot(p)); break;
    case END: {
        const uint64_t checksum = p->checksum;
        return put(p, &checksum, sizeof checksum);
    }
    default: WK_TRY(save_header(p));
    }
    return WICK_PENDING;
}

/* --- Loading --- */

static wick_status get(wick_prefixes *p, size_t size, const unsigned char **bytes) {
    size_t got;
    WK_TRY(wk_reader_get(&p->reader, p->offset, size, bytes, &got, &p->error));
    if (got < size) return wk_fail(&p->error, WICK_ERR_FORMAT, "the saved prefixes are cut off");
    p->offset += size;
    return WICK_OK;
}

static wick_status fail_damaged(wick_prefixes *p) {
    return wk_fail(&p->error, WICK_ERR_FORMAT, "the saved prefixes are damaged");
}

/* The checksum first, so that nothing of a damaged file is taken. */
static wick_status check_bytes(wick_prefixes *p) {
    const uint64_t size = p->source.size;
    if (size == WICK_SIZE_UNKNOWN || p->source.is_sequential)
        return wk_fail(&p->error, WICK_ERR_UNSUPPORTED,
                       "prefixes are read twice: from a source of known size, at any offset");
    if (size < sizeof(header) + sizeof(uint64_t))
        return wk_fail(&p->error, WICK_ERR_FORMAT, "not saved prefixes");
    const uint64_t left = size - sizeof(uint64_t) - p->offset;
    const unsigned char *bytes;
    if (left > 0) {
        const size_t n = left < PIECE ? (size_t)left : PIECE;
        WK_TRY(get(p, n, &bytes));
        p->checksum = wk_checksum(p->checksum, bytes, n);
        return WICK_OK;
    }
    uint64_t checksum;
    WK_TRY(get(p, sizeof checksum, &bytes));
    memcpy(&checksum, bytes, sizeof checksum);
    if (checksum != p->checksum) return fail_damaged(p);
    wk_reader_rewind(&p->reader);
    p->offset = 0;
    p->step = HEADER;
    return WICK_OK;
}

static wick_status load_header(wick_prefixes *p) {
    const unsigned char *bytes;
    header h;
    WK_TRY(get(p, sizeof h, &bytes));
    memcpy(&h, bytes, sizeof h);
    if (memcmp(h.magic, MAGIC, sizeof h.magic) != 0)
        return wk_fail(&p->error, WICK_ERR_FORMAT, "not saved prefixes");
    if (h.version != VERSION)
        return wk_fail(&p->error, WICK_ERR_UNSUPPORTED,
                       "the prefixes were saved by another version of Wick");
    if (h.model != wk_gguf_checksum(p->model->gguf) || h.weights != p->model->weights_checksum)
        return wk_fail(&p->error, WICK_ERR_MISMATCH,
                       "the prefixes were saved with another model or adapter than '%s'",
                       p->model->info.name);
    p->n_sections = h.n_sections;
    p->step = SECTION;
    return WICK_OK;
}

static wick_status find_runner(wick_prefixes *p) {
    const section *const of = &p->of;
    wick_dtype dtype;
    if (of->math > WICK_MATH_FAST || of->cache_type > UINT32_MAX ||
        !wk_dtype_from_ggml((uint32_t)of->cache_type, &dtype) || of->context_length > INT32_MAX ||
        of->context_length == 0 || of->chunk_length > WK_MAX_CHUNK || of->chunk_length == 0 ||
        of->n_nodes > p->source.size / sizeof(node_record) ||
        (dtype != WICK_F32 && dtype != WICK_F16 && dtype != WICK_Q8_0 && dtype != WICK_Q4_0))
        return fail_damaged(p);
    const wk_runner_desc desc = {.context_length = (uint32_t)of->context_length,
                                 .chunk_length = (uint32_t)of->chunk_length,
                                 .cache_dtype = dtype,
                                 .math = (wick_math)of->math,
                                 .outputs = WK_OUTPUTS_LAST};
    WK_TRY(wk_runner_check(p->model, &desc, &p->error));
    return wk_runner_find(p->model, &desc, &p->runner, &p->error);
}

static wick_status load_section(wick_prefixes *p) {
    const unsigned char *bytes;
    if (p->section == p->n_sections) {
        p->step = END;
        return WICK_OK;
    }
    WK_TRY(get(p, sizeof p->of, &bytes));
    memcpy(&p->of, bytes, sizeof p->of);
    WK_TRY(find_runner(p));
    if (wk_runner_is_stale(p->runner) || p->runner->is_running)
        return wk_fail(&p->error, WICK_ERR_STATE, "prefixes are loaded while no session computes");
    if (p->of.layout != layout_of(p->runner))
        return wk_fail(&p->error, WICK_ERR_MISMATCH,
                       "the prefixes were saved with other layers on the device");
    p->i = 0;
    p->section++;
    p->step = NODES;
    return reserve(p);
}

/* Into a block that is free; without one, or where the parent is missing, it is passed over. */
static wick_status add_node(wick_prefixes *p, const node_record *record,
                            const unsigned char *bytes) {
    wk_runner *const r = p->runner;
    const bool is_first = record->parent == NO_NODE;
    const uint32_t parent = is_first ? WK_NO_BLOCK : p->blocks[record->parent];
    p->blocks[p->i] = WK_NO_BLOCK;
    if (!is_first && parent == WK_NO_BLOCK) return WICK_OK;
    if (!is_first && r->prefixes.nodes[parent].n < WK_BLOCK_SIZE) return fail_damaged(p);
    const uint32_t block = wk_runner_take_block(r);
    if (block == WK_NO_BLOCK) return WICK_OK;
    for (uint32_t i = 0; i < r->n_stages; bytes += block_bytes(r, i++)) {
        const wick_status status =
            wk_state_unpack(r->net, wk_stage_state(r->stages[i]), WK_STATE_BLOCKS, block, bytes);
        if (status == WICK_OK) continue;
        wk_blocks_give(&r->pools[WK_POOL_BLOCKS], block);
        return status;
    }
    p->blocks[p->i] =
        wk_prefix_add(&r->prefixes, record->key, parent, record->tokens, record->n, block);
    if (p->blocks[p->i] != block) wk_blocks_give(&r->pools[WK_POOL_BLOCKS], block);
    return WICK_OK;
}

static wick_status load_node(wick_prefixes *p) {
    if (p->i == p->of.n_nodes) {
        p->i = 0;
        p->step = SNAPSHOTS;
        return WICK_OK;
    }
    const unsigned char *bytes;
    node_record record;
    WK_TRY(get(p, sizeof record + p->n_bytes, &bytes));
    memcpy(&record, bytes, sizeof record);
    if (record.n == 0 || record.n > WK_BLOCK_SIZE ||
        (record.parent != NO_NODE && record.parent >= p->i))
        return fail_damaged(p);
    WK_TRY(add_node(p, &record, bytes + sizeof record));
    p->i++;
    return WICK_OK;
}

static wick_status load_snapshot(wick_prefixes *p) {
    if (p->i == p->of.n_snapshots) {
        release(p);
        p->step = SECTION;
        return WICK_OK;
    }
    const unsigned char *bytes;
    snapshot_record record;
    const uint64_t before = p->offset;
    WK_TRY(get(p, sizeof record, &bytes));
    memcpy(&record, bytes, sizeof record);
    p->offset = before; /* until all of it is there */
    const uint32_t window = p->runner->hparams->window;
    if (!p->runner->has_snapshots || record.n == 0 || record.n > INT32_MAX ||
        record.begin != wk_window_begin(window, record.n) || record.n > p->source.size / 4)
        return fail_damaged(p);
    const size_t size = wk_snapshot_size(p->runner, record.n, record.begin);
    const size_t n_ids = record.n * sizeof(uint32_t);
    WK_TRY(get(p, sizeof record + n_ids + size, &bytes));
    uint32_t *const ids = wk_alloc(heap_of(p), n_ids);
    if (!ids) return wk_fail_memory(&p->error, n_ids, "prefixes");
    memcpy(ids, bytes + sizeof record, n_ids);
    wk_snapshot *const s = wk_snapshot_add(p->runner, record.key, ids, record.n, record.begin);
    if (s) memcpy(s->bytes, bytes + sizeof record + n_ids, size);
    wk_free(heap_of(p), ids, n_ids);
    p->i++;
    return WICK_OK;
}

static wick_status load_step(wick_prefixes *p) {
    switch (p->step) {
    case CHECK: WK_TRY(check_bytes(p)); break;
    case HEADER: WK_TRY(load_header(p)); break;
    case SECTION: WK_TRY(load_section(p)); break;
    case NODES: WK_TRY(load_node(p)); break;
    case SNAPSHOTS: WK_TRY(load_snapshot(p)); break;
    case END: return p->offset + sizeof(uint64_t) == p->source.size ? WICK_OK : fail_damaged(p);
    }
    return WICK_PENDING;
}

static wick_status load(wick_prefixes *p) {
    if (p->step > SECTION && p->step < END && clock_of(p) != p->clock)
        return wk_fail(&p->error, WICK_ERR_STATE, "sessions went on while prefixes were loaded");
    if (p->step > SECTION && p->step < END && wk_runner_is_stale(p->runner))
        return wk_fail(&p->error, WICK_ERR_DEVICE_LOST,
                       "the device was lost while prefixes were loaded");
    const wick_status status = load_step(p);
    p->clock = clock_of(p);
    return status;
}

/* --- The interface --- */

static wick_status start(wick_model *model, wick_prefixes **out, wick_error *error) {
    wick_prefixes *const p = wk_alloc_zeroed(model->heap, sizeof *p);
    if (!p) return wk_fail_memory(error, sizeof *p, "prefixes");
    p->model = model;
    p->status = WICK_PENDING;
    p->checksum = WK_CHECKSUM_BEGIN;
    *out = p;
    return WICK_OK;
}

wick_status wick_prefixes_save_start(wick_model *model, wick_write_fn write, void *user,
                                     wick_prefixes **prefixes, wick_error *error) {
    if (prefixes) *prefixes = NULL;
    if (!model || !write || !prefixes)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_prefixes_save_start: an argument is NULL");
    WK_TRY(start(model, prefixes, error));
    (*prefixes)->write = write;
    (*prefixes)->user = user;
    return WICK_OK;
}

wick_status wick_prefixes_load_start(wick_model *model, wick_source source,
                                     wick_prefixes **prefixes, wick_error *error) {
    if (prefixes) *prefixes = NULL;
    wick_status status = WICK_OK;
    if (!model || !prefixes || !source.read_at || !source.poll)
        status = wk_fail(error, WICK_ERR_ARGUMENT, "wick_prefixes_load_start: an argument is NULL");
    if (status == WICK_OK) status = start(model, prefixes, error);
    if (status != WICK_OK) {
        if (source.close) source.close(&source);
        return status;
    }
    (*prefixes)->source = source;
    wk_reader_init(&(*prefixes)->reader, model->heap, &(*prefixes)->source, true);
    return WICK_OK;
}

wick_status wick_prefixes_poll(wick_prefixes *prefixes) {
    if (!prefixes) return WICK_ERR_ARGUMENT;
    wick_prefixes *const p = prefixes;
    if (p->status != WICK_PENDING) return p->status;
    const wk_model_errors before = wk_model_borrow(p->model, &p->error);
    p->status = p->write ? save(p) : load(p);
    wk_model_give_back(p->model, before);
    if (p->status < 0) p->status = wk_pass_on(NULL, p->status, &p->error);
    return p->status;
}

wick_status wick_prefixes_finish(wick_prefixes *prefixes, wick_error *error) {
    if (!prefixes)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_prefixes_finish: prefixes is NULL");
    wick_prefixes *const p = prefixes;
    wick_status status = p->status;
    if (status == WICK_PENDING)
        status = wk_fail(&p->error, WICK_ERR_CANCELLED, "saving or loading prefixes was given up");
    (void)wk_pass_on(error, status, &p->error);
    release(p);
    if (!p->write) wk_reader_release(&p->reader);
    if (p->source.close) p->source.close(&p->source);
    wk_free(heap_of(p), p, sizeof *p);
    return status;
}
