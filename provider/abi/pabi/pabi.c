// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Which libibverbs is this, and where does it want things? */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pabi.h"

struct pabi pabi;

enum family { V36, V59, V62, V64 };

static const int8_t slots[PABI_OP_COUNT][4] = {
#define SLOT(name, v36, v59, v62, v64) [PABI_##name] = { v36, v59, v62, v64 },
#include "slots.h"
#undef SLOT
};

/*
 * Size of the table and of what verbs_context has in front of and around the
 * embedded ibv_context: that part is the same on all 64-bit machines.
 */
static const struct {
	unsigned int count, head;
} layout[] = {
	[V36] = { 76, 320 },
	[V59] = { 79, 344 },
	[V62] = { 81, 352 },
	[V64] = { 83, 368 },
};

static enum family family;

/*
 * ibv_qp_ex grew in 44 and in 45.  From 49 on a symbol tells; before, only
 * the number in the library's file name does.
 */
static size_t find_qp_tail(void *lib)
{
	const size_t v45 = 360, v44 = 352, v36 = 344;
	unsigned int major, minor, release = 0;
	char real[4096];
	const char *p;
	struct link_map *map;

	if (dlsym(lib, "ibv_wr_opcode_str") ||
	    dlsym(lib, "ibv_cmd_create_cq_ex2"))
		return v45;
	if (dlinfo(lib, RTLD_DI_LINKMAP, &map) || !realpath(map->l_name, real))
		return 0;
	p = strrchr(real, '/');
	p = p ? strstr(p, "libibverbs.so.") : NULL;
	if (!p ||
	    sscanf(p, "libibverbs.so.%u.%u.%u", &major, &minor, &release) != 3)
		return 0;
	return release >= 45 ? v45 : release == 44 ? v44 : v36;
}

static bool find_version(void *lib)
{
	static const unsigned int version[] = { 64, 59, 57, 34 };
	char name[40];
	void *fn;
	size_t i;

	for (i = 0; i < sizeof(version) / sizeof(*version); i++) {
		snprintf(name, sizeof(name), "verbs_register_driver_%u",
			 version[i]);
		fn = dlsym(lib, name);
		if (!fn)
			continue;
		*(void **)&pabi.register_driver = fn;
		pabi.version = version[i];
		break;
	}
	switch (pabi.version) {
	case 64:
		family = V64;
		pabi.release = 64;
		return true;
	case 59:
		family = dlsym(lib, "ibv_dm_export_dmabuf_fd") ? V62 : V59;
		pabi.release = family == V62 ? 62 : 59;
		return true;
	case 57:
		family = V36;
		pabi.release = 57;
		return true;
	case 34:
		/* releases 34 and 35 have other tables under this number */
		family = V36;
		pabi.release = 36;
		return dlsym(lib, "ibv_query_qp_data_in_order");
	}
	return false;
}

int pabi_probe(void)
{
	void *lib;

	/* This reference is kept: the driver is in that library's list. */
	lib = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (!lib)
		return -ENOENT;
	if (!find_version(lib))
		goto err_close;
	*(void **)&pabi.init_and_alloc_context =
		dlsym(lib, "_verbs_init_and_alloc_context");
	*(void **)&pabi.set_ops = dlsym(lib, "verbs_set_ops");
	*(void **)&pabi.uninit_context = dlsym(lib, "verbs_uninit_context");
	pabi.qp_tail = find_qp_tail(lib);
#if defined(__aarch64__)
	/* the mutex is 8 bytes longer, ibv_qp_ex rounds up to 8 either way */
	pabi.qp_tail += pabi.qp_tail ? 8 : 0;
#endif
	pabi.context_size = layout[family].head + sizeof(struct ibv_context);
	if (!pabi.init_and_alloc_context || !pabi.set_ops ||
	    !pabi.uninit_context || !pabi.qp_tail)
		goto err_close;
	return 0;

err_close:
	dlclose(lib);
	return -EPROTO;
}

/* Where each operation is given, and which one it is. */
static const struct {
	size_t offset;
	enum pabi_op op;
} given[] = {
#define OP(result, name, arguments) \
	{ offsetof(struct pabi_ops, name), PABI_##name },
#include "ops.h"
#undef OP
};

void pabi_set_ops(void *vctx, const struct pabi_ops *ops)
{
	void (*table[PABI_OP_COUNT])(void);
	size_t i;
	int slot;

	memset(table, 0, sizeof(table));
	for (i = 0; i < sizeof(given) / sizeof(*given); i++) {
		slot = slots[given[i].op][family];
		if (slot >= 0 && (unsigned int)slot < layout[family].count)
			memcpy(&table[slot], (const char *)ops + given[i].offset,
			       sizeof(table[slot]));
	}
	pabi.set_ops(vctx, table);
}

bool pabi_context_ok(void *vctx, const struct ibv_device *device)
{
	struct ibv_context *ctx = pabi_to_ibv(vctx);

	return *(size_t *)((char *)ctx - sizeof(size_t)) == pabi.context_size &&
	       ctx->abi_compat == (void *)UINTPTR_MAX && ctx->device == device;
}
