/* A congestion controller as a WASM module: the interface, version 1. MIT OR Apache-2.0.
 *
 *     clang --target=wasm32 -O2 -mbulk-memory -nostdlib -Wl,--no-entry -Wl,-z,stack-size=16384 -o mine.wasm mine.c
 *
 * A controller has one table, `cc`, which ANABRANCH_CC defines, and hooks. The facts of an event are in the table before its hook is called;
 * `cc.window` and `cc.pacing_rate` are read after it. Each path has its own instance of the module, with its own memory, so globals are its state.
 *
 * Times are in seconds, windows and flights in segments. An unknown value is NaN, for which every comparison is false.
 * There is no C library, no clock, no randomness and no output. __builtin_sqrt, __builtin_fabs, __builtin_floor and __builtin_ceil are instructions.
 * A hook may take about a million instructions, a module 4 MiB of memory. */
#ifndef ANABRANCH_CC_H
#define ANABRANCH_CC_H

#include <stdint.h>

#define ANABRANCH_VERSION 1u

#define ANABRANCH_INFINITY __builtin_inf()
/* Paths of a connection, at most. */
#define ANABRANCH_GROUP_MAX 8

/* How the flight falls to the window after a loss. */
enum { ANABRANCH_AT_ONCE = 0, ANABRANCH_PROPORTIONAL = 1 };
/* The ECN codepoint of the sent segments where the path uses ECN. A law that does not react to marks has ANABRANCH_ECT_NONE. */
enum { ANABRANCH_ECT_0 = 0, ANABRANCH_ECT_1 = 1, ANABRANCH_ECT_NONE = 2 };
/* Whether there was data whenever the window and the pacer allowed a departure. If not, the delivery rate says nothing about the path. */
enum { ANABRANCH_ENOUGH = 0, ANABRANCH_SHORT = 1 };
/* What limits the sender. If it is not the window, an ACK is no evidence for a larger window. */
enum { ANABRANCH_LIMIT_WINDOW = 0, ANABRANCH_LIMIT_APPLICATION = 1 };
enum { ANABRANCH_OPEN = 0, ANABRANCH_RECOVERY = 1 };
enum { ANABRANCH_DUP_ACKS = 0, ANABRANCH_TIMEOUT = 1, ANABRANCH_ECN = 2 };
enum { ANABRANCH_CONGESTION = 0, ANABRANCH_RANDOM = 1, ANABRANCH_UNKNOWN = 2 };
enum { ANABRANCH_FIRST = 0, ANABRANCH_AGAIN = 1 };
enum { ANABRANCH_ESTABLISHED = 0, ANABRANCH_IDLE = 1, ANABRANCH_AFTER_TIMEOUT = 2, ANABRANCH_PATH_CHANGED = 3 };

/* A setting: a key of `cc` in a scenario. The value is the default until the controller is created. */
struct anabranch_setting {
    const char *name; /* small letters, digits and _ */
    const char *unit; /* "s" takes times such as "10ms"; "segments"; "" */
    const char *help;
    uint32_t reserved;
    double value, least, most;
};

/* A number for traces. It may be infinite, but never NaN. The window is always shown. */
struct anabranch_gauge {
    const char *name;
    uint32_t reserved;
    double value;
};

/* The state of the path, after the event. */
struct anabranch_path {
    double now;
    double flight;       /* sent, and neither acknowledged nor known to be lost */
    double mss;          /* bytes of a segment, the unit of the window */
    double rtt_smoothed; /* RFC 6298 */
    double rtt_min;      /* least sample since the path was established or changed */
    double delivered, lost;
    double delivered_at; /* latest ACK of new data, or start of the present flight, whichever is later */
    double departed;     /* latest send time of all delivered segments, or that start, whichever is later */
};

/* The state of the path when a segment was sent. */
struct anabranch_departure {
    double time, window, flight;
    double delivered, lost, delivered_at, departed; /* those of the path then */
    uint32_t supply;                                /* ANABRANCH_ENOUGH, ANABRANCH_SHORT */
    uint32_t reserved;
};

