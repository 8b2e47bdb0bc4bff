/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The shares of subflows as a program of the host, for tests: reads ACKs, and writes the
 * share of alpha after each of them.
 */
#include <stdio.h>

#include "coupled.h"

struct word {
	u64 owner, now, queue, rtt;
	ab_segments window;
};

int main(void)
{
	struct ab_group group = {};
	struct word word;

	while (fread(&word, sizeof(word), 1, stdin) == 1) {
		u64 rate = ab_rate_of(word.window, word.rtt / 1000);
		u64 share = ab_share(&group, word.owner, word.now, word.queue, word.rtt, rate);

		if (fwrite(&share, sizeof(share), 1, stdout) != 1)
			return 1;
	}
	return fflush(stdout) ? 1 : 0;
}
