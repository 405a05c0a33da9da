/* A libcuda that does nothing, so that what Python adds to each call can be measured anywhere.
 *
 * Calls succeed at once; device memory is a range of addresses that nothing backs, pinned memory is
 * ordinary memory, kernels never run. The declarations are those of the CUDA Driver API manual with
 * plain integers for its enums and handles. Build: cc -O2 -shared -fPIC -o libcuda.so.1 null_driver.c
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define DEVICES 8
#define MEMORY_BYTES ((size_t)80 << 30)
#define MEMORY_BASE 0x700000000000ull

typedef int status; /* CUresult */
typedef void *handle;
typedef unsigned long long address; /* CUdeviceptr */

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NOT_FOUND = 500,
};

static char contexts[DEVICES], objects[16];
static _Alignas(4096) char managed[1 << 20]; /* memory of cuMemAllocManaged, never reused */
static size_t managed_bytes;
static _Thread_local int stack[64], depth;
static address next_address = MEMORY_BASE;

static int current(void) { return depth ? stack[depth - 1] : -1; }
static handle context_of(int device) { return device < 0 ? NULL : &contexts[device]; }
static int device_of(handle context) { return context ? (int)((char *)context - contexts) : -1; }
static status give(handle *out, int which) { return *out = &objects[which], SUCCESS; }
static status fill_text(char *out, int length, const char *text, int number)
{
    snprintf(out, (size_t)length, text, number);
    return SUCCESS;
}

/* The driver and its devices. */
static status init(unsigned flags) { (void)flags; return SUCCESS; }
static status version(int *out) { return *out = 13000, SUCCESS; }
static status error_text(int code, const char **out)
{
    return *out = code ? "NULL_DRIVER_ERROR" : "CUDA_SUCCESS", SUCCESS;
}
static status count(int *out) { return *out = DEVICES, SUCCESS; }
static status device(int *out, int ordinal)
{
    if (ordinal < 0 || ordinal >= DEVICES) return INVALID_DEVICE;
    return *out = ordinal, SUCCESS;
}
static status device_name(char *out, int length, int ordinal)
{
    return fill_text(out, length, "Null device %d", ordinal);
}
static status bus_id(char *out, int length, int ordinal)
{
    return fill_text(out, length, "0000:%02x:00.0", ordinal + 1);
}
static status uuid(char *out, int ordinal) { return memset(out, ordinal, 16), SUCCESS; }
static status total_memory(size_t *out, int ordinal)
{
    (void)ordinal;
    return *out = MEMORY_BYTES, SUCCESS;
}
static status device_attribute(int *out, int which, int ordinal)
{
    (void)ordinal;
    switch (which) { /* CUdevice_attribute */
    case 1: case 2: case 3: *out = 1024; break;          /* threads of a block, block x, y */
    case 4: *out = 64; break;                            /* block z */
    case 5: *out = 2147483647; break;                    /* grid x */
    case 6: case 7: *out = 65535; break;                 /* grid y, z */
    case 8: *out = 49152; break;                         /* shared bytes of a block */
    case 10: *out = 32; break;                           /* warp size */
    case 12: case 82: *out = 65536; break;               /* registers */
    case 16: *out = 132; break;                          /* multiprocessors */
    case 39: *out = 2048; break;                         /* threads of a multiprocessor */
    case 75: *out = 9; break;                            /* compute capability 9.0 */
    case 76: *out = 0; break;
    case 97: *out = 232448; break;                       /* shared bytes of a block, opted in */
    default: *out = 1;
    }
    return SUCCESS;
}
static status can_access(int *out, int a, int b) { (void)a, (void)b; return *out = 1, SUCCESS; }

