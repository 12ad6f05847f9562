/* random_programs: runs random programs (random_program.h) on a device and on cpu/ref and compares
 * the result of every step; and gradients with central differences.
 *
 *   random_programs [--programs N] [--seed N] [--trace] [options of device_options.h]
 *
 * N programs of each kind (WICK_RANDOM_PROGRAMS, else 20), of 50 steps:
 *
 *   values     all dtypes. After a step that may round otherwise, the device gets the reference's
 *              result, so that each step is compared from equal operands; bits of integers and of
 *              what only moves data are equal
 *   order      the same with all reads at the end gives the same bits as with a read after each
 *              step and nothing fused
 *   gradients  of f64, against central differences of the reference
 *
 * Exit status: 0 all agreed, 1 some did not, 2 wrong use. */
#include "device_options.h"
#include "random_program.h"

#include "core/dtype.h"
#include "core/scalar.h"
#include "tensor/tensor.h"

#include <wick/grad.h>

#include <float.h>
#include <inttypes.h>
#include <math.h>

enum { STEPS = 50, MOST_BYTES = 1 << 12 };

typedef struct options {
    int64_t n_programs;
    uint64_t seed;
    bool is_tracing;
    wick_device_desc device;
} options;

typedef struct tally {
    int64_t programs, steps, refused, failures, elements, zeros, kinks, no_gradient;
    double worst; /* part of its bound */
} tally;

/* --- Values --- */

/* Of a bound: relative to an element, and to the largest one or 8, whichever is more: programs keep
 * their numbers around that, and a result may be what is left of larger ones. */
static double bound_of(wick_dtype dtype) {
    switch (dtype) {
    case WICK_F16: return 0x1p-8;
    case WICK_BF16: return 0x1p-5;
    case WICK_F64: return 1e-11;
    default: return 1e-5;
    }
}

static bool agree(const wick_tensor *x, const void *want, const void *got, tally *t) {
    const wick_dtype dtype = wick_tensor_dtype(x);
    if (memcmp(want, got, wick_tensor_bytes(x)) == 0) return true;
    if (!is_float(x)) return false;
    double largest = 8;
    for (int64_t i = 0; i < wick_tensor_size(x); i++) {
        const double v = fabs(wk_scalar_load(dtype, want, i));
        if (v > largest && isfinite(v)) largest = v;
    }
    for (int64_t i = 0; i < wick_tensor_size(x); i++) {
        const double v = wk_scalar_load(dtype, want, i), u = wk_scalar_load(dtype, got, i);
        if (v == u || (isnan(v) && isnan(u))) continue;
        const double part = fabs(v - u) / (bound_of(dtype) * largest);
        if (!(part <= 1)) return false;
        if (part > t->worst) t->worst = part;
    }
    return true;
}

static void describe(const program *p, const wick_tensor *x, const char *kind, uint64_t seed,
                     int64_t n, const char *what) {
    char text[64] = "";
    const wick_shape shape = x != NULL ? wick_tensor_shape(x) : WICK_SCALAR;
    printf("%s: seed %" PRIu64 ", step %" PRId64 ", %s", kind, seed, n, p->name);
    if (x != NULL)
        printf(" %s%s", wick_dtype_name(wick_tensor_dtype(x)),
               wk_shape_text(&shape, text, sizeof text));
    printf(": %s\n", what);
}

static void show_difference(const wick_tensor *x, const void *want, const void *got) {
    const wick_dtype dtype = wick_tensor_dtype(x);
    for (int64_t i = 0, n = 0; i < wick_tensor_size(x) && n < 4; i++) {
        const double v = wk_scalar_load(dtype, want, i), u = wk_scalar_load(dtype, got, i);
        if (v == u || (isnan(v) && isnan(u))) continue;
        printf("    element %" PRId64 ": %.17g, expected %.17g\n", i, u, v);
        n++;
    }
}

/* The reference's values for the device's tensor. */
static bool give(wick_tensor *to, const wick_tensor *like, const void *values) {
    if (!wk_view_is_writable(&to->view)) return false;
    wick_tensor *const x =
        wick_tensor_from_data(to->device, wick_tensor_dtype(like), wick_tensor_shape(like), values,
                              wick_tensor_bytes(like));
    const bool is_given = wick_copy(to, x) != NULL;
    wick_release(x);
    return is_given;
}

