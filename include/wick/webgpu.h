/* wick/webgpu.h: the GPUs of this machine as WebGPU shows them, and what to choose among. */
#ifndef WICK_WEBGPU_H
#define WICK_WEBGPU_H

#include <wick/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum wick_adapter_type {
    WICK_ADAPTER_UNKNOWN,
    WICK_ADAPTER_DISCRETE,
    WICK_ADAPTER_INTEGRATED,
    WICK_ADAPTER_SOFTWARE, /* computes on the CPU: taken where it is asked for or alone */
} wick_adapter_type;

/* What kernels may use beyond core WebGPU; bits. */
enum {
    WICK_WEBGPU_F16 = 1,        /* shader-f16 */
    WICK_WEBGPU_SUBGROUPS = 2,  /* subgroups */
    WICK_WEBGPU_DOT4 = 4,       /* packed_4x8_integer_dot_product */
    WICK_WEBGPU_TIMESTAMPS = 8, /* timestamp-query */
};

/* Which free piece of the shared memory a buffer takes. */
typedef enum wick_pool_fit {
    WICK_POOL_BEST_FIT, /* the smallest that is large enough */
    WICK_POOL_FIRST_FIT,
    WICK_POOL_WORST_FIT, /* the largest */
    WICK_POOL_NEXT_FIT,  /* the first one after the one taken last */
} wick_pool_fit;

/* Where the memory of tensors comes from. Every buffer has a piece of GPU memory of its own, kept
 * for another one of about the same size when it is freed; with initial_bytes, small ones (up to a
 * quarter of a slab) share larger pieces, slabs. */
typedef struct wick_pool_desc {
    uint64_t initial_bytes; /* of the first slab, taken when the device is opened; 0: no slabs */
    uint64_t max_bytes;     /* of all this memory, free pieces counted; 0: no limit but the GPU's */
    double growth;          /* size of a slab relative to the one before; 0: 1.5 */
    uint32_t alignment;     /* of buffers in slabs: a power of two from 16 to 4096; 0: 256. At least
                               limits.storage_alignment is kept. */
    wick_pool_fit fit;      /* in slabs */
    double pressure;        /* share of max_bytes in use from which ... ; 0: 0.9 */
    /* ... this is called, before a buffer is made, each time that the share is passed. It may
     * release tensors. */
    void (*on_pressure)(void *user, uint64_t used_bytes, uint64_t max_bytes);
    void *user;
} wick_pool_desc;

/* Keeps what an implementation compiled, so that it need not do so again: Dawn's does, by keys that
 * tell its version, the driver and the device; wgpu-native has no use for it. Both functions or
 * none; they are called from threads of the implementation, several at once, until the device is
 * closed. */
typedef struct wick_kernel_cache {
    /* The size of the value that is kept under the key, 0: there is none; it is copied to value
     * where capacity suffices. */
    size_t (*load)(void *user, const void *key, size_t key_size, void *value, size_t capacity);
    void (*store)(void *user, const void *key, size_t key_size, const void *value, size_t size);
    void *user;
} wick_kernel_cache;

typedef struct wick_webgpu_desc {
    const char *library; /* path of an implementation (Dawn, wgpu-native); NULL: the first one found
                            beside the program or where the system looks */
    const char *adapter; /* its index in wick_adapters(), part of its name, or "discrete",
                            "integrated", "software"; NULL: the best one. AUTO takes one in
                            software only where this names it */
    bool low_power;      /* integrated before discrete */
    bool default_limits; /* ask for no more than what every WebGPU device has */
    bool debug;          /* labels, and every submit is checked: errors name their kernel */
    uint32_t without;    /* WICK_WEBGPU_*: not to be used though they are there */
    bool as_gpu; /* choose kernels as for a GPU with packed dot products, though they are slower on
                    this adapter; for tests */
    uint64_t max_binding_bytes; /* 0, or use less than the device's limit; for tests */
    uint32_t submit_us; /* GPU time that one submit takes at most, about, in microseconds; 0: 50000,
                           UINT32_MAX: no limit */
    wick_pool_desc pool;
    wick_kernel_cache cache;
} wick_webgpu_desc;

/* Sizes in bytes. The default of the specification is in brackets. */
typedef struct wick_adapter_limits {
    uint64_t buffer_bytes;                         /* of a buffer (256 MiB) */
    uint64_t binding_bytes;                        /* of what a kernel sees of it (128 MiB) */
    uint32_t storage_bindings;                     /* of one kernel (8) */
    uint32_t storage_alignment, uniform_alignment; /* of bindings (256) */
    uint32_t workgroup_bytes;                      /* shared memory (16 KiB) */
    uint32_t workgroup_threads;                    /* (256) */
    uint32_t workgroup_size_x, workgroup_size_y, workgroup_size_z; /* (256, 256, 64) */
    uint32_t workgroups;                                           /* in each dimension (65535) */
    uint32_t subgroup_min, subgroup_max;                           /* threads; 0: not known */
} wick_adapter_limits;

typedef struct wick_adapter_info {
    char name[128], vendor[64], architecture[64], driver[128];
    char api[16];                  /* "Vulkan", "Metal", "D3D12", "D3D11", "OpenGL", "OpenGLES" */
    char library[256];             /* the file of the implementation */
    char implementation[32];       /* "Dawn", "wgpu-native" */
    uint32_t vendor_id, device_id; /* PCI; 0: not known */
    wick_adapter_type type;
    uint32_t features; /* WICK_WEBGPU_* */
    wick_adapter_limits limits;
    char unusable[160]; /* why it cannot be opened; empty: it can */
} wick_adapter_info;

/* Every adapter of every implementation found, or of the named library alone (NULL: all), usable or
 * not; an implementation without any is one entry that says why. Returns how many there are and
 * writes at most capacity. Blocks; native only. */
WICK_API size_t wick_adapters(const char *library, wick_adapter_info *out, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
