// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receiving MADs (read on a umad device): the next record of its FIFO, with
 * the lengths and errors of the kernel.
 */
#include <unistd.h>

#include "internal.h"

/*
 * Check that a read of `count` bytes can have the MAD of a record: 0, -EINVAL,
 * or -ENOSPC if it has its first 256 bytes only, which have the length.
 */
static int record_fits(const struct umad_record *rec, size_t header,
		       size_t count)
{
	const size_t len = rec->hdr.length;
	const size_t first = len < MAD_BYTES_MAX ? len : MAD_BYTES_MAX;

	if (count < header + first)
		return -EINVAL;
	return count < header + len ? -ENOSPC : 0;
}

/* Copy a record to the caller's buffer: the number of bytes, or -errno. */
static ssize_t record_copy(const struct umad *u, struct umad_record *rec,
			   uint8_t *buf, size_t count)
{
	const size_t len = rec->hdr.length;
	struct ib_user_mad_hdr hdr = rec->hdr;
	int ret = record_fits(rec, u->header, count);

	if (ret == -EINVAL)
		return ret;
	hdr.length = (uint32_t)(u->header + len);
	memset(hdr.reserved, 0, sizeof(hdr.reserved));
	memcpy(buf, &hdr, u->header);
	memcpy(buf + u->header, rec->mad,
	       len < MAD_BYTES_MAX ? len : MAD_BYTES_MAX);
	if (!ret && len > MAD_BYTES_MAX)
		ret = umad_device_get(u->f, u->index, rec, buf + u->header,
				      len);
	return ret ? ret : (ssize_t)(u->header + len);
}

/* Is it a response to a request that has timed out? */
static bool record_is_late(const struct umad *u, const struct umad_record *rec)
{
	return !rec->hdr.status && !UMAD_AGAIN(rec) &&
	       attr_get(rec->mad, ATTR_MAD_response) &&
	       !pending_remove(u->index, attr_get(rec->mad, ATTR_MAD_tid));
}

static ssize_t umad_do_read(const struct umad *u, int fd, uint8_t *buf,
			    size_t count)
{
	struct umad_record rec;
	ssize_t n;

	if (count < u->header)
		return -EINVAL;
	do {
		n = read(fd, &rec, sizeof(rec));
		if (n != sizeof(rec))
			return n < 0 ? -errno : -EIO;
	} while (record_is_late(u, &rec));
	n = record_copy(u, &rec, buf, count);
	/* it stays in the queue if the buffer is too small */
	UMAD_AGAIN(&rec) = 1;
	if ((n == -EINVAL || n == -ENOSPC) &&
	    write(fd, &rec, sizeof(rec)) != sizeof(rec))
		return -EIO;
	return n;
}

bool umad_read(int fd, void *buf, size_t len, ssize_t *ret)
{
	const int saved = shim_enter();
	struct umad u;
	ssize_t n;

	if (!umad_of_fd(fd, &u)) {
		shim_leave(saved);
		return false;
	}
	n = umad_do_read(&u, fd, buf, len);
	shim_leave(n < 0 ? (int)-n : saved);
	*ret = n < 0 ? -1 : n;
	return true;
}
