/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* Send sig to all processes below this one that /proc shows. */
void descendants_signal(int sig);
