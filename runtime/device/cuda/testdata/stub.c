// A CUDA driver without a device. Its memory is the process's, calls of the stream run at once, and
// it knows the kernels of the tests by name. STUB_FAULT makes a function misbehave:
//   crash:NAME hang:NAME fail:NAME:CODE devices:COUNT version:NUMBER capability:NUMBER
// With STUB_KERNELS=ignore, other kernels compute nothing. STUB_EVENT delays events.
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t u64;
typedef uint32_t u32;

static int fault(const char *name) {
    const char *f = getenv("STUB_FAULT");
    const char *colon = f ? strchr(f, ':') : 0;
    if (!colon || strncmp(colon + 1, name, strlen(name)) || (colon[1 + strlen(name)] && colon[1 + strlen(name)] != ':'))
        return 0;
    if (!strncmp(f, "crash:", 6)) abort();
    if (!strncmp(f, "hang:", 5)) for (;;) pause();
    if (!strncmp(f, "fail:", 5)) return atoi(strrchr(f, ':') + 1);
    return 0;
}
#define BEGIN { int code = fault(__func__); if (code) return code; }

int cuInit(unsigned flags) { BEGIN return flags; }
// number_of returns the number of a fault, or usual.
static int number_of(const char *fault, int usual) {
    const char *f = getenv("STUB_FAULT");
    return f && !strncmp(f, fault, strlen(fault)) ? atoi(f + strlen(fault)) : usual;
}

int cuDriverGetVersion(int *v) { BEGIN *v = number_of("version:", 12040); return 0; }
int cuDeviceGetCount(int *v) {
    BEGIN
    *v = number_of("devices:", 1);
    return 0;
}
int cuDeviceGet(int *d, int i) { BEGIN *d = i; return 0; }
int cuDeviceGetName(char *s, int n, int d) { BEGIN snprintf(s, n, "stub"); return 0; }
int cuDeviceGetPCIBusId(char *s, int n, int d) { BEGIN snprintf(s, n, "0000:17:00.0"); return 0; }
int cuDeviceTotalMem_v2(size_t *n, int d) { BEGIN *n = 1ull << 34; return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) {
    BEGIN
    int capability = number_of("capability:", 90);
    *v = a == 75 ? capability / 10 : a == 76 ? capability % 10 : 0;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **c, int d) { BEGIN *c = (void *)0x11; return 0; }

static __thread void *current;
int cuCtxSetCurrent(void *c) { BEGIN current = c; return c == (void *)0x11 ? 0 : 201; }
#define CURRENT { BEGIN if (!current) return 201; }
#define STREAM(s) { CURRENT if ((s) != (void *)0x22) return 400; }

