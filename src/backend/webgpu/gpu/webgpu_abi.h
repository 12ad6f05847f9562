/* backend/webgpu/gpu/webgpu_abi.h: the part of the C interface of WebGPU that Wick calls (webgpu.h
 * of webgpu-native/webgpu-headers, July 2026). Names, members and numbers are the standard's, so
 * that its documentation applies; what Wick never uses is not declared. */
#ifndef WK_BACKEND_WEBGPU_GPU_WEBGPU_ABI_H
#define WK_BACKEND_WEBGPU_GPU_WEBGPU_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct WGPUAdapterImpl *WGPUAdapter;
typedef struct WGPUBindGroupImpl *WGPUBindGroup;
typedef struct WGPUBindGroupLayoutImpl *WGPUBindGroupLayout;
typedef struct WGPUBufferImpl *WGPUBuffer;
typedef struct WGPUCommandBufferImpl *WGPUCommandBuffer;
typedef struct WGPUCommandEncoderImpl *WGPUCommandEncoder;
typedef struct WGPUComputePassEncoderImpl *WGPUComputePassEncoder;
typedef struct WGPUComputePipelineImpl *WGPUComputePipeline;
typedef struct WGPUDeviceImpl *WGPUDevice;
typedef struct WGPUInstanceImpl *WGPUInstance;
typedef struct WGPUPipelineLayoutImpl *WGPUPipelineLayout;
typedef struct WGPUQuerySetImpl *WGPUQuerySet;
typedef struct WGPUQueueImpl *WGPUQueue;
typedef struct WGPUSamplerImpl *WGPUSampler;
typedef struct WGPUShaderModuleImpl *WGPUShaderModule;
typedef struct WGPUSurfaceImpl *WGPUSurface;
typedef struct WGPUTextureViewImpl *WGPUTextureView;

typedef uint32_t WGPUBool;
typedef uint64_t WGPUFlags; /* the bit sets below */

/* Enumerations are 32 bits wide in the interface. A plain uint32_t also holds what an
 * implementation adds to them. */
typedef uint32_t WGPUEnum;

enum {
    WGPUAdapterType_DiscreteGPU = 1,
    WGPUAdapterType_IntegratedGPU = 2,
    WGPUAdapterType_CPU = 3,
};
enum {
    WGPUBackendType_Undefined = 0,
    WGPUBackendType_Null = 1,
    WGPUBackendType_WebGPU = 2,
    WGPUBackendType_D3D11 = 3,
    WGPUBackendType_D3D12 = 4,
    WGPUBackendType_Metal = 5,
    WGPUBackendType_Vulkan = 6,
    WGPUBackendType_OpenGL = 7,
    WGPUBackendType_OpenGLES = 8,
};
enum {
    WGPUBufferBindingType_Uniform = 2,
    WGPUBufferBindingType_Storage = 3,
    WGPUBufferBindingType_ReadOnlyStorage = 4,
};
enum {
    WGPUBufferUsage_MapRead = 0x1,
    WGPUBufferUsage_CopySrc = 0x4,
    WGPUBufferUsage_CopyDst = 0x8,
    WGPUBufferUsage_Uniform = 0x40,
    WGPUBufferUsage_Storage = 0x80,
    WGPUBufferUsage_QueryResolve = 0x200,
};
enum {
    WGPUCallbackMode_AllowProcessEvents = 2,
    WGPUCallbackMode_AllowSpontaneous = 3,
};
enum {
    WGPUCreatePipelineAsyncStatus_Success = 1,
    WGPUCreatePipelineAsyncStatus_ValidationError = 3,
};
enum { WGPUDeviceLostReason_Unknown = 1 };
enum {
    WGPUErrorFilter_Validation = 1,
    WGPUErrorFilter_OutOfMemory = 2,
    WGPUErrorFilter_Internal = 3,
};
enum {
    WGPUErrorType_NoError = 1,
    WGPUErrorType_Validation = 2,
    WGPUErrorType_OutOfMemory = 3,
    WGPUErrorType_Internal = 4,
};
enum { WGPUFeatureLevel_Core = 2 };
enum {
    WGPUFeatureName_TimestampQuery = 0x9,
    WGPUFeatureName_ShaderF16 = 0xb,
    WGPUFeatureName_Subgroups = 0x12,
};
enum { WGPUInstanceFeatureName_TimedWaitAny = 1 };
enum { WGPUMapAsyncStatus_Success = 1 };
enum { WGPUMapMode_Read = 1 };
enum { WGPUPopErrorScopeStatus_Success = 1 };
enum {
    WGPUPowerPreference_LowPower = 1,
    WGPUPowerPreference_HighPerformance = 2,
};
enum { WGPUQueryType_Timestamp = 2 };
enum { WGPURequestAdapterStatus_Success = 1 };
enum { WGPURequestDeviceStatus_Success = 1 };
enum { WGPUShaderStage_Compute = 0x4 };
enum { WGPUStatus_Success = 1 };
enum { WGPUSType_ShaderSourceWGSL = 2 };
enum { WGPUWGSLLanguageFeatureName_Packed4x8IntegerDotProduct = 2 };

