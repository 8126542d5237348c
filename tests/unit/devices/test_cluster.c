// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Cluster files: parsing, hosts, links and the paths that follow from them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/profile.h"
#include "unit.h"

static void cluster_set(const char *text)
{
	char path[] = "/tmp/urxe-cluster.XXXXXX";
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	setenv("URXE_CLUSTER", path, 1);
}

static void cluster_unset(void)
{
	unlink(getenv("URXE_CLUSTER"));
	unsetenv("URXE_CLUSTER");
}

static struct urxe_fabric *cluster_open(const char *text)
{
	struct urxe_fabric *f;

	cluster_set(text);
	ck_assert_msg(!fabric_open(new_dir(), true, &f), "%s", fabric_why());
	cluster_unset();
	return f;
}

static uint32_t path(const struct urxe_fabric *f, const char *a, const char *b)
{
	const int k = hca_find(f, a), j = hca_find(f, b);

	ck_assert_int_ge(k, 0);
	ck_assert_int_ge(j, 0);
	return URXE_PATH_STATE(load_relaxed(&f->dev->hca[k].path[j]));
}

START_TEST(values)
{
	struct urxe_fabric *f = cluster_open(
		"# comment\n[defaults]\nrate = 100\nmtu = 2048\n"
		"[hca a/x0]\npci = 0000:18:00.1\nnuma_node = 1\nnetdev = eth7\n"
		"address = 10.0.0.1\naddress = fd00::1\nfw_ver = 1.2\n"
		"  [hca a/x1]   # another\r\nrate=25\t 1\nstate = down\n"
		"[hca b/x0]\nlink_layer = ethernet\npkeys = 0xffff 0x8001\n");
	const struct urxe_hca *hca = f->dev->hca;
	struct urxe_gid g;

	ck_assert_uint_eq(dev_hcas(f->dev), 3);
	ck_assert_uint_eq(f->hcas, 2);
	ck_assert_uint_eq(f->dev->hosts, 2);
	ck_assert_str_eq(hca[0].name, "x0");
	ck_assert_uint_eq(hca[0].pci, 0x1801);
	ck_assert_int_eq(hca[0].numa_node, 1);
	ck_assert_int_eq(hca[1].numa_node, -1);
	ck_assert_str_eq(hca[0].profile.fw_ver, "1.2");
	ck_assert_uint_eq(hca[0].profile.value[PROFILE_active_mtu], 2048);
	ck_assert_uint_eq(hca_rate(&hca[0]), 1000);
	ck_assert_uint_eq(hca_rate(&hca[1]), 250);
	ck_assert_uint_eq(port_pkey(&hca[2].subnet, 1), 0x8001);
	ck_assert(gid_row_get(&hca[0].gid[2], &g));
	ck_assert_uint_eq(g.raw[0], 0xfd);
	ck_assert_str_eq(g.ifname, "eth7");
	/* the default address: 127.64.1.1 */
	ck_assert(gid_row_get(&hca[2].gid[1], &g));
	ck_assert_uint_eq(g.raw[13], 64);
	ck_assert_uint_eq(g.raw[14], 1);
	ck_assert_uint_eq(g.raw[15], 1);
	/* without links, all ports that are not down are joined */
	ck_assert_uint_eq(path(f, "a/x0", "b/x0"), URXE_PORT_ACTIVE);
	ck_assert_uint_eq(path(f, "a/x1", "b/x0"), URXE_PORT_DOWN);
	ck_assert(ports_are_initial(f->dev));
	fabric_close(f);
}
END_TEST

START_TEST(hosts)
{
	struct urxe_fabric *f, *g;

	cluster_set("[hca a/x]\n[hca b/x]\n[hca b/y]\n");
	setenv("URXE_HOST", "b", 1);
	ck_assert_int_eq(fabric_open(new_dir(), true, &f), 0);
	ck_assert_uint_eq(f->host, 1);
	ck_assert_uint_eq(f->first, 1);
	ck_assert_uint_eq(f->hcas, 2);
	ck_assert_int_eq(hca_find(f, "x"), 1);
	ck_assert_int_eq(hca_find(f, "a/x"), 0);
	ck_assert_int_eq(hca_find(f, "z"), -1);
	setenv("URXE_HOST", "c", 1);
	ck_assert_int_eq(fabric_open(f->dir, false, &g), -EINVAL);
	/* numbers in shared memory that are out of range are no fabric */
	setenv("URXE_HOST", "b", 1);
	f->dev->host[1].first = 2;
	ck_assert_int_eq(fabric_open(f->dir, false, &g), -EPROTO);
	f->dev->host[1].first = UINT32_MAX;
	ck_assert_int_eq(fabric_open(f->dir, false, &g), -EPROTO);
	f->dev->host[1].hcas = URXE_HOST_HCAS + 1;
	ck_assert_int_eq(fabric_open(f->dir, false, &g), -EPROTO);
	unsetenv("URXE_HOST");
	cluster_unset();
	fabric_close(f);
}
END_TEST

