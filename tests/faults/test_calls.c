// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fault injection into verbs calls: which call fails, and what it returns */
#include <sys/mman.h>
#include <sys/wait.h>

#include "faults.h"

static struct node n;

static void open_node(const char *rules)
{
	struct opts o = default_opts();

	fault(rules);
	node_open(&n, NULL, MEM_HEAP, &o);
}

static struct ibv_mr *reg(void)
{
	errno = 0;
	return ibv_reg_mr(n.pd, n.buf, 64, IBV_ACCESS_LOCAL_WRITE);
}

/* nth=N fails the N-th call, and only that one. */
START_TEST(only_nth_call_fails)
{
	struct ibv_mr *mr[4];
	int i;

	open_node("ibv_reg_mr:nth=3:ENOMEM"); /* it registers one */
	mr[0] = reg();
	ck_nonnull(mr[0]);
	ck_assert_ptr_null(reg());
	ck_assert_int_eq(errno, ENOMEM);
	for (i = 1; i < 4; i++) {
		mr[i] = reg();
		ck_nonnull(mr[i]);
	}
	for (i = 0; i < 4; i++)
		ck_ok(ibv_dereg_mr(mr[i]));
	node_close(&n);
}
END_TEST

/* Allocate @many PDs.  Return a mask of the calls that failed. */
static unsigned int failing_pds(struct ibv_context *ctx, int many)
{
	unsigned int failed = 0;
	struct ibv_pd *pd;
	int i;

	for (i = 0; i < many; i++) {
		errno = 0;
		pd = ibv_alloc_pd(ctx);
		if (pd) {
			ck_ok(ibv_dealloc_pd(pd));
			continue;
		}
		ck_assert_int_eq(errno, EAGAIN);
		failed |= 1u << i;
	}
	return failed;
}

static const struct {
	const char *rule;
	unsigned int failed; /* mask of 8 calls */
} whens[] = {
	{ "ibv_alloc_pd:EAGAIN", 0xff },
	{ "ibv_alloc_pd:times=2:EAGAIN", 0x03 },
	{ "ibv_alloc_pd:nth=4:EAGAIN", 0x08 },
	{ "ibv_alloc_pd:nth=4:times=3:EAGAIN", 0x38 },
	{ "ibv_alloc_pd:every=3:EAGAIN", 0x24 },
	{ "ibv_alloc_pd:every=2:times=2:EAGAIN", 0x0a },
	{ "ibv_alloc_pd:p=0:EAGAIN", 0 },
	{ "ibv_alloc_pd:p=1:times=1:EAGAIN", 0x01 },
	{ "ibv_alloc_*:nth=2:EAGAIN", 0x02 },
	{ "ibv_alloc_mw:EAGAIN", 0 },
	{ "# a comment; of all the line\n ibv_alloc_pd:nth=1:EAGAIN ;"
	  "ibv_alloc_pd:nth=8:EAGAIN\n\n", 0x81 },
	{ "ibv_alloc_pd:prog=somebody-else:EAGAIN", 0 },
	{ "ibv_alloc_pd:prog=faults-calls:nth=1:EAGAIN", 0x01 },
};

/* nth, every, times, p, prog and wildcards select the calls that fail. */
START_TEST(selection_of_calls)
{
	struct ibv_context *ctx;

	fault(whens[_i].rule);
	ctx = open_device();
	ck_assert_uint_eq(failing_pds(ctx, 8), whens[_i].failed);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/*
 * failing_pds() in a new process.  @seed is URXE_FAULT_SEED and @adversary is
 * URXE_ADVERSARY; NULL leaves them unset.
 */
static unsigned int chances_with(const char *rule, const char *seed,
				 const char *adversary)
{
	unsigned int *failed = shared_page();
	struct ibv_context *ctx;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		fault(rule);
		if (seed)
			setenv("URXE_FAULT_SEED", seed, 1);
		if (adversary)
			setenv("URXE_ADVERSARY", adversary, 1);
		ctx = open_device();
		*failed = failing_pds(ctx, 32);
		ck_ok(ibv_close_device(ctx));
		_exit(0);
	}
	ck_ok(reap_child(pid));
	return *failed;
}

/*
 * All rules count each call.  The first rule that matches determines the
 * error, and the other matching rules do not use up their `times`.
 */