#define WGPU_STRLEN SIZE_MAX /* as a length: data ends with a zero byte */
#define WGPU_LIMIT_U32_UNDEFINED UINT32_MAX
#define WGPU_LIMIT_U64_UNDEFINED UINT64_MAX

/* Not terminated; {NULL, WGPU_STRLEN} and {NULL, 0} are both empty. */
typedef struct WGPUStringView {
    const char *data;
    size_t length;
} WGPUStringView;

typedef struct WGPUChainedStruct {
    struct WGPUChainedStruct *next;
    WGPUEnum sType;
} WGPUChainedStruct;

typedef struct WGPUFuture {
    uint64_t id;
} WGPUFuture;

typedef struct WGPUFutureWaitInfo {
    WGPUFuture future;
    WGPUBool completed;
} WGPUFutureWaitInfo;

/* --- Callbacks --- */

typedef void (*WGPURequestAdapterCallback)(WGPUEnum status, WGPUAdapter adapter,
                                           WGPUStringView message, void *userdata1,
                                           void *userdata2);
typedef void (*WGPURequestDeviceCallback)(WGPUEnum status, WGPUDevice device,
                                          WGPUStringView message, void *userdata1, void *userdata2);
typedef void (*WGPUDeviceLostCallback)(const WGPUDevice *device, WGPUEnum reason,
                                       WGPUStringView message, void *userdata1, void *userdata2);
typedef void (*WGPUUncapturedErrorCallback)(const WGPUDevice *device, WGPUEnum type,
                                            WGPUStringView message, void *userdata1,
                                            void *userdata2);
typedef void (*WGPUPopErrorScopeCallback)(WGPUEnum status, WGPUEnum type, WGPUStringView message,
                                          void *userdata1, void *userdata2);
typedef void (*WGPUBufferMapCallback)(WGPUEnum status, WGPUStringView message, void *userdata1,
                                      void *userdata2);
typedef void (*WGPUQueueWorkDoneCallback)(WGPUEnum status, WGPUStringView message, void *userdata1,
                                          void *userdata2);
typedef void (*WGPUCreateComputePipelineAsyncCallback)(WGPUEnum status,
                                                       WGPUComputePipeline pipeline,
                                                       WGPUStringView message, void *userdata1,
                                                       void *userdata2);

/* The standard has one such struct for each callback that is called once; they differ in its type
 * alone. */
#define WGPU_CALLBACK_INFO(name)                                                                   \
    typedef struct WGPU##name##CallbackInfo {                                                      \
        WGPUChainedStruct *nextInChain;                                                            \
        WGPUEnum mode;                                                                             \
        WGPU##name##Callback callback;                                                             \
        void *userdata1, *userdata2;                                                               \
    } WGPU##name##CallbackInfo
WGPU_CALLBACK_INFO(RequestAdapter);
WGPU_CALLBACK_INFO(RequestDevice);
WGPU_CALLBACK_INFO(DeviceLost);
WGPU_CALLBACK_INFO(PopErrorScope);
WGPU_CALLBACK_INFO(BufferMap);
WGPU_CALLBACK_INFO(QueueWorkDone);
WGPU_CALLBACK_INFO(CreateComputePipelineAsync);
#undef WGPU_CALLBACK_INFO

typedef struct WGPUUncapturedErrorCallbackInfo {
    WGPUChainedStruct *nextInChain;
    WGPUUncapturedErrorCallback callback;
    void *userdata1, *userdata2;
} WGPUUncapturedErrorCallbackInfo;

/* --- Descriptors --- */

typedef struct WGPUInstanceLimits {
    WGPUChainedStruct *nextInChain;
    size_t timedWaitAnyMaxCount;
} WGPUInstanceLimits;

typedef struct WGPUInstanceDescriptor {
    WGPUChainedStruct *nextInChain;
    size_t requiredFeatureCount;
    const WGPUEnum *requiredFeatures;
    const WGPUInstanceLimits *requiredLimits;
} WGPUInstanceDescriptor;