/* Contexts. */
static status retain(handle *out, int ordinal) { return *out = context_of(ordinal), SUCCESS; }
static status release(int ordinal) { (void)ordinal; return SUCCESS; }
static status primary_state(int ordinal, unsigned *flags, int *active)
{
    (void)ordinal;
    return *flags = 0, *active = 1, SUCCESS;
}
static status push(handle context)
{
    if (depth == 64) return INVALID_CONTEXT;
    return stack[depth++] = device_of(context), SUCCESS;
}
static status pop(handle *out)
{
    if (!depth) return INVALID_CONTEXT;
    return *out = context_of(stack[--depth]), SUCCESS;
}
static status create_context(handle *out, void *params, unsigned flags, int ordinal)
{
    (void)params, (void)flags;
    return push(*out = context_of(ordinal));
}
static status set_current(handle context)
{
    if (depth) stack[depth - 1] = device_of(context);
    else stack[depth++] = device_of(context);
    return SUCCESS;
}
static status get_current(handle *out) { return *out = context_of(current()), SUCCESS; }
static status context_device(int *out)
{
    return current() < 0 ? INVALID_CONTEXT : (*out = current(), SUCCESS);
}
static status context_device_of(int *out, handle context)
{
    return *out = context ? device_of(context) : current(), SUCCESS;
}
static status context_id(handle context, unsigned long long *out)
{
    return *out = (unsigned long long)device_of(context) + 1, SUCCESS;
}
static status priorities(int *least, int *greatest) { return *least = 0, *greatest = -5, SUCCESS; }
static status with_handle(handle h) { (void)h; return SUCCESS; }
static status with_handle_flags(handle h, unsigned flags) { (void)h, (void)flags; return SUCCESS; }
static status nothing(void) { return SUCCESS; }

/* Streams, events and graphs. */
static status create_stream(handle *out, unsigned flags) { (void)flags; return give(out, 0); }
static status create_stream_priority(handle *out, unsigned flags, int priority)
{
    (void)flags, (void)priority;
    return give(out, 0);
}
static status stream_priority(handle stream, int *out) { (void)stream; return *out = 0, SUCCESS; }
static status stream_context(handle stream, handle *out)
{
    (void)stream;
    return *out = context_of(current() < 0 ? 0 : current()), SUCCESS;
}
static status stream_context2(handle stream, handle *out, handle *green)
{
    *green = NULL;
    return stream_context(stream, out);
}
static status stream_flags(handle stream, unsigned *out) { (void)stream; return *out = 1, SUCCESS; }
static status stream_device(handle stream, int *out)
{
    (void)stream;
    return *out = current() < 0 ? 0 : current(), SUCCESS;
}
static status wait_event(handle stream, handle event, unsigned flags)
{
    (void)stream, (void)event, (void)flags;
    return SUCCESS;
}
static status is_capturing(handle stream, int *out) { (void)stream; return *out = 0, SUCCESS; }
static status capture_info(handle stream, int *state)
{
    (void)stream;
    return *state = 0, SUCCESS; /* no capture: the other results are not written */
}
static status begin_capture(handle stream, int mode) { (void)stream, (void)mode; return SUCCESS; }
static status end_capture(handle stream, handle *out) { (void)stream; return give(out, 4); }
static status call_on_host(handle stream, void (*function)(void *), void *data)
{
    (void)stream;
    return function(data), SUCCESS;
}
static status create_event(handle *out, unsigned flags) { (void)flags; return give(out, 1); }
static status record(handle event, handle stream) { (void)event, (void)stream; return SUCCESS; }
static status elapsed(float *out, handle a, handle b) { (void)a, (void)b; return *out = 0, SUCCESS; }
static status instantiate(handle *out, handle graph, unsigned long long flags)
{
    (void)graph, (void)flags;
    return give(out, 5);
}
static status instantiate_params(handle *out, handle graph, void *params)
{
    (void)graph, (void)params;
    return give(out, 5);
}
static status graph_nodes(handle graph, handle *nodes, size_t *out)
{
    (void)graph, (void)nodes;
    return *out = 0, SUCCESS;
}

typedef void (*destructor)(void *);
static destructor last_destructor;
static status user_object(handle *out, void *data, destructor destroy, unsigned count, unsigned flags)
{
    /* One destructor serves every object; the handle is the data it is called with. */
    (void)count, (void)flags;
    last_destructor = destroy;
    return *out = data, SUCCESS;
}
static status with_count(handle object, unsigned count)
{
    (void)count;
    return last_destructor(object), SUCCESS;
}
static status retain_user_object(handle graph, handle object, unsigned count, unsigned flags)
{
    (void)graph, (void)object, (void)count, (void)flags; /* kept as long as the process */
    return SUCCESS;
}

