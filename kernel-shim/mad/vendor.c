// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The vendor class 0x0a of Mellanox HCAs, whose MADs the driver passes to the
 * firmware (mlx5_ib_process_mad of the kernel): ClassPortInfo and general
 * information, as vendstat of infiniband-diags reads it.  Other HCAs have no
 * such class.
 */
#include <stdio.h>
#include <string.h>

#include "agents.h"
#include "base/clock.h"

#define MELLANOX 0x02c9
#define VENDOR_DATA 24 /* first byte of the key and the attribute */
#define GENERAL_INFO 0x17
#define PSID_AT 56
#define PSID_BYTES 16

static void general_info(const struct urxe_profile *p, uint8_t *out)
{
	unsigned int major = 0, minor = 0, sub = 0;
	char version[sizeof(p->fw_ver) + 1] = "";

	memcpy(version, p->fw_ver, sizeof(p->fw_ver));
	sscanf(version, "%u.%u.%u", &major, &minor, &sub);
	attr_set(out, ATTR_GENERAL_hw_revision, p->value[PROFILE_hw_ver]);
	attr_set(out, ATTR_GENERAL_device_id, p->value[PROFILE_vendor_part_id]);
	attr_set(out, ATTR_GENERAL_uptime, clock_now() / 1000000000);
	attr_set(out, ATTR_GENERAL_major, major);
	attr_set(out, ATTR_GENERAL_minor, minor);
	attr_set(out, ATTR_GENERAL_sub_minor, sub);
	attr_set(out, ATTR_GENERAL_ext_major, major);
	attr_set(out, ATTR_GENERAL_ext_minor, minor);
	attr_set(out, ATTR_GENERAL_ext_sub_minor, sub);
	memcpy(out + PSID_AT, p->board_id, strnlen(p->board_id, PSID_BYTES));
}

static void class_port_info(uint8_t *out)
{
	attr_set(out, ATTR_CLASS_base_version, 1);
	attr_set(out, ATTR_CLASS_class_version, 1);
	attr_set(out, ATTR_CLASS_response_time, 16);
}

bool vendor_answer(struct urxe_fabric *f, uint32_t node,
		   uint8_t mad[MAD_BYTES_MAX])
{
	const uint32_t attribute = (uint32_t)attr_get(mad, ATTR_MAD_attribute);
	const uint32_t method = (uint32_t)attr_get(mad, ATTR_MAD_method);
	const struct urxe_profile *p;

	if (node_is_switch(node) || attr_get(mad, ATTR_MAD_response) ||
	    (method != METHOD_GET && method != METHOD_SET))
		return false;
	p = &f->dev->hca[node].profile;
	if (p->value[PROFILE_vendor_id] != MELLANOX)
		return false;
	if (method != METHOD_GET || (attribute != ATTRIBUTE_CLASS_PORT_INFO &&
				     attribute != GENERAL_INFO)) {
		mad_respond(mad, STATUS_BAD_ATTRIBUTE);
		return true;
	}
	memset(mad + VENDOR_DATA, 0, MAD_BYTES_MAX - VENDOR_DATA);
	if (attribute == GENERAL_INFO)
		general_info(p, mad + VENDOR_DATA);
	else
		class_port_info(mad + VENDOR_DATA);
	mad_respond(mad, 0);
	return true;
}
