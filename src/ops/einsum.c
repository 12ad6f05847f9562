/* ops/einsum.c: sums of products of labelled dims, two tensors at a time, each pair by one product
 * of matrices:
 *
 *   bhid,bhjd->bhij: labels of both that stay (b h) are batches, those that go (d) the inner dim,
 *   those of one (i, j) rows and columns: [bh, i, d] times [bh, d, j]. */
#include <wick/ops.h>

#include "core/shape.h"
#include "ops/compose.h"

#include <inttypes.h>
#include <string.h>

/* Letters are labels by their code. The dims that "..." stands for are ELLIPSIS + k, counted from
 * their end, so that those of tensors of different rank meet. */
enum { ELLIPSIS = 128, N_LABELS = ELLIPSIS + WICK_MAX_RANK };

typedef struct labels {
    int n, at[WICK_MAX_RANK];
} labels;

/* A tensor and the labels of its dims. */
typedef struct term {
    wick_tensor *x;
    labels labels;
} term;

typedef struct problem {
    wick_device *device;
    const char *text;
    size_t count;
    term term[WICK_EINSUM_MAX];
    labels result;
    int64_t extent[N_LABELS];
    int n_ellipsis; /* the most dims that "..." stands for */
} problem;

static bool refuse(const problem *p, wick_status status, const char *what) {
    wk_device_fail(p->device, status, "einsum: '%s': %s", p->text, what);
    return false;
}

/* --- Reading --- */

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* Labels up to a comma, an arrow or the end, which is returned; NULL: there are others, or more
 * than dims. ellipsis: how many dims it stands for; *has_ellipsis: whether it is there. */
static const char *read_labels(const char *at, int ellipsis, bool *has_ellipsis, labels *out) {
    *out = (labels){0};
    *has_ellipsis = false;
    while (*at != '\0' && *at != ',' && *at != '-') {
        const bool is_ellipsis = !*has_ellipsis && strncmp(at, "...", 3) == 0;
        const int n = is_ellipsis ? ellipsis : is_letter(*at) ? 1 : 0;
        if (out->n + n > WICK_MAX_RANK) return NULL;
        for (int k = n - 1; k >= 0; k--) out->at[out->n++] = is_ellipsis ? ELLIPSIS + k : *at;
        if (!is_ellipsis && n == 0 && *at != ' ') return NULL;
        *has_ellipsis |= is_ellipsis;
        at += is_ellipsis ? 3 : 1;
    }
    return at;
}

/* Labels of one operand, of which "..." has those dims that no letter has. */
static const char *read_operand(problem *p, const char *at, term *t) {
    bool has_ellipsis;
    const char *const end = read_labels(at, 0, &has_ellipsis, &t->labels);
    const int rest = t->x->view.rank - t->labels.n;
    if (!end || rest < 0 || (rest > 0 && !has_ellipsis)) return NULL;
    if (rest > p->n_ellipsis) p->n_ellipsis = rest;
    return read_labels(at, rest, &has_ellipsis, &t->labels);
}

/* Those that occur once, after the dims of "...". */
static bool imply_result(problem *p) {
    int n_uses[N_LABELS] = {0};
    for (size_t i = 0; i < p->count; i++)
        for (int d = 0; d < p->term[i].labels.n; d++) n_uses[p->term[i].labels.at[d]]++;
    for (int k = p->n_ellipsis - 1; k >= 0; k--) p->result.at[p->result.n++] = ELLIPSIS + k;
    for (int label = 0; label < ELLIPSIS; label++) {
        if (n_uses[label] != 1) continue;
        if (p->result.n == WICK_MAX_RANK) return refuse(p, WICK_ERR_SHAPE, "too many dims");
        p->result.at[p->result.n++] = label;
    }
    return true;
}