START_TEST(several_rules)
{
	static const int err[] = { 0, EIO, 0, EPERM, EAGAIN, EPERM, 0 };
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	size_t i;

	fault("ibv_alloc_pd:nth=2:EIO;ibv_alloc_pd:every=2:times=2:EPERM;"
	      "ibv_alloc_pd:nth=4:EBUSY;ibv_alloc_*:nth=5:EAGAIN");
	ctx = open_device();
	for (i = 0; i < sizeof(err) / sizeof(*err); i++) {
		errno = 0;
		pd = ibv_alloc_pd(ctx);
		ck_assert_int_eq(errno, err[i]);
		if (pd)
			ck_ok(ibv_dealloc_pd(pd));
	}
	ck_ok(ibv_close_device(ctx));
}
END_TEST

static unsigned int chances(const char *seed)
{
	return chances_with("ibv_alloc_pd:p=0.5:EAGAIN", seed, NULL);
}

/* Which calls fail with p= depends only on the seed and the rule. */
START_TEST(probability_depends_on_seed)
{
	const char *rule = "ibv_alloc_pd:p=0.5:EAGAIN";
	unsigned int one = chances("1"), two = chances("2");

	ck_assert_uint_ne(one, 0);
	ck_assert_uint_ne(one, ~0u);
	ck_assert_uint_ne(one, two);
	ck_assert_uint_eq(one, chances("1"));
	ck_assert_uint_eq(two, chances("0x2"));
	ck_assert_uint_eq(chances("010"), chances("10")); /* not octal */
	/* the default is the adversary's seed, or else 0 */
	ck_assert_uint_eq(chances_with(rule, NULL, "2,none"), two);
	ck_assert_uint_eq(chances_with(rule, "1", "2,none"), one);
	ck_assert_uint_eq(chances_with(rule, NULL, NULL), chances("0"));
	/* random numbers depend on the index of a rule, not on other rules */
	ck_assert_uint_eq(
		chances_with("ibv_alloc_pd:prog=a:EIO;ibv_alloc_mw:EIO;"
			     "ibv_alloc_pd:p=0.5:EAGAIN", "1", NULL),
		chances_with("wr:LOC_PROT_ERR;ibv_alloc_td:EIO;"
			     "ibv_alloc_*:p=0.5:EAGAIN", "1", NULL));
}
END_TEST

/*
 * A verb that returns int returns the errno value and sets errno.  The object
 * is unchanged.
 */
START_TEST(int_verb_returns_errno)
{
	struct ibv_cq *cq;

	open_node("ibv_destroy_cq:nth=1:EBUSY; ibv_modify_qp:nth=1:EIO");
	cq = ibv_create_cq(n.ctx, 4, NULL, NULL, 0);
	ck_nonnull(cq);
	errno = 0;
	ck_assert_int_eq(ibv_destroy_cq(cq), EBUSY);
	ck_assert_int_eq(errno, EBUSY);
	ck_ok(ibv_destroy_cq(cq)); /* it was not destroyed */
	ck_assert_int_eq(qp_to(n.qp, IBV_QPS_ERR), EIO);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_RESET);
	ck_ok(qp_to(n.qp, IBV_QPS_ERR));
	node_close(&n);
}
END_TEST

/*
 * A failing post stores the first WR in *bad_wr, and posts none
 * (ibv_post_send(3)).
 */
START_TEST(post_sets_bad_wr)
{
	struct ibv_send_wr wr[2] = { { .wr_id = 1, .next = &wr[1] },
				     { .wr_id = 2 } };
	struct ibv_recv_wr recv = { .wr_id = 3 }, *bad_recv = NULL;
	struct ibv_send_wr *bad = NULL;
	struct opts o = default_opts();
	struct duo d;
	int i;

	fault("ibv_post_send:nth=2:ENOMEM;ibv_post_recv:nth=1:EIO");
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 2; i++) {
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].send_flags = IBV_SEND_SIGNALED;
	}
	ck_ok(ibv_post_send(d.a.qp, wr, &bad));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
	errno = 0;
	ck_assert_int_eq(ibv_post_send(d.a.qp, wr, &bad), ENOMEM);
	ck_assert_int_eq(errno, ENOMEM);
	ck_assert_ptr_eq(bad, &wr[0]);
	expect_none(d.a.scq, QUIET_MS);
	ck_assert_int_eq(ibv_post_recv(d.a.qp, &recv, &bad_recv), EIO);
	ck_assert_ptr_eq(bad_recv, &recv);
	ck_ok(ibv_post_recv(d.a.qp, &recv, &bad_recv));
	ck_ok(ibv_post_send(d.a.qp, wr, &bad)); /* later calls succeed */
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}
END_TEST

