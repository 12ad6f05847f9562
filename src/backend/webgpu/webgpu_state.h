/* backend/webgpu/webgpu_state.h: a WebGPU device, as its parts see it. Each may use those named
 * before it: pool.c (blocks of memory), memory.c (buffers; where memory is short also ticket.c and
 * cache.c), shader.c (the text of a program), cache.c (layouts, pipelines, bind groups), recorder.c
 * (commands and parameters), pace.c (how long they will take), ticket.c (submits, tickets), read.c
 * (reading back, faults), choice.c (which kernel, in which tuning), encoder.c (from a kernel's
 * dispatch to a command), kernel_custom.c (kernels of the user's), segment.c (ops in pieces that
 * fit), rehearse.c (programs ahead of time), upload.c, plan.c (replays), tuning.c (choices as
 * text), measure.c (the device's limits),
 * webgpu_device.c (opening, weights, the backend's table). */
#ifndef WK_BACKEND_WEBGPU_WEBGPU_STATE_H
#define WK_BACKEND_WEBGPU_WEBGPU_STATE_H

#include "backend/webgpu/kernels/webgpu_kernel.h"

#include "core/map.h"
#include "core/str.h"

/* A part of a slab: one buffer's, or free. The spans of a slab, by address, cover it. */
typedef struct wk_span wk_span;
struct wk_span {
    wk_block *slab;
    uint64_t offset, size;
    wk_span *next, *previous;
    bool is_free;
};

/* Memory of the device. What was freed may serve again at once: commands run in their order. */
struct wk_block {
    wk_gpu_buffer *gpu; /* NULL: of a stand-in */
    uint64_t size;
    uint64_t id;      /* never given twice */
    uint64_t used_in; /* number of the latest recording whose commands name it */
    wk_block *next;   /* in its free list, or of the slabs */
    wk_span *spans;   /* of a slab; NULL: one buffer has it whole */
};

typedef struct wk_piece {
    wk_block *block;
    wk_span *span; /* of a slab; else NULL */
    uint64_t offset;
} wk_piece;

/* Bytes in pieces of segment_bytes each, the last one less: a WebGPU buffer has a limit. */
typedef struct wk_webgpu_buffer {
    wk_buffer base;
    uint64_t segment_bytes;
    uint32_t n_pieces;
    wk_piece pieces[];
} wk_webgpu_buffer;

/* Free blocks by size: eight classes to a power of two. */
enum { WK_POOL_CLASSES = 8 * 64 };
typedef struct wk_block_pool {
    wick_pool_desc desc; /* its defaults filled in */
    wk_block *free[WK_POOL_CLASSES];
    wk_block *slabs;
    uint64_t slab_bytes; /* of the next one; 0: there are none */
    wk_span *cursor;     /* where NEXT_FIT goes on; NULL: at the first one */
    uint64_t n_ids, n_hits, n_misses;
    uint64_t bytes, peak_bytes; /* of all blocks */
    uint64_t free_bytes;        /* of these, unused */
    bool is_pressed;
} wk_block_pool;

typedef struct wk_pipeline_entry {
    wk_program program;
    const wk_webgpu_kernel *kernel; /* the first one that asked for it; NULL: a measurement */
    wk_gpu_layout *layout;
    wk_gpu_pipeline *pipeline;
    size_t number;      /* from 1, in the order in which they were asked for */
    wick_status status; /* WICK_PENDING until it was seen to be compiled */
} wk_pipeline_entry;

/* Compared as bytes. */
typedef struct wk_group_key {
    const wk_gpu_layout *layout;
    const wk_gpu_buffer *params;
    uint64_t windows[WK_MAX_BINDINGS][3]; /* id of the block, offset, size */
} wk_group_key;

typedef struct wk_group_entry {
    wk_group_key key;
    wk_gpu_group *group; /* NULL: free */
} wk_group_entry;

typedef struct wk_layout_entry {
    uint32_t n, writable, uniform_bytes;
    wk_gpu_layout *layout;
} wk_layout_entry;