typedef struct WGPURequestAdapterOptions {
    WGPUChainedStruct *nextInChain;
    WGPUEnum featureLevel, powerPreference;
    WGPUBool forceFallbackAdapter;
    WGPUEnum backendType;
    WGPUSurface compatibleSurface;
} WGPURequestAdapterOptions;

typedef struct WGPUAdapterInfo {
    WGPUChainedStruct *nextInChain;
    WGPUStringView vendor, architecture, device, description;
    WGPUEnum backendType, adapterType;
    uint32_t vendorID, deviceID;
    uint32_t subgroupMinSize, subgroupMaxSize;
} WGPUAdapterInfo;

typedef struct WGPULimits {
    WGPUChainedStruct *nextInChain;
    uint32_t maxTextureDimension1D, maxTextureDimension2D, maxTextureDimension3D;
    uint32_t maxTextureArrayLayers;
    uint32_t maxBindGroups, maxBindGroupsPlusVertexBuffers, maxBindingsPerBindGroup;
    uint32_t maxDynamicUniformBuffersPerPipelineLayout, maxDynamicStorageBuffersPerPipelineLayout;
    uint32_t maxSampledTexturesPerShaderStage, maxSamplersPerShaderStage;
    uint32_t maxStorageBuffersPerShaderStage, maxStorageTexturesPerShaderStage;
    uint32_t maxUniformBuffersPerShaderStage;
    uint64_t maxUniformBufferBindingSize, maxStorageBufferBindingSize;
    uint32_t minUniformBufferOffsetAlignment, minStorageBufferOffsetAlignment;
    uint32_t maxVertexBuffers;
    uint64_t maxBufferSize;
    uint32_t maxVertexAttributes, maxVertexBufferArrayStride;
    uint32_t maxInterStageShaderVariables;
    uint32_t maxColorAttachments, maxColorAttachmentBytesPerSample;
    uint32_t maxComputeWorkgroupStorageSize, maxComputeInvocationsPerWorkgroup;
    uint32_t maxComputeWorkgroupSizeX, maxComputeWorkgroupSizeY, maxComputeWorkgroupSizeZ;
    uint32_t maxComputeWorkgroupsPerDimension;
    uint32_t maxImmediateSize;
} WGPULimits;

/* Of the queue, command encoder, command buffer and shader module: a label and nothing else. */
typedef struct WGPULabelDescriptor {
    WGPUChainedStruct *nextInChain;
    WGPUStringView label;
} WGPULabelDescriptor;
typedef WGPULabelDescriptor WGPUQueueDescriptor, WGPUCommandEncoderDescriptor,
    WGPUCommandBufferDescriptor, WGPUShaderModuleDescriptor;

typedef struct WGPUDeviceDescriptor {
    WGPUChainedStruct *nextInChain;
    WGPUStringView label;
    size_t requiredFeatureCount;
    const WGPUEnum *requiredFeatures;
    const WGPULimits *requiredLimits;
    WGPUQueueDescriptor defaultQueue;
    WGPUDeviceLostCallbackInfo deviceLostCallbackInfo;
    WGPUUncapturedErrorCallbackInfo uncapturedErrorCallbackInfo;
} WGPUDeviceDescriptor;

typedef struct WGPUBufferDescriptor {
    WGPUChainedStruct *nextInChain;
    WGPUStringView label;
    WGPUFlags usage;
    uint64_t size;
    WGPUBool mappedAtCreation;
} WGPUBufferDescriptor;

typedef struct WGPUBufferBindingLayout {
    WGPUChainedStruct *nextInChain;
    WGPUEnum type;
    WGPUBool hasDynamicOffset;
    uint64_t minBindingSize;
} WGPUBufferBindingLayout;

/* The layouts of samplers and textures are declared for their size; all zeros means not used. */
typedef struct WGPUBindGroupLayoutEntry {
    WGPUChainedStruct *nextInChain;
    uint32_t binding;
    WGPUFlags visibility;
    uint32_t bindingArraySize;
    WGPUBufferBindingLayout buffer;
    struct {
        WGPUChainedStruct *nextInChain;
        WGPUEnum type;
    } sampler;
    struct {
        WGPUChainedStruct *nextInChain;
        WGPUEnum sampleType, viewDimension;
        WGPUBool multisampled;
    } texture;
    struct {
        WGPUChainedStruct *nextInChain;
        WGPUEnum access, format, viewDimension;
    } storageTexture;
} WGPUBindGroupLayoutEntry;