/*
 * A rule names an operation of the provider.  ibv_reg_mr_iova is ibv_reg_mr,
 * and ibv_query_device is ibv_query_device_ex; but ibv_create_qp and
 * ibv_create_qp_ex are distinct.
 */
START_TEST(names_of_operations)
{
	struct ibv_qp_init_attr_ex attr = {
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_init_attr old = { .qp_type = IBV_QPT_RC };
	struct ibv_device_attr device;
	struct ibv_qp *qp;

	open_node(_i ? "ibv_create_qp_ex:EIO" :
		       "ibv_reg_mr:nth=2:EIO;ibv_query_device_ex:EPERM;"
		       "ibv_create_qp:nth=2:EIO");
	attr.pd = n.pd;
	attr.send_cq = old.send_cq = n.scq;
	attr.recv_cq = old.recv_cq = n.rcq;
	attr.cap = old.cap = n.o.cap;
	if (!_i) {
		ck_errno(ibv_reg_mr_iova(n.pd, n.buf, 64, 0, 0), EIO);
		ck_assert_int_eq(ibv_query_device(n.ctx, &device), EPERM);
		ck_errno(ibv_create_qp(n.pd, &old), EIO);
		qp = ibv_create_qp_ex(n.ctx, &attr);
	} else {
		ck_errno(ibv_create_qp_ex(n.ctx, &attr), EIO);
		qp = ibv_create_qp(n.pd, &old);
	}
	ck_nonnull(qp);
	ck_ok(ibv_destroy_qp(qp));
	node_close(&n);
}
END_TEST

/* type= restricts a rule to QPs of that type. */
START_TEST(rule_for_qp_type)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_qp *ud;

	open_node("ibv_post_recv:type=UD:EINVAL");
	ud = make_qp(&n, IBV_QPT_UD, NULL);
	qp_to_init(n.qp, &n.o);
	type_to(ud, IBV_QPS_INIT, &n.o, NULL);
	ck_ok(ibv_post_recv(n.qp, &wr, &bad));
	ck_assert_int_eq(ibv_post_recv(ud, &wr, &bad), EINVAL);
	ck_ok(ibv_destroy_qp(ud));
	node_close(&n);
}
END_TEST

/*
 * ibv_poll_cq fails with a negative value, ibv_req_notify_cq with an errno
 * value.
 */
START_TEST(poll_and_arm_fail)
{
	struct opts o = default_opts();
	struct ibv_wc wc;

	o.channel = true;
	fault("ibv_poll_cq:nth=2:EIO\nibv_req_notify_cq:times=1:ENOMEM");
	node_open(&n, NULL, MEM_HEAP, &o);
	ck_assert_int_eq(ibv_poll_cq(n.rcq, 1, &wc), 0);
	ck_assert_int_lt(ibv_poll_cq(n.rcq, 1, &wc), 0);
	ck_assert_int_eq(ibv_poll_cq(n.rcq, 1, &wc), 0);
	ck_assert_int_eq(ibv_req_notify_cq(n.rcq, 0), ENOMEM);
	ck_ok(ibv_req_notify_cq(n.rcq, 0));
	node_close(&n);
}
END_TEST

/* If ibv_wr_complete fails, none of the WRs of the batch is posted. */
START_TEST(wr_complete_fails)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct addr self;
	struct ibv_qp_ex *ex;
	int i;

	open_node("ibv_wr_complete:nth=1:ENOMEM");
	ck_ok(ibv_destroy_qp(n.qp));
	attr.pd = n.pd;
	attr.send_cq = n.scq;
	attr.recv_cq = n.rcq;
	attr.cap = n.o.cap;
	n.qp = ibv_create_qp_ex(n.ctx, &attr);
	ck_nonnull(n.qp);
	self = node_addr(&n);
	node_connect(&n, &self);
	ex = ibv_qp_to_qp_ex(n.qp);
	for (i = 0; i < 2; i++) {
		ibv_wr_start(ex);
		ex->wr_id = 1 + i;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(ex, n.mr->rkey, n.base);
		ibv_wr_set_sge(ex, n.mr->lkey, n.base + 64, 8);
		ck_assert_int_eq(ibv_wr_complete(ex), i ? 0 : ENOMEM);
	}
	expect_ok(n.scq, 2, IBV_WC_RDMA_WRITE);
	expect_none(n.scq, QUIET_MS);
	node_close(&n);
}
END_TEST

