/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The profile of a context's device (shared/profile.h): its limits, and what
 * it refuses.  A device without profile has the limits of urxe.
 */
#pragma once

#include "engine/core/context.h"
#include "fabric/profile.h"

struct ibv_context;
struct pabi_ops;

/* The limit, or the set of flags, of a key. */
#define profile_limit(ctx, key) ((ctx)->profile.value[PROFILE_##key])

static inline bool profile_has(const struct urxe_context *ctx,
			       uint64_t features)
{
	return (profile_limit(ctx, features) & features) == features;
}

/*
 * Set fabric_why(), with the name of the profile, and return -errno: the one
 * that the profile has for that key, or @own.
 */
int profile_refuse(const struct urxe_context *ctx, enum profile_key key,
		   int own, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * -EOPNOTSUPP, or the errno value of the key `features`, if the device lacks
 * one of the features.
 */
int profile_need(const struct urxe_context *ctx, uint64_t features,
		 const char *what);

/* Remove the verbs from @ops that the device lacks. */
void profile_ops(const struct urxe_context *ctx, struct pabi_ops *ops);