/* Memory. */
static status take(address *out, size_t nbytes)
{
    if (nbytes > MEMORY_BYTES) return 2; /* out of memory */
    *out = __atomic_fetch_add(&next_address, (nbytes + 511) & ~(size_t)511, __ATOMIC_RELAXED);
    return SUCCESS;
}
static status allocate(address *out, size_t nbytes) { return take(out, nbytes); }
static status allocate_async(address *out, size_t nbytes, handle stream)
{
    (void)stream;
    return take(out, nbytes);
}
static status allocate_from(address *out, size_t nbytes, handle pool, handle stream)
{
    (void)pool, (void)stream;
    return take(out, nbytes);
}
static status free_memory(address pointer) { (void)pointer; return SUCCESS; }
static status free_async(address pointer, handle stream)
{
    (void)pointer, (void)stream;
    return SUCCESS;
}
static status host_allocate(void **out, size_t nbytes, unsigned flags)
{
    (void)flags;
    return (*out = aligned_alloc(4096, (nbytes + 4095) & ~(size_t)4095)) ? SUCCESS : 2;
}
static status host_free(void *pointer) { return free(pointer), SUCCESS; }
static status managed_allocate(address *out, size_t nbytes, unsigned flags)
{
    (void)flags;
    size_t at = __atomic_fetch_add(&managed_bytes, (nbytes + 511) & ~(size_t)511, __ATOMIC_RELAXED);
    if (nbytes > sizeof managed || at > sizeof managed - nbytes) return 2;
    return *out = (address)(uintptr_t)&managed[at], SUCCESS;
}
static int is_managed(address pointer)
{
    return pointer - (address)(uintptr_t)managed < sizeof managed;
}
static status memory_info(size_t *free_bytes, size_t *total)
{
    return *free_bytes = *total = MEMORY_BYTES, SUCCESS;
}
static status upload(address to, const void *from, size_t nbytes, handle stream)
{
    (void)to, (void)from, (void)nbytes, (void)stream;
    return SUCCESS;
}
static status download(void *to, address from, size_t nbytes, handle stream)
{
    (void)to, (void)from, (void)nbytes, (void)stream;
    return SUCCESS;
}
static status copy(address to, address from, size_t nbytes, handle stream)
{
    (void)to, (void)from, (void)nbytes, (void)stream;
    return SUCCESS;
}
static status copy_peer(address to, handle there, address from, handle here, size_t n, handle stream)
{
    (void)to, (void)there, (void)from, (void)here, (void)n, (void)stream;
    return SUCCESS;
}
static status set(address to, unsigned value, size_t n, handle stream)
{
    (void)to, (void)value, (void)n, (void)stream;
    return SUCCESS;
}
static status pool(handle *out, int ordinal) { (void)ordinal; return give(out, 6); }
static status create_pool(handle *out, const void *props) { (void)props; return give(out, 6); }
static status pool_attribute(handle h, int which, unsigned long long *value)
{
    (void)h, (void)which, (void)value;
    return SUCCESS;
}
static status pool_trim(handle h, size_t keep) { (void)h, (void)keep; return SUCCESS; }
static status pool_access(handle h, const void *map, size_t n)
{
    (void)h, (void)map, (void)n;
    return SUCCESS;
}
static status pointer_attribute(void *out, int which, address pointer)
{
    if (!is_managed(pointer) && (pointer < MEMORY_BASE || pointer >= next_address))
        return INVALID_VALUE;
    /* CU_POINTER_ATTRIBUTE_CONTEXT: that of the first device, as of other libraries' memory */
    if (which == 1) return *(handle *)out = context_of(0), SUCCESS;
    /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE: device; CU_POINTER_ATTRIBUTE_IS_MANAGED */
    *(int *)out = which == 2 ? 2 : which == 8 ? is_managed(pointer) : 0;
    return SUCCESS;
}
static status pointer_attributes(unsigned n, int *which, void **out, address pointer)
{
    for (unsigned i = 0; i < n; i++) {
        *(int *)out[i] = 0;
        pointer_attribute(out[i], which[i], pointer);
    }
    return SUCCESS;
}

