// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rdma_cm as the distribution has it and another host, which is this program
 * (far.h): it says, message by message, what a kernel would, and what none would.
 */
#include <errno.h>
#include <string.h>

#include "cm/harness.h"
#include "far.h"

#define LONG_MS 60000
#define QUIET_MS 50
#define COMM_ID 0x1234u

/* An id that is to be resolved. */
static struct rdma_cm_id *resolving(uint8_t last, int timeout_ms)
{
	struct rdma_cm_id *id = new_id(new_channel(), RDMA_PS_TCP);
	struct sockaddr_storage a = far_address(last, 7000);

	ck_ok(rdma_resolve_addr(id, NULL, SA(&a), timeout_ms));
	return id;
}

/* ------------------------------------------------------------ addresses */

START_TEST(address_of_a_silent_host)
{
	struct sockaddr_storage a = far_address(2, 7000);
	struct rdma_cm_id *id = resolving(77, 100);

	pass(id->channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	ck_assert_ptr_null(id->verbs);
	/* it may try another one */
	ck_ok(rdma_resolve_addr(id, NULL, SA(&a), LONG_MS));
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert_ptr_nonnull(id->verbs);
	end_id(id, true);
}
END_TEST

START_TEST(address_without_a_way)
{
	struct rdma_cm_id *id = new_id(new_channel(), RDMA_PS_TCP);
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(0xc0000201) };

	ck_fails(rdma_resolve_addr(id, NULL, SA(&in), LONG_MS), ENETUNREACH);
	end_id(id, true);
}
END_TEST

/* It is asked for until the caller has no patience any more. */
START_TEST(address_that_comes_later)
{
	struct rdma_cm_id *id = resolving(78, LONG_MS);

	expect_nothing(id->channel, QUIET_MS);
	far_run(far_here[0] ? "ip -6 addr add fd91::4e/64 dev eth0 nodad" :
			      "ip addr add 10.91.0.78/24 dev eth0");
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	end_id(id, true);
}
END_TEST

/* Meanwhile the id is as good as any. */
START_TEST(address_of_an_id_that_ends)
{
	struct rdma_cm_id *id = resolving(79, LONG_MS);
	struct sockaddr_storage a = far_address(2, 7000);

	ck_fails(rdma_resolve_addr(id, NULL, SA(&a), LONG_MS), EINVAL);
	ck_fails(rdma_listen(id, 1), EINVAL);
	expect_nothing(id->channel, 0);
	end_id(id, true);
	id = resolving(2, LONG_MS);
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	end_id(id, true);
}
END_TEST

#define TEST(name, list) tcase_add_test(list, name)

int main(void)
{
	Suite *s = suite_create("wire cm");
	TCase *t = tcase_create("addresses");
	SRunner *r;
	int failed;

	may_leak();
	tcase_set_timeout(t, 600);
	tcase_add_checked_fixture(t, far_begin, far_end);
	TEST(address_of_a_silent_host, t);
	TEST(address_without_a_way, t);
	TEST(address_that_comes_later, t);
	TEST(address_of_an_id_that_ends, t);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? 1 : 0;
}