/* What one step gave on both devices; false: it differs. */
static bool compare_step(program *p, program *ref, wick_tensor *y, wick_tensor *want, uint64_t seed,
                         int64_t n, tally *t) {
    static unsigned char values[2][MOST_BYTES];
    wick_error error = {0}, expected = {0};
    (void)wick_device_error(p->device, &error);
    (void)wick_device_error(ref->device, &expected);
    if ((y == NULL) != (want == NULL) || error.status != expected.status) {
        describe(ref, NULL, "values", seed, n, "refused on one device only");
        printf("    device: %s\n    reference: %s\n", error.message, expected.message);
        return false;
    }
    if (y == NULL) {
        t->refused++;
        return true;
    }
    const size_t bytes = wick_tensor_bytes(want);
    const wick_shape shape = wick_tensor_shape(want), other = wick_tensor_shape(y);
    if (!wk_shape_equal(&shape, &other) || wick_tensor_dtype(y) != wick_tensor_dtype(want) ||
        bytes > MOST_BYTES) {
        describe(ref, want, "values", seed, n, "another shape or dtype");
        return false;
    }
    const wick_status status = wick_read(y, values[1], bytes);
    if (status != wick_read(want, values[0], bytes)) {
        (void)wick_device_error(p->device, &error);
        describe(ref, want, "values", seed, n, "read on one device only");
        printf("    device: %s\n", error.message);
        return false;
    }
    if (status != WICK_OK) return false;
    if (!agree(want, values[0], values[1], t)) {
        describe(ref, want, "values", seed, n, "differs");
        show_difference(want, values[0], values[1]);
        return false;
    }
    return memcmp(values[0], values[1], bytes) == 0 || give(y, want, values[0]);
}

static void check_values(const options *o, wick_device *device, wick_device *reference,
                         uint64_t seed, tally *t) {
    program p = {.device = device, .rng = {.seed = seed}};
    program ref = {.device = reference, .rng = {.seed = seed}};
    bool is_right = program_begin(&p) && program_begin(&ref);
    for (int64_t n = 0; n < STEPS && is_right; n++) {
        wick_tensor *const y = program_step(&p), *const want = program_step(&ref);
        if (o->is_tracing) describe(&ref, want, "values", seed, n, want ? "" : "refused");
        is_right = compare_step(&p, &ref, y, want, seed, n, t);
        t->steps++;
    }
    program_end(&p);
    program_end(&ref);
    t->programs++;
    t->failures += !is_right;
}

/* --- Order --- */

/* All of the pool's contents at the end. False: a read failed. */
static bool run_alone(wick_device *device, uint64_t seed, bool reads_each,
                      unsigned char contents[POOL][MOST_BYTES]) {
    static unsigned char unread[MOST_BYTES];
    program p = {.device = device, .rng = {.seed = seed}};
    bool is_right = program_begin(&p);
    for (int64_t n = 0; n < STEPS && is_right; n++) {
        wick_tensor *const y = program_step(&p);
        if (y == NULL) (void)wick_device_error(device, NULL);
        if (y != NULL && reads_each)
            is_right = wick_read(y, unread, wick_tensor_bytes(y)) == WICK_OK;
    }
    for (int i = 0; i < POOL && is_right; i++) {
        memset(contents[i], 0, MOST_BYTES);
        is_right = wick_read(p.pool[i], contents[i], wick_tensor_bytes(p.pool[i])) == WICK_OK;
    }
    program_end(&p);
    return is_right;
}

static void check_order(wick_device *device, wick_device *apart, uint64_t seed, tally *t) {
    static unsigned char contents[2][POOL][MOST_BYTES];
    const bool is_right = run_alone(apart, seed, true, contents[0]) &&
                          run_alone(device, seed, false, contents[1]) &&
                          memcmp(contents[0], contents[1], sizeof contents[0]) == 0;
    if (!is_right) {
        wick_error error = {0};
        (void)wick_device_error(device, &error);
        printf("order: seed %" PRIu64 ": reads at the end give other bits %s\n", seed,
               error.message);
    }
    t->programs++;
    t->steps += 2 * STEPS;
    t->failures += !is_right;
}

/* --- Gradients --- */

/* An element of the tensor of that number, which is moved by something. */
typedef struct move {
    int tensor;
    int64_t element;
    double by;
} move;

/* Adds the mean of x times numbers to a scalar. */
static wick_tensor *add_part(program *p, wick_tensor *sum, wick_tensor *x) {
    const double n = (double)wick_tensor_size(x);
    if (n == 0) return sum;
    wick_tensor *const weights = fresh(p, wick_tensor_dtype(x), wick_tensor_shape(x));
    wick_tensor *const part = wick_sum(wick_mul(x, weights), 0, NULL, false);
    return wick_add(sum, wick_affine(part, 1 / n, 0));
}

