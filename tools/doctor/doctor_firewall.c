// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Check whether a firewall of this host drops packets to the RoCE v2 UDP
 * port, WIRE_PORT.  check_wire() calls check_firewall().
 *
 * nf_tables, which also holds the rules of iptables-nft, is queried over
 * netlink (NETLINK_NETFILTER); only root may do that.  ufw and firewalld are
 * detected by their files.
 *
 * The rules are not evaluated for a packet.  This is a heuristic: it finds
 * input chains that drop by policy or by an unconditional rule, and rules
 * that name the port.  Members of sets and jumps between chains are not
 * followed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "doctor.h"
#include "wire/network.h"

#define LIKE_UFW "ufw allow 4791/udp"
#define LIKE_FIREWALLD "firewall-cmd --add-port=4791/udp"
#define LIKE_NFT "nft insert rule FAMILY TABLE CHAIN udp dport 4791 accept"

static const char cost[] =
	"urxe run --wire: packets of other hosts are dropped";

/* ------------------------------------------------------- attributes */

/* A sequence of netlink attributes; `left` bytes follow `at`. */

struct attributes {
	const struct nlattr *at;
	size_t left;
};

/* Return the payload of a, and its length in *n. */
static const void *attr_data(const struct nlattr *a, size_t *n)
{
	*n = a->nla_len - NLA_HDRLEN;
	return (const char *)a + NLA_HDRLEN;
}

/* Return the next attribute and advance; NULL at the end or if malformed. */
static const struct nlattr *attr_next(struct attributes *in)
{
	const struct nlattr *a = in->at;
	size_t n;

	if (in->left < NLA_HDRLEN || a->nla_len < NLA_HDRLEN ||
	    a->nla_len > in->left)
		return NULL;
	n = NLA_ALIGN(a->nla_len);
	in->left -= n < in->left ? n : in->left;
	in->at = (const void *)((const char *)a + n);
	return a;
}

static const struct nlattr *attr_find(struct attributes in, int type)
{
	const struct nlattr *a;

	while ((a = attr_next(&in)))
		if ((a->nla_type & NLA_TYPE_MASK) == type)
			return a;
	return NULL;
}

/* Return the attributes nested in a, none if a is NULL. */
static struct attributes attr_inside(const struct nlattr *a)
{
	struct attributes in = { NULL, 0 };

	if (a)
		in.at = attr_data(a, &in.left);
	return in;
}

static struct attributes attr_find_inside(struct attributes in, int type)
{
	return attr_inside(attr_find(in, type));
}

/*
 * Return the string of the attribute, or "" if it is missing or
 * unterminated.
 */
static const char *attr_text(struct attributes in, int type)
{
	const struct nlattr *a = attr_find(in, type);
	const char *text;
	size_t n;

	if (!a)
		return "";
	text = attr_data(a, &n);
	return n && !text[n - 1] ? text : "";
}

/* Read a number, which is in network byte order, to *out in host order. */
static bool attr_u32(struct attributes in, int type, uint32_t *out)
{
	const struct nlattr *a = attr_find(in, type);
	const void *data;
	size_t n;

	if (!a)
		return false;
	data = attr_data(a, &n);
	if (n < sizeof(*out))
		return false;
	memcpy(out, data, sizeof(*out));
	*out = ntohl(*out);
	return true;
}

/* ------------------------------------------------------- nf_tables */

struct chain {
	uint8_t family;
	char table[64], name[64];
	bool drops; /* packets that no rule accepts */
};

struct firewall {
	struct chain chain[64]; /* base chains at hook input or prerouting */
	unsigned int chains;
	bool ipv6; /* check for IPv6 packets, else IPv4 */
	bool sets; /* a rule with a set accepts; its members are unknown */
	bool accepts, drops; /* a rule that names the port does so */
	int err; /* of the netlink requests: 0 or -errno */
};

/* Process one chain or rule of a dump. */
typedef void take_fn(struct firewall *f, uint8_t family, struct attributes in);

static const char *family_name(uint8_t family)
{
	return family == NFPROTO_INET ? "inet" :
	       family == NFPROTO_IPV4 ? "ip" :
	       family == NFPROTO_IPV6 ? "ip6" :
					"?";
}

