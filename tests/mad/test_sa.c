// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The built-in subnet administrator, by MADs: services.  umad50 is that of
 * urxe0, with LID 1, at which the administrator is.
 */
#include <stdlib.h>

#include "packet.h"

#define SA_CLASS 3
#define SET 2
#define DELETE 0x15
#define SERVICE_RECORD 0x31
#define SERVICE_BYTES 176

#define NO_RESOURCES 0x100
#define INVALID 0x200
#define NO_RECORDS 0x300
#define TOO_MANY 0x400

/* Bits of the component mask */
#define ID 0x1ull
#define GID 0x2ull
#define PKEY 0x4ull
#define LEASE 0x10ull
#define NAME 0x40ull

/* Offsets in a SA MAD */
#define SM_KEY_AT 36
#define MASK_AT 48
#define RECORD_AT 56
#define SERVICE_GID_AT (RECORD_AT + 8)
#define SERVICE_PKEY_AT (RECORD_AT + 24)
#define SERVICE_LEASE_AT (RECORD_AT + 28)
#define SERVICE_KEY_AT (RECORD_AT + 32)
#define SERVICE_NAME_AT (RECORD_AT + 48)

static void put(struct packet *p, size_t at, size_t bytes, uint64_t value)
{
	while (bytes--) {
		p->mad[at + bytes] = (uint8_t)value;
		value >>= 8;
	}
}

static uint64_t get(const struct packet *p, size_t at, size_t bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | p->mad[at++];
	return value;
}

/* A client of the SA, with the GID of its port. */
struct client {
	int fd, id;
	uint8_t gid[16];
};

static struct client client_open(unsigned int k)
{
	char name[64], text[64] = "", *word = text;
	struct client c;
	FILE *file;
	int i;

	snprintf(name, sizeof(name), "/dev/infiniband/umad5%u", k);
	c.fd = open_umad(name, 0);
	c.id = register_agent(c.fd, 1, SA_CLASS, 0, 1);
	snprintf(name, sizeof(name),
		 "/sys/class/infiniband/urxe%u/ports/1/gids/0", k);
	file = fopen(name, "r");
	ck_assert(file && fgets(text, sizeof(text), file));
	fclose(file);
	for (i = 0; i < 16; i += 2, word += 5) {
		c.gid[i] = (uint8_t)(strtoul(word, NULL, 16) >> 8);
		c.gid[i + 1] = (uint8_t)strtoul(word, NULL, 16);
	}
	return c;
}

/* A request about the service `id` of the client's port. */
static struct packet service(const struct client *c, uint8_t method,
			     uint64_t id, uint64_t mask)
{
	struct packet p = request(c->id, 1, SA_CLASS, method, SERVICE_RECORD);

	put(&p, SM_KEY_AT, 8, 0);
	put(&p, MASK_AT, 8, mask);
	put(&p, RECORD_AT, 8, id);
	memcpy(p.mad + SERVICE_GID_AT, c->gid, 16);
	put(&p, SERVICE_PKEY_AT, 2, 0xffff);
	put(&p, SERVICE_LEASE_AT, 4, 3600);
	return p;
}

/* Send a request, and return the status of the response. */
static unsigned int ask(const struct client *c, struct packet *p)
{
	send_packet(c->fd, p);
	*p = receive(c->fd);
	ck_assert_uint_eq(p->hdr.status, 0);
	return status_of(p);
}

/* The number of records that match a query. */
static size_t count(const struct client *c, struct packet p)
{
	static char big[MAD + 300 * SERVICE_BYTES];
	ssize_t n;

	p.mad[3] = GET_TABLE;
	send_packet(c->fd, &p);
	ck_assert(readable(c->fd, PATIENCE_MS));
	n = read(c->fd, big, sizeof(big));
	ck_assert_int_ge(n, (ssize_t)(sizeof(p.hdr) + RECORD_AT));
	memcpy(&p, big, sizeof(p.hdr) + RECORD_AT);
	ck_assert_uint_eq(status_of(&p), 0);
	return ((size_t)n - sizeof(p.hdr) - RECORD_AT) / SERVICE_BYTES;
}