typedef struct WGPUBindGroupLayoutDescriptor {
    WGPUChainedStruct *nextInChain;
    WGPUStringView label;
    size_t entryCount;
    const WGPUBindGroupLayoutEntry *entries;
} WGPUBindGroupLayoutDescriptor;

typedef struct WGPUBindGroupEntry {
    WGPUChainedStruct *nextInChain;
    uint32_t binding;
    WGPUBuffer buffer;
    uint64_t offset, size;
    WGPUSampler sampler;
    WGPUTextureView textureView;
} WGPUBindGroupEntry;

typedef struct WGPUBindGroupDescriptor {
    WGPUChainedStruct *nextInChain;
    WGPUStringView label;
    WGPUBindGroupLayout layout;
    size_t entryCount;
    const WGPUBindGroupEntry *entries;
} WGPUBindGroupDescriptor;

typedef struct WGPUPipelineLayoutDescriptor {
    WGPUChainedStruct *nextInChain;
    WGPUStringView label;
    size_t bindGroupLayoutCount;
    const WGPUBindGroupLayout *bindGroupLayouts;
    uint32_t immediateSize;
} WGPUPipelineLayoutDescriptor;

/* Chained to a WGPUShaderModuleDescriptor. */
typedef struct WGPUShaderSourceWGSL {
    WGPUChainedStruct chain;
    WGPUStringView code;
} WGPUShaderSourceWGSL;

typedef struct WGPUComputeState {
    WGPUChainedStruct *nextInChain;
    WGPUShaderModule module;
    WGPUStringView entryPoint;
    size_t constantCount;
    const void *constants;
} WGPUComputeState;

typedef struct WGPUComputePipelineDescriptor {
    WGPUChainedStruct *nextInChain;
    WGPUStringView label;
    WGPUPipelineLayout layout;
    WGPUComputeState compute;
} WGPUComputePipelineDescriptor;

typedef struct WGPUQuerySetDescriptor {
    WGPUChainedStruct *nextInChain;
    WGPUStringView label;
    WGPUEnum type;
    uint32_t count;
} WGPUQuerySetDescriptor;

typedef struct WGPUPassTimestampWrites {
    WGPUChainedStruct *nextInChain;
    WGPUQuerySet querySet;
    uint32_t beginningOfPassWriteIndex, endOfPassWriteIndex;
} WGPUPassTimestampWrites;

typedef struct WGPUComputePassDescriptor {
    WGPUChainedStruct *nextInChain;
    WGPUStringView label;
    const WGPUPassTimestampWrites *timestampWrites;
} WGPUComputePassDescriptor;

/* --- What one implementation adds --- */

enum {
    WGPUSType_InstanceExtras = 0x00030004,            /* wgpu-native */
    WGPUSType_DawnCacheDeviceDescriptor = 0x00050007, /* Dawn, also the next */
    WGPUSType_DawnTogglesDescriptor = 0x0005000a,
};

/* wgpu-native, to a WGPUInstanceDescriptor. */
enum {
    WGPUInstanceBackend_Vulkan = 0x1,
    WGPUInstanceBackend_Metal = 0x4,
    WGPUInstanceBackend_DX12 = 0x8,
};
typedef struct WGPUInstanceExtras {
    WGPUChainedStruct chain;
    WGPUFlags backends, flags;
    uint64_t others[16]; /* more than there are: zeros are their defaults */
} WGPUInstanceExtras;

/* Dawn: what it would print otherwise. */
typedef void (*WGPULoggingCallback)(WGPUEnum type, WGPUStringView message, void *userdata1,
                                    void *userdata2);
typedef struct WGPULoggingCallbackInfo {
    WGPUChainedStruct *nextInChain;
    WGPULoggingCallback callback;
    void *userdata1, *userdata2;
} WGPULoggingCallbackInfo;

/* Dawn, to a WGPUDeviceDescriptor. */
typedef struct WGPUDawnTogglesDescriptor {
    WGPUChainedStruct chain;
    size_t enabledToggleCount;
    const char *const *enabledToggles;
    size_t disabledToggleCount;
    const char *const *disabledToggles;
} WGPUDawnTogglesDescriptor;

/* The bytes kept under a key: their number where value has no room for them, else also copied. */
typedef struct WGPUDawnLoadCacheDataCallbackInfo {
    WGPUChainedStruct *nextInChain;
    size_t (*callback)(size_t keySize, const uint8_t *key, size_t valueSize, uint8_t *value,
                       void *userdata1, void *userdata2);
    void *userdata1, *userdata2;
} WGPUDawnLoadCacheDataCallbackInfo;

