/* llm/prefix_tree.c: see prefix_tree.h. */
#include "llm/prefix_tree.h"

#include "core/status.h"

#include <assert.h>
#include <string.h>

void wk_prefix_init(wk_prefix_tree *tree) { *tree = (wk_prefix_tree){.child = WK_NO_BLOCK}; }

void wk_prefix_free(wk_heap *heap, wk_prefix_tree *tree) {
    wk_free(heap, tree->nodes, tree->n * sizeof *tree->nodes);
    wk_prefix_init(tree);
}

wick_status wk_prefix_grow(wk_heap *heap, wk_prefix_tree *tree, uint32_t n, wick_error *err) {
    if (n <= tree->n) return WICK_OK;
    const size_t size = n * sizeof *tree->nodes;
    wk_prefix_node *const nodes =
        wk_realloc(heap, tree->nodes, tree->n * sizeof *tree->nodes, size);
    if (!nodes) return wk_fail_memory(err, size, "the prefixes of a cache");
    for (uint32_t i = tree->n; i < n; i++) nodes[i].n = 0;
    tree->nodes = nodes;
    tree->n = n;
    return WICK_OK;
}

static uint32_t *children_of(wk_prefix_tree *tree, uint32_t parent) {
    return parent == WK_NO_BLOCK ? &tree->child : &tree->nodes[parent].child;
}

static uint32_t count_same(const wk_prefix_node *node, const uint32_t *ids, uint32_t n) {
    const uint32_t most = node->n < n ? node->n : n;
    uint32_t same = 0;
    while (same < most && node->tokens[same] == ids[same]) same++;
    return same;
}

/* The child whose tokens begin most like ids. */
static uint32_t find_child(wk_prefix_tree *tree, uint64_t key, uint32_t parent, const uint32_t *ids,
                           uint32_t n, uint32_t *n_same) {
    uint32_t best = WK_NO_BLOCK;
    *n_same = 0;
    for (uint32_t i = *children_of(tree, parent); i != WK_NO_BLOCK; i = tree->nodes[i].sibling) {
        const uint32_t same = count_same(&tree->nodes[i], ids, n);
        if (same <= *n_same || tree->nodes[i].key != key) continue;
        best = i;
        *n_same = same;
    }
    return best;
}

uint32_t wk_prefix_find(wk_prefix_tree *tree, uint64_t key, const uint32_t *ids, uint32_t n,
                        uint32_t *blocks) {
    uint32_t n_found = 0, parent = WK_NO_BLOCK, same = WK_BLOCK_SIZE;
    tree->clock++;
    while (n_found < n && same == WK_BLOCK_SIZE) {
        const uint32_t block = find_child(tree, key, parent, ids + n_found, n - n_found, &same);
        if (block == WK_NO_BLOCK) break;
        tree->nodes[block].used = tree->clock;
        if (blocks) *blocks++ = block;
        n_found += same;
        parent = block;
    }
    return n_found;
}

uint32_t wk_prefix_add(wk_prefix_tree *tree, uint64_t key, uint32_t parent, const uint32_t *ids,
                       uint32_t n, uint32_t block) {
    assert(n > 0 && n <= WK_BLOCK_SIZE && block < tree->n);
    assert(parent == WK_NO_BLOCK || tree->nodes[parent].n == WK_BLOCK_SIZE);
    uint32_t same;
    tree->clock++;
    const uint32_t known = find_child(tree, key, parent, ids, n, &same);
    if (same == n) {
        tree->nodes[known].used = tree->clock;
        return known;
    }
    assert(tree->nodes[block].n == 0);
    uint32_t *const first = children_of(tree, parent);
    wk_prefix_node *const node = &tree->nodes[block];
    *node = (wk_prefix_node){.n = n,
                             .key = key,
                             .parent = parent,
                             .child = WK_NO_BLOCK,
                             .sibling = *first,
                             .used = tree->clock};
    memcpy(node->tokens, ids, n * sizeof *ids);
    *first = block;
    return block;
}

bool wk_prefix_remove(wk_prefix_tree *tree, uint32_t block) {
    wk_prefix_node *const node = &tree->nodes[block];
    if (node->n == 0 || node->child != WK_NO_BLOCK) return false;
    uint32_t *at = children_of(tree, node->parent);
    while (*at != block) at = &tree->nodes[*at].sibling;
    *at = node->sibling;
    node->n = 0;
    tree->clock++; /* what saves the tree sees that it is another one */
    return true;
}

uint32_t wk_prefix_count(const wk_prefix_tree *tree) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < tree->n; i++) count += tree->nodes[i].n > 0;
    return count;
}

static uint32_t list_siblings(const wk_prefix_tree *tree, uint32_t first, uint32_t *blocks) {
    uint32_t n = 0;
    for (uint32_t i = first; i != WK_NO_BLOCK; i = tree->nodes[i].sibling) blocks[n++] = i;
    return n;
}

void wk_prefix_list(const wk_prefix_tree *tree, uint32_t *blocks) {
    uint32_t n = list_siblings(tree, tree->child, blocks);
    for (uint32_t i = 0; i < n; i++)
        n += list_siblings(tree, tree->nodes[blocks[i]].child, blocks + n);
}

uint32_t wk_prefix_drop(wk_prefix_tree *tree, const wk_blocks *blocks) {
    uint32_t oldest = WK_NO_BLOCK;
    for (uint32_t i = 0; i < tree->n; i++) {
        const wk_prefix_node *const node = &tree->nodes[i];
        if (node->n == 0 || node->child != WK_NO_BLOCK || wk_blocks_is_shared(blocks, i)) continue;
        if (oldest == WK_NO_BLOCK || node->used < tree->nodes[oldest].used) oldest = i;
    }
    if (oldest == WK_NO_BLOCK) return WK_NO_BLOCK;
    (void)wk_prefix_remove(tree, oldest);
    return oldest;
}
