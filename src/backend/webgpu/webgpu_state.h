/* backend/webgpu/webgpu_state.h: a WebGPU device: what its parts keep in it. A part is a .c file,
 * mostly with a header of its name, and includes the headers of the parts that it calls. None calls
 * a later one of these:
 *
 *   pool      blocks of memory              room     gives unused memory back
 *   memory    buffers                       write    whole words into buffers
 *   shader    the text of a program         read     reading back, faults
 *   choice    which kernel and tuning       ticket   what has run
 *   recorder  commands and parameters       encoder  from a kernel's dispatch to a command
 *   cache     pipelines and bind groups     segment  ops in pieces that fit
 *   pace      how long commands take        upload   bytes and weights
 *   profile   times of kernels              table.h  what only the backend's table names
 *   submit    commands to the GPU
 */
#ifndef WK_BACKEND_WEBGPU_WEBGPU_STATE_H
#define WK_BACKEND_WEBGPU_WEBGPU_STATE_H

#include "backend/webgpu/cache.h"
#include "backend/webgpu/choice.h"
#include "backend/webgpu/pace.h"
#include "backend/webgpu/pool.h"
#include "backend/webgpu/profile.h"
#include "backend/webgpu/read.h"
#include "backend/webgpu/recorder.h"

struct wk_backend_device {
    wk_heap *heap;
    wk_gpu *gpu;
    bool is_open, is_lost, is_profiled;
    bool is_rehearsing; /* what is encoded is only compiled */
    wick_adapter_info adapter;
    uint32_t features;    /* of the adapter, those that kernels are chosen for */
    uint64_t block_bytes; /* the largest block: it can be bound whole */
    /* Millions of operations a second at most, measured by now or for the tuning; 0: not known. */
    uint32_t f32_rate, integer_rate;
    wick_webgpu_desc desc;
    wk_block_pool pool;
    wk_webgpu_cache cache;
    wk_choice *choices; /* [n_choices], the best kernels first */
    size_t n_choices;
    bool is_tuning_given; /* overrides the choice, to compare kernels */
    uint32_t given_tuning;
    wk_recorder recorder;
    wk_pace pace;
    wk_profile profile;
    uint64_t unsubmitted_bytes; /* written since the last submit */
    uint64_t recording;         /* number of the one that is open, from 1 */
    uint64_t replayed_in;       /* number of the latest one with a plan's commands */
    wk_ticket n_submitted, n_done;
    wk_webgpu_read *reads;
    size_t n_reads;
    wk_view tables;         /* of panel_wgsl.c, once they are needed */
    wk_view fault;          /* u32 [WK_FAULT_SLOTS], 0: no fault */
    wk_ticket fault_given;  /* the last submit that may have set one */
    wk_ticket fault_unseen; /* from this submit on, faults have not been seen; 0: all have */
    wk_ticket fault_ticket; /* the read of nothing else; 0: none */
    wk_webgpu_fault faults[WK_FAULT_SLOTS];
    bool has_faults;   /* one of them has not been taken */
    wick_error untold; /* of a submit whose caller takes no failure: the next poll returns it */
    wk_backend_stats stats;
};

/* Marks a block as named by the open recording. */
static inline void wk_webgpu_use(const wk_backend_device *dev, wk_block *block) {
    block->used_in = dev->recording;
}

#endif