typedef struct WGPUDawnStoreCacheDataCallbackInfo {
    WGPUChainedStruct *nextInChain;
    void (*callback)(size_t keySize, const uint8_t *key, size_t valueSize, const uint8_t *value,
                     void *userdata1, void *userdata2);
    void *userdata1, *userdata2;
} WGPUDawnStoreCacheDataCallbackInfo;

/* Likewise. */
typedef struct WGPUDawnCacheDeviceDescriptor {
    WGPUChainedStruct chain;
    WGPUStringView isolationKey;
    WGPUDawnLoadCacheDataCallbackInfo load;
    WGPUDawnStoreCacheDataCallbackInfo store;
} WGPUDawnCacheDeviceDescriptor;

/* --- Functions --- */

/* X(result, Name, arguments): wgpuName, in every implementation. */
#define WK_WGPU_FUNCTIONS(X)                                                                       \
    X(WGPUInstance, CreateInstance, (const WGPUInstanceDescriptor *))                              \
    X(void, InstanceProcessEvents, (WGPUInstance))                                                 \
    X(WGPUFuture, InstanceRequestAdapter,                                                          \
      (WGPUInstance, const WGPURequestAdapterOptions *, WGPURequestAdapterCallbackInfo))           \
    X(void, InstanceRelease, (WGPUInstance))                                                       \
    X(WGPUEnum, AdapterGetInfo, (WGPUAdapter, WGPUAdapterInfo *))                                  \
    X(void, AdapterInfoFreeMembers, (WGPUAdapterInfo))                                             \
    X(WGPUEnum, AdapterGetLimits, (WGPUAdapter, WGPULimits *))                                     \
    X(WGPUBool, AdapterHasFeature, (WGPUAdapter, WGPUEnum))                                        \
    X(WGPUFuture, AdapterRequestDevice,                                                            \
      (WGPUAdapter, const WGPUDeviceDescriptor *, WGPURequestDeviceCallbackInfo))                  \
    X(void, AdapterRelease, (WGPUAdapter))                                                         \
    X(WGPUEnum, DeviceGetLimits, (WGPUDevice, WGPULimits *))                                       \
    X(WGPUQueue, DeviceGetQueue, (WGPUDevice))                                                     \
    X(void, DevicePushErrorScope, (WGPUDevice, WGPUEnum))                                          \
    X(WGPUFuture, DevicePopErrorScope, (WGPUDevice, WGPUPopErrorScopeCallbackInfo))                \
    X(WGPUBuffer, DeviceCreateBuffer, (WGPUDevice, const WGPUBufferDescriptor *))                  \
    X(WGPUBindGroupLayout, DeviceCreateBindGroupLayout,                                            \
      (WGPUDevice, const WGPUBindGroupLayoutDescriptor *))                                         \
    X(WGPUPipelineLayout, DeviceCreatePipelineLayout,                                              \
      (WGPUDevice, const WGPUPipelineLayoutDescriptor *))                                          \
    X(WGPUBindGroup, DeviceCreateBindGroup, (WGPUDevice, const WGPUBindGroupDescriptor *))         \
    X(WGPUShaderModule, DeviceCreateShaderModule,                                                  \
      (WGPUDevice, const WGPUShaderModuleDescriptor *))                                            \
    X(WGPUComputePipeline, DeviceCreateComputePipeline,                                            \
      (WGPUDevice, const WGPUComputePipelineDescriptor *))                                         \
    X(WGPUQuerySet, DeviceCreateQuerySet, (WGPUDevice, const WGPUQuerySetDescriptor *))            \
    X(WGPUCommandEncoder, DeviceCreateCommandEncoder,                                              \
      (WGPUDevice, const WGPUCommandEncoderDescriptor *))                                          \
    X(void, DeviceRelease, (WGPUDevice))                                                           \
    X(WGPUFuture, BufferMapAsync,                                                                  \
      (WGPUBuffer, WGPUFlags mode, size_t offset, size_t size, WGPUBufferMapCallbackInfo))         \
    X(const void *, BufferGetConstMappedRange, (WGPUBuffer, size_t offset, size_t size))           \
    X(void, BufferUnmap, (WGPUBuffer))                                                             \
    X(void, BufferRelease, (WGPUBuffer))                                                           \
    X(void, BindGroupLayoutRelease, (WGPUBindGroupLayout))                                         \
    X(void, PipelineLayoutRelease, (WGPUPipelineLayout))                                           \
    X(void, BindGroupRelease, (WGPUBindGroup))                                                     \
    X(void, ShaderModuleRelease, (WGPUShaderModule))                                               \
    X(void, ComputePipelineRelease, (WGPUComputePipeline))                                         \
    X(void, QuerySetRelease, (WGPUQuerySet))                                                       \
    X(WGPUComputePassEncoder, CommandEncoderBeginComputePass,                                      \
      (WGPUCommandEncoder, const WGPUComputePassDescriptor *))                                     \
    X(void, CommandEncoderCopyBufferToBuffer,                                                      \
      (WGPUCommandEncoder, WGPUBuffer from, uint64_t from_offset, WGPUBuffer to,                   \
       uint64_t to_offset, uint64_t size))                                                         \
    X(void, CommandEncoderClearBuffer,                                                             \
      (WGPUCommandEncoder, WGPUBuffer, uint64_t offset, uint64_t size))                            \
    X(void, CommandEncoderResolveQuerySet,                                                         \
      (WGPUCommandEncoder, WGPUQuerySet, uint32_t first, uint32_t n, WGPUBuffer to,                \
       uint64_t to_offset))                                                                        \
    X(WGPUCommandBuffer, CommandEncoderFinish,                                                     \
      (WGPUCommandEncoder, const WGPUCommandBufferDescriptor *))                                   \
    X(void, CommandEncoderRelease, (WGPUCommandEncoder))                                           \
    X(void, CommandBufferRelease, (WGPUCommandBuffer))                                             \
    X(void, ComputePassEncoderSetPipeline, (WGPUComputePassEncoder, WGPUComputePipeline))          \
    X(void, ComputePassEncoderSetBindGroup,                                                        \
      (WGPUComputePassEncoder, uint32_t index, WGPUBindGroup, size_t n_offsets,                    \
       const uint32_t *offsets))                                                                   \
    X(void, ComputePassEncoderDispatchWorkgroups,                                                  \
      (WGPUComputePassEncoder, uint32_t x, uint32_t y, uint32_t z))                                \
    X(void, ComputePassEncoderEnd, (WGPUComputePassEncoder))                                       \
    X(void, ComputePassEncoderRelease, (WGPUComputePassEncoder))                                   \
    X(void, QueueWriteBuffer,                                                                      \
      (WGPUQueue, WGPUBuffer, uint64_t offset, const void *bytes, size_t size))                    \
    X(void, QueueSubmit, (WGPUQueue, size_t n, const WGPUCommandBuffer *))                         \
    X(WGPUFuture, QueueOnSubmittedWorkDone, (WGPUQueue, WGPUQueueWorkDoneCallbackInfo))            \
    X(void, QueueRelease, (WGPUQueue))

