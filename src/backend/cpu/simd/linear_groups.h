/* simd/linear_groups.h: the rows of a product by the weight that multiplies them. All rows of
 * linear are one group. Those of linear_experts are sorted by expert first, in phase 0; a group are
 * the rows of one expert that has any. The items of the last phase are panels, group by group. */
#ifndef WK_SIMD_LINEAR_GROUPS_H
#define WK_SIMD_LINEAR_GROUPS_H

#include "backend/cpu/simd/linear_operands.h"

#include <assert.h>
#include <string.h>

/* Phases of a kernel: rows are sorted, x is packed, panels are multiplied. */
enum { LINEAR_SORT, LINEAR_PACK, LINEAR_MULTIPLY, LINEAR_PHASES };

/* Groups of experts begin at such multiples of items. */
enum { LINEAR_GROUP_ITEMS = 8 };

/* In scratch memory, of linear_experts only. */
typedef struct linear_index {
    uint32_t *n_groups;
    uint32_t *experts; /* [groups], of each group */
    uint32_t *end;   /* [all experts], of an expert's rows in order, which begin where those of the
                        one before it end */
    uint32_t *order; /* [rows] */
    void *packed;    /* what follows, aligned */
} linear_index;

static inline bool linear_has_experts(const wk_op *op) { return op->code == WK_OP_LINEAR_EXPERTS; }

/* Rows of y. */
static inline int64_t linear_m(const wk_op *op) { return wk_view_rows(wk_dst(op, 0)); }

/* At most. */
static inline int64_t linear_groups(const wk_op *op) {
    if (!linear_has_experts(op)) return 1;
    const int64_t m = linear_m(op), n_experts = wk_src(op, 1)->extent[0];
    return m < n_experts ? m : n_experts;
}

static inline uint64_t linear_index_bytes(const wk_op *op) {
    if (!linear_has_experts(op)) return 0;
    const int64_t words = 1 + linear_groups(op) + wk_src(op, 1)->extent[0] + linear_m(op);
    return ((uint64_t)words * sizeof(uint32_t) / WK_ALIGNMENT + 1) * WK_ALIGNMENT;
}

static inline linear_index linear_index_in(const wk_op *op, void *scratch) {
    if (!linear_has_experts(op)) return (linear_index){.packed = scratch};
    uint32_t *const words = scratch, *const experts = words + 1;
    uint32_t *const end = experts + linear_groups(op);
    return (linear_index){
        .n_groups = words,
        .experts = experts,
        .end = end,
        .order = end + wk_src(op, 1)->extent[0],
        .packed = (unsigned char *)scratch + linear_index_bytes(op),
    };
}

/* The expert of row r; the number of experts where it is none of them. */
static inline uint32_t linear_expert(const wk_op *op, int64_t r) {
    const wk_view *const ids = wk_src(op, 3);
    const uint32_t *const first = wk_view_data(ids), n = (uint32_t)wk_src(op, 1)->extent[0];
    const int64_t u = ids->extent[1];
    const uint32_t id = first[r / u * ids->stride[0] + r % u * ids->stride[1]];
    return id < n ? id : n;
}

/* Sorts by counting; rows of no expert are left out, a fault where they have an output. */
static inline void linear_sort(const wk_cpu_run *run) {
    const wk_op *const op = run->op;
    const linear_index index = linear_index_in(op, run->scratch);
    const uint32_t n_experts = (uint32_t)wk_src(op, 1)->extent[0], m = (uint32_t)linear_m(op);
    memset(index.end, 0, n_experts * sizeof *index.end);
    for (uint32_t r = 0; r < m; r++) {
        const uint32_t expert = linear_expert(op, r);
        if (expert < n_experts) {
            index.end[expert]++;
        } else if (linear_panels(op) > 0) {
            wk_cpu_fault(run);
        }
    }
    uint32_t begin = 0, n_groups = 0;
    for (uint32_t e = 0; e < n_experts; e++) {
        const uint32_t n = index.end[e];
        if (n > 0) index.experts[n_groups++] = e;
        index.end[e] = begin; /* moves on as rows are added */
        begin += n;
    }
    *index.n_groups = n_groups;
    for (uint32_t r = 0; r < m; r++) {
        const uint32_t expert = linear_expert(op, r);
        if (expert < n_experts) index.order[index.end[expert]++] = r;
    }
}

/* A group: its product, and where its rows begin among all in order. m is 0: there is none. */
typedef struct linear_group {
    linear_operands a;
    int64_t first;
} linear_group;

static inline linear_group linear_group_at(const wk_cpu_run *run, const linear_index *index,
                                           int64_t g) {
    const wk_op *const op = run->op;
    linear_group group = {.a = linear_get(op)};
    if (!linear_has_experts(op)) return group;
    if (g >= *index->n_groups) {
        group.a.m = 0;
        return group;
    }
    const uint32_t expert = index->experts[g], begin = expert > 0 ? index->end[expert - 1] : 0;
    assert(begin <= index->end[expert]);
    group.first = begin;
    group.a.m = index->end[expert] - begin;
    group.a.order = index->order + begin;
    group.a.weight += (expert - run->first_expert) * linear_panels(op) * group.a.panel_bytes;
    if (group.a.bias != NULL) group.a.bias += expert * wk_src(op, 2)->stride[0];
    return group;
}

/* Items of a group. */
static inline int64_t linear_group_items(const wk_op *op) {
    const int64_t panels = linear_panels(op);
    if (!linear_has_experts(op)) return panels;
    return (panels + LINEAR_GROUP_ITEMS - 1) / LINEAR_GROUP_ITEMS * LINEAR_GROUP_ITEMS;
}

static inline int64_t linear_sort_items(const wk_op *op) { return linear_has_experts(op); }
static inline int64_t linear_multiply_items(const wk_op *op) {
    return linear_m(op) == 0 ? 0 : linear_groups(op) * linear_group_items(op);
}

/* Panels [begin, end) of group number `group`, of items from `item` on; next: where the rest
 * begins. */
typedef struct linear_span {
    int64_t group, begin, end, next;
} linear_span;

static inline linear_span linear_span_at(const wk_op *op, int64_t item, int64_t last) {
    assert(item < last && linear_group_items(op) > 0);
    const int64_t n = linear_group_items(op), panels = linear_panels(op), group = item / n;
    const int64_t next = (group + 1) * n < last ? (group + 1) * n : last;
    const int64_t end = next - group * n;
    return (linear_span){group, item - group * n, end < panels ? end : panels, next};
}

#endif