static struct ibv_context *try_open(void)
{
	struct ibv_device **list, *dev = find_device(&list);
	struct ibv_context *ctx;

	errno = 0;
	ctx = ibv_open_device(dev);
	if (!ctx)
		ibv_free_device_list(list);
	return ctx;
}

/* ibv_open_device fails with the errno value of the rule. */
START_TEST(open_device_fails)
{
	fault("ibv_open_device:nth=1:EMFILE");
	ck_assert_ptr_null(try_open());
	ck_assert_int_eq(errno, EMFILE);
	ck_ok(ibv_close_device(open_device()));
}
END_TEST

static const char *const wrong[] = {
	"ibv_reg_mr:nth=5", "ibv_frobnicate:ENOMEM", "gibberish",
	"wr:nth=x:RETRY_EXC_ERR", "process:ms=5:nth=2:KILL",
};

/* An invalid rule is reported with the word that is wrong. */
START_TEST(invalid_rule_reported)
{
	static const char *const named[] = { "\"nth=5\"", "\"ibv_frobnicate\"",
					     "\"gibberish\"", "\"nth=x\"",
					     "\"process:ms=5:nth=2:KILL\"" };
	FILE *said = tmpfile();
	char text[4096];
	ssize_t len;

	ck_nonnull(said);
	ck_assert_int_ge(dup2(fileno(said), STDERR_FILENO), 0);
	setenv("URXE_LOG", "1", 1);
	fault(wrong[_i]);
	ck_assert_ptr_null(try_open());
	ck_assert_int_eq(errno, EINVAL);
	len = pread(fileno(said), text, sizeof(text) - 1, 0);
	ck_assert_int_gt(len, 0);
	text[len] = 0;
	ck_assert_msg(strstr(text, "URXE_FAULTS") && strstr(text, named[_i]),
		      "said: %s", text);
	fclose(said);
}
END_TEST

/* URXE_LOG=1 logs each injected fault with its rule. */
START_TEST(fault_is_logged)
{
	const char *rule = "ibv_alloc_pd:nth=1:EAGAIN";
	FILE *said = tmpfile();
	struct ibv_context *ctx;
	char text[4096];
	ssize_t len;

	ck_nonnull(said);
	ck_assert_int_ge(dup2(fileno(said), STDERR_FILENO), 0);
	setenv("URXE_LOG", "1", 1);
	fault(rule);
	ctx = open_device();
	ck_assert_uint_eq(failing_pds(ctx, 1), 1);
	len = pread(fileno(said), text, sizeof(text) - 1, 0);
	ck_assert_int_gt(len, 0);
	text[len] = 0;
	ck_assert_msg(strstr(text, "injected fault: ibv_alloc_pd") &&
			      strstr(text, rule),
		      "said: %s", text);
	ck_ok(ibv_close_device(ctx));
	fclose(said);
}
END_TEST

/* A child of fork() starts to count at 1. */
START_TEST(child_has_own_counts)
{
	unsigned int *failed = shared_page();
	struct ibv_context *ctx;
	pid_t pid;

	fault("ibv_alloc_pd:nth=2:EAGAIN");
	ctx = open_device();
	ck_assert_uint_eq(failing_pds(ctx, 1), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		failed[0] = failing_pds(ctx, 3);
		_exit(0);
	}
	ck_ok(reap_child(pid));
	ck_assert_uint_eq(failed[0], 0x2);
	ck_assert_uint_eq(failing_pds(ctx, 3), 0x1);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

#define COUNT(of) (int)(sizeof(of) / sizeof(*(of)))

int main(void)
{
	Suite *s = suite("faults calls");

	add(s, only_nth_call_fails);
	add_loop(s, selection_of_calls, COUNT(whens));
	add(s, several_rules);
	add(s, probability_depends_on_seed);
	add(s, int_verb_returns_errno);
	add(s, post_sets_bad_wr);
	add_loop(s, names_of_operations, 2);
	add(s, rule_for_qp_type);
	add(s, poll_and_arm_fail);
	add(s, wr_complete_fails);
	add(s, open_device_fails);
	add_loop(s, invalid_rule_reported, COUNT(wrong));
	add(s, fault_is_logged);
	add(s, child_has_own_counts);
	return run_unloaded(s);
}
