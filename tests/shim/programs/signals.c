// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * shim-signals CASE none|never|early|late|off, or list same|die|nofault.
 *
 * Run one case: without the preload library (none), or with it.  Then
 * urxe_nofault() is never called, called before the case or when the case has
 * set its dispositions, or refused because of URXE_FAULT_HANDLER=0.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "signals.h"

#if defined(__x86_64__)
__asm__(".text\n"
	".globl nofault_load, nofault_store\n"
	"nofault_load:\n"
	"nofault_begin:\n"
	"	movb (%rdi), %al\n"
	"	jmp nofault_end\n"
	"nofault_store:\n"
	"	movb $1, (%rdi)\n"
	"nofault_end:\n"
	"	xorl %eax, %eax\n"
	"	xorl %edx, %edx\n"
	"	ret\n"
	"nofault_fixup:\n"
	"	movl $1, %eax\n"
	"	ret\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl nofault_load, nofault_store\n"
	"nofault_load:\n"
	"nofault_begin:\n"
	"	ldrb w2, [x0]\n"
	"	b nofault_end\n"
	"nofault_store:\n"
	"	strb wzr, [x0]\n"
	"nofault_end:\n"
	"	mov x0, #0\n"
	"	mov x1, #0\n"
	"	ret\n"
	"nofault_fixup:\n"
	"	mov x0, #1\n"
	"	ret\n");
#endif

#if defined(__x86_64__) || defined(__aarch64__)
extern const char nofault_begin[], nofault_end[], nofault_fixup[];
_Atomic uint32_t nofault_installed;
_Thread_local struct nofault_thread nofault_thread;

static struct nofault_thread *nofault_self(void)
{
	return &nofault_thread;
}

static const struct nofault_section section = {
	.begin = nofault_begin,
	.end = nofault_end,
	.fixup = nofault_fixup,
	.installed = &nofault_installed,
	.self = nofault_self,
};
static const char *mode;

bool nofault_install(void)
{
	nofault_install_fn *fn =
		(nofault_install_fn *)dlsym(RTLD_DEFAULT, NOFAULT_INSTALL);
	bool ok;

	CHECK(fn);
	errno = ERANGE;
	ok = fn(&section);
	CHECK(errno == ERANGE);
	CHECK(ok == (nofault_installed != 0));
	return ok;
}

void handlers_are_set(void)
{
	if (!strcmp(mode, "late"))
		CHECK(nofault_install());
	/* what handlers see */
	errno = EDOM;
}

char *map_page(int prot)
{
	char *at = mmap(NULL, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

char *map_past_end(void)
{
	int fd = memfd_create("signals", 0);
	char *at;

	CHECK(fd >= 0);
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	close(fd);
	return at;
}

void set_action(int sig, void *handler, int flags)
{
	struct sigaction act = { .sa_flags = flags };

	if (flags & SA_SIGINFO)
		act.sa_sigaction = (__typeof__(act.sa_sigaction))handler;
	else
		act.sa_handler = (__typeof__(act.sa_handler))handler;
	sigemptyset(&act.sa_mask);
	CHECK(!sigaction(sig, &act, NULL));
}

__attribute__((noinline)) int overflow(const _Atomic char *above)
{
	const memory_order any = memory_order_relaxed;
	_Atomic char here[4096];

	atomic_store_explicit(
		here, above ? atomic_load_explicit(above, any) : 1, any);
	return atomic_load_explicit(here, any) ?
		       overflow(here) + atomic_load_explicit(here, any) :
		       0;
}

static bool run(const struct signals_case *c, const char *name)
{
	for (; c->name; c++) {
		if (strcmp(c->name, name))
			continue;
		c->run();
		fflush(stdout);
		return true;
	}
	return false;
}

static void list(const struct signals_case *c)
{
	for (; c->name; c++)
		puts(c->name);
}

int main(int argc, char **argv)
{
	struct rlimit core;

	CHECK(argc == 3);
	mode = argv[2];
	/* the output of a process that is killed */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(argv[1], "list")) {
		list(!strcmp(mode, "same") ? same_cases :
		     !strcmp(mode, "die")  ? die_cases :
					     nofault_cases);
		return 0;
	}
	CHECK(!getrlimit(RLIMIT_CORE, &core));
	core.rlim_cur = core.rlim_max;
	CHECK(!setrlimit(RLIMIT_CORE, &core));
	CHECK(!dlsym(RTLD_DEFAULT, NOFAULT_INSTALL) == !strcmp(mode, "none"));
	if (!strcmp(mode, "early"))
		CHECK(nofault_install());
	if (!strcmp(mode, "off"))
		CHECK(!nofault_install());
	CHECK(run(same_cases, argv[1]) || run(die_cases, argv[1]) ||
	      run(nofault_cases, argv[1]));
	return 0;
}
#else
int main(void)
{
	return SKIP;
}
#endif
