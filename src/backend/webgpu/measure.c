/* backend/webgpu/measure.c: what a device can do at most: reading memory, products of float32 and
 * of packed bytes; and what it takes to make a buffer, a pipeline, and to hear from it. By the
 * clock of the host, on work that takes long enough for it. Native only. */
#include "backend/webgpu/table.h"

#include "backend/webgpu/cache.h"
#include "backend/webgpu/encoder.h"
#include "backend/webgpu/memory.h"
#include "backend/webgpu/read.h"
#include "backend/webgpu/submit.h"
#include "backend/webgpu/ticket.h"
#include "backend/webgpu/upload.h"
#include "backend/webgpu/webgpu_state.h"
#include "sys/clock.h"

enum {
    READ_BYTES = 1 << 28, /* more than caches hold, where a binding may be so large */
    GROUPS = 1024,
    THREADS = 256,                  /* of a group, as the sources have it */
    VECTORS_OF_GROUP = 4 * THREADS, /* read in one step */
    FIRST_ROUNDS = 16,
    MOST_ROUNDS = 1 << 24,
    OPERATIONS = 64, /* of a round */
    N_TIMES = 8,     /* repetitions of a quick run; the best counts */
    SMALL_BYTES = 1 << 20,
};

static const double long_enough = 0.05; /* seconds */

