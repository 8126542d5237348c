/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A trace as pcapng, for Wireshark. WRs between processes of one host become
 * the RoCE packets that a wire would have carried. Packets to and from other
 * hosts are written as they were sent or received. The timestamp of a packet
 * is that of its record.
 */
#pragma once

#include <stdio.h>

#include "trace_file.h"

/* Return 0, or the exit code after logging the error. */
int trace_pcap(FILE *to, const struct trace_batch *b);
