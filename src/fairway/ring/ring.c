/* The ring: messages between processes through shared memory, for any number of writers and readers.
 *
 * The truth about a block is ONE 64-bit word in an index that lies beside the data:
 *
 *     lap | size in granules | deliveries (4) | slot (8) | state (3)
 *
 * Claiming, committing, reading, acknowledging and recovering are each one compare-and-set from an exact expected
 * word. The positions w, r and t are hints: whoever meets a word ahead of a hint advances it. A slot holds who its
 * owner is (boot, pid, start time of the process), so that "dead" is a fact and never a matter of time.
 *
 * Guards: docs/ring.md lists the ten invariants; "(5)" in a comment is the fifth of them.
 */
#define _GNU_SOURCE
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef RING_MODULE
#define RING_MODULE _ring
#endif
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

#define GRANULE_SHIFT 6 /* 64 bytes: a cache line */
#define GRANULE (1u << GRANULE_SHIFT)
#define SLOTS 256 /* as many as eight bits name, so that no word names a slot that is not there */
#define LAYOUT 1u
#define MAGIC 0x676e697279617766ull
#define PAGE 4096ull
#define BYTES_MIN (64ull << 10)
#define BYTES_MAX (64ull << 30)
#define WITH_CRC 1u
#define AT_MOST_ONCE 2u
#define LOOK 4u /* of a handle, never of a ring: it takes no place */
#define TICK_FIRST 20000000ull  /* a sleeper looks whether somebody died after 20 ms, */
#define TICK_LAST 1000000000ull /* then ever later, and once a second at most */
#define SPINS 64
#define LISTED_MAX 1024 /* unfinished blocks told of in one report */

enum { NONE, CLAIMED, COMMITTED, READING, DONE, SKIP, RETRY };
enum { SLEEPER = 1u, LISTENER = 2u, STEP = 4u }; /* low bits of a futex word; the rest counts */

typedef _Atomic uint64_t word_t;
typedef _Atomic uint32_t futex_t;
typedef struct { word_t v; char pad[56]; } line_t;
typedef struct { futex_t v; char pad[60]; } futex_line_t;

typedef struct {
    uint64_t magic, bytes;
    uint32_t layout, flags, slots, granule_shift;
    uint64_t data_at;
    uint32_t crc, rest;
    word_t home; /* boot and pid namespace of those who use it */
    char pad[8];
    line_t w, r, t; /* absolute granules: t <= r <= w <= t + n */
    futex_line_t data, space;
    line_t retries_made, retries_seen; /* equal: nobody need look for blocks to deliver again */
    word_t skipped, redelivered, dropped, damaged;
} control_t;
_Static_assert(offsetof(control_t, w) == 64, "the constant part is one line");
_Static_assert(sizeof(control_t) <= PAGE, "the control page is one page");

typedef struct { word_t owner, since, attached, puts, gets; char pad[24]; } slot_t;
typedef struct { uint16_t mark, rest; uint32_t size, crc, salt; } head_t;
_Static_assert(sizeof(slot_t) == 64 && sizeof(head_t) == 16, "layout");

typedef struct {
    PyObject_HEAD
    control_t *control;
    slot_t *slots;
    word_t *index;
    uint8_t *data;
    uint64_t n, mask, bytes, position_max, granules_max, self;
    uint64_t looked; /* when this handle last looked for the dead without having slept */
    uint64_t dead;   /* an identity that is known to be gone; none ever returns */
    size_t control_bytes;
    uint32_t flags, home_boot, generation;
    int lg, lap_shift, slot, bell_fd, users, closed;
    char *bell;
    const char *untold; /* damage that was met behind messages which had to be handed out first */
#ifdef FAULTS
    int fault, fault_signal;
#endif
} Ring;

typedef struct {
    PyObject_HEAD
    Ring *ring;
    PyObject *payload; /* bytes, or a list of them */
    Py_ssize_t n;
    int ended;
    uint64_t one[2];
    uint64_t *blocks; /* pairs of position and word */
} Lease;

static PyObject *BadArgument, *Closed, *NotRing, *RingCorrupt, *RingCrowded, *RingForeign, *RingForked, *RingFull,
    *TooLarge, *MissingProc;
static PyTypeObject *LeaseType;

#ifdef FAULTS
#define FAULT(q, point) do { if ((q)->fault == (point)) raise((q)->fault_signal); } while (0)
#else
#define FAULT(q, point) do { } while (0)
#endif

/* ---- words ---- */

#define STATE(e) ((unsigned)((e) & 7u))
#define SLOT(e) ((unsigned)(((e) >> 3) & 0xffu))
#define TRIES(e) (((e) >> 11) & 0xfu)
#define LOAD(x) atomic_load(&(x))

static inline uint64_t lap_of(const Ring *q, uint64_t position) { return (position >> q->lg) + 1; }
static inline uint64_t lap_in(const Ring *q, uint64_t e) { return e >> q->lap_shift; }
static inline uint64_t size_in(const Ring *q, uint64_t e) { return (e >> 15) & ((1ull << (q->lg - 1)) - 1); }
static inline word_t *at(const Ring *q, uint64_t position) { return &q->index[position & q->mask]; }
static inline uint64_t claim_word(const Ring *q, uint64_t position, uint64_t granules) {
    return (lap_of(q, position) << q->lap_shift) | (granules << 15) | ((uint64_t)q->slot << 3) | CLAIMED;
}
static inline uint64_t with_state(uint64_t e, unsigned state) { return (e & ~7ull) | state; }
static inline uint64_t read_by(uint64_t e, int slot) {
    return (e & ~0x7ffull) | ((uint64_t)slot << 3) | READING;
}
/* Counted, or one who stands still between "its reader is dead" and the compare-and-set would find the same word
 * again after slot and block went to somebody alive, and rob him (5). */
static inline uint64_t tried(uint64_t e) {
    return (e & ~0x7807ull) | (((TRIES(e) + 1) & 0xfull) << 11) | RETRY;
}
static inline int cas(word_t *a, uint64_t from, uint64_t to) { return atomic_compare_exchange_strong(a, &from, to); }

/* A size that no put could have written would lead a walk astray, or out of the map (10). */
static inline int sane(const Ring *q, uint64_t e) {
    uint64_t g = size_in(q, e);
    return g >= 1 && g <= q->granules_max && STATE(e) >= CLAIMED && STATE(e) <= RETRY;
}
static inline int here(const Ring *q, uint64_t e, uint64_t position) {
    return lap_in(q, e) == lap_of(q, position) && sane(q, e);
}

/* Between a position that nobody has left yet and w every block has its word: w went over it. To be asked with a w that
 * was read before e, and a position that is seen to be held (by t, or by the hint itself) after it. */
static inline int gone(const Ring *q, uint64_t e, uint64_t position, uint64_t w) {
    return (int64_t)(w - position) > 0 && !here(q, e, position);
}

/* ---- CRC32C ---- */

static uint32_t crc_table[256];
static int crc_in_hardware;

static void crc_prepare(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? 0x82f63b78u ^ (c >> 1) : c >> 1;
        crc_table[i] = c;
    }
#if defined(__x86_64__)
    __builtin_cpu_init();
    crc_in_hardware = __builtin_cpu_supports("sse4.2");
#endif
}
#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_fast(uint32_t c, const uint8_t *p, size_t n) {
    uint64_t x = c;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        x = __builtin_ia32_crc32di(x, v);
    }
    c = (uint32_t)x;
    while (n--) c = __builtin_ia32_crc32qi(c, *p++);
    return c;
}
#endif
static uint32_t crc32c(const uint8_t *p, size_t n) {
    uint32_t c = ~0u;
#if defined(__x86_64__)
    if (crc_in_hardware) return ~crc_fast(c, p, n);
#endif
    while (n--) c = crc_table[(c ^ *p++) & 255] ^ (c >> 8);
    return ~c;
}

