/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packet loss, duplication, delay and damage on transmit, if fault rules or
 * the adversary apply to packets.  The decision function is installed as
 * wire_tx_fault (wire/sender.h) and runs in any sending thread.
 */
#pragma once

/*
 * Install the decision function.  Called once in a process, before the first
 * packet.
 */
void tx_fault_begin(void);