static const char tree[] =
	"[switch leaf0]\nlink = spine0\nlink = spine1\n"
	"[switch leaf1]\nlink = spine0\nlink = spine1 down\n"
	"[switch spine0]\nports = 2\n[switch spine1]\n"
	"[hca a/x]\nlink = leaf0/7\n[hca b/x]\nlink = leaf1\n"
	"[hca c/x]\nlink = leaf1\n[hca c/alone]\n"
	"[hca d/x]\nlink = e/x\n[hca e/x]\n";

/* -EINVAL: nothing has that name, or it has no link */
static int set_link(struct urxe_fabric *f, const char *name,
		    enum fabric_link_state state)
{
	struct urxe_link_end end;

	return link_end_find(f, name, &end) ? fabric_set_link(f, end, state) :
					      -EINVAL;
}

START_TEST(links)
{
	struct urxe_fabric *f = cluster_open(tree);
	const int d = hca_find(f, "d/x"), e = hca_find(f, "e/x");

	ck_assert_uint_eq(f->dev->hca[0].peer.port, 7);
	ck_assert_uint_eq(path(f, "a/x", "b/x"), URXE_PORT_ACTIVE);
	ck_assert_uint_eq(path(f, "a/x", "a/x"), URXE_PORT_ACTIVE);
	ck_assert_uint_eq(path(f, "a/x", "c/alone"), URXE_PORT_DOWN);
	ck_assert_uint_eq(path(f, "a/x", "d/x"), URXE_PORT_NOP);
	ck_assert_uint_eq(path(f, "d/x", "e/x"), URXE_PORT_ACTIVE);
	ck_assert(ports_are_initial(f->dev));
	/* spine0 has the only link that is up */
	ck_assert_int_eq(set_link(f, "spine0/1", FABRIC_LINK_DOWN), 0);
	ck_assert_int_eq(set_link(f, "spine0/1", FABRIC_LINK_DOWN), 1);
	ck_assert_uint_eq(path(f, "a/x", "b/x"), URXE_PORT_NOP);
	ck_assert_uint_eq(path(f, "c/x", "b/x"), URXE_PORT_ACTIVE);
	ck_assert(!ports_are_initial(f->dev));
	/* the link of leaf1 to spine1, which is down at first */
	ck_assert_int_eq(set_link(f, "leaf1/2", FABRIC_LINK_UP), 0);
	ck_assert_uint_eq(path(f, "a/x", "b/x"), URXE_PORT_ACTIVE);
	ck_assert_int_eq(set_link(f, "spine0/3", FABRIC_LINK_DOWN), -EINVAL);
	ck_assert_int_eq(set_link(f, "spine9/1", FABRIC_LINK_DOWN), -EINVAL);
	/* either end takes a link down and up, for both */
	ck_assert_int_eq(fabric_set_port(f, (uint32_t)d, false), 0);
	ck_assert(!hca_is_up(&f->dev->hca[d]));
	ck_assert(!hca_is_up(&f->dev->hca[e]));
	ck_assert_int_eq(fabric_set_port(f, (uint32_t)e, false), 1);
	ck_assert_int_eq(fabric_set_port(f, (uint32_t)e, true), 0);
	ck_assert(hca_is_up(&f->dev->hca[d]));
	ck_assert(hca_is_up(&f->dev->hca[e]));
	ck_assert_int_eq(set_link(f, "leaf0/7", FABRIC_LINK_DOWN), 0);
	ck_assert(!hca_is_up(&f->dev->hca[0]));
	ck_assert_int_eq(fabric_set_port(f, 0, false), 1);
	ck_assert_int_eq(fabric_set_port(f, 0, true), 0);
	ck_assert(hca_is_up(&f->dev->hca[0]));
	ck_assert_int_eq(set_link(f, "leaf0/7", FABRIC_LINK_UP), 1);
	fabric_close(f);
}
END_TEST