/* ---- time ---- */

static uint64_t clock_ns(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}
static uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
static uint64_t about_now_ns(void) { return clock_ns(CLOCK_MONOTONIC_COARSE); }

/* ---- who lives ---- */

/* 1 bit "taken", 9 bits of the boot, 22 of the pid, 32 of the start time in ticks. */
static uint64_t identity(uint32_t boot, uint64_t pid, uint64_t start) {
    return (1ull << 63) | ((uint64_t)(boot & 0x1ff) << 54) | ((pid & 0x3fffff) << 32) | (start & 0xffffffffull);
}
#define PID(owner) ((pid_t)(((owner) >> 32) & 0x3fffff))
#define BOOT(owner) ((uint32_t)(((owner) >> 54) & 0x1ff))

/* What the system says of a process: 1 it exists, 0 it does not, -1 it cannot tell just now. */
static int process(pid_t pid, char *state, long *threads, uint64_t *start) {
    char path[40], body[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) /* no descriptor left, or a /proc that hides others' processes, is no reason to call it dead */
        return kill(pid, 0) < 0 && errno == ESRCH ? 0 : -1;
    ssize_t k = read(fd, body, sizeof body - 1);
    int why = errno;
    close(fd);
    if (k <= 0) return k == 0 || why == ESRCH ? 0 : -1;
    body[k] = 0;
    char *p = strrchr(body, ')'); /* a name may hold anything, brackets too */
    if (!p || strlen(p) < 4) return -1;
    *state = p[2];
    p += 2;
    for (int field = 3; field < 20 && p; field++) p = strchr(p + 1, ' ');
    unsigned long long ticks;
    if (!p || sscanf(p + 1, "%ld %*s %llu", threads, &ticks) != 2) return -1;
    *start = ticks;
    return 1;
}

/* (5): gone, or a zombie with no thread left that could still write. */
static int is_dead(Ring *q, uint64_t owner) {
    if (!(owner >> 63) || owner == q->dead) return 1;
    if (owner == q->self) return 0;
    int dead = BOOT(owner) != (q->home_boot & 0x1ff);
    if (!dead) {
        char state = 0;
        long threads = 0;
        uint64_t start = 0;
        int found = process(PID(owner), &state, &threads, &start);
        if (found < 0) return 0;
        dead = !found || identity(q->home_boot, (uint64_t)PID(owner), start) != owner ||
               ((state == 'Z' || state == 'X') && threads <= 1);
    }
    if (dead) q->dead = owner;
    return dead;
}

/* A page that a fork gives to the child as zeros: no system call is needed to see that one is the child (9). */
static volatile uint32_t *generation_page;
static uint32_t generations;

static uint32_t this_generation(void) {
    if (!*generation_page) *generation_page = ++generations;
    return *generation_page;
}

/* ---- waking ---- */