/* Kernels of the user's can ask for 502 with uniforms of one size alone: 1 to 8 buffers, at least
 * one of them written. */
enum { WK_MAX_LAYOUTS = 640 };

typedef struct wk_webgpu_cache {
    wk_layout_entry layouts[WK_MAX_LAYOUTS];
    size_t n_layouts;
    wk_pipeline_entry **pipelines;
    size_t n_pipelines, pipeline_capacity;
    size_t n_finished;       /* the first of them: seen to be compiled, or failed */
    size_t n_judged;         /* the first of them: what failed was taken by wk_cache_take_refused */
    wk_map64 pipeline_index; /* hash of the program -> index */
    uint64_t begun_ns;       /* when the first of those was asked for that are not finished */
    uint64_t compile_ns;     /* while some were compiled */
    uint64_t wait_ns;        /* of it, submits waited */
    uint64_t n_pipeline_hits, n_failures, shader_bytes, n_groups_made, n_group_hits;
} wk_webgpu_cache;

/* Parameters of dispatches, on their way to a uniform buffer. */
enum { WK_PARAM_CHUNK = 64 * 1024 };
typedef struct wk_param_chunk wk_param_chunk;
struct wk_param_chunk {
    wk_gpu_buffer *gpu;
    uint32_t used;
    wk_param_chunk *next;
    unsigned char bytes[WK_PARAM_CHUNK];
};

/* Behind an op: how long the commands since the last mark will take, see pace.c. */
typedef struct wk_mark {
    size_t n_commands;
    double estimate;
} wk_mark;

/* Commands and the parameters that they name. */
typedef struct wk_recorder {
    wk_gpu_command *commands;
    size_t n_commands, capacity;
    bool may_fault;     /* a command may set a fault slot */
    size_t n_pipelines; /* the commands need only the first ones of the cache */
    /* Of a plan's recorder: the ends of its ops, and their temporaries. */
    wk_mark *marks;
    size_t n_marks, mark_capacity;
    wk_buffer **temps;
    size_t n_temps, temp_capacity;
    wk_param_chunk *chunks, *chunk; /* all, and the one that is being filled */
    wk_group_entry *entries;        /* [n_entries] by hash, for commands to come */
    size_t n_entries;
    wk_gpu_group **groups; /* others that commands have */
    size_t n_groups, group_capacity;
} wk_recorder;

/* What a tuning is chosen by: the rows of an op, and how its weight lies (wk_layout; raw: none). */
typedef enum wk_rows_class {
    WK_ROWS_ONE,
    WK_ROWS_FEW, /* up to 16 */
    WK_ROWS_MANY,
    WK_ROWS_COUNT_,
} wk_rows_class;

typedef struct wk_op_class {
    wk_rows_class rows;
    uint8_t layout;
} wk_op_class;

/* A kernel, and how this device takes it. */
typedef struct wk_choice {
    const wk_webgpu_kernel *kernel;
    bool is_disabled;
    bool is_refused; /* a pipeline of it did not compile */
    uint8_t tuning[WK_ROWS_COUNT_][WK_LAYOUT_COUNT_];
} wk_choice;

enum { WK_MAX_TEMPS = WK_MAX_BINDINGS };

struct wk_encoder {
    wk_backend_device *dev;
    wk_recorder *recorder;
    const wk_webgpu_kernel *kernel;
    wk_opcode code; /* of the op that is encoded */
    uint32_t tuning;
    bool may_fault; /* it may set its fault slot */
    wk_view fault;  /* that slot */
    /* The op's table is rows [first_row, first_row + its extent) of this many; 0: of its own. */
    uint32_t first_row, n_rows;
    int n_temps;
    wk_buffer *temps[WK_MAX_TEMPS];
    wick_error *err;
};

