// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the profile of a device refuses. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "profile.h"
#include "verbs.h"

int profile_refuse(const struct urxe_context *ctx, enum profile_key key,
		   int own, const char *fmt, ...)
{
	const char *name = ctx->profile.name;
	char reason[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	return fabric_fail(profile_error(&ctx->profile, key, own), "%s%s%s",
			   reason, name[0] ? "; profile " : "", name);
}

int profile_need(const struct urxe_context *ctx, uint64_t features,
		 const char *what)
{
	if (profile_has(ctx, features))
		return 0;
	return profile_refuse(ctx, PROFILE_features, EOPNOTSUPP,
			      "%s is not supported", what);
}

/* Verbs of each feature, by their offset in struct pabi_ops. */
static const struct {
	uint64_t features;
	size_t op;
} optional[] = {
#define OPTIONAL(feature, name)                                       \
	{                                                             \
		PROFILE_HAS(feature), offsetof(struct pabi_ops, name) \
	}
	OPTIONAL(SRQ, create_srq),
	OPTIONAL(SRQ, create_srq_ex),
	OPTIONAL(SRQ, modify_srq),
	OPTIONAL(SRQ, query_srq),
	OPTIONAL(SRQ, post_srq_recv),
	OPTIONAL(XRC, open_xrcd),
	OPTIONAL(XRC, close_xrcd),
	OPTIONAL(XRC, open_qp),
	OPTIONAL(XRC, get_srq_num),
	OPTIONAL(DM, alloc_dm),
	OPTIONAL(DM, free_dm),
	OPTIONAL(DM, reg_dm_mr),
	OPTIONAL(DM, import_dm),
	OPTIONAL(DM, dm_export_dmabuf_fd),
	OPTIONAL(DMABUF, reg_dmabuf_mr),
	OPTIONAL(NULL_MR, alloc_null_mr),
	OPTIONAL(REREG_MR, rereg_mr),
	OPTIONAL(ADVISE_MR, advise_mr),
	OPTIONAL(IMPORT, import_mr),
	OPTIONAL(IMPORT, import_pd),
	OPTIONAL(CQ_EX, create_cq_ex),
	OPTIONAL(RESIZE_CQ, resize_cq),
	OPTIONAL(MODERATE_CQ, modify_cq),
	OPTIONAL(COMP_CNTR, create_comp_cntr),
	OPTIONAL(COMP_CNTR, query_comp_cntr_caps),
	OPTIONAL(QP_EX, create_qp_ex),
	OPTIONAL(PARENT_DOMAIN, alloc_td),
	OPTIONAL(PARENT_DOMAIN, alloc_parent_domain),
	OPTIONAL(MCAST, attach_mcast),
	OPTIONAL(MCAST, detach_mcast),
	OPTIONAL(CLOCK, query_rt_values),
	OPTIONAL(ECE, query_ece),
	OPTIONAL(ECE, set_ece),
};

void profile_ops(const struct urxe_context *ctx, struct pabi_ops *ops)
{
	unsigned int i;

	for (i = 0; i < sizeof(optional) / sizeof(*optional); i++)
		if (!profile_has(ctx, optional[i].features))
			memset((char *)ops + optional[i].op, 0, sizeof(void *));
	if (!(profile_limit(ctx, features) &
	      (PROFILE_HAS(MW_1) | PROFILE_HAS(MW_2)))) {
		ops->alloc_mw = NULL;
		ops->bind_mw = NULL;
	}
}
