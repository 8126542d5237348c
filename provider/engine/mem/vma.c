// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Query of this process's address space: by the PROCMAP_QUERY ioctl (Linux
 * 6.11), with one call per mapping and a cached descriptor (maps.h), else by
 * parsing /proc/self/maps.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/madvise.h"
#include "maps.h"
#include "vma.h"

/*
 * PROCMAP_QUERY of linux/fs.h, declared here because older headers lack it.
 */
struct map_query {
	uint64_t size, query_flags, query_addr;
	uint64_t start, end, flags, page_size, offset, ino;
	uint32_t dev_major, dev_minor;
	uint32_t name_size, build_id_size;
	uint64_t name, build_id;
};
#define MAP_QUERY _IOWR('f', 17, struct map_query)
#define QUERY_NEXT 0x10 /* the mapping at the address or the next above */
#define FLAG_READ 1
#define FLAG_WRITE 2
#define FLAG_SHARED 8

struct walker {
	struct maps maps;
	bool parse; /* true: the ioctl is not used */
	char buf[4096];
	size_t have, used;
};

/*
 * Query the mapping that contains @addr, or the next one. Return 0 or -errno.
 */
static int vma_query(struct walker *w, uint64_t addr, struct vma *v)
{
	struct map_query q = {
		.size = sizeof(q),
		.query_flags = QUERY_NEXT,
		.query_addr = addr,
		.name_size = sizeof(v->path),
		.name = (uintptr_t)v->path,
	};

	v->path[0] = 0;
	if (ioctl(w->maps.fd, MAP_QUERY, &q))
		return -errno;
	v->start = q.start;
	v->end = q.end;
	v->read = q.flags & FLAG_READ;
	v->write = q.flags & FLAG_WRITE;
	v->shared = q.flags & FLAG_SHARED;
	v->offset = q.offset;
	v->page_size = q.page_size;
	v->dev = makedev(q.dev_major, q.dev_minor);
	v->ino = q.ino;
	return 0;
}

/*
 * Return the next line of /proc/self/maps, terminated by NUL, or NULL at the
 * end.
 */
static char *walker_line(struct walker *w)
{
	char *nl;
	ssize_t n;

	for (;;) {
		nl = memchr(w->buf + w->used, '\n', w->have - w->used);
		if (nl) {
			char *line = w->buf + w->used;

			*nl = 0;
			w->used = nl + 1 - w->buf;
			return line;
		}
		memmove(w->buf, w->buf + w->used, w->have - w->used);
		w->have -= w->used;
		w->used = 0;
		if (w->have == sizeof(w->buf))
			w->have = 0; /* no mapped file has a line that long */
		n = read(w->maps.fd, w->buf + w->have,
			 sizeof(w->buf) - w->have);
		if (n <= 0)
			return NULL;
		w->have += n;
	}
}

/*
 * Return the page size of a mapping. /proc/self/maps does not contain it;
 * huge pages are recognized by their file.
 */
static uint64_t vma_page_size(const char *path)
{
	struct statfs fs;

	if (!strncmp(path, "/anon_hugepage", 14))
		return 2ull << 20;
	if (path[0] == '/' && !statfs(path, &fs) &&
	    fs.f_type == HUGETLBFS_MAGIC)
		return (uint64_t)fs.f_bsize;
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static int vma_parse(struct walker *w, uint64_t addr, struct vma *v)
{
	unsigned long long start, end, offset, ino;
	unsigned int major, minor;
	char perm[5], *line;
	int at;

	while ((line = walker_line(w))) {
		at = 0;
		if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start,
			   &end, perm, &offset, &major, &minor, &ino,
			   &at) < 7 ||
		    end <= addr)
			continue;
		v->start = start;
		v->end = end;
		v->read = perm[0] == 'r';
		v->write = perm[1] == 'w';
		v->shared = perm[3] == 's';
		v->offset = offset;
		v->dev = makedev(major, minor);
		v->ino = ino;
		snprintf(v->path, sizeof(v->path), "%s", at ? line + at : "");
		v->page_size = vma_page_size(v->path);
		return 0;
	}
	return -ENOENT;
}

