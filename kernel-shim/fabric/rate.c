// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Width and speed of a link (IB 14.2.5.6), as sysfs shows them. */
#include <infiniband/verbs.h>
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

uint8_t rate_code(uint32_t rate)
{
	static const struct {
		uint32_t rate;
		uint8_t code;
	} codes[] = {
		{ 25, IBV_RATE_2_5_GBPS },   { 50, IBV_RATE_5_GBPS },
		{ 100, IBV_RATE_10_GBPS },   { 200, IBV_RATE_20_GBPS },
		{ 250, IBV_RATE_25_GBPS },   { 400, IBV_RATE_40_GBPS },
		{ 500, IBV_RATE_50_GBPS },   { 560, IBV_RATE_56_GBPS },
		{ 1000, IBV_RATE_100_GBPS }, { 2000, IBV_RATE_200_GBPS },
		{ 4000, IBV_RATE_400_GBPS },
	};
	unsigned int i;
	uint8_t code = IBV_RATE_2_5_GBPS;

	for (i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		if (codes[i].rate <= rate)
			code = codes[i].code;
	return code;
}
