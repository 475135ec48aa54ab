/* A stand-in for libnvidia-ml.so.1: the few functions that kvplan calls, with machines to choose
 * from by the environment variable FAKE_NVML. It lets tests run the real nvidia-ml-py.
 * Signatures and codes as in NVIDIA's nvml.h.
 */
#include <stdlib.h>
#include <string.h>

typedef unsigned long long u64;

enum { OK = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
       DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15, VERSION_MISMATCH = 18 };

#define MIB (1024ULL * 1024)

typedef struct { u64 total, free, used; } memory_v1;
typedef struct { unsigned version; u64 total, reserved, free, used; } memory_v2;
typedef struct { unsigned pid; u64 used; unsigned gpu_instance, compute_instance; } process;

typedef struct {
    const char *name, *uuid;
    int major, minor;
    u64 total, reserved, used;  /* MiB; total 0: Not Supported */
    int ecc;                    /* -1: Not Supported */
    int mig;                    /* -1: Not Supported */
    unsigned processes;
} device;

static const device H100 = {"NVIDIA H100 80GB HBM3", "GPU-11111111-aaaa", 9, 0, 81559, 469, 0, 1, 0, 0};
static const device H100_BUSY = {"NVIDIA H100 80GB HBM3", "GPU-11111111-aaaa", 9, 0, 81559, 469, 20480, 1, 0, 2};
static const device H100_TWIN = {"NVIDIA H100 80GB HBM3", "GPU-22222222-bbbb", 9, 0, 81559, 469, 0, 1, 0, 0};
static const device H100_BUSY_TWIN = {"NVIDIA H100 80GB HBM3", "GPU-22222222-bbbb", 9, 0, 81559, 469, 30720, 1, 0, 1};
static const device L4 = {"NVIDIA L4", "GPU-33333333-cccc", 8, 9, 23034, 465, 0, 1, -1, 0};
static const device GB10 = {"NVIDIA GB10", "GPU-44444444-dddd", 12, 1, 0, 0, 0, -1, -1, 0};
static const device A100 = {"NVIDIA A100-SXM4-40GB", "GPU-55555555-eeee", 8, 0, 40960, 600, 0, 1, 1, 0};
static const device A6000_ECC = {"NVIDIA RTX A6000", "GPU-66666666-ffff", 8, 6, 46068, 449, 0, 1, -1, 0};
static const device A6000 = {"NVIDIA RTX A6000", "GPU-66666666-ffff", 8, 6, 49140, 449, 0, 0, -1, 0};
static const device UNKNOWN = {"NVIDIA Z9000", "GPU-77777777-9999", 11, 0, 50000, 0, 0, 0, -1, 0};
static const device NO_MEMORY = {"NVIDIA Z9000", "GPU-77777777-9999", 11, 0, 0, 0, 0, 0, -1, 0};
static const device MODDED = {"NVIDIA GeForce RTX 4090", "GPU-88888888-0000", 8, 9, 49140, 479, 0, -1, -1, 0};

