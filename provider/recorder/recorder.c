// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Installation of the recorder; recorder.h describes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core/context.h"
#include "recorder.h"
#include "trace/packet.h"
#include "trace/trace.h"

int recorder_wrap(struct pabi_ops *ops)
{
	const char *path = getenv("URXE_TRACE");
	int ret;

	if (!path || !*path)
		return 0;
	if (payload_begin()) {
		fprintf(stderr,
			"urxe: no device: URXE_TRACE_PAYLOAD=%s: not a number from 0 to %u\n",
			getenv("URXE_TRACE_PAYLOAD"), TRACE_MAX_PAYLOAD);
		return -EINVAL;
	}
	ret = trace_open(path);
	if (ret) {
		fprintf(stderr, "urxe: no device: URXE_TRACE=%s: %s\n", path,
			ret == -EINVAL ? "not a trace file of this version" :
					 strerror(-ret));
		return ret;
	}
	recorder_wrap_calls(ops);
	recorder_wrap_objects(ops);
	recorder_wrap_posts(ops);
	recorder_wrap_polls(ops);
	recorder_watch_engine();
	trace_watch_packets(payload_is_wanted());
	return 0;
}

void recorder_opened(const struct urxe_context *ctx)
{
	if (trace_is_open())
		trace_fabric(ctx->fabric->ino);
}