/* A part of a read: bytes [at, at + size) of the requested ones. */
typedef struct wk_webgpu_read {
    wk_ticket ticket; /* 0: not in use */
    wk_gpu_buffer *staging;
    uint64_t capacity, copied; /* of staging: its size, and the bytes that arrive */
    uint64_t skip, at, size;   /* after skip others in staging */
    bool has_faults;           /* the fault slots arrive after them */
    bool is_seen;              /* it has been looked at */
} wk_webgpu_read;

typedef struct wk_webgpu_fault {
    bool is_set;       /* and has not been taken */
    wk_ticket cleared; /* reads up to this one were submitted before the slot was cleared */
} wk_webgpu_fault;

/* Submits that were not seen to have run. */
typedef struct wk_pace_submit {
    wk_ticket ticket;
    double estimate;
    uint64_t begun; /* wk_clock_ns */
} wk_pace_submit;

enum { WK_PACE_WAITING = 64 };
typedef struct wk_pace {
    double factor;   /* nanoseconds that this device takes for one estimated */
    double budget;   /* of a submit, nanoseconds */
    double recorded; /* estimate of the open recording */
    wk_pace_submit waiting[WK_PACE_WAITING];
    uint32_t first, n_waiting;
    uint64_t last_done; /* when a submit was last seen to have run */
    uint64_t longest;   /* nanoseconds of a submit, at most: a late poll sees several as one */
} wk_pace;

/* A dispatch whose time is taken. */
typedef struct wk_timed {
    wick_kernel_stats *stats;
    bool ends_op; /* it is the last one of an op that costs this */
    wk_cost cost;
} wk_timed;

/* The dispatches of a submit whose times are on their way. */
typedef struct wk_timing {
    wk_gpu_buffer *stamps; /* two for each; NULL: not used yet */
    wk_timed *timed;
    uint32_t n; /* 0: free */
} wk_timing;

enum { WK_PROFILE_TIMINGS = 8 };

/* Times of kernels, see profile.c. */
typedef struct wk_profile {
    wick_kernel_stats *kernels; /* [n_kernels], in the order of the device's choices */
    size_t n_kernels;
    wk_timed *timed; /* the open recording's dispatches; NULL: off */
    uint32_t n_timed;
    wk_timing timings[WK_PROFILE_TIMINGS];
} wk_profile;

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

/* --- pool.c --- */

/* Needs block_bytes. WICK_ERR_VALUE: the options are wrong. */
wick_status wk_pool_open(wk_backend_device *dev, const wick_pool_desc *desc, wick_error *err);
/* size: from 1 to block_bytes; a multiple of 4. Where there is none left: makes room, once. */
wick_status wk_pool_take(wk_backend_device *dev, uint64_t size, wk_piece *out, wick_error *err);
/* The same, never of a slab. */
wick_status wk_pool_take_block(wk_backend_device *dev, uint64_t size, wk_piece *out,
                               wick_error *err);
/* Bytes of the block that a piece of this size has, where it shares none. */
uint64_t wk_pool_block_bytes(const wk_backend_device *dev, uint64_t size);
void wk_pool_give(wk_backend_device *dev, const wk_piece *piece);
/* Gives unused blocks and slabs back to the implementation; no recorded command may name them. */
uint64_t wk_pool_trim(wk_backend_device *dev);
void wk_pool_stats(const wk_backend_device *dev, wk_backend_stats *stats);

/* --- memory.c --- */

wick_status wk_webgpu_alloc(wk_backend_device *dev, uint64_t size, uint64_t granule,
                            wk_buffer **out, wick_error *err);
/* The same in one block, which no other buffer shares. */
wick_status wk_webgpu_alloc_block(wk_backend_device *dev, uint64_t size, wk_buffer **out,
                                  wick_error *err);
uint64_t wk_webgpu_footprint(const wk_backend_device *dev, uint64_t size, uint64_t granule);
void wk_webgpu_free(wk_backend_device *dev, wk_buffer *buf);
/* A buffer in the same pieces without memory, for rehearsals. */
wick_status wk_webgpu_stand_in(wk_backend_device *dev, uint64_t size, uint64_t granule,
                               wk_buffer **out, wick_error *err);
