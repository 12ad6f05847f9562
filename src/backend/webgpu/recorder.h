/* backend/webgpu/recorder.h: commands and the parameters and bind groups that they name. */
#ifndef WK_BACKEND_WEBGPU_RECORDER_H
#define WK_BACKEND_WEBGPU_RECORDER_H

#include "backend/webgpu/kernels/webgpu_kernel.h"

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
    bool makes_integers;            /* what is encoded next: see wk_encoder_makes_integers */
    wk_view quantized, integers;    /* see wk_encoder_keep_integers; no buffer: there are none */
    wk_param_chunk *chunks, *chunk; /* all, and the one that is being filled */
    wk_group_entry *entries;        /* [n_entries] by hash, for commands to come */
    size_t n_entries;
    wk_gpu_group **groups; /* others that commands have */
    size_t n_groups, group_capacity;
} wk_recorder;

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
/* Before ops that write to their destinations. */
void wk_recorder_spoil(wk_recorder *recorder, const wk_op *ops, size_t n);
/* Ends an op's commands. */
wick_status wk_recorder_mark(wk_backend_device *dev, wk_recorder *recorder, double estimate,
                             wick_error *err);
/* Forgets commands and parameters, keeps the memory. */
void wk_recorder_clear(wk_backend_device *dev, wk_recorder *recorder);

#endif