/* Modules, libraries, kernels and launches. */
static status load(handle *out, const void *image) { (void)image; return give(out, 2); }
static status load_with(handle *out, const void *image, unsigned n, void *options, void *values)
{
    (void)image, (void)n, (void)options, (void)values;
    return give(out, 2);
}
static status load_library(handle *out, const void *code, void *jit, void *jit_values, unsigned n,
                           void *options, void *values, unsigned m)
{
    (void)code, (void)jit, (void)jit_values, (void)n, (void)options, (void)values, (void)m;
    return give(out, 7);
}
static status find_function(handle *out, handle module, const char *name)
{
    (void)module, (void)name;
    return give(out, 3);
}
static status kernel_function(handle *out, handle kernel) { (void)kernel; return give(out, 3); }
static status find_global(address *out, size_t *nbytes, handle module, const char *name)
{
    (void)module, (void)name;
    return *out = MEMORY_BASE, *nbytes = 256, SUCCESS;
}
static int attribute_value(int which) { return which == 0 ? 1024 : which == 4 ? 16 : 0; }
static status function_attribute(int *out, int which, handle function)
{
    (void)function;
    return *out = attribute_value(which), SUCCESS;
}
static status kernel_attribute(int *out, int which, handle kernel, int ordinal)
{
    (void)kernel, (void)ordinal;
    return *out = attribute_value(which), SUCCESS;
}
static status set_attribute(handle function, int which, int value)
{
    (void)function, (void)which, (void)value;
    return SUCCESS;
}
static status param_info(handle function, size_t index, size_t *offset, size_t *nbytes)
{
    (void)function;
    if (index > 20) return INVALID_VALUE;
    *offset = 8 * index;
    if (nbytes) *nbytes = 8;
    return SUCCESS;
}
static status occupancy(int *out, handle function, int block, size_t shared)
{
    (void)function, (void)block, (void)shared;
    return *out = 2, SUCCESS;
}
static status launch(handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                     unsigned by, unsigned bz, unsigned shared, handle stream, void **params,
                     void **extra)
{
    (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
    (void)stream, (void)params, (void)extra;
    return SUCCESS;
}
static status launch_ex(const void *config, handle function, void **params, void **extra)
{
    (void)config, (void)function, (void)params, (void)extra;
    return SUCCESS;
}

struct function {
    const char *name;
    void *function;
};
extern const struct function functions[];

EXPORT status cuGetProcAddress_v2(const char *name, void **out, int cuda_version,
                                  unsigned long long flags, int *found)
{
    (void)cuda_version, (void)flags;
    *out = NULL;
    for (size_t i = 0; functions[i].name; i++)
        if (!strcmp(functions[i].name, name)) *out = functions[i].function;
    if (found) *found = *out ? 0 : 1; /* CU_GET_PROC_ADDRESS_SUCCESS or _SYMBOL_NOT_FOUND */
    return *out ? SUCCESS : NOT_FOUND;
}
EXPORT status cuGetProcAddress(const char *name, void **out, int cuda_version,
                               unsigned long long flags)
{
    return cuGetProcAddress_v2(name, out, cuda_version, flags, NULL);
}
EXPORT status cuInit(unsigned flags) { return init(flags); }
EXPORT status cuDriverGetVersion(int *out) { return version(out); }

const struct function functions[] = {
    {"cuGetProcAddress", cuGetProcAddress_v2},
    {"cuInit", init},
    {"cuDriverGetVersion", version},
    {"cuGetErrorName", error_text},
    {"cuGetErrorString", error_text},
    {"cuDeviceGetCount", count},
    {"cuDeviceGet", device},
    {"cuDeviceGetName", device_name},
    {"cuDeviceGetUuid", uuid},
    {"cuDeviceGetPCIBusId", bus_id},
    {"cuDeviceTotalMem", total_memory},
    {"cuDeviceGetAttribute", device_attribute},
    {"cuDeviceCanAccessPeer", can_access},
    {"cuDeviceGetDefaultMemPool", pool},
    {"cuDeviceGetMemPool", pool},
    {"cuDeviceSetMemPool", nothing},
    {"cuDevicePrimaryCtxRetain", retain},
    {"cuDevicePrimaryCtxRelease", release},
    {"cuDevicePrimaryCtxGetState", primary_state},
    {"cuCtxCreate", create_context},
    {"cuCtxDestroy", with_handle},
    {"cuCtxPushCurrent", push},
    {"cuCtxPopCurrent", pop},
    {"cuCtxSetCurrent", set_current},
    {"cuCtxGetCurrent", get_current},
    {"cuCtxGetDevice", context_device},
    {"cuCtxGetDevice_v2", context_device_of},
    {"cuCtxGetId", context_id},
    {"cuCtxSynchronize", nothing},
    {"cuCtxGetStreamPriorityRange", priorities},
    {"cuCtxEnablePeerAccess", with_handle_flags},
    {"cuStreamCreate", create_stream},
    {"cuStreamCreateWithPriority", create_stream_priority},
    {"cuStreamDestroy", with_handle},
    {"cuStreamSynchronize", with_handle},
    {"cuStreamQuery", with_handle},
    {"cuStreamGetPriority", stream_priority},
    {"cuStreamGetCtx", stream_context},
    {"cuStreamGetCtx_v2", stream_context2},
    {"cuStreamGetFlags", stream_flags},
    {"cuStreamGetDevice", stream_device},
    {"cuStreamWaitEvent", wait_event},
    {"cuStreamIsCapturing", is_capturing},
    {"cuStreamGetCaptureInfo", capture_info},
    {"cuStreamBeginCapture", begin_capture},
    {"cuStreamEndCapture", end_capture},
    {"cuStreamAttachMemAsync", nothing},
    {"cuLaunchHostFunc", call_on_host},
    {"cuEventCreate", create_event},
    {"cuEventDestroy", with_handle},
    {"cuEventRecord", record},
    {"cuEventQuery", with_handle},
    {"cuEventSynchronize", with_handle},
    {"cuEventElapsedTime", elapsed},
    {"cuGraphInstantiate", instantiate},
    {"cuGraphInstantiateWithFlags", instantiate},
    {"cuGraphInstantiateWithParams", instantiate_params},
    {"cuGraphLaunch", record},
    {"cuGraphDestroy", with_handle},
    {"cuGraphExecDestroy", with_handle},
    {"cuGraphGetNodes", graph_nodes},
    {"cuUserObjectCreate", user_object},
    {"cuUserObjectRelease", with_count},
    {"cuGraphRetainUserObject", retain_user_object},
    {"cuMemAlloc", allocate},
    {"cuMemFree", free_memory},
    {"cuMemAllocAsync", allocate_async},
    {"cuMemAllocFromPoolAsync", allocate_from},
    {"cuMemFreeAsync", free_async},
    {"cuMemAllocManaged", managed_allocate},
    {"cuMemPrefetchAsync", nothing},
    {"cuMemPrefetchBatchAsync", nothing},
    {"cuMemDiscardBatchAsync", nothing},
    {"cuMemDiscardAndPrefetchBatchAsync", nothing},
    {"cuMemHostAlloc", host_allocate},
    {"cuMemFreeHost", host_free},
    {"cuMemGetInfo", memory_info},
    {"cuMemcpyHtoDAsync", upload},
    {"cuMemcpyDtoHAsync", download},
    {"cuMemcpyDtoDAsync", copy},
    {"cuMemcpyAsync", copy},
    {"cuMemcpyPeerAsync", copy_peer},
    {"cuMemcpyBatchAsync", nothing},
    {"cuMemcpy3DAsync", nothing},
    {"cuMemcpy3DBatchAsync", nothing},
    {"cuMemsetD8Async", set},
    {"cuMemsetD16Async", set},
    {"cuMemsetD32Async", set},
    {"cuMemPoolCreate", create_pool},
    {"cuMemPoolDestroy", with_handle},
    {"cuMemPoolTrimTo", pool_trim},
    {"cuMemPoolSetAttribute", pool_attribute},
    {"cuMemPoolGetAttribute", pool_attribute},
    {"cuMemPoolSetAccess", pool_access},
    {"cuPointerGetAttribute", pointer_attribute},
    {"cuPointerGetAttributes", pointer_attributes},
    {"cuModuleLoadData", load},
    {"cuModuleLoadDataEx", load_with},
    {"cuModuleUnload", with_handle},
    {"cuModuleGetFunction", find_function},
    {"cuModuleGetGlobal", find_global},
    {"cuLibraryLoadData", load_library},
    {"cuLibraryUnload", with_handle},
    {"cuLibraryGetKernel", find_function},
    {"cuKernelGetFunction", kernel_function},
    {"cuKernelGetAttribute", kernel_attribute},
    {"cuKernelGetParamInfo", param_info},
    {"cuFuncGetAttribute", function_attribute},
    {"cuFuncSetAttribute", set_attribute},
    {"cuFuncGetParamInfo", param_info},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", occupancy},
    {"cuLaunchKernel", launch},
    {"cuLaunchKernelEx", launch_ex},
    {NULL, NULL},
};