/* Of an op that is encoded or rehearsed. */
wick_status wk_webgpu_temp(wk_backend_device *dev, uint64_t size, wk_buffer **out, wick_error *err);
/* The block of bytes [offset, offset + size) of a buffer, and where in it they begin; NULL where
 * they are not in one. */
wk_block *wk_webgpu_locate(const wk_buffer *buf, uint64_t offset, uint64_t size, uint64_t *at);
/* Submits what is recorded, waits for it, and gives all unused memory back. Native only. */
wick_status wk_webgpu_make_room(wk_backend_device *dev, wick_error *err);
wick_status wk_webgpu_trim(wk_backend_device *dev, uint64_t *freed, wick_error *err);

/* --- shader.c --- */

/* Fails only if memory runs out: out->failed. */
void wk_webgpu_shader(const wk_gpu *gpu, const wk_program *program, wk_strbuf *out);

/* --- cache.c --- */

void wk_cache_make(wk_backend_device *dev);
void wk_cache_release(wk_backend_device *dev);
/* See wk_gpu_layout_make. */
wick_status wk_cache_layout(wk_backend_device *dev, uint32_t n, uint32_t writable,
                            uint32_t uniform_bytes, wk_gpu_layout **out, wick_error *err);
/* Begins to compile what is not there. */
wick_status wk_cache_pipeline(wk_backend_device *dev, const wk_webgpu_kernel *kernel,
                              const wk_program *program, wk_pipeline_entry **out, wick_error *err);
/* WICK_PENDING while some compile. The kernel of one that fails is not chosen any more. */
wick_status wk_cache_poll(wk_backend_device *dev);
bool wk_cache_take_refused(wk_backend_device *dev, wick_error *why);
/* Until the first n are compiled. False: they are not, and cannot be waited for (wk_gpu_pause). */
bool wk_cache_wait(wk_backend_device *dev, size_t n);
void wk_cache_stats(const wk_backend_device *dev, wk_backend_stats *stats);
/* For a command of the recorder, which has the group at least as long as it has the command. */
wick_status wk_cache_group(wk_backend_device *dev, wk_recorder *recorder,
                           const wk_gpu_layout *layout, const wk_window *windows, int n,
                           wk_gpu_buffer *params, wk_gpu_group **out, wick_error *err);

/* --- recorder.c --- */

/* n_entries: bind groups to keep for commands to come, a power of two. */
wick_status wk_recorder_make(wk_backend_device *dev, wk_recorder *recorder, size_t n_entries,
                             wick_error *err);
void wk_recorder_release(wk_backend_device *dev, wk_recorder *recorder);
/* Gives bind groups back that commands to come could have had; it must be empty. */
void wk_recorder_forget(wk_backend_device *dev, wk_recorder *recorder);
/* Room for another command, cleared; NULL: out of memory. It counts at once. */
wk_gpu_command *wk_recorder_next(wk_backend_device *dev, wk_recorder *recorder, wick_error *err);
/* Room for a dispatch's parameters, and the uniform buffer and offset that will hold them. */
wick_status wk_recorder_params(wk_backend_device *dev, wk_recorder *recorder, const uint32_t *words,
                               size_t n_words, wk_gpu_buffer **uniforms, uint32_t *offset,
                               wick_error *err);
/* Writes the parameters to the device. */
void wk_recorder_write(wk_backend_device *dev, wk_recorder *recorder);
/* Releases the group when the commands are forgotten. */
wick_status wk_recorder_keep(wk_backend_device *dev, wk_recorder *recorder, wk_gpu_group *group,
                             wick_error *err);
/* Frees the buffer when it is released. */
wick_status wk_recorder_hold(wk_backend_device *dev, wk_recorder *recorder, wk_buffer *temp,
                             wick_error *err);
/* Ends an op's commands. */
wick_status wk_recorder_mark(wk_backend_device *dev, wk_recorder *recorder, double estimate,
                             wick_error *err);