static void move_element(wick_tensor *x, const move *moved) {
    wick_tensor *const flat = wick_reshape(x, WICK_SHAPE(wick_tensor_size(x)));
    wick_tensor *const one = wick_narrow(flat, 0, moved->element, 1);
    (void)wick_copy(one, wick_affine(one, 1, moved->by));
}

/* Runs a program of which an element has been moved (NULL: none); a scalar of all its results. x:
 * its first tensors. All belongs to the scope that is open. */
static wick_tensor *run_smooth(program *p, const move *moved, wick_tape *tape,
                               wick_tensor *x[POOL]) {
    wick_tensor *sum = wick_zeros(p->device, p->dtype, WICK_SCALAR);
    if (!program_begin(p)) return NULL;
    if (moved != NULL) move_element(p->pool[moved->tensor], moved);
    for (int i = 0; i < POOL; i++) {
        x[i] = wick_reshape(p->pool[i], wick_tensor_shape(p->pool[i]));
        if (tape != NULL && wick_tape_watch(tape, x[i]) != WICK_OK) return NULL;
    }
    for (int64_t i = 0; i < STEPS; i++) {
        wick_tensor *const y = program_step(p);
        if (p->is_tracing) describe(p, y, "gradients", p->rng.seed, i, y != NULL ? "" : "refused");
        if (y != NULL)
            sum = add_part(p, sum, y);
        else
            (void)wick_device_error(p->device, NULL);
    }
    return sum;
}

static double value_at(wick_device *device, uint64_t seed, move moved, double by) {
    program p = {.device = device, .rng = {.seed = seed}, .is_smooth = true, .dtype = WICK_F64};
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *x[POOL];
    double value = NAN;
    moved.by = by;
    wick_tensor *const y = run_smooth(&p, &moved, NULL, x);
    if (y == NULL || wick_read_scalar(y, &value) != WICK_OK) value = NAN;
    program_end(&p);
    wick_scope_end(scope);
    return value;
}

/* Of one element; false: it is another one than the differences on both sides, which agree. */
static bool check_slope(wick_device *reference, uint64_t seed, move at, double got, tally *t) {
    const double h = 1e-5;
    const double here = value_at(reference, seed, at, 0);
    const double above = (value_at(reference, seed, at, h) - here) / h;
    const double below_it = (here - value_at(reference, seed, at, -h)) / h;
    const double want = (above + below_it) / 2, scale = 1 + fabs(want);
    if (!isfinite(want) || fabs(above - below_it) > 2e-3 * scale) {
        t->kinks++;
        return true;
    }
    t->elements++;
    t->zeros += want == 0;
    const double part = fabs(got - want) / (scale * (seed % 2 == 0 ? 2e-2 : 1e-3));
    if (part > t->worst) t->worst = part;
    if (part <= 1) return true;
    printf("gradients: seed %" PRIu64 ": element %" PRId64
           " of tensor %d is %.9g, expected %.9g (%.9g, %.9g)\n",
           seed, at.element, at.tensor, got, want, above, below_it);
    return false;
}

/* Why there is no gradient; true: one may be refused so. */
static bool may_refuse(wick_device *device, wick_status status, uint64_t seed, tally *t) {
    wick_error error = {0};
    (void)wick_device_error(device, &error);
    t->no_gradient++;
    if (getenv("WHY")) printf("why: %s\n", error.message);
    if (status == WICK_ERR_STATE || status == WICK_ERR_UNSUPPORTED) return true;
    printf("gradients: seed %" PRIu64 ": %s: %s\n", seed, wick_status_text(status), error.message);
    return false;
}

static void check_gradients(const options *o, wick_device *device, wick_device *reference,
                            uint64_t seed, tally *t) {
    program p = {.device = device,
                 .rng = {.seed = seed},
                 .is_smooth = true,
                 .dtype = seed % 2 == 0 ? WICK_F32 : WICK_F64,
                 .is_tracing = o->is_tracing};
    const wick_scope scope = wick_scope_begin(device);
    wick_tape *tape = NULL;
    wick_tensor *x[POOL], *grads[POOL] = {NULL};
    (void)wick_tape_begin(device, &tape);
    wick_tensor *const y = run_smooth(&p, NULL, tape, x);
    const wick_status status = wick_grad(tape, y, NULL, x, POOL, grads);
    bool is_right = status == WICK_OK || may_refuse(device, status, seed, t);
    for (int i = 0; i < POOL && is_right && status == WICK_OK; i++) {
        const int64_t n = wick_tensor_size(grads[i]);
        const move at = {.tensor = i, .element = (int64_t)(seed % (uint64_t)n)};
        unsigned char slopes[MOST_BYTES];
        is_right = wick_read(grads[i], slopes, wick_tensor_bytes(grads[i])) == WICK_OK &&
                   check_slope(reference, seed, at, wk_scalar_load(p.dtype, slopes, at.element), t);
    }
    wick_tape_end(tape);
    program_end(&p);
    wick_scope_end(scope);
    t->programs++;
    t->steps += STEPS;
    t->failures += !is_right;
}

