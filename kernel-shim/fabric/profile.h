/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Profiles (shared/profile.h): reading them from files and from the
 * environment.  urxe-profile(5) describes the format.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "shared/profile.h"

struct urxe_hca;

#define PROFILE_SUFFIX ".profile" /* of the file name of a profile */

enum profile_kind {
	PROFILE_LIMIT,
	PROFILE_VALUE,
	PROFILE_MASK,
	PROFILE_NAMES,
};

struct profile_key_info {
	const char *name;
	enum profile_kind kind;
	uint64_t own; /* value of a device without profile */
	uint64_t most; /* largest value */
};
extern const struct profile_key_info profile_keys[PROFILE_KEYS_COUNT];

/* A name in the value of a key of PROFILE_NAMES.  The list ends with {0}. */
struct profile_name {
	enum profile_key key;
	const char *name;
	uint64_t bits;
};
extern const struct profile_name profile_names[];

/* Set all keys to the values of a device without profile. */
void profile_init(struct urxe_profile *p);

/*
 * Parse the text of a profile, which is modified.  p->name is set by the
 * caller.  -EINVAL: fabric_why() has the line and the reason.
 */
int profile_parse(struct urxe_profile *p, char *text);

/*
 * Read the profile `word`: a file, if it has a slash, else a name in
 * URXE_PROFILE_DIR, or of an installed profile.  -ENOENT, -EINVAL or an error
 * of the system, with fabric_why().
 */
int profile_read(struct urxe_profile *p, const char *word);

/*
 * The profile of device k by URXE_PROFILE, a list of names or files separated
 * by commas.  The last one applies to the remaining devices.  Without
 * URXE_PROFILE, p->name is empty.
 */
int profile_by_env(struct urxe_profile *p, uint32_t k);

/*
 * The errno value of a refusal because of that key, or @own if the profile
 * has none.
 */
int profile_error(const struct urxe_profile *p, enum profile_key key, int own);
/* The name of an errno value that a profile may have, else NULL. */
const char *profile_error_name(uint8_t error);

/*
 * Print the line of a key, without the newline.  error: the name of an errno
 * value, or NULL.
 */
void profile_key_print(FILE *to, enum profile_key key, uint64_t value,
		       const char *error);

/* The enum ibv_mtu of a number of bytes: the largest that fits. */
static inline uint8_t profile_mtu(uint64_t bytes)
{
	uint8_t code = 5; /* IBV_MTU_4096 */

	while (code > 1 && 128ull << code > bytes)
		code--;
	return code;
}

/*
 * The rate of a port, in units of 100 Mb/s, and its line in sysfs: that of the
 * profile, or what urxe port or a fault rule has set.
 */
uint32_t hca_rate(const struct urxe_hca *hca);
/* The same as enums ibv_port_attr.active_width and active_speed. */
void hca_width_speed(const struct urxe_hca *hca, uint8_t *width,
		     uint8_t *speed);
/*
 * Set width and speed to a rate and a number of lanes.  False: InfiniBand has
 * none such.
 */
bool rate_set(struct urxe_profile *p, uint32_t rate, uint32_t lanes);
/* The enum ibv_rate of such a rate: the largest that is not above it. */
uint8_t rate_code(uint32_t rate);
/* Set *code to urxe_hca.rate for such a rate.  False: InfiniBand has none. */
bool rate_encode(uint32_t rate, uint32_t *code);
void rate_print(const struct urxe_hca *hca, char *text, size_t room);

/*
 * Copy a profile from shared memory.  No limit and no feature of the copy is
 * beyond those of urxe, whatever the memory contains.
 */
void profile_copy(struct urxe_profile *to, const struct urxe_profile *from);