#define SOURCE(file)                                                                               \
    {.name = #file, .parts = {wk_wgsl_##file}, .operands = {"y", "x"}, .constants = {"SALT"}}
static const wk_source read_source = SOURCE(measure_read);
static const wk_source f32_source = SOURCE(measure_math);
static const wk_source integer_source = SOURCE(measure_dot4);
#undef SOURCE

static double now(void) { return 1e-9 * (double)wk_clock_ns(); }

/* n: vectors or rounds. */
typedef struct job {
    const wk_source *source;
    uint32_t needs;       /* WICK_WEBGPU_* */
    const wk_view *views; /* y, where nothing is written, and x, which is read */
    uint32_t n, n_groups;
    uint32_t n_dispatches;
} job;

static wick_status wait_for_all(wk_backend_device *dev, wick_error *err) {
    WK_TRY(wk_webgpu_flush(dev, err));
    return wk_webgpu_drain(dev, 0, err);
}

/* salt: makes a program that is not in any compiler's cache yet. */
static void describe(const job *j, int32_t salt, wk_dispatch *d) {
    wk_dispatch_begin(d, j->source, j->needs);
    d->program.constants[0] = salt;
    wk_dispatch_bind(d, 0, &j->views[0], WK_FORM_WORDS, true);
    wk_dispatch_bind(d, 1, &j->views[1], WK_FORM_VECTORS, false);
}

static wick_status encode(wk_backend_device *dev, const job *j, wick_error *err) {
    wk_encoder e = {.dev = dev, .recorder = &dev->recorder, .code = WK_OP_COPY, .err = err};
    for (uint32_t i = 0; i < j->n_dispatches; i++) {
        wk_dispatch d;
        describe(j, 0, &d);
        WK_TRY(wk_dispatch_place(&e, &d));
        wk_dispatch_u32(&d, j->n);
        wk_dispatch_u32(&d, d.first[0]);
        wk_dispatch_u32(&d, d.first[1]);
        WK_TRY(wk_dispatch_run_n(&e, &d, j->n_groups));
    }
    return WICK_OK;
}

static wick_status time_once(wk_backend_device *dev, const job *j, double *seconds,
                             wick_error *err) {
    const double begin = now();
    WK_TRY(encode(dev, j, err));
    WK_TRY(wait_for_all(dev, err));
    *seconds = now() - begin;
    return WICK_OK;
}

/* Doubles *amount, which is one of j's numbers, until that takes long enough: work of it done in a
 * second. */
static wick_status measure_rate(wk_backend_device *dev, job *j, uint32_t *amount, double work,
                                double *rate, wick_error *err) {
    double seconds;
    WK_TRY(time_once(dev, j, &seconds, err)); /* compiles */
    for (;; *amount *= 2) {
        WK_TRY(time_once(dev, j, &seconds, err));
        if (seconds >= long_enough || *amount >= MOST_ROUNDS) break;
    }
    *rate = work * *amount / seconds;
    return WICK_OK;
}

static wick_status measure_rates(wk_backend_device *dev, const wk_view views[2],
                                 wick_device_limits *out, wick_error *err) {
    const double math = (double)(OPERATIONS * GROUPS * THREADS);
    const uint32_t n = (uint32_t)(views[1].buf->size / 16);
    const uint32_t n_groups = n / VECTORS_OF_GROUP < GROUPS ? n / VECTORS_OF_GROUP : GROUPS;
    job j = {.source = &read_source, .views = views, .n = n, .n_groups = n_groups};
    j.n_dispatches = 1;
    /* The source reads only whole steps of all groups and leaves out the rest. */
    const uint32_t step = n_groups * VECTORS_OF_GROUP;
    const double bytes = step > 0 ? 16.0 * (double)(n / step * step) : 0;
    if (step > 0)
        WK_TRY(measure_rate(dev, &j, &j.n_dispatches, bytes, &out->read_bytes_per_second, err));
    j = (job){.source = &f32_source, .views = views, .n = FIRST_ROUNDS, .n_groups = GROUPS};
    j.n_dispatches = 1;
    WK_TRY(measure_rate(dev, &j, &j.n, math, &out->f32_ops_per_second, err));
    if (!(dev->adapter.features & WICK_WEBGPU_DOT4)) return WICK_OK;
    j.source = &integer_source;
    j.needs = WICK_WEBGPU_DOT4;
    j.n = FIRST_ROUNDS;
    return measure_rate(dev, &j, &j.n, math, &out->integer_ops_per_second, err);
}

/* --- Latencies --- */

static void keep_least(double *least, double seconds) {
    if (*least == 0 || seconds < *least) *least = seconds;
}

static wick_status time_buffer(wk_backend_device *dev, double *seconds, wick_error *err) {
    wk_gpu_buffer *buffer;
    const double begin = now();
    WK_TRY(wk_gpu_buffer_make(dev->gpu, WK_GPU_STORAGE, SMALL_BYTES, &buffer, err));
    wk_gpu_buffer_release(dev->gpu, buffer);
    keep_least(seconds, now() - begin);
    return WICK_OK;
}

/* A word there and back. */
static wick_status time_round_trip(wk_backend_device *dev, wk_buffer *buffer, double *seconds,
                                   wick_error *err) {
    uint32_t word = 1;
    wk_ticket ticket;
    const double begin = now();
    WK_TRY(wk_webgpu_upload(dev, buffer, 0, &word, sizeof word, err));
    WK_TRY(wk_webgpu_read_start(dev, buffer, 0, sizeof word, &ticket, err));
    const wick_status status = wk_webgpu_wait(dev, ticket, err);
    const wick_status finished =
        wk_webgpu_read_finish(dev, ticket, status == WICK_OK ? &word : NULL, err);
    keep_least(seconds, now() - begin);
    return status == WICK_OK ? finished : status;
}

static wick_status time_pipeline(wk_backend_device *dev, const wk_view views[2], double *seconds,
                                 wick_error *err) {
    const job j = {.source = &read_source, .views = views};
    wk_encoder e = {.dev = dev, .recorder = &dev->recorder, .code = WK_OP_COPY, .err = err};
    wk_pipeline_entry *entry;
    wk_dispatch d;
    describe(&j, (int32_t)(wk_clock_ns() & INT32_MAX), &d);
    WK_TRY(wk_dispatch_place(&e, &d));
    const double begin = now();
    WK_TRY(wk_cache_pipeline(dev, NULL, &d.program, &entry, err));
    (void)wk_cache_wait(dev, dev->cache.n_pipelines);
    *seconds = now() - begin;
    return WICK_OK;
}

static wick_status allocate(wk_backend_device *dev, uint64_t bytes, wk_view *out, wick_error *err) {
    const int64_t words = (int64_t)(bytes / 4);
    const wick_shape shape = wick_shape_of(1, &words);
    (void)wk_view_dense(WICK_U32, &shape, out, &bytes);
    return wk_webgpu_alloc(dev, bytes, 0, &out->buf, err);
}

/* In the digits that a tuning has for it, and not 0. */
static uint32_t in_millions(double rate) {
    static const double most = 999999999;
    return (uint32_t)(rate < 1e6 ? 1 : rate < 1e6 * most ? rate / 1e6 : most);
}

/* Of a device without packed dot products, what was known stays. */
static void note_rates(wk_backend_device *dev, const wick_device_limits *limits) {
    if (limits->integer_ops_per_second == 0) return;
    dev->f32_rate = in_millions(limits->f32_ops_per_second);
    dev->integer_rate = in_millions(limits->integer_ops_per_second);
    wk_webgpu_choose_features(dev);
}

wick_status wk_webgpu_measure(wk_backend_device *dev, wick_device_limits *out, wick_error *err) {
    const uint64_t bytes = dev->block_bytes < READ_BYTES ? dev->block_bytes : READ_BYTES;
    wk_view views[2] = {{.buf = NULL}};
    wick_status status = wait_for_all(dev, err);
    if (status == WICK_OK) status = allocate(dev, 16, &views[0], err);
    if (status == WICK_OK) status = allocate(dev, bytes, &views[1], err);
    if (status == WICK_OK) status = measure_rates(dev, views, out, err);
    for (int i = 0; i < N_TIMES && status == WICK_OK; i++) {
        status = time_buffer(dev, &out->buffer_seconds, err);
        if (status == WICK_OK)
            status = time_round_trip(dev, views[0].buf, &out->round_trip_seconds, err);
    }
    if (status == WICK_OK) status = time_pipeline(dev, views, &out->pipeline_seconds, err);
    for (int i = 0; i < 2; i++)
        if (views[i].buf) wk_webgpu_free(dev, views[i].buf);
    if (status != WICK_OK)
        *out = (wick_device_limits){0};
    else
        note_rates(dev, out);
    return status;
}