/* ------------------------------------------------------- services */

START_TEST(service_life)
{
	struct client a = client_open(0), b = client_open(1);
	struct packet p = service(&b, SET, 7, ID | GID | PKEY | LEASE | NAME);

	strcpy((char *)p.mad + SERVICE_NAME_AT, "store");
	put(&p, SERVICE_KEY_AT, 8, 0x1234);
	ck_assert_uint_eq(ask(&b, &p), 0);
	ck_assert_uint_eq(p.mad[3], GET_RESPONSE);
	ck_assert_uint_eq(get(&p, SERVICE_LEASE_AT, 4), 3600);
	/* the key is shown to trusted programs only */
	ck_assert_uint_eq(get(&p, SERVICE_KEY_AT, 8), 0);
	p = service(&a, GET, 7, ID);
	ck_assert_uint_eq(ask(&a, &p), 0);
	ck_assert(!memcmp(p.mad + SERVICE_GID_AT, b.gid, 16));
	ck_assert_str_eq((char *)p.mad + SERVICE_NAME_AT, "store");
	ck_assert_uint_eq(get(&p, SERVICE_LEASE_AT, 4) - 1 < 3600, 1);
	ck_assert_uint_eq(get(&p, SERVICE_KEY_AT, 8), 0);
	p = service(&a, GET, 7, ID);
	put(&p, SM_KEY_AT, 8, 1);
	ck_assert_uint_eq(ask(&a, &p), 0);
	ck_assert_uint_eq(get(&p, SERVICE_KEY_AT, 8), 0x1234);
	/* the same service again, and one of another port */
	p = service(&b, SET, 7, ID | GID | PKEY);
	ck_assert_uint_eq(ask(&b, &p), 0);
	ck_assert_uint_eq(get(&p, SERVICE_LEASE_AT, 4), UINT32_MAX);
	ck_assert_uint_eq(count(&a, service(&a, GET, 7, ID)), 1);
	p = service(&a, SET, 7, ID | GID);
	ck_assert_uint_eq(ask(&a, &p), 0);
	ck_assert_uint_eq(get(&p, SERVICE_PKEY_AT, 2), 0xffff);
	ck_assert_uint_eq(count(&a, service(&a, GET, 7, ID)), 2);
	p = service(&a, GET, 7, ID);
	ck_assert_uint_eq(ask(&a, &p), TOO_MANY);
	p = service(&b, DELETE, 7, ID | GID | PKEY);
	ck_assert_uint_eq(ask(&b, &p), 0);
	p = service(&b, DELETE, 7, ID | GID | PKEY);
	ck_assert_uint_eq(ask(&b, &p), NO_RECORDS);
	p = service(&b, GET, 7, ID | GID);
	ck_assert_uint_eq(ask(&b, &p), NO_RECORDS);
	p = service(&a, DELETE, 7, ID | GID);
	ck_assert_uint_eq(ask(&a, &p), 0);
	ck_assert_uint_eq(count(&a, service(&a, GET, 0, 0)), 0);
	close(a.fd);
	close(b.fd);
}
END_TEST

START_TEST(service_lease)
{
	struct client a = client_open(0);
	struct packet p = service(&a, SET, 7, ID | GID | LEASE);
	uint32_t left, before = 2;

	put(&p, SERVICE_LEASE_AT, 4, before);
	ck_assert_uint_eq(ask(&a, &p), 0);
	for (;;) {
		p = service(&a, GET, 7, ID);
		if (ask(&a, &p))
			break;
		left = (uint32_t)get(&p, SERVICE_LEASE_AT, 4);
		ck_assert_uint_ge(left, 1);
		ck_assert_uint_le(left, before);
		before = left;
		usleep(1000);
	}
	ck_assert_uint_eq(status_of(&p), NO_RECORDS);
	ck_assert_uint_eq(before, 1);
	/* a lease of no time */
	p = service(&a, SET, 7, ID | GID | LEASE);
	put(&p, SERVICE_LEASE_AT, 4, 0);
	ck_assert_uint_eq(ask(&a, &p), 0);
	ck_assert_uint_eq(count(&a, service(&a, GET, 7, ID)), 0);
	close(a.fd);
}
END_TEST