/* The same for functions that are looked up but may be missing, or that one of the implementations
 * exports without being able to run them: see wk_gpu_quirks. */
#define WK_WGPU_OPTIONAL_FUNCTIONS(X)                                                              \
    X(WGPUEnum, InstanceWaitAny,                                                                   \
      (WGPUInstance, size_t n, WGPUFutureWaitInfo *, uint64_t timeout_ns))                         \
    X(WGPUBool, InstanceHasWGSLLanguageFeature, (WGPUInstance, WGPUEnum))                          \
    X(WGPUFuture, DeviceCreateComputePipelineAsync,                                                \
      (WGPUDevice, const WGPUComputePipelineDescriptor *,                                          \
       WGPUCreateComputePipelineAsyncCallbackInfo))                                                \
    /* Not in the standard: Dawn's and wgpu-native's own. */                                       \
    X(void, DeviceForceLoss, (WGPUDevice, WGPUEnum reason, WGPUStringView message))                \
    X(void, DeviceSetLoggingCallback, (WGPUDevice, WGPULoggingCallbackInfo))                       \
    X(WGPUBool, DevicePoll, (WGPUDevice, WGPUBool wait, const uint64_t *submission))               \
    X(uint32_t, GetVersion, (void))

typedef struct WGPUFunctions {
#define WK_WGPU_MEMBER(result, name, arguments) result(*name) arguments;
    WK_WGPU_FUNCTIONS(WK_WGPU_MEMBER)
    WK_WGPU_OPTIONAL_FUNCTIONS(WK_WGPU_MEMBER)
#undef WK_WGPU_MEMBER
} WGPUFunctions;

#endif