static void take_chain(struct firewall *f, uint8_t family, struct attributes in)
{
	struct attributes hook = attr_find_inside(in, NFTA_CHAIN_HOOK);
	struct chain *c = &f->chain[f->chains];
	uint32_t number, policy = NF_ACCEPT;

	if (family != NFPROTO_INET &&
	    family != (f->ipv6 ? NFPROTO_IPV6 : NFPROTO_IPV4))
		return;
	if (f->chains == sizeof(f->chain) / sizeof(*f->chain) ||
	    !attr_u32(hook, NFTA_HOOK_HOOKNUM, &number) ||
	    (number != NF_INET_LOCAL_IN && number != NF_INET_PRE_ROUTING))
		return;
	attr_u32(in, NFTA_CHAIN_POLICY, &policy);
	c->family = family;
	c->drops = policy == NF_DROP;
	snprintf(c->table, sizeof(c->table), "%s",
		 attr_text(in, NFTA_CHAIN_TABLE));
	snprintf(c->name, sizeof(c->name), "%s",
		 attr_text(in, NFTA_CHAIN_NAME));
	f->chains++;
}

/* Summary of a rule. */
struct rule {
	bool names_port;
	bool has_conditions, has_sets;
	bool accepts, drops;
	int from; /* lower bound of a port range, or -1 */
};

/*
 * Return the value of attribute `type` if it has 2 bytes, as a port, else
 * -1.
 */
static int port_of(struct attributes in, int type)
{
	const struct nlattr *a =
		attr_find(attr_find_inside(in, type), NFTA_DATA_VALUE);
	const uint8_t *data;
	size_t n;

	if (!a)
		return -1;
	data = attr_data(a, &n);
	return n == 2 ? data[0] << 8 | data[1] : -1;
}

/*
 * Return whether iptables' "udp" match is for a destination port range that
 * contains the port and is not all ports.  The info is a struct xt_udp:
 * source from and to, destination from and to.
 */
static bool is_udp_of_port(const void *info, size_t n)
{
	uint16_t ports[4];

	if (n < sizeof(ports))
		return false;
	memcpy(ports, info, sizeof(ports));
	return ports[2] <= WIRE_PORT && ports[3] >= WIRE_PORT &&
	       !(ports[2] == 0 && ports[3] == UINT16_MAX);
}

/*
 * Return whether iptables' "multiport" match names the port.  The info is a
 * struct xt_multiport: flags (0: source), count, ports.
 */
static bool is_multiport_of_port(const void *info, size_t n)
{
	const uint8_t *head = info;
	uint16_t port;
	size_t i;

	if (n < 2 || !head[0])
		return false;
	for (i = 0; i < head[1] && 4 + 2 * i <= n; i++) {
		memcpy(&port, head + 2 + 2 * i, sizeof(port));
		if (port == WIRE_PORT)
			return true;
	}
	return false;
}

/* Return whether an iptables match in nf_tables names the port. */
static bool is_match_of_port(struct attributes in)
{
	const struct nlattr *a = attr_find(in, NFTA_MATCH_INFO);
	const char *name = attr_text(in, NFTA_MATCH_NAME);
	const void *info;
	size_t n;

	if (!a)
		return false;
	info = attr_data(a, &n);
	if (!strcmp(name, "udp"))
		return is_udp_of_port(info, n);
	return !strcmp(name, "multiport") && is_multiport_of_port(info, n);
}

/*
 * Return whether a comparison names the port.  A range may be two
 * comparisons, first that with its lower bound, which is kept in r->from.
 */
static bool cmp_names_port(struct rule *r, struct attributes in)
{
	const int port = port_of(in, NFTA_CMP_DATA);
	uint32_t op = NFT_CMP_EQ;

	attr_u32(in, NFTA_CMP_OP, &op);
	if (op == NFT_CMP_GTE)
		r->from = port;
	if (op == NFT_CMP_LTE)
		return r->from >= 0 && r->from <= WIRE_PORT &&
		       port >= WIRE_PORT;
	return op == NFT_CMP_EQ && port == WIRE_PORT;
}

/* Return whether the expression `name` is a condition that names the port. */
static bool names_port(struct rule *r, const char *name, struct attributes in)
{
	if (!strcmp(name, "cmp"))
		return cmp_names_port(r, in);
	if (!strcmp(name, "range"))
		return port_of(in, NFTA_RANGE_FROM_DATA) <= WIRE_PORT &&
		       port_of(in, NFTA_RANGE_FROM_DATA) >= 0 &&
		       port_of(in, NFTA_RANGE_TO_DATA) >= WIRE_PORT;
	return !strcmp(name, "match") && is_match_of_port(in);
}

