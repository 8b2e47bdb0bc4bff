/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The law of the header AB_LAW as a program of the host, for tests: reads the settings, then
 * events, and writes the window after each of them.
 */
#include <stdio.h>

#include AB_LAW

int main(void)
{
	struct ab_settings settings;
	struct ab_state state;
	struct ab_event event;

	if (fread(&settings, sizeof(settings), 1, stdin) != 1)
		return 1;
	ab_init(&state, &settings);
	while (fread(&event, sizeof(event), 1, stdin) == 1) {
		u64 window;

		ab_handle(&state, &settings, &event);
		window = ab_window(&state);
		if (fwrite(&window, sizeof(window), 1, stdout) != 1)
			return 1;
	}
	return fflush(stdout) ? 1 : 0;
}
