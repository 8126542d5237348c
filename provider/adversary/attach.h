/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Installation of a transport (engine/qp/flight.h) in each new QP. */
#pragma once

#include "abi/pabi/pabi.h"
#include "engine/qp/qp.h"

/*
 * Call @attach for each QP that is created and has a send queue, which is
 * empty. It sets qp->transport and qp->transport_data, which is freed with the
 * QP; or returns false if there is no memory. Each poll lets the transports of
 * the context make progress. Called once in a process.
 */
void attach_wrap(struct pabi_ops *ops, bool (*attach)(struct urxe_qp *qp));