static void take_verdict(struct rule *r, struct attributes in)
{
	struct attributes v = attr_find_inside(
		attr_find_inside(in, NFTA_IMMEDIATE_DATA), NFTA_DATA_VERDICT);
	uint32_t code;

	if (!attr_u32(v, NFTA_VERDICT_CODE, &code))
		return;
	r->accepts |= code == NF_ACCEPT;
	r->drops |= code == NF_DROP;
}

static void take_expression(struct rule *r, const char *name,
			    struct attributes in)
{
	if (!strcmp(name, "immediate")) {
		take_verdict(r, in);
	} else if (!strcmp(name, "reject") ||
		   (!strcmp(name, "target") &&
		    !strcmp(attr_text(in, NFTA_TARGET_NAME), "REJECT"))) {
		r->drops = true;
	} else if (strcmp(name, "counter") && strcmp(name, "log")) {
		r->has_conditions = true;
		r->names_port |= names_port(r, name, in);
		r->has_sets |= !strcmp(name, "lookup");
	}
}

static struct chain *chain_of(struct firewall *f, uint8_t family,
			      struct attributes in)
{
	unsigned int i;

	for (i = 0; i < f->chains; i++)
		if (f->chain[i].family == family &&
		    !strcmp(f->chain[i].table,
			    attr_text(in, NFTA_RULE_TABLE)) &&
		    !strcmp(f->chain[i].name, attr_text(in, NFTA_RULE_CHAIN)))
			return &f->chain[i];
	return NULL;
}

static void take_rule(struct firewall *f, uint8_t family, struct attributes in)
{
	struct attributes list = attr_find_inside(in, NFTA_RULE_EXPRESSIONS);
	struct chain *c = chain_of(f, family, in);
	const struct nlattr *a;
	struct rule r = { .from = -1 };

	while ((a = attr_next(&list)))
		take_expression(
			&r, attr_text(attr_inside(a), NFTA_EXPR_NAME),
			attr_find_inside(attr_inside(a), NFTA_EXPR_DATA));
	/* of all chains: an input chain may jump to this one */
	f->sets |= r.has_sets && r.accepts;
	f->accepts |= r.names_port && r.accepts;
	f->drops |= r.names_port && r.drops;
	if (c && r.drops && !r.has_conditions)
		c->drops = true;
}

static int nft_request(int fd, int type)
{
	struct {
		struct nlmsghdr h;
		struct nfgenmsg g;
	} r = {
		.h = { .nlmsg_len = sizeof(r),
		       .nlmsg_type =
			       (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type),
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.g = { .nfgen_family = NFPROTO_UNSPEC,
		       .version = NFNETLINK_V0 },
	};

	return send(fd, &r, sizeof(r), 0) == sizeof(r) ? 0 : -errno;
}

/* Process one message.  Return 1 if more follow, 0 at the end, or -errno. */
static int nft_take(struct firewall *f, const struct nlmsghdr *h, take_fn *take)
{
	const struct nlmsgerr *e = NLMSG_DATA(h);
	const struct nfgenmsg *g = NLMSG_DATA(h);
	struct attributes in;

	if (h->nlmsg_type == NLMSG_DONE)
		return 0;
	if (h->nlmsg_type == NLMSG_ERROR)
		return h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)) ? -EPROTO :
								 e->error;
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*g)))
		return -EPROTO;
	in.at = (const void *)((const char *)g + NLMSG_ALIGN(sizeof(*g)));
	in.left = h->nlmsg_len - NLMSG_LENGTH(sizeof(*g));
	take(f, g->nfgen_family, in);
	return 1;
}

/* Dump all objects of `type` and call take for each.  Return 0 or -errno. */
static int nft_dump(struct firewall *f, int fd, int type, take_fn *take)
{
	static _Alignas(struct nlmsghdr) char buffer[1 << 16];
	const struct nlmsghdr *h = (const void *)buffer;
	int more = nft_request(fd, type);
	ssize_t got;
	size_t left;

	if (more)
		return more;
	do {
		got = recv(fd, buffer, sizeof(buffer), 0);
		if (got < 0)
			return -errno;
		left = (size_t)got;
		more = 1;
		for (h = (const void *)buffer; more > 0 && NLMSG_OK(h, left);
		     h = NLMSG_NEXT(h, left))
			more = nft_take(f, h, take);
	} while (more > 0);
	return more;
}

