/* bench/compare_onednn.c: convolutions and pools by oneDNN 2, which runs its threads by OpenMP.
 *
 * A convolution is faster in an order of its own than in that of the tensors, but then x and y have
 * to be reordered: both ways are timed, and the faster one is run. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "compare.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { X, FILTERS, Y, N_MEMORIES, MOST_STEPS = 3 };

typedef struct step {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[N_MEMORIES];
    int n_args;
} step;

struct other_windows {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    step steps[MOST_STEPS];
    int n_steps;
    dnnl_memory_t memories[2 * N_MEMORIES];
    int n_memories;
};

static dnnl_memory_t add_memory(other_windows *o, const dnnl_memory_desc_t *desc, void *data) {
    dnnl_memory_t *const memory = &o->memories[o->n_memories];
    void *const handle = data ? data : DNNL_MEMORY_ALLOCATE;
    if (dnnl_memory_create(memory, desc, o->engine, handle) != dnnl_success) return NULL;
    o->n_memories++;
    return *memory;
}

static bool add_step(other_windows *o, dnnl_primitive_desc_t desc, const dnnl_exec_arg_t *args,
                     int n_args) {
    step *const s = &o->steps[o->n_steps];
    const dnnl_status_t status = dnnl_primitive_create(&s->primitive, desc);
    dnnl_primitive_desc_destroy(desc);
    if (status != dnnl_success) return false;
    memcpy(s->args, args, (size_t)n_args * sizeof *args);
    s->n_args = n_args;
    o->n_steps++;
    return true;
}

static bool add_reorder(other_windows *o, dnnl_memory_t from, dnnl_memory_t to) {
    const dnnl_memory_desc_t *from_desc, *to_desc;
    dnnl_memory_get_memory_desc(from, &from_desc);
    dnnl_memory_get_memory_desc(to, &to_desc);
    dnnl_primitive_desc_t desc;
    if (dnnl_reorder_primitive_desc_create(&desc, from_desc, o->engine, to_desc, o->engine, NULL) !=
        dnnl_success)
        return false;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    return add_step(o, desc, args, 2);
}

static dnnl_memory_desc_t desc_of(int rank, const dnnl_dims_t dims, dnnl_format_tag_t tag) {
    dnnl_memory_desc_t desc;
    (void)dnnl_memory_desc_init_by_tag(&desc, rank, dims, dnnl_f32, tag);
    return desc;
}

void onednn_run(other_windows *o) {
    for (int i = 0; i < o->n_steps; i++)
        dnnl_primitive_execute(o->steps[i].primitive, o->stream, o->steps[i].n_args,
                               o->steps[i].args);
    dnnl_stream_wait(o->stream);
}

void onednn_done(other_windows *o) {
    if (!o) return;
    for (int i = 0; i < o->n_steps; i++) dnnl_primitive_destroy(o->steps[i].primitive);
    for (int i = 0; i < o->n_memories; i++) dnnl_memory_destroy(o->memories[i]);
    if (o->stream) dnnl_stream_destroy(o->stream);
    if (o->engine) dnnl_engine_destroy(o->engine);
    free(o);
}

/* The memory that a primitive wants in the place of one in the tensors' order. */
static dnnl_memory_t wanted(other_windows *o, const_dnnl_primitive_desc_t desc, dnnl_query_t what,
                            dnnl_memory_t plain) {
    const dnnl_memory_desc_t *const want = dnnl_primitive_desc_query_md(desc, what, 0);
    const dnnl_memory_desc_t *have;
    dnnl_memory_get_memory_desc(plain, &have);
    return dnnl_memory_desc_equal(want, have) ? plain : add_memory(o, want, NULL);
}

/* Runs a reorder once, ahead of the measurement. */
static bool reorder_now(other_windows *o, dnnl_memory_t from, dnnl_memory_t to) {
    if (from == to) return true;
    if (!add_reorder(o, from, to)) return false;
    onednn_run(o);
    dnnl_primitive_destroy(o->steps[--o->n_steps].primitive);
    return true;
}

