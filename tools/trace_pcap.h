/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A trace as pcapng: the packets of RoCE that a wire would have carried, each
 * at the moment of the record that tells of it.
 */
#pragma once

#include <stdio.h>

#include "trace_file.h"

/* 0, or the exit code. */
int trace_pcap(FILE *to, const struct trace_batch *b);