/* Return false if /proc is not mounted. */
static bool walker_begin(struct walker *w)
{
	w->parse = false;
	w->have = w->used = 0;
	maps_open(&w->maps, false);
	if (w->maps.fd < 0)
		maps_close(&w->maps, false);
	return w->maps.fd >= 0;
}

static void walker_end(struct walker *w)
{
	maps_close(&w->maps, !w->parse);
}

/*
 * Fall back to parsing: the ioctl is unknown or forbidden, or a path is
 * longer than the buffer. Return false if /proc/self/maps cannot be opened.
 */
static bool walker_parses(struct walker *w)
{
	if (w->maps.lent) {
		maps_close(&w->maps, true);
		maps_open(&w->maps, true);
	}
	w->parse = true;
	return w->maps.fd >= 0;
}

static int vma_next(struct walker *w, uint64_t addr, struct vma *v)
{
	int ret;

	if (!w->parse) {
		ret = vma_query(w, addr, v);
		if (!ret || ret == -ENOENT)
			return ret;
		if (!walker_parses(w))
			return -EMFILE;
	}
	return vma_parse(w, addr, v);
}

static bool vma_continues(const struct vma *file, const struct vma *v)
{
	return v->shared && v->ino && v->ino == file->ino &&
	       v->dev == file->dev &&
	       v->offset == file->offset + (v->start - file->start);
}

/*
 * Return whether the mapping extends beyond the end of its file before @end.
 * The pages beyond come last, so the last page before @end is tested. Linux
 * 5.13 and earlier, and device mappings, fail with EINVAL and count as being
 * inside.
 */
static bool vma_behind_file(const struct vma *v, uint64_t end)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t last = (end < v->end ? end : v->end) - 1;
	int saved = errno;
	bool behind;

	if (!v->ino)
		return false;
	behind = madvise((void *)(uintptr_t)(last & ~(page - 1)), page,
			 MADV_POPULATE_READ) &&
		 errno == EFAULT;
	errno = saved;
	return behind;
}

static int vma_walk(uint64_t addr, uint64_t len, bool write, bool ends,
		    struct vma *file)
{
	uint64_t at = addr, end = addr + len;
	struct walker w;
	bool shared = false;
	struct vma v;
	int ret = 0;

	file->ino = 0;
	file->shared = true;
	if (!len)
		return 0;
	if (!walker_begin(&w))
		return 0; /* no /proc: an access will fault instead */
	while (at < end) {
		ret = vma_next(&w, at, &v);
		if (ret || v.start > at || !v.read || (write && !v.write) ||
		    (ends && vma_behind_file(&v, end))) {
			ret = -EFAULT;
			break;
		}
		shared |= v.shared;
		if (at == addr && v.shared && v.ino)
			*file = v;
		else if (file->ino && !vma_continues(file, &v))
			file->ino = 0;
		at = v.end;
	}
	walker_end(&w);
	file->shared = shared;
	if (ret || !file->ino)
		file->ino = 0;
	else
		file->offset += addr - file->start;
	return ret;
}

int vma_check(uint64_t addr, uint64_t len, bool write, struct vma *file)
{
	return vma_walk(addr, len, write, false, file);
}

int vma_check_ends(uint64_t addr, uint64_t len, bool write, struct vma *file)
{
	return vma_walk(addr, len, write, true, file);
}

bool vma_huge(uint64_t addr, uint64_t len)
{
	const uint64_t small = (uint64_t)sysconf(_SC_PAGESIZE);
	struct walker w;
	uint64_t at = addr;
	struct vma v;

	if (!walker_begin(&w))
		return true; /* trust the application */
	while (at < addr + len) {
		if (vma_next(&w, at, &v) || v.start > at ||
		    v.page_size <= small)
			break;
		at = v.end;
	}
	walker_end(&w);
	return at >= addr + len;
}
