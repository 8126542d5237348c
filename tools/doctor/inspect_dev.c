// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Consistency checks of the device segment, of the device memory heap, and of
 * the files in the fabric's directories.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/plural.h"
#include "inspect.h"
#include "shared/bitmap.h"

static void inspect_counts(struct inspection *l)
{
	const struct urxe_ctx_slot *c;
	uint64_t sum, n;
	uint32_t i;
	int o;

	for (o = 0; o < URXE_OBJ_COUNT; o++) {
		for (i = sum = 0; i < URXE_MAX_CTX; i++) {
			c = &l->dev->ctx[i];
			n = load_relaxed(&c->used[o]);
			sum += n;
			if (n && load_relaxed(&c->state) == URXE_CTX_FREE)
				found(l->out,
				      "context %u is free, but %u %s%s counted",
				      i, (uint32_t)n, fabric_obj_name(o),
				      plural_is(n));
		}
		n = load_relaxed(&l->dev->used[o]);
		if (n != sum)
			found(l->out,
			      "device: %u %s%s counted, contexts have %llu",
			      (uint32_t)n, fabric_obj_name(o), plural(n),
			      (unsigned long long)sum);
	}
}

static void inspect_contexts(struct inspection *l)
{
	uint32_t i, state, gen;

	for (i = 0; i < URXE_MAX_CTX; i++) {
		state = load_relaxed(&l->dev->ctx[i].state);
		gen = load_relaxed(&l->dev->ctx[i].gen);
		if (state == URXE_CTX_FREE)
			continue;
		if (state != URXE_CTX_LIVE)
			found(l->out, "context %u.%u: invalid state %u", i, gen,
			      state);
		else if (!fabric_context_alive(l->f, i, gen))
			found(l->out,
			      "context %u.%u: dead, but its resources were not freed",
			      i, gen);
		else if (load_relaxed(&l->dev->ctx[i].hca) >= dev_hcas(l->dev))
			found(l->out, "context %u.%u: invalid device %u", i,
			      gen, load_relaxed(&l->dev->ctx[i].hca));
	}
}

static void inspect_directory(struct inspection *l)
{
	uint32_t i, used, n[URXE_MAX_CTX] = { 0 };
	uint64_t e;

	for (i = 0; i < URXE_MAX_QP; i++) {
		e = load_relaxed(&l->dev->qp[i]);
		if (!e)
			continue;
		if (i < 2 || qpn_index(URXE_DIR_QPN(e)) != i ||
		    URXE_DIR_QPN(e) != URXE_QPN(i, l->dev->qp_gen[i]))
			found(l->out,
			      "QP directory: entry %u: invalid QPN 0x%x", i,
			      URXE_DIR_QPN(e));
		if (i >= load_relaxed(&l->dev->qp_high))
			found(l->out,
			      "QP directory: entry %u is above the high-water mark",
			      i);
		if (inspection_has_context(l, URXE_DIR_CTX(e), URXE_DIR_GEN(e)))
			n[URXE_DIR_CTX(e)]++;
		else
			found(l->out,
			      "QP directory: QP 0x%x: context %u.%u does not exist",
			      URXE_DIR_QPN(e), URXE_DIR_CTX(e),
			      URXE_DIR_GEN(e));
	}
	for (i = 0; i < URXE_MAX_CTX; i++) {
		used = load_relaxed(&l->dev->ctx[i].used[URXE_OBJ_QP]);
		if (n[i] != used)
			found(l->out, "context %u: %u QP%s counted, %u found",
			      i, used, plural(used), n[i]);
	}
}

static void inspect_groups(struct inspection *l)
{
	uint32_t g, i, qpn, n, count, slot, gen;

	for (g = 0; g < URXE_MAX_MCAST_GRP; g++) {
		const struct urxe_mcast_grp *grp = &l->dev->mcast[g];

		for (i = n = 0; i < URXE_MAX_MCAST_ATTACH; i++) {
			qpn = load_relaxed(&grp->qpn[i]);
			n += qpn != 0;
			if (qpn && !qpn_lookup(l->dev, qpn, &slot, &gen))
				found(l->out,
				      "multicast group %u: QP 0x%x does not exist",
				      g, qpn);
		}
		count = load_relaxed(&grp->count);
		if (n != count)
			found(l->out,
			      "multicast group %u: %u QP%s counted, %u found",
			      g, count, plural(count), n);
	}
}

static void inspect_domains(struct inspection *l)
{
	uint32_t i, c, n;

	for (i = 0; i < URXE_MAX_XRCD; i++) {
		const struct urxe_xrcd_slot *x = &l->dev->xrcd[i];

		if (!load_relaxed(&x->used))
			continue;
		for (c = n = 0; c < URXE_MAX_CTX; c++) {
			if (!bitmap_test(x->ctx, c))
				continue;
			n++;
			if (load_relaxed(&l->dev->ctx[c].state) ==
			    URXE_CTX_FREE)
				found(l->out,
				      "XRC domain %u: context %u does not exist",
				      i, c);
		}
		if (!n)
			found(l->out, "XRC domain %u: not open in any context",
			      i);
	}
}

