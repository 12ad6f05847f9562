/* backend/cpu/ref/draw.c: one of a few ids by their weights, as sample/filters.c and
 * sample/sampler.c do it. */
#include "backend/cpu/ref/ref.h"

#include <math.h>

static double value_at(const wk_row *x, int64_t i) {
    double value;
    wk_row_load(x, i, 1, &value);
    return value;
}

/* How many of the first k top_p and min_p leave: at least one. */
static int64_t count_kept(const wk_draw *draw, const wk_row *x) {
    const double best = value_at(x, 0), least = best + log((double)draw->min_p);
    double total = 0, sum = 0;
    for (int64_t i = 0; i < draw->k; i++) total += exp(value_at(x, i) - best);
    const double most = draw->top_p < 1 ? (double)draw->top_p * total : INFINITY;
    int64_t n = 0;
    while (n < draw->k && (n == 0 || (sum < most && value_at(x, n) >= least)))
        sum += exp(value_at(x, n++) - best);
    return n;
}

static int64_t draw_from(const wk_draw *draw, const wk_row *x) {
    if (!(draw->temperature > 0)) return 0;
    const double best = value_at(x, 0), scale = 1 / (double)draw->temperature;
    const int64_t n = count_kept(draw, x);
    double total = 0;
    for (int64_t i = 0; i < n; i++) total += exp((value_at(x, i) - best) * scale);
    double left = (double)draw->u * total;
    int64_t drawn = n;
    do left -= exp((value_at(x, --drawn) - best) * scale);
    while (drawn > 0 && left >= 0); /* not where it is no number */
    return drawn;
}

static void run_draw(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase, (void)begin, (void)end;
    const wk_row y = wk_row_at(wk_dst(run->op, 0), 0), x = wk_row_at(wk_src(run->op, 0), 0);
    const wk_row ids = wk_row_at(wk_src(run->op, 1), 0);
    int64_t id;
    wk_row_load_integer(&ids, draw_from(&run->op->p.draw, &x), 1, &id);
    wk_row_store_integer(&y, 0, 1, &id);
}

const wk_cpu_kernel wk_draw_ref = {
    .base.name = "draw_ref",
    .base.code = WK_OP_DRAW,
    .base.is_reference = true,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .run = run_draw,
};
