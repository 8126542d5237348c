// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receiving MADs (read on a umad device): the next record of its FIFO, with
 * the lengths and errors of the kernel.
 */
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

/* The next record; `next` is called as if by the program: it may wait. */
static ssize_t record_next(const struct umad *u, int fd,
			   struct umad_record *rec, size_t count,
			   ssize_t (*next)(int fd, void *buf, size_t len))
{
	ssize_t n;

	if (count < u->header) {
		errno = EINVAL;
		return -1;
	}
	n = next(fd, rec, sizeof(*rec));
	if (n >= 0 && n != sizeof(*rec)) {
		errno = EIO;
		n = -1;
	}
	return n;
}

bool umad_read(int fd, void *buf, size_t len,
	       ssize_t (*next)(int fd, void *buf, size_t len), ssize_t *ret)
{
	int saved = shim_enter();
	struct umad_record rec;
	struct umad u;
	const bool ours = umad_of_fd(fd, &u);
	ssize_t n;

	shim_leave(saved);
	if (!ours)
		return false;
	*ret = record_next(&u, fd, &rec, len, next);
	if (*ret < 0)
		return true;
	saved = shim_enter();
	n = record_copy(&u, &rec, buf, len);
	/* it stays in the queue if the buffer is too small */
	if ((n == -EINVAL || n == -ENOSPC) &&
	    umad_device_again(u.f, u.index, &rec))
		n = -EIO;
	shim_leave(n < 0 ? (int)-n : saved);
	*ret = n < 0 ? -1 : n;
	return true;
}