/* Names of the ends of links, and all links of a switch. */
START_TEST(link_names)
{
	static const char *const invalid[] = {
		"",	   "/",	       "a",	 "a/",	     "a/x/2",
		"a/x/",	   "leaf0/0",  "leaf0/", "leaf0/65", "leaf0/9999",
		"leaf0/x", "leaf0/-1", "leaf",	 "spine1/3", "alone/2",
	};
	struct urxe_fabric *f = cluster_open(tree);
	unsigned int i;

	for (i = 0; i < sizeof(invalid) / sizeof(*invalid); i++)
		ck_assert_msg(set_link(f, invalid[i], FABRIC_LINK_DOWN) ==
				      -EINVAL,
			      "%s", invalid[i]);
	ck_assert(ports_are_initial(f->dev));
	ck_assert_int_eq(set_link(f, "x/1", FABRIC_LINK_DOWN), 0);
	ck_assert_int_eq(set_link(f, "a/x/1", FABRIC_LINK_DOWN), 1);
	ck_assert_int_eq(set_link(f, "a/x", FABRIC_LINK_UP), 0);
	ck_assert_int_eq(set_link(f, "leaf1", FABRIC_LINK_DOWN), 0);
	ck_assert_int_eq(set_link(f, "leaf1", FABRIC_LINK_DOWN), 1);
	ck_assert(!hca_is_up(&f->dev->hca[hca_find(f, "b/x")]));
	ck_assert(!hca_is_up(&f->dev->hca[hca_find(f, "c/x")]));
	ck_assert(hca_is_up(&f->dev->hca[0]));
	ck_assert_int_eq(set_link(f, "leaf1", FABRIC_LINK_UP), 0);
	fabric_close(f);
}
END_TEST

/* A link that starts is up and carries no packets. */
START_TEST(starting)
{
	struct urxe_fabric *f = cluster_open(tree);

	ck_assert_int_eq(set_link(f, "a/x", FABRIC_LINK_STARTING), 0);
	ck_assert(hca_is_up(&f->dev->hca[0]));
	ck_assert_uint_eq(path(f, "a/x", "b/x"), URXE_PORT_NOP);
	ck_assert_uint_eq(path(f, "a/x", "a/x"), URXE_PORT_NOP);
	ck_assert_int_eq(set_link(f, "leaf0/7", FABRIC_LINK_STARTING), 1);
	ck_assert_int_eq(set_link(f, "leaf0/7", FABRIC_LINK_DOWN), 0);
	ck_assert(!hca_is_up(&f->dev->hca[0]));
	ck_assert_int_eq(set_link(f, "leaf0/7", FABRIC_LINK_STARTING), 0);
	ck_assert(hca_is_up(&f->dev->hca[0]));
	ck_assert_uint_eq(path(f, "a/x", "b/x"), URXE_PORT_NOP);
	ck_assert_int_eq(set_link(f, "a/x", FABRIC_LINK_UP), 0);
	ck_assert_uint_eq(path(f, "a/x", "b/x"), URXE_PORT_ACTIVE);
	/* a link between switches */
	ck_assert_int_eq(set_link(f, "spine0", FABRIC_LINK_STARTING), 0);
	ck_assert_uint_eq(path(f, "a/x", "b/x"), URXE_PORT_NOP);
	ck_assert_uint_eq(path(f, "b/x", "c/x"), URXE_PORT_ACTIVE);
	ck_assert(!ports_are_initial(f->dev));
	ck_assert_int_eq(set_link(f, "spine0", FABRIC_LINK_UP), 0);
	ck_assert_uint_eq(path(f, "a/x", "b/x"), URXE_PORT_ACTIVE);
	ck_assert(ports_are_initial(f->dev));
	fabric_close(f);
}
END_TEST

