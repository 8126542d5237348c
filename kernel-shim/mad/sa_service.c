// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Services that programs register at the subnet administrator (ServiceRecord,
 * IB 15.2.5.14), in the table urxe_dev.sa_service.  ServiceID, ServiceGID and
 * ServiceP_Key identify a record.  Each request first removes the records
 * whose lease has ended.  In what the specification leaves open, the answers
 * are those of OpenSM (osm_sa_service_record.c).
 */
#include "base/clock.h"
#include "sa.h"

#define ID 0 /* bits of the component mask */
#define GID 1
#define PKEY 2
#define LEASE 4
#define RECORD_ID_BYTES 26 /* ServiceID, ServiceGID, ServiceP_Key */
#define GID_AT 8
#define KEY_AT 32
#define KEY_BYTES 16
#define FOREVER UINT32_MAX /* ServiceLease */
#define SECOND 1000000000ull

/* Components that a query compares: `n` of equal length, with adjacent bits. */
static const struct {
	uint8_t bit, n, at, bytes;
} parts[] = {
	{ ID, 1, 0, 8 },    { GID, 1, GID_AT, 16 },
	{ PKEY, 1, 24, 2 }, { 5, 1, KEY_AT, KEY_BYTES },
	{ 6, 1, 48, 64 }, /* ServiceName */
	{ 7, 16, 112, 1 }, /* ServiceData8, 16, 32, 64 */
	{ 23, 8, 128, 2 },  { 31, 4, 144, 4 },
	{ 35, 2, 160, 8 },
};