/* An ACK that acknowledged something new. */
struct anabranch_ack {
    double newly_acked;  /* segments; above zero */
    double newly_lost;   /* detected as lost since the last ACK */
    double newly_marked; /* marked by routers since the last ACK */
    double rtt;          /* the raw sample of the newest segment; NaN where Karn's rule forbids one */
    double size;         /* bytes of that segment */
    double arrival;      /* earlier than `now` if ACKs are handled in batches */
    struct anabranch_departure departure; /* of the newest segment */
    uint32_t limit;                       /* ANABRANCH_LIMIT_... */
    uint32_t phase;                       /* ANABRANCH_OPEN, ANABRANCH_RECOVERY */
};

/* A round, about one RTT. Its hook is called after that of the ACK that ended it. */
struct anabranch_round {
    double count;             /* rounds before it */
    double elapsed;           /* how long it took */
    double acked;             /* segments acknowledged in it */
    double rtt_min, rtt_mean; /* of its samples */
};

/* A loss or an ECN mark: once for each loss episode. */
struct anabranch_loss {
    uint32_t signal; /* ANABRANCH_DUP_ACKS, ANABRANCH_TIMEOUT, ANABRANCH_ECN */
    uint32_t cause;  /* ANABRANCH_CONGESTION, ANABRANCH_RANDOM, ANABRANCH_UNKNOWN */
    double lost;     /* segments known to be lost so far; 0 for a mark */
    struct anabranch_departure departure; /* of the first lost or marked segment */
};

/* A segment left. */
struct anabranch_sent {
    double segments;       /* its size as a fraction of a full one */
    uint32_t transmission; /* ANABRANCH_FIRST, ANABRANCH_AGAIN */
    uint32_t reserved;
};

/* A path of the connection, this one included. */
struct anabranch_summary {
    uint32_t path, own;
    double window, flight, rtt_smoothed, rtt_min, delivered, lost;
};

/* The table. Its first fields are constant after `init`. */
struct anabranch_cc {
    uint32_t version;
    uint32_t reduction; /* ANABRANCH_AT_ONCE, ANABRANCH_PROPORTIONAL */
    uint32_t ect;       /* ANABRANCH_ECT_... */
    uint32_t settings_count;
    struct anabranch_setting *settings;
    uint32_t gauges_count;
    struct anabranch_gauge *gauges;
    uint32_t group_count;
    double window;      /* set by the law: segments, finite, at least 1 */
    double pacing_rate; /* set by the law: bit/s, at least 1; 0 for ACK clocking */
    struct anabranch_path path;
    struct anabranch_ack ack;
    struct anabranch_round round;
    struct anabranch_loss loss;
    struct anabranch_sent sent;
    uint32_t restart; /* ANABRANCH_ESTABLISHED, ... */
    uint32_t reserved;
    struct anabranch_summary group[ANABRANCH_GROUP_MAX];
};

_Static_assert(sizeof(struct anabranch_cc) == 832, "the table has no gaps: build for wasm32");

extern struct anabranch_cc cc;

/* Defines the table: ANABRANCH_CC(.window = 10, .settings = settings, .settings_count = 1) */
#define ANABRANCH_CC(...)                                                                                              \
    struct anabranch_cc cc = {.version = ANABRANCH_VERSION, __VA_ARGS__};                                              \
    __attribute__((export_name("anabranch"))) struct anabranch_cc *anabranch(void) { return &cc; }

/* Defines a hook: ANABRANCH_HOOK(on_ack) { cc.window += 1; } */
#define ANABRANCH_HOOK(name) __attribute__((export_name(#name))) void name(void)

/* The hooks, all of them optional; one of on_ack, on_round and on_group must be there.
 *
 *   init          once, with the settings' values: set cc.window
 *   on_sent       a segment left (cc.sent); window and rate must not change
 *   on_ack        something new was acknowledged (cc.ack)
 *   on_round      a round ended (cc.round)
 *   on_loss       data was lost or marked (cc.loss). Default: half the window, or 1 after a timeout
 *   on_recovered  everything outstanding at the loss has been acknowledged
 *   on_undo       the latest loss was spurious. Also without the hook, the window is at least what it was before that loss
 *   on_restart    sending starts or restarts (cc.restart). Default: at most the first window after an idle period, and the first window on a new path
 *   on_group      once a round with several paths (cc.group, cc.group_count) */

#endif
