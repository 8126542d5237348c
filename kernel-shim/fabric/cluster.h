/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The hosts, devices, switches and links that a new fabric gets, from a cluster
 * file (cluster.c) or from the environment (hca.c).  Nodes have the numbers
 * that they will have in the fabric (shared/cluster.h).
 */
#pragma once

#include "fabric.h"

struct cluster {
	uint32_t hcas, hosts, switches; /* used elements of the arrays */
	uint32_t hash; /* of the file; 0: there is none */
	uint32_t has_links; /* urxe_dev.has_links */
	struct urxe_host *host;
	struct urxe_hca *hca;
	struct urxe_switch *sw;
};

/* Allocate arrays of zeros with room for so many elements.  -ENOMEM */
int cluster_alloc(struct cluster *c, uint32_t hcas, uint32_t hosts,
		  uint32_t switches);
void cluster_free(struct cluster *c);
/* Default values: no profile, no link, the default partition. */
void hca_defaults(struct urxe_hca *hca);

/* Read the file of URXE_CLUSTER.  -errno with fabric_why() */
int cluster_read(struct cluster *c);
/* Set *hash to that of the file of URXE_CLUSTER; 0: it is not set.  -errno */
int cluster_hash_by_env(uint32_t *hash);

/*
 * If InfiniBand devices have no links, join them by a switch.  -EINVAL: they
 * are too many
 */
int cluster_complete(struct cluster *c);
