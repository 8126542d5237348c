// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * leave: exit while other threads read sysfs, open and close the device.
 * leave fork: exit, while a child continues to use the fabric.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#define STATE "/sys/class/infiniband/urxe0/ports/1/state"

static _Atomic int looks;

static void look(void)
{
	char text[16] = "";
	int fd = open(STATE, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	CHECK(!strcmp(text, "4: ACTIVE\n"));
	close(fd);
}

/* Opening takes long, so that the process exits during one. */
static void *flight_iter_bucket(void *arg)
{
	int fd;

	for (;;) {
		fd = open(arg, O_RDWR | O_CLOEXEC);
		if (fd >= 0)
			close(fd);
		looks++;
	}
	return NULL;
}

static void leave_child(void)
{
	int ready[2], left[2], fd;
	char c = 0;

	CHECK(!pipe(ready) && !pipe(left));
	if (fork()) {
		close(ready[1]);
		CHECK(read(ready[0], &c, 1) == 1);
		return; /* left[1] is closed when this process exits */
	}
	close(left[1]);
	CHECK(write(ready[1], &c, 1) == 1);
	CHECK(!read(left[0], &c, 1));
	look();
	fd = open("/dev/infiniband/uverbs1000", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	close(fd);
	puts("the child continued");
}

int main(int argc, char **argv)
{
	pthread_t t;
	int i;

	(void)argv;
	look();
	if (argc > 1) {
		leave_child();
		return 0;
	}
	for (i = 0; i < 3; i++)
		CHECK(!pthread_create(&t, NULL, flight_iter_bucket,
				      i ? (void *)STATE :
					  "/dev/infiniband/uverbs1000"));
	while (looks < 20)
		usleep(100);
	return 0;
}
