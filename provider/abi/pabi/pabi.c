// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Detection of the libibverbs of this process, and conversion of struct
 * pabi_ops to its operation table; pabi.h.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"
#include "pabi.h"

struct pabi pabi;

static const struct pabi_family *family;

static const int8_t slots[PABI_OP_COUNT][PABI_COLUMNS] = {
#define SLOT(name, ...) [PABI_##name] = { __VA_ARGS__ },
#include "slots.h"
};

/*
 * Return the offset of comp_mask in libibverbs' verbs_qp, or 0 if it is
 * unknown.  It changed in releases 44 and 45.  A symbol identifies releases
 * from 49 on, the number in the library's file name earlier ones.
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

int pabi_probe(void)
{
	void *lib;

	/* not closed on success: the driver is registered in this library */
	lib = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (!lib)
		return -ENOENT;
	pabi.number = family_number(lib);
	family = family_find(lib);
	if (!family)
		goto err_close;
	*(void **)&pabi.register_driver =
		family_register_driver(lib, family->number);
	*(void **)&pabi.init_and_alloc_context =
		dlsym(lib, "_verbs_init_and_alloc_context");
	*(void **)&pabi.set_ops = dlsym(lib, "verbs_set_ops");
	*(void **)&pabi.uninit_context = dlsym(lib, "verbs_uninit_context");
	pabi.qp_tail = find_qp_tail(lib);
	if (pabi.qp_tail)
		pabi.qp_tail += PABI_MUTEX_MORE;
	pabi.context_size = family->head + sizeof(struct ibv_context);
	if (!pabi.init_and_alloc_context || !pabi.set_ops ||
	    !pabi.uninit_context || !pabi.qp_tail)
		goto err_close;
	return 0;

err_close:
	dlclose(lib);
	return -EPROTO;
}

/* Each operation that urxe has: its offset in struct pabi_ops, and number. */
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
		slot = slots[given[i].op][family->column];
		if (slot >= 0 && (unsigned int)slot < family->count)
			memcpy(&table[slot],
			       (const char *)ops + given[i].offset,
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
