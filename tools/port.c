// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe port down|up: set the state of the port of a device, as unplugging or
 * plugging its cable does.  urxe port set: change what the subnet manager has
 * assigned to an InfiniBand port.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"
#include "common/commands.h"

/* clang-format off */
static const struct command_option options[] = {
	{ 'f', "fabric", "NAME", "use this fabric", "$URXE_FABRIC or default" },
	OPTIONS_END,
};
/* clang-format on */

/* Report that the fabric is created, since its name may be misspelt. */
static void print_created(const char *dir)
{
	char text[FABRICS_TEXT];
	struct urxe_fabric *f;
	int ret = fabric_open(dir, false, &f);

	if (!ret)
		fabric_close(f);
	if (ret == -ENOENT)
		fail(0, "%s; creating fabric %s", no_fabric_text(dir, text),
		     strrchr(dir, '/') + 1);
}

/*
 * Return the number of the device with that name (NULL: the only one), or -1
 * after a message.
 */
static int choose_device(const struct urxe_fabric *f, const char *name)
{
	const int k = name ? hca_number(name) : 0;

	if (!name && f->hcas > 1)
		fail(0,
		     "the fabric has %u devices; name one of them, such as urxe1",
		     f->hcas);
	else if (k >= 0 && (uint32_t)k < f->hcas)
		return k;
	else if (f->hcas == 1)
		fail(0, "no device %s; the only device is urxe0", name);
	else
		fail(0, "no device %s; the devices are urxe0 to urxe%u", name,
		     f->hcas - 1);
	return -1;
}

/* Remove the number of the port, as in urxe1/1: a device has one port. */
static const char *name_of_device(char *word)
{
	char *slash = strchr(word, '/');

	if (slash && !strcmp(slash, "/1"))
		*slash = '\0';
	return word;
}

/* What urxe port set changes: a bit for each name, and the values. */
enum {
	SET_LID = 1,
	SET_LMC = 2,
	SET_SM_LID = 4,
	SET_SM_SL = 8,
	SET_PKEYS = 16
};
struct settings {
	unsigned int given;
	uint32_t lid, lmc, sm_lid, sm_sl, pkeys;
	uint16_t pkey[URXE_MAX_PKEY];
};

/* Parse a number that ends at *end.  False: none, or above @most. */
static bool parse_number(const char *text, uint32_t most, uint32_t *out,
			 char **end)
{
	unsigned long n;

	errno = 0;
	n = strtoul(text, end, 0);
	*out = (uint32_t)n;
	return isdigit((unsigned char)text[0]) && !errno && n <= most;
}

static bool parse_pkeys(const char *text, struct settings *s)
{
	uint32_t pkey;
	char *end;

	for (s->pkeys = 0; s->pkeys < URXE_MAX_PKEY; text = end + 1) {
		if (!parse_number(text, UINT16_MAX, &pkey, &end))
			return false;
		s->pkey[s->pkeys++] = (uint16_t)pkey;
		if (!*end)
			return true;
		if (*end != ',')
			return false;
	}
	return false;
}

/* Parse NAME=VALUE.  False: invalid. */
static bool parse_setting(const char *word, struct settings *s)
{
	const struct {
		const char *name;
		unsigned int bit;
		uint32_t most, *to;
	} numbers[] = {
		{ "lid=", SET_LID, LID_LAST, &s->lid },
		{ "lmc=", SET_LMC, LMC_MAX, &s->lmc },
		{ "sm_lid=", SET_SM_LID, LID_LAST, &s->sm_lid },
		{ "sm_sl=", SET_SM_SL, 15, &s->sm_sl },
	};
	unsigned int i;
	char *end;

	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		const size_t n = strlen(numbers[i].name);

		if (strncmp(word, numbers[i].name, n))
			continue;
		s->given |= numbers[i].bit;
		return parse_number(word + n, numbers[i].most, numbers[i].to,
				    &end) &&
		       !*end;
	}
	if (strncmp(word, "pkeys=", 6))
		return false;
	s->given |= SET_PKEYS;
	return parse_pkeys(word + 6, s);
}

