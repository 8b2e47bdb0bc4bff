/* @NAME@: Reno, to begin with. Change it into your own law.
 *
 *   below ssthresh, each acknowledged segment:  w <- w + 1
 *   from ssthresh,  each acknowledged segment:  w <- w + increase / w
 *   loss by duplicate ACKs, ECN mark:           ssthresh <- max(w / 2, 2), w <- ssthresh
 *   timeout:                                    ssthresh <- max(w / 2, 2), w <- 1                          */
#include "anabranch_cc.h"

enum { INITIAL_WINDOW, INCREASE };

static struct anabranch_setting settings[] = {
    [INITIAL_WINDOW] = {"initial_window", "segments", "window before the first ACK", 0, 10, 1, 1000},
    [INCREASE] = {"increase", "segments", "growth in a round, above ssthresh", 0, 1, 0, 100},
};

enum { SSTHRESH };

static struct anabranch_gauge gauges[] = {
    [SSTHRESH] = {"ssthresh", 0, ANABRANCH_INFINITY},
};

ANABRANCH_CC(.window = 10, .reduction = ANABRANCH_PROPORTIONAL, .settings = settings, .settings_count = 2,
             .gauges = gauges, .gauges_count = 1)

static double window_before = 1, ssthresh_before = 2;

static double max(double a, double b) { return a > b ? a : b; }
static double min(double a, double b) { return a < b ? a : b; }

ANABRANCH_HOOK(init) { cc.window = settings[INITIAL_WINDOW].value; }

ANABRANCH_HOOK(on_ack) {
    if (cc.ack.phase == ANABRANCH_RECOVERY || cc.ack.limit == ANABRANCH_LIMIT_APPLICATION)
        return;
    double below = min(max(gauges[SSTHRESH].value - cc.window, 0), cc.ack.newly_acked);
    cc.window += below;
    cc.window += settings[INCREASE].value * (cc.ack.newly_acked - below) / cc.window;
}

ANABRANCH_HOOK(on_loss) {
    window_before = cc.window;
    ssthresh_before = gauges[SSTHRESH].value;
    gauges[SSTHRESH].value = max(cc.window / 2, 2);
    cc.window = cc.loss.signal == ANABRANCH_TIMEOUT ? 1 : min(cc.window, gauges[SSTHRESH].value);
}

ANABRANCH_HOOK(on_undo) {
    cc.window = max(cc.window, window_before);
    gauges[SSTHRESH].value = max(gauges[SSTHRESH].value, ssthresh_before);
}

ANABRANCH_HOOK(on_restart) {
    double initial = settings[INITIAL_WINDOW].value;
    if (cc.restart == ANABRANCH_IDLE)
        cc.window = min(cc.window, initial);
    if (cc.restart == ANABRANCH_PATH_CHANGED) {
        cc.window = initial;
        gauges[SSTHRESH].value = ANABRANCH_INFINITY;
    }
}
