// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "wire/watch.h"

const struct wire_watcher *wire_watcher;
