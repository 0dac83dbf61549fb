/* Counts the calls that ask the disk to keep what was written, and the time in them, for whatever process this is
   preloaded into; so that a bench can say who syncs, instead of believing settings. Guards: both numbers lie in the file
   that FAIRWAY_BENCH_SYNCS names, are added to atomically, and the calls themselves are made as they were asked for. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint64_t *counts; /* calls, nanoseconds */

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAIRWAY_BENCH_SYNCS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *place = mmap(NULL, 2 * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (place != MAP_FAILED) counts = place;
}

static int counted(int (*call)(int), int file) {
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    int result = call(file);
    clock_gettime(CLOCK_MONOTONIC, &after);
    if (counts) {
        int64_t spent = (after.tv_sec - before.tv_sec) * 1000000000LL + (after.tv_nsec - before.tv_nsec);
        atomic_fetch_add(&counts[0], 1);
        atomic_fetch_add(&counts[1], (uint64_t)spent);
    }
    return result;
}

int fsync(int file) { return counted((int (*)(int))dlsym(RTLD_NEXT, "fsync"), file); }

int fdatasync(int file) { return counted((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"), file); }