/* --- Command line --- */

static bool parse(int argc, char **argv, options *o) {
    const char *const asked = getenv("WICK_RANDOM_PROGRAMS");
    *o = (options){.n_programs = asked != NULL ? atoll(asked) : 20, .seed = 1};
    o->device.backend = WICK_BACKEND_CPU;
    o->device.fusion = WICK_FUSION_ALWAYS;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0) {
            o->is_tracing = true;
        } else if (parse_webgpu(argc, argv, &i, &o->device.webgpu)) {
            continue;
        } else if (i + 1 == argc) {
            return false;
        } else if (strcmp(argv[i], "--programs") == 0) {
            o->n_programs = atoll(argv[++i]);
        } else if (strcmp(argv[i], "--seed") == 0) {
            o->seed = strtoull(argv[++i], NULL, 10);
        } else if (parse_device_pair(&o->device, argv[i], argv[i + 1])) {
            i++;
        } else {
            return false;
        }
    }
    return o->n_programs > 0;
}

/* apart: as device, but it fuses nothing. */
static int run(const options *o, wick_device *device, wick_device *apart, wick_device *reference) {
    tally values = {0}, order = {0}, gradients = {0};
    for (int64_t i = 0; i < o->n_programs; i++) {
        const uint64_t seed = o->seed + (uint64_t)i;
        check_values(o, device, reference, seed, &values);
        check_order(device, apart, seed, &order);
        check_gradients(o, device, reference, seed, &gradients);
    }
    printf("values: %" PRId64 " programs, %" PRId64 " steps (%" PRId64
           " refused), at most %.2g of the bound, %" PRId64 " failed\n",
           values.programs, values.steps, values.refused, values.worst, values.failures);
    printf("order: %" PRId64 " programs, %" PRId64 " steps, %" PRId64 " failed\n", order.programs,
           order.steps, order.failures);
    printf("gradients: %" PRId64 " programs (%" PRId64 " without one), %" PRId64
           " elements (%" PRId64 " are 0), %" PRId64 " at kinks, at most %.2g of the "
           "bound, %" PRId64 " failed\n",
           gradients.programs, gradients.no_gradient, gradients.elements, gradients.zeros,
           gradients.kinks, gradients.worst, gradients.failures);
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    printf("%" PRIu64 " operations, %" PRIu64 " fused, %" PRIu64 " unread, %" PRIu64
           " dispatches, %" PRIu64 " fallbacks\n",
           stats.n_ops, stats.n_fused, stats.n_unread, stats.n_dispatches, stats.n_fallbacks);
    return values.failures + order.failures + gradients.failures > 0;
}

int main(int argc, char **argv) {
    options o;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: random_programs [--programs N] [--seed N] [--trace] "
                        "[--backend NAME] [--null WORDS]\n                [--isa NAME] "
                        "[--threads N] [--fusion NAME] " WEBGPU_USAGE "\n");
        return 2;
    }
    const wick_device_desc plain = {.backend = WICK_BACKEND_CPU,
                                    .isa = WICK_ISA_REF,
                                    .n_threads = 1,
                                    .fusion = WICK_FUSION_OFF};
    wick_device_desc unfused = o.device;
    unfused.fusion = WICK_FUSION_OFF;
    wick_device *device = NULL, *apart = NULL, *reference = NULL;
    wick_error error = {0};
    int status = 2;
    if (wick_device_open(&o.device, &device, &error) == WICK_OK &&
        wick_device_open(&unfused, &apart, &error) == WICK_OK &&
        wick_device_open(&plain, &reference, &error) == WICK_OK)
        status = run(&o, device, apart, reference);
    else
        fprintf(stderr, "random_programs: %s\n", error.message);
    wick_device_close(reference);
    wick_device_close(apart);
    wick_device_close(device);
    return status;
}
