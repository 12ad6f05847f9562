/* llm/prefix_tree.h: the beginnings of texts whose keys and values are in blocks of a cache: a tree
 * whose nodes are blocks. A node is a block of WK_BLOCK_SIZE tokens that follow those of its
 * parent, or of fewer, which has no children. Blocks in the tree are not written to any more. Pure:
 * it counts no references and knows no memory of a device. */
#ifndef WK_LLM_PREFIX_TREE_H
#define WK_LLM_PREFIX_TREE_H

#include "llm/blocks.h"
#include "llm/llm.h"

typedef struct wk_prefix_node {
    uint32_t n;   /* tokens; 0: the block is not in the tree */
    uint64_t key; /* of the weights that computed it: texts share what has the same one */
    uint32_t parent, child, sibling;
    uint64_t used; /* when, by the tree's clock */
    uint32_t tokens[WK_BLOCK_SIZE];
} wk_prefix_node;

typedef struct wk_prefix_tree {
    wk_prefix_node *nodes; /* [n], of the blocks of the pool: no memory is taken as a text grows */
    uint32_t n, child;     /* the first block of the root's children; WK_NO_BLOCK: it has none */
    uint64_t clock;
} wk_prefix_tree;

void wk_prefix_init(wk_prefix_tree *tree);
void wk_prefix_free(wk_heap *heap, wk_prefix_tree *tree);
/* For n blocks. WICK_ERR_OUT_OF_MEMORY: nothing has changed. */
wick_status wk_prefix_grow(wk_heap *heap, wk_prefix_tree *tree, uint32_t n, wick_error *err);
/* The longest beginning of ids [n] that is known under key: how many tokens, in blocks [n /
 * WK_BLOCK_SIZE + 1], which may be NULL; of the last block the first ones, if they do not fill it.
 */
uint32_t wk_prefix_find(wk_prefix_tree *tree, uint64_t key, const uint32_t *ids, uint32_t n,
                        uint32_t *blocks);
/* n <= WK_BLOCK_SIZE tokens that follow those of parent (WK_NO_BLOCK: that begin a text) are in
 * block. Returns the block of the tree that has them: this one from now on, or another one that had
 * them already. */
uint32_t wk_prefix_add(wk_prefix_tree *tree, uint64_t key, uint32_t parent, const uint32_t *ids,
                       uint32_t n, uint32_t block);
/* Makes a block unknown that no known text goes on from. False: it is not known, or one does. */
bool wk_prefix_remove(wk_prefix_tree *tree, uint32_t block);
/* Of all nodes: how many, and their blocks, each after its parent's. */
uint32_t wk_prefix_count(const wk_prefix_tree *tree);
void wk_prefix_list(const wk_prefix_tree *tree, uint32_t *blocks);
/* Takes the block that was used longest ago out of the tree, of those without children that only
 * the tree has (one reference). WK_NO_BLOCK: there is none. */
uint32_t wk_prefix_drop(wk_prefix_tree *tree, const wk_blocks *blocks);

#endif