/* Change the port of device k: 0, or -errno with fabric_why(). */
static int port_set(struct urxe_fabric *f, uint32_t k, const struct settings *s)
{
	const struct urxe_subnet *now = &f->dev->hca[k].subnet;
	int ret = 0;

	if (s->given & (SET_LID | SET_LMC))
		ret = subnet_set_lids(
			f, (int)k, s->given & SET_LID ? s->lid : port_lid(now),
			s->given & SET_LMC ? s->lmc : port_lmc(now));
	if (!ret && s->given & SET_PKEYS)
		ret = subnet_set_pkeys(f, k, s->pkey, s->pkeys);
	if (!ret && s->given & (SET_SM_LID | SET_SM_SL))
		ret = subnet_set_sm(
			f, (int)k,
			(uint16_t)(s->given & SET_SM_LID ? s->sm_lid :
							   port_sm_lid(now)),
			(uint8_t)(s->given & SET_SM_SL ? s->sm_sl :
							 port_sm_sl(now)));
	return ret;
}

/* Open the fabric, which is created so that later programs find the change. */
static int port_open(const char *name, struct urxe_fabric **f)
{
	char dir[256];
	int ret = choose_fabric(name, dir);

	if (!ret && name)
		print_created(dir);
	return ret ? ret : use_fabric(dir, true, f);
}

static int port_state(const char *name, const char *word, const char *device)
{
	struct urxe_fabric *f;
	int k, ret;

	ret = port_open(name, &f);
	if (ret)
		return ret;
	k = choose_device(f, device);
	if (k >= 0 && fabric_set_port(f, (uint32_t)k, !strcmp(word, "up")))
		printf("the port of " URXE_DEVICE_NAME "%d is already %s\n", k,
		       word);
	fabric_close(f);
	return k < 0;
}

static int port_subnet(const char *name, const char *device, char **words)
{
	struct settings s = { 0 };
	struct urxe_fabric *f;
	int k, ret;

	for (; *words; words++)
		if (!parse_setting(*words, &s))
			return fail(
				1,
				"%s is not one of lid=N, lmc=N, pkeys=N,N..., sm_lid=N and sm_sl=N",
				*words);
	if (!s.given)
		return usage();
	ret = port_open(name, &f);
	if (ret)
		return ret;
	k = choose_device(f, device);
	ret = k < 0;
	if (!ret && port_set(f, (uint32_t)k, &s))
		ret = fail(1, "%s", fabric_why());
	fabric_close(f);
	return ret;
}

static int cmd_port(int argc, char **argv)
{
	static const char *const words[] = { "down", "up", "set", NULL };
	const char *name = NULL, *word, *device;
	bool set;
	int c;

	while ((c = option_next(argc, argv, options, 0)) >= 0) {
		if (c != 'f')
			return usage();
		name = optarg;
	}
	if (optind == argc)
		return usage();
	word = argv[optind++];
	set = !strcmp(word, "set");
	if (!set && strcmp(word, "up") && strcmp(word, "down"))
		return fail_word("urxe port", word, words);
	/* the device may be omitted: settings have a = */
	device = optind < argc && !strchr(argv[optind], '=') ?
			 name_of_device(argv[optind++]) :
			 NULL;
	if (!set && optind < argc)
		return usage();
	/* without a fabric, since it would be created */
	if (device && hca_number(device) < 0)
		return fail(
			1, "no device %s; devices are called urxe0, urxe1, ...",
			device);
	return set ? port_subnet(name, device, argv + optind) :
		     port_state(name, word, device);
}

/* clang-format off */
const struct command command_port = {
	.name = "port",
	.run = cmd_port,
	.operands = "down|up|set [DEVICE[/1]] [NAME=VALUE...]",
	.what = "Set the port of a device down or up, as unplugging or plugging its cable would, or set what the subnet manager of InfiniBand assigns to it.",
	.options = options,
	.examples = "  urxe port down --fabric test\n"
		    "  urxe port up urxe1\n"
		    "  urxe port set urxe1 lid=12 lmc=2\n"
		    "  urxe port set urxe0 pkeys=0xffff,0x8001\n",
};
/* clang-format on */
