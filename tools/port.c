// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe port down|up: set the state of the port of a device, as unplugging or
 * plugging its cable does.  urxe port set: change the rate of its link, and
 * what the subnet manager has assigned to an InfiniBand port.
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
 * The end of a link with that name; NULL: the port of the only device.  False
 * after a message.
 */
/*
 * Does a device of another host have the name, which does not name a host?
 * With URXE_HOST it is that of this host.
 */
static bool is_ambiguous(const struct urxe_dev *dev, const char *name,
			 uint32_t k, char other[64])
{
	const char *host = getenv("URXE_HOST");
	uint32_t i;

	node_name(dev, k, other);
	if ((host && *host) || !strncmp(name, other, strlen(other)))
		return false;
	for (i = dev_hcas(dev); i-- > 0;)
		if (i != k && !strncmp(dev->hca[i].name, dev->hca[k].name,
				       sizeof(dev->hca[k].name))) {
			node_name(dev, i, other);
			return true;
		}
	return false;
}

static bool choose_end(const struct urxe_fabric *f, const char *name,
		       struct urxe_link_end *end)
{
	const uint32_t n = dev_hcas(f->dev);
	char first[64], last[64];

	*end = (struct urxe_link_end){ .node = 0, .port = 1 };
	if (name ? link_end_find(f, name, end) : n == 1) {
		if (!name || end->node >= n ||
		    !is_ambiguous(f->dev, name, end->node, last))
			return true;
		node_name(f->dev, end->node, first);
		fail(0,
		     "%s is a device of several hosts; name one of them, such as %s or %s",
		     name, first, last);
		return false;
	}
	node_name(f->dev, 0, first);
	node_name(f->dev, n - 1, last);
	if (!name)
		fail(0,
		     "the fabric has %u devices; name one of them, such as %s",
		     n, last);
	else if (n == 1)
		fail(0, "no device %s; the only device is %s", name, first);
	else
		fail(0, "no device %s; the devices are %s to %s", name, first,
		     last);
	return false;
}

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

/* What urxe port set changes: a bit for each name, and the values. */
enum {
	SET_LID = 1,
	SET_LMC = 2,
	SET_SM_LID = 4,
	SET_SM_SL = 8,
	SET_PKEYS = 16,
	SET_RATE = 32
};
struct settings {
	unsigned int given;
	uint32_t lid, lmc, sm_lid, sm_sl, rate, pkeys;
	uint16_t pkey[URXE_MAX_PKEY];
};

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
		{ "rate=", SET_RATE, 1200, &s->rate },
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
			f, k, s->given & SET_LID ? s->lid : port_lid(now),
			s->given & SET_LMC ? s->lmc : port_lmc(now));
	if (!ret && s->given & SET_PKEYS)
		ret = subnet_set_pkeys(f, k, s->pkey, s->pkeys);
	if (!ret && s->given & (SET_SM_LID | SET_SM_SL))
		ret = subnet_set_sm(
			f, k,
			(uint16_t)(s->given & SET_SM_LID ? s->sm_lid :
							   port_sm_lid(now)),
			(uint8_t)(s->given & SET_SM_SL ? s->sm_sl :
							 port_sm_sl(now)));
	return ret;
}

/* Is that urxe0, or such a name? */
static bool is_default_name(const char *name)
{
	const char *end = name + strlen(URXE_DEVICE_NAME) + 1;

	return !strncmp(name, URXE_DEVICE_NAME, strlen(URXE_DEVICE_NAME)) &&
	       isdigit((unsigned char)end[-1]) && (!*end || !strcmp(end, "/1"));
}

/* Does the fabric exist, or will a cluster file define its devices? */
static bool fabric_exists(const char *name)
{
	const char *cluster = getenv("URXE_CLUSTER");
	struct urxe_fabric *f;
	char dir[256];

	if (cluster && *cluster)
		return true;
	if (choose_fabric(name, dir) || fabric_open(dir, false, &f))
		return false;
	fabric_close(f);
	return true;
}