static bool service_matches(const struct query *q, const uint8_t *record)
{
	unsigned int i, k;
	size_t at;

	for (i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		for (k = 0; k < parts[i].n; k++) {
			at = parts[i].at + (size_t)k * parts[i].bytes;
			if (wants(q, parts[i].bit + k) &&
			    memcmp(q->wanted + at, record + at, parts[i].bytes))
				return false;
		}
	return true;
}

/* Is the port of a node a member of a partition, full or limited? */
static bool node_has_pkey(struct urxe_dev *dev, uint32_t node, uint16_t pkey)
{
	uint32_t i;
	uint16_t own;

	for (i = 0; i < URXE_MAX_PKEY; i++) {
		own = port_pkey(node_subnet(dev, node), i);
		if (own & ~PKEY_FULL && !((own ^ pkey) & ~PKEY_FULL))
			return true;
	}
	return false;
}

/* May the requester register a service with that P_Key and GID? */
static bool service_is_allowed(const struct query *q)
{
	const uint16_t pkey = (uint16_t)attr_get(q->wanted, ATTR_SERVICE_pkey);
	const uint64_t guid = attr_get(q->wanted, ATTR_SERVICE_gid_low);
	struct urxe_dev *dev = q->f->dev;
	uint32_t node;

	if (!wants(q, PKEY))
		return true;
	if (!node_has_pkey(dev, q->from, pkey))
		return false;
	if (!wants(q, GID) || q->wanted[GID_AT] == 0xff)
		return true;
	for (node = 0; node < NODES; node++)
		if (node_exists(dev, node) && node_guid(dev, node) == guid)
			return node_has_pkey(dev, node, pkey);
	return false;
}

/* The record of the request, with the values of components that it lacks. */
static void service_wanted(const struct query *q, uint8_t record[RECORD_MAX])
{
	memcpy(record, q->wanted, URXE_SERVICE_BYTES);
	if (!wants(q, PKEY))
		attr_set(record, ATTR_SERVICE_pkey, PKEY_DEFAULT);
	if (!wants(q, LEASE))
		attr_set(record, ATTR_SERVICE_lease, FOREVER);
}

/* Append a service.  Only trusted programs are shown its key. */
static void service_add(struct query *q, const uint8_t *service, uint32_t lease)
{
	uint8_t record[RECORD_MAX];

	memcpy(record, service, URXE_SERVICE_BYTES);
	attr_set(record, ATTR_SERVICE_lease, lease);
	if (!query_is_trusted(q))
		memset(record + KEY_AT, 0, KEY_BYTES);
	record_add(q, record);
}

/* The rest of a lease, in seconds. */
static uint32_t lease_left(const struct urxe_sa_service *s, uint64_t now)
{
	uint64_t left;

	if (s->ends == URXE_SERVICE_FOREVER || s->ends <= now)
		return s->ends <= now ? 0 : FOREVER;
	left = (s->ends - now + SECOND - 1) / SECOND;
	return left < FOREVER ? (uint32_t)left : FOREVER - 1;
}

/* Take the device lock, and remove services whose lease has ended. */
static uint16_t services_begin(struct query *q, uint64_t *now)
{
	struct urxe_sa_service *s = q->f->dev->sa_service;
	uint32_t i;

	q->stride = URXE_SERVICE_BYTES;
	if (fabric_lock(q->f))
		return STATUS_NO_RESOURCES;
	*now = clock_now();
	for (i = 0; i < URXE_MAX_SA_SERVICE; i++)
		if (load_relaxed(&s[i].used) && s[i].ends <= *now)
			store_relaxed(&s[i].used, 0);
	return 0;
}

/* With the device lock held: the service of a record, or NULL. */
static struct urxe_sa_service *service_by_id(struct urxe_dev *dev,
					     const uint8_t *record)
{
	struct urxe_sa_service *s = dev->sa_service;
	uint32_t i;

	for (i = 0; i < URXE_MAX_SA_SERVICE; i++)
		if (load_relaxed(&s[i].used) &&
		    !memcmp(s[i].record, record, RECORD_ID_BYTES))
			return &s[i];
	return NULL;
}

static struct urxe_sa_service *service_free(struct urxe_dev *dev)
{
	uint32_t i;

	for (i = 0; i < URXE_MAX_SA_SERVICE; i++)
		if (!load_relaxed(&dev->sa_service[i].used))
			return &dev->sa_service[i];
	return NULL;
}

/* Services of partitions of the requester. */
uint16_t services_find(struct query *q)
{
	struct urxe_sa_service *s = q->f->dev->sa_service;
	uint64_t now;
	uint32_t i;
	const uint16_t status = services_begin(q, &now);

	if (status)
		return status;
	for (i = 0; i < URXE_MAX_SA_SERVICE; i++)
		if (load_relaxed(&s[i].used) &&
		    service_matches(q, s[i].record) &&
		    node_has_pkey(
			    q->f->dev, q->from,
			    (uint16_t)attr_get(s[i].record, ATTR_SERVICE_pkey)))
			service_add(q, s[i].record, lease_left(&s[i], now));
	fabric_unlock(q->f);
	return 0;
}

/* Register a service, or replace its record and begin a new lease. */
uint16_t service_set(struct query *q)
{
	uint8_t record[RECORD_MAX];
	struct urxe_sa_service *s;
	uint32_t lease;
	uint64_t now;
	uint16_t status;

	if (!wants(q, ID) || !wants(q, GID) || !service_is_allowed(q))
		return STATUS_REQUEST_INVALID;
	status = services_begin(q, &now);
	if (status)
		return status;
	service_wanted(q, record);
	lease = (uint32_t)attr_get(record, ATTR_SERVICE_lease);
	s = service_by_id(q->f->dev, record);
	if (!s)
		s = service_free(q->f->dev);
	if (s) {
		store_relaxed(&s->used, 0);
		memcpy(s->record, record, sizeof(s->record));
		s->ends = lease == FOREVER ? URXE_SERVICE_FOREVER :
					     now + lease * SECOND;
		store_release(&s->used, 1);
		service_add(q, record, lease);
	}
	fabric_unlock(q->f);
	return s ? 0 : STATUS_NO_RESOURCES;
}

uint16_t service_delete(struct query *q)
{
	uint8_t record[RECORD_MAX];
	struct urxe_sa_service *s;
	uint64_t now;
	uint16_t status;

	if (!service_is_allowed(q))
		return STATUS_REQUEST_INVALID;
	status = services_begin(q, &now);
	if (status)
		return status;
	service_wanted(q, record);
	s = service_by_id(q->f->dev, record);
	if (s) {
		store_relaxed(&s->used, 0);
		service_add(q, s->record, lease_left(s, now));
	}
	fabric_unlock(q->f);
	return s ? 0 : STATUS_NO_RECORDS;
}
