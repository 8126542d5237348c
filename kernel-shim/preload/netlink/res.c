// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The commands RES_GET, which counts objects, and RES_*_GET, which lists
 * them; res.h has an overview.
 */
#include <string.h>

#include "cm/cm.h"
#include "res.h"

/* The state of a listing: filters and the current message. */
struct res_out {
	struct nl_request *r;
	const struct res_kind *kind;
	uint32_t port; /* only objects of this port; 0: all */
	bool dump; /* all objects; false: only the object `id` */
	uint32_t id;
	bool details; /* include driver-specific attributes */
	bool found;
	struct nl_msg *msg; /* being filled, or NULL */
	struct nlattr *table; /* its open nest, in a dump */
};

/* ---------------------------------------------------------------- values */

/* Load the value of attribute @a.  False: the object has no such value. */
static bool attr_value(const struct res_obj *o, const struct res_attr *a,
		       uint64_t *value)
{
	const void *at = (const char *)(a->own ? o : o->entry) + a->offset;

	*value = a->size == 1 ? *(const uint8_t *)at :
		 a->size == 2 ? *(const uint16_t *)at :
		 a->size == 4 ? *(const uint32_t *)at :
				*(const uint64_t *)at;
	if ((a->own && *value == RES_NONE) || (a->optional && !*value))
		return false;
	if (a->base)
		*value += (uint64_t)o->c->slot * a->base;
	return true;
}

static int put_addr(struct nl_msg *m, const struct res_obj *o,
		    const struct res_attr *a)
{
	const void *addr = (const char *)o->entry + a->offset;
	struct sockaddr_storage s = { 0 };
	const size_t len = cm_addr_size(addr);

	if (!len)
		return 0;
	memcpy(&s, addr, len);
	return nl()->nla_put(m, a->id, sizeof(s), &s);
}

static int put_detail_name(struct nl_msg *m, const struct res_attr *a)
{
	if (nl()->nla_put_string(m, RDMA_NLDEV_ATTR_DRIVER_STRING, a->name))
		return -1;
	return a->hex ? nl()->nla_put_u8(m, RDMA_NLDEV_ATTR_DRIVER_PRINT_TYPE,
					 RDMA_NLDEV_PRINT_TYPE_HEX) :
			0;
}

static int put_attr(struct nl_msg *m, const struct res_obj *o,
		    const struct res_attr *a)
{
	uint64_t v;

	if (a->form == RES_PUT)
		return a->put(m, o);
	if (a->form == RES_ADDR)
		return put_addr(m, o, a);
	if (!attr_value(o, a, &v))
		return 0;
	if (a->name && put_detail_name(m, a))
		return -1;
	switch (a->form) {
	case RES_U8:
		return nl()->nla_put_u8(m, a->id, (uint8_t)v);
	case RES_U64:
		return nl()->nla_put_u64(m, a->id, v);
	case RES_TEXT:
		v = v < a->texts ? v : a->texts - 1u;
		return nl()->nla_put_string(m, a->id, a->text[v]);
	case RES_OWNER:
		if (o->c->foreign)
			return nl()->nla_put_string(
				m, RDMA_NLDEV_ATTR_RES_KERN_NAME, o->c->comm);
		/* fall through */
	default:
		return nl()->nla_put_u32(m, a->id, (uint32_t)v);
	}
}

static int put_attrs(struct nl_msg *m, const struct res_obj *o,
		     const struct res_attr *a)
{
	for (; a->form != RES_END; a++)
		if (put_attr(m, o, a))
			return -1;
	return 0;
}