static const struct {
	const char *text, *why;
} bad[] = {
	{ "", "no [hca]" },
	{ "x = 1\n", "in no section" },
	{ "[hca a]\n", "HOST/NAME" },
	{ "[hca a/]\n", "HOST/NAME" },
	{ "[hca a/b/c]\n", "HOST/NAME" },
	{ "[hca ../x]\n", "HOST/NAME" },
	{ "[hca a/sixteen-letters-]\n", "HOST/NAME" },
	{ "[hca a/x]\n[hca a/x]\n", "twice" },
	{ "[hca a/x]\n[hca b/x]\n[hca a/y]\n", "do not follow" },
	{ "[hca a/1]\n[hca a/2]\n[hca a/3]\n[hca a/4]\n[hca a/5]\n[hca a/6]\n"
	  "[hca a/7]\n[hca a/8]\n[hca a/9]\n",
	  "too many devices" },
	{ "[hca a/x\n", "ends with ]" },
	{ "[host a]\n", "a section is" },
	{ "[hca a/x]\nnonsense\n", "line 2: neither" },
	{ "[hca a/x]\ncolor = red\n", "unknown key" },
	{ "[defaults]\naddress = 10.0.0.1\n", "not in [defaults]" },
	{ "[defaults]\nlink = s\n", "not in [defaults]" },
	{ "[hca a/x]\naddress = 10.0.0\n", "the IPv4 or IPv6" },
	{ "[hca a/x]\npci = 18:00.0\n", "pci must be" },
	{ "[hca a/x]\npci = 0000:18:20.0\n", "pci must be" },
	{ "[hca a/x]\nmtu = 1000\n", "mtu must be" },
	{ "[hca a/x]\nrate = 99\n", "rate must be" },
	{ "[hca a/x]\nrate = 100 5\n", "rate must be" },
	{ "[hca a/x]\nnuma_node = -1\n", "numa_node must be" },
	{ "[hca a/x]\npkeys = 0x10000\n", "pkeys must be" },
	{ "[hca a/x]\nstate = left\n", "state must be" },
	{ "[hca a/x]\nlink_layer = token-ring\n", "link_layer must be" },
	{ "[hca a/x]\nnetdev = a/b\n", "netdev must be" },
	{ "[hca a/x]\nprofile = /nonexistent\n", "No such file" },
	{ "[hca a/x]\nlink = b/x\n", "there is no b/x" },
	{ "[hca a/x]\nlink = a/x\n", "a/x is linked to itself" },
	{ "[hca a/x]\nlink = b/x\n[hca b/x]\nlink = a/x\n",
	  "port 1 of b/x has a link already" },
	{ "[switch s]\n[hca a/x]\nlink = s up\n", "more than a node" },
	{ "[switch s]\n[hca a/x]\nlink_layer = infiniband\n",
	  "switches have no links" },
	{ "[hca a/x]\npci = 0000:-1:00.0\n", "pci must be" },
	{ "[hca a/x]\npci = 0000:18:00.0\n[hca a/y]\npci = 0000:18:00.0\n",
	  "one PCI function" },
	{ "[hca a/x]\naddress = 10.0.0.1\n[hca b/x]\naddress = 10.0.0.1\n",
	  "is that of another port" },
	{ "[hca a/x]\naddress = fd00::1\naddress = fd00::1\n",
	  "is that of another port" },
	{ "[hca a/x]\naddress = 127.0.0.1\n", "address must be" },
	{ "[hca a/x]\naddress = 0.0.0.0\n", "address must be" },
	{ "[hca a/x]\naddress = ff02::1\n", "address must be" },
	{ "[hca a/x]\naddress = 224.0.0.1\n", "address must be" },
	{ "[switch a]\n[hca a/x]\nlink = a\n", "a host and a switch" },
	{ "[hca a/x]\nmtu = 0400\n", "mtu must be" },
	{ "[hca a/x]\nmtu = 512 512\n", "mtu must be" },
	{ "[hca a/x]\nmtu =\n", "neither" },
	{ "[switch s]\nlink_layer = x\n[hca a/x]\n", "a switch has" },
	{ "[switch s]\nports = 65\n[hca a/x]\n", "a switch has" },
	{ "[switch s]\nports = 1\n[hca a/x]\nlink = s/2\n", "no port 2" },
	{ "[switch s]\n[hca a/x]\nlink = s/2\n[hca a/y]\nlink = s/2\n",
	  "has a link already" },
	{ "[switch s]\n[hca a/x]\nlink = s\nlink = s\n", "has a link already" },
	{ "[switch s]\n[hca a/x]\nlink_layer = infiniband\nlink = s\n",
	  "different link layers" },
};