static bool read_text(problem *p) {
    const char *at = p->text;
    for (size_t i = 0; i < p->count; i++) {
        at = read_operand(p, at, &p->term[i]);
        if (!at || (i + 1 < p->count) != (*at == ','))
            return refuse(p, WICK_ERR_VALUE, "not the labels of these operands");
        if (*at == ',') at++;
    }
    if (*at == '\0') return imply_result(p);
    bool has_ellipsis;
    at = strncmp(at, "->", 2) == 0 ? read_labels(at + 2, p->n_ellipsis, &has_ellipsis, &p->result)
                                   : NULL;
    return (at && *at == '\0') || refuse(p, WICK_ERR_VALUE, "not the labels of a result");
}

/* --- Labels and extents --- */

static int place_of(const labels *l, int label) {
    for (int d = 0; d < l->n; d++)
        if (l->at[d] == label) return d;
    return -1;
}

static bool has_label(const labels *l, int label) { return place_of(l, label) >= 0; }

static bool refuse_extents(const problem *p, int label, int64_t a, int64_t b) {
    const char letter[] = {(char)label, '\0'};
    wk_device_fail(p->device, WICK_ERR_SHAPE,
                   "einsum: '%s': %s has the extents %" PRId64 " and %" PRId64, p->text,
                   label < ELLIPSIS ? letter : "...", a, b);
    return false;
}

/* One extent for each label; extents of 1 are repeated. */
static bool find_extents(problem *p) {
    for (size_t i = 0; i < p->count; i++) {
        const term *const t = &p->term[i];
        for (int d = 0; d < t->labels.n; d++) {
            int64_t *const extent = &p->extent[t->labels.at[d]];
            const int64_t own = t->x->view.extent[d];
            if (*extent == -1 || *extent == 1) *extent = own;
            if (own != *extent && own != 1) return refuse_extents(p, t->labels.at[d], *extent, own);
        }
    }
    for (int d = 0; d < p->result.n; d++) {
        if (p->extent[p->result.at[d]] == -1)
            return refuse(p, WICK_ERR_VALUE, "the result has a label that no operand has");
        for (int e = 0; e < d; e++)
            if (p->result.at[e] == p->result.at[d])
                return refuse(p, WICK_ERR_VALUE, "the result has a label twice");
    }
    return true;
}

/* --- Computing --- */

/* Extents of 1 repeated, and a diagonal for labels that occur twice. */
static void prepare(const problem *p, term *t) {
    wick_shape shape = {.rank = t->labels.n};
    for (int d = 0; d < t->labels.n; d++) shape.extent[d] = p->extent[t->labels.at[d]];
    t->x = wick_expand(wk_widened(t->x), shape);
    for (int d = 0; d < t->labels.n; d++) {
        const int label = t->labels.at[d], first = place_of(&t->labels, label);
        if (first == d) continue;
        t->x = wick_diagonal(t->x, 0, first, d);
        labels rest = {0};
        for (int e = 0; e < t->labels.n; e++)
            if (e != first && e != d) rest.at[rest.n++] = t->labels.at[e];
        rest.at[rest.n++] = label;
        t->labels = rest;
        d = -1;
    }
}

/* Sums over labels that neither `a` nor `b` has. */
static void sum_unused(term *t, const labels *a, const bool *b) {
    int dims[WICK_MAX_RANK], n = 0;
    labels kept = {0};
    for (int d = 0; d < t->labels.n; d++) {
        const int label = t->labels.at[d];
        if (b[label] || (a && has_label(a, label)))
            kept.at[kept.n++] = label;
        else
            dims[n++] = d;
    }
    if (n > 0) t->x = wick_sum(t->x, n, dims, false);
    t->labels = kept;
}

/* t as [batches, rows, inner] or, the right one, [batches, inner, columns]. */
static wick_tensor *as_matrices(const problem *p, const term *t, const labels groups[3]) {
    int order[WICK_MAX_RANK], n = 0;
    wick_shape shape = {.rank = 3, .extent = {1, 1, 1}};
    for (int g = 0; g < 3; g++) {
        for (int i = 0; i < groups[g].n; i++) {
            order[n++] = place_of(&t->labels, groups[g].at[i]);
            shape.extent[g] *= p->extent[groups[g].at[i]];
        }
    }
    return wick_reshape(wick_permute(t->x, n, order), shape);
}