static int put_object(struct res_out *out, struct nl_msg *m,
		      const struct res_obj *o)
{
	struct nlattr *table;
	int bad;

	bad = put_attrs(m, o, out->kind->attrs);
	if (bad || !out->details || !out->kind->details)
		return bad;
	table = nl()->nla_nest_start(m, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -1;
	bad = put_attrs(m, o, out->kind->details);
	nl()->nla_nest_end(m, table);
	return bad;
}

/* ---------------------------------------------------------------- messages */

/*
 * Begin a message: the device and, in a dump, the table of entries.  False:
 * no memory or no space.
 */
static bool out_begin(struct res_out *out)
{
	out->msg = nl_reply_new(out->r, out->kind->op);
	if (!out->msg || nldev_put_name(out->r->f, out->msg, out->r->device))
		return false;
	out->table = out->dump ?
			     nl()->nla_nest_start(out->msg, out->kind->table) :
			     NULL;
	return out->table || !out->dump;
}

static void out_flush(struct res_out *out)
{
	if (!out->msg)
		return;
	if (out->table)
		nl()->nla_nest_end(out->msg, out->table);
	nl_reply_send(out->r, out->msg, out->dump && !out->table);
	out->msg = NULL;
}

static bool out_add(struct res_out *out, const struct res_obj *o)
{
	struct nlattr *entry;

	if (!out->dump)
		return !put_object(out, out->msg, o);
	entry = nl()->nla_nest_start(out->msg, out->kind->entry);
	if (!entry)
		return false;
	if (put_object(out, out->msg, o)) {
		nl()->nla_nest_cancel(out->msg, entry);
		return false;
	}
	nl()->nla_nest_end(out->msg, entry);
	return true;
}

/* Return true if the listing is complete, or has failed. */
static bool out_done(const struct res_out *out)
{
	return out->r->err || (!out->dump && out->found);
}

/*
 * res_fn: add an object to the response, unless a filter excludes it.  If the
 * current message is full, send it and begin another one.
 */
static bool out_put(const struct res_obj *found, void *arg)
{
	struct res_out *out = arg;
	struct res_obj o = *found;

	if ((out->port && out->port != o.port) ||
	    (!out->dump && out->id != o.number))
		return true;
	out->found = true;
	if (out->kind->fill)
		out->kind->fill(&o);
	if (out->msg && out_add(out, &o))
		return true;
	out_flush(out);
	if (!out_begin(out) || !out_add(out, &o)) {
		if (!out->r->err)
			out->r->err = -EMSGSIZE;
		nl()->nlmsg_free(out->msg);
		out->msg = NULL;
	}
	return !out_done(out);
}

/* ---------------------------------------------------------------- commands */

/*
 * Parse the attributes of the request: port, details, and the number of the
 * object if it is not a dump.
 */
static int res_parse(struct res_out *out)
{
	struct nl_request *r = out->r;
	uint32_t on;

	if (r->attr[RDMA_NLDEV_ATTR_PORT_INDEX] &&
	    (!nl_get_u32(r, RDMA_NLDEV_ATTR_PORT_INDEX, &out->port) ||
	     out->port != 1))
		return -EINVAL;
	/* older tools show details, but do not send this attribute */
	out->details = !nl_get_u8(r, NLDEV_ATTR_DRIVER_DETAILS, &on) || on;
	out->dump = nl_is_dump(r);
	if (out->dump) {
		if (!out->kind->per_port)
			out->port = 0;
		return 0;
	}
	if (!nl_get_u32(r, out->kind->id, &out->id) ||
	    out->kind->per_port != (out->port != 0))
		return -EINVAL;
	return 0;
}

/* Is the context in the slot, or the last one there, of device @k? */
static bool is_of_device(struct urxe_fabric *f, uint32_t slot, uint32_t k)
{
	return hca_of_ctx(f->dev, slot) == fabric_hca(f, k);
}

static void list_contexts(struct res_out *out)
{
	const struct res_kind *kind = out->kind;
	struct urxe_fabric *f = out->r->f;
	struct res_obj self = { 0 };
	struct res_ctx c;

	fabric_reap(f);
	for (; self.slot < URXE_MAX_CTX && !out_done(out); self.slot++) {
		if (!is_of_device(f, self.slot, out->r->device) ||
		    !res_ctx_open(f, self.slot, &c))
			continue;
		self.c = &c;
		self.number = self.slot;
		self.pid = c.pid;
		if (!kind->size)
			out_put(&self, out);
		else if (kind->prepare && kind->prepare(&c))
			out->r->err = -ENOMEM;
		else
			res_each(&c, kind, out_put, out);
		res_ctx_close(&c);
	}
}

int res_run(struct nl_request *r, const struct res_kind *kind)
{
	struct res_out out = { .r = r, .kind = kind };
	int ret;

	ret = res_parse(&out);
	if (ret)
		return ret;
	if (kind->each)
		kind->each(r->f, r->device, out_put, &out);
	else
		list_contexts(&out);
	out_flush(&out);
	if (r->err)
		return r->err;
	return out.dump || out.found ? 0 : -ENOENT;
}

int nldev_res_list(struct nl_request *r)
{
	const int op = RDMA_NL_GET_OP(r->hdr->nlmsg_type);
	unsigned int i;

	for (i = 0; i < RES_KINDS; i++)
		if (res_kinds[i].op == op)
			return res_run(r, &res_kinds[i]);
	return -EOPNOTSUPP;
}

/* ---------------------------------------------------------------- counts */

static bool res_count_one(const struct res_obj *o, void *arg)
{
	(void)o;
	(*(uint64_t *)arg)++;
	return true;
}

static uint64_t res_count(const struct nl_request *r,
			  const struct res_kind *kind)
{
	const struct urxe_dev *dev = r->f->dev;
	struct urxe_fabric *f = r->f;
	uint64_t n = 0;
	uint32_t i;

	if (kind->each) {
		kind->each(f, r->device, res_count_one, &n);
		return n;
	}
	for (i = 0; i < URXE_MAX_CTX; i++)
		if (is_of_device(f, i, r->device) &&
		    load_relaxed(&dev->ctx[i].state) == URXE_CTX_LIVE)
			n += kind->size ?
				     load_relaxed(
					     &dev->ctx[i].used[kind->obj]) :
				     1;
	return n;
}

static int put_count(struct nl_msg *m, const struct res_kind *kind,
		     const struct nl_request *r)
{
	struct nlattr *entry =
		nl()->nla_nest_start(m, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
	int bad;

	if (!entry)
		return -1;
	bad = nl()->nla_put_string(m, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME,
				   kind->name);
	bad |= nl()->nla_put_u64(m, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR,
				 res_count(r, kind));
	nl()->nla_nest_end(m, entry);
	return bad;
}

int nldev_res_get(struct nl_request *r)
{
	struct nlattr *table;
	struct nl_msg *m;
	unsigned int i;
	int bad;

	fabric_reap(r->f);
	m = nl_reply_new(r, RDMA_NLDEV_CMD_RES_GET);
	if (!m)
		return -ENOMEM;
	bad = nldev_put_name(r->f, m, r->device);
	table = nl()->nla_nest_start(m, RDMA_NLDEV_ATTR_RES_SUMMARY);
	for (i = 0; table && i < RES_KINDS; i++)
		bad |= put_count(m, &res_kinds[i], r);
	if (table)
		nl()->nla_nest_end(m, table);
	nl_reply_send(r, m, bad || !table);
	return 0;
}