START_TEST(errors)
{
	struct urxe_fabric *f;

	cluster_set(bad[_i].text);
	ck_assert_int_lt(fabric_open(new_dir(), true, &f), 0);
	ck_assert_msg(strstr(fabric_why(), bad[_i].why), "\"%s\" is not \"%s\"",
		      fabric_why(), bad[_i].why);
	cluster_unset();
}
END_TEST

/* A process was killed after it set the bits of a link. */
START_TEST(killed)
{
	struct urxe_fabric *f = cluster_open(tree);
	const uint32_t d = (uint32_t)hca_find(f, "d/x");
	const uint32_t e = (uint32_t)hca_find(f, "e/x");

	store_relaxed(&f->dev->hca[d].down, LINK_DOWN);
	ck_assert_int_eq(fabric_set_port(f, d, false), 1);
	ck_assert(!hca_is_up(&f->dev->hca[d]));
	ck_assert(!hca_is_up(&f->dev->hca[e]));
	/* only one end was set to up */
	store_relaxed(&f->dev->hca[d].down, 0);
	ck_assert_int_eq(fabric_set_port(f, d, true), 0);
	ck_assert(hca_is_up(&f->dev->hca[d]));
	ck_assert(hca_is_up(&f->dev->hca[e]));
	store_relaxed(&f->dev->hca[d].path[e], URXE_PORT_DOWN);
	ck_assert_int_eq(fabric_set_port(f, d, true), 1);
	ck_assert_uint_eq(path(f, "d/x", "e/x"), URXE_PORT_ACTIVE);
	fabric_close(f);
}
END_TEST

/* Processes take both ends of a link down and up at the same time. */
START_TEST(both_ends)
{
	struct urxe_fabric *f = cluster_open(tree);
	const uint32_t d = (uint32_t)hca_find(f, "d/x");
	const uint32_t e = (uint32_t)hca_find(f, "e/x");
	pid_t pid;
	int i;

	for (i = 0; i < 100; i++) {
		pid = fork();
		ck_assert_int_ge(pid, 0);
		fabric_set_port(f, pid ? d : e, pid);
		if (!pid)
			_exit(0);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		ck_assert_int_eq(hca_is_up(&f->dev->hca[d]),
				 hca_is_up(&f->dev->hca[e]));
		fabric_set_port(f, i % 2 ? d : e, true);
		ck_assert(hca_is_up(&f->dev->hca[d]));
		ck_assert(hca_is_up(&f->dev->hca[e]));
	}
	fabric_close(f);
}
END_TEST

/* A link between two devices that is down at first. */
START_TEST(down_at_first)
{
	struct urxe_fabric *f =
		cluster_open("[hca a/x]\nlink = b/x down\n[hca b/x]\n");

	ck_assert(!hca_is_up(&f->dev->hca[0]));
	ck_assert(!hca_is_up(&f->dev->hca[1]));
	ck_assert(ports_are_initial(f->dev));
	ck_assert_int_eq(fabric_set_port(f, 1, true), 0);
	ck_assert(hca_is_up(&f->dev->hca[0]));
	ck_assert(hca_is_up(&f->dev->hca[1]));
	ck_assert(!ports_are_initial(f->dev));
	fabric_close(f);
}
END_TEST

/* A damaged segment leads to no access beyond the arrays. */
START_TEST(damage)
{
	struct urxe_fabric *f = cluster_open(tree);
	struct urxe_dev *dev = f->dev;

	dev->sw[0].ports = UINT32_MAX;
	dev->sw[0].peer[1].node = 60000;
	dev->sw[0].peer[2].node = NODE_SWITCH(77);
	dev->sw[1].peer[1].port = 999;
	dev->hca[0].peer.node = 1023;
	dev->switches = 5000;
	fabric_set_port(f, 1, false);
	set_link(f, "leaf1/1", FABRIC_LINK_DOWN);
	set_link(f, "leaf0/60", FABRIC_LINK_DOWN);
	dev->hca[1].host = 99999;
	hca_find(f, "a/x");
	fabric_close(f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cluster");

	add(s, values);
	add(s, hosts);
	add(s, links);
	add(s, link_names);
	add(s, starting);
	add_loop(s, errors, sizeof(bad) / sizeof(*bad));
	add(s, killed);
	add(s, both_ends);
	add(s, down_at_first);
	add(s, damage);
	return run_suite(s);
}
