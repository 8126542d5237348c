// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "msg.h"

struct nl_msg {
	union {
		struct nlmsghdr h; /* its length is that of the message */
		char bytes[MAX_MESSAGE];
	} u;
};

struct nl_msg *nlmsg_new(uint32_t port, uint32_t seq, int type, int flags)
{
	struct nl_msg *m = calloc(1, sizeof(*m));

	if (m)
		m->u.h = (struct nlmsghdr){ .nlmsg_len = NLMSG_HDRLEN,
					    .nlmsg_type = (uint16_t)type,
					    .nlmsg_flags = (uint16_t)flags,
					    .nlmsg_seq = seq,
					    .nlmsg_pid = port };
	return m;
}

void nlmsg_free(struct nl_msg *m)
{
	free(m);
}

struct nlmsghdr *nlmsg_hdr(struct nl_msg *m)
{
	return &m->u.h;
}

/* Where the next attribute is to stand. */
static struct nlattr *tail(struct nl_msg *m)
{
	return (struct nlattr *)(m->u.bytes + NLMSG_ALIGN(m->u.h.nlmsg_len));
}

int nla_put(struct nl_msg *m, int type, int len, const void *data)
{
	const size_t at = NLMSG_ALIGN(m->u.h.nlmsg_len);
	const size_t all = NLA_HDRLEN + (size_t)len;
	struct nlattr *a = tail(m);

	if (len < 0 || NLA_ALIGN(all) > sizeof(m->u.bytes) - at)
		return -1;
	memset(a, 0, NLA_ALIGN(all)); /* also what aligns the next one */
	a->nla_type = (uint16_t)type;
	a->nla_len = (uint16_t)all;
	if (len)
		memcpy(nla_data(a), data, (size_t)len);
	m->u.h.nlmsg_len = (uint32_t)(at + NLA_ALIGN(all));
	return 0;
}

int nla_put_u8(struct nl_msg *m, int type, uint8_t v)
{
	return nla_put(m, type, sizeof(v), &v);
}

int nla_put_u32(struct nl_msg *m, int type, uint32_t v)
{
	return nla_put(m, type, sizeof(v), &v);
}

int nla_put_u64(struct nl_msg *m, int type, uint64_t v)
{
	return nla_put(m, type, sizeof(v), &v);
}

int nla_put_string(struct nl_msg *m, int type, const char *s)
{
	return nla_put(m, type, (int)strlen(s) + 1, s);
}

struct nlattr *nla_nest_start(struct nl_msg *m, int type)
{
	struct nlattr *nest = tail(m);

	return nla_put(m, NLA_F_NESTED | type, 0, NULL) ? NULL : nest;
}

void nla_nest_end(struct nl_msg *m, struct nlattr *nest)
{
	const long len = (char *)tail(m) - (char *)nest;

	if (len <= NLA_HDRLEN)
		nla_nest_cancel(m, nest);
	else
		nest->nla_len = (uint16_t)len;
}

void nla_nest_cancel(struct nl_msg *m, const struct nlattr *nest)
{
	m->u.h.nlmsg_len = (uint32_t)((const char *)nest - m->u.bytes);
}

void nlmsg_parse(const struct nlmsghdr *h, struct nlattr **attr, int max)
{
	const char *at = (const char *)h + NLMSG_HDRLEN;
	size_t left = h->nlmsg_len - NLMSG_HDRLEN, step;
	struct nlattr *a;
	int type;

	memset(attr, 0, sizeof(*attr) * ((size_t)max + 1));
	while (left >= NLA_HDRLEN) {
		a = (struct nlattr *)at;
		if (a->nla_len < NLA_HDRLEN || a->nla_len > left)
			return;
		type = a->nla_type & NLA_TYPE_MASK;
		if (type && type <= max)
			attr[type] = a;
		step = NLA_ALIGN(a->nla_len);
		if (step > left)
			return;
		at += step;
		left -= step;
	}
}
