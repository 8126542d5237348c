// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* How many objects there are, and the way of all listings. */
#include <string.h>

#include "res.h"

/* ---------------------------------------------------------------- count */

static uint32_t live_contexts(const struct urxe_dev *dev)
{
	uint32_t i, n = 0;

	for (i = 0; i < URXE_MAX_CTX; i++)
		n += atomic_load_explicit(&dev->ctx[i].state,
					  memory_order_relaxed) ==
		     URXE_CTX_LIVE;
	return n;
}

static uint32_t used(const struct urxe_dev *dev, enum urxe_obj o)
{
	return atomic_load_explicit(&dev->used[o], memory_order_relaxed);
}

static int put_count(struct nl_msg *m, const char *name, uint64_t count)
{
	struct nlattr *entry =
		nla_nest_start(m, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
	int bad;

	if (!entry)
		return -1;
	bad = nla_put_string(m, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, name);
	bad |= nla_put_u64(m, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, count);
	nla_nest_end(m, entry);
	return bad;
}

/* In the kernel's order. */
static int put_counts(struct nl_request *r, struct nl_msg *m)
{
	const struct urxe_dev *dev = r->f->dev;
	int bad;

	bad = put_count(m, "pd", used(dev, URXE_OBJ_PD));
	bad |= put_count(m, "cq", used(dev, URXE_OBJ_CQ));
	bad |= put_count(m, "qp", used(dev, URXE_OBJ_QP));
	bad |= put_count(m, "cm_id", res_count_cm_ids(r->f));
	bad |= put_count(m, "mr", used(dev, URXE_OBJ_MR));
	bad |= put_count(m, "ctx", live_contexts(dev));
	bad |= put_count(m, "srq", used(dev, URXE_OBJ_SRQ));
	return bad;
}

int nldev_res_get(struct nl_request *r)
{
	struct nlattr *table;
	struct nl_msg *m;
	int bad;

	fabric_reap(r->f);
	m = nl_reply_new(r, RDMA_NLDEV_CMD_RES_GET);
	if (!m)
		return -ENOMEM;
	bad = nldev_put_name(m);
	table = nla_nest_start(m, RDMA_NLDEV_ATTR_RES_SUMMARY);
	if (table) {
		bad |= put_counts(r, m);
		nla_nest_end(m, table);
	}
	nl_reply_send(r, m, bad || !table);
	return 0;
}

/* ---------------------------------------------------------------- entries */

int res_put_owner(struct nl_msg *m, const struct res_ctx *c, int32_t pid)
{
	if (c->foreign)
		return nla_put_string(m, RDMA_NLDEV_ATTR_RES_KERN_NAME,
				      c->comm);
	return nla_put_u32(m, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)pid);
}

struct nlattr *res_details(struct nl_msg *m)
{
	return nla_nest_start(m, RDMA_NLDEV_ATTR_DRIVER);
}

static int put_detail_name(struct nl_msg *m, const char *name, bool hex)
{
	int bad;

	bad = nla_put_string(m, RDMA_NLDEV_ATTR_DRIVER_STRING, name);
	if (hex)
		bad |= nla_put_u8(m, RDMA_NLDEV_ATTR_DRIVER_PRINT_TYPE,
				  RDMA_NLDEV_PRINT_TYPE_HEX);
	return bad;
}

int res_detail_u32(struct nl_msg *m, const char *name, uint32_t value, bool hex)
{
	return put_detail_name(m, name, hex) ||
	       nla_put_u32(m, RDMA_NLDEV_ATTR_DRIVER_U32, value);
}

int res_detail_u64(struct nl_msg *m, const char *name, uint64_t value, bool hex)
{
	return put_detail_name(m, name, hex) ||
	       nla_put_u64(m, RDMA_NLDEV_ATTR_DRIVER_U64, value);
}

int res_detail_string(struct nl_msg *m, const char *name, const char *value)
{
	return put_detail_name(m, name, false) ||
	       nla_put_string(m, RDMA_NLDEV_ATTR_DRIVER_STRING, value);
}