/* The instances of the A100; the second slot is free. */
static const device INSTANCES[] = {
    {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", "MIG-aaaa", 8, 0, 4864, 0, 0, -1, -1, 0},
    {0},
    {"NVIDIA A100-SXM4-40GB MIG 3g.20gb", "MIG-bbbb", 8, 0, 19968, 0, 4096, -1, -1, 0},
};
enum { SLOTS = sizeof INSTANCES / sizeof INSTANCES[0] };

static int is(const char *scenario) {
    const char *chosen = getenv("FAKE_NVML");
    return strcmp(chosen ? chosen : "one", scenario) == 0;
}

static unsigned fill(const device **found) {
    if (is("none")) return 0;
    if (is("busy")) { found[0] = &H100_BUSY; return 1; }
    if (is("unlike")) { found[0] = &H100; found[1] = &L4; return 2; }
    if (is("twins")) { found[0] = &H100; found[1] = &H100_TWIN; return 2; }
    if (is("busy-twin")) { found[0] = &H100; found[1] = &H100_BUSY_TWIN; return 2; }
    if (is("gb10")) { found[0] = &GB10; return 1; }
    if (is("mig") || is("mig-empty")) { found[0] = &A100; return 1; }
    if (is("ecc-on")) { found[0] = &A6000_ECC; return 1; }
    if (is("ecc-off")) { found[0] = &A6000; return 1; }
    if (is("unknown")) { found[0] = &UNKNOWN; return 1; }
    if (is("no-memory")) { found[0] = &NO_MEMORY; return 1; }
    if (is("modded")) { found[0] = &MODDED; return 1; }
    found[0] = &H100;
    return 1;
}

static int copy(char *to, unsigned size, const char *text) {
    if (strlen(text) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(to, text);
    return OK;
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    if (is("not-loaded")) return DRIVER_NOT_LOADED;
    if (is("mismatch")) return VERSION_MISMATCH;
    return OK;
}

int nvmlShutdown(void) { return OK; }

int nvmlSystemGetDriverVersion(char *version, unsigned size) { return copy(version, size, "550.54.15"); }

int nvmlDeviceGetCount_v2(unsigned *count) {
    const device *found[2];
    *count = fill(found);
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, const device **handle) {
    const device *found[2];
    if (is("lost")) return GPU_IS_LOST;
    if (index >= fill(found)) return INVALID_ARGUMENT;
    *handle = found[index];
    return OK;
}

int nvmlDeviceGetName(const device *gpu, char *name, unsigned size) { return copy(name, size, gpu->name); }

int nvmlDeviceGetUUID(const device *gpu, char *uuid, unsigned size) { return copy(uuid, size, gpu->uuid); }

int nvmlDeviceGetCudaComputeCapability(const device *gpu, int *major, int *minor) {
    *major = gpu->major;
    *minor = gpu->minor;
    return OK;
}

/* The first version of the answer counts what is reserved as used. */
int nvmlDeviceGetMemoryInfo(const device *gpu, memory_v1 *memory) {
    if (!gpu->total) return NOT_SUPPORTED;
    memory->total = gpu->total * MIB;
    memory->used = (gpu->used + gpu->reserved) * MIB;
    memory->free = memory->total - memory->used;
    return OK;
}

#ifndef OLD_DRIVER
int nvmlDeviceGetMemoryInfo_v2(const device *gpu, memory_v2 *memory) {
    if (!gpu->total) return NOT_SUPPORTED;
    if (memory->version != (sizeof *memory | 2u << 24)) return INVALID_ARGUMENT;
    memory->total = gpu->total * MIB;
    memory->reserved = gpu->reserved * MIB;
    memory->used = gpu->used * MIB;
    memory->free = memory->total - memory->reserved - memory->used;
    return OK;
}
#endif

int nvmlDeviceGetEccMode(const device *gpu, int *current, int *pending) {
    if (gpu->ecc < 0) return NOT_SUPPORTED;
    *current = *pending = gpu->ecc;
    return OK;
}

int nvmlDeviceGetMigMode(const device *gpu, unsigned *current, unsigned *pending) {
    if (gpu->mig < 0) return NOT_SUPPORTED;
    *current = *pending = (unsigned)gpu->mig;
    return OK;
}

int nvmlDeviceGetMaxMigDeviceCount(const device *gpu, unsigned *count) {
    *count = gpu->mig == 1 ? SLOTS : 0;
    return OK;
}

int nvmlDeviceGetMigDeviceHandleByIndex(const device *gpu, unsigned index, const device **handle) {
    (void)gpu;
    if (index >= SLOTS || !INSTANCES[index].name || is("mig-empty")) return NOT_FOUND;
    *handle = &INSTANCES[index];
    return OK;
}

#ifndef OLD_DRIVER
int nvmlDeviceGetComputeRunningProcesses_v3(const device *gpu, unsigned *count, process *list) {
    if (*count < gpu->processes) {
        *count = gpu->processes;
        return INSUFFICIENT_SIZE;
    }
    for (unsigned i = 0; i < gpu->processes; i++)
        list[i] = (process){4000 + i, 10240 * MIB, 0, 0};
    *count = gpu->processes;
    return OK;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(const device *gpu, unsigned *count, process *list) {
    (void)gpu;
    (void)list;
    *count = 0;
    return OK;
}
#endif
