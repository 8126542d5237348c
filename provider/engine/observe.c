// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "observe.h"

const struct urxe_observer *urxe_observer;