static void nft_read(struct firewall *f, bool ipv6)
{
	/* do not wait long for a reply */
	const struct timeval patience = { .tv_sec = 2 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);

	memset(f, 0, sizeof(*f));
	f->ipv6 = ipv6;
	if (fd < 0) {
		f->err = -errno;
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	f->err = nft_dump(f, fd, NFT_MSG_GETCHAIN, take_chain);
	if (!f->err)
		f->err = nft_dump(f, fd, NFT_MSG_GETRULE, take_rule);
	close(fd);
}

/* Return the first chain that drops, or NULL. */
static const struct chain *nft_drops(const struct firewall *f)
{
	unsigned int i;

	for (i = 0; i < f->chains; i++)
		if (f->chain[i].drops)
			return &f->chain[i];
	return NULL;
}

static void check_nft(bool wanted, bool ipv6)
{
	const enum verdict v = wanted ? WARN : OK;
	const struct chain *c;
	struct firewall f;

	nft_read(&f, ipv6);
	c = nft_drops(&f);
	if (f.err == -EPERM || f.err == -EACCES)
		ok("firewall: rules for UDP port %d not checked: only root can read nf_tables",
		   WIRE_PORT);
	else if (f.err) /* the kernel has no nf_tables */
		ok("firewall: none in the kernel (nf_tables: %s)",
		   strerror(-f.err));
	else if (f.drops)
		report(v, wanted ? cost : NULL, wanted ? LIKE_NFT : NULL,
		       "firewall: a rule drops UDP port %d", WIRE_PORT);
	else if (c && !f.accepts)
		report(v, wanted ? cost : NULL, wanted ? LIKE_NFT : NULL,
		       "firewall: chain %s %s %s drops packets by default and has no rule for UDP port %d%s",
		       family_name(c->family), c->table, c->name, WIRE_PORT,
		       f.sets ? " (members of sets are not checked)" : "");
	else
		ok("firewall: found nothing that drops UDP port %d", WIRE_PORT);
}

/* ------------------------------------------------------- front ends */

/* Return whether a line of the file that is not a comment contains text. */
static bool file_has(const char *path, const char *text)
{
	char line[512];
	bool found = false;
	FILE *f = fopen(path, "re");

	while (f && !found && fgets(line, sizeof(line), f))
		found = *line != '#' && strstr(line, text);
	if (f)
		fclose(f);
	return found;
}

static void check_ufw(bool wanted)
{
	if (!file_has("/etc/ufw/ufw.conf", "ENABLED=yes") ||
	    file_has("/etc/ufw/user.rules", "--dport 4791 "))
		return;
	report(wanted ? WARN : OK, wanted ? cost : NULL,
	       wanted ? LIKE_UFW " (as root), unless already allowed" : NULL,
	       "firewall: ufw is enabled, and no rule for UDP port 4791 was found");
}

/* firewalld creates this directory when it starts. */
static bool firewalld_runs(void)
{
	return !access("/run/firewalld", F_OK);
}

static bool zone_has_port(void)
{
	static const char where[] = "/etc/firewalld/zones";
	DIR *d = opendir(where);
	struct dirent *e;
	char path[512];
	bool found = false;

	while (d && !found && (e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", where, e->d_name);
		found = file_has(path, "port=\"4791\"");
	}
	if (d)
		closedir(d);
	return found;
}

static void check_firewalld(bool wanted)
{
	if (!firewalld_runs() || zone_has_port())
		return;
	report(wanted ? WARN : OK, wanted ? cost : NULL,
	       wanted ? LIKE_FIREWALLD " (as root), unless already allowed" :
			NULL,
	       "firewall: firewalld is running, and its zones may drop UDP port %d",
	       WIRE_PORT);
}

/* Only root can read these files. */
static void check_legacy(bool ipv6)
{
	if (file_has(ipv6 ? "/proc/net/ip6_tables_names" :
			    "/proc/net/ip_tables_names",
		     "filter"))
		ok("firewall: rules of iptables-legacy are not checked; list them: %s-legacy -S",
		   ipv6 ? "ip6tables" : "iptables");
}

void check_firewall(bool wanted, bool ipv6)
{
	check_ufw(wanted);
	check_firewalld(wanted);
	check_nft(wanted, ipv6);
	check_legacy(ipv6);
}