/* ---------------------------------------------------------------- messages */

/* A message of a dump: the device, and a table that entries go into. */
static bool begin(struct res_out *o)
{
	o->msg = nl_reply_new(o->r, o->kind->op);
	if (!o->msg)
		return false;
	o->table = NULL;
	if (!nldev_put_name(o->msg))
		o->table = nla_nest_start(o->msg, o->kind->table);
	return o->table;
}

static void flush(struct res_out *o)
{
	if (!o->msg)
		return;
	if (o->table)
		nla_nest_end(o->msg, o->table);
	nl_reply_send(o->r, o->msg, !o->table);
	o->msg = NULL;
}

static bool add(struct res_out *o, res_fill *fill, const void *object)
{
	struct nlattr *entry = nla_nest_start(o->msg, o->kind->entry);

	if (!entry)
		return false;
	if (fill(o->msg, object)) {
		nla_nest_cancel(o->msg, entry);
		return false;
	}
	nla_nest_end(o->msg, entry);
	return true;
}

static void put_entry(struct res_out *o, res_fill *fill, const void *object)
{
	if (o->msg && add(o, fill, object))
		return;
	flush(o);
	if (!begin(o) || !add(o, fill, object))
		o->r->err = o->r->err ? o->r->err : -EMSGSIZE;
}

/* Without a table around it. */
static void put_single(struct res_out *o, res_fill *fill, const void *object)
{
	struct nl_msg *m = nl_reply_new(o->r, o->kind->op);

	if (m)
		nl_reply_send(o->r, m, nldev_put_name(m) || fill(m, object));
}

bool res_done(const struct res_out *o)
{
	return o->r->err || (!o->dump && o->found);
}

void res_put(struct res_out *o, uint32_t number, uint32_t port, res_fill *fill,
	     const void *object)
{
	if (res_done(o) || (o->port && o->port != port) ||
	    (!o->dump && o->id != number))
		return;
	o->found = true;
	if (o->dump)
		put_entry(o, fill, object);
	else
		put_single(o, fill, object);
}

/* ---------------------------------------------------------------- commands */

/* Which one, if it is one object that is asked for. */
static int parse(struct res_out *o)
{
	struct nl_request *r = o->r;
	uint32_t on;

	if (r->attr[RDMA_NLDEV_ATTR_PORT_INDEX] &&
	    (!nl_get_u32(r, RDMA_NLDEV_ATTR_PORT_INDEX, &o->port) ||
	     o->port != 1))
		return -EINVAL;
	/* the older tools show them without having asked */
	o->details = !nl_get_u8(r, NLDEV_ATTR_DRIVER_DETAILS, &on) || on;
	o->dump = nl_is_dump(r);
	if (o->dump) {
		if (!o->kind->per_port)
			o->port = 0;
		return 0;
	}
	if (!nl_get_u32(r, o->kind->id, &o->id) ||
	    o->kind->per_port != (o->port != 0))
		return -EINVAL;
	return 0;
}

int res_run(struct nl_request *r, const struct res_kind *kind)
{
	struct res_out o = { .r = r, .kind = kind };
	int ret;

	ret = parse(&o);
	if (ret)
		return ret;
	if (kind->list_all)
		kind->list_all(&o);
	else
		res_walk(&o);
	flush(&o);
	if (r->err)
		return r->err;
	return o.dump || o.found ? 0 : -ENOENT;
}

int nldev_res_list(struct nl_request *r)
{
	static const struct res_kind *const kinds[] = {
		&res_kind_qp, &res_kind_cm_id, &res_kind_cq,  &res_kind_mr,
		&res_kind_pd, &res_kind_ctx,   &res_kind_srq,
	};
	const int op = RDMA_NL_GET_OP(r->hdr->nlmsg_type);
	unsigned int i;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (kinds[i]->op == op)
			return res_run(r, kinds[i]);
	return -EOPNOTSUPP;
}
