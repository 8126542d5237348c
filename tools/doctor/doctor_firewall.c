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
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "wire/network.h"

#define LIKE_UFW "ufw allow 4791/udp"
#define LIKE_FIREWALLD "firewall-cmd --add-port=4791/udp"
#define LIKE_NFT "nft insert rule FAMILY TABLE CHAIN udp dport 4791 accept"

static const char cost[] =
	"urxe run --wire: packets of other hosts are dropped";

/* ------------------------------------------------------- attributes */

/* A sequence of netlink attributes of `left` bytes. */
struct attributes {
	struct nlattr *at;
	int left;
};

static struct nlattr *attr_find(struct attributes in, int type)
{
	return nla_find(in.at, in.left, type);
}

/* Return the attributes nested in a, none if a is NULL. */
static struct attributes attr_inside(struct nlattr *a)
{
	return a ? (struct attributes){ nla_data(a), nla_len(a) } :
		   (struct attributes){ NULL, 0 };
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
	const char *text = a ? nla_data(a) : "";

	return a && nla_len(a) && !text[nla_len(a) - 1] ? text : "";
}

/* Read a number, which is in network byte order, to *out in host order. */
static bool attr_u32(struct attributes in, int type, uint32_t *out)
{
	const struct nlattr *a = attr_find(in, type);

	if (!a || nla_len(a) < (int)sizeof(*out))
		return false;
	*out = ntohl(nla_get_u32(a));
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
	bool dumped; /* the last dump is complete */
	int err; /* of the netlink requests: 0 or -NLE_* */
};

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

	return a && nla_len(a) == 2 ? ntohs(nla_get_u16(a)) : -1;
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
	const struct attributes info = attr_find_inside(in, NFTA_MATCH_INFO);
	const char *name = attr_text(in, NFTA_MATCH_NAME);

	if (!strcmp(name, "udp"))
		return is_udp_of_port(info.at, (size_t)info.left);
	return !strcmp(name, "multiport") &&
	       is_multiport_of_port(info.at, (size_t)info.left);
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
	struct rule r = { .from = -1 };
	struct nlattr *a;
	int left;

	nla_for_each_attr(a, list.at, list.left, left) take_expression(
		&r, attr_text(attr_inside(a), NFTA_EXPR_NAME),
		attr_find_inside(attr_inside(a), NFTA_EXPR_DATA));
	/* of all chains: an input chain may jump to this one */
	f->sets |= r.has_sets && r.accepts;
	f->accepts |= r.names_port && r.accepts;
	f->drops |= r.names_port && r.drops;
	if (c && r.drops && !r.has_conditions)
		c->drops = true;
}

/* Process one message of a dump: libnl's callback for valid messages. */
static int nft_take(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *h = nlmsg_hdr(msg);
	const struct nfgenmsg *g = nlmsg_data(h);
	struct attributes in;

	if (nlmsg_datalen(h) < (int)sizeof(*g))
		return -NLE_MSG_TOOSHORT;
	in.at = nlmsg_attrdata(h, sizeof(*g));
	in.left = nlmsg_attrlen(h, sizeof(*g));
	if (NFNL_MSG_TYPE(h->nlmsg_type) == NFT_MSG_NEWCHAIN)
		take_chain(arg, g->nfgen_family, in);
	else
		take_rule(arg, g->nfgen_family, in);
	return NL_OK;
}

/* The callback for the end of a dump. */
static int nft_end(struct nl_msg *msg, void *arg)
{
	struct firewall *f = arg;

	(void)msg;
	f->dumped = true;
	return NL_STOP;
}

/* Request a dump and process its messages.  Return 0 or -NLE_*. */
static int nft_dump(struct firewall *f, struct nl_sock *sk, int type)
{
	struct nfgenmsg g = { .nfgen_family = NFPROTO_UNSPEC,
			      .version = NFNETLINK_V0 };
	int err;

	f->dumped = false;
	err = nl_send_simple(sk, NFNL_SUBSYS_NFTABLES << 8 | type, NLM_F_DUMP,
			     &g, sizeof(g));
	if (err >= 0)
		err = nl_recvmsgs_default(sk);
	return err < 0 ? err : f->dumped ? 0 : -NLE_AGAIN;
}

static void nft_read(struct firewall *f, bool ipv6)
{
	/* do not wait long for a reply */
	const struct timeval patience = { .tv_sec = 2 };
	struct nl_sock *sk = nl_socket_alloc();

	memset(f, 0, sizeof(*f));
	f->ipv6 = ipv6;
	f->err = sk ? nl_connect(sk, NETLINK_NETFILTER) : -NLE_NOMEM;
	if (f->err)
		goto out;
	setsockopt(nl_socket_get_fd(sk), SOL_SOCKET, SO_RCVTIMEO, &patience,
		   sizeof(patience));
	nl_socket_modify_cb(sk, NL_CB_VALID, NL_CB_CUSTOM, nft_take, f);
	nl_socket_modify_cb(sk, NL_CB_FINISH, NL_CB_CUSTOM, nft_end, f);
	f->err = nft_dump(f, sk, NFT_MSG_GETCHAIN);
	if (!f->err)
		f->err = nft_dump(f, sk, NFT_MSG_GETRULE);
out:
	nl_socket_free(sk);
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
	if (f.err == -NLE_PERM || f.err == -NLE_NOACCESS)
		ok("firewall: rules for UDP port %d not checked: only root can read nf_tables",
		   WIRE_PORT);
	else if (f.err) /* the kernel has no nf_tables */
		ok("firewall: none in the kernel (nf_tables: %s)",
		   nl_geterror(f.err));
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