int cuStreamCreate(void **s, unsigned flags) { CURRENT *s = (void *)0x22; return flags == 1 ? 0 : 1; }
int cuMemGetInfo_v2(size_t *free, size_t *all) { CURRENT *free = 1ull << 33; *all = 1ull << 34; return 0; }
int cuGetErrorName(int e, const char **s) { *s = e == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_STUB"; return 0; }

int cuMemAlloc_v2(u64 *p, size_t n) {
    CURRENT
    if (n > 1ull << 34 || !(*p = (u64)aligned_alloc(256, (n + 255) & ~255ull))) return 2;
    memset((void *)*p, 0xAA, n);
    return 0;
}
int cuMemFree_v2(u64 p) { CURRENT free((void *)p); return 0; }
int cuMemcpyHtoDAsync_v2(u64 d, void *s, size_t n, void *st) { STREAM(st) memcpy((void *)d, s, n); return 0; }
int cuMemcpyDtoHAsync_v2(void *d, u64 s, size_t n, void *st) { STREAM(st) memcpy(d, (void *)s, n); return 0; }

// A graph is a list of kernels and copies. Between cuStreamBeginCapture_v2 and cuStreamEndCapture
// calls of the stream are added to one and do not run.
struct node {
    struct node *next;
    char *kernel; // 0: a copy
    unsigned gx, gy, gz, bx;
    size_t size;       // of block
    u64 args[3];       // of a copy
    u32 block[64];     // of a kernel
};
struct graph { struct node *first, **last; };
static struct graph *capturing;

static struct node *add_node(void) {
    struct node *n = calloc(1, sizeof *n);
    *capturing->last = n;
    capturing->last = &n->next;
    return n;
}

int cuMemcpyDtoDAsync_v2(u64 d, u64 s, size_t n, void *st) {
    STREAM(st)
    if (capturing) return 1; // some drivers refuse memory of the host
    memmove((void *)d, (void *)s, n);
    return 0;
}
int cuMemcpyAsync(u64 d, u64 s, size_t n, void *st) {
    STREAM(st)
    if (capturing) {
        struct node *c = add_node();
        c->args[0] = d, c->args[1] = s, c->args[2] = n;
        return 0;
    }
    memmove((void *)d, (void *)s, n);
    return 0;
}
int cuMemsetD8Async(u64 p, unsigned char v, size_t n, void *st) { STREAM(st) memset((void *)p, v, n); return 0; }
int cuMemHostRegister_v2(void *p, size_t n, unsigned flags) { CURRENT return flags == 3 ? 0 : 1; }
int cuMemHostUnregister(void *p) { CURRENT return 0; }
int cuMemHostGetDevicePointer_v2(u64 *d, void *p, unsigned flags) { CURRENT *d = (u64)p; return flags; }

// An event is the time at which it is reached: STUB_EVENT microseconds after it is recorded.
int cuEventCreate(struct timespec **e, unsigned flags) {
    CURRENT
    *e = malloc(sizeof **e);
    return flags == 3 ? 0 : 1;
}
int cuEventRecord(struct timespec *e, void *s) {
    STREAM(s)
    const char *after = getenv("STUB_EVENT");
    if (capturing) return 900;
    if (!e) return 400;
    clock_gettime(CLOCK_MONOTONIC, e);
    e->tv_nsec += after ? 1000L * atoi(after) : 0;
    e->tv_sec += e->tv_nsec / 1000000000;
    e->tv_nsec %= 1000000000;
    return 0;
}
int cuEventSynchronize(struct timespec *e) {
    CURRENT
    if (!e) return 400;
    if (getenv("STUB_EVENT")) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, e, 0);
    return 0;
}

// A module is a copy of its text.
int cuModuleLoadDataEx(void **m, const char *text, unsigned n, int *options, void **values) {
    CURRENT
    if (n != 2 || options[0] != 5 || options[1] != 6 || (size_t)values[1] != 4096) return 1;
    if (strncmp(text, ".version ", 9) || strstr(text, "refused")) {
        strcpy(values[0], "ptxas fatal: the stub does not like it");
        return 218;
    }
    *m = strdup(text);
    return 0;
}
int cuModuleUnload(void *m) { CURRENT free(m); return 0; }
int cuModuleGetFunction(void **f, void *m, const char *name) {
    CURRENT
    char entry[256];
    snprintf(entry, sizeof entry, ".entry %s", name);
    if (!strstr(m, entry)) return 500;
    *f = strdup(name);
    return 0;
}
int cuFuncGetAttribute(int *v, int a, void *f) { CURRENT *v = 512; return a; }

static float number(u32 bits) { float f; memcpy(&f, &bits, 4); return f; }
static u32 bitsOf(float f) { u32 b; memcpy(&b, &f, 4); return b; }

static u32 probe(const char *name, u32 *x) {
    volatile float product;
    if (strstr(name, "fma")) return bitsOf(fmaf(number(x[0]), number(x[1]), number(x[2])));
    if (strstr(name, "division")) return bitsOf(number(x[0]) / number(x[1]));
    if (strstr(name, "square_root")) return bitsOf(sqrtf(number(x[0])));
    if (strstr(name, "integer_dot")) {
        u32 sum = x[2];
        for (int i = 0; i < 32; i += 8) sum += (int)(int8_t)(x[0] >> i) * (int8_t)(x[1] >> i);
        return sum;
    }
    product = number(x[0]) * number(x[1]);
    return bitsOf(product + number(x[2]));
}

