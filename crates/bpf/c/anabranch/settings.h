/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef AB_SETTINGS_H
#define AB_SETTINGS_H

#include "number.h"

enum ab_rival { AB_CUBIC, AB_YIELD };

/*
 * Settings of the law; one copy for all its connections, which user space may change at
 * any time. User space keeps the ranges; crates/bpf/src/settings.rs has the same order, and
 * crates/cc (law/anabranch.rs) the meaning.
 */
struct ab_settings {
	ab_segments initial_window;	/* 1 to 1000 segments */
	ab_segments alpha;		/* 1 to 100,000 segments */
	u64 drain_interval;		/* ns; 1 to 60 s */
	u64 drain_part;			/* a part; 0.3 to 1 */
	u64 decrease;			/* a part; 0 to 0.5 */
	u64 ours;			/* a part; 0.5 to 1 */
	u64 rival;			/* enum ab_rival */
	char name[16];			/* of the law; the programs of a control group ask for it */
};

#endif