/* Forgets commands and parameters, keeps the memory. */
void wk_recorder_clear(wk_backend_device *dev, wk_recorder *recorder);

/* --- profile.c --- */

/* Does nothing on an adapter without timestamps. */
wick_status wk_profile_open(wk_backend_device *dev, wick_error *err);
void wk_profile_release(wk_backend_device *dev);
/* The number of timestamps for the next dispatch (wk_gpu_command.timed); 0: it is not timed. */
uint32_t wk_profile_dispatch(wk_backend_device *dev, const wk_webgpu_kernel *kernel);
/* To be called after the dispatches of an op. */
void wk_profile_op(wk_backend_device *dev, const wk_webgpu_kernel *kernel, const wk_cost *cost);
/* To be called after a submit: asks for its times. */
wick_status wk_profile_submitted(wk_backend_device *dev, wick_error *err);
/* Counts those that have come; false: all have. */
bool wk_profile_look(wk_backend_device *dev);
size_t wk_profile_get(const wk_backend_device *dev, wick_kernel_stats *out, size_t capacity);

/* --- pace.c --- */

void wk_pace_open(wk_backend_device *dev, uint32_t submit_us);
/* Nanoseconds that an op takes on the nominal device, roughly. */
double wk_pace_estimate(const wk_op *op, const wk_cost *cost);
/* How many parts it must be cut into, for none to be longer than a submit may be. */
int64_t wk_pace_parts(const wk_backend_device *dev, double estimate);
/* Whether the open recording is to be submitted before an op that takes this is added to it. */
bool wk_pace_is_full(const wk_backend_device *dev, double estimate);
/* It was added. */
void wk_pace_add(wk_backend_device *dev, double estimate);
/* It was submitted, as dev->n_submitted. */
void wk_pace_submitted(wk_backend_device *dev);
/* dev->n_done may have changed. */
void wk_pace_look(wk_backend_device *dev);

/* --- ticket.c --- */

/* Submits what is recorded, if anything is. */
wick_status wk_webgpu_flush(wk_backend_device *dev, wick_error *err);
/* The same for callers that cannot fail: the next poll reports the error. */
void wk_webgpu_flush_untold(wk_backend_device *dev);
/* Marks a block as named by the open recording. */
static inline void wk_webgpu_use(const wk_backend_device *dev, wk_block *block) {
    block->used_in = dev->recording;
}
/* Bytes were handed to the implementation, which holds them until it has submitted them: waits
 * where they are too many. */
wick_status wk_webgpu_written(wk_backend_device *dev, uint64_t size, wick_error *err);
/* Until no more than n submits are left to run, where that can be waited for (wk_gpu_pause). */
wick_status wk_webgpu_drain(wk_backend_device *dev, uint64_t n_left, wick_error *err);
wick_status wk_webgpu_submit(wk_backend_device *dev, wk_ticket *ticket, wick_error *err);
wick_status wk_webgpu_poll(wk_backend_device *dev, wk_ticket ticket, wick_error *err);
wick_status wk_webgpu_wait(wk_backend_device *dev, wk_ticket ticket, wick_error *err);

/* --- read.c --- */

wick_status wk_webgpu_read_start(wk_backend_device *dev, wk_buffer *buf, uint64_t offset,
                                 uint64_t size, wk_ticket *ticket, wick_error *err);
wick_status wk_webgpu_read_finish(wk_backend_device *dev, wk_ticket ticket, void *dst,
                                  wick_error *err);
/* Whether the read of this ticket has arrived, and with it the fault slots. */
wick_status wk_webgpu_read_poll(wk_backend_device *dev, wk_ticket ticket, wick_error *err);
bool wk_webgpu_take_fault(wk_backend_device *dev, uint32_t *slot);
void wk_webgpu_reads_release(wk_backend_device *dev);

/* --- choice.c --- */

