// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The QP-number directory. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "fabric.h"
#include "internal.h"

#define QPN_FIRST 2 /* 0 and 1 belong to the management QPs */

/*
 * Where the numbers of a fabric begin.  On a wire that is anywhere: other hosts
 * may remember those of the fabric that was here before, and take a connection
 * for one of its.
 */
static uint8_t first_number(void)
{
	uint8_t any;

	if (getenv("URXE_WIRE") &&
	    getrandom(&any, sizeof(any), GRND_NONBLOCK) == sizeof(any))
		return any;
	return 0;
}

/* The high bits of an entry's next QPN. */
static uint8_t next_use(uint8_t last)
{
	return ((last ? last : first_number()) + 1) % URXE_QPN_USES;
}

static int qp_reserve(struct urxe_fabric *f, int fd, const void *first,
		      size_t len)
{
	return arena_reserve(fd, (const char *)first - (const char *)f->dev,
			     len);
}

/* Memory for more QPs; under the lock. */
static int qp_slots_more(struct urxe_fabric *f)
{
	const uint32_t high = qp_slots(f->dev), more = URXE_GUARD_GROUP;
	struct urxe_dev *dev = f->dev;
	int fd, ret;

	if (high > URXE_MAX_QP - more)
		return -ENOMEM;
	fd = openat(f->dirfd, "device", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fabric_fail(errno, "the device's file: %s",
				   strerror(errno));
	ret = qp_reserve(f, fd, &dev->qp[high], more * sizeof(dev->qp[0]));
	if (!ret)
		ret = qp_reserve(f, fd, &dev->qp_uses[high],
				 more * sizeof(dev->qp_uses[0]));
	if (!ret)
		ret = qp_reserve(f, fd, &dev->guard[high],
				 more * sizeof(dev->guard[0]));
	close(fd);
	if (ret)
		return ret;
	if (!high)
		store_relaxed(&dev->qp_next, first_number() % more);
	store_seq_cst(&dev->qp_high, high + more);
	return 0;
}

/*
 * A free entry, at first those that were not used for longest, for numbers are
 * used again sooner than others forget them; 0: none.
 */
static uint32_t qp_find_free(const struct urxe_dev *dev)
{
	const uint32_t high = qp_slots(dev);
	uint32_t n, i = load_relaxed(&dev->qp_next);

	for (n = 0; n < high; n++, i++) {
		if (i >= high)
			i = 0;
		if (i >= QPN_FIRST && !load_relaxed(&dev->qp[i]))
			return i;
	}
	return 0;
}

static int qp_take(struct urxe_fabric *f, uint32_t *index)
{
	int ret;

	*index = qp_find_free(f->dev);
	if (*index)
		return 0;
	ret = qp_slots_more(f);
	if (ret)
		return ret;
	*index = qp_find_free(f->dev);
	return *index ? 0 : -ENOMEM;
}

int qpn_alloc(struct urxe_fabric *f, uint32_t slot, uint32_t gen, uint32_t *qpn)
{
	struct urxe_dev *dev = f->dev;
	uint32_t i;
	int ret;

	ret = fabric_lock(f);
	if (ret)
		return ret;
	ret = qp_take(f, &i);
	if (!ret) {
		store_relaxed(&dev->qp_next, i + 1);
		dev->qp_uses[i] = next_use(dev->qp_uses[i]);
		*qpn = URXE_QPN(i, dev->qp_uses[i]);
		presence_clear(&dev->guard[i].requester);
		/* seq_cst: who waits for guards looks at it, see guard.h */
		store_seq_cst(&dev->qp[i], URXE_DIR(*qpn, slot, gen));
	}
	fabric_unlock(f);
	return ret;
}

void qpn_free(struct urxe_fabric *f, uint32_t qpn)
{
	store_release(&f->dev->qp[qpn_index(qpn)], 0);
}

bool qpn_lookup(const struct urxe_dev *dev, uint32_t qpn, uint32_t *slot,
		uint32_t *gen)
{
	const uint32_t i = qpn_index(qpn);
	uint64_t e = i < qp_slots(dev) ? load_acquire(&dev->qp[i]) : 0;

	if (URXE_DIR_QPN(e) != qpn || !e)
		return false;
	*slot = URXE_DIR_CTX(e);
	*gen = URXE_DIR_GEN(e);
	return true;
}
