// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Width and speed of a link (IB 14.2.5.6), as sysfs shows them. */
#include <stdio.h>

#include "fabric.h"
#include "profile.h"

static const struct {
	uint64_t code;
	uint32_t lane; /* units of 100 Mb/s */
	const char *name;
} speeds[] = {
	{ 1, 25, "SDR" },    { 2, 50, "DDR" },	   { 4, 100, "QDR" },
	{ 8, 100, "FDR10" }, { 16, 140, "FDR" },   { 32, 250, "EDR" },
	{ 64, 500, "HDR" },  { 128, 1000, "NDR" },
};

/* Number of lanes of an active_width; 1 if it is unknown. */
static uint32_t rate_lanes(uint64_t width)
{
	return width == 2  ? 4 :
	       width == 4  ? 8 :
	       width == 8  ? 12 :
	       width == 16 ? 2 :
			     1;
}

/* Index of an active_speed; that of SDR if it is unknown. */
static unsigned int rate_speed(uint64_t speed)
{
	unsigned int i;

	for (i = 0; i < sizeof(speeds) / sizeof(*speeds); i++)
		if (speeds[i].code == speed)
			return i;
	return 0;
}

uint32_t rate_of(const struct urxe_profile *p)
{
	return rate_lanes(p->value[PROFILE_active_width]) *
	       speeds[rate_speed(p->value[PROFILE_active_speed])].lane;
}

void rate_print(const struct urxe_profile *p, char *text, size_t room)
{
	const uint32_t rate = rate_of(p);

	snprintf(text, room, "%u%s Gb/sec (%uX %s)\n", rate / 10,
		 rate % 10 ? ".5" : "",
		 rate_lanes(p->value[PROFILE_active_width]),
		 speeds[rate_speed(p->value[PROFILE_active_speed])].name);
}
