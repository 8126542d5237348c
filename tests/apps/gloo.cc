// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// gloo RANK RANKS STORE GID-INDEX: a ring sums up vectors of many sizes.
#include <gloo/allreduce_ring.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <vector>

int main(int argc, char **argv)
{
	const int rank = atoi(argv[1]), ranks = atoi(argv[2]);
	std::vector<std::unique_ptr<gloo::AllreduceRing<float>>> rings;
	gloo::transport::ibverbs::attr attr;

	(void)argc;
	attr.name = "urxe0";
	attr.port = 1;
	attr.index = atoi(argv[4]);
	auto device = gloo::transport::ibverbs::CreateDevice(attr);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
	gloo::rendezvous::FileStore store(argv[3]);

	context->connectFullMesh(store, device);
	for (size_t n = 1; n <= 1 << 20; n *= 16) {
		std::vector<float> v(n, rank + 1);

		rings.emplace_back(new gloo::AllreduceRing<float>(
			context, {v.data()}, static_cast<int>(n)));
		rings.back()->run();
		for (float x : v)
			if (x != ranks * (ranks + 1) / 2) {
				std::cerr << "a sum is wrong" << std::endl;
				return 1;
			}
	}
	std::cout << "all right" << std::endl;
	// A ring must not be destroyed before gloo's thread has seen its last
	// send complete, and gloo has no call to wait for that.
	_exit(0);
}