void inspect_device(struct inspection *l)
{
	inspect_counts(l);
	inspect_contexts(l);
	inspect_directory(l);
	inspect_groups(l);
	inspect_domains(l);
}

/* ------------------------------------------------------- device memory */

/*
 * Mark the pages of device memory slot i in map.  If the slot does not share
 * its pages, none may be marked already.
 */
static void dm_add(struct inspection *l, uint32_t i, uint64_t *map)
{
	const struct urxe_dm_slot *d = &l->dev->dm[i];
	const uint64_t pages = l->dev->dm_bytes / URXE_PAGE;
	uint64_t p, first = d->offset / URXE_PAGE;
	bool twice = false, lost = false;

	if (d->offset % URXE_PAGE || !d->pages || first >= pages ||
	    d->pages > pages - first ||
	    d->length > (uint64_t)d->pages * URXE_PAGE) {
		found(l->out, "device memory %u: invalid position in the heap",
		      i);
		return;
	}
	for (p = first; p < first + d->pages; p++) {
		twice |= d->share == URXE_DM_ALONE && bitmap_test(map, p);
		lost |= !bitmap_test(l->dev->dm_map, p);
		bitmap_set(map, p, 1);
	}
	if (twice)
		found(l->out, "device memory %u overlaps another allocation",
		      i);
	if (lost)
		found(l->out, "device memory %u is marked free in the heap", i);
}

void inspect_device_memory(struct inspection *l)
{
	static uint64_t map[URXE_DM_MAX_BYTES / URXE_PAGE / 64];
	uint32_t i, used, mrs, n[URXE_MAX_CTX] = { 0 };

	memset(map, 0, sizeof(map));
	for (i = 0; i < URXE_MAX_DM; i++) {
		used = load_relaxed(&l->dev->dm[i].used);
		if (!used)
			continue;
		dm_add(l, i, map);
		if (inspection_has_context(l, used - 1, l->dev->dm[i].ctx_gen))
			n[used - 1]++;
		else
			found(l->out,
			      "device memory %u: context %u.%u does not exist",
			      i, used - 1, l->dev->dm[i].ctx_gen);
		mrs = URXE_DM_COUNT(load_relaxed(&l->dev->dm[i].refs)) - 1;
		if (mrs != l->dm_mrs[i])
			found(l->out,
			      "device memory %u: %u MR%s counted, %u found", i,
			      mrs, plural(mrs), l->dm_mrs[i]);
	}
	used = bits_count(l->dev->dm_map, sizeof(map) * 8);
	if (memcmp(map, l->dev->dm_map, sizeof(map)))
		found(l->out, "device memory: %u page%s marked used, %u in use",
		      used, plural(used), bits_count(map, sizeof(map) * 8));
	for (i = 0; i < URXE_MAX_CTX; i++) {
		used = load_relaxed(&l->dev->ctx[i].used[URXE_OBJ_DM]);
		if (n[i] != used)
			found(l->out, "context %u: %u DM%s counted, %u found",
			      i, used, plural(used), n[i]);
	}
}

/* --------------------------------------------------------- directories */

/*
 * Check that each file in directory `name` belongs to a context in use.  File
 * names have that many numbers: slot, generation, and for FIFOs a number.
 */
static void inspect_dir(struct inspection *l, const char *name, int numbers)
{
	DIR *dir = dir_open(l->f->dirfd, name);
	unsigned int slot, gen, fifo;
	struct dirent *e;
	char rest;
	int n;

	if (!dir) {
		found(l->out, "the directory \"%s\" is missing", name);
		return;
	}
	while ((e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		n = sscanf(e->d_name, "%u.%u.%u%c", &slot, &gen, &fifo, &rest);
		/*
		 * A FIFO that no reader has opened.  It stays if its creator
		 * died and other processes use the context.
		 */
		if (n == 4 && rest == URXE_FIFO_NASCENT)
			n = 3;
		if (n != numbers || !inspection_has_context(l, slot, gen))
			found(l->out, "the file %s/%s belongs to no context",
			      name, e->d_name);
	}
	closedir(dir);
}

/* Find temporary files of processes that died while they created a file. */
static void inspect_top(struct inspection *l)
{
	static const char *const made[] = { "device.", "cm.", "tree." };
	DIR *dir = dir_open(l->f->dirfd, ".");
	struct dirent *e;
	unsigned int i;

	while (dir && (e = readdir(dir)))
		for (i = 0; i < sizeof(made) / sizeof(*made); i++)
			if (!strncmp(e->d_name, made[i], strlen(made[i])) &&
			    strcmp(e->d_name, "cm.d"))
				found(l->out,
				      "the file %s is incomplete: its creator died",
				      e->d_name);
	if (dir)
		closedir(dir);
}

void inspect_files(struct inspection *l)
{
	inspect_dir(l, "ctx", 2);
	inspect_dir(l, "ev", 3);
	inspect_top(l);
}