static bool make_conv(other_windows *o, const windows *w, bool is_plain, const float *x,
                      const float *weight, float *y) {
    const int64_t out = windows_out(w), g = w->groups;
    const dnnl_dims_t dims_x = {w->n, w->c, w->h, w->h}, dims_y = {w->n, w->m, out, out};
    const dnnl_dims_t dims_w = {w->m, w->c / g, w->kernel, w->kernel};
    const dnnl_dims_t dims_g = {g, w->m / g, w->c / g, w->kernel, w->kernel};
    const dnnl_dims_t strides = {w->stride, w->stride}, padding = {w->padding, w->padding};
    const dnnl_dims_t *const filter_dims = g > 1 ? &dims_g : &dims_w;
    const int rank = g > 1 ? 5 : 4;
    const dnnl_format_tag_t tag = is_plain ? dnnl_nchw : dnnl_format_tag_any;
    const dnnl_memory_desc_t any_x = desc_of(4, dims_x, tag), any_y = desc_of(4, dims_y, tag);
    const dnnl_memory_desc_t any_w = desc_of(rank, *filter_dims, dnnl_format_tag_any);
    const dnnl_memory_desc_t plain_x = desc_of(4, dims_x, dnnl_nchw);
    const dnnl_memory_desc_t plain_y = desc_of(4, dims_y, dnnl_nchw);
    const dnnl_memory_desc_t plain_w = desc_of(rank, *filter_dims, g > 1 ? dnnl_goihw : dnnl_oihw);
    dnnl_convolution_desc_t conv;
    dnnl_primitive_desc_t desc;
    if (dnnl_convolution_forward_desc_init(&conv, dnnl_forward_inference, dnnl_convolution_direct,
                                           &any_x, &any_w, NULL, &any_y, strides, padding,
                                           padding) != dnnl_success ||
        dnnl_primitive_desc_create(&desc, &conv, NULL, o->engine, NULL) != dnnl_success)
        return false;
    dnnl_memory_t const given_x = add_memory(o, &plain_x, (void *)(uintptr_t)x);
    dnnl_memory_t const given_w = add_memory(o, &plain_w, (void *)(uintptr_t)weight);
    dnnl_memory_t const given_y = add_memory(o, &plain_y, y);
    dnnl_memory_t const own_x = wanted(o, desc, dnnl_query_src_md, given_x);
    dnnl_memory_t const own_w = wanted(o, desc, dnnl_query_weights_md, given_w);
    dnnl_memory_t const own_y = wanted(o, desc, dnnl_query_dst_md, given_y);
    if (!reorder_now(o, given_w, own_w)) return false;
    const dnnl_exec_arg_t args[] = {
        {DNNL_ARG_SRC, own_x}, {DNNL_ARG_WEIGHTS, own_w}, {DNNL_ARG_DST, own_y}};
    return (own_x == given_x || add_reorder(o, given_x, own_x)) && add_step(o, desc, args, 3) &&
           (own_y == given_y || add_reorder(o, own_y, given_y));
}

static bool make_pool(other_windows *o, const windows *w, const float *x, float *y) {
    const int64_t out = windows_out(w);
    const dnnl_dims_t dims_x = {w->n, w->c, w->h, w->h}, dims_y = {w->n, w->c, out, out};
    const dnnl_dims_t strides = {w->stride, w->stride}, padding = {w->padding, w->padding};
    const dnnl_dims_t kernel = {w->kernel, w->kernel};
    const dnnl_memory_desc_t plain_x = desc_of(4, dims_x, dnnl_nchw);
    const dnnl_memory_desc_t plain_y = desc_of(4, dims_y, dnnl_nchw);
    dnnl_pooling_desc_t pool;
    dnnl_primitive_desc_t desc;
    if (dnnl_pooling_forward_desc_init(
            &pool, dnnl_forward_inference,
            w->is_max ? dnnl_pooling_max : dnnl_pooling_avg_exclude_padding, &plain_x, &plain_y,
            strides, kernel, padding, padding) != dnnl_success ||
        dnnl_primitive_desc_create(&desc, &pool, NULL, o->engine, NULL) != dnnl_success)
        return false;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, add_memory(o, &plain_x, (void *)(uintptr_t)x)},
                                    {DNNL_ARG_DST, add_memory(o, &plain_y, y)}};
    return add_step(o, desc, args, 2);
}

static other_windows *make(const windows *w, bool is_plain, const float *x, const float *weight,
                           float *y) {
    other_windows *const o = calloc(1, sizeof *o);
    if (!o) return NULL;
    if (dnnl_engine_create(&o->engine, dnnl_cpu, 0) == dnnl_success &&
        dnnl_stream_create(&o->stream, o->engine, dnnl_stream_default_flags) == dnnl_success &&
        (weight ? make_conv(o, w, is_plain, x, weight, y) : make_pool(o, w, x, y)))
        return o;
    onednn_done(o);
    return NULL;
}

static double seconds_of(other_windows *o) {
    struct timespec begin, end;
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        clock_gettime(CLOCK_MONOTONIC, &begin);
        onednn_run(o);
        clock_gettime(CLOCK_MONOTONIC, &end);
        const double seconds =
            (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
        if (seconds < best) best = seconds;
    }
    return best;
}

bool onednn_make(const windows *w, int n_threads, const float *x, const float *weight, float *y,
                 other_windows **out) {
    void (*set_threads)(int);
    *(void **)&set_threads = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (set_threads) set_threads(n_threads);
    other_windows *plain = make(w, true, x, weight, y);
    other_windows *own = weight ? make(w, false, x, weight, y) : NULL;
    if (plain && own) {
        other_windows **const slower = seconds_of(plain) < seconds_of(own) ? &own : &plain;
        onednn_done(*slower);
        *slower = NULL;
    }
    *out = plain ? plain : own;
    return *out != NULL;
}