static int run(char *name, unsigned gx, unsigned gy, unsigned gz, unsigned bx, void *block, size_t size) {
    u32 **buffers = block;
    u32 *push = block;
    if (!strcmp(name, "test_add")) {
        if (size != 12 || bx != 64) return 1;
        for (u64 i = 0; i < (u64)gx * bx; i++) buffers[0][i] += push[2];
    } else if (!strcmp(name, "test_sum")) {
        if (size != 24 || bx != 32) return 1;
        for (u32 z = 0; z < gz; z++) for (u32 y = 0; y < gy; y++) for (u32 x = 0; x < gx; x++) {
            u32 group = (z * push[5] + y) * push[4] + x, sum = x + 100 * y;
            for (u32 i = 0; i < 32; i++) sum += buffers[0][32 * group + i];
            buffers[1][group] = sum;
        }
    } else if (!strncmp(name, "probe_", 6)) {
        for (u64 i = 0; i < (u64)gx * bx; i++) buffers[1][i] = probe(name, &buffers[0][3 * i]);
    } else {
        const char *kernels = getenv("STUB_KERNELS");
        return kernels && !strcmp(kernels, "ignore") ? 0 : 98;
    }
    return 0;
}

int cuLaunchKernel(char *name, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra) {
    STREAM(stream)
    if (by != 1 || bz != 1 || shared || params || extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4]) return 1;
    size_t size = *(size_t *)extra[3];
    if (!capturing) return run(name, gx, gy, gz, bx, extra[1], size);
    struct node *n = add_node();
    if (size > sizeof n->block) return 1;
    memcpy(n->block, extra[1], size);
    n->kernel = name, n->gx = gx, n->gy = gy, n->gz = gz, n->bx = bx, n->size = size;
    return 0;
}

int cuStreamBeginCapture_v2(void *s, int mode) {
    STREAM(s)
    if (capturing || mode != 2) return 900;
    capturing = calloc(1, sizeof *capturing);
    capturing->last = &capturing->first;
    return 0;
}
static void free_graph(struct graph *g) {
    for (struct node *n = g->first, *next; n; n = next) {
        next = n->next;
        free(n);
    }
    free(g);
}
int cuStreamEndCapture(void *s, struct graph **g) {
    if (!capturing) return 400;
    *g = capturing;
    capturing = 0;
    int code = fault(__func__);
    if (code) free_graph(*g), *g = 0;
    return code;
}
int cuGraphDestroy(struct graph *g) { CURRENT free_graph(g); return 0; }

// An executable graph is a copy of a graph.
static int instantiate(struct graph **to, struct graph *from) {
    struct graph *g = *to = calloc(1, sizeof *g);
    g->last = &g->first;
    for (struct node *n = from->first; n; n = n->next) {
        struct node *c = *g->last = malloc(sizeof *c);
        *c = *n;
        c->next = 0;
        g->last = &c->next;
    }
    return 0;
}
int cuGraphInstantiateWithFlags(struct graph **to, struct graph *from, u64 flags) {
    CURRENT
    return flags ? 1 : instantiate(to, from);
}
int cuGraphInstantiate_v2(struct graph **to, struct graph *from, void **node, char *log, size_t n) {
    CURRENT
    return node || log || n ? 1 : instantiate(to, from);
}
int cuGraphExecDestroy(struct graph *g) { CURRENT free_graph(g); return 0; }
int cuGraphLaunch(struct graph *g, void *s) {
    STREAM(s)
    for (struct node *n = g->first; n; n = n->next) {
        if (!n->kernel) memmove((void *)n->args[0], (void *)n->args[1], n->args[2]);
        else {
            int code = run(n->kernel, n->gx, n->gy, n->gz, n->bx, n->block, n->size);
            if (code) return code;
        }
    }
    return 0;
}