wick_status wk_choices_open(wk_backend_device *dev, wick_error *err);
void wk_choices_release(wk_backend_device *dev);
/* Whether the device has what the kernel needs. */
bool wk_choice_is_possible(const wk_backend_device *dev, const wk_webgpu_kernel *kernel);
/* The first kernel that takes the op; NULL: none does, or they are disabled. */
const wk_webgpu_kernel *wk_choice_find(const wk_backend_device *dev, const wk_op *op);
/* NULL: it is none of the device's. */
wk_choice *wk_choice_of(const wk_backend_device *dev, const wk_kernel *kernel);
wk_op_class wk_choice_class(const wk_op *op);
/* How many tunings a kernel has, at least one. */
uint32_t wk_choice_tunings(const wk_webgpu_kernel *kernel);
/* The one that is taken for the op. */
uint32_t wk_choice_tuning(const wk_backend_device *dev, const wk_webgpu_kernel *kernel,
                          const wk_op *op);

/* --- tuning.c --- */

/* See docs/webgpu.md. Unusable lines are reported, left out and counted in *n_ignored. */
void wk_tuning_read(wk_backend_device *dev, wk_str text, wick_log_fn log, void *log_user,
                    size_t *n_ignored);
void wk_tuning_write(const wk_backend_device *dev, wk_strbuf *out);

/* --- encoder.c --- */

/* size bytes in a block that no other buffer has, for as long as the op's commands need them. */
wick_status wk_encoder_block(wk_encoder *e, uint64_t size, wk_buffer **out);
/* A command of a pipeline on the windows of d's slots, with its parameters. */
wick_status wk_dispatch_record(wk_encoder *e, const wk_dispatch *d, wk_gpu_pipeline *pipeline,
                               const wk_gpu_layout *layout, const uint32_t workgroups[3]);

/* Behind an op that was encoded with this status: its temporaries may serve for others, or are the
 * plan's whose recorder it has. */
wick_status wk_encoder_end(wk_encoder *e, wick_status status);

/* --- kernel_custom.c --- */

wick_status wk_webgpu_custom_make(wk_backend_device *dev, const wick_kernel_desc *desc,
                                  wk_custom **out, wick_error *err);
wick_status wk_webgpu_custom_poll(wk_backend_device *dev, wk_custom *custom, wick_error *err);
void wk_webgpu_custom_free(wk_backend_device *dev, wk_custom *custom);

/* --- segment.c --- */

/* Encodes an op by a kernel, in pieces where an operand lies in several blocks or it would take too
 * long; a piece that the kernel does not accept is given to the first one that does. */
wick_status wk_segment_encode(wk_backend_device *dev, wk_recorder *recorder,
                              const wk_webgpu_kernel *kernel, const wk_op *op, wick_error *err);

/* --- rehearse.c --- */

wick_status wk_webgpu_rehearse(wk_backend_device *dev, const wk_kernel *kernel, const wk_op *op,
                               wick_error *err);

/* --- upload.c --- */

wick_status wk_webgpu_upload(wk_backend_device *dev, wk_buffer *buf, uint64_t offset,
                             const void *bytes, uint64_t size, wick_error *err);
wick_status wk_webgpu_upload_rows(wk_backend_device *dev, const wk_view *weight, int64_t first_row,
                                  int64_t n_rows, const void *blocks, wick_error *err);

/* --- measure.c --- */

/* webgpu_device.c: dev->features, by the adapter and the rates. */
void wk_webgpu_choose_features(wk_backend_device *dev);
wick_status wk_webgpu_measure(wk_backend_device *dev, wick_device_limits *out, wick_error *err);

/* --- plan.c --- */

wick_status wk_webgpu_plan_prepare(wk_backend_device *dev, const wk_op *ops,
                                   const wk_kernel *const *kernels, size_t n, void **plan,
                                   wick_error *err);
wick_status wk_webgpu_plan_replay(wk_backend_device *dev, void *plan, wick_error *err);
void wk_webgpu_plan_free(wk_backend_device *dev, void *plan);

#endif