/* Open the fabric, which is created so that later programs find the change. */
static int port_open(const char *name, struct urxe_fabric **f)
{
	char dir[256];
	int ret = choose_fabric(name, dir);

	if (ret)
		return ret;
	/* creation would replace an unused fabric that has other devices */
	if (!fabric_open(dir, false, f))
		return 0;
	if (name)
		print_created(dir);
	return use_fabric(dir, true, f);
}

/* What is set, in messages: "the port of urxe0", "the link of leaf0/3" */
static void print_end(const struct urxe_fabric *f,
		      const struct urxe_link_end *end, char text[96])
{
	const bool is_hca = end->node < URXE_MAX_HCA;
	char own[64];

	node_name(f->dev, end->node, own);
	if (end->port && !is_hca)
		snprintf(text, 96, "the link of %s/%u", own, end->port);
	else
		snprintf(text, 96, "the %s of %s", is_hca ? "port" : "links",
			 own);
}

/* Take a link down or up: 1 after a message. */
static int set_link(struct urxe_fabric *f, const struct urxe_link_end *end,
		    bool up)
{
	const bool is_hca = end->node < URXE_MAX_HCA;
	char text[96];
	int ret = fabric_set_link(f, *end,
				  up ? FABRIC_LINK_UP : FABRIC_LINK_DOWN);

	print_end(f, end, text);
	if (ret < 0)
		return fail(1, "%s: nothing is connected", text);
	if (ret)
		printf("%s %s already %s\n", text,
		       is_hca || end->port ? "is" : "are", up ? "up" : "down");
	if (is_hca && up &&
	    load_acquire(&f->dev->hca[end->node].down) & PORT_NO_LINK)
		return fail(1, "%s is down: nothing is connected", text);
	return 0;
}

static int port_state(const char *name, const char *word, const char *device)
{
	struct urxe_link_end end;
	struct urxe_fabric *f;
	int ret = port_open(name, &f);

	if (ret)
		return ret;
	ret = choose_end(f, device, &end) ?
		      set_link(f, &end, !strcmp(word, "up")) :
		      1;
	fabric_close(f);
	return ret;
}

static int port_subnet(const char *name, const char *device, char **words)
{
	struct settings s = { 0 };
	struct urxe_link_end end;
	struct urxe_fabric *f;
	char own[64];
	int ret;

	for (; *words; words++)
		if (!parse_setting(*words, &s))
			return fail(
				1,
				"%s is not one of rate=N, lid=N, lmc=N, pkeys=N,N..., sm_lid=N and sm_sl=N",
				*words);
	if (!s.given)
		return usage();
	ret = port_open(name, &f);
	if (ret)
		return ret;
	ret = !choose_end(f, device, &end);
	if (!ret && s.given & SET_RATE && fabric_set_rate(f, end, s.rate)) {
		node_name(f->dev, end.node, own);
		ret = fail(1, "no link of %s has a rate of %u Gb/s", own,
			   s.rate);
	}
	s.given &= ~(unsigned int)SET_RATE;
	if (!ret && s.given && end.node >= URXE_MAX_HCA)
		ret = fail(1, "%s is a switch", device);
	if (!ret && s.given && port_set(f, end.node, &s))
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
	device = optind < argc && !strchr(argv[optind], '=') ? argv[optind++] :
							       NULL;
	if (!set && optind < argc)
		return usage();
	/* a fabric without devices of that name would be created */
	if (device && !is_default_name(device) && !fabric_exists(name))
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
	.operands = "down|up|set [DEVICE|SWITCH[/PORT]] [NAME=VALUE...]",
	.what = "Set the port of a device, or the links of a switch of a cluster file, down or up, as unplugging or plugging the cable would, set the rate of its link in Gb/s, or what the subnet manager of InfiniBand assigns to a port.",
	.options = options,
	.examples = "  urxe port down --fabric test\n"
		    "  urxe port up urxe1\n"
		    "  urxe port set urxe1 rate=10\n"
		    "  urxe port set urxe1 lid=12 lmc=2\n"
		    "  urxe port set urxe0 pkeys=0xffff,0x8001\n",
};
/* clang-format on */