/* Each component of a record is compared, if its bit is set. */
START_TEST(service_components)
{
	static const struct {
		uint8_t bit, n, at, bytes;
	} parts[] = {
		{ 0, 1, 0, 8 },	   { 1, 1, 8, 16 },   { 2, 1, 24, 2 },
		{ 5, 1, 32, 16 },  { 6, 1, 48, 64 },  { 7, 16, 112, 1 },
		{ 23, 8, 128, 2 }, { 31, 4, 144, 4 }, { 35, 2, 160, 8 },
	};
	struct client a = client_open(0);
	const struct packet set = service(&a, SET, 7, (1ull << 37) - 1);
	struct packet p = set;
	size_t i, k, last;
	uint64_t bit;

	ck_assert_uint_eq(ask(&a, &p), 0);
	for (i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		for (k = 0; k < parts[i].n; k++) {
			p = set;
			bit = 1ull << (parts[i].bit + k);
			last = RECORD_AT + parts[i].at +
			       (k + 1) * parts[i].bytes - 1;
			put(&p, MASK_AT, 8, bit);
			ck_assert_uint_eq(count(&a, p), 1);
			p.mad[last] ^= 1;
			ck_assert_uint_eq(count(&a, p), 0);
			put(&p, MASK_AT, 8, ((1ull << 37) - 1) & ~bit);
			ck_assert_uint_eq(count(&a, p), 1);
		}
	p = service(&a, DELETE, 7, ID | GID);
	ck_assert_uint_eq(ask(&a, &p), 0);
	close(a.fd);
}
END_TEST

START_TEST(service_refused)
{
	static const uint64_t masks[] = { ID, GID, LEASE | NAME };
	struct client a = client_open(0);
	struct packet p;
	uint64_t i;

	for (i = 0; i < 3; i++) {
		p = service(&a, SET, 7, masks[i]);
		ck_assert_uint_eq(ask(&a, &p), INVALID);
	}
	/* a partition of which the port is no member */
	for (i = 0; i < 2; i++) {
		p = service(&a, i ? SET : DELETE, 7, ID | GID | PKEY);
		put(&p, SERVICE_PKEY_AT, 2, 0x8005);
		ck_assert_uint_eq(ask(&a, &p), INVALID);
	}
	/* the GID of no port */
	p = service(&a, SET, 7, ID | GID | PKEY);
	p.mad[SERVICE_GID_AT + 15] ^= 0x55;
	ck_assert_uint_eq(ask(&a, &p), INVALID);
	/* a method that the attribute has not */
	p = service(&a, 0x13, 7, ID);
	ck_assert_uint_ne(ask(&a, &p), 0);
	/* more than the table has */
	for (i = 0;; i++) {
		p = service(&a, SET, 1000 + i, ID | GID);
		if (ask(&a, &p))
			break;
	}
	ck_assert_uint_eq(status_of(&p), NO_RESOURCES);
	ck_assert_uint_eq(i, 256);
	ck_assert_uint_eq(count(&a, service(&a, GET, 0, 0)), i);
	while (i--) {
		p = service(&a, DELETE, 1000 + i, ID | GID);
		ck_assert_uint_eq(ask(&a, &p), 0);
	}
	close(a.fd);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sa");

	/* before the first process of the fabric creates it */
	setenv("URXE_DEVICES", "2", 1);
	setenv("URXE_LINK_LAYER", "infiniband", 1);
	add(s, service_life);
	add(s, service_lease);
	add(s, service_components);
	add(s, service_refused);
	return run_cases(srunner_create(s));
}