static void ring_bell(Ring *q) {
    for (int again = 0; again < 2; again++) {
        if (q->bell_fd < 0) q->bell_fd = open(q->bell, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
        if (q->bell_fd < 0) return; /* nobody listens any more */
        if (write(q->bell_fd, "!", 1) == 1 || errno == EAGAIN) return;
        close(q->bell_fd);
        q->bell_fd = -1;
    }
}

/* A busy ring makes no system call: nobody has armed the word. */
static void wake(Ring *q, futex_t *a) {
    uint32_t wanted = q->bell && a == &q->control->data.v ? SLEEPER | LISTENER : SLEEPER, v = LOAD(*a);
    while (v & wanted) {
        if (!atomic_compare_exchange_weak(a, &v, (v & ~wanted) + STEP)) continue;
        if (v & SLEEPER) syscall(SYS_futex, a, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        if (v & wanted & LISTENER) ring_bell(q);
        return;
    }
}
static inline void wake_readers(Ring *q) { wake(q, &q->control->data.v); }

/* A writer that was woken for one granule would sleep again at once. */
static void wake_writers(Ring *q) {
    if (!(LOAD(q->control->space.v) & SLEEPER)) return;
    uint64_t w = LOAD(q->control->w.v);
    if (w - LOAD(q->control->t.v) <= q->n - q->n / 4 || w == LOAD(q->control->r.v)) wake(q, &q->control->space.v);
}

/* ---- the steps ---- */

static void pass(Ring *q, word_t *hint, uint64_t position, uint64_t e) {
    if (LOAD(*hint) == position) cas(hint, position, position + size_in(q, e));
}

/* (7): space is free only past what is done or skipped. */
static int advance_tail(Ring *q) {
    control_t *c = q->control;
    int moved = 0;
    for (;;) {
        uint64_t t = LOAD(c->t.v), e = LOAD(*at(q, t));
        if (!here(q, e, t) || (STATE(e) != DONE && STATE(e) != SKIP)) {
            if (t == LOAD(c->t.v)) break;
            continue;
        }
        pass(q, &c->w.v, t, e);
        pass(q, &c->r.v, t, e);
        if (cas(&c->t.v, t, t + size_in(q, e))) moved = 1;
    }
    if (moved) wake_writers(q);
    return moved;
}

static void to_retry(Ring *q) {
    FAULT(q, 11);
    atomic_fetch_add(&q->control->retries_made.v, 1);
    wake_readers(q);
}

/* One unfinished block whose owner is dead. */
static int resolve(Ring *q, uint64_t position, uint64_t e) {
    control_t *c = q->control;
    unsigned to = STATE(e) == CLAIMED ? SKIP : q->flags & AT_MOST_ONCE ? DONE : RETRY;
    FAULT(q, 12);
    if (!cas(at(q, position), e, to == RETRY ? tried(e) : with_state(e, to))) return 0;
    if (to == RETRY) to_retry(q);
    else atomic_fetch_add(to == SKIP ? &c->skipped : &c->dropped, 1);
    pass(q, &c->w.v, position, e);
    if (to != SKIP) pass(q, &c->r.v, position, e);
    return 1;
}

/* Walk all unfinished blocks and resolve those of the dead; -1: a word is damaged, and what lies behind it cannot be
 * found. (6): whose slots are to be freed must be known to be dead before the walk begins, or one who claims behind it
 * and dies then would leave a word with a slot that is another's. */
static int recover(Ring *q, int free_slots) {
    control_t *c = q->control;
    uint64_t known[SLOTS] = {0}, doomed[SLOTS] = {0}; /* owners that are alive; owners to be forgotten */
    uint8_t named[SLOTS] = {0};
    int resolved = 0, retry = 0, whole = 0, damaged = 0;
    for (int i = 0; free_slots && i < SLOTS; i++) {
        uint64_t owner = LOAD(q->slots[i].owner);
        if (owner && is_dead(q, owner)) doomed[i] = owner;
    }
    uint64_t p = LOAD(c->t.v);
    for (uint64_t steps = 0; steps <= 4 * q->n; steps++) {
        uint64_t w = LOAD(c->w.v);
        FAULT(q, 16);
        uint64_t e = LOAD(*at(q, p));
        if (!here(q, e, p)) {
            uint64_t t = LOAD(c->t.v);
            if ((int64_t)(t - p) <= 0) {
                damaged = gone(q, e, p, w);
                whole = !damaged;
                break;
            }
            p = t; /* overtaken: what it stood on is done */
            continue;
        }
        unsigned state = STATE(e), s = SLOT(e);
        if (state == CLAIMED || state == READING) {
            uint64_t owner = LOAD(q->slots[s].owner);
            if (owner == known[s] && owner) named[s] = 1;
            else if (is_dead(q, owner)) resolved += resolve(q, p, e);
            else known[s] = owner, named[s] = 1;
        }
        retry |= state == RETRY;
        p += size_in(q, e);
    }
    /* Who made a block ready to be delivered again may have died before saying so. */
    if (retry && LOAD(c->retries_made.v) == LOAD(c->retries_seen.v)) to_retry(q);
    advance_tail(q);
    if (resolved) wake_readers(q);
    FAULT(q, 13);
    for (int i = 0; whole && i < SLOTS; i++)
        if (doomed[i] && !named[i]) cas(&q->slots[i].owner, doomed[i], 0);
    return damaged ? -1 : resolved;
}

static void note(Ring *q) {
    atomic_store_explicit(&q->slots[q->slot].since, about_now_ns(), memory_order_relaxed);
}
static void count(word_t *a) {
    atomic_store_explicit(a, atomic_load_explicit(a, memory_order_relaxed) + 1, memory_order_relaxed);
}

static uint16_t mark_of(uint64_t position) { return (uint16_t)(0xfa17u ^ (position * 0x9e37u)); }

static void write_block(Ring *q, uint64_t position, const uint8_t *p, size_t n) {
    uint8_t *b = q->data + ((position & q->mask) << GRANULE_SHIFT); /* mapped twice in a row: no wrap */
    head_t h = {mark_of(position), 0, (uint32_t)n, 0, (uint32_t)(position >> 4)};
#ifdef FAULTS
    memcpy(b, &h.mark, sizeof h.mark);
    FAULT(q, 4);
    memcpy(b + offsetof(head_t, size), &h.size, sizeof h.size);
    memcpy(b + sizeof h, p, n / 2);
    FAULT(q, 5);
#endif
    memcpy(b + sizeof h, p, n);
    if (q->flags & WITH_CRC) h.crc = crc32c(b + sizeof h, n);
    memcpy(b, &h, sizeof h);
}

enum { OK, WAIT, BROKEN, WORN };

/* (1) place, size and owner become known in one step; (3) once per lap; (8) over only when committed. */
static int try_put(Ring *q, const uint8_t *p, size_t n) {
    control_t *c = q->control;
    uint64_t granules = (sizeof(head_t) + n + GRANULE - 1) >> GRANULE_SHIFT, w, e, mine;
    FAULT(q, 1);
    for (;;) {
        w = LOAD(c->w.v);
        e = LOAD(*at(q, w));
        if (LOAD(c->w.v) != w) continue; /* the word belongs to another head */
        if (lap_in(q, e) == lap_of(q, w)) {
            if (!sane(q, e)) return BROKEN;
            cas(&c->w.v, w, w + size_in(q, e));
            continue;
        }
        if (w >= q->position_max) return WORN;
        if ((int64_t)(w + granules - LOAD(c->t.v)) > (int64_t)q->n) {
            if (advance_tail(q)) continue; /* who finished the oldest block died before it moved the tail */
            return WAIT;
        }
        mine = claim_word(q, w, granules);
        if (cas(at(q, w), e, mine)) break;
    }
    FAULT(q, 2);
    note(q);
    cas(&c->w.v, w, w + granules);
    FAULT(q, 3);
    write_block(q, w, p, n);
    FAULT(q, 6);
    if (!cas(at(q, w), mine, with_state(mine, COMMITTED))) return BROKEN;
    FAULT(q, 7);
    count(&q->slots[q->slot].puts);
    return OK;
}

static int take_retry(Ring *q, uint64_t *position, uint64_t *word) {
    control_t *c = q->control;
    uint64_t made = LOAD(c->retries_made.v), seen = LOAD(c->retries_seen.v), p = LOAD(c->t.v), r = LOAD(c->r.v);
    for (uint64_t steps = 0; (int64_t)(r - p) > 0 && steps <= q->n; steps++) {
        uint64_t e = LOAD(*at(q, p));
        if (!here(q, e, p)) return 0; /* the tail moved over it; look again at the next call */
        if (STATE(e) == RETRY && cas(at(q, p), e, *word = read_by(e, q->slot))) {
            atomic_fetch_add(&c->redelivered, 1);
            *position = p;
            return 1;
        }
        p += size_in(q, e);
    }
    if (seen != made) cas(&c->retries_seen.v, seen, made);
    return 0;
}

/* WAIT: nothing is there, or the oldest message is still being written. */
static int try_take(Ring *q, uint64_t *position, uint64_t *word) {
    control_t *c = q->control;
    if (LOAD(c->retries_made.v) != LOAD(c->retries_seen.v) && take_retry(q, position, word)) goto taken;
    for (;;) {
        uint64_t r = LOAD(c->r.v), e = LOAD(*at(q, r));
        if (LOAD(c->r.v) != r) continue;
        if (lap_in(q, e) != lap_of(q, r)) return WAIT;
        if (!sane(q, e)) return BROKEN;
        pass(q, &c->w.v, r, e);
        if (STATE(e) == CLAIMED) return WAIT;
        if (STATE(e) == COMMITTED || STATE(e) == RETRY) {
            if (!cas(at(q, r), e, *word = read_by(e, q->slot))) continue;
            FAULT(q, 8);
            if (STATE(e) == RETRY) atomic_fetch_add(&c->redelivered, 1);
            *position = r;
            cas(&c->r.v, r, r + size_in(q, e));
            break;
        }
        cas(&c->r.v, r, r + size_in(q, e));
        if (STATE(e) == SKIP) advance_tail(q);
    }
taken:
    note(q);
    count(&q->slots[q->slot].gets);
    return OK;
}

static int finish(Ring *q, uint64_t position, uint64_t word) {
    FAULT(q, 9);
    if (!cas(at(q, position), word, with_state(word, DONE))) return -1;
    FAULT(q, 10);
    if (LOAD(q->control->t.v) == position) advance_tail(q);
    return 0;
}
static int give_back(Ring *q, uint64_t position, uint64_t word) {
    if (!cas(at(q, position), word, tried(word))) return -1;
    to_retry(q);
    return 0;
}

/* ---- errors and waiting ---- */

static int readable(Ring *q) {
    if (!q->control || q->closed) {
        PyErr_SetString(Closed, "the ring is closed; attach again");
        return 0;
    }
    if (q->generation != *generation_page) {
        PyErr_SetNone(RingForked);
        return 0;
    }
    return 1;
}
static int usable(Ring *q) {
    if (!readable(q)) return 0;
    if (q->slot < 0) PyErr_SetString(BadArgument, "this handle has no place in the ring, so it can only look; attach");
    return q->slot >= 0;
}
#define NO_WORD "its index has lost a block"
#define WRONG_BLOCK "a block is not what its index says"
static void corrupt(const char *what) {
    PyErr_Format(RingCorrupt, "the ring is damaged (%s); remove it and create another", what);
}

/* Whether the block that a hint stands on has lost its word: then nobody could ever move the hint. */
static int lost_at(Ring *q, word_t *hint) {
    uint64_t p = LOAD(*hint), w = LOAD(q->control->w.v);
    FAULT(q, 14);
    return w != p && gone(q, LOAD(*at(q, p)), p, w) && LOAD(*hint) == p;
}

/* What no history can have: asked before every sleep, not before every step. */
static int makes_sense(Ring *q) {
    control_t *c = q->control;
    uint64_t t = LOAD(c->t.v), r = LOAD(c->r.v), w = LOAD(c->w.v), later = LOAD(c->t.v);
    if (!(t <= r && r <= w && (int64_t)(w - later) <= (int64_t)q->n && w <= q->position_max + q->n))
        return corrupt("its positions contradict one another"), 0;
    if (lost_at(q, &c->t.v) || lost_at(q, &c->r.v)) return corrupt(NO_WORD), 0;
    return 1;
}

static int slow_look(Ring *q) { /* for those who never sleep */
    uint64_t now = about_now_ns();
    if (now - q->looked < TICK_FIRST) return 0;
    q->looked = now;
    return LOAD(q->control->w.v) != LOAD(q->control->t.v) && recover(q, 0) > 0;
}

static void unmap(Ring *q) {
    if (q->control) munmap(q->control, q->control_bytes + 2 * q->bytes);
    q->control = NULL;
}

/* Sleep on an armed word. 0: look again, 1: the time is up, -1: an error is set. */
static int doze(Ring *q, futex_t *a, uint32_t v, uint64_t deadline, uint64_t *tick) {
    if (!makes_sense(q)) return -1;
    uint64_t now = now_ns(), most = *tick;
    if (now >= deadline) return 1;
    if (most > deadline - now) most = deadline - now;
    struct timespec t = {(time_t)(most / 1000000000ull), (long)(most % 1000000000ull)};
    q->users++;
    Py_BEGIN_ALLOW_THREADS
    syscall(SYS_futex, a, FUTEX_WAIT, v, &t, NULL, 0);
    Py_END_ALLOW_THREADS
    q->users--;
    if (q->closed) {
        if (!q->users) unmap(q);
        PyErr_SetString(Closed, "the ring was closed meanwhile; attach again");
        return -1;
    }
    if (now_ns() - now + 1000000ull >= *tick) {
        if (recover(q, *tick == TICK_LAST) < 0) return corrupt(NO_WORD), -1;
        *tick = *tick * 2 > TICK_LAST ? TICK_LAST : *tick * 2;
    }
    return PyErr_CheckSignals() ? -1 : 0;
}

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static int failed(int rc) {
    if (rc == WORN)
        PyErr_SetString(RingFull, "the ring has carried all it can in its life; create another");
    else
        corrupt(WRONG_BLOCK);
    return -1;
}

static int too_large(Ring *q, Py_ssize_t n) {
    if ((uint64_t)n <= q->bytes / 4 - sizeof(head_t)) return 0;
    PyErr_Format(TooLarge, "a message of %zd bytes: this ring takes %llu at most; create a larger one", n,
                 (unsigned long long)(q->bytes / 4 - sizeof(head_t)));
    return 1;
}

/* 0: put, 1: no room in time, -1: an error is set. Arm, look again, sleep. */
static int put_one(Ring *q, const void *p, Py_ssize_t n, uint64_t deadline) {
    if (too_large(q, n)) return -1;
    uint64_t tick = TICK_FIRST;
    for (int k = 0;; k++) {
        int rc = try_put(q, p, (size_t)n);
        if (rc == OK) return 0;
        if (rc != WAIT) return failed(rc);
        if (deadline == 0) {
            if (slow_look(q)) continue;
            return makes_sense(q) ? 1 : -1;
        }
        if (k < SPINS) {
            relax();
            continue;
        }
        wake_readers(q); /* full: whoever reads must be awake */
        uint32_t v = atomic_fetch_or(&q->control->space.v, SLEEPER) | SLEEPER;
        rc = try_put(q, p, (size_t)n);
        if (rc == OK) return 0;
        if (rc != WAIT) return failed(rc);
        rc = doze(q, &q->control->space.v, v, deadline, &tick);
        if (rc) return rc;
    }
}

static int take_one(Ring *q, uint64_t deadline, uint64_t *position, uint64_t *word) {
    uint64_t tick = TICK_FIRST;
    for (int k = 0;; k++) {
        int rc = try_take(q, position, word);
        if (rc == OK) return 0;
        if (rc != WAIT) return failed(rc);
        if (deadline == 0) {
            if (slow_look(q)) continue;
            return makes_sense(q) ? 1 : -1;
        }
        if (k < SPINS) {
            relax();
            continue;
        }
        uint32_t v = atomic_fetch_or(&q->control->data.v, SLEEPER) | SLEEPER;
        rc = try_take(q, position, word);
        if (rc == OK) return 0;
        if (rc != WAIT) return failed(rc);
        rc = doze(q, &q->control->data.v, v, deadline, &tick);
        if (rc) return rc;
    }
}

/* ---- payloads ---- */

/* Where a block's payload is; NULL: it is damaged, and an error is set. */
static const uint8_t *payload_of(Ring *q, uint64_t position, uint64_t word, head_t *h) {
    const uint8_t *b = q->data + ((position & q->mask) << GRANULE_SHIFT);
    memcpy(h, b, sizeof *h);
    uint64_t granules = (sizeof *h + (uint64_t)h->size + GRANULE - 1) >> GRANULE_SHIFT;
    if (h->mark == mark_of(position) && h->salt == (uint32_t)(position >> 4) && granules == size_in(q, word))
        return b + sizeof *h;
    return NULL;
}
static int intact(Ring *q, const head_t *h, const void *copy) {
    return !(q->flags & WITH_CRC) || crc32c(copy, h->size) == h->crc;
}
#define DROPPED "a message was damaged in the ring and is dropped; the next get goes on behind it"
static void drop_damaged(Ring *q, uint64_t position, uint64_t word) {
    atomic_fetch_add(&q->control->damaged, 1);
    finish(q, position, word);
    PyErr_SetString(RingCorrupt, DROPPED);
}
/* What a batch could not tell, since messages before it had to be handed out. */
static int told_all(Ring *q) {
    if (!q->untold) return 1;
    PyErr_SetString(RingCorrupt, q->untold);
    q->untold = NULL;
    return 0;
}

/* The message as bytes; NULL: an error is set, and the block is given back or dropped. */
static PyObject *copy_out(Ring *q, uint64_t position, uint64_t word) {
    head_t h;
    const uint8_t *p = payload_of(q, position, word, &h);
    if (!p) {
        drop_damaged(q, position, word);
        return NULL;
    }
    PyObject *copy = PyBytes_FromStringAndSize((const char *)p, (Py_ssize_t)h.size);
    if (!copy) {
        give_back(q, position, word);
    } else if (!intact(q, &h, PyBytes_AsString(copy))) {
        Py_DECREF(copy);
        drop_damaged(q, position, word);
        return NULL;
    }
    return copy;
}

/* ---- arguments ---- */

/* None waits for ever; 0 never waits. */
static int deadline_of(PyObject *o, uint64_t *deadline) {
    *deadline = UINT64_MAX;
    if (!o || o == Py_None) return 0;
    double seconds = PyFloat_AsDouble(o);
    if (seconds == -1.0 && PyErr_Occurred()) PyErr_Clear(), seconds = -1.0;
    if (!(seconds >= 0)) {
        PyErr_Format(BadArgument, "timeout: give seconds, 0 or more, or None to wait for ever, not %R", o);
        return -1;
    }
    if (seconds == 0) *deadline = 0;
    else if (seconds < 1e9) *deadline = now_ns() + (uint64_t)(seconds * 1e9);
    return 0;
}

/* At most two arguments, of which the last is called timeout and may be named. */
static int arguments(PyObject *const *args, Py_ssize_t n, PyObject *names, const char *first, PyObject **found) {
    found[0] = found[1] = NULL;
    Py_ssize_t named = names ? PyTuple_Size(names) : 0, room = first ? 2 : 1, shift = first ? 0 : 1;
    if (n > room) {
        PyErr_Format(PyExc_TypeError, "at most %zd positional arguments, %zd given", room, n);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) found[i + shift] = args[i];
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int which = first && !PyUnicode_CompareWithASCIIString(name, first)   ? 0
                    : !PyUnicode_CompareWithASCIIString(name, "timeout") ? 1
                                                                         : -1;
        if (which < 0 || found[which]) {
            PyErr_Format(PyExc_TypeError, "unexpected or repeated argument %R", name);
            return -1;
        }
        found[which] = args[n + i];
    }
    return 0;
}
#define FAST PyObject *const *args, Py_ssize_t nargs, PyObject *names

/* ---- putting ---- */

static int cannot_be_put(Ring *q, PyObject *o) {
    if (PyBytes_CheckExact(o)) return too_large(q, PyBytes_Size(o));
    Py_buffer b;
    if (PyObject_GetBuffer(o, &b, PyBUF_SIMPLE)) {
        PyErr_Clear();
        PyErr_SetString(BadArgument, "data: a message is bytes, or any object with a contiguous buffer");
        return 1;
    }
    int rc = too_large(q, b.len);
    PyBuffer_Release(&b);
    return rc;
}

static int put_object(Ring *q, PyObject *o, uint64_t deadline) {
    if (PyBytes_CheckExact(o)) return put_one(q, PyBytes_AsString(o), PyBytes_Size(o), deadline);
    Py_buffer b;
    if (PyObject_GetBuffer(o, &b, PyBUF_SIMPLE)) {
        PyErr_Clear();
        PyErr_SetString(BadArgument, "data: a message is bytes, or any object with a contiguous buffer");
        return -1;
    }
    int rc = put_one(q, b.buf, b.len, deadline);
    PyBuffer_Release(&b);
    return rc;
}

static PyObject *ring_put(Ring *q, FAST) {
    PyObject *a[2];
    uint64_t deadline;
    if (arguments(args, nargs, names, "data", a) || !usable(q) || deadline_of(a[1], &deadline)) return NULL;
    if (!a[0]) return PyErr_SetString(PyExc_TypeError, "put() needs a message"), NULL;
    int rc = put_object(q, a[0], deadline);
    if (rc < 0) return NULL;
    if (rc) return PyErr_SetNone(RingFull), NULL;
    wake_readers(q);
    Py_RETURN_NONE;
}

/* How many of a list were put in time: all of them, or the first so many. */
static PyObject *ring_put_some(Ring *q, FAST) {
    PyObject *a[2];
    uint64_t deadline;
    if (arguments(args, nargs, names, "messages", a) || !usable(q) || deadline_of(a[1], &deadline)) return NULL;
    if (!a[0] || !PyList_Check(a[0])) return PyErr_SetString(PyExc_TypeError, "a list of messages is needed"), NULL;
    Py_ssize_t i = 0;
    int rc = 0;
    for (; i < PyList_Size(a[0]); i++) /* one that can never be put is told before any is */
        if (cannot_be_put(q, PyList_GetItem(a[0], i))) return NULL;
    for (i = 0; i < PyList_Size(a[0]); i++) {
        PyObject *o = PyList_GetItem(a[0], i);
        Py_INCREF(o); /* the list may change while this one waits for room */
        rc = put_object(q, o, deadline);
        Py_DECREF(o);
        if (rc) break;
        if ((i & 63) == 63) wake_readers(q);
    }
    if (q->control) wake_readers(q);
    return rc < 0 ? NULL : PyLong_FromSsize_t(i);
}

/* ---- taking ---- */

static PyObject *new_lease(Ring *q, PyObject *payload, Py_ssize_t n, uint64_t *blocks) {
    Lease *l = PyObject_New(Lease, LeaseType);
    if (!l) return NULL;
    l->ring = (Ring *)Py_NewRef((PyObject *)q);
    l->payload = payload;
    l->n = n;
    l->ended = (q->flags & AT_MOST_ONCE) != 0;
    l->blocks = l->one;
    if (blocks && n > 1) l->blocks = blocks;
    else if (blocks && n == 1) memcpy(l->one, blocks, sizeof l->one);
    return (PyObject *)l;
}

static PyObject *take(Ring *q, FAST, int lease) {
    PyObject *a[2];
    uint64_t deadline, block[2];
    if (arguments(args, nargs, names, NULL, a) || !usable(q) || deadline_of(a[1], &deadline) || !told_all(q)) return NULL;
    int rc = take_one(q, deadline, &block[0], &block[1]);
    if (rc < 0) return NULL;
    if (rc) Py_RETURN_NONE;
    PyObject *payload = copy_out(q, block[0], block[1]);
    if (!payload) return NULL;
    if (!lease || q->flags & AT_MOST_ONCE) {
        if (finish(q, block[0], block[1])) return Py_DECREF(payload), failed(BROKEN), NULL;
        if (!lease) return payload;
    }
    PyObject *made = new_lease(q, payload, 1, block);
    if (!made) {
        if (!(q->flags & AT_MOST_ONCE)) give_back(q, block[0], block[1]);
        Py_DECREF(payload);
    }
    return made;
}
static PyObject *ring_get(Ring *q, FAST) { return take(q, args, nargs, names, 1); }
static PyObject *ring_pop(Ring *q, FAST) { return take(q, args, nargs, names, 0); }

static void give_all_back(Ring *q, Py_ssize_t n, const uint64_t *blocks) {
    for (Py_ssize_t i = 0; i < n; i++) give_back(q, blocks[2 * i], blocks[2 * i + 1]);
}

static PyObject *take_many(Ring *q, FAST, int lease) {
    PyObject *a[2];
    uint64_t deadline, position, word, *blocks = NULL;
    if (arguments(args, nargs, names, "max", a) || !usable(q) || deadline_of(a[1], &deadline) || !told_all(q)) return NULL;
    Py_ssize_t max = a[0] ? PyLong_AsSsize_t(a[0]) : 64, n = 0;
    if (max == -1 && PyErr_Occurred()) PyErr_Clear();
    if (max < 1 || max > (1 << 20)) return PyErr_SetString(BadArgument, "max: 1 to 1048576 messages at once"), NULL;
    int held = lease && !(q->flags & AT_MOST_ONCE);
    if (held && !(blocks = PyMem_Malloc((size_t)max * 2 * sizeof *blocks))) return PyErr_NoMemory();
    PyObject *list = PyList_New(0);
    int rc = list ? take_one(q, deadline, &position, &word) : -1;
    while (rc == 0) {
        PyObject *payload = copy_out(q, position, word);
        if (!payload && n) { /* what came before it must not be lost with it */
            if (PyErr_ExceptionMatches(RingCorrupt)) q->untold = DROPPED;
            PyErr_Clear();
            break;
        }
        if (!payload || PyList_Append(list, payload)) {
            if (payload) give_back(q, position, word);
            Py_XDECREF(payload);
            rc = -1;
            break;
        }
        Py_DECREF(payload);
        if (held) blocks[2 * n] = position, blocks[2 * n + 1] = word;
        else if (finish(q, position, word)) q->untold = "the ring is damaged (" WRONG_BLOCK "); remove it and create another";
        if (++n >= max || try_take(q, &position, &word) != OK) break;
    }
    if (rc >= 0 && !lease) return list;
    PyObject *made = rc >= 0 ? new_lease(q, list, n, blocks) : NULL;
    if (!made) {
        if (held) give_all_back(q, n, blocks);
        Py_XDECREF(list);
    }
    if (!made || n < 2) PyMem_Free(blocks);
    return made;
}
static PyObject *ring_get_many(Ring *q, FAST) { return take_many(q, args, nargs, names, 1); }
static PyObject *ring_pop_many(Ring *q, FAST) { return take_many(q, args, nargs, names, 0); }

/* Copy the next message into a buffer of the caller and acknowledge it. */
static PyObject *ring_get_into(Ring *q, FAST) {
    PyObject *a[2];
    uint64_t deadline, position, word;
    Py_buffer b;
    if (arguments(args, nargs, names, "buffer", a) || !usable(q) || deadline_of(a[1], &deadline) || !told_all(q)) return NULL;
    if (!a[0] || PyObject_GetBuffer(a[0], &b, PyBUF_WRITABLE)) {
        PyErr_Clear();
        return PyErr_SetString(BadArgument, "buffer: give a writable, contiguous buffer, such as a bytearray"), NULL;
    }
    PyObject *told = NULL;
    int rc = take_one(q, deadline, &position, &word);
    if (rc == 1) told = Py_NewRef(Py_None);
    if (rc == 0) {
        head_t h;
        const uint8_t *p = payload_of(q, position, word, &h);
        if (p && h.size > (size_t)b.len) {
            give_back(q, position, word);
            PyErr_Format(BadArgument, "buffer: the next message has %u bytes and the buffer %zd; give a larger one",
                         h.size, b.len);
        } else if (p && (memcpy(b.buf, p, h.size), intact(q, &h, b.buf))) {
            if (finish(q, position, word)) failed(BROKEN);
            else told = PyLong_FromUnsignedLong(h.size);
        } else {
            drop_damaged(q, position, word);
        }
    }
    PyBuffer_Release(&b);
    return told;
}

/* ---- leases ---- */

static PyObject *lease_end(Lease *l, int done) {
    if (l->ended) Py_RETURN_FALSE;
    if (!usable(l->ring)) return NULL;
    l->ended = 1;
    int lost = 0;
    for (Py_ssize_t i = 0; i < l->n; i++) {
        uint64_t position = l->blocks[2 * i], word = l->blocks[2 * i + 1];
        lost |= done ? finish(l->ring, position, word) : give_back(l->ring, position, word);
    }
    if (lost) return failed(BROKEN), NULL;
    Py_RETURN_TRUE;
}
static PyObject *lease_ack(Lease *l, PyObject *x) { (void)x; return lease_end(l, 1); }
static PyObject *lease_release(Lease *l, PyObject *x) { (void)x; return lease_end(l, 0); }
static PyObject *lease_enter(Lease *l, PyObject *x) { (void)x; return Py_NewRef((PyObject *)l); }
static PyObject *lease_exit(Lease *l, PyObject *args) {
    PyObject *kind = PyTuple_Size(args) ? PyTuple_GetItem(args, 0) : Py_None;
    PyObject *told = lease_end(l, kind == Py_None);
    if (!told) return NULL;
    Py_DECREF(told);
    Py_RETURN_FALSE;
}
static Py_ssize_t lease_length(PyObject *o) { return ((Lease *)o)->n; }

static void lease_dealloc(PyObject *o) {
    Lease *l = (Lease *)o;
    PyTypeObject *type = Py_TYPE(o);
    Ring *q = l->ring;
    if (!l->ended && q->control && !q->closed && q->generation == *generation_page)
        give_all_back(q, l->n, l->blocks); /* dropped by its holder: another may have it */
    if (l->blocks != l->one) PyMem_Free(l->blocks);
    Py_XDECREF(l->payload);
    Py_DECREF((PyObject *)q);
    PyObject_Free(o);
    Py_DECREF((PyObject *)type);
}

/* ---- listening without sleeping ---- */

static PyObject *ring_arm(Ring *q, PyObject *x) { /* True: nothing is there, and who puts will ring */
    (void)x;
    if (!usable(q)) return NULL;
    control_t *c = q->control;
    if (!(LOAD(c->data.v) & LISTENER)) atomic_fetch_or(&c->data.v, LISTENER);
    if (LOAD(c->retries_made.v) != LOAD(c->retries_seen.v)) Py_RETURN_FALSE;
    uint64_t r = LOAD(c->r.v), e = LOAD(*at(q, r));
    if (LOAD(c->r.v) != r || (here(q, e, r) && STATE(e) != CLAIMED)) Py_RETURN_FALSE;
    Py_RETURN_TRUE;
}
static PyObject *ring_disarm(Ring *q, PyObject *x) { /* True: somebody listens, and it is on you to wake him */
    (void)x;
    if (!usable(q)) return NULL;
    uint32_t v = LOAD(q->control->data.v);
    while (v & LISTENER)
        if (atomic_compare_exchange_weak(&q->control->data.v, &v, (v & ~(uint32_t)LISTENER) + STEP)) Py_RETURN_TRUE;
    Py_RETURN_FALSE;
}

/* ---- reports ---- */

static PyObject *ring_recover(Ring *q, PyObject *x) {
    (void)x;
    if (!readable(q) || !makes_sense(q)) return NULL;
    int resolved = recover(q, 1);
    return resolved < 0 ? corrupt(NO_WORD), NULL : PyLong_FromLong(resolved);
}

static PyObject *unfinished_of(Ring *q, uint64_t *waiting, uint64_t *waiting_bytes) {
    PyObject *list = PyList_New(0);
    uint64_t p = LOAD(q->control->t.v), listed = 0;
    for (uint64_t steps = 0; list && steps <= q->n; steps++) {
        uint64_t w = LOAD(q->control->w.v);
        FAULT(q, 15);
        uint64_t e = LOAD(*at(q, p)), granules = size_in(q, e);
        if (gone(q, e, p, w) && (int64_t)(LOAD(q->control->t.v) - p) <= 0) {
            corrupt(NO_WORD);
            Py_CLEAR(list);
            break;
        }
        if (!here(q, e, p)) break; /* the end, or the tail went over it */
        if (STATE(e) == COMMITTED || STATE(e) == RETRY) ++*waiting, *waiting_bytes += granules << GRANULE_SHIFT;
        if ((STATE(e) == CLAIMED || STATE(e) == READING) && listed++ < LISTED_MAX) {
            PyObject *one = Py_BuildValue("(KiiiK)", (unsigned long long)p, (int)STATE(e), (int)SLOT(e), (int)TRIES(e),
                                          (unsigned long long)(granules << GRANULE_SHIFT));
            if (!one || PyList_Append(list, one)) Py_CLEAR(list);
            Py_XDECREF(one);
        }
        p += granules;
    }
    return list;
}

static PyObject *owners_of(Ring *q) {
    PyObject *list = PyList_New(0);
    uint64_t now = about_now_ns();
    for (int i = 0; list && i < SLOTS; i++) {
        uint64_t owner = LOAD(q->slots[i].owner), since = LOAD(q->slots[i].since), from = LOAD(q->slots[i].attached);
        if (!owner) continue;
        char state[2] = "?";
        long threads = 0;
        uint64_t start = 0;
        if (is_dead(q, owner)) state[0] = 'X';
        else process(PID(owner), state, &threads, &start);
        if ((unsigned char)state[0] < 33 || (unsigned char)state[0] > 126) state[0] = '?';
        PyObject *one = Py_BuildValue("(iisddKK)", i, (int)PID(owner), state, now > from ? (double)(now - from) / 1e9 : 0.0,
                                      since && now > since ? (double)(now - since) / 1e9 : 0.0,
                                      (unsigned long long)LOAD(q->slots[i].puts), (unsigned long long)LOAD(q->slots[i].gets));
        if (!one || PyList_Append(list, one)) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyObject *ring_report(Ring *q, PyObject *x) {
    (void)x;
    if (!readable(q) || !makes_sense(q)) return NULL;
    control_t *c = q->control;
    uint64_t waiting = 0, waiting_bytes = 0;
    PyObject *unfinished = unfinished_of(q, &waiting, &waiting_bytes), *owners = unfinished ? owners_of(q) : NULL;
    if (!owners) return Py_XDECREF(unfinished), NULL;
#define U(v) ((unsigned long long)(v))
    return Py_BuildValue("{sKsIsisKsKsKsKsKsKsKsKsKsNsN}", "bytes", U(q->bytes), "flags", q->flags, "slot", q->slot,
                         "written", U(LOAD(c->w.v)), "read", U(LOAD(c->r.v)), "tail", U(LOAD(c->t.v)), "waiting", U(waiting),
                         "waiting_bytes", U(waiting_bytes), "skipped", U(LOAD(c->skipped)), "redelivered",
                         U(LOAD(c->redelivered)), "dropped", U(LOAD(c->dropped)), "damaged", U(LOAD(c->damaged)),
                         "unfinished", unfinished, "owners", owners);
}

/* ---- making and attaching ---- */

static uint64_t data_offset(uint64_t bytes) {
    uint64_t end = PAGE + SLOTS * sizeof(slot_t) + (bytes >> GRANULE_SHIFT) * sizeof(word_t);
    return (end + PAGE - 1) & ~(PAGE - 1);
}

static int find_home(uint64_t *home) { /* which boot, and which pid namespace */
    struct stat namespace;
    char boot[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t k = fd < 0 ? -1 : read(fd, boot, sizeof boot);
    if (fd >= 0) close(fd);
    if (k <= 0 || stat("/proc/self/ns/pid", &namespace)) {
        PyErr_SetString(MissingProc, "/proc cannot be read, and the ring learns from it who lives; mount it");
        return -1;
    }
    *home = ((uint64_t)crc32c((uint8_t *)boot, (size_t)k) << 32) | (uint32_t)namespace.st_ino;
    return 0;
}

static int write_control(int fd, uint64_t bytes, uint32_t flags, uint64_t home) {
    control_t c;
    memset(&c, 0, sizeof c);
    c.magic = MAGIC, c.bytes = bytes, c.layout = LAYOUT, c.flags = flags, c.slots = SLOTS;
    c.granule_shift = GRANULE_SHIFT, c.data_at = data_offset(bytes), c.home = home;
    c.crc = crc32c((uint8_t *)&c, offsetof(control_t, crc));
    if (pwrite(fd, &c, sizeof c, 0) == (ssize_t)sizeof c) return 0;
    PyErr_SetFromErrno(PyExc_OSError);
    return -1;
}

/* (10): everything is checked before anything is mapped. */
static int read_control(int fd, control_t *c) {
    struct stat file;
    const char *wrong = NULL;
    if (fstat(fd, &file)) return PyErr_SetFromErrno(PyExc_OSError), -1;
    if (!S_ISREG(file.st_mode) || pread(fd, c, sizeof *c, 0) != (ssize_t)sizeof *c || c->magic != MAGIC) {
        PyErr_SetNone(NotRing);
        return -1;
    }
    if (c->crc != crc32c((uint8_t *)c, offsetof(control_t, crc))) wrong = "its control page does not match its checksum";
    else if (c->layout != LAYOUT || c->slots != SLOTS || c->granule_shift != GRANULE_SHIFT) {
        PyErr_Format(NotRing, "a ring of layout %u, and this Fairway reads layout %u; use the same version", c->layout, LAYOUT);
        return -1;
    } else if (c->bytes < BYTES_MIN || c->bytes > BYTES_MAX || c->bytes & (c->bytes - 1) || c->data_at != data_offset(c->bytes))
        wrong = "its size is none that a ring can have";
    else if ((uint64_t)file.st_size != c->data_at + c->bytes) wrong = "the file is not as long as it says";
    if (!wrong) return 0;
    corrupt(wrong);
    return -1;
}

static int map(Ring *q, int fd, uint64_t data_at) {
    int access = PROT_READ | PROT_WRITE, how = MAP_SHARED | MAP_FIXED;
    q->control_bytes = data_at;
    uint8_t *a = mmap(NULL, data_at + 2 * q->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (a == MAP_FAILED) return PyErr_SetFromErrno(PyExc_OSError), -1;
    q->control = (control_t *)a;
    q->slots = (slot_t *)(a + PAGE);
    q->index = (word_t *)(a + PAGE + SLOTS * sizeof(slot_t));
    q->data = a + data_at;
    if (mmap(a, data_at, access, how, fd, 0) == MAP_FAILED || mmap(q->data, q->bytes, access, how, fd, (off_t)data_at) == MAP_FAILED ||
        mmap(q->data + q->bytes, q->bytes, access, how, fd, (off_t)data_at) == MAP_FAILED) {
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    return 0;
}

/* Processes of another namespace cannot be asked whether they live; those of another boot are all gone. */
static int same_home(Ring *q, uint64_t home) {
    for (uint64_t theirs; (theirs = LOAD(q->control->home)) != home;) {
        if (theirs >> 32 == home >> 32) {
            PyErr_SetNone(RingForeign);
            return 0;
        }
        cas(&q->control->home, theirs, home);
    }
    return 1;
}

/* Every process once, and how many places it has if it has several. */
static void crowded(Ring *q) {
    char text[SLOTS * 16];
    int at = 0;
    text[0] = 0;
    for (int i = 0; i < SLOTS; i++) {
        int pid = (int)PID(LOAD(q->slots[i].owner)), many = 0, before = 0;
        for (int k = 0; k < SLOTS; k++) {
            if ((int)PID(LOAD(q->slots[k].owner)) != pid) continue;
            many++, before += k < i;
        }
        if (!pid || before || !many) continue;
        at += snprintf(text + at, sizeof text - (size_t)at, many > 1 ? "%s%d (%d)" : "%s%d", at ? ", " : "", pid, many);
    }
    PyErr_Format(RingCrowded, "all %d places of the ring are taken, by these processes: %s; close it there", SLOTS, text);
}

static int find_slot(Ring *q, int look) {
    char state;
    long threads;
    uint64_t start;
    if (process(getpid(), &state, &threads, &start) != 1) {
        PyErr_SetString(MissingProc, "/proc does not show this process, and the ring learns from it who lives; mount it");
        return -1;
    }
    q->self = identity(q->home_boot, (uint64_t)getpid(), start);
    if (look) return 0;
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < SLOTS; i++) {
            slot_t *s = &q->slots[i];
            if (LOAD(s->owner) || !cas(&s->owner, 0, q->self)) continue;
            q->slot = i;
            uint64_t now = about_now_ns();
            atomic_store(&s->attached, now), atomic_store(&s->since, 0);
            atomic_store(&s->puts, 0), atomic_store(&s->gets, 0);
            return 0;
        }
        recover(q, 1);
    }
    crowded(q);
    return -1;
}

static PyObject *ring_new(PyTypeObject *type, PyObject *args, PyObject *names) {
    int fd;
    unsigned long long bytes = 0;
    unsigned flags = 0;
    const char *bell = NULL;
    control_t c;
    uint64_t home;
    (void)names;
    if (!PyArg_ParseTuple(args, "i|KIz", &fd, &bytes, &flags, &bell) || find_home(&home)) return NULL;
    int look = (flags & LOOK) != 0;
    if (bytes && (bytes < BYTES_MIN || bytes > BYTES_MAX || bytes & (bytes - 1) || flags & ~3u))
        return PyErr_SetString(BadArgument, "size: a power of two from 64 KiB to 64 GiB"), NULL;
    if (bytes && write_control(fd, bytes, flags, home)) return NULL;
    if (read_control(fd, &c)) return NULL;
    Ring *q = (Ring *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!q) return NULL;
    q->slot = q->bell_fd = -1;
    q->bytes = c.bytes, q->flags = c.flags & 3u, q->home_boot = (uint32_t)(home >> 32);
    q->n = c.bytes >> GRANULE_SHIFT, q->mask = q->n - 1, q->granules_max = q->n / 4;
    q->lg = __builtin_ctzll(q->n), q->lap_shift = 15 + q->lg - 1;
    q->position_max = (1ull << 50) - 2 * q->n;
    q->generation = this_generation();
    if (bell && !(q->bell = strdup(bell))) return Py_DECREF((PyObject *)q), PyErr_NoMemory();
    if (map(q, fd, c.data_at) || !same_home(q, home) || !makes_sense(q) || find_slot(q, look)) {
        Py_DECREF((PyObject *)q);
        return NULL;
    }
    return (PyObject *)q;
}

/* Give back what this handle holds, then its slot; nobody waits for it any more. */
static void leave(Ring *q) {
    if (q->closed || !q->control) return;
    q->closed = 1;
    if (q->slot >= 0 && q->generation == *generation_page) {
        uint64_t p = LOAD(q->control->t.v);
        for (uint64_t steps = 0; steps <= 4 * q->n; steps++) {
            uint64_t e = LOAD(*at(q, p));
            if (!here(q, e, p)) {
                uint64_t t = LOAD(q->control->t.v);
                if ((int64_t)(t - p) <= 0) break;
                p = t;
                continue;
            }
            if (STATE(e) == READING && SLOT(e) == (unsigned)q->slot) give_back(q, p, e);
            p += size_in(q, e);
        }
        cas(&q->slots[q->slot].owner, q->self, 0);
        if (q->users) { /* sleepers of this process's other threads */
            syscall(SYS_futex, &q->control->data.v, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
            syscall(SYS_futex, &q->control->space.v, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        }
    }
    if (!q->users) unmap(q);
}
static PyObject *ring_close(Ring *q, PyObject *x) { (void)x; leave(q); Py_RETURN_NONE; }

static void ring_dealloc(PyObject *o) {
    Ring *q = (Ring *)o;
    PyTypeObject *type = Py_TYPE(o);
    leave(q);
    unmap(q);
    if (q->bell_fd >= 0) close(q->bell_fd);
    free(q->bell);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF((PyObject *)type);
}

#ifdef FAULTS
static PyObject *ring_fault(Ring *q, PyObject *args) { /* end or stop this process at a point */
    if (!PyArg_ParseTuple(args, "ii", &q->fault, &q->fault_signal)) return NULL;
    Py_RETURN_NONE;
}
#endif

static PyObject *ring_closed(PyObject *o, void *x) { (void)x; return PyBool_FromLong(((Ring *)o)->closed); }
static PyObject *ring_message_max(PyObject *o, void *x) {
    (void)x;
    return PyLong_FromUnsignedLongLong(((Ring *)o)->bytes / 4 - sizeof(head_t));
}

#define METHOD(name, function, how) {name, (PyCFunction)(void (*)(void))function, how, NULL}
#define QUICK (METH_FASTCALL | METH_KEYWORDS)
static PyMethodDef ring_methods[] = {
    METHOD("put", ring_put, QUICK), METHOD("put_some", ring_put_some, QUICK), METHOD("get", ring_get, QUICK),
    METHOD("get_many", ring_get_many, QUICK), METHOD("pop", ring_pop, QUICK), METHOD("pop_many", ring_pop_many, QUICK),
    METHOD("get_into", ring_get_into, QUICK), METHOD("arm", ring_arm, METH_NOARGS), METHOD("disarm", ring_disarm, METH_NOARGS),
    METHOD("recover", ring_recover, METH_NOARGS), METHOD("report", ring_report, METH_NOARGS), METHOD("close", ring_close, METH_NOARGS),
#ifdef FAULTS
    METHOD("fault", ring_fault, METH_VARARGS),
#endif
    {NULL, NULL, 0, NULL}};
static PyGetSetDef ring_gets[] = {{"closed", ring_closed, NULL, NULL, NULL},
                                  {"message_bytes_max", ring_message_max, NULL, NULL, NULL},
                                  {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot ring_slots[] = {{Py_tp_new, ring_new}, {Py_tp_dealloc, ring_dealloc}, {Py_tp_methods, ring_methods},
                                   {Py_tp_getset, ring_gets}, {0, NULL}};
static PyType_Spec ring_spec = {"fairway.ring." TEXT(RING_MODULE) ".Handle", sizeof(Ring), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, ring_slots};

static PyMethodDef lease_methods[] = {METHOD("ack", lease_ack, METH_NOARGS), METHOD("release", lease_release, METH_NOARGS),
                                      METHOD("__enter__", lease_enter, METH_NOARGS), METHOD("__exit__", lease_exit, METH_VARARGS),
                                      {NULL, NULL, 0, NULL}};
static PyMemberDef lease_members[] = {{"payload", T_OBJECT, offsetof(Lease, payload), READONLY, NULL},
                                      {"payloads", T_OBJECT, offsetof(Lease, payload), READONLY, NULL},
                                      {NULL, 0, 0, 0, NULL}};
static PyType_Slot lease_slots[] = {{Py_tp_dealloc, lease_dealloc}, {Py_tp_methods, lease_methods},
                                    {Py_tp_members, lease_members}, {Py_sq_length, lease_length}, {0, NULL}};
static PyType_Spec lease_spec = {"fairway.ring." TEXT(RING_MODULE) ".Lease", sizeof(Lease), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, lease_slots};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, TEXT(RING_MODULE), NULL, -1, NULL, NULL, NULL, NULL, NULL};

static int find_errors(void) {
    struct { const char *name; PyObject **place; } wanted[] = {
        {"BadArgument", &BadArgument}, {"Closed", &Closed}, {"NotRing", &NotRing}, {"RingCorrupt", &RingCorrupt},
        {"RingCrowded", &RingCrowded}, {"RingForeign", &RingForeign}, {"RingForked", &RingForked}, {"RingFull", &RingFull},
        {"TooLarge", &TooLarge}, {"RingMissing", &MissingProc}};
    PyObject *errors = PyImport_ImportModule("fairway.errors");
    for (size_t i = 0; errors && i < sizeof wanted / sizeof *wanted; i++)
        if (!(*wanted[i].place = PyObject_GetAttrString(errors, wanted[i].name))) Py_CLEAR(errors);
    Py_XDECREF(errors);
    return errors ? 0 : -1;
}

PyMODINIT_FUNC JOIN(PyInit_, RING_MODULE)(void) {
    crc_prepare();
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, PAGE, MADV_WIPEONFORK)) return PyErr_SetFromErrno(PyExc_ImportError);
    generation_page = page;
    PyObject *m = find_errors() ? NULL : PyModule_Create(&module);
    PyObject *ring = m ? PyType_FromSpec(&ring_spec) : NULL, *lease = ring ? PyType_FromSpec(&lease_spec) : NULL;
    if (!lease || PyModule_AddObjectRef(m, "Handle", ring) || PyModule_AddObjectRef(m, "Lease", lease) ||
        PyModule_AddIntConstant(m, "WITH_CRC", WITH_CRC) || PyModule_AddIntConstant(m, "AT_MOST_ONCE", AT_MOST_ONCE) ||
        PyModule_AddIntConstant(m, "LOOK", LOOK)) {
        Py_XDECREF(lease), Py_XDECREF(ring), Py_XDECREF(m);
        return NULL;
    }
    LeaseType = (PyTypeObject *)lease;
    Py_DECREF(ring);
    return m;
}