/* a becomes the product of a and b, summed over what is not needed after it. */
static bool multiply(const problem *p, term *a, term *b, const bool *is_needed) {
    sum_unused(a, &b->labels, is_needed);
    sum_unused(b, &a->labels, is_needed);
    labels batches = {0}, inner = {0}, rows = {0}, columns = {0};
    for (int d = 0; d < a->labels.n; d++) {
        const int label = a->labels.at[d];
        labels *const group = !has_label(&b->labels, label) ? &rows
                              : is_needed[label]            ? &batches
                                                            : &inner;
        group->at[group->n++] = label;
    }
    for (int d = 0; d < b->labels.n; d++)
        if (!has_label(&a->labels, b->labels.at[d])) columns.at[columns.n++] = b->labels.at[d];
    if (batches.n + rows.n + columns.n > WICK_MAX_RANK)
        return refuse(p, WICK_ERR_SHAPE, "a product has too many dims");
    const labels left[3] = {batches, rows, inner}, right[3] = {batches, inner, columns};
    wick_tensor *const y = wick_matmul(as_matrices(p, a, left), as_matrices(p, b, right));
    const labels *const groups[] = {&batches, &rows, &columns};
    wick_shape shape = {.rank = 0};
    for (size_t g = 0; g < WK_COUNT(groups); g++)
        for (int i = 0; i < groups[g]->n; i++) {
            a->labels.at[shape.rank] = groups[g]->at[i];
            shape.extent[shape.rank++] = p->extent[groups[g]->at[i]];
        }
    a->labels.n = shape.rank;
    a->x = wick_reshape(y, shape);
    return true;
}

static wick_tensor *compute(problem *p) {
    for (size_t i = 0; i < p->count; i++) prepare(p, &p->term[i]);
    for (size_t i = 1; i < p->count; i++) {
        bool is_needed[N_LABELS] = {false}; /* after this product */
        for (int d = 0; d < p->result.n; d++) is_needed[p->result.at[d]] = true;
        for (size_t k = i + 1; k < p->count; k++)
            for (int d = 0; d < p->term[k].labels.n; d++) is_needed[p->term[k].labels.at[d]] = true;
        if (!multiply(p, &p->term[0], &p->term[i], is_needed)) return NULL;
    }
    const bool none[N_LABELS] = {false};
    sum_unused(&p->term[0], &p->result, none);
    int order[WICK_MAX_RANK];
    for (int d = 0; d < p->result.n; d++) order[d] = place_of(&p->term[0].labels, p->result.at[d]);
    return wick_permute(p->term[0].x, p->result.n, order);
}

wick_tensor *wick_einsum(const char *text, wick_tensor *const *x, size_t count) {
    const bool is_too_many = count > WICK_EINSUM_MAX;
    if (!x || count == 0 || !wk_operands_present("einsum", x, is_too_many ? 1 : count)) return NULL;
    problem p = {.device = x[0]->device, .text = text ? text : "", .count = count};
    if (!text || is_too_many) {
        (void)refuse(&p, WICK_ERR_VALUE, text ? "too many operands" : "there is no text");
        return NULL;
    }
    if (!wk_operands_are_floats("einsum", x, count, count)) return NULL;
    for (size_t i = 0; i < count; i++) p.term[i].x = x[i];
    for (int i = 0; i < N_LABELS; i++) p.extent[i] = -1;
    if (!read_text(&p) || !find_extents(&p)) return NULL;
    const wick_scope scope = wk_operation_begin(p.device, "einsum");
    wick_tensor *const y = wk_promoted(compute(&p), x[0]->view.dtype);
    return wick_scope_result(scope, wk_fresh(y, x[0]));
}
